from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

import tarviz
from tarviz.formats import example, tfrecord
from tarviz.model.errors import DataError
from tarviz.model.types import URL
from tarviz.read import tfrecords
from tarviz.read.options import ReadOptions
from tarviz.read.report import ReadReport
from tarviz.widgets.browse.controller import Browser
from tests.conftest import each_case, wait_until


def written(path: Path, payloads: list[bytes]) -> URL:
    path.write_bytes(b"".join(tfrecord.frame(payloads).buffers()))
    return URL(str(path))


class TestIsTFRecord:
    def test_a_name_says_so(self):
        assert tfrecords.is_tfrecord(URL("nowhere/x.tfrecord"))

    @each_case("name", ["x.tar", "x.record.tar", "x.tar.gz", "x.tgz", "-"])
    def test_a_tar_and_a_pipe_are_none(self, name):
        assert not tfrecords.is_tfrecord(URL(name))

    def test_of_other_names_the_first_header_says_it(self, tmp_path):
        other = tmp_path / "y.data"
        other.write_bytes(b"no record of a TFRecord")

        assert tfrecords.is_tfrecord(written(tmp_path / "x.data", [b"abc"]))
        assert not tfrecords.is_tfrecord(URL(str(other)))


class TestRecords:
    def test_keys_are_those_of_the_examples_where_a_tar_can_hold_them(self, tmp_path):
        keys = [b"a/b", b"a/b", b"a.b", b"", b"/a", b"a/../b", b"\xff", b"x\0", b"k"]
        url = written(tmp_path / "x.tfrecord", [example.encode({"__key__": key}) for key in keys])
        found = [key for _, key, _ in tfrecords.records(url, ReadOptions(), ReadReport(), stem="x", lists=())]

        assert ["a/b", *(f"x-{at:08d}" for at in range(1, 8)), "k"] == found

    def test_a_number_that_is_a_key_is_not_given_twice(self, tmp_path):
        url = written(tmp_path / "x.tfrecord", [example.encode({"__key__": b"x-00000001"}), example.encode({"n": 1})])

        assert ["x-00000001", "x-00000001_"] == [
            key for _, key, _ in tfrecords.records(url, ReadOptions(), ReadReport(), stem="x", lists=())
        ]

    def test_numbers_go_on_behind_what_is_skipped(self, tmp_path):
        url = written(
            tmp_path / "x.tfrecord", [example.encode({"n": 1}), b"no example", example.encode({"n": 3}), example.encode({"n": 4})]
        )
        data = bytearray(Path(url).read_bytes())
        data[tfrecord.HEADER] ^= 1
        Path(url).write_bytes(data)
        report = ReadReport()
        run = tfrecords.records(url, ReadOptions(on_error="skip"), report, stem="x", lists=())

        assert [2, 3] == [number for number, _, _ in run]
        assert {"E_BAD_EXAMPLE": 1, "E_DATA_CRC": 1} == report.left_out
        assert (2, len(data)) == (report.records, report.bytes)


class TestListsIn:
    def test_several_values_or_none_make_a_list(self, tmp_path):
        records = [{"one": 1, "two": [1, 2], "none": [1]}, {"one": 2, "two": [3], "none": []}]

        assert {"two", "none"} == tfrecords.lists_in(
            written(tmp_path / "x.tfrecord", [example.encode(each) for each in records]), ReadOptions()
        )


class TestFirstBlocks:
    def test_records_have_the_place_of_their_file(self, tmp_path):
        url = written(tmp_path / "x.tfrecord", [example.encode({"a/b": at}) for at in range(5)])
        found = [record for block in tfrecords.first_blocks(url, ReadOptions(), ReadReport(), 3) for record in block]

        assert [("x-00000000", url, 0), ("x-00000001", url, 1), ("x-00000002", url, 2)] == [
            (each.key, each.shard, each.index) for each in found
        ]
        assert [b"0", b"1", b"2"] == [bytes(each["a.b.cls"]) for each in found]

    def test_damage_is_raised_behind_the_last_good_record(self, tmp_path):
        url = written(tmp_path / "x.tfrecord", [example.encode({"n": 1}), b"no example"])
        run = tfrecords.first_blocks(url, ReadOptions(strict=False), ReadReport(), 3)
        records = [next(run)]

        assert [1] == [len(block) for block in records]
        with pytest.raises(DataError, match="record 1 is not a tf"):
            next(run)


class TestAsShards:
    """What needs the members of a tar reads a shard of the records, which the cache keeps."""

    @pytest.fixture
    def file(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        return written(tmp_path / "x.tfrecord", [example.encode({"cls": at % 3, "txt": f"text {at}"}) for at in range(30)])

    def test_any_record_is_read_by_its_number_and_by_its_key(self, file):
        index = tarviz.index(file)

        assert (30, b"text 17", "x-00000017") == (len(index), bytes(index[17]["txt"]), index[17].key)
        assert b"text 17" == bytes(index["x-00000017"]["txt"])

    def test_the_shard_is_made_once_for_a_version_of_the_file(self, file, tmp_path):
        tar = tmp_path / "a.tar"
        (first, *_), (again, same) = tfrecords.as_shards([file]), tfrecords.as_shards([file, URL(str(tar))])
        written(Path(file), [example.encode({"cls": 1})])

        assert (first, str(tar)) == (again, same)
        assert 1 == len(tarviz.index(file))

    def test_it_is_asked_in_sql_and_looked_through(self, file):
        pytest.importorskip("duckdb", reason="duckdb is not installed")

        assert [(0, 10), (1, 10), (2, 10)] == tarviz.sql("SELECT cls, count(*) FROM records GROUP BY cls ORDER BY cls", file).rows
        with closing(Browser(file)) as browser:
            wait_until(lambda: browser.shards.rows.finished)
            assert [f"x-{at:08d}" for at in range(30)] == [browser.shards.rows.row(at).key for at in range(30)]

    def test_of_a_damaged_file_nothing_is_kept(self, file, tmp_path):
        Path(file).write_bytes(Path(file).read_bytes()[:-3])

        with pytest.raises(DataError, match="E_TRUNCATED"):
            tarviz.index(file)
        assert [] == list((tmp_path / "cache").rglob("*x.tar"))
        assert [] == list((tmp_path / "cache").rglob("*.tmp"))


@pytest.mark.parametrize(("most", "lists"), [(1, set()), (1 << 20, {"a"})])
def test_of_large_examples_few_are_looked_at(tmp_path, monkeypatch, most, lists):
    """Which features are lists is told by the first of them, and no more of these than fit into memory."""
    path = tmp_path / "a.tfrecord"
    with path.open("wb") as file:
        tfrecord.write(file, [example.encode({"a": [1]}), example.encode({"a": [1, 2]})])
    monkeypatch.setattr(tfrecords, "_HEAD_BYTES", most)

    assert lists == tfrecords.lists_in(URL(str(path)), ReadOptions())


class TestKeptShards:
    """Shards made of files count among what is derived, and go as that does."""

    @pytest.fixture
    def path(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "cache"))
        with (tmp_path / "a.tfrecord").open("wb") as file:
            tfrecord.write(file, [example.encode({"a": [number]}) for number in range(3)])
        return URL(str(tmp_path / "a.tfrecord"))

    def test_one_that_is_asked_for_again_is_in_use(self, path):
        (made,) = tfrecords.as_shards([path])
        os.utime(made, (0, os.stat(made).st_mtime))

        assert [made] == tfrecords.as_shards([path])
        assert os.stat(made).st_atime > 1e9

    def test_making_one_takes_away_what_is_over_the_limit(self, path, tmp_path, monkeypatch):
        monkeypatch.setenv("TARVIZ_CACHE_SIZE", "1")
        old = tmp_path / "cache" / "index" / "old.tvi"
        old.parent.mkdir(parents=True)
        old.write_bytes(b"data")
        os.utime(old, (0, 0))
        (made,) = tfrecords.as_shards([path])

        assert (False, True) == (old.exists(), os.path.exists(made))
