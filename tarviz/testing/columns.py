"""What every column of the table keeps: subclass `ColumnTests`, name a field and what another library reads of its payloads.

::

    class TestWidth(ColumnTests):
        ext, column = "png", "png.width"
        payloads = (png_of(7), png_of(40), b"no picture")
        expected = (7, 40, None)
"""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from typing import Any, ClassVar

import pytest

import tarviz
from tarviz.table import columns
from tarviz.testing.strategies import shard


class ColumnTests:
    """The contract of a column: its values, and that conditions on it fit what DuckDB finds in them, in the table and on a stream.

    `payloads`: those of field `ext`, one of each record. `column`: `ext` itself, unless it is named. `expected`: what a library of the
    world reads of each payload (PIL, soundfile, …), None for null. `streams`: whether one pass over the records can ask it.
    """

    ext: ClassVar[str]
    payloads: ClassVar[tuple[bytes, ...]]
    expected: ClassVar[tuple[Any, ...]]
    column: ClassVar[str] = ""
    streams: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The column, as a query names it."""
        return self.column or self.ext

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        """A shard of a record for each payload."""
        path = tmp_path / "a.tar"
        path.write_bytes(shard([(f"k{at:03d}", {self.ext: payload, "x": b"x"}) for at, payload in enumerate(self.payloads)]))
        return path

    def conditions(self) -> list[str]:
        """Conditions with `{}` for the column: a value compared in every way, all of them in one, ranges of two, null."""
        values = sorted({self._literal(value) for value in self.expected if value is not None})
        signs = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM")
        found = [f"{{}} {sign} {values[at % len(values)]}" for at, sign in enumerate(signs * 2) if values]
        found += [f"{{}} BETWEEN {first} AND {last}" for first, last in itertools.pairwise(values)]
        found += [f"{{}} IN ({', '.join(values)})", f"NOT ({{}} IN ({values[0]}))"] if values else []
        return [*found, "{} IS NULL", "{} IS NOT NULL"]

    @staticmethod
    def _literal(value: Any) -> str:
        return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)

    def test_it_is_a_column_of_its_field(self) -> None:
        assert len(self.payloads) == len(self.expected) > 0
        inside = columns.kind(self.ext) == "json" and self.name.startswith(f"{self.ext}.")
        assert inside or self.name in columns.of_field(self.ext)

    def test_another_library_reads_the_same_values(self, path: Path) -> None:
        rows = tarviz.table(path).sql(f"SELECT {self.name} FROM records ORDER BY n").fetchall()

        assert list(self.expected) == [value for (value,) in rows]

    def test_conditions_fit_what_duckdb_finds(self, path: Path) -> None:
        import duckdb

        table = tarviz.table(path)
        with contextlib.closing(duckdb.connect()) as base:
            base.execute("CREATE TABLE t AS SELECT unnest(?) AS n, unnest(?) AS x", [list(range(len(self.expected))), list(self.expected)])
            for text in self.conditions():
                fits = [n for (n,) in base.execute(f"SELECT n FROM t WHERE {text.format('x')} ORDER BY n").fetchall()]
                where = text.format(self.name)

                assert fits == table.rows(where).n.tolist(), where
                if self.streams:
                    assert fits == [record.index for record in tarviz.records(path, where=where)], where
