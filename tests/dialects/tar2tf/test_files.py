"""tar2tf's TFRecord files: names, sizes, the default schema and its parser, both generations; buckets and remote execution."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarviz.dialects.tar2tf import AisDataset, Dataset, default_record_parser, default_record_to_example
from tarviz.dialects.tar2tf._shards import GivenNames, _strings, outputs_of
from tarviz.dialects.tar2tf.ops import Decode, Func, Resize, Rotate, Select, SelectDict, SelectJSON, SelectList
from tarviz.formats import example as examples
from tarviz.formats import tfrecord
from tarviz.model.errors import ChainError, DataError, NotFoundError, SchemaError, TarvizWarning, UsageError
from tarviz.samples import write_shard
from tests.conftest import each_case
from tests.servers.aistore import Cluster

CORPORA = Path(__file__).parents[2] / "data/corpora"


@pytest.fixture
def cut(photos: Path, tmp_path: Path) -> Path:
    """A folder with `a-{0..2}.tar`: 4, 4 and 2 photos."""
    from tarviz.read import stream

    records = [(record.key, {ext: bytes(record[ext]) for ext in ("jpg", "cls")}) for record in stream.records(photos / "photos-0000.tar")]
    (tmp_path / "in").mkdir()
    for shard, (first, last) in enumerate(((0, 4), (4, 8), (8, 10))):
        write_shard(tmp_path / "in" / f"a-{shard}.tar", records[first:last])
    return tmp_path / "in"


def read(path: str | Path) -> list[dict[str, Any]]:
    with Path(path).open("rb") as file:
        return [examples.decode(data) for data in tfrecord.read(file)]


def names(paths: list[str]) -> list[str]:
    return [Path(path).name for path in paths]


@pytest.mark.parametrize("generation", ["v1", "v2"])
class TestPaths:
    def load(self, generation: str, folder: Path, **options: Any) -> Any:
        if generation == "v1":
            return AisDataset(folder).load_from_tar("a-{0..2}.tar", **options)
        return Dataset(folder).load("a-{0..2}.tar", **options)

    def test_a_plain_path_takes_all_shards(self, generation: str, cut: Path, tmp_path: Path) -> None:
        paths = self.load(generation, cut, path=str(tmp_path / "out/train.record"))

        assert [str(tmp_path / "out/train.record")] == paths
        assert isinstance(paths, list)
        assert 10 == len(read(paths[0]))

    def test_braces_count_the_shards_from_1(self, generation: str, cut: Path, tmp_path: Path) -> None:
        paths = self.load(generation, cut, path=tmp_path / "train-{}.record")

        assert ["train-1.record", "train-2.record", "train-3.record"] == names(paths)
        assert [4, 4, 2] == [len(read(path)) for path in paths]

    def test_with_a_limit_files_follow_each_other(self, generation: str, cut: Path, tmp_path: Path) -> None:
        paths = self.load(generation, cut, path=str(tmp_path / "train-{}.record"), max_shard_size="150kB")
        plain = self.load(generation, cut, path=str(tmp_path / "x.record"), max_shard_size=150_000)

        assert [f"train-{n}.record" for n in range(1, len(paths) + 1)] == names(paths)
        assert ["x.record", *(f"x-{n}.record" for n in range(1, len(plain)))] == names(plain)
        for found in (paths, plain):
            assert len(found) > 2
            assert all(0 < Path(path).stat().st_size <= 150_000 for path in found)
            assert 10 == sum(len(read(path)) for path in found)

    def test_a_generator_names_one_file_after_the_other(self, generation: str, cut: Path, tmp_path: Path) -> None:
        def numbered() -> Iterator[str]:
            return (str(tmp_path / f"{n}.record") for n in itertools.count(7))

        def generate() -> Iterator[str]:
            yield from numbered()

        expected = ["7.record", "8.record", "9.record"]
        assert expected == names(self.load(generation, cut, path=numbered()))
        assert expected == names(self.load(generation, cut, path=generate))
        assert expected == names(self.load(generation, cut, path=list(itertools.islice(numbered(), 3))))
        limited = self.load(generation, cut, path=generate, max_shard_size=250_000)
        assert 10 == sum(len(read(path)) for path in limited)

    def test_too_few_names_are_an_error_before_anything_is_written(self, generation: str, cut: Path, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="ended after 2 name"):
            self.load(generation, cut, path=iter([str(tmp_path / "1"), str(tmp_path / "2")]))
        with pytest.raises(UsageError, match="yielded 3, which is not a path"):
            self.load(generation, cut, path=iter([3, 4, 5]))
        assert ["in"] == [path.name for path in tmp_path.iterdir()]

    @pytest.mark.matrix
    def test_an_empty_path_is_none(self, generation: str, cut: Path) -> None:
        pytest.importorskip("tensorflow")

        assert 10 == sum(1 for _ in self.load(generation, cut, path=""))

    def test_the_default_example_has_the_features_of_tar2tf(self, generation: str, cut: Path, tmp_path: Path) -> None:
        first = read(self.load(generation, cut, path=str(tmp_path / "a"))[0])[0]

        assert {"height", "width", "depth", "image_raw", "label"} == set(first)
        assert ([3], True) == (first["depth"], sorted((first["height"][0], first["width"][0])) == [375, 500])

    @pytest.mark.matrix
    def test_memory_and_files_give_the_same_tensors(self, generation: str, cut: Path, tmp_path: Path) -> None:
        tf = pytest.importorskip("tensorflow")
        paths = self.load(generation, cut, path=str(tmp_path / "train-{}.record"), max_shard_size="250kB")
        stored = tf.data.TFRecordDataset(filenames=paths).map(default_record_parser)
        direct = self.load(generation, cut)

        assert direct.element_spec == stored.element_spec
        for (image, label), (other, name) in zip(direct, stored, strict=True):
            np.testing.assert_array_equal(image, other)
            assert label == name

    def test_an_own_function_makes_the_example(self, generation: str, cut: Path, tmp_path: Path) -> None:
        tf = pytest.importorskip("tensorflow")
        seen: list[dict[str, Any]] = []

        def make(record: dict[str, Any]) -> Any:
            seen.append(record)
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[len(record["jpg"])]))
            return tf.train.Example(features=tf.train.Features(feature={"size": feature}))

        paths = self.load(generation, cut, path=str(tmp_path / "a"), record_to_example=make)

        assert {"__key__", "jpg", "cls"} == set(seen[0])
        assert [{"size": [len(record["jpg"])]} for record in seen] == read(paths[0])
        as_dict = self.load(generation, cut, path=str(tmp_path / "b"), record_to_example=lambda record: {"n": int(record["cls"])})
        assert {"n"} == set(read(as_dict[0])[0])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"path": 3}, "path is text or a generator"),
            ({"path": b"x"}, "path is text or a generator"),
            ({"max_shard_size": "100MB"}, "max_shard_size limits files; there is no path"),
            ({"path": "x", "max_shard_size": [1]}, "max_shard_size"),
            ({"path": "x", "max_shard_size": "many"}, "many"),
            ({"path": "x", "max_shard_size": -1}, "size|bytes"),
            ({"record_to_example": len}, "there is no path"),
            ({"path": "x", "record_to_example": 3}, "not a function of the record"),
            ({"paths": "x"}, "Did you mean 'path'"),
            ({"path": "a-{n}.record"}, "braces that count nothing"),
        ],
    )
    def test_a_wrong_call_is_refused_before_work(
        self, generation: str, cut: Path, options: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(UsageError, match=message):
            self.load(generation, cut, **options)
        assert ["in"] == [path.name for path in tmp_path.iterdir()]

    def test_records_without_image_or_class_are_named(self, generation: str, tmp_path: Path) -> None:
        for name, fields, message in (
            ("a", {"txt": b"x", "cls": b"1"}, "expects an image"),
            ("b", {"jpg": b"\xff\xd8x"}, "expects 'cls'"),
            ("c", {"jpg": b"\xff\xd8x", "cls": b"cat"}, "'cat' is not a whole number"),
            ("d", {"jpg": b"<html>", "cls": b"1"}, "not a picture"),
        ):
            write_shard(tmp_path / f"{name}.tar", [("k", fields)])
            load = AisDataset(tmp_path).load_from_tar if generation == "v1" else Dataset(tmp_path).load
            with pytest.raises((SchemaError, DataError), match=message) as caught:
                load(f"{name}.tar", path=str(tmp_path / "out"))
            assert ("k", str(tmp_path / f"{name}.tar")) == (caught.value.key, caught.value.shard)
        assert not (tmp_path / "out").exists()


class TestParser:
    def test_it_reads_what_tar2tf_wrote(self) -> None:
        tf = pytest.importorskip("tensorflow")
        path = CORPORA / "gotfdata/tf-train-single.record"

        image, label = next(iter(tf.data.TFRecordDataset(str(path)).map(default_record_parser)))

        assert ((224, 224, 3), tf.float32, tf.int32) == (image.shape, image.dtype, label.dtype)
        assert read(path)[0]["label"] == [int(label)]

    def test_grey_images_become_three_channels(self) -> None:
        tf = pytest.importorskip("tensorflow")
        grey = tf.io.encode_jpeg(np.full((8, 8, 1), 100, np.uint8)).numpy()
        made = default_record_to_example({"__key__": "k", "jpg": grey, "cls": b"5"})
        image, label = default_record_parser(examples.encode(made))

        assert (1, (224, 224, 3), 5) == (made["depth"], image.shape, int(label))

    def test_the_paths_are_those_that_tensorflow_opens(self, cut: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))

        assert [f"{tmp_path}/x-1.record"] == Dataset(cut).load("a-0.tar", path="~/x-{}.record")


class TestBuckets:
    def test_a_folder_needs_no_cluster_whatever_the_proxy(self, cut: Path, tmp_path: Path) -> None:
        assert 4 == len(read(Dataset(cut, "http://localhost:8080").load("a-0.tar", path=str(tmp_path / "x"))[0]))

    def test_a_url_prefix_is_a_bucket_too(self) -> None:
        assert ("https://h/d/a-0.tar", "https://h/d/a-1.tar") == AisDataset("https://h/d/", None).pipeline("a-{0..1}.tar").urls
        assert ("memory://d/a-{0..1}.tar",) == Dataset("memory://d").pipeline("a-{0..1}.tar").urls

    @pytest.mark.parametrize("make", [AisDataset, Dataset])
    def test_an_aistore_bucket_is_read(self, make: Any, cut: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AIS_ENDPOINT", "http://127.0.0.1:9")
        with Cluster() as cluster:
            cluster.put("photos", "a-0.tar", (cut / "a-0.tar").read_bytes())
            found = make("photos", cluster.url)
            load = found.load_from_tar if make is AisDataset else found.load

            assert 4 == len(read(load("a-0.tar", path=str(tmp_path / "x"))[0]))

    @pytest.mark.parametrize(
        ("name", "proxy", "endpoint", "found"),
        [
            ("photos", "http://h:1", "", "ais://photos/a.tar"),
            ("./photos", "http://h:1", "", "./photos/a.tar"),
            ("photos", None, "http://h:1", "photos/a.tar"),
            ("other", None, "http://h:1", "ais://other/a.tar"),
            ("other", None, "", "other/a.tar"),
            ("other/x", None, "http://h:1", "other/x/a.tar"),
        ],
    )
    def test_a_bucket_goes_before_a_folder_where_there_is_a_proxy(
        self, name: str, proxy: str | None, endpoint: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("AIS_ENDPOINT", endpoint)
        Path("photos").mkdir()

        assert (found,) == Dataset(name, proxy).pipeline("a.tar").urls == AisDataset(name, proxy).pipeline("a.tar").urls

    def test_an_aistore_bucket_needs_a_cluster(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("AIS_ENDPOINT", raising=False)

        with pytest.raises(UsageError, match="Set AIS_ENDPOINT"):
            Dataset("ais://imagenet").load("a-0.tar", path=str(tmp_path / "x"))

    @pytest.mark.parametrize("bucket", ["", None, 3])
    def test_something_else_is_no_bucket(self, bucket: Any) -> None:
        with pytest.raises(UsageError, match="bucket_name"):
            Dataset(bucket)

    def test_conversions_in_the_place_of_the_proxy_are_noticed(self) -> None:
        with pytest.raises(UsageError, match="The order is"):
            Dataset("data", [Decode("jpg")])  # type: ignore[arg-type]

    def test_an_unknown_scheme_is_an_error(self) -> None:
        with pytest.raises(UsageError, match="no store for ipfs"):
            Dataset("ipfs://h/d")

    def test_a_missing_shard_is_an_error(self, cut: Path) -> None:
        with pytest.raises(NotFoundError, match="a-9"):
            Dataset(cut).load("a-9.tar", path="x")
        with pytest.raises(UsageError, match="a template is text"):
            Dataset(cut).load(3)  # type: ignore[arg-type]


class TestSecondGeneration:
    def test_remote_execution_without_a_cluster_is_local_and_said_once(self, cut: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("tensorflow")
        monkeypatch.delenv("RAY_ADDRESS", raising=False)
        dataset = Dataset(cut, None, [Decode("jpg"), Resize("jpg", (8, 8))], ["jpg", "cls"], remote_exec=True)
        with pytest.warns(TarvizWarning, match="W_LOCAL remote_exec=True"):
            dataset.load("a-0.tar")
        dataset.load("a-0.tar", remote_exec=True)
        dataset.load("a-0.tar", remote_exec=False)
        dataset.stop()
        with pytest.raises(UsageError, match="remote_exec='yes'"):
            dataset.load("a-0.tar", remote_exec="yes")  # type: ignore[arg-type]

    @each_case("selections", [["jpg"], ["jpg", "cls", "json"], ("a",), SelectList("a", "b", "c")])
    def test_selections_are_two(self, selections: Any) -> None:
        with pytest.raises(UsageError, match="selections are two, value and label"):
            Dataset("data", selections=selections)

    @each_case(
        "selections",
        [
            [["jpg", "json"], "cls"],
            [{"image": "jpg"}, "cls"],
            [SelectDict(image="jpg"), Select("cls")],
            [SelectList(["jpg", "cls"]), SelectJSON("json", "a")],
            {"image": "jpg"},
        ],
    )
    def test_each_of_them_may_be_made_of_several(self, selections: Any) -> None:
        assert Dataset("data", selections=selections).selection.needs()

    def test_selections_among_the_conversions_are_noticed(self) -> None:
        with pytest.raises(ChainError, match="selects and does not convert"):
            Dataset("data", conversions=[Decode("jpg"), Select("cls")])
        with pytest.raises(UsageError, match="A chain is made of ops"):
            Dataset("data", conversions=[len])

    def test_conversions_have_no_part_in_files_and_that_is_said(self, cut: Path, tmp_path: Path) -> None:
        with pytest.warns(TarvizWarning, match=r"W_UNUSED_CONVERSIONS.*decode\(jpg\)"):
            paths = Dataset(cut, conversions=[Decode("jpg")]).load("a-0.tar", path=str(tmp_path / "a"))
        assert 4 == len(read(paths[0]))

    def test_a_function_may_change_the_record(self, cut: Path) -> None:
        pytest.importorskip("tensorflow")

        def flip(record: dict[str, Any]) -> dict[str, Any]:
            record["jpg"] = record["jpg"][:, ::-1]
            return record

        plain = Dataset(cut, None, [Decode("jpg"), Resize("jpg", (8, 8))]).load("a-0.tar")
        flipped = Dataset(cut, None, [Decode("jpg"), Resize("jpg", (8, 8)), Func(flip)]).load("a-0.tar")

        for (image, _), (other, _) in zip(plain, flipped, strict=True):
            assert np.abs(image.numpy()[:, ::-1].astype(int) - other.numpy()).max() <= 1

    def test_a_function_with_a_name_sets_that_field(self, cut: Path) -> None:
        pytest.importorskip("tensorflow")
        dataset = Dataset(cut, None, [Func(lambda record: len(record["jpg"]), "size")], ["size", "cls"]).load("a-0.tar")

        assert all(int(size) > 1000 for size, _ in dataset)
        with pytest.raises(ChainError, match="ext_name"):
            Func(len, 3)  # type: ignore[arg-type]

    def test_a_function_sees_the_key_and_the_fields(self, cut: Path) -> None:
        pytest.importorskip("tensorflow")
        seen: list[set[str]] = []

        def longer(record: dict[str, Any]) -> dict[str, Any]:
            seen.append(set(record))
            return {name: value + b"!" if name != "__key__" else value for name, value in record.items()}

        def number(record: dict[str, Any]) -> int:
            seen.append(set(record))
            return 1

        dataset = Dataset(cut, None, [Func(longer), Func(number, "one")], ["jpg", "one"]).load("a-0.tar", num_workers=0)

        assert all(image.numpy().endswith(b"!") and int(one) == 1 for image, one in dataset)
        assert all("jpg" in names and {"__key__"} == {name for name in names if name.startswith("_")} for names in seen)

    def test_other_integer_types_can_be_asked_for(self, cut: Path) -> None:
        tf = pytest.importorskip("tensorflow")
        dataset = Dataset(cut, None, [], ["jpg", "cls"]).load("a-0.tar", output_types=(tf.string, tf.uint8))

        assert (tf.TensorSpec((), tf.string), tf.TensorSpec((), tf.uint8)) == dataset.element_spec
        assert all(int(label) in (0, 1) for _, label in dataset)

    @pytest.mark.matrix
    def test_the_single_png_of_aistore_turns_as_the_cluster_turned_it(self) -> None:
        tf = pytest.importorskip("tensorflow")
        record = read(CORPORA / "aistore/single-png-cls-transformed.tfrecord")[0]
        golden = tf.io.decode_png(record["png"][0], channels=3).numpy()
        folder = CORPORA / "aistore"
        image, _ = next(iter(Dataset(folder, None, [Decode("png"), Rotate("png", 30)], ["png", "cls"]).load("single-png-cls.tar")))

        # The cluster let the canvas grow and turned the other way; inside the frame both hold the same picture.
        inner = golden[46 + 64 : 46 + 192, 46 + 64 : 46 + 192]
        ours = {angle: turned(folder, angle)[64:192, 64:192] for angle in (30, 330)}
        noise = {angle: float(np.mean((part.astype(float) - inner) ** 2)) for angle, part in ours.items()}
        assert (256, 256, 3) == image.shape
        assert 10 * np.log10(255**2 / min(noise.values())) >= 20


def turned(folder: Path, angle: float) -> Any:
    image, _ = next(iter(Dataset(folder, None, [Decode("png"), Rotate("png", angle)], ["png", "cls"]).load("single-png-cls.tar")))
    return image.numpy()


def test_it_shows_chain_and_selection() -> None:
    assert "Dataset('data', 'decode(jpg)', SelectTuple(items=(Select(ext='jpg'), Select(ext='cls'))))" == repr(
        Dataset("data", conversions="decode(jpg)")
    )


class TestRemote:
    def test_of_files_it_is_said_that_they_are_written_here(self, cut: Path, tmp_path: Path) -> None:
        for number, (always, now, told) in enumerate([(True, None, True), (False, True, True), (True, False, False), (None, None, False)]):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                Dataset(cut, remote_exec=always).load("a-2.tar", path=str(tmp_path / f"{number}"), remote_exec=now)
            assert told == any("W_LOCAL remote_exec=True: files are written here" in str(each.message) for each in found)

    def test_a_condition_is_for_data_sets(self, cut: Path, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="the files hold every record"):
            Dataset(cut, where="cls = 1").load("a-2.tar", path=str(tmp_path / "a"))
        assert "adjacent" == Dataset(cut, where="cls = 1").pipeline("a-2.tar").options.group

    def test_what_cannot_travel_is_refused_where_there_is_a_cluster(self, cut: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tarviz.engines.there", lambda: "ray")
        with pytest.raises(UsageError, match="holds a function") as caught:
            Dataset(cut, conversions=[Func(dict)], selections="jpg", remote_exec=True).load("a-2.tar")
        assert "remote_exec=False, or nothing, runs it here." == caught.value.hint


class TestOutputs:
    def test_names_of_a_generator_are_asked_for_as_they_are_needed(self) -> None:
        names = outputs_of(iter(["a", Path("b"), ""]), None, None)

        assert isinstance(names, GivenNames)
        assert ("b", "a", "b") == (names.at(1), names.at(0), names.at(1))
        assert names.counts
        with pytest.raises(UsageError, match="yielded '', which is not a path"):
            names.at(2)
        with pytest.raises(UsageError, match=r"ended after 2 name\(s\); one more is needed"):
            names.at(2)

    def test_nothing_is_limited_by_nothing(self) -> None:
        assert [None] * 4 == [outputs_of(path, limit, None) for path, limit in ((None, 0), ("", ""), (None, None), (None, False))]
        with pytest.raises(UsageError, match="max_shard_size=True is neither"):
            outputs_of("a", True, None)


@each_case(
    ("types", "expected"),
    [
        ({"x": "string", "y": [bytes, "int32"]}, {"a", "b"}),
        ({"y": (str, str)}, {"b", "c"}),
        ({"x": ("string", "string")}, set()),
        (("string", "string"), set()),
        (None, set()),
    ],
)
def test_fields_that_are_to_be_strings_are_found_in_the_structure(types: Any, expected: set[str]) -> None:
    assert expected == _strings(SelectDict(x="a", y=["b", "c"]), types)
