"""Columns kept on the disk: what names a file, whose it is, and what is in it."""

from __future__ import annotations

import json
import re

import pytest
from pyarrow import parquet

import tarviz
from tarviz.model.config import options
from tarviz.model.types import URL
from tarviz.read.stream import ReadOptions
from tarviz.table.columns import NAMES, Part
from tarviz.table.making import kept_columns, shard_columns
from tests.full_disk import full_disk


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "own"))


def files() -> list[str]:
    return sorted(file.name for file in (options().cache_dir / "table").glob("*"))


CONTENT = [
    ("a", {"cls": b"1", "json": b'{"width": 9, "height": 9, "objects": [{"bbox": [1, 2, 3, 4]}]}'}),
    ("b", {"cls": b"2", "json": b"{"}),
]
PARTS = {NAMES, Part("value", "cls"), Part("value", "json")}


def test_what_is_known_of_a_shard_comes_back_from_its_file(make):
    path = URL(str(make(CONTENT)))
    (before,) = kept_columns.find_kept([path], ReadOptions())
    assert (set(), None, 0) == (before.parts, before.file, before.records)
    before.add(PARTS, ReadOptions(), look=lambda: None, grown=lambda _: None)()
    (after,) = kept_columns.find_kept([path], ReadOptions())

    assert ["url", "identity", "stem", "file", "records", "parts", "exts", "structures", "bad", "error", "counts", "called"] == [
        name for name in before.__slots__ if name not in ("memory", "sound")
    ]
    for name in ("url", "identity", "stem", "file", "records", "parts", "exts", "structures", "bad", "error", "counts", "called"):
        assert getattr(before, name) == getattr(after, name), name
    assert (PARTS, 2, ["cls", "json"], {"json": 1}) == (after.parts, after.records, after.exts, after.bad)
    assert (True, False) == (before.sound, after.sound)
    assert before.table() == after.table()
    assert set() == after.prove()
    assert after.sound


def test_a_file_is_named_by_the_shard_how_it_is_read_and_its_own_check_sum(make):
    path = make(CONTENT)
    tarviz.table(path).sizes("cls = 1")
    tarviz.table(path, key_split="last-dot").sizes("cls = 1")
    tarviz.table(path, duplicates="last").sizes("cls = 1")

    stems = {name.partition(".")[0] for name in files()}
    assert 3 == len(stems)
    assert all(re.fullmatch(r"\w+\.[0-9a-f]{8}\.parquet", name) for name in files())


def test_objects_of_a_shard_that_was_spelled_otherwise_are_of_its_name_now(make, monkeypatch):
    path = make(CONTENT)
    tarviz.table(path).sql("SELECT json FROM records").fetchall()
    monkeypatch.chdir(path.parent)

    assert [(path.name, "a")] == tarviz.table(path.name).sql("SELECT shard, key FROM objects").fetchall()
    (kept,) = kept_columns.find_kept([URL(path.name)], ReadOptions(strict=False))
    assert [path.name] * 2 == kept.table().column("shard").to_pylist()


def test_what_has_no_version_is_kept_in_memory_alone(make):
    (kept,) = kept_columns.find_kept([URL("-")], ReadOptions())

    assert ("", None) == (kept.stem, kept.file)


@pytest.mark.parametrize("change", [{}, {"version": 0}, {"records": 9}, {"identity": {}}, {"parts": 5}])
def test_a_file_that_says_something_else_counts_as_absent(make, change):
    path = URL(str(make(CONTENT)))
    (before,) = kept_columns.find_kept([path], ReadOptions())
    before.add(PARTS, ReadOptions(), look=lambda: None, grown=lambda _: None)()
    table = parquet.read_table(before.file)
    head = json.loads(table.schema.metadata[b"tarviz"]) | change
    parquet.write_table(table.replace_schema_metadata({b"tarviz": json.dumps(head).encode()}), before.file)
    (after,) = kept_columns.find_kept([path], ReadOptions())

    assert ((None, set(), 0) if change else (before.file, PARTS, 2)) == (after.file, after.parts, after.records)


def test_on_a_full_disk_columns_stay_in_memory(make):
    path = URL(str(make([(f"{'k' * 60}{at:03}", {"cls": b"1"}) for at in range(200)])))
    (kept,) = kept_columns.find_kept([path], ReadOptions())
    made = shard_columns.make_columns(path, ReadOptions(), {NAMES})
    with full_disk(4096):
        kept.take({NAMES}, made)()

    assert (None, 200, {NAMES}) == (kept.file, kept.records, kept.parts)
    assert 200 == len(kept.table())
    assert [] == files()
