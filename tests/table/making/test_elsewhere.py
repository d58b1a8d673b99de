"""Columns made by workers of an engine are those that threads of this process make."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="tables need the extra table")

from tarviz.model.errors import ChangedError, TarvizError, UsageError
from tarviz.table import opened
from tarviz.table.columns import NAMES, Part
from tarviz.table.making.shard_columns import made
from tests.conftest import sampled

QUERY = "SELECT shard, key, n, size, txt, cls FROM records ORDER BY shard, n"


@pytest.fixture
def shards(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    for at, count in enumerate((7, 1, 12)):
        make([(f"p{at}-{n}", {"txt": b"text %d" % n, "cls": b"%d" % (n % 3)}) for n in range(count)], f"in-{at}.tar")
    data = Path("in-2.tar").read_bytes()
    Path("in-3.tar").write_bytes(data[:5000])
    return "in-{0..3}.tar"


def fresh(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("TARVIZ_CACHE_DIR", str(folder))


@pytest.mark.parametrize("workers", [2, *sampled([1], 0)])
@pytest.mark.matrix
def test_rows_and_findings_are_the_same_and_kept(shards: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int):
    fresh(monkeypatch, tmp_path / "one")
    expected = opened(shards)
    rows = expected.sql(QUERY).fetchall()
    fresh(monkeypatch, tmp_path / "other")

    found = opened(shards, engine="local", workers=workers)

    assert rows == found.sql(QUERY).fetchall()
    assert expected.findings == found.findings
    assert expected.columns == found.columns
    again = opened(shards, engine="local", workers=workers, progress=lambda done, total: pytest.fail("a pass was made"))
    assert rows == again.sql(QUERY).fetchall()


def test_a_pass_that_nobody_wants_ends_between_two_shards(shards: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fresh(monkeypatch, tmp_path / "one")
    stop = threading.Event()
    done = []

    def progress(count: int, total: int) -> None:
        done.append(count)
        stop.set()

    table = opened(shards, engine="local")
    table.passes.progress = progress
    with pytest.raises(TarvizError, match="E_STOPPED"):
        table.passes.make({Part("value", "txt")}, stop)

    assert [1] == done


def test_a_shard_that_changed_meanwhile_is_an_error(shards: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fresh(monkeypatch, tmp_path / "one")
    table = opened(shards)
    Path("in-0.tar").write_bytes(Path("in-2.tar").read_bytes())
    shard = table.passes.kept[0]

    with pytest.raises(ChangedError, match="while its columns were made"):
        shard.take({NAMES}, made(shard.url, table.options, {NAMES}))


def test_an_address_needs_an_engine_and_memory_stays_here(shards: str, make: Any):
    with pytest.raises(UsageError, match="belongs to an engine"):
        opened(shards, address="auto")
    with pytest.raises(UsageError, match="of this process alone"):
        opened("memory://a/b.tar", engine="ray")
