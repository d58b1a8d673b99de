"""The pipeline from tar to TFRecord: five stages, each with a default, each to be replaced; nothing is read before the last one asks."""

from __future__ import annotations

import io
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from tarviz.dialects import check_function
from tarviz.dialects.tfdata._stages import (
    SamplesReader,
    SampleTypes,
    ShardSource,
    TFExampleReader,
    Transforming,
    empty_examples,
    empty_samples,
    write_batches,
)
from tarviz.dialects.tfdata.core import Sample, TFExample, TypesMap, checked_types, serialize
from tarviz.dialects.tfdata.transform import Transform
from tarviz.formats import tfrecord
from tarviz.model.errors import UsageError
from tarviz.read.stream import ReadReport


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
