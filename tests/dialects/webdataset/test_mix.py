"""`webdataset.mix`: data sets in turns and by chance."""

from __future__ import annotations

import random
from typing import Any

import pytest

import tarviz.dialects.webdataset as wds
from tarviz.dialects.webdataset.mix import random_samples, round_robin_longest, round_robin_shortest
from tarviz.model.errors import UsageError
from tests.conftest import each_case


class TestTurns:
    def test_the_shortest_ends_it_or_the_longest(self) -> None:
        def given() -> list[Any]:
            return [iter("abc"), iter("x"), iter("12")]

        assert ["a", "x", "1", "b"] == list(round_robin_shortest(*given()))
        assert ["a", "x", "1", "b", "2", "c"] == list(round_robin_longest(*given()))
        assert [] == list(round_robin_shortest()) == list(round_robin_longest())

    def test_data_sets_are_begun_anew_in_each_pass(self) -> None:
        dataset = wds.RoundRobin([[1, 2], [3]], longest=True)

        assert [1, 3, 2] == list(dataset) == list(dataset)
        assert [] == list(wds.RoundRobin([]))


class TestChance:
    @each_case("weights", [[1], [1, -1], [1, 1, 1], []])
    def test_there_is_a_weight_for_each(self, weights: list[float]) -> None:
        with pytest.raises(UsageError, match=rf"there are {len(weights)} weights for 2 data sets"):
            list(random_samples([iter("a"), iter("b")], weights))

    def test_weights_decide_how_often_one_is_drawn(self) -> None:
        found = list(random_samples([iter("a" * 5000), iter("b" * 5000)], [3, 1], rng=random.Random(5)))

        assert 0.22 < found.count("b") / len(found) < 0.28
        assert 5000 == found.count("a")

    def test_the_first_that_ends_ends_it_or_the_last(self) -> None:
        for longest in (False, True):
            found = list(random_samples([iter(range(4)), iter(range(10, 90))], longest=longest, rng=random.Random(3)))
            assert [number for number in found if number < 10] == [0, 1, 2, 3]
            assert (len(found) == 84) == longest
        assert [] == list(random_samples([])) == list(random_samples([iter("a")], [0]))

    def test_a_mix_draws_by_seed_pass_and_place(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def mixed(**options: Any) -> wds.RandomMix:
            return wds.RandomMix([range(50), range(100, 150)], longest=True, **options)

        one, again = mixed(seed=1), mixed(seed=1)
        passes = [list(one) for _ in range(2)]

        assert passes == [list(again) for _ in range(2)]
        assert passes[0] != passes[1]
        assert sorted([*range(50), *range(100, 150)]) == sorted(passes[0])
        assert passes[0] != list(mixed(seed=2))
        monkeypatch.setenv("WORKER", "1")
        assert passes[0] != list(mixed(seed=1))
