"""`ten`, WebDataset's format of arrays: chunks of 64 bytes.

An array is two chunks: a header of int64 (type, name, number of dimensions, dimensions) and the data. A chunk is the
magic `~TenBin~`, its length in bytes as int64, and the bytes, filled up to a multiple of 64. Source: webdataset/tenbin.py.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import DataError, UsageError
from tarviz.model.types import Buffer

_MAGIC = b"~TenBin~"
_TYPES = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
_SHORT = {np.dtype(short).name: short for short in _TYPES}


def _pad(size: int) -> int:
    return (size + 63) // 64 * 64


def _word(text: str) -> bytes:
    return text.encode("ascii").ljust(8, b"\0")


def encode_header(array: NDArray[Any], info: str = "") -> bytes:
    """Type, name (8 letters at most) and shape of an array."""
    if array.dtype.name not in _SHORT or array.ndim >= 10 or len(info) > 8:
        raise UsageError(f"ten holds arrays of numbers with less than 10 dimensions, not {array.dtype}{list(array.shape)}.")
    return _word(_SHORT[array.dtype.name]) + _word(info) + np.array([array.ndim, *array.shape], "<i8").tobytes()


def encode_buffer(arrays: Sequence[NDArray[Any]], infos: Sequence[str] | None = None) -> bytes:
    """Arrays as the bytes of a `.ten` field.

    >>> decode_buffer(encode_buffer([np.arange(3, dtype="int16")]))
    [array([0, 1, 2], dtype=int16)]
    """
    if not isinstance(arrays, list | tuple):
        raise UsageError(f"ten holds a list of arrays, not {type(arrays).__name__}.")
    parts: list[bytes] = []
    for number, array in enumerate(arrays):
        for chunk in (encode_header(array, infos[number % len(infos)] if infos else ""), np.ascontiguousarray(array).tobytes()):
            parts += [_MAGIC, struct.pack("<q", len(chunk)), chunk, bytes(_pad(len(chunk)) - len(chunk))]
    return b"".join(parts)


def decode_buffer(buf: Buffer, infos: bool = False) -> Any:
    """The arrays of a `.ten` field; with `infos` also their names. `DataError` where it is damaged."""
    chunks = list(_chunks(memoryview(buf).cast("B")))
    if len(chunks) % 2:
        raise DataError("the ten field ends after a header.", code="E_DECODE")
    arrays, names = [], []
    for header, data in zip(chunks[::2], chunks[1::2], strict=True):
        numbers = np.frombuffer(header[16:], "<i8").tolist() if len(header) % 8 == 0 else []
        short = bytes(header[:8]).rstrip(b"\0").decode("ascii", "replace")
        shape = numbers[1 : 1 + numbers[0]] if numbers and 0 <= numbers[0] < 10 else None
        if short not in _TYPES or shape is None or len(shape) != numbers[0] or min(shape, default=0) < 0:
            raise DataError("a header of the ten field cannot be read.", code="E_DECODE")
        if math.prod(shape) * np.dtype(short).itemsize != len(data):
            raise DataError(f"an array {short}{shape} of the ten field has {len(data)} bytes.", code="E_DECODE")
        arrays.append(np.frombuffer(bytes(data), np.dtype(short).newbyteorder("<")).reshape(shape))
        names.append(bytes(header[8:16]).rstrip(b"\0").decode("ascii", "replace"))
    return (arrays, names) if infos else arrays


def _chunks(data: memoryview) -> Iterator[memoryview]:
    at = 0
    while at < len(data):
        if bytes(data[at : at + 8]) != _MAGIC or at + 16 > len(data):
            raise DataError(f"no chunk of the ten field begins at byte {at}.", code="E_DECODE")
        (size,) = struct.unpack_from("<q", data, at + 8)
        if not 0 <= size <= len(data) - at - 16:
            raise DataError(f"a chunk of the ten field claims {size} bytes.", code="E_DECODE")
        yield data[at + 16 : at + 16 + size]
        at += 16 + _pad(size)
