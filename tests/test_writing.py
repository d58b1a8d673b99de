"""Shards from Python: what is written is read back, whole or not at all."""

from __future__ import annotations

import io
import json
import tarfile
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tarviz
from tarviz.cli.progress import Progress
from tarviz.model.errors import SchemaError, TarvizWarning, UsageError
from tarviz.outputs import Outputs
from tarviz.outputs.encoded import EncodedRecords


@pytest.fixture
def out(tmp_path: Path) -> str:
    """Where shards go, counted from 1."""
    return str(tmp_path / "train-{}.tar")


def held(folder: str | Path) -> list[tuple[str, dict[str, bytes]]]:
    """What the tars of a folder hold."""
    return [(record.key, {ext: bytes(value) for ext, value in record.items()}) for record in tarviz.records(str(folder))]


def numbered(count: int, size: int = 1) -> list[dict[str, object]]:
    return [{"__key__": f"{number:04d}", "bin": bytes([number % 256]) * size} for number in range(count)]


def refused(record: object, match: str, out: str, **options: object) -> None:
    """`write` refuses the records, and leaves nothing."""
    with pytest.raises(UsageError, match=match):
        tarviz.write([record], out, **options)
    assert not Path(out.replace("{}", "1")).exists()


def fill(out: str, records: list[dict[str, object]], error: Exception | None = None, **options: object) -> None:
    """Write records one by one, each at once, and raise the error, if there is one, inside of the `with`."""
    with tarviz.writer(out, **options) as made:
        for record in records:
            made.write(record["__key__"], record)
            made._flush()
        if error is not None:
            raise error


class TestWriter:
    def test_bytes_are_written_as_they_are_and_values_by_extension(self, out: str, tmp_path: Path):
        picture = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
        with tarviz.writer(out) as made:
            made.write("a/1", {"png": picture, "json": {"n": [1]}, "cls": 3, "txt": "é", "npy": np.arange(3), "jpg": b"as it is"})

        ((key, fields),) = held(tmp_path)
        assert "a/1" == key
        assert np.array_equal(picture, np.asarray(Image.open(io.BytesIO(fields["png"]))))
        assert {"n": [1]} == json.loads(fields["json"])
        assert (b"3", "é".encode(), b"as it is") == (fields["cls"], fields["txt"], fields["jpg"])
        assert [0, 1, 2] == np.load(io.BytesIO(fields["npy"])).tolist()

    def test_other_programs_read_the_tar(self, out: str, tmp_path: Path):
        long = "k" * 200
        with tarviz.writer(out) as made:
            made.write("0001", {"bin": bytes(513)})
            made.write(long, {"bin": b""})

        with tarfile.open(tmp_path / "train-1.tar") as tar:
            assert [("0001.bin", 513), (f"{long}.bin", 0)] == [(member.name, member.size) for member in tar]

    def test_shards_stay_within_the_size_and_lose_nothing(self, out: str, tmp_path: Path):
        with tarviz.writer(out, max_shard_size=10_240) as made:
            for record in numbered(20, 700):
                made.write(record["__key__"], record)

        sizes = [path.stat().st_size for path in tmp_path.iterdir()]
        assert [each["__key__"] for each in numbered(20)] == sorted(key for key, _ in held(tmp_path))
        assert len(sizes) == 4
        assert max(sizes) <= 10_240

    def test_small_records_are_written_many_at_a_time(self, out: str, monkeypatch: pytest.MonkeyPatch):
        added, add = list[int](), Outputs.add

        def counted(outputs: Outputs, run: EncodedRecords) -> None:
            added.append(len(run.sizes))
            add(outputs, run)

        monkeypatch.setattr(Outputs, "add", counted)
        with tarviz.writer(out) as made:
            for record in numbered(600):
                made.write(record["__key__"], record)

        assert [256, 256, 88] == added

    def test_the_quality_is_90_unless_another_is_given(self, tmp_path: Path):
        record = {"__key__": "a", "jpg": Image.effect_noise((64, 64), 80)}
        for name, options in (("none", {}), ("90", {"quality": 90}), ("91", {"quality": 91})):
            tarviz.write([record], tmp_path / f"{name}.tar", **options)
            fill(str(tmp_path / f"{name}-w.tar"), [record], **options)
        usual, same, best = ([(tmp_path / f"{name}{more}.tar").read_bytes() for more in ("", "-w")] for name in ("none", "90", "91"))

        assert usual == same != best
        assert 1 == len(set(usual))

    def test_a_shard_holds_so_many_records(self, out: str):
        with tarviz.writer(out, max_records=3) as made:
            for record in numbered(7):
                made.write(record["__key__"], record)

        assert [3, 3, 1] == [tar.records for tar in made.result.outputs]

    def test_an_exception_leaves_complete_shards_and_names_them(self, out: str, tmp_path: Path):
        with pytest.raises(RuntimeError) as found:
            fill(out, numbered(50, 20_000), RuntimeError("out of luck"), max_shard_size=600_000)

        assert ["train-1.tar"] == [path.name for path in tmp_path.iterdir()]
        assert "train-1.tar: 28 records" in "".join(found.value.__notes__)

    def test_nothing_is_left_where_no_shard_was_complete(self, out: str, tmp_path: Path):
        with pytest.raises(SchemaError) as found:
            fill(out, [{"__key__": "a", "txt": "one"}, {"__key__": "b", "cls": "no number"}])

        assert [] == list(tmp_path.iterdir())
        assert "b" == found.value.key
        assert ["No shard was complete; nothing is left under a final name."] == found.value.__notes__

    def test_bytes_that_change_later_are_copied(self, out: str, tmp_path: Path):
        buffer = bytearray(b"before")
        with tarviz.writer(out) as made:
            made.write("a", {"bin": buffer})
            buffer[:] = b"behind"

        assert [("a", {"bin": b"before"})] == held(tmp_path)

    @pytest.mark.parametrize("name", ["memory://writer/{}.tar", "memory://writer/{shard:04d}.tar.gz"])
    def test_it_writes_to_any_store_packed_as_the_name_says(self, name: str):
        with tarviz.writer(name) as made:
            made.write("a", {"txt": "one"})

        assert [("a", {"txt": b"one"})] == held(made.result.outputs[0].url)

    @pytest.mark.parametrize("later", [0, 600])
    def test_a_key_that_comes_again_in_a_shard_is_refused(self, out: str, tmp_path: Path, later: int):
        between = numbered(later, 1000)  # 600 of them are written before it comes again
        with pytest.raises(UsageError, match="comes twice"):
            tarviz.write([{"__key__": "a", "cls": 1}, {"__key__": "b", "cls": 1}, *between, {"__key__": "a", "cls": 2}], out)
        assert [] == list(tmp_path.iterdir())

    def test_a_key_may_come_again_in_a_later_shard(self, out: str, tmp_path: Path):
        fill(out, numbered(4) * 2, max_records=3)

        assert 8 == len(held(tmp_path))

    def test_a_key_twice_in_a_row_is_refused(self, out: str):
        with pytest.raises(UsageError, match="comes twice"):
            fill(out, [{"__key__": "a", "txt": "one"}, {"__key__": "a", "cls": 1}])

    def test_it_does_not_write_over_what_it_reads(self, out: str, tmp_path: Path):
        tarviz.write(numbered(3), out)

        with pytest.raises(UsageError, match="one of the inputs"):
            tarviz.write(tarviz.records(str(tmp_path / "train-1.tar")), out)
        assert 3 == len(held(tmp_path))

    @pytest.mark.parametrize("plain", [True, False])
    def test_nor_where_only_some_columns_are_written(self, out: str, tmp_path: Path, plain: bool):
        tarviz.write(numbered(3), out)
        records = list(tarviz.records(str(tmp_path / "train-1.tar")))
        dicts = [{"__key__": each.key, "__shard__": each.shard, "bin": each["bin"]} for each in records]

        with pytest.raises(UsageError, match="one of the inputs"):
            tarviz.write(dicts if plain else records, out, fields={"bin": "txt"})
        assert 3 == len(held(tmp_path))

    def test_what_exists_is_refused_where_it_must_not_be_replaced(self, out: str):
        tarviz.write(numbered(3), out)

        with pytest.raises(UsageError, match="is there already"):
            tarviz.writer(out, exists="error")

    def test_shards_of_a_longer_run_before_are_warned_of(self, out: str):
        tarviz.write(numbered(9), out, max_records=3)

        with pytest.warns(TarvizWarning, match="W_OLD_OUTPUT .*train-2"):
            tarviz.write(numbered(3), out, max_records=3)

    def test_a_writer_that_is_forgotten_says_so(self, out: str, tmp_path: Path):
        made = tarviz.writer(out)
        made.write("a", {"txt": "one"})

        with pytest.warns(ResourceWarning, match="not closed"):
            del made
        assert [] == list(tmp_path.iterdir())

    def test_a_closed_writer_takes_nothing_and_tells_what_it_wrote(self, out: str, tmp_path: Path):
        with tarviz.writer(out) as made:
            made.write("a", {"txt": "one"})

        assert [(str(tmp_path / "train-1.tar"), 1, 2048)] == [(tar.url, tar.records, tar.bytes) for tar in made.commit().outputs]
        assert str(made) == str(made.result)
        assert 0 == made.result.to_dict()["kept"]

        with pytest.raises(UsageError, match="closed"):
            made.write("b", {"txt": "two"})


class TestResume:
    def broken_off(self, out: str) -> None:
        """Two shards of three records, and an exception in the third."""
        with pytest.raises(RuntimeError):
            fill(out, numbered(8), RuntimeError("broken off"), max_records=3)

    @pytest.mark.parametrize("workers", [0, 2])
    def test_a_run_that_was_broken_off_goes_on(self, out: str, tmp_path: Path, workers: int):
        self.broken_off(out)
        before = (tmp_path / "train-1.tar").stat().st_ino

        result = tarviz.write(numbered(11), out, max_records=3, resume=True, workers=workers)

        assert [record["__key__"] for record in numbered(11)] == [key for key, _ in held(tmp_path)]
        assert (2, [3, 3, 3, 2]) == (result.kept, [tar.records for tar in result.outputs])
        assert before == (tmp_path / "train-1.tar").stat().st_ino

    def test_a_run_that_is_complete_writes_nothing(self, out: str, tmp_path: Path):
        tarviz.write(numbered(6), out, max_records=3)

        result = tarviz.write(numbered(6), out, max_records=3, resume=True)

        assert (2, 6, 2) == (result.kept, result.records, result.to_dict()["kept"])
        assert "2 of them kept from before" in str(result)
        assert 2 == len(list(tmp_path.iterdir()))

    def test_other_records_are_refused(self, out: str):
        self.broken_off(out)

        with pytest.raises(UsageError, match="resume found '0000'"):
            tarviz.write(numbered(9)[1:], out, max_records=3, resume=True)

    def test_fewer_records_are_refused(self, out: str):
        self.broken_off(out)

        with pytest.raises(UsageError, match="'0004' comes next"):
            tarviz.write(numbered(4), out, max_records=3, resume=True)

    def test_a_pipe_cannot_be_resumed(self):
        with pytest.raises(UsageError, match="pipe"):
            tarviz.writer("-", resume=True)


class TestWrite:
    def test_threads_encode_and_the_bytes_stay_the_same(self, tmp_path: Path):
        seen = set()

        class Tensor:
            def __init__(self, number: int) -> None:
                self.number = number

            def detach(self) -> Tensor:
                seen.add(threading.current_thread().name.rpartition("_")[0])
                return self

            cpu = detach

            def numpy(self) -> np.ndarray:
                return np.full((8, 8, 3), self.number, np.uint8)

        records = [{"__key__": f"{n:03d}", "png": Tensor(n)} for n in range(60)]
        tarviz.write(records, str(tmp_path / "one.tar"))
        seen.clear()
        tarviz.write(records, str(tmp_path / "two.tar"), workers=2)

        assert {"tarviz-encode"} == seen
        assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()

    def test_an_error_in_a_thread_names_the_record(self, out: str, tmp_path: Path):
        records = [{"__key__": str(n), "cls": n if n != 20 else "x"} for n in range(40)]

        with pytest.raises(SchemaError) as found:
            tarviz.write(records, out, workers=2)
        assert "20" == found.value.key
        assert [] == list(tmp_path.iterdir())

    def test_columns_are_named_as_extensions(self, out: str, tmp_path: Path):
        rows = [{"image": b"p", "label": 1, "id": 7, "more": None}]
        tarviz.write(rows, out, key="id", fields={"image": "jpg", "label": "cls", "more": "txt"})

        assert [("7", {"jpg": b"p", "cls": b"1"})] == held(tmp_path)

    @pytest.mark.parametrize(
        ("key", "keys"),
        [(None, ["k", "000000001"]), ("train/{n:03d}", ["train/000", "train/001"]), ("{n}", ["0", "1"])],
    )
    def test_keys_are_numbers_where_there_are_none_or_these_are_not_wanted(
        self, out: str, tmp_path: Path, key: str | None, keys: list[str]
    ):
        tarviz.write([{"__key__": "k", "txt": "a"}, {"txt": "b"}], out, key=key)

        assert [(keys[0], {"txt": b"a"}), (keys[1], {"txt": b"b"})] == held(tmp_path)

    def test_a_field_may_be_the_key_and_is_none_then(self, out: str, tmp_path: Path):
        tarviz.write([{"name": "x", "cls": 1}], out, key="name")
        (tmp_path / "new").mkdir()
        tarviz.write(tarviz.records(out.format(1)), str(tmp_path / "new" / "a.tar"), key="cls")

        assert [("x", {"cls": b"1"})] == held(out.format(1))
        assert [("1", {"cls": b"1"})] == held(tmp_path / "new")
        with pytest.raises(UsageError, match="record 0 has no 'name', which is to be its key"):
            tarviz.write(tarviz.records(out.format(1)), str(tmp_path / "b.tar"), key="name")

    @pytest.mark.parametrize("keys", [["a", "b"], ("a", "b"), np.array(["a", "b"])])
    def test_a_batch_is_as_many_records(self, out: str, tmp_path: Path, keys: object):
        tarviz.write([{"__key__": keys, "cls": [1, 2]}, ("c", {"cls": 3})], out)

        assert [("a", {"cls": b"1"}), ("b", {"cls": b"2"}), ("c", {"cls": b"3"})] == held(tmp_path)

    @pytest.mark.parametrize(
        ("options", "match"), [({"workers": -1}, "workers=-1 is less than 0"), ({"exists": "append"}, "exists='append' is not one of")]
    )
    def test_options_that_cannot_be_are_refused(self, out: str, options: dict[str, object], match: str):
        refused({"__key__": "a", "cls": 1}, match, out, **options)

    def test_records_and_pipelines_are_written_on(self, out: str, tmp_path: Path):
        (tmp_path / "new").mkdir()
        source = numbered(5)
        tarviz.write(source, out)
        tarviz.write(tarviz.records(out.format(1)), str(tmp_path / "new" / "a.tar"))
        tarviz.write(tarviz.Pipeline(out.format(1)).eager(), str(tmp_path / "new" / "b.tar"))

        assert held(out.format(1)) == held(tmp_path / "new" / "a.tar") == held(tmp_path / "new" / "b.tar")

    def test_a_column_that_is_not_there_is_named(self, out: str):
        with pytest.raises(UsageError, match=r"no 'imge'.*It has image"):
            tarviz.write([{"image": b"p"}], out, fields={"imge": "jpg"})
        with pytest.raises(UsageError, match="no 'name', which is to be its key"):
            tarviz.write([{"image": b"p"}], out, key="name")
        with pytest.raises(UsageError, match="got str"):
            tarviz.write(["image"], out)

    def test_progress_is_shown_where_it_is_asked_for(self, out: str, monkeypatch: pytest.MonkeyPatch):
        seen, leave = [], Progress.__exit__

        def left(bar: Progress, *error: object) -> None:
            seen.append((bar._on, bar.total, bar.done))
            leave(bar, *error)

        monkeypatch.setattr(Progress, "__exit__", left)
        tarviz.write(numbered(4), out, progress=True)
        tarviz.write(iter(numbered(4)), out, progress=False)

        assert [(True, 4, 4.0), (False, None, 4.0)] == seen

    def test_no_records_make_one_empty_shard(self, out: str, tmp_path: Path):
        assert 0 == tarviz.write([], out).records
        with tarfile.open(tmp_path / "train-1.tar") as tar:
            assert [] == tar.getnames()


class TestOthers:
    def test_pandas(self, out: str, tmp_path: Path):
        pandas = pytest.importorskip("pandas", reason="pandas is not installed")
        tarviz.write(pandas.DataFrame({"cls": [1, 2], "txt": ["a", None]}), out, workers=1)

        assert [{"cls": b"1", "txt": b"a"}, {"cls": b"2"}] == [fields for _, fields in held(tmp_path)]

    def test_what_pandas_takes_for_empty_is_no_field(self, out: str, tmp_path: Path):
        pandas = pytest.importorskip("pandas", reason="pandas is not installed")
        empty = pandas.DataFrame({"txt": ["a", pandas.NA], "json": [1, pandas.NaT], "cls": [float("nan"), 2]}, dtype=object)
        tarviz.write(empty, out)

        assert [{"txt": b"a", "json": b"1"}, {"cls": b"2"}] == [fields for _, fields in held(tmp_path)]

    def test_polars(self, out: str, tmp_path: Path):
        polars = pytest.importorskip("polars", reason="polars is not installed")
        tarviz.write(polars.DataFrame({"cls": [1, 2], "txt": ["a", None]}), out)

        assert [{"cls": b"1", "txt": b"a"}, {"cls": b"2"}] == [fields for _, fields in held(tmp_path)]

    def test_pyarrow(self, out: str, tmp_path: Path):
        pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        tarviz.write(pyarrow.table({"cls": [1, 2], "txt": ["a", None]}), out)

        assert [{"cls": b"1", "txt": b"a"}, {"cls": b"2"}] == [fields for _, fields in held(tmp_path)]

    def test_a_dataset_of_pictures(self, out: str, tmp_path: Path):
        datasets = pytest.importorskip("datasets", reason="datasets is not installed")
        pictures = [Image.new("L", (5, 4), 9), Image.new("RGB", (5, 4), (1, 2, 3))]
        data = datasets.Dataset.from_dict({"image": pictures, "label": [0, 1]}).cast_column("image", datasets.Image())
        tarviz.write(data, out, fields={"image": "png", "label": "cls"})

        (_, grey), (_, colour) = held(tmp_path)
        assert (b"0", b"1") == (grey["cls"], colour["cls"])
        assert ("L", 9) == ((picture := Image.open(io.BytesIO(grey["png"]))).mode, picture.getpixel((0, 0)))
        assert (1, 2, 3) == Image.open(io.BytesIO(colour["png"])).getpixel((0, 0))

    @pytest.mark.parametrize("batch", [None, 2])
    def test_a_loader_of_torch_batched_or_not(self, out: str, tmp_path: Path, batch: int | None):
        data = pytest.importorskip("torch.utils.data", reason="torch is not installed")
        loader = data.DataLoader([{"__key__": f"k{n}", "cls": n, "npy": np.full(2, n)} for n in range(3)], batch_size=batch)
        tarviz.write(loader, out)

        found = held(tmp_path)
        assert [("k0", b"0"), ("k1", b"1"), ("k2", b"2")] == [(key, fields["cls"]) for key, fields in found]
        assert [2, 2] == np.load(io.BytesIO(found[2][1]["npy"])).tolist()


class TestWhatCannotBeARecord:
    @pytest.mark.parametrize("key", [7.0, float("nan"), np.float32(1)])
    def test_a_fraction_is_no_key(self, out: str, key: object):
        refused({"__key__": key, "cls": 1}, "a whole number", out)

    def test_a_key_of_bytes_is_the_text(self, out: str, tmp_path: Path):
        tarviz.write([{"__key__": "ü".encode(), "cls": 1}], out)

        assert [("ü", {"cls": b"1"})] == held(tmp_path)

    @pytest.mark.parametrize("classes", [[1], [1, 2, 3]])
    def test_a_batch_has_a_value_for_each_key(self, out: str, classes: list[int]):
        refused({"__key__": ["a", "b"], "cls": classes}, "the batch has 2 keys", out)

    def test_two_columns_are_not_one_field(self, out: str):
        refused({"a": b"1", "b": b"2"}, "one field of two columns", out, fields={"a": "jpg", "b": "jpg"})

    def test_two_columns_of_a_frame_have_two_names(self, out: str):
        pandas = pytest.importorskip("pandas", reason="pandas is not installed")
        with pytest.raises(UsageError, match="two columns"):
            tarviz.write(pandas.DataFrame([[1, 2]], columns=["cls", "cls"]), out)

    def test_fields_that_differ_in_case_are_one_to_readers(self, out: str):
        refused({"JPG": b"1", "jpg": b"2"}, "E_DUP_FIELD", out)
        tarviz.write([{"JPG": b"1"}, {"jpg": b"2"}], out)
