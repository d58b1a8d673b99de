"""Conversions next to the data: a real transformer in a process, begun, asked and ended through the SDK on a small AIStore."""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("aistore", reason="AIStore: pip install 'tarviz[ais]'")
pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")

from tarviz.dialects.tar2tf import Dataset
from tarviz.dialects.tar2tf._etl import _fetched
from tarviz.dialects.tar2tf._transformed import packed, unpacked
from tarviz.dialects.tar2tf.ops import SelectJSON
from tarviz.formats import example, tfrecord
from tarviz.model.errors import DataError, Fault, SchemaError, StoreError, TarvizError, TarvizWarning
from tarviz.model.types import URL
from tarviz.ops import Func
from tarviz.read.stream import ReadReport
from tarviz.runners.elsewhere import Row
from tarviz.samples import write_shard
from tarviz.stores import ais
from tests.servers.aistore import Cluster, Fail
from tests.servers.aistore_etl import Pods

CHAIN = "decode(jpg)|random_crop(jpg, (20, 20))|flip(jpg)"


def picture(seed: int) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (32, 40, 3), np.uint8)).save(stream, "JPEG")
    return stream.getvalue()


def shard(folder: Path, numbers: range, bad: int = -1) -> bytes:
    path = folder / "shard.tar"
    fields = ({"jpg": b"none" if at == bad else picture(at), "cls": b"%d" % at, "json": json.dumps({"n": at}).encode()} for at in numbers)
    write_shard(path, [(f"a.b/r{at:03d}", each) for at, each in zip(numbers, fields, strict=True)])
    return path.read_bytes()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two shards of 30 and 11 records, and one with a picture that is none."""
    folder = tmp_path_factory.mktemp("shards")
    with Cluster(pods=Pods()) as cluster:
        cluster.put("data", "train-0.tar", shard(folder, range(30)))
        cluster.put("data", "train-1.tar", shard(folder, range(30, 41)))
        cluster.put("data", "bad.tar", shard(folder, range(9), bad=5))
        yield cluster


@pytest.fixture(scope="module")
def beside(cluster: Cluster) -> Iterator[Dataset]:
    """A data set whose transformer runs."""
    dataset = Dataset("data", cluster.url, CHAIN, ["jpg", "cls"], remote_exec=True)
    dataset.load("train-{0..1}.tar")
    yield dataset
    dataset.stop()


def values(dataset: Any) -> list[Any]:
    return list(dataset.as_numpy_iterator())


def same(expected: Any, found: Any) -> None:
    assert expected.element_spec == found.element_spec
    for (image, label), (other, number) in zip(values(expected), values(found), strict=True):
        np.testing.assert_array_equal(image, other)
        assert label == number


@pytest.mark.matrix
def test_tensors_and_epochs_are_those_made_here(cluster: Cluster, beside: Dataset) -> None:
    here, there = beside.load("train-{0..1}.tar", remote_exec=False), beside.load("train-{0..1}.tar")
    before = len(cluster.requests)
    for _ in range(2):
        same(here, there)

    assert any("etl_name=tarviz-" in line for _, _, line in cluster.requests[before:])
    assert there.report.records == 41


@pytest.mark.programs
def test_what_the_transformer_sends_is_a_tfrecord_file_that_tensorflow_reads(cluster: Cluster, beside: Dataset) -> None:
    import tensorflow as tf

    asked = {"chain": "decode(jpg)|resize(jpg, (8, 9))|decode(cls)", "seed": 0, "epoch": 0, "options": {}, "fields": None}
    with ais.transformed(URL("ais://data/train-1.tar"), beside._transformer.name, json.dumps(asked)) as stream:
        data = stream.read()

    examples = [tf.train.Example.FromString(bytes(each)) for each in tfrecord.read(data)]
    *records, end = [each.features.feature for each in examples]
    assert [f"a.b/r{at:03d}".encode() for at in range(30, 41)] == [each["__key__"].bytes_list.value[0] for each in records]
    assert list(range(30, 41)) == [each["cls"].int64_list.value[0] for each in records]
    assert (8, 9, 3) == tf.reshape(tf.io.decode_raw(records[0]["jpg"].bytes_list.value[0], tf.uint8), (8, 9, 3)).shape
    assert 11 == json.loads(end["__head__"].bytes_list.value[0])["rows"]


@pytest.mark.programs
def test_values_out_of_json_and_keys_come_too(cluster: Cluster) -> None:
    dataset = Dataset("data", cluster.url, [], ["__key__", {"number": SelectJSON("json", "n"), "picture": "jpg"}], remote_exec=True)
    try:
        here, there = dataset.load("train-1.tar", remote_exec=False), dataset.load("train-1.tar")

        assert here.element_spec == there.element_spec
        assert values(here) == values(there)
    finally:
        dataset.stop()


@pytest.mark.programs
def test_stop_takes_the_transformer_away(cluster: Cluster) -> None:
    dataset = Dataset("data", cluster.url, CHAIN, ["jpg", "cls"], remote_exec=True)
    before = set(cluster.pods.specs)
    dataset.load("train-1.tar")
    (name,) = set(cluster.pods.specs) - before
    assert name in cluster.pods.running

    dataset.stop()
    dataset.stop()

    assert name not in cluster.pods.specs
    assert name not in cluster.pods.running


@pytest.mark.programs
def test_an_error_of_a_record_is_the_one_made_here(beside: Dataset) -> None:
    caught = []
    for remote in (False, None):
        labels: list[int] = []
        with pytest.raises(DataError) as error:
            labels += (int(label) for _, label in beside.load("bad.tar", remote_exec=remote))
        caught.append((error.value.code, error.value.key, error.value.member, error.value.shard))

    assert caught[0] == caught[1]
    assert [0, 1, 2, 3, 4] == labels


@pytest.mark.programs
def test_an_answer_that_is_cut_off_is_asked_for_again(cluster: Cluster, beside: Dataset) -> None:
    cluster.fails = [Fail(cut=20_000), Fail(cut=30_001)]

    found = [int(label) for _, label in beside.load("train-0.tar", num_workers=1)]

    assert list(range(30)) == found
    assert [] == cluster.fails


@pytest.mark.programs
def test_a_transformer_that_is_gone_is_an_error(cluster: Cluster) -> None:
    dataset = Dataset("data", cluster.url, CHAIN, ["jpg", "cls"], remote_exec=True)
    made = dataset.load("train-1.tar")
    dataset.stop()

    with pytest.raises(TarvizError, match=r"train-1\.tar.*is not running"):
        values(made)


@pytest.mark.matrix
def test_without_etl_it_is_said_once_and_done_by_the_next_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with Cluster() as plain:
        plain.put("data", "a.tar", shard(tmp_path, range(4)))
        dataset = Dataset("data", plain.url, CHAIN, ["jpg", "cls"], remote_exec=True)
        with pytest.warns(TarvizWarning, match=r"W_LOCAL.*next to the data .*ETL support"):
            dataset.load("a.tar")
        found = dataset.load("a.tar")  # a second warning would be an error

        assert [0, 1, 2, 3] == [int(label) for _, label in found]


def test_a_function_goes_to_the_next_engine(cluster: Cluster) -> None:
    dataset = Dataset("data", cluster.url, [Func(lambda record: record)], ["jpg", "cls"], remote_exec=True)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        dataset.load("train-1.tar")

    assert any("a function has none" in str(each.message) for each in told)


class TestTransport:
    def test_values_go_there_and_back(self) -> None:
        value = {
            "b": b"\0x",
            "none": b"",
            "t": "é\udcff",
            "a": np.arange(6, dtype=">i2").reshape(2, 3),
            "empty": np.zeros((0, 3), np.float32),
            "point": np.array(2.5, np.float32),
            "n": np.float32(0.1),
            "d": np.float64(0.1),
            "u": np.uint64(2**64 - 1),
            "i4": np.int32(-7),
            "yes": np.bool_(True),
            "j": {"x": [1, None]},
            "i": 3,
            "big": 2**70,
            "true": True,
        }

        (row,) = unpacked(io.BytesIO(b"".join(packed([Row("k\udcff", 7, value)], None, ReadReport()))), ReadReport())

        assert ("k\udcff", 7, list(value)) == (row.key, row.behind, list(row.value))
        for name, there in row.value.items():
            assert type(value[name]) is type(there)
            assert getattr(value[name], "dtype", None) == getattr(there, "dtype", None)
            np.testing.assert_array_equal(value[name], there)

    def test_fields_that_nobody_wants_stay_there_and_what_was_met_comes(self) -> None:
        report = ReadReport(records=1, bytes=9, shards=1)
        report.add(Fault("W_X", "odd"))
        found = ReadReport()

        (row,) = unpacked(io.BytesIO(b"".join(packed([Row("k", 1, {"x": 1, "y": 2})], frozenset("y"), report))), found)

        assert {"y": 2} == row.value
        assert report.to_dict() == found.to_dict()

    def test_every_early_end_is_noticed(self) -> None:
        whole = b"".join(packed([Row(f"k{at}", at + 1, {"x": b"y" * at}) for at in range(3)], None, ReadReport()))
        for size in range(0, len(whole), 7):
            with pytest.raises(StoreError, match="E_LENGTH"):
                list(unpacked(io.BytesIO(whole[:size]), ReadReport()))

    def test_something_else_is_an_error(self) -> None:
        for data in (b"".join(tfrecord.frame([example.encode({"x": 1})]).buffers()), b"<html>" * 100):
            with pytest.raises(TarvizError, match=r"E_FORMAT|E_LENGTH"):
                list(unpacked(io.BytesIO(data), ReadReport()))

    def test_what_does_not_travel_is_the_error_of_its_record(self) -> None:
        rows = [Row("k", 1, {"x": object()}), Row("l", 2, {"x": 1})]

        bad, good = unpacked(io.BytesIO(b"".join(packed(rows, None, ReadReport()))), ReadReport())

        assert isinstance(bad.value, SchemaError)
        assert {"x": 1} == good.value


def test_a_record_that_was_spoilt_on_its_way_is_asked_for_again() -> None:
    data = bytearray(b"".join(packed([Row("k", 1, {"x": b"y" * 99})], None, ReadReport())))
    data[60] ^= 1

    with pytest.raises(StoreError, match="comes damaged"):
        list(unpacked(io.BytesIO(data), ReadReport()))


@pytest.mark.parametrize(("early", "comes"), [(0, True), (1, True), (2, True), (3, False)])
def test_a_shard_that_ends_early_is_asked_for_three_times(early: int, comes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time one row further; none comes twice."""
    rows = [Row(str(number), number + 1, {"x": bytes(99)}) for number in range(5)]
    whole = b"".join(packed(rows, None, ReadReport()))
    answers = [whole[: (number + 1) * len(whole) // 6] for number in range(early)]

    @contextlib.contextmanager
    def transformed(*_: object) -> Iterator[io.BytesIO]:
        yield io.BytesIO(answers.pop(0) if answers else whole)

    monkeypatch.setattr("tarviz.stores.ais.transformed", transformed)
    found: list[str] = []
    with contextlib.nullcontext() if comes else pytest.raises(StoreError, match=r"ais://data/a\.tar"):
        found.extend(row.key for row in _fetched("name", URL("ais://data/a.tar"), "{}", ReadReport()))

    assert [row.key for row in rows][: 5 if comes else len(found)] == found
    assert [] == answers
