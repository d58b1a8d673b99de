"""A tf dataset that stops and goes on: the state of every runner, whoever takes the steps."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarviz
from tarviz.model.errors import ChangedError, DataError, SchemaError, UsageError
from tarviz.pipeline import Pipeline
from tarviz.runners.tf.source import PipelineSource
from tests.runners.test_resume import counted

tf = pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")

pytestmark = pytest.mark.filterwarnings("ignore:W_EMPTY")


def values(steps: Any) -> list[Any]:
    return [step.numpy().tolist() for step in steps]


def taken(dataset: Any, count: int) -> tuple[list[Any], dict[str, Any]]:
    """The first steps of a dataset, and its state behind them, through JSON."""
    steps = iter(dataset)
    head = values(itertools.islice(steps, count))
    return head, json.loads(json.dumps(dataset.state_dict()))


@pytest.mark.parametrize(
    "options",
    [{"graph": True, "batch": 4, "shuffle": 9}, {"graph": False, "batch": 4, "repeat": 2}, {"graph": False, "shuffle": 60}],
    ids=str,
)
@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.matrix
def test_goes_on_behind_any_step_as_the_eager_runner_does(tmp_path: Path, options: dict[str, Any], indexed: bool) -> None:
    pipeline = counted(tmp_path, [17, 0, 1, 20])
    if indexed:
        tarviz.index(pipeline.urls)
    whole = values(pipeline.tf(**options))
    here = {name: value for name, value in options.items() if name != "graph"}
    for cut in (0, 3, len(whole)):
        head, state = taken(pipeline.tf(**options), cut)
        again, eager = pipeline.tf(**options), pipeline.eager(**here)
        again.load_state_dict(state)
        eager.load_state_dict(state)

        assert state == again.state_dict()
        assert whole == head + values(again)
        assert whole == head + [value.tolist() for value in eager]
        assert len(whole) == len(values(again))  # the next epoch is whole


@pytest.mark.parametrize("graph", [True, False])
@pytest.mark.matrix
def test_skips_what_it_skipped(tmp_path: Path, graph: bool) -> None:
    urls = counted(tmp_path, [40]).urls
    Path(urls[0]).write_bytes(Path(urls[0]).read_bytes().replace(b"7" + bytes(500), b"x" + bytes(500)))
    pipeline = Pipeline(urls, "decode(cls)", select="cls", on_error="skip")
    whole = values(pipeline.tf(graph=graph))
    assert 36 == len(whole)
    for cut in (6, 7, 36):
        head, state = taken(pipeline.tf(graph=graph), cut)
        again = pipeline.tf(graph=graph)
        again.load_state_dict(state)

        assert whole == head + values(again)


@pytest.mark.parametrize("shuffle", [0, 9])
@pytest.mark.parametrize("sizes", [[50], [9, 2, 30, 11]], ids=str)
@pytest.mark.matrix
def test_ranks_of_tf_and_eager_take_over_what_others_had_left(tmp_path: Path, sizes: list[int], shuffle: int) -> None:
    pipeline = counted(tmp_path, sizes)
    first = [taken(pipeline.tf(rank=rank, world_size=2, shuffle=shuffle), 3 + 4 * rank) for rank in range(2)]
    second = []
    for rank in range(3):
        part = pipeline.tf(rank=rank, world_size=3, shuffle=shuffle)
        part.load_state_dict([state for _, state in first])
        second.append(taken(part, 2))
    last = pipeline.eager(shuffle=shuffle)
    last.load_state_dict([state for _, state in second])
    heads = [value for head, _ in first + second for value in head]

    assert Counter(range(sum(sizes))) == Counter(heads + [int(value) for value in last])


@pytest.mark.matrix
def test_steps_that_tensorflow_takes_are_told(tmp_path: Path) -> None:
    pipeline = counted(tmp_path, [30])
    whole = values(pipeline.tf(batch=4))
    dataset = pipeline.tf(batch=4)
    steps = iter(dataset)
    step = tf.function(lambda: next(steps))
    head = [step().numpy().tolist() for _ in range(3)]

    with pytest.raises(UsageError, match="steps="):
        dataset.state_dict()
    state = dataset.state_dict(steps=3)
    again = pipeline.tf(batch=4)
    again.load_state_dict(state)
    assert whole == head + values(again)

    mapped = pipeline.tf(batch=4)
    head = values(itertools.islice(mapped.map(lambda value: value), 2))
    with pytest.raises(UsageError, match="steps="):
        mapped.state_dict()
    again.load_state_dict(mapped.state_dict(steps=2))
    assert whole == head + values(again.map(lambda value: value))
    with pytest.raises(UsageError, match="not read"):
        mapped.state_dict(steps=9)


def test_what_has_no_place_is_refused_by_name(tmp_path: Path) -> None:
    pipeline = counted(tmp_path, [9, 9])
    dataset = pipeline.tf()
    steps = iter(dataset)
    next(steps)

    with pytest.raises(UsageError, match=r"tf\.train\.Checkpoint.*state_dict"):
        tf.train.Checkpoint(steps=steps).save(str(tmp_path / "point"))
    with pytest.raises(UsageError, match="deterministic"):
        pipeline.tf(deterministic=False, num_workers=2).state_dict()


def test_no_other_shard_is_gone_on_with(tmp_path: Path) -> None:
    pipeline = counted(tmp_path, [9, 9])
    _, state = taken(pipeline.tf(), 12)
    Path(pipeline.urls[1]).write_bytes(Path(pipeline.urls[0]).read_bytes())

    with pytest.raises(ChangedError, match=r"n-1\.tar"):
        pipeline.tf().load_state_dict(state)


@pytest.mark.parametrize("late", [None, DataError("TensorFlow refuses the record.")], ids=["alone", "with steps it cancelled"])
def test_a_batch_of_unequal_sizes_says_what_makes_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: DataError | None) -> None:
    with tarviz.writer(tmp_path / "a.tar") as out:
        for number, side in enumerate((8, 8, 9)):
            out.write(str(number), {"jpg": np.zeros((side, 16, 3), np.uint8)})
    dataset = Pipeline(tmp_path / "a.tar", "decode(jpg)").tf(batch=3)
    monkeypatch.setattr(PipelineSource, "error", property(lambda _: late, lambda *_: None))

    with pytest.raises(SchemaError, match=r"do not fit into one batch\. .*\[8,16,3\].*\[9,16,3\]") as caught:
        list(dataset)
    assert "pad=True fills them up" in str(caught.value.hint)


def test_what_tensorflow_says_of_single_records_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tarviz.writer(tmp_path / "a.tar") as out:
        out.write("0", {"cls": b"seven"})
    dataset = Pipeline(tmp_path / "a.tar", "decode(cls)").tf()
    monkeypatch.setattr(PipelineSource, "error", property(lambda _: None, lambda *_: None))

    with pytest.raises(tf.errors.InvalidArgumentError, match="seven"):
        list(dataset)
