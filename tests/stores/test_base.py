"""What every store, stream and sink has from its base: reading until it is full, copying inside the kernel, commit or abort."""

from __future__ import annotations

import errno
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tarviz.model.types import URL, Buffer
from tarviz.stores.base import Sink, Stat, Stream, fill, read_at, read_into, send_file, skip, take
from tests.conftest import each_case

DATA = os.urandom(3_000_000)


class Drops(Stream):
    """Gives a few bytes at a time."""

    def __init__(self, data: bytes) -> None:
        self.data, self.offset = data, 0

    def readinto(self, buffer: memoryview, /) -> int:
        piece = self.data[self.offset : self.offset + min(len(buffer), 7)]
        buffer[: len(piece)] = piece
        self.offset += len(piece)
        return len(piece)


class Kept(Sink):
    def __init__(self) -> None:
        self.data, self.state = b"", "open"

    def write(self, data: Buffer, /) -> None:
        self.data += bytes(data)

    def commit(self) -> Stat:
        self.state = "committed"
        return Stat(URL("x"))

    def abort(self) -> None:
        self.state = "aborted"


@each_case(("size", "expected"), [(0, 0), (20, 20), (100, 100), (200, 100)])
def test_fill_reads_until_the_buffer_is_full_or_the_object_ends(size: int, expected: int):
    buffer = bytearray(size)

    assert expected == fill(Drops(DATA[:100]), memoryview(buffer))
    assert DATA[:expected] == bytes(buffer[:expected])


class TestSink:
    def test_it_commits_at_the_end_and_aborts_when_an_exception_passes(self):
        with Kept() as kept:
            kept.writev([b"a", b"b"])
        failed = Kept()
        with pytest.raises(KeyboardInterrupt), failed:
            raise KeyboardInterrupt

        assert ("committed", b"ab", "aborted") == (kept.state, kept.data, failed.state)

    @each_case(("offset", "count", "expected"), [(5, 10, 10), (0, 2_500_000, 2_500_000), (2_999_990, 100, 10), (4_000_000, 5, 0)])
    def test_bytes_of_a_file_are_sent_and_its_position_stays(self, tmp_path: Path, offset: int, count: int, expected: int):
        (tmp_path / "a").write_bytes(DATA)
        kept = Kept()
        with (tmp_path / "a").open("rb") as file:
            assert expected == kept.send(file.fileno(), offset, count)
            assert 0 == file.tell()

        assert DATA[offset : offset + expected] == kept.data


class TestSendFile:
    def test_what_the_kernel_took_is_there(self, tmp_path: Path):
        (tmp_path / "a").write_bytes(DATA)
        with (tmp_path / "a").open("rb") as source, (tmp_path / "b").open("wb") as target:
            done = send_file(target.fileno(), source.fileno(), 1000, 2_000_000)

        assert DATA[1000 : 1000 + done] == (tmp_path / "b").read_bytes()

    def test_a_file_that_is_appended_to_goes_through_memory(self, tmp_path: Path):
        (tmp_path / "a").write_bytes(DATA)
        with (tmp_path / "a").open("rb") as source, (tmp_path / "b").open("ab") as target:
            done = send_file(target.fileno(), source.fileno(), 0, 1000)

        assert done in (0, 1000)
        assert DATA[:done] == (tmp_path / "b").read_bytes()


def test_the_url_of_a_stat_is_shown_without_its_secrets():
    assert "planted" not in repr(Stat(URL("https://u:planted@h/a.tar?sig=planted"), 5))


class TestWithoutPread:
    """As on Windows: a file is read at a place by going there, one thread at a time."""

    @pytest.fixture(autouse=True)
    def without(self, monkeypatch: pytest.MonkeyPatch):
        for name in ("pread", "preadv"):
            monkeypatch.delattr(os, name)

    @each_case(("count", "offset"), [(10, 0), (2_000_000, 5), (100, 2_999_950), (5, 4_000_000)])
    def test_the_bytes_are_the_same(self, tmp_path: Path, count: int, offset: int):
        (tmp_path / "a").write_bytes(DATA)
        buffer = bytearray(count)
        with (tmp_path / "a").open("rb") as file:
            assert DATA[offset : offset + count] == read_at(file.fileno(), count, offset)
            found = read_into(file.fileno(), memoryview(buffer), offset)

        assert DATA[offset : offset + count] == buffer[:found]

    def test_threads_take_turns(self, tmp_path: Path):
        (tmp_path / "a").write_bytes(DATA)
        with (tmp_path / "a").open("rb") as file, ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda at: read_at(file.fileno(), 1000, at), range(0, 400_000, 1000)))

        assert DATA[:400_000] == b"".join(found)


class TestRefusals:
    def test_a_pipe_that_nobody_reads_is_said(self, tmp_path: Path):
        (tmp_path / "a").write_bytes(DATA)
        reading, writing = os.pipe()
        os.close(reading)
        with (tmp_path / "a").open("rb") as source, pytest.raises(BrokenPipeError):
            send_file(writing, source.fileno(), 0, 1000)
        os.close(writing)

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device here")
    def test_a_full_disk_is_said_at_once_or_by_the_next_write(self, tmp_path: Path):
        (tmp_path / "a").write_bytes(DATA)
        with (tmp_path / "a").open("rb") as source, open("/dev/full", "wb", buffering=0) as target:
            try:
                assert 0 == send_file(target.fileno(), source.fileno(), 0, 1000)
            except OSError as error:
                assert errno.ENOSPC == error.errno

    def test_another_error_than_a_refusal_is_raised(self, tmp_path: Path):
        folder = os.open(tmp_path, os.O_RDONLY)
        with (tmp_path / "b").open("wb") as target, pytest.raises(IsADirectoryError):
            send_file(target.fileno(), folder, 0, 1000)
        os.close(folder)


def test_some_bytes_of_a_stream_are_taken():
    class Known(Drops):
        stat = Stat(URL("x"), 100)

    class Unknown(Drops):
        stat = Stat(URL("x"))

    for kind in (Known, Unknown):
        stream = kind(DATA[:100])
        assert [DATA[:30], DATA[30:100], b""] == [take(stream, count) for count in (30, 500, 5)]
    assert DATA[:100] == take(Known(DATA[:100]), 1 << 50)  # no room is made for what the object cannot hold


def test_a_stream_is_skipped_up_to_a_byte_or_to_its_end():
    class Known(Drops):
        stat = Stat(URL("x"), len(DATA))

    stream = Known(DATA)
    places = []
    for offset in (5, 5, 3, 2_500_000, 9_000_000):
        skip(stream, offset)
        places.append(stream.offset)

    assert [5, 5, 5, 2_500_000, 3_000_000] == places


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="these calls of Linux copy from file to file")
@pytest.mark.parametrize("refused", ["copy_file_range", "sendfile"])
def test_where_the_kernel_refuses_one_call_the_other_copies_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str):
    asked = []

    def copy(source: int, target: int, count: int, offset: int) -> int:
        asked.append((count, offset))
        return os.write(target, os.pread(source, min(count, 700_000), offset))

    def refuse(*_: int) -> int:
        raise OSError(errno.ENOSYS, "not here")

    monkeypatch.setattr(os, "copy_file_range", refuse if refused == "copy_file_range" else copy)
    monkeypatch.setattr(os, "sendfile", refuse if refused == "sendfile" else lambda to, fd, at, count: copy(fd, to, count, at))
    (tmp_path / "a").write_bytes(DATA)
    with (tmp_path / "a").open("rb") as source, (tmp_path / "b").open("wb") as target:
        assert 2_000_000 == send_file(target.fileno(), source.fileno(), 1000, 2_000_000)

    assert DATA[1000:2_001_000] == (tmp_path / "b").read_bytes()
    assert [(2_000_000, 1000), (1_300_000, 701_000), (600_000, 1_401_000)] == asked
