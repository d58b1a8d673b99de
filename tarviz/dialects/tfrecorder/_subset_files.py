"""The files of subsets: TFRecord outputs, and beside them `examples.csv`, the schema and the config file."""

from __future__ import annotations

import configparser
import io
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tarviz import stores
from tarviz.dialects.tfrecorder._dataset import SUFFIX, numbered_files, write_schema
from tarviz.dialects.tfrecorder._example import Example, IgnoreExampleException, Path, write_csv
from tarviz.dialects.tfrecorder._fields import Attribute, Shapes
from tarviz.formats import tfrecord
from tarviz.model.errors import NotFoundError, UsageError
from tarviz.model.types import URL
from tarviz.outputs import Names, Outputs, manifest_url

_LOG = logging.getLogger(__name__)
MAX_SIZE = 1e6  # bytes of a file
CSV = "examples.csv"
CONFIG = "tfrecord_files_config.txt"


class Counts(dict[str, int]):
    """Subset → examples that were given for it. `written` counts the records in its files, `ignored` the examples left out."""

    def __init__(self) -> None:
        super().__init__()
        self.written: dict[str, int] = {}
        self.ignored: dict[str, int] = {}


def write_subsets(
    save_directory_path: Path,
    subsets: Mapping[str, Sequence[Example]],
    about: dict[str, Any],
    limit: float,
    log: bool,
    /,  # what examples take may have any of these names
    *,
    examples_tfrecords_files_max_size_in_bytes: float | None = None,
    **kwargs: Any,
) -> Counts:
    """Writes the subsets, in files of `limit` bytes at most, and the config file, with a `log` also the lists of examples.

    The one place where files are made. The keyword is another name of the limit, and goes before it.
    """
    limit = examples_tfrecords_files_max_size_in_bytes or limit
    root = os.fspath(save_directory_path)
    attributes = _attributes(example for listed in subsets.values() for example in listed)
    rows = {name: [example.to_csv_row() for example in listed] for name, listed in subsets.items()} if log else {}
    counts = Counts()
    for name, listed in subsets.items():
        folder = stores.join(root, name) if name else URL(root)
        shapes, ignored = Shapes({}), [0]
        names = Names(stores.join(folder, f"{{shard}}{SUFFIX}"))
        with Outputs(names, limit) as outputs:
            for batch in tfrecord.together(_serialize(listed, shapes, ignored, kwargs)):
                outputs.add(tfrecord.frame(batch))
        _forget(folder, len(outputs.done))
        if log:
            write_csv(stores.join(folder, CSV), rows[name])
        write_schema(folder, shapes.schema(attributes), outputs.done)
        counts[name] = len(listed)
        counts.written[name] = sum(written.records for written in outputs.done)
        counts.ignored[name] = ignored[0]
    facts = {**about, "tfrecord_file_max_size_in_mb": f"{limit / 1e6:.2e}", "log_in_csv_file": log}
    _write_config(root, {**facts, **{f"{name or 'examples'}_count": count for name, count in counts.items()}, **kwargs})
    return counts


def _attributes(examples: Iterable[Example]) -> tuple[Attribute, ...]:
    """The attributes of the examples, which all have to declare the same."""
    kinds = list(dict.fromkeys(type(example) for example in examples))
    if not kinds:
        raise UsageError("there are no examples.")
    for kind in kinds[1:]:
        if kind._attributes != kinds[0]._attributes:
            raise UsageError(
                f"{kinds[0].__name__} and {kind.__name__} declare different attributes.", hint="Write them to folders of their own."
            )
    return kinds[0]._attributes


def _serialize(examples: Sequence[Example], shapes: Shapes, ignored: list[int], kwargs: dict[str, Any]) -> Iterator[bytes]:
    """Each example loaded, split, serialised and let go, one after the other."""
    for number, example in enumerate(examples):
        kind = type(example).__name__
        step = "load"
        try:
            example.load(**kwargs)
            step = "split"
            chunks = example.split(**kwargs)
        except IgnoreExampleException as error:
            _LOG.warning("example %d (%s) is left out: %s", number, kind, error)
            ignored[0] += 1
            continue
        except Exception as error:
            error.add_note(f"{kind}.{step} of example {number} failed")
            raise
        if isinstance(chunks, Example) or not isinstance(chunks, Iterable):
            raise UsageError(f"{kind}.split of example {number} returned {type(chunks).__name__}, not a list of examples.")
        for chunk in chunks:
            if not isinstance(chunk, Example):
                raise UsageError(f"{kind}.split of example {number} returned a list with {type(chunk).__name__}, not examples.")
            try:
                yield chunk.serialize_to_string(shapes)
            except UsageError as error:
                raise error.at(key=f"example {number}") from error.__cause__
            chunk.release()
        example.release()


def _forget(folder: URL, count: int) -> None:
    """Removes files of an earlier, larger run, which would be taken for files of this one."""
    for number, path in numbered_files(folder):
        if number >= count:
            stores.of(path).delete(path)
            with suppress(NotFoundError):
                stores.of(path).delete(manifest_url(path))


def _write_config(root: str, facts: Mapping[str, Any]) -> None:
    config = configparser.ConfigParser(interpolation=None)
    config["examples"] = {name: _show(name, value) for name, value in facts.items()}
    text = io.StringIO()
    config.write(text)
    stores.write(stores.join(root, CONFIG), text.getvalue().encode())


def _show(name: str, value: Any) -> str:
    if "path" in name and isinstance(value, str | os.PathLike):
        return absolute(value)
    return json.dumps(list(value)) if isinstance(value, list | tuple) else str(value).replace("\n", " ")


def absolute(path: Path) -> str:
    """A local path from the root on, a URL as it is.

    >>> absolute("s3://bucket/a"), absolute(""), os.path.isabs(absolute("a"))
    ('s3://bucket/a', '', True)
    """
    text = os.fspath(path)
    return os.path.abspath(text) if text and stores.is_local(text) else text
