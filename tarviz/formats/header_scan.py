"""Vectorised hot paths of header scanning on NumPy columns; native code could replace each function one for one."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BLOCK = 512
_DIGIT = 0xF8F8F8F8  # a byte is an octal digit when these bits of it are those of "0"
_ZERO = 0x30303030
_SIZE_AND_MAGIC = struct.Struct("<124x 11s 122x 5s")  # where a header has them
_TWO, _THREE, _FOUR = 0xFFFF, 0xFFFFFF, 0xFFFFFFFF
# The size, eleven digits: the last four bytes of word 15, the first seven of word 16.
_SIZE_BITS = np.uint64(_DIGIT << 32), np.uint64(_DIGIT | (_DIGIT & _THREE) << 32)
_SIZE_ZEROS = np.uint64(_ZERO << 32), np.uint64(_ZERO | (_ZERO & _THREE) << 32)
_HIGH = np.uint64(0x8080808080808080)
_LOW = np.uint64(0x7F7F7F7F7F7F7F7F)
_ONES = np.uint64(0x0101010101010101)
_PAIRS = np.uint64(0x00FF00FF00FF00FF)
# Bytes 257..261 of a header, `ustar`, seen as the middle of the little-endian word at 256.
_MAGIC_WORD = np.uint64(int.from_bytes(b"ustar", "little"))
_MAGIC_MASK = np.uint64((1 << 40) - 1)
_NAME = 13  # words that hold the name, the last of them half

Words = NDArray[Any]  # uint64 [headers] or [words, headers]


class HeaderColumns(NamedTuple):
    """Candidate headers of a buffer as columns; `plain` says which of them need no careful reading."""

    at: NDArray[np.int64]  # 512-byte block number in the buffer
    size: NDArray[np.int64]
    next: NDArray[np.int64]  # block number after the payload
    plain: NDArray[np.bool_]  # regular file, or a PAX header, with nothing unusual in it
    pax: NDArray[np.bool_]
    name: NDArray[np.uint8]  # [headers, width], NUL-padded
    ascii: NDArray[np.bool_]
    breaks: NDArray[np.int64]  # rows that are not plain or do not lead to the next row


def candidates(raw: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Blocks of `raw` (uint8 [blocks, 512], contiguous) with the ustar magic at byte 257."""
    words = raw.view("<u8")[:, 32]
    return np.flatnonzero(((words >> np.uint64(8)) & _MAGIC_MASK) == _MAGIC_WORD)


def follow(data: memoryview, first: int) -> NDArray[np.int64]:
    """Block numbers of the headers found by following each header's size from block `first`; stops at the first unreadable one.

    Where payloads are large this touches far less memory than looking at every block.
    """
    found = []
    place, end = first * BLOCK, len(data) - BLOCK
    look = _SIZE_AND_MAGIC.unpack_from
    while 0 <= place <= end:
        digits, magic = look(data, place)
        if magic != b"ustar":
            break
        found.append(place)
        try:
            size = int(digits, 8)
        except ValueError:
            break
        if size < 0:
            break
        place += BLOCK + ((size + BLOCK - 1) & -BLOCK)
    return np.array(found, np.int64) // BLOCK


def headers(raw: NDArray[np.uint8], at: NDArray[np.int64] | None = None, place: NDArray[np.int64] | None = None) -> HeaderColumns:
    """Every block of `raw` (uint8 [blocks, 512]) that carries the ustar magic (or those of `at`), judged as a column.

    `place`: the numbers of these blocks, where `raw` does not hold all that lie between them.

    A block inside somebody's payload may carry the magic as well: only following `next` from a known header
    (`breaks` says where that leads off the column) tells headers from payload.

    A header is 64 words of 8 bytes, nearly all of them zero: those that are not, turned into columns, are all that is looked at.
    """
    at = candidates(raw) if at is None else at
    rows: Words = raw.view("<u8").take(at, axis=0)
    at = at if place is None else place
    filled = np.bitwise_or.reduce(rows, axis=0)
    used = np.flatnonzero(filled)
    columns: Words = rows.T[used]
    word = dict(zip(used.tolist(), columns, strict=True))
    none = np.zeros(len(at), np.uint64)
    w15, w16, w17, w18, w19 = (word.get(number, none) for number in range(15, 20))

    kind = (w19 >> 32) & 0xFF
    pax = kind == 120
    ends = w16 >> 56
    plain = ((w15 & _SIZE_BITS[0]) == _SIZE_ZEROS[0]) & ((w16 & _SIZE_BITS[1]) == _SIZE_ZEROS[1])
    plain &= (ends == 0) | (ends == 32)
    plain &= (kind == 48) | (kind == 0) | (kind == 55) | pax
    plain &= (w17 & 0x80) == 0  # a base-256 time is read with care
    if 43 in word:  # no ustar prefix, or GNU, which keeps other things there
        plain &= ((word[43] & 0xFF00) == 0) | (((word[32] >> 48) & 0xFF) == 32)
    plain &= _checksum_right(columns, w18 >> 32, w19 & _FOUR)
    size = (_octal(w16 & _FOUR) << 9) | (_octal((w16 >> 32) & _THREE) >> 3)
    low = w15 >> 32
    if (low != _ZERO).any():  # of 2 MiB and more
        size |= _octal(low) << 21

    # Names: nothing may follow the first NUL, and a slash at the end makes it a folder.
    filled[_NAME - 1] &= _FOUR  # the mode is after it
    wide = max((8 * number + (int(filled[number]).bit_length() + 7) // 8 for number in range(_NAME) if filled[number]), default=1)
    name: Words = rows[:, : (wide + 7) // 8].copy()
    if name.shape[1] == _NAME:
        name[:, -1] &= _FOUR
    parts: Words = name.T.copy()
    there = (((parts & _LOW) + _LOW) | parts) & _HIGH  # the high bit of every byte that is not zero
    bits = there >> 7
    length = (np.add.reduce(bits * _ONES >> 56, axis=0) if len(parts) > 1 else bits[0] * _ONES >> 56).astype(np.int64)
    bits *= 255  # bytes of ones, from the lowest on, or there is a hole
    plain &= (length > 0) & ((bits & (bits + 1)) == 0).all(axis=0) & ((there[:-1] == _HIGH) | (parts[1:] == 0)).all(axis=0)
    letters = name.view(np.uint8)
    longest = int(length.max(initial=1))
    if longest == length.min(initial=longest):
        plain &= letters[:, longest - 1] != 47
    else:
        plain &= letters[np.arange(len(at)), np.maximum(length - 1, 0)] != 47
    ascii = (np.bitwise_or.reduce(parts, axis=0) & _HIGH) == 0
    follow = at + 1 + ((size + (BLOCK - 1)) >> 9)
    breaks = np.ones(len(at), np.bool_)
    if len(at):
        breaks[:-1] = ~plain[:-1] | (follow[:-1] != at[1:])
    return HeaderColumns(at, size, follow, plain, pax, letters[:, :wide], ascii, np.flatnonzero(breaks))


def _octal(word: Words) -> NDArray[np.int64]:
    """Four octal digits in the order of their bytes, as a number."""
    value: NDArray[np.int64] = word.view(np.int64)
    return ((value & 7) << 9) | ((value >> 2) & 0o700) | ((value >> 13) & 0o70) | ((value >> 24) & 7)


def _checksum_right(columns: Words, first: Words, second: Words) -> NDArray[np.bool_]:
    """Whether the stored checksum, six octal digits then NUL or space, equals the unsigned sum (POSIX, pax(1)).

    `columns` are the words of the headers that are not zero, [words, headers]; `first` and `second` the halves of the stored field,
    which itself counts as eight spaces. Bytes are added in four lanes of 16 bits: 64 words of them do not overflow.
    """
    lanes = columns >> 8
    lanes &= _PAIRS
    lanes += columns & _PAIRS
    total = np.add.reduce(lanes, axis=0)
    for word in (first, second):
        total -= (word & _PAIRS) + ((word >> 8) & _PAIRS)  # these are among them: no lane goes below zero
    total = (total & 0xFFFF0000FFFF) + ((total >> 16) & 0xFFFF0000FFFF)
    total = (total & _FOUR) + (total >> 32)
    digits = ((first & _DIGIT) == _ZERO) & ((second & (_DIGIT & _TWO)) == (_ZERO & _TWO)) & (((second >> 16) & 0xFF) <= 32)
    last = ((second & 7) << 3) | ((second >> 8) & 7)
    right: NDArray[np.bool_] = digits & (((_octal(first) << 6) | last.view(np.int64)) == (total + 8 * 32).view(np.int64))
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


def base(slash: NDArray[np.bool_]) -> int | NDArray[np.int64]:
    """Where the base name begins in each row: one number when it is the same in all."""
    if (same := _same_columns(slash)) is not None:
        return same[-1] + 1 if same else 0
    folders = np.flatnonzero(np.any(slash, axis=0))
    if slash[:, folders[-1]].all():
        return int(folders[-1]) + 1
    width = slash.shape[1]
    return np.where(slash.any(1), width - np.argmax(slash[:, ::-1], axis=1), 0)


def _same_columns(marks: NDArray[np.bool_]) -> list[int] | None:
    """The columns of the marks where every row has them in the same ones, the usual case, told cheaply; else None."""
    if not len(marks):
        return []
    columns: list[int] = np.flatnonzero(marks[0]).tolist()
    if np.count_nonzero(marks) == len(marks) * len(columns) and all(marks[:, column].all() for column in columns):
        return columns
    return None


def split(names: NDArray[np.uint8], begin: int | NDArray[np.int64], *, last: bool) -> Keys:
    """Cut names (uint8 [names, width], NUL-padded, no NUL inside) at the first dot of the base name, or the last.

    `begin`: where the base names begin (see `base`).
    """
    count, width = names.shape
    dots = names == 46
    dot = _same_dot(begin, dots, last) if isinstance(begin, int) else None
    if dot is not None and dot + 1 < width and names[:, dot + 1].all():
        # All names have the same shape, `train/n00000017.png`: two slices do.
        ext = names[:, dot + 1 :].copy()
        key = names[:, :dot]
        valid = np.ones(count, np.bool_)
        length = np.full(count, dot)
    else:
        columns = np.arange(width)
        total = (names != 0).sum(1)
        dots &= columns >= np.broadcast_to(begin, count)[:, None]
        place = width - 1 - np.argmax(dots[:, ::-1], axis=1) if last else np.argmax(dots, axis=1)
        valid = dots.any(1) & (place > begin) & (place < total - 1)
        length = np.where(valid, place, total)
        key = np.where(columns < length[:, None], names, np.uint8(0))
        wide = int((total - length).max(initial=2)) - 1
        at = length[:, None] + 1 + np.arange(wide)
        ext = np.where(at < width, names[np.arange(count)[:, None], np.minimum(at, width - 1)], np.uint8(0))
    ext[(ext >= 65) & (ext <= 90)] |= 32
    return Keys(key, length, ext, valid)


def _same_dot(begin: int, dots: NDArray[np.bool_], last: bool) -> int | None:
    """The column of every name's dot between key and extension, when it is one for all; base names begin at `begin`."""
    same = _same_columns(dots)
    places = np.flatnonzero(np.any(dots[:, begin:], axis=0)) if same is None else [column - begin for column in same if column >= begin]
    if not len(places):
        return None
    dot = begin + int(places[-1 if last else 0])
    return dot if dot > begin and dots[:, dot].all() else None


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


_ALL = 2**64 - 1


@cache
def _weights(words: int) -> tuple[int, ...]:
    """What each word of a key is multiplied by."""
    weights = [1]
    for _ in range(words):
        weights.append((weights[-1] * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & _ALL)
    return tuple(weights[1:])


def hash_one(key: bytes) -> int:
    """`hashes` of one key."""
    total = at = 0
    for weight in _weights(len(key) + 7 >> 3):
        word = int.from_bytes(key[at : at + 8], "little")
        mixed = ((word ^ (word >> 29)) * weight) & _ALL
        total += mixed ^ (mixed >> 32)
        at += 8
    return (total * 0xBF58476D1CE4E5B9) & _ALL


def hashes(key: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """A 64-bit hash per row (uint8 [rows, width], NUL-padded); the same key in a wider array hashes the same."""
    words = wide(key)
    total = np.zeros(len(key), np.uint64)
    for column, weight in enumerate(_weights(words.shape[1])):
        mixed = (words[:, column] ^ (words[:, column] >> np.uint64(29))) * np.uint64(weight)
        total += mixed ^ (mixed >> np.uint64(32))
    return total * np.uint64(0xBF58476D1CE4E5B9)
