"""The functions where the time goes, on NumPy columns; a native twin could replace each with the same signature."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BLOCK = 512
_OCTAL = (8 ** np.arange(10, -1, -1)).astype(np.int64)
# Bytes 257..261 of a header, `ustar`, seen as the middle of the little-endian word at 256.
_MAGIC_WORD = np.uint64(int.from_bytes(b"ustar", "little"))
_MAGIC_MASK = np.uint64((1 << 40) - 1)


class Headers(NamedTuple):
    """Candidate headers of a buffer as columns; `plain` says which of them need no careful reading."""

    at: NDArray[np.int64]  # 512-byte block number in the buffer
    size: NDArray[np.int64]
    next: NDArray[np.int64]  # block number behind the payload
    plain: NDArray[np.bool_]  # regular file, or a PAX header, with nothing unusual in it
    pax: NDArray[np.bool_]
    name: NDArray[np.uint8]  # [headers, width], NUL-padded
    ascii: NDArray[np.bool_]
    breaks: NDArray[np.int64]  # rows that are not plain or do not lead to the next row


def candidates(raw: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Blocks of `raw` (uint8 [blocks, 512], contiguous) with the ustar magic at byte 257."""
    words = raw.view("<u8")[:, 32]
    return np.flatnonzero(((words >> np.uint64(8)) & _MAGIC_MASK) == _MAGIC_WORD)


def headers(raw: NDArray[np.uint8]) -> Headers:
    """Every block of `raw` (uint8 [blocks, 512]) that carries the ustar magic, judged as a column.

    A block inside somebody's payload may carry the magic as well: only following `next` from a known header
    (`breaks` says where that leads off the column) tells headers from payload.
    """
    at = candidates(raw)
    table = raw.take(at, axis=0)
    kind = table[:, 156]
    pax = kind == 120
    digits = table[:, 124:135] - np.uint8(48)
    ends = table[:, 135]
    plain = (digits < 8).all(1) & ((ends == 0) | (ends == 32))
    plain &= (kind == 48) | (kind == 0) | (kind == 55) | pax
    plain &= table[:, 136] < 128  # a base-256 time is read with care
    plain &= (table[:, 345] == 0) | (table[:, 262] == 32)  # no ustar prefix, or GNU, which keeps other things there
    plain &= _checksum_right(table)
    size = digits.astype(np.int64) @ _OCTAL

    name = table[:, :100]
    used = name != 0
    width = max(int(used.any(0).nonzero()[0][-1]) + 1, 1) if len(at) and used.any() else 1
    name, used = name[:, :width], used[:, :width]
    length = used.sum(1)
    rows = np.arange(len(at))
    plain &= (length > 0) & ((used[:, 1:] <= used[:, :-1]).all(1))  # nothing behind the first NUL
    plain &= name[rows, np.maximum(length - 1, 0)] != 47  # a trailing slash makes it a folder
    follow = at + 1 + ((size + (BLOCK - 1)) >> 9)
    breaks = np.ones(len(at), np.bool_)
    if len(at):
        breaks[:-1] = ~plain[:-1] | (follow[:-1] != at[1:])
    ascii_only = np.less(name, 128).all(axis=1)
    return Headers(at, size, follow, plain, pax, name, np.asarray(ascii_only), np.flatnonzero(breaks))


def _checksum_right(table: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether the stored checksum, six octal digits then NUL or space, equals the unsigned sum (POSIX, pax(1))."""
    total = table.sum(axis=1, dtype=np.int64) - table[:, 148:156].sum(axis=1, dtype=np.int64) + 8 * 32
    digits = table[:, 148:154] - np.uint8(48)
    right: NDArray[np.bool_] = (digits < 8).all(1) & (table[:, 154] <= 32) & (digits.astype(np.int64) @ _OCTAL[-6:] == total)
    return right


def matrix(names: NDArray[Any]) -> NDArray[np.uint8]:
    """Names of dtype `S<w>` as uint8 [names, w], NUL-padded."""
    return np.ascontiguousarray(names).view(np.uint8).reshape(len(names), -1)


class Keys(NamedTuple):
    """Names cut into key and extension."""

    key: NDArray[np.uint8]  # [names, width], NUL-padded
    length: NDArray[np.int64]  # of the key
    ext: NDArray[np.uint8]  # [names, width], lower case, NUL-padded
    valid: NDArray[np.bool_]  # false: no key and extension in this name


def split(names: NDArray[np.uint8], *, last: bool) -> Keys:
    """Cut names (uint8 [names, width], NUL-padded, no NUL inside) at the first dot of the base name, or the last."""
    count, width = names.shape
    columns = np.arange(width)
    slash = names == 47
    base = np.where(slash.any(1), width - np.argmax(slash[:, ::-1], axis=1), 0)
    length = (names != 0).sum(1)
    dots = (names == 46) & (columns >= base[:, None])
    dot = width - 1 - np.argmax(dots[:, ::-1], axis=1) if last else np.argmax(dots, axis=1)
    valid = dots.any(1) & (dot > base) & (dot < length - 1)
    dot = np.where(valid, dot, length)
    key = np.where(columns < dot[:, None], names, np.uint8(0))
    wide = int(max((length - dot).max(initial=1) - 1, 1))
    place = dot[:, None] + 1 + np.arange(wide)
    ext = np.where(place < width, names[np.arange(count)[:, None], np.minimum(place, width - 1)], np.uint8(0))
    ext[(ext >= 65) & (ext <= 90)] |= 32
    return Keys(key, dot, ext, valid)


def starts(key: NDArray[np.uint8], length: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows begin a record: their key is not the key of the row before (row 0 always does)."""
    begins = np.ones(len(key), np.bool_)
    if len(key) > 1:
        begins[1:] = (length[1:] != length[:-1]) | (key[1:] != key[:-1]).any(1)
    return begins


def distinct(rows: NDArray[np.uint8]) -> tuple[NDArray[np.int32], list[bytes]]:
    """Code per row and the distinct rows (uint8 [rows, width], NUL-padded) in order of first appearance."""
    if not len(rows):
        return np.zeros(0, np.int32), []
    width = -(-rows.shape[1] // 8)
    padded = np.zeros((len(rows), width * 8), np.uint8)
    padded[:, : rows.shape[1]] = rows
    words = padded.view("<u8")
    codes = np.full(len(rows), -1, np.int32)
    found: list[bytes] = []
    first = 0
    while first < len(rows):
        if len(found) == 64:  # many kinds: a sort pays
            return _distinct_sorted(padded)
        match = (words == words[first]).all(1)
        codes[match] = len(found)
        found.append(padded[first].tobytes().rstrip(b"\0"))
        left = codes[first:] < 0
        first = first + int(left.argmax()) if left.any() else len(rows)
    return codes, found


def _distinct_sorted(padded: NDArray[np.uint8]) -> tuple[NDArray[np.int32], list[bytes]]:
    keys = padded.view(f"S{padded.shape[1]}")[:, 0]
    values, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[inverse.reshape(-1)], values[order].tolist()


def hashes(key: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """A 64-bit hash per row (uint8 [rows, width], NUL-padded); the same key in a wider array hashes the same."""
    width = -(-key.shape[1] // 8)
    padded = np.zeros((len(key), width * 8), np.uint8)
    padded[:, : key.shape[1]] = key
    words = padded.view("<u8")
    total = np.zeros(len(key), np.uint64)
    weight = np.uint64(1)
    for column in range(width):
        weight = np.uint64((int(weight) * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & (2**64 - 1))
        mixed = (words[:, column] ^ (words[:, column] >> np.uint64(29))) * weight
        total += mixed ^ (mixed >> np.uint64(32))
    return total * np.uint64(0xBF58476D1CE4E5B9)
