"""`webdataset.extradatasets`, `webdataset.mix` and `webdataset.utils`: lengths, epochs, mixtures, repetition."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest

import tarviz.dialects.webdataset as wds
from tarviz.dialects.webdataset.mix import random_samples, round_robin_longest, round_robin_shortest
from tarviz.model.errors import UsageError


class TestEpochs:
    def test_one_goes_on_where_the_one_before_has_stopped(self) -> None:
        dataset = wds.with_epoch([1, 2, 3, 4, 5], 3)

        assert [[1, 2, 3], [4, 5, 1], [2, 3, 4]] == [list(dataset) for _ in range(3)]

    def test_one_may_be_longer_than_the_data(self) -> None:
        assert [1, 2, 1, 2, 1] == list(wds.with_epoch([1, 2], 5))

    def test_of_no_data_or_of_no_length_nothing_comes(self) -> None:
        assert [] == list(wds.with_epoch([], 5))
        assert [] == list(wds.with_epoch([1], 0))

    def test_a_copy_begins_anew(self) -> None:
        dataset = wds.with_epoch([1, 2, 3], 2)
        list(dataset)

        assert [1, 2] == list(pickle.loads(pickle.dumps(dataset)))
        assert [3, 1] == list(dataset)


def test_a_length_changes_nothing_else() -> None:
    dataset = wds.with_length([1, 2, 3], 7)

    assert (7, [1, 2, 3]) == (len(dataset), list(dataset))


def test_a_mock_repeats_its_sample() -> None:
    assert [{"a": 1}] * 3 == list(wds.MockDataset({"a": 1}, 3))


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
    @pytest.mark.parametrize("weights", [[1], [1, -1], [1, 1, 1], []])
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


class TestRepetition:
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"nepochs": 2}, "abcabc"),
            ({"nbatches": 4}, "abca"),
            ({"nepochs": 1, "nbatches": 5}, "abc"),
            ({"nepochs": 2, "nbatches": 2}, "ab"),
            ({"nsamples": 7, "batchsize": lambda item: 2}, "abca"),
            ({"nsamples": 6, "batchsize": lambda item: 2}, "abc"),
        ],
    )
    def test_what_is_reached_first_ends_it(self, options: dict[str, Any], expected: str) -> None:
        assert expected == "".join(wds.repeatedly("abc", **options))

    def test_a_batch_has_as_many_samples_as_its_first_part(self) -> None:
        batch = ([1, 2, 3], "xyz")

        assert [batch] * 3 == list(wds.repeatedly([batch], nsamples=7))
        assert [] == list(wds.repeatedly([]))


def test_seeds_are_numbers_that_every_process_finds() -> None:
    assert 479067836 == wds.utils.make_seed(1, "a")
    assert all(0 <= wds.utils.make_seed(number) < 2**31 for number in range(100))


def test_where_a_process_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "1", "WORLD_SIZE": "3", "WORKER": "2", "NUM_WORKERS": "4"}.items():
        monkeypatch.setenv(name, value)

    assert (1, 3, 2, 4) == wds.utils.pytorch_worker_info()
    assert 1002 == wds.utils.pytorch_worker_seed()


def test_any_source_has_the_methods_of_a_data_set() -> None:
    assert [(2,), (3,)] == list(wds.FluidWrapper([{"n": 1}, {"n": 2}]).map(lambda s: {"n": s["n"] + 1}).to_tuple("n"))
