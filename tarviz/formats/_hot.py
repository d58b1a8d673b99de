"""The functions where the time goes, on NumPy columns; a native twin could replace each with the same signature."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BLOCK = 512
_DIGIT = np.uint32(0xF8F8F8F8)  # a byte is an octal digit when these bits of it are those of "0"
_ZERO = np.uint32(0x30303030)
_TWO, _THREE = np.uint32(0xFFFF), np.uint32(0xFFFFFF)
_HIGH = np.uint64(0x8080808080808080)
_ONES = np.uint64(0x0101010101010101)
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


def followed(data: memoryview, first: int) -> NDArray[np.int64]:
    """The blocks of headers as each says where the next one is, from block `first` on, up to one that says nothing.

    Where payloads are large this touches far less memory than looking at every block.
    """
    found = []
    place, end = first * BLOCK, len(data) - BLOCK
    while 0 <= place <= end and data[place + 257 : place + 262].tobytes() == b"ustar":
        found.append(place // BLOCK)
        try:
            size = int(data[place + 124 : place + 135].tobytes(), 8)
        except ValueError:
            break
        if size < 0:
            break
        place += BLOCK + ((size + BLOCK - 1) & -BLOCK)
    return np.array(found, np.int64)


def headers(raw: NDArray[np.uint8], at: NDArray[np.int64] | None = None) -> Headers:
    """Every block of `raw` (uint8 [blocks, 512]) that carries the ustar magic (or those of `at`), judged as a column.

    A block inside somebody's payload may carry the magic as well: only following `next` from a known header
    (`breaks` says where that leads off the column) tells headers from payload.
    """
    at = candidates(raw) if at is None else at
    table = raw.take(at, axis=0)
    fours = table.view("<u4")  # a reduction over a short axis is slow in NumPy: fields are judged as words
    kind = table[:, 156]
    pax = kind == 120
    ends = table[:, 135]
    low, mid, high = fours[:, 31], fours[:, 32], fours[:, 33] & _THREE
    plain = ((low & _DIGIT) == _ZERO) & ((mid & _DIGIT) == _ZERO) & ((high & _DIGIT) == (_ZERO & _THREE))
    plain &= (ends == 0) | (ends == 32)
    plain &= (kind == 48) | (kind == 0) | (kind == 55) | pax
    plain &= table[:, 136] < 128  # a base-256 time is read with care
    plain &= (table[:, 345] == 0) | (table[:, 262] == 32)  # no ustar prefix, or GNU, which keeps other things there
    plain &= _checksum_right(table, fours)
    size = (_octal(low) << 21) | (_octal(mid) << 9) | (_octal(high) >> 3)

    name = table[:, :100]
    used = np.flatnonzero(np.any(name, axis=0))
    width = int(used[-1]) + 1 if len(used) else 1
    padded = np.zeros((len(at), -(-width // 8) * 8), np.uint8)
    padded[:, :width] = name[:, :width]
    words = padded.view("<u8")
    count = np.zeros(len(at), np.uint64)
    for column in range(words.shape[1]):
        count += _nonzero(words[:, column])
    length = np.char.str_len(padded.view(f"S{padded.shape[1]}")[:, 0])
    plain &= (length > 0) & (count == length)  # nothing behind the first NUL
    plain &= padded[np.arange(len(at)), np.maximum(length - 1, 0)] != 47  # a trailing slash makes it a folder
    high_bits = np.zeros(len(at), np.uint64)
    for column in range(words.shape[1]):
        high_bits |= words[:, column]
    follow = at + 1 + ((size + (BLOCK - 1)) >> 9)
    breaks = np.ones(len(at), np.bool_)
    if len(at):
        breaks[:-1] = ~plain[:-1] | (follow[:-1] != at[1:])
    return Headers(at, size, follow, plain, pax, padded[:, :width], (high_bits & _HIGH) == 0, np.flatnonzero(breaks))


def _octal(word: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Four octal digits in the order of their bytes, as a number."""
    value = word.astype(np.int64)
    return ((value & 7) << 9) | ((value >> 2) & 0o700) | ((value >> 13) & 0o70) | ((value >> 24) & 7)


def _nonzero(word: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """How many bytes of each word are not zero."""
    bits = ((((word & ~_HIGH) + ~_HIGH) | word) & _HIGH) >> np.uint64(7)
    return (bits * _ONES) >> np.uint64(56)


def _checksum_right(table: NDArray[np.uint8], fours: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Whether the stored checksum, six octal digits then NUL or space, equals the unsigned sum (POSIX, pax(1))."""
    total = table.sum(axis=1, dtype=np.uint32)
    first, second = fours[:, 37], fours[:, 38]  # the field itself counts as eight spaces
    for word in (first, second):
        pairs = (word & np.uint32(0x00FF00FF)) + ((word >> np.uint32(8)) & np.uint32(0x00FF00FF))
        total -= (pairs & np.uint32(0xFFFF)) + (pairs >> np.uint32(16))
    digits = ((first & _DIGIT) == _ZERO) & ((second & _DIGIT & _TWO) == (_ZERO & _TWO)) & (table[:, 154] <= 32)
    right: NDArray[np.bool_] = digits & (((_octal(first) << 6) | (_octal(second & _TWO) >> 6)) == total.astype(np.int64) + 8 * 32)
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
    slash = names == 47
    dots = names == 46
    dot = _same_dot(slash, dots, last)
    if dot is not None and names[:, dot + 1 :].shape[1] and names[:, dot + 1].all():
        # All names have the same shape, `train/n00000017.png`: two slices do.
        ext = names[:, dot + 1 :].copy()
        key = names[:, :dot]
        valid = np.ones(count, np.bool_)
        length = np.full(count, dot)
    else:
        columns = np.arange(width)
        begin = np.where(slash.any(1), width - np.argmax(slash[:, ::-1], axis=1), 0)
        total = (names != 0).sum(1)
        dots &= columns >= begin[:, None]
        place = width - 1 - np.argmax(dots[:, ::-1], axis=1) if last else np.argmax(dots, axis=1)
        valid = dots.any(1) & (place > begin) & (place < total - 1)
        length = np.where(valid, place, total)
        key = np.where(columns < length[:, None], names, np.uint8(0))
        wide = int(max((total - length).max(initial=1) - 1, 1))
        at = length[:, None] + 1 + np.arange(wide)
        ext = np.where(at < width, names[np.arange(count)[:, None], np.minimum(at, width - 1)], np.uint8(0))
    ext[(ext >= 65) & (ext <= 90)] |= 32
    return Keys(key, length, ext, valid)


def _same_dot(slash: NDArray[np.bool_], dots: NDArray[np.bool_], last: bool) -> int | None:
    """The column of every name's dot between key and extension, when it is one for all and the base begins in one."""
    if not len(slash):
        return None
    folders = np.flatnonzero(np.any(slash, axis=0))
    base = 0
    if len(folders):
        base = int(folders[-1]) + 1
        if not slash[:, base - 1].all():
            return None
    places = np.flatnonzero(np.any(dots[:, base:], axis=0))
    if not len(places):
        return None
    dot = base + int(places[-1 if last else 0])
    return dot if dot > base and dots[:, dot].all() else None


def starts(key: NDArray[np.uint8], length: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows begin a record: their key is not the key of the row before (row 0 always does)."""
    begins = np.ones(len(key), np.bool_)
    if len(key) > 1:
        words = wide(key)
        np.not_equal(length[1:], length[:-1], out=begins[1:])
        for column in range(words.shape[1] - 1, -1, -1):
            begins[1:] |= words[1:, column] != words[:-1, column]
    return begins


def wide(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Rows of bytes as rows of 64-bit words, padded with NULs."""
    width = -(-rows.shape[1] // 8) * 8
    if width == rows.shape[1] and rows.flags.c_contiguous:
        return rows.view("<u8")
    padded = np.zeros((len(rows), width), np.uint8)
    padded[:, : rows.shape[1]] = rows
    return padded.view("<u8")


def distinct(rows: NDArray[np.uint8]) -> tuple[NDArray[np.int32], list[bytes]]:
    """Code per row and the distinct rows (uint8 [rows, width], NUL-padded) in order of first appearance."""
    if not len(rows):
        return np.zeros(0, np.int32), []
    words = wide(rows)
    codes = np.full(len(rows), -1, np.int32)
    found: list[bytes] = []
    first = 0
    while first < len(rows):
        if len(found) == 64:  # many kinds: a sort pays
            return _distinct_sorted(words)
        match = words[:, 0] == words[first, 0]
        for column in range(1, words.shape[1]):
            match &= words[:, column] == words[first, column]
        codes[match] = len(found)
        found.append(words[first].tobytes().rstrip(b"\0"))
        left = codes[first:] < 0
        first = first + int(left.argmax()) if left.any() else len(rows)
    return codes, found


def _distinct_sorted(words: NDArray[np.uint64]) -> tuple[NDArray[np.int32], list[bytes]]:
    keys = words.view(f"S{words.shape[1] * 8}")[:, 0]
    values, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[inverse.reshape(-1)], values[order].tolist()


def hash_one(key: bytes) -> int:
    """`hashes` of one key."""
    total, weight, mask = 0, 1, 2**64 - 1
    for at in range(0, len(key), 8):
        word = int.from_bytes(key[at : at + 8], "little")
        weight = (weight * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & mask
        mixed = ((word ^ (word >> 29)) * weight) & mask
        total += mixed ^ (mixed >> 32)
    return (total * 0xBF58476D1CE4E5B9) & mask


def hashes(key: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """A 64-bit hash per row (uint8 [rows, width], NUL-padded); the same key in a wider array hashes the same."""
    words = wide(key)
    total = np.zeros(len(key), np.uint64)
    weight = np.uint64(1)
    for column in range(words.shape[1]):
        weight = np.uint64((int(weight) * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & (2**64 - 1))
        mixed = (words[:, column] ^ (words[:, column] >> np.uint64(29))) * weight
        total += mixed ^ (mixed >> np.uint64(32))
    return total * np.uint64(0xBF58476D1CE4E5B9)
