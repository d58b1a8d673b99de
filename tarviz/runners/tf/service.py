"""Passes whose records workers of a tf.data service work on: the ops run in a graph there, and a loss is noticed here.

A tf.data service gives every record at most once: what a worker that dies had taken never comes, and TensorFlow waits for it for ever.
So each record is counted against the index, and while nothing comes the workers are asked whether they are there.
"""

from __future__ import annotations

import queue
import re
import threading
import time
import warnings
from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from tarviz.model.errors import TarvizError, TarvizWarning, UsageError
from tarviz.model.types import to_text
from tarviz.ops.base import unpack
from tarviz.pipeline import Pipeline
from tarviz.read.picked import picked
from tarviz.read.stream import ReadReport
from tarviz.runners.ahead import ReadingThread
from tarviz.runners.elsewhere import Elsewhere, Row, RowSource, Worked
from tarviz.runners.plans import Trail
from tarviz.runners.shares import Piece
from tarviz.runners.tf.dispatcher import Dispatcher, silent
from tarviz.runners.tf.received import fitted
from tarviz.runners.tf.served import Places, places
from tarviz.runners.tf.service_graph import graph
from tarviz.runners.tf.steps import GraphStep
from tarviz.runners.walk import placed
from tarviz.selection import Structure

PATIENCE = 3.0  # seconds without a record in its turn, after which the workers are asked whether they are there
_COMING = 20  # so often, while there is no worker yet
_AHEAD = 4  # elements that wait here

ENGINE = "tf-service"


@dataclass(frozen=True, slots=True)
class Service(Elsewhere):
    """The service, and what its workers run: `steps` in their graph, which together are `step`, and give `schema`."""

    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    steps: tuple[GraphStep, ...] = ()
    step: GraphStep | None = None
    schema: Structure = ()

    def begun(self, pipeline: Pipeline, work: Worked, *, stops: bool) -> AbstractContextManager[RowSource]:
        """The workers of the service; what is done with a record is their graph."""
        return nullcontext(ServiceWorkers(self, pipeline))


def check(engine: str | Elsewhere | None, on_loss: str | None, graph: bool | None) -> bool:
    """Whether the engine is a tf.data service; `UsageError` unless its losses are to be errors."""
    if engine != ENGINE:
        if on_loss is not None:
            raise UsageError(f"on_loss={on_loss!r} is for engine={ENGINE!r}.", hint="No other engine loses records.")
        return False
    if on_loss != "error":
        raise UsageError(
            f"a tf.data service loses what a worker had taken when it dies, and on_loss={on_loss!r} cannot bring it back.",
            hint="on_loss='error' makes a loss an error; engine='ray' loses nothing.",
        )
    if graph is False:
        raise UsageError("a tf.data service runs the ops in a graph, and graph=False is against it.", hint="Leave one of them out.")
    return True


def service(
    address: str | None,
    calls: int | None,
    ordered: bool,
    fields: Mapping[str, tuple[str, ...]],
    steps: list[GraphStep],
    step: GraphStep,
    schema: Structure,
) -> Service:
    """The service at `grpc://host:port`; `UsageError` where nobody answers there, or an op does not run in a graph."""
    if python := next((step for step in steps if step.python), None):
        what = str(python.chain) or "a selection out of JSON"
        raise UsageError(
            f"{what} runs in Python, and workers of a tf.data service run graphs of TensorFlow only.",
            hint="engine='ray' runs any op elsewhere; or do it after the service, with map.",
        )
    if not fields:
        raise UsageError("the pipeline reads no field, so there is nothing for a tf.data service to do.", hint="Leave engine= out.")
    return Service(ENGINE, f"grpc://{Dispatcher(address).address}", calls or None, ordered, True, None, fields, tuple(steps), step, schema)


class ServiceWorkers:
    """The workers of a service at work for the passes of one iteration."""

    def __init__(self, place: Service, pipeline: Pipeline) -> None:
        self._place = place
        self._pipeline = pipeline
        self._told = False

    def rows(
        self, pieces: list[Piece], epoch: int, report: ReadReport, trail: Trail | None = None, number: int = 0
    ) -> Generator[tuple[int, Row], None, None]:
        """(piece, row) of each record of pieces in a row, from piece `number` on. A value is (where it is, the leaves as they fit)."""
        place, skip = self._place, self._pipeline.options.on_error == "skip"
        found = places(self._pipeline, place.fields, pieces[number:], epoch, report, skip=skip)
        assert place.step is not None  # `service` has made it
        if len(found):
            made = graph(self._pipeline, found, list(place.fields), place.steps, place.step.tensors, place.count)
            feed = _Feed(made, place.address or "", found)
            try:
                for run, parts in feed.runs(ordered=place.ordered):
                    report.records += int(found.first[run + 1] - found.first[run])
                    report.bytes += int(found.length[run])
                    for row in self._rows(found, run, parts):
                        yield number + int(found.piece[run]), row
            finally:
                feed.stop()
        report.shards += len(found.files)
        if found.lacking is not None:
            raise found.lacking

    def _rows(self, found: Places, run: int, parts: list[tuple[Any, list[Any]]]) -> Iterator[Row]:
        """The rows of a run, in order; those that are not among `parts` were refused."""
        where = {int(each): (values, at) for numbers, values in parts for at, each in enumerate(numbers)}
        file = found.files[int(found.piece[run])]
        for each in range(int(found.first[run]), int(found.first[run + 1])):
            index, key = int(found.index[each]), to_text(found.keys[each])
            there = {"__key__": key, "__shard__": file.url, "__index__": index}
            if each in where:
                values, at = where[each]
                yield Row(key, index + 1, (there, [value[at] for value in values]))
            else:
                yield Row(key, index + 1, self._here(found, run, each, there))

    def _here(self, found: Places, run: int, each: int, there: Mapping[str, Any]) -> Any:
        """What is made here of a record that a worker refused, or its error."""
        pipeline, step = self._pipeline, self._place.step
        assert step is not None  # as above
        file = found.files[int(found.piece[run])]
        (record,) = picked(file.url, file.found, [int(found.index[each])], pipeline.options, ReadReport())
        try:
            drawn = found.draws[each] if pipeline.chain.draws else None
            value = pipeline.select.pick(pipeline.chain.run(unpack(record, pipeline.needs), drawn))
            made = fitted(step, self._place.schema, there, value)
        except TarvizError as error:
            return placed(error, record)
        if not self._told:
            self._told = True
            text = f"W_LOCAL {file.url}, record {record.key!r}: the service refused it, and it was worked on here. So will others be."
            warnings.warn(text, TarvizWarning, stacklevel=2)
        return made


class _Feed:
    """A thread that takes what the service gives, which `stop` lets end; and what becomes of the runs."""

    def __init__(self, made: Any, address: str, found: Places) -> None:
        self._address = address
        self._found = found
        self._dispatcher = Dispatcher(address)
        self._known = set(self._dispatcher.workers())
        self._without = 0
        self._parts: dict[int, list[tuple[Any, list[Any]]]] = {}
        self._missing = len(found.keys)  # records of runs that are not whole
        self._thread: ReadingThread[Any] = ReadingThread(made, self._given, threading.Event(), _AHEAD)
        self.stop = self._thread.stop

    def _given(self, made: Any, _: ReadReport) -> Generator[Any, None, None]:
        service = tf.data.experimental.service
        mode = service.ShardingPolicy.DYNAMIC
        for run, numbers, values in made.apply(service.distribute(processing_mode=mode, service=self._address, compression=None)):
            yield int(run), numbers.numpy(), [value.numpy() for value in values]

    def runs(self, *, ordered: bool) -> Iterator[tuple[int, list[tuple[Any, list[Any]]]]]:
        """(run, its parts) in order, or as they are whole. What is lost is a `TarvizError`."""
        whole: set[int] = set()
        turn, since = 0, time.monotonic()
        while turn < len(self._found):
            if time.monotonic() - since > PATIENCE:
                self._ask()
                since = time.monotonic()
            try:
                item = self._thread.queue.get(timeout=PATIENCE)
            except queue.Empty:
                continue
            if not isinstance(item, tuple):
                raise self._over(item)
            run, numbers, values = item
            if len(numbers):
                self._parts.setdefault(run, []).append((numbers, values))
                continue
            self._missing -= int(self._found.first[run + 1] - self._found.first[run])
            if not ordered:
                turn, since = turn + 1, time.monotonic()
                yield run, self._parts.pop(run, [])
                continue
            whole.add(run)
            while turn in whole:
                whole.remove(turn)
                yield turn, self._parts.pop(turn, [])
                turn, since = turn + 1, time.monotonic()

    def _ask(self) -> None:
        """Raise what keeps records from coming: a dispatcher or a worker that is gone. While all answer, it goes on."""
        if (why := silent(self._dispatcher.address)) is not None:
            raise self._lost(f"its dispatcher at {self._address} does not answer any more ({why})")
        self._known.update(self._dispatcher.workers())
        for worker in sorted(self._known):
            if (why := silent(worker)) is not None:
                raise self._lost(f"its worker at {worker} does not answer any more ({why})")
        self._without += not self._known
        if self._without > _COMING:
            raise self._lost("it has no workers")

    def _over(self, error: BaseException | None) -> BaseException:
        """The error of an end before the last run."""
        if error is None:
            return self._lost("it ended without them, as it does when a worker was begun again")
        if not isinstance(error, tf.errors.OpError):
            return error
        why = " ".join(re.sub(r"\{\{.*?\}\}", "", str(error.message)).split())  # {{function_node …}}: where in the graph
        what = f"a worker of the tf.data service failed: {why[:300]}."
        return TarvizError(what, code="E_WORKER", hint="Do the workers see the shards under the same paths?")

    def _lost(self, why: str) -> TarvizError:
        return TarvizError(
            f"the tf.data service lost up to {self._missing} of the {len(self._found.keys)} records of this pass: {why}.",
            code="E_WORKER",
            hint="Begin the epoch anew. engine='ray' loses no record.",
        )
