"""What the shell writes to a terminal, and to what is none."""

from __future__ import annotations

import io

import pytest

from tarviz import cli
from tarviz.cli.verb_base import colour


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_codes_are_coloured_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    assert "\x1b[31mE_NOT_TAR\x1b[0m and \x1b[33mW_PATHS\x1b[0m, MY_E_NAME" == colour("E_NOT_TAR and W_PATHS, MY_E_NAME", Terminal())


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_nothing_is_coloured_where_it_is_not_wanted(name: str, value: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(name, value)

    assert "E_NOT_TAR" == colour("E_NOT_TAR", Terminal())


def test_an_error_is_coloured_and_json_is_not(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    path = tmp_path / "page.tar"
    path.write_bytes(b"<html>" + bytes(600))
    shown = {name: Terminal() for name in ("stdout", "stderr")}
    for name, stream in shown.items():
        monkeypatch.setattr(f"sys.{name}", stream)

    assert 2 == cli.main(["convert", str(path), "-o", str(tmp_path / "x.tfrecord")])
    assert "\x1b[31mE_NOT_TAR\x1b[0m" in shown["stderr"].getvalue()
    assert 2 == cli.main(["verify", "--json", str(path)])
    assert "\x1b" not in shown["stdout"].getvalue()
    assert "E_NOT_TAR" in shown["stdout"].getvalue()
    assert 2 == cli.main(["verify", str(path)])
    assert "\x1b[31mE_NOT_TAR\x1b[0m" in shown["stdout"].getvalue()
