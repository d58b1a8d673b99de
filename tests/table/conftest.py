"""What the tests of the table find: shards of records given as Python values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarviz.testing.strategies import shard

pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
pytest.importorskip("pyarrow", reason="a table needs pyarrow: pip install 'tarviz[table]'")


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    """`make([("k", {"cls": b"1"})], "a.tar")` writes a shard into the test's folder."""

    def write(content: Any, name: str = "a.tar", **options: Any) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else shard(content, **options))
        return path

    return write
