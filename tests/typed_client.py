"""What a type checker sees of tarviz in the code of those who installed it. `make check` runs it: it takes mypy half a minute."""

from __future__ import annotations

import inspect
import json
import os
import pydoc
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import click
import pytest

import tarviz
from tarviz import run_keywords
from tarviz.model import plugins
from tarviz.run_keywords import TfKeywords

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
written = tarviz.convert("a.tar", "b.tfrecord", types={"cls": "int64"}, strict=True, where="cls = 3")
made = pipeline.convert("b.tfrecord", max_shard_size="100MB", num_workers=2)
looked = tarviz.verify("a.tar", strict=True, deep=True, examples={"cls": "int64"})
eager = pipeline.eager(batch=32, shuffle=1000, repeat=None, num_workers=2, reshare=True)
numbered = pipeline.indexed(epoch=3)
batches = pipeline.torch(shuffle=10, rank=0, world_size=2)
mixed = tarviz.Pipeline(tarviz.mix({"a.tar": 0.7, "b.tar": 0.3}, stop="longest"), "decode(jpg)")
data = tarviz.Dataset("a.tar")
options = tarviz.options(workers=4, block_size="1MiB")
joined = tarviz.cat(["a.tar", "b.tar"], "c.tar", count=10, key_split="last-dot", keys=("a", "b"))
paired = tarviz.join("a.tar", "labels.csv", "c.tar", on="key", fields={"label": "cls"}, how="inner", where="cls = 3").unused
found = tarviz.first("a.tar", where="cls = 3", group="shard")
answer = tarviz.sql("SELECT count(*) FROM records", "a.tar")
relation = tarviz.table("a.tar", memory="2GB", where="cls = 3").sql("SELECT 1")
scores = tarviz.table("a.tar").search("boat", 3).score
nearest: int = len(tarviz.table("a.tar").similar("0001", by="npy", count=5))
sorted_tar = tarviz.sort("a.tar", "b.tar", by="key", on_error="skip")
processed = tarviz.proc("a.tar", "b.tar", op="decode(jpg)|encode(jpg)", mode="tar", strict=False)
with tarviz.writer("b-{}.tar", max_shard_size="1GB", exists="error") as sink:
    sink.write("0001", {"cls": 3, "txt": "a"})
finished = sink.result
shards = tarviz.write([{"cls": 3}], "c-{}.tar", workers=2, progress=False, fields={"cls": "cls"})
for name in (record.key, record["jpg"], records.report.records):
    pass
batches.loader(8, pad=True, num_workers=2)
pipeline.tf(batch=64, prefetch=2, deterministic=False, engine="ray")
with tarviz.options(workers=4) as inside:
    workers = inside.workers
try:
    listed.exit_code
except tarviz.TarvizError as error:
    fault = error
    reveal_type(fault)
"""
WRONG = [
    'tarviz.records("a.tar", strickt=True)',
    'tarviz.recrods("a.tar")',
    "pipeline.tf(bacth=64)",
    'pipeline.tf(batch="64")',
    "pipeline.eager(shufle=3)",
    "pipeline.eager(reshare='yes')",
    "pipeline.torch(shufle=3)",
    "pipeline.indexed(epoch='3')",
    "tarviz.mix({'a.tar': 'much'})",
    "tarviz.mix({'a.tar': 1}, stop='never')",
    'pipeline.convert("b.tfrecord", stricct=True)',
    'tarviz.convert("a.tar", "b.tfrecord", stricct=True)',
    'tarviz.convert("a.tar", "b.tfrecord", types={"cls": "int65"})',
    'tarviz.cat("a.tar", nosuch=1)',
    'tarviz.sql("SELECT 1", "a.tar", nosuch=4)',
    'tarviz.ls("a.tar", group="shards")',
    'tarviz.table("a.tar", nosuch=1)',
    'tarviz.table("a.tar").slq("SELECT 1")',
    'tarviz.table("a.tar").similar(3)',
    'tarviz.writer("b.tar", max_size=3)',
    'tarviz.write([], "b.tar", exists="maybe")',
    'sink.write("0001")',
    "tarviz.options(wrokers=4)",
    'tarviz.options(workers="many")',
]
NAMES = re.findall(r"^(?:    )?(\w+) = ", CLIENT, re.MULTILINE)
SCRIPT = CLIENT + "".join(f"reveal_type({name})\n" for name in NAMES if name != "fault") + "\n".join(WRONG) + "\n"
FIRST_WRONG = SCRIPT.count("\n") - len(WRONG) + 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the script of a user lies: lines that are right, then lines with one mistake each."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "client.py").write_text(SCRIPT)
    return folder


@pytest.fixture(scope="module")
def by_mypy(folder: Path) -> str:
    """What mypy says of the script; strict for it, silent about what it imports."""
    (folder / "mypy.ini").write_text("[mypy]\nstrict = True\nfollow_imports = silent\nignore_missing_imports = True\n")
    argv = [sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache" / "client"), "client.py"]
    environment = {"MYPYPATH": str(ROOT), "PATH": os.environ.get("PATH", "")}
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, env=environment, check=False).stdout


@pytest.fixture(scope="module")
def by_pyright(folder: Path) -> dict[str, list[tuple[int, str]]]:
    """What pyright says of the script: (line, message) by severity."""
    pytest.importorskip("pyright", reason="pyright is not installed")
    if shutil.which("node") is None:
        pytest.skip("node is not installed: pyright needs it")
    settings = {"include": ["client.py"], "extraPaths": [str(ROOT)], "typeCheckingMode": "strict", "reportMissingTypeStubs": False}
    settings |= {"reportUnusedExpression": False, "reportUnusedVariable": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    argv = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    if not done.stdout.lstrip().startswith("{"):  # npm could not bring it
        pytest.skip("pyright cannot be had: no registry of npm packages is reached")
    said: dict[str, list[tuple[int, str]]] = {"error": [], "warning": [], "information": []}
    for each in json.loads(done.stdout)["generalDiagnostics"]:
        said[each["severity"]].append((each["range"]["start"]["line"] + 1, each["message"]))
    return said


def test_mypy_finds_every_wrong_line_and_no_right_one(by_mypy: str):
    found = {int(number) for number in re.findall(r"client\.py:(\d+): error:", by_mypy)}

    assert set(range(FIRST_WRONG, FIRST_WRONG + len(WRONG))) == found, by_mypy


def test_pyright_finds_every_wrong_line_and_no_right_one(by_pyright: dict[str, list[tuple[int, str]]]):
    found = {number for number, _ in by_pyright["error"]}

    assert set(range(FIRST_WRONG, FIRST_WRONG + len(WRONG))) == found, by_pyright["error"]


def test_no_name_of_a_strict_client_is_any(by_mypy: str):
    revealed = re.findall(r'client\.py:\d+: note: Revealed type is "(.*)"', by_mypy)

    assert len(NAMES) == len(revealed), by_mypy
    told = [kind.replace("tuple[Any, ...]", "shape") for kind in revealed]  # what NumPy calls an array of any number of axes
    assert [] == [(name, kind) for name, kind in zip(NAMES, told, strict=True) if re.search(r"\bAny\b", kind)]


def test_no_name_is_unknown_to_pyright(by_pyright: dict[str, list[tuple[int, str]]]):
    revealed = [message for _, message in by_pyright["information"] if message.startswith("Type of")]

    assert len(NAMES) == len(revealed)
    assert [] == [message for message in revealed if "Unknown" in message]


@pytest.mark.parametrize("runner", ["indexed", "convert"])
def test_the_keywords_of_a_runner_are_its_options(runner: str):
    """Names, defaults and types of those that do not take them from there (`run_keywords.takes`)."""
    keywords = get_type_hints(getattr(run_keywords, f"{runner.capitalize()}Keywords"), include_extras=True)
    run = tarviz.convert if runner == "convert" else plugins.load("runners", runner).run
    kinds = get_type_hints(run.__init__ if inspect.isclass(run) else run)
    taken = {name: part.default for name, part in inspect.signature(run).parameters.items() if part.kind is part.KEYWORD_ONLY}
    taken = {name: default for name, default in taken.items() if runner != "convert" or name not in ("chain", "select", "seed")}

    assert taken == {name: kind.__metadata__[0].default for name, kind in keywords.items()}
    assert [] == [name for name in taken if kinds[name] != keywords[name].__origin__]


def test_help_shows_every_option_of_a_runner():
    shown = pydoc.plain(pydoc.render_doc(tarviz.Pipeline.tf))

    assert "batch: int | None = None" in shown
    assert "repeat: passes over the shards, each an epoch; None: without end [1]" in shown
    assert [] == [name for name in TfKeywords.__annotations__ if f"        {name}: " not in shown]


@pytest.mark.parametrize("verb", sorted(set(plugins.names("commands")) & set(tarviz.__all__) - {"config", "index"}))
def test_options_of_the_shell_are_those_of_python(verb: str):
    """One definition each: an option of the command that the function has too has the same default there."""
    function, command = getattr(tarviz, verb), plugins.load("commands", verb).command
    known = inspect.signature(function).parameters
    offered = {option.name: option.default for option in command.params if isinstance(option, click.Option) and option.name in known}
    stated = {name: default for name, default in offered.items() if isinstance(default, str | int | float)}  # the rest: the function's
    same = {name: known[name].default or ("local" if name == "engine" else "") for name in stated}

    assert {name: str(default) for name, default in same.items()} == {name: str(default or "") for name, default in stated.items()}


def test_every_public_name_is_seen_by_type_checkers():
    text = (ROOT / "tarviz" / "__init__.py").read_text("utf-8")
    declared = set(re.findall(r"import \w+ as (\w+)", text)) | {"table", "__version__"}

    assert set(tarviz.__all__) <= declared


def test_all_holds_the_verbs_and_dir_nothing_else():
    assert set(plugins.names("commands")) <= set(tarviz.__all__)
    assert sorted(tarviz.__all__) == dir(tarviz)
