"""Tasks on a Ray cluster: one Ray task each, with one outcome and perhaps a file."""

from __future__ import annotations

import pickle
import tempfile
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, Self

from tarviz.engines import Done, EnginePlan, Failed, Job
from tarviz.engines.ray.joining import TRIES, Joined, lost, packed, unserved
from tarviz.engines.ray.worker import serve
from tarviz.model.errors import TarvizError

_PATIENCE = 10.0  # seconds that cancelled tasks have to clear up


class Cluster(Joined):
    """Runs tasks on Ray: see `engines.Engine`."""

    def __init__(self, job: Job, plan: EnginePlan) -> None:
        super().__init__(job, plan)
        self._running: dict[Any, tuple[int, Any]] = {}  # outcome's reference → task's number, reference of its file

    def __enter__(self) -> Self:
        super().__enter__()
        self._serve = self._ray.remote(max_retries=0, num_cpus=1, num_returns=2)(serve)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._cancel()
        finally:
            super().__exit__(kind, error, trace)

    @property
    def room(self) -> int:
        return self.plan.count or self.processors()

    def run(self, tasks: Sequence[Any], failed: Failed | None = None) -> Generator[tuple[Any, IO[bytes] | None], None, None]:
        waiting = deque(enumerate(tasks))
        tries = [0] * len(tasks)
        done: dict[int, tuple[bool, Any, Any]] = {}
        for due in range(len(tasks)):
            while due not in done:
                bad = [number for number, (good, *_) in done.items() if not good] if failed is None else []
                while waiting and waiting[0][0] < min(bad, default=len(tasks)) and self._room(len(done)):
                    number, task = waiting.popleft()
                    tries[number] += 1
                    outcome, file = self._serve.remote(self._job, packed(self._ray, task), self._home, self.plan.spool is not None)
                    self._running[outcome] = number, file
                for number, outcome, file in self._ready():
                    if isinstance(outcome, BaseException):
                        if tries[number] < TRIES:
                            self.lost += 1
                            waiting.appendleft((number, tasks[number]))
                        else:
                            done[number] = False, lost(outcome, tries[number]), None
                            self.plan.heard(Done(number, "lost", *done[number][:2], 0))
                    else:
                        good, value, size, worker = outcome
                        self.plan.tick(size)
                        self.plan.heard(Done(number, worker, good, value, size))
                        done[number] = good, value, file
            good, value, content = done.pop(due)
            if good and self.plan.spool is not None:
                yield from self._with_file(value, content)
            elif good:
                yield value, None
            elif failed is None:
                raise value
            else:
                yield failed(due, value), None

    def _room(self, finished: int) -> bool:
        """Whether one more task may be begun. Files of finished tasks wait in the cluster's memory: few of them."""
        if self.plan.count is not None:
            most = self.plan.count
        else:
            most = 2 * self.processors()  # one runs, one is ready
        return len(self._running) + (finished if self.plan.spool is not None else 0) < most

    def _ready(self) -> Iterator[tuple[int, Any, Any]]:
        """Number, outcome and file of tasks that ended; the cause in place of the outcome where one did not come back."""
        references = list(self._running)
        self._ray.wait(references, num_returns=1)
        ended, _ = self._ray.wait(references, num_returns=len(references), timeout=0)  # all that ended: a wait looks at every one
        for reference in ended:
            number, file = self._running.pop(reference)
            try:
                outcome = pickle.loads(self._ray.get(reference))  # noqa: S301  (from our own worker)
                content = self._ray.get(file) if self.plan.spool is not None and outcome[0] else None
            except self._ray.exceptions.TaskCancelledError as error:
                raise TarvizError("a task was cancelled from outside.", code="E_WORKER") from error
            except self._ray.exceptions.RayTaskError as error:
                raise unserved(error) from error
            except self._ray.exceptions.RayError as error:
                yield number, error, None
            else:
                yield number, outcome, content

    def _with_file(self, value: Any, content: Any) -> Iterator[tuple[Any, IO[bytes] | None]]:
        with tempfile.TemporaryFile(dir=self.plan.spool, buffering=0) as file:
            view = memoryview(content)
            while view:
                view = view[file.write(view) :]
            del content, view
            yield value, file

    def _cancel(self) -> None:
        """End what runs, and wait until it has cleared up: half an output lies under no name, nor beside it."""
        for reference in self._running:
            with suppress(self._ray.exceptions.RayError):
                self._ray.cancel(reference)
        if self._running:
            self._ray.wait(list(self._running), num_returns=len(self._running), timeout=_PATIENCE)
        self._running.clear()
