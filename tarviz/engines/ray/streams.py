"""Tasks that yield, on a Ray cluster: a streaming generator each, some parts ahead of who takes them."""

from __future__ import annotations

import pickle
import weakref
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from tarviz.engines import EnginePlan, Yielding
from tarviz.engines.ray.joining import TRIES, Joined, lost, packed, unserved
from tarviz.engines.ray.worker import serve_parts
from tarviz.model.errors import TarvizError

AHEAD = 10  # parts of a task that wait to be taken; then it waits
_PATIENCE = 10.0  # seconds that a task waits for a processor


@dataclass(slots=True, eq=False)
class _Run:
    """A task under way: `given` parts of it were taken; `tries` since the last of them."""

    task: bytes
    parts: Any
    bound: bool = True  # waits for a processor, until it has one
    given: int = 0
    tries: int = 1


_open: weakref.WeakSet[Streams] = weakref.WeakSet()


class Streams(Joined):
    """Runs tasks that yield on Ray: see `engines.Streams`."""

    def __init__(self, job: Yielding, plan: EnginePlan) -> None:
        super().__init__(job, plan)
        self._running: deque[_Run] = deque()

    def __enter__(self) -> Self:
        super().__enter__()
        _open.add(self)
        self._serve = self._ray.remote(max_retries=0, num_returns="streaming", _generator_backpressure_num_objects=AHEAD)(serve_parts)
        return self

    def run(self, tasks: Iterable[Any], *, ordered: bool = True) -> Generator[Any, None, None]:
        waiting, running = iter(tasks), self._running
        most = self.plan.count or self.processors()
        try:
            while True:
                while len(running) < most and (task := next(waiting, self)) is not self:
                    data = packed(self._ray, task)
                    running.append(_Run(data, self._begin(data)))
                if not running:
                    return
                run = running[0] if ordered else self._first(running)
                kind, value = self._next(run)
                if kind == "part":
                    yield value
                    del value
                elif kind == "done":
                    running.remove(run)
                else:
                    raise value
        finally:
            self._cancel(running)
            running.clear()  # what waits to be taken is let go

    def _begin(self, task: bytes) -> Any:
        # Beside a loop that is left half-way (a validation in an epoch), whose tasks hold processors until it goes on, none is asked for.
        return self._serve.options(num_cpus=0 if self._others() else 1).remote(self._job, task, self._home, 0)

    def _others(self) -> bool:
        return any(each is not self and each._running for each in _open)

    def _again(self, run: _Run) -> None:
        # It asks for no processor: tasks that wait to be taken after it, or by another process that waits for this one, may hold them all.
        run.bound, run.parts = False, self._serve.options(num_cpus=0).remote(self._job, run.task, self._home, run.given)

    def _first(self, running: deque[_Run]) -> _Run:
        """One that has something, or else the first."""
        while True:
            ready, _ = self._ray.wait([run.parts for run in running], num_returns=1, timeout=_PATIENCE)
            if ready:
                return next(run for run in running if run.parts is ready[0])
            if any(run.bound for run in running):
                return next(run for run in running if run.bound)

    def _next(self, run: _Run) -> tuple[str, Any]:
        """What a task says next: ("part", it), ("done", None) or ("failed", error)."""
        errors = self._ray.exceptions
        while True:
            if run.bound and not self._ray.wait([run.parts], timeout=_PATIENCE, fetch_local=False)[0]:
                self._cancel([run])
                self._again(run)
            try:
                data, *beside = self._ray.get(next(run.parts))
                kind, value = pickle.loads(memoryview(data), buffers=beside)  # noqa: S301  (from our own worker)
            except errors.TaskCancelledError as error:
                raise TarvizError("a task was cancelled from outside.", code="E_WORKER") from error
            except errors.RayTaskError as error:
                raise unserved(error) from error
            except (errors.RayError, StopIteration) as error:
                if run.tries == TRIES:
                    raise lost(error, run.tries) from error
                self.lost += 1
                run.tries += 1
                self._again(run)
                continue
            run.bound = False
            if kind == "part":
                run.given, run.tries = run.given + 1, 1
            if kind != "begun":
                return kind, value

    def _cancel(self, running: Iterable[_Run]) -> None:
        """End what runs; it only reads."""
        for run in running:
            with suppress(self._ray.exceptions.RayError):
                self._ray.cancel(run.parts, force=True)
