"""What `Pipeline.tf()` returns: a `tf.data.Dataset` whose errors are those of its pipeline, with a report and an epoch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tarviz.model.errors import TarvizError
from tarviz.read.stream import ReadReport
from tarviz.runners.arguments import whole_number
from tarviz.runners.tf.source import PipelineSource


class GraphRecords(tf.data.Dataset):  # type: ignore[misc]
    """A `tf.data.Dataset` that raises the errors of its pipeline as they are, and has a `report` of the latest iteration."""

    def __init__(self, inner: Any, source: PipelineSource, again: Callable[[int, bool], Any] | None = None) -> None:
        self._inner = inner
        self._source = source
        self._memory = source.memory()
        self._again = again
        super().__init__(inner._variant_tensor)

    def _inputs(self) -> list[Any]:
        return [self._inner]

    @property
    def element_spec(self) -> Any:
        return self._inner.element_spec

    @property
    def report(self) -> ReadReport:
        """What the latest iteration read, warned of and skipped."""
        return self._source.report

    def set_epoch(self, epoch: int | None) -> None:
        """Pin the first pass of each iteration to this epoch; None lets every one go on to a new one again."""
        if epoch is not None:
            whole_number("epoch", epoch)
        self._source.set_epoch(epoch)

    def __iter__(self) -> Any:
        return _iterator()(self) if tf.executing_eagerly() else super().__iter__()

    def batch(self, batch_size: Any, drop_remainder: Any = False, *args: Any, **kwargs: Any) -> Any:
        """`tf.data.Dataset.batch`; raw records are batched out of their blocks, without a step through single ones."""
        plain = type(batch_size) is int and batch_size > 0 and isinstance(drop_remainder, bool) and not args and not kwargs
        if self._again is None or not plain:
            return super().batch(batch_size, drop_remainder, *args, **kwargs)
        return self._again(batch_size, drop_remainder)


@functools.cache
def _iterator() -> Any:
    class RecordsIterator(type(iter(tf.data.Dataset.range(0)))):  # type: ignore[misc]
        """TensorFlow's iterator, with errors of the pipeline raised as they are."""

        def __init__(self, dataset: GraphRecords) -> None:
            super().__init__(dataset)
            self._source = dataset._source

        def __next__(self) -> Any:
            try:
                return super().__next__()
            except tf.errors.OpError as error:
                found = self._source.error
                if isinstance(found, TarvizError) and str(found) in error.message:
                    raise found from error
                if found is not None and not isinstance(found, Exception):
                    raise found from error
                raise

    return RecordsIterator
