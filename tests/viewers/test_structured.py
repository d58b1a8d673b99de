"""Parquet, Arrow, MessagePack, CBOR: rows and trees."""

from __future__ import annotations

import io
from typing import ClassVar

import pytest

import tarviz
from tarviz import viewers
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Meta, Table, Tree

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra `table`)")
msgpack = pytest.importorskip("msgpack", reason="msgpack is not installed (extra `media`)")
from pyarrow import feather, parquet  # noqa: E402

ROWS = pa.table({"name": ["a", "b", None], "n": [1, 2, 3], "x": [0.5, 1e-9, float("nan")]})


def written(write, table=ROWS, **options) -> bytes:
    out = io.BytesIO()
    write(table, out, **options)
    return out.getvalue()


class TestStructured(ViewerTests):
    viewer = "structured"
    good: ClassVar = {"parquet": written(parquet.write_table), "feather": written(feather.write_feather), "msgpack": b"\x81\xa1a\x01"}
    bad: ClassVar = {"parquet": b"PAR1 cut", "arrow": b"ARROW1", "msgpack": b"\x82\xa1a"}

    def test_a_cell_has_eighty_letters_at_most(self):
        (table,) = self.panel("parquet", written(parquet.write_table, pa.table({"a": ["x" * 80, "x" * 81]}))).blocks

        assert (("x" * 80,), ("x" * 79 + "…",)) == table.rows

    def test_rows_stand_under_their_names(self):
        panel = self.panel("parquet", self.good["parquet"])
        (table,) = panel.blocks

        assert "3 rows, 3 columns" == panel.summary
        assert Table(("name", "n", "x"), (("a", "1", "0.5"), ("b", "2", "1e-09"), ("", "3", "nan")), (1, 2)) == table

    def test_places_in_columns_are_points(self):
        blob = written(feather.write_feather, pa.table({name: [0.5, 1.0, 2.0] * 30 for name in ("x", "y", "z", "intensity")}))
        panel = self.panel("feather", blob)

        assert ["Points", "Table", "Table"] == [type(block).__name__ for block in panel.blocks]
        assert viewers.tile(blob, Meta("feather"), 64).startswith(b"\x89PNG")
        words = written(feather.write_feather, pa.table({name: ["a"] * 9 for name in "xyz"}))
        assert ["Table"] == [type(block).__name__ for block in self.panel("feather", words).blocks]

    def test_arrow_is_told_by_its_first_bytes(self):
        assert "structured" == viewers.choose("unknown", self.good["feather"])
        assert "3 rows, 3 columns" == viewers.view(self.good["feather"], Meta("unknown")).summary

    def test_long_tables_are_cut_and_short_in_a_tile(self):
        blob = written(parquet.write_table, pa.table({"n": range(1000)}))

        assert "1,000 rows, 1 column, the first 200 shown" == self.panel("parquet", blob).summary
        assert "1,000 rows, 1 column, the first 200 shown\nn\n0\n1\n2\n3" == viewers.tile(blob, Meta("parquet"))

    def test_runs_that_unpack_without_end_are_refused_by_header(self):
        blob = written(parquet.write_table, pa.table({"n": [0] * 100_000}))

        with tarviz.options(max_member_bytes=100_000):
            assert "E_LIMIT" == self.panel("parquet", blob).error.code

    def test_messages_are_trees_and_bytes_in_them_are_counted(self):
        panel = self.panel("mp", msgpack.packb({"image": b"12345", "boxes": [[1, 2]]}))

        assert isinstance(panel.blocks[0], Tree)
        assert '{"image": 5 bytes, "boxes": [[1, 2]]}' == panel.summary
