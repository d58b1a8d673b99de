"""What a worker elsewhere does with a piece, and what is said before one is asked; the workers are in `tests/engines`."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tarviz import engines
from tarviz.engines.ray.joining import reach
from tarviz.model.errors import DataError, MissingPackageError, UsageError
from tarviz.ops import Func
from tarviz.pipeline import Pipeline
from tarviz.read.stream import ReadReport
from tarviz.runners.elsewhere import Elsewhere, elsewhere, obstacle, weight
from tarviz.runners.plans import ReaderPlan, Trail
from tarviz.runners.shares import Reader
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
        values = Walk(pipeline).values(ReaderPlan(pipeline, Reader()), 0, ReadReport(), Trail())

        parts = [part for piece in ReaderPlan(pipeline, Reader()).pieces(0, 0) for part in work(pipeline, piece, 0, report, True)]

        assert [(place.record, value) for place, value in values] == [(row.behind, row.value) for part in parts for row in part]
        assert [1, 39, 0] * 2 == [len(part) for part in parts]
        assert 80 == report.records

    def test_parts_are_the_same_when_they_are_made_again(self, urls: str) -> None:
        pipeline = Pipeline(urls, [Func(lambda record: {**record, "big": np.zeros(1 << 17, np.uint8)})])
        (piece, _) = ReaderPlan(pipeline, Reader()).pieces(0, 0)

        once, again = ([[row.key for row in part] for part in work(pipeline, piece, 0, ReadReport(), True)] for _ in range(2))

        assert once == again
        assert [1, 31, 8, 0] == [len(part) for part in once]

    def test_an_error_ends_it_where_nothing_after_it_is_wanted(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tar"
        write_shard(path, [(f"r{n}", {"cls": b"x" if n == 3 else b"%d" % n}) for n in range(6)])
        pipeline = Pipeline(path, "decode(cls)", select="cls")
        (piece,) = ReaderPlan(pipeline, Reader()).pieces(0, 0)

        stopped, through = (
            [row.value for part in work(pipeline, piece, 0, ReadReport(), stops) for row in part] for stops in (True, False)
        )

        assert [0, 1, 2] == stopped[:-1]
        assert isinstance(stopped[-1], DataError)
        assert [4, 5] == through[4:]


def test_which_versions_of_shards_are_read_elsewhere_is_known_here(urls: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def stream(_name: str, job: engines.Yielding, _plan: engines.EnginePlan) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(run=lambda tasks, ordered: (part for task in tasks for part in job(task)))  # in this process

    monkeypatch.setattr(engines, "stream", stream)
    pipeline, here, there = Pipeline(urls, "decode(cls)", select="cls"), Trail(), Trail()
    plan = ReaderPlan(pipeline, Reader())
    values = [value for _, value in Walk(pipeline).values(plan, 0, ReadReport(), here)]
    with Elsewhere("ray").begun(pipeline, work, stops=True) as workers:
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

    def test_what_cannot_travel(self, urls: str) -> None:
        assert obstacle(Pipeline(urls, "decode(cls)")) is None
        for pipeline, text in ((Pipeline("-"), "of this process alone"), (Pipeline(urls, [Func(print)]), "only where that is allowed")):
            error = obstacle(pipeline)

            assert error is not None
            assert text in str(error)


def test_weights() -> None:
    assert 3 + 8 + 4 == weight([b"abc", 5, ("ab", {"c": np.zeros(2, np.uint8)})])
