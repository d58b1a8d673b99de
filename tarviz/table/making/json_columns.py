"""JSON payloads as a column: documents read as text while a shard goes by, then typed as one by DuckDB, from what they all hold.

The structure is DuckDB's (`json_group_structure`), and so is the reading (`read_json`). What DuckDB lets pass and should not is looked
for in Python, in those documents alone that may have it: names given twice, numbers beyond what a double holds. Documents of which
pyarrow makes the same are read by it, three times as fast.
"""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.types import Buffer
from tarviz.ops.values.payloads import gunzip
from tarviz.table.making.json_structure import Structure, arrow_type, fit_columns, has, integer, merge, of_arrow, sql_type
from tarviz.table.packages import duckdb, pa, pc

MAX_DEPTH = 128  # brackets within brackets
_MOST = 1 << 30  # bytes of documents that pyarrow reads as one block
_ROWS = 8192  # documents that are written in one piece
_ONE_LINE = bytes.maketrans(b"\n\r", b"  ")
_OPEN = np.zeros(256, np.int8)
_OPEN[[0x5B, 0x7B]], _OPEN[[0x5D, 0x7D]] = 1, -1
_STRING = r'"(?:[^"\\]|\\.)*"'
_NUMBERS = r"(^|[:\[,\s])-?([0-9]{%d}|[0-9]+(\.[0-9]*)?[eE][+]?[0-9]{3})"
_DOUBTFUL = _NUMBERS % 16  # an integer that may not fit a double, a number that may be infinite
# What pyarrow reads otherwise than DuckDB: integers of more than 64 bits, and a null in a list before its first value ([null, 1] becomes
# [1, 0]).
_ODD = _NUMBERS % 19 + r"|[\[,]\s*null"


@dataclass(frozen=True, slots=True)
class TypedJson:
    """Documents as a typed column, null where they are `bad`; so are `texts`, the documents. `bad` is null where there is none."""

    column: pa.Array
    structure: Structure
    texts: pa.Array
    bad: pa.Array


@cache
def _database(_process: int) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def scratch() -> duckdb.DuckDBPyConnection:
    """A connection to the one DuckDB of one thread that this process has to read documents: to start one takes longer than to read a
    thousand of them. What is registered there goes when it is closed."""
    return _database(os.getpid()).cursor()


def payload_column(ext: str, payloads: list[Buffer]) -> pa.Array:
    """The payloads of a field as they are typed later: bytes, unpacked; empty where they cannot be."""
    if ext.rpartition(".")[2] != "json":
        payloads = [unpack(ext, payload) for payload in payloads]
    return binary(payloads).cast(pa.large_binary())


def unpack(ext: str, payload: Buffer) -> bytes:
    """A payload unpacked (`json.gz`), the lines of `jsonl` as a list; empty where it cannot be, or is too large."""
    try:
        data = gunzip(payload) if ext.endswith(".gz") else bytes(payload)
        if ext.removesuffix(".gz").rpartition(".")[2] in ("jsonl", "ndjson"):
            data = b"[" + b",".join(line for line in _utf8(data).splitlines() if line.strip()) + b"]"
        return data
    except ValueError:  # a `DataError` is one, too
        return b""


def typed_json(payloads: pa.Array) -> TypedJson:
    """Payloads, null where a record has none, as a column of the type that all documents fit.

    A byte order mark is dropped, UTF-16 is read. Bad is what is no JSON, nested deeper than `MAX_DEPTH`, holds a number beyond what a
    double does, or a name twice in an object that is a struct.
    """
    with scratch() as base:
        texts = _documents(base, payloads)
        if (quick := _quickly(texts)) is not None:
            return TypedJson(quick[0], quick[1], texts, _bad(payloads, texts))
        structure, doubtful = _structure_of(base, texts, doubtful_alone=True)
        with suppress(duckdb.Error):  # a name given twice, as a rule
            column = read_as(base, texts, structure)
            structure = _with_empty(column, structure, fit_columns(structure))
            if not doubtful and not has(structure, "JSON"):  # where nothing is typed, DuckDB does not mind names given twice
                return TypedJson(column, structure, texts, _bad(payloads, texts))
        structure, bad = _structure_of(base, texts, doubtful_alone=False)
        texts = _without(texts, bad)
        column = read_as(base, texts, structure)
    return TypedJson(column, _with_empty(column, structure, fit_columns(structure)), texts, _bad(payloads, texts))


def _bad(payloads: pa.Array, texts: pa.Array) -> pa.Array:
    """Whether a payload gave no document; null where there is none."""
    return pc.if_else(payloads.is_valid(), texts.is_null(), pa.scalar(None, pa.bool_()))


def _documents(base: duckdb.DuckDBPyConnection, payloads: pa.Array) -> pa.Array:
    """The payloads that are JSON, as texts, null for the others."""
    try:
        texts = payloads.cast(pa.large_string())
    except pa.ArrowInvalid:
        texts = pa.array([_text(each) for each in payloads.to_pylist()], pa.large_string())
    texts = _without(texts, [at for at in _perhaps_deep(texts) if _depth(texts[at].as_py() or "") > MAX_DEPTH])
    valid = _valid(base, texts)
    wrong = np.flatnonzero(~valid & np.asarray(payloads.is_valid())).tolist()
    others = {at: text for at in wrong if (text := _other_encoding(payloads[at].as_py())) is not None and _depth(text) <= MAX_DEPTH}
    if others:
        texts = pc.replace_with_mask(texts, pa.array(np.isin(np.arange(len(texts)), list(others))), pa.array(others.values(), texts.type))
        valid = _valid(base, texts)
    return texts if valid.all() else pc.if_else(pa.array(valid), texts, pa.scalar(None, texts.type))


def _valid(base: duckdb.DuckDBPyConnection, texts: pa.Array) -> NDArray[np.bool_]:
    found = base.from_arrow(pa.table({"x": texts})).project("coalesce(json_valid(x), false)").to_arrow_table().column(0)
    return np.asarray(found.to_numpy(), bool)


def read_as(base: duckdb.DuckDBPyConnection, texts: pa.Array, structure: Structure) -> pa.Array:
    """Documents read by DuckDB as a column of a structure. `duckdb.Error` where one does not fit."""
    kind = fit_columns(structure)
    with tempfile.NamedTemporaryFile(prefix="tarviz-", suffix=".json") as file:  # DuckDB minds names given twice in files alone
        file.writelines(_lines(texts, b"[", b"]"))
        file.flush()
        longest = pc.max(pc.binary_length(texts)).as_py() or 0
        relation = base.sql(  # in lists, for as columns of an object DuckDB reads 127 levels
            "SELECT json FROM read_json($file, format='newline_delimited', records=false, maximum_object_size=$most, columns={'json': '"
            + sql_type([kind]).replace("'", "''")
            + "'})",
            params={"file": file.name, "most": max(longest + 16, 1 << 24)},
        )
        column = relation.to_arrow_table().column(0)
    return pa.concat_arrays([chunk.flatten().cast(arrow_type(kind)) for chunk in column.chunks] or [pa.nulls(0, arrow_type(kind))])


def _lines(texts: pa.Array, before: bytes = b'{"j":', behind: bytes = b"}") -> Iterator[bytes]:
    """Documents as lines, each in a list or an object, so that any value can stand there. Line ends inside documents are white space."""
    for first in range(0, len(texts), _ROWS):
        part = texts.slice(first, _ROWS).fill_null("null").cast(pa.string())
        whole = pa.ListArray.from_arrays(pa.array([0, len(part)], pa.int32()), part)
        data = pc.binary_join(whole, "\0")[0].as_buffer().to_pybytes()
        if b"\n" in data or b"\r" in data:
            data = data.translate(_ONE_LINE)
        yield from (before, data.replace(b"\0", behind + b"\n" + before), behind + b"\n")


def _quickly(texts: pa.Array) -> tuple[pa.Array, Structure] | None:
    """The column and the structure of documents that pyarrow reads as DuckDB does; None where it might not."""
    parts = [texts.slice(first, _ROWS) for first in range(0, len(texts), _ROWS)]
    read: list[pa.ChunkedArray] = []
    structure: Structure = "NULL"
    try:
        for part in parts:  # a few at a time: a whole shard's would not stay in the processor's caches
            if part.nbytes > _MOST or pc.any(pc.match_substring_regex(part, _ODD)).as_py():
                return None
            read.append(_by_pyarrow(part))
            structure = merge(structure, of_arrow(read[-1].chunk(0)))
        if fit_columns(structure) != structure or has(structure, "EMPTY", "INEXACT"):
            return None
        kind = arrow_type(structure, null=pa.null())
        read = [column if column.type == kind else _by_pyarrow(part, structure) for part, column in zip(parts, read, strict=True)]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # kinds that change, names given twice
        return None
    whole = [chunk.cast(arrow_type(structure)) for column in read for chunk in column.chunks]
    return (pa.concat_arrays(whole), structure) if sum(map(len, whole)) == len(texts) else None


def _by_pyarrow(texts: pa.Array, structure: Structure | None = None) -> pa.ChunkedArray:
    """Documents read by pyarrow, as a column of a structure or of the one that they have."""
    import pyarrow.json as reader

    data = b"".join(_lines(texts))
    schema = None if structure is None else pa.schema([("j", arrow_type(structure, null=pa.null()))])
    options = reader.ReadOptions(use_threads=False, block_size=len(data) + 1)
    return reader.read_json(pa.BufferReader(data), options, reader.ParseOptions(explicit_schema=schema)).column(0)


def _structure_of(base: duckdb.DuckDBPyConnection, texts: pa.Array, *, doubtful_alone: bool) -> tuple[Structure, list[int]]:
    """The structure of documents, and those that are bad among the doubtful ones, or among all."""
    bad: list[int] = []
    integers: list[Structure] = []
    changed: dict[int, str] = {}
    base.register("given", pa.table({"x": texts, "row": pa.array(np.arange(len(texts)))}))
    which = f"regexp_matches(x, '{_DOUBTFUL}')" if doubtful_alone else "x IS NOT NULL"
    for at, text in base.execute(f'SELECT "row", json(x) FROM given WHERE {which} ORDER BY "row"').fetchall():
        seen = _Document()
        value = json.loads(text, object_pairs_hook=seen.pairs, parse_int=seen.integer, parse_float=seen.number)
        if seen.infinite or (seen.twice and not _reads_alone(base, text)):
            bad.append(at)
        elif seen.large:
            integers.append(_integers(value))
            changed[at] = json.dumps(json.loads(text, parse_int=_small))
    if bad or changed:
        small = np.isin(np.arange(len(texts)), list(changed))
        texts = pc.replace_with_mask(_without(texts, bad), pa.array(small), pa.array(changed.values(), texts.type))
        base.register("given", pa.table({"x": texts}))
    ((text,),) = base.execute("SELECT json_group_structure(x::JSON) FROM given WHERE x IS NOT NULL").fetchall()
    return reduce(merge, integers, _own(json.loads(text)) if text is not None else "NULL"), bad


def _own(structure: Any) -> Structure:
    """DuckDB's structure with integers of one kind; which they are is said by those that are too large for it."""
    if isinstance(structure, dict):
        return {name: _own(each) for name, each in structure.items()}
    if isinstance(structure, list):
        return [_own(structure[0])]
    return "BIGINT" if structure in ("UBIGINT", "HUGEINT") else structure


def _reads_alone(base: duckdb.DuckDBPyConnection, text: str) -> bool:
    """Whether DuckDB takes a document that has a name twice: it does where the object is not typed."""
    ((structure,),) = base.execute("SELECT json_structure(?::JSON)", [text]).fetchall()
    try:
        read_as(base, pa.array([text], pa.large_string()), _own(json.loads(structure)))
    except duckdb.Error:
        return False
    return True


class _Document:
    """What is met while a document is read."""

    def __init__(self) -> None:
        self.infinite = self.twice = self.large = False

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        self.twice |= len(found) < len(pairs)
        return found

    def integer(self, digits: str) -> int:
        value = int(digits[:400])
        self.large |= integer(value) != "BIGINT"
        self.infinite |= abs(value) >= 10**309
        return value

    def number(self, digits: str) -> float:
        value = float(digits)
        self.infinite |= math.isinf(value)
        return value


def _integers(value: Any) -> Structure:
    """The structure of a document's integers that are no BIGINT; nothing is said of the rest."""
    if isinstance(value, dict):
        return {name: found for name, each in value.items() if (found := _integers(each)) != "NULL"} or "NULL"
    if isinstance(value, list):
        inner = reduce(merge, map(_integers, value), "NULL")
        return inner if inner == "NULL" else [inner]
    return integer(value) if isinstance(value, int) and not isinstance(value, bool) and integer(value) != "BIGINT" else "NULL"


def _small(digits: str) -> int:
    """An integer, 0 for one that is no BIGINT: DuckDB's structure calls it a fraction."""
    value = int(digits[:400])
    return value if integer(value) == "BIGINT" else 0


def _with_empty(column: pa.Array, structure: Structure, kind: Structure) -> Structure:
    """The structure with EMPTY where DuckDB says JSON of nothing but `{}`, seen in the column that was read."""
    if structure == "JSON":
        values = column.storage
        return "EMPTY" if pc.all(pc.equal(values, "{}"), min_count=0).as_py() else structure
    if isinstance(structure, dict) and isinstance(kind, dict):
        return {name: _with_empty(column.field(name), each, kind[name]) for name, each in structure.items()}
    if isinstance(structure, list) and isinstance(kind, list):
        return [_with_empty(column.flatten(), structure[0], kind[0])]
    return structure


def _without(texts: pa.Array, rows: list[int]) -> pa.Array:
    keep = np.ones(len(texts), bool)
    keep[rows] = False
    return pc.if_else(pa.array(keep), texts, pa.scalar(None, texts.type)) if rows else texts


def _perhaps_deep(texts: pa.Array) -> list[int]:
    """The documents of so many brackets that they may be nested too deep."""
    found: list[int] = []
    for first in range(0, len(texts), _ROWS):
        part = texts.slice(first, _ROWS)
        _, ends, data = part.buffers()
        offsets = np.frombuffer(ends, np.int64)[part.offset : part.offset + len(part) + 1]
        if offsets[-1] > offsets[0]:
            opening = np.flatnonzero((np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] | 0x20) == 0x7B)  # [ and {
            counts = np.diff(np.searchsorted(opening, offsets - offsets[0]))
            found += (first + np.flatnonzero(counts > MAX_DEPTH)).tolist()
    return found


def _depth(text: str) -> int:
    """Brackets within brackets, those in strings left out."""
    steps = _OPEN[np.frombuffer(re.sub(_STRING, "", text, flags=re.DOTALL).encode("utf-8", "replace"), np.uint8)]
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))


def _utf8(data: bytes) -> bytes:
    """JSON in any encoding it may have, without a byte order mark, as UTF-8."""
    return data.decode(json.detect_encoding(data)).removeprefix("\ufeff").encode()


def _other_encoding(payload: Buffer) -> str | None:
    """The text of a payload that is no UTF-8 without a mark; None where it is."""
    data = bytes(payload)
    try:
        return None if json.detect_encoding(data) == "utf-8" else _utf8(data).decode()
    except ValueError:
        return None


def binary(payloads: list[Buffer]) -> pa.Array:
    """The payloads as a column of bytes."""
    ends = np.zeros(len(payloads) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, payloads), np.int64, len(payloads)), out=ends[1:])
    data = pa.py_buffer(b"".join(payloads))
    column = pa.Array.from_buffers(pa.large_binary(), len(payloads), [None, pa.py_buffer(ends), data])
    return column.cast(pa.binary())


def _text(payload: bytes | None) -> str | None:
    with suppress(UnicodeDecodeError):
        return None if payload is None else payload.decode()
    return None
