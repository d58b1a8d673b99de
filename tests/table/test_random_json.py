"""Random JSON held against DuckDB's own reading of the same documents: every value, and conditions at every door."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tarviz
from tarviz.table.making.json_structure import merge
from tests.table.random_json import drawn, oracle

SETS = 150  # 15 of them in `make test`; `make fuzz` tries 2,000
CONDITIONS = 20


def same(one: Any, other: Any) -> bool:
    """Equal, NaN being itself and a float no integer."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def paths(text: str, kind: Any) -> list[tuple[str, str]]:
    """The paths of a column that hold numbers, texts or truth, as SQL writes them, and their types."""
    if kind.id == "struct":
        return [each for name, inner in kind.children for each in paths(f'{text}."{name.replace(chr(34), chr(34) * 2)}"', inner)]
    return [(text, str(kind))] if str(kind) in ("BIGINT", "HUGEINT", "DOUBLE", "VARCHAR", "BOOLEAN") else []


def literal(value: Any) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def condition(draw: random.Random, base: duckdb.DuckDBPyConnection, there: list[tuple[str, str]]) -> str:
    """A condition over the paths that there are, of values that they hold."""
    path, kind = draw.choice(there)
    held = [value for (value,) in base.sql(f"SELECT DISTINCT {path} FROM records WHERE {path} IS NOT NULL").fetchall()]
    held = [value for value in held if not isinstance(value, float) or math.isfinite(value)]
    held = [value for value in held if not isinstance(value, str) or (value.isprintable() and "\\" not in value)]
    value = literal(draw.choice(held)) if held else "'x'" if kind == "VARCHAR" else "1"
    more = [f"{path} IS NULL", f"{path} IS NOT NULL"]
    if kind == "BOOLEAN":
        more += [f"{path} = true", f"{path} = false", f"not {path}"]
    else:
        more += [f"{path} {sign} {value}" for sign in ("=", "<>", "<", ">=")] + [
            f"{path} in ({value})",
            f"{path} between {value} and {value}",
        ]
    if kind == "VARCHAR":
        more += [f"{path} like '%a%'", f"length({path}) > 2"]
    found = draw.choice(more)
    if draw.random() < 0.3:
        found = f"({found}) {draw.choice(['and', 'or'])} ({condition(draw, base, there)})"
    return found


def check(folder: Path, seed: int) -> None:
    """Every value, the records that are bad, and `CONDITIONS` questions, of the set of one seed."""
    case = drawn(folder, seed)
    base = oracle(folder, case)
    table = tarviz.table([str(path) for path in case.shards])

    wanted = dict(base.sql("SELECT key, json FROM records").fetchall())
    found = dict(table.sql("SELECT key, json FROM records").fetchall())
    assert wanted.keys() == found.keys()
    wrong = [(key, wanted[key], found[key]) for key in wanted if not same(wanted[key], found[key])]
    assert [] == wrong
    assert str(base.sql("SELECT json FROM records").types[0]) == str(table.sql("SELECT json FROM records").types[0])
    bad = [key for key, good in zip(case.keys, case.good, strict=True) if not good]
    assert bad == [key for (key,) in table.sql('SELECT key FROM records WHERE "json.bad" ORDER BY shard, n').fetchall()]
    assert len(bad) == table.findings.get("json.bad", 0)

    draw = random.Random(seed)
    there = paths("json", base.sql("SELECT json FROM records").types[0])
    # NaN fits no condition here, a record's answer never hanging on its neighbours; to DuckDB it is the largest number of a column.
    odd = {key for key, document in zip(case.keys, case.documents, strict=True) if b"NaN" in document}

    every = table.rows()
    lying = dict(zip(zip(every.shard.tolist(), every.n.tolist(), strict=True), case.keys, strict=True))

    def plain(keys: Iterable[str]) -> list[str]:
        return sorted(key for key in keys if key not in odd)

    for at in range(CONDITIONS if there else 0):
        where = condition(draw, base, there)
        fit = plain(key for (key,) in base.sql(f"SELECT key FROM records WHERE {where}").fetchall())
        assert fit == plain(key for (key,) in table.sql(f"SELECT key FROM records WHERE {where}").fetchall()), where
        rows = table.rows(where)
        assert fit == plain(lying[shard, n] for shard, n in zip(rows.shard.tolist(), rows.n.tolist(), strict=True)), where
        assert odd or len(fit) == len(rows), where
        if at < 2:  # the doors that read
            urls = [str(path) for path in case.shards]
            assert fit == plain(record.key for record in tarviz.records(urls, where=where)), where
            assert fit == plain(record["__key__"] for record in tarviz.Pipeline(urls, where=where)), where
            path = draw.choice(there)[0]
            facet = table.facets(path, where)
            count = f"SELECT count(*), count(*) - count({path}), count(DISTINCT {path}) FROM records"
            for summary, more in ((facet.all, ""), (facet.kept, f" WHERE {where}")):
                if not (more and odd):
                    assert [(summary.records, summary.missing, summary.distinct)] == base.sql(count + more).fetchall(), (path, where)


@pytest.mark.parametrize("seed", range(SETS))
@pytest.mark.matrix
def test_random_json_is_what_duckdb_makes_of_it(tmp_path: Path, seed: int):
    check(tmp_path, seed)


def test_documents_read_a_few_at_a_time_have_the_type_of_all(monkeypatch: pytest.MonkeyPatch):
    from tarviz.table.making import json_columns

    documents = [b'{"a": 1, "when": "2020-01-01"}', b'{"a": null}', b'{"b": {"c": [1]}, "a": 2.5}', b'{"when": "now", "b": {"c": []}}'] * 3
    payloads = json_columns.payload_column("json", documents)
    whole = json_columns.typed_json(payloads)
    monkeypatch.setattr(json_columns, "_ROWS", 1)
    again = json_columns.typed_json(payloads)
    monkeypatch.setattr(json_columns, "_quickly", lambda texts: None)  # by DuckDB

    assert (whole.structure, whole.column.to_pylist()) == (again.structure, again.column.to_pylist())
    assert whole.column.to_pylist() == json_columns.typed_json(payloads).column.to_pylist()


_KINDS = ["null", "true", "3", "2.5", '"x"', '"2020-01-01"', "[1]", '["a"]', '{"a": 1}', "{}", "[]", "18446744073709551615"]


@pytest.mark.parametrize(("one", "other"), [(one, other) for one in _KINDS for other in _KINDS])
def test_structures_merge_as_duckdb_merges_documents(one: str, other: str):
    from tarviz.table.making.json_columns import payload_column, typed_json

    def structure(*texts: str) -> Any:
        return typed_json(payload_column("json", [b'{"p": %s}' % text.encode() for text in texts])).structure

    assert structure(one, other) == merge(structure(one), structure(other))


@pytest.mark.matrix
def test_integers_that_fractions_beside_them_round_are_said(make):
    large, fraction, small = (b'{"p": [{"a": %s}]}' % text for text in (b"9007199254740993", b"0.5", b"9007199254740991"))
    said = {"json.p[].a has integers of 2^53 or more beside fractions: it is DOUBLE, which rounds them": 1}

    def found(*shards: list[bytes]) -> dict[str, int]:
        urls = [make([(f"{at}", {"json": each}) for at, each in enumerate(own)], f"{number}.tar") for number, own in enumerate(shards)]
        table = tarviz.table(urls)
        assert sum(map(len, shards)) == len(table.sql("SELECT json FROM records WHERE json IS NOT NULL").fetchall())
        return table.findings

    for shards in ([large, fraction],), ([large], [fraction]), ([fraction], [b'{"p": [{"a": -18446744073709551616}]}']):
        assert said == found(*shards)
    for shards in ([small, fraction],), ([small], [fraction]), ([large],), ([fraction, b'{"p": [{"a": 1e300}]}'],):
        assert {} == found(*shards)


@pytest.mark.parametrize("text", ["[{}]", '{{"a":{}}}'])
def test_128_levels_are_read_and_more_are_not(make, text: str):
    def nested(levels: int) -> bytes:
        before, behind = text.split("{}") if text[0] == "[" else ('{"a":', "}")
        return (before * levels + "1" + behind * levels).encode()

    levels = [126, 127, 128, 129]
    table = tarviz.table(make([(str(count), {"json": nested(count)}) for count in levels]))

    assert [(str(count), count > 128) for count in levels] == table.sql('SELECT key, "json.bad" FROM records ORDER BY n').fetchall()
    assert 3 == len(table.sql("SELECT key FROM records WHERE json IS NOT NULL").fetchall())
