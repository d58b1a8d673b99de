"""What the benchmark does with a browser, on a small shard: its scripts run in processes of their own, where no type checker looks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import browse, zoo
from tests.widgets.conftest import png, tar

pytestmark = pytest.mark.programs


FIRST, FAR = browse._FIRST, [0.001, 1e9]


@pytest.mark.parametrize(
    ("script", "more"),
    [(FIRST, ["warm", "finish"]), (FIRST, ["cold", "go"]), (browse._JUMP, [20]), (browse._HTTP, FAR), (zoo._TILES, [])],
)
def test_a_script_prints_how_long_it_took(tmp_path: Path, script: str, more: list[object]):
    shard = tar(tmp_path / "a.tar", [(f"k{at:02}", {"png": png()}) for at in range(30)])
    found = json.loads(browse.run(script, shard, *more, cache=tmp_path / "cache"))

    assert 0 < (found[0] if isinstance(found, list) else found)
