"""`webdataset.extradatasets`: data sets of other lengths, epochs that go on, a sample again and again."""

from __future__ import annotations

import pickle

import tarviz.dialects.webdataset as wds


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
