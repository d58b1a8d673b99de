"""Commands that outputs and tools run: in a session of their own, killed with all they started."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tarviz.model.errors import UsageError
from tarviz.outputs import process
from tests.conftest import wait_until


@pytest.mark.parametrize(("line", "code"), [("exit 3", 3), ("true", 0), ("kill -9 $$", -9)])
def test_the_exit_code_is_that_of_the_command_negative_for_a_signal(line: str, code: int):
    assert code == process.run(["sh", "-c", line], stdout=None)


def test_a_command_that_is_not_there_is_said():
    with pytest.raises(UsageError, match=r"E_COMMAND.*'no-such-command' cannot be run"):
        process.run(["no-such-command"], stdout=None)


def test_it_gets_its_environment_and_no_input(capfd: pytest.CaptureFixture[str]):
    process.run(["sh", "-c", "cat; echo $WORD"], stdout=process.messages(), env={**os.environ, "WORD": "hello"})

    assert ("", "hello\n") == capfd.readouterr()  # what it prints is no result of ours


@pytest.mark.parametrize(
    ("outer", "inner"), [("", ""), ("trap '' TERM; ", ""), ("", 'trap "" TERM; ')], ids=["polite", "all ignore it", "the inner ignores it"]
)
def test_killing_ends_what_it_started_too(outer: str, inner: str):
    command = f"{outer}sh -c '{inner}echo $$; sleep 100 & wait; sleep 100'; sleep 100"
    running = subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, start_new_session=True)
    assert running.stdout is not None
    child = int(running.stdout.readline())
    process.kill(running, patience=0.1)
    running.stdout.close()

    assert running.returncode is not None
    wait_until(lambda: not alive(child))


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@contextmanager
def interrupted_by_a_signal() -> Iterator[None]:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_an_interrupt_ends_the_command(tmp_path: Path):
    said = tmp_path / "pid"

    def interrupt() -> None:
        wait_until(lambda: said.exists() and said.read_text().endswith("\n"))
        os.kill(os.getpid(), signal.SIGUSR1)

    other = threading.Thread(target=interrupt)
    with interrupted_by_a_signal():
        other.start()
        process.run(["sh", "-c", f"echo $$ > {said}; sleep 100"], stdout=None)
    other.join()

    wait_until(lambda: not alive(int(said.read_text())))


def test_an_interrupt_while_it_starts_ends_the_command(monkeypatch: pytest.MonkeyPatch):
    started: list[int] = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            started.append(self.pid)
            os.kill(os.getpid(), signal.SIGUSR1)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with interrupted_by_a_signal():
        process.run(["sleep", "100"], stdout=None)

    wait_until(lambda: not alive(started[0]))


@pytest.mark.parametrize("stderr", [None, io.StringIO()], ids=["none", "no file"])
def test_what_commands_print_goes_nowhere_without_a_standard_error(stderr: io.StringIO | None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stderr", stderr)

    assert subprocess.DEVNULL == process.messages()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_an_exit_and_what_was_set_before_comes_back(number: signal.Signals):
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as caught, process.ended_by_signals():
        signal.raise_signal(number)

    assert (128 + number, before) == (caught.value.code, signal.getsignal(number))


def test_threads_set_no_signals():
    found: list[object] = []

    def work() -> None:
        with process.ended_by_signals():
            found.append(signal.getsignal(signal.SIGTERM))

    other = threading.Thread(target=work)
    other.start()
    other.join()

    assert [signal.getsignal(signal.SIGTERM)] == found


def test_sigterm_ends_the_work_as_an_interrupt_does():
    code = (
        "import os, signal\n"
        "from tarviz.outputs.process import ended_by_signals\n"
        "try:\n"
        "    with ended_by_signals():\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        signal.pause()\n"
        "finally:\n"
        "    print('cleaned', signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (128 + signal.SIGTERM, "cleaned True\n") == (done.returncode, done.stdout)
