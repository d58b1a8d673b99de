"""What a worker elsewhere does with a piece, and what is said before one is asked; the workers are in `tests/engines`."""

from __future__ import annotations

import socket
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tarviz import engines, stores
from tarviz.engines.ray.joining import reach
from tarviz.model.errors import DataError, MissingPackageError, SchemaError, TarvizWarning, UsageError
from tarviz.ops import Func
from tarviz.pipeline import Pipeline
from tarviz.read.shard_index import cached_index
from tarviz.read.stream import ReadReport
from tarviz.runners.elsewhere import Elsewhere, MadeRow, elsewhere, obstacle, weight
from tarviz.runners.plans import ReaderPlan, Trail
from tarviz.runners.shares import Piece, ShareReader
from tarviz.runners.walk import Walk, work
from tarviz.samples import write_shard


@pytest.fixture
def urls(tmp_path: Path) -> str:
    for at in range(2):
        write_shard(tmp_path / f"n-{at}.tar", [(f"r{n:03d}", {"cls": b"%d" % n}) for n in range(40 * at, 40 * at + 40)])
    return str(tmp_path / "n-{0..1}.tar")


class TestWork:
    def test_rows_are_what_a_walk_makes(self, urls: str) -> None:
        pipeline, report = Pipeline(urls, "decode(cls)", select="cls"), ReadReport()
        values = Walk(pipeline).values(ReaderPlan(pipeline, ShareReader()), 0, ReadReport(), Trail())

        parts = [part for piece in ReaderPlan(pipeline, ShareReader()).pieces(0, 0) for part in work(pipeline, piece, 0, report, True)]

        assert [(place.record, value) for place, value in values] == [(row.behind, row.value) for part in parts for row in part]
        assert [1, 39, 0] * 2 == [len(part) for part in parts]
        assert 80 == report.records

    def test_parts_are_the_same_when_they_are_made_again(self, urls: str) -> None:
        pipeline = Pipeline(urls, [Func(lambda record: {**record, "big": np.zeros(1 << 17, np.uint8)})])
        (piece, _) = ReaderPlan(pipeline, ShareReader()).pieces(0, 0)

        once, again = ([[row.key for row in part] for part in work(pipeline, piece, 0, ReadReport(), True)] for _ in range(2))

        assert once == again
        assert [1, 31, 8, 0] == [len(part) for part in once]

    def test_an_error_ends_it_where_nothing_after_it_is_wanted(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tar"
        write_shard(path, [(f"r{n}", {"cls": b"x" if n == 3 else b"%d" % n}) for n in range(6)])
        pipeline = Pipeline(path, "decode(cls)", select="cls")
        (piece,) = ReaderPlan(pipeline, ShareReader()).pieces(0, 0)

        stopped, through = (
            [row.value for part in work(pipeline, piece, 0, ReadReport(), stops) for row in part] for stops in (True, False)
        )

        assert [0, 1, 2] == stopped[:-1]
        assert isinstance(stopped[-1], DataError)
        assert [4, 5] == through[4:]


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """An engine that does its tasks in this process, one after the other; what it was given."""
    given: list[Any] = []

    @contextmanager
    def stream(_name: str, job: engines.Yielding, _plan: engines.EnginePlan) -> Iterator[SimpleNamespace]:
        def run(tasks: Iterable[Any], ordered: bool) -> Iterator[Any]:
            for task in tasks:
                given.append(task)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", TarvizWarning)  # as workers do
                    parts = list(job(task))
                yield from parts

        yield SimpleNamespace(run=run)

    monkeypatch.setattr(engines, "stream", stream)
    return given


def rows_of(place: Elsewhere, pipeline: Pipeline, report: ReadReport, pieces: list[Piece] | None = None) -> list[MadeRow]:
    """What a place gives of a pipeline's first pass, or of these pieces."""
    with place.start(pipeline, work, stops=False) as workers:
        found = ReaderPlan(pipeline, ShareReader()).pieces(0, 0) if pieces is None else pieces
        return [row for _, row in workers.rows(found, 0, report)]


class TestTasks:
    def cuts(self, tasks: list[Any]) -> list[tuple[int, int, int | None, bool]]:
        """(shard, first record, end, whether it is the last of its shard) of each task."""
        return [(task.at, task.piece.start, task.piece.stop, task.last) for task in tasks]

    def test_plain_local_shards_are_cut_by_their_index_and_small_values_together(self, tmp_path: Path, tasks: list[Any]) -> None:
        for at in range(2):
            write_shard(tmp_path / f"{at}.tar", [(f"{at}/{n:03d}", {"cls": b"%d" % n}) for n in range(150)])
        pipeline, report = Pipeline(str(tmp_path / "{0..1}.tar"), "decode(cls)", select="cls"), ReadReport()

        assert [*range(150)] * 2 == [row.value for row in rows_of(Elsewhere("ray", count=2), pipeline, report)]
        assert [(0, 0, 64, False), (0, 64, 128, False), (0, 128, None, True), (1, 0, None, True)] == self.cuts(tasks)
        assert (2, 300) == (report.shards, report.records)

    def test_a_task_gives_no_more_than_what_may_wait(self, urls: str, tasks: list[Any]) -> None:
        pipeline = Pipeline(urls, [Func(lambda record: {**record, "big": np.zeros(2 << 20, np.uint8)})])

        assert 80 == len(rows_of(Elsewhere("ray", count=2), pipeline, ReadReport()))
        assert [(0, 0, None, True), (1, 0, 16, False), (1, 16, 32, False), (1, 32, None, True)] == self.cuts(tasks)

    def test_where_there_are_many_shards_none_is_indexed_for_it(self, urls: str, tasks: list[Any]) -> None:
        pipeline = Pipeline(urls, "decode(cls)", select="cls")
        pieces = ReaderPlan(pipeline, ShareReader()).pieces(0, 0)

        assert 160 == len(rows_of(Elsewhere("ray", count=1), pipeline, ReadReport(), pieces * 2))
        assert [(at, 0, None, True) for at in range(4)] == self.cuts(tasks)
        assert all(cached_index(stores.of(piece.url).stat(piece.url), pipeline.options) is None for piece in pieces)

    def test_records_that_were_picked_are_a_task(self, urls: str, tasks: list[Any]) -> None:
        pipeline = Pipeline(urls, "decode(cls)", select="cls")
        (first, _) = ReaderPlan(pipeline, ShareReader()).pieces(0, 0)

        rows = rows_of(Elsewhere("ray", count=2), pipeline, ReadReport(), [replace(first, only=(3, 7, 31))])
        assert [(3, 4), (7, 8), (31, 32)] == [(row.value, row.behind) for row in rows]

    def test_what_reading_met_there_is_said_here_once(self, tmp_path: Path, tasks: list[Any]) -> None:
        for at in range(2):
            write_shard(tmp_path / f"{at}.tar", [("a", {"cls": b"1"}), ("b", {"cls": b"2"})])
            data = bytearray((tmp_path / f"{at}.tar").read_bytes())
            data[1024 + 3] ^= 0x55
            (tmp_path / f"{at}.tar").write_bytes(data)
        pipeline, report = Pipeline(str(tmp_path / "{0..1}.tar"), on_error="skip"), ReadReport()
        with pytest.warns(TarvizWarning) as told:
            rows_of(Elsewhere("ray"), pipeline, report)

        assert ["E_CHECKSUM"] * 2 == [fault.code for fault in report.skipped]
        assert sorted({"E_CHECKSUM", *report.counts()}) == sorted(str(each.message).partition(" ")[0] for each in told)


class TestValues:
    def test_arrays_of_the_engine_s_memory_are_copied_where_they_are_kept(self, urls: str, tasks: list[Any]) -> None:
        pipeline = Pipeline(urls, [Func(lambda record: {"x": np.frombuffer(b"ab", np.uint8), "y": [(np.frombuffer(b"c", np.uint8),)]})])
        for place, keeps in ((Elsewhere("ray"), True), (Elsewhere("ray", keeps=False), False)):
            value = rows_of(place, pipeline, ReadReport())[0].value

            assert [keeps, keeps] == [array.flags.writeable for array in (value["x"], value["y"][0][0])]

    def test_what_is_made_here_of_a_value_may_be_an_error(self, urls: str, tasks: list[Any]) -> None:
        seen: list[Mapping[str, Any]] = []

        def fit(places: Mapping[str, Any], value: Any) -> Any:
            seen.append(places)
            if value == 3:
                raise SchemaError("is three")
            return -value

        pipeline = Pipeline(urls, "decode(cls)", select="cls")
        found = rows_of(Elsewhere("ray", fit=fit), pipeline, ReadReport())

        assert [0, -1, -2] == [row.value for row in found[:3]]
        assert ("is three", 4, "r003") == (found[3].value.message, found[3].behind, found[3].key)
        assert {"__key__": "r003", "__shard__": urls.replace("{0..1}", "0"), "__index__": 3} == seen[3]


def test_which_versions_of_shards_are_read_elsewhere_is_known_here(urls: str, tasks: list[Any]) -> None:
    pipeline, here, there = Pipeline(urls, "decode(cls)", select="cls"), Trail(), Trail()
    plan = ReaderPlan(pipeline, ShareReader())
    values = [value for _, value in Walk(pipeline).values(plan, 0, ReadReport(), here)]
    with Elsewhere("ray").start(pipeline, work, stops=True) as workers:
        rows = [row.value for _, row in workers.rows(list(plan.pieces(0, 0)), 0, ReadReport(), there)]

    assert values == rows
    assert 2 == len(here.versions)
    assert here.versions == there.versions


class TestWords:
    def test_an_unknown_engine_and_an_address_without_one(self, urls: str) -> None:
        with pytest.raises(UsageError, match=r"nothing named 'rya'.*Did you mean 'ray'"):
            Pipeline(urls).eager(engine="rya")
        with pytest.raises(UsageError, match=r"feeds Pipeline\.tf\(\) alone"):
            Pipeline(urls).eager(engine="tf-service")
        for engine in (None, "local"):
            with pytest.raises(UsageError, match="is that of a cluster"):
                Pipeline(urls).eager(engine=engine, address="auto")

    def test_local_is_this_process(self, urls: str) -> None:
        assert elsewhere(Pipeline(urls), "local", None, 2) is None
        assert 80 == len(list(Pipeline(urls).eager(engine="local", num_workers=2)))

    def test_an_engine_that_feeds_no_loops(self) -> None:
        with pytest.raises(UsageError, match=r"'local' does not feed loops.*ray"):
            engines.check_streams("local")

    def test_a_missing_package_says_how_it_is_installed(self, urls: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "ray", None)

        with pytest.raises(MissingPackageError, match=r"tarviz\[ray\]"):
            elsewhere(Pipeline(urls), "ray", None, None)

    @pytest.mark.parametrize("prefix", ["", "ray://"])
    def test_an_address_where_nobody_answers(self, prefix: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]

        with pytest.raises(UsageError, match=r"no Ray at .*127.0.0.1.*ray start --head"):
            reach(f"{prefix}127.0.0.1:{port}")

    def test_a_place_is_what_was_asked_for(self, urls: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "ray", module_from_spec(ModuleSpec("ray", None)))
        assert Elsewhere("ray", "auto", 3, False) == elsewhere(Pipeline(urls), "ray", "auto", 3, ordered=False)
        assert Elsewhere("ray") == elsewhere(Pipeline(urls, [Func(print)]), "ray", None, 0, send_functions=True)
        assert (place := Elsewhere("ray", count=7)) is elsewhere(Pipeline(urls), place, None, 2)
        with pytest.raises(UsageError, match="num_workers=-1"):
            elsewhere(Pipeline(urls), "ray", None, -1)
        with pytest.raises(UsageError, match="of this process alone"):
            elsewhere(Pipeline("-", [Func(print)]), "ray", None, 0, send_functions=True)
        with pytest.raises(UsageError, match="only where that is allowed"):
            Pipeline(urls, [Func(print)]).eager(engine="ray")

    def test_what_cannot_travel(self, urls: str) -> None:
        assert obstacle(Pipeline(urls, "decode(cls)")) is None
        for pipeline, text in ((Pipeline("-"), "of this process alone"), (Pipeline(urls, [Func(print)]), "only where that is allowed")):
            error = obstacle(pipeline)

            assert error is not None
            assert text in str(error)


def test_weights() -> None:
    assert 3 + 8 + 4 == weight([b"abc", 5, ("ab", {"c": np.zeros(2, np.uint8)})])
