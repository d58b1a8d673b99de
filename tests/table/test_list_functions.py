"""Functions of lists in conditions: a record is answered alike whatever other records hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tarviz
from tarviz.model.errors import UsageError
from tarviz.testing.strategies import shard

pytest.importorskip("duckdb", reason="the extra table brings DuckDB: pip install 'tarviz[table]'")

OWN = [9, 10]
FIT = [
    *("list_sum(json.a) = 19", "list_avg(json.a) = 9.5", "list_median(json.a) = 9.5", "list_product(json.a) = 90"),
    *("list_reduce(json.a, (x, y) -> x + y) = 19", "list_cosine_similarity(json.a, [9, 10]) > 0.99", "list_bit_or(json.a) = 11"),
    *("list_min(json.a) = 9", "list_max(json.a) = 10", "list_first(json.a) = 9", "list_last(json.a) = '10'", "list_any_value(json.a) = 9"),
    *("list_max(json.a) in (10, 11)", "list_max(json.a) > list_min(json.a)", "list_sum(json.a) > list_max(json.a)", "list_max(json.a)"),
    *(
        "list_sort(json.a)[1] = 9",
        "list_sort(json.a, 'DESC')[1] = 10",
        "list_reverse_sort(json.a)[1] > 9",
        "list_reverse(json.a)[1] = '10'",
    ),
    *("list_position(json.a, 10) = 2", "list_append(json.a, 1)[3] = 1", "list_prepend(1, json.a)[1] = 1", "list_extract(json.a, 2) = 10"),
    *("list_has_any(json.a, [10, 'x'])", "list_has_all(json.a, [9, 10])", "list_intersect(json.a, [10])[1] = 10", "json.a[2:2][1] = 10"),
    *("list_aggregate(json.a, 'sum') = 19", "list_aggregate(json.a, 'MAX') = 10", "array_to_string(json.a, '-') = '9-10'"),
    *("10 in list_sort(json.a)", "list_max(list_filter(json.a, x -> x < 10)) = 9", "list_sum(list_sort(json.a)) = 19"),
    *("json.a = [9, 10]", "json.a > [9, 9]", "json.a < [10]", "json.a = ['9', '10']", "json.a::VARCHAR = '[9, 10]'"),
    *(
        "json.a::DOUBLE[] = [9.0, 10.0]",
        "list_sum(json.a::BIGINT[]) = 19",
        "len(list_distinct(json.a)) = 2",
        "coalesce(list_max(json.a), 0) = 10",
    ),
]
NOT = ["list_max(json.a) > '9'", "list_min(json.a) is null", "list_bool_and(json.a) = false", "json.a != [9, 10]", "json.a > [9, 10]"]
REFUSED = ["list_max()", "list_max(3)", "list_nope(json.a)", "list_aggregate(json.a, 'x) or (1')", "list_sort(json.a, 'NOPE')[1] = 9"]
BESIDE = {
    "nothing": [],
    "fractions": [[1.5]],
    "a text": ["text"],
    "texts": [["q"]],
    "two kinds": [["x", {"b": 1}]],
    "nulls": [[None], None],
    "lists": [[[1]]],
    "large numbers": [[2**70]],
}


def table_of(folder: Path, values: list[Any]) -> tarviz.Table:
    records = [(f"k{at}", {"json": json.dumps({"a": value}).encode()}) for at, value in enumerate(values)]
    (path := folder / "a.tar").write_bytes(shard(records))
    return tarviz.table(path)


def wrong(table: tarviz.Table, fit: list[str], others: list[str]) -> list[str]:
    """The conditions that say something else of the first record."""
    return [where for where in (*fit, *others) if (0 in table.rows(where).n.tolist()) is not (where in fit)]


def test_a_list_is_answered_alike_beside_one_of_two_kinds(tmp_path: Path):
    assert [] == wrong(table_of(tmp_path, [OWN, *BESIDE["two kinds"]]), FIT[::6], NOT[::4])


@pytest.mark.matrix
@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
def test_a_list_is_answered_alike_whatever_lies_beside_it(tmp_path: Path, beside: list[Any]):
    table = table_of(tmp_path, [OWN, *beside])

    assert [] == wrong(table, FIT, NOT)
    for where in REFUSED:
        with pytest.raises(UsageError):
            table.rows(where)


def test_numbers_are_sorted_by_size_before_texts_and_what_is_no_list_fits_nothing(tmp_path: Path):
    table = table_of(tmp_path, [["b", 10, "a", 9], 7, "text", {"x": [1]}, None])

    assert [0] == table.rows("array_to_string(list_sort(json.a), ' ') = '9 10 a b'").n.tolist()
    assert [0] == table.rows("list_sum(json.a) = 19").n.tolist()
    assert [0] == table.rows("list_max(json.a) = 'b'").n.tolist()
    assert [1, 2, 3, 4] == table.rows("list_max(json.a) is null").n.tolist()
