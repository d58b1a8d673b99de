"""What every way into a shard says of odd and damaged ones: the same records, the same faults, and none that is not whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tarviz.model.errors import TarvizError
from tarviz.read import stream
from tarviz.read.stream import ReadReport
from tarviz.testing.strategies import numbered_records, shard
from tests.conftest import each_case
from tests.read.tars import END, member, pax, raw

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
    """F2, F20: what stands after the end-of-archive marker, wherever a window ends."""

    SECOND = shard(numbered_records(200, prefix="second/"))

    def test_a_second_archive_is_read_by_every_door(self, tmp_path):
        path = kept(tmp_path, shard(numbered_records(3)) + self.SECOND)
        found, error, _ = read(path, concatenated=True)
        index = stream.index(path, concatenated=True)

        assert error is None
        assert 203 == len(found) == len(index)
        assert 406 == sum(len(run) for run in stream.members(path, concatenated=True))

    @each_case("zeros", [0, 512, 61_440, 5_120_000])
    def test_a_second_archive_far_behind_is_read_by_every_door(self, tmp_path, zeros):
        path = kept(tmp_path, shard(numbered_records(3)) + bytes(zeros) + self.SECOND)

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

    @each_case("blocks", range(508, 514))
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

    @each_case("kind", OTHERS)
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
        assert (1,) == index.shards[0].pending
        assert ["j", "k0"] == list(index.keys())

    def test_a_cut_member_of_another_record_makes_the_one_before_certain(self, tmp_path):
        path = kept(tmp_path, member("k0.txt", b"1") + raw("k1.txt", 2000) + self.CUT)

        assert [("k0", {"txt": b"1"}, False)] == read(path)[0] == read(path, strict=False)[0]
        assert () == stream.index(path).shards[0].pending


class TestHole:
    """F5: a hole of zeros in a shard, with members behind it."""

    @pytest.mark.parametrize("size", [512, 1024, 4096])
    def test_is_an_error_in_strict_reading(self, tmp_path, size):
        data = bytearray(shard(numbered_records(1200)))
        place = 500 * 2560
        data[place : place + size] = bytes(size)
        path = kept(tmp_path, bytes(data))
        strict, error, _ = read(path)
        lenient, none, report = read(path, strict=False)

        assert (499, "E_TRAILING") == (len(strict), error.code)
        assert place < error.offset <= place + 8192
        assert none is None
        assert (500, True) == (len(lenient), lenient[-1][2])
        assert {"W_TRAILING", "W_LONE_ZERO"} & set(report.counts())
        assert (499,) == stream.index(path).shards[0].pending


class TestLostExtensionHeader:
    """F3: where an extension header is damaged, the member behind it has another name than it should."""

    LONG = "p" * 120

    def whole(self, *exts: str) -> bytes:
        members = [
            pax((b"path", f"{self.LONG}/k{number}.{ext}".encode())) + member(f"{'p' * 95}.{ext}", b"%d" % number)
            for number in range(6)
            for ext in exts
        ]
        return b"".join(members) + END

    @pytest.mark.parametrize("exts", [("txt",), ("txt", "cls")])
    def test_no_record_is_partial_or_has_a_name_that_was_cut(self, tmp_path, exts):
        data = self.whole(*exts)
        truth = read(kept(tmp_path, data))[0]
        each = 2048
        for number in range(6 * len(exts)):
            bad = bytearray(data)
            bad[number * each + 3] ^= 1
            found, error, report = read(kept(tmp_path, bytes(bad)), on_error="skip")

            assert error is None
            assert all(record in truth for record in found)
            assert len(found) >= len(truth) - 3
            assert report.skipped


class TestOddHeaders:
    """F15: what tools do with an empty path or size in a PAX header, and with a NUL in a name."""

    def test_an_empty_path_or_size_sets_none(self, tmp_path):
        data = pax((b"path", b""), (b"size", b"")) + member("a.txt", b"1") + END

        assert [("a", {"txt": b"1"}, False)] == read(kept(tmp_path, data))[0]

    def test_a_nul_in_a_name_is_refused_or_cuts_it(self, tmp_path):
        data = pax((b"path", b"a.txt\0evil.sh")) + member("x", b"1") + member("b.txt", b"2") + END
        strict, error, _ = read(kept(tmp_path, data))
        lenient, _, report = read(kept(tmp_path, data), strict=False)

        assert ([], "E_HEADER", 0) == (strict, error.code, error.offset)
        assert ["a", "b"] == keys(lenient)
        assert {"W_NAME_NUL": 1} == report.counts()
