"""Tasks that yield, on a Ray cluster: some parts ahead of who takes them, by streaming generators, or by actors that are asked."""

from __future__ import annotations

import pickle
import weakref
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from tarviz.engines import EnginePlan, Yielding
from tarviz.engines.ray.joining import TRIES, RayMember, loss, pack, refusal
from tarviz.engines.ray.worker import Feeder, serve_parts
from tarviz.model.errors import TarvizError

AHEAD = 10  # parts of a task that wait to be taken; then it waits
ASKED = 3  # answers of an actor that are
_PATIENCE = 10.0  # seconds that a task waits for a processor


@dataclass(slots=True, eq=False)
class _StreamRun:
    """A task under way: `given` parts of it were taken; `tries` since the last of them."""

    task: bytes
    parts: Any
    bound: bool = True  # waits for a processor, until it has one
    given: int = 0
    tries: int = 1


_open: weakref.WeakSet[RayStreams] = weakref.WeakSet()


class RayStreams(RayMember):
    """Runs tasks that yield on Ray: see `engines.Streams`."""

    def __init__(self, job: Yielding, plan: EnginePlan) -> None:
        super().__init__(job, plan)
        self._running: list[deque[_StreamRun]] = []  # of each of its runs that are taken in turn

    def __enter__(self) -> Self:
        super().__enter__()
        _open.add(self)
        self._prepare()
        return self

    def run(self, tasks: Iterable[Any], *, ordered: bool = True) -> Generator[Any, None, None]:
        waiting, running = iter(tasks), deque[_StreamRun]()
        most = self.plan.count or self.processors()
        self._running.append(running)
        try:
            while True:
                while (not running or sum(map(len, self._running)) < most) and (task := next(waiting, self)) is not self:
                    data = pack(self._ray, task)
                    # Beside a loop that is left half-way (a validation in an epoch, another source of a mix), whose tasks hold processors
                    # until it goes on, none is asked for.
                    running.append(_StreamRun(data, self._begin(data, 0, 0 if _others(running) else 1)))
                if not running:
                    return
                run = running[0] if ordered else self._first(running)
                kind, value = self._next(run)
                if kind == "part":
                    yield value
                    del value
                elif kind == "done":
                    running.remove(run)
                    self._over(run.parts)
                else:
                    raise value
        finally:
            self._cancel(running)
            self._running[:] = [each for each in self._running if each is not running]
            running.clear()  # what waits to be taken is let go

    def _again(self, run: _StreamRun) -> None:
        # It asks for no processor: tasks that wait to be taken after it, or by another process that waits for this one, may hold them all.
        run.bound, run.parts = False, self._begin(run.task, run.given, 0)

    def _first(self, running: deque[_StreamRun]) -> _StreamRun:
        """One that has something, or else the first."""
        while True:
            ready = self._ready([run.parts for run in running])
            if ready is not None:
                return next(run for run in running if run.parts is ready)
            if any(run.bound for run in running):
                return next(run for run in running if run.bound)

    def _next(self, run: _StreamRun) -> tuple[str, Any]:
        """What a task says next: ("part", it), ("done", None) or ("failed", error)."""
        errors = self._ray.exceptions
        while True:
            if run.bound and self._ready([run.parts], fetch=False) is None:
                self._cancel([run])
                self._again(run)
            try:
                data, *beside = self._take(run.parts)
                kind, value = pickle.loads(memoryview(data), buffers=beside)  # noqa: S301  (from our own worker)
            except errors.TaskCancelledError as error:
                raise TarvizError("a task was cancelled from outside.", code="E_WORKER") from error
            except errors.RayTaskError as error:
                raise refusal(error) from error
            except (errors.RayError, StopIteration) as error:
                if run.tries == TRIES:
                    raise loss(error, run.tries) from error
                self.lost += 1
                run.tries += 1
                self._again(run)
                continue
            run.bound = False
            if kind == "part":
                run.given, run.tries = run.given + 1, 1
            if kind != "begun":
                return kind, value

    def _cancel(self, running: Iterable[_StreamRun]) -> None:
        """End what runs; it only reads."""
        for run in running:
            with suppress(self._ray.exceptions.RayError):
                self._end(run.parts)

    # How parts come: by a streaming generator for each task.

    def _prepare(self) -> None:
        self._serve = self._ray.remote(max_retries=0, num_returns="streaming", _generator_backpressure_num_objects=AHEAD)(serve_parts)

    def _begin(self, task: bytes, given: int, processors: int) -> Any:
        return self._serve.options(num_cpus=processors).remote(self._job, task, self._home, given)

    def _ready(self, parts: list[Any], *, fetch: bool = True) -> Any:
        """One of those that have something; None after a while."""
        ready, _ = self._ray.wait(parts, num_returns=1, timeout=_PATIENCE, fetch_local=fetch)
        return ready[0] if ready else None

    def _take(self, parts: Any) -> Any:
        return self._ray.get(next(parts))

    def _over(self, parts: Any) -> None:
        """A task said that it is done."""

    def _end(self, parts: Any) -> None:
        self._ray.cancel(parts, force=True)


def _others(running: deque[_StreamRun]) -> bool:
    return any(each is not running and len(each) for streams in _open for each in streams._running)


@dataclass(slots=True, eq=False)
class _TaskRequest:
    """A task at an actor: answers that were asked for ahead, and the parts of the one that came last."""

    actor: Any
    answers: deque[Any]
    parts: deque[Any] = field(default_factory=deque)


class ClientStreams(RayStreams):
    """The same through Ray's client (`ray://`), which knows no streaming generators: actors are asked for some parts at a time."""

    def __init__(self, job: Yielding, plan: EnginePlan) -> None:
        super().__init__(job, plan)
        self._idle: list[Any] = []

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            while self._idle:
                self._ray.kill(self._idle.pop())
        finally:
            super().__exit__(kind, error, trace)

    def _prepare(self) -> None:
        self._feeder = self._ray.remote(max_restarts=0, max_task_retries=0)(Feeder)

    def _begin(self, task: bytes, given: int, processors: int) -> Any:
        new = self._feeder.options(num_cpus=processors).remote
        actor = self._idle.pop() if self._idle and processors else new(self._job, self._home)
        return _TaskRequest(actor, deque([actor.begin.remote(task, given), *(actor.more.remote() for _ in range(ASKED))]))

    def _ready(self, parts: list[Any], *, fetch: bool = True) -> Any:
        for each in parts:
            if each.parts:
                return each
        ready, _ = self._ray.wait([each.answers[0] for each in parts], num_returns=1, timeout=_PATIENCE)
        return next((each for each in parts if each.answers[0] in ready), None)

    def _take(self, parts: Any) -> Any:
        if not parts.parts:
            answer = parts.answers.popleft()
            parts.answers.append(parts.actor.more.remote())
            parts.parts.extend(self._ray.get(answer))
        return parts.parts.popleft()

    def _over(self, parts: Any) -> None:
        self._idle.append(parts.actor)  # what was asked for beyond the end is empty

    def _end(self, parts: Any) -> None:
        self._ray.kill(parts.actor)
