"""What is chosen as a file: every byte of the keys and the CSV, every column of the Parquet."""

from __future__ import annotations

import pytest

import tarviz
from tarviz.model.errors import UsageError
from tarviz.table.export import export


@pytest.fixture
def table(make) -> tarviz.Table:
    table = tarviz.table(make([(f"k{at}", {"cls": b"%d" % at, "json": b'{"w": [%d]}' % at}) for at in range(4)]))
    table.sql("SELECT json, cls FROM records").fetchall()
    return table


def test_keys_are_one_a_line(table, tmp_path):
    assert 2 == export(table, tmp_path / "keys.TXT", "cls > 1", columns="cls")
    assert b"k2\nk3\n" == (tmp_path / "keys.TXT").read_bytes()
    assert ["k2", "k3"] == [record.key for record in tarviz.records(table.urls, keys=str(tmp_path / "keys.TXT"))]


def test_a_csv_has_the_columns_asked_for_or_all_that_are_flat(table, tmp_path):
    assert 2 == export(table, tmp_path / "o.csv", "cls > 1", "key, cls * 2 AS twice")
    assert b'"key","twice"\n"k2",4\n"k3",6\n' == (tmp_path / "o.csv").read_bytes()
    assert 4 == export(table, tmp_path / "all.csv")
    assert b'"key","shard","n","size","cls.size","cls","json.size","json.bad"' == (tmp_path / "all.csv").read_bytes().splitlines()[0]


def test_a_parquet_has_lists_and_objects_too(table, tmp_path):
    from pyarrow import parquet

    assert 1 == export(table, tmp_path / "o.parquet", "cls = 3")
    found = parquet.read_table(tmp_path / "o.parquet")
    assert ["key", "shard", "n", "size", "cls.size", "cls", "json.size", "json", "json.bad"] == found.column_names
    assert [{"w": [3]}] == found.column("json").to_pylist()


def test_another_format_is_refused(table, tmp_path):
    with pytest.raises(UsageError, match="says no format"):
        export(table, tmp_path / "o.xls")
    assert not (tmp_path / "o.xls").exists()
