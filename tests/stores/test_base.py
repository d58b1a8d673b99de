"""What every store, stream and sink has from its base: reading until it is full, copying inside the kernel, commit or abort."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tarviz.model.types import URL, Buffer
from tarviz.stores.base import Sink, Stat, Stream, fill, send_file

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


@pytest.mark.parametrize(("size", "expected"), [(0, 0), (20, 20), (100, 100), (200, 100)])
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

    @pytest.mark.parametrize(
        ("offset", "count", "expected"), [(5, 10, 10), (0, 2_500_000, 2_500_000), (2_999_990, 100, 10), (4_000_000, 5, 0)]
    )
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
