"""A conversion at work: how many processes share it, what is kept, what follows what, and what is told of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tarviz import engines
from tarviz.commands.convert import conversion, ranges, tasks
from tarviz.commands.convert.conversion import Conversion, processes
from tarviz.commands.convert.recipe import Recipe
from tarviz.commands.convert.tasks import ShardToConvert
from tarviz.model.errors import DataError, UsageError
from tarviz.model.types import URL
from tarviz.ops import Chain
from tarviz.outputs import Names
from tarviz.read.stream import ReadOptions
from tarviz.selection import SelectAll
from tarviz.testing.strategies import shard


def count(asked: Any, engine: str = "local", *, urls: tuple[str, ...] = ("a.tar", "b.tar"), out: str = "o-{}") -> int | None:
    shards = [ShardToConvert(at, URL(url), {}) for at, url in enumerate(urls)]
    return processes(asked, shards, Names(out), engine)


def test_it_is_this_process_alone_unless_more_are_asked_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(conversion, "processors", lambda: 6)
    monkeypatch.delenv("TARVIZ_WORKERS", raising=False)
    assert [1, 1, 3, 6, 6] == [count(asked) for asked in ("auto", 1, 3, 0, None)]
    monkeypatch.setenv("TARVIZ_WORKERS", "4")
    assert [1, 3, 4, 4] == [count(asked) for asked in ("auto", 3, 0, None)]
    with pytest.raises(UsageError, match="num_workers=-1 is less than 0"):
        count(-1)


def test_what_is_of_this_process_alone_is_worked_on_here():
    for urls, out in [(("-", "a.tar"), "o-{}"), (("memory://a/b.tar",), "o-{}"), (("a.tar",), "-"), (("a.tar",), "memory://o/{}")]:
        assert 1 == count(3, urls=urls, out=out)


def test_on_a_cluster_it_is_what_is_asked_for_or_what_there_is_room_for():
    assert [None, None, None, 3] == [count(asked, "ray") for asked in ("auto", 0, None, 3)]
    assert 3 == count(3, "ray", out="-")  # records come here to be written
    for urls, out in ((("-",), "o"), (("a.tar", "memory://a/b.tar"), "o"), (("a.tar",), "memory://o/{}")):
        with pytest.raises(UsageError, match="of this process alone"):
            count(3, "ray", urls=urls, out=out)


RECIPE = Recipe(Chain(), SelectAll(), {}, True, 0, ReadOptions())


class TestWork:
    """One call of `convert` at work in this process, over three shards."""

    SIZES = (3, 5, 4)

    @pytest.fixture
    def sources(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[ShardToConvert]:
        monkeypatch.chdir(tmp_path)
        for at, size in enumerate(self.SIZES):
            Path(f"{at}.tar").write_bytes(shard([(f"k{at}{n}", {"txt": b"x" * 50, f"f{at}": b"1"}) for n in range(size)]))
        return tasks.sources([URL(f"{at}.tar") for at in range(3)])

    @staticmethod
    def work(sources: list[ShardToConvert], out: str, told: list[float] | None = None, **more: Any) -> Conversion:
        settings = tasks.Settings(Names(out), None, **({"exists": "replace", "manifest": {"format": "tfrecord", "options": {}}} | more))
        tick = (lambda size: None) if told is None else told.append
        return Conversion(RECIPE, settings, sources, "local", engines.EnginePlan(1, tick=tick))

    def test_each_shard_has_an_output_and_all_is_told_of(self, sources: list[ShardToConvert]):
        told: list[float] = []
        work = self.work(sources, "o-{}", told)
        made = work.each(False)

        assert [("o-1", 3), ("o-2", 5), ("o-3", 4)] == [(written.url, written.records) for written in made]
        assert (12, 3, {"txt", "f0", "f1", "f2"}) == (work.report.records, work.report.shards, work.seen)
        assert sum(Path(f"{at}.tar").stat().st_size for at in range(3)) == sum(told)

    def test_what_is_proven_is_kept_and_counts_as_done(self, sources: list[ShardToConvert]):
        self.work(sources, "o-{}").each(False)
        before = [Path(f"o-{at}").read_bytes() for at in (1, 2, 3)]
        Path("o-2").unlink()
        told: list[float] = []
        work = self.work(sources, "o-{}", told)
        made = work.each(True)

        assert [True, False, True] == [written.kept for written in made]
        assert before == [Path(f"o-{at}").read_bytes() for at in (1, 2, 3)]
        assert (5, {"txt", "f1"}) == (work.report.records, work.seen)
        assert sum(Path(f"{at}.tar").stat().st_size for at in range(3)) == sum(told)
        assert [False] * 3 == [written.kept for written in self.work(sources, "o-{}").each(False)]

    def test_one_that_is_damaged_stops_no_other(self, sources: list[ShardToConvert]):
        Path("1.tar").write_bytes(Path("1.tar").read_bytes()[:2000])
        work = self.work(sources, "o-{}")
        with pytest.raises(DataError, match=r"1\.tar"):
            work.each(False)

        assert ["o-1", "o-3"] == sorted(path.name for path in Path().glob("o-?"))
        assert (7, {"txt", "f0", "f2"}) == (work.report.records, work.seen)

    def test_an_output_that_is_there_is_refused_where_that_is_asked(self, sources: list[ShardToConvert]):
        Path("o-2").write_bytes(b"mine")
        with pytest.raises(UsageError, match="o-2"):
            self.work(sources, "o-{}", exists="error").each(False)
        assert ["o-2"] == [path.name for path in Path().glob("o-?")]
        Path("p").write_bytes(b"mine")
        with pytest.raises(UsageError, match="p"):
            self.work(sources, "p", exists="error").sequence(False)
        assert b"mine" == Path("p").read_bytes()

    def test_outputs_follow_each_other_over_all_shards(self, sources: list[ShardToConvert]):
        told: list[float] = []
        work = self.work(sources, "o-{shard}", told, max_size=500)
        made = work.sequence(False)

        whole = self.work(sources, "w").sequence(False)
        assert [12] == [written.records for written in whole]
        assert Path("w").read_bytes() == b"".join(Path(written.url).read_bytes() for written in made)
        assert (12, True) == (sum(written.records for written in made), len(made) > 2)
        assert all(written.bytes <= 500 for written in made)
        assert (12, {"txt", "f0", "f1", "f2"}) == (work.report.records, work.seen)
        assert sum(Path(f"{at}.tar").stat().st_size for at in range(3)) == sum(told)

    def test_a_sequence_goes_on_behind_what_is_proven(self, sources: list[ShardToConvert]):
        made = self.work(sources, "o-{shard}", max_size=500).sequence(False)
        before = [Path(written.url).read_bytes() for written in made]
        Path(made[-1].url).unlink()
        work = self.work(sources, "o-{shard}", max_size=500)
        again = work.sequence(True)

        assert [True] * (len(made) - 1) + [False] == [written.kept for written in again]
        assert before == [Path(written.url).read_bytes() for written in again]
        assert made[-1].records <= work.report.records < 12
        assert [True] * len(made) == [written.kept for written in self.work(sources, "o-{shard}", max_size=500).sequence(True)]

    def test_shards_are_cut_where_others_would_wait_for_them_or_files_grow(
        self, sources: list[ShardToConvert], monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(ranges, "PIECE", 1 << 10)
        settings = tasks.Settings(Names("o-{}"), None, exists="replace", manifest={"format": "tfrecord", "options": {}})
        cuts: list[tuple[int, int]] = []
        work = Conversion(RECIPE, settings, sources, "local", engines.EnginePlan(), lambda *cut: cuts.append(cut))

        assert [3, 5, 4] == [written.records for written in work.each(False)]
        assert [12] == [written.records for written in replace(work, _settings=replace(settings, names=Names("w"))).sequence(False)]
        assert Path("w").read_bytes() == b"".join(Path(f"o-{at}").read_bytes() for at in (1, 2, 3))
        assert [(0, 0), (3, 12)] == cuts

    def test_no_output_is_one_of_the_inputs(self, sources: list[ShardToConvert]):
        for out, more in (("{shard}.tar", {}), ("1.tar", {}), ("{shard}.tar", {"max_size": 100})):
            with pytest.raises(UsageError, match="one of the inputs"):
                self.work(sources, out, **more)
