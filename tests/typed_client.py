"""What a type checker sees of tarviz in the code of those who installed it. `make check` runs it: it takes mypy half a minute."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import tarviz
from tarviz.read.keywords import ReadKeywords
from tarviz.read.stream import ReadOptions

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.timeout(900)

CLIENT = """
import tarviz

records = tarviz.records("a.tar", strict=False)
record = next(iter(records))
pipeline = tarviz.Pipeline("a.tar", "decode(jpg)", strict=True, on_error="skip")
shard_index = tarviz.index("a.tar")
listed = tarviz.ls("a.tar")
shown = tarviz.show("a.tar")
written = tarviz.convert("a.tar", "b.tfrecord")
made = pipeline.convert("b.tfrecord")
looked = tarviz.verify("a.tar")
eager = pipeline.eager()
data = tarviz.Dataset("a.tar")
options = tarviz.options()
for name in (record.key, record["jpg"], records.report.records):
    pass
try:
    listed.exit_code
except tarviz.TarvizError as error:
    fault = error
"""
WRONG = 'tarviz.records("a.tar", strickt=True)\n'
NAMES = re.findall(r"^(\w+) = ", CLIENT, re.MULTILINE)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What mypy says of the client, and of a line with a wrong keyword; strict for the client, silent about what it imports."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "client.py").write_text(CLIENT + "".join(f"reveal_type({name})\n" for name in NAMES) + WRONG)
    (folder / "mypy.ini").write_text("[mypy]\nstrict = True\nfollow_imports = silent\nignore_missing_imports = True\n")
    argv = [sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache" / "client"), "client.py"]
    environment = {"MYPYPATH": str(ROOT), "PATH": os.environ.get("PATH", "")}
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, env=environment, check=False).stdout


def test_no_name_of_a_strict_client_is_any(said: str):
    revealed = re.findall(r'client\.py:\d+: note: Revealed type is "(.*)"', said)

    assert len(NAMES) == len(revealed), said
    assert [] == [(name, kind) for name, kind in zip(NAMES, revealed, strict=True) if re.search(r"\bAny\b", kind)]
    errors = [line for line in said.splitlines() if ": error:" in line]
    assert 1 == len(errors), said


def test_a_wrong_keyword_is_found_before_the_program_runs(said: str):
    assert 'Unexpected keyword argument "strickt"' in said


def test_the_read_keywords_are_the_read_options():
    options = {each.name: each.type for each in fields(ReadOptions)}

    assert options == {name: getattr(kind, "__forward_arg__", kind) for name, kind in ReadKeywords.__annotations__.items()}


def test_every_public_name_is_seen_by_type_checkers():
    text = (ROOT / "tarviz" / "__init__.py").read_text("utf-8")
    declared = set(re.findall(r"import \w+ as (\w+)", text))

    assert set(tarviz.__all__) <= declared
