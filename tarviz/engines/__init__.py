"""Engines: where tasks run. One file per engine: `local` (this machine), `ray` (a cluster).

A file here provides `engine(job, plan) -> Engine`. `job(task, file, tick)` is what is done with each task; it and the tasks are pickled.
One that feeds loops elsewhere provides `stream(job, plan) -> Streams` too, `check(address)`, which says what is missing or cannot be
there, and `there()`, whether it could be used without a further word.
A file that a task's result comes with, and all that an engine started, is gone when the `with` block ends; so is what was half done.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Any, Protocol, cast

from tarviz.model import plugins
from tarviz.model.errors import MissingPackageError, SchemaError, TarvizError, UsageError, redact
from tarviz.model.processors import processors

SUPPORT = ("in_order", "process_pool")  # what engines are built with, not engines

Tick = Callable[[int], None]
Job = Callable[[Any, "IO[bytes] | None", Tick], Any]
"""What is done with a task: `job(task, file, tick)`. It may write to `file`, and calls `tick(bytes)` as it goes."""
Failed = Callable[[int, Exception], Any]


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """A task that has ended: its number, which worker did it (`host:process`), its result or what it raised, the bytes it told of."""

    number: int
    worker: str
    good: bool
    value: Any
    size: int


Yielding = Callable[[Any], Iterable[Any]]
"""A job of parts: `job(task)` yields them; the same ones for the same task."""


def _still(told: object) -> None:
    return


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """How tasks are to be run: `count` at a time (None: as many as the engine has room for), on the cluster at `address`.

    With `spool`, a folder of this machine, every task gets an unnamed file, and its result comes with that file. `tick` is told of bytes,
    `heard` of each task that ended, when it did: not in order.
    """

    count: int | None = None
    spool: str | None = None
    tick: Tick = _still
    heard: Callable[[TaskEnd], None] = _still
    address: str | None = None


class Engine(AbstractContextManager["Engine"], Protocol):
    """A context manager that runs tasks."""

    @property
    def room(self) -> int:
        """How many tasks run at a time, once it is entered."""
        ...

    def run(self, tasks: Sequence[Any], failed: Failed | None = None) -> Generator[tuple[Any, IO[bytes] | None], None, None]:
        """Result and file of each task, in the order of the tasks. The file may be used until the next result is taken.

        A task that raised is answered by `failed(number, error)`, which may raise itself; without it the first error, in the order
        of the tasks, is raised in its place, and no task after it is begun any more. A task whose worker is lost is done again.
        """
        ...


class Streams(AbstractContextManager["Streams"], Protocol):
    """A context manager that runs tasks which yield. `lost` counts those that were begun again."""

    lost: int

    def run(self, tasks: Iterable[Any], *, ordered: bool) -> Generator[Any, None, None]:
        """What the tasks yield, in the order of the tasks, or as it comes; a task is taken from `tasks` when there is room for it.

        What a task raises is raised after all that it yielded. A task whose worker is lost is done again, and what it gave already is
        passed over. Closing it ends what runs. Large arrays may be views of memory of the engine, not to be written to: who keeps them
        copies them.
        """
        ...


def stream(name: str, job: Yielding, plan: EnginePlan) -> Streams:
    """The engine of that name for one job that yields."""
    return cast("Streams", plugins.load("engines", name).stream(job, plan))


def check_streams(name: str, address: str | None = None) -> None:
    """`UsageError` where there is no such engine, or it feeds no loops at that address, `MissingPackageError` without its package."""
    module = plugins.load("engines", name)
    if not hasattr(module, "stream"):
        others = [each for each in plugins.names("engines") if hasattr(plugins.load("engines", each), "stream")]
        raise UsageError(f"the engine {name!r} does not feed loops.", hint=f"Those that do are {', '.join(others)}.")
    module.check(address)


def there() -> str | None:
    """An engine on other machines that this process could use without being told its address; None where there is none."""
    engines = {name: plugins.load("engines", name) for name in plugins.names("engines")}
    return next((name for name, module in engines.items() if hasattr(module, "there") and module.there()), None)


def start(name: str, job: Job, plan: EnginePlan) -> Engine:
    """The engine of that name for one job; `UsageError` lists what there is."""
    return cast("Engine", plugins.load("engines", name).engine(job, plan))


def count(name: str, asked: int | None, tasks: int) -> int | None:
    """How many tasks run at a time: `asked`, 0: one per processor; one if nothing is asked; on a cluster all it has room for (None).

    >>> [count("local", asked, tasks) for asked, tasks in ((4, 2), (3, 9), (None, 9), (0, 1), (2, 0))]
    [2, 3, 1, 1, 1]
    """
    if travels(name):
        return asked or None
    return max(1, min(tasks, processors() if asked == 0 else asked or 1))


class Errors:
    """Errors of tasks that stop no others: raised when these are done, the first one, naming the rest; `names` are those of all tasks."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._found: dict[int, TarvizError] = {}

    def keep(self, number: int, error: Exception) -> None:
        """For `run(failed=)`: keep what a task's own data or place is to blame for; raise all else, which would come again."""
        wrong_call = isinstance(error, UsageError) and not isinstance(error, SchemaError)
        if not isinstance(error, TarvizError) or wrong_call or isinstance(error, MissingPackageError):
            raise error
        self._found[number] = error

    def settle(self) -> None:
        """Raise the first error that was kept."""
        if not self._found:
            return
        (first, error), *others = sorted(self._found.items())
        error.at(shard=self._names[first])
        if others:
            some = ", ".join(f"{redact(self._names[number])} ({other.code})" for number, other in others[:10])
            more = f"{len(others)} more failed: {some}{', …' if len(others) > 10 else ''}."
            error.hint = f"{error.hint} {more}" if error.hint else more
        raise error


def is_own(url: str) -> bool:
    """Whether a URL is of this process alone: its standard streams, its memory."""
    return url == "-" or url.startswith("memory:")


def unreachable(url: str, who: str = "the workers of a cluster") -> UsageError:
    """The error for a URL of this process alone, where others are to work on it."""
    return UsageError(f"{redact(url)!r} is of this process alone; {who} do not reach it.", hint="Use files or URLs.")


def travels(name: str) -> bool:
    """Whether tasks of that engine leave this machine: no standard stream, memory or unnamed pipe can be part of them."""
    return bool(plugins.load("engines", name).TRAVELS)
