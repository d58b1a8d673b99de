"""The loop of an engine that hands tasks to workers: results in the order of the tasks, and a task whose worker is lost done again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import IO, Any

from tarviz.engines import Failed, TaskEnd


@dataclass(frozen=True, slots=True)
class TaskFile:
    """A task that ended, and its file while it is used. Where its worker was `lost`, `done` is what is said after the last try."""

    done: TaskEnd
    file: AbstractContextManager[IO[bytes] | None] = field(default_factory=nullcontext)
    lost: bool = False


class InOrder:
    """An engine says which tasks it has room for and which ended; `run` puts these in order."""

    tries: int  # how often a task is begun whose worker is lost
    lost = 0  # tasks that were begun again
    heard: Callable[[TaskEnd], None]

    def _room(self, finished: int) -> bool:
        """Whether one more task may be begun, beside the results of `finished` ones that wait to be taken."""
        raise NotImplementedError

    def _begin(self, number: int, task: Any) -> None:
        raise NotImplementedError

    def _collect(self) -> Iterator[TaskFile]:
        """Tasks that ended, when there is something to be heard of those under way."""
        raise NotImplementedError

    def run(self, tasks: Sequence[Any], failed: Failed | None = None) -> Generator[tuple[Any, IO[bytes] | None], None, None]:
        """Result and file of each task, in order: see `engines.Engine`."""
        waiting = deque(enumerate(tasks))
        tries = [0] * len(tasks)
        ended: dict[int, TaskFile] = {}
        for due in range(len(tasks)):
            while due not in ended:
                bad = [number for number, each in ended.items() if not each.done.good] if failed is None else []
                while waiting and waiting[0][0] < min(bad, default=len(tasks)) and self._room(len(ended)):
                    number, task = waiting.popleft()
                    tries[number] += 1
                    self._begin(number, task)
                for each in self._collect():
                    number = each.done.number
                    if each.lost and tries[number] < self.tries:
                        self.lost += 1
                        waiting.appendleft((number, tasks[number]))
                    else:
                        ended[number] = each
                        self.heard(each.done)
            result = ended.pop(due)
            if result.done.good:
                with result.file as file:
                    yield result.done.value, file
            elif failed is None:
                raise result.done.value
            else:
                yield failed(due, result.done.value), None
