"""Arrays, words, trees, tables and clouds of many forms: dtypes, orders, encodings, nesting, empty ones; by the libraries of each."""

from __future__ import annotations

import datetime
import gzip
import io
import json
import math
from collections.abc import Iterator
from typing import Any

import cbor2
import msgpack
import numpy as np
import pyarrow as pa
import yaml
from pyarrow import csv, feather, ipc, parquet

from tests.odd.case import REFUSED, Odd, saved

RANDOM = np.random.default_rng(29)
TREE = {"a": [1, 2.5, None, True, -(2**40)], "b": {"c": "grün 日本", "d": {}}, "e": [], "": [[[["deep"]]]]}


def arrays() -> Iterator[Odd]:
    plain = {
        **{
            f"{dtype}": (RANDOM.random((3, 4)) * 99).astype(dtype)
            for dtype in ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "?"]
        },
        **{f"big endian {dtype}": (RANDOM.random((3, 4)) * 99).astype(f">{dtype}") for dtype in ("i2", "u4", "f4", "f8")},
        "in columns": np.asfortranarray(RANDOM.random((4, 5, 2))),
        "no dimension": np.float32(2.5),
        "empty": np.zeros((0, 7), np.int32),
        "ten dimensions": np.zeros((1, 2) * 5, np.uint8),
        "words": np.array(["a", "grün", ""]),
        "bytes": np.array([b"a", b"bcd"]),
        "dates": np.array(["2026-11-25", "NaT"], "datetime64[D]"),
        "spans": np.array([1, -5], "timedelta64[ms]"),
        "fields": np.array([(1, 2.5, "x")], [("a", "<i4"), ("b", "<f8"), ("c", "U3")]),
        "no numbers": np.array([math.nan, math.inf, -math.inf, -0.0], np.float32),
    }
    for name, array in plain.items():
        yield Odd(f"npy {name}", "npy", data := saved(np.save, array), np.load(io.BytesIO(data)))
    for version in ((2, 0), (3, 0)):
        data = saved(np.lib.format.write_array, RANDOM.random((2, 3)), version=version)
        yield Odd(f"npy of version {version}", "npy", data, np.load(io.BytesIO(data)))
    yield Odd("npy of objects", "npy", saved(np.save, np.array([{}], object), allow_pickle=True), REFUSED)
    for name, save in (("stored", np.savez), ("packed", np.savez_compressed)):
        data = saved(save, a=np.arange(5), b=np.eye(2, dtype=">f4"), **{"x.y": np.array("s")})
        with np.load(io.BytesIO(data)) as file:
            yield Odd(f"npz {name}", "npz", data, dict(file))
    yield Odd("npz empty", "npz", saved(np.savez), {})
    from safetensors import numpy as safe

    for dtype in ("float16", "float32", "int64", "uint8", "bool"):
        held = {"w": (RANDOM.random((2, 3)) * 9).astype(dtype), "none": np.zeros((0, 3), dtype)}
        yield Odd(f"safetensors {dtype}", "safetensors", data := safe.save(held, {"made": "odd"}), safe.load(data))
    yield Odd("safetensors empty", "safetensors", safe.save({}), {})
    from webdataset import tenbin

    for dtype in ("float16", "float64", "int8", "uint64"):
        held = [(RANDOM.random((2, 3)) * 9).astype(dtype), np.zeros((2,), dtype)]
        yield Odd(f"ten {dtype}", "ten", bytes(data := tenbin.encode_buffer(held)), tenbin.decode_buffer(data))


def words() -> Iterator[Odd]:
    for ext, text, value in (
        ("txt", "grün\r\n日本".encode(), "grün\r\n日本"),
        ("txt", b"\xef\xbb\xbfmarked", "marked"),
        ("txt", b"", ""),
        ("srt", b"1\n00:00:01,000 --> 00:00:02,000\nHi\n", "1\n00:00:01,000 --> 00:00:02,000\nHi\n"),
        ("xml", b"<a b='1'>&amp;</a>", "<a b='1'>&amp;</a>"),
        ("cls", b" 7\n", np.int64(7)),
        ("cls", b"-12", np.int64(-12)),
        ("cls", b"+000000012", np.int64(12)),
        ("cls", b"dog", REFUSED),
        ("id", b"9223372036854775807", np.int64(2**63 - 1)),
        ("id", b"9223372036854775808", REFUSED),
    ):
        yield Odd(f"{ext} {text[:12]!r}", ext, text, value)
    yield Odd("cls as uint8", "cls", b"255", np.uint8(255), "dtype=uint8")
    yield Odd("txt in latin 1", "txt", "grün".encode("latin-1"), REFUSED)


def trees() -> Iterator[Odd]:
    for coding in ("utf-8", "utf-8-sig", "utf-16", "utf-32-be"):
        yield Odd(f"json in {coding}", "json", json.dumps(TREE, ensure_ascii=False).encode(coding), TREE)
    for text in (
        "[]",
        "{}",
        "null",
        "true",
        '"\\ud83d\\ude00 \\ud800"',
        "1e400",
        "123456789012345678901234567890",
        "[" * 90 + "]" * 90,
        "[NaN, -Infinity]",
    ):
        yield Odd(f"json {text[:20]}", "json", text.encode(), json.loads(text))
    yield Odd("json twice the name", "json", b'{"a": 1, "a": 2}', {"a": 2})
    yield Odd("json of nothing", "json", b"", REFUSED)
    yield Odd("json lines", "jsonl", b'{"a": 1}\n\n[2]\r\n"x"', [{"a": 1}, [2], "x"])
    yield Odd("json lines, none", "jsonl", b"", [])
    for level in (0, 9):
        yield Odd(f"json packed {level}", "json.gz", gzip.compress(json.dumps(TREE).encode(), level), TREE)
    yield Odd("text packed", "txt.gz", gzip.compress(b"a") + gzip.compress(b"b"), "ab")
    yield Odd("npy packed", "npy.gz", gzip.compress(saved(np.save, np.eye(3))), np.eye(3))
    for name, value, options in (
        ("tree", TREE, {}),
        ("with bytes", {"a": b"\0\xff", "b": "x"}, {}),
        ("names of numbers", {1: "a", -2: "b"}, {}),
        ("single floats", [0.5, 1.25], {"use_single_float": True}),
        ("large", {"n": 2**64 - 1, "m": -(2**63)}, {}),
        ("a type of its own", [msgpack.ExtType(5, b"xyz")], {}),
        ("nothing", None, {}),
        ("long list", list(range(70000 // 8)), {}),
    ):
        data = msgpack.packb(value, **options)
        yield Odd(f"msgpack {name}", "msgpack", data, msgpack.unpackb(data, strict_map_key=False))
    when = msgpack.packb(datetime.datetime(2026, 11, 25, tzinfo=datetime.UTC), datetime=True)
    yield Odd("msgpack a time", "mp", when, msgpack.unpackb(when))
    for name, value in (
        ("tree", TREE),
        ("large", [2**80, -(2**70), 0.1]),
        ("bytes and times", {"b": b"\0", "t": datetime.datetime(2026, 11, 25, tzinfo=datetime.UTC)}),
        ("names of numbers", {1: 2}),
        ("a tag of its own", [cbor2.CBORTag(40000, [1])]),
        ("set", {1, 2}),
        ("half", cbor2.CBORSimpleValue(99)),
    ):
        yield Odd(f"cbor {name}", "cbor", data := cbor2.dumps(value), cbor2.loads(data))
    for name, text in (
        ("tree", yaml.safe_dump(TREE, allow_unicode=True)),
        ("anchors", "a: &x [1, 2]\nb: *x\n"),
        ("dates", "d: 2026-11-25\nt: 2026-11-25 01:02:03\n"),
        ("words", "|\n  two\n  lines\n"),
        ("truths", "[yes, no, on, ~, 0x1f, 1_000, .inf]"),
        ("nothing", ""),
    ):
        yield Odd(f"yaml {name}", "yaml", text.encode(), yaml.safe_load(text))
    import tomllib

    for name, text in (
        ("tree", "a = [1, 2.5]\n[b.c]\nd = 'x'\n"),
        ("times", "t = 2026-11-25T01:02:03Z\nd = 2026-11-25\n[[x]]\ny=1\n"),
        ("nothing", ""),
    ):
        yield Odd(f"toml {name}", "toml", text.encode(), tomllib.loads(text))


TABLE = {
    "x": pa.array([1, 2, 3], pa.int16()),
    "y": pa.array([0.5, math.nan, 2.5]),
    "s": pa.array(["a", "grün", ""]),
    "n": pa.array([1, None, 3]),
    "l": pa.array([[1, 2], [], [3]]),
    "d": pa.array([{"u": 1}, {"u": 2}, None]),
    "t": pa.array([0, 1, 2], pa.timestamp("ms")),
    "c": pa.array(["p", "q", "p"]).dictionary_encode(),
    "b": pa.array([b"\0", b"", b"x"]),
    "m": pa.array([1, 2, 3], pa.decimal128(9, 2)),
    "o": pa.array([True, False, None]),
}


def columns(table: Any) -> dict[str, Any]:
    """As NumPy has them; objects as they are: of whole numbers beside a null object `to_numpy` makes fractions."""
    made = {name: table[name].to_numpy() for name in table.column_names}
    return {name: np.array([*table[name].to_pylist(), 0], object)[:-1] if name == "d" else made[name] for name in made}


def tables() -> Iterator[Odd]:
    table = pa.table(TABLE)
    for name, options in (
        *((packed, {"compression": packed}) for packed in ("none", "snappy", "gzip", "zstd", "brotli", "lz4")),
        ("of version 1", {"version": "1.0"}),
        ("in groups", {"row_group_size": 1}),
        ("without dictionaries", {"use_dictionary": False, "data_page_version": "2.0"}),
    ):
        data = saved(lambda out, **options: parquet.write_table(table, out, **options), **options)
        yield Odd(f"parquet {name}", "parquet", data, columns(parquet.read_table(io.BytesIO(data))))
    import pandas

    data = saved(pandas.DataFrame({"i": [1, 2]}, index=["p", "q"]).to_parquet)
    yield Odd("parquet by pandas", "parquet", data, columns(parquet.read_table(io.BytesIO(data))))
    for packed in ("uncompressed", "lz4", "zstd"):
        data = saved(lambda out, packed=packed: feather.write_feather(table, out, compression=packed))
        yield Odd(f"feather {packed}", "feather", data, columns(feather.read_table(io.BytesIO(data))))
    for name, opened in (("stream", ipc.new_stream), ("file", ipc.new_file)):
        out = io.BytesIO()
        with opened(out, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
        yield Odd(f"arrow {name}", "arrow", out.getvalue(), columns(table))
    none = table.slice(0, 0)
    yield Odd("parquet of no rows", "parquet", saved(lambda out: parquet.write_table(none, out)), columns(none))
    for ext, mark in (("csv", ","), ("tsv", "\t")):
        for name, text in (
            ("plain", "x,s\n1,a\n2,b\n"),
            ("quotes", 'x,s\n1,"a, ""b""\nnext"\n'),
            ("nothing there", "x,s\n1,\n,b\n"),
            ("dates", "x,s\n2026-11-25,true\n2026-11-26,false\n"),
            ("a mark and windows", "\ufeffx,s\r\n1.5,ü\r\n"),
            ("no rows", "x,s\n"),
        ):
            data = text.replace(",", mark).encode()
            read = csv.read_csv(io.BytesIO(data), parse_options=csv.ParseOptions(delimiter=mark, newlines_in_values=True))
            yield Odd(f"{ext} {name}", ext, data, columns(read))


def clouds() -> Iterator[Odd]:
    from tests.ops.values.test_clouds import COLOURS, PLACES, ROWS, pcd, ply

    value = {name: ROWS[name] for name in ROWS.dtype.names}
    for form in ("ascii", "binary_little_endian", "binary_big_endian"):
        yield Odd(
            f"ply {form}",
            "ply",
            ply(form),
            {name: one.astype(one.dtype.newbyteorder(">" if "big" in form else "=")) for name, one in value.items()},
        )
    places = dict(zip("xyz", PLACES.T, strict=True))
    yield Odd("pcd binary", "pcd", pcd("binary", PLACES.tobytes()), places)
    yield Odd("pcd in text", "pcd", pcd("ascii", "\n".join(" ".join(map(str, row)) for row in PLACES.tolist()).encode() + b"\n"), places)
    colours = {name: COLOURS[:, at].astype(np.float32) for at, name in enumerate(("red", "green", "blue"))}
    doubles = {name: one.astype(np.float64) for name, one in {**places, **colours}.items()}
    yield Odd("xyz", "xyz", saved(np.savetxt, np.hstack([PLACES, COLOURS])), doubles)
    yield Odd("xyz of a molecule", "xyz", b"2\nwater\nO 0 0 0\nH 0 0 1\n", REFUSED)
