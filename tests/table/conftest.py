"""What the tests of the table find: shards of records given as Python values."""

from __future__ import annotations

import pytest

pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
pytest.importorskip("pyarrow", reason="a table needs pyarrow: pip install 'tarviz[table]'")
