"""Readers of others beside a pipeline."""

from __future__ import annotations

import importlib
import sys
from itertools import islice
from typing import Any

import pytest

from tarviz.model.errors import UsageError
from tarviz.pipeline import Pipeline
from tarviz.samples import write_shard
from tarviz.widgets.bench.peers import of_peer


@pytest.fixture
def pipeline(tmp_path) -> Pipeline:
    """Ten records."""
    write_shard(tmp_path / "a.tar", [(f"{n}", {"txt": b"word", "cls": b"%d" % n}) for n in range(10)])
    return Pipeline(tmp_path / "a.tar", "decode(cls)", select=("txt", "cls"))


@pytest.mark.parametrize(("setting", "counts"), [({}, [1] * 12), ({"batch": 4}, [4] * 6)])
def test_webdataset_goes_round_one_by_one_or_in_batches(
    pipeline: Pipeline, setting: dict[str, int], counts: list[int], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "webdataset", importlib.import_module("tarviz.dialects.webdataset"))  # the same words, always there
    found = [*islice(of_peer("webdataset", pipeline, setting).start(), len(counts))]

    assert counts == [count for count, _ in found]
    assert 1 == len({size // count for count, size in found})


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["from_generator", "tfrecord"])
@pytest.mark.parametrize(
    ("chain", "select", "batch"),
    [("decode(cls)", ("txt", "cls"), 4), ("decode(cls)", "cls", None), (None, {"a": ("txt", "cls")}, 4), (None, ("txt",), None)],
    ids=str,
)
def test_tensorflow_counts_the_same_records(pipeline: Pipeline, name: str, chain: str | None, select: Any, batch: int | None):
    pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
    trial = of_peer(name, pipeline.with_chain(chain).with_select(select), {"batch": batch, "workers": 2})
    found = [*islice(trial.start(), 4)]

    assert [batch or 1] * 4 == [count for count, _ in found]


def test_an_unknown_one_is_named_with_those_there_are(pipeline: Pipeline):
    with pytest.raises(UsageError, match=r"no peer 'torchdata'.*webdataset, from_generator, tfrecord"):
        of_peer("torchdata", pipeline, {})
