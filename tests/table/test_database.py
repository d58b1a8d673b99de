"""The database behind a table: shut in, within its memory, and named where it is not installed."""

from __future__ import annotations

import os
import sys

import pytest

import tarviz
from tarviz.model.errors import MissingPackageError
from tarviz.table import database

SHUT_IN = {
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "enable_external_access": False,
    "lock_configuration": True,
    "temp_directory": "",
    "ieee_floating_point_ops": False,
    "memory_limit": "64.0 MiB",
}


def test_it_reaches_nothing_else_and_cannot_be_told_to():
    base = database.connect([], 64 << 20)

    assert {name: base.execute("SELECT current_setting($1)", [name]).fetchall()[0][0] for name in SHUT_IN} == SHUT_IN
    assert [] == base.execute("SELECT key, shard, n, size FROM records").fetchall()


def test_what_is_divided_by_nothing_is_null_in_a_query_too():
    base = database.connect([], 64 << 20)

    assert [(None,) * 5] == base.execute("SELECT 1 / 0, 1 % 0, 1 // 0, 1.0 / 0, 0e0 / 0").fetchall()


def test_a_query_may_use_half_of_the_machine_and_4_gib_at_most():
    have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    assert min(have // 2, 4 << 30) == database.memory_limit()


@pytest.mark.parametrize("package", ["duckdb", "pyarrow"])
def test_what_is_not_installed_is_named(monkeypatch, package):
    database.require()
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(MissingPackageError, match=rf"{package}.*tarviz\[table\]"):
        database.require()


@pytest.mark.parametrize("values", ["1 -2.50 1e2 null", "2.50 9007199254740993 1e30 1", '1e2 "x" [1,2.50] {"a":1.0}'])
def test_how_records_are_spread_over_shards_changes_no_answer(make, values):
    content = [(f"k{at}", {"json": f'{{"v": {value}, "n": {at}}}'.encode()}) for at, value in enumerate(values.split())]
    apart = tarviz.table([make([each], f"{at}.tar") for at, each in enumerate(content)])
    together = tarviz.table(make(content))

    for query in ("CAST(json AS VARCHAR)", "json.v", "typeof(json)", "json.v > 2, json.v = 2.5"):
        asked = f"SELECT {query} FROM records ORDER BY key"
        assert together.sql(asked).fetchall() == apart.sql(asked).fetchall()
