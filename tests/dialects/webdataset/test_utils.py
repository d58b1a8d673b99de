"""`webdataset.utils`: repetition, seeds, and where a process stands."""

from __future__ import annotations

from typing import Any

import pytest

import tarviz.dialects.webdataset as wds
from tests.conftest import each_case


class TestRepetition:
    @each_case(
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
        batch = ([1, 2, 3], "xy")

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
