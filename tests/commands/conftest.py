"""What the tests of the tar tools find: shards to make, records and members as others read them, a shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarviz.model.errors import TarvizWarning
from tarviz.read import stream
from tarviz.testing.strategies import Records
from tests.conftest import wait_until

ROOT = Path(__file__).parents[2]


def plain(path: object, **options: Any) -> Records:
    """The records of a shard as (key, {extension: bytes})."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TarvizWarning)
        return [(record.key, {ext: bytes(value) for ext, value in record.items()}) for record in stream.records(path, **options)]  # type: ignore[arg-type]


def names(path: object) -> list[bytes]:
    """Member names as Python's `tarfile` sees them, byte for byte."""
    with tarfile.open(str(path), encoding="utf-8", errors="surrogateescape") as tar:
        return [member.name.encode("utf-8", "surrogateescape") for member in tar]


def listed(path: object) -> list[bytes]:
    """Member names as GNU tar lists them; bsdtar, where it is, must list as many, and both without a word."""
    gnu = subprocess.run(["tar", "--quoting-style=literal", "-tf", str(path)], capture_output=True, check=True)
    assert b"" == gnu.stderr
    if shutil.which("bsdtar"):
        bsd = subprocess.run(["bsdtar", "-tf", str(path)], capture_output=True, check=True)
        assert b"" == bsd.stderr
        assert len(gnu.stdout.splitlines()) == len(bsd.stdout.splitlines())
    return gnu.stdout.splitlines()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.tar"


@pytest.fixture
def tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Private folders are made in `tmp`, and none is left there."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield folder
    wait_until(lambda: [] == os.listdir(folder))


LARGE = os.urandom(200_000)


@pytest.fixture
def plan(tmp_path: Path) -> Callable[..., Path]:
    """`plan(text, name)` writes a plan beside two files it may name: `a b.jpg`, and `large.bin` with `LARGE` in it."""
    (tmp_path / "a b.jpg").write_bytes(b"small")
    (tmp_path / "large.bin").write_bytes(LARGE)

    def write(text: str, name: str = "plan.tsv") -> Path:
        (tmp_path / name).write_text(text, "utf-8")
        return tmp_path / name

    return write


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Folders by split and class, a picture and its metadata for each record."""
    root = tmp_path / "raw"
    for split in ("train", "val"):
        for label in ("cat", "dog", "n01 é"):
            for number in range(3):
                folder = root / split / label
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{number}.JPG").write_bytes(f"{split}{label}{number}".encode())
                (folder / f"{number}.meta.json").write_bytes(b"{}")
    return root


@pytest.fixture
def bash(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """`bash("tarviz cat a.tar | tarviz split …")` in the test's folder; every verb and old name is a command there."""
    tools = tmp_path / ".bin"
    tools.mkdir()
    for name in ("tarviz", *OLD_NAMES):
        script = tools / name
        target = "tarviz.__main__:run" if name == "tarviz" else f"tarviz.tarproc_scripts:{name}"
        module, _, function = target.partition(":")
        script.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom {module} import {function}\nsys.exit({function}())\n"
        )
        script.chmod(0o755)

    def run(line: str, *, env: dict[str, str] | None = None, **options: Any) -> subprocess.CompletedProcess[bytes]:
        path = f"{tools}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, **(env or {})}
        options = {"capture_output": True, "timeout": 100, "cwd": tmp_path, "check": False} | options
        return subprocess.run(["bash", "-o", "pipefail", "-c", line], env=environment, **options)  # type: ignore[no-any-return]

    return run


OLD_NAMES = ("tar2tsv", "tarcat", "tarscat", "tarcats", "tarcreate", "tarfirst", "tarpcat", "tarproc", "tarshow", "tarsort", "tarsplit")
