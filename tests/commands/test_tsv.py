"""Tables of fields: one line a record whatever it holds, every byte to be had back."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tarviz import cli
from tarviz.commands import tsv as command
from tarviz.commands.tsv import parse, tsv
from tarviz.model.errors import DataError, UsageError
from tarviz.testing.strategies import numbered, shard
from tarviz.testing.strategies import records as record_lists
from tarviz.tools import table_formats
from tests.conftest import DATA

TARS = DATA / "corpora" / "generated"
Make = Callable[..., Path]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.txt"


class TestTsv:
    def test_a_row_for_each_record_with_its_key_in_front(self, make: Make, out: Path):
        result = tsv(make(numbered(3)), out, fields="cls")

        assert "__key__\tcls\ntrain/n00000000\t0\ntrain/n00000001\t1\ntrain/n00000002\t2\n" == out.read_text()
        assert (3, ("__key__", "cls"), 0) == (result.rows, result.columns, result.exit_code)

    def test_columns_are_in_the_order_asked_for(self, make: Make, out: Path):
        tsv(make([("a", {"x": b"1", "png": b"2"}), ("b", {"jpg": b"3"})]), out, fields="pic:jpg;png x __index__ __shard__", key=False)

        shard_name = str(out.parent / "a.tar")
        assert [["pic", "x", "__index__", "__shard__"], ["2", "1", "0", shard_name], ["3", "\\N", "1", shard_name]] == [
            line.split("\t") for line in out.read_text().splitlines()
        ]

    @settings(max_examples=100, deadline=None)
    @given(record_lists())
    @example([("a", {"jpg": b"\t\n\r\\N\x00\x1b\x7f\xff\xc2\x85\xe2\x80\xae", "cls": b""}), ("b", {"jpg": b"\\N"})])
    @pytest.mark.matrix
    def test_reads_back_byte_for_byte(self, tmp_path_factory: Any, content: Any):
        folder = tmp_path_factory.mktemp("tsv")
        (folder / "a.tar").write_bytes(shard(content, format=1))
        exts = sorted({ext for _, fields in content for ext in fields} or {"jpg"})

        tsv(folder / "a.tar", folder / "out", fields=" ".join(exts))
        text = (folder / "out").read_bytes().decode()

        assert len(content) + 1 == len(text.split("\n")) - 1
        assert [(key, fields) for key, fields in content] == [
            (row.pop("__key__").decode(), {ext: value for ext, value in row.items() if value is not None})  # type: ignore[union-attr]
            for row in parse(text)
        ]

    @given(st.binary())
    @example(b"\xed\xb2\x80")
    def test_any_payload_is_a_cell_of_one_line_without_control_characters(self, payload: bytes):
        cell = table_formats.escape(payload)

        assert payload == table_formats.unescape(cell)
        assert cell.isprintable() or all(char.isprintable() or ord(char) >= 0xA0 for char in cell)

    @pytest.mark.parametrize("options", [{}, {"format": "csv"}, {"format": "csv-safe"}, {"format": "json"}])
    def test_hostile_keys_stay_one_row_each(self, out: Path, options: Any):
        path = next(TARS.glob("S12-*.tar"))
        result = tsv(path, out, fields="txt", **options)

        assert 20 == result.rows
        data = out.read_bytes()
        if options.get("format") in (None, "json"):
            assert 21 - (options.get("format") == "json") == data.count(b"\n")
            assert not any(byte in data for byte in b"\x1b\x07\x00\x7f")
        else:
            assert 21 == len(list(csv.reader(io.StringIO(data.decode("utf-8", "surrogateescape"), newline=""))))

    def test_tables_of_many_shards_have_the_columns_of_one(self, make: Make, tmp_path: Path):
        urls = [str(make(numbered(3), name=f"{at}.tar")) for at in range(2)]
        one = tsv(urls[0], tmp_path / "one.tsv", fields="txt")
        many = tsv(urls, tmp_path / "x-{}.tsv", fields="txt")

        assert one.columns == many.columns != ()
        assert (3, 6) == (one.rows, many.rows)

    def test_without_fields_keys_only(self, make: Make, out: Path):
        tsv(make(numbered(2)), out, header=False)

        assert "train/n00000000\ntrain/n00000001\n" == out.read_text()

    def test_a_field_that_no_record_has_is_warned_of(self, make: Make, out: Path):
        result = tsv(make([("a", {"cls": b"1"}), ("b", {"txt": b"x"})]), out, fields="cls,txt class:cls txt png;jpg")

        assert (2, 1, {"W_NO_COLUMN": 2}) == (result.rows, result.exit_code, result.report.counts())
        assert ["cls,txt", "png;jpg"] == [fault.message.split()[5].rstrip(":") for fault in result.report.warnings]

    def test_count(self, make: Make, out: Path):
        a = make(numbered(20))
        a.write_bytes(a.read_bytes()[:9000])

        assert 2 == tsv(a, out, count=2).rows

    def test_large_payloads_are_not_read_for_a_small_column(self, make: Make, out: Path):
        tsv(make(numbered(20, payload=b"x" * 90_000)), out, fields="cls")

        assert 21 == len(out.read_text().splitlines())

    def test_no_column_is_refused(self, make: Make, out: Path):
        with pytest.raises(UsageError):
            tsv(make(numbered(1)), out, key=False)

    def test_damage_makes_no_table(self, make: Make, out: Path):
        with pytest.raises(DataError):
            tsv(make(shard(numbered(20))[:9000]), out, fields="cls")
        assert not out.exists()


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


class TestJson:
    def test_kinds(self, make: Make, out: Path):
        fields = {"cls": b" 7\n", "json": b'{"w": [1, 2.5, null]}', "txt": "größe\n".encode(), "bin": b"\xff\0"}
        tsv(make([("a", fields), ("b", {"cls": b"cat", "json": b"{", "txt": b""})]), out, fields="cls json txt bin", format="json")

        assert [
            {"__key__": "a", "cls": 7, "json": {"w": [1, 2.5, None]}, "txt": "größe\n", "bin": {"base64": "/wA="}},
            {"__key__": "b", "cls": "cat", "json": "{", "txt": "", "bin": None},
        ] == [json.loads(line) for line in out.read_text().splitlines()]

    @pytest.mark.parametrize("payload", [b"[" * 100_000, b"NaN", b"1" * 5000, b'"\xff"', b"Infinity"])
    def test_json_that_cannot_be_taken_stays_text(self, payload: bytes):
        line = table_formats.JsonLines(["json"], [("json",)]).row([payload])

        value = json.loads(line, parse_constant=pytest.fail)["json"]
        assert isinstance(value, dict) or payload.decode() == value

    @pytest.mark.parametrize("payload", [b"9223372036854775808", b"1" * 10_000, b"1_000", "٣".encode(), b"1.0"])
    def test_a_class_that_is_no_int64_stays_text(self, payload: bytes):
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


class TestShell:
    def test_a_filter(self, make: Make, bash: Any):
        make(numbered(3))

        done = bash("tarviz cat a.tar | tarviz tsv -f cls --no-header | cut -f 2")

        assert (0, b"0\n1\n2\n", b"") == (done.returncode, done.stdout, done.stderr)

    def test_json_lines(self, make: Make, bash: Any):
        make(numbered(3))

        assert b'{"__key__":"train/n00000000","cls":0}\n' == bash("tarviz tsv -f cls --json -c 1 a.tar").stdout

    def test_a_terminal_is_not_steered(self, make: Make, bash: Any):
        make([("a\x1b[31m", {"txt": b"\x1b]0;x\x07"})])

        for how in ("", "--csv", "--json"):
            shown = bash(f"script -qec 'tarviz tsv -f txt {how} a.tar' /dev/null").stdout
            assert b"\x1b" not in shown
            assert b"a\\x1b[31m" in shown or b"a\\u001b[31m" in shown

    def test_names_the_file_written(self, make: Make, bash: Any):
        make(numbered(3))

        assert b"labels.csv: 3 rows, __key__ cls\n" == bash("tarviz tsv -f cls --csv -o labels.csv a.tar").stdout


class TestWhole:
    def test_more_than_is_held_goes_out_on_the_way(self, make: Make, out: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(command, "_FLUSH", 100)
        tsv(make(numbered(50)), out, fields="cls")

        assert ["__key__\tcls", *(f"{key}\t{fields['cls'].decode()}" for key, fields in numbered(50))] == out.read_text().splitlines()

    def test_a_result_is_text_and_data(self, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(tmp_path)
        make(numbered(1), "one.tar")
        make(numbered(1200))
        one, many = tsv("one.tar", "o.tsv", fields="cls"), tsv("a.tar", "o.tsv", fields="x:cls png")

        assert ("o.tsv: 1 row, __key__ cls", "o.tsv: 1,200 rows, __key__ x png") == (str(one), str(many))
        assert {"rows": 1200, "columns": ["__key__", "x", "png"], "output": "o.tsv", "read": many.report.to_dict()} == many.to_dict()
        assert (1200, False) == (many.records, many.to_stdout)

    def test_text_that_is_no_utf_8_fits_no_column_of_text(self, make: Make, out: Path):
        pytest.importorskip("pyarrow.parquet")
        with pytest.raises(DataError, match=r'record "a".*is not UTF-8.*--on-error skip'):
            tsv(make([("a", {"txt": b"\xff"})]), out, fields="txt", format="parquet")

    @pytest.mark.parametrize("count", [0, 1, 4, 5, 8, 9])
    def test_parquet_is_written_in_groups(self, make: Make, out: Path, monkeypatch: pytest.MonkeyPatch, count: int):
        parquet = pytest.importorskip("pyarrow.parquet")
        monkeypatch.setattr(table_formats, "_ROWS", 4)
        tsv(
            make([(f"k{at}", {"cls": b"%d" % at, "x.json": b"{}", "jpg": b"\xff"}) for at in range(count)]),
            out,
            fields="cls x.json jpg",
            format="parquet",
        )

        file = parquet.ParquetFile(out)
        assert -(-count // 4) == file.num_row_groups
        assert ["string", "int64", "string", "binary"] == [str(kind) for kind in file.schema_arrow.types]
        assert [(f"k{at}", at, "{}", b"\xff") for at in range(count)] == [tuple(row.values()) for row in file.read().to_pylist()]

    def test_a_header_of_parquet_is_always_there(self, make: Make, out: Path):
        parquet = pytest.importorskip("pyarrow.parquet")
        tsv(make(numbered(2)), out, fields="cls", format="parquet", header=False)

        assert [0, 1] == parquet.read_table(out)["cls"].to_pylist()

    def test_one_format_at_the_shell(self, make: Make, capsys: pytest.CaptureFixture[str]):
        assert 2 == cli.main(["tsv", "--json", "--csv", str(make(numbered(1)))])
        assert "a table has one format" in capsys.readouterr().err


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
