"""`tarviz sql`: what it prints and writes, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tarviz
from tarviz.cli import main
from tarviz.formats.example import encode
from tarviz.formats.tfrecord import frame
from tarviz.model.errors import UsageError

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


def test_a_pipe_cannot_be_asked_twice(shards, bash):
    done = bash(f"cat {shards} | tarviz sql 'SELECT max(json.w) FROM records' -")

    assert 2 == done.returncode
    assert b"standard input can be read once" in done.stderr


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


class TestAnswer:
    @pytest.fixture
    def many(self, make) -> Path:
        return make([(f"k{at:02d}", {"txt": b"x" * (59 + at), "cls": b"%d" % at}) for at in range(43)])

    def test_a_terminal_is_shown_forty_rows_and_sixty_characters(self, many):
        answer = tarviz.sql(
            "SELECT key, txt, cls, cls / 3 AS third, CASE WHEN cls > 1 THEN cls END AS some FROM records ORDER BY key", many
        )
        lines = str(answer).splitlines()

        assert (42, "… 3 more rows") == (len(lines), lines[-1])
        assert ["key", "txt", "cls", "third", "some"] == lines[0].split()
        assert ["k00", "x" * 59, "0", "0"] == lines[1].split()
        assert ["k01", "x" * 60, "1", "0.333333"] == lines[2].split()
        assert ["k02", "x" * 59 + "…", "2", "0.666667", "2"] == lines[3].split()
        assert len({len(line.rstrip()) for line in lines[4:9]}) == 1  # numbers are flush right
        html = answer._repr_mimebundle_()["text/html"]
        assert "<p>… 3 more rows</p>" in html
        assert "<th>txt</th><th class=right>cls</th><th class=right>third</th><th class=right>some</th>" in html

    def test_forty_rows_are_all_of_them(self, many):
        assert "more rows" not in str(tarviz.sql("SELECT key FROM records LIMIT 40", many))

    def test_it_is_data_of_any_kind(self, many):
        pandas = pytest.importorskip("pandas", reason="pandas is not installed")
        answer = tarviz.sql("SELECT key, cls FROM records ORDER BY key LIMIT 2", many)

        assert (["key", "cls"], [("k00", 0), ("k01", 1)], 2) == (answer.columns, answer.rows, len(answer))
        assert {"columns": ["key", "cls"], "rows": [{"key": "k00", "cls": 0}, {"key": "k01", "cls": 1}], "findings": {}} == answer.to_dict()
        assert pandas.DataFrame({"key": ["k00", "k01"], "cls": [0, 1]}).equals(answer.df().astype({"cls": "int64"}))

    def test_what_was_written_is_counted(self, many, tmp_path):
        assert f"{tmp_path}/o.csv: 43 rows" == str(tarviz.sql("SELECT key FROM records", many, tmp_path / "o.csv"))

    @pytest.mark.parametrize(
        ("name", "format", "expected"),
        [
            ("o.CSV", None, b"a,b\n=1,\n"),
            ("o.csv", "csv-safe", b"a,b\n'=1,\n"),
            ("o.jsonl", None, b'{"a": "=1", "b": null}\n'),
            ("o.txt", "json", b'{"a": "=1", "b": null}\n'),
        ],
    )
    def test_the_name_or_a_word_says_how_it_is_written(self, many, tmp_path, name, format, expected):
        tarviz.sql("SELECT '=1' AS a, NULL AS b FROM records LIMIT 1", many, tmp_path / name, format=format)

        assert expected == (tmp_path / name).read_bytes()

    def test_a_name_that_says_nothing_is_refused(self, many, tmp_path):
        with pytest.raises(UsageError, match="says no format"):
            tarviz.sql("SELECT key FROM records", many, tmp_path / "o.txt")

    @pytest.mark.parametrize(
        ("words", "match"),
        [
            (["--csv", "--json", "SELECT 1", "x.tar"], "an answer has one format"),
            (["SELECT 1"], "the shards are missing"),
        ],
    )
    def test_wrong_use_is_one_line(self, words, match, capsys):
        assert 2 == main(["sql", *words])
        assert match in capsys.readouterr().err

    def test_a_terminal_takes_no_parquet(self, many, monkeypatch, capsys):
        monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)

        assert 2 == main(["sql", "--parquet", "SELECT key FROM records", str(many)])
        assert "a terminal takes no Parquet" in capsys.readouterr().err
