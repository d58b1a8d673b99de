"""Arrow types and columns of several blocks or shards brought to one: numbers are promoted, what does not fit becomes text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def plain(kind: pa.DataType) -> pa.DataType:
    """The type with dates as text: what was a text in JSON stays that text."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, plain(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(plain(kind.value_type))
    return pa.string() if pa.types.is_temporal(kind) else kind


def leaves(kind: pa.DataType, limit: int) -> int:
    """How many columns a type is of; more than `limit` also where names cannot be told apart in SQL (`a` and `A`, an empty name)."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        names = [each.name.lower() for each in kind]
        if len(set(names)) < len(names) or "" in names:
            return limit + 1
        return sum(leaves(each.type, limit) for each in kind)
    if pa.types.is_list(kind):
        return leaves(kind.value_type, limit)
    return 1


def merged(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type both fit into.

    >>> import pyarrow as pa
    >>> str(merged(pa.int64(), pa.float64())), str(merged(pa.int64(), pa.string()))
    ('double', 'string')
    """
    import pyarrow as pa

    kinds = pa.types
    if one == other or kinds.is_null(other):
        return one
    if kinds.is_null(one):
        return other
    if kinds.is_struct(one) and kinds.is_struct(other):
        mine, others = {each.name: each.type for each in one}, {each.name: each.type for each in other}
        if {name.lower() for name in mine} & {name.lower() for name in others} != {name.lower() for name in mine.keys() & others.keys()}:
            return pa.string()  # `a` here and `A` there
        names = [*mine, *(name for name in others if name not in mine)]
        return pa.struct([pa.field(name, merged(mine.get(name, pa.null()), others.get(name, pa.null()))) for name in names])
    if kinds.is_list(one) and kinds.is_list(other):
        return pa.list_(merged(one.value_type, other.value_type))
    if _is_number(one) and _is_number(other):
        return pa.float64() if kinds.is_floating(one) or kinds.is_floating(other) else pa.int64()
    return pa.string()


def conflict(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether two types have only text in common, somewhere inside."""
    import pyarrow as pa

    both = merged(one, other)
    return _texts(both) > max(_texts(one), _texts(other)) or (pa.types.is_string(both) and one != other and not _has_null(one, other))


def _has_null(*types: pa.DataType) -> bool:
    import pyarrow as pa

    return any(pa.types.is_null(each) for each in types)


def _texts(kind: pa.DataType) -> int:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return sum(_texts(each.type) for each in kind)
    if pa.types.is_list(kind):
        return _texts(kind.value_type)
    return int(pa.types.is_string(kind))


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def fitted(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column as `kind`, which `merged` gave for it."""
    import pyarrow as pa

    if column.type == kind:
        return column
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), kind)
    if pa.types.is_struct(column.type) and pa.types.is_struct(kind):
        mine = {each.name for each in column.type}
        fields = [fitted(column.field(each.name), each.type) if each.name in mine else pa.nulls(len(column), each.type) for each in kind]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=column.is_null()) if len(fields) else pa.nulls(len(column), kind)
    if pa.types.is_list(column.type) and pa.types.is_list(kind):
        values = fitted(column.flatten(), kind.value_type)
        counts = pa.compute.fill_null(pa.compute.list_value_length(column), 0)
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), pa.compute.cumulative_sum(counts).cast(pa.int32())])
        return pa.ListArray.from_arrays(offsets, values, type=kind, mask=column.is_null())
    if pa.types.is_string(kind) and (pa.types.is_struct(column.type) or pa.types.is_list(column.type)):
        return _as_json(column)
    return column.cast(kind)


def _as_json(column: pa.Array) -> pa.Array:
    """Nested values as JSON text."""
    import duckdb
    import pyarrow as pa

    with duckdb.connect(config={"threads": 1}) as base:
        base.register("raw", pa.table({"x": column}))
        text = base.sql("SELECT CASE WHEN x IS NULL THEN NULL ELSE to_json(x)::VARCHAR END AS x FROM raw").to_arrow_table()
    return pa.concat_arrays(text.column(0).cast(pa.string()).chunks)


def together(columns: list[pa.Array]) -> pa.Array:
    """Columns of several blocks as one, of the type they all fit into."""
    import pyarrow as pa

    kind = columns[0].type
    for each in columns[1:]:
        kind = merged(kind, each.type)
    return pa.concat_arrays([fitted(each, kind) for each in columns])
