"""tar2tf's first generation: nested ops, lists of them, functions of the raw record, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarviz.dialects.tar2tf import AisDataset
from tarviz.dialects.tar2tf._ais import translate
from tarviz.dialects.tar2tf.ops import Convert, Decode, Func, Rename, Resize, Rotate, Select, SelectJSON
from tarviz.model.errors import DataError, SchemaError, UsageError
from tarviz.ops.func import Func as RecordFunc
from tarviz.samples import write_shard
from tests.conftest import each_case

tf = pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")


@pytest.fixture
def small(photos: Path, tmp_path: Path) -> Path:
    """Four photos with a second label and a JSON tree, in `a-{0..1}.tar`."""
    from tarviz.read import stream

    records = [(record.key, {ext: bytes(record[ext]) for ext in record}) for record in stream.records(photos / "photos-0000.tar")][:4]
    for shard in range(2):
        write_shard(
            tmp_path / f"a-{shard}.tar",
            (
                (
                    key,
                    {
                        "jpg": fields["jpg"],
                        "cls": fields["cls"],
                        "lab1": b"x",
                        "json": json.dumps({"boxes": [{"n": at}], "7": at}).encode(),
                    },
                )
                for at, (key, fields) in enumerate(records[2 * shard : 2 * shard + 2], 2 * shard)
            ),
        )
    return tmp_path


def load(folder: Path, *ops: Any, **options: Any) -> Any:
    return AisDataset(folder, None, *ops).load_from_tar("a-{0..1}.tar", **options)


class TestOps:
    def test_the_default_is_a_float_image_and_its_class(self, small: Path) -> None:
        dataset = load(small)
        image, label = next(iter(dataset))

        assert (tf.TensorSpec((224, 224, 3), tf.float32), tf.TensorSpec((), tf.int32)) == dataset.element_spec
        assert 0 <= image.numpy().min() < image.numpy().max() <= 1
        assert int(label) in (0, 1)

    def test_ops_are_nested(self, small: Path) -> None:
        spec = load(small, Resize(Convert(Decode("jpg"), tf.float32), (10, 12)), Select("cls")).element_spec

        assert (tf.TensorSpec((10, 12, 3), tf.float32), tf.TensorSpec((), tf.int32)) == spec

    def test_a_list_gives_a_dict_by_field(self, small: Path) -> None:
        value, _ = next(iter(load(small, [Resize(Decode("jpg"), (8, 8)), Select("lab1")], Select("cls"))))

        assert {"jpg", "lab1"} == set(value)
        assert b"x" == value["lab1"].numpy()

    def test_of_one_name_twice_the_last_holds(self, small: Path) -> None:
        spec = load(small, [Decode("jpg"), Resize(Decode("jpg"), (8, 8))], Select("cls")).element_spec

        assert {"jpg": tf.TensorSpec((8, 8, 3), tf.uint8)} == spec[0]

    def test_json_is_reached_by_name_number_or_path(self, small: Path) -> None:
        dataset = load(small, SelectJSON("json", ["boxes", 0, "n"]), SelectJSON("json", "7"))

        assert [(n, n) for n in range(4)] == [(int(value), int(label)) for value, label in dataset]

    def test_an_int_alone_is_a_position_in_json(self, tmp_path: Path) -> None:
        write_shard(tmp_path / "a-0.tar", [("a", {"json": b"[5, 6]", "cls": b"1"})])
        write_shard(tmp_path / "a-1.tar", [("b", {"json": b"[7, 8]", "cls": b"2"})])

        assert [(6, 1), (8, 2)] == [(int(value), int(label)) for value, label in load(tmp_path, SelectJSON("json", 1), Select("cls"))]

    def test_a_function_gets_the_raw_record_and_gives_the_value(self, small: Path) -> None:
        seen: list[dict[str, Any]] = []

        def f(record: dict[str, Any]) -> list[float]:
            seen.append(record)
            return [float(record["cls"]), len(record["jpg"])]

        dataset = load(small, Func(f), Decode("jpg"))
        value, image = next(iter(dataset))

        assert (tf.TensorSpec((2,), tf.float64), 3) == (dataset.element_spec[0], image.shape[2])
        assert {"__key__", "jpg", "cls", "lab1", "json"} == set(seen[0])
        assert len(seen[0]["jpg"]) == value.numpy()[1]

    def test_functions_in_a_list_go_by_their_names(self, small: Path) -> None:
        double = lambda record: np.int32(2 * int(record["cls"]))  # noqa: E731
        value, label = next(iter(load(small, [Func(double, "double"), Func(lambda r: r["lab1"], "text")], Select("cls"))))

        assert (2 * int(label), b"x") == (int(value["double"]), value["text"].numpy())

    def test_a_field_can_be_wanted_in_two_ways(self, small: Path) -> None:
        dataset = load(
            small, [Resize(Decode("jpg"), (8, 8)), Func(lambda r: len(r["jpg"]), "size")], [Select("jpg"), SelectJSON("json", "7")]
        )
        value, label = next(iter(dataset))

        assert (8, 8, 3) == value["jpg"].shape
        assert int(value["size"]) == len(label["jpg"].numpy())

    def test_copies_are_made_only_where_ways_differ(self) -> None:
        chain, selection = translate(Resize(Decode("jpg"), (8, 8)), Select("cls"))
        assert "decode(jpg)|resize(jpg, (8, 8))" == str(chain)
        chain, selection = translate(Decode("jpg"), Resize(Decode("jpg"), (8, 8)))

        expected = "rename(copy-1.jpg=jpg, copy-2.jpg=jpg, keep=True)|decode(copy-1.jpg)|decode(copy-2.jpg)|resize(copy-2.jpg, (8, 8))"
        assert expected == str(chain)
        assert ["copy-1.jpg", "copy-2.jpg"] == [leaf.ext for leaf in selection.leaves()]

    def test_the_same_way_is_gone_once(self) -> None:
        chain, selection = translate(Decode("jpg"), [Decode("jpg"), Select("cls")])

        assert "decode(jpg)" == str(chain)
        assert ["jpg", "jpg", "cls"] == [leaf.ext for leaf in selection.leaves()]

    def test_types_and_shapes_that_are_given_win(self, small: Path) -> None:
        dataset = load(
            small,
            Func(lambda record: [1, 2]),
            Select("cls"),
            output_types=(tf.float32, tf.string),
            output_shapes=(tf.TensorShape([2]), tf.TensorShape([])),
        )
        value, label = next(iter(dataset))

        assert (tf.TensorSpec((2,), tf.float32), tf.TensorSpec((), tf.string)) == dataset.element_spec
        assert ([1, 2], True) == (value.numpy().tolist(), label.numpy() in (b"0", b"1"))


class TestErrors:
    @each_case(
        ("ops", "message"),
        [
            ((3,), "val_op is an operation of another kind: int"),
            ((Decode,), "another kind: Decode"),
            ((Decode("jpg"), [Select("cls"), [Select("lab1")]]), "label_op: a list of operations cannot contain another list"),
            (([],), "val_op is an empty list"),
            (([Func(len)],), "Func needs a name"),
            ((Rename(a="b"),), "another kind: Rename"),
        ],
    )
    def test_wrong_ops_are_refused_at_once(self, ops: Any, message: str) -> None:
        with pytest.raises(UsageError, match=message):
            AisDataset("data", None, *ops)

    def test_ops_that_do_not_fit_are_found_before_work(self, small: Path) -> None:
        with pytest.raises(SchemaError, match="resize"):
            load(small, Resize(Select("jpg").ext, (8, 8)))
        with pytest.raises(SchemaError, match=r"'png'.*jpg, cls, lab1, json"):
            load(small, Decode("png"))

    def test_a_bad_json_path_names_shard_and_record(self, small: Path) -> None:
        with pytest.raises(DataError, match=r"a-0\.tar.*photo.*'label'"):
            load(small, SelectJSON("json", ["boxes", 0, "label"]))

    def test_a_class_that_is_no_number_names_shard_and_record(self, tmp_path: Path) -> None:
        write_shard(tmp_path / "a-0.tar", [("a", {"txt": b"x", "cls": b"1"}), ("b", {"txt": b"x", "cls": b"seven"})])
        write_shard(tmp_path / "a-1.tar", [])
        dataset = load(tmp_path, Select("txt"), Select("cls"))

        with pytest.warns(UserWarning, match="W_EMPTY"), pytest.raises((DataError, tf.errors.OpError), match=r"seven"):
            list(dataset)

    def test_an_unknown_keyword_is_named(self, small: Path) -> None:
        with pytest.raises(UsageError, match=r"load_from_tar has no keyword 'output_type'.*Did you mean 'output_types'"):
            load(small, output_type=tf.int32)

    @each_case("count", [-1, 1.5, True, None])
    def test_a_wrong_number_of_workers_is_refused(self, count: Any) -> None:
        with pytest.raises(UsageError, match="num_workers"):
            AisDataset("data", num_workers=count)

    def test_rotate_stands_around_decode(self, small: Path) -> None:
        image, _ = next(iter(load(small, Rotate(Resize(Decode("jpg"), (16, 16)), 90), Select("cls"))))

        assert (16, 16, 3) == image.shape


def test_it_shows_chain_and_selection() -> None:
    chain = "decode(jpg)|convert(jpg, float32)|resize(jpg, (224, 224))"
    selection = "SelectTuple(items=(Select(ext='jpg'), Select(ext='cls')))"
    assert f"AisDataset('data', '{chain}', {selection})" == repr(AisDataset("data"))
    assert 4 == AisDataset("data").num_workers


class TestTranslation:
    def test_a_name_is_what_selects_it(self) -> None:
        chain, selection = translate("png", ["cls", "txt"])

        assert ("", ["png", "cls", "txt"]) == (str(chain), [leaf.ext for leaf in selection.leaves()])

    def test_copies_begin_with_the_first_of_alternatives(self) -> None:
        chain, selection = translate(Decode("jpg;png"), Resize(Decode("png"), (8, 8)))

        assert "rename(copy-1.jpg=jpg;png, copy-2.png=png, keep=True)" == str(chain[0])
        assert ["copy-1.jpg", "copy-2.png"] == [leaf.ext for leaf in selection.leaves()]

    def test_the_raw_field_stays_where_it_is_wanted_too(self) -> None:
        chain, selection = translate(Decode("jpg"), Select("jpg"))

        assert "rename(copy-1.jpg=jpg, keep=True)|decode(copy-1.jpg)" == str(chain)
        assert ["copy-1.jpg", "jpg"] == [leaf.ext for leaf in selection.leaves()]

    def test_functions_are_called_first_under_names_of_their_own(self) -> None:
        chain, selection = translate([Func(len, "n"), Resize(Func(max, "im"), (4, 4))], Decode("jpg"))

        assert ["func", "func", "resize", "decode"] == [op.name for op in chain]
        assert ["func-1", "func-2"] == [op.ext_name for op in chain[:2]]
        assert "resize(func-2, (4, 4))" == str(chain[2])
        assert ["func-1", "func-2", "jpg"] == [leaf.ext for leaf in selection.leaves()]

    @each_case(
        ("function", "types", "shapes"),
        [
            (Func(len, "n", output_types={"n": "int32"}, output_shapes={"n": ()}), {"func-1": "int32"}, {"func-1": ()}),
            (Func(len, output_types={"any": "int32"}), {"func-1": "int32"}, None),
            (Func(len, "n", output_types={"n": "int32", "m": "str"}), {"func-1": "int32", "m": "str"}, None),
            (RecordFunc(len, output_types={"a": "int32", "b": "str"}), {"a": "int32", "b": "str"}, None),
            (Func(len, "n"), None, None),
        ],
    )
    def test_what_a_function_says_it_makes_goes_along(self, function: Any, types: Any, shapes: Any) -> None:
        chain, _ = translate(function, Select("cls"))

        assert (types, shapes) == (chain[0].output_types, chain[0].output_shapes)

    def test_a_function_does_not_see_what_others_made(self) -> None:
        seen: list[set[str]] = []

        def first(record: dict[str, Any]) -> int:
            seen.append(set(record))
            return len(seen)

        chain, _ = translate([Func(first, "a"), Func(first, "b")], "cls")
        record = chain.run({"__key__": "k", "__shard__": "s", "__index__": 0, "cls": b"1"})

        assert [{"__key__", "cls"}] * 2 == seen
        assert (1, 2) == (record["func-1"], record["func-2"])
