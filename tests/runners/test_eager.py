"""The eager runner: order, threads, batches, shuffling, epochs, skips, and errors with their place."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import tarfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarviz
from tarviz.model.errors import DataError, SchemaError, TarvizError, UsageError
from tarviz.model.types import PLACES
from tarviz.ops import Chain, Decode, Func, Rotate
from tarviz.pipeline import Pipeline
from tarviz.runners.eager import collate
from tarviz.samples import write_shard


def shard(path: Path, records: dict[str, dict[str, bytes]]) -> str:
    """A tar of records: key → field → payload."""
    with tarfile.open(path, "w") as tar:
        for key, fields in records.items():
            for ext, data in fields.items():
                info = tarfile.TarInfo(f"{key}.{ext}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return str(path)


@pytest.fixture
def numbers(tmp_path: Path) -> str:
    """Two shards of 50 records: `n` counts from 0."""
    for at in range(2):
        shard(tmp_path / f"n-{at}.tar", {f"r{n:03d}": {"cls": b"%d" % n} for n in range(50 * at, 50 * at + 50)})
    return str(tmp_path / "n-{0..1}.tar")


def test_records_come_in_shard_and_record_order(numbers: str) -> None:
    assert list(range(100)) == list(Pipeline(numbers, "decode(cls)", select="cls"))


@pytest.mark.parametrize("num_workers", [1, 3])
def test_threads_keep_the_order_and_the_random_numbers(numbers: str, num_workers: int) -> None:
    def turn(record: dict[str, Any]) -> None:
        record["image"] = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)

    pipeline = Pipeline(numbers, [Func(turn), Rotate("image")], select=("cls", "image"), seed=4)
    expected, actual = list(pipeline), list(pipeline.eager(num_workers=num_workers))

    assert 100 == len(actual)
    for (cls, image), (other_cls, other_image) in zip(expected, actual, strict=True):
        assert cls == other_cls
        np.testing.assert_array_equal(image, other_image)


@pytest.mark.parametrize("runner", ["eager", "tf"])
def test_a_field_may_begin_with_underscores(tmp_path: Path, runner: str) -> None:
    fields = {"__class__}.txt": b"t", "__url__": b"u", "cls": b"1"}
    url = shard(tmp_path / "a.tar", {"r0": fields})

    (record,) = as_list(Pipeline(url), runner)

    assert fields == {name: value for name, value in record.items() if name not in PLACES}


@pytest.mark.parametrize("runner", ["eager", "tf"])
@pytest.mark.parametrize("place", PLACES)
def test_a_field_named_like_a_place_does_not_take_it(tmp_path: Path, place: str, runner: str) -> None:
    url = shard(tmp_path / "a.tar", {"r0": {"cls": b"1"}, "r1": {"cls": b"2", place: b"mine"}})

    with pytest.raises(SchemaError, match=f"named '{place}'.*--drop {place}"):
        as_list(Pipeline(url), runner)

    assert [b"1", b"2"] == as_list(Pipeline(url, select="cls"), runner)


def as_list(pipeline: Pipeline, runner: str) -> list[Any]:
    return list(pipeline) if runner == "eager" else list(pipeline.tf().as_numpy_iterator())


def test_without_a_selection_the_whole_record_comes(numbers: str) -> None:
    assert {"__key__": "r000", "cls": b"0"} == next(iter(Pipeline(numbers)))


def test_fields_nobody_needs_are_not_copied(tmp_path: Path) -> None:
    seen: list[set[str]] = []

    class Spy(Chain):
        def run(self, record: Any, *given: Any) -> dict[str, Any]:
            seen.append({name for name in record if name not in PLACES})
            return Chain.run(self, record, *given)

    pipeline = Pipeline(shard(tmp_path / "a.tar", {"k": {"cls": b"1", "jpg": b"2"}}), select="cls")
    object.__setattr__(pipeline, "chain", Spy())

    assert [b"1"] == list(pipeline)
    assert [{"cls"}] == seen


class TestBatches:
    def test_numbers_are_stacked_and_bytes_listed(self, numbers: str) -> None:
        batches = list(Pipeline(numbers, "rename(n=cls, keep=True)|decode(cls)", select={"x": "cls", "y": ("n",)}).eager(batch=40))

        assert [40, 40, 20] == [len(batch["x"]) for batch in batches]
        np.testing.assert_array_equal(np.arange(40), batches[0]["x"])
        assert [b"80", b"81"] == batches[2]["y"][0][:2]

    def test_the_last_one_may_be_left_out(self, numbers: str) -> None:
        assert 2 == len(list(Pipeline(numbers).eager(batch=40, drop_remainder=True)))

    def test_arrays_of_different_shapes_are_a_list(self) -> None:
        assert isinstance(collate([np.zeros(2), np.zeros(3)]), list)
        assert (2, 2) == collate([np.zeros(2), np.zeros(2)]).shape
        assert isinstance(collate([np.zeros(2, np.uint8), np.zeros(2, np.int8)]), list)

    def test_structures_are_kept(self) -> None:
        batch = collate([{"a": [1, ("x",)], "b": True}, {"a": [2, ("y",)], "b": False}])

        np.testing.assert_array_equal([1, 2], batch["a"][0])
        assert (["x", "y"],) == batch["a"][1]
        np.testing.assert_array_equal([True, False], batch["b"])

    @pytest.mark.parametrize(
        ("values", "made"),
        [
            ([True, False], "array([ True, False])"),
            ([1, True], "[1, True]"),
            ([1, 2.0], "[1, 2.0]"),
            (["a", "b"], "['a', 'b']"),
            ([[1, 2], [3, 4]], "[array([1, 3]), array([2, 4])]"),
            ([np.float32(1), np.float32(2)], "array([1., 2.], dtype=float32)"),
            ([(1, None), (2, None)], "(array([1, 2]), [None, None])"),
            ([{"a": 1, "b": "x"}, {"b": "y", "a": 2}], "{'a': array([1, 2]), 'b': ['x', 'y']}"),
        ],
    )
    def test_what_is_alike_is_stacked_and_else_a_list(self, values: list[Any], made: str) -> None:
        assert made == repr(collate(values))

    def test_records_that_differ_stay_as_they_are(self) -> None:
        assert [{"a": 1}, {"b": 2}] == collate([{"a": 1}, {"b": 2}])
        assert [[1], [1, 2]] == collate([[1], [1, 2]])

    @pytest.mark.parametrize("large", [2**63 + 1, 2**80])
    def test_whole_numbers_that_no_dtype_holds_together_stay_what_they_are(self, large: int) -> None:
        assert [large, 1, -1] == collate([large, 1, -1])
        assert [large, 1] == collate([large, 1])


class TestShuffle:
    def test_every_record_comes_once_in_another_order(self, numbers: str) -> None:
        order = list(Pipeline(numbers, "decode(cls)", select="cls").eager(shuffle=30))

        assert list(range(100)) != order
        assert list(range(100)) == sorted(order)

    def test_seed_and_epoch_decide_the_order(self, numbers: str) -> None:
        pipeline = Pipeline(numbers, "decode(cls)", select="cls")

        first = list(pipeline.eager(shuffle=30))
        assert first == list(pipeline.eager(shuffle=30, num_workers=2))
        assert first != list(pipeline.with_seed(1).eager(shuffle=30))
        assert first != list(pipeline.eager(shuffle=30, epoch=1))

    def test_each_pass_has_its_own(self, numbers: str) -> None:
        run = Pipeline(numbers, "decode(cls)", select="cls").eager(shuffle=200)
        first, second = list(run), list(run)

        assert first != second
        assert sorted(first) == sorted(second)
        assert first + second == list(Pipeline(numbers, "decode(cls)", select="cls").eager(shuffle=200, repeat=2))


class TestEpochs:
    def test_a_second_iter_begins_behind_all_passes_of_the_first(self, numbers: str) -> None:
        pipeline = Pipeline(numbers, "decode(cls)", select="cls")
        run = pipeline.eager(shuffle=200, repeat=3)
        passes = _hundreds(run) + _hundreds(run)

        assert 6 == len({tuple(each) for each in passes})
        assert passes[4] == list(pipeline.eager(shuffle=200, epoch=4))

    def test_set_epoch_pins_one(self, numbers: str) -> None:
        run = Pipeline(numbers, "decode(cls)", select="cls").eager(shuffle=200)
        orders = [list(run) for _ in range(3)]
        run.set_epoch(1)
        assert orders[1] == list(run) == list(run)

        run.set_epoch(None)
        assert orders[2] == list(run)
        with pytest.raises(UsageError, match="epoch="):
            run.set_epoch(-1)

    def test_shards_come_in_another_order_when_shuffled(self, tmp_path: Path) -> None:
        for at in range(20):
            shard(tmp_path / f"s-{at}.tar", {f"r{at}": {"cls": b"%d" % at}})
        run = Pipeline(str(tmp_path / "s-{0..19}.tar"), "decode(cls)", select="cls").eager(shuffle=2)
        firsts = [next(iter(run)) for _ in range(5)]

        assert max(firsts) > 1
        assert len(set(firsts)) > 2

    def test_an_option_it_does_not_have_is_named(self, numbers: str) -> None:
        with pytest.raises(UsageError, match=r"Pipeline.eager\(\) has no option 'shufle'.*Did you mean 'shuffle'"):
            Pipeline(numbers).eager(shufle=3)


def _hundreds(run: Any) -> list[list[int]]:
    values = list(run)
    return [values[at : at + 100] for at in range(0, len(values), 100)]


class TestRepeat:
    def test_so_many_passes_are_made(self, numbers: str) -> None:
        assert list(range(100)) * 3 == list(Pipeline(numbers, "decode(cls)", select="cls").eager(repeat=3))
        assert [] == list(Pipeline(numbers).eager(repeat=0))

    def test_none_goes_on_for_ever(self, numbers: str) -> None:
        run = Pipeline(numbers, "decode(cls)", select="cls").eager(repeat=None, num_workers=2)

        assert [*range(100), *range(100), 0] == list(itertools.islice(run, 201))
        with pytest.raises(TypeError, match="for ever"):
            len(run)

    def test_an_empty_shard_ends_even_that(self, tmp_path: Path) -> None:
        (tmp_path / "empty.tar").write_bytes(bytes(10240))
        with pytest.warns(match="W_EMPTY"):
            assert [] == list(Pipeline(str(tmp_path / "empty.tar")).eager(repeat=None))

    def test_random_ops_draw_anew_in_every_pass(self, numbers: str) -> None:
        run = Pipeline(
            numbers, [Func(lambda record: record.update(i=np.eye(9, dtype=np.float32)[:, :, None])), Rotate("i")], select="i"
        ).eager()
        drawn = [[float(image.sum()) for image in run] for _ in range(2)]

        assert drawn[0] != drawn[1]


class TestErrors:
    RECORDS = {"a": {"cls": b"1"}, "b": {"cls": b"cat"}, "c": {"cls": b"3"}}

    @pytest.mark.parametrize("num_workers", [0, 2])
    def test_an_error_names_op_shard_key_member_and_byte(self, tmp_path: Path, num_workers: int) -> None:
        url = shard(tmp_path / "a.tar", self.RECORDS)
        values: list[int] = []
        with pytest.raises(DataError) as caught:
            values.extend(Pipeline(url, "decode(cls)", select="cls").eager(num_workers=num_workers))

        error = caught.value
        assert [1] == values
        assert ("E_DECODE", url, "b", "b.cls", 1024) == (error.code, error.shard, error.key, error.member, error.offset)
        assert "decode(cls)" in str(error)

    @pytest.mark.parametrize("num_workers", [0, 2])
    def test_skipped_records_are_counted(self, tmp_path: Path, num_workers: int) -> None:
        url = shard(tmp_path / "a.tar", self.RECORDS)
        run = Pipeline(url, "decode(cls)", select="cls", on_error="skip").eager(num_workers=num_workers)

        assert [1, 3] == list(run)
        assert ["E_DECODE"] == [fault.code for fault in run.report.skipped]
        assert "b" == run.report.skipped[0].key
        assert 3 == run.report.records

    def test_a_missing_field_is_an_error_with_its_record(self, tmp_path: Path) -> None:
        url = shard(tmp_path / "a.tar", {"a": {"cls": b"1", "txt": b""}, "b": {"txt": b""}})
        with pytest.raises(SchemaError, match="expects a field 'cls'; there are txt") as caught:
            list(Pipeline(url, "decode(cls)"))

        assert "b" == caught.value.key

    def test_a_field_that_is_not_there_is_told_from_one_that_is_not_read(self, tmp_path: Path) -> None:
        url = shard(tmp_path / "a.tar", {"a": {"cls": b"1", "txt": b"", "json": b"{}"}})

        for chain, select in (("decode(npy)", "npy"), ("decode(cls)", ("cls", "npy"))):
            with pytest.raises(SchemaError, match=r"a field 'npy'; there (are none|are cls)\.") as caught:
                list(Pipeline(url, chain, select=select))
            assert "The record has cls, txt, json." == caught.value.hint

    @pytest.mark.filterwarnings("ignore:W_DROPPED:tarviz.model.errors.TarvizWarning")
    def test_damage_of_the_tar_is_raised_or_skipped(self, tmp_path: Path) -> None:
        path = Path(shard(tmp_path / "a.tar", {f"k{n}": {"cls": b"%d" % n} for n in range(4)}))
        data = bytearray(path.read_bytes())
        data[2 * 1024 + 3] ^= 0xFF
        path.write_bytes(data)

        with pytest.raises(DataError):
            list(Pipeline(str(path), select="cls"))
        run = Pipeline(str(path), select="cls", on_error="skip").eager()
        with pytest.warns(match="E_CHECKSUM"):
            assert b"0" in list(run)
        assert run.report.skipped

    def test_what_a_func_raises_is_a_tarviz_error(self, numbers: str) -> None:
        def fail(record: dict[str, Any]) -> None:
            if record["cls"] == b"60":
                raise KeyError("oh")

        with pytest.raises(TarvizError, match="KeyError") as caught:
            list(Pipeline(numbers, [Func(fail)]).eager(num_workers=2))

        assert "r060" == caught.value.key
        assert str(caught.value.shard).endswith("n-1.tar")

    @pytest.mark.parametrize("options", [{"batch": 0}, {"shuffle": -1}, {"num_workers": 1.5}, {"repeat": "x"}])
    def test_wrong_options_are_refused(self, options: dict[str, Any]) -> None:
        with pytest.raises(UsageError, match="whole number"):
            Pipeline("a.tar").eager(**options)


class TestThreads:
    def test_none_is_left_when_the_loop_is_left(self, numbers: str) -> None:
        before = threading.active_count()
        for _ in Pipeline(numbers).eager(num_workers=3):
            break

        assert threading.active_count() <= before

    def test_ops_run_beside_each_other(self, numbers: str) -> None:
        both = threading.Barrier(2, timeout=60)
        met = []

        def meet(record: dict[str, Any]) -> None:
            if record["cls"] in (b"0", b"16"):  # the first of two chunks
                both.wait()
                met.append(record["cls"])

        list(Pipeline(numbers, [Func(meet)]).eager(num_workers=2))

        assert 2 == len(met)


class TestLength:
    def test_it_counts_steps(self, numbers: str) -> None:
        import tarviz.read.stream

        tarviz.read.stream.index(numbers)
        pipeline = Pipeline(numbers)

        assert 100 == len(pipeline.eager())
        assert 15 == len(pipeline.eager(batch=7))
        assert 14 == len(pipeline.eager(batch=7, drop_remainder=True))
        assert 300 == len(pipeline.eager(repeat=3))


def test_it_says_what_it_is(numbers: str) -> None:
    assert f'<Eager Pipeline("{numbers}")>' == repr(Pipeline(numbers).eager())
    assert Pipeline(numbers).eager()
    assert Chain(Decode("jpg")) == Chain.of(Decode("jpg"))


def test_its_length_is_known_of_plain_local_shards_at_once(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.tar", [(f"k{at}", {"cls": b"1"}) for at in range(30)])
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress((tmp_path / "a.tar").read_bytes()))
    plain, packed = (Pipeline(tmp_path / name, select="cls") for name in ("a.tar", "a.tar.gz"))

    assert (30, 8) == (len(plain.eager()), len(plain.eager(batch=4)))
    with pytest.raises(TypeError, match="not known"):
        len(packed.eager())
    tarviz.index(tmp_path / "a.tar.gz")
    assert 30 == len(packed.eager())


def test_a_damaged_shard_has_no_length_and_says_so_when_it_is_read(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.tar", [(f"k{at}", {"cls": b"1"}) for at in range(30)])
    os.truncate(tmp_path / "a.tar", 10_340)
    run = Pipeline(tmp_path / "a.tar", select="cls").eager()

    with pytest.raises(TypeError):
        len(run)
    with pytest.raises(DataError):
        list(run)
