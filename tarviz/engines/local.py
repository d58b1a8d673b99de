"""Tasks on this machine: in worker processes, or one after the other in this process."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Generator, Sequence
from types import TracebackType
from typing import IO, Any, Self

from tarviz.engines import Engine, EnginePlan, Failed, Job, TaskEnd
from tarviz.engines.process_pool import Workers, can_run
from tarviz.model.errors import UsageError

TRAVELS = False


def engine(job: Job, plan: EnginePlan) -> Engine:
    """Worker processes, `plan.count` of them; this process itself for one, or where no others can be had."""
    if plan.address is not None:
        raise UsageError("the local engine has no address.", hint="address= belongs to engine='ray'.")
    count = 1 if plan.count is None else plan.count
    return Workers(job, count, spool=plan.spool, tick=plan.tick, heard=plan.heard) if count > 1 and can_run() else Here(job, plan)


class Here:
    """Tasks one after the other in this process."""

    def __init__(self, job: Job, plan: EnginePlan) -> None:
        self._job, self._plan = job, plan
        self._name = f"{socket.gethostname()}:{os.getpid()}"

    def run(self, tasks: Sequence[Any], failed: Failed | None = None) -> Generator[tuple[Any, IO[bytes] | None], None, None]:
        for number, task in enumerate(tasks):
            file = None if self._plan.spool is None else tempfile.TemporaryFile(dir=self._plan.spool, buffering=0)  # noqa: SIM115
            told = 0

            def tick(size: int) -> None:
                nonlocal told
                told += size
                self._plan.tick(size)

            try:
                value = self._job(task, file, tick)
            except Exception as error:  # a runner: who asked decides
                self._plan.heard(TaskEnd(number, self._name, False, error, told))
                if failed is None:
                    raise
                value = failed(number, error)
            else:
                self._plan.heard(TaskEnd(number, self._name, True, value, told))
            try:
                yield value, file
            finally:
                if file is not None:
                    file.close()

    @property
    def room(self) -> int:
        return 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return
