"""tar2tf's words: what load yields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarviz
from tarviz.dialects.tar2tf import Dataset, with_class_numbers
from tarviz.model.errors import NotFoundError, SchemaError, UsageError
from tarviz.model.types import Feature
from tarviz.ops import Decode, Func, Rename, Resize
from tarviz.pipeline import Pipeline

tf = pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")


class TestLoad:
    @pytest.mark.matrix
    def test_a_converted_field_has_its_dtype_and_a_class_becomes_int32(self, digits: Path) -> None:
        dataset = Dataset(digits, conversions=[Decode("png"), Resize("png", (32, 32))], selections=["png", "cls"]).load(
            "train-{0000..0003}.tar"
        )
        images, labels = next(iter(dataset.batch(2000)))

        assert (tf.TensorSpec((32, 32, 3), tf.uint8), tf.TensorSpec((), tf.int32)) == dataset.element_spec
        assert (1500, 32, 32, 3) == images.shape
        assert set(range(10)) == set(labels.numpy().tolist())

    @pytest.mark.matrix
    def test_left_out_the_defaults_of_tar2tf_hold(self, photos: Path) -> None:
        dataset = tarviz.Dataset(str(photos)).load("photos-0000.tar")
        image, _ = next(iter(dataset))

        assert (tf.TensorSpec((224, 224, 3), tf.float32), tf.TensorSpec((), tf.int32)) == dataset.element_spec
        assert 0 <= image.numpy().min() < image.numpy().max() <= 1

    def test_no_conversions_leave_everything_raw(self, digits: Path) -> None:
        dataset = Dataset(digits, conversions=[], selections=["cls", "png"]).load("test-0000.tar")

        assert (tf.TensorSpec((), tf.string),) * 2 == dataset.element_spec

    def test_a_class_that_is_converted_is_left_as_it_was_made(self, digits: Path) -> None:
        dataset = Dataset(digits, conversions="decode(cls)", selections=["png", "cls"]).load("test-0000.tar")

        assert (tf.TensorSpec((), tf.string), tf.TensorSpec((), tf.int64)) == dataset.element_spec

    @pytest.mark.parametrize(
        ("ops", "name", "kind"),
        [
            ([Rename(label="cls")], "label", "int32"),
            ([Rename(label="cls"), Rename(y="label")], "y", "int32"),
            ([Rename(label="txt;cls")], "label", "int32"),
            ([Rename(label="cls", keep=True)], "label", "int32"),
            ([Decode("cls"), Rename(label="cls")], "label", "int64"),
            ([Decode("cls", dtype="int32"), Rename(label="cls")], "label", "int32"),
            ([Rename(label="png")], "label", "string"),
            ([Rename(cls="png")], "cls", "string"),
        ],
        ids=str,
    )
    @pytest.mark.matrix
    def test_a_class_keeps_its_type_under_another_name(self, digits: Path, ops: list[Any], name: str, kind: str) -> None:
        dataset = Dataset(digits, conversions=ops, selections=name).load("test-0000.tar")
        plain = Dataset(digits, conversions=[Decode("png")], selections="cls").load("test-0000.tar")

        assert tf.TensorSpec((), kind) == dataset.element_spec
        if kind.startswith("int"):
            assert [int(cls) for cls in plain] == [int(cls) for cls in dataset]

    def test_types_and_shapes_that_are_given_win(self, digits: Path) -> None:
        loader = Dataset(digits, conversions=[], selections={"y": "cls", "x": ["png"]})
        dataset = loader.load("test-0000.tar", output_types={"x": (tf.string,), "y": tf.float32}, output_shapes={"x": [[]], "y": []})

        assert {"x": (tf.TensorSpec((), tf.string),), "y": tf.TensorSpec((), tf.float32)} == dataset.element_spec
        assert 0 <= next(iter(dataset))["y"].numpy() <= 9

    @pytest.mark.matrix
    def test_shapes_alone_are_checked(self, digits: Path) -> None:
        loader = Dataset(digits, conversions="decode(png)", selections=["png", "cls"])
        dataset = loader.load("test-0000.tar", output_shapes=(tf.TensorShape([28, 28, 3]), tf.TensorShape([])))

        assert (28, 28, 3) == dataset.element_spec[0].shape
        assert 297 == sum(1 for _ in dataset)

    @pytest.mark.parametrize("options", [{"output_types": (tf.int32,)}, {"output_types": (tf.string, tf.string)}])
    def test_types_that_do_not_fit_are_refused(self, digits: Path, options: dict[str, object]) -> None:
        with pytest.raises(UsageError):
            Dataset(digits, conversions="decode(png)", selections=["png", "cls"]).load("test-0000.tar", **options)  # type: ignore[arg-type]

    def test_iterating_twice_works(self, digits: Path) -> None:
        dataset = Dataset(digits, conversions=[], selections="cls").load("test-0000.tar")

        assert [] != [value.numpy() for value in dataset] == [value.numpy() for value in dataset]

    def test_a_func_is_tried_on_one_record(self, digits: Path) -> None:
        def ink(record: dict[str, object]) -> None:
            record["ink"] = np.float32(np.asarray(record["png"]).mean() / 255)

        dataset = Dataset(digits, conversions=[Decode("png"), Func(ink)], selections=["ink", "cls"]).load("test-0000.tar")

        assert (tf.TensorSpec((), tf.float32), tf.TensorSpec((), tf.int32)) == dataset.element_spec


class TestErrors:
    def test_a_missing_shard_is_named(self, digits: Path) -> None:
        with pytest.raises(NotFoundError, match="train-0009"):
            Dataset(digits).load("train-0009.tar")

    def test_conversions_that_do_not_fit_are_found_at_once(self, digits: Path) -> None:
        with pytest.raises(SchemaError, match=r"Put decode\(png\) before it"):
            Dataset(digits, conversions=[Resize("png", (8, 8))], selections=["png", "cls"]).load("test-0000.tar")


class TestPipeline:
    def test_shards_are_read_in_tar2tfs_way(self) -> None:
        options = Dataset("data/").pipeline("a.tar").options

        assert ("last-dot", "shard", "last") == (options.key_split, options.group, options.duplicates)

    def test_names_are_joined_to_the_bucket(self) -> None:
        assert ("data/train-{0..3}.tar",) == Dataset("data/").pipeline("train-{0..3}.tar").urls
        assert ("https://h/d/a-0.tar", "https://h/d/a-1.tar") == Dataset("https://h/d").pipeline("a-{0..1}.tar").urls

    def test_class_numbers_are_added_where_they_are_asked_for(self, digits: Path) -> None:
        url = str(digits / "test-0000.tar")

        assert "decode(cls, dtype=int32)" == str(with_class_numbers(Pipeline(url, select=("png", "cls"))).chain)
        assert "" == str(with_class_numbers(Pipeline(url, select="png")).chain)
        assert Feature("int32") == with_class_numbers(Pipeline(url, select="cls")).schema()
