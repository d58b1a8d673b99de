"""Draws: from seed, epoch and key alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tarviz.ops import Chain, draws

KEYS = st.lists(st.binary(max_size=400), min_size=1, max_size=20)


class TestDraws:
    @given(KEYS, st.integers(), st.integers(0, 1 << 40))
    def test_a_record_draws_the_same_in_any_company(self, keys: list[bytes], seed: int, epoch: int) -> None:
        block = draws(3, keys, seed, epoch)

        assert (len(keys), 3) == block.shape
        for row, key in zip(block, keys, strict=True):
            np.testing.assert_array_equal(row, draws(3, [key], seed, epoch)[0])

    @given(KEYS)
    def test_numbers_lie_in_the_unit_interval(self, keys: list[bytes]) -> None:
        block = draws(4, keys)

        assert block.dtype == np.float64
        assert ((block >= 0) & (block < 1)).all()

    def test_an_op_that_draws_nothing_changes_nothing(self) -> None:
        short, long = Chain.of("decode(jpg)|flip(jpg)"), Chain.of("decode(jpg)|resize(jpg, (8, 8))|flip(jpg)|rotate(jpg)")

        np.testing.assert_array_equal(draws(short, [b"a"])[0, 0], draws(long, [b"a"])[0, 0])

    def test_they_are_spread_evenly_and_do_not_hang_together(self) -> None:
        block = draws(4, [b"train/%08d" % n for n in range(20_000)], seed=1)

        counts, _ = np.histogram(block, bins=20, range=(0, 1))
        assert counts.min() > 0.95 * block.size / 20
        assert np.abs(np.corrcoef(block.T) - np.eye(4)).max() < 0.03
        assert abs(np.corrcoef(block[:-1, 0], block[1:, 0])[0, 1]) < 0.03

    def test_keys_that_differ_in_a_trailing_zero_byte_differ(self) -> None:
        assert draws(1, [b"a"]) != draws(1, [b"a\0"])

    def test_the_numbers_never_change_between_versions(self) -> None:
        """What was trained with a seed can be trained again: these are a promise."""
        np.testing.assert_allclose([[0.020265, 0.253310], [0.520845, 0.364844]], draws(2, [b"a", b"b"]), atol=1e-6)

    def test_no_keys_and_no_draws_are_empty(self) -> None:
        assert (0, 2) == draws(2, []).shape
        assert (3, 0) == draws(0, [b"a"] * 3).shape


def test_numbers_of_keys_of_real_length_stay_as_they_are() -> None:
    """A version that draws others changes every random op of every training: it has to be meant."""
    keys = [b"train/n00000017", b"imagenet/val/ILSVRC2012_val_00000001", b"k" * 256]
    expected = [
        [0.6600107077341664, 0.7663014237014484],
        [0.024250177928736405, 0.2905104292086921],
        [0.2611317355249866, 0.8841627711319876],
    ]

    assert expected == draws(2, keys, 7, 3).tolist()


def test_only_keys_that_are_very_long_are_taken_by_their_hash() -> None:
    long, other = b"k" * 256 + b"1", b"k" * 256 + b"2"
    together = draws(1, [long, b"a", other])[:, 0].tolist()

    assert together == [draws(1, [key])[0, 0] for key in (long, b"a", other)]
    assert 3 == len({*together})
    assert draws(1, [b"k" * 256]) != draws(1, [long])


def test_seed_and_epoch_are_told_apart_whatever_their_size() -> None:
    found = {float(draws(1, [b"a"], seed, epoch)[0, 0]) for seed in (0, 1, 2, 1 << 63, -1) for epoch in (0, 1, 2, 1 << 40)}

    assert 20 == len(found)
    assert draws(1, [b"a"], 1 << 64) == draws(1, [b"a"], 0)
