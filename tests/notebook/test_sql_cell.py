"""`%%tv sql`: a query below its shards."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("IPython", reason="IPython comes with the extra `lab`")
pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")


def test_a_query_stands_below_its_shards(shell: Any, capsys: pytest.CaptureFixture[str]):
    assert shell.run_cell("%%tv sql s-{0..2}.tar -o answer\nSELECT cls, count(*) AS records\nFROM records GROUP BY cls").success

    assert {0: 3, 1: 3, 2: 3, 3: 3} == dict(shell.user_ns["answer"].rows)
    assert "records" in capsys.readouterr().out
