"""Payloads as cells: what TSV, CSV, JSON lines and Parquet make of them, byte for byte."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarviz.commands.tsv import parse, tsv
from tarviz.model.errors import DataError
from tarviz.tools import table_formats

Make = Callable[..., Path]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.txt"


class TestCsv:
    @settings(max_examples=100, deadline=None)
    @given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
    def test_the_csv_module_reads_it_back(self, cells: list[tuple[str, str]]):
        writer = table_formats.Csv(["a", "b"])
        data = writer.head() + b"".join(writer.row([cell.encode("utf-8", "replace") for cell in row]) for row in cells)

        expected = [[cell.encode("utf-8", "replace").decode() for cell in row] for row in [("a", "b"), *cells]]
        assert expected == list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))

    def test_what_is_missing_is_not_what_is_empty(self):
        assert b',"",x\n' == table_formats.Csv(["a", "b", "c"]).row([None, b"", b"x"])

    def test_a_row_of_one_cell_that_is_missing_is_a_row(self):
        writer = table_formats.Csv(["a"])
        data = b"".join(writer.row([cell]) for cell in (b"x", None, b"y"))

        assert [["x"], [""], ["y"]] == list(csv.reader(io.StringIO(data.decode())))

    def test_formulas_are_made_harmless(self):
        for cell, expected in [
            (b"=1+1", b"'=1+1"),
            (b"@x", b"'@x"),
            (b"+cmd", b"'+cmd"),
            (b"-1", b"-1"),
            (b"+1e5", b"+1e5"),
            (b"-1+1", b"'-1+1"),
            (b"\tx", b"'\tx"),
            (b"a=b", b"a=b"),
        ]:
            assert expected + b"\n" == table_formats.Csv(["a"], safe=True).row([cell])


class TestCells:
    def test_what_would_steer_a_terminal_is_spelled_out(self):
        for payload, cell in [
            (b"\x00\x1f\x20\x7e\x7f", "\\x00\\x1f ~\\x7f"),
            ("\x80\x9f\xa0".encode(), "\\u0080\\u009f\xa0"),
            ("\u200d\u200e\u200f\u2027\u2028\u202e\u202f".encode(), "\u200d\\u200e\\u200f\u2027\\u2028\\u202e\u202f"),
            ("\u2065\u2066\u2069\u206a\ufeff\u061c".encode(), "\u2065\\u2066\\u2069\u206a\\ufeff\\u061c"),
            (b"\x80\xff", "\\x80\\xff"),
            (b"\\N", "\\\\N"),
            (b"", ""),
        ]:
            assert cell == table_formats.escape(payload)
            assert payload == table_formats.unescape(cell)

    def test_other_letters_behind_a_backslash_stay(self):
        for cell, payload in [
            ("\\N", None),
            ("\\q\\", b"\\q\\"),
            ("\\ud800", b"\xed\xa0\x80"),
            ("\\xe9", b"\xe9"),
            ("\\x4", b"\\x4"),
            ("é", "é".encode()),
        ]:
            assert payload == table_formats.unescape(cell)

    def test_a_cell_of_csv_is_quoted_where_it_must(self):
        for cell, expected in [
            (b" a", b'" a"'),
            (b"a ", b'"a "'),
            (b"a", b"a"),
            (b"a,b", b'"a,b"'),
            (b'a"b', b'"a""b"'),
            (b"a\rb", b'"a\rb"'),
            (b"1e5", b"1e5"),
            (b"=1", b"=1"),
        ]:
            assert expected + b"\n" == table_formats.Csv(["a"]).row([cell])

    def test_a_number_is_no_formula(self):
        for cell, expected in [
            (b"+.5", b"+.5"),
            (b"-1.", b"-1."),
            (b"-1e", b"'-1e"),
            (b"-", b"'-"),
            (b"\r1", b'"\'\r1"'),
            (b"-1.5E-3", b"-1.5E-3"),
        ]:
            assert expected + b"\n" == table_formats.Csv(["a"], safe=True).row([cell])

    def test_a_value_of_json_lines_is_of_the_kind_of_its_field(self):
        for exts, payload, value in [
            (("cls",), b" +7 ", 7),
            (("cls",), b"9223372036854775807", 2**63 - 1),
            (("cls",), b"-9223372036854775808", -(2**63)),
            (("cls",), b"7" + b" " * 63, 7),
            (("cls",), b"7" + b" " * 64, "7" + " " * 64),
            (("x.cls", "index"), b"7", 7),
            (("cls", "txt"), b"7", "7"),
            (("a.json", "jsn"), b"[1]", [1]),
            (("json", "txt"), b"[1]", "[1]"),
            (("__key__",), b"\xff", "\udcff"),
            (("bin",), b"\xff", {"base64": "/w=="}),
        ]:
            line = table_formats.JsonLines(["v"], [exts]).row([payload])

            assert {"v": value} == json.loads(line)
            assert line.endswith(b"\n")

    def test_rows_come_back_under_their_titles(self):
        assert [{"a\tb": b"1", "c": None}, {"a\tb": b"", "c": b"\n"}] == list(parse("a\\tb\tc\n1\t\\N\n\n\t\\n\n"))


class TestJson:
    def test_kinds(self, make: Make, out: Path):
        fields = {"cls": b" 7\n", "json": b'{"w": [1, 2.5, null]}', "txt": "größe\n".encode(), "bin": b"\xff\0"}
        tsv(make([("a", fields), ("b", {"cls": b"cat", "json": b"{", "txt": b""})]), out, fields="cls json txt bin", format="json")

        assert [
            {"__key__": "a", "cls": 7, "json": {"w": [1, 2.5, None]}, "txt": "größe\n", "bin": {"base64": "/wA="}},
            {"__key__": "b", "cls": "cat", "json": "{", "txt": "", "bin": None},
        ] == [json.loads(line) for line in out.read_text().splitlines()]

    def test_json_that_cannot_be_taken_stays_text(self):
        for payload in [b"[" * 100_000, b"NaN", b"1" * 5000, b'"\xff"', b"Infinity"]:
            line = table_formats.JsonLines(["json"], [("json",)]).row([payload])

            value = json.loads(line, parse_constant=pytest.fail)["json"]
            assert isinstance(value, dict) or payload.decode() == value

    def test_a_class_that_is_no_int64_stays_text(self):
        for payload in [b"9223372036854775808", b"1" * 10_000, b"1_000", "٣".encode(), b"1.0"]:
            assert payload.decode() == json.loads(table_formats.JsonLines(["cls"], [("cls",)]).row([payload]))["cls"]


class TestParquet:
    @pytest.mark.matrix
    def test_kinds(self, make: Make, out: Path):
        parquet = pytest.importorskip("pyarrow.parquet")
        content = [(f"k{at}", {"cls": b"%d" % at, "txt": b"t", "jpg": b"\xff"}) for at in range(5000)]
        tsv(make([*content, ("z", {"txt": b""})]), out, fields="cls txt jpg", format="parquet")

        table = parquet.read_table(out)
        assert ["string", "int64", "string", "binary"] == [str(kind) for kind in table.schema.types]
        assert [*range(5000), None] == table["cls"].to_pylist()
        assert (b"\xff", None) == (table["jpg"][0].as_py(), table["jpg"][-1].as_py())

    def test_a_value_that_does_not_fit_its_column(self, make: Make, out: Path):
        pytest.importorskip("pyarrow.parquet")
        content = [("a", {"cls": b"1"}), ("b", {"cls": b"one"})]

        with pytest.raises(DataError, match=r'E_SCHEMA .* record "b"'):
            tsv(make(content), out, fields="cls", format="parquet")
        assert not out.exists()
        assert (1, 1) == ((result := tsv(make(content), out, fields="cls", format="parquet", on_error="skip")).rows, result.exit_code)
