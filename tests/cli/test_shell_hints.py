"""Hints in the words of the shell, and where results and warnings go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from tarviz.cli.shell_hints import in_shell_words
from tarviz.testing.strategies import numbered_records, shard
from tests.commands.conftest import ROOT

OPTIONS = [
    click.Option(["--duplicates"], type=click.Choice(["first", "last"])),
    click.Option(["--strict/--lenient", "strict"]),
    click.Option(["-j", "--workers"]),
    click.Option(["--unsafe"], is_flag=True),
]


def test_keywords_become_flags():
    for hint, expected in [
        ('Choose with duplicates="first" or duplicates="last".', "Choose with --duplicates first or --duplicates last."),
        ("Compare with the source, or read with strict=False.", "Compare with the source, or read with --lenient."),
        ("Use num_workers=1.", "Use --workers 1."),
        ("unsafe=True lets it pass.", "--unsafe lets it pass."),
        ("unsafe=False does not.", "unsafe=False does not."),
        ("For example rename(image=jpg).", "For example rename(image=jpg)."),
        ("Name the files.", "Name the files."),
    ]:
        assert expected == in_shell_words(hint, OPTIONS)


def tarviz(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tarviz", *words],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_error_at_the_shell_names_flags(tmp_path: Path):
    (tmp_path / "a.tar").write_bytes(shard([("a", {"cls": b"1"}), ("a", {"cls": b"2"})]))

    done = tarviz(tmp_path, "cat", "a.tar", "-o", "b.tar")

    assert 2 == done.returncode
    assert "Choose with --duplicates first or --duplicates last." in done.stderr


@pytest.mark.matrix
def test_warnings_go_to_standard_error_and_the_result_does_not(tmp_path: Path):
    (tmp_path / "a.tar").write_bytes(shard(numbered_records(2)) + b"x" * 1024)

    for words in (
        ("cat", "a.tar", "-o", "b.tar"),
        ("tsv", "a.tar", "-o", "b.tsv"),
        ("split", "a.tar", "-o", "c"),
        ("convert", "a.tar", "d.tfrecord"),
    ):
        done = tarviz(tmp_path, *words)
        quiet = tarviz(tmp_path, *words, "-q")

        assert 1 == done.returncode, done.stderr
        assert "W_TRAILING" in done.stderr
        assert "W_" not in done.stdout
        assert done.stdout
        assert (1, "") == (quiet.returncode, quiet.stderr)
