"""Batches of torch's loader: as torch's own makes them where it can, and nothing lost where it cannot."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tarviz
from tarviz.model.errors import UsageError
from tarviz.pipeline import Pipeline
from tarviz.selection import SelectJSON, parse

torch = pytest.importorskip("torch", reason="torch: make test-torch")
from torch.utils.data import DataLoader, default_collate  # noqa: E402

from tarviz.runners.torch.collate import Collate  # noqa: E402

pytestmark = pytest.mark.torch

SCALARS = st.one_of(st.just(0), st.just(0.0), st.just(False), st.just(np.float32(1)))


def npy(values: Any, dtype: str = "float32") -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(values, dtype))
    return stream.getvalue()


def varied(folder: Path, sizes: Iterable[int] = (3, 1, 0, 2, 5)) -> Pipeline:
    """Records with an array of so many numbers each, a text, and JSON with boxes, a number, and a name or null."""
    records = [
        {
            "npy": npy(range(size)),
            "txt": "t" * size,
            "json": {"boxes": [[size, at] for at in range(size)], "name": None if size % 2 else "x"},
        }
        for size in sizes
    ]
    tarviz.write(records, folder / "v.tar", progress=False)
    return Pipeline(folder / "v.tar", "decode(npy)|decode(txt)")


class TestWhatIsAlike:
    @given(st.lists(SCALARS, min_size=1, max_size=3), st.integers(1, 4))
    def test_comes_as_torchs_own_gives_it(self, first: list[Any], count: int) -> None:
        record = {f"x{at}": value for at, value in enumerate(first)} | {"image": np.ones((2, 3), np.uint8)}
        values = [dict(record) for _ in range(count)]
        expected, found = default_collate(values), Collate(parse(None))(values)

        assert expected.keys() == found.keys()
        for name, tensor in expected.items():
            assert tensor.dtype == found[name].dtype
            assert torch.equal(tensor, found[name])

    def test_in_the_structure_of_the_selection(self) -> None:
        made = Collate(parse(("a", {"b": "b", "c": ["c", "d"]})))([(1, {"b": 2.0, "c": ["x", b"y"]}), (3, {"b": 4.0, "c": ["z", b"w"]})])

        assert [1, 3] == made[0].tolist()
        assert torch.float64 == made[1]["b"].dtype
        assert [["x", "z"], [b"y", b"w"]] == made[1]["c"]

    @pytest.mark.parametrize("pad", [None, True])
    def test_tensors_that_an_op_made_are_stacked(self, pad: bool | None) -> None:
        made = Collate(parse(None), pad)([{"x": torch.ones(3)}, {"x": torch.zeros(3)}])

        assert (2, 3) == tuple(made["x"].shape)


class TestWhatIsNot:
    def test_stays_a_list(self, tmp_path: Path) -> None:
        pipeline = varied(tmp_path).with_select(("npy", "txt", SelectJSON("json", "boxes"), SelectJSON("json", "name")))
        ((arrays, texts, boxes, names),) = pipeline.torch().loader(8)

        assert [[0, 1, 2], [0], [], [0, 1], [0, 1, 2, 3, 4]] == [array.tolist() for array in arrays]
        assert all(isinstance(array, torch.Tensor) for array in arrays)
        assert ["ttt", "t", "", "tt", "ttttt"] == texts
        assert [[size, at] for size in (3, 1, 0, 2, 5) for at in range(size)] == [box for record in boxes for box in record]
        assert [None, None, "x", "x", None] == names

    @pytest.mark.parametrize("dtype", ["datetime64[s]", "timedelta64[D]", ">i4", "longdouble", "clongdouble", "U3", "O", [("x", "u1")]])
    @pytest.mark.parametrize("pad", [None, True])
    def test_of_a_dtype_that_torch_lacks_is_what_it_was(self, dtype: Any, pad: bool | None) -> None:
        values = [np.zeros(2, dtype), np.zeros(2, dtype)]

        assert values == [value if value is each else None for value, each in zip(Collate(parse("x"), pad)(values), values, strict=True)]

    def test_is_null_where_a_record_has_no_such_field(self) -> None:
        made = Collate(parse(None))([{"__key__": "a", "cls": 1}, {"__key__": "b", "box": np.ones(2)}])

        assert ["a", "b"] == made["__key__"]
        assert [1, None] == made["cls"]
        assert made["box"][0] is None
        assert [1, 1] == made["box"][1].tolist()

    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            ([1, 2.5], torch.tensor([1, 2.5], dtype=torch.float64)),
            ([1, None], [1, None]),
            ([True, 1], [True, 1]),
            ([2**63, 1], [2**63, 1]),
            ([-(2**63), 1], torch.tensor([-(2**63), 1])),
            ([1e300, float("inf")], torch.tensor([1e300, float("inf")], dtype=torch.float64)),
            ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),  # one value a record, whatever the others of the batch are
            ([np.array(["a"]), np.array(["b"])], None),
        ],
        ids=str,
    )
    def test_of_numbers_is_told_apart(self, values: list[Any], expected: Any) -> None:
        made = Collate(parse("x"))(values)

        if isinstance(expected, torch.Tensor):
            assert expected.dtype == made.dtype
            assert torch.equal(expected, made)
        else:
            assert (values if expected is None else expected) == made


class TestPad:
    @pytest.mark.parametrize(("pad", "fill"), [(True, 0), (0, 0), (-1, -1), (9, 9)])
    def test_fills_up_to_the_largest_of_the_batch(self, tmp_path: Path, pad: Any, fill: int) -> None:
        pipeline = varied(tmp_path).with_select(("npy", SelectJSON("json", "boxes"), "txt"))
        batches = list(pipeline.torch().loader(2, pad=pad))

        assert [(2, 3), (2, 2), (1, 5)] == [tuple(arrays.shape) for arrays, _, _ in batches]
        assert torch.float32 == batches[0][0].dtype
        assert [[0, 1, 2], [0, fill, fill]] == batches[0][0].tolist()
        assert [(2, 3, 2), (2, 2, 2), (1, 5, 2)] == [tuple(boxes.shape) for _, boxes, _ in batches]
        assert [[[fill, fill], [fill, fill]], [[2, 0], [2, 1]]] == batches[1][1].tolist()
        assert ["", "tt"] == batches[1][2]

    def test_equals_that_of_tf(self, tmp_path: Path) -> None:
        pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
        pipeline = varied(tmp_path).with_select(("npy", SelectJSON("json", "boxes")))
        for pad in (True, -1):
            for ours, theirs in zip(pipeline.torch().loader(2, pad=pad), pipeline.tf(batch=2, pad=pad), strict=True):
                for one, other in zip(ours, theirs, strict=True):
                    assert other.numpy().tolist() == one.tolist()

    def test_leaves_alone_what_has_no_end_to_fill(self) -> None:
        for values in ([[1, None], [2]], [None, np.ones(2)], [np.ones(2), np.ones((2, 2))], [["a"], []], [[2**63, 1], [2]]):
            made = Collate(parse("x"), True)(values)

            assert isinstance(made, list)
            assert 2 == len(made)

    def test_is_refused_where_no_batch_is_made_here(self, tmp_path: Path) -> None:
        dataset = varied(tmp_path).torch()
        for options in ({"batch_size": None}, {"collate_fn": default_collate}):
            with pytest.raises(UsageError, match="pad="):
                dataset.loader(**options, pad=True)
        with pytest.raises(UsageError, match=r"no option 'pad'.*loader\(8, pad=True\)"):
            varied(tmp_path).run("torch", pad=True)


@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
class TestALoader:
    @pytest.mark.parametrize("drop_last", [False, True])
    @pytest.mark.parametrize(("workers", "size"), [(0, 4), (3, 4), (2, 1), (2, None)])
    def test_has_the_length_that_it_says(self, tmp_path: Path, workers: int, size: int | None, drop_last: bool) -> None:
        """Eight records of three workers are three batches, not two."""
        options = {"drop_last": drop_last} if size is not None else {}
        loader = varied(tmp_path, [1, 2] * 4).torch(repeat=1).loader(size, num_workers=workers, **options)

        assert len(loader) == sum(1 for _ in loader)

    def test_of_ones_own_takes_the_collate_function(self, tmp_path: Path) -> None:
        dataset = varied(tmp_path).with_select("npy").torch()
        (batch,) = DataLoader(dataset, batch_size=8, collate_fn=dataset.collate(pad=True), num_workers=0)

        assert (5, 5) == tuple(batch.shape)

    def test_goes_on_where_it_stood_padded(self, tmp_path: Path) -> None:
        pipeline = varied(tmp_path, range(9)).with_select("npy")
        expected = [batch.tolist() for batch in pipeline.torch().loader(2, pad=True, num_workers=2)]
        loader, again = (pipeline.torch().loader(2, pad=True, num_workers=2) for _ in range(2))
        head = [batch.tolist() for batch in itertools.islice(loader, 2)]
        again.load_state_dict(loader.state_dict())

        assert expected == head + [batch.tolist() for batch in again]
