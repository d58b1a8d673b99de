"""Commands that tools run: in a session of their own, killed with all they started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tarviz.model.errors import UsageError
from tarviz.tools import process
from tests.conftest import wait_until


@pytest.mark.parametrize(("line", "code"), [("exit 3", 3), ("true", 0), ("kill -9 $$", -9)])
def test_the_exit_code_is_that_of_the_command_negative_for_a_signal(line: str, code: int):
    assert code == process.run(["sh", "-c", line])


def test_a_command_that_is_not_there_is_said():
    with pytest.raises(UsageError, match=r"E_COMMAND.*'no-such-command' cannot be run"):
        process.run(["no-such-command"])


def test_it_gets_its_environment_and_no_input(capfd: pytest.CaptureFixture[str]):
    process.run(["sh", "-c", "cat; echo $WORD"], env={**os.environ, "WORD": "hello"})

    assert ("", "hello\n") == capfd.readouterr()  # what it prints is no result of ours


@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
def test_killing_ends_what_it_started_too(trap: str):
    running = subprocess.Popen(
        ["sh", "-c", f"{trap}sh -c '{trap}echo $$; sleep 100 & wait; sleep 100'; sleep 100"], stdout=subprocess.PIPE, start_new_session=True
    )
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


def test_sigterm_ends_the_work_as_an_interrupt_does():
    code = (
        "import os, signal\n"
        "from tarviz.tools.process import ended_by_signals\n"
        "try:\n"
        "    with ended_by_signals():\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        signal.pause()\n"
        "finally:\n"
        "    print('cleaned', signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (128 + signal.SIGTERM, "cleaned True\n") == (done.returncode, done.stdout)
