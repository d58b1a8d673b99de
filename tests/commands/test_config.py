"""The verb `config`: values and where they come from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tarviz import cli
from tarviz.commands.config import Configuration, show_value
from tarviz.model.config import Hidden


def test_names_the_source_of_every_option(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("TARVIZ_WORKERS", "3")

    assert 0 == cli.main(["config", "--json"])

    options = json.loads(capsys.readouterr().out)["options"]
    assert {"value": 3, "from": "TARVIZ_WORKERS"} == options["workers"]
    assert "default" == options["max_ratio"]["from"]


def test_shows_the_files_that_were_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.delenv("TARVIZ_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path("tarviz.toml").touch()
    cli.main(["config"])

    assert capsys.readouterr().out.endswith(f"\n  tarviz.toml\n  {tmp_path}/tarviz/config.toml  (not there)\n")


def test_a_variable_that_names_no_option_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("TARVIZ_WROKERS", "3")
    monkeypatch.setenv("TARVIZ_WORKERS", "3")

    assert 0 == cli.main(["config"])
    assert capsys.readouterr().out.endswith("\n\nTARVIZ_WROKERS names no option. Did you mean TARVIZ_WORKERS?\n")
    assert 0 == cli.main(["config", "--json"])
    assert ["TARVIZ_WROKERS"] == json.loads(capsys.readouterr().out)["unknown"]


def test_what_is_hidden_is_not_shown(monkeypatch: pytest.MonkeyPatch):
    assert ["***", "", 3] == [show_value(value) for value in (Hidden("secret"), Hidden(""), 3)]


def test_data_is_plain(tmp_path: Path):
    found = Configuration({"workers": (3, "here"), "cache_dir": (tmp_path, "there"), "key": (Hidden("x"), "env")}, (tmp_path,))

    assert {
        "options": {
            "workers": {"value": 3, "from": "here"},
            "cache_dir": {"value": str(tmp_path), "from": "there"},
            "key": {"value": "***", "from": "env"},
        },
        "files": [str(tmp_path)],
        "unknown": [],
    } == found.to_dict()
