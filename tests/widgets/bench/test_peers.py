"""Readers of others beside a pipeline."""

from __future__ import annotations

from itertools import islice

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


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # webdataset leaves the shard open
@pytest.mark.parametrize(("setting", "counts"), [({}, [1] * 12), ({"batch": 4}, [4] * 6)])
def test_webdataset_goes_round_one_by_one_or_in_batches(pipeline: Pipeline, setting: dict[str, int], counts: list[int]):
    pytest.importorskip("webdataset")
    found = [*islice(of_peer("webdataset", pipeline, setting).start(), len(counts))]

    assert counts == [count for count, _ in found]
    assert 1 == len({size // count for count, size in found})


def test_an_unknown_one_is_named_with_those_there_are(pipeline: Pipeline):
    with pytest.raises(UsageError, match=r"no peer 'torchdata'.*webdataset, from_generator, tfrecord"):
        of_peer("torchdata", pipeline, {})
