"""Columns for a map: numbers of every kind, the commonest values of all else, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
pytest.importorskip("pyarrow", reason="a table needs pyarrow: pip install 'tarviz[table]'")

from tarviz.model.errors import UsageError
from tarviz.table.table import Table
from tarviz.widgets.map import axes
from tests.widgets.conftest import tar


def table_of(tmp_path, trees):
    records = [(f"n{at:03d}", {"json": json.dumps(tree).encode()}) for at, tree in enumerate(trees)]
    return Table([tar(tmp_path / "s.tar", records)])


def in_order(found, values):
    return [values[at] for at in np.argsort(found.n).tolist()]


def test_numbers_are_those_of_every_record_and_nan_where_it_has_none(tmp_path):
    table = table_of(tmp_path, [{"w": 1.5, "ok": True}, {"w": None, "ok": False}, {"w": -2}])

    rows, (wide, yes) = axes.numbers(table, ["json.w", "json.ok"])

    assert [1.5, None, -2.0] == [None if value != value else value for value in in_order(rows, wide)]
    assert [1.0, 0.0, None] == [None if value != value else value for value in in_order(rows, yes)]


@pytest.mark.parametrize(
    ("column", "said", "hint"),
    [
        ("json.name", "json.name holds text; an axis needs numbers.", "Colour by it instead."),
    ],
)
def test_what_is_no_number_is_refused_as_an_axis(tmp_path, column, said, hint):
    table = table_of(tmp_path, [{"name": "a", "list": [1]}])

    with pytest.raises(UsageError) as refused:
        axes.numbers(table, [column])
    assert (said, hint) == (refused.value.message, refused.value.hint)


def test_a_list_has_no_colour(tmp_path):
    with pytest.raises(UsageError, match=r"json\.list holds a list; colours need numbers or text\."):
        axes.groups(table_of(tmp_path, [{"list": [1]}]), "json.list")


@pytest.mark.parametrize(
    ("values", "names", "codes"),
    [
        (["a", "b", "b", None], ("b", "a"), [1, 0, 0, -1]),
        ([3, 5, 5], ("5", "3"), [1, 0, 0]),
        ([True, False, False, None], ("no", "yes"), [1, 0, 0, -1]),
        ([f"v{min(at, 24):02d}" for at in range(26)], None, None),
    ],
)
def test_few_values_are_groups_the_commonest_first(tmp_path, values, names, codes):
    found = axes.groups(table_of(tmp_path, [{"v": value} for value in values]), "json.v")

    assert found.values is None
    if names is None:  # one more than there are colours: the rarest share the last
        assert (24, "v24") == (len(found.names), found.names[0])
        assert 1 == in_order(found.rows, found.codes.tolist()).count(24)
        assert [0, 0] == in_order(found.rows, found.codes.tolist())[-2:]
    else:
        assert (names, codes) == (found.names, in_order(found.rows, found.codes.tolist()))


@pytest.mark.parametrize("values", [[0.5, 1.5], list(range(25))])
def test_many_whole_numbers_and_all_real_ones_are_a_scale(tmp_path, values):
    found = axes.groups(table_of(tmp_path, [{"v": value} for value in values]), "json.v")

    assert (None, ()) == (found.codes, found.names)
    assert values == in_order(found.rows, found.values.tolist())
    assert len(axes.groups(table_of(tmp_path, [{"v": at} for at in range(24)]), "json.v").names) == axes.MOST_GROUPS
