"""Tasks on a Ray cluster: one Ray task each, begun again elsewhere when its worker or node is lost.

Nothing is kept in Ray but what a task gives back: small outcomes and, with `spool`, its file. `address` is that of `ray.init`: `auto`,
`host:6379`, `ray://host:10001`; without it RAY_ADDRESS, and without that a Ray of its own on this machine, ended with the work.
"""

from __future__ import annotations

import mmap
import os
import pickle
import signal
import socket
import tempfile
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Any, Self

from tarviz.engines import Failed, Job, Plan, Tick
from tarviz.model import config
from tarviz.model.errors import MissingPackageError, TarvizError, TarvizWarning, UsageError

TRAVELS = True
TRIES = 3  # a task whose worker is lost is done again so often
_PATIENCE = 10.0  # seconds that cancelled tasks have to clear up
_STAY = ("cache_dir", "workers", "progress")  # options that are those of a machine


def engine(job: Job, plan: Plan) -> Cluster:
    """The cluster at `plan.address`; `plan.count` tasks at a time, by default as many as it has processors."""
    return Cluster(job, plan)


@dataclass(frozen=True, slots=True)
class _Home:
    """What a worker takes over from the process that sends tasks: folder, options, version."""

    folder: str
    options: dict[str, str]
    version: str


@dataclass(eq=False)
class Cluster:
    """Runs tasks on Ray: see `engines.Engine`. `lost` counts the tasks that were begun again."""

    job: Job
    plan: Plan
    lost: int = 0
    _own: bool = False
    _running: dict[Any, tuple[int, Any]] = field(default_factory=dict)  # outcome's reference → task's number, reference of its file

    def __enter__(self) -> Self:
        self._ray = ray = _module()
        self._own = _connect(ray, self.plan)
        self._home = ray.put(_home())
        self._job = ray.put(_packed(ray, self.job))
        self._serve = ray.remote(max_retries=0, num_cpus=1, num_returns=2)(_serve)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._cancel()
        finally:
            self._job = self._home = None
            if self._own:
                self._ray.shutdown()

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
                    outcome, file = self._serve.remote(self._job, _packed(self._ray, task), self._home, self.plan.spool is not None)
                    self._running[outcome] = number, file
                for number, outcome, file in self._ready():
                    if isinstance(outcome, _Lost):
                        if tries[number] < TRIES:
                            self.lost += 1
                            waiting.appendleft((number, tasks[number]))
                        else:
                            done[number] = False, outcome.error(tries[number]), None
                    else:
                        good, value, size = outcome
                        self.plan.tick(size)
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
            most = 2 * max(1, int(self._ray.cluster_resources().get("CPU", 1)))  # one runs, one is ready
        return len(self._running) + (finished if self.plan.spool is not None else 0) < most

    def _ready(self) -> Iterator[tuple[int, Any, Any]]:
        """Number, outcome and file of tasks that ended; `_Lost` where one did not come back."""
        ended, _ = self._ray.wait(list(self._running), num_returns=1)
        for reference in ended:
            number, file = self._running.pop(reference)
            try:
                outcome = pickle.loads(self._ray.get(reference))  # noqa: S301  (from our own worker)
                content = self._ray.get(file) if self.plan.spool is not None and outcome[0] else None
            except self._ray.exceptions.TaskCancelledError as error:
                raise TarvizError("a task was cancelled from outside.", code="E_WORKER") from error
            except self._ray.exceptions.RayTaskError as error:
                raise _unserved(error) from error
            except self._ray.exceptions.RayError as error:
                yield number, _Lost(error), None
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


class _Lost:
    """A worker or a node that did not give its outcome."""

    def __init__(self, cause: BaseException) -> None:
        self.cause = cause

    def error(self, tries: int) -> TarvizError:
        why = " ".join(str(self.cause).split())
        error = TarvizError(
            f"the worker was lost {tries} times: {why[:300]}.",
            code="E_WORKER",
            hint="Out of memory? Run fewer tasks at a time, or the local engine, which shows where it happens.",
        )
        error.__cause__ = self.cause
        return error


def _module() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingPackageError.of("ray", "engine='ray'", "ray") from None
    return ray


def _connect(ray: Any, plan: Plan) -> bool:
    """Join the cluster; true when it was begun here and is to be ended here."""
    if ray.is_initialized():
        return False
    address = plan.address or os.environ.get("RAY_ADDRESS")
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        if address is not None and address != "local":
            ray.init(address=address, **quiet)
        else:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # what runs on this machine alone tells nobody
            ray.init(address="local", num_cpus=plan.count, include_dashboard=False, **quiet)
    except Exception as error:  # Ray raises whatever it likes, Exception itself too
        why = " ".join(str(error).split())
        where = f"at {address}" if address else "on this machine"
        raise UsageError(f"there is no Ray {where}: {why[:300]}", hint="ray start --head begins one; --address names it.") from error
    return True


def _packed(ray: Any, value: Any) -> bytes:
    try:
        data: bytes = ray.cloudpickle.dumps(value)
    except Exception as error:  # what a user's object raises when it is pickled
        raise UsageError(f"a function of the chain cannot travel to the workers: {error}.", hint="Use the local engine.") from error
    return data


def _home() -> _Home:
    from tarviz import __version__

    chosen = {name: str(value) for name, (value, source) in config.sources().items() if source != "default" and name not in _STAY}
    return _Home(os.getcwd(), chosen, __version__)


def _unserved(error: Exception) -> TarvizError:
    why = " ".join(str(getattr(error, "cause", None) or error).split())
    what = f"a worker of the cluster cannot run tasks: {why[:300]}."
    return TarvizError(what, code="E_WORKER", hint="It needs the same tarviz installed.")


def _serve(packed_job: bytes, packed_task: bytes, home: _Home, spooled: bool) -> tuple[bytes, Any]:
    """One task in a worker: whether it went well, its result or error, the bytes it told of; and its file."""
    ticks = 0

    def tick(size: int) -> None:
        nonlocal ticks
        ticks += size

    _settle(home)
    try:
        with _interruptible():
            return _done(packed_job, packed_task, spooled, tick, lambda: ticks)
    except Exception as error:  # noqa: BLE001  (a runner: what a task raises, the process that sends tasks raises)
        if not isinstance(error, TarvizError):
            error.add_note(f"In a worker on {socket.gethostname()}:\n" + "".join(traceback.format_tb(error.__traceback__)))
        return _told(False, error, ticks), None


def _done(packed_job: bytes, packed_task: bytes, spooled: bool, tick: Tick, ticks: Callable[[], int]) -> tuple[bytes, Any]:
    job, task = pickle.loads(packed_job), pickle.loads(packed_task)  # noqa: S301  (from the process that sends tasks)
    if not spooled:
        return _told(True, job(task, None, tick), ticks()), None
    with tempfile.TemporaryFile(buffering=0) as file:
        value = job(task, file, tick)
        return _told(True, value, ticks()), _content(file)


@contextmanager
def _interruptible() -> Iterator[None]:
    """A task that is cancelled ends, while it waits too: a worker ignores interrupts, and Ray only marks one as due."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    main, told = threading.get_ident(), False

    def interrupt(*_: object) -> None:
        nonlocal told
        if not told:  # once: clearing up is not interrupted
            told = True
            raise KeyboardInterrupt

    def watch() -> None:
        while (number := os.read(reads, 1)) != b"\0":
            if number == bytes([signal.SIGINT]):
                signal.pthread_kill(main, signal.SIGINT)
                return

    handler = signal.signal(signal.SIGINT, interrupt)
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    wakeup = signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    watcher = threading.Thread(target=watch, name="tarviz-cancel", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        os.write(writes, b"\0")
        watcher.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        os.close(reads)
        os.close(writes)


def _settle(home: _Home) -> None:
    """Make this worker's folder and options those of the process that sends tasks."""
    from tarviz import __version__

    if __version__ != home.version:
        what = f"the worker on {socket.gethostname()} has tarviz {__version__}, here it is {home.version}"
        raise RuntimeError(what)
    warnings.simplefilter("ignore", TarvizWarning)  # counted in the report, and said once by who asked
    with suppress(OSError):  # a machine without that folder may need none: URLs
        os.chdir(home.folder)
    os.environ.update({f"TARVIZ_{name.upper()}": value for name, value in home.options.items()})


def _told(good: bool, value: Any, ticks: int) -> bytes:
    try:
        return pickle.dumps((good, value, ticks))
    except Exception:  # noqa: BLE001  (an exception of the user's that does not pickle)
        return pickle.dumps((False, RuntimeError(f"{type(value).__name__}: {value}"), ticks))


def _content(file: IO[bytes]) -> Any:
    """A file as an array that Ray takes without a further copy."""
    import numpy as np

    size = os.fstat(file.fileno()).st_size
    return np.frombuffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ), np.uint8) if size else np.zeros(0, np.uint8)
