"""The default stages of go-tfdata's pipeline: shards, or an open file, to samples, to examples, to TFRecord."""

from __future__ import annotations

import io
import os
import secrets
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from tarviz import stores
from tarviz.dialects.tfdata.core import KEY_ENTRY, FeatureType, Sample, TFExample, key_of, to_example
from tarviz.dialects.tfdata.transform import Renaming
from tarviz.formats import example as examples
from tarviz.formats import tfrecord
from tarviz.model.errors import Fault, NotFoundError, SchemaError, TarvizError, TarvizWarning, UsageError
from tarviz.model.types import URL, Block
from tarviz.model.urls import local_path
from tarviz.outputs import Names, Outputs
from tarviz.read import stream
from tarviz.read.stream import ReadOptions, ReadReport

OPTIONS = ReadOptions(key_split="last-dot", group="shard", duplicates="last")
_CHUNK = 1 << 20


class ShardSource:
    """Shards, or an open file, whose records are gathered over the whole shard as go-tfdata does."""

    def __init__(self, source: Any) -> None:
        if isinstance(source, io.TextIOBase):
            raise UsageError("from_tar needs a binary file.", hint='Open it with "rb".')
        if not hasattr(source, "read") and not isinstance(source, str | os.PathLike) and not isinstance(source, Iterable):
            raise UsageError(f"from_tar reads a path, a URL or an open file, got {type(source).__name__}.")
        self.source = source

    def blocks(self, report: ReadReport) -> Iterator[Block]:
        """The blocks of the shards in order."""
        if not hasattr(self.source, "read"):
            for url in stream.shards(self.source):
                yield from stream.blocks(url, OPTIONS, report=report)
            return
        if (path := _path(self.source)) is not None:
            yield from stream.blocks(path, OPTIONS, report=report)
            return
        url = URL(f"memory://tfdata/{secrets.token_hex(8)}.tar")
        try:
            with stores.of(url).create(url) as sink:
                while data := self.source.read(_CHUNK):
                    sink.write(data)
            yield from stream.blocks(url, OPTIONS, report=report)
        finally:
            with suppress(NotFoundError):
                stores.of(url).delete(url)

    def samples(self, report: ReadReport) -> Iterator[Sample]:
        """The records one by one."""
        for block in self.blocks(report):
            for record in block:
                yield Sample({KEY_ENTRY: record.key, **{ext: bytes(record[ext]) for ext in record}}, shard=block.shard)


def _path(file: Any) -> str | None:
    """The path behind an open file that stands at its beginning, so that it can be read by an index."""
    name = getattr(file, "name", None)
    try:
        same = (
            isinstance(name, str) and os.path.isfile(name) and file.tell() == 0 and os.path.samestat(os.fstat(file.fileno()), os.stat(name))
        )
    except (OSError, ValueError):
        return None
    return local_path(str(name)) if same and type(file).__module__ in ("io", "_io") else None


SamplesReader: TypeAlias = Iterator[Any]
TFExampleReader: TypeAlias = Iterator[Any]


@dataclass(frozen=True, slots=True)
class SampleTypes:
    """The default stage from samples to examples."""

    types: Mapping[str, FeatureType]
    quoted_key: bool

    @property
    def whole(self) -> bool:
        """Whether blocks can be encoded as they are: nothing but bytes and single integers is wanted."""
        return not self.quoted_key and all(one in (FeatureType.BYTES, FeatureType.INT64) for one in self.types.values())

    def run(self, reader: SamplesReader, report: ReadReport) -> Iterator[TFExample]:
        unused = set(self.types)
        for sample in reader:
            if not isinstance(sample, Mapping):
                raise SchemaError(f"a sample is a dict, got {type(sample).__name__}.")
            unused.difference_update(sample)
            yield to_example(sample, self.types, quoted_key=self.quoted_key)
        _tell_unused(unused, report)

    def blocks(self, blocks: Iterator[Block], report: ReadReport) -> Iterator[examples.Examples]:
        kinds: dict[str, str] = dict.fromkeys(examples.INTEGER_FIELDS, "bytes") | {name: one.kind for name, one in self.types.items()}
        unused = set(self.types)
        for block in blocks:
            unused.difference_update(block.exts)
            yield examples.encode_block(block, kinds)
        _tell_unused(unused - {KEY_ENTRY}, report)


def _tell_unused(unused: set[str], report: ReadReport) -> None:
    for name in sorted(unused):
        fault = Fault("W_NO_FIELD", f"types name {name!r}, which no sample has.")
        report.add(fault)
        warnings.warn(str(fault), TarvizWarning, stacklevel=2)


def write_batches(batches: Iterator[examples.Examples], out: Any) -> int:
    """Examples as TFRecord, to a path or an open file; how many there were."""
    count = 0
    with Outputs(Names(os.fspath(out))) if isinstance(out, str | os.PathLike) else nullcontext() as outputs:
        for batch in batches:
            count += len(batch)
            if outputs is not None:
                outputs.add(tfrecord.frame(batch))
            else:
                for buffer in tfrecord.frame(batch).buffers():
                    out.write(buffer)
    return count


@dataclass(frozen=True, slots=True)
class Transforming:
    """A stage of functions that are applied to each item."""

    functions: tuple[Callable[[Any], Any], ...]
    kind: type[Sample | TFExample]

    def __call__(self, reader: Iterator[Any]) -> Iterator[Any]:
        idle: dict[Any, Renaming] = {f: f for f in self.functions if isinstance(f, Renaming)}
        for item in reader:
            shard, key = getattr(item, "shard", None), key_of(item) if isinstance(item, Mapping) else None
            found = item
            for f in self.functions:
                if f in idle and idle[f].finds(found):
                    del idle[f]
                try:
                    found = f(found)
                except TarvizError as error:
                    raise error.at(shard=shard, key=key) from error.__cause__
                except Exception as error:
                    error.add_note(f"a transform failed on the record {key!r} of {shard}")
                    raise
                if not isinstance(found, Mapping):
                    what = "sample" if self.kind is Sample else "example"
                    raise SchemaError(f"a transform returned {type(found).__name__}; it returns a {what}, a dict.", shard=shard, key=key)
                if not isinstance(found, self.kind):
                    found = self.kind(found, shard=shard)
            yield found
        for renaming in idle:
            text = f"W_NO_FIELD rename names {';'.join(renaming.sources)!r}, which no {self.kind.__name__} has."
            warnings.warn(text, TarvizWarning, stacklevel=2)


def empty_samples(reader: SamplesReader) -> SamplesReader:
    """A reader of samples without the empty ones."""
    return (item for item in reader if any(name != KEY_ENTRY for name in item))


empty_examples = empty_samples
