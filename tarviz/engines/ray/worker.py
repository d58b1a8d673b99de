"""What runs in a worker of the cluster: a task, in the folder and under the options of the process that sent it."""

from __future__ import annotations

import itertools
import mmap
import os
import pickle
import signal
import socket
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import IO, Any

from tarviz.model.errors import TarvizError, TarvizWarning

_LARGE = 16 << 10  # bytes of an array that is laid down beside the pickle
_ANSWER, _TURN = 4 << 20, 0.25  # bytes and seconds of an actor's answer
_AGAIN = 0.05  # seconds until a task is interrupted once more


@dataclass(frozen=True, slots=True)
class Home:
    """What a worker takes over from the process that sends tasks: folder, variables of the environment, version."""

    folder: str
    settings: dict[str, str]
    version: str


def serve(packed_job: bytes, packed_task: bytes, home: Home, spooled: bool) -> tuple[bytes, Any]:
    """One task in a worker: whether it went well, its result or error, the bytes it told of, the worker's name; and its file."""
    ticks = 0

    def tick(size: int) -> None:
        nonlocal ticks
        ticks += size

    settle(home)
    try:
        spool: AbstractContextManager[IO[bytes] | None] = tempfile.TemporaryFile(buffering=0) if spooled else nullcontext()  # noqa: SIM115
        with _interruptible(), spool as file:
            job, task = pickle.loads(packed_job), pickle.loads(packed_task)  # noqa: S301  (from the process that sends tasks)
            value = job(task, file, tick)
            return _answer(True, value, ticks), None if file is None else _content(file)
    except Exception as error:  # noqa: BLE001  (a runner: what a task raises, the process that sends tasks raises)
        _sign(error)
        return _answer(False, error, ticks), None


def serve_parts(packed_job: bytes, packed_task: bytes, home: Home, given: int) -> Generator[Any, None, None]:
    """One task that yields, in a worker: its parts but the first `given`, which a worker that is lost gave already; and how it ended."""
    import numpy as np

    def answer(kind: str, value: Any) -> list[Any]:
        large: list[pickle.PickleBuffer] = []

        def inside(buffer: pickle.PickleBuffer) -> bool:
            if buffer.raw().nbytes >= _LARGE:
                large.append(buffer)
                return False
            return True

        try:
            data = pickle.dumps((kind, value), protocol=pickle.HIGHEST_PROTOCOL, buffer_callback=inside)
        except Exception:  # noqa: BLE001  (an exception of the user's that does not pickle)
            large.clear()
            data = pickle.dumps(("failed", RuntimeError(f"{type(value).__name__}: {value}")))
        # Ray takes arrays without a further copy, and gives them without one.
        return [np.frombuffer(data, np.uint8), *(np.frombuffer(buffer.raw(), np.uint8) for buffer in large)]

    settle(home)
    yield answer("begun", None)
    try:
        job, task = pickle.loads(packed_job), pickle.loads(packed_task)  # noqa: S301  (from the process that sends tasks)
        for part in itertools.islice(job(task), given, None):
            yield answer("part", part)
    except Exception as error:  # noqa: BLE001  (a runner: what a task raises, the process that sends tasks raises)
        _sign(error)
        yield answer("failed", error)
    else:
        yield answer("done", None)


class Feeder:
    """An actor that does tasks that yield, one after the other, and gives some of the parts each time it is asked."""

    def __init__(self, packed_job: bytes, home: Home) -> None:
        self._job = packed_job
        self._home = home
        self._parts: Iterator[Any] = iter(())

    def begin(self, packed_task: bytes, given: int) -> list[Any]:
        """Begin a task; see `serve_parts`."""
        self._parts = serve_parts(self._job, packed_task, self._home, given)
        return [next(self._parts)]

    def more(self) -> list[Any]:
        """Parts of a few megabytes, or those of a quarter of a second, one at least; none behind the end."""
        found: list[Any] = []
        size, end = 0, time.monotonic() + _TURN
        for part in self._parts:
            found.append(part)
            size += sum(array.nbytes for array in part)
            if size >= _ANSWER or time.monotonic() >= end:
                break
        return found


@contextmanager
def _interruptible() -> Iterator[None]:
    """A task that is cancelled ends, while it waits too: a worker ignores interrupts, and Ray only marks one as due."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    main, told, over = threading.get_ident(), False, threading.Event()

    def interrupt(*_: object) -> None:
        nonlocal told
        if not told:  # once: clearing up is not interrupted
            told = True
            raise KeyboardInterrupt

    def watch() -> None:
        while (number := os.read(reads, 1)) != b"\0":
            if number == bytes([signal.SIGINT]):
                while not (told or over.is_set()):  # one that comes just before a system call does not end it
                    signal.pthread_kill(main, signal.SIGINT)
                    over.wait(_AGAIN)
                return

    handler = signal.signal(signal.SIGINT, interrupt)
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    wakeup = signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    watcher = threading.Thread(target=watch, name="tarviz-cancel", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(wakeup)
        os.write(writes, b"\0")
        watcher.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        os.close(reads)
        os.close(writes)


def settle(home: Home) -> None:
    """Make this worker's folder and options those of the process that sends tasks."""
    from tarviz import __version__

    if __version__ != home.version:
        what = f"the worker on {socket.gethostname()} has tarviz {__version__}, here it is {home.version}"
        raise RuntimeError(what)
    warnings.simplefilter("ignore", TarvizWarning)  # counted in the report, and said once by who asked
    with suppress(OSError):  # a machine without that folder may need none: URLs
        os.chdir(home.folder)
    os.environ.update(home.settings)


def name() -> str:
    """This worker, for people."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _sign(error: Exception) -> None:
    """Say where an error comes from that does not say it itself."""
    if not isinstance(error, TarvizError):
        error.add_note(f"In a worker on {socket.gethostname()}:\n" + "".join(traceback.format_tb(error.__traceback__)))


def _answer(good: bool, value: Any, ticks: int) -> bytes:
    try:
        return pickle.dumps((good, value, ticks, name()))
    except Exception:  # noqa: BLE001  (an exception of the user's that does not pickle)
        return pickle.dumps((False, RuntimeError(f"{type(value).__name__}: {value}"), ticks, name()))


def _content(file: IO[bytes]) -> Any:
    """A file as an array that Ray takes without a further copy."""
    import numpy as np

    size = os.fstat(file.fileno()).st_size
    return np.frombuffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ), np.uint8) if size else np.zeros(0, np.uint8)
