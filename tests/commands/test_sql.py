"""`tarviz sql`: what it prints and writes, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tarviz
from tarviz.cli import main
from tarviz.formats.example import encode
from tarviz.formats.tfrecord import frame

pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
pytest.importorskip("pyarrow", reason="a table needs pyarrow: pip install 'tarviz[table]'")

QUERY = "SELECT cls, count(*) AS c, max(json.w) AS w FROM records GROUP BY cls ORDER BY cls"


@pytest.fixture
def shards(make) -> Path:
    content = [(f"k{at}", {"cls": b"%d" % (at % 3), "json": b'{"w": %d, "tags": ["<b>"]}' % at}) for at in range(9)]
    return make(content)


def test_the_answer_is_a_table(shards, capsys):
    assert 0 == main(["sql", QUERY, str(shards)])

    lines = capsys.readouterr().out.splitlines()
    assert ["cls", "c", "w"] == lines[0].split()
    assert ["2", "3", "8"] == lines[3].split()


def test_the_answer_is_json_for_scripts(shards, capsys):
    assert 0 == main(["sql", "--json", QUERY, str(shards)])

    assert {"cls": 0, "c": 3, "w": 6} == json.loads(capsys.readouterr().out)["rows"][0]


VALUES = {
    "sum(n)": 36,
    "18446744073709551616::HUGEINT": 2**64,
    "1.25::DECIMAL(4, 2)": 1.25,
    "date '2026-11-25'": "2026-11-25",
    "timestamp '2026-11-25 10:00:00'": "2026-11-25T10:00:00",
    "'nan'::DOUBLE": None,
    "'a'::BLOB": "a",
    "{'a': [date '2026-11-25'], 'b': sum(n)}": {"a": ["2026-11-25"], "b": 36},
    "time '10:00:00'": "10:00:00",
}


@pytest.mark.parametrize("asked", VALUES)
def test_a_value_of_any_kind_is_json(asked, shards, tmp_path, capsys):
    query = f"SELECT {asked} AS v FROM records GROUP BY ALL" if "sum" in asked else f"SELECT {asked} AS v FROM records LIMIT 1"
    assert 0 == main(["sql", "--json", query, str(shards)])
    assert 0 == main(["sql", query, str(shards), "-o", str(tmp_path / "o.json")])

    answer = json.loads(capsys.readouterr().out.splitlines()[0], parse_constant=pytest.fail)["rows"][0]
    assert {"v": VALUES[asked]} == answer == json.loads((tmp_path / "o.json").read_text())


def test_a_time_that_no_query_can_take_is_refused(shards, capsys):
    assert 2 == main(["sql", QUERY, str(shards), "--timeout", "-1"])
    assert "cannot take -1 s" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["o.csv", "o.json", "o.parquet"])
def test_the_answer_is_written_as_the_name_says(shards, tmp_path, name):
    assert 0 == main(["sql", "-o", str(tmp_path / name), QUERY, str(shards)])

    written = (tmp_path / name).read_bytes()
    if name == "o.csv":
        assert b"cls,c,w\n0,3,6\n" == written[:14]
    elif name == "o.json":
        assert {"cls": 0, "c": 3, "w": 6} == json.loads(written.splitlines()[0])
    else:
        import pyarrow.parquet as parquet

        assert [6, 7, 8] == parquet.read_table(tmp_path / name).column("w").to_pylist()


def test_csv_goes_to_standard_output(shards, capfdbinary):
    assert 0 == main(["sql", "--csv", QUERY, str(shards)])

    assert b"cls,c,w\n0,3,6\n1,3,7\n2,3,8\n" == capfdbinary.readouterr().out


@pytest.mark.parametrize("query", ["DELETE FROM records", "SELECT * FROM '/etc/passwd'", "SELECT nothing FROM records", "SELECT"])
def test_what_cannot_be_asked_ends_with_2(shards, query, capsys):
    assert 2 == main(["sql", query, str(shards)])
    assert capsys.readouterr().err.startswith("tarviz: E_")


def test_a_tfrecord_file_is_asked_as_it_is(tmp_path, capsys):
    path = tmp_path / "x.tfrecord"
    path.write_bytes(b"".join(frame([b"", encode({"cls": 7})]).buffers()))

    assert 0 == main(["sql", "--csv", "SELECT count(*), max(cls) FROM records", str(path)])
    assert "2,7" in capsys.readouterr().out


def test_json_that_is_none_is_counted_and_the_exit_code_is_1(make, capsys):
    assert 1 == main(["sql", "SELECT json.w FROM records", str(make([("a", {"json": b"{"}), ("b", {"json": b'{"w": 1}'})]))])
    assert "1 × json.bad" in capsys.readouterr().out


def test_in_a_notebook_the_answer_is_a_table_without_markup_of_the_data(shards):
    answer = tarviz.sql("SELECT json.tags[1] AS tag FROM records LIMIT 1", shards)

    html = answer._repr_mimebundle_()["text/html"]
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert [("<b>",)] == answer.rows


def test_a_table_that_is_open_can_be_asked_again(shards):
    table = tarviz.table(shards)

    assert [(9,)] == tarviz.sql("SELECT count(*) FROM records", table).rows
