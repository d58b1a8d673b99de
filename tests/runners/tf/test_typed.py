"""What JSON and functions give reaches tf.data: typed once, or as asked; lists of varying lengths ragged, or padded."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarviz
from tarviz.model.errors import SchemaError, UsageError
from tarviz.ops import Func
from tarviz.pipeline import Pipeline
from tarviz.selection import SelectJSON

tf = pytest.importorskip("tensorflow", reason="tensorflow: pip install 'tarviz[tensorflow]'")

TREES: list[dict[str, Any]] = [
    {
        "box": [1, 2, 3, 4],
        "mixed": 1 if at % 2 else 2.5,
        "tokens": list(range(at)),
        "polygons": [[at] * size for size in range(at % 3)],
        "boxes": [[at, at, at, 0.5]] * (at % 4),
        "names": ["a", "grün", ""][: at % 4],
        "big": 2**63 + at,
        "flag": at > 3,
        "maybe": at or None,
    }
    for at in range(10)
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Ten records with a `json` like `TREES` and a `cls`."""
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for at, tree in enumerate(TREES):
            for ext, data in {"json": json.dumps(tree).encode(), "cls": b"%d" % at}.items():
                info = tarfile.TarInfo(f"k{at}.{ext}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return tmp_path / "a.tar"


def of(path: Path, *names: str, **options: Any) -> Pipeline:
    return Pipeline(path, select=SelectJSON("json", names, **options))


def listed(tensor: Any) -> Any:
    return tensor.to_list() if isinstance(tensor, tf.RaggedTensor) else tensor.numpy().tolist()


def texts(value: Any) -> Any:
    return [part.encode() for part in value] if isinstance(value, list) and value and isinstance(value[0], str) else value


class TestInferred:
    @pytest.mark.parametrize(
        ("name", "dtype", "shape"),
        [
            ("polygons", "int64", [None, None]),
            ("mixed", "float64", []),
            ("tokens", "int64", [None]),
            ("boxes", "float64", [None, 4]),
            ("names", "string", [None]),
            ("box", "int64", [4]),
            ("flag", "bool", []),
            ("big", "uint64", []),
        ],
    )
    @pytest.mark.matrix
    def test_values_come_as_json_has_them(self, path: Path, name: str, dtype: str, shape: list[int | None]) -> None:
        dataset = of(path, name).tf()
        batches = of(path, name).tf(batch=4)

        assert (dtype, shape) == (dataset.element_spec.dtype.name, dataset.element_spec.shape.as_list())
        assert [texts(tree[name]) for tree in TREES] == [listed(value) for value in dataset]
        assert [texts(tree[name]) for tree in TREES] == [value for batch in batches for value in listed(batch)]
        assert [4, 4, 2] == [len(listed(batch)) for batch in batches]
        assert isinstance(batches.element_spec, tf.RaggedTensorSpec) == (None in shape)

    @pytest.mark.matrix
    def test_padding_makes_them_dense(self, path: Path) -> None:
        batch = next(iter(of(path, "tokens").tf(batch=4, pad=-1)))
        deep = next(iter(of(path, "polygons").tf(batch=3, pad=7)))
        words = next(iter(of(path, "names").tf(batch=3, pad="?")))
        both = next(iter(Pipeline(path, select=(SelectJSON("json", "tokens"), SelectJSON("json", "names"))).tf(batch=2, pad=-1)))

        assert [[-1, -1, -1], [0, -1, -1], [0, 1, -1], [0, 1, 2]] == batch.numpy().tolist()
        assert [[[7], [7]], [[7], [7]], [[7], [2]]] == deep.numpy().tolist()
        assert [[b"?", b"?"], [b"a", b"?"], [b"a", "grün".encode()]] == words.numpy().tolist()
        assert ([[-1], [0]], [[b""], [b"a"]]) == tuple(part.numpy().tolist() for part in both)

    def test_beside_other_fields_and_a_last_batch_left_out(self, path: Path) -> None:
        pipeline = Pipeline(path, "decode(cls)", select={"x": (SelectJSON("json", "tokens"), "cls"), "key": "__key__"})
        batches = list(pipeline.tf(batch=4, drop_remainder=True, shuffle=5))

        assert 2 == len(batches)
        for batch in batches:
            assert [list(range(number)) for number in batch["x"][1].numpy()] == batch["x"][0].to_list()

    def test_of_json_that_no_op_touches_more_records_are_looked_at(self, tmp_path: Path) -> None:
        tarviz.write(({"cls": at, "json": [1, 2] if at < 100 else [1]} for at in range(101)), tmp_path / "a.tar", progress=False)

        for chain, shape in (("decode(cls)", [None]), ("keep(json)", [2])):
            assert shape == Pipeline(tmp_path / "a.tar", chain, select=SelectJSON("json")).tf().element_spec.shape.as_list()

    @pytest.mark.parametrize("batch", [None, 3])
    def test_alone_in_a_tuple(self, path: Path, batch: int | None) -> None:
        [found], *_ = Pipeline(path, select=(SelectJSON("json", "tokens"),)).tf(batch=batch).skip(1)

        assert [[0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4]] == listed(found) if batch else [0] == listed(found)

    @pytest.mark.matrix
    def test_a_length_that_changes_later_is_an_error_that_says_what_to_do(self, tmp_path: Path) -> None:
        with tarfile.open(tmp_path / "a.tar", "w") as tar:
            for at in range(400):
                data = json.dumps([1, 2] if at < 399 else [1, 2, 3]).encode()
                info = tarfile.TarInfo(f"k{at:03d}.json")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        pipeline = of(tmp_path / "a.tar")

        with pytest.raises(SchemaError, match=r"k399.*int64\[3\].*first record had int64\[2\].*output_shapes"):
            list(pipeline.tf())
        assert 400 == len(list(pipeline.tf(output_shapes=[None])))


class TestAsked:
    def test_types_and_shapes_settle_it(self, path: Path) -> None:
        pipeline = Pipeline(path, select=("cls", SelectJSON("json", "box"), SelectJSON("json", "mixed")))
        dataset = pipeline.tf(output_types=(tf.float32, tf.float32, tf.float32), output_shapes=([], [4], []))

        assert [("float32", []), ("float32", [4]), ("float32", [])] == [
            (spec.dtype.name, spec.shape.as_list()) for spec in dataset.element_spec
        ]
        for at, (cls, box, mixed) in enumerate(dataset):
            assert (at, [1, 2, 3, 4], TREES[at]["mixed"]) == (cls.numpy(), box.numpy().tolist(), mixed.numpy())

    def test_raw_fields_are_cast_too(self, path: Path) -> None:
        [[one], *_] = Pipeline(path, select=("cls",)).tf(output_types=(tf.int16,))
        assert (0, tf.int16) == (int(one), one.dtype)
        values = Pipeline(path, select="cls").tf(batch=5, output_types=tf.int16)

        assert list(range(10)) == [int(value) for batch in values for value in batch]
        assert tf.int16 == values.element_spec.dtype

    def test_those_of_another_number_are_refused(self, path: Path) -> None:
        pipeline = Pipeline(path, select=("cls", SelectJSON("json", "box")))
        with pytest.raises(UsageError, match="make 2 values"):
            pipeline.tf(output_types=(tf.int64, tf.int64, tf.int64))

    def test_what_would_lose_a_value_is_an_error(self, path: Path) -> None:
        with pytest.raises(SchemaError, match=r"k0.*float64"):
            list(of(path, "mixed").tf(output_types=tf.int32))


class TestNull:
    def test_it_is_an_error_that_names_the_cure(self, path: Path) -> None:
        with pytest.raises(SchemaError, match=r"k0.*is null.*SelectJSON\(…, fill=0\)"):
            list(of(path, "maybe").tf())

    def test_it_is_filled_on_request(self, path: Path) -> None:
        pipeline = of(path, "maybe", fill=-1)

        assert [-1, *range(1, 10)] == list(pipeline) == list(pipeline.tf().as_numpy_iterator())
        assert pipeline == Pipeline.of(repr(pipeline))
        assert [[1, 0]] == [SelectJSON("json", fill=0).pick({"json": b"[1, null]"})]


class TestFunctions:
    def test_may_return_tensors_arrays_and_lists(self, path: Path) -> None:
        def f(record: dict[str, Any]) -> dict[str, Any]:
            number = int(record["cls"])
            image = tf.image.flip_left_right(tf.reshape(tf.range(12, dtype=tf.float32), (2, 2, 3)))
            return {"image": image, "pair": [number, 2], "text": tf.constant("a"), "array": np.full(3, number), "path": list(range(number))}

        pipeline = Pipeline(path, [Func(f)], select=("image", "pair", "text", "array", "path"))
        image, pair, text, array, way = next(iter(pipeline.tf(batch=3)))

        assert (3, 2, 2, 3) == image.shape
        assert [3.0, 4.0, 5.0, 0.0, 1.0, 2.0] == image[0, 0].numpy().ravel().tolist()
        assert [[0, 2], [1, 2], [2, 2]] == pair.numpy().tolist()
        assert [b"a"] * 3 == text.numpy().tolist()
        assert [[0] * 3, [1] * 3, [2] * 3] == array.numpy().tolist()
        assert [[], [0], [0, 1]] == way.to_list()
        assert isinstance(next(iter(pipeline))[0], np.ndarray)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = tmp_path_factory.mktemp("vary") / "a.tar"
    with tarfile.open(found, "w") as tar:
        for at in range(6):
            for ext, array in (("npy", np.arange(at + 1, dtype=np.float32)), ("box.npy", np.full((at, 4), at, np.int32))):
                data = io.BytesIO()
                np.save(data, array)
                member = tarfile.TarInfo(f"{at}.{ext}")
                member.size = len(data.getvalue())
                tar.addfile(member, io.BytesIO(data.getvalue()))
    return str(found)


class TestArraysThatVary:
    """Arrays of other sizes in each record: ragged, padded, or one tensor each; in the graph and in threads."""

    @pytest.mark.parametrize("graph", [True, False])
    @pytest.mark.parametrize(
        ("options", "shapes"),
        [
            ({"output_shapes": ((None,), (None, 4))}, [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5)]),
            ({"ragged": True}, [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5)]),
        ],
        ids=["output_shapes", "ragged"],
    )
    def test_single_records_have_their_own_sizes(self, url: str, graph: bool, options: dict[str, Any], shapes: list[Any]) -> None:
        found = list(Pipeline(url, "decode(npy)|decode(box.npy)", select=("npy", "box.npy")).tf(graph=graph, **options))

        assert shapes == [(len(tokens), len(boxes)) for tokens, boxes in found]
        assert all(np.array_equal(np.arange(len(tokens)), tokens) and boxes.shape[1] == 4 for tokens, boxes in found)

    @pytest.mark.parametrize("graph", [True, False])
    @pytest.mark.parametrize("pad", [True, -1, None])
    def test_batches_are_padded_or_ragged(self, url: str, graph: bool, pad: Any) -> None:
        options = {"ragged": True} if pad is None else {"pad": pad}
        found = list(Pipeline(url, "decode(npy)|decode(box.npy)", select=("npy", "box.npy")).tf(graph=graph, batch=4, **options))

        for first, (tokens, boxes) in zip((0, 4), found, strict=True):
            rows = [np.arange(at + 1).tolist() for at in range(first, min(first + 4, 6))]
            if pad is None:
                assert rows == tokens.to_list()
                assert (None, None, 4) == tuple(boxes.shape[1:]) if boxes.shape[0] is None else (None, 4) == tuple(boxes.shape[1:])
            else:
                longest, fill = len(rows[-1]), 0 if pad is True else pad
                assert [row + [fill] * (longest - len(row)) for row in rows] == tokens.numpy().tolist()
                assert (len(rows), longest - 1, 4) == tuple(boxes.shape)

    def test_the_error_names_the_options(self, url: str) -> None:
        with pytest.raises(SchemaError, match="ragged=True") as found:
            list(Pipeline(url, "decode(npy)", select="npy").tf())

        assert all(option in str(found.value.hint) for option in ("pad=True", "ragged=True", "output_shapes=(None,)"))

    def test_those_of_a_function_that_says_so(self, url: str) -> None:
        grown = Func(
            lambda record: {"x": np.ones(int(record["__key__"]), np.int16)}, output_types={"x": np.int16}, output_shapes={"x": (None,)}
        )
        found = list(Pipeline(url, [grown], select="x").tf(batch=6, pad=True))

        assert [0, 1, 2, 3, 4, 5] == found[0].numpy().sum(axis=1).tolist()
