"""What `Pipeline.tf()` returns: a `tf.data.Dataset` whose errors are those of its pipeline, with a report and an epoch."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tarviz.model.errors import SchemaError, TarvizError, UsageError
from tarviz.read.stream import ReadReport
from tarviz.runners.arguments import whole_numbers
from tarviz.runners.plans import State
from tarviz.runners.tf.leaving import leaver
from tarviz.runners.tf.source import PipelineSource
from tarviz.runners.tf.steps import VARIES


class GraphRecords(tf.data.Dataset):  # type: ignore[misc]
    """A `tf.data.Dataset` that raises the errors of its pipeline as they are, has a `report` of the latest iteration, and can be resumed.

    `inner` makes the dataset, with the length it has (True) or without (False): a pass that goes on where another stopped is shorter.
    `count` finds how many elements a whole pass has, by headers if need be; None where that is not known.
    """

    def __init__(
        self,
        inner: Callable[[bool], Any],
        source: PipelineSource,
        batch: int | None,
        count: Callable[[], int | None],
        again: Callable[[int, bool], Any] | None = None,
    ) -> None:
        self._inner = inner(True)
        self._count = functools.cache(count)
        self._rest: Any = None
        self._make = inner
        self._source = source
        self._batch = batch
        self._memory = source.memory()
        self._again = again
        super().__init__(self._inner._variant_tensor)

    @property
    def _variant_tensor(self) -> Any:
        return self._rest._variant_tensor if self._source.resumes and self._rest is not None else self._variant_tensor_attr

    def _inputs(self) -> list[Any]:
        return [self._inner]

    @property
    def element_spec(self) -> Any:
        return self._inner.element_spec

    def cardinality(self) -> Any:
        """How many elements a pass has, where `len(pipeline.eager())` knows it: Keras asks. What is built on this one knows it by an index.

        It is no `assert_cardinality`: that fails for ever behind an error, and who ignores errors would never come to an end.
        """
        known = super().cardinality()
        if not tf.executing_eagerly() or known != tf.data.UNKNOWN_CARDINALITY or (self._source.resumes and self._rest is not None):
            return known
        count = self._count()
        return known if count is None else tf.constant(count, tf.int64)

    @property
    def report(self) -> ReadReport:
        """What the latest iteration read, warned of and skipped."""
        return self._source.report

    def set_epoch(self, epoch: int | None) -> None:
        """Pin the first pass of each iteration to this epoch; None lets every one go on to a new one again."""
        whole_numbers(epoch=epoch)
        self._source.set_epoch(epoch)

    def state_dict(self, steps: int | None = None) -> dict[str, Any]:
        """Where the latest iteration stands, after the steps that were taken from it, as JSON-ready data: that of every runner.

        A loop of Python is counted. Where TensorFlow takes the steps (Keras's `fit`, an iterator in a `tf.function`, a dataset built on
        this one by `map` and the like), `steps` says how many were; what it had read ahead comes again.
        """
        return self._source.state(self._batch, steps)

    def load_state_dict(self, state: State) -> None:
        """Let the next iteration go on where `state` says, and those after it with new epochs.

        It may be of another runner, and of other numbers of workers and ranks: a list of the states of all ranks, where their number was
        another. `ChangedError` when a shard it stands in was replaced. What is built on this dataset is to be built after it.
        """
        self._source.load(state)
        self._rest = self._make(False)

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
            self._steps = dataset._source.ask()
            self._batched = dataset._batch is not None
            self._thread, self._leaver = threading.get_ident(), leaver()

        def __del__(self, here: Callable[[], int] = threading.get_ident) -> None:  # at exit modules are empty
            resource = self.__dict__.pop("_iterator_resource", None)
            if resource is not None and here() != self.__dict__.get("_thread"):
                self._leaver.take(resource)

        def __next__(self) -> Any:
            try:
                values = super().__next__()
                self._steps.taken += 1
                self._steps.unseen |= not tf.executing_eagerly()  # a function is traced, which takes them
                return values
            except tf.errors.OpError as error:
                found = self._source.error
                meant = found is not None and str(found) in error.message  # not what came of steps that the error has cancelled
                if meant and isinstance(found, TarvizError):
                    raise found from error
                if found is not None and not isinstance(found, Exception):
                    raise found from error
                if not meant and self._batched and isinstance(error, tf.errors.InvalidArgumentError):
                    said = error.message.rpartition("}} ")[2].partition(" [Op:")[0]
                    raise SchemaError(f"records do not fit into one batch. {said}", hint=f"resize or crop to one size. {VARIES}") from error
                raise

        @property
        def _type_spec(self) -> Any:
            self._steps.unseen = True  # it is handed to a graph, which takes steps of its own
            return super()._type_spec

        def _serialize_to_tensors(self) -> Any:
            raise UsageError(
                "tf.train.Checkpoint cannot save the place of this iterator: the records come from Python.",
                hint="dataset.state_dict() is its place, JSON-ready; dataset.load_state_dict(state) goes on there.",
            )

    return RecordsIterator
