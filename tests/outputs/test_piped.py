"""An output that is a command gets the tar whole, or is not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarviz.model.errors import StoreError
from tarviz.model.types import URL
from tarviz.outputs import piped
from tarviz.outputs.piped import CommandSink


def test_names_are_commands_only_where_that_is_allowed():
    assert not piped.is_command("|cat")
    with piped.allowed():
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
