"""Sums of pieces make up the sum of all of them."""

from __future__ import annotations

import google_crc32c
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tarviz.formats.checksums import combined


def of_pieces(pieces: list[bytes]) -> int:
    return combined(np.array([google_crc32c.value(piece) for piece in pieces]), np.array([len(piece) for piece in pieces]))


class TestCombined:
    @given(st.lists(st.binary(max_size=70), min_size=1, max_size=9))
    def test_it_is_the_sum_of_what_the_pieces_make(self, pieces: list[bytes]):
        assert google_crc32c.value(b"".join(pieces)) == of_pieces(pieces)

    @given(st.integers(0, 2**21), st.integers(0, 300), st.binary(min_size=1, max_size=9))
    def test_pieces_may_be_of_any_length(self, long: int, short: int, data: bytes):
        pieces = [data, bytes(long), data * short, data]

        assert google_crc32c.value(b"".join(pieces)) == of_pieces(pieces)

    def test_a_sum_goes_over_more_bytes_than_memory_has(self):
        """2⁴⁰ zeros at once are as many as four times 2³⁸."""
        whole = grown = google_crc32c.value(b"tarviz")
        for _ in range(4):
            grown = combined(np.array([grown, 0]), np.array([0, 2**38]))

        assert grown == combined(np.array([whole, 0]), np.array([6, 2**40]))

    def test_nothing_has_the_sum_of_nothing(self):
        assert 0 == of_pieces([b""]) == combined(np.array([], np.uint32), np.array([], np.int64))
