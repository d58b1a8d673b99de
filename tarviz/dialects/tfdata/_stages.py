"""The default stages of go-tfdata's pipeline, between its source and its output."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

from tarviz.dialects.tfdata.core import KEY_ENTRY, FeatureType, Sample, TFExample, key_of, to_example
from tarviz.dialects.tfdata.transform import Renaming
from tarviz.formats import example as examples
from tarviz.formats import tfrecord
from tarviz.model.errors import Fault, SchemaError, TarvizError, TarvizWarning
from tarviz.model.types import Block
from tarviz.outputs import Names, Outputs
from tarviz.read.stream import ReadReport

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
