"""How `convert` makes shards of TFRecord files: each Example a record, its features fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tarviz.commands.convert.recipe import ConversionProgress, FramedRecords, Recipe
from tarviz.model.errors import UsageError
from tarviz.model.types import URL
from tarviz.model.urls import without_query
from tarviz.outputs import Names
from tarviz.read import tfrecords
from tarviz.read.indexed import RecordRange
from tarviz.read.stream import ReadOptions
from tarviz.read.tfrecord_names import stems
from tarviz.selection import SelectAll

_BATCH = 4 << 20  # bytes of members that are written together


def makes_tars(urls: Sequence[URL], names: Names) -> bool:
    """Whether TFRecord files are to become tars; `UsageError` where only some of the inputs are such files."""
    if not without_query(names.text)[0].lower().endswith((".tar", ".tar.gz", ".tgz")):
        return False
    found = [tfrecords.is_tfrecord(url) for url in urls]
    if any(found) and not all(found):
        raise UsageError("some inputs are TFRecord files, others are not.", shard=urls[found.index(False)], hint="Convert them apart.")
    return all(found)


def recipe(given: Recipe, urls: Sequence[URL], dry_run: bool) -> ExampleRecipe:
    """The recipe for these files; `UsageError` names an option that is for shards alone."""
    read = given.options
    wanted = {
        "chain": bool(given.chain),
        "select": not isinstance(given.select, SelectAll),
        "types": bool(given.types),
        "record_to_example": given.record_to_example is not None,
        "key=False": not given.key,
        "where": bool(read.where),
        "keys": bool(read.keys),
        "dry_run": dry_run,
    }
    for name, there in wanted.items():
        if there:
            hint = "tarviz show looks inside; tarviz cat changes the shards." if dry_run else "Convert first, then use it on the shards."
            raise UsageError(f"{name} is for shards, and the inputs are TFRecord files.", hint=hint)
    return ExampleRecipe(read, stems(urls), tfrecords.lists_in(urls[0], read))


@dataclass(frozen=True)
class ExampleRecipe:
    """How the Examples of a file become the members of a shard; what is a list is seen in the first file, and holds for all."""

    options: ReadOptions
    stems: Mapping[URL, str]
    lists: frozenset[str]
    provable: bool = True

    def to_dict(self) -> dict[str, Any]:
        """What a manifest says of it."""
        return {"lists": sorted(self.lists), "stems": [*self.stems.values()], "on_error": self.options.on_error}

    def batches(self, url: URL, progress: ConversionProgress, start: int = 0, part: RecordRange | None = None) -> Iterator[FramedRecords]:
        """The records of a file, from record `start` on; a file has no ranges, so that `part` is None."""
        from tarviz.outputs.encoded import EncodedRecords  # loads what makes pictures

        made, numbers, stop = EncodedRecords(), list[int](), 0
        for number, key, fields in tfrecords.records(url, self.options, progress.report, stem=self.stems[url], lists=self.lists):
            stop = number + 1
            if number < start:
                continue
            made.add([tfrecords.members(key, fields)])
            numbers.append(number)
            if made.bytes >= _BATCH:
                progress.tick()
                yield FramedRecords(made, np.array(numbers), stop)
                made, numbers = EncodedRecords(), []
        progress.tick()
        yield FramedRecords(made, np.array(numbers, np.int64), stop)


AnyRecipe: TypeAlias = Recipe | ExampleRecipe
"""What makes records of an output out of those of a shard."""
