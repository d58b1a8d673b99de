"""How `convert` makes shards of TFRecord files: each Example a record, its features fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tarviz.commands.convert.recipe import ConversionProgress, FramedRecords, Ints, Recipe
from tarviz.commands.convert.tasks import Settings
from tarviz.model.errors import UsageError
from tarviz.model.types import URL, Buffer
from tarviz.model.urls import without_query
from tarviz.outputs import TAR_END, Names
from tarviz.read import tfrecords
from tarviz.read.indexed import RecordRange
from tarviz.read.stream import ReadOptions
from tarviz.selection import SelectAll

_BATCH = 4 << 20  # bytes of members that are written together
_PACKED = (".tar.gz", ".tgz")


def asked(urls: Sequence[URL], names: Names) -> bool:
    """Whether TFRecord files are to become tars; `UsageError` where only some of the inputs are such files."""
    if not without_query(names.text)[0].lower().endswith((".tar", *_PACKED)):
        return False
    found = [tfrecords.is_tfrecord(url) for url in urls]
    if any(found) and not all(found):
        raise UsageError("some inputs are TFRecord files, others are not.", shard=urls[found.index(False)], hint="Convert them apart.")
    return all(found)


def settings(given: Settings) -> Settings:
    """How a tar is written: with its end mark, and packed as its name says where nothing else was asked for."""
    packed = without_query(given.names.text)[0].lower().endswith(_PACKED)
    return replace(given, ending=TAR_END, compression=given.compression or ("gzip" if packed else None))


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
    return ExampleRecipe(read, tfrecords.stems(urls), tfrecords.lists_in(urls[0], read))


@dataclass(slots=True)
class _Members:
    """Records as the members of a tar."""

    size: Ints
    records: list[bytes]

    def buffers(self, first: int = 0, last: int | None = None) -> list[Buffer]:
        return [*self.records[first:last]]


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
        made: list[bytes] = []
        numbers: list[int] = []
        held = stop = 0
        for number, key, fields in tfrecords.records(url, self.options, progress.report, stem=self.stems[url], lists=self.lists):
            stop = number + 1
            if number < start:
                continue
            made.append(tfrecords.members(key, fields))
            numbers.append(number)
            held += len(made[-1])
            if held >= _BATCH:
                progress.tick()
                yield _batch(made, numbers, stop)
                made, numbers, held = [], [], 0
        progress.tick()
        yield _batch(made, numbers, stop)


def _batch(made: list[bytes], numbers: list[int], stop: int) -> FramedRecords:
    size = np.fromiter(map(len, made), np.int64, len(made))
    return FramedRecords(_Members(size, made), np.array(numbers, np.int64), stop)
