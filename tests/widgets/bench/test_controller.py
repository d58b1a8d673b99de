"""The bench: exact counts by an injected clock, stages, verdict, sweep, peers, Stop, baseline; no GUI."""

from __future__ import annotations

import inspect
import json
import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarviz.model.errors import SchemaError, StoreError, UsageError
from tarviz.ops import Func
from tarviz.pipeline import Pipeline
from tarviz.read import stream
from tarviz.runners.eager import Eager
from tarviz.runners.stage_timer import StageTimer
from tarviz.widgets.bench import machine
from tarviz.widgets.bench.bench_jobs import Trial, count_of
from tarviz.widgets.bench.chart import chart
from tarviz.widgets.bench.controller import BenchRun
from tarviz.widgets.bench.rate_meter import Figures, Meter, half_interval, line
from tarviz.widgets.bench.result import BenchResult, TrialRow
from tarviz.widgets.bench.stage_groups import Group, count_steps, groups
from tarviz.widgets.bench.verdict import verdict
from tarviz.widgets.host.rpc import answer
from tests.conftest import wait_until
from tests.full_disk import full_disk
from tests.widgets.conftest import png, tar


class Clock:
    """A clock that only moves when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def steady(clock: Clock, rate: float, *, batch: int = 1, first: float = 0.0) -> Iterator[list[int]]:
    """Batches that come at a known rate; the first takes `first` seconds longer."""
    clock.now += first
    while True:
        clock.now += batch / rate
        yield list(range(batch))


@pytest.fixture
def shards(tmp_path: Path) -> str:
    for shard in range(2):
        records = [(f"p/n{shard}{number:03d}", {"png": png((number, 40, 90), (24, 16)), "cls": b"%d" % number}) for number in range(50)]
        tar(tmp_path / f"s-{shard}.tar", records)
    return str(tmp_path / "s-{0..1}.tar")


def done(*args: Any, **options: Any) -> BenchRun:
    run = BenchRun(*args, **options)
    assert run.wait(60)
    return run


class TestCounts:
    @pytest.mark.parametrize("rate", [7.0, 100.0, 123_456.0])
    @pytest.mark.parametrize("batch", [1, 32])
    @pytest.mark.parametrize("first", [0.0, 3.0])
    @pytest.mark.matrix
    def test_a_known_rate_is_measured_within_two_percent(self, rate: float, batch: int, first: float):
        clock = Clock()
        run = done(
            steady(clock, rate, batch=batch, first=first), seconds=max(5.0, 20 * batch / rate), per_item=batch, clock=clock, cpu=clock
        )
        row = run.result.rows[0]

        assert row.rate == pytest.approx(rate, rel=0.02)
        assert row.mean("first_seconds") == pytest.approx(first + batch / rate)
        assert batch == row.runs[0].first_records

    def test_neither_the_first_batch_nor_any_other_is_counted_twice(self):
        """tfds.benchmark adds the first batch to all of them once more, and divides all by the time behind the first."""
        clock = Clock()
        meter = Meter(clock)
        for second in range(1, 11):
            clock.now = 100.0 + second
            meter.arrive(50)
        figures = meter.figures()

        assert (500, 450, 50, 9.0, 50.0) == (figures.total_records, figures.records, figures.first_records, figures.seconds, figures.rate)

    def test_warm_up_is_cut_by_time_behind_the_first_batch(self):
        clock = Clock()
        meter = Meter(clock, warmup=2.0)
        clock.now += 60  # the first batch takes a minute
        meter.arrive(10)
        for _ in range(20):  # slow for two seconds
            clock.now += 0.1
            meter.arrive(1)
        for _ in range(100):
            clock.now += 0.1
            meter.arrive(10)

        assert 100.0 == pytest.approx(meter.figures().rate)
        assert 60.0 == pytest.approx(meter.figures().first_seconds)

    def test_warm_up_is_half_of_the_time_at_most(self):
        clock = Clock()
        run = done(steady(clock, 8.0), seconds=20, warmup=60, clock=clock, cpu=clock)

        assert 10.0 == run.result.rows[0].mean("seconds")

    @pytest.mark.parametrize(("warmup", "measured"), [(0.5, 15.5), (60.0, 8.0)])
    def test_a_part_of_the_graph_takes_a_third_of_the_time_and_one_round(self, warmup: float, measured: float):
        clock = Clock()
        run = done(steady(clock, 8.0), seconds=48, warmup=warmup, repeat=2, clock=clock)
        begun: list[Any] = []
        start = lambda: begun.append((1, 0) for _ in steady(clock, 8.0)) or begun[-1]  # noqa: E731
        run.trials = [Trial(kind, kind, start) for kind in ("tarviz", "stage")]
        run.again()
        assert run.wait(60)

        assert [2, 1] == [len(row.runs) for row in run.result.rows]
        assert [48 - min(warmup, 24), measured] == [row.runs[0].seconds for row in run.result.rows]
        assert [inspect.GEN_CLOSED] * 3 == list(map(inspect.getgeneratorstate, begun))

    def test_percentiles_are_of_the_time_between_batches(self):
        clock = Clock()
        meter = Meter(clock)
        meter.arrive(1)
        for gap in [0.010] * 98 + [0.5, 0.5]:
            clock.now += gap
            meter.arrive(1)
        figures = meter.figures()

        assert (10.0, 10.0) == (pytest.approx(figures.p50), pytest.approx(figures.p90))
        assert figures.p99 > 400

    def test_one_batch_has_no_rate(self):
        clock = Clock()
        meter = Meter(clock)
        clock.now += 2
        meter.arrive(8)

        assert math.isnan(meter.figures().rate)
        assert 2.0 == meter.figures().first_seconds
        assert Figures() == Figures.of(Figures().to_dict()) or math.isnan(Figures.of(Figures().to_dict()).rate)

    def test_the_interval_covers_a_rate_that_wavers(self):
        random = np.random.default_rng(0)
        clock = Clock()
        meter = Meter(clock)
        for _ in range(2000):
            clock.now += random.gamma(4, 0.01 / 4)
            meter.arrive(1)
        figures = meter.figures()

        assert abs(figures.rate - 100) < figures.margin < 15

    def test_the_line_leaves_the_first_batch_out(self):
        points = line([(0.0, 0, 0), (9.0, 100, 0), (9.5, 150, 5_000_000), (10.0, 200, 10_000_000)])

        assert [(9.5, 100.0, 10.0), (10.0, 100.0, 10.0)] == points

    @pytest.mark.parametrize("count", [1, 10, 64])
    def test_a_trial_ends_with_its_count(self, shards: str, count: int):
        run = done(shards, count=count, batch=1, seconds=30)

        assert count == run.result.rows[0].runs[0].total_records

    def test_half_an_interval(self):
        assert math.isnan(half_interval([1.0]))
        assert 0.0 == half_interval([3.0, 3.0, 3.0])


class TestItems:
    @pytest.mark.parametrize(
        ("item", "count"),
        [
            ((np.zeros((32, 8)), np.zeros(32)), 32),
            ({"a": np.zeros((7, 2)), "b": np.zeros((7,))}, 7),
            ((np.zeros((224, 224, 3)), 5), 1),
            (np.zeros((224, 224, 3)), 1),
            ("text", 1),
            ({"jpg": memoryview(b"12"), "cls": memoryview(b"34")}, 1),
        ],
    )
    def test_a_batch_counts_by_its_length(self, item: Any, count: int):
        assert count == count_of(item)

    def test_a_function_that_makes_items(self):
        run = done(lambda: iter(range(50)), seconds=5)

        assert 50 == run.result.rows[0].runs[0].total_records

    def test_records_are_items(self, shards: str):
        run = done(stream.records(shards), seconds=5)

        assert 100 == run.result.rows[0].runs[0].total_records

    @pytest.mark.parametrize("source", [3, None])
    def test_what_gives_no_items_is_refused(self, source: Any):
        with pytest.raises(UsageError, match="cannot be measured"):
            BenchRun(source)

    def test_options_of_shards_are_refused_for_items(self):
        with pytest.raises(UsageError, match="for shards"):
            BenchRun([1, 2], "decode(jpg)")


class TestStages:
    def test_every_stage_is_timed(self, shards: str):
        run = done(shards, "decode(png)|resize(png, (8, 8))|flip(png)", select=("png", "cls"), seconds=0.3, batch=8)
        stages = [stage for _, stage, _, _ in run.result.stages()]

        assert ["read", "scan", "cut", "draw", "decode", "resize", "flip", "pick", "batch"] == stages
        assert 0.5 < sum(share for *_, share in run.result.stages()) <= 1.01

    def test_a_slow_op_is_the_limit(self, shards: str):
        clock = Clock()

        def slow(record: dict) -> dict:
            clock.now += 0.002
            return record

        run = done(shards, [Func(slow, output_types={"png": "bytes", "cls": "bytes"})], seconds=0.5, batch=8, clock=clock, cpu=clock)

        assert run.result.verdict.startswith("func is the limit: 2.0 of 2.0 ms per record")
        assert 500 == pytest.approx(run.result.rows[0].rate)

    def test_a_slow_store_is_the_limit(self, shards: str):
        """What reading waits for is told from what it works, by the thread's processor time."""
        clock, cpu = Clock(), Clock()
        timer = StageTimer(clock, cpu)

        def blocks() -> Iterator[Any]:
            clock.now += 3.0  # waits
            with_work = next(iter(stream.blocks(stream.shards(shards)[0])))
            clock.now += 1.0
            cpu.now += 1.0  # works
            yield with_work

        list(timer.read(blocks()))
        busy = groups(timer, 0)[0].busy

        assert (3.0, 1.0) == (pytest.approx(busy["read"]), pytest.approx(busy["scan"]))

    def test_workers_are_a_group_of_their_own(self, shards: str):
        run = done(shards, "decode(png)|resize(png, (64, 64))", workers=2, seconds=0.4)

        assert ["reading thread", "2 workers"] == [group.name for group in run.result.groups]
        assert {"decode", "resize", "pick"} == set(run.result.groups[1].busy)
        assert 0 < run.result.groups[1].share <= 1

    def test_it_measures_what_the_eager_runner_yields(self, shards: str):
        pipeline = Pipeline(shards, "decode(png)|flip(png)", select=("png", "cls"), seed=5)
        measured, plain = list(Eager(pipeline, batch=8).measure(StageTimer())), list(pipeline.eager(batch=8))

        assert len(plain) == len(measured)
        for one, other in zip(measured, plain, strict=True):
            np.testing.assert_array_equal(one[0], other[0])
            assert list(one[1]) == list(other[1])

    def test_bytes_are_those_of_the_payloads(self, shards: str):
        timer = StageTimer()
        steps = list(count_steps(Eager(Pipeline(shards), batch=10).measure(timer), timer))
        size = sum(len(record[ext]) for record in stream.records(shards) for ext in record)

        assert [10] * 10 == [records for records, _ in steps]
        assert size == pytest.approx(sum(size for _, size in steps), rel=0.02)

    def test_a_chain_that_does_not_fit_is_said_at_once(self, shards: str):
        with pytest.raises(SchemaError, match="resize"):
            BenchRun(shards, "resize(png, (8, 8))")

    def test_an_op_that_fails_ends_its_row_with_the_reason(self, shards: str):
        def boom(record: dict) -> dict:
            raise RuntimeError("no luck")

        run = done(shards, [Func(boom, output_types={"png": "bytes", "cls": "bytes"})], seconds=0.3)

        assert "no luck" in run.result.rows[0].error
        assert ("failed", 2) == (run.result.state, run.result.exit_code)


class TestVerdict:
    def row(self, rate: float, kind: str = "tarviz", label: str = "x", **setting: Any) -> TrialRow:
        return TrialRow(label, kind, setting, runs=[Figures(rate=rate, margin=0.01)])

    def test_one_thread(self):
        groups = [Group("this thread", 1, 10.0, {"read": 0.2, "decode": 8.1, "batch": 1.3})]
        head, rest = verdict([self.row(100)], groups, 1000, 2)

        assert ("decode is the limit", "8.1 of 9.6 ms per record, reading waits 2 % of the time") == (head, rest)

    def test_busy_workers(self):
        groups = [Group("reading thread", 1, 10.0, {"read": 1.0, "scan": 1.0}), Group("2 workers", 2, 10.0, {"decode": 19.0})]

        assert "2 workers busy 95 % of the time, more workers may help" in verdict([self.row(100)], groups, 1000, 8)[1]
        assert "there are 2 cores" in verdict([self.row(100)], groups, 1000, 2)[1]

    def test_a_busy_reader_behind_idle_workers(self):
        groups = [Group("reading thread", 1, 10.0, {"read": 0.5, "scan": 9.0}), Group("4 workers", 4, 10.0, {"decode": 4.0})]
        head, rest = verdict([self.row(100)], groups, 1000, 8)

        assert "scanning headers is the limit" == head
        assert "more workers do not help" in rest

    def test_what_more_workers_give(self):
        rows = [self.row(100, workers=0, batch=8), self.row(190, workers=2, batch=8), self.row(103, workers=4, batch=8)]

        assert "2 workers give 1.9×, 4 workers give nothing on 2 cores" in verdict(rows, [], 0, 2)[1]

    def test_stages_none_of_which_is_busy(self):
        groups = [Group("reading thread", 1, 10.0, {"read": 1.0, "scan": 1.0}), Group("2 workers", 2, 10.0, {"decode": 12.0})]
        head, rest = verdict([self.row(100)], groups, 1000, 8)

        assert "no stage is busy all the time" == head
        assert rest.startswith("2 workers busy 60 % of the time, most of it with decode, 12.0 of 14.0 ms per record, reading waits 10 %")

    def test_workers_that_slow_it_down_are_not_called_nothing(self):
        rows = [self.row(100, workers=0, batch=8), self.row(60, workers=2, batch=8), self.row(95, workers=4, batch=8)]

        assert "2 workers give 0.6×, 4 workers give nothing on 2 cores" in verdict(rows, [], 0, 2)[1]

    def test_peers(self):
        rows = [self.row(1000), self.row(250, "peer", "webdataset")]

        assert "4.0× the rate of webdataset" in verdict(rows, [], 0, 2)[1]

    def test_the_graph_by_leaving_ops_out(self):
        rows = [self.row(100), self.row(1000, "stage", "reading alone"), self.row(500, "stage", "up to decode(png)")]
        rows[0].last_op = "resize(png, (8, 8))"

        head, rest = verdict(rows, [], 0, 2)

        assert "resize(png, (8, 8)) is the limit in the graph" == head
        assert rest.startswith("8.0 of 10.0 ms per record, by leaving ops out")

    def test_an_op_costs_what_the_graph_takes_more_with_it(self):
        rows = [
            self.row(100, last_op="flip"),
            self.row(1000, "stage", "reading alone"),
            self.row(125, "stage", "up to decode(png)"),
        ]

        assert ("decode(png) is the limit in the graph", "7.0 of 10.0 ms per record, by leaving ops out") == (
            verdict(rows, [], 0, 2)[0],
            verdict(rows, [], 0, 2)[1].split(";")[0],
        )

    def test_rates_that_waver_are_said_to(self):
        rows = [TrialRow("x", "tarviz", {}, runs=[Figures(rate=100, margin=60)])]

        assert "the rates vary by ±60 %" in verdict(rows, [], 0, 2)[1]

    def test_nothing_measured_says_nothing(self):
        assert ("", "") == verdict([], [], 0, 2)


class TestSweep:
    @pytest.mark.matrix
    def test_every_combination_once_in_turns(self, shards: str):
        run = done(shards, workers=(0, 1), batch=(4, 8), seconds=0.1, repeat=2)

        assert ["0 workers × batch 4", "0 workers × batch 8", "1 worker × batch 4", "1 worker × batch 8"] == [
            r.label for r in run.result.rows
        ]
        assert [2] * 4 == [len(row.runs) for row in run.result.rows]
        heat = run.poll()[0]["heat"]
        assert (["0", "1"], ["4", "8"], "batch") == (heat["across"], heat["down"], heat["name"])
        assert all(rate > 0 for cells in heat["cells"] for rate in cells)

    def test_prefetch_is_for_the_graph(self, shards: str):
        with pytest.raises(UsageError, match="prefetch is for"):
            BenchRun(shards, prefetch=(1, 4))

    @pytest.mark.matrix
    def test_tf_data_and_its_stages(self, shards: str):
        pytest.importorskip("tensorflow")
        run = done(shards, "decode(png)|resize(png, (8, 8))", select=("png", "cls"), runner="tf.data", seconds=0.4, batch=16)

        assert ["tf.data, batch 16", "reading alone", "up to decode(png)"] == [row.label for row in run.result.rows]
        assert not [row.error for row in run.result.rows if row.error]
        assert ["reading alone", "decode(png)", "resize(png, (8, 8))"] == [stage for _, stage, _, _ in run.result.stages()]

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # webdataset leaves its files open
    @pytest.mark.parametrize("peer", ["webdataset", "from_generator", "tfrecord"])
    @pytest.mark.matrix
    def test_a_peer_reads_the_same_records(self, shards: str, peer: str):
        pytest.importorskip("webdataset" if peer == "webdataset" else "tensorflow")
        run = done(shards, "decode(png)|resize(png, (8, 8))|flip(png)", select=("png", "cls"), seconds=0.3, batch=16, vs=[peer])
        other = run.result.rows[1]

        assert "" == other.error
        assert "peer" == other.kind
        assert other.rate > 0
        assert f"the rate of {peer}" in run.result.verdict

    def test_an_unknown_peer_is_named(self, shards: str):
        with pytest.raises(UsageError, match="no peer 'dali'"):
            BenchRun(shards, vs=["dali"])


class TestStop:
    def test_it_stops_at_once_and_keeps_what_there_is(self, shards: str):
        run = BenchRun(shards, "decode(png)", seconds=6000, workers=(0, 2), batch=4)
        while run.poll()[0]["rows"][0]["rate"] is None and not (run.meter and run.meter.records > 100):
            time.sleep(0.02)
        answer(run, {"name": "stop", "id": 1})
        assert run.wait(60)  # a trial takes longer

        assert ("stopped", 1) == (run.result.state, run.result.exit_code)
        assert run.result.rows[0].rate > 0
        assert [] == run.result.rows[1].runs
        assert "stopped" in str(run.result)

    def test_nothing_is_left_running(self, shards: str):
        before = set(threading.enumerate())
        run = BenchRun(shards, "decode(png)", seconds=6000, workers=2)
        run.end()

        wait_until(lambda: len(set(threading.enumerate()) - before) <= 1)


class TestRequests:
    def test_points_come_as_floats_and_only_the_new_ones(self, shards: str):
        run = done(shards, seconds=0.5, batch=2)
        message, buffers = run.poll()
        count = len(bytes(buffers[0])) // 12
        later, fewer = run.poll(message["trial"], count - 2)

        assert json.dumps(message, allow_nan=False)
        assert count > 3
        assert (count - 2, 2) == (later["from"], len(bytes(fewer[0])) // 12)
        assert [(0.0, 0, 0)] == run.meter.marks[:1]  # type: ignore[union-attr]

    def test_while_it_runs(self, shards: str):
        run = BenchRun(shards, "decode(png)", seconds=6000)
        while not run.meter or run.meter.records < 50:
            time.sleep(0.02)
        message, _ = run.poll()
        run.end()

        assert message["running"]
        assert "running 1 of 1: batch 32" in message["status"]
        assert message["stages"]

    def test_the_first_picture_and_the_result_as_json(self, shards: str):
        run = done(shards, "decode(png)", seconds=0.2)

        assert json.dumps(run.first()[0], allow_nan=False)
        assert "decode(png)" == run.plain()["result"]["config"]["chain"]
        assert [("poll", None), ("plain", {})] == list(run.likely())


class TestBaseline:
    def test_one_that_cannot_be_saved_leaves_the_one_before(self, tmp_path: Path):
        file = tmp_path / "base.json"
        result = BenchResult({"urls": "x" * 8000}, {}, [], [], 0, "done", "now")
        result.save(file)
        before = file.read_bytes()
        with full_disk(4096), pytest.raises(StoreError) as caught:
            result.save(file)

        assert ("E_WRITE", before, [file]) == (caught.value.code, file.read_bytes(), list(tmp_path.iterdir()))

    def test_saved_and_compared(self, shards: str, tmp_path: Path):
        run = done(shards, seconds=0.3)
        file = tmp_path / "base.json"
        run.result.save(file)
        base = BenchResult.load(file)
        base.rows[0].runs = [Figures(rate=run.result.rate * 2)]
        [against] = run.result.compare(base, fail_below=0.9)

        assert (0.5, True) == (pytest.approx(against.ratio), against.slower)
        assert 1 == run.result.exit_code
        assert "SLOWER" in str(run.result)
        assert run.result.rate == pytest.approx(BenchResult.load(file).rate)

    @pytest.mark.matrix
    def test_not_slower_is_clean(self, shards: str, tmp_path: Path):
        file = tmp_path / "base.json"
        done(shards, seconds=0.3).result.save(file)
        run = done(shards, seconds=0.3, baseline=file, fail_below=0.01)

        assert 0 == run.result.exit_code
        assert not run.result.against[0].slower

    @pytest.mark.parametrize(("other", "noted"), [({}, False), ({"cores": 3}, True), ({"system": "Plan 9"}, True)])
    def test_a_baseline_of_another_machine_is_noted(self, other: dict[str, Any], noted: bool):
        host = {"cores": 2, "system": "Linux"}
        ours, base = (BenchResult({}, where, [TrialRow("x", "tarviz", {}, runs=[Figures(rate=5.0)])]) for where in (host, host | other))

        ours.compare(base)

        assert noted is ("The baseline is of another machine." in ours.notes)

    @pytest.mark.parametrize("content", ["", "{}", "[1]", '{"rows": 3}'])
    def test_a_file_that_is_no_baseline(self, tmp_path: Path, content: str):
        (tmp_path / "b.json").write_text(content)

        with pytest.raises(UsageError, match="no result of a bench"):
            BenchResult.load(tmp_path / "b.json")

    def test_no_row_in_common_is_said(self, shards: str):
        with pytest.raises(UsageError, match="no row of the same name"):
            done(shards, seconds=0.2).result.compare(done(shards, seconds=0.2, batch=3).result)

    def test_rows_as_a_frame(self, shards: str):
        pandas = pytest.importorskip("pandas")
        frame = done(shards, seconds=0.2).result.to_frame()

        assert isinstance(frame, pandas.DataFrame)
        assert 1 == len(frame)


class TestMachine:
    def test_cold_and_warm_are_said(self, shards: str):
        urls = stream.shards(shards)
        for url in urls:
            Path(url).read_bytes()
        warm = machine.cached_share(urls)
        if warm is None:
            pytest.skip("this system does not say what is in memory")
        machine.evict(urls)

        assert warm > 0.98
        assert done(shards, seconds=0.2, cold=True).result.rows[0].cache
        assert "warm" in done(shards, seconds=0.2).result.rows[0].cache

    def test_facts(self, shards: str):
        facts = machine.facts(stream.shards(shards))

        assert facts["cores"] >= 1
        assert {"tarviz", "python", "numpy"} <= set(facts["versions"])
        assert facts["files"]


class TestStaticForms:
    @pytest.mark.matrix
    def test_a_picture_within_the_budget(self, shards: str):
        pytest.importorskip("matplotlib")
        one = done(shards, "decode(png)", seconds=0.5, batch=4)
        many = done(shards, workers=(0, 1), batch=(4, 8), seconds=0.1)

        for run in (one, many):
            assert b"\x89PNG" == run.picture()[:4]
            assert len(run.picture()) <= 150_000
        assert b"" == chart(BenchResult({}, {}))

    def test_words_that_look_like_mathematics_are_words(self):
        result = BenchResult({}, {"cores": 1}, [TrialRow("$x^2 & _", "tarviz", {}, runs=[Figures(rate=5.0)])])

        assert b"\x89PNG" == chart(result)[:4]

    def test_the_text(self, shards: str):
        text = done(shards, "decode(png)", seconds=0.3).text()

        for word in ("done", "is the limit", "records/s", "p99", "first batch", "decode", "core", "python"):
            assert word in text


class TestAgain:
    def test_it_measures_once_more_in_place_of_before(self, shards):
        run = done(shards, "decode(png)", batch=8, seconds=0.1)
        first, renewed = run.result, []
        run.renewed = lambda: renewed.append(True)
        reply, _ = answer(run, {"name": "again", "msg": {"times": 3}})

        assert run.wait(60)
        assert {} == reply["r"]
        assert run.result is not first
        assert [True] == renewed
        assert (0.1, pytest.approx(0.3)) == (first.config["seconds"], run.result.config["seconds"])
        assert 1 == len(run.result.rows[0].runs)

    def test_a_count_grows_and_shrinks_with_the_time(self):
        run = done(lambda: iter(range(100)), count=4)
        for times, count in ((3, 12), (0.01, 1)):
            run.again(times)

            assert run.wait(60)
            assert count == run.result.rows[0].runs[0].total_records
        for times in (0, -1, 86_400 / run.seconds):
            with pytest.raises(UsageError, match="cannot be measured"):
                run.again(times)

    def test_what_still_measures_is_not_begun_again(self, shards):
        run = BenchRun(shards, "decode(png)", batch=8, seconds=60)
        reply, _ = answer(run, {"name": "again", "msg": {}})
        run.end()

        assert "still measuring" in reply["err"]["msg"]
