"""What tensors hold of Python values: the feature of numbers, texts and lists of these, and their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import SchemaError
from tarviz.model.types import Feature

TEXT_END = b"\xff"  # after each text of a list: a byte that UTF-8 never has


@dataclass(frozen=True, slots=True)
class Listed(Feature):
    """Lists, in lists or not, whose lengths vary: `shape` has None there. The axes after the last None are dense."""

    @property
    def ragged(self) -> int:
        """How many axes have lengths of their own in each record."""
        return max(at for at, size in enumerate(self.shape) if size is None) + 1

    @property
    def inner(self) -> tuple[int, ...]:
        """The sizes of the axes after those."""
        return tuple(size for size in self.shape[self.ragged :] if size is not None)


def feature(dtype: str, shape: Sequence[int | None]) -> Feature:
    """A feature of lists: `Listed` where a length varies."""
    return Listed(dtype, tuple(shape)) if None in shape else Feature(dtype, tuple(shape))


def observe(values: Iterable[Any]) -> Feature | None:
    """The feature that fits values of one field, one from each of several records; None where nothing does.

    Whole numbers and others together are float64. A length that is the same in two records or more is taken for a size; null (None)
    says nothing.

    >>> print(observe([1, 2.5]), observe([[[1, 2], [3, 4]], [[5, 6]]]))
    float64 int64[?, 2]
    """
    kinds: set[str] = set()
    depths: set[int] = set()
    sizes: list[set[int]] = []
    count = 0
    for value in values:
        if value is not None:
            count += 1
            _look(value, 0, kinds, depths, sizes)
    dtype = _dtype(kinds)
    if not count or dtype is None or depths - {len(sizes)}:
        return None
    return feature(dtype, [next(iter(size)) if len(size) == 1 and count > 1 else None for size in sizes])


def _look(value: Any, depth: int, kinds: set[str], depths: set[int], sizes: list[set[int]]) -> None:
    if not isinstance(value, list | tuple):
        kinds.add(_kind(value))
        depths.add(depth)
        return
    if len(sizes) == depth:
        sizes.append(set())
    sizes[depth].add(len(value))
    for part in value:
        _look(part, depth + 1, kinds, depths, sizes)


def _kind(value: Any) -> str:
    if isinstance(value, np.generic):
        return str(value.dtype)
    if type(value) is int:
        return "int64" if -(2**63) <= value < 2**63 else "uint64" if 0 < value < 2**64 else "object"
    return {bool: "bool", float: "float64", str: "str", bytes: "bytes"}.get(type(value), "object")


def _dtype(kinds: set[str]) -> str | None:
    if not kinds:
        return "float64"  # lists without anything in them
    if len(kinds) == 1:
        (kind,) = kinds
        return None if kind == "object" else kind
    if kinds & {"object", "str", "bytes", "bool"}:
        return None
    return "uint64" if kinds == {"int64", "uint64"} else str(np.result_type(*kinds))


def as_array(value: Any, dtype: str) -> NDArray[Any]:
    """A number or a list of numbers as an array of `dtype`. `SchemaError` where that would change a value."""
    try:
        array = exact = np.asarray(value)
        if array.dtype.kind == "f" and dtype == "uint64":
            exact = np.array(value, object)  # NumPy rounds whole numbers where some are beyond int64
        with np.errstate(invalid="ignore"):
            found = exact.astype(dtype)
    except (ValueError, TypeError, OverflowError):
        raise SchemaError(f"is {_words(value)}") from None
    if array.dtype.kind not in "biuf" or (array.dtype.kind == "b") != (np.dtype(dtype).kind == "b"):
        if array.size:
            raise SchemaError(f"is {_words(value)}")
    elif np.dtype(dtype).kind in "iu" and not np.array_equal(found, exact):
        raise SchemaError(f"is {_words(value)}")
    return found


def pack(value: Any, listed: Listed) -> list[bytes]:
    """A value of lists as bytes: the numbers or texts in a row, then the lengths of each ragged axis, int64."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return _array(value, listed)
    rows: list[Any] = [value]
    lengths: list[bytes] = []
    for _ in range(listed.ragged):
        if not all(isinstance(row, list | tuple | np.ndarray) for row in rows):
            raise SchemaError(f"is {_words(value)}")
        lengths.append(np.array([len(row) for row in rows], np.int64).tobytes())
        rows = [part for row in rows for part in row]
    if listed.dtype in ("str", "bytes"):
        if listed.inner or not all(isinstance(part, str | bytes) for part in rows):
            raise SchemaError(f"is {_words(value)}")
        return [b"".join(_text(part) + TEXT_END for part in rows), *lengths]
    flat = as_array(rows, listed.dtype)
    if flat.shape[1:] != listed.inner and rows:
        raise SchemaError(f"is {_words(value)}")
    return [flat.tobytes(), *lengths]


def _array(value: NDArray[Any], listed: Listed) -> list[bytes]:
    shape, sizes = value.shape, listed.shape
    if value.dtype != listed.dtype or len(shape) != len(sizes) or any(n not in (None, m) for n, m in zip(sizes, shape, strict=True)):
        raise SchemaError(f"is {Feature(str(value.dtype), shape)}")
    rows = (int(np.prod(shape[:axis], dtype=np.int64)) for axis in range(listed.ragged))
    return [value.tobytes(), *(np.full(count, shape[axis], np.int64).tobytes() for axis, count in enumerate(rows))]


def _text(part: str | bytes) -> bytes:
    data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
    if TEXT_END in data:
        raise SchemaError("is a list of bytes that are not text")
    return data


def _words(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list | tuple):
        found = observe([value])
        return f"{found}, {len(value)} of them" if found is not None else "a list of values of different kinds"
    return str(observe([value]) or type(value).__name__)
