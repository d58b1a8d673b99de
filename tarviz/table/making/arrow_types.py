"""Columns of several chunks or shards brought to one type: numbers are promoted, what does not fit becomes text."""

from __future__ import annotations

from functools import reduce

from tarviz.table.packages import pa


def merge(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type both fit into.

    >>> import pyarrow as pa
    >>> str(merge(pa.int64(), pa.float64())), str(merge(pa.int64(), pa.string()))
    ('double', 'string')
    """
    kinds = pa.types
    if one == other or kinds.is_null(other):
        return one
    if kinds.is_null(one):
        return other
    numbers = all(kinds.is_integer(each) or kinds.is_floating(each) for each in (one, other))
    return pa.float64() if numbers else pa.string()


def together(columns: list[pa.Array]) -> pa.Array:
    """Columns of several chunks as one, of the type they all fit into."""
    kind = reduce(merge, (each.type for each in columns))
    return pa.concat_arrays([each if each.type == kind else each.cast(kind) for each in columns])
