"""The stages of a pipeline: what they hold back, in which order they give it, what they keep."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import tarviz.dialects.webdataset as wds
from tarviz.dialects.webdataset import filters
from tarviz.dialects.webdataset.parts.stages import Each, Shuffle, fuse
from tests.conftest import each_case


def ran(stage: Any, *items: Any) -> list[Any]:
    return list(stage(iter(items)))


class TestOrder:
    def test_shuffling_holds_so_many_back(self) -> None:
        taken: list[int] = []
        stage = filters.shuffle(4, initial=2, rng=random.Random(1))
        run = stage(taken.append(number) or number for number in range(9))  # type: ignore[func-returns-value]
        counts = [len(taken) for _ in run]

        assert [4, 5, 6, 7, 8, 9, 9, 9, 9] == counts

    def test_the_same_seed_and_pass_give_the_same_order(self) -> None:
        def ordered(make: Callable[[], Any]) -> list[list[int]]:
            stage = make()
            return [list(stage.run(iter(range(40)), f"pass {number}")) for number in range(2)]

        for make in (lambda: filters.shuffle(10, initial=5), lambda: filters.shuffle(10, seed=3), lambda: filters.detshuffle(10, seed=3)):
            first = ordered(make)
            assert first == ordered(make)
            assert first[0] != first[1]
            assert list(range(40)) == sorted(first[0]) != first[0]
        assert ordered(lambda: filters.shuffle(10, seed=3)) != ordered(lambda: filters.shuffle(10, seed=4))

    def test_a_determined_one_counts_its_passes_itself(self) -> None:
        stage = filters.detshuffle(10)
        first, second = list(stage(range(40))), list(stage(range(40)))
        before, stage.epoch = stage.epoch, -1

        assert 1 == before
        assert [first, second] == [list(stage(range(40))) for _ in range(2)]
        assert first == list(filters.detshuffle(10, epoch=-1).run(iter(range(40)), "any"))
        assert second == list(filters.detshuffle(10, epoch=0)(range(40)))

    def test_batches_and_lists_are_taken_apart(self) -> None:
        pairs = [(n, str(n)) for n in range(5)]
        whole = ran(filters.batched(2, collation_fn=None), *pairs)

        assert [pairs[:2], pairs[2:4], pairs[4:]] == whole
        assert [pairs[:2], pairs[2:4]] == ran(filters.batched(2, collation_fn=None, partial=False), *pairs)
        assert pairs == ran(filters.unlisted(), *whole)
        assert pairs == ran(filters.unbatched(), ([0, 1, 2, 3, 4], ["0", "1", "2", "3", "4"]))
        assert [{"n": 0}, {"n": 1}] == ran(filters.unbatched(), {"n": [0, 1]})
        assert [1, 3] == ran(filters.slice(1, 4, 2), *range(9))

    @each_case(("size", "initial"), [(0, 100), (1, 1), (3, 1), (4, 100), (5, 5), (50, 9)])
    def test_the_buffer_grows_by_two_for_each_that_is_given(self, size: int, initial: int) -> None:
        """Held against a buffer that is written down step by step."""
        chance = random.Random("s")
        left, buffer, expected = list(range(30)), list[int](), list[int]()
        while left and len(buffer) < min(size, initial):
            buffer.append(left.pop(0))
        while left or buffer:
            if left:
                buffer.append(left.pop(0))
            if left and len(buffer) < size:
                buffer.append(left.pop(0))
            at = int(chance.random() * len(buffer))
            buffer[at], buffer[-1] = buffer[-1], buffer[at]
            expected.append(buffer.pop())

        assert expected == list(Shuffle(size, initial).run(iter(range(30)), "s"))

    @pytest.mark.parametrize(("share", "count"), [(0.0, 0), (0.25, 250), (1.0, 1000)])
    def test_a_share_is_drawn(self, share: float, count: int) -> None:
        found = list(filters.rsample(share).run(iter(range(1000)), "s"))

        assert abs(len(found) - count) <= 40 * (0 < share < 1)
        assert found == sorted(found) == list(filters.rsample(share).run(iter(range(1000)), "s"))


class TestKept:
    def test_a_whole_pass_is_kept_and_a_broken_one_is_not(self) -> None:
        asked: list[int] = []
        pipeline = wds.DataPipeline(lambda: (asked.append(n) or n for n in range(3)), filters.Cached())  # type: ignore[func-returns-value]
        next(iter(pipeline))

        assert [0, 1, 2] == list(pipeline) == list(pipeline) == list(pipeline)
        assert [0, 0, 1, 2] == asked


class TestFused:
    def test_what_to_tuple_asks_for_is_decoded_on_the_way(self) -> None:
        stages = [filters.shuffle(3), filters.decode(), filters.shuffle(5), filters.to_tuple("cls", "jpg;png")]
        made, needs = fuse(stages)
        take = made[2]

        assert needs is not None
        assert (("cls",), ("jpg", "png")) == needs.groups
        assert [stages[0], stages[2]] == made[:2]
        assert isinstance(take, Each)
        assert stages[1].f is take.f.decoder  # type: ignore[attr-defined]

    @each_case(
        ("make", "groups"),
        [
            (lambda: [filters.to_tuple("cls"), filters.decode()], (("cls",),)),
            (lambda: [filters.decode(handler=wds.ignore_and_continue), filters.to_tuple("cls")], None),
            (lambda: [filters.decode(), filters.map(str), filters.to_tuple("cls")], None),
            (lambda: [filters.map(str), filters.to_tuple("cls")], None),
            (lambda: [filters.decode()], None),
            (list, None),
        ],
    )
    def test_else_stages_stay_as_they_are(self, make: Callable[[], list[Any]], groups: Any) -> None:
        stages = make()
        made, needs = fuse(stages)

        assert stages == made
        assert groups == (None if needs is None else needs.groups)
