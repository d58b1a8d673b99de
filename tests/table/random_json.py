"""Random shards of JSON, damage among it, and what DuckDB says of the same documents: `read_json` is asked, not imitated."""

from __future__ import annotations

import json
import math
import random
import string
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from tarviz.formats.tar_header import tar_header

CALL = "format='newline_delimited', sample_size=-1, map_inference_threshold=-1, dateformat='none', timestampformat='none'"
NAMES = ["w", "h", "label", "label id", "score", "größe", "order", "a.b", "it's", 'q"q', "select", "meta", "x1", "boxes"]
KINDS = ["null", "bool", "int", "small", "huge", "vast", "fraction", "text", "date", "numeric", "list", "object", "empty", "nothing"]
DAMAGE = [
    b"{", b"", b"nul", b"\xff\xfe\x00", b'{"w": 1} {"w": 2}', b'{"w": 1, "w": 2}', b'{"w": 1e400}', b'{"label": "\\ud800"}',
    b'{"w":' * 150 + b"1" + b"}" * 150, b"[" * 5000, b'{"meta": {"x1": 1, "x1": {}}}', b"\x00", b'"a\nb"', b"{'w': 1}", b"[1, -1e999]",
]  # fmt: skip


@dataclass
class Drawn:
    """Shards, the documents of their records in order, and which of them DuckDB takes when it is asked about them one by one."""

    shards: list[Path]
    keys: list[str]
    documents: list[bytes]
    good: list[bool] = field(default_factory=list)

    @property
    def values(self) -> list[Any]:
        return [json.loads(document) if good else None for document, good in zip(self.documents, self.good, strict=True)]


def drawn(folder: Path, seed: int) -> Drawn:
    """One to three shards: schemas that are like each other, and differ in what people's do."""
    draw = random.Random(seed)
    count = draw.randint(1, 3)
    schema = _schema(draw, draw.randint(0, 3))
    found = Drawn([], [], [])
    for number in range(count):
        own = schema if draw.random() < 0.4 else _changed(draw, schema)
        path = folder / f"s-{number}.tar"
        with path.open("wb") as file:
            for at in range(draw.choice([1, 3, 12, 40])):
                document = json.dumps(_value(draw, own), ensure_ascii=draw.random() < 0.5).encode()
                if draw.random() < 0.1:
                    document = draw.choice([b"\xef\xbb\xbf" + document, json.dumps(json.loads(document), indent=1).encode() + b"\r\n"])
                if draw.random() < 0.05:
                    document = draw.choice(DAMAGE)
                key = f"{number}-{at:03}"
                file.write(tar_header(f"{key}.json".encode(), len(document), 0) + document + bytes(-len(document) % 512))
                found.keys.append(key)
                found.documents.append(document.removeprefix(b"\xef\xbb\xbf"))
            file.write(bytes(1024))
        found.shards.append(path)
    found.good = [_alone(folder, document) for document in found.documents]
    return found


def _schema(draw: random.Random, depth: int) -> Any:
    if depth and draw.random() < 0.7:
        if draw.random() < 0.3:
            return [_schema(draw, depth - 1)]
        return {name: _schema(draw, depth - 1) for name in draw.sample(NAMES, draw.randint(0, 5))}
    return [draw.choice(KINDS)] if draw.random() < 0.2 else tuple(draw.choices(KINDS, k=draw.choice([1, 1, 1, 2])))


def _changed(draw: random.Random, schema: Any) -> Any:
    if draw.random() < 0.15:
        return _schema(draw, 1)
    if isinstance(schema, dict):
        found = {name: _changed(draw, each) for name, each in schema.items() if draw.random() < 0.9}
        return found | ({draw.choice(NAMES): _schema(draw, 1)} if draw.random() < 0.3 else {})
    return [_changed(draw, schema[0])] if isinstance(schema, list) else schema


def _value(draw: random.Random, schema: Any) -> Any:
    if draw.random() < 0.05:
        return None
    if isinstance(schema, dict):
        return {name: _value(draw, each) for name, each in schema.items() if draw.random() < 0.9}
    if isinstance(schema, list):
        return [_value(draw, schema[0]) for _ in range(draw.choice([0, 1, 2, 5]))]
    match schema if isinstance(schema, str) else draw.choice(schema):
        case "bool":
            return draw.random() < 0.5
        case "int":
            return draw.randint(-(2**62), 2**62)
        case "small":
            return draw.randint(-3, 9)
        case "huge":
            return draw.choice([2**63, 2**64 - 1 - draw.randint(0, 9), -(2**63) - 1, draw.randint(2**63, 2**70)])
        case "vast":
            return draw.choice([10**38, -(10**45), 5])
        case "fraction":
            return draw.choice([0.5, -1.25, 1e300, 3.0, draw.random(), 1e-7, math.nan])
        case "text":
            return draw.choice(["cat", "dog", "", "a b", "ünï", "true", "null", "x" * 300, draw.choice(string.printable), "{}", '"', "1,5"])
        case "date":
            return draw.choice(["2020-01-01", "2020-01-01T10:00:00", "12:30:00", "6f9619ff-8b86-d011-b42d-00c04fc964ff"])
        case "numeric":
            return draw.choice(["3", "-1.5", "1e3", "007"])
        case "list":
            return draw.choice([[], [1, 2], ["a"], [None], [[1], []]])
        case "object":
            return draw.choice([{"k": 1}, {"k": "x"}, {"z": [1]}])
        case "empty":
            return {}
    return None


def _line(document: bytes, key: str = "") -> bytes:
    """A document as a line of a file; line ends are white space."""
    return b'{"k":"' + key.encode() + b'","j":' + document.replace(b"\n", b" ").replace(b"\r", b" ") + b"}\n"


def _alone(folder: Path, document: bytes) -> bool:
    """Whether DuckDB takes a document; a number beyond what a double holds, which is infinite to it, is bad to us."""
    path = folder / "one.ndjson"
    path.write_bytes(_line(document))
    try:
        with duckdb.connect() as base:
            base.execute("SELECT json_valid(?) OR error('no')", [document.decode()])
            base.execute(f"SELECT j FROM read_json('{path}', {CALL})").fetchall()
        json.loads(document, parse_float=_finite)
    except (duckdb.Error, ValueError):
        return False
    return True


def _finite(digits: str) -> float:
    if math.isinf(value := float(digits)):
        raise ValueError(digits)
    return value


def _wanted(kind: Any, values: list[Any]) -> str:
    """DuckDB's type with text for dates, and integers as wide as they are."""
    there = [value for value in values if value is not None]
    if kind.id == "struct":
        return (
            "STRUCT("
            + ", ".join(
                f'"{name.replace(chr(34), chr(34) * 2)}" {_wanted(each, [value.get(name) for value in there])}'
                for name, each in kind.children
            )
            + ")"
        )
    if kind.id == "list":
        return _wanted(kind.children[0][1], [each for value in there for each in value]) + "[]"
    if str(kind) in ("BIGINT", "HUGEINT", "UBIGINT", "DOUBLE") and there and all(type(value) is int for value in there):
        if all(-(2**63) <= value < 2**63 for value in there):
            return "BIGINT"
        return "HUGEINT" if all(abs(value) < 10**38 for value in there) else "VARCHAR"
    return {"DOUBLE": "DOUBLE", "BOOLEAN": "BOOLEAN", "JSON": "JSON"}.get(str(kind), "JSON" if "NULL" in str(kind) else "VARCHAR")


def oracle(folder: Path, case: Drawn) -> duckdb.DuckDBPyConnection:
    """A database with `records(key, json)`: the documents that DuckDB takes one by one, read by one call over all of them."""
    good = [(key, each) for key, each, fine in zip(case.keys, case.documents, case.good, strict=True) if fine]
    path = folder / "all.ndjson"
    path.write_bytes(b"".join(_line(each, key) for key, each in good))
    base = duckdb.connect()
    kind = "JSON"
    if good:
        kind = _wanted(base.sql(f"SELECT j FROM read_json('{path}', {CALL})").types[0], [json.loads(each) for _, each in good])
    base.execute(f"CREATE TABLE records (key VARCHAR, json {kind})")
    columns = f"{{'k': 'VARCHAR', 'j': '{kind.replace(chr(39), chr(39) * 2)}'}}"
    base.execute(f"INSERT INTO records SELECT k, j FROM read_json('{path}', format='newline_delimited', columns={columns})")
    rest = [[key] for key, fine in zip(case.keys, case.good, strict=True) if not fine]
    if rest:
        base.executemany("INSERT INTO records VALUES (?, NULL)", rest)
    return base
