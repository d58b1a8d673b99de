"""The progress that each verb tells: what it counts, of how many, and that it gets to the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarviz.cli.progress import Progress
from tarviz.commands.card import card
from tarviz.commands.cat import cat
from tarviz.commands.convert import convert
from tarviz.commands.create import create
from tarviz.commands.diff import diff
from tarviz.commands.first import first
from tarviz.commands.index import index
from tarviz.commands.join import join
from tarviz.commands.ls import ls
from tarviz.commands.pcat import pcat
from tarviz.commands.proc import proc
from tarviz.commands.sort import sort
from tarviz.commands.split import split
from tarviz.commands.sql import sql
from tarviz.commands.tsv import tsv
from tarviz.commands.verify import verify
from tarviz.testing.strategies import numbered_records, shard

URLS = ["a.tar", "b.tar"]
WHOLE = [("", "records", None, 12)]
EACH = [("", "records", None, 5), ("", "records", None, 7)]  # of a verb within a verb, which nobody sees
SHARDS = ("", "shards", 2, 2)

Bar = tuple[str, str, float | None, float]


@pytest.fixture
def bars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Bar]]:
    """Two shards of five and seven records; label, unit, total and what was counted of each bar that there was."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "cache"))
    Path("a.tar").write_bytes(shard(numbered_records(5)))
    Path("b.tar").write_bytes(shard(numbered_records(7, prefix="b")))
    made: list[Progress] = []
    begin = Progress.__init__

    def noted(bar: Progress, *args: Any, **options: Any) -> None:
        begin(bar, *args, **options)
        made.append(bar)

    monkeypatch.setattr(Progress, "__init__", noted)
    return lambda: [(bar.label, bar.unit, bar.total, bar.done) for bar in made]


def test_a_bar_counts_to_its_end(bars: Callable[[], list[Bar]], monkeypatch: pytest.MonkeyPatch):
    Path("plan.tsv").write_text("cls\n1\n2\n3\n")
    seen = 0
    cases: list[tuple[Callable[[], Any], list[Bar]]] = [
        (lambda: cat(URLS, "o.tar"), WHOLE),
        (lambda: cat(URLS, "o.tar", shuffle=3), WHOLE),
        (lambda: cat(URLS, "o-{}.tar"), [("cat", "shards", 2, 2), *EACH]),
        (lambda: pcat(URLS, "o.tar"), WHOLE),
        (lambda: pcat(URLS, "o.tar", weights=[1, 2]), WHOLE),
        (lambda: split(URLS, "o-{}.tar", count=4), WHOLE),
        (lambda: split(URLS, "o-{}.tar", count=4, jobs=1), [("measure", "shards", 2, 2), ("write", "tasks", 2, 2)]),
        (lambda: sort(URLS, "o.tar"), [("reading headers", "records", None, 12), ("copying", "records", 12, 12)]),
        (lambda: proc(URLS, "o.tar", op="keep(cls)"), WHOLE),
        (lambda: tsv(URLS, "o.tsv", fields="cls"), WHOLE),
        (lambda: create("plan.tsv", "o.tar"), [("", "records", None, 3)]),
        (lambda: join("a.tar", "b.tar", "o.tar"), [("", "records", None, 5)]),
        (lambda: first(URLS, field="txt"), WHOLE),
        (lambda: diff("a.tar", "b.tar"), EACH),
        (lambda: ls(URLS), [("b.tar", "shards", 2, 2)]),
        (lambda: index(URLS), [SHARDS]),
        (lambda: index(URLS, jobs=1), [("index", "shards", 2, 2), SHARDS]),
        (lambda: verify(URLS), [("b.tar", "records", None, 12)]),
        (lambda: verify(URLS, jobs=1), [("verify", "shards", 2, 2), ("a.tar", "records", None, 5), ("b.tar", "records", None, 7)]),
        (lambda: verify("a.tar", jobs=1), [("a.tar", "records", None, 5)]),
    ]
    for at, (work, expected) in enumerate(cases):
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(at))
        work()

        assert expected == bars()[seen:]
        seen += len(expected)


def test_bytes_are_counted_where_shards_are_converted(bars: Callable[[], list[Bar]]):
    convert(URLS, "o-{}.tfrecord")
    (bar,) = bars()

    assert ("convert", "bytes", sum(Path(name).stat().st_size for name in URLS)) == bar[:3]
    assert bar[2] == bar[3]


def test_columns_are_counted_by_shards(bars: Callable[[], list[Bar]]):
    pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
    sql("SELECT sum(cls) FROM records", URLS)

    assert [("making columns", "shards", None)] == [bar[:3] for bar in bars()]
    assert 2 <= bars()[0][3]


def test_the_sums_of_a_card_are_counted(bars: Callable[[], list[Bar]]):
    card(URLS)

    assert ("summing", "shards", 2, 2) in bars()


def test_what_was_indexed_is_not_indexed_again(bars: Callable[[], list[Bar]]):
    index("a.tar")
    index(URLS, jobs=1)

    assert [("", "shards", 1, 1), ("index", "shards", 1, 1), SHARDS] == bars()
