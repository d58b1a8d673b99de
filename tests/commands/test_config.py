"""The verb `config`: values and where they come from."""

from __future__ import annotations

import json

import pytest

from tarviz import cli


def test_names_the_source_of_every_option(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("TARVIZ_WORKERS", "3")

    assert 0 == cli.main(["config", "--json"])

    options = json.loads(capsys.readouterr().out)["options"]
    assert {"value": 3, "from": "TARVIZ_WORKERS"} == options["workers"]
    assert "default" == options["max_ratio"]["from"]


def test_shows_the_files_that_were_looked_at(capsys: pytest.CaptureFixture[str]):
    cli.main(["config"])

    assert "no-config.toml  (not there)" in capsys.readouterr().out
