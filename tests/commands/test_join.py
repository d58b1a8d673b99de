"""Records joined by key with other records and with tables: what has a partner, what has none, what has several."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarviz import cli
from tarviz.commands.join import join
from tarviz.commands.tsv import tsv
from tarviz.formats.tar_header import tar_member
from tarviz.model.errors import DataError, SchemaError, UsageError
from tarviz.testing.strategies import numbered, shard
from tests import memory
from tests.commands.conftest import listed, names, plain

Make = Callable[..., Path]
OLD = st.dictionaries(st.sampled_from(["jpg", "cls"]), st.binary(max_size=600), min_size=1)
NEW = st.dictionaries(st.sampled_from(["txt", "seg.png"]), st.binary(max_size=600), min_size=1)
KEYS = st.sampled_from([f"train/{letter}" for letter in "abcdefgh"])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.tar"


def texts(keys: list[str]) -> list[tuple[str, dict[str, bytes]]]:
    return [(key, {"txt": key.encode()}) for key in keys]


class TestShards:
    @settings(max_examples=60)
    @given(st.dictionaries(KEYS, OLD), st.dictionaries(KEYS, NEW), st.sampled_from(["left", "inner"]), st.booleans())
    @pytest.mark.matrix
    def test_it_says_what_joining_dicts_says(self, tmp_path_factory: Any, old: Any, new: Any, how: Any, packed: bool):
        folder = tmp_path_factory.mktemp("join")
        (folder / "a.tar").write_bytes(shard(old.items()))
        other = shard(random.Random(len(new)).sample(sorted(new.items()), len(new)))
        (folder / "b.tar").write_bytes(gzip.compress(other) if packed else other)

        result = join(folder / "a.tar", folder / "b.tar", folder / "c.tar", how=how)

        assert [(key, old[key] | new.get(key, {})) for key in old if how == "left" or key in new] == plain(folder / "c.tar")
        both = len(old.keys() & new.keys())
        assert (both, len(old) - both, len(new) - both) == (result.found, result.alone, result.unused)

    def test_partners_are_found_in_whatever_shard_and_order(self, make: Make, out: Path):
        keys = [key for key, _ in numbered(40)]
        others = [make(texts(keys[20:][::-1]), "b-0.tar"), make(texts(keys[:20]), "b-1.tar")]

        result = join(make(numbered(40)), others, out)

        assert [(key, {**fields, "txt": key.encode()}) for key, fields in numbered(40)] == plain(out)
        assert (40, 0, 0, 0) == (result.found, result.alone, result.unused, result.exit_code)
        assert 120 == len(listed(out))

    def test_what_a_had_stays_as_it_is(self, tmp_path: Path, out: Path):
        (tmp_path / "a.tar").write_bytes(shard(numbered(3), mtime=77))
        (tmp_path / "b.tar").write_bytes(shard(texts(["train/n00000001"])))

        join(tmp_path / "a.tar", tmp_path / "b.tar", out)

        with tarfile.open(out) as tar:
            assert [77, 77, 77, 77, 0, 77, 77] == [member.mtime for member in tar]

    def test_large_payloads_are_copied_from_where_they_lie(self, make: Make, out: Path):
        content = numbered(5, payload=b"\xff" * 300_000)

        join(make(content), make(texts([key for key, _ in content]), "b.tar"), out)

        assert [(key, {**fields, "txt": key.encode()}) for key, fields in content] == plain(out)

    def test_a_counter_makes_a_tar_of_each_shard(self, make: Make, tmp_path: Path):
        content = numbered(6)
        a = [make(content[:4], "a-0.tar"), make(content[4:], "a-1.tar")]

        result = join(a, make(texts([key for key, _ in content]), "b.tar"), tmp_path / "out" / "c-{}.tar")

        assert [("c-1.tar", 4), ("c-2.tar", 2)] == [(Path(tar.url).name, tar.records) for tar in result.outputs]
        assert [key for key, _ in content[4:]] == [key for key, _ in plain(tmp_path / "out" / "c-2.tar")]
        assert (6, 0) == (result.found, result.unused)
        with pytest.raises(UsageError, match="one of the inputs"):
            join(a, make(content, "b-1.tar"), tmp_path / "b-{}.tar")

    def test_a_field_of_both_is_taken_once_where_it_is_the_same(self, make: Make, out: Path):
        join(make([("k", {"txt": b"1", "cls": b"1"})]), make([("k", {"txt": b"1", "jpg": b""})], "b.tar"), out)

        assert 3 == len(listed(out))

    @pytest.mark.parametrize(("duplicates", "expected"), [("first", b"1"), ("last", b"2")])
    def test_a_field_of_both_that_differs_is_refused_or_chosen(self, make: Make, out: Path, duplicates: Any, expected: bytes):
        a, b = make([("k", {"txt": b"1"}), ("m", {"txt": b"0"})]), make([("k", {"txt": b"2", "cls": b"7"})], "b.tar")

        with pytest.raises(DataError, match=r"E_DUP_FIELD.*txt is in both"):
            join(a, b, out)
        assert not out.exists()
        join(a, b, out, duplicates=duplicates)
        assert [("k", {"txt": expected, "cls": b"7"}), ("m", {"txt": b"0"})] == plain(out)
        assert {"E_DUP_FIELD": 1} == join(a, b, out, on_error="skip").report.counts()
        assert ["m"] == [key for key, _ in plain(out)]

    def test_several_partners_are_refused_or_one_is_chosen(self, make: Make, out: Path):
        a = make([("k", {"cls": b"1"}), ("m", {"cls": b"1"})])
        b = [make([("k", {"txt": b"1"}), ("m", {"txt": b"3"})], "b-0.tar"), make([("k", {"txt": b"2"})], "b-1.tar")]

        with pytest.raises(DataError, match="2 of the others have this key"):
            join(a, b, out)
        assert [b"1", b"3"] == self.texts(join(a, b, out, duplicates="first"), out)
        assert [b"2", b"3"] == self.texts(join(a, b, out, duplicates="last"), out)
        skipped = join(a, b, out, on_error="skip")
        assert [b"3"] == self.texts(skipped, out)
        assert (1, 2, {"E_DUP_FIELD": 1}) == (skipped.exit_code, skipped.found, skipped.report.counts())

    @staticmethod
    def texts(_: Any, out: Path) -> list[bytes]:
        return [fields["txt"] for _, fields in plain(out)]

    def test_a_key_that_a_has_twice_finds_its_partner_twice(self, make: Make, out: Path):
        a = [make([("k", {"cls": b"1"})], "a-0.tar"), make([("m", {"cls": b"2"}), ("k", {"cls": b"3"})], "a-1.tar")]

        result = join(a, make(texts(["k"]), "b.tar"), out)

        assert [b"k.cls", b"k.txt", b"m.cls", b"k.cls", b"k.txt"] == names(out)
        assert (2, 1, 0) == (result.found, result.alone, result.unused)

    def test_fields_are_chosen_and_renamed(self, make: Make, out: Path):
        join(make([("k", {"jpg": b"a"})]), make([("k", {"jpg": b"b", "txt": b"c"})], "b.tar"), out, fields={"jpg": "small.jpg"})

        assert [("k", {"jpg": b"a", "small.jpg": b"b"})] == plain(out)

    def test_damage_of_the_others_is_an_error_or_counted(self, make: Make, out: Path):
        whole = shard(texts([key for key, _ in numbered(9)]))
        a, b = make(numbered(9)), make(whole[: len(whole) // 2], "b.tar")

        with pytest.raises(DataError):
            join(a, b, out)
        result = join(a, b, out, on_error="skip")

        assert 9 == result.found + result.alone == len(plain(out))
        assert 1 == result.exit_code
        assert result.alone


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
    @pytest.mark.parametrize("form", ["csv", "csv.gz", "tsv", "jsonl", "parquet"])
    def test_columns_become_json_of_their_types(self, make: Make, tmp_path: Path, out: Path, form: str):
        result = join(make(numbered(10)), written(tmp_path, form), out, on="filename")

        found = [fields.get("json") for _, fields in plain(out)]
        assert [{name: row[name] for name in row if name != "filename"} for row in ROWS] == [json.loads(text) for text in found[:8] if text]
        assert [None, None] == found[8:]
        assert (8, 2, 0) == (result.found, result.alone, result.unused)

    @pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
    def test_columns_become_fields_of_their_own(self, make: Make, tmp_path: Path, out: Path, form: str):
        a = make([(key, {"png": b""}) for key, _ in numbered(8)])

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

    @pytest.mark.parametrize(
        ("text", "message", "options"),
        [
            ("id,w\na,1\n", "no column 'key'; it has id, w", {}),
            ("key,w\na,1\n", "no column 'x'", {"fields": {"x": "cls"}}),
            ("key,w\na,1\n", "no column 'x'", {"on": "x"}),
            ('key,w\n"a" b,1\n', r"Line: 2", {}),
            ("key,w\na,1\nb\n", r"l\.csv.*Line: 3", {}),
            ("key,w,w\na,1,2\n", "one twice", {}),
            ("", "no columns", {}),
            ("key,w\na,1\n", "how", {"how": "outer"}),
        ],
    )
    def test_what_cannot_be_joined_says_why_and_writes_nothing(
        self, make: Make, tmp_path: Path, out: Path, text: str, message: str, options: Any
    ):
        (tmp_path / "l.csv").write_text(text)

        with pytest.raises(UsageError, match=message):
            join(make(numbered(1)), tmp_path / "l.csv", out, **options)
        assert not out.exists()

    def test_one_table_at_a_time_and_on_is_for_tables(self, make: Make, tmp_path: Path, out: Path):
        (tmp_path / "l.csv").write_text("key,w\na,1\n")
        with pytest.raises(UsageError, match="one table"):
            join(make(numbered(1)), [tmp_path / "l.csv", tmp_path / "l.csv"], out)
        with pytest.raises(UsageError, match="column of a table"):
            join(make(numbered(1)), make(numbered(1), "b.tar"), out, on="key")


class TestMany:
    """A hundred thousand records, and partners that memory does not hold."""

    COUNT = 100_000

    @pytest.mark.usefixtures("duckdb")
    @pytest.mark.matrix
    def test_a_table_of_a_hundred_thousand_rows_in_another_order(self, tmp_path: Path, out: Path):
        keys = [f"n{number:06d}" for number in range(self.COUNT)]
        (tmp_path / "a.tar").write_bytes(b"".join(piece for key in keys for piece in tar_member(f"{key}.cls", b"1")) + bytes(1024))
        random.Random(1).shuffle(keys)
        (tmp_path / "l.csv").write_text("key,w\n" + "".join(f"{key},{key[1:]}\n" for key in keys))

        before = memory.begin()
        result = join(tmp_path / "a.tar", tmp_path / "l.csv", out, fields={"w": "txt"})

        assert (self.COUNT, 0, 0) == (result.found, result.alone, result.unused)
        assert memory.peak() - before < 300 << 20
        assert all(fields["txt"].decode() == key[1:] for key, fields in plain(out))

    def test_large_partners_in_another_order_do_not_lie_in_memory(self, tmp_path: Path, out: Path):
        count = 200
        (tmp_path / "a.tar").write_bytes(shard([(f"{number}", {"cls": b"1"}) for number in range(count)]))
        with open(tmp_path / "b.tar", "wb") as file:
            file.writelines(b"".join(tar_member(f"{n}.bin", bytes([n]) * (1 << 20))) for n in reversed(range(count)))
            file.write(bytes(1024))

        before = memory.begin()
        result = join(tmp_path / "a.tar", tmp_path / "b.tar", out)

        assert count == result.found
        assert memory.peak() - before < 100 << 20
        assert out.stat().st_size > 200 << 20


class TestShell:
    @pytest.mark.usefixtures("duckdb")
    @pytest.mark.matrix
    def test_a_table_in_a_pipe_of_tools(self, make: Make, tmp_path: Path, bash: Any):
        make(numbered(3))
        (tmp_path / "labels.csv").write_text("filename,label\nn00000001.jpg,dog\n")

        done = bash(
            "tarviz cat a.tar | tarviz join - labels.csv --on filename --match '{base}' --as txt=label --how inner | tarviz tsv -f txt"
        )

        assert (0, b"__key__\ttxt\ntrain/n00000001\tdog\n", b"") == (done.returncode, done.stdout, done.stderr)

    def test_counts_are_said_and_are_json(self, make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        a, b = make(numbered(3)), make(texts(["train/n00000000", "x"]), "b.tar")

        assert 0 == cli.main(["join", str(a), str(b), "-o", str(tmp_path / "c.tar")])
        assert "1 records found a partner, 2 without one are kept; 1 of the others belong to none" in capsys.readouterr().out
        assert 0 == cli.main(["join", str(a), str(b), "-o", str(tmp_path / "c.tar"), "--how", "inner", "--json"])
        said = json.loads(capsys.readouterr().out)
        assert (1, 2, 1, 1) == (said["found"], said["alone"], said["unused"], said["records"])

    def test_as_needs_two_names(self, make: Make, tmp_path: Path):
        assert 2 == cli.main(
            ["join", str(make(numbered(1))), str(make(numbered(1), "b.tar")), "--as", "cls", "-o", str(tmp_path / "c.tar")]
        )
