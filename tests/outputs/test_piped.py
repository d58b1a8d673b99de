"""An output that is a command gets the tar whole, or is not run."""

from __future__ import annotations

import functools
import os
import signal
import threading
from pathlib import Path

import pytest

from tarviz.model.errors import StoreError
from tarviz.model.types import URL
from tarviz.outputs import piped
from tarviz.outputs.piped import CommandSink
from tests.conftest import wait_until


def test_names_are_commands_only_where_that_is_allowed():
    assert not piped.is_command("|cat")
    with piped.allow():
        assert piped.is_command("|cat")
        assert not piped.is_command("cat")

    assert not piped.is_command("|cat")


def test_it_is_run_once_on_all_the_bytes(tmp_path: Path):
    with CommandSink(URL(f"|cat >> '{tmp_path}/out'")) as sink:
        sink.write(b"one")
        sink.writev([memoryview(b"two"), bytearray(b"3")])
        assert not (tmp_path / "out").exists()

    assert b"onetwo3" == (tmp_path / "out").read_bytes()
    assert 7 == sink.commit().size
    assert b"onetwo3" == (tmp_path / "out").read_bytes()


def test_it_never_sees_half_of_them(tmp_path: Path):
    sink = CommandSink(URL(f"|cat > '{tmp_path}/out'"))
    sink.write(b"half")
    sink.abort()

    assert not (tmp_path / "out").exists()
    with pytest.raises(StoreError, match="E_WRITE"):
        sink.write(b"more")


@pytest.mark.parametrize(("line", "how"), [("exit 3", "with exit code 3"), ("kill -9 $$", "by SIGKILL")])
def test_a_command_that_fails_is_an_error(line: str, how: str):
    sink = CommandSink(URL(f"|{line}"))
    with pytest.raises(StoreError, match=f"E_COMMAND.*{how}"):
        sink.commit()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_where_the_bytes_find_no_room_it_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.TemporaryFile", functools.partial(open, "/dev/full", "wb"))
    with pytest.raises(StoreError, match=r"E_WRITE.*No space left.*TMPDIR"), CommandSink(URL(f"|touch '{tmp_path}/out'")) as sink:
        sink.write(b"bytes")

    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("exec sleep 60", False),
        ("trap 'touch left; exit' TERM; while :; do sleep 0.05; done", True),
        ("trap '' TERM; while :; do sleep 0.05; done", False),
    ],
    ids=["ends", "clears up", "must be killed"],
)
def test_an_interrupt_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, left: bool):
    monkeypatch.chdir(tmp_path)
    said = tmp_path / "pid"

    def interrupt() -> None:
        wait_until(lambda: said.exists() and said.read_text())
        os.kill(os.getpid(), signal.SIGINT)

    sink = CommandSink(URL(f"|sleep 0.3; echo $$ > '{said}'; {line}"))
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        sink.commit()

    with pytest.raises(ProcessLookupError):
        os.kill(int(said.read_text()), 0)
    assert left == (tmp_path / "left").exists()
