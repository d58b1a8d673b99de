"""The pipeline from tar to TFRecord: five stages, each with a default, each to be replaced; nothing is read before the last one asks."""

from __future__ import annotations

import io
import os
import secrets
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from tarviz import stores
from tarviz.dialects import check_function
from tarviz.dialects.tfdata.core import KEY_ENTRY, FeatureType, Sample, TFExample, TypesMap, checked_types, key_of, serialize, to_example
from tarviz.dialects.tfdata.transform import Renaming, Transform
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


class Pipeline:
    """Tar to TFRecord: `Pipeline().from_tar("a.tar").sample_to_tf_example({"cls": "INT64"}).to_tfrecord("a.tfrecord").do()`.

    | stage | takes | gives | set by | required |
    |---|---|---|---|---|
    | tar | – | samples | `from_tar`, `from_tar_gz`, `with_tar_stage` | yes |
    | samples | samples | samples | `transform_samples`, `filter_empty_samples`, `with_samples_stage` | no |
    | sample to example | samples | examples | `sample_to_tf_example`, `with_sample_to_tf_example_stage` | yes |
    | examples | examples | examples | `transform_tf_examples`, `filter_empty_examples`, `with_tf_examples_stage` | no |
    | TFRecord | examples | – | `to_tfrecord`, `with_tfrecord_stage` | no |

    Methods may be called in any order and return the pipeline itself. Stages of samples and of examples follow each
    other in the order of the calls; of the other three the last call counts. A reader is an iterator; a stage of your own is a
    function from reader to reader. Nothing is read before `do`, or before an iteration asks for the first example.
    """

    def __init__(self) -> None:
        self.report = ReadReport()
        self._tar: ShardSource | Callable[[], Iterable[Any]] | None = None
        self._samples: list[Callable[[SamplesReader], Iterable[Any]]] = []
        self._convert: SampleTypes | Callable[[SamplesReader], Iterable[Any]] | None = None
        self._examples: list[Callable[[TFExampleReader], Iterable[Any]]] = []
        self._out: Any = None  # a path, an open file, or a function of the reader of examples

    def from_tar(self, source: Any) -> Self:
        """Samples of shards: a path, URL, template, folder, a list of these, or an open binary file; packed ones too, told by the bytes."""
        self._tar = ShardSource(source)
        return self

    def transform_samples(self, *transforms: Transform) -> Self:
        """Each sample through functions from sample to sample."""
        return self.with_samples_stage(Transforming(_callables("transform_samples", transforms), Sample))

    def filter_empty_samples(self) -> Self:
        """Leaves out samples with nothing but `__key__`."""
        return self.with_samples_stage(empty_samples)

    def sample_to_tf_example(self, types: TypesMap | None = None, *, quoted_key: bool = False) -> Self:
        """Each sample as an example: fields in `types` as they say, all others as bytes.

        Types are names or `core.FeatureType`: `{"cls": "INT64", "png": "BYTES"}`. `quoted_key` writes `__key__` as JSON text, in
        quotes, as go-tfdata does.
        """
        self._convert = SampleTypes(checked_types(types), quoted_key)
        return self

    def transform_tf_examples(self, *transforms: Transform) -> Self:
        """Each example through functions from example to example."""
        return self.with_tf_examples_stage(Transforming(_callables("transform_tf_examples", transforms), TFExample))

    def filter_empty_examples(self) -> Self:
        """Leaves out examples with nothing but `__key__`."""
        return self.with_tf_examples_stage(empty_examples)

    def to_tfrecord(self, out: Any, num_workers: int = 1) -> Self:
        """Examples into a TFRecord file, a path or URL (there when it is complete) or an open binary file.

        `num_workers` is taken for old code's sake: one process writes, and the order is kept.
        """
        if not isinstance(out, str | os.PathLike) and not hasattr(out, "write"):
            raise UsageError(f"to_tfrecord writes to a path, a URL or an open file, got {type(out).__name__}.")
        if isinstance(out, io.TextIOBase):
            raise UsageError("to_tfrecord needs a binary file.", hint='Open it with "wb".')
        self._out = out
        return self

    def with_tar_stage(self, stage: Callable[[], Iterable[Any]]) -> Self:
        """A function that returns a reader of samples, in place of shards."""
        self._tar = _stage("with_tar_stage", stage)
        return self

    def with_samples_stage(self, stage: Callable[[SamplesReader], Iterable[Any]]) -> Self:
        """A function from a reader of samples to another."""
        self._samples.append(_stage("with_samples_stage", stage))
        return self

    def with_sample_to_tf_example_stage(self, stage: Callable[[SamplesReader], Iterable[Any]]) -> Self:
        """A function from a reader of samples to one of examples: `core.TFExample`, dicts, `tf.train.Example`, or their bytes."""
        self._convert = _stage("with_sample_to_tf_example_stage", stage)
        return self

    def with_tf_examples_stage(self, stage: Callable[[TFExampleReader], Iterable[Any]]) -> Self:
        """A function from a reader of examples to another."""
        self._examples.append(_stage("with_tf_examples_stage", stage))
        return self

    def with_tfrecord_stage(self, stage: Callable[[TFExampleReader], Any]) -> Self:
        """A function that takes the reader of examples to its end."""
        self._out = _stage("with_tfrecord_stage", stage)
        return self

    from_tar_gz = from_tar
    with_sample2tf_example_stage = with_sample_to_tf_example_stage
    with_tf_example_stage = with_tf_examples_stage
    filter_empty_tf_examples = filter_empty_examples

    def _begin(self) -> None:
        if self._tar is None:
            raise UsageError("the pipeline has no tar stage.", hint="Call from_tar, from_tar_gz or with_tar_stage.")
        if self._convert is None:
            raise UsageError(
                "the pipeline has no stage from samples to examples.", hint="Call sample_to_tf_example or with_sample_to_tf_example_stage."
            )
        self.report = ReadReport()

    def __iter__(self) -> Iterator[Any]:
        """The examples, without the TFRecord stage."""
        self._begin()
        tar, convert = self._tar, self._convert
        assert tar is not None and convert is not None
        flow = tar.samples(self.report) if isinstance(tar, ShardSource) else _reader(tar(), "with_tar_stage")
        for stage in self._samples:
            flow = _reader(stage(flow), "with_samples_stage")
        if isinstance(convert, SampleTypes):
            flow = convert.run(flow, self.report)
        else:
            flow = _reader(convert(flow), "with_sample_to_tf_example_stage")
        for stage in self._examples:
            flow = _reader(stage(flow), "with_tf_examples_stage")
        return flow

    def do(self) -> int:
        """Runs the pipeline; returns how many examples came to its end. `report` says what reading met."""
        self._begin()
        count = 0

        def counted() -> Iterator[Any]:
            nonlocal count
            for count, example in enumerate(self, 1):  # noqa: B007
                yield example

        if self._out is None or callable(self._out):
            (self._out or deque(maxlen=0).extend)(counted())
            return count
        plain = isinstance(self._tar, ShardSource) and isinstance(self._convert, SampleTypes) and self._convert.whole
        if plain and not self._samples and not self._examples:  # no stage wants to see a sample: a block at a time
            batches: Iterator[Any] = self._convert.blocks(self._tar.blocks(self.report), self.report)  # type: ignore[union-attr]
        else:
            batches = tfrecord.together(map(serialize, counted()))
        return write_batches(batches, self._out)


def _callables(where: str, functions: tuple[Any, ...]) -> tuple[Callable[[Any], Any], ...]:
    if not functions:
        raise UsageError(f"{where} expects at least one transform.")
    return tuple(check_function(f, f"{where} expects transforms", "See tarviz.dialects.tfdata.transform.") for f in functions)


def _stage(where: str, stage: Any) -> Any:
    return check_function(stage, f"{where} expects a function from reader to reader")


def _reader(found: Any, where: str) -> Iterator[Any]:
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
        raise UsageError(f"the function of {where} returned {type(found).__name__}, not a reader (an iterator).")
    return iter(found)


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
