"""The Python side of a dataset: columns of one size, handles, and iterations that are ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.model.errors import DataError, UsageError
from tarviz.pipeline import Pipeline
from tarviz.runners.plans import ReaderPlan
from tarviz.runners.shares import ShareReader
from tarviz.runners.tf.source import HANDLE, Columns, PipelineSource, even
from tarviz.samples import write_shard


@given(st.lists(st.integers(1, 7), max_size=8), st.integers(1, 9), st.booleans())
def test_parts_of_any_length_become_parts_of_one(lengths: list[int], size: int, drop_remainder: bool) -> None:
    numbers = np.arange(sum(lengths))
    given = ([part, part.astype(str)] for part in np.split(numbers, np.cumsum(lengths)[:-1]) if len(part))
    found = list(even(given, size, drop_remainder))
    whole = len(numbers) // size * size if drop_remainder else len(numbers)

    assert [numbers[at : at + size].tolist() for at in range(0, whole, size)] == [part.tolist() for part, _ in found]
    assert all(part.astype(str).tolist() == text.tolist() for part, text in found)


@pytest.fixture
def shard(tmp_path: Path) -> str:
    """Ten records."""
    write_shard(tmp_path / "a.tar", [(f"k{at}", {"cls": b"%d" % at}) for at in range(10)])
    return str(tmp_path / "a.tar")


def source(urls: str, **options: Any) -> PipelineSource:
    """Raw fields of a pipeline, by one thread."""
    pipeline = Pipeline(urls)
    given: dict[str, Any] = {"epoch": 0, "repeat": 1, "workers": 1, "ordered": True, "extra": False, "reach": 8, **options}
    plan = ReaderPlan(pipeline, ShareReader())
    return PipelineSource(pipeline, {"cls": ("cls",)}, ("__key__", "__index__", "cls"), Columns(), plan=plan, **given)


class TestTaking:
    def test_columns_come_until_they_are_empty(self, shard: str) -> None:
        made = source(shard)
        handle = made.go_on(4, False, HANDLE, 0)
        parts = [made.take(handle) for _ in range(4)]

        assert [4, 4, 2, 0] == [len(column) for column, _, _ in parts]
        assert [b"k%d" % at for at in range(10)] == [key for keys, _, _ in parts for key in keys]
        assert [*range(10)] == [index for _, indexes, _ in parts for index in indexes]
        assert [object, np.int64, object] == [column.dtype for column in parts[-1]]
        assert 10 == made.report.records
        assert [0, 0, 0] == [len(column) for column in made.take(handle)]  # who asks again gets no more

    def test_one_that_is_not_full_may_be_left_out(self, shard: str) -> None:
        made = source(shard)
        handle = made.go_on(4, True, HANDLE, 0)

        assert [4, 4, 0] == [len(made.take(handle)[0]) for _ in range(3)]

    def test_the_handle_is_the_same_memory_in_each_turn(self, shard: str) -> None:
        made = source(shard)
        first = made.go_on(4, False, HANDLE, 0)
        second, other = made.go_on(4, False, first, 1), made.go_on(4, False, HANDLE, 0)

        assert first.ctypes.data == second.ctypes.data
        assert (0, 1) == (first[0], other[0])
        assert HANDLE.shape == first.shape
        assert 0 == first.ctypes.data % 64
        assert (-1 == HANDLE).all()

    @pytest.mark.parametrize("ask", [PipelineSource.take, PipelineSource.pull])
    def test_who_lets_go_of_the_handle_ends_the_iteration(self, shard: str, ask: Callable[..., object]) -> None:
        made = source(shard)
        handle = made.go_on(4, False, HANDLE, 0)
        ask(made, handle)
        (run,) = made._runs.values()
        del handle

        assert {} == made._runs
        assert [] == list(run.chunks)

    def test_a_copy_of_it_says_nothing(self, shard: str) -> None:
        made = source(shard)
        handle = made.go_on(4, False, HANDLE, 0)
        copy = handle.copy()
        made.take(copy)
        del handle

        assert [4, 2, 0] == [len(made.take(copy)[0]) for _ in range(3)]

    def test_an_error_ends_it_and_is_kept(self, shard: str) -> None:
        path = Path(shard)
        path.write_bytes(path.read_bytes()[:1300])
        made = source(shard)
        handle = made.go_on(1, False, HANDLE, 0)
        with pytest.raises(DataError, match="E_TRUNCATED") as caught:
            list(iter(lambda: len(made.take(handle)[0]), 0))

        assert caught.value is made.error
        assert 0 == len(made.take(handle)[0])


class TestEpochs:
    def test_each_iteration_is_of_the_next_unless_one_is_pinned(self, shard: str) -> None:
        made = source(shard, epoch=3, repeat=2)
        seen = []
        for pinned in (..., ..., 9, 9, ..., None, ...):
            if pinned is not ...:
                made.set_epoch(pinned)
            seen.append(made.epoch)
            made.start()

        assert [3, 5, 9, 9, 9, 11, 13] == seen

    def test_the_place_of_one_that_comes_as_it_is_ready_is_no_place(self, shard: str) -> None:
        with pytest.raises(UsageError, match="is no one place"):
            source(shard, ordered=False, workers=2).state(None, None)
        assert 0 == source(shard, ordered=False).state(None, None)["epoch"]

    def test_steps_are_counted_or_said(self, shard: str) -> None:
        made = source(shard)
        steps = made.ask()
        handle = made.start(2)
        for _ in range(3):
            made.take(handle)
        steps.taken = 2

        assert {"place": [0, 0, 4]}.items() <= made.state(2, None)["marks"]["0"].items()
        assert {"place": [0, 0, 2]}.items() <= made.state(2, 1)["marks"]["0"].items()
        steps.unseen = True
        with pytest.raises(UsageError, match="TensorFlow itself takes the steps"):
            made.state(2, None)
        assert {"place": [0, 0, 6]}.items() <= made.state(2, 3)["marks"]["0"].items()
        with pytest.raises(UsageError, match="steps=-1"):
            made.state(2, -1)
