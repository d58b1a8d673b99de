"""What `join` finds in tables: their forms, keys, types, and what is wrong with them."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarviz.commands.join import join
from tarviz.commands.tsv import tsv
from tarviz.model.errors import DataError, SchemaError, UsageError
from tarviz.model.types import URL
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.testing.strategies import numbered_records, shard
from tarviz.tools import partners
from tests.commands.conftest import plain

Make = Callable[..., Path]


ROWS: list[dict[str, Any]] = [
    {"filename": f"train/n{n:08d}.png", "label": ["cat", "dog"][n % 2], "score": n / 4, "count": n, "zip": f"{n:05d}"} for n in range(8)
]


def written(folder: Path, form: str) -> Path:
    """A table of ROWS as people have it."""
    place = folder / f"labels.{form}"
    if form.startswith(("csv", "tsv")):
        text = io.StringIO()
        rows = csv.DictWriter(text, list(ROWS[0]), delimiter="\t" if form == "tsv" else ",", lineterminator="\n")
        rows.writeheader()
        rows.writerows(ROWS)
        data = text.getvalue().encode()
        place.write_bytes(gzip.compress(data) if form.endswith(".gz") else data)
    elif form == "parquet":
        arrow = pytest.importorskip("pyarrow", reason="a table needs pyarrow: pip install 'tarviz[table]'")
        parquet = pytest.importorskip("pyarrow.parquet", reason="a table needs pyarrow: pip install 'tarviz[table]'")
        parquet.write_table(arrow.Table.from_pylist(ROWS), place)
    else:
        place.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return place


@pytest.fixture
def duckdb() -> None:
    pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")


@pytest.mark.usefixtures("duckdb")
class TestTables:
    def test_columns_become_json_of_their_types(self, make, tmp_path, out):
        for form in ["csv", "csv.gz", "tsv", "jsonl", "parquet"]:
            result = join(make(numbered_records(10)), written(tmp_path, form), out, on="filename")

            found = [fields.get("json") for _, fields in plain(out)]
            assert [{name: row[name] for name in row if name != "filename"} for row in ROWS] == [
                json.loads(text) for text in found[:8] if text
            ]
            assert [None, None] == found[8:]
            assert (8, 2, 0) == (result.found, result.alone, result.unused)

    @pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
    def test_columns_become_fields_of_their_own(self, make: Make, tmp_path: Path, out: Path, form: str):
        a = make([(key, {"png": b""}) for key, _ in numbered_records(8)])

        join(a, written(tmp_path, form), out, on="filename", fields={"count": "cls", "label": "txt"})

        assert [{"png": b"", "cls": b"%d" % row["count"], "txt": row["label"].encode()} for row in ROWS] == [
            fields for _, fields in plain(out)
        ]

    def test_columns_are_merged_into_json_that_is_there(self, make: Make, tmp_path: Path, out: Path):
        a = make([("a", {"json": b'{"w": 3, "label": "cat"}', "cls": b"1"}), ("b", {"json": b'{"w":4}'})])
        (tmp_path / "l.csv").write_text("key,label\na,cat\nb,dog\n")

        join(a, tmp_path / "l.csv", out)

        assert {"json": b'{"w": 3, "label": "cat"}', "cls": b"1"} == plain(out)[0][1]
        assert {"w": 4, "label": "dog"} == json.loads(plain(out)[1][1]["json"])

    @pytest.mark.parametrize(("duplicates", "expected"), [("first", 3), ("last", 4)])
    def test_a_name_in_json_that_differs_is_refused_or_chosen(self, make: Make, tmp_path: Path, out: Path, duplicates: Any, expected: int):
        a = make([("a", {"json": b'{"w": 3}'})])
        (tmp_path / "l.csv").write_text("key,w,h\na,4,5\n")

        with pytest.raises(DataError, match=r"E_DUP_FIELD.*json\.w is in both"):
            join(a, tmp_path / "l.csv", out)
        join(a, tmp_path / "l.csv", out, duplicates=duplicates)
        assert {"w": expected, "h": 5} == json.loads(plain(out)[0][1]["json"])

    def test_json_that_is_no_object_is_an_error(self, make: Make, tmp_path: Path, out: Path):
        (tmp_path / "l.csv").write_text("key,w\na,4\n")

        with pytest.raises(DataError, match="E_SCHEMA"):
            join(make([("a", {"json": b"[1]"})]), tmp_path / "l.csv", out)

    def test_numbers_that_a_number_could_not_hold_stay_text(self, make: Make, tmp_path: Path, out: Path):
        (tmp_path / "l.csv").write_text("key,id,gps,none\na,12345678901234567890,1e-7,\nb,1,-2.5,\n")

        join(make([("a", {"cls": b""}), ("b", {"cls": b""})]), tmp_path / "l.csv", out)

        assert [{"id": "12345678901234567890", "gps": 1e-7, "none": None}, {"id": "1", "gps": -2.5, "none": None}] == [
            json.loads(fields["json"]) for _, fields in plain(out)
        ]

    def test_no_line_is_guessed_away(self, make: Make, tmp_path: Path, out: Path):
        keys = ["#1", "a", "b", "c"]
        (tmp_path / "l.csv").write_text('\ufeffkey,w\r\n#1,x # y\r\na,"1,\n2"\r\nb,\'\r\n"c",""""\r\n', newline="")

        join(make([(key, {"cls": b""}) for key in keys]), tmp_path / "l.csv", out)

        assert ["x # y", "1,\n2", "'", '"'] == [json.loads(fields["json"])["w"] for _, fields in plain(out)]

    def test_a_line_with_a_cell_too_many_is_named_without_options_of_duckdb(self, make: Make, tmp_path: Path, out: Path):
        (tmp_path / "l.csv").write_text("key,w\na,1,2\n")

        with pytest.raises(UsageError, match="Line: 2") as found:
            join(make([("a", {"cls": b""})]), tmp_path / "l.csv", out)
        assert "strict_mode" not in str(found.value)

    def test_a_row_that_comes_twice_is_refused_or_one_is_chosen(self, make: Make, tmp_path: Path, out: Path):
        (tmp_path / "l.csv").write_text("key,w\na,1\nb,2\na,3\n")
        a = make([("a", {"cls": b""}), ("b", {"cls": b""})])

        with pytest.raises(DataError, match="2 of the others have this key"):
            join(a, tmp_path / "l.csv", out)
        for duplicates, expected in (("first", [1, 2]), ("last", [3, 2])):
            result = join(a, tmp_path / "l.csv", out, duplicates=duplicates)
            assert expected == [json.loads(fields["json"])["w"] for _, fields in plain(out)]
            assert 0 == result.unused
        assert ["b"] == [key for key, _ in plain(join(a, tmp_path / "l.csv", out, on_error="skip").outputs[0].url)]

    def test_parquet_of_pictures_and_dates(self, make: Make, tmp_path: Path, out: Path):
        arrow = pytest.importorskip("pyarrow", reason="a table needs pyarrow: pip install 'tarviz[table]'")
        parquet = pytest.importorskip("pyarrow.parquet", reason="a table needs pyarrow: pip install 'tarviz[table]'")
        import datetime

        row = {"id": 7, "image": {"bytes": b"\xff\xd8", "path": "a.jpg"}, "day": datetime.date(2026, 11, 25), "nan": float("nan")}
        parquet.write_table(arrow.Table.from_pylist([row]), tmp_path / "p.parquet")
        a = make([("7", {"cls": b""})])

        join(a, tmp_path / "p.parquet", out, on="id", fields={"image.bytes": "jpg"})
        assert b"\xff\xd8" == plain(out)[0][1]["jpg"]
        join(a, tmp_path / "p.parquet", out, on="id", fields={"day": "txt", "nan": "json"})
        assert b"2026-11-25" == plain(out)[0][1]["txt"]

        parquet.write_table(arrow.table({"id": [7], "bytes": [b"\xff\xd8"]}), tmp_path / "q.parquet")
        with pytest.raises(SchemaError, match="--as jpg=bytes"):
            join(a, tmp_path / "q.parquet", out, on="id")

    def test_a_text_is_no_class(self, make: Make, tmp_path: Path, out: Path):
        (tmp_path / "l.csv").write_text("key,label\na,cat\n")

        with pytest.raises(SchemaError, match="whole number"):
            join(make([("a", {"txt": b""})]), tmp_path / "l.csv", out, fields={"label": "cls"})

    def test_a_part_of_the_key_is_looked_up(self, make: Make, tmp_path: Path, out: Path):
        (tmp_path / "l.csv").write_text("filename,w\n0001.jpg,1\n")
        a = make([("train/0001", {"cls": b""})])

        none = join(a, tmp_path / "l.csv", out, on="filename")
        assert (1, {"W_NO_PARTNER": 1}) == (none.exit_code, none.report.counts())
        assert 1 == join(a, tmp_path / "l.csv", out, on="filename", match="{base}").found

    def test_a_table_that_tsv_wrote_gives_back_every_byte(self, make: Make, tmp_path: Path, out: Path):
        content = [("a", {"txt": b"a\tb\\n\xff", "cls": b"7"}), ("b", {"txt": b"", "cls": b"x"})]
        tsv(make(content), tmp_path / "l.tsv", fields="txt cls")
        a = make([(key, {"jpg": b""}) for key, _ in content])

        join(a, tmp_path / "l.tsv", out, fields={"txt": "txt"})
        assert [{"jpg": b"", "txt": fields["txt"]} for _, fields in content] == [fields for _, fields in plain(out)]
        with pytest.raises(SchemaError, match="whole number"):
            join(a, tmp_path / "l.tsv", out, fields={"cls": "cls"})
        with pytest.raises(SchemaError, match="holds bytes"):
            join(a, tmp_path / "l.tsv", out)

    def test_half_a_surrogate_pair_survives(self, make: Make, tmp_path: Path, out: Path):
        (tmp_path / "l.jsonl").write_text('{"key": "a", "more": "é"}\n')

        join(make([("a", {"json": b'{"text": "\\ud83d"}'})]), tmp_path / "l.jsonl", out)

        assert {"text": "\ud83d", "more": "é"} == json.loads(plain(out)[0][1]["json"])

    def test_keys_that_hold_dots_are_taken_as_they_are(self, make: Make, tmp_path: Path, out: Path):
        (tmp_path / "l.csv").write_text("key,w\na.b,1\n")

        assert 1 == join(make([("a.b", {"cls": b""})]), tmp_path / "l.csv", out, key_split="last-dot").found

    def test_what_cannot_be_joined_says_why_and_writes_nothing(self, make, tmp_path, out):
        for text, message, options in [
            ("id,w\na,1\n", "no column 'key'; it has id, w", {}),
            ("key,w\na,1\n", "no column 'x'", {"fields": {"x": "cls"}}),
            ("key,w\na,1\n", "no column 'x'", {"on": "x"}),
            ('key,w\n"a" b,1\n', r"Line: 2", {}),
            ("key,w\na,1\nb\n", r"l\.csv.*Line: 3", {}),
            ("key,w,w\na,1,2\n", "one twice", {}),
            ("key;w\na;1\n", r"it has key;w.*\.csv cells are apart by commas", {}),
            ("key\r\na\n", r"no column 'w'.*--on COLUMN", {"fields": {"w": "cls"}}),
            ("key,w\r\na,1\nb,2\r\n", r"l\.csv.*lines end in several ways.*dos2unix", {}),
            ("k\0e\0y\0", "UTF-16.*iconv", {}),
            ("", "no columns", {}),
            ("key,w\na,1\n", "how", {"how": "outer"}),
        ]:
            (tmp_path / "l.csv").write_bytes(text.encode())

            with pytest.raises(UsageError, match=message):
                join(make(numbered_records(1)), tmp_path / "l.csv", out, **options)
            assert not out.exists()

    def test_one_table_at_a_time_and_on_is_for_tables(self, make: Make, tmp_path: Path, out: Path):
        (tmp_path / "l.csv").write_text("key,w\na,1\n")
        with pytest.raises(UsageError, match="one table"):
            join(make(numbered_records(1)), [tmp_path / "l.csv", tmp_path / "l.csv"], out)
        with pytest.raises(UsageError, match="column of a table"):
            join(make(numbered_records(1)), make(numbered_records(1), "b.tar"), out, on="key")


class TestOtherShards:
    @pytest.fixture
    def urls(self, tmp_path: Path) -> list[URL]:
        (tmp_path / "a.tar").write_bytes(shard([(f"k{at}", {"txt": b"a%d" % at, "cls": b"%d" % at}) for at in range(4)]))
        (tmp_path / "b.tar.gz").write_bytes(gzip.compress(shard([("k9", {"txt": b"b9"}), ("k1", {"txt": b"b1", "png": b"p"})])))
        return [URL(str(tmp_path / name)) for name in ("a.tar", "b.tar.gz")]

    @pytest.mark.parametrize("at_once", [1, 8 << 20])
    @pytest.mark.parametrize(
        ("duplicates", "names", "found"),
        [
            ("first", None, [[{"txt": b"b9"}], [], [{"txt": b"a1", "cls": b"1"}], [{"txt": b"a3", "cls": b"3"}]]),
            ("last", None, [[{"txt": b"b9"}], [], [{"txt": b"b1", "png": b"p"}], [{"txt": b"a3", "cls": b"3"}]]),
            ("last", {"txt": "caption", "png": "png"}, [[{"caption": b"b9"}], [], [{"caption": b"b1", "png": b"p"}], [{"caption": b"a3"}]]),
        ],
    )
    def test_partners_come_in_the_order_of_the_keys(
        self, urls: list[URL], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int, duplicates: Any, names: Any, found: Any
    ):
        monkeypatch.setattr(partners, "_AT_ONCE", at_once)
        others = partners.OtherShards(urls, ReadOptions(duplicates=duplicates), str(tmp_path), names, report := ReadReport())

        assert found == [[dict(each()) for each in some] for some in others.of([b"k9", b"none", b"k1", b"k3"])]
        assert [False, True, False, True, True, True] == others.used.tolist()
        assert {} == report.counts()
        assert [] == list(others.of([]))

    def test_several_of_one_key_are_there_and_not_read(self, urls: list[URL], tmp_path: Path):
        others = partners.OtherShards(urls, ReadOptions(), str(tmp_path), None, ReadReport())

        assert [2, 1] == [len(some) for some in others.of([b"k1", b"k0"])]

    def test_damage_is_said_of_the_shard_that_was_given(self, urls: list[URL], tmp_path: Path):
        path = tmp_path / "b.tar.gz"
        path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())[:2300]))
        with pytest.raises(DataError) as error:
            partners.OtherShards(urls, ReadOptions(), str(tmp_path), None, ReadReport())
        assert urls[1] == error.value.shard
        (tmp_path / "2").mkdir()
        report = ReadReport()
        others = partners.OtherShards(urls, ReadOptions(on_error="skip"), str(tmp_path / "2"), None, report)
        assert [(urls[1], "E_TRUNCATED")] == [(fault.shard, fault.code) for fault in report.skipped]
        assert [1] == [len(some) for some in others.of([b"k9"])]


@pytest.mark.usefixtures("duckdb")
@pytest.mark.parametrize(("at_once", "looked_for"), [(1, 2), (8 << 20, 3)])
def test_of_a_table_so_many_rows_are_looked_for_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int, looked_for: int):
    monkeypatch.setattr(partners, "_AT_ONCE", at_once)
    monkeypatch.setattr(partners, "_ROWS", range(2, 3))
    (tmp_path / "t.csv").write_text("key,n\n" + "".join(f"k{at},{at}\n" for at in range(8)))
    rows = partners.PartnerRows(str(tmp_path / "t.csv"), None, None, str(tmp_path), ReadOptions())
    found = rows.of([b"k%d" % at for at in range(8)])

    first = next(found)
    assert looked_for == int(rows.used.sum())
    assert [{"json": {"n": at}} for at in range(8)] == [dict(each()) for each in [*first, *(one for some in found for one in some)]]
    assert rows.used.all()
