"""TFRecorder: declared attributes, the factory's files and lists, datasets, memory, and clear errors."""

from __future__ import annotations

import configparser
import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarviz.dialects import tfrecorder
from tarviz.dialects.tfrecorder import Example, IgnoreExampleException, factory, tfrecordable
from tarviz.dialects.tfrecorder._dataset import schema_of
from tarviz.formats import example as examples
from tarviz.model.errors import DataError, NotFoundError, SchemaError, UsageError
from tests.conftest import each_case

ROOT = Path(__file__).parents[3]


class Toy(Example):
    """A label and an array that is made in `load`."""

    def __init__(self, name: str, label: int, data: Any = None) -> None:
        super().__init__()
        self.name = name
        self._label = label
        self._data = data

    @tfrecordable(dtype=Example.Field.TYPE_INT32)
    def label(self) -> int:
        return self._label

    @label.setter
    def label(self, value: int) -> None:
        self._label = value

    @tfrecordable(dtype=Example.Field.TYPE_ARRAY_FLOAT32)
    def data(self) -> Any:
        return self._data

    @data.setter
    def data(self, value: Any) -> None:
        self._data = value

    def load(self, scale: float = 1.0, **kwargs: Any) -> None:
        if self._label == 13:
            raise IgnoreExampleException("unlucky")
        self.data = np.full((2 + self._label % 3, 4), self._label * scale, np.float32)

    def to_csv_row(self) -> list[Any]:
        return [self.name, self._label]

    @staticmethod
    def from_csv_row(row: list[str], **kwargs: Any) -> Toy:
        return Toy(row[0], int(row[1]))


class Everything(Example):
    """An attribute of every type."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    @tfrecordable(Example.Field.TYPE_STRING)
    def text(self) -> Any:
        return self.values["text"]

    @tfrecordable(Example.Field.TYPE_BOOL)
    def flag(self) -> Any:
        return self.values["flag"]

    @tfrecordable(Example.Field.TYPE_INT32)
    def small(self) -> Any:
        return self.values["small"]

    @tfrecordable(Example.Field.TYPE_INT64)
    def large(self) -> Any:
        return self.values["large"]

    @tfrecordable(Example.Field.TYPE_FLOAT)
    def single(self) -> Any:
        return self.values["single"]

    @tfrecordable(Example.Field.TYPE_DOUBLE)
    def double(self) -> Any:
        return self.values["double"]

    @tfrecordable(Example.Field.TYPE_ARRAY_INT32)
    def whole(self) -> Any:
        return self.values["whole"]

    @tfrecordable(Example.Field.TYPE_ARRAY_FLOAT32)
    def real(self) -> Any:
        return self.values["real"]

    def to_csv_row(self) -> list[Any]:
        return [self.values["text"]]


VALUES: dict[str, Any] = {
    "text": "grün\n",
    "flag": True,
    "small": -(2**31),
    "large": 2**63 - 1,
    "single": 0.5,
    "double": 0.1 + 1e-12,
    "whole": np.arange(-12, 12, dtype=np.int32).reshape(2, 3, 4),
    "real": np.linspace(0, 1, 7, dtype=np.float32),
}


def toys(count: int) -> list[Example]:
    return [Toy(f"t{n}", n) for n in range(count)]


def labels(folder: Path) -> list[int]:
    return [int(label) for label, _ in factory.generate_dataset(factory.get_tfrecord_filepaths(folder))]


class TestAttributes:
    def test_they_stand_in_the_order_of_their_declaration(self) -> None:
        assert ["text", "flag", "small", "large", "single", "double", "whole", "real"] == Everything.get_tfrecordable_attribute_names()
        assert list(VALUES.values())[:6] == list(Everything(**VALUES).get_tfrecordable_ordered_dict().values())[:6]

    def test_a_subclass_adds_its_own_behind_its_parents(self) -> None:
        class More(Toy):
            @tfrecordable(dtype=Example.Field.TYPE_STRING)
            def title(self) -> str:
                return self.name

        assert ["label", "data", "title"] == More.get_tfrecordable_attribute_names()
        assert ["label", "data"] == Toy.get_tfrecordable_attribute_names()

    def test_they_are_properties_with_setter_and_deleter(self) -> None:
        class Box(Example):
            @tfrecordable(dtype=Example.Field.TYPE_STRING)
            def title(self) -> str:
                """A title."""
                return self._title

            @title.setter
            def title(self, value: str) -> None:
                self._title = value

            @title.deleter
            def title(self) -> None:
                del self._title

        box = Box()
        box.title = "x"
        assert "x" == box.title
        del box.title
        assert not hasattr(box, "title")
        assert ["title"] == Box.get_tfrecordable_attribute_names()

    def test_every_type_comes_back_as_it_was(self) -> None:
        assert 1 == tfrecorder.checker.assert_example_serialize_deserialize_is_ok(Everything(**VALUES))

    @each_case("value", [0.1, 1 / 3, np.float64(0.7), float("nan"), float("-inf"), 16777217])
    def test_a_float_comes_back_as_float32_holds_it(self, value: float) -> None:
        assert 1 == tfrecorder.checker.assert_example_serialize_deserialize_is_ok(Everything(**{**VALUES, "single": value}))

    def test_the_checker_sees_what_comes_back_as_something_else(self) -> None:
        class Changing(Example):
            """Another value each time it is asked for."""

            count = 0.0

            @tfrecordable(dtype=Example.Field.TYPE_FLOAT)
            def number(self) -> float:
                self.count += 0.001
                return self.count

        with pytest.raises(AssertionError, match=r"Changing\.number: 0\.002.* came back as 0\.001"):
            tfrecorder.checker.assert_example_serialize_deserialize_is_ok(Changing())

    def test_the_checker_loads_splits_and_lets_go(self) -> None:
        class Halves(Toy):
            def split(self, **kwargs: Any) -> Any:
                return [Halves(self.name, self.label, half) for half in np.split(self.data, 2)]

        given = [Halves("a", 6), Toy("b", 1)]

        assert 3 == tfrecorder.checker.assert_example_serialize_deserialize_is_ok(given, scale=2.0)
        assert [(None, None)] * 2 == [(each.label, each.data) for each in given]

    def test_release_lets_go_through_the_setters(self) -> None:
        toy = Toy("a", 1)
        toy.load()
        toy.release()
        Everything(**VALUES).release()

        assert (None, None) == (toy.label, toy.data)

    @each_case(
        ("name", "value", "message"),
        [
            ("real", np.zeros(3), "holds a NumPy float64 array of shape \\[3\\].*astype\\(np.float32\\)"),
            ("whole", np.zeros(3, np.int64), "astype\\(np.int32\\)"),
            ("whole", [1, 2], "holds a list"),
            ("text", b"bytes", "holds a bytes"),
            ("flag", 1, "holds a int"),
            ("small", 2**31, "outside the range of int32"),
            ("small", 1.5, "holds a float"),
            ("small", True, "holds a bool"),
            ("double", "1", "holds a str"),
            ("single", None, "holds None.*Load\\(\\) has to assign it"),
        ],
    )
    def test_a_value_of_another_type_is_named(self, name: str, value: Any, message: str) -> None:
        with pytest.raises(SchemaError, match=rf"Everything\.{name}\b.*{message}"):
            Everything(**{**VALUES, name: value}).serialize_to_string()

    def test_a_wrong_declaration_is_refused(self) -> None:
        with pytest.raises(UsageError, match=r"Write @tfrecordable\(dtype"):
            tfrecordable(lambda self: 1)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="knows no type 'int32'"):
            tfrecordable(dtype="int32")  # type: ignore[arg-type]

    def test_a_class_without_any_is_refused(self, tmp_path: Path) -> None:
        class Bare(Example):
            pass

        with pytest.raises(UsageError, match="Bare has no @tfrecordable attribute"):
            factory.generate_and_save_train_eval_test_tfrecords_files_for_examples(tmp_path, [Bare()])

    def test_zero_dimensions_and_empty_arrays_keep_their_shapes(self) -> None:
        for shape in ((), (0,), (0, 3)):
            assert 1 == tfrecorder.checker.assert_example_serialize_deserialize_is_ok(
                Everything(**{**VALUES, "real": np.zeros(shape, np.float32)})
            )

    def test_an_array_of_no_dimension_stays_one_without_a_schema(self, tmp_path: Path) -> None:
        pytest.importorskip("tensorflow", reason="TensorFlow reads what was written")
        points = [Everything(**{**VALUES, "whole": np.array(n, np.int32)}) for n in range(2)] + [Everything(**VALUES)]
        factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": points})
        (tmp_path / "a/0.crc").write_bytes(b"no records: it stands before them")
        paths = factory.get_tfrecord_filepaths(tmp_path / "a")
        kept = [value[6].numpy() for value in factory.generate_dataset(paths)]
        (tmp_path / "a/schema.json").unlink()
        bare = [value[6].numpy() for value in factory.generate_dataset(paths, Everything)]

        assert [(), (), (2, 3, 4)] == [value.shape for value in kept] == [value.shape for value in bare]
        assert [0, 1] == [int(value) for value in bare[:2]]


class TestFactory:
    def test_train_eval_and_test_are_written_with_lists_and_counts(self, tmp_path: Path) -> None:
        given = toys(13)
        before = list(given)
        counts = factory.generate_and_save_train_eval_test_tfrecords_files_for_examples(tmp_path / "new/set", given, [0.5, 0.3, 0.2])

        assert {"train": 6, "eval": 3, "test": 4} == counts == counts.written
        assert before == given
        folder = tmp_path / "new/set"
        assert {"train", "eval", "test", "tfrecord_files_config.txt"} == {path.name for path in folder.iterdir()}
        assert {"0.tfr", "examples.csv", "schema.json"} == {path.name for path in (folder / "train").iterdir()}
        rows = [
            row for subset in ("train", "eval", "test") for row in csv.reader((folder / subset / "examples.csv").read_text().splitlines())
        ]
        assert sorted([f"t{n}", str(n)] for n in range(13)) == sorted(rows)

    @each_case(
        ("ratio", "expected"),
        [
            (0.8, (8, 2, None)),
            ([0.7, 0.3], (7, 3, None)),
            ([0.7, 0.2, 0.1], (7, 2, 1)),
            ((0.6, 0.3, 0.1), (6, 3, 1)),
            ([0.9, 0.1, 0.0], (9, 1, None)),
            (1, (10, 0, None)),
        ],
    )
    def test_ratios_are_taken_with_tolerance(self, ratio: Any, expected: tuple[int, int, int | None]) -> None:
        parts = factory.split_examples_list(toys(10), ratio)

        assert expected == tuple(None if part is None else len(part) for part in parts)

    @each_case("ratio", [1.5, -0.1, [0.5], [0.5, 0.6], [0.25] * 4, "0.8", None, True, [1.5, -0.5]])
    def test_a_bad_ratio_is_refused_before_anything_is_written(self, tmp_path: Path, ratio: Any) -> None:
        with pytest.raises(UsageError, match="the ratio"):
            factory.generate_and_save_train_eval_test_tfrecords_files_for_examples(tmp_path / "out", toys(4), ratio)
        assert not (tmp_path / "out").exists()

    def test_the_order_depends_on_the_seed(self, tmp_path: Path) -> None:
        for name, seed in (("a", 0), ("b", 0), ("c", 1)):
            factory.generate_and_save_train_eval_test_tfrecords_files_for_examples(tmp_path / name, toys(12), examples_shuffle_seed=seed)
        factory.generate_and_save_train_eval_test_tfrecords_files_for_examples(tmp_path / "d", toys(12), examples_shuffle=False)
        lists = {name: (tmp_path / name / "train/examples.csv").read_text() for name in "abcd"}

        assert lists["a"] == lists["b"] != lists["c"]
        assert [[f"t{n}", str(n)] for n in range(9)] == list(csv.reader(lists["d"].splitlines()))

    def test_folds_go_into_folders_of_their_names(self, tmp_path: Path) -> None:
        counts = factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"fold-0": toys(4), "fold-1": toys(3)})

        assert {"fold-0": 4, "fold-1": 3} == counts
        assert [0, 1, 2, 3] == labels(tmp_path / "fold-0")

    def test_a_split_is_made_again_from_its_lists(self, tmp_path: Path) -> None:
        factory.generate_and_save_train_eval_test_tfrecords_files_for_examples(tmp_path / "a", toys(12), [0.5, 0.25, 0.25])
        files = [factory.get_examples_list_filepaths(tmp_path / "a" / subset) for subset in ("train", "eval", "test")]
        counts = factory.generate_and_save_tfrecords_files_for_train_eval_test_examples_files(tmp_path / "b", Toy, *files)

        assert {"train": 6, "eval": 3, "test": 3} == counts
        for subset in counts:
            assert (tmp_path / "a" / subset / "0.tfr").read_bytes() == (tmp_path / "b" / subset / "0.tfr").read_bytes()

    def test_a_list_is_written_without_a_split_too(self, tmp_path: Path) -> None:
        Toy.to_csv_file(tmp_path / "list.csv", toys(5))
        assert [toy.name for toy in Toy.from_csv_file(tmp_path / "list.csv")] == [f"t{n}" for n in range(5)]
        factory.generate_and_save_tfrecords_files_for_examples_file(tmp_path / "out", Toy, tmp_path / "list.csv")
        factory.generate_and_save_tfrecords_files_for_examples_files_dict(tmp_path / "folds", Toy, {"x": tmp_path / "list.csv"})

        assert list(range(5)) == labels(tmp_path / "out") == labels(tmp_path / "folds/x")

    def test_both_sets_of_names_mean_the_same(self, tmp_path: Path) -> None:
        Toy.to_csv_file(tmp_path / "list.csv", toys(5))
        generate = factory.generate_and_save_train_eval_test_tfrecords_files
        generate(save_directory_path=tmp_path / "a", example_class=Toy, examples_list_filepath=tmp_path / "list.csv", scale=2.0)
        generate(tmp_path / "b", Toy, tmp_path / "list.csv", 0.8, scale=2.0)

        assert (tmp_path / "a/train/0.tfr").read_bytes() == (tmp_path / "b/train/0.tfr").read_bytes()
        with pytest.raises(UsageError, match="examples_filepath or examples_list_filepath is missing"):
            generate(tmp_path / "c", Toy)
        with pytest.raises(UsageError, match="example_class is given twice"):
            generate(tmp_path / "c", Toy, example_class=Toy)

    @pytest.mark.matrix
    def test_the_names_and_places_of_the_original_are_taken(self, tmp_path: Path) -> None:
        listed = tmp_path / "list.csv"
        Toy.to_csv_file(listed, toys(5))
        calls: dict[str, Callable[..., Any]] = {
            "dict": lambda to, *more: factory.generate_and_save_tfrecords_files_for_examples_dict(to, {"x": toys(5)}, *more),
            "named": lambda to, *more: factory.generate_and_save_tfrecords_files_for_examples_dict(to, examples_dict={"x": toys(5)}),
            "files": lambda to, *more: factory.generate_and_save_tfrecords_files_for_examples_files_dict(to, Toy, {"x": listed}, *more),
            "files named": lambda to, *more: factory.generate_and_save_tfrecords_files_for_examples_files_dict(
                to, example_class=Toy, examples_filepaths_dict={"x": listed}
            ),
            "file": lambda to, *more: factory.generate_and_save_tfrecords_files_for_examples_file(to / "x", Toy, listed, *more),
            "file named": lambda to, *more: factory.generate_and_save_tfrecords_files_for_examples_file(
                to / "x", example_class=Toy, examples_filepath=listed
            ),
            "split": lambda to, *more: factory.generate_and_save_train_eval_test_tfrecords_files(to, Toy, listed, 0.8, *more),
            "examples": lambda to, *more: factory.generate_and_save_train_eval_test_tfrecords_files_for_examples(
                to, toys(5), 0.8, False, *more
            ),
            "lists": lambda to, *more: factory.generate_and_save_tfrecords_files_for_train_eval_test_examples_files(
                to, Toy, listed, listed, None, *more
            ),
            "lists named": lambda to, *more: factory.generate_and_save_tfrecords_files_for_train_eval_test_examples_files(
                to, example_class=Toy, train_examples_filepath=listed, eval_examples_filepath=listed
            ),
        }

        for name, call in calls.items():
            call(tmp_path / name, 200, False)
            files = list((tmp_path / name).glob("*/*.tfr"))
            assert files
            if "named" not in name:
                assert all(file.stat().st_size <= 200 for file in files)
                assert len(files) >= 3
                assert [] == list((tmp_path / name).glob("**/*.csv"))
        for name in ("dict", "named", "files", "files named", "file", "file named"):
            assert list(range(5)) == labels(tmp_path / name / "x")
        paths = factory.get_tfrecord_filepaths(tmp_path / "named" / "x")
        assert list(range(5)) == [int(label) for label, _ in factory.generate_dataset(tfrecords_filepaths=paths)]

    def test_the_config_file_says_how_it_was_made(self, tmp_path: Path) -> None:
        Toy.to_csv_file(tmp_path / "list.csv", toys(10))
        factory.generate_and_save_train_eval_test_tfrecords_files(
            tmp_path / "a", Toy, tmp_path / "list.csv", [0.7, 0.3], src_path="x", sizes=[1, 2]
        )
        config = configparser.ConfigParser()
        config.read(tmp_path / "a/tfrecord_files_config.txt")
        found = config["examples"]

        assert ("Toy", "7", "3", "[0.7, 0.3]") == tuple(
            found[name] for name in ("class_name", "train_count", "eval_count", "train_eval_test_ratio")
        )
        assert (str(Path("x").absolute()), "[1, 2]", "1.00e+00") == (
            found["src_path"],
            found["sizes"],
            found["tfrecord_file_max_size_in_mb"],
        )

    def test_files_never_exceed_their_limit(self, tmp_path: Path) -> None:
        options: dict[str, Any] = {"examples_tfrecord_file_max_size_in_bytes": 500}
        factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": toys(13)}, **options)
        paths = factory.get_tfrecord_filepaths(tmp_path / "a")

        assert len(paths) > 2
        assert [f"{n}.tfr" for n in range(len(paths))] == [Path(path).name for path in paths]
        assert all(0 < Path(path).stat().st_size <= 500 for path in paths)
        assert list(range(13)) == labels(tmp_path / "a")

    def test_a_smaller_run_leaves_no_file_of_a_larger_one(self, tmp_path: Path) -> None:
        for count in (13, 2):
            factory.generate_and_save_tfrecords_files_for_examples_dict(
                tmp_path, {"a": toys(count)}, examples_tfrecords_files_max_size_in_bytes=500
            )

        assert [0, 1] == labels(tmp_path / "a")
        assert 2 == len((tmp_path / "a/examples.csv").read_text().splitlines())

    def test_split_writes_its_chunks(self, tmp_path: Path) -> None:
        class Chunked(Toy):
            def split(self, chunk: int = 1, **kwargs: Any) -> Any:
                return [Chunked(self.name, self.label, self.data[at : at + chunk]) for at in range(0, len(self.data), chunk)]

        counts = factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": [Chunked("x", 4)]}, chunk=2)

        assert ({"a": 1}, {"a": 2}) == (counts, counts.written)
        dataset = factory.generate_dataset(factory.get_tfrecord_filepaths(tmp_path / "a"))
        assert [(2, 4), (1, 4)] == [tuple(data.shape) for _, data in dataset]

    def test_an_example_that_asks_for_it_is_left_out_and_counted(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        counts = factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": toys(15)})

        assert ({"a": 15}, {"a": 14}, {"a": 1}) == (counts, counts.written, counts.ignored)
        assert "example 13 (Toy) is left out: unlucky" in caplog.text

    def test_errors_of_user_code_say_which_example(self, tmp_path: Path) -> None:
        class Broken(Toy):
            def load(self, **kwargs: Any) -> None:
                raise FileNotFoundError("x.npy")

        with pytest.raises(FileNotFoundError) as caught:
            factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": [Broken("x", 1)]})
        assert ["Broken.load of example 0 failed"] == caught.value.__notes__
        assert not list(tmp_path.glob("**/*.tfr"))

        (tmp_path / "bad.csv").write_text("a,1\nb,one\n")
        with pytest.raises(ValueError, match="invalid literal") as other:
            factory.generate_and_save_train_eval_test_tfrecords_files(tmp_path, Toy, tmp_path / "bad.csv")
        assert "row 2 of" in other.value.__notes__[0]

    def test_a_wrong_attribute_says_which_example(self, tmp_path: Path) -> None:
        class Wrong(Toy):
            def load(self, **kwargs: Any) -> None:
                self.data = np.zeros(3)

        with pytest.raises(SchemaError, match=r'record "example 0".*Wrong\.data'):
            factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": [Wrong("x", 1)]})

    @each_case(
        ("call", "message"),
        [
            (lambda f, to: f.generate_and_save_tfrecords_files_for_examples_dict(to, []), "a dict of subset and list"),
            (lambda f, to: f.generate_and_save_tfrecords_files_for_examples_dict(to, {"../a": toys(1)}), "named by a folder name"),
            (lambda f, to: f.generate_and_save_tfrecords_files_for_examples_dict(to, {"a": []}), "there are no examples"),
            (lambda f, to: f.generate_and_save_train_eval_test_tfrecords_files_for_examples(to, []), "there are no examples"),
            (lambda f, to: f.generate_and_save_train_eval_test_tfrecords_files_for_examples(to, [3]), "not a subclass of Example"),
            (lambda f, to: f.generate_and_save_train_eval_test_tfrecords_files(to, int, "x.csv"), "not a subclass of Example"),
            (
                lambda f, to: f.generate_and_save_tfrecords_files_for_examples_dict(to, {"a": [Strict()]}, colour=1),
                "unexpected keyword argument 'colour'",
            ),
            (
                lambda f, to: f.generate_and_save_tfrecords_files_for_examples_dict(to, {"a": [Toy("", 1), Strict()]}),
                "declare different attributes",
            ),
            (lambda f, to: f.generate_and_save_tfrecords_files_for_examples_dict(to, {"a": [Strict()]}), "has no to_csv_row"),
        ],
    )
    def test_a_wrong_call_is_refused_before_work(self, tmp_path: Path, call: Any, message: str) -> None:
        with pytest.raises(UsageError, match=message):
            call(factory, tmp_path / "out")
        assert not (tmp_path / "out").exists()


class Strict(Example):
    """A class that takes no keywords."""

    @tfrecordable(dtype=Example.Field.TYPE_INT64)
    def label(self) -> int:
        return 1

    def load(self) -> None:  # type: ignore[override]
        pass


class TestDatasets:
    def test_no_class_is_needed(self, tmp_path: Path) -> None:
        tf = pytest.importorskip("tensorflow")
        factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": [Everything(**VALUES)] * 3})
        dataset = factory.generate_dataset(factory.get_tfrecord_filepaths(tmp_path / "a"))

        assert (tf.string, tf.bool, tf.int32, tf.int64, tf.float32, tf.float64, tf.int32, tf.float32) == tuple(
            spec.dtype for spec in dataset.element_spec
        )
        assert ((2, 3, 4), (7,)) == tuple(tuple(spec.shape) for spec in dataset.element_spec[-2:])
        for step in dataset.batch(3):
            for expected, actual in zip(VALUES.values(), step, strict=True):
                wanted = expected.encode() if isinstance(expected, str) else expected
                np.testing.assert_array_equal(wanted, actual[1].numpy())

    def test_a_class_reads_what_has_no_schema(self, tmp_path: Path) -> None:
        pytest.importorskip("tensorflow")
        factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": toys(3)})
        (tmp_path / "a/schema.json").unlink()
        paths = factory.get_tfrecord_filepaths(tmp_path / "a")

        assert [(2, 4), (3, 4), (4, 4)] == [tuple(data.shape) for _, data in factory.generate_dataset(paths, Toy)]
        with pytest.raises(UsageError, match=r"no schema\.json beside the file.*YourExample"):
            factory.generate_dataset(paths)

    def test_files_of_the_original_give_flat_arrays(self, tmp_path: Path) -> None:
        pytest.importorskip("tensorflow")
        from tarviz.formats import tfrecord

        data = examples.encode({"label": 3, "data": np.arange(6, dtype="<f4").tobytes()}, {"label": "int64"})
        with (tmp_path / "0.tfr").open("wb") as file:
            tfrecord.write(file, [data])

        label, values = next(iter(factory.generate_dataset([tmp_path / "0.tfr"], Toy)))
        assert (3, [0, 1, 2, 3, 4, 5]) == (int(label), values.numpy().tolist())

    def test_shapes_are_known_as_far_as_they_agree(self, tmp_path: Path) -> None:
        factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": toys(3), "b": [Toy("x", 3)]})

        a, b = (schema_of(factory.get_tfrecord_filepaths(tmp_path / name)) for name in "ab")
        assert ((None, 4), (2, 4)) == (a.attributes[1].shape, b.attributes[1].shape)

    def test_shuffled_files_give_every_example(self, tmp_path: Path) -> None:
        pytest.importorskip("tensorflow")
        factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": toys(13)}, examples_tfrecord_file_max_size_in_bytes=200)
        dataset = factory.generate_dataset(factory.get_tfrecord_filepaths(tmp_path / "a"), None, 3, 2)

        assert list(range(13)) == sorted(int(label) for label, _ in dataset)

    def test_a_file_may_lie_at_home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("tensorflow")
        factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": toys(2)})
        monkeypatch.setenv("HOME", str(tmp_path))

        assert 2 == len(list(factory.generate_dataset("~/a/0.tfr")))

    def test_what_tensorflow_cannot_read_is_said_at_once(self) -> None:
        pytest.importorskip("tensorflow")
        factory.generate_and_save_tfrecords_files_for_examples_dict("memory://unread", {"a": toys(2)})

        with pytest.raises(UsageError, match=r"memory://unread/a/0\.tfr: TensorFlow does not read from there"):
            factory.generate_dataset(factory.get_tfrecord_filepaths("memory://unread/a"))

    def test_a_missing_feature_is_an_error(self, tmp_path: Path) -> None:
        tf = pytest.importorskip("tensorflow")

        with pytest.raises(tf.errors.InvalidArgumentError, match="label"):
            Toy.parse_from_string(examples.encode({"data": b""}))

    def test_files_that_were_cut_are_an_error_at_once(self, tmp_path: Path) -> None:
        pytest.importorskip("tensorflow")
        factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": toys(9)})
        path = tmp_path / "a/0.tfr"
        path.write_bytes(path.read_bytes()[:-100])

        with pytest.raises(DataError, match=r"E_TRUNCATED.*were written"):
            factory.generate_dataset([path])

    def test_wrong_paths_are_errors_at_once(self, tmp_path: Path) -> None:
        pytest.importorskip("tensorflow")
        with pytest.raises(NotFoundError):
            factory.get_tfrecord_filepaths(tmp_path / "none")
        with pytest.raises(NotFoundError, match=r"holds no \.tfr file"):
            factory.get_tfrecord_filepaths(tmp_path)
        (tmp_path / "x.tfr").touch()
        with pytest.raises(UsageError, match="not named by a number"):
            factory.get_tfrecord_filepaths(tmp_path)
        with pytest.raises(UsageError, match="no TFRecord files"):
            factory.generate_dataset([])
        with pytest.raises(NotFoundError):
            factory.generate_dataset([tmp_path / "9.tfr"])

    @pytest.mark.parametrize("folders", ["a", "ba"])
    def test_another_class_than_the_files_is_refused(self, tmp_path: Path, folders: str) -> None:
        pytest.importorskip("tensorflow")
        factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": toys(2), "b": toys(2)})
        (tmp_path / "b/schema.json").unlink()

        with pytest.raises(UsageError, match="the file holds label: TYPE_INT32, data: TYPE_ARRAY_FLOAT32; expected text"):
            factory.generate_dataset([tmp_path / folder / "0.tfr" for folder in folders], Everything)

    def test_ten_files_sort_by_number(self, tmp_path: Path) -> None:
        factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": toys(12)}, examples_tfrecord_file_max_size_in_bytes=1)

        assert [f"{n}.tfr" for n in range(12)] == [Path(path).name for path in factory.get_tfrecord_filepaths(tmp_path / "a")]


@pytest.mark.programs
def test_memory_stays_flat_over_a_thousand_examples_of_a_megabyte(tmp_path: Path) -> None:
    code = f"""
from tests import memory
import numpy as np
from tarviz.dialects.tfrecorder import Example, factory, tfrecordable

class Large(Example):
    def __init__(self, seed):
        self.seed, self._data = seed, None
    @tfrecordable(dtype=Example.Field.TYPE_ARRAY_FLOAT32)
    def data(self):
        return self._data
    @data.setter
    def data(self, value):
        self._data = value
    def load(self, **kwargs):
        self.data = np.full((512, 512), self.seed, np.float32)
    def to_csv_row(self):
        return [self.seed]

options = dict(examples_tfrecord_file_max_size_in_bytes=1e8)

def grown(count):
    examples = [Large(n) for n in range(count)]
    before = memory.begin()
    factory.generate_and_save_tfrecords_files_for_examples_dict({str(tmp_path)!r}, {{"a": examples}}, **options)
    assert all(example.data is None for example in examples)
    return (memory.peak() - before) / 2**20

print(grown(20), grown(1000))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    first, rest = map(float, out.stdout.split())

    assert first < 64  # MiB
    assert rest < 64
    assert 1000 * 2**20 < sum(path.stat().st_size for path in (tmp_path / "a").glob("*.tfr"))


def test_tensorflow_is_not_needed_to_write(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['tensorflow'] = None\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from tarviz.dialects.tfrecorder import Example, factory, tfrecordable\n"
        "class One(Example):\n"
        "    @tfrecordable(dtype=Example.Field.TYPE_INT64)\n"
        "    def label(self): return 1\n"
        "    def to_csv_row(self): return [1]\n"
        f"print(factory.generate_and_save_tfrecords_files_for_examples_dict({str(tmp_path)!r}, {{'a': [One()]}}))"
    )

    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "{'a': 1}" == out.stdout.strip()


class TestLists:
    def test_empty_rows_are_passed_over_and_rows_make_examples(self, tmp_path: Path) -> None:
        (tmp_path / "list.csv").write_bytes("\ufeffa,1\r\n\r\nb,2\r\n".encode())

        assert [("a", 1), ("b", 2)] == [(toy.name, toy.label) for toy in Toy.from_csv_file(tmp_path / "list.csv")]  # type: ignore[attr-defined]

    def test_a_list_of_many_rows_comes_whole(self, tmp_path: Path) -> None:
        Toy.to_csv_file(tmp_path / "list.csv", toys(2500))

        assert [f"t{n}" for n in range(2500)] == [toy.name for toy in Toy.from_csv_file(tmp_path / "list.csv")]  # type: ignore[attr-defined]
        assert 2500 == len((tmp_path / "list.csv").read_bytes().splitlines())

    def test_what_makes_no_example_is_an_error(self, tmp_path: Path) -> None:
        class Odd(Toy):
            @staticmethod
            def from_csv_row(row: list[str], **kwargs: Any) -> Any:
                return row

        (tmp_path / "list.csv").write_text("a,1\n")
        with pytest.raises(UsageError, match=r"Odd\.from_csv_row returned list for row 1 of .*list\.csv, not an Example"):
            Odd.from_csv_file(tmp_path / "list.csv")
        with pytest.raises(UsageError, match="has no from_csv_row"):
            Example.from_csv_row([])

    @pytest.mark.parametrize(
        ("chunks", "message"),
        [
            (lambda self: self, r"Odd\.split of example 0 returned Odd, not a list of examples"),
            (lambda self: None, r"returned NoneType, not a list of examples"),
            (lambda self: [self, 3], r"returned a list with int, not examples"),
        ],
    )
    def test_split_gives_examples(self, tmp_path: Path, chunks: Any, message: str) -> None:
        class Odd(Toy):
            def split(self, **kwargs: Any) -> Any:
                return chunks(self)

        with pytest.raises(UsageError, match=message):
            factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": [Odd("x", 1)]})

    def test_an_error_of_split_is_named_as_one(self, tmp_path: Path) -> None:
        class Odd(Toy):
            def split(self, **kwargs: Any) -> Any:
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError) as caught:
            factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": [Toy("x", 1), Odd("y", 2)]})
        assert ["Odd.split of example 1 failed"] == caught.value.__notes__

    def test_examples_are_let_go_once_they_are_written(self, tmp_path: Path) -> None:
        given = toys(3)
        factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": given})

        assert [(None, None)] * 3 == [(toy.label, toy.data) for toy in given]  # type: ignore[attr-defined]


def test_what_examples_take_may_have_any_name(tmp_path: Path) -> None:
    """Those, too, of what the factory calls by place."""
    seen: list[dict[str, Any]] = []

    class Odd(Toy):
        def load(self, **kwargs: Any) -> None:
            super().load()
            seen.append(kwargs)

    own = {"limit": 1, "log": 2, "about": 3, "subsets": 4, "ratio": 5}
    factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path / "a", {"x": [Odd("x", 1)]}, **own)
    factory.generate_and_save_train_eval_test_tfrecords_files_for_examples(tmp_path / "b", [Odd("x", 1)], 1, **own)

    assert [own, own] == seen

    def test_a_list_in_another_encoding_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "list.csv").write_bytes("a,1\né,2\n".encode("latin-1"))

        with pytest.raises(DataError, match=r"list\.csv.*not UTF-8") as caught:
            Toy.from_csv_file(tmp_path / "list.csv")
        assert 4 == caught.value.offset


class TestConfig:
    def test_it_is_written_so(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        factory.generate_and_save_tfrecords_files_for_examples_dict(
            "a", {"x": toys(2), "y": toys(1)}, 2e6, False, src_path="s3://b/d", other_path=Path("p"), text="a\nb", list=(1, "é"), path=3
        )

        expected = [
            *("[examples]", "class_name = Toy", "list_filepath = ", "tfrecord_file_max_size_in_mb = 2.00e+00", "log_in_csv_file = False"),
            *("x_count = 2", "y_count = 1", "src_path = s3://b/d", f"other_path = {tmp_path}/p", "text = a b", 'list = [1, "\\u00e9"]'),
            *("path = 3", "", ""),
        ]
        assert expected == (tmp_path / "a/tfrecord_files_config.txt").read_text().split("\n")

    def test_without_a_split_the_count_is_that_of_examples(self, tmp_path: Path) -> None:
        Toy.to_csv_file(tmp_path / "list.csv", toys(3))
        factory.generate_and_save_tfrecords_files_for_examples_file(tmp_path / "a", Toy, tmp_path / "list.csv")

        assert f"list_filepath = {tmp_path}/list.csv\n" in (text := (tmp_path / "a/tfrecord_files_config.txt").read_text())
        assert "\nexamples_count = 3\n" in text

    def test_the_schema_beside_the_files_says_what_they_hold(self, tmp_path: Path) -> None:
        for name, given in (("a", [Everything(**VALUES)]), ("b", toys(2))):
            factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {name: given})
        names = ("STRING", "BOOL", "INT32", "INT64", "FLOAT", "DOUBLE", "ARRAY_INT32", "ARRAY_FLOAT32")
        content = json.loads((tmp_path / "a/schema.json").read_text())
        shapes = {"whole": {"shape": [2, 3, 4]}, "real": {"shape": [7]}}
        size = (tmp_path / "a/0.tfr").stat().st_size

        assert [{"name": n, "type": f"TYPE_{t}", **shapes.get(n, {})} for n, t in zip(VALUES, names, strict=True)] == content[
            "tfrecordable"
        ]
        assert (["0.tfr"], 1, size) == ([*content["files"]], content["files"]["0.tfr"]["records"], content["files"]["0.tfr"]["bytes"])
        assert [None, 4] == json.loads((tmp_path / "b/schema.json").read_text())["tfrecordable"][1]["shape"]


class TestValues:
    def test_numbers_of_numpy_are_numbers(self) -> None:
        given = {
            "small": np.array(7, np.int64),
            "flag": np.bool_(False),
            "single": np.array(0.5),
            "double": np.float32(0.25),
            "large": np.int8(3),
        }

        assert 1 == tfrecorder.checker.assert_example_serialize_deserialize_is_ok(Everything(**{**VALUES, **given}))

    @pytest.mark.parametrize(("name", "limits"), [("small", (-(2**31), 2**31 - 1)), ("large", (-(2**63), 2**63 - 1))])
    def test_whole_numbers_fit_their_type(self, name: str, limits: tuple[int, int]) -> None:
        for limit, step in zip(limits, (-1, 1), strict=True):
            Everything(**{**VALUES, name: limit}).serialize_to_string()
            with pytest.raises(SchemaError, match="outside the range of"):
                Everything(**{**VALUES, name: limit + step}).serialize_to_string()

    def test_arrays_are_written_little_endian_in_c_order(self) -> None:
        array = np.arange(6, dtype=np.float32).reshape(2, 3).T
        found = examples.decode(Everything(**{**VALUES, "real": array}).serialize_to_string())

        assert [array.astype("<f4").tobytes()] == found["real"]
        assert [3, 2] == found["real.shape"]
        assert [-1] == examples.decode(Everything(**{**VALUES, "real": np.zeros((), np.float32)}).serialize_to_string())["real.shape"]

    @each_case(
        ("name", "feature", "message"),
        [
            ("text", None, "the feature 'text' is missing"),
            ("text", [], "'text' is a list of 0"),
            ("small", [1, 2], "'small' is a list of 2"),
            ("text", [b"\xff"], "'text' is not a TYPE_STRING"),
            ("double", [b"123"], "'double' is not a TYPE_DOUBLE"),
            ("real", [b"123"], "'real' is not a TYPE_ARRAY_FLOAT32"),
            ("text", [3], "'text' is not a TYPE_STRING"),
        ],
    )
    def test_a_feature_of_another_kind_is_damage(self, name: str, feature: Any, message: str) -> None:
        (attribute,) = (each for each in Everything._attributes if each.name == name)

        with pytest.raises(DataError, match=message) as caught:
            attribute.value({} if feature is None else {name: feature})
        assert "E_BAD_EXAMPLE" == caught.value.code

    def test_files_of_the_original_give_flat_arrays_and_plain_doubles(self) -> None:
        double, whole = (next(each for each in Everything._attributes if each.name == name) for name in ("double", "whole"))

        assert 0.5 == double.value({"double": [0.5]})
        assert [1, 2] == whole.value({"whole": [np.array([1, 2], "<i4").tobytes()]}).tolist()

    def test_the_size_is_that_of_what_is_written(self) -> None:
        assert len(Everything(**VALUES).serialize_to_string()) == Everything(**VALUES).get_byte_size() > 150

    def test_it_is_parsed_as_it_was_declared(self) -> None:
        pytest.importorskip("tensorflow")
        found = Everything.parse_from_string(Everything(**VALUES).serialize_to_string())

        for name, value in zip(VALUES, found, strict=True):
            expected = VALUES[name].encode() if name == "text" else VALUES[name]
            np.testing.assert_array_equal(expected, value.numpy(), strict=name in ("whole", "real"))


class TestSchemas:
    @each_case("content", ["{", "[]", '{"tfrecordable": 3, "files": {}}', '{"tfrecordable": [{"name": "x", "type": "Y"}], "files": {}}'])
    def test_what_is_no_schema_is_damage(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "schema.json").write_text(content)
        with pytest.raises(DataError, match="this is not a schema of recordable attributes"):
            schema_of([f"{tmp_path}/0.tfr"])

    def test_what_is_no_class_of_examples_is_refused(self) -> None:
        for wrong in (int, Toy("a", 1)):
            with pytest.raises(UsageError, match="is not a subclass of Example"):
                schema_of([], wrong)  # type: ignore[arg-type]

    def test_a_file_that_nobody_counted_is_taken(self, tmp_path: Path) -> None:
        factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": toys(2)})
        (tmp_path / "a/7.tfr").write_bytes((tmp_path / "a/0.tfr").read_bytes())

        assert ["label", "data"] == [each.name for each in schema_of([f"{tmp_path}/a/7.tfr"]).attributes]

    def test_shapes_are_those_of_all_folders_or_nobodys(self, tmp_path: Path) -> None:
        factory.generate_and_save_tfrecords_files_for_examples_dict(tmp_path, {"a": [Toy("x", 1)], "b": [Toy("x", 2)]})
        paths = [f"{tmp_path}/{name}/0.tfr" for name in "ab"]

        assert [(3, 4), (4, 4), (None, 4)] == [schema_of(each).attributes[1].shape for each in (paths[:1], paths[1:], paths)]
        (tmp_path / "b/schema.json").unlink()
        assert schema_of(paths, Toy).attributes[1].shape is None
        with pytest.raises(UsageError, match=r"there is no schema\.json beside the file"):
            schema_of(paths)
