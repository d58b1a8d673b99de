"""Worker processes: one job, many tasks, results in the order of the tasks.

A worker is a fresh Python in a session of its own: it shares no lock, thread or GPU with its parent, a script needs no
`if __name__ == "__main__"`, and Ctrl-C reaches the parent alone, which ends its workers. They also end when it dies.

loky, the pool of joblib, would be taken but for what `tests/engines/test_loky.py` shows of it: a worker that is killed breaks the pool and
every task under way, a result comes as a pickle and never with a file, what a task prints goes to standard output, into data, and Ctrl-C
reaches its workers.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from types import TracebackType
from typing import IO, Any, NoReturn, Self

from tarviz.engines import Job, TaskEnd, Tick
from tarviz.engines.in_order import InOrder, TaskFile
from tarviz.model import config
from tarviz.model.errors import TarvizError, TarvizWarning, UsageError

SPOOLS = 2  # files of a worker: one is read while it writes the other
TRIES = 2  # a task that kills its worker gets a second one
_PATIENCE = 5  # seconds in which a worker may end by itself

_NO_PICKLE = (pickle.PicklingError, AttributeError, TypeError, NotImplementedError, RuntimeError)  # what pools and locks raise too
_START = "import sys; sys.path[:] = {path!r}; from tarviz.engines.process_pool import _serve; _serve({reads}, {writes}, {spools!r})"


def can_run() -> bool:
    """Whether this system has what worker processes need."""
    return os.name == "posix" and bool(sys.executable)


@dataclass(eq=False, slots=True)
class _WorkerProcess:
    process: subprocess.Popen[bytes]
    to: Connection[Any, Any]
    back: Connection[Any, Any]
    spools: list[IO[bytes]]
    free: list[int]  # spools nobody uses
    task: int | None = None
    spool: int | None = None
    told: int = 0  # bytes that the task told of

    @property
    def name(self) -> str:
        """This worker, for people."""
        return f"{socket.gethostname()}:{self.process.pid}"

    @contextmanager
    def lend(self, spool: int) -> Iterator[IO[bytes]]:
        """A file that is read here; then the worker may write to it."""
        yield self.spools[spool]
        self.free.append(spool)


@dataclass(eq=False)
class Workers(InOrder):
    """A context manager that runs `job` in `count` processes.

    `job` and its tasks are pickled; a function of a notebook or script goes along where cloudpickle is installed. With
    `spool` every task gets an unnamed file in that folder, and its result comes with that file.
    """

    job: Job
    count: int
    spool: str | None = None
    tick: Tick = lambda size: None
    heard: Callable[[TaskEnd], None] = lambda done: None
    _workers: list[_WorkerProcess] = field(default_factory=list)
    _orphans: list[IO[bytes]] = field(default_factory=list)  # files of workers that died
    _payload: bytes = b""
    tries = TRIES

    @property
    def room(self) -> int:
        return self.count

    def __enter__(self) -> Self:
        self._payload = _pickle(self.job)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for worker in self._workers:
            with suppress(OSError):
                worker.process.terminate()
        while self._workers:
            worker = self._workers.pop()
            try:
                worker.process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
            worker.to.close()
            worker.back.close()
            self._orphans += worker.spools
        while self._orphans:
            self._orphans.pop().close()

    def _room(self, finished: int) -> bool:
        return self._idle() is not None

    def _idle(self) -> _WorkerProcess | None:
        for worker in self._workers:
            if worker.task is None and (self.spool is None or worker.free):
                return worker
        return self._start() if len(self._workers) < self.count else None

    def _start(self) -> _WorkerProcess:
        spools: list[IO[bytes]] = []
        if self.spool is not None:
            spools = [tempfile.TemporaryFile(dir=self.spool, buffering=0) for _ in range(SPOOLS)]  # noqa: SIM115
        (theirs_in, to), (back, theirs_out) = Pipe(duplex=False), Pipe(duplex=False)
        reads, writes, numbers = theirs_in.fileno(), theirs_out.fileno(), [file.fileno() for file in spools]
        code = _START.format(path=sys.path, reads=reads, writes=writes, spools=numbers)
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=2,  # what a user's function prints must not end up in data on stdout
            env=config.environment(),
            pass_fds=[reads, writes, *numbers],
            start_new_session=True,
        )
        theirs_in.close()
        theirs_out.close()
        worker = _WorkerProcess(process, to, back, spools, list(range(len(spools))))
        self._workers.append(worker)
        with suppress(BrokenPipeError):  # it died at once: noticed when its answer is read
            to.send_bytes(self._payload)
        return worker

    def _begin(self, number: int, task: Any) -> None:
        worker = self._idle()
        assert worker is not None  # there was room
        worker.task, worker.told = number, 0
        worker.spool = worker.free.pop() if self.spool is not None else None
        with suppress(BrokenPipeError):
            worker.to.send_bytes(pickle.dumps((task, worker.spool)))

    def _collect(self) -> Iterator[TaskFile]:
        ready = wait([worker.back for worker in self._workers if worker.task is not None])
        for worker in [each for each in self._workers if each.back in ready]:
            message, number = _receive(worker.back), worker.task
            assert number is not None
            if message is None:
                error = _death(self._give_up(worker))
                yield TaskFile(TaskEnd(number, worker.name, False, error, worker.told), lost=True)
            elif message[0] == "tick":
                worker.told += message[1]
                self.tick(message[1])
            else:
                worker.task = None
                done = TaskEnd(number, worker.name, message[0] == "done", message[1], worker.told)
                if worker.spool is not None and not done.good:
                    worker.free.append(worker.spool)
                yield TaskFile(done) if worker.spool is None else TaskFile(done, worker.lend(worker.spool))

    def _give_up(self, worker: _WorkerProcess) -> int:
        """Give up a worker that died: its exit status. Results in its files may still be wanted."""
        self._workers.remove(worker)
        worker.to.close()
        worker.back.close()
        self._orphans += worker.spools
        return worker.process.wait()


def _death(status: int) -> TarvizError:
    name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
    return TarvizError(
        f"the worker process ended by {name}, {TRIES} times.",
        code="E_WORKER",
        hint="Out of memory? Use fewer workers. num_workers=1 shows where it happens.",
    )


def _pickle(value: Any) -> bytes:
    try:
        data = pickle.dumps(value)
        # What lives in __main__ pickles as a name that a worker cannot look up.
        if b"__main__" not in data:
            return data
    except _NO_PICKLE:
        pass
    try:
        import cloudpickle  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError(
            "a function of the chain cannot travel to worker processes.",
            hint="Put it into a module, use num_workers=1, or pip install cloudpickle.",
        ) from None
    try:
        packed: bytes = cloudpickle.dumps(value)
    except _NO_PICKLE as error:
        raise UsageError(f"a function of the chain cannot travel to worker processes: {error}.", hint="Use num_workers=1.") from error
    return packed


def _receive(back: Connection[Any, Any]) -> Any:
    """What a worker says; None where it died."""
    try:
        message = back.recv_bytes()
    except (EOFError, OSError):  # also in the middle of what it says
        return None
    return pickle.loads(message)  # noqa: S301  (from our own child)


class _Answers:
    """What a worker says to its parent."""

    def __init__(self, to: Connection[Any, Any]) -> None:
        self._to = to
        self._ticks = 0
        self._next = 0.0

    def tick(self, size: int) -> None:
        self._ticks += size
        if (now := time.monotonic()) >= self._next:
            self._tell()
            self._next = now + 0.1

    def _tell(self) -> None:
        self._say(pickle.dumps(("tick", self._ticks)))
        self._ticks = 0

    def give(self, kind: str, value: Any) -> None:
        if self._ticks:
            self._tell()
        try:
            data = pickle.dumps((kind, value))
        except Exception:  # noqa: BLE001  (an exception of the user's that does not pickle)
            data = pickle.dumps(("failed", RuntimeError(f"{type(value).__name__}: {value}")))
        self._say(data)

    def _say(self, data: bytes) -> None:
        try:
            self._to.send_bytes(data)
        except OSError:
            _leave()  # nobody listens any more


def _leave(*signalled: Any) -> NoReturn:
    sys.exit(1)


def _leave_again(lost: Any) -> None:
    """Re-raise a `SystemExit` that was lost in a destructor, by sending SIGTERM."""
    if isinstance(lost.exc_value, SystemExit):
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGTERM)).start()
    else:
        sys.__unraisablehook__(lost)


def _serve(reads: int, writes: int, spools: Sequence[int]) -> None:
    """The life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)  # an exception, so that sinks clear up
    sys.unraisablehook = _leave_again
    warnings.simplefilter("ignore", TarvizWarning)  # counted in the report, and said once by the parent
    files = [open(number, "r+b", 0) for number in spools]  # noqa: SIM115  (open as long as the process lives)
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(Connection(reads, writable=False), inbox), daemon=True).start()
    try:
        _work(inbox, files, _Answers(Connection(writes, readable=False)))
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough


def _work(inbox: queue.SimpleQueue[bytes], files: Sequence[IO[bytes]], answers: _Answers) -> NoReturn:
    packed = inbox.get()
    job: Job | None = None
    while True:
        task, spool = pickle.loads(inbox.get())  # noqa: S301  (from our parent)
        try:
            job = job or pickle.loads(packed)  # noqa: S301
            file = None if spool is None else files[spool]
            if file is not None:
                file.seek(0)
                file.truncate()
            value = job(task, file, answers.tick)
        except Exception as error:  # noqa: BLE001  (a runner: what a task raises, the parent raises)
            if not isinstance(error, TarvizError):
                error.add_note("In a worker process:\n" + "".join(traceback.format_tb(error.__traceback__)))
            answers.give("failed", error)
        else:
            answers.give("done", value)


def _listen(parent: Connection[Any, Any], inbox: queue.SimpleQueue[bytes]) -> None:
    with suppress(EOFError, OSError):
        while True:
            inbox.put(parent.recv_bytes())
    # The parent is gone: clear up, and do not hang if that takes long.
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)
    os._exit(1)
