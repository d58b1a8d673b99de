"""Passes whose records workers of a tf.data service work on: the ops run in a graph there, and a loss is noticed here.

A tf.data service gives every record at most once: what a worker that dies had taken never comes, and TensorFlow waits for it for ever.
So each record is counted against the index, and while nothing comes the workers are asked whether they are there.
"""

from __future__ import annotations

import queue
import re
import socket
import threading
import time
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf

from tarviz.model.errors import TarvizError, TarvizWarning, UsageError
from tarviz.model.types import Feature, to_bytes, to_text
from tarviz.ops.base import unpack
from tarviz.pipeline import Pipeline
from tarviz.read.picked import pick
from tarviz.read.stream import ReadReport
from tarviz.runners.ahead import ReadingThread
from tarviz.runners.elsewhere import Elsewhere, MadeRow, RowSource, Worked
from tarviz.runners.plans import Trail
from tarviz.runners.shares import Piece
from tarviz.runners.tf.native import fit_value
from tarviz.runners.tf.served import ServedPlaces, places
from tarviz.runners.tf.steps import GraphStep, leaves
from tarviz.runners.walk import place_error
from tarviz.selection import Structure

PATIENCE = 3.0  # seconds without a record in its turn, after which the workers are asked whether they are there
_COMING = 20  # so often, while there is no worker yet
_AHEAD = 4  # elements that wait here
_ANSWER = 10.0  # seconds that a server has to answer
_BEGIN = "tf.data.experimental.service.DispatchServer begins one; address= is 'grpc://host:port'."

ENGINE = "tf-service"

quiet: Any = tf.autograph.experimental.do_not_convert
"""A function that AutoGraph leaves as it is."""


@dataclass(frozen=True, slots=True)
class Service(Elsewhere):
    """The service, and what its workers run: `steps` in their graph, which together are `step`, and give `schema`."""

    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    steps: tuple[GraphStep, ...] = ()
    step: GraphStep | None = None
    schema: Structure = ()

    @contextmanager
    def start(self, pipeline: Pipeline, work: Worked, *, stops: bool) -> Iterator[RowSource]:
        """The workers of the service; what is done with a record is their graph."""
        yield ServiceWorkers(self, pipeline)


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


def service(place: Elsewhere, fields: Mapping[str, tuple[str, ...]], steps: list[GraphStep], step: GraphStep, schema: Structure) -> Service:
    """The service at the address of `place`; `UsageError` where nobody answers there, or an op does not run in a graph."""
    if python := next((step for step in steps if step.python), None):
        what = str(python.chain) or "a selection out of JSON"
        raise UsageError(
            f"{what} runs in Python, and workers of a tf.data service run graphs of TensorFlow only.",
            hint="engine='ray' runs any op elsewhere; or do it after the service, with map.",
        )
    if not fields:
        raise UsageError("the pipeline reads no field, so there is nothing for a tf.data service to do.", hint="Leave engine= out.")
    address = f"grpc://{Dispatcher(place.address).address}"
    return Service(ENGINE, address, place.count or None, place.ordered, True, None, fields, tuple(steps), step, schema)


class ServiceWorkers:
    """The workers of a service at work for the passes of one iteration."""

    def __init__(self, place: Service, pipeline: Pipeline) -> None:
        self._place = place
        self._pipeline = pipeline
        self._told = False

    def rows(
        self, pieces: list[Piece], epoch: int, report: ReadReport, trail: Trail | None = None, number: int = 0
    ) -> Generator[tuple[int, MadeRow], None, None]:
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

    def _rows(self, found: ServedPlaces, run: int, parts: list[tuple[Any, list[Any]]]) -> Iterator[MadeRow]:
        """The rows of a run, in order; those that are not among `parts` were refused."""
        where = {int(each): (values, at) for numbers, values in parts for at, each in enumerate(numbers)}
        file = found.files[int(found.piece[run])]
        for each in range(int(found.first[run]), int(found.first[run + 1])):
            index, key = int(found.index[each]), to_text(found.keys[each])
            there = {"__key__": key, "__shard__": file.url, "__index__": index}
            if each in where:
                values, at = where[each]
                yield MadeRow(key, index + 1, (there, [value[at] for value in values]))
            else:
                yield MadeRow(key, index + 1, self._here(found, run, each, there))

    def _here(self, found: ServedPlaces, run: int, each: int, there: Mapping[str, Any]) -> Any:
        """What is made here of a record that a worker refused, or its error."""
        pipeline, step = self._pipeline, self._place.step
        assert step is not None  # as above
        file = found.files[int(found.piece[run])]
        (record,) = pick(file.url, file.found, [int(found.index[each])], pipeline.options, ReadReport())
        try:
            drawn = found.draws[each] if pipeline.chain.draws else None
            value = pipeline.select.pick(pipeline.chain.run(unpack(record, pipeline.needs), drawn))
            made = fit_value(step, self._place.schema, there, value)
        except TarvizError as error:
            return place_error(error, record)
        if not self._told:
            self._told = True
            text = f"W_LOCAL {file.url}, record {record.key!r}: the service refused it, and it was worked on here. So will others be."
            warnings.warn(text, TarvizWarning, stacklevel=2)
        return made


class _Feed:
    """A thread that takes what the service gives, which `stop` lets end; and what becomes of the runs."""

    def __init__(self, made: Any, address: str, found: ServedPlaces) -> None:
        self._address = address
        self._found = found
        self._dispatcher = Dispatcher(address)
        self._known = set(self._dispatcher.workers())
        self._without = 0
        self._parts: dict[int, list[tuple[Any, list[Any]]]] = {}
        self._missing = len(found.keys)  # records of runs that are not whole
        self._thread: ReadingThread[Any] = ReadingThread(made, self._take, threading.Event(), _AHEAD)
        self.stop = self._thread.stop

    def _take(self, made: Any, _: ReadReport) -> Generator[Any, None, None]:
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
            raise self._loss(f"its dispatcher at {self._address} does not answer any more ({why})")
        self._known.update(self._dispatcher.workers())
        for worker in sorted(self._known):
            if (why := silent(worker)) is not None:
                raise self._loss(f"its worker at {worker} does not answer any more ({why})")
        self._without += not self._known
        if self._without > _COMING:
            raise self._loss("it has no workers")

    def _over(self, error: BaseException | None) -> BaseException:
        """The error of an end before the last run."""
        if error is None:
            return self._loss("it ended without them, as it does when a worker was begun again")
        if not isinstance(error, tf.errors.OpError):
            return error
        why = " ".join(re.sub(r"\{\{.*?\}\}", "", str(error.message)).split())  # {{function_node …}}: where in the graph
        what = f"a worker of the tf.data service failed: {why[:300]}."
        return TarvizError(what, code="E_WORKER", hint="Do the workers see the shards under the same paths?")

    def _loss(self, why: str) -> TarvizError:
        return TarvizError(
            f"the tf.data service lost up to {self._missing} of the {len(self._found.keys)} records of this pass: {why}.",
            code="E_WORKER",
            hint="Begin the epoch anew. engine='ray' loses no record.",
        )


class Dispatcher:
    """The dispatcher at `grpc://host:port`; `UsageError` where nobody answers there, whom TensorFlow itself goes on asking for ever.

    >>> Dispatcher("localhost:5000")
    Traceback (most recent call last):
    tarviz.model.errors.UsageError: E_USAGE: address='localhost:5000' is not the 'grpc://host:port' of a dispatcher of tf.data service. \
Hint: tf.data.experimental.service.DispatchServer begins one; address= is 'grpc://host:port'.
    """

    def __init__(self, address: str | None) -> None:
        place = (address or "").removeprefix("grpc://")
        host, _, port = place.rpartition(":")
        if not (address or "").startswith("grpc://") or not host or not port.isdigit():
            raise UsageError(f"address={address!r} is not the 'grpc://host:port' of a dispatcher of tf.data service.", hint=_BEGIN)
        self.address = place
        if (why := silent(place)) is not None:
            raise UsageError(f"there is no tf.data service at {address}: {why}.", hint=_BEGIN)

    def workers(self) -> list[str]:
        """The addresses of the workers that ever registered and were not given up yet.

        Source: GetWorkers in tensorflow/core/data/service/dispatcher.proto.
        """
        import grpc
        from google.protobuf.descriptor_pb2 import FileDescriptorSet  # TensorFlow has no Python for its answer; this has the same fields

        with closing(grpc.insecure_channel(self.address)) as channel:
            ask = channel.unary_unary("/tensorflow.data.DispatcherService/GetWorkers", response_deserializer=FileDescriptorSet.FromString)
            return [worker.name for worker in ask(b"", timeout=_ANSWER).file]


def silent(address: str) -> str | None:
    """Why nobody answers at `host:port`; None where somebody does."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER).close()
    except (OSError, OverflowError, ValueError) as error:
        return str(error)
    return None


def graph(
    pipeline: Pipeline,
    places: ServedPlaces,
    fields: Sequence[str],
    steps: Sequence[GraphStep],
    features: Sequence[Feature],
    calls: int | None,
) -> Any:
    """A `tf.data.Dataset` of (run, numbers, values): values of records of a run, a tensor for each of `features`.

    Their numbers count from 0 in the pass; a record that an op refuses is not among them. A run ends with an element without records.
    Where sizes vary, each record comes by itself. `calls` records are worked on at the same time; None leaves it to TensorFlow.
    """
    column = {
        "number": tf.range(len(places.keys), dtype=tf.int64),
        "draws": tf.constant(places.draws),
        "__key__": tf.constant(np.array(places.keys, object), tf.string),
        "__index__": tf.constant(places.index),
    }
    offset, size = tf.constant(places.offset), tf.constant(places.size)
    whole = np.array([file.size for file in places.files], np.int64)
    of = [places.files[piece] for piece in places.piece.tolist()]
    runs = tf.data.Dataset.from_tensor_slices(
        {
            "run": np.arange(len(places)),
            "shard": np.array([to_bytes(file.url) for file in of], object),
            "path": np.array([to_bytes(file.path) for file in of], object),
            "begin": places.begin,
            "length": places.length,
            "rest": whole[places.piece] - places.begin - places.length,
            "low": places.first[:-1],
            "high": places.first[1:],
        }
    )
    together = all(feature.dtype in ("bytes", "str") or None not in feature.shape for feature in features)
    empty = (tf.zeros(0, tf.int64), tuple(map(_nothing, features)))

    def work(part: dict[str, Any]) -> Any:
        record = {name: part[name] for name in ("__key__", "__index__", "__shard__", *fields)}
        for step in steps:
            drawn = part["draws"][step.draws]
            for op, piece in zip(step.chain, step.chain.draw_slices, strict=True):
                record = op.run_tf(record, drawn[piece])  # type: ignore[attr-defined]
        return part["number"], tuple(leaves(pipeline.select.pick_tf(record)))

    def opened(run: dict[str, Any]) -> Any:
        low, high = run["low"], run["high"]
        bytes_read = tf.data.FixedLengthRecordDataset(run["path"], run["length"], run["begin"], run["rest"])

        def cut(data: Any) -> Any:
            part = {name: values[low:high] for name, values in column.items()} | {"__shard__": tf.fill([high - low], run["shard"])}
            for at, name in enumerate(fields):
                part[name] = tf.strings.substr(data, offset[low:high, at], size[low:high, at])
            records = tf.data.Dataset.from_tensor_slices(part)
            worked = records.map(quiet(work), num_parallel_calls=calls or tf.data.AUTOTUNE, deterministic=True)
            return worked.ignore_errors(log_warning=False).batch(high - low if together else 1)

        parts = bytes_read.flat_map(quiet(cut)).concatenate(tf.data.Dataset.from_tensors(empty))
        return parts.map(quiet(lambda numbers, values: (run["run"], numbers, values)))

    options = tf.data.Options()
    # An op may call Python for pictures that TensorFlow does not decode as PIL does. There is none of ours in a worker: such a record is
    # refused there, and worked on here.
    options.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.IGNORE
    return runs.flat_map(quiet(opened)).with_options(options)


def _nothing(feature: Feature) -> Any:
    if feature.dtype in ("bytes", "str"):
        return tf.zeros(0, tf.string)
    return tf.zeros([0, *(side or 0 for side in feature.shape)], feature.dtype)
