"""The timer that is handed to the eager runner: every stage counted once, ops that are done together as one."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tarviz
from tarviz.pipeline import Pipeline
from tarviz.runners.eager import Eager
from tarviz.runners.stage_timer import StageTimer, stages
from tests.runners.test_eager import shard


@pytest.fixture
def photos(tmp_path: Path) -> str:
    file = io.BytesIO()
    Image.fromarray(np.arange(64 * 48 * 3, dtype=np.uint8).reshape(48, 64, 3)).save(file, "JPEG")
    return shard(tmp_path / "a.tar", {f"k{number}": {"jpg": file.getvalue()} for number in range(10)})


@pytest.mark.parametrize("workers", [0, 2])
def test_every_op_is_in_one_stage_and_every_record_counted(photos: str, workers: int):
    pipeline = Pipeline(photos, "decode(jpg)|resize(jpg, (8, 8))|flip(jpg)", select="jpg")
    timer = StageTimer()

    batches = list(Eager(pipeline, batch=4, num_workers=workers).measure(timer))

    assert [4, 4, 2] == [len(batch) for batch in batches]
    assert (10, 10) == (timer.taken, timer.records)
    named = [op for stage in timer.worked if stage not in ("draw", "pick") for op in stage.split("|")]
    assert ["decode", "resize", "flip"] == named
    assert {"read", "scan", "cut", "batch"} == timer.main.keys()
    assert all(seconds >= 0 for seconds in (*timer.main.values(), *timer.worked.values()))


def test_steps_without_a_batch_are_counted_too(photos: str):
    timer = StageTimer()
    list(Eager(Pipeline(photos, select="jpg")).measure(timer))

    assert (10, 10) == (timer.taken, timer.records)
    assert timer.bytes == sum(len(record["jpg"]) for record in tarviz.records(photos))


def test_time_is_shared_out_by_what_the_clocks_say(photos: str):
    clock, cpu = iter([0.0, 10.0, 13.0, 20.0, 21.0, 30.0, 31.5, 40.0, 42.0]), iter([0.0, 1.0, 1.0, 5.0])
    timer = StageTimer(lambda: next(clock), lambda: next(cpu))
    (_,) = timer.read(tarviz.blocks(photos))  # 3 s, of which 1 s is work; then 1 s, and 4 s of work in it
    timer.note_cut(25.0)
    timer.note_batch(30.5, 7)
    laps = timer.laps(Pipeline(photos, "decode(jpg)|resize(jpg, (8, 8))|flip(jpg)").chain)
    laps.note_step(0, 2)

    assert {"read": 2.0, "scan": 2.0, "cut": 5.0, "batch": 1.0} == timer.main
    assert {"decode|resize": 2.0} == laps.busy
    timer.add(laps)
    timer.add(laps)
    assert {"decode|resize": 4.0} == timer.so_far() == timer.worked


def test_values_are_those_without_it_and_batches_stand_in_the_same_memory(photos: str):
    pipeline = Pipeline(photos, "decode(jpg)|resize(jpg, (40, 40))", select="jpg")
    timed, plain = Eager(pipeline, batch=4).measure(StageTimer()), Eager(pipeline, batch=4)

    for one, other in zip(timed, plain, strict=True):
        np.testing.assert_array_equal(one, other)
        assert (one.base is None) == (other.base is None)


def test_two_ops_of_a_name_are_told_apart_by_their_field():
    chain = Pipeline("a.tar", "decode(jpg)|decode(png)|decode(png)|flip(jpg)").chain

    assert ["decode(jpg)", "decode(png)", "decode(png)′", "flip"] == stages(list(chain))
