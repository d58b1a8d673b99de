from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google_crc32c import value as crc

import tarviz
from tarviz import cli
from tarviz.commands.convert import convert, recipe
from tarviz.formats import example, tfrecord
from tarviz.model.errors import ChainError, DataError, NotFoundError, SchemaError, TarvizWarning, UsageError
from tarviz.ops import Func
from tarviz.outputs import Output
from tests.conftest import DATA, sampled, wait_until
from tests.read.tars import member, pax
from tests.servers.outputs import use_disk

CORPORA = DATA / "corpora"
ROOT = DATA.parents[1]


def make(path: Path, records: list[tuple[str, dict[str, bytes]]]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for key, fields in records:
            for ext, data in fields.items():
                info = tarfile.TarInfo(f"{key}.{ext}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return str(path)


def some(count: int, seed: int = 0, size: int = 3000) -> list[tuple[str, dict[str, bytes]]]:
    rng = np.random.default_rng(seed)
    return [(f"s{seed}/k{at:05d}", {"jpg": rng.bytes(int(rng.integers(size))), "cls": b"%d" % rng.integers(300)}) for at in range(count)]


def shards(folder: Path, count: int = 5, records: int = 40) -> list[str]:
    return [make(folder / f"train-{at:04d}.tar", some(records + at, at)) for at in range(count)]


def examples(path: str) -> list[dict[str, list[Any]]]:
    return [example.decode(record) for record in tfrecord.read(Path(path).read_bytes())]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.tfrecord"))}


class TestWhatIsWritten:
    def test_one_output_for_each_shard_counted_from_one(self, tmp_path):
        paths = shards(tmp_path / "in", 3)

        found = convert(str(tmp_path / "in"), tmp_path / "out" / "train-{}.tfrecord")

        assert [str(tmp_path / "out" / f"train-{at}.tfrecord") for at in (1, 2, 3)] == found
        assert [40, 41, 42] == [each.records for each in found.outputs]
        assert 123 == found.report.records == found.records
        assert 0 == found.exit_code
        for path, out in zip(paths, found, strict=True):
            expected = [
                {"__key__": [record.key.encode()], "cls": [int(bytes(record["cls"]))], "jpg": [bytes(record["jpg"])]}
                for record in tarviz.records(path)
            ]
            assert expected == examples(out)

    def test_shard_numbers_count_from_zero(self, tmp_path):
        shards(tmp_path / "in", 2)

        assert ["000000.tfrecord", "000001.tfrecord"] == [
            Path(path).name for path in convert(tmp_path / "in", tmp_path / "{shard:06d}.tfrecord")
        ]

    def test_a_plain_path_takes_all_shards(self, tmp_path):
        paths = shards(tmp_path / "in", 3)

        found = convert(tmp_path / "in", tmp_path / "train.record")

        assert [str(tmp_path / "train.record")] == found
        keys = [record.key.encode() for path in paths for record in tarviz.records(path)]
        assert keys == [features["__key__"][0] for features in examples(found[0])]

    @pytest.mark.parametrize(
        ("out", "names"), [("train.record", ["train.record", "train-1.record"]), ("t-{}.record", ["t-1.record", "t-2.record"])]
    )
    def test_outputs_of_a_limited_size_follow_each_other_over_all_shards(self, tmp_path, out, names):
        paths = shards(tmp_path / "in", 3)

        found = convert(tmp_path / "in", tmp_path / out, max_shard_size="50kB")

        assert names == [Path(path).name for path in found[:2]]
        assert all(os.path.getsize(path) <= 50_000 for path in found)
        keys = [record.key.encode() for path in paths for record in tarviz.records(path)]
        assert keys == [features["__key__"][0] for path in found for features in examples(path)]

    def test_a_limit_is_a_number_or_text(self, tmp_path):
        for limit in [50_000, 5e4, "50kB", "50000", "0.05MB"]:
            shards(tmp_path / "in", 2)

            assert 50_000 >= convert(tmp_path / "in", tmp_path / "o.record", max_shard_size=limit).outputs[0].bytes > 45_000

    def test_types_and_key(self, tmp_path):
        path = make(tmp_path / "a.tar", [("k", {"cls": b"7", "id": b"8", "emb": b"1 2.5"})])

        (out,) = convert(path, tmp_path / "o", types={"cls": "bytes", "emb": "float"}, key=False)

        assert [{"cls": [b"7"], "emb": [1.0, 2.5], "id": [8]}] == examples(out)

    @pytest.mark.parametrize("select", [["jpg", "cls"], ("cls", "jpg"), {"image": "jpg", "label": "cls"}])
    def test_a_selection_keeps_and_names_features(self, tmp_path, select):
        path = make(tmp_path / "a.tar", [(f"k{at}", {"jpg": b"x" * at, "cls": b"7", "txt": b"no"}) for at in range(20)])
        names = dict(zip(select, select, strict=True)) if not isinstance(select, dict) else select

        (out,) = convert(path, tmp_path / "o", select=select, types={"label": "int64"} if isinstance(select, dict) else None)

        expected = {"jpg": [b"x" * 5], "cls": [7]}
        assert {"__key__": [b"k5"], **{name: expected[ext] for name, ext in names.items()}} == examples(out)[5]

    def test_a_chain_runs_on_every_record(self, digits, tmp_path):
        from PIL import Image

        (out,) = convert(
            digits / "test-0000.tar", tmp_path / "o", chain="decode(png)|resize(png, (14, 14))|encode(png)", select=["png", "cls"]
        )

        found = examples(out)
        assert 297 == len(found)
        assert (14, 14) == Image.open(io.BytesIO(found[0]["png"][0])).size
        assert {"__key__", "png", "cls"} == set(found[0])

    def test_decoded_images_become_lists_where_the_chain_makes_floats(self, digits, tmp_path):
        (out,) = convert(digits / "test-0000.tar", tmp_path / "o", chain="decode(png, channels=1)|convert(png, float32)")

        values = examples(out)[0]["png"]
        assert 28 * 28 == len(values)
        assert 0 <= min(values) <= max(values) <= 1

    def test_a_decoded_image_asks_for_an_encode_op(self, digits, tmp_path):
        with pytest.raises(SchemaError, match=r"encode\(png\)") as caught:
            convert(digits / "test-0000.tar", tmp_path / "o", chain="decode(png)")

        assert caught.value.key == "test/n00000000"
        assert [] == os.listdir(tmp_path)

    def test_a_pipeline_converts_itself(self, digits, tmp_path):
        pipeline = tarviz.Pipeline(str(digits / "test-0000.tar"), "rename(label=cls)", select=("png", "label"))

        (out,) = pipeline.convert(tmp_path / "o", types={"label": "int64"})

        assert {"__key__", "png", "label"} == set(examples(out)[0])
        with pytest.raises(UsageError, match="of its own"):
            convert(pipeline, tmp_path / "o", chain="decode(png)")

    @pytest.mark.matrix
    def test_random_ops_draw_by_key_whatever_the_workers(self, photos, tmp_path):
        chain = "decode(jpg)|random_crop(jpg, (32, 32))|encode(jpg)"
        one = convert(photos, tmp_path / "a-{}.tfrecord", chain=chain, seed=3, select=["jpg"])
        two = convert(photos, tmp_path / "b-{}.tfrecord", chain=chain, seed=3, select=["jpg"], num_workers=2)
        other = convert(photos, tmp_path / "c-{}.tfrecord", chain=chain, seed=4, select=["jpg"])

        assert [Path(path).read_bytes() for path in one] == [Path(path).read_bytes() for path in two]
        assert Path(one[0]).read_bytes() != Path(other[0]).read_bytes()

    @pytest.mark.parametrize("kind", ["dict", "bytes", "example"])
    def test_a_function_may_make_the_examples(self, tmp_path, kind):
        path = make(tmp_path / "a.tar", some(5))

        def make_example(record: dict[str, Any]) -> Any:
            values = {"size": len(record["jpg"]), "key": record["__key__"]}
            if kind == "dict":
                return values
            data = example.encode(values)
            if kind == "bytes":
                return data
            tf = pytest.importorskip("tensorflow")
            return tf.train.Example.FromString(data)

        (out,) = convert(path, tmp_path / "o", record_to_example=make_example, key=False)

        assert [{"key": [key.encode()], "size": [len(fields["jpg"])]} for key, fields in some(5)] == examples(out)

    def test_a_function_that_returns_something_else_is_told_so(self, tmp_path):
        path = make(tmp_path / "a.tar", some(2))

        with pytest.raises(UsageError, match="returned NoneType"):
            convert(path, tmp_path / "o", record_to_example=lambda record: None)

    def test_nothing_to_convert_gives_an_empty_output(self, tmp_path):
        path = make(tmp_path / "a.tar", [])

        with pytest.warns(TarvizWarning, match="W_EMPTY"):
            (out,) = convert(path, tmp_path / "o.record")

        assert (0, []) == (os.path.getsize(out), examples(out))

    @pytest.mark.parametrize("how", ["gzip", "zlib"])
    def test_compressed_outputs(self, tmp_path, how):
        path = make(tmp_path / "a.tar", some(50))
        tf = pytest.importorskip("tensorflow")

        (out,) = convert(path, tmp_path / "o", compression=how)

        assert 50 == len(examples(out))
        assert 50 == sum(1 for _ in tf.data.TFRecordDataset(out, compression_type=how.upper()))

    def test_memory_takes_outputs_too(self, tmp_path):
        path = make(tmp_path / "a.tar", some(5))

        found = convert([path, path], "memory://convert/t-{}.tfrecord", num_workers=2)

        assert ["memory://convert/t-1.tfrecord", "memory://convert/t-2.tfrecord"] == found

    def test_standard_output_takes_the_records(self, tmp_path, capfdbinary):
        path = make(tmp_path / "a.tar", some(5))

        convert(path, "-")

        assert 5 == len(list(tfrecord.read(capfdbinary.readouterr().out)))

    def test_a_named_pipe_takes_the_records(self, tmp_path):
        path = make(tmp_path / "a.tar", some(5))
        os.mkfifo(tmp_path / "pipe")
        with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
            convert(path, tmp_path / "pipe")
            assert reader.stdout is not None
            data = reader.stdout.read()

        assert 5 == len(list(tfrecord.read(data)))
        assert ["a.tar", "pipe"] == sorted(os.listdir(tmp_path))

    def test_tensorflow_reads_every_record_and_every_feature(self, tmp_path):
        tf = pytest.importorskip("tensorflow")
        path = make(tmp_path / "a.tar", some(300))

        (out,) = convert(path, tmp_path / "o")

        kinds = {"__key__": tf.string, "jpg": tf.string, "cls": tf.int64}
        parse = {name: tf.io.FixedLenFeature([], kind) for name, kind in kinds.items()}
        found = [tf.io.parse_single_example(data, parse) for data in tf.data.TFRecordDataset(out)]
        assert [(key.encode(), fields["jpg"], int(fields["cls"])) for key, fields in some(300)] == [
            (each["__key__"].numpy(), each["jpg"].numpy(), int(each["cls"].numpy())) for each in found
        ]


class TestWorkers:
    """The bytes never depend on how many there are."""

    @pytest.mark.parametrize(
        ("out", "options"),
        sampled(
            [
                ("t-{}.tfrecord", {}),
                ("t.tfrecord", {}),
                ("t-{}.tfrecord", {"max_shard_size": "100kB", "types": {"cls": "bytes"}}),
                ("t-{}.tfrecord", {"max_shard_size": "40kB", "compression": "gzip"}),
                ("t.tfrecord", {"max_shard_size": 400, "select": ["cls"]}),
                ("t.tfrecord", {"max_shard_size": 30_000}),
                ("t.tfrecord", {"chain": "rename(image=jpg)", "max_shard_size": 30_000}),
            ],
            2,
        ),
    )
    @pytest.mark.matrix
    def test_one_two_and_three_write_the_same(self, tmp_path, out, options):
        shards(tmp_path / "in", 7, 30)

        for count in (1, 2, 3):
            convert(tmp_path / "in", tmp_path / str(count) / out, num_workers=count, **options)

        one = contents(tmp_path / "1")
        assert one
        assert one == contents(tmp_path / "2") == contents(tmp_path / "3")
        manifests = [[json.loads(path.read_text()) for path in sorted((tmp_path / str(count)).glob("*.json"))] for count in (1, 2, 3)]
        assert manifests[0] == manifests[1] == manifests[2]

    @pytest.mark.matrix
    def test_a_slow_disk_gets_the_bytes_that_are_summed(self, tmp_path, monkeypatch):
        shards(tmp_path / "in", 8, 200)
        one = convert(tmp_path / "in", tmp_path / "one.tfrecord")
        use_disk(monkeypatch, seconds=0.1)

        found = convert(tmp_path / "in", tmp_path / "two.tfrecord", num_workers=2)
        assert [(each.bytes, each.crc32c) for each in one.outputs] == [(each.bytes, each.crc32c) for each in found.outputs]
        assert (tmp_path / "one.tfrecord").read_bytes() == (tmp_path / "two.tfrecord").read_bytes()

    @pytest.mark.matrix
    def test_a_function_of_a_test_travels_where_cloudpickle_is(self, tmp_path):
        pytest.importorskip("cloudpickle")
        shards(tmp_path / "in", 2, 5)

        found = convert(tmp_path / "in", tmp_path / "t-{}.tfrecord", chain=[Func(_mark)], num_workers=2)

        assert [b"seen"] == examples(found[1])[0]["mark"]

    def test_a_function_that_cannot_travel_is_told_so(self, tmp_path):
        shards(tmp_path / "in", 2, 5)
        lock = contextlib.ExitStack()
        stuck = (lambda: (yield))()  # a generator does not pickle

        with pytest.raises(UsageError, match="num_workers=1"), lock:
            convert(tmp_path / "in", tmp_path / "t-{}.tfrecord", record_to_example=lambda record: stuck and {}, num_workers=2)

    @pytest.mark.matrix
    def test_a_damaged_shard_is_the_same_error(self, tmp_path):
        paths = shards(tmp_path / "in", 4)
        with open(paths[2], "r+b") as file:
            file.truncate(os.path.getsize(paths[2]) // 2)
        found = []
        for count in (1, 2):
            with pytest.raises(DataError) as caught:
                convert(tmp_path / "in", tmp_path / str(count) / "t-{}.tfrecord", max_shard_size="30kB", num_workers=count)
            found.append((str(caught.value), contents(tmp_path / str(count))))

        assert "train-0002.tar" in found[0][0]
        assert found[0] == found[1]

    @pytest.mark.matrix
    def test_reports_add_up(self, tmp_path):
        for at in range(4):
            records = some(10, at)
            records[at][1]["cls"] = b"cat"
            make(tmp_path / "in" / f"{at}.tar", records)
        with pytest.warns(TarvizWarning, match="E_DECODE"):
            found = convert(tmp_path / "in", tmp_path / "t-{}.tfrecord", num_workers=2, on_error="skip")

        assert (40, 36, 1) == (found.report.records, found.records, found.exit_code)
        assert [f"s{at}/k{at:05d}" for at in range(4)] == [fault.key for fault in found.report.skipped]

    def test_zero_means_one_for_each_processor(self, tmp_path):
        shards(tmp_path / "in", 2, 3)

        assert 2 == len(convert(tmp_path / "in", tmp_path / "t-{}.tfrecord", num_workers=0))
        with pytest.raises(UsageError, match="less than 0"):
            convert(tmp_path / "in", tmp_path / "t-{}.tfrecord", num_workers=-1)

    @pytest.mark.matrix
    def test_no_file_but_the_outputs_stays(self, tmp_path):
        shards(tmp_path / "in", 3)

        convert(tmp_path / "in", tmp_path / "out" / "t.tfrecord", num_workers=2, max_shard_size="50kB", manifest=False)

        assert all(name.startswith("t") and name.endswith(".tfrecord") for name in os.listdir(tmp_path / "out"))


def _mark(record: dict[str, Any]) -> None:
    record["mark"] = b"seen"


class TestErrors:
    def test_a_field_that_is_no_integer_is_an_error_that_names_it(self, tmp_path):
        path = make(tmp_path / "a.tar", [*some(10), ("bad", {"jpg": b"", "cls": b"cat"})])

        with pytest.raises(DataError, match="'cls' holds 'cat'") as caught:
            convert(path, tmp_path / "out" / "t.tfrecord")

        assert ("E_DECODE", "bad", path, 10) == (caught.value.code, caught.value.key, caught.value.shard, caught.value.records_before)
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize("chain", [None, "rename(image=jpg)"])
    def test_skip_leaves_bad_records_out_and_counts_them(self, tmp_path, chain):
        records = some(30)
        records[7][1]["cls"] = b"cat"
        del records[9][1]["cls"]
        path = make(tmp_path / "a.tar", records)

        with pytest.warns(TarvizWarning):
            found = convert(path, tmp_path / "t.tfrecord", on_error="skip", select=["cls"], chain=chain)

        assert [key.encode() for at, (key, _) in enumerate(some(30)) if at not in (7, 9)] == [
            each["__key__"][0] for each in examples(found[0])
        ]
        assert {"E_DECODE": 1, "E_SCHEMA": 1} == found.report.counts()
        assert "skipped E_DECODE" in str(found)

    def test_skip_goes_on_with_the_next_shard_behind_damage(self, tmp_path):
        paths = shards(tmp_path / "in", 3, 10)
        with open(paths[1], "r+b") as file:
            file.truncate(os.path.getsize(paths[1]) // 2)

        with pytest.warns(TarvizWarning):
            found = convert(tmp_path / "in", tmp_path / "t.tfrecord", on_error="skip")

        assert 10 + 12 < found.records < 33
        assert 1 == found.exit_code

    def test_a_wrong_option_is_one_clear_line_before_anything_is_written(self, tmp_path):
        for options, error, words in [
            ({"chain": "decod(jpg)"}, ChainError, "decode"),
            ({"chain": "decode(png)"}, SchemaError, "jpg"),
            ({"select": ["png"]}, SchemaError, "png"),
            ({"select": {"a": {"b": "jpg"}}}, UsageError, "flat"),
            ({"types": {"cls": "int"}}, UsageError, "int64"),
            ({"compression": "bz2"}, UsageError, "gzip"),
            ({"exists": "maybe"}, UsageError, "replace"),
            ({"max_shard_size": "big"}, UsageError, "size"),
            ({"max_shard_size": 0}, UsageError, "more than 0"),
            ({"key_spilt": "last-dot"}, UsageError, "key_split"),
        ]:
            path = make(tmp_path / "a.tar", some(3))

            with pytest.raises(error, match=words) as caught:
                convert(path, tmp_path / "out" / "t.tfrecord", **options)

            assert "\n" not in str(caught.value)
            assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize("urls", ["nothing.tar", "no-{0..3}.tar", []])
    def test_missing_shards_are_one_clear_line(self, tmp_path, urls):
        with pytest.raises((NotFoundError, UsageError)) as caught:
            convert(urls, tmp_path / "t.tfrecord")

        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("out", ["", ".", "train-{0..3}.tfrecord"])
    def test_a_wrong_output_is_one_clear_line(self, tmp_path, monkeypatch, out):
        monkeypatch.chdir(tmp_path)
        path = make(tmp_path / "in" / "a.tar", some(3))

        with pytest.raises(UsageError) as caught:
            convert(path, out)

        assert "\n" not in str(caught.value)

    def test_a_shard_is_never_written_over(self, tmp_path):
        path = make(tmp_path / "a.tar", some(3))

        with pytest.raises(UsageError, match="one of the inputs"):
            convert(path, tmp_path / "." / "a.tar")

    def test_existing_outputs_are_refused_where_that_is_asked(self, tmp_path):
        shards(tmp_path / "in", 2, 3)
        (tmp_path / "t-2.tfrecord").write_bytes(b"mine")

        with pytest.raises(UsageError, match="of that name"):
            convert(tmp_path / "in", tmp_path / "t-{}.tfrecord", exists="error")

        assert b"mine" == (tmp_path / "t-2.tfrecord").read_bytes()
        assert not (tmp_path / "t-1.tfrecord").exists()

    def test_an_existing_first_output_is_refused_before_any_work(self, tmp_path):
        path = make(tmp_path / "a.tar", [("bad", {"cls": b"cat"})])
        (tmp_path / "t.tfrecord").write_bytes(b"mine")

        with pytest.raises(UsageError, match="of that name"):
            convert(path, tmp_path / "t.tfrecord", exists="error")

    @pytest.mark.parametrize(("workers", "limit"), sampled([(1, None), (1, "50kB"), (2, None), (2, "50kB")], 2))
    def test_a_full_disk_is_one_clear_line(self, tmp_path, workers, limit):
        shards(tmp_path / "in", 3)
        code = (
            "import resource, signal, sys, tarviz\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
            "try: tarviz.convert(sys.argv[1], sys.argv[2], max_shard_size=eval(sys.argv[3]), num_workers=int(sys.argv[4]))\n"
            "except tarviz.TarvizError as error: print(error)\n"
        )
        out = tmp_path / "out" / "t-{}.tfrecord"

        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "in"), str(out), repr(limit), str(workers)],
            capture_output=True,
            text=True,
            cwd=ROOT,
        )

        assert 1 == len(done.stdout.splitlines()), done
        assert "E_WRITE" in done.stdout
        assert [] == os.listdir(tmp_path / "out")

    def test_types_of_a_field_that_does_not_exist_are_warned_of(self, tmp_path):
        path = make(tmp_path / "a.tar", some(3))

        with pytest.warns(TarvizWarning, match="'clss', which no record has; there are cls, jpg"):
            found = convert(path, tmp_path / "o", types={"clss": "int64"})

        assert 1 == found.exit_code

    def test_an_output_left_from_an_earlier_run_is_warned_of(self, tmp_path):
        shards(tmp_path / "in", 3, 5)
        convert(tmp_path / "in", tmp_path / "t-{}.tfrecord")
        os.unlink(tmp_path / "in" / "train-0002.tar")

        with pytest.warns(TarvizWarning, match="W_OLD_OUTPUT.*t-3"):
            convert(tmp_path / "in", tmp_path / "t-{}.tfrecord")


class TestResume:
    @pytest.fixture
    def written(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The names of outputs made, manifests left out."""
        names: list[str] = []
        commit = Output.commit

        def spy(self: Output, *args: Any) -> Any:
            names.append(Path(self.url).name)
            return commit(self, *args)

        monkeypatch.setattr(Output, "commit", spy)
        return names

    CASES = pytest.mark.parametrize(
        ("out", "options"), [("t-{}.tfrecord", {}), ("t.tfrecord", {}), ("t.tfrecord", {"max_shard_size": 30_000})], ids=str
    )

    @CASES
    def test_a_complete_run_is_kept_whole(self, tmp_path, written, out, options):
        shards(tmp_path / "in", 4)
        first = convert(tmp_path / "in", tmp_path / "out" / out, **options)
        before = contents(tmp_path / "out")
        written.clear()

        again = convert(tmp_path / "in", tmp_path / "out" / out, resume=True, **options)

        assert [] == written
        assert list(first) == list(again)
        assert all(each.kept for each in again.outputs)
        assert before == contents(tmp_path / "out")
        assert "kept" in str(again)
        convert(tmp_path / "in", tmp_path / "out" / out, **options)
        assert {Path(each).name for each in first} == {*written}

    @CASES
    @pytest.mark.parametrize("workers", [1, *sampled([2], 0)])
    def test_what_is_missing_or_damaged_is_made_again_to_the_same_bytes(self, tmp_path, written, out, options, workers):
        shards(tmp_path / "in", 4)
        first = convert(tmp_path / "in", tmp_path / "out" / out, **options)
        before = contents(tmp_path / "out")
        victims = first[len(first) // 2 :]
        os.unlink(victims[-1])
        Path(victims[0]).write_bytes(b"damaged")
        written.clear()

        again = convert(tmp_path / "in", tmp_path / "out" / out, resume=True, num_workers=workers, **options)

        assert before == contents(tmp_path / "out")
        kept = [each.url for each in again.outputs if each.kept]
        assert first[: len(first) // 2] == kept[: len(first) // 2]
        assert victims[0] not in kept

    @pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")
    def test_of_a_shard_with_skipped_damage_none_is_lost_and_none_comes_twice(self, tmp_path, written):
        path = Path(make(tmp_path / "a.tar", some(40)))
        path.write_bytes(pax((b"path", b"a.cls\0")) + member("x", b"1") + path.read_bytes())
        options = {"on_error": "skip", "max_shard_size": 30_000}
        first = convert(path, tmp_path / "out" / "t.tfrecord", **options)
        before = contents(tmp_path / "out")
        os.unlink(first[-1])

        convert(path, tmp_path / "out" / "t.tfrecord", resume=True, **options)

        assert before == contents(tmp_path / "out")

    @CASES
    def test_a_changed_shard_is_converted_anew(self, tmp_path, written, out, options):
        paths = shards(tmp_path / "in", 4)
        convert(tmp_path / "in", tmp_path / "out" / out, **options)
        make(Path(paths[2]), some(60, 99))

        convert(tmp_path / "in", tmp_path / "out" / out, resume=True, **options)
        convert(tmp_path / "in", tmp_path / "fresh" / out, **options)

        for name, data in contents(tmp_path / "fresh").items():
            assert data == (tmp_path / "out" / name).read_bytes()

    @CASES
    def test_further_shards_are_added_as_a_fresh_run_would(self, tmp_path, written, out, options):
        shards(tmp_path / "in", 3)
        convert(tmp_path / "in", tmp_path / "out" / out, **options)
        shards(tmp_path / "in", 5)

        convert(tmp_path / "in", tmp_path / "out" / out, resume=True, **options)
        convert(tmp_path / "in", tmp_path / "fresh" / out, **options)

        assert contents(tmp_path / "fresh") == contents(tmp_path / "out")

    @pytest.mark.parametrize("options", [{"types": {"cls": "bytes"}}, {"chain": "rename(image=jpg)"}, {"key": False}, {"select": ["cls"]}])
    def test_other_options_keep_nothing(self, tmp_path, written, options):
        shards(tmp_path / "in", 2, 5)
        convert(tmp_path / "in", tmp_path / "t-{}.tfrecord")
        written.clear()

        convert(tmp_path / "in", tmp_path / "t-{}.tfrecord", resume=True, **options)

        assert ["t-1.tfrecord", "t-2.tfrecord"] == written

    def test_a_function_is_never_proven_to_be_the_same(self, tmp_path, written):
        shards(tmp_path / "in", 2, 5)
        for _ in range(2):
            convert(tmp_path / "in", tmp_path / "t-{}.tfrecord", resume=True, chain=[Func(_mark)])

        assert 4 == len(written)

    def test_an_empty_shard_is_kept_too(self, tmp_path, written):
        make(tmp_path / "in" / "a.tar", [])
        with pytest.warns(TarvizWarning, match="W_EMPTY"):
            convert(tmp_path / "in", tmp_path / "t-{}.tfrecord")

        convert(tmp_path / "in", tmp_path / "t-{}.tfrecord", resume=True)

        assert ["t-1.tfrecord"] == written


def alive(group: int) -> bool:
    """Whether a process of a group runs, as /proc says; where there is none, the leader alone, which is gone."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(of) == group and state not in "ZX":
            return True
    return False


class TestInterruption:
    @pytest.mark.parametrize(
        ("workers", "options"), sampled([(2, {"max_shard_size": 400_000}), (2, {}), (1, {"max_shard_size": 400_000}), (1, {})], 1)
    )
    @pytest.mark.matrix
    def test_a_killed_run_leaves_only_complete_outputs_and_resumes_to_the_same(self, tmp_path, workers, options):
        for at in range(6):
            make(tmp_path / "in" / f"{at}.tar", some(200, at))
        whole = convert(tmp_path / "in", tmp_path / "whole" / "t-{}.tfrecord", **options)
        expected = {Path(each.url).name: each.crc32c for each in whole.outputs}
        code = (
            "import sys, tarviz, time\n"
            "from tarviz.outputs import Output\n"
            "commit = Output.commit\n"
            "Output.commit = lambda self, *args: (commit(self, *args), time.sleep(0.03))[0]\n"
            "print('on', flush=True)\n"
            "tarviz.convert(sys.argv[1], sys.argv[2], num_workers=int(sys.argv[3]), resume=True, **eval(sys.argv[4]))\n"
        )
        target = tmp_path / "out" / "t-{}.tfrecord"
        arguments = [sys.executable, "-c", code, str(tmp_path / "in"), str(target), str(workers), repr(options)]
        rng = np.random.default_rng(workers)
        for _ in range(3):
            with subprocess.Popen(arguments, stdout=subprocess.PIPE, cwd=ROOT, start_new_session=True) as child:
                assert child.stdout is not None
                assert b"on\n" == child.stdout.readline()
                time.sleep(rng.random() * 0.4)
                child.send_signal(signal.SIGKILL)
            for name, data in contents(tmp_path / "out").items() if (tmp_path / "out").exists() else ():
                assert expected[name] == f"{crc(data):08x}"
            wait_until(lambda: not alive(child.pid))  # workers notice that their parent is gone

        again = convert(tmp_path / "in", target, num_workers=workers, resume=True, **options)

        assert expected == {Path(each.url).name: each.crc32c for each in again.outputs}
        assert contents(tmp_path / "whole") == contents(tmp_path / "out")
        assert [] == [name for name in os.listdir(tmp_path / "out") if name.startswith(".")]

    @pytest.mark.parametrize("workers", [1, 2])
    @pytest.mark.matrix
    def test_ctrl_c_ends_at_once_and_leaves_nothing_half_written(self, tmp_path, workers):
        for at in range(4):
            make(tmp_path / "in" / f"{at}.tar", some(50, at))
        code = (
            "import sys, time, tarviz\n"
            "def slow(record):\n"
            "    print(record['__key__'], file=sys.stderr, flush=True); time.sleep(0.1 if record['__key__'].endswith('/k00000') else 60)\n"
            "try: tarviz.convert(sys.argv[1], sys.argv[2], chain=[tarviz.ops.Func(slow)], num_workers=int(sys.argv[3]))\n"
            "except KeyboardInterrupt: print('interrupted')\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "in"), str(tmp_path / "out" / "t-{}.tfrecord"), str(workers)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            start_new_session=True,
        ) as child:
            assert child.stdout is not None
            assert child.stderr is not None
            child.stderr.readline()
            child.stderr.readline()
            os.killpg(child.pid, signal.SIGINT)
            out, err = child.communicate(timeout=100)  # all of it takes hours

        assert "interrupted\n" == out
        assert "Traceback" not in err
        assert [] == list((tmp_path / "out").glob("*"))


class TestAnchors:
    """What earlier systems made of the same tars."""

    def test_small_mnist_equals_the_record_aistore_made(self, tmp_path):
        source = CORPORA / "aistore" / "small-mnist-3.tar"
        with pytest.warns(TarvizWarning) if _warns(source) else contextlib.nullcontext():
            (out,) = convert(source, tmp_path / "o", types={"cls": "bytes", "img": "bytes"}, strict=False)

        expected = examples(str(CORPORA / "aistore" / "small-mnist-3.record"))
        for each in expected:
            each["__key__"] = [json.loads(each["__key__"][0]).encode()]  # theirs is quoted, ours plain: DESIGN.md §6
        assert 3 == len(expected)
        assert expected == examples(out)

    def test_single_png_has_the_fields_that_aistore_kept(self, tmp_path):
        source = CORPORA / "aistore" / "single-png-cls.tar"
        with pytest.warns(TarvizWarning) if _warns(source) else contextlib.nullcontext():
            (out,) = convert(source, tmp_path / "o", types={"cls": "bytes"}, strict=False, key=False)

        (expected,) = examples(str(CORPORA / "aistore" / "single-png-cls-transformed.tfrecord"))
        (found,) = examples(out)
        assert expected["cls"] == found["cls"]
        assert set(expected) == set(found)

    @pytest.mark.parametrize("tar", ["small-1.tar", "small-mnist-21.tar"])
    def test_shards_of_go_tfdata_keep_every_byte(self, tmp_path, tar):
        source = CORPORA / "gotfdata" / tar
        with pytest.warns(TarvizWarning) if _warns(source) else contextlib.nullcontext():
            (out,) = convert(source, tmp_path / "o", types={"cls": "bytes"}, strict=False)

        expected = [{ext: [bytes(data)] for ext, data in record.items()} for record in _lenient(source)]
        found = examples(out)
        for each in found:
            del each["__key__"]
        assert expected == found

    def test_records_go_tfdata_wrote_encode_to_themselves(self):
        for record in tfrecord.read((CORPORA / "gotfdata/tf-train-single.record").read_bytes()):
            kinds = {field: kind for field, (kind, _) in example.features(record).items()}
            values = example.decode(record)

            assert values == example.decode(example.encode(values, kinds, key="__key__" in values))


def _warns(path: Path) -> bool:
    with contextlib.closing(tarviz.records(path, strict=False)) as records, pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *args, **kwargs: None)
        list(records)
        return bool(records.report.counts())


def _lenient(path: Path) -> list[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *args, **kwargs: None)
        return list(tarviz.records(path, strict=False))


class TestShell:
    def run(self, *arguments: str) -> int:
        return cli.main(["convert", *arguments])

    def test_writes_and_lists_outputs(self, tmp_path, capsys):
        shards(tmp_path / "in", 2, 5)

        code = self.run(str(tmp_path / "in"), str(tmp_path / "t-{}.tfrecord"), "--types", "cls=bytes,jpg=bytes", "-j", "2")

        out, err = capsys.readouterr()
        assert (0, "") == (code, err)
        assert ["output", "records", "size"] == out.splitlines()[0].split()
        assert "2 files" in out
        assert isinstance(examples(str(tmp_path / "t-1.tfrecord"))[0]["cls"][0], bytes)

    def test_json_lists_outputs_and_what_was_read(self, tmp_path, capsys):
        path = make(tmp_path / "a.tar", some(5))

        code = self.run(path, str(tmp_path / "o"), "--json", "--max-shard-size", "1MB")

        found = json.loads(capsys.readouterr().out)
        assert (0, 5, 5) == (code, found["records"], found["read"]["records"])
        assert str(tmp_path / "o") == found["outputs"][0]["url"]

    def test_skipped_records_are_exit_code_one(self, tmp_path, capsys):
        path = make(tmp_path / "a.tar", [*some(3), ("bad", {"cls": b"cat", "jpg": b""})])

        assert 2 == self.run(path, str(tmp_path / "o"))
        assert 1 == self.run(path, str(tmp_path / "o"), "--on-error", "skip")
        assert "skipped E_DECODE" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("select", "names"),
        [
            ("jpg,cls", {"__key__", "jpg", "cls"}),
            ("image=jpg", {"__key__", "image"}),
            ("{'image': 'jpg', 'label': 'cls'}", {"__key__", "image", "label"}),
        ],
    )
    def test_a_selection_as_it_is_typed(self, tmp_path, capsys, select, names):
        path = make(tmp_path / "a.tar", some(3))

        assert 0 == self.run(path, str(tmp_path / "o"), "--select", select)
        assert names == set(examples(str(tmp_path / "o"))[0])

    def test_dry_run_says_what_would_be_written_and_writes_nothing(self, tmp_path, capsys):
        path = make(tmp_path / "a.tar", some(3))

        code = self.run(path, str(tmp_path / "out" / "t-{}.tfrecord"), "--dry-run", "--chain", "rename(image=jpg)")

        out = capsys.readouterr().out
        assert 0 == code
        assert "t-1.tfrecord" in out
        assert "image" in out
        assert "int64" in out
        assert not (tmp_path / "out").exists()

    def test_standard_output_carries_records_and_nothing_else(self, tmp_path, capfdbinary):
        path = make(tmp_path / "a.tar", some(3))

        code = self.run(path, "-")

        out, err = capfdbinary.readouterr()
        assert (0, 3) == (code, len(list(tfrecord.read(out))))
        assert b"records" in err

    def test_what_is_no_pair_is_told_how_to_write_it(self, tmp_path, capsys):
        path = make(tmp_path / "a.tar", some(3))

        assert 2 == self.run(path, str(tmp_path / "o"), "--types", "cls:int64")
        assert "cls=int64" in capsys.readouterr().err

    def test_resume_and_exists(self, tmp_path, capsys):
        path = make(tmp_path / "a.tar", some(3))

        assert 0 == self.run(path, str(tmp_path / "o"))
        assert 0 == self.run(path, str(tmp_path / "o"), "--resume")
        assert "kept" in capsys.readouterr().out
        assert 2 == self.run(path, str(tmp_path / "o"), "--exists", "error")


class TestWords:
    @pytest.mark.parametrize(
        ("argv", "words"),
        [
            (["a.tar"], "no output is named"),
            (["a.tar", "-", "--max-shard-size", "1MB"], "standard output is one output"),
            (["a.tar", "o", "--types", "cls="], "--types 'cls=' is not a NAME=VALUE"),
        ],
    )
    def test_wrong_use_is_one_line(self, tmp_path, monkeypatch, capsys, argv, words):
        monkeypatch.chdir(tmp_path)
        make(tmp_path / "a.tar", some(1))

        assert 2 == cli.main(["convert", *argv])
        assert words in capsys.readouterr().err

    @pytest.mark.parametrize("wrong", [{"compression": "bz2"}, {"exists": "keep"}, {"num_workers": -1}])
    def test_a_word_that_is_none_is_refused(self, tmp_path, wrong):
        with pytest.raises(UsageError, match=f"{next(iter(wrong))}="):
            convert(make(tmp_path / "a.tar", some(1)), tmp_path / "o", **wrong)

    def test_chained_records_are_written_some_at_a_time(self, tmp_path, monkeypatch):
        monkeypatch.setattr(recipe, "_BATCH", 300)
        path = make(tmp_path / "a.tar", content := some(20, size=200))
        convert(path, tmp_path / "o", chain="rename(image=jpg)")

        assert [fields["jpg"] for _, fields in content] == [each["image"][0] for each in examples(str(tmp_path / "o"))]

    def test_an_output_beside_a_file_says_so(self, tmp_path):
        (tmp_path / "file").write_bytes(b"")
        paths = [make(tmp_path / f"{at}.tar", some(2)) for at in range(2)]
        with pytest.raises(tarviz.TarvizError, match="file"):
            convert(paths, tmp_path / "file" / "o.tfrecord", num_workers=2)
