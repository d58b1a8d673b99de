"""CRC32C of bytes that were summed piece by piece: the sums of the pieces make up the sum of all of them.

A CRC is linear: what zeros after a piece make of its sum is a matrix over bits, and the sum of pieces in a row is the XOR of each one's
after as many zeros as bytes follow it. Looking the matrices up, four bits of the number of zeros at a time, takes less than a second
look at the bytes where pieces are long.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, bits reversed: RFC 3720, appendix B.4
_BITS = 4
_DIGITS = 1 << _BITS

Sums = NDArray[np.uint32]


def combined(sums: NDArray[Any], sizes: NDArray[np.int64]) -> int:
    """The CRC32C of pieces one after the other, given the CRC32C and the number of bytes of each.

    >>> import google_crc32c
    >>> pieces = [b"1234", b"", b"56789"]
    >>> hex(combined(np.array([google_crc32c.value(each) for each in pieces]), np.array([len(each) for each in pieces])))
    '0xe3069283'
    """
    values = sums.astype("<u4")
    after = int(sizes.sum()) - np.cumsum(sizes)
    place, most = 0, int(after[:1].sum())
    while most >> (_BITS * place):
        values = _changed(_zeros(place), (after >> (_BITS * place)) & (_DIGITS - 1), values)
        place += 1
    return int(np.bitwise_xor.reduce(values))


def _changed(tables: NDArray[np.uint32], digit: NDArray[Any], values: Sums) -> Sums:
    """What zeros make of sums; `tables` is [digit, byte of the sum, value of that byte]."""
    changed: Sums = np.bitwise_xor.reduce(tables[digit[:, None], np.arange(4), values.view(np.uint8).reshape(-1, 4)], axis=1)
    return changed


@cache
def _zeros(place: int) -> NDArray[np.uint32]:
    """uint32 [16, 4, 256]: what `digit * 16**place` bytes of zeros make of each byte of a sum."""
    rows = np.zeros((_DIGITS, 32), np.uint32)  # of each bit
    rows[0] = 1 << np.arange(32, dtype=np.uint32)
    rows[1] = _one_byte(rows[0]) if place == 0 else _changed(_zeros(place - 1), np.full(32, _DIGITS - 1), _last(place, rows[0]))
    once, matrix = _tables(rows[1:2]), np.zeros(32, np.int64)
    for digit in range(2, _DIGITS):
        rows[digit] = _changed(once, matrix, rows[digit - 1])
    return _tables(rows)


def _last(place: int, values: Sums) -> Sums:
    """What `16**(place - 1)` bytes of zeros make of sums: with fifteen times as many it is the next place's one."""
    return _changed(_zeros(place - 1), np.ones(len(values), np.int64), values)


def _one_byte(values: Sums) -> Sums:
    """What a byte of zeros makes of sums."""
    for _ in range(8):
        values = (values >> np.uint32(1)) ^ np.where(values & np.uint32(1), np.uint32(_POLYNOMIAL), np.uint32(0))
    return values


def _tables(rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Matrices by their bits, uint32 [matrices, 32], as tables [matrices, 4, 256] by the bytes of what they are applied to."""
    tables = np.zeros((len(rows), 4, 256), np.uint32)
    value = np.arange(256)
    for bit in range(8):
        tables ^= np.where((value >> bit) & 1, rows[:, bit::8, None], np.uint32(0))
    return tables
