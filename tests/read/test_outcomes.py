"""What every way into a shard says of odd and damaged ones: the same records, the same faults, and none that is not whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tarviz.model.errors import TarvizError
from tarviz.read import stream
from tarviz.read.stream import ReadReport
from tarviz.testing.strategies import numbered, shard
from tests.read.tars import END, member, raw

pytestmark = pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")


def kept(folder: Path, data: bytes) -> Path:
    path = folder / "a.tar"
    path.write_bytes(data)
    return path


def read(path: Path, **options: Any) -> tuple[list[tuple[str, dict[str, bytes], bool]], TarvizError | None, ReadReport]:
    """Records (key, fields, pending), the error they ended with, the report."""
    run = stream.records(path, **options)
    found: list[tuple[str, dict[str, bytes], bool]] = []
    try:
        found.extend((str(record.key), {ext: bytes(data) for ext, data in record.items()}, record.pending) for record in run)
    except TarvizError as error:
        return found, error, run.report
    return found, None, run.report


def keys(found: list[tuple[str, dict[str, bytes], bool]]) -> list[str]:
    return [key for key, _, _ in found]


class TestBehindTheEnd:
    """F2, F20: what stands behind the end-of-archive marker, wherever a window ends."""

    SECOND = shard(numbered(200, prefix="second/"))

    def test_a_second_archive_is_read_by_every_door(self, tmp_path):
        path = kept(tmp_path, shard(numbered(3)) + self.SECOND)
        found, error, _ = read(path, concatenated=True)
        index = stream.index(path, concatenated=True)

        assert error is None
        assert 203 == len(found) == len(index)
        assert 406 == sum(len(run) for run in stream.members(path, concatenated=True))

    @pytest.mark.parametrize("zeros", [0, 512, 61_440, 5_120_000])
    def test_a_second_archive_far_behind_is_read_by_every_door(self, tmp_path, zeros):
        path = kept(tmp_path, shard(numbered(3)) + bytes(zeros) + self.SECOND)

        assert 203 == len(read(path, concatenated=True)[0]) == len(stream.index(path, concatenated=True))

    @pytest.mark.parametrize("garbage", [b"garbage" * 100, member("late.txt", b"1")], ids=["garbage", "member"])
    @pytest.mark.parametrize("zeros", [0, 70_144])
    def test_bytes_behind_the_end_are_warned_of_at_their_place(self, tmp_path, garbage, zeros):
        path = kept(tmp_path, member("a.txt", b"1") + END + bytes(zeros) + garbage + bytes(80_000))
        listed = ReadReport()
        list(stream.members(path, report=listed))
        _, _, report = read(path, strict=False)
        place = 2048 + zeros

        assert [("W_TRAILING", place)] == [(fault.code, fault.offset) for fault in report.warnings]
        assert [("W_TRAILING", place)] == [(fault.code, fault.offset) for fault in listed.warnings]
        assert [("W_TRAILING", place)] == [(fault["code"], fault["offset"]) for fault in stream.index(path).warnings]


class TestWindows:
    """F4: where a buffer ends changes nothing."""

    @pytest.mark.parametrize("blocks", range(508, 514))
    def test_a_hard_link_with_data_at_the_end_of_a_buffer(self, tmp_path, blocks):
        link = raw("k.lnk", 600, b"1", link=b"a.txt") + b"x" * 600 + bytes(424)
        data = member("a.txt", bytes((blocks - 1) * 512)) + link + member("b.txt", b"2") + END
        found, error, _ = read(kept(tmp_path, data))

        assert error is None
        assert ["a", "b"] == keys(found)

    @pytest.mark.parametrize("end", [b"", END], ids=["cut", "whole"])
    def test_a_hard_link_that_only_says_a_size_at_the_end(self, tmp_path, end):
        found, error, _ = read(kept(tmp_path, member("a.txt", b"1") + raw("k.lnk", 600, b"1", link=b"a.txt") + end), strict=False)

        assert error is None
        assert ["a"] == keys(found)


class TestCutInsideOthers:
    """F6: a record is not whole before a cut in a member that belongs to no record."""

    CUT = (b"x" * 2000)[:700]
    OTHERS = {
        "meta": raw("__index__.json", 2000),
        "apple": raw("._k0.cls", 2000),
        "no key": raw("README", 2000),
        "vendor": raw("k1.bin", 2000, b"Z"),
        "link": raw("k1.bin", 2000, b"1"),
        "size": raw("__index__.json", 2000).replace(b"00000003720\0", b"0000000372z\0"),
    }

    @pytest.mark.parametrize("kind", OTHERS)
    def test_the_record_before_is_not_certain(self, tmp_path, kind):
        other = self.OTHERS[kind]
        if kind == "size":
            other = bytearray(other)
            other[148:156] = b" " * 8
            other[148:156] = b"%06o\0 " % sum(other)
        path = kept(tmp_path, member("j.txt", b"0") + member("k0.txt", b"1") + bytes(other) + self.CUT)
        strict, error, _ = read(path)
        lenient, _, _ = read(path, strict=False)
        index = stream.index(path)

        assert error is not None
        assert [("j", {"txt": b"0"}, False)] == strict
        assert [("j", {"txt": b"0"}, False), ("k0", {"txt": b"1"}, True)] == lenient
        assert 1 == index.shards[0].pending
        assert ["j", "k0"] == list(index.keys())

    def test_a_cut_member_of_another_record_makes_the_one_before_certain(self, tmp_path):
        path = kept(tmp_path, member("k0.txt", b"1") + raw("k1.txt", 2000) + self.CUT)

        assert [("k0", {"txt": b"1"}, False)] == read(path)[0] == read(path, strict=False)[0]
        assert -1 == stream.index(path).shards[0].pending
