"""How cost grows: every series gives a point for each size, and the drawing has a line for each."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from bench import _growth
from docs import growth


def test_cost_is_the_median_of_the_rounds():
    clock = itertools.accumulate([0, 5, 0, 1, 0, 3])

    assert 3 == _growth.cost(lambda: None, lambda: next(clock))


def test_the_time_of_children_counts():
    before = _growth.spent()
    _growth.subprocess.run([_growth.sys.executable, "-c", "sum(range(10**6))"], check=True)

    assert before < _growth.spent()


@pytest.mark.parametrize("work", [_growth.iterated, _growth.indexed, _growth.converted, _growth.listed])
def test_a_work_takes_a_list_of_shards(tmp_path: Path, work):
    urls = [str(_growth.shard(tmp_path / f"{at}.tar", _growth.keys(3, 3 * at), b"x")) for at in range(2)]

    assert work(urls) in (6, None)


@pytest.mark.matrix
def test_every_panel_is_drawn(tmp_path: Path):
    pytest.importorskip("matplotlib", reason="matplotlib: pip install 'tarviz[lab]'")
    measured = {name: {"lines": {"records": [(1, 0.5), (10, 2)]}} for name in growth.PANELS}
    growth.draw(measured, tmp_path / "a.svg")

    assert set(_growth.SERIES) == set(growth.PANELS)
    assert "<svg" in (tmp_path / "a.svg").read_text()
