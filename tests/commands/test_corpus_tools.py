"""Every tar of the corpus through every tool: clean only if all was read and written, names byte for byte, no file elsewhere."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tarviz.commands.cat import cat
from tarviz.commands.create import create
from tarviz.commands.first import first
from tarviz.commands.pcat import pcat
from tarviz.commands.proc import proc
from tarviz.commands.show import show
from tarviz.commands.sort import sort
from tarviz.commands.split import split
from tarviz.commands.tsv import parse, tsv
from tarviz.formats.records import split_name
from tarviz.model.errors import DataError, TarvizError
from tarviz.model.types import to_bytes
from tarviz.read import stream
from tests.commands.conftest import plain
from tests.conftest import DATA, unpacked

FOLDERS = [*(DATA / "corpora" / name for name in ("generated", "webdataset", "aistore", "gotfdata")), unpacked()]
TARS = sorted(
    path for folder in FOLDERS for path in folder.glob("*") if ".t" in path.name and path.suffix not in (".json", ".tfrecord", ".record")
)
HARMLESS = ("B10", "B33")  # damage nobody can see; a valid tar
pytestmark = pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")


def tool_cat(path: Path, out: Path) -> Any:
    return cat(path, out)


def tool_split(path: Path, out: Path) -> Any:
    return split(path, f"{out}-{{shard:03d}}.tar", count=2)


def tool_sort(path: Path, out: Path) -> Any:
    return sort(path, out)


def tool_shuffle(path: Path, out: Path) -> Any:
    return sort(path, out, shuffle=True)


def tool_pcat(path: Path, out: Path) -> Any:
    return pcat([path], out, workers=2)


def tool_proc(path: Path, out: Path) -> Any:
    return proc(path, out, command="true", tmp=out.parent)


TOOLS: dict[str, Callable[[Path, Path], Any]] = {
    name.removeprefix("tool_"): tool for name, tool in list(globals().items()) if name.startswith("tool_")
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in; nothing may appear beside it, in a home of its own, or in the temporary folder."""
    places = [tmp_path / name for name in ("home", "tmp", "elsewhere")]
    for place in places:
        place.mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("HOME", str(places[0]))
    monkeypatch.setenv("TMPDIR", str(places[1]))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(places[2])
    before = _snapshot(Path("/etc"), Path("/"), tmp_path.parent)
    yield tmp_path / "work"
    assert [] == [path for place in places for path in place.rglob("*")]
    assert before == _snapshot(Path("/etc"), Path("/"), tmp_path.parent)


def _snapshot(*folders: Path) -> list[list[str]]:
    return [sorted(os.listdir(folder)) for folder in folders]


def run(tool: Callable[[Path, Path], Any], path: Path, out: Path) -> Any:
    """A tool's result, or the error it ended with."""
    try:
        return tool(path, out)
    except TarvizError as error:
        return error


def written(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())


def member_names(paths: list[Path]) -> list[bytes]:
    """Names as the header scan sees them, which the corpus tests of reading hold against four other readers."""
    found: list[bytes] = []
    for path in paths:
        for run in stream.members(str(path)):
            found += [to_bytes(member.name) for member in run]
    return found


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("path", TARS, ids=lambda path: path.name)
def test_clean_means_that_all_was_read_and_written(path: Path, tool: str, home: Path):
    result = run(TOOLS[tool], path, home / "out.tar")

    if isinstance(result, TarvizError):
        # Not a word of it under a final name, but for shards that were finished before.
        assert [] == written(home) or tool == "split"
        assert str(path) == result.shard
        assert result.code.startswith("E_")
        return
    whole = plain(path, strict=False, group="adjacent")
    out = [record for place in written(home) for record in plain(place, strict=False)]
    if result.exit_code == 0:
        assert path.name[:3] in HARMLESS or path.name[0] != "B"
        kept = [name for name in member_names([path]) if split_name(name)]
        assert sorted(kept) == sorted(member_names(written(home)))
        if tool in ("cat", "split", "pcat", "proc"):
            assert whole == out
        elif path.name[:3] != "A23":
            assert sorted(whole, key=lambda record: to_bytes(record[0])) == sorted(out, key=lambda record: to_bytes(record[0]))
    assert len(out) == result.records


@pytest.mark.parametrize(
    "path", [path for path in TARS if path.name[0] == "B" and path.name[:3] not in HARMLESS], ids=lambda path: path.name
)
def test_no_damage_passes_for_clean(path: Path, home: Path):
    for name, tool in {
        **TOOLS,
        "tsv": lambda path, out: tsv(path, out, fields="cls"),
        "first": lambda path, out: first(path, out, where="none such"),
    }.items():
        result = run(tool, path, home / f"{name}.out")
        assert isinstance(result, TarvizError) or result.exit_code in (1, 2), name
    assert show(str(path)).exit_code in (1, 2)


@pytest.mark.parametrize("path", TARS, ids=lambda path: path.name)
def test_skipping_never_raises_and_never_hides(path: Path, home: Path):
    try:
        result = cat(path, home / "out.tar", on_error="skip")
    except DataError as error:
        pytest.fail(f"skip raised {error}")

    assert len(plain(home / "out.tar", strict=False)) == result.records
    if path.name[0] == "B" and path.name[:3] not in HARMLESS:
        assert 1 == result.exit_code


@pytest.mark.parametrize("path", TARS, ids=lambda path: path.name)
def test_gnu_tar_and_bsdtar_list_what_they_could_list_before(path: Path, home: Path):
    for program in (["tar", "-tf"], ["bsdtar", "-tf"]):
        try:
            before = subprocess.run([*program, path], capture_output=True, check=False)
        except FileNotFoundError:
            pytest.skip(f"{program[0]} is not installed")
        result = run(tool_cat, path, home / "out.tar")
        if before.returncode or before.stderr or isinstance(result, TarvizError):
            continue
        after = subprocess.run([*program, home / "out.tar"], capture_output=True, check=False)
        assert (0, b"") == (after.returncode, after.stderr)


@pytest.mark.parametrize("path", [path for path in TARS if path.name[0] in "AS"], ids=lambda path: path.name)
def test_a_table_has_a_line_for_each_record_and_every_byte(path: Path, home: Path):
    result = run(lambda path, out: tsv(path, out, fields="txt cls", on_error="skip"), path, home / "out.tsv")

    assert not isinstance(result, TarvizError)
    rows = list(parse((home / "out.tsv").read_bytes().decode()))
    assert [(to_bytes(key), fields.get("txt"), fields.get("cls")) for key, fields in plain(path, strict=False, on_error="skip")][
        : len(rows)
    ] == [(row["__key__"], row["txt"], row["cls"]) for row in rows]


@pytest.mark.parametrize("path", [path for path in TARS if path.name[0] == "S"], ids=lambda path: path.name)
def test_hostile_names_go_round_through_a_plan(path: Path, home: Path):
    tsv(path, home / "plan.tsv", fields="txt", on_error="skip")
    create(home / "plan.tsv", home / "again.tar", on_error="skip")

    known = dict(plain(path, strict=False))
    assert all(known[key].get("txt") == fields.get("txt") for key, fields in plain(home / "again.tar", strict=False))
