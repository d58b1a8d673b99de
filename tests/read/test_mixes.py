"""Mixed sources: shares by weight, every record before any comes again, and a course that can be entered anywhere."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Generator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.model.errors import UsageError
from tarviz.pipeline import Pipeline
from tarviz.read.mixes import Mix, mix
from tests.conftest import each_case

SIZES = st.lists(st.integers(0, 30), min_size=1, max_size=4)
STOPS = st.sampled_from(["first", "longest", "rest"])


def made(sizes: list[int], stop: str, seed: int) -> Mix:
    weights = np.random.default_rng(seed).uniform(0.1, 1, len(sizes)).tolist()
    return Mix(tuple((f"{at}.tar", weight) for at, weight in enumerate(weights)), stop)  # type: ignore[arg-type]


def drawn(mixed: Mix, sizes: list[int], seed: int, taken: int = 0) -> list[tuple[int, int]]:
    def opened(source: int, skip: int) -> Generator[tuple[int, int], None, None]:
        yield from ((source, number) for number in range(skip, sizes[source]))

    return list(mixed.records(opened, [seed], sizes if taken else (), taken))


class TestAPass:
    @given(SIZES, STOPS, st.integers(0, 99))
    def test_reads_as_its_course_says_from_any_record_on(self, sizes: list[int], stop: str, seed: int) -> None:
        mixed = made(sizes, stop, seed)
        course = mixed.course(sizes, [seed])
        expected = [(source, turn % sizes[source]) for source, turn in zip(course.sources.tolist(), course.turns.tolist(), strict=True)]

        for taken in {0, 1, len(expected) // 2, len(expected) - 1, len(expected)} - {-1}:
            assert expected[taken:] == drawn(mixed, sizes, seed, taken), taken

    @given(SIZES, st.integers(0, 99))
    def test_ends_behind_the_last_record_of_the_first_that_is_spent(self, sizes: list[int], seed: int) -> None:
        found = drawn(made(sizes, "first", seed), sizes, seed)

        assert len(found) == len(set(found))
        if found:
            assert sizes[found[-1][0]] - 1 == found[-1][1]
            assert all(number < sizes[source] - 1 for source, number in found[:-1])

    @given(SIZES, st.integers(0, 99))
    def test_lasts_until_every_record_has_come_and_repeats_none_before_its_source_is_spent(self, sizes: list[int], seed: int) -> None:
        found = drawn(made(sizes, "longest", seed), sizes, seed)

        assert {(source, number) for source, size in enumerate(sizes) for number in range(size)} == set(found)
        assert 1 == found.count(found[-1]) if found else not sum(sizes)
        for source, size in enumerate(sizes):
            numbers = [number for each, number in found if each == source]
            assert list(itertools.islice(itertools.cycle(range(size)), len(numbers))) == numbers

    @given(SIZES, st.integers(0, 99))
    def test_of_what_was_left_gives_each_record_once(self, sizes: list[int], seed: int) -> None:
        found = drawn(made(sizes, "rest", seed), sizes, seed)

        assert [(source, number) for source, size in enumerate(sizes) for number in range(size)] == sorted(found)

    def test_has_shares_by_weight(self) -> None:
        mixed = mix({"a": 5, "b": 3, "c": 2})
        share = np.bincount(mixed.course([10_000] * 3, [1]).sources[:10_000]) / 10_000

        assert np.abs(share - [0.5, 0.3, 0.2]).max() < 0.01


class TestTheValue:
    def test_is_text_and_back(self) -> None:
        pipeline = Pipeline(mix({"a-{0..9}.tar": 0.7, "b.tar": 3}, stop="longest"), "decode(jpg)", select="jpg", seed=3)

        assert 'Pipeline(mix({"a-{0..9}.tar": 0.7, "b.tar": 3}, stop="longest"), "decode(jpg)", select="jpg", seed=3)' == repr(pipeline)
        assert pipeline == Pipeline.of(repr(pipeline)) == pickle.loads(pickle.dumps(pipeline))
        assert pipeline != pipeline.with_urls(pipeline.urls)

    @each_case("weight", [0, -1, float("nan"), float("inf"), True, "1"])
    def test_has_weights_above_zero(self, weight: float) -> None:
        with pytest.raises(UsageError, match="no number above 0"):
            mix({"a.tar": 0.5, "b.tar": weight})

    def test_has_sources_and_an_end(self) -> None:
        with pytest.raises(UsageError, match="stop='first' or 'longest'"):
            mix({})
        with pytest.raises(UsageError, match="stop='first' or 'longest'"):
            mix({"a.tar": 1}, stop="never")  # type: ignore[arg-type]
