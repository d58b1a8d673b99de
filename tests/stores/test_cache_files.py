"""Files of the cache folder: private, found by shard, no more of them than is allowed."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

import tarviz
from tarviz.samples import write_shard
from tarviz.stores import cache_files
from tarviz.stores.cache_files import KeptFile, Temporary, folder_of, is_kept, kept_files, oldest, stem, touch, trim
from tests.conftest import each_case


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder of its own."""
    monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def kept(folder, name, data, age=3600.0):
    """A file that was used `age` seconds ago."""
    temporary = Temporary(folder)
    temporary.file.write(data)
    temporary.keep(folder / name)
    os.utime(folder / name, (time.time() - age,) * 2)
    return folder / name


class TestTemporary:
    def test_it_is_its_owner_s_alone(self, tmp_path):
        place = kept(tmp_path / "kept", "a", b"data")

        assert 0o600 == stat.S_IMODE(place.stat().st_mode)
        assert 0o700 == stat.S_IMODE(place.parent.stat().st_mode)

    def test_its_bytes_are_on_the_disk_before_it_has_its_name(self, tmp_path, monkeypatch):
        seen, sync = [], os.fsync
        monkeypatch.setattr(os, "fsync", lambda fd: seen.append((tmp_path / "a").exists()) or sync(fd))
        kept(tmp_path, "a", b"data")

        assert [False] == seen

    def test_an_exception_leaves_nothing_of_it(self, tmp_path):
        with pytest.raises(TypeError), Temporary(tmp_path) as temporary:
            temporary.file.write("no bytes")
        assert ([], True) == (list(tmp_path.iterdir()), temporary.file.closed)

        with Temporary(tmp_path) as temporary:
            temporary.keep(tmp_path / "a")
        assert ["a"] == os.listdir(tmp_path)

    def test_a_folder_of_an_earlier_version_is_closed(self, tmp_path):
        (tmp_path / "kept").mkdir(mode=0o755)
        kept(tmp_path / "kept", "a", b"data")

        assert 0o700 == stat.S_IMODE((tmp_path / "kept").stat().st_mode)

    def test_what_a_killed_process_left_goes_and_what_is_being_written_stays(self, tmp_path):
        writing = Temporary(tmp_path)
        (tmp_path / ".0123.tmp").write_bytes(b"of a process that is gone")

        assert [] == kept_files(tmp_path)
        assert [writing.path] == list(tmp_path.iterdir())
        writing.drop()


class TestTrim:
    def test_what_was_used_longest_ago_goes_first(self, cache, monkeypatch):
        monkeypatch.setenv("TARVIZ_CACHE_SIZE", "250")
        files = [kept(folder_of(("index", "table")[number % 2]), f"{number}", bytes(100), 10_000 - number) for number in range(5)]
        trim()

        assert files[3:] == [file for file in files if file.exists()]

    def test_what_nobody_used_for_long_goes(self, cache, monkeypatch):
        monkeypatch.setenv("TARVIZ_CACHE_DAYS", "7")
        files = [kept(folder_of("index"), f"{days}", b"data", days * 86_400) for days in (6, 8)]
        trim()

        assert files[:1] == [file for file in files if file.exists()]

    def test_what_is_in_use_stays_until_it_is_asked_to_go(self, cache, monkeypatch):
        monkeypatch.setenv("TARVIZ_CACHE_SIZE", "1")
        place = kept(folder_of("index"), "a", b"data", 5)

        assert [] == trim()
        assert place.exists()
        assert [place] == [row.path for row in trim(at_once=True)]
        assert not place.exists()

    def test_many_who_keep_look_once_a_minute(self, cache, monkeypatch):
        monkeypatch.setenv("TARVIZ_CACHE_SIZE", "1")
        cache.mkdir()
        trim()
        place = kept(folder_of("index"), "a", b"data")

        assert [] == trim()
        assert place.exists()
        os.utime(cache / ".trimmed", (0, 0))
        assert 1 == len(trim())

    def test_rewriting_a_shard_over_and_over_does_not_fill_the_disk(self, cache, tmp_path, monkeypatch):
        monkeypatch.setenv("TARVIZ_CACHE_SIZE", "20kB")
        monkeypatch.setattr(cache_files, "_GRACE", 0.0)
        monkeypatch.setattr(cache_files, "_PAUSE", 0.0)
        for number in range(100):
            write_shard(tmp_path / "a.tar", [("a", {"txt": b"%d" % number})])
            os.utime(tmp_path / "a.tar", (number, number))
            assert 1 == len(tarviz.index(tmp_path / "a.tar"))

        assert sum(row.size for row in kept_files(folder_of("index"))) <= 20_000

    def test_a_look_at_a_time_that_is_still_to_come_is_none(self, cache, monkeypatch):
        """A clock that was set back must not keep the folder from being looked at for years."""
        monkeypatch.setenv("TARVIZ_CACHE_SIZE", "1")
        place = kept(folder_of("index"), "a", b"data")
        (cache / ".trimmed").touch()
        os.utime(cache / ".trimmed", (time.time() + 1000,) * 2)

        assert [place] == [row.path for row in trim()]


class TestOldest:
    FILES = [KeptFile(Path(name), 100, used) for name, used in (("b", 20.0), ("a", 10.0), ("c", 30.0))]

    @each_case(
        ("limit", "before", "gone"),
        [
            (300, 0, ""),
            (299, 0, "a"),
            (200, 0, "a"),
            (199, 0, "ab"),
            (0, 0, "abc"),
            (300, 10, ""),
            (300, 10.5, "a"),
            (300, 30, "ab"),
            (99, 5, "abc"),
        ],
    )
    def test_no_more_than_needs_to_goes(self, limit, before, gone):
        assert [*gone] == [row.path.name for row in oldest(self.FILES, limit, before)]


class TestIsKept:
    def test_it_is_known_at_once_of_what_this_process_kept_and_in_a_second_of_others(self, cache, monkeypatch):
        now = [1000.0]
        monkeypatch.setattr(cache_files.time, "monotonic", lambda: now[0])
        ours, others = "https://h/ours.tar", "https://h/others.tar"
        told = [(is_kept("index", ours), is_kept("index", others))]
        kept(folder_of("index"), stem(ours) + "v1", b"data")
        (folder_of("index") / (stem(others) + "v1")).write_bytes(b"data")
        told.append((is_kept("index", ours), is_kept("index", others)))
        now[0] += 1
        told.append((is_kept("index", ours), is_kept("index", others)))

        assert [(False, False), (True, False), (True, True)] == told
        assert not is_kept("table", ours)


def test_a_file_that_is_used_keeps_its_time_of_change(tmp_path):
    place = kept(tmp_path, "a", b"data", 1000)
    before = place.stat()
    touch(place)

    assert before.st_mtime_ns == place.stat().st_mtime_ns
    assert place.stat().st_atime > before.st_atime + 900
    touch(tmp_path / "none")  # another process was quicker


def test_what_is_dropped_is_gone_and_has_no_name(tmp_path):
    temporary = Temporary(tmp_path)
    temporary.file.write(b"data")
    temporary.drop()

    assert [] == list(tmp_path.iterdir())
    assert temporary.file.closed
