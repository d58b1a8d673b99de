"""The guard of skips, run on small suites of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.skips import LIST, allowed

ROOT = Path(__file__).parents[1]


def pytest_in(folder: Path, suite: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a suite of one file with this project's `conftest.py`."""
    (folder / "conftest.py").write_text(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom tests.conftest import *\n")
    (folder / "test_it.py").write_text(suite)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), *options, str(folder)]
    return subprocess.run(argv, capture_output=True, text=True, cwd=folder, check=False)


def run(folder: Path, reason: str, *options: str) -> subprocess.CompletedProcess[str]:
    return pytest_in(folder, f"import pytest\ndef test_one(): pytest.skip({reason!r})\ndef test_two(): pass\n", *options)


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
@pytest.mark.matrix
def test_an_unknown_skip_fails_the_run_and_is_named(tmp_path: Path, workers: tuple[str, ...]):
    done = run(tmp_path, "the moon is full", "--few-skips", *workers)

    assert 1 == done.returncode, done.stdout
    assert "test_it.py::test_one: the moon is full" in done.stdout


@pytest.mark.parametrize(("reason", "code"), [("no IPv6 here", 0), ("no IPv6 here, and no network", 1), ("there is no IPv6 here", 1)])
@pytest.mark.matrix
def test_a_known_skip_is_known_by_its_whole_reason(tmp_path: Path, reason: str, code: int):
    assert code == run(tmp_path, reason, "--few-skips").returncode


@pytest.mark.matrix
def test_without_the_option_nothing_changes(tmp_path: Path):
    assert 0 == run(tmp_path, "the moon is full").returncode


def test_every_line_of_the_list_is_a_pattern():
    assert allowed(LIST.read_text("utf-8"))
