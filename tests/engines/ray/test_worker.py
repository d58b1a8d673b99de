"""What a worker of a cluster does with a task, asked here without a cluster; that one does it is in `test_ray.py`."""

from __future__ import annotations

import _thread
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

import tarviz
from tarviz.engines import Tick
from tarviz.engines.ray import worker
from tarviz.engines.ray.worker import Feeder, Home, serve, serve_parts
from tarviz.model.errors import DataError
from tests.engines.jobs import job

HERE = f"{socket.gethostname()}:{os.getpid()}"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """What the process that sends tasks says of itself; this one's folder and variables come back afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TARVIZ_WORKERS", "1")
    (tmp_path / "sender").mkdir()
    return Home(str(tmp_path / "sender"), {"TARVIZ_WORKERS": "3"}, tarviz.__version__)


def served(home: Home, what: Callable[..., Any], task: Any, *, spooled: bool = False) -> tuple[Any, Any]:
    """What a worker says of one task, and its file."""
    outcome, file = serve(pickle.dumps(what), pickle.dumps(task), home, spooled)
    return pickle.loads(outcome), file


def opened(part: list[Any]) -> tuple[str, Any]:
    """A part as who takes it has it."""
    data, *beside = part
    return pickle.loads(memoryview(data), buffers=beside)


def locked(task: Any, file: IO[bytes] | None, tick: Tick) -> Any:
    """A result that does not pickle."""
    return threading.Lock()


# Ray marks an interrupt as due, which ends no call that waits; others send a signal.
INTERRUPTS: dict[str, Callable[[], None]] = {"mark": _thread.interrupt_main, "signal": lambda: os.kill(os.getpid(), signal.SIGINT)}


def interrupted(task: tuple[str, Path], file: IO[bytes] | None, tick: Tick) -> None:
    """Waits, and clears up when it is to end, in which it is interrupted once more."""
    how, cleared = task
    threading.Timer(0.05, INTERRUPTS[how]).start()
    try:
        time.sleep(50)
    finally:
        signal.raise_signal(signal.SIGINT)
        cleared.touch()


def counted(task: Any) -> Iterator[Any]:
    """As many numbers; a text is an error after one part, and arrays come as they are."""
    if isinstance(task, list):
        yield from task
    elif isinstance(task, int):
        yield from range(task)
    else:
        yield 0
        raise DataError(task) if task.startswith("E") else ZeroDivisionError(task)


def locks(task: Any) -> Iterator[Any]:
    """A part that does not pickle, with an array that would lie beside it."""
    yield {"array": np.zeros(worker._LARGE), "lock": threading.Lock()}


class TestServe:
    def test_a_task_is_done_in_the_folder_and_under_the_options_of_who_sent_it(self, home: Home) -> None:
        assert ((True, 5, 5000, HERE), None) == served(home, job, ("tick", 5))
        assert (home.folder, "3") == (os.getcwd(), os.environ["TARVIZ_WORKERS"])

    def test_a_folder_that_is_not_here_is_not_needed(self, home: Home) -> None:
        there = Home(f"{home.folder}/none", {}, home.version)

        assert ((True, 0, 0, HERE), None) == served(there, job, ("sleep", 0))

    @pytest.mark.parametrize("data", [b"", b"some bytes"])
    def test_its_file_comes_with_the_result(self, home: Home, data: bytes) -> None:
        outcome, file = served(home, job, ("write", data), spooled=True)

        assert (True, len(data), 0, HERE) == outcome
        assert (np.uint8, data) == (file.dtype, bytes(file))

    def test_an_error_says_where_it_was_raised_unless_it_says_so_itself(self, home: Home, tmp_path: Path) -> None:
        (good, odd, told, who), file = served(home, job, ("odd", "why"))
        (_, own, _, _), _ = served(home, job, ("fail", tmp_path / "data"))

        assert (False, 0, HERE, None) == (good, told, who, file)
        assert isinstance(odd, ZeroDivisionError)
        assert "In a worker on" in odd.__notes__[0]
        assert "jobs.py" in odd.__notes__[0]
        assert (DataError, False) == (type(own), hasattr(own, "__notes__"))

    def test_a_result_that_cannot_travel_is_an_error_that_names_it(self, home: Home) -> None:
        (good, error, _, _), _ = served(home, locked, None)

        assert not good
        assert "lock: <unlocked _thread.lock object" in str(error)

    def test_another_version_of_tarviz_is_refused(self, home: Home) -> None:
        with pytest.raises(RuntimeError, match=rf"has tarviz {tarviz.__version__}, here it is 0\.0\.1"):
            served(Home(home.folder, {}, "0.0.1"), job, ("sleep", 0))


@pytest.mark.skipif(os.name != "posix", reason="Ray's workers are interrupted by signals")
class TestCancelled:
    @pytest.fixture(autouse=True)
    def _deaf(self) -> Iterator[None]:
        """A worker of Ray ignores interrupts."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        yield
        signal.signal(signal.SIGINT, before)

    @pytest.mark.parametrize("how", INTERRUPTS)
    def test_a_task_that_waits_ends_and_clears_up_undisturbed(self, home: Home, tmp_path: Path, how: str) -> None:
        with pytest.raises(KeyboardInterrupt):
            served(home, interrupted, (how, tmp_path / "cleared"))

        assert (tmp_path / "cleared").exists()
        assert [] == [thread for thread in threading.enumerate() if thread.name == "tarviz-cancel"]

    def test_nothing_of_it_is_left(self, home: Home) -> None:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        served(home, job, ("sleep", 0))

        assert (signal.SIG_IGN, mask) == (signal.getsignal(signal.SIGINT), signal.pthread_sigmask(signal.SIG_BLOCK, []))
        assert -1 == signal.set_wakeup_fd(-1)


class TestServeParts:
    @pytest.mark.parametrize("given", [0, 1, 3])
    def test_parts_come_one_by_one_but_those_that_were_given_already(self, home: Home, given: int) -> None:
        parts = [opened(part) for part in serve_parts(pickle.dumps(counted), pickle.dumps(3), home, given)]

        assert [("begun", None), *(("part", number) for number in range(given, 3)), ("done", None)] == parts

    @pytest.mark.parametrize(("text", "kind", "notes"), [("E_X", DataError, 0), ("why", ZeroDivisionError, 1)])
    def test_an_error_comes_after_the_parts_before_it(self, home: Home, text: str, kind: type[Exception], notes: int) -> None:
        begun, part, (word, error) = map(opened, serve_parts(pickle.dumps(counted), pickle.dumps(text), home, 0))

        assert (("begun", None), ("part", 0), "failed", kind) == (begun, part, word, type(error))
        assert notes == len(getattr(error, "__notes__", ()))

    def test_large_arrays_lie_beside_the_pickle(self, home: Home) -> None:
        arrays = [np.arange(size, dtype=np.uint8) for size in (worker._LARGE - 1, worker._LARGE)]
        _, small, large, _ = serve_parts(pickle.dumps(counted), pickle.dumps(arrays), home, 0)

        assert [1, 2] == [len(small), len(large)]
        assert all(np.array_equal(array, opened(part)[1]) for array, part in zip(arrays, (small, large), strict=True))

    def test_a_part_that_cannot_travel_is_an_error_that_names_it(self, home: Home) -> None:
        _, failed, _ = serve_parts(pickle.dumps(locks), pickle.dumps(None), home, 0)

        assert (1, "failed") == (len(failed), opened(failed)[0])
        assert str(opened(failed)[1]).startswith("dict: {'array': ")


class TestFeeder:
    @pytest.mark.parametrize(("seconds", "counts"), [(3600.0, [2, 2, 1, 0]), (0.0, [1, 1, 1, 1, 1, 0])], ids=["large", "slow"])
    def test_parts_come_together_up_to_some_bytes_or_some_time(
        self, home: Home, monkeypatch: pytest.MonkeyPatch, seconds: float, counts: list[int]
    ) -> None:
        monkeypatch.setattr(worker, "_TURN", seconds)
        feeder = Feeder(pickle.dumps(counted), home)
        half = [np.zeros(worker._ANSWER // 2, np.uint8)]

        assert [] == feeder.more()
        assert [("begun", None)] == [opened(part) for part in feeder.begin(pickle.dumps(half * 4), 0)]
        assert counts == [len(feeder.more()) for _ in counts]
