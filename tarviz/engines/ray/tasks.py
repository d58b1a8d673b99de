"""Tasks on a Ray cluster: one Ray task each, with one outcome and perhaps a file."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import IO, Any, Self

from tarviz.engines import EnginePlan, Job, TaskEnd
from tarviz.engines.in_order import InOrder, TaskFile
from tarviz.engines.ray.joining import TRIES, RayMember, loss, pack, refusal
from tarviz.engines.ray.worker import serve
from tarviz.model.errors import TarvizError

_PATIENCE = 10.0  # seconds that cancelled tasks have to clear up


class RayEngine(InOrder, RayMember):
    """Runs tasks on Ray: see `engines.Engine`."""

    tries = TRIES

    def __init__(self, job: Job, plan: EnginePlan) -> None:
        super().__init__(job, plan)
        self.heard = plan.heard
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

    def _room(self, finished: int) -> bool:
        """Whether one more task may be begun. Files of finished tasks wait in the cluster's memory: few of them."""
        most = self.plan.count or 2 * self.processors()  # one runs, one is ready
        return len(self._running) + (finished if self.plan.spool is not None else 0) < most

    def _begin(self, number: int, task: Any) -> None:
        outcome, file = self._serve.remote(self._job, pack(self._ray, task), self._home, self.plan.spool is not None)
        self._running[outcome] = number, file

    def _collect(self) -> Iterator[TaskFile]:
        references = list(self._running)
        self._ray.wait(references, num_returns=1)
        ended, _ = self._ray.wait(references, num_returns=len(references), timeout=0)  # all that ended: a wait looks at every one
        for reference in ended:
            number, file = self._running.pop(reference)
            try:
                good, value, size, worker = pickle.loads(self._ray.get(reference))  # noqa: S301  (from our own worker)
                content = self._ray.get(file) if self.plan.spool is not None and good else None
            except self._ray.exceptions.TaskCancelledError as error:
                raise TarvizError("a task was cancelled from outside.", code="E_WORKER") from error
            except self._ray.exceptions.RayTaskError as error:
                raise refusal(error) from error
            except self._ray.exceptions.RayError as error:
                yield TaskFile(TaskEnd(number, "lost", False, loss(error, TRIES), 0), lost=True)
            else:
                self.plan.tick(size)
                done = TaskEnd(number, worker, good, value, size)
                yield TaskFile(done) if content is None else TaskFile(done, self._file(content))

    @contextmanager
    def _file(self, content: Any) -> Iterator[IO[bytes]]:
        with tempfile.TemporaryFile(dir=self.plan.spool, buffering=0) as file:
            view = memoryview(content)
            while view:
                view = view[file.write(view) :]
            del content, view
            yield file

    def _cancel(self) -> None:
        """End what runs, and wait until it has cleared up: half an output lies under no name, nor beside it."""
        for reference in self._running:
            with suppress(self._ray.exceptions.RayError):
                self._ray.cancel(reference)
        if self._running:
            self._ray.wait(list(self._running), num_returns=len(self._running), timeout=_PATIENCE)
        self._running.clear()
