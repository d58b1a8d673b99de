"""The pipeline from tar to TFRecord: five stages, each with a default, each to be replaced; nothing is read before the last one asks."""

from __future__ import annotations

import io
import os
import secrets
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Self, TypeAlias

from tarviz import stores
from tarviz.dialects.tfdata.core import KEY_ENTRY, FeatureType, Sample, TFExample, TypesMap, checked_types, serialized, to_example
from tarviz.dialects.tfdata.transform import Renaming, Transform
from tarviz.formats import example as examples
from tarviz.formats import tfrecord
from tarviz.model.errors import Fault, NotFoundError, SchemaError, TarvizError, TarvizWarning, UsageError
from tarviz.model.types import URL, Block
from tarviz.read import stream
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.stores.paths import local_path
from tarviz.write import Names, Outputs

SamplesReader: TypeAlias = Iterator[Any]
TFExampleReader: TypeAlias = Iterator[Any]

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
        self._tar: Callable[[], Iterable[Any]] | None = None
        self._source: ShardSource | None = None
        self._samples: list[Callable[[SamplesReader], Iterable[Any]]] = []
        self._convert: Callable[[SamplesReader], Iterable[Any]] | None = None
        self._types: Conversion | None = None
        self._examples: list[Callable[[TFExampleReader], Iterable[Any]]] = []
        self._write: Callable[[TFExampleReader], Any] | None = None
        self._out: Any = None

    def from_tar(self, source: Any) -> Self:
        """Samples of shards: a path, URL, template, folder, a list of these, or an open binary file. Packed ones are recognised."""
        self._source, self._tar = ShardSource(source), None
        return self

    def from_tar_gz(self, source: Any) -> Self:
        """The same; packing is told by the bytes."""
        return self.from_tar(source)

    def transform_samples(self, *transforms: Transform) -> Self:
        """Each sample through functions from sample to sample."""
        return self.with_samples_stage(_Each(_callables("transform_samples", transforms), Sample))

    def filter_empty_samples(self) -> Self:
        """Leaves out samples with nothing but `__key__`."""
        return self.with_samples_stage(_not_empty)

    def sample_to_tf_example(self, types: TypesMap | None = None, *, quoted_key: bool = False) -> Self:
        """Each sample as an example: fields in `types` as they say, all others as bytes.

        Types are names or `core.FeatureType`: `{"cls": "INT64", "png": "BYTES"}`. `quoted_key` writes `__key__` as JSON text, in
        quotes, as go-tfdata does.
        """
        self._types, self._convert = Conversion(checked_types(types), quoted_key), None
        return self

    def transform_tf_examples(self, *transforms: Transform) -> Self:
        """Each example through functions from example to example."""
        return self.with_tf_examples_stage(_Each(_callables("transform_tf_examples", transforms), TFExample))

    def filter_empty_examples(self) -> Self:
        """Leaves out examples with nothing but `__key__`."""
        return self.with_tf_examples_stage(_not_empty)

    def to_tfrecord(self, out: Any, num_workers: int = 1) -> Self:
        """Examples into a TFRecord file, a path or URL (there when it is complete) or an open binary file.

        `num_workers` is taken for old code's sake: one process writes, and the order is kept.
        """
        if not isinstance(out, str | os.PathLike) and not hasattr(out, "write"):
            raise UsageError(f"to_tfrecord writes to a path, a URL or an open file, got {type(out).__name__}.")
        if isinstance(out, io.TextIOBase):
            raise UsageError("to_tfrecord needs a binary file.", hint='Open it with "wb".')
        self._out, self._write = out, None
        return self

    def with_tar_stage(self, stage: Callable[[], Iterable[Any]]) -> Self:
        """A function that returns a reader of samples, in place of shards."""
        self._tar, self._source = _stage("with_tar_stage", stage), None
        return self

    def with_samples_stage(self, stage: Callable[[SamplesReader], Iterable[Any]]) -> Self:
        """A function from a reader of samples to another."""
        self._samples.append(_stage("with_samples_stage", stage))
        return self

    def with_sample_to_tf_example_stage(self, stage: Callable[[SamplesReader], Iterable[Any]]) -> Self:
        """A function from a reader of samples to one of examples: `core.TFExample`, dicts, `tf.train.Example`, or their bytes."""
        self._convert, self._types = _stage("with_sample_to_tf_example_stage", stage), None
        return self

    def with_tf_examples_stage(self, stage: Callable[[TFExampleReader], Iterable[Any]]) -> Self:
        """A function from a reader of examples to another."""
        self._examples.append(_stage("with_tf_examples_stage", stage))
        return self

    def with_tfrecord_stage(self, stage: Callable[[TFExampleReader], Any]) -> Self:
        """A function that takes the reader of examples to its end."""
        self._write, self._out = _stage("with_tfrecord_stage", stage), None
        return self

    with_sample2tf_example_stage = with_sample_to_tf_example_stage
    with_tf_example_stage = with_tf_examples_stage
    filter_empty_tf_examples = filter_empty_examples

    def _check(self) -> None:
        if self._source is None and self._tar is None:
            raise UsageError("the pipeline has no tar stage.", hint="Call from_tar, from_tar_gz or with_tar_stage.")
        if self._types is None and self._convert is None:
            raise UsageError(
                "the pipeline has no stage from samples to examples.", hint="Call sample_to_tf_example or with_sample_to_tf_example_stage."
            )

    def __iter__(self) -> Iterator[Any]:
        """The examples, without the TFRecord stage."""
        self._check()
        self.report = ReadReport()
        if self._source is not None:
            flow: Iterator[Any] = self._source.samples(self.report)
        else:
            assert self._tar is not None
            flow = _reader(self._tar(), "with_tar_stage")
        for stage in self._samples:
            flow = _reader(stage(flow), "with_samples_stage")
        if self._types is not None:
            flow = self._types.run(flow, self.report)
        else:
            assert self._convert is not None
            flow = _reader(self._convert(flow), "with_sample_to_tf_example_stage")
        for stage in self._examples:
            flow = _reader(stage(flow), "with_tf_examples_stage")
        return flow

    def do(self) -> int:
        """Runs the pipeline; returns how many examples came to its end. `report` says what reading met."""
        self._check()
        blocks = self._whole_blocks()
        if blocks is not None:
            return _write_blocks(blocks, self._out)
        count = Counter(iter(self))
        if self._write is not None:
            self._write(count)
        elif isinstance(self._out, str | os.PathLike):
            with Outputs(Names(os.fspath(self._out))) as outputs:
                for batch in tfrecord.together(map(serialized, count)):
                    outputs.add(tfrecord.frame(batch))
        elif self._out is not None:
            tfrecord.write(self._out, map(serialized, count))
        else:
            for _ in count:
                pass
        return count.count

    def _whole_blocks(self) -> Iterator[examples.Examples] | None:
        """Examples a block at a time, where no stage wants to see a sample; None otherwise."""
        plain = self._source is not None and self._types is not None and self._types.whole
        if not plain or self._samples or self._examples or self._out is None:
            return None
        assert self._source is not None
        assert self._types is not None
        self.report = ReadReport()
        return self._types.blocks(self._source.blocks(self.report), self.report)


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


class Conversion:
    """The default stage from samples to examples."""

    def __init__(self, types: Mapping[str, FeatureType], quoted_key: bool) -> None:
        self.types = types
        self.quoted_key = quoted_key

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


def _write_blocks(blocks: Iterator[examples.Examples], out: Any) -> int:
    count = 0
    if isinstance(out, str | os.PathLike):
        with Outputs(Names(os.fspath(out))) as outputs:
            for made in blocks:
                outputs.add(tfrecord.frame(made))
                count += len(made)
        return count
    for made in blocks:
        for buffer in tfrecord.frame(made).buffers():
            out.write(buffer)
        count += len(made)
    return count


class Counter:
    """A reader that counts what it gives."""

    def __init__(self, reader: Iterator[Any]) -> None:
        self.reader = reader
        self.count = 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        item = next(self.reader)
        self.count += 1
        return item


class _Each:
    """A stage of functions that are applied to each item."""

    def __init__(self, functions: tuple[Callable[[Any], Any], ...], kind: type[Sample | TFExample]) -> None:
        self.functions = functions
        self.kind = kind

    def __call__(self, reader: Iterator[Any]) -> Iterator[Any]:
        idle: dict[Any, Renaming] = {f: f for f in self.functions if isinstance(f, Renaming)}
        for item in reader:
            shard, key = getattr(item, "shard", None), _key(item)
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


def _key(item: Any) -> str | None:
    key = item.get(KEY_ENTRY) if isinstance(item, Mapping) else None
    key = key[0] if isinstance(key, list) and key else key
    return None if key is None or key == [] else key.decode("utf-8", "surrogateescape") if isinstance(key, bytes) else str(key)


def _not_empty(reader: Iterator[Any]) -> Iterator[Any]:
    return (item for item in reader if any(name != KEY_ENTRY for name in item))


def empty_samples(reader: SamplesReader) -> SamplesReader:
    """A reader of samples without the empty ones."""
    return _not_empty(reader)


def empty_examples(reader: TFExampleReader) -> TFExampleReader:
    """A reader of examples without the empty ones."""
    return _not_empty(reader)


def _callables(where: str, functions: tuple[Any, ...]) -> tuple[Callable[[Any], Any], ...]:
    for f in functions:
        if not callable(f):
            raise UsageError(f"{where} expects transforms, got {f!r}.", hint="See tarviz.dialects.tfdata.transform.")
    if not functions:
        raise UsageError(f"{where} expects at least one transform.")
    return functions


def _stage(where: str, stage: Any) -> Any:
    if not callable(stage):
        raise UsageError(f"{where} expects a function from reader to reader, got {stage!r}.")
    return stage


def _reader(found: Any, where: str) -> Iterator[Any]:
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
        raise UsageError(f"the function of {where} returned {type(found).__name__}, not a reader (an iterator).")
    return iter(found)
