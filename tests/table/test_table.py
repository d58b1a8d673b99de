"""The table over shards: columns, SQL, what is shut out, what bad input becomes, and what is kept."""

from __future__ import annotations

import gc
import io
import json
import math
import random
import re
import struct
import threading
import wave
import weakref
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tarviz
from tarviz.model.config import options
from tarviz.model.errors import ChangedError, LimitError, UsageError
from tarviz.testing.strategies import shard
from tests.conftest import corpus


def picture(width: int, height: int, form: str = "JPEG", mode: str = "RGB") -> bytes:
    out = io.BytesIO()
    Image.new(mode, (width, height), 7).save(out, form)
    return out.getvalue()


def sound(seconds: float, rate: int) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(bytes(2 * int(seconds * rate)))
    return out.getvalue()


def array(value: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, value)
    return out.getvalue()


def js(**value: object) -> bytes:
    return json.dumps(value).encode()


SIX = [
    ("a/0", {"jpg": picture(40, 30), "cls": b"3\n", "txt": b"a cat", "json": js(similarity=0.1, tags=["x", "y"], meta={"src": "web"})}),
    ("a/1", {"jpg": picture(20, 30), "cls": b"1", "txt": b"a dog", "json": js(similarity=0.3, tags=[], meta={"src": "disk"})}),
    ("a/2", {"jpg": picture(80, 30), "cls": b"3", "json": js(similarity=0.7)}),
    ("b/3", {"jpg": b"broken", "cls": b"1"}),
    ("b/4", {"seg.png": picture(5, 6, "PNG", "L"), "npy": array(np.zeros((2, 3), "f4")), "wav": sound(1.5, 8000)}),
    ("b/5", {"bin": b"123", "json": js(similarity=None)}),
]


class TestColumns:
    def test_every_kind_of_field_has_the_columns_that_say_what_it_is(self, make):
        table = tarviz.table(make(SIX))
        names = ["key", "n", "size", "cls", "txt", '"jpg.width"', '"jpg.height"', '"jpg.mode"', '"seg.png.mode"', '"npy.dtype"']
        names += ['"npy.shape"', '"wav.duration"', '"wav.rate"', '"bin.size"']

        rows = table.sql(f"SELECT {', '.join(names)} FROM records").fetchall()

        assert ("a/0", 0, 3, "a cat", 40, 30, "RGB") == (*rows[0][:2], *rows[0][3:8])
        assert ("b/3", 3, 1, None, None) == (*rows[3][:2], rows[3][3], rows[3][5], rows[3][6])
        assert ("L", "<f4", [2, 3], 1.5, 8000.0, None) == rows[4][8:]
        assert 3 == rows[5][-1]
        assert sum(len(value) for value in SIX[0][1].values()) == rows[0][2]

    def test_json_is_a_struct_typed_from_the_data(self, make):
        table = tarviz.table(make(SIX))

        assert [(0.1, "web", ["x", "y"]), (0.3, "disk", [])] == table.sql(
            "SELECT json.similarity, json.meta.src, json.tags FROM records WHERE json.meta IS NOT NULL"
        ).fetchall()

    def test_names_need_no_quotes_where_they_have_dots(self, make):
        assert [("a/2",)] == tarviz.table(make(SIX)).sql("SELECT key FROM records WHERE jpg.width > 50 AND jpg.size > 0").fetchall()
        assert [("b/4",)] == tarviz.table(make(SIX)).sql("SELECT r.key FROM records r WHERE r.seg.png.width = 5").fetchall()

    def test_a_number_and_a_word_make_a_column_of_texts(self, make):
        make([("a", {"cls": b"1"}), ("b", {"cls": b"cat"})], "a.tar")
        table = tarviz.table(make([("c", {"cls": b"2"})], "b.tar").parent)

        assert [("1",), ("cat",), ("2",)] == table.sql("SELECT cls FROM records ORDER BY key").fetchall()

    def test_a_picture_is_measured_by_its_header(self, make):
        for form in ["JPEG", "PNG", "GIF", "BMP", "WEBP", "PPM"]:
            ext = {"JPEG": "jpg"}.get(form, form.lower())
            table = tarviz.table(make([("a", {ext: picture(33, 21, form)})]))

            assert [(33, 21)] == table.sql(f"SELECT {ext}.width, {ext}.height FROM records").fetchall()

    def test_a_jpeg_whose_size_stands_behind_a_large_profile_is_measured(self, make):
        out = io.BytesIO()
        Image.new("RGB", (33, 21)).save(out, "JPEG", icc_profile=bytes(100_000), exif=b"Exif\0\0" + bytes(60_000))
        table = tarviz.table(make([("a", {"jpg": out.getvalue()}), ("b", {"jpg": picture(1, 2)})]))

        assert [(33, 21), (1, 2)] == table.sql("SELECT jpg.width, jpg.height FROM records").fetchall()

    def test_content_is_read_when_it_is_asked_for(self, make):
        table = tarviz.table(make([("a", {"jpg": picture(9, 9)}), ("b", {"jpg": picture(9, 9)}), ("c", {"jpg": b"no"})]))

        rows = table.sql("SELECT jpg.checksum, jpg.decodable, jpg.mean FROM records").fetchall()

        assert rows[0] == rows[1]
        assert [True, True, False] == [row[1] for row in rows]
        assert None is rows[2][2]

    @pytest.mark.parametrize(("skip", "count"), [(0, 2), (1, 2), (3, 9), (4, None), (6, 1)])
    def test_rows_in_order_are_counted_from_the_first_that_fits(self, make, skip, count):
        table = tarviz.table(make([(f"k{n}", {"cls": b"%d" % (n % 2)}) for n in range(10)]))
        stop = None if count is None else skip + count

        assert [*range(10)][skip:stop] == table.rows(skip=skip, count=count).n.tolist()
        assert [*range(1, 10, 2)][skip:stop] == table.rows("cls = 1", skip=skip, count=count).n.tolist()

    def test_texts_say_what_is_true_however_they_are_made(self, make):
        for text in ["txt", "lower(txt)", "as_text(txt)", "case when n >= 0 then lower(txt) end", "lower(txt) and n >= 0"]:
            table = tarviz.table(make([(f"k{n}", {"txt": each}) for n, each in enumerate([b"true", b"no", b"yes", b"1", b"", b"0"])]))

            assert [0, 2, 3] == table.rows(text).n.tolist()

    def test_a_key_that_is_no_utf8_does_no_harm(self, make):
        assert [(1,)] == tarviz.table(make([("gr\udcf6ße", {"cls": b"1"})])).sql("SELECT count(*) FROM records").fetchall()


class TestBadJson:
    def test_what_is_no_json_is_null_and_counted(self, make):
        content = [b'{"w": 1}', b"{", b"", b'{"w": 2}', b"\xff", b'{"w": 1} {"w": 2}', b"nul", b'{"a":1}\n{"a":2}']
        table = tarviz.table(make([(f"k{at}", {"json": each}) for at, each in enumerate(content)]))

        assert [(1,), (None,), (None,), (2,), (None,), (None,), (None,), (None,)] == table.sql(
            "SELECT json.w FROM records ORDER BY n"
        ).fetchall()
        assert 6 == table.findings["json.bad"]
        assert 6 == len(table.rows("is:bad"))

    def test_two_values_that_make_up_for_an_empty_one_do_not_shift_the_rows(self, make):
        content = [b'{"w": 1}} {"j": {"w": 5}', b" ", b'{"w": 3}']
        table = tarviz.table(make([(f"k{at}", {"json": each}) for at, each in enumerate(content)]))

        assert [(None,), (None,), (3,)] == table.sql("SELECT json.w FROM records ORDER BY n").fetchall()

    @pytest.mark.parametrize("count", [3, pytest.param(5000, marks=pytest.mark.matrix)])
    def test_a_path_of_several_kinds_is_json(self, make, count):
        values = [1, "x", [1], {"a": 1}, 2.5, None, True]
        table = tarviz.table(make([(f"k{at:05}", {"json": js(v=values[at % 7])}) for at in range(7 * count)]))

        found = [row[0] for row in table.sql("SELECT json.v FROM records ORDER BY n LIMIT 7").fetchall()]

        assert ["1", '"x"', "[1]", '{"a":1}', "2.5", None, "true"] == found
        assert count == len(table.rows("json.v >= 2"))

    def test_a_value_whose_type_changes_leaves_the_others_what_they_are(self, make):
        content = [js(w=1, v="x"), js(w=2, v=5), b"{broken"]
        table = tarviz.table(make([(f"k{at}", {"json": each}) for at, each in enumerate(content)]))

        assert [(1, '"x"'), (2, "5"), (None, None)] == table.sql("SELECT json.w, json.v FROM records ORDER BY n").fetchall()
        assert {"json.w": "bigint", "json.v": "varchar"} == {
            name: kind for name, kind in table.leaves.items() if name in ("json.w", "json.v")
        }

    def test_shards_that_disagree_are_brought_together(self, make):
        make([("a", {"json": js(v=1, w={"x": 1})})], "a.tar")
        make([("b", {"json": js(v={"deep": 5}, w={"y": [1]})})], "b.tar")
        folder = make([("c", {"json": js(v=[1, 2])})], "c.tar").parent
        table = tarviz.table(folder)

        assert [("1",), ('{"deep":5}',), ("[1,2]",)] == table.sql("SELECT json.v FROM records ORDER BY key").fetchall()
        assert [("b",)] == table.sql("SELECT key FROM records WHERE json.w.y IS NOT NULL").fetchall()
        assert [("b",)] == table.sql("SELECT key FROM records WHERE json.v.deep = '5'").fetchall()

    def test_deep_nesting_is_refused_and_not_crashed_on(self, make):
        deep = b"[" * 200_000 + b"]" * 200_000
        table = tarviz.table(make([("a", {"json": deep}), ("b", {"json": js(w=1)})]))

        assert [(None,), (1,)] == table.sql("SELECT json.w FROM records").fetchall()

    @pytest.mark.matrix
    def test_ten_thousand_paths_stay_text_that_can_be_asked(self, make):
        table = tarviz.table(make([(f"k{at:05}", {"json": js(**{f"p{at}": at})}) for at in range(10_000)]))

        assert [("k00777",)] == table.sql("SELECT key FROM records WHERE json.p777 = '777'").fetchall()
        assert 1 == len(table.rows("json.p777 == 777"))

    def test_names_that_sql_cannot_tell_apart_stay_text(self, make):
        table = tarviz.table(make([("a", {"json": b'{"a": 1, "A": 2, "": 3}'})]))

        assert [("2",)] == table.sql("SELECT json.A FROM records").fetchall()

    def test_dates_and_odd_numbers_stay_what_they_are(self, make):
        table = tarviz.table(
            make([("a", {"json": b'{"day": "2020-01-01", "big": 123456789012345678901234567890, "list": ["2020-01-01"]}'})])
        )

        assert [("2020-01-01", 123456789012345678901234567890, ["2020-01-01"])] == table.sql(
            "SELECT json.day, json.big, json.list FROM records"
        ).fetchall()

    def test_json_over_several_lines_is_read_in_one_piece_too(self, make):
        table = tarviz.table(make([(f"k{at}", {"json": json.dumps({"w": at}, indent=2).encode() + b"\r\n"}) for at in range(3)]))

        assert [(0,), (1,), (2,)] == table.sql("SELECT json.w FROM records").fetchall()
        assert {} == table.findings

    @pytest.mark.parametrize("value", [b"[1, 2]", b"5", b'"text"', b"null", b"true"])
    def test_json_that_is_no_object_is_a_column_too(self, make, value):
        ((found,),) = tarviz.table(make([("a", {"json": value})])).sql("SELECT json FROM records").fetchall()

        assert json.loads(value) == found


class TestShutIn:
    @pytest.mark.parametrize(
        "query",
        [
            "SELECT * FROM read_text('/etc/passwd')",
            "SELECT * FROM '/etc/passwd'",
            "SELECT * FROM read_csv('/etc/passwd')",
            "SELECT * FROM glob('/*')",
            "SELECT * FROM duckdb_settings()",
            "SELECT * FROM information_schema.tables",
            "COPY records TO '/tmp/records.csv'",
            "ATTACH '/tmp/other.db'",
            "INSTALL httpfs",
            "LOAD httpfs",
            "SET enable_external_access = true",
            "PRAGMA database_list",
            "DROP VIEW records",
            "DELETE FROM tags",
            "SELECT 1; SELECT 2",
            "SELECT getenv('HOME') FROM records",
            "SELECT * FROM records, read_blob('/etc/passwd')",
            "SELECT (SELECT content FROM read_text('/etc/passwd')) FROM records",
            "WITH x AS (SELECT * FROM read_text('/etc/passwd')) SELECT * FROM x",
            "FROM make",
        ],
    )
    def test_a_query_sees_the_records_and_nothing_else(self, make, query):
        with pytest.raises(UsageError):
            tarviz.table(make(SIX)).sql(query).fetchall()

    def test_other_questions_are_free(self, make):
        table = tarviz.table(make(SIX))
        query = """
            WITH big AS (SELECT key, unnest(json.tags) AS word FROM records)
            SELECT word, count(*) OVER () FROM big JOIN records USING (key) WHERE word IN (SELECT 'y') ORDER BY word
        """

        assert [("y", 1)] == table.sql(query).fetchall()

    def test_a_query_that_needs_too_much_memory_says_so(self, make):
        table = tarviz.table(make(SIX), memory="60MB")

        with pytest.raises(LimitError, match="more memory"):
            table.arrow("SELECT list(a.range) FROM range(100000000) a, records")

    def test_a_query_is_stopped_from_another_thread(self, make):
        table = tarviz.table(make(SIX))
        len(table)
        ended = threading.Event()

        def stop():
            while not ended.wait(0.01):  # nobody knows from when on the query runs
                table.interrupt()

        stopper = threading.Thread(target=stop)
        stopper.start()
        try:
            with pytest.raises(UsageError, match="stopped") as error:
                table.arrow("SELECT count(*) FROM range(10000000) a, range(10000000) b, records WHERE a.range * b.range % 7 = 3")
        finally:
            ended.set()
            stopper.join()
        assert "E_STOPPED" == error.value.code

    def test_what_is_misspelled_is_answered_with_what_is_near(self, make):
        table = tarviz.table(make(SIX))

        with pytest.raises(UsageError, match=r"json\.similarity"):
            table.sql("SELECT json.similarty FROM records")
        with pytest.raises(UsageError, match=r"jpg\.width"):
            table.sql("SELECT jpg.widht FROM records")


class TestKept:
    def test_the_next_table_reads_no_shard(self, make, monkeypatch):
        path = make(SIX)
        tarviz.table(path).sql("SELECT json, jpg.width FROM records").fetchall()
        monkeypatch.setattr(
            "tarviz.table.making.kept_columns.shard_columns.make_columns", lambda *_, **__: pytest.fail("the shard was read again")
        )

        assert 3 == len(tarviz.table(path).rows("json.similarity > 0"))

    def test_columns_are_kept_of_a_shard_however_it_is_spelled(self, make, monkeypatch):
        path, other = make(SIX), make([("a/0", {"txt": b"other"}), ("filename", {"filename": b"a field of that name"})], "b.tar")
        tarviz.table([path, other]).sql("SELECT json, jpg.width, filename.size FROM records").fetchall()
        monkeypatch.setattr(
            "tarviz.table.making.kept_columns.shard_columns.make_columns", lambda *_, **__: pytest.fail("the shard was read again")
        )
        monkeypatch.chdir(path.parent)
        query = "SELECT shard, count(*), max(json.similarity), max(jpg.width) FROM records GROUP BY 1 ORDER BY 1"

        assert [("./b.tar", 2, None, None), (path.name, 6, 0.7, 80)] == tarviz.table([path.name, "./b.tar"]).sql(query).fetchall()
        assert [(str(path), 6, 0.7, 80), (path.name, 6, 0.7, 80)] == tarviz.table([path.name, path]).sql(query).fetchall()
        assert ["b.tar"] * 2 == [row[0] for row in tarviz.table("b.tar").sql("SELECT shard, filename.size FROM records").fetchall()]

    def test_columns_that_are_asked_for_later_join_those_kept(self, make):
        path = make(SIX)
        tarviz.table(path).sql("SELECT cls FROM records").fetchall()

        assert [(3, 40)] == tarviz.table(path).sql("SELECT cls, jpg.width FROM records LIMIT 1").fetchall()

    def test_another_version_of_a_shard_has_other_columns(self, make):
        path = make([("a", {"cls": b"1"})])
        assert [(1,)] == tarviz.table(path).sql("SELECT cls FROM records").fetchall()

        make([("a", {"cls": b"22"}), ("b", {"cls": b"3"})])

        assert [(22,), (3,)] == tarviz.table(path).sql("SELECT cls FROM records").fetchall()

    def test_a_shard_replaced_under_a_table_is_noticed(self, make):
        path = make([("a", {"cls": b"1"})])
        table = tarviz.table(path)
        len(table)
        path.write_bytes(shard([("a", {"cls": b"1"}), ("b", {"cls": b"22"})]))

        with pytest.raises(ChangedError, match="Ask again"):
            table.sql("SELECT cls FROM records")
        assert [(1,), (22,)] == table.sql("SELECT cls FROM records").fetchall()
        assert [1] == table.rows("cls = 22").n.tolist()
        table.check()

    @pytest.mark.parametrize("question", [lambda table: table.check(), lambda table: table.facets("cls.checksum")])
    def test_a_table_answers_of_the_new_shard_when_it_is_asked_again(self, make, question):
        path, other = make([("a", {"cls": b"1"})]), make([("x", {"cls": b"7"})], "b.tar")
        table = tarviz.table([path, other])
        assert [(1,), (7,)] == table.sql("SELECT cls FROM records ORDER BY cls").fetchall()
        path.write_bytes(shard([("a", {"cls": b"5"}), ("b", {"cls": b"22", "txt": b"boat"})]))

        with pytest.raises(ChangedError, match="Ask again"):
            question(table)
        table.check()
        assert [(5,), (7,), (22,)] == table.sql("SELECT cls FROM records ORDER BY cls").fetchall()
        assert ["boat"] == [bar.label for bar in table.facets("txt").bars]

    @pytest.mark.parametrize("harm", [b"", b"PAR1 and nothing", None])
    def test_a_damaged_file_is_made_again(self, make, harm):
        path = make(SIX)
        tarviz.table(path).sql("SELECT json FROM records").fetchall()
        for kept in (options().cache_dir / "table").glob("*.parquet"):
            kept.write_bytes(kept.read_bytes()[:-40] if harm is None else harm)

        assert 3 == len(tarviz.table(path).rows("json.similarity > 0"))

    def test_without_a_folder_to_write_to_columns_stay_in_memory(self, make, tmp_path, monkeypatch):
        (tmp_path / "file").write_text("no folder")
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "file"))

        table = tarviz.table([make(SIX), make(SIX, "b.tar")])

        assert [(12, 4)] == table.sql("SELECT count(*), count(*) FILTER (cls = 3) FROM records").fetchall()

    @pytest.mark.parametrize(("path", "entry"), corpus("generated"))
    def test_a_damaged_shard_has_the_rows_that_records_gives(self, path: Path, entry):
        table = tarviz.table(path)
        keys = []
        try:
            keys.extend(record.key for record in tarviz.records(path, strict=False))
        except LimitError:
            pytest.skip("payloads that are too large; the table has read none")
        except tarviz.TarvizError:
            pass
        except tarviz.TarvizWarning:
            pytest.skip("warned of")

        assert len(keys) == len(table)

    def test_a_shard_that_lacks_its_end_has_all_its_rows(self, make):
        path = Path(make(SIX))
        path.write_bytes((data := path.read_bytes().rstrip(b"\0")) + bytes(-len(data) % 512))

        with pytest.warns(tarviz.TarvizWarning, match="W_NO_EOF"):
            assert [(6, 2)] == tarviz.table(path).sql("SELECT count(*), count(txt) FROM records").fetchall()


class TestRows:
    def test_come_in_the_order_they_lie_or_by_a_column(self, make):
        table = tarviz.table([make(SIX), make(SIX[:2], "b.tar")])

        assert ([0, 0, 1], [0, 2, 0]) == ((rows := table.rows("cls = 3")).shard.tolist(), rows.n.tolist())
        assert [2, 0, 0] == table.rows("has:jpg and jpg.width > 0", order="jpg.width", descending=True, count=3).n.tolist()
        assert [3, 4, 5] == table.rows(order="json.similarity", descending=True).n.tolist()[-3:]

    def test_are_chosen_by_key(self, make):
        table = tarviz.table([make(SIX), make(SIX[:1], "b.tar")])

        assert ([0, 0, 1], [0, 4, 0]) == ((rows := table.by_keys(["b/4", "a/0"])).shard.tolist(), rows.n.tolist())
        with pytest.raises(UsageError, match=r"'a/9' first.*Nearest: a/"):
            table.by_keys(["a/0", "a/9"])


def test_a_table_that_nobody_holds_is_gone_at_once(make):
    """Its database ends with it: a worker that was forked would die of ending it when it collects garbage."""
    path = make([("a", {"cls": b"1"}), ("b", {"cls": b"2"})])
    gc.collect()
    gc.disable()
    try:
        table = tarviz.table(path)
        assert 1 == len(table.rows("cls > 1"))
        assert 1 == table.tags.add("cls > 1", "odd")
        gone = weakref.ref(table)
        del table

        assert gone() is None
    finally:
        gc.enable()


def test_empty_shards_have_no_rows(make):
    table = tarviz.table(make(bytes(1024)))

    assert 0 == len(table)
    assert [] == table.sql("SELECT key, n FROM records").fetchall()
    assert 0 == len(table.rows("dog"))


def test_a_flac_says_how_long_it_is():
    from tarviz.table.making.headers import sound as read

    info = (44100 << 44 | 1 << 41 | 15 << 36 | 88200).to_bytes(8, "big")

    assert (2.0, 44100.0) == read(b"fLaC" + struct.pack(">I", 34) + bytes(10) + info + bytes(16), 500)
    assert math.isclose(1.5, read(sound(1.5, 8000)[:100], 24044)[0])


def test_rows_may_be_ordered_by_the_size_of_a_field(make):
    table = tarviz.table(make([("a", {"txt": b"12"}), ("b", {"txt": b"123"}), ("c", {"txt": b"1"})]))

    assert [2, 0, 1] == table.rows("", "size(txt)").n.tolist()
    assert [0, 1, 2] == table.rows("", "size(nothing)").n.tolist()


def test_a_field_that_is_called_as_a_column_of_the_table_is_said(make):
    table = tarviz.table(make([("a", {"n": b"10", "cls": b"1"})]))

    assert [0] == table.rows("n = 0").n.tolist()
    assert ["n is the table's own column: the field of that name has none"] == table.notes
    assert 1 == table.findings[table.notes[0]]


def test_a_shard_of_very_many_fields_is_said(make):
    many = {f"f{at:03}": b"x" for at in range(300)}
    table = tarviz.table(make([("a", many)]))

    assert [] == tarviz.table(make([("a", {name: many[name] for name in [*many][:256]})], name="b.tar")).notes
    assert 256 == len(table.fields)
    assert any("more than 256 fields" in note for note in table.notes)
    with pytest.raises(UsageError, match=r"no column f290\.size"):
        table.rows("f290.size > 1")
    for where in ("has:f290", "size(f290) > 1", "not has('f290')"):
        with pytest.raises(UsageError, match="no column f290"):
            table.rows(where)
    assert 1 == len(table.rows("f002.size = 1"))


def test_a_byte_order_mark_is_no_part_of_a_text_or_a_number(make):
    shard = make([("a", {"txt": "\ufeffcat".encode(), "cls": "\ufeff3".encode()}), ("b", {"txt": "cat".encode("utf-16"), "cls": b"3"})])

    assert [("cat", 3)] * 2 == tarviz.table(shard).sql("SELECT txt, cls FROM records").fetchall()
    assert ["a", "b"] == [record.key for record in tarviz.records(shard, where="txt = 'cat' and cls = 3")]


def test_rows_of_a_query_are_iterated(make):
    assert [("a",), ("b",)] == list(tarviz.table(make([("a", {"cls": b"1"}), ("b", {"cls": b"2"})])).sql("SELECT key FROM records"))


WRONG = [
    "{}",
    "json.{}",
    "jpg.{}",
    "json.a.{}",
    "records.{}",
    "objects.{}",
    "tags.{}",
    "json.list[0].{}",
    "{}(n)",
    "lower(n,{})",
    "sum({})",
]


@pytest.mark.parametrize("form", WRONG)
def test_an_error_for_a_wrong_name_is_in_our_words_at_every_door(make, form):
    draw = random.Random(form)
    value = b'{"a": {"b": 1}, "list": [{"c": 1}]}'
    table = tarviz.table([make([("a", {"json": value, "txt": b"x"})]), make([("b", {"json": value})], "b.tar")])
    for _ in range(5):
        name = form.format("".join(draw.choices("abcdefgw_", k=draw.randint(2, 8))).strip("_") + "q")
        doors = [
            lambda name=name: table.sql(f"SELECT {name} FROM records").fetchall(),
            lambda name=name: table.sql(f"SELECT key FROM records WHERE {name} > 1").fetchall(),
            lambda name=name: table.sql(f"SELECT {name} FROM objects").fetchall(),
            lambda name=name: table.rows(f"{name} > 1"),
            lambda name=name: table.rows(f"any_object({name} = 1)"),
            lambda name=name: table.rows(order=name),
            lambda name=name: table.facets(name),
        ]
        for door in doors:
            with pytest.raises(UsageError) as caught:
                door()
            assert not re.search("Candidate|_records|_words|LINE|Binder", str(caught.value)), (name, str(caught.value))


class TestRemembered:
    def test_what_was_made_of_fewer_columns_is_not_kept(self, make):
        table, calls = tarviz.table(make([("a", {"json": b'{"w": 1}'}), ("b", {"json": b'{"w": 2}'})])), []

        def count():
            calls.append(table.sql("SELECT max(json.w) FROM records").fetchall()[0][0])
            return len(calls)

        assert [1, 2, 2] == [table.remember("count", count) for _ in range(3)]  # the first made a column, and was asked before it

    def test_it_is_kept_until_tags_change(self, make):
        table = tarviz.table(make([("a", {"cls": b"1"})]))
        table.make([])
        calls = iter(range(9))

        found = [table.remember("n", lambda: next(calls)) for _ in range(2)]
        table.retag()
        found.append(table.remember("n", lambda: next(calls)))

        assert [0, 0, 1] == found


TWO_KINDS = [
    ("select count(*) filter (where json.v = 'x') from records", [(1,)]),
    ("select json.v = 'x' from records order by n", [(False,), (True,), (None,), (None,), (False,)]),
    ("select case when json.v = 'x' then 1 else 0 end from records order by n", [(0,), (1,), (0,), (0,), (0,)]),
    ("select json.v > 0 as more, count(*) from records group by more order by more", [(True, 1), (None, 4)]),
    ("select count(*) from records group by json.v having json.v = 'x'", [(1,)]),
    ("select n from records qualify json.v = 'x' and row_number() over () > 0", [(1,)]),
    ("select a.n from records a join records b on a.json.v in ('x', 1) and a.n = b.n order by 1", [(0,), (1,)]),
    ("select a.n from records a join records b on a.json.v = b.json.v order by 1", [(0,), (1,), (2,), (4,)]),
    ("select n from records order by json.v between 0 and 2, n limit 1", [(0,)]),
    ("select max(json.v) > 3 from records", [(None,)]),
    ("select json.v + 1 from records order by n", [(2.0,), (None,), (None,), (None,), (None,)]),
    ("select sum(json.v), max(abs(-json.v)) from records", [(1.0, 1.0)]),
    ("select json.v::int from records order by n", [(1,), (None,), (None,), (None,), (1,)]),
    ("select coalesce(json.v, 'none') || upper(json.v) from records order by n", [("11",), ("xX",), (None,), (None,), ("trueTRUE",)]),
    ("select json_type(json.v), typeof(json.v) from records order by n limit 1", [("UBIGINT", "JSON")]),
    ("with t as (select json.v as x from records) select x from t where x = 'x'", [('"x"',)]),
    ("with t(y) as (select json.v from records), u as (select y as z from t) select z from u where z > 0", [("1",)]),
    ("select v from (select json.v from records) where v in ('x', 1) order by v", [('"x"',), ("1",)]),
    ("select t.y from (select n, json.v from records) as t(m, y) where t.y = true and m = 0", [("1",)]),
    ("select x + 1, x = 'x' from (select n, json.v x from records) order by n limit 1", [(2.0, False)]),
    ("select n from (select n, json j from records) where j.v = 'x'", [(1,)]),
    ("select n from records a join (select json.v x from records) b on a.json.v = b.x and b.x = 'x'", [(1,)]),
    ("select json.v as json from records order by n limit 2", [("1",), ('"x"',)]),
]


@pytest.mark.parametrize(("query", "rows"), TWO_KINDS)
def test_values_of_two_kinds_are_compared_by_the_rule_everywhere_in_a_query(make, query, rows):
    values = [b'{"v": 1}', b'{"v": "x"}', b'{"v": [1]}', b'{"v": null}', b'{"v": true}']
    asked = tarviz.table(make([(f"k{at}", {"json": value}) for at, value in enumerate(values)])).sql(query)
    assert asked.fetchall() == rows


def test_a_comparison_in_a_select_keeps_a_name_to_read(make):
    table = tarviz.table(make([("a", {"json": b'{"v": 1}'}), ("b", {"json": b'{"v": "x"}'})]))
    assert table.sql("select json.v = 'x', json.v > 0 as more from records").columns == ["(\"json\".v = 'x')", "more"]
    assert [1, 0] == table.rows(order="json.v = 'x'", descending=True).n.tolist()
    assert [("false", 1), ("true", 1)] == sorted((bar.label.lower(), bar.all) for bar in table.facets("json.v = 'x'").bars)


CASTS = ["json.r::int", "cast(json.b as int)", "json.r::decimal(4, 1)", "json.r::varchar", "json.b::varchar", "json.i::double", "cls::int"]
CASTS += ["(json.r + 0)::int", "json.m::int", "json.t::varchar", "json.b::double", "json.l::varchar"]


@pytest.mark.parametrize("cast", CASTS)
def test_a_cast_gives_what_a_select_of_it_gives(make, cast):
    whole = 2**60 + 1
    values = [
        {"r": 2.5, "b": True, "i": 1, "t": "x", "m": 2.5, "l": [1]},
        {"r": 3.5, "b": False, "i": whole, "t": "y", "m": True, "l": [2, 3]},
        {"r": 2.0},
    ]
    table = tarviz.table(make([(f"k{at}", {"json": json.dumps(value).encode(), "cls": b"%d" % at}) for at, value in enumerate(values)]))
    for at, value in table.sql(f"SELECT n, {cast} FROM records").fetchall():
        if value is not None:
            sought = f"'{value}'" if isinstance(value, str) else str(value).lower()
            assert at in table.rows(f"{cast} = {sought}").n.tolist(), (cast, value)
    assert [] == table.rows("json.t::int = 1").n.tolist()


FACETS = ["json.l[0]", "json.l[1]", "json.l[-1]", "json.m[0][1]", "json.j[0]", "json.nan", "json.inf", "json.l[0] + 1", "json.l[0] = 1"]


@pytest.mark.parametrize("column", FACETS)
def test_the_condition_of_a_bar_chooses_the_records_it_counts(make, column):
    texts = [
        f'{{"nan": NaN, "inf": Infinity, "l": [{at}, 7], "m": [[1, {at % 2}]], "j": {mixed}}}'
        for at, mixed in enumerate(["[1, 2]", '["x"]', "[[1]]"])
    ]
    table = tarviz.table(make([(f"k{at}", {"json": text.encode()}) for at, text in enumerate(texts)]))
    bars = table.facets(column).bars
    assert bars
    assert [bar.all for bar in bars] == [len(table.rows(bar.where)) for bar in bars]
    assert [2, 1, 0] == table.rows(order="json.l[0]", descending=True).n.tolist()


WRONG_NAMES = [
    ("select lable from objects", r"no column lable\..*Nearest: label\. Columns of objects: shard, key, .*score"),
    ("select lable from records where any_object(lable = 'x')", r"no column lable\..*Nearest: label.*Columns of objects: "),
    ("select toga from tags", r"no column toga\..* Columns of tags: shard, key, tag, note"),
    ("select nope from records", r"no column nope\. Hint: There are key, shard, n, size, json"),
    ("select uper(key) from records", r"no function uper\(\)\. Hint: Nearest: upper\(\)"),
]


def test_a_wrong_name_is_answered_with_what_is_there_where_it_was_looked_for(make):
    for query, said in WRONG_NAMES:
        table = tarviz.table(make([("a", {"json": b'{"id": 1}'})]))
        with pytest.raises(UsageError, match=said) as error:
            table.sql(query).fetchall()
        assert "E_QUERY" == error.value.code


CONDITIONS = [
    ("any_object(lable = 'x')", r"no column lable\..*Nearest: label\. Columns of objects: shard, key"),
    ("uper(key) = 'A'", r"no function uper\(\)\. Hint: Nearest: upper\(\)"),
    ("json.id > 0 and random() < 0.1", r"the same answer each time.*hash\(key\) % 10 = 0"),
]


@pytest.mark.parametrize(("text", "said"), CONDITIONS)
def test_a_wrong_condition_is_answered_with_what_to_write(make, text, said):
    table = tarviz.table(make([(key, {"json": b'{"id": 1}'}) for key in "abcdefghijklmnopqrst"]))
    with pytest.raises(UsageError, match=said) as error:
        table.rows(text)
    assert "E_QUERY" == error.value.code
    assert 0 < len(table.rows("hash(key) % 10 < 5")) < 20  # the way out that it names
    assert [6] == table.rows("matches(key, 'g$')").n.tolist()


def test_what_holds_several_values_equals_none_and_a_path_that_is_not_there_is_an_error(make):
    table = tarviz.table(make([("a", {"json": js(v=1, id=3)}), ("b", {"bin": b"x"})]))

    found = {"json = 'x'": [], "json <> 'x'": [], "json in (1)": [], "json is null": [1], "json = null": [1], '"json.id" = 3': [0]}
    assert found == {text: table.rows(text).n.tolist() for text in found}
    with pytest.raises(UsageError, match=r"no column bin.*bin.size"):
        table.rows(order="bin")
    with pytest.raises(UsageError, match=r"Nearest: json\.id"):
        table.rows('"json.idd" = 3')


@pytest.mark.parametrize("query", ["show tables", "SHOW ALL TABLES", "show databases", "pivot records on n using count(*)"])
def test_what_shows_more_than_the_records_is_refused_in_our_words(make, query):
    table = tarviz.table(make([("a", {"txt": b"x"}), ("b", {"txt": b"y"})]))

    with pytest.raises(UsageError, match=r"sees records, objects and tags|PIVOT.*FROM records PIVOT"):
        table.sql(query)
    assert [(1, 1)] == table.sql("SELECT x, y FROM (SELECT txt FROM records) PIVOT (count(*) FOR txt IN ('x', 'y'))").fetchall()
    assert "key" in [row[0] for row in table.sql("DESCRIBE records").fetchall()]


def test_columns_and_the_paths_inside_them_have_their_types(make):
    table = tarviz.table(
        make([("a", {"json": b'{"w": 1, "m": {"order": "x", "l": [1]}, "v": 1}', "a-b.cls": b"1"}), ("b", {"json": b'{"v": "x"}'})])
    )
    names = {"key": "VARCHAR", "shard": "VARCHAR", "n": "BIGINT", "size": "BIGINT"}
    before = {"json.size": "BIGINT", "json": None, "json.bad": None, "json.checksum": None}
    behind = {"a-b.cls.size": "BIGINT", "a-b.cls": None, "a-b.cls.checksum": None}
    assert names | before | behind == table.columns

    table.sql("SELECT json FROM records").fetchall()

    made = {"json": 'STRUCT(w BIGINT, m STRUCT("order" VARCHAR, l BIGINT[]), v JSON)', "json.bad": "BOOLEAN"}
    assert names | before | made | behind == table.columns
    assert {
        "key": "varchar",
        "shard": "varchar",
        "n": "bigint",
        "size": "bigint",
        "json.size": "bigint",
        "json.w": "bigint",
        'json.m."order"': "varchar",
        "json.m.l": "list",
        "json.v": "varchar",
        "json.bad": "boolean",
        "json.checksum": None,
        '"a-b.cls.size"': "bigint",
        '"a-b.cls"': None,
        '"a-b.cls.checksum"': None,
    } == table.leaves
    assert ["json.v has values of two kinds: it is JSON"] == table.notes
    assert {"json.v has values of two kinds: it is JSON": 1} == table.findings


def test_records_are_taken_with_every_column_made_so_far(make):
    table = tarviz.table([make(SIX), make(SIX[:2], "b.tar")])
    table.sql("SELECT cls FROM records").fetchall()
    found = table.take(np.array([1, 0, 0], np.int32), np.array([1, 5, 0]))

    assert ["a/0", "b/5", "a/1"] == found.column("key").to_pylist()
    assert [3, None, 1] == found.column("cls").to_pylist()
    assert "json" not in found.column_names
    assert "cls.size" in found.column_names


def test_what_is_near_a_name_is_found_in_columns_and_paths(make):
    table = tarviz.table(make([("a", {"json": b'{"width": 1, "meta": {"source": "x"}}', "jpg": picture(4, 4)})]))
    table.sql("SELECT json FROM records").fetchall()

    assert "json.width" == table.nearest("json.widht")[0]
    assert ["json.meta.source"] == table.nearest("sourc")
    assert [] == table.nearest("qqqq")
