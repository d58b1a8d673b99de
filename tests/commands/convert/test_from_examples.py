"""TFRecord files to shards and back, as TensorFlow wrote them in the layouts of TFDS, the Object Detection API and TFRecorder."""

from __future__ import annotations

import gzip
import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tarviz
from tarviz import cli
from tarviz.commands.convert import convert, from_examples
from tarviz.commands.convert.recipe import ConversionProgress
from tarviz.formats import example, npy, tfrecord
from tarviz.formats import features as features_of
from tarviz.formats.features import name_of
from tarviz.model.errors import DataError, UsageError
from tarviz.read.stream import ReadOptions

PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff\xe0"
VALUES: Any = st.one_of(
    st.tuples(st.just("bytes"), st.lists(st.binary(max_size=9) | st.just(JPEG), max_size=3)),
    st.tuples(st.just("int64"), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3)),
    st.tuples(st.just("float"), st.lists(st.floats(width=32, allow_nan=False), max_size=3)),
)


def features(values: dict[str, Any]) -> Any:
    """An Example; a list is given with its kind, because it may be empty."""
    tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")
    message = tf.train.Example()
    for name, value in values.items():
        kind, listed = value if isinstance(value, tuple) else ("int64" if isinstance(value, int) else "bytes", [value])
        found = getattr(message.features.feature[name], f"{kind}_list")
        found.SetInParent()
        found.value.extend(listed)
    return message


def tfds(count: int = 12) -> list[Any]:
    return [features({"image": PNG + b"%d" % at, "label": at % 3, "file_name": b"%d.png" % at}) for at in range(count)]


def object_detection(count: int = 12) -> list[Any]:
    return [
        features(
            {
                "image/encoded": JPEG + b"%d" % at,
                "image/height": 480,
                "image/source_id": b"id.%d" % at,
                "image/object/bbox/xmin": ("float", [0.5 / (1 + each) for each in range(at % 3)]),
                "image/object/class/label": ("int64", list(range(at % 3))),
                "image/object/class/text": ("bytes", [b"caf\xc3\xa9", b"\xff\0"][: at % 3]),
                "image/object/area": ("float", [float(at)] * 3),
            }
        )
        for at in range(count)
    ]


def tfrecorder(count: int = 12) -> list[Any]:
    names = {"split": b"TRAIN", "label": b"cat", "image_uri": b"gs://b/a.jpg"}
    return [features({**names, "image": JPEG, "image_height": 4, "image_width": 5, "image_channels": 3}) for _ in range(count)]


def written(path: Path, messages: list[Any], compression: str = "") -> str:
    tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for message in messages:
            writer.write(message.SerializeToString())
    return str(path)


def messages(path: str) -> list[Any]:
    import tensorflow as tf

    return [tf.train.Example.FromString(bytes(payload)) for payload in tfrecord.read(Path(path).read_bytes())]


class TestThereAndBack:
    @pytest.mark.parametrize("layout", [tfds, object_detection, tfrecorder])
    @pytest.mark.parametrize(("name", "compression"), [("x.tfrecord", ""), ("x.tfrecord.gz", "GZIP"), ("x.record", "ZLIB")])
    def test_examples_are_equal_as_messages(self, tmp_path, layout, name, compression):
        source = written(tmp_path / name, layout(), compression)
        there = convert([source], tmp_path / "x.tar")
        back = convert(there, tmp_path / "y.tfrecord")

        assert layout() == messages(back[0])
        assert [12, 12] == [there.records, back.records]

    def test_a_chain_works_on_the_fields_and_the_rest_stays(self, tmp_path):
        convert([written(tmp_path / "x.tfrecord", object_detection())], tmp_path / "x.tar")
        back = convert(tmp_path / "x.tar", tmp_path / "y.tfrecord", chain="decode(image.height.cls)|drop(image.encoded.jpg)")
        wanted = object_detection()
        for message in wanted:
            del message.features.feature["image/encoded"]

        assert wanted == messages(back[0])

    def test_the_key_is_a_feature_where_it_was_one(self, tmp_path):
        values = [{"__key__": b"a/k1"}, {"__key__": b"a/k1"}, {"__key__": b"k.2"}, {"jpg": JPEG, "cls": 3, "__key__": b"k3"}, {}]
        wanted = [features(each) for each in values]
        convert([written(tmp_path / "x.tfrecord", wanted)], tmp_path / "x.tar")
        back = convert(tmp_path / "x.tar", tmp_path / "y.tfrecord")

        assert ["a/k1", "x-00000001", "x-00000002", "k3", "x-00000004"] == [each.key for each in tarviz.records(tmp_path / "x.tar")]
        assert wanted == messages(back[0])

    def test_a_shard_that_was_converted_comes_back_with_its_names(self, tmp_path):
        convert([written(tmp_path / "x.tfrecord", [features({"__key__": b"k", "jpg": JPEG, "cls": 3, "txt": b"hi"})])], tmp_path / "x.tar")
        with tarfile.open(tmp_path / "x.tar") as tar:
            assert ["k.cls", "k.features.json", "k.jpg", "k.txt"] == sorted(tar.getnames())

    @pytest.mark.matrix
    def test_outputs_do_not_depend_on_the_workers(self, tmp_path):
        sources = [written(tmp_path / f"m-train.tfrecord-{at:05d}-of-00003", tfds(20 + at)) for at in range(3)]
        one = convert(sources, tmp_path / "one-{}.tar", max_shard_size=40_000)
        two = convert(sources, tmp_path / "two-{}.tar", max_shard_size=40_000, num_workers=2)

        assert len(one) > 3
        assert [Path(each).read_bytes() for each in one] == [Path(each).read_bytes() for each in two]
        assert 63 == len({each.key for each in tarviz.records(list(one))})

    def test_one_output_for_each_file_and_what_is_proven_is_kept(self, tmp_path):
        sources = [written(tmp_path / f"{at}.tfrecord", tfds()) for at in range(2)]
        made = convert(sources, tmp_path / "x-{shard:03d}.tar.gz")
        again = convert(sources, tmp_path / "x-{shard:03d}.tar.gz", resume=True)

        assert [12, 12] == [each.records for each in made.outputs]
        assert b"\x1f\x8b" == Path(made[1]).read_bytes()[:2]
        assert [True, True] == [each.kept for each in again.outputs]

    @given(st.lists(st.dictionaries(st.text("aA/.%é_1", max_size=5), VALUES, max_size=4), min_size=1, max_size=5))
    @pytest.mark.matrix
    def test_any_examples_are_equal(self, values):
        payloads = [
            features_of.example((name_of(name), features_of.feature(*value)) for name, value in sorted(each.items())) for each in values
        ]
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "x.tfrecord")
            source.write_bytes(b"".join(tfrecord.frame(payloads).buffers()))
            back = convert(convert([source], f"{folder}/x.tar"), f"{folder}/y.tfrecord")
            found = [example.features(payload) for payload in tfrecord.read(Path(back[0]).read_bytes())]

        assert [example.features(payload) for payload in payloads] == found


class TestFields:
    def test_a_feature_is_alike_in_all_records(self, tmp_path):
        convert([written(tmp_path / "x.tfrecord", object_detection())], tmp_path / "x.tar")
        records = list(tarviz.records(tmp_path / "x.tar"))
        second = records[1]

        assert 1 == len({frozenset(each) for each in records})
        assert b"480" == second["image.height.cls"]
        assert [0.5] == npy.array_of(second["image.object.bbox.xmin.npy"]).tolist()
        assert ["café"] == json.loads(bytes(second["image.object.class.text.json"]))

    def test_verify_decodes_all_of_them(self, tmp_path):
        convert(
            [written(tmp_path / "x.tfrecord", [features({"a": ("int64", [1, 2]), "b": ("bytes", [b"x", b"y"]), "c/d": 4})])],
            tmp_path / "x.tar",
        )

        assert 0 == tarviz.verify(tmp_path / "x.tar", deep=True).exit_code


class TestDamage:
    def test_a_payload_that_does_not_fit_its_crc_is_named(self, tmp_path):
        source = Path(written(tmp_path / "x.tfrecord", tfds()))
        data = bytearray(source.read_bytes())
        size = len(tfds()[0].SerializeToString()) + tfrecord.FRAME
        data[size + tfrecord.HEADER] ^= 1
        source.write_bytes(data)
        with pytest.raises(DataError) as caught:
            convert([source], tmp_path / "x.tar")

        assert ("E_DATA_CRC", size, 1) == (caught.value.code, caught.value.offset, caught.value.records_before)
        assert not (tmp_path / "x.tar").exists()

    def test_what_is_skipped_is_counted(self, tmp_path):
        source = Path(written(tmp_path / "x.tfrecord", tfds()))
        data = bytearray(source.read_bytes())
        data[tfrecord.HEADER] ^= 1
        source.write_bytes(data[:-1])
        with pytest.warns(match="E_DATA_CRC|E_TRUNCATED"):
            result = convert([source], tmp_path / "x.tar", on_error="skip")

        assert {"E_DATA_CRC": 1, "E_TRUNCATED": 1} == result.report.left_out
        assert [f"x-{at:08d}" for at in range(1, 11)] == [each.key for each in tarviz.records(tmp_path / "x.tar")]

    def test_a_cut_stream_of_gzip_is_named(self, tmp_path):
        source = tmp_path / "x.tfrecord.gz"
        plain = Path(written(tmp_path / "x.tfrecord", tfds(400))).read_bytes()
        source.write_bytes(gzip.compress(plain)[:-30])
        with pytest.raises(DataError, match="E_TRUNCATED"):
            convert([source], tmp_path / "x.tar")

    def test_a_sequence_example_is_refused_by_name_and_byte(self, tmp_path):
        import tensorflow as tf

        sequence = tf.train.SequenceExample()
        sequence.feature_lists.feature_list["frames"].feature.add().int64_list.value.append(1)
        first = tfds(1)[0]
        source = written(tmp_path / "x.tfrecord", [first, sequence])
        with pytest.raises(DataError, match="SequenceExample") as caught:
            convert([source], tmp_path / "x.tar")

        at = len(first.SerializeToString()) + tfrecord.FRAME + tfrecord.HEADER
        assert ("E_BAD_EXAMPLE", at, 1) == (caught.value.code, caught.value.offset, caught.value.records_before)


class TestRefused:
    def test_options_of_shards_are_named(self, tmp_path):
        for options in [{"chain": "drop(a)"}, {"select": "jpg"}, {"types": {"a": "int64"}}, {"where": "a"}, {"dry_run": True}]:
            source = written(tmp_path / "x.tfrecord", tfds(1))
            hint = "looks inside" if "dry_run" in options else "Convert first"
            with pytest.raises(UsageError, match=f"{next(iter(options))}.*{hint}"):
                convert([source], tmp_path / "x.tar", **options)

    def test_shards_and_files_are_converted_apart(self, tmp_path):
        source = written(tmp_path / "x.tfrecord", tfds(1))
        convert([source], tmp_path / "x.tar")
        with pytest.raises(UsageError, match="others are not"):
            convert([source, tmp_path / "x.tar"], tmp_path / "y.tar")


def test_the_shell_goes_there_and_back(tmp_path, capsys):
    source = written(tmp_path / "x.tfrecord", tfds())

    assert 0 == cli.main(["convert", source, "-o", str(tmp_path / "x.tar")])
    assert 0 == cli.main(["convert", str(tmp_path / "x.tar"), "-o", str(tmp_path / "y.tfrecord")])
    assert tfds() == messages(str(tmp_path / "y.tfrecord"))


@pytest.mark.parametrize("most", [1, 1 << 20])
def test_records_of_a_file_come_from_the_one_asked_for_on_in_batches(tmp_path, monkeypatch, most):
    monkeypatch.setattr(from_examples, "_BATCH", most)
    path = tmp_path / "x.tfrecord"
    path.write_bytes(b"".join(tfrecord.frame([example.encode({"cls": at}) for at in range(5)]).buffers()))
    made = from_examples.ExampleRecipe(ReadOptions(), {str(path): "x"}, frozenset())
    told: list[int] = []
    for start in range(7):
        batches = list(made.batches(str(path), ConversionProgress(told.append), start))
        wanted = list(range(start, 5))

        assert ([*([at] for at in wanted), []] if most == 1 else [wanted]) == [batch.numbers.tolist() for batch in batches]
        assert ([*(at + 1 for at in wanted), 5] if most == 1 else [5]) == [batch.stop for batch in batches]
        assert path.stat().st_size == sum(told)
        told.clear()
        data = b"".join(each for batch in batches for each in batch.frames.buffers())
        assert wanted == [at for at in range(5) if b"x-%08d.cls" % at in data]
