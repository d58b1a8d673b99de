"""Tables of fields: one line a record whatever it holds, every byte to be had back."""

from __future__ import annotations

import csv
import io
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
from tarviz.testing.strategies import numbered_records, shard
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
        result = tsv(make(numbered_records(3)), out, fields="cls")

        assert "__key__\tcls\ntrain/n00000000\t0\ntrain/n00000001\t1\ntrain/n00000002\t2\n" == out.read_text()
        assert (3, ("__key__", "cls"), 0) == (result.rows, result.columns, result.exit_code)

    def test_a_terminal_gets_text_that_cannot_steer_it(self, make: Make, monkeypatch: pytest.MonkeyPatch):
        screen = io.StringIO()
        monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
        monkeypatch.setattr("sys.stdout", screen)
        monkeypatch.setattr(command, "_FLUSH", 10)
        tsv(make([("a", {"txt": b"\x1b[2J\ty"}), ("b", {"txt": b"\xc3\xa9"})]), fields="txt", format="csv")

        assert "__key__,txt\na,\\x1b[2J\ty\nb,é\n" == screen.getvalue()

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
        urls = [str(make(numbered_records(3), name=f"{at}.tar")) for at in range(2)]
        one = tsv(urls[0], tmp_path / "one.tsv", fields="txt")
        many = tsv(urls, tmp_path / "x-{}.tsv", fields="txt")

        assert one.columns == many.columns != ()
        assert (3, 6) == (one.rows, many.rows)

    def test_without_fields_keys_only(self, make: Make, out: Path):
        tsv(make(numbered_records(2)), out, header=False)

        assert "train/n00000000\ntrain/n00000001\n" == out.read_text()

    def test_a_field_that_no_record_has_is_warned_of(self, make: Make, out: Path):
        result = tsv(make([("a", {"cls": b"1"}), ("b", {"txt": b"x"})]), out, fields="cls,txt class:cls txt png;jpg")

        assert (2, 1, {"W_NO_COLUMN": 2}) == (result.rows, result.exit_code, result.report.counts())
        assert ["cls,txt", "png;jpg"] == [fault.message.split()[5].rstrip(":") for fault in result.report.warnings]

    def test_count(self, make: Make, out: Path):
        a = make(numbered_records(20))
        a.write_bytes(a.read_bytes()[:9000])

        assert 2 == tsv(a, out, count=2).rows

    def test_large_payloads_are_not_read_for_a_small_column(self, make: Make, out: Path):
        tsv(make(numbered_records(20, payload=b"x" * 90_000)), out, fields="cls")

        assert 21 == len(out.read_text().splitlines())

    def test_no_column_is_refused(self, make: Make, out: Path):
        with pytest.raises(UsageError):
            tsv(make(numbered_records(1)), out, key=False)

    def test_damage_makes_no_table(self, make: Make, out: Path):
        with pytest.raises(DataError):
            tsv(make(shard(numbered_records(20))[:9000]), out, fields="cls")
        assert not out.exists()


class TestShell:
    def test_a_filter(self, make: Make, bash: Any):
        make(numbered_records(3))

        done = bash("tarviz cat a.tar | tarviz tsv -f cls --no-header | cut -f 2")

        assert (0, b"0\n1\n2\n", b"") == (done.returncode, done.stdout, done.stderr)

    def test_json_lines(self, make: Make, bash: Any):
        make(numbered_records(3))

        assert b'{"__key__":"train/n00000000","cls":0}\n' == bash("tarviz tsv -f cls --json -c 1 a.tar").stdout

    def test_a_terminal_is_not_steered(self, make: Make, bash: Any):
        make([("a\x1b[31m", {"txt": b"\x1b]0;x\x07"})])

        for how in ("", "--csv", "--json"):
            shown = bash(f"script -qec 'tarviz tsv -f txt {how} a.tar' /dev/null").stdout
            assert b"\x1b" not in shown
            assert b"a\\x1b[31m" in shown or b"a\\u001b[31m" in shown

    def test_names_the_file_written(self, make: Make, bash: Any):
        make(numbered_records(3))

        assert b"labels.csv: 3 rows, __key__ cls\n" == bash("tarviz tsv -f cls --csv -o labels.csv a.tar").stdout


class TestWhole:
    def test_more_than_is_held_goes_out_on_the_way(self, make: Make, out: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(command, "_FLUSH", 100)
        tsv(make(numbered_records(50)), out, fields="cls")

        assert [
            "__key__\tcls",
            *(f"{key}\t{fields['cls'].decode()}" for key, fields in numbered_records(50)),
        ] == out.read_text().splitlines()

    def test_a_result_is_text_and_data(self, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(tmp_path)
        make(numbered_records(1), "one.tar")
        make(numbered_records(1200))
        one, many = tsv("one.tar", "o.tsv", fields="cls"), tsv("a.tar", "o.tsv", fields="x:cls png")

        assert ("o.tsv: 1 row, __key__ cls", "o.tsv: 1,200 rows, __key__ x png") == (str(one), str(many))
        assert {"rows": 1200, "columns": ["__key__", "x", "png"], "output": "o.tsv", "read": many.report.to_dict()} == many.to_dict()
        assert (1200, False) == (many.records, many.to_stdout)

    def test_text_that_is_no_utf_8_fits_no_column_of_text(self, make: Make, out: Path):
        pytest.importorskip("pyarrow.parquet")
        with pytest.raises(DataError, match=r'record "a".*is not UTF-8.*--on-error skip'):
            tsv(make([("a", {"txt": b"\xff"})]), out, fields="txt", format="parquet")

    def test_parquet_is_written_in_groups(self, make, out, monkeypatch):
        for count in [0, 1, 4, 5, 8, 9]:
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
        tsv(make(numbered_records(2)), out, fields="cls", format="parquet", header=False)

        assert [0, 1] == parquet.read_table(out)["cls"].to_pylist()

    def test_one_format_at_the_shell(self, make: Make, capsys: pytest.CaptureFixture[str]):
        assert 2 == cli.main(["tsv", "--json", "--csv", str(make(numbered_records(1)))])
        assert "a table has one format" in capsys.readouterr().err
