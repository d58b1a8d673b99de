"""go-tfdata: stages and their order, laziness, selections, types, both ways with TensorFlow's and go-tfdata's own files."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarviz.dialects.tfdata import Pipeline, Sample, TFExample, core, empty_examples, empty_samples, selection, transform
from tarviz.formats import example as examples
from tarviz.model.errors import DataError, NotFoundError, SchemaError, TarvizWarning, UsageError
from tarviz.read import stream
from tarviz.samples import write_shard
from tarviz.testing.strategies import shard
from tests.conftest import each_case

CORPORA = Path(__file__).parents[2] / "data/corpora"


@pytest.fixture
def tar(tmp_path: Path) -> str:
    """Six records of `cls` (text) and `txt`."""
    write_shard(tmp_path / "a.tar", ((f"d/{n:03d}", {"cls": b"%d\n" % n, "txt": b"no %d" % n}) for n in range(6)))
    return str(tmp_path / "a.tar")


def read(path: Any) -> list[dict[str, list[Any]]]:
    with Path(path).open("rb") as file:
        return [dict(example) for example in core.read_tfrecord(file)]


class TestStages:
    def test_tar_becomes_tfrecord(self, tar: str, tmp_path: Path) -> None:
        assert 6 == Pipeline().from_tar(tar).sample_to_tf_example().to_tfrecord(tmp_path / "a.tfrecord").do()
        assert {"__key__": [b"d/000"], "cls": [b"0\n"], "txt": [b"no 0"]} == read(tmp_path / "a.tfrecord")[0]

    def test_the_order_of_the_calls_does_not_matter(self, tar: str, tmp_path: Path) -> None:
        one, two = tmp_path / "1", tmp_path / "2"
        Pipeline().from_tar(tar).transform_samples(transform.rename("n", "cls")).sample_to_tf_example({"n": "INT64"}).to_tfrecord(one).do()
        Pipeline().to_tfrecord(two).sample_to_tf_example({"n": "INT64"}).transform_samples(transform.rename("n", "cls")).from_tar(tar).do()

        assert one.read_bytes() == two.read_bytes()

    def test_blocks_and_single_samples_give_the_same_bytes(self, tar: str, tmp_path: Path) -> None:
        for name, pipeline in (("1", Pipeline()), ("2", Pipeline().transform_samples(transform.id_))):
            pipeline.from_tar(tar).sample_to_tf_example({"cls": "INT64", "txt": "BYTES"}).to_tfrecord(tmp_path / name).do()

        assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()

    def test_stages_of_samples_follow_each_other_and_others_replace(self, tar: str) -> None:
        seen: list[str] = []

        def note(word: str) -> Any:
            return lambda reader: (seen.append(word) or item for item in reader)  # type: ignore[func-returns-value]

        pipeline = Pipeline().with_samples_stage(note("a")).from_tar("nowhere.tar").with_samples_stage(note("b")).from_tar(tar)
        next(iter(pipeline.sample_to_tf_example()))

        assert ["a", "b"] == seen

    def test_every_stage_can_be_ones_own(self) -> None:
        taken: list[Any] = []

        def read_samples() -> Iterator[Sample]:
            return (Sample({"__key__": str(n), "n": n}) for n in range(3))

        def convert(reader: Iterator[Any]) -> Iterator[Any]:
            return (TFExample(n=sample["n"]) for sample in reader)

        pipeline = Pipeline().with_tar_stage(read_samples).with_samples_stage(lambda reader: (s for s in reader if s["n"] != 1))
        pipeline.with_sample_to_tf_example_stage(convert).with_tf_examples_stage(lambda reader: (e for e in reader))

        assert 2 == pipeline.with_tfrecord_stage(taken.extend).do()
        assert [{"n": [0]}, {"n": [2]}] == taken

    def test_without_a_tfrecord_stage_the_examples_are_counted_or_iterated_over(self, tar: str) -> None:
        pipeline = Pipeline().from_tar(tar).sample_to_tf_example()

        assert 6 == pipeline.do() == len(list(pipeline))

    def test_nothing_is_read_before_the_last_stage_asks(self, tar: str) -> None:
        asked: list[int] = []

        class Lazy(io.RawIOBase):
            def read(self, size: int = -1) -> bytes:
                asked.append(size)
                return data.read(size)

        with Path(tar).open("rb") as data:
            examples = iter(Pipeline().from_tar(Lazy()).sample_to_tf_example().filter_empty_examples())
            before = list(asked)
            assert [b"0\n"] == next(examples)["cls"]
        assert ([], True) == (before, bool(asked))

    def test_samples_pass_one_at_a_time(self, tar: str) -> None:
        order: list[str] = []

        def note(word: str) -> Any:
            return lambda item: order.append(word) or item  # type: ignore[func-returns-value]

        pipeline = Pipeline().from_tar(tar).transform_samples(transform.sample_f(note("s"))).sample_to_tf_example()
        list(pipeline.transform_tf_examples(transform.example_f(note("e"))))

        assert ["s", "e"] * 6 == order


class TestSources:
    def test_open_files_packed_files_and_streams_are_read(self, tar: str, tmp_path: Path) -> None:
        packed = tmp_path / "a.tgz"
        packed.write_bytes(gzip.compress(Path(tar).read_bytes()))
        with Path(tar).open("rb") as file, packed.open("rb") as other, gzip.open(packed) as unpacked:
            sources = [tar, Path(tar), [tar], file, io.BytesIO(Path(tar).read_bytes()), packed, other, unpacked]
            counts = [Pipeline().from_tar_gz(source).sample_to_tf_example().do() for source in sources]

        assert [6] * 8 == counts

    def test_a_file_is_read_from_where_it_stands(self, tar: str) -> None:
        with Path(tar).open("rb") as file:
            file.seek(2048)

            assert 5 == Pipeline().from_tar(file).sample_to_tf_example().do()

    def test_records_are_gathered_over_the_shard_and_names_cut_at_the_last_dot(self, tmp_path: Path) -> None:
        with tarfile.open(tmp_path / "a.tar", "w") as tar:
            for name, data in (("a.seg.png", b"1"), ("b.cls", b"2"), ("a.seg.cls", b"3"), ("b.cls", b"4")):
                info = tarfile.TarInfo(name)
                info.size = 1
                tar.addfile(info, io.BytesIO(data))

        found = list(Pipeline().from_tar(tmp_path / "a.tar").sample_to_tf_example())
        assert [{"__key__": [b"a.seg"], "png": [b"1"], "cls": [b"3"]}, {"__key__": [b"b"], "cls": [b"4"]}] == found

    def test_output_goes_to_open_files_too(self, tar: str) -> None:
        for transforms in ((), (transform.id_,)):
            out = io.BytesIO()
            pipeline = Pipeline().from_tar(tar).sample_to_tf_example().to_tfrecord(out, num_workers=4)
            if transforms:
                pipeline.transform_samples(*transforms)

            assert 6 == pipeline.do()
            assert 6 == len(list(core.read_tfrecord(out.getvalue())))

    def test_a_damaged_shard_leaves_no_output(self, tar: str, tmp_path: Path) -> None:
        Path(tar).write_bytes(Path(tar).read_bytes()[:3000])

        with pytest.raises(DataError, match="E_TRUNCATED"):
            Pipeline().from_tar(tar).sample_to_tf_example().to_tfrecord(tmp_path / "out").do()
        assert [Path(tar)] == list(tmp_path.iterdir())


class TestSelections:
    SAMPLE: dict[str, Any] = {"__key__": "k", "image.png": b"1", "image.jpg": b"2", "cls": b"3"}

    @each_case(
        ("one", "expected"),
        [
            (selection.by_key("cls"), ["cls"]),
            (selection.by_key("c"), []),
            (selection.by_prefix("image"), ["image.png", "image.jpg"]),
            (selection.by_suffix("png"), ["image.png"]),
            (selection.by_substring("age.j"), ["image.jpg"]),
            (selection.by_substring(""), []),
            (selection.by_key_value("cls", b"3"), ["cls"]),
            (selection.by_key_value("cls", b"4"), []),
            (selection.by_key_value("none", b"4"), []),
            (selection.by_sample(lambda sample: {"cls", "none"}), ["cls"]),
        ],
    )
    def test_each_selects_what_it_says(self, one: Any, expected: list[str]) -> None:
        assert expected == one(self.SAMPLE)

    def test_the_union_is_kept_and_nothing_else(self) -> None:
        keep = transform.sample_selections(selection.by_key("cls"), selection.by_suffix("png"))

        assert {"image.png": b"1", "cls": b"3"} == keep(Sample(self.SAMPLE))

    def test_examples_are_selected_by_what_they_hold(self) -> None:
        example = TFExample(cls=7, image=b"x", emb=np.array([1.0, 2.0]))

        assert {"cls": [7]} == transform.example_selections(selection.by_key_value("cls", 7))(example)
        assert {"emb": [1.0, 2.0]} == transform.example_selections(selection.by_example(lambda e: [n for n in e if n == "emb"]))(example)
        assert {"emb": [1.0, 2.0]} == transform.example_selections(selection.by_key_value("emb", np.array([1.0, 2.0])))(example)

    def test_renaming_copies_and_the_last_source_counts(self) -> None:
        sample = transform.rename("image", ["image.png", "image.jpg", "none"])(Sample(self.SAMPLE, shard="a.tar"))

        assert {**self.SAMPLE, "image": b"2"} == sample
        assert isinstance(sample, Sample)
        assert "a.tar" == sample.shard

    def test_records_without_a_source_stay_and_one_nobody_has_is_told(self, tmp_path: Path) -> None:
        tar = tmp_path / "mixed.tar"
        tar.write_bytes(shard([("a", {"cls": b"1"}), ("b", {"id": b"2"}), ("c", {"cls": b"3"})]))
        found = list(Pipeline().from_tar(tar).transform_samples(transform.rename("n", "cls")).sample_to_tf_example({"n": "INT64"}))

        assert [[1], None, [3]] == [example.get("n") for example in found]
        assert [b"2"] == found[1]["id"]
        with pytest.warns(TarvizWarning, match="W_NO_FIELD rename names 'png;jpg', which no Sample has"):
            Pipeline().from_tar(tar).transform_samples(transform.rename("image", ["png", "jpg"])).sample_to_tf_example().do()

    def test_empty_ones_are_left_out(self, tar: str) -> None:
        drop = transform.sample_f(lambda sample: Sample({"__key__": sample["__key__"]}) if sample["cls"] == b"3\n" else sample)
        keep = Pipeline().from_tar(tar).transform_samples(drop).sample_to_tf_example()

        assert 6 == keep.do()
        assert 5 == Pipeline().from_tar(tar).transform_samples(drop).filter_empty_samples().sample_to_tf_example().do()
        assert 5 == Pipeline().from_tar(tar).transform_samples(drop).sample_to_tf_example().filter_empty_examples().do()
        assert [] == list(empty_samples(iter([{"__key__": "a"}, {}]))) == list(empty_examples(iter([TFExample()])))


class TestTypes:
    @each_case(
        ("value", "wanted", "expected"),
        [
            (b"123\n", "INT64", [123]),
            (-5, "INT64", [-5]),
            (np.int64(7), core.FeatureType.INT64, [7]),
            (b"1 2\n3", "INT64LIST", [1, 2, 3]),
            (b"", "INT64LIST", []),
            (np.array([[1, 2], [3, 4]]), "int64_list", [1, 2, 3, 4]),
            (b"0.5", "FLOAT32", [0.5]),
            (np.float32(0.25).tobytes(), "FLOAT32", [0.25]),
            (3, "FLOAT32", [3.0]),
            (b"0.5 1e3", "FLOAT32LIST", [0.5, 1000.0]),
            (np.array([0, 1.5, -2], "<f4").tobytes(), "FLOAT32LIST", [0, 1.5, -2]),
            (b"\xff", "BYTES", [b"\xff"]),
            ("grün", "BYTES", ["grün".encode()]),
            ([b"a", b"b"], "BYTESLIST", [b"a", b"b"]),
            (b"a", "BYTES_LIST", [b"a"]),
        ],
    )
    def test_a_typed_field_becomes_its_list(self, value: Any, wanted: Any, expected: list[Any]) -> None:
        made = core.to_example({"__key__": "k", "x": value}, core.checked_types({"x": wanted}))

        assert expected == made["x"]
        assert expected == examples.decode(made.serialize())["x"]

    @each_case(
        ("value", "wanted", "message"),
        [
            (b"seven", "INT64", "not an integer"),
            (b"99999999999999999999", "INT64", "does not fit int64"),
            (2**63, "INT64", "does not fit int64"),
            (1.5, "INT64", "holds float; its type is INT64"),
            ([1, 2], "INT64", "holds 2 values.*INT64LIST takes any number"),
            (b"12 x", "INT64LIST", "not an integer"),
            (b"word", "FLOAT32", "not a number"),
            (b"\xff\xff\xff", "FLOAT32", "not a number"),
            (7, "BYTES", "holds int; its type is BYTES"),
            ({"a": 1}, "FLOAT32LIST", "holds dict"),
        ],
    )
    def test_a_value_of_another_type_names_shard_record_and_field(self, value: Any, wanted: str, message: str) -> None:
        with pytest.raises((DataError, SchemaError), match=message) as caught:
            core.to_example(Sample({"__key__": "k", "x": value}, shard="a.tar"), core.checked_types({"x": wanted}))
        assert ("a.tar", "k", "x") == (caught.value.shard, caught.value.key, caught.value.member)

    def test_the_fast_way_names_the_place_too(self, tar: str) -> None:
        with pytest.raises(DataError, match=r"a\.tar.*d/000.*'txt'"):
            Pipeline().from_tar(tar).sample_to_tf_example({"txt": "INT64"}).to_tfrecord(io.BytesIO()).do()

    def test_untyped_fields_stay_bytes_and_made_values_keep_their_kind(self) -> None:
        made = core.to_example({"__key__": "k", "cls": b"7", "n": 7, "f": 0.5, "a": np.array([1, 2]), "t": "x", "tree": {"a": [1]}}, {})

        assert {"__key__": [b"k"], "cls": [b"7"], "n": [7], "f": [0.5], "a": [1, 2], "t": [b"x"], "tree": [b'{"a": [1]}']} == made

    def test_types_of_fields_nobody_has_are_told(self, tar: str, tmp_path: Path) -> None:
        for pipeline in (Pipeline(), Pipeline().filter_empty_samples()):
            pipeline.from_tar(tar).sample_to_tf_example({"jpeg": "BYTES"}).to_tfrecord(tmp_path / "out")
            with pytest.warns(TarvizWarning, match="W_NO_FIELD types name 'jpeg'|W_NO_FIELD: types name 'jpeg'"):
                pipeline.do()
            assert {"W_NO_FIELD": 1} == pipeline.report.counts()

    def test_an_example_is_a_dict_of_lists(self) -> None:
        example = TFExample(cls=7, txt="hi", emb=np.array([0.5, 1]), none=[])
        example["more"] = (1, 2)
        other = TFExample.parse(example.serialize())

        assert {"cls": [7], "emb": [0.5, 1.0], "more": [1, 2], "none": [], "txt": [b"hi"]} == other
        assert example.serialize() == other.serialize()

    @pytest.mark.parametrize("example", [TFExample(a=1), {"a": 1}, TFExample(a=1).serialize()])
    def test_examples_may_be_dicts_or_bytes(self, example: Any) -> None:
        assert {"a": [1]} == examples.decode(core.serialize(example))

    def test_examples_may_be_tensorflows(self) -> None:
        tf = pytest.importorskip("tensorflow")
        made = tf.train.Example(features=tf.train.Features(feature={"a": tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))}))

        assert {"a": [1]} == examples.decode(core.serialize(made))
        with pytest.raises(SchemaError, match="got int"):
            core.serialize(3)


class TestMisuse:
    def test_a_missing_stage_is_an_error_before_anything_is_read(self, tar: str, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="no tar stage"):
            Pipeline().sample_to_tf_example().do()
        with pytest.raises(UsageError, match="no stage from samples to examples"):
            Pipeline().from_tar("missing.tar").to_tfrecord(tmp_path / "x").do()
        assert not (tmp_path / "x").exists()

    @each_case(
        ("call", "message"),
        [
            (lambda p: p.with_samples_stage(3), "with_samples_stage expects a function"),
            (lambda p: p.with_tfrecord_stage(None), "with_tfrecord_stage expects a function"),
            (lambda p: p.transform_samples("x"), "expects transforms"),
            (lambda p: p.transform_samples(), "at least one transform"),
            (lambda p: p.sample_to_tf_example({"cls": "INT32"}), "the type 'INT32'.*There are BYTES"),
            (lambda p: p.sample_to_tf_example(["cls"]), "a dict of field and type"),
            (lambda p: p.sample_to_tf_example({3: "INT64"}), "name fields by text"),
            (lambda p: p.from_tar(3), "a path, a URL or an open file, got int"),
            (lambda p: p.from_tar(io.StringIO()), "binary file"),
            (lambda p: p.to_tfrecord(3), "a path, a URL or an open file, got int"),
            (lambda p: p.to_tfrecord(io.StringIO()), "binary file"),
            (lambda p: selection.by_key(3), "by_key expects a text"),
            (lambda p: selection.by_sample("cls"), "by_sample expects a function"),
            (lambda p: transform.sample_selections(), "no selections"),
            (lambda p: transform.sample_selections("cls"), "a selection is made by"),
            (lambda p: transform.sample_f(3), "a transform is a function"),
        ],
    )
    def test_a_wrong_call_is_refused_at_once(self, call: Any, message: str) -> None:
        with pytest.raises(UsageError, match=message):
            call(Pipeline())

    @each_case("bad", [None, 3, "text", {"a": 1}])
    def test_a_stage_that_returns_no_reader_is_refused_before_reading(self, bad: Any) -> None:
        with pytest.raises(UsageError, match=r"with_tf_examples_stage returned .*, not a reader"):
            Pipeline().from_tar("missing.tar").sample_to_tf_example().with_tf_examples_stage(lambda reader: bad).do()

    def test_a_transform_that_fails_says_where(self, tar: str) -> None:
        with pytest.raises(ZeroDivisionError) as caught:
            Pipeline().from_tar(tar).transform_samples(lambda sample: 1 / 0).sample_to_tf_example().do()
        assert "'d/000' of" in caught.value.__notes__[0]
        with pytest.raises(SchemaError, match=r"a\.tar.*d/000.*returned NoneType"):
            Pipeline().from_tar(tar).transform_samples(lambda sample: None).sample_to_tf_example().do()  # type: ignore[arg-type,return-value]
        with pytest.raises(UsageError, match="returned str, not a list of names"):
            Pipeline().from_tar(tar).transform_samples(
                transform.sample_selections(selection.by_sample(lambda s: "cls"))
            ).sample_to_tf_example().do()

    def test_something_else_than_samples_is_refused(self) -> None:
        with pytest.raises(SchemaError, match="a sample is a dict, got int"):
            Pipeline().with_tar_stage(lambda: [3]).sample_to_tf_example().do()


class TestBothWays:
    def test_tensorflow_reads_what_is_written(self, tar: str, tmp_path: Path) -> None:
        tf = pytest.importorskip("tensorflow")
        Pipeline().from_tar(tar).sample_to_tf_example({"cls": "INT64", "txt": "BYTES"}).to_tfrecord(tmp_path / "a").do()
        spec = {"cls": tf.io.FixedLenFeature([], tf.int64), "txt": tf.io.FixedLenFeature([], tf.string)}

        found = [tf.io.parse_single_example(data, spec) for data in tf.data.TFRecordDataset(str(tmp_path / "a"))]
        assert [(n, b"no %d" % n) for n in range(6)] == [(int(one["cls"]), one["txt"].numpy()) for one in found]

    def test_small_mnist_becomes_what_aistore_made_of_it(self, tmp_path: Path) -> None:
        Pipeline().from_tar(CORPORA / "aistore/small-mnist-3.tar").sample_to_tf_example(quoted_key=True).to_tfrecord(tmp_path / "a").do()

        assert read(CORPORA / "aistore/small-mnist-3.record") == read(tmp_path / "a")

    def test_keys_are_plain_unless_asked_for(self) -> None:
        found = list(Pipeline().from_tar(CORPORA / "aistore/small-mnist-3.tar").sample_to_tf_example())

        assert [[b"mnist-3/10000"], [b"mnist-3/10001"], [b"mnist-3/10002"]] == [example["__key__"] for example in found]

    @pytest.mark.parametrize(
        "name",
        [
            "aistore/small-mnist-3.record",
            "aistore/single-png-cls-transformed.tfrecord",
            "gotfdata/tf-train-single.record",
        ],
    )
    def test_files_of_others_are_read_as_tensorflow_reads_them(self, name: str) -> None:
        tf = pytest.importorskip("tensorflow")
        path = CORPORA / name
        expected = []
        for data in tf.data.TFRecordDataset(str(path)):
            message = tf.train.Example.FromString(data.numpy())
            expected.append({key: list(getattr(value, value.WhichOneof("kind")).value) for key, value in message.features.feature.items()})

        assert expected == read(path)

    @pytest.mark.parametrize(("name", "count"), [("small-1.tar", 1), ("small-mnist-21.tar", 21)])
    def test_go_tfdatas_own_tars_are_read(self, name: str, count: int) -> None:
        path = CORPORA / f"gotfdata/{name}"

        assert count == Pipeline().from_tar(path).sample_to_tf_example({"cls": "INT64"}).do()

    def test_raw_floats_of_mnist_become_a_list(self) -> None:
        path = CORPORA / "gotfdata/small-mnist-21.tar"
        pipeline = Pipeline().from_tar(path).sample_to_tf_example({"cls": core.FeatureType.INT64, "img": core.FeatureType.FLOAT32LIST})

        for example, record in zip(pipeline, stream.records(path, key_split="last-dot"), strict=True):
            assert 784 == len(example["img"])
            assert np.frombuffer(record["img"], "<f4").tolist() == example["img"]
            assert json.loads(bytes(record["cls"])) == example["cls"][0]


class TestItems:
    def test_a_transform_may_return_a_plain_dict(self, tar: str) -> None:
        seen: list[Any] = []
        plain = Pipeline().from_tar(tar).transform_samples(lambda sample: {"n": 1}, lambda sample: seen.append(sample) or sample)  # type: ignore[func-returns-value]
        plain = plain.sample_to_tf_example().transform_tf_examples(
            lambda example: {"m": 2}, lambda example: seen.append(example) or example
        )  # type: ignore[func-returns-value]

        assert [{"m": [2]}] * 6 == list(plain)
        assert (Sample, tar) == (type(seen[0]), seen[0].shard)
        assert (TFExample, {"m": [2]}) == (type(seen[1]), seen[1])

    def test_a_renaming_is_told_only_where_no_record_has_a_source(self, tmp_path: Path) -> None:
        write_shard(tmp_path / "a.tar", [("a", {"cls": b"1"}), ("b", {"txt": b"2"})])
        stages = [transform.rename("x", "cls"), transform.rename("y", ["txt", "none"])]

        found = list(Pipeline().from_tar(tmp_path / "a.tar").transform_samples(*stages).sample_to_tf_example())
        assert [{"__key__", "cls", "x"}, {"__key__", "txt", "y"}] == [set(example) for example in found]

    def test_an_error_of_ours_gets_its_place(self, tar: str) -> None:
        def refuse(item: Any) -> Any:
            raise SchemaError("no")

        for pipeline in (
            Pipeline().from_tar(tar).transform_samples(refuse).sample_to_tf_example(),
            Pipeline().from_tar(tar).sample_to_tf_example().transform_tf_examples(refuse),
        ):
            with pytest.raises(SchemaError) as caught:
                list(pipeline)
            assert ("d/000", tar) == (caught.value.key, caught.value.shard)

    @each_case(
        ("item", "expected"),
        [
            ({"__key__": "a"}, "a"),
            ({"__key__": b"\xff"}, "\udcff"),
            (TFExample(__key__="a"), "a"),
            (TFExample(__key__=[]), None),
            ({"__key__": 3}, "3"),
            ({}, None),
        ],
    )
    def test_a_key_is_that_of_a_sample_or_of_an_example(self, item: Any, expected: str | None) -> None:
        assert expected == core.key_of(item)

    def test_what_no_feature_can_hold_names_the_record(self) -> None:
        with pytest.raises(SchemaError, match="the field 'x' holds object, which no feature can hold") as caught:
            core.to_example(Sample({"__key__": b"k", "x": object()}, shard="a.tar"), {})
        assert ("a.tar", "k", "x") == (caught.value.shard, caught.value.key, caught.value.member)
        with pytest.raises(SchemaError) as other:
            TFExample(x=[object()], shard="a.tar").serialize()
        assert "a.tar" == other.value.shard

    def test_keys_are_quoted_only_where_that_is_asked_for(self) -> None:
        quoted = core.to_example({"__key__": 'gr"ün', "x": "gr"}, {}, quoted_key=True)

        assert {"__key__": ['"gr\\"ün"'.encode()], "x": [b"gr"]} == quoted
        assert [b"k"] == core.to_example({"__key__": b"k"}, {}, quoted_key=True)["__key__"]

    def test_kinds_of_empty_lists_are_kept(self) -> None:
        made = core.to_example(
            {"__key__": "k", "n": b"", "f": [1, 0.5], "b": []}, core.checked_types({"n": "INT64LIST", "f": "FLOAT32LIST"})
        )
        found = examples.features(made.serialize())

        assert {"__key__": "bytes", "n": "int64", "f": "float", "b": "bytes"} == {name: kind for name, (kind, _) in found.items()}
        assert {"n": "int64"} == {name: kind for name, kind in TFExample.parse(made.serialize()).kinds.items() if name == "n"}
        assert "float" == examples.features(TFExample(x=[1, 2.5]).serialize())["x"][0]

    def test_whole_numbers_fit_64_bits(self) -> None:
        types = core.checked_types({"x": "INT64LIST"})
        limits = [-(2**63), 2**63 - 1]

        assert limits == core.to_example({"x": limits}, types)["x"]
        for number in (-(2**63) - 1, 2**63):
            with pytest.raises(SchemaError, match="does not fit int64"):
                core.to_example({"x": [number]}, types)


class TestFiles:
    def test_a_named_file_that_has_gone_is_read_through_its_handle(self, tar: str) -> None:
        with Path(tar).open("rb") as file:
            Path(tar).unlink()
            assert 6 == Pipeline().from_tar(file).sample_to_tf_example().do()

    def test_so_is_one_that_another_file_has_replaced(self, tar: str, tmp_path: Path) -> None:
        with Path(tar).open("rb") as file:
            Path(tar).unlink()
            write_shard(Path(tar), [("other", {"cls": b"1"})])
            assert 6 == Pipeline().from_tar(file).sample_to_tf_example().do()

    def test_memory_is_given_back(self, tar: str) -> None:
        from tarviz import stores
        from tarviz.model.types import URL

        folder = URL("memory://tfdata/")

        def held() -> list[str]:
            with suppress(NotFoundError):
                return [stat.url for stat in stores.of(folder).list(folder)]
            return []

        before = held()
        assert 6 == Pipeline().from_tar(io.BytesIO(Path(tar).read_bytes())).sample_to_tf_example().do()
        run = iter(Pipeline().from_tar(io.BytesIO(Path(tar).read_bytes())).sample_to_tf_example())
        next(run)
        run.close()  # type: ignore[attr-defined]

        assert before == held()

    def test_numbers_of_records_and_bytes_are_reported(self, tar: str) -> None:
        pipeline = Pipeline().from_tar([tar, tar]).sample_to_tf_example()
        for _ in range(2):
            assert 12 == pipeline.do()
            assert (12, 2) == (pipeline.report.records, pipeline.report.shards)
