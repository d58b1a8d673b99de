"""Tags: whose they are, where they lie, and that no hand's work is lost."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil

import pytest

import tarviz
from tarviz.model.errors import DataError, StoreError, TarvizWarning, UsageError
from tarviz.table.tags import GONE, Tags
from tarviz.testing.faults import FaultServer
from tarviz.testing.strategies import shard
from tests.full_disk import full_disk

TWO = [("a", {"cls": b"1"}), ("b", {"cls": b"2"})]


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    """A data folder, a cache and a current folder of its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tagged(url, **more):
    """Keys and tags of a table over the shard."""
    return [(line["key"], line["tag"], line["note"]) for line in tarviz.table(url, **more).tags.lines()]


class TestTags:
    def test_survive_a_new_table_and_can_be_taken_away(self, make):
        path = make([(f"k{at}", {"cls": b"%d" % at}) for at in range(4)])
        assert 2 == tarviz.table(path).tags.add("cls < 2", "bad", "too dark")
        table = tarviz.table(path)

        assert {"bad": 2} == table.tags.counts()
        assert ["k0", "k1"] == [row[0] for row in table.sql("SELECT key FROM records WHERE tag = 'bad'").fetchall()]
        assert [("bad", "too dark")] * 2 == table.sql("SELECT tag, note FROM tags").fetchall()
        assert {None: 2, "bad": 2} == dict(table.sql("SELECT tag, count(*) FROM records GROUP BY tag").fetchall())
        table.tags.remove("cls = 0", "bad")
        assert [1] == table.rows("tag:bad").n.tolist()

    def test_are_handed_on_as_lines(self, make, tmp_path):
        path = make([("a", {"cls": b"1"}), ("b", {"cls": b"2"})])
        table = tarviz.table(path)
        table.tags.add("cls = 1", "good")
        assert 1 == table.tags.save(tmp_path / "tags.jsonl")
        table.tags.remove("cls = 1", "good")

        assert 1 == table.tags.load(tmp_path / "tags.jsonl")
        assert {"good": 1} == table.tags.counts()

    def test_a_line_ends_where_json_lines_end(self, make, tmp_path):
        key = "a\u2028b\x85c"  # raw in the line, as jq writes it
        table = tarviz.table(make([(key, {"cls": b"1"})]))
        (tmp_path / "tags.jsonl").write_bytes(f'{{"key": "{key}", "tag": "x"}}\r\n\n'.encode())

        assert 1 == table.tags.load(tmp_path / "tags.jsonl")
        assert {"x": 1} == table.tags.counts()

    def test_lines_of_another_program_keep_every_character(self, make, tmp_path):
        path = make(TWO)
        line = json.dumps({"key": "a", "tag": "bad", "note": "one\u2028two\x85", "shard": os.path.basename(path)}, ensure_ascii=False)
        (tmp_path / "tags.jsonl").write_text(f"\ufeff{line}\r\n", "utf-8")
        (beside := tmp_path / os.path.dirname(path) / "beside.jsonl").write_text(f"{line}\n", "utf-8")

        assert 1 == tarviz.table(path).tags.load(tmp_path / "tags.jsonl")
        assert [("a", "bad", "one\u2028two\x85")] == tagged(path)
        assert [("a", "bad", "one\u2028two\x85")] == tagged(path, tags=beside)

    def test_lines_that_are_no_tags_are_named(self, make, tmp_path):
        (tmp_path / "tags.jsonl").write_text('{"key": "a", "tag": "x"}\n{"key": 1}\n')

        with pytest.raises(DataError, match="line 2"):
            tarviz.table(make([("a", {"cls": b"1"})])).tags.load(tmp_path / "tags.jsonl")

    @pytest.mark.parametrize("tag", ["", "a,b", "x" * 101, "a\nb"])
    def test_a_tag_is_a_word(self, make, tag):
        table = tarviz.table(make([("a", {"cls": b"1"})]))

        with pytest.raises(UsageError, match="not a tag"):
            table.tags.add("cls = 1", tag)
        assert isinstance(table.tags, Tags)


class TestWhose:
    """Tags hang on the shard, not on the text that named it (a fault that dropped good records)."""

    def test_of_two_folders_with_shards_of_one_name_each_has_its_own(self, own, monkeypatch):
        for folder in ("A", "B"):
            (own / folder).mkdir()
            (own / folder / "train-0000.tar").write_bytes(shard(TWO))
        monkeypatch.chdir(own / "A")
        tarviz.table("train-0000.tar").tags.add("cls = 2", "bad")
        monkeypatch.chdir(own / "B")
        tarviz.cat("train-0000.tar", where="not is:bad", output="clean.tar")

        assert ["a", "b"] == [record.key for record in tarviz.records("clean.tar")]
        monkeypatch.chdir(own)
        query = "SELECT shard, key FROM records WHERE tag = 'bad'"
        assert [("A/train-0000.tar", "b")] == tarviz.table(["A/train-0000.tar", "B/train-0000.tar"]).sql(query).fetchall()

    def test_every_spelling_of_a_path_has_them(self, own):
        (own / "sub").mkdir()
        (own / "a.tar").write_bytes(shard(TWO))
        (own / "link.tar").symlink_to("a.tar")
        tarviz.table("a.tar").tags.add("cls = 2", "bad")

        for name in ("./a.tar", "sub/../a.tar", "link.tar", str(own / "a.tar"), f"file://{own}/a.tar", str(own)):
            assert [("b", "bad", "")] == tagged(name)

    def test_a_signature_renewed_has_them_and_another_parameter_has_not(self):
        with FaultServer() as server:
            url = server.put("/a.tar", shard(TWO))
            tarviz.table(f"{url}?file=1&X-Amz-Date=1&X-Amz-Signature=one").tags.add("cls = 2", "bad")

            assert [("b", "bad", "")] == tagged(f"{url}?file=1&X-Amz-Date=2&X-Amz-Signature=two")
            assert [] == tagged(f"{url}?file=2&X-Amz-Date=1&X-Amz-Signature=one")

    def test_another_version_of_the_shard_keeps_them_and_says_which_keys_are_gone(self, own):
        (own / "a.tar").write_bytes(shard(TWO))
        tarviz.table("a.tar").tags.add([("a.tar", "a"), ("a.tar", "b")], "bad")
        os.utime(own / "a.tar", (1, 1))
        assert {} == tarviz.sql("SELECT * FROM records", "a.tar").findings

        (own / "a.tar").write_bytes(shard(TWO[1:]))

        table = tarviz.table("a.tar")
        assert [("b",)] == table.sql("SELECT key FROM records WHERE tag = 'bad'").fetchall()
        assert [("a.tar", "a")] == table.tags.missing()
        assert {GONE: 1} == tarviz.sql("SELECT * FROM records", "a.tar").findings
        (own / "a.tar").write_bytes(shard(TWO))
        assert [("a", "bad", ""), ("b", "bad", "")] == tagged("a.tar")
        assert [] == tarviz.table("a.tar").tags.missing()


class TestWhere:
    def test_they_are_no_cache(self, own):
        (own / "a.tar").write_bytes(shard(TWO))
        tarviz.table("a.tar").tags.add("cls = 2", "bad")
        shutil.rmtree(own / "cache")

        assert [("b", "bad", "")] == tagged("a.tar")
        (file,) = (own / "data" / "tarviz" / "tags").iterdir()
        assert (0o600, 0o700) == (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777)

    def test_a_file_beside_the_data_set_moves_with_it(self, own):
        (own / "set").mkdir()
        (own / "set" / "a.tar").write_bytes(shard(TWO))
        assert 1 == tarviz.table("set/a.tar", tags="set/tags.jsonl").tags.add("cls = 2", "bad", "blurred")
        (own / "set").rename(own / "moved")

        assert [("b", "bad", "blurred")] == tagged("moved/a.tar", tags="moved/tags.jsonl")
        assert [] == tagged("moved/a.tar")
        assert "a.tar" == json.loads((own / "moved" / "tags.jsonl").read_text())["shard"]

    def test_the_option_holds_at_every_door(self, own, monkeypatch):
        (own / "a.tar").write_bytes(shard(TWO))
        tarviz.table("a.tar", tags="tags.jsonl").tags.add("cls = 2", "bad")
        monkeypatch.setenv("TARVIZ_TAGS", "tags.jsonl")

        assert ["a"] == [record.key for record in tarviz.records("a.tar", where="not is:bad")]

    def test_the_command_line_names_it(self, own, capsys):
        from tarviz.cli import entry

        (own / "a.tar").write_bytes(shard(TWO))
        tarviz.table("a.tar", tags="tags.jsonl").tags.add("cls = 2", "bad")
        for tags in (["--tags", "tags.jsonl"], []):
            entry.main(["ls", *tags, "--where", "is:bad", "--json", "a.tar"])

        assert [1, 0] == [json.loads(line)["records"] for line in capsys.readouterr().out.splitlines()]
        assert "TARVIZ_TAGS" not in os.environ

    def test_what_an_earlier_version_kept_moves_over_once(self, own):
        (own / "a.tar").write_bytes(shard(TWO))
        old = own / "cache" / "tags"
        old.mkdir(parents=True)
        line = {"key": "b", "tag": "bad", "note": "blurred"}
        (old / "1.jsonl").write_text(
            json.dumps({"shard": str(own / "a.tar"), **line}) + "\n" + json.dumps({"shard": "x", "key": "cut"})[:9]
        )
        (old / "2.jsonl").write_text(json.dumps({"shard": "a.tar", **line, "key": "a"}) + "\n")

        assert [("b", "bad", "blurred")] == tagged("a.tar") == tagged("a.tar")
        assert ["2.jsonl"] == os.listdir(old)  # nobody knows any more in which folder that was


def _add(url, number):
    for at in range(10):
        tarviz.table(url).tags.add([(url, f"{number}-{at}")], "seen")


class TestWhole:
    """A file of tags is written whole or not at all."""

    @pytest.mark.parametrize("beside", [None, "tags.jsonl"])
    def test_on_a_full_disk_those_there_are_stay(self, own, beside):
        (own / "a.tar").write_bytes(shard(TWO))
        tags = tarviz.table("a.tar", tags=beside).tags
        tags.add([("a.tar", "b")], "bad", "x" * 300)

        with full_disk(4096), pytest.raises(StoreError) as caught:
            tags.add([("a.tar", f"{at}") for at in range(200)], "many")
        assert "E_WRITE" == caught.value.code
        assert [("b", "bad", "x" * 300)] == tagged("a.tar", tags=beside)

    def test_an_export_on_a_full_disk_leaves_the_one_before(self, own):
        (own / "a.tar").write_bytes(shard(TWO))
        tags = tarviz.table("a.tar").tags
        tags.add([("a.tar", f"{at}") for at in range(50)], "bad", "x" * 300)
        tags.save("t.jsonl")
        before = (own / "t.jsonl").read_bytes()

        with full_disk(4096), pytest.raises(StoreError) as caught:
            tags.save("t.jsonl")
        assert "E_WRITE" == caught.value.code
        assert before == (own / "t.jsonl").read_bytes()
        assert ["a.tar", "data", "t.jsonl"] == sorted(os.listdir(own))

    @pytest.mark.parametrize("beside", ["", "tags.jsonl"])
    def test_processes_that_tag_at_once_lose_nothing(self, own, monkeypatch, beside):
        monkeypatch.setenv("TARVIZ_TAGS", beside)
        (own / "a.tar").write_bytes(shard(TWO))
        assert [] == tagged("a.tar")
        workers = [multiprocessing.get_context("spawn").Process(target=_add, args=("a.tar", number)) for number in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

        assert 30 == len(tagged("a.tar"))

    def test_lines_that_are_no_tags_stay_in_a_file_of_one_s_own(self, own):
        (own / "a.tar").write_bytes(shard(TWO))
        (own / "tags.jsonl").write_text("# mine\n")
        tarviz.table("a.tar", tags="tags.jsonl").tags.add("cls = 2", "bad")

        assert "# mine" == (own / "tags.jsonl").read_text().splitlines()[0]
        assert [("b", "bad", "")] == tagged("a.tar", tags="tags.jsonl")


class TestLoad:
    @pytest.fixture
    def table(self, own):
        for folder in ("A", "B"):
            (own / folder).mkdir()
            (own / folder / "x.tar").write_bytes(shard(TWO))
        (own / "A" / "y.tar").write_bytes(shard([("c", {"cls": b"3"})]))
        return tarviz.table(["A/x.tar", "B/x.tar", "A/y.tar"])

    def load(self, own, table, **line):
        (own / "in.jsonl").write_text(json.dumps({"tag": "bad", **line}) + "\n")
        return table.tags.load("in.jsonl"), [(each["shard"], each["key"]) for each in table.tags.lines()]

    def test_a_shard_is_found_by_any_of_its_names(self, own, table):
        assert (1, [("B/x.tar", "a")]) == self.load(own, table, shard=str(own / "B" / "x.tar"), key="a")

    def test_one_moved_elsewhere_is_found_by_the_name_of_its_file(self, own, table):
        assert (1, [("A/y.tar", "c")]) == self.load(own, table, shard="s3://elsewhere/y.tar", key="c")

    def test_where_two_are_called_so_neither_is_taken(self, own, table):
        with pytest.warns(TarvizWarning, match="W_TAGS_LEFT_OUT 1 tags"):
            assert (0, []) == self.load(own, table, shard="s3://elsewhere/x.tar", key="a")

    def test_without_a_shard_the_records_of_that_key_have_it(self, own, table):
        assert (2, [("A/x.tar", "b"), ("B/x.tar", "b")]) == self.load(own, table, key="b")


@pytest.mark.parametrize("tag", ["don't", "it's 'so'", 'a "b"', "x;y--z"])
def test_tags_with_quotes_are_found_at_every_door(make, tag):
    path = make([("a", {"cls": b"1"}), ("b'c", {"cls": b"2"})])
    table = tarviz.table(path)
    assert 1 == table.tags.add("cls = 2", tag, "can't say")
    text = tag.replace("'", "''")

    for where in (f"tag = '{text}'", f"tagged('{text}')", f"marked('{text}') and cls = 2"):
        assert [1] == table.rows(where).n.tolist(), where
        assert ["b'c"] == [record.key for record in tarviz.records(path, where=where)], where
        assert ["b'c"] == [record.key for record in tarviz.show(str(path), where=where).records], where
    assert [("b'c", tag)] == table.sql(f"SELECT key, tag FROM records WHERE tag = '{text}'").fetchall()
    assert [("b'c", "can't say")] == table.sql(f"SELECT key, note FROM tags WHERE tag = '{text}'").fetchall()
    assert [("b'c", tag, "can't say")] == tagged(path)
    tarviz.cat(path, "kept.tar", where=f"tag = '{text}'")
    assert ["b'c"] == [record.key for record in tarviz.records("kept.tar")]


def test_capital_letters_of_a_tag_are_its_own(make, tmp_path):
    table = tarviz.table(make([(f"k{at}", {"cls": b"%d" % at}) for at in range(3)]), tags=tmp_path / "tags.jsonl")
    table.tags.add("cls = 1", "Good")

    for condition in ("tag:Good", "tag = 'Good'", "is:Good"):
        assert [1] == table.rows(condition).n.tolist()
    assert [0, 2] == table.rows("not tag:Good").n.tolist()
    assert [] == table.rows("tag:good").n.tolist()


ASKED = {
    "tag != 'x'": [0, 2, 3],
    "tag in ('x', 'don''t')": [1, 2],
    "tag not in ('x')": [0, 2, 3],
    "tag like 'G%' and cls = 1": [1],
    "tag not ilike 'g%'": [0, 2, 3],
    "'x' = tag": [1],
    "tag between 'b' and 'e'": [2],
    "tag is null": [0],
    "startswith(tag, 'G')": [1],
    "tag:don't": [2],
    "(is:é😀) or tag:'at sea'": [3],
    'not tag:"don\'t"': [0, 1, 3],
}


@pytest.mark.parametrize(("where", "fit"), ASKED.items())
def test_one_of_a_record_s_tags_fits_or_none_where_it_is_denied(make, monkeypatch, where, fit):
    path = make([(f"{at}", {"cls": b"%d" % at}) for at in range(4)])
    table = tarviz.table(path)
    for at, tags in {1: ["x", "Good"], 2: ["don't"], 3: ["é😀", "at sea"]}.items():
        for tag in tags:
            table.tags.add(f"cls = {at}", tag)
    keys = [str(at) for at in fit]

    assert fit == table.rows(where).n.tolist()
    assert keys == [record.key for record in tarviz.records(path, where=where)]
    assert keys == sorted(key for (key,) in table.sql(f"SELECT key FROM records WHERE {where}").fetchall())
    assert keys == [record.key for record in tarviz.show(str(path), where=where).records]
    with path.open("rb") as file:
        monkeypatch.setattr("sys.stdin", file)
        with pytest.raises(UsageError, match="needs all records at once"):
            list(tarviz.records("-", where=where))


def test_what_cannot_be_asked_of_tags_is_answered_with_what_can(make):
    with pytest.raises(UsageError, match=r"no column tag.*tag in \('x', 'y'\)"):
        tarviz.table(make([("a", {"cls": b"1"})])).rows("upper(tag) = 'X'")


@pytest.mark.parametrize(
    ("question", "keys"),
    [
        ("SELECT key FROM records r WHERE tag = 'x'", ["b"]),
        ("SELECT key FROM (SELECT key, tag FROM records) WHERE tag != 'y'", ["b"]),
        ("WITH known AS (SELECT key, tag FROM records) SELECT key FROM known WHERE tag LIKE 'x%'", ["b"]),
        ("SELECT key FROM (SELECT key FROM records WHERE tag != 'x')", ["a"]),
    ],
)
def test_a_tag_is_a_text_where_a_query_has_carried_it_away(make, question, keys):
    table = tarviz.table(make([("a", {"cls": b"1"}), ("b", {"cls": b"2"})]))
    table.tags.add("cls = 2", "x")

    assert keys == [key for (key,) in table.sql(question).fetchall()]


class TestFile:
    """What stands in a file of tags, line by line."""

    @pytest.fixture
    def tags(self, own):
        (own / "a.tar").write_bytes(shard(TWO))
        return tarviz.table("a.tar", tags="tags.jsonl").tags

    @staticmethod
    def line(key, tag, note="", shard="a.tar"):
        return json.dumps({"shard": shard, "key": key, "tag": tag, "note": note})

    def test_the_last_word_about_a_tag_stands_at_the_end(self, own, tags):
        assert 2 == tags.add([("a.tar", "b"), ("a.tar", "a")], " bad ", "blurred")
        assert 1 == tags.add_noted([("a.tar", "b", "dark")], "bad")
        assert 1 == tags.add("cls = 1", "good")
        assert 1 == tags.remove([("a.tar", "nobody")], "bad")

        lines = [self.line("a", "bad", "blurred"), self.line("b", "bad", "dark"), self.line("a", "good")]
        assert lines == (own / "tags.jsonl").read_text().splitlines()
        assert {"bad": 2, "good": 1} == tags.counts()
        assert 2 == tags.remove("cls < 9", "bad")
        assert [self.line("a", "good")] == (own / "tags.jsonl").read_text().splitlines()

    def test_a_file_written_by_others_is_read_and_nothing_of_it_thrown_away(self, own, tags):
        elsewhere = self.line("a", "y", shard="/elsewhere/x.tar")
        given = [
            self.line("a", "x"),
            "5",
            self.line("b", "x"),
            elsewhere,
            json.dumps({"shard": "a.tar", "key": "b", "tag": "x", "gone": True}),
            json.dumps({"shard": "a.tar", "key": 7, "tag": "x", "note": None}),
            json.dumps({"key": "b", "tag": "x"}),
            self.line("a", "x", "later"),
        ]
        (own / "tags.jsonl").write_text("\n".join(given))

        assert [("a", "x", "later"), ("7", "x", "")] == [(each["key"], each["tag"], each["note"]) for each in tags.lines()]
        tags.add("cls = 2", "z")
        assert ["5", given[6], given[7], elsewhere, self.line("7", "x"), self.line("b", "z")] == (
            own / "tags.jsonl"
        ).read_text().splitlines()

    def test_a_line_of_others_ends_where_json_lines_end(self, own, tags):
        (own / "tags.jsonl").write_text('{"shard": "a.tar", "key": "a\u2028", "tag": "x"}\n', "utf-8")

        assert ["a\u2028"] == [each["key"] for each in tags.lines()]

    def test_a_file_keeps_its_rights_and_a_new_one_has_the_usual_ones(self, own, tags):
        before = os.umask(0o027)
        try:
            tags.add("cls = 2", "x")
            assert 0o640 == (own / "tags.jsonl").stat().st_mode & 0o777
            (own / "tags.jsonl").chmod(0o604)
            tags.add("cls = 1", "x")
        finally:
            os.umask(before)

        assert 0o604 == (own / "tags.jsonl").stat().st_mode & 0o777

    def test_a_shard_that_is_none_of_the_table_is_refused(self, own, tags):
        with pytest.raises(UsageError, match=r"'b\.tar' is not a shard of this table"):
            tags.add([("a.tar", "a"), ("b.tar", "a")], "x")
        assert not (own / "tags.jsonl").exists()

    def test_where_no_file_can_be_it_says_so(self, own, tags):
        (own / "file").write_text("")
        with pytest.raises(StoreError, match=r"E_WRITE.*tags cannot be kept: File exists"):
            tarviz.table("a.tar", tags="file/tags.jsonl").tags.add("cls = 2", "x")

    def test_lines_that_are_taken_over(self, own, tags):
        lines = [
            self.line("b", "x", "n"),
            "",
            json.dumps({"key": "a", "tag": " y ", "note": None}),
            json.dumps({"key": "none", "tag": "y"}),
        ]
        (own / "in.jsonl").write_text("\n".join(lines))

        assert 2 == tags.load("in.jsonl")
        assert [("b", "x", "n"), ("a", "y", "")] == [(each["key"], each["tag"], each["note"]) for each in tags.lines()]
        assert 2 == tags.save("out.jsonl")
        assert [{"shard": "a.tar", "key": "b", "tag": "x", "note": "n"}, {"shard": "a.tar", "key": "a", "tag": "y", "note": ""}] == [
            json.loads(line) for line in (own / "out.jsonl").read_text().splitlines()
        ]
