"""Payloads as cells: what TSV, CSV, JSON lines and Parquet make of them, byte for byte."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarviz.commands.tsv import parse
from tarviz.tools import table_formats


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

    @pytest.mark.parametrize(
        ("cell", "expected"),
        [
            (b"=1+1", b"'=1+1"),
            (b"@x", b"'@x"),
            (b"+cmd", b"'+cmd"),
            (b"-1", b"-1"),
            (b"+1e5", b"+1e5"),
            (b"-1+1", b"'-1+1"),
            (b"\tx", b"'\tx"),
            (b"a=b", b"a=b"),
        ],
    )
    def test_formulas_are_made_harmless(self, cell: bytes, expected: bytes):
        assert expected + b"\n" == table_formats.Csv(["a"], safe=True).row([cell])


class TestCells:
    @pytest.mark.parametrize(
        ("payload", "cell"),
        [
            (b"\x00\x1f\x20\x7e\x7f", "\\x00\\x1f ~\\x7f"),
            ("\x80\x9f\xa0".encode(), "\\u0080\\u009f\xa0"),
            ("\u200d\u200e\u200f\u2027\u2028\u202e\u202f".encode(), "\u200d\\u200e\\u200f\u2027\\u2028\\u202e\u202f"),
            ("\u2065\u2066\u2069\u206a\ufeff\u061c".encode(), "\u2065\\u2066\\u2069\u206a\\ufeff\\u061c"),
            (b"\x80\xff", "\\x80\\xff"),
            (b"\\N", "\\\\N"),
            (b"", ""),
        ],
    )
    def test_what_would_steer_a_terminal_is_spelled_out(self, payload: bytes, cell: str):
        assert cell == table_formats.escape(payload)
        assert payload == table_formats.unescape(cell)

    @pytest.mark.parametrize(
        ("cell", "payload"),
        [("\\N", None), ("\\q\\", b"\\q\\"), ("\\ud800", b"\xed\xa0\x80"), ("\\xe9", b"\xe9"), ("\\x4", b"\\x4"), ("é", "é".encode())],
    )
    def test_other_letters_behind_a_backslash_stay(self, cell: str, payload: bytes | None):
        assert payload == table_formats.unescape(cell)

    @pytest.mark.parametrize(
        ("cell", "expected"),
        [
            (b" a", b'" a"'),
            (b"a ", b'"a "'),
            (b"a", b"a"),
            (b"a,b", b'"a,b"'),
            (b'a"b', b'"a""b"'),
            (b"a\rb", b'"a\rb"'),
            (b"1e5", b"1e5"),
            (b"=1", b"=1"),
        ],
    )
    def test_a_cell_of_csv_is_quoted_where_it_must(self, cell: bytes, expected: bytes):
        assert expected + b"\n" == table_formats.Csv(["a"]).row([cell])

    @pytest.mark.parametrize(
        ("cell", "expected"),
        [(b"+.5", b"+.5"), (b"-1.", b"-1."), (b"-1e", b"'-1e"), (b"-", b"'-"), (b"\r1", b'"\'\r1"'), (b"-1.5E-3", b"-1.5E-3")],
    )
    def test_a_number_is_no_formula(self, cell: bytes, expected: bytes):
        assert expected + b"\n" == table_formats.Csv(["a"], safe=True).row([cell])

    @pytest.mark.parametrize(
        ("exts", "payload", "value"),
        [
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
        ],
    )
    def test_a_value_of_json_lines_is_of_the_kind_of_its_field(self, exts: tuple[str, ...], payload: bytes, value: Any):
        line = table_formats.JsonLines(["v"], [exts]).row([payload])

        assert {"v": value} == json.loads(line)
        assert line.endswith(b"\n")

    def test_rows_come_back_under_their_titles(self):
        assert [{"a\tb": b"1", "c": None}, {"a\tb": b"", "c": b"\n"}] == list(parse("a\\tb\tc\n1\t\\N\n\n\t\\n\n"))
