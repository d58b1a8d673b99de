"""What lies where in JSON, as DuckDB's `json_group_structure` says it: found, merged over shards, and written as a type.

A structure is the name of a kind, a list of one structure, or a dict of them. DuckDB has one word for a path of two kinds and for one
that holds `{}` alone (`JSON`), and none for integers of more than 64 bits: both are told apart here, so that structures of shards merge
into the one that DuckDB finds over all of them. So are integers that no double holds (`LARGE`), and fractions beside them (`INEXACT`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from tarviz.table.packages import pa, pc
from tarviz.table.sql import quoted_name

Kind: TypeAlias = Literal["NULL", "EMPTY", "BOOLEAN", "BIGINT", "LARGE", "HUGEINT", "DIGITS", "DOUBLE", "INEXACT", "VARCHAR", "JSON"]
Structure: TypeAlias = Any  # Kind | list[Structure] | dict[str, Structure]; JSON-ready

MAX_PATHS = 1000  # of one field: with more of them it stays JSON
MAX_LEVELS = 32  # what lies deeper stays JSON: Parquet's readers give up at 100
_NUMBERS = ("BIGINT", "LARGE", "HUGEINT", "DIGITS", "DOUBLE", "INEXACT")  # each holds those before it
_EXACT = 2**53  # integers below this are themselves as DOUBLE
# A path without a value says nothing of its type: JSON fits any.
_SQL = {"NULL": "JSON", "EMPTY": "JSON", "LARGE": "BIGINT", "DIGITS": "VARCHAR", "INEXACT": "DOUBLE"}
_DIGITS = 38  # decimal digits that fit a HUGEINT, and the decimal that Arrow has for it


def merge(one: Structure, other: Structure) -> Structure:
    """The structure of the values of both.

    >>> merge({"a": "BIGINT"}, {"a": "DOUBLE", "b": ["VARCHAR"]})
    {'a': 'DOUBLE', 'b': ['VARCHAR']}
    >>> merge("EMPTY", {"a": "NULL"}), merge("BIGINT", "VARCHAR"), merge("LARGE", "HUGEINT"), merge("LARGE", "DOUBLE")
    ({'a': 'NULL'}, 'JSON', 'HUGEINT', 'INEXACT')
    """
    if one == other or other == "NULL":
        return one
    if one == "NULL":
        return other
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: merge(one.get(name, "NULL"), other.get(name, "NULL")) for name in one | other}
    if isinstance(one, list) and isinstance(other, list):
        return [merge(one[0], other[0])]
    if one in _NUMBERS and other in _NUMBERS:
        small, large = sorted((one, other), key=_NUMBERS.index)
        return "INEXACT" if large == "DOUBLE" and small != "BIGINT" else large
    if "EMPTY" in (one, other) and isinstance(found := other if one == "EMPTY" else one, dict):
        return found
    return "JSON"


def fit_columns(structure: Structure) -> Structure:
    """The structure with JSON in place of what no column can be: too many paths or levels, names that SQL cannot tell apart."""
    return "JSON" if _paths(structure) > MAX_PATHS else _fit_columns(structure, MAX_LEVELS)


def _fit_columns(structure: Structure, levels: int) -> Structure:
    if isinstance(structure, str):
        return structure
    if not levels:
        return "JSON"
    if isinstance(structure, list):
        return [_fit_columns(structure[0], levels - 1)]
    return {name: _fit_columns(each, levels - 1) for name, each in structure.items()} if _distinct(structure) else "JSON"


def _distinct(names: dict[str, Structure]) -> bool:
    """Whether these can be the names of a struct: `a` and `A` are one there, and "" is none."""
    return len({name.lower() for name in names}) == len(names) and "" not in names and not any("\0" in name for name in names)


def _paths(structure: Structure) -> int:
    if isinstance(structure, dict):
        return sum(map(_paths, structure.values()))
    return _paths(structure[0]) if isinstance(structure, list) else 1


def notes(name: str, structure: Structure) -> Iterator[str]:
    """What there is to say of a field's structure: paths that are JSON, integers that are no BIGINT."""
    if (count := _paths(structure)) > MAX_PATHS:
        yield f"{name} has {count:,} paths, more than {MAX_PATHS:,}: it is JSON"
    else:
        yield from _notes(name, structure, MAX_LEVELS)


def _notes(name: str, structure: Structure, levels: int) -> Iterator[str]:
    if structure == "JSON":
        yield f"{name} has values of two kinds: it is JSON"
    elif structure == "HUGEINT":
        yield f"{name} has integers of more than 64 bits: it is HUGEINT"
    elif structure == "DIGITS":
        yield f"{name} has integers of more than {_DIGITS} digits: it is text"
    elif structure == "INEXACT":
        yield f"{name} has integers of 2^53 or more beside fractions: it is DOUBLE, which rounds them"
    elif isinstance(structure, str):
        return
    elif not levels:
        yield f"{name} is nested in more than {MAX_LEVELS} levels: it is JSON"
    elif isinstance(structure, list):
        yield from _notes(f"{name}[]", structure[0], levels - 1)
    elif not _distinct(structure):
        yield f"{name} has names that differ in case alone, or none: it is JSON"
    else:
        for inner, each in structure.items():
            yield from _notes(f"{name}.{inner}", each, levels - 1)


def sql_type(structure: Structure) -> str:
    """The type of a column of this structure, which `typed` gave.

    >>> sql_type({"a b": ["BIGINT"], "c": "NULL"})
    'STRUCT("a b" BIGINT[], "c" JSON)'
    """
    if isinstance(structure, dict):
        return f"STRUCT({', '.join(f'{quoted_name(name)} {sql_type(each)}' for name, each in structure.items())})"
    return f"{sql_type(structure[0])}[]" if isinstance(structure, list) else str(_SQL.get(structure, structure))


def arrow_type(structure: Structure, *, null: pa.DataType | None = None) -> pa.DataType:
    """The Arrow type of a column of this structure, as which Parquet keeps it: HUGEINT is a decimal of 38 digits, a path without a
    value JSON (or `null`)."""
    if isinstance(structure, dict):
        return pa.struct([pa.field(name, arrow_type(each, null=null)) for name, each in structure.items()])
    if isinstance(structure, list):
        return pa.list_(arrow_type(structure[0], null=null))
    if structure == "NULL" and null is not None:
        return null
    simple = {"BOOLEAN": pa.bool_(), "BIGINT": pa.int64(), "HUGEINT": pa.decimal128(_DIGITS, 0), "DOUBLE": pa.float64()}
    return simple.get(kind := str(_SQL.get(structure, structure))) or (pa.string() if kind == "VARCHAR" else pa.json_())


def of_arrow(column: pa.Array) -> Structure:
    """The structure of JSON that pyarrow reads as this column; of fractions as large as integers that may be there, INEXACT."""
    kind, kinds = column.type, pa.types
    if kinds.is_struct(kind):
        return {each.name: of_arrow(column.field(each.name)) for each in kind} or "EMPTY"
    if kinds.is_list(kind):
        return [of_arrow(column.values)]
    if kinds.is_string(kind) or kinds.is_temporal(kind):  # dates are texts
        return "VARCHAR"
    found = {"null": "NULL", "bool": "BOOLEAN", "int64": "BIGINT", "double": "DOUBLE"}[str(kind)]
    if found in _NUMBERS and any(abs(edge) >= _EXACT for edge in pc.min_max(column).as_py().values() if edge is not None):
        return "LARGE" if found == "BIGINT" else "INEXACT"
    return found


def castable(own: Structure, wanted: Structure) -> bool:
    """Whether SQL's CAST brings a column of one structure to that of all shards; else its documents have to be read again."""
    if own == wanted or own == "NULL":
        return True
    if isinstance(own, dict) and isinstance(wanted, dict):
        return all(castable(each, wanted[name]) for name, each in own.items())
    if isinstance(own, list) and isinstance(wanted, list):
        return castable(own[0], wanted[0])
    if own == "DOUBLE":
        return bool(wanted == "INEXACT")
    return own in ("BIGINT", "LARGE") and wanted in _NUMBERS  # a HUGEINT is kept as a decimal, and rounded another way as DOUBLE


def has(structure: Structure, *kinds: Kind) -> bool:
    """Whether one of these kinds lies anywhere in a structure."""
    if isinstance(structure, dict):
        return any(has(each, *kinds) for each in structure.values())
    return has(structure[0], *kinds) if isinstance(structure, list) else structure in kinds


def integer(value: int) -> Kind:
    """The kind of an integer.

    >>> integer(2**53 - 1), integer(2**53), integer(2**63), integer(-(10**40))
    ('BIGINT', 'LARGE', 'HUGEINT', 'DIGITS')
    """
    if abs(value) < _EXACT:
        return "BIGINT"
    if -(2**63) <= value < 2**63:
        return "LARGE"
    return "HUGEINT" if abs(value) < 10**_DIGITS else "DIGITS"
