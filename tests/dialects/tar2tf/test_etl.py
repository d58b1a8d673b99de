"""Conversions next to the data: a real transformer in a process, begun, asked and ended through the SDK on a small AIStore."""

from __future__ import annotations

import contextlib
import gzip
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

from tarviz import stores
from tarviz.dialects.tar2tf import Dataset
from tarviz.dialects.tar2tf._etl import Etl, _fetch, obstacle
from tarviz.dialects.tar2tf._transformed import pack
from tarviz.dialects.tar2tf.ops import SelectJSON
from tarviz.formats import tfrecord
from tarviz.model.errors import DataError, StoreError, TarvizError, TarvizWarning
from tarviz.model.types import URL
from tarviz.ops import Func
from tarviz.pipeline import Pipeline
from tarviz.read.stream import ReadReport
from tarviz.runners.elsewhere import MadeRow
from tarviz.runners.shares import Piece
from tarviz.runners.walk import work
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
    with ais.open_transformed(URL("ais://data/train-1.tar"), beside._transformer.name, json.dumps(asked)) as stream:
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


@pytest.mark.parametrize(("early", "comes"), [(0, True), (1, True), (2, True), (3, False)])
def test_a_shard_that_ends_early_is_asked_for_three_times(early: int, comes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time one row further; none comes twice."""
    rows = [MadeRow(str(number), number + 1, {"x": bytes(99)}) for number in range(5)]
    whole = b"".join(pack(rows, None, ReadReport()))
    answers = [whole[: (number + 1) * len(whole) // 6] for number in range(early)]

    @contextlib.contextmanager
    def transformed(*_: object) -> Iterator[io.BytesIO]:
        yield io.BytesIO(answers.pop(0) if answers else whole)

    monkeypatch.setattr("tarviz.stores.ais.open_transformed", transformed)
    found: list[str] = []
    with contextlib.nullcontext() if comes else pytest.raises(StoreError, match=r"ais://data/a\.tar"):
        found.extend(row.key for row in _fetch("name", URL("ais://data/a.tar"), "{}", ReadReport()))

    assert [row.key for row in rows][: 5 if comes else len(found)] == found
    assert [] == answers


class TestShares:
    """What is read of one transformed shard by several readers: each record once, its error in its place."""

    URL = URL("ais://data/a.tar")

    @pytest.fixture(autouse=True)
    def transformed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = [MadeRow(str(at), at + 1, DataError("bad", code="E_OP") if at in (0, 20, 33) else {"x": at}) for at in range(50)]
        whole = b"".join(pack(rows, None, ReadReport()))
        monkeypatch.setattr("tarviz.stores.ais.open_transformed", lambda *_: contextlib.nullcontext(io.BytesIO(whole)))

    def read(self, *pieces: Piece, number: int = 0) -> list[tuple[int, int]]:
        """(piece, record) of each row."""
        with Etl("ais-etl", name="one").start(Pipeline(self.URL), work, stops=False) as source:
            found = list(source.rows(list(pieces), 0, ReadReport(), number=number))
        for _, row in found:
            bad = row.behind - 1 in (0, 20, 33)
            assert (bad, row.key) == (isinstance(row.value, DataError), str(row.behind - 1))
            assert row.value.shard == self.URL if bad else {"x": row.behind - 1}.items() <= row.value.items()
        return [(at, row.behind - 1) for at, row in found]

    def test_readers_take_turns(self) -> None:
        found = [self.read(Piece(self.URL, share=share, of=3)) for share in range(3)]

        assert [[*range(16), 48, 49], [*range(16, 32)], [*range(32, 48)]] == [[record for _, record in each] for each in found]

    def test_ranges_and_single_records(self) -> None:
        pieces = [Piece(self.URL, stop=20), Piece(self.URL, start=20, stop=21), Piece(self.URL, start=21), Piece(self.URL, only=(0, 7))]

        assert [(0, at) for at in range(20)] + [(1, 20)] + [(2, at) for at in range(21, 50)] + [(3, 0), (3, 7)] == self.read(*pieces)
        assert [(3, 0), (3, 7)] == self.read(*pieces, number=3)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> list[dict[str, Any]]:
    """What a transformer in this process, in the place of a pod, is asked for."""
    from tarviz.dialects.tar2tf._transformer import TarTransformer

    calls: list[dict[str, Any]] = []

    def transformed(url: URL, name: str, args: str) -> Any:
        calls.append({"name": name, "url": url, **json.loads(args)})
        reader = stores.of(url).open(url)
        pieces = TarTransformer.transform_stream(None, io.BytesIO(stores.of(url).read(url, 0, reader.stat.size)), url, args)
        return contextlib.nullcontext(io.BytesIO(b"".join(pieces)))

    monkeypatch.setenv("AIS_ENDPOINT", cluster.url)
    monkeypatch.setattr("tarviz.stores.ais.open_transformed", transformed)
    return calls


def test_values_made_there_are_those_made_here(asked: list[dict[str, Any]]) -> None:
    pipeline = Pipeline("ais://data/train-{0..1}.tar", f"{CHAIN}|decode(cls)", seed=3, select=("jpg", "cls"), key_split="last-dot")
    here, there = pipeline.eager(epoch=2), pipeline.run("eager", epoch=2, engine=Etl("ais-etl", count=1, name="one"))

    for (image, label), (other, number) in zip(here, there, strict=True):
        np.testing.assert_array_equal(image, other)
        assert label == number
    common = {"name": "one", "chain": f"{CHAIN}|decode(cls)", "seed": 3, "epoch": 2, "fields": ["cls", "jpg"]}
    options = {"options": {"key_split": "last-dot"}}
    assert [{**common, "url": f"ais://data/train-{at}.tar", **options} for at in range(2)] == asked


def test_errors_there_are_those_here(asked: list[dict[str, Any]], cluster: Cluster, tmp_path: Path) -> None:
    cluster.put("data", "cut.tar", shard(tmp_path, range(4))[:3000])
    for name in ("bad", "cut"):
        pipeline = Pipeline(f"ais://data/{name}.tar", "decode(jpg)")
        told = []
        for options in ({}, {"engine": Etl("ais-etl", name="one")}):
            with pytest.raises(DataError) as error:
                list(pipeline.run("eager", **options))
            told.append((error.value.code, error.value.key, error.value.shard))
        assert told[0] == told[1]


def test_packed_shards_are_told_by_their_bytes(asked: list[dict[str, Any]], cluster: Cluster, tmp_path: Path) -> None:
    cluster.put("data", "packed.tar", gzip.compress(shard(tmp_path, range(4))))
    records = list(Pipeline("ais://data/packed.tar", "decode(cls)").run("eager", engine=Etl("ais-etl", name="one")))

    assert [(f"a.b/r{at:03d}", at) for at in range(4)] == [(each["__key__"], each["cls"]) for each in records]


class TestObstacles:
    """What cannot run next to the data, and why."""

    @pytest.mark.parametrize(
        ("url", "chain", "options", "expected"),
        [
            ("ais://data/train-0.tar", "decode(jpg)", {}, None),
            ("memory://data/a.tar", "decode(jpg)", {}, "the shards are not in an AIStore bucket"),
            ("ais://data/train-0.tar", [Func(len)], {}, "the chain travels as text, and a function has none"),
            ("ais://data/train-0.tar", "", {"where": "cls = 3"}, "records are chosen by a condition or by keys"),
            ("ais://data/train-0.tar", "", {"keys": ["a"]}, "records are chosen by a condition or by keys"),
        ],
    )
    def test_they_are_named(
        self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, url: str, chain: Any, options: dict[str, Any], expected: str | None
    ) -> None:
        monkeypatch.setenv("AIS_ENDPOINT", cluster.url)
        if url.startswith("memory"):
            with stores.of(URL(url)).create(URL(url)) as sink:
                sink.write(b"")

        assert expected == obstacle(Pipeline(url, chain, **options))
