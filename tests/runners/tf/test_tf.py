"""The tf runner: values and order of the eager runner, errors with their place, skips, epochs, and nothing left open."""

from __future__ import annotations

import gc
import importlib
import io
import itertools
import os
import random
import tarfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tarviz
from tarviz.model.errors import DataError, SchemaError, TarvizError, TarvizWarning, UsageError
from tarviz.ops import Decode, Func, SelectJSON
from tarviz.pipeline import Pipeline
from tarviz.testing.faults import Fault, FaultServer
from tests.conftest import own_threads, sampled

tf = pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
source = pytest.importorskip("tarviz.runners.tf.source")

pytestmark = pytest.mark.filterwarnings("ignore:W_EMPTY")

KINDS = {"USTAR": tarfile.USTAR_FORMAT, "GNU": tarfile.GNU_FORMAT, "PAX": tarfile.PAX_FORMAT}


def shard(path: Path, records: Iterable[tuple[str, dict[str, bytes]]], kind: str = "USTAR") -> str:
    """A tar of records: (key, field → payload)."""
    with tarfile.open(path, "w", format=KINDS[kind]) as tar:
        for key, fields in records:
            for ext, data in fields.items():
                info = tarfile.TarInfo(f"{key}.{ext}")
                info.size, info.mtime = len(data), 1.5 if kind == "PAX" else 1
                tar.addfile(info, io.BytesIO(data))
    return str(path)


def picture(seed: int, size: tuple[int, int] = (20, 24), kind: str = "jpeg") -> bytes:
    noise = np.random.default_rng(seed).integers(0, 256, (size[0] // 4, size[1] // 4, 3), np.uint8)
    stream = io.BytesIO()
    Image.fromarray(noise).resize((size[1], size[0])).save(stream, kind)
    return stream.getvalue()


def sample(number: int) -> tuple[str, dict[str, bytes]]:
    size = (20 + number % 3 * 4, 24 + number % 2 * 8)
    label = b'{"id": %d, "boxes": [[%d, 1.5]], "name": "n\xc3\xb6 %d"}' % (number, number, number)
    return f"train/{number:04d}", {"jpg": picture(number, size), "cls": b"%d" % (number % 7), "json": label, "txt": b"text %d\0" % number}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Six shards of 0, 17, 1, 30, 0 and 5 records, ustar, GNU and PAX in turn."""
    folder = tmp_path_factory.mktemp("pictures")
    numbers = itertools.count()
    for at, count in enumerate((0, 17, 1, 30, 0, 5)):
        shard(folder / f"train-{at}.tar", [sample(number) for number in itertools.islice(numbers, count)], list(KINDS)[at % 3])
    return str(folder / "train-{0..5}.tar")


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three shards of 40 records: `cls` counts from 0."""
    folder = tmp_path_factory.mktemp("numbers")
    for at in range(3):
        shard(folder / f"n-{at}.tar", [(f"r{n:03d}", {"cls": b"%d" % n, "raw": b"\0%d\0" % n}) for n in range(40 * at, 40 * at + 40)])
    return str(folder / "n-{0..2}.tar")


@pytest.fixture(params=["graph", "threads"])
def where_ops_run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways a chain is run, whatever would pay."""
    monkeypatch.setattr("tarviz.runners.tf.routes.pays", lambda *_: request.param == "threads")


def assert_same(expected: Any, actual: Any) -> None:
    """A value of the eager runner against one of the dataset."""
    if isinstance(expected, dict):
        assert set(expected) == set(actual)
        for name, value in expected.items():
            assert_same(value, actual[name])
    elif isinstance(expected, list | tuple):
        assert isinstance(actual, tuple)
        for one, other in zip(expected, actual, strict=True):
            assert_same(one, other)
    elif isinstance(expected, str):
        assert expected.encode("utf-8", "surrogateescape") == actual.numpy()
    elif isinstance(expected, bytes):
        assert expected == actual.numpy()
    else:
        expected, actual = np.asarray(expected), actual.numpy()
        assert (expected.dtype, expected.shape) == (actual.dtype, actual.shape)
        if expected.dtype == np.uint8:
            assert np.abs(expected.astype(int) - actual.astype(int)).max(initial=0) <= 1
        elif expected.dtype.kind == "f":
            np.testing.assert_allclose(actual, expected, atol=4.01 / 255)  # a step of 255, divided by std
        else:
            np.testing.assert_array_equal(expected, actual)


def assert_equal(pipeline: Pipeline, **options: Any) -> tuple[Any, list[Any]]:
    """The dataset has the values of the eager runner, in its order. Both come back: to trace a dataset costs more than to read it."""
    dataset = pipeline.tf(**options)
    expected = list(pipeline.eager(**{name: options[name] for name in ("shuffle", "repeat", "epoch") if name in options}))
    actual = list(dataset)

    assert len(expected) == len(actual) > 0
    for one, other in zip(expected, actual, strict=True):
        assert_same(one, other)
    return dataset, actual


def add_mean(record: dict[str, Any]) -> None:
    record["mean"] = np.float32(record["jpg"].mean())


CHAINS: dict[str, tuple[Any, Any]] = {
    "raw": (None, ("jpg", "cls")),
    "raw-all": (None, None),
    "raw-places": (None, {"where": ("__shard__", "__index__"), "key": "__key__", "text": "txt"}),
    "picture": ("decode(jpg)|resize(jpg, (16, 12))|decode(cls)", ("jpg", "cls")),
    "float": ("decode(jpg)|resize(jpg, (16, 12))|convert(jpg, float32)|normalize(jpg, 0.5, 0.25)", "jpg"),
    "random": ("decode(jpg)|random_crop(jpg, (8, 8))|flip(jpg)|decode(cls, dtype=int32)", ["jpg", {"label": "cls"}]),
    "random-python": ("decode(jpg)|flip(jpg)|rotate(jpg)|center_crop(jpg, (8, 8))|random_crop(jpg, (4, 4))", ("jpg", "__key__")),
    "names": ("decode(jpg)|rename(image=jpg)|drop(json)|keep(image, cls)", {"a": "image", "b": "cls"}),
    "text": ("decode(txt)|decode(jpg, channels=1)|keep(txt, jpg)", None),
    "tree": ("decode(json)", (SelectJSON("json", "id"), SelectJSON("json", ["boxes", 0, 1]), "cls")),
    "tree-raw": (None, (SelectJSON("json", "name"), "__key__")),
    "tree-and-graph": ("decode(jpg)|decode(json)|convert(jpg, float32)", ("jpg", SelectJSON("json", "id"))),
    "tree-nobody-asks-for": ("decode(json)|decode(jpg)|resize(jpg, (8, 8))", "jpg"),
    "function": ([Decode("jpg"), Func(add_mean), "convert(jpg, float32)"], ("mean", "jpg", "__key__")),
    "encode": ("decode(jpg)|encode(jpg, png)", None),
}


# In the graph each chain that has an op; in threads a picture, a tree and a function. Without an op there is no difference.
QUICK = {("graph", name) for name, (chain, _) in CHAINS.items() if chain} | {("threads", name) for name in ("picture", "tree", "function")}
QUICK |= {("threads", "raw"), ("graph", "raw-all"), ("graph", "raw-places"), ("graph", "tree-raw")}


@pytest.mark.usefixtures("where_ops_run")
class TestValues:
    @pytest.mark.parametrize(
        ("where_ops_run", "name", "num_workers"),
        [
            pytest.param(*case, marks=[] if case[:2] in QUICK and case[2] == 1 else pytest.mark.matrix)
            for case in itertools.product(("graph", "threads"), CHAINS, (1, 2, 3))
        ],
        indirect=["where_ops_run"],
    )
    def test_they_equal_the_eager_runner_in_the_same_order_and_the_spec_is_the_schema(
        self, pictures: str, name: str, num_workers: int
    ) -> None:
        chain, select = CHAINS[name]

        dataset, values = assert_equal(Pipeline(pictures, chain, select=select, seed=5), num_workers=num_workers)

        specs = tf.nest.flatten(dataset.element_spec)
        assert all(spec.is_compatible_with(each) for spec, each in zip(specs, tf.nest.flatten(values[0]), strict=True))
        assert all(spec.shape.rank is not None for spec in specs)

    @pytest.mark.parametrize("name", ["raw", "random"])
    def test_shuffled_and_repeated_too(self, pictures: str, name: str) -> None:
        chain, select = CHAINS[name]

        assert_equal(Pipeline(pictures, chain, select=select, seed=5), shuffle=20, repeat=3, num_workers=2, epoch=7)

    def test_bytes_keep_their_zeros(self, numbers: str) -> None:
        assert [b"\0%d\0" % n for n in range(120)] == list(Pipeline(numbers, select="raw").tf().as_numpy_iterator())

    @pytest.mark.parametrize("data", ["generated", "gz"])
    def test_compressed_shards_and_names_that_are_no_utf8(self, tmp_path: Path, data: str) -> None:
        path = tmp_path / f"a.tar{'.gz' if data == 'gz' else ''}"
        with tarfile.open(path, "w:gz" if data == "gz" else "w", encoding="latin-1") as tar:
            for at in range(3):
                info = tarfile.TarInfo(f"gr\xfc{at}.cls")
                info.size = 1
                tar.addfile(info, io.BytesIO(b"%d" % at))

        assert_equal(Pipeline(path, "decode(cls)"))
        assert_equal(Pipeline(path))

    @pytest.mark.matrix
    def test_records_may_have_a_field_under_either_name(self, tmp_path: Path) -> None:
        records = [(f"k{at}", {"png" if at % 3 else "jpg": picture(at), "cls": b"%d" % at}) for at in range(9)]
        for low in (0, 1):
            path = shard(tmp_path / f"{low}.tar", records[low:])
            chain = "decode(jpg;png)|resize(jpg;png, (8, 8))|decode(cls)"

            assert_equal(Pipeline(path, chain, select={"image": "jpg;png", "label": "cls"}, block_size=4096))
            assert_equal(Pipeline(path, select=("jpg;png", "cls"), block_size=4096))

    def test_records_of_several_blocks(self, tmp_path: Path) -> None:
        sizes = [random.Random(at).choice([0, 1, 5, 700, 5000, 90_000]) for at in range(60)]
        path = shard(tmp_path / "a.tar", [(f"k{at}", {"bin": os.urandom(size), "cls": b"1"}) for at, size in enumerate(sizes)])

        assert_equal(Pipeline(path, select=("bin", "cls"), block_size=16384))
        assert_equal(Pipeline(path, "decode(cls)", select=("bin", "cls"), block_size=16384), num_workers=2)


class TestIndexed:
    @pytest.mark.parametrize(
        ("name", "block_size"), sampled(itertools.product(["raw-places", "raw-all", "random-python"], [4096, None]), 2)
    )
    @pytest.mark.matrix
    def test_an_index_changes_nothing(self, pictures: str, name: str, block_size: int | None) -> None:
        chain, select = CHAINS[name]
        pipeline = Pipeline(pictures, chain, select=select, seed=5, block_size=block_size)
        before = list(pipeline.tf().as_numpy_iterator())
        tarviz.index(pictures)

        dataset, values = assert_equal(pipeline, num_workers=2)

        assert len(before) == len(dataset) == len(values) == dataset.report.records
        assert 6 == dataset.report.shards

    def test_a_shard_that_changed_is_read_anew(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tar"
        shard(path, [(f"k{at}", {"cls": b"1"}) for at in range(30)])
        tarviz.index(path)
        dataset = Pipeline(path, select="cls").tf()
        assert 30 == len(list(dataset)) == len(dataset)

        shard(path, [(f"longer{at}", {"cls": b"2", "txt": b"x" * at}) for at in range(40)])
        assert [b"2"] * 40 == list(Pipeline(path, select="cls").tf().as_numpy_iterator())


@pytest.mark.usefixtures("where_ops_run")
class TestBatches:
    @pytest.mark.parametrize(("name", "drop_remainder"), sampled([("raw", True), ("picture", True), ("raw", False), ("picture", False)], 2))
    def test_so_many_records_are_one_element(self, pictures: str, name: str, drop_remainder: bool) -> None:
        chain, select = CHAINS[name]
        pipeline = Pipeline(pictures, chain, select=select)
        dataset = pipeline.tf(batch=20, drop_remainder=drop_remainder)
        batches = list(dataset)

        assert [20, 20] + [13] * (not drop_remainder) == [len(cls) for _, cls in batches]
        assert (20 if drop_remainder else None) == dataset.element_spec[1].shape[0]
        single = [cls.numpy() for _, cls in pipeline.tf()]
        assert single[: sum(len(cls) for _, cls in batches)] == np.concatenate([cls.numpy() for _, cls in batches]).tolist()

    @pytest.mark.matrix
    def test_batching_later_gives_the_same(self, numbers: str) -> None:
        pipeline = Pipeline(numbers, select=("raw", "cls"))
        expected = [raw.numpy().tolist() for raw, _ in pipeline.tf(batch=50)]

        assert expected == [raw.numpy().tolist() for raw, _ in pipeline.tf().batch(50)]
        assert expected == [raw.numpy().tolist() for raw, _ in pipeline.tf(batch=50).unbatch().batch(50)]
        assert expected == [raw.numpy().tolist() for raw, _ in pipeline.tf().map(lambda *values: values).batch(50)]
        assert [50, 50] == [len(raw) for raw, _ in pipeline.tf().batch(50, drop_remainder=True)]
        assert expected == [raw.numpy().tolist() for raw, _ in pipeline.tf().batch(50, num_parallel_calls=2)]

    @pytest.mark.parametrize(
        ("chain", "options", "told"), [(None, {}, 120), ("decode(cls)", {}, None), (None, {"output_types": "string"}, None)]
    )
    def test_the_reader_batches_raw_records_later_too(self, numbers: str, chain: Any, options: dict[str, Any], told: int | None) -> None:
        batches = Pipeline(numbers, chain, select="cls").tf(**options).batch(50, True)

        assert [50, 50] == [len(batch) for batch in batches]
        assert told == (batches.report.records if hasattr(batches, "report") else None)

    def test_a_last_batch_is_shared_by_two_passes(self, numbers: str) -> None:
        batches = list(Pipeline(numbers, "decode(cls)", select="cls").tf(batch=100, repeat=2))

        assert [100, 100, 40] == [len(batch) for batch in batches]
        assert [*range(100, 120), *range(80)] == batches[1].numpy().tolist()


class TestEpochs:
    @pytest.mark.matrix
    def test_iterating_again_is_the_next_epoch(self, pictures: str) -> None:
        pipeline = Pipeline(pictures, "decode(jpg)|random_crop(jpg, (4, 4))", select="jpg")
        dataset = pipeline.tf(shuffle=10)
        first, second = (np.stack(list(dataset.as_numpy_iterator())) for _ in range(2))

        assert not np.array_equal(first, second)
        np.testing.assert_array_equal(second, np.stack(list(pipeline.tf(shuffle=10, epoch=1).as_numpy_iterator())))
        both = np.stack(list(pipeline.tf(shuffle=10, repeat=2).as_numpy_iterator()))
        np.testing.assert_array_equal(both, np.concatenate([first, second]))

    @pytest.mark.matrix
    def test_set_epoch_pins_one(self, numbers: str) -> None:
        dataset = Pipeline(numbers, "decode(cls)", select="cls").tf(shuffle=200)
        orders = [list(dataset.as_numpy_iterator()) for _ in range(3)]
        dataset.set_epoch(1)
        assert orders[1] == list(dataset.as_numpy_iterator()) == list(dataset.as_numpy_iterator())

        dataset.set_epoch(None)
        assert orders[2] == list(dataset.as_numpy_iterator())
        with pytest.raises(UsageError, match="epoch=-1"):
            dataset.set_epoch(-1)

    def test_no_workers_are_as_good_as_one(self, numbers: str) -> None:
        pipeline = Pipeline(numbers, "decode(cls)", select="cls")

        assert list(range(120)) == list(pipeline.tf(num_workers=0).as_numpy_iterator())

    def test_without_random_ops_it_is_the_same(self, numbers: str) -> None:
        dataset = Pipeline(numbers, "decode(cls)", select="cls").tf()

        assert list(range(120)) == list(dataset.as_numpy_iterator()) == list(dataset.as_numpy_iterator())

    @pytest.mark.matrix
    def test_it_may_go_on_for_ever(self, numbers: str) -> None:
        for chain in (None, "decode(cls)"):
            dataset = Pipeline(numbers, chain, select="cls").tf(repeat=None)

            assert tf.data.INFINITE_CARDINALITY == dataset.cardinality()
            assert [0, 119, 0] == [int(next(iter(dataset.skip(at).take(1)))) for at in (0, 119, 240)]

    def test_nothing_is_repeated_for_ever_only_once(self, tmp_path: Path, numbers: str) -> None:
        assert 0 == len(list(Pipeline(numbers, select="cls").tf(repeat=0)))

    def test_two_iterators_do_not_disturb_each_other(self, numbers: str) -> None:
        dataset = Pipeline(numbers, "decode(cls)", select="cls").tf()
        zipped = tf.data.Dataset.zip((dataset, dataset))

        assert [(n, n) for n in range(120)] == list(zipped.as_numpy_iterator())


class TestOrder:
    def test_on_request_shards_come_as_they_are_read(self, pictures: str) -> None:
        pipeline = Pipeline(pictures, select=("__key__", "cls"))
        keys = sorted(key for key, _ in pipeline)

        assert keys == sorted(key.numpy().decode() for key, _ in pipeline.tf(deterministic=False, num_workers=3))


class TestLength:
    @pytest.mark.matrix
    def test_it_is_known_before_the_first_pass(self, numbers: str) -> None:
        pipeline = Pipeline(numbers, select="cls")

        assert 120 == pipeline.tf().cardinality() == len(pipeline.tf())
        assert 7 == pipeline.tf(batch=50, repeat=3, drop_remainder=True).cardinality() == len(list(pipeline.tf(batch=50, repeat=3))) - 1
        assert 3 == pipeline.tf().batch(50).cardinality()
        assert 120 == len(list(pipeline.with_chain("decode(cls)").tf()))
        ranks = {"rank": 1, "world_size": 2}
        for options in ({"shuffle": 50}, {"shuffle": 50, **ranks}, {"rank": 1, "world_size": 7, "even": True, "batch": 4}):
            assert len(list(pipeline.tf(**options))) == pipeline.tf(**options).cardinality() > 0

    @pytest.mark.parametrize("case", ["skips", "mixed", "reshared", "packed", "damaged"])
    def test_it_is_unknown_where_nobody_can_tell(self, tmp_path: Path, numbers: str, case: str) -> None:
        path, more, options = numbers, {}, {}
        if case == "skips":
            more = {"on_error": "skip"}
        elif case == "mixed":
            path = tarviz.mix({numbers: 1.0})
        elif case == "reshared":
            options = {"rank": 0, "world_size": 7, "reshare": True}
        elif case == "packed":
            path = str(tmp_path / "packed.tar.gz")
            tarviz.cat(numbers, path)
        else:
            path = str(tmp_path / "damaged.tar")
            data = next(Path(numbers).parent.glob("*.tar")).read_bytes()
            Path(path).write_bytes(data[: len(data) // 2 + 100])

        assert tf.data.UNKNOWN_CARDINALITY == Pipeline(path, select="cls", **more).tf(**options).cardinality()

    @pytest.mark.matrix
    def test_keras_shows_all_steps_from_the_first_epoch_and_raises_no_alarm(self, numbers: str, capfd: pytest.CaptureFixture[str]) -> None:
        pipeline = Pipeline(numbers, "decode(cls)", select=("cls", "cls"))
        model = tf.keras.Sequential([tf.keras.layers.Input(()), tf.keras.layers.Reshape((1,)), tf.keras.layers.Dense(1)])
        model.compile(loss="mse")
        steps: list[int] = []
        told = tf.keras.callbacks.LambdaCallback(on_epoch_begin=lambda *_: steps.append(told.params["steps"]))

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(pipeline.tf(batch=50, shuffle=20), epochs=2, verbose=0, callbacks=[told])

        assert [3, 3] == steps
        assert "ran out of data" not in capfd.readouterr().err + "".join(str(each.message) for each in caught)

    def test_a_dataset_in_a_condition_is_true(self, numbers: str) -> None:
        assert Pipeline(numbers, select="cls").tf()


def cut_short(path: Path) -> Path:
    """The shard without its last 700 bytes of records."""
    data = path.read_bytes()
    with tarfile.open(path) as tar:
        last = tar.getmembers()[-1]
    path.write_bytes(data[: last.offset_data + 1])
    return path


def damaged(tmp_path: Path, bad: dict[int, dict[str, bytes]], count: int = 30) -> str:
    records = [(f"k{at:02d}", {"jpg": picture(at), "cls": b"%d" % at, **bad.get(at, {})}) for at in range(count)]
    return shard(tmp_path / "d.tar", [(key, {ext: data for ext, data in fields.items() if data != b"gone"}) for key, fields in records])


def caught(dataset: Any) -> tuple[list[Any], Exception]:
    """What came, and what was raised."""
    values = []
    try:
        for value in dataset:
            values.append(value)  # noqa: PERF402  what came before the error counts
    except Exception as error:  # noqa: BLE001
        return values, error
    raise AssertionError("nothing was raised")


CHAIN = "decode(jpg)|resize(jpg, (8, 8))|decode(cls)"
TRUNCATED = picture(3)[:150]


class TestRanks:
    @pytest.mark.parametrize(
        ("world", "chain"), sampled([(3, None), (4, "decode(cls)"), (7, None), (7, "decode(cls)"), (4, None), (2, "decode(cls)")], 2)
    )
    def test_each_record_comes_once_an_epoch(self, numbers: str, world: int, chain: str | None) -> None:
        ranks = [Pipeline(numbers, chain, select="cls").tf(rank=rank, world_size=world, shuffle=20) for rank in range(world)]
        orders = [[int(cls) for dataset in ranks for cls in dataset.as_numpy_iterator()] for _ in range(3)]

        assert all(list(range(120)) == sorted(order) for order in orders)
        assert orders[0] != orders[1] != orders[2] != orders[0]

    @pytest.mark.matrix
    def test_each_epoch_shares_anew_as_eager_does(self, numbers: str) -> None:
        pipeline = Pipeline(numbers, "decode(cls)", select="cls")
        for rank in range(3):
            options = {"rank": rank, "world_size": 3, "reshare": True, "shuffle": 20}
            run, dataset = pipeline.eager(**options), pipeline.tf(**options)
            parts = [[int(cls) for cls in dataset.as_numpy_iterator()] for _ in range(3)]

            assert [[int(cls) for cls in run] for _ in range(3)] == parts
            assert set(parts[0]) != set(parts[1])

    def test_an_input_context_says_which(self, numbers: str) -> None:
        pipeline = Pipeline(numbers, "decode(cls)", select="cls")
        parts = [list(pipeline.tf(input_context=tf.distribute.InputContext(3, rank, 3)).as_numpy_iterator()) for rank in range(3)]

        assert list(range(120)) == sorted(itertools.chain.from_iterable(parts))
        assert all(parts)
        with pytest.raises(UsageError, match="Give one of them"):
            pipeline.tf(rank=0, world_size=2, input_context=tf.distribute.InputContext(3, 0, 3))

    def test_a_strategy_deals_them_out(self, numbers: str) -> None:
        pipeline = Pipeline(numbers, "decode(cls)", select="cls")
        strategy = tf.distribute.get_strategy()
        made = strategy.distribute_datasets_from_function(lambda context: pipeline.tf(batch=30, input_context=context))

        assert list(range(120)) == [int(cls) for batch in made for cls in batch]

    @pytest.mark.matrix
    def test_even_ones_have_known_equal_lengths(self, numbers: str) -> None:
        tarviz.index(numbers)
        pipeline = Pipeline(numbers, "decode(cls)", select="cls")
        ranks = [pipeline.tf(rank=rank, world_size=7, even=True, batch=5) for rank in range(7)]

        assert [4] * 7 == [int(dataset.cardinality()) for dataset in ranks]
        assert [17] * 7 == [len(list(dataset.unbatch())) for dataset in ranks]

    def test_one_without_a_record_is_an_error(self, tmp_path: Path) -> None:
        shard(tmp_path / "a.tar", [("a", {"cls": b"1"})])
        with pytest.raises(UsageError, match="cannot be shared out among 2 ranks"):
            list(Pipeline(tmp_path / "a.tar", select="cls").tf(rank=1, world_size=2))


@pytest.mark.usefixtures("where_ops_run")
class TestErrors:
    @pytest.mark.parametrize(("chain", "num_workers"), sampled([(None, 1), (CHAIN, 1), (None, 3), (CHAIN, 3)], 2))
    def test_a_truncated_shard_is_told_behind_its_last_certain_record(self, tmp_path: Path, chain: str | None, num_workers: int) -> None:
        for at in range(2):
            shard(tmp_path / f"t-{at}.tar", [sample(n) for n in range(10)])
        cut_short(tmp_path / "t-1.tar")
        pipeline = Pipeline(str(tmp_path / "t-{0..1}.tar"), chain, select=("jpg", "cls"))
        expected, want = caught(pipeline)
        actual, found = caught(pipeline.tf(num_workers=num_workers))

        assert isinstance(found, DataError)
        assert str(want) == str(found)
        assert found.shard is not None
        assert found.shard.endswith("t-1.tar")
        assert found.offset is not None
        assert len(expected) == len(actual) == 19

    @pytest.mark.parametrize(
        ("bad", "num_workers"), sampled(zip([TRUNCATED, b"no picture", b"", picture(1)[:2]] * 2, [1, 3, 3, 1, 3, 1, 1, 3], strict=True), 2)
    )
    def test_a_payload_that_does_not_decode_is_told_with_shard_key_and_byte(self, tmp_path: Path, bad: bytes, num_workers: int) -> None:
        pipeline = Pipeline(damaged(tmp_path, {17: {"jpg": bad}}), CHAIN, select=("jpg", "cls"))
        values, error = caught(pipeline.tf(num_workers=num_workers))

        assert isinstance(error, DataError)
        assert ("k17", str(tmp_path / "d.tar")) == (error.key, error.shard)
        assert error.offset is not None
        assert 17 == len(values)

    def test_at_the_end_and_in_the_first_record_too(self, tmp_path: Path) -> None:
        for at in (0, 29):
            values, error = caught(Pipeline(damaged(tmp_path, {at: {"cls": b"seven"}}), CHAIN, select=("jpg", "cls")).tf())

            assert f"k{at:02d}" == error.key  # type: ignore[attr-defined]
            assert at == len(values)

    def test_batches_before_it_come(self, tmp_path: Path) -> None:
        values, error = caught(Pipeline(damaged(tmp_path, {17: {"jpg": TRUNCATED}}), CHAIN, select="jpg").tf(batch=5))

        assert isinstance(error, DataError)
        assert 3 == len(values)

    def test_built_upon_the_text_is_the_same(self, tmp_path: Path) -> None:
        pipeline = Pipeline(damaged(tmp_path, {17: {"jpg": TRUNCATED}}), CHAIN, select="jpg")
        _, want = caught(pipeline)
        _, error = caught(pipeline.tf().map(lambda image: image).prefetch(2))

        assert isinstance(error, tf.errors.OpError)
        assert str(want) in error.message
        assert '"k17"' in error.message
        assert "d.tar" in error.message

    def test_what_a_function_raises_is_told_with_its_record(self, tmp_path: Path) -> None:
        def fail(record: dict[str, Any]) -> None:
            if record["cls"] == 12:
                raise KeyError("twelve")

        chain = [Decode("cls"), Func(fail, output_types={"cls": "int64"})]
        values, error = caught(Pipeline(damaged(tmp_path, {}), chain, select="cls").tf(num_workers=2))

        assert isinstance(error, DataError)
        assert "E_OP" == error.code
        assert "k12" == error.key
        assert "KeyError" in str(error)
        assert list(range(12)) == [int(value) for value in values]

    def test_a_function_that_changes_its_mind_about_dtype(self, tmp_path: Path) -> None:
        def turn(record: dict[str, Any]) -> None:
            record["x"] = np.zeros(2, np.float32 if int(record["cls"]) < 12 else np.float64)

        values, error = caught(Pipeline(damaged(tmp_path, {}), Func(turn), select="x").tf())

        assert isinstance(error, SchemaError)
        assert "float64[2]" in str(error)
        assert "k12" == error.key
        assert 12 == len(values)

    @pytest.mark.parametrize("chain", [None, CHAIN])
    def test_a_field_that_is_missing(self, tmp_path: Path, chain: str | None) -> None:
        values, error = caught(Pipeline(damaged(tmp_path, {17: {"cls": b"gone"}}), chain, select=("jpg", "cls")).tf())

        assert isinstance(error, SchemaError)
        assert "k17" == error.key
        assert "'cls'" in str(error)
        assert error.offset is not None
        assert 17 == len(values)

    def test_a_field_the_first_records_had_not_is_told_once(self, tmp_path: Path) -> None:
        dataset = Pipeline(damaged(tmp_path, {at: {"txt": b"more"} for at in range(20, 25)}), block_size=4096).tf()
        values = list(dataset)

        assert 30 == len(values)
        assert {"__key__", "jpg", "cls"} == set(values[0])
        assert {"W_EXTRA_FIELD": 1} == dataset.report.counts()

    def test_after_an_error_the_dataset_can_be_used_again(self, tmp_path: Path) -> None:
        dataset = Pipeline(damaged(tmp_path, {17: {"jpg": TRUNCATED}}), CHAIN, select="jpg").tf()

        for _ in range(3):
            assert 17 == len(caught(dataset)[0])

    def test_ignoring_errors_ends(self, tmp_path: Path) -> None:
        shard(tmp_path / "t.tar", [sample(n) for n in range(10)])
        cut_short(tmp_path / "t.tar")

        for chain in (None, CHAIN):
            assert 9 == len(list(Pipeline(tmp_path / "t.tar", chain, select="jpg").tf().ignore_errors()))

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"batch": 0}, "batch=0"),
            ({"num_workers": -1}, "workers=-1"),
            ({"epoch": -1}, "epoch=-1"),
            ({"repeat": 1.5}, "repeat=1.5"),
            ({"prefetch": True}, "prefetch=T"),
        ],
    )
    def test_arguments_that_cannot_work(self, numbers: str, options: dict[str, Any], text: str) -> None:
        with pytest.raises(UsageError, match=text):
            Pipeline(numbers).tf(**options)

    def test_standard_input_is_refused(self) -> None:
        with pytest.raises(UsageError, match="Standard input"):
            Pipeline("-").tf()

    def test_values_no_tensor_holds_are_refused_at_once(self, pictures: str) -> None:
        for select in (None, "json", (SelectJSON("json"),)):
            with pytest.raises(SchemaError, match="no tensor"):
                Pipeline(pictures, "decode(json)", select=select).tf()


@pytest.mark.usefixtures("where_ops_run")
class TestSkipping:
    @pytest.mark.parametrize(
        ("chain", "batch"), sampled(itertools.product([CHAIN, CHAIN + "|rotate(jpg)", [CHAIN, Func(dict, output_types={})]], [None, 4]), 2)
    )
    def test_bad_records_are_left_out_and_counted(self, tmp_path: Path, chain: Any, batch: int | None) -> None:
        bad = {0: {"jpg": b""}, 4: {"jpg": TRUNCATED}, 5: {"cls": b"x"}, 6: {"cls": b"gone"}, 20: {"jpg": b"?"}, 29: {"cls": b"9" * 20}}
        records = Pipeline(damaged(tmp_path, bad), chain, select=("cls", "jpg", "__key__"), on_error="skip")
        dataset = records.tf(num_workers=2, batch=batch)
        keys = [key for _, _, part in dataset for key in np.atleast_1d(part.numpy()).tolist()]

        assert [b"k%02d" % at for at in range(30) if at not in bad] == keys
        assert [f"k{at:02d}" for at in bad] == sorted(fault.key for fault in dataset.report.skipped if fault.key)
        assert all(fault.shard and fault.offset is not None for fault in dataset.report.skipped)

        eager = records.eager()
        list(eager)
        assert eager.report.counts() == dataset.report.counts()

    @pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")
    def test_damaged_shards_are_left_and_counted(self, tmp_path: Path) -> None:
        for at in range(3):
            shard(tmp_path / f"t-{at}.tar", [sample(n) for n in range(10)])
        cut_short(tmp_path / "t-1.tar")
        for chain, workers in ((None, 1), ("decode(cls)", 2)):
            dataset = Pipeline(str(tmp_path / "t-{0..2}.tar"), chain, select="cls", on_error="skip").tf(num_workers=workers)

            assert 29 == len(list(dataset))
            assert 1 == len(dataset.report.skipped)
            assert 3 == dataset.report.shards

    def test_nothing_is_left_is_an_end(self, tmp_path: Path) -> None:
        dataset = Pipeline(damaged(tmp_path, {at: {"jpg": b"?"} for at in range(30)}), CHAIN, select="jpg", on_error="skip").tf(repeat=2)

        assert [] == list(dataset)
        assert 60 == sum(dataset.report.counts().values())


def tars() -> Counter[str]:
    """Shards that are open in this process, by their names."""
    names = (os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd"))
    return Counter(name for name in names if name.endswith(".tar"))


@pytest.fixture
def opened() -> Callable[[], tuple[int, int]]:
    """Shards that a test has opened and threads that it has begun; what the tests before it left does not count."""
    files, threads = tars(), own_threads()

    def now() -> tuple[int, int]:
        return (tars() - files).total(), len(own_threads() - threads)

    return now


def settles(check: Callable[[], bool], seconds: float = 60) -> bool:
    until = time.monotonic() + seconds
    while not check() and time.monotonic() < until:
        time.sleep(0.01)
    return check()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="/proc shows what is open")
@pytest.mark.usefixtures("where_ops_run")
class TestLeaks:
    @pytest.mark.parametrize(
        ("where_ops_run", "chain", "workers", "built"),
        [
            ("graph", None, 1, False),
            ("graph", "decode(cls)", 2, False),
            ("graph", None, 3, False),
            ("graph", None, 1, True),
            ("graph", None, 3, True),
            ("threads", "decode(cls)", 2, False),
            ("graph", "decode(cls)", 2, True),
            ("threads", "decode(cls)", 2, True),
        ],
        indirect=["where_ops_run"],
    )
    def test_leaving_early_closes_the_shard(
        self, tmp_path: Path, opened: Callable[[], tuple[int, int]], chain: str | None, workers: int, built: bool
    ) -> None:
        for at in range(4):
            shard(tmp_path / f"n-{at}.tar", [(f"k{n}", {"cls": b"%d" % n}) for n in range(300)])
        dataset = Pipeline(str(tmp_path / "n-{0..3}.tar"), chain, select="cls", block_size=4096).tf(num_workers=workers)
        source = dataset._source
        dataset = dataset.map(lambda value: value).prefetch(2) if built else dataset
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                for _value in dataset:
                    break
                iterator = iter(dataset)
                next(iterator)
                del iterator, _value

            assert settles(lambda: opened() == (0, 0))
            assert not source._runs
        finally:
            gc.enable()

    @pytest.mark.slow
    @pytest.mark.timeout(900)
    def test_a_thousand_times(self, numbers: str, opened: Callable[[], tuple[int, int]]) -> None:
        dataset = Pipeline(numbers, "decode(cls)", select="cls", block_size=4096).tf(num_workers=2)
        before = len(os.listdir("/proc/self/fd")), threading.active_count(), len(os.listdir("/proc/self/task"))
        for _ in range(1000):
            next(iter(dataset))

        assert settles(lambda: opened() == (0, 0))
        after = len(os.listdir("/proc/self/fd")), threading.active_count(), len(os.listdir("/proc/self/task"))
        assert all(now <= then + 4 for then, now in zip(before, after, strict=True))

    def test_one_that_is_asked_again_after_an_error_in_its_first_step_ends(
        self, tmp_path: Path, opened: Callable[[], tuple[int, int]]
    ) -> None:
        (tmp_path / "a.tar").write_bytes(b"no tar" * 1000)
        path = shard(tmp_path / "b.tar", [("k", {"cls": b"1"})])
        dataset = Pipeline(path, select="cls").tf(batch=2)
        (tmp_path / "a.tar").rename(path)

        assert [] == list(tf.data.Dataset.range(1).flat_map(lambda _: dataset).ignore_errors())
        assert dataset._source.error is not None
        assert not dataset._source._runs
        assert settles(lambda: opened() == (0, 0))

    def test_one_whose_handles_are_copied_is_read_to_its_end(self, numbers: str) -> None:
        records = Pipeline(numbers, select="cls", block_size=4096).tf()._source
        handle, found, column = source.HANDLE, [], [b""]
        for turn in itertools.count():
            handle = records.go_on(0, False, handle, turn).copy()
            [column] = records.take(handle)
            if not len(column):
                break
            found += column.tolist()

        assert turn > 2
        assert list(Pipeline(numbers, select="cls").eager()) == found
        assert not records._runs

    def test_all_records_come_in_debug_mode(self, numbers: str) -> None:
        pipeline = Pipeline(numbers, select="cls", block_size=4096)
        expected = list(pipeline.tf().as_numpy_iterator())
        mode = importlib.import_module("tensorflow.python.data.ops.debug_mode")  # TensorFlow has a public way in, and none out
        tf.data.experimental.enable_debug_mode()
        try:
            found = list(pipeline.tf().as_numpy_iterator())
        finally:
            mode.toggle_debug_mode(False)

        assert expected == found

    def test_an_iterator_that_is_dropped_before_its_first_value(self, numbers: str, opened: Callable[[], tuple[int, int]]) -> None:
        dataset = Pipeline(numbers, select="cls").tf()
        for _ in range(5):
            iter(dataset)

        assert settles(lambda: opened() == (0, 0))


class TestOverHttp:
    def test_it_is_resumed_and_left_early(self, tmp_path: Path, opened: Callable[[], tuple[int, int]]) -> None:
        payload = os.urandom(400_000)  # 80 MB: far more than is read ahead, and than sockets hold
        path = Path(shard(tmp_path / "a.tar", [(f"k{at}", {"bin": payload, "cls": b"%d" % at}) for at in range(200)]))
        with FaultServer() as server:
            url = server.put("/a.tar", path.read_bytes(), plan=[Fault(cut=7_000_000), Fault(cut=9_000_000, end="reset")])
            dataset = Pipeline(url, "decode(cls)", select="cls").tf(num_workers=2)
            server.requests.clear()

            assert list(range(200)) == list(dataset.as_numpy_iterator())
            server.requests.clear()
            assert 0 == int(next(iter(dataset)))
            assert settles(lambda: not dataset._source._runs)
            assert settles(lambda: opened() == (0, 0))
            assert sum(request.sent for request in server.requests) < path.stat().st_size


class TestKeras:
    @pytest.mark.matrix
    def test_a_model_learns_from_it(self, tmp_path: Path) -> None:
        def record(at: int) -> tuple[str, dict[str, bytes]]:
            stream = io.BytesIO()
            Image.fromarray(np.full((8, 8), 255 * (at % 2), np.uint8)).save(stream, "png")
            return f"k{at}", {"png": stream.getvalue(), "cls": b"%d" % (at % 2)}

        path = shard(tmp_path / "a.tar", map(record, range(64)))
        tarviz.index(path)  # or else Keras warns, as of every dataset whose length is not known
        chain = "decode(png, channels=1)|resize(png, (8, 8))|convert(png, float32)|decode(cls)"
        dataset = Pipeline(path, chain, select=("png", "cls")).tf(batch=16, shuffle=64)
        tf.keras.utils.set_random_seed(7)
        model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(2)])
        model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
        history = model.fit(dataset, epochs=12, shuffle=False, verbose=0)

        assert 1.0 == history.history["accuracy"][-1]

    @pytest.mark.matrix
    def test_errors_in_training_name_the_record(self, tmp_path: Path) -> None:
        path = damaged(tmp_path, {17: {"jpg": TRUNCATED}})
        tarviz.index(path)
        dataset = Pipeline(path, CHAIN + "|convert(jpg, float32)", select=("jpg", "cls")).tf(batch=4)
        model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(30)])
        model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))

        with pytest.raises((TarvizError, tf.errors.OpError), match="k17"):
            model.fit(dataset, shuffle=False, verbose=0)


def test_warnings_reach_the_report(tmp_path: Path) -> None:
    path = shard(tmp_path / "a.tar", [sample(1)])
    with tarfile.open(path) as tar:
        end = tar.getmembers()[-1].offset_data + 512
    Path(path).write_bytes(Path(path).read_bytes()[:end])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TarvizWarning)
        dataset = Pipeline(path, select="cls", strict=False).tf()
        list(dataset)

    assert dataset.report.warnings
