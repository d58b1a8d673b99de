"""Headers without payloads: windows around them, single ones where payloads are large, or all of a stream."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tarviz.formats.tar import Scanner
from tarviz.model.errors import ChangedError, DataError, StoreError
from tarviz.model.types import URL
from tarviz.read import stream
from tarviz.read.headers import MemberListing, header_steps
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.stores.file import FileStore
from tarviz.testing.faults import ALWAYS, Fault, FaultServer
from tests.read.tars import END, member, pax, raw


def names(data: bytes, size: int) -> list[str]:
    """What a listing shows by windows that begin where it says."""
    listing, found = MemberListing(Scanner("a.tar", strict=False)), []
    begin = 0
    while not listing.over:
        end = min(max(begin + size, listing.wants), len(data))
        found += [one.name for run in listing.walk(memoryview(data)[begin:end], begin, final=end == len(data)) for one in run]
        begin = min(listing.place, end // 512 * 512)
    return found


class TestListing:
    DATA = pax((b"path", b"p" * 700 + b".txt")) + member("x", b"1") + raw("folder/", 0, b"5") + member("b.bin", bytes(9000)) + END

    def test_every_entry_is_listed_by_windows_of_any_size(self):
        expected = ["p" * 700 + ".txt", "folder/", "b.bin"]

        assert [expected] * 6 == [names(self.DATA, size) for size in (512, 1024, 1536, 4096, 16_384, 1 << 20)]

    def test_it_passes_over_payloads(self):
        listing = MemberListing(Scanner("a.tar"))
        list(listing.walk(memoryview(raw("b.bin", 1 << 30))))

        assert 512 + (1 << 30) == listing.place

    def test_the_error_of_the_tar_ends_it(self):
        listing = MemberListing(Scanner("a.tar"))
        found = [one.name for run in listing.walk(memoryview(member("a.txt", b"1") + b"x" * 512), final=True) for one in run]

        assert ["a.txt"] == found
        assert listing.over
        assert isinstance(listing.error, DataError)


class TestAround:
    @pytest.mark.parametrize(("size", "share"), [(600, 1.01), (40_000, 0.3), (4_000_000, 0.01)])
    def test_few_bytes_are_read_where_payloads_are_large(self, make: Callable[..., Path], size: int, share: float):
        path = make(b"".join(member(f"{number:03d}.bin", bytes(size)) for number in range(24_000_000 // (size + 512) % 600 + 6)) + END)
        report = ReadReport()
        walker = ReadOptions().walker(str(path), payloads="none")
        found = sum(len(step.records) for step in header_steps(URL(str(path)), walker, report))

        assert found == sum(1 for _ in stream.records(path))
        assert report.bytes <= share * path.stat().st_size + 70_000

    def test_a_header_of_another_kind_among_large_payloads_is_not_missed(self, make: Callable[..., Path]):
        large = bytes(100_000)
        parts = [member(f"{number:03d}.bin", large) for number in range(20)]
        parts[7:7] = [pax((b"path", b"long/name.bin")), member("x.bin", large), raw("k.lnk", 0, b"1", link=b"000.bin")]
        path = make(b"".join(parts) + END)
        listed = [one.name for run in stream.members(path) for one in run]

        assert [*(f"{number:03d}.bin" for number in range(7)), "long/name.bin", "k.lnk"] == listed[:9]
        assert 22 == len(listed)

    @pytest.mark.parametrize("magic", [bytes(8), b"ustar  \0"], ids=["v7", "gnu"])
    def test_large_members_of_old_headers_are_listed(self, make: Callable[..., Path], magic: bytes):
        parts = [member(f"{number:03d}.bin", bytes(100_000), magic=magic if number == 9 else b"ustar\x0000") for number in range(20)]
        path = make(b"".join(parts) + END)

        assert [f"{number:03d}.bin" for number in range(20)] == [one.name for run in stream.members(path) for one in run]

    def test_a_last_payload_that_is_cut_is_an_error_as_in_a_stream(self, make: Callable[..., Path]):
        data = b"".join(member(f"{number:03d}.bin", bytes(100_000)) for number in range(20))[:-60_000]
        told = []
        for path in (make(data), make(gzip.compress(data), "a.tar.gz")):
            found: list[str] = []
            with pytest.raises(DataError) as caught:
                found += (one.name for run in stream.members(path) for one in run)
            told.append((found, caught.value.code))

        assert told[0] == told[1]
        assert "E_TRUNCATED" == told[0][1]

    def test_a_shard_replaced_meanwhile_is_told(self, make: Callable[..., Path], tmp_path: Path):
        """By large members each header is read by itself, and by small ones in windows."""
        for size, count in ((20_000, 600), (600, 20_000)):
            path = make(b"".join(member(f"{number:06d}.bin", bytes(size)) for number in range(count)) + END)
            steps = header_steps(URL(str(path)), MemberListing(Scanner(str(path))), ReadReport())
            next(steps)
            (tmp_path / "b.tar").write_bytes(path.read_bytes()[::-1])
            os.replace(tmp_path / "b.tar", path)

            with pytest.raises(ChangedError):
                list(steps)

    def test_of_the_shard_that_took_its_place_no_member_is_told(self, make: Callable[..., Path], tmp_path: Path):
        """It has headers at the same places: nothing but its version tells it from the other."""
        old, new = (b"".join(member(f"{kind}{number:03d}.bin", bytes(20_000)) for number in range(600)) + END for kind in ("old", "new"))
        path = make(old)
        steps = header_steps(URL(str(path)), MemberListing(Scanner(str(path))), ReadReport())
        found = [one.name for one in next(steps)]
        (tmp_path / "b.tar").write_bytes(new)
        os.replace(tmp_path / "b.tar", path)
        with pytest.raises(ChangedError):
            found += (one.name for run in steps for one in run)

        assert found
        assert [] == [name for name in found if name.startswith("new")]

    def test_a_size_below_zero_is_the_error_of_a_stream(self, make: Callable[..., Path]):
        large = b"".join(member(f"{number:03d}.bin", bytes(100_000)) for number in range(20))
        data = large + raw("below.bin", size=b"-7777777777\0") + large + END
        told = []
        for path in (make(data), make(gzip.compress(data, 1), "a.tar.gz")):
            with pytest.raises(DataError) as caught:
                list(stream.members(path))
            told.append((caught.value.code, caught.value.offset))

        assert [("E_SIZE", len(large))] * 2 == told

    def test_the_bytes_that_were_read_are_counted(self, make: Callable[..., Path]):
        """Of each further large member that is its header."""
        read = []
        for count in (100, 300, 700):
            path = make(b"".join(member(f"{number:03d}.bin", bytes(50_000)) for number in range(count)) + END)
            report = ReadReport()

            assert count == sum(len(run) for run in header_steps(URL(str(path)), MemberListing(Scanner(str(path))), report))
            read.append(report.bytes)
        assert [200 * 512, 400 * 512] == [read[1] - read[0], read[2] - read[1]]

    def test_windows_grow_while_members_are_small(self, make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch):
        path, read, sizes = make(member("a.bin", bytes(3000)) * 3600 + END), FileStore.read, []

        def noted(store: FileStore, url: URL, offset: int, length: int, **more: str) -> bytes:
            sizes.append(length)
            return read(store, url, offset, length, **more)

        monkeypatch.setattr(FileStore, "read", noted)
        list(stream.members(path))

        assert [64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 4 << 20] == [size for size in sizes if size > 512][:8]

    def test_afar_they_shrink_where_members_are_large(self):
        with FaultServer() as server:
            list(stream.members(URL(server.put("/a.tar", member("a.bin", bytes(2 << 20)) * 5 + END))))
            ends = [request.headers["range"].removeprefix("bytes=").split("-") for request in server.requests if "range" in request.headers]

        assert [64 << 10, 32 << 10, 16 << 10, 8 << 10, 4 << 10, 1024] == [int(last) - int(first) + 1 for first, last in ends]


class TestStream:
    def test_a_packed_shard_that_is_damaged_after_its_last_member_is_an_error(self, make: Callable[..., Path]):
        data = bytearray(gzip.compress(member("a.txt", b"1") + END + os.urandom(9_000_000), 1))
        data[-8] ^= 1  # its checksum
        with pytest.raises(DataError) as caught:
            list(stream.members(make(bytes(data), "a.tar.gz")))

        assert "E_CORRUPT_COMPRESSED" == caught.value.code

    def test_bytes_behind_a_packed_shard_are_warned_of(self, make: Callable[..., Path]):
        path, report = make(gzip.compress(member("a.txt", b"1") + END) + b"more than the padding", "a.tar.gz"), ReadReport()

        assert ["a.txt"] == [one.name for run in stream.members(path, report=report) for one in run]
        assert {"W_TRAILING": 1} == report.counts()

    def test_damage_in_a_packed_shard_is_told_where_it_is_met(self, make: Callable[..., Path]):
        """As it is for who reads the records, whatever the packing's own checksum says at the end."""
        data = b"".join(member(f"{number:03d}.bin", bytes(100_000)) for number in range(120))
        packed = bytearray(gzip.compress(data + END, 0))
        packed[packed.index(b"010.bin")] ^= 1
        path = make(bytes(packed), "a.tar.gz")
        with pytest.raises(DataError, match="checksum") as caught:
            list(stream.members(path))
        with pytest.raises(DataError) as other:
            list(stream.records(path))

        assert ("E_CHECKSUM", data.index(b"010.bin")) == (caught.value.code, caught.value.offset)
        assert (caught.value.code, caught.value.offset) == (other.value.code, other.value.offset)

    def test_a_compressed_shard_has_the_headers_of_the_plain_one(self, make: Callable[..., Path]):
        data = b"".join(member(f"{number:03d}.bin", bytes(70_000)) for number in range(100)) + END

        plain, packed = (
            [list(run) for run in stream.members(make(each, name))] for each, name in ((data, "a.tar"), (gzip.compress(data), "a.gz"))
        )
        assert [one for run in plain for one in run] == [one for run in packed for one in run]

    def test_a_header_larger_than_the_buffer_is_read(self, make: Callable[..., Path]):
        long = pax((b"comment", b"n" * 1_000_000)) * 6
        path = make(gzip.compress(long + pax((b"path", b"a.txt")) + member("x", b"1") + END), "a.tar.gz")

        assert ["a.txt"] == [one.name for run in stream.members(path) for one in run]

    def test_afar_only_large_members_are_worth_a_request_each(self, tmp_path: Path):
        with FaultServer() as server:
            for size, whole in ((2 << 20, False), (5000, True)):
                data = b"".join(member(f"{number}.bin", bytes(size)) for number in range(6)) + END
                url, before = URL(server.put("/a.tar", data)), server.sent
                assert 6 == sum(len(run) for run in stream.members(url))
                assert whole == (server.sent - before > len(data) / 2)


@pytest.mark.parametrize("size", [600, 100_000])
def test_names_that_are_no_utf_8_are_warned_of_at_their_place(make: Callable[..., Path], size: int):
    """In windows, and where each header is read by itself."""
    parts = [member(b"%03d\xff.bin" % number if number % 7 == 3 else b"%03d\xc3\xa4.bin" % number, bytes(size)) for number in range(40)]
    path, report = make(b"".join(parts) + END), ReadReport()

    assert 40 == sum(len(run) for run in stream.members(path, report=report))
    assert [("W_NAME_ENCODING", number * len(parts[0]), f"{number:03d}\udcff.bin") for number in range(3, 40, 7)] == [
        (fault.code, fault.offset, fault.member) for fault in report.warnings
    ]


def test_a_shard_that_is_gone_behind_its_first_headers_is_the_error_of_its_server(make: Callable[..., Path]):
    data = b"".join(member(f"{number:03d}.bin", bytes(9000)) for number in range(900)) + END
    with FaultServer() as server:
        url = server.put("/a.tar", data, plan=[Fault(cut=1000), Fault(status=403, times=ALWAYS)])

        with pytest.raises(StoreError, match="E_AUTH"):
            list(stream.members(url))
        server.put("/a.tar", data, plan=[Fault(cut=100_000), Fault(status=403, times=ALWAYS)])
        with pytest.raises(StoreError, match="E_AUTH"):
            stream.index(url, cache=False)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="the system does not tell what is open")
def test_what_stands_behind_the_end_is_listed_where_that_is_asked(make: Callable[..., Path]):
    path = make(member("a.txt", b"1") + END + member("b.txt", b"2") + END)

    assert ["a.txt"] == [one.name for run in stream.members(path) for one in run]
    assert ["a.txt", "b.txt"] == [one.name for run in stream.members(path, concatenated=True) for one in run]
    with pytest.raises(DataError, match="E_TRAILING"):
        list(stream.members(path, strict=True))


def test_no_file_stays_open(make: Callable[..., Path]):
    path = make(b"".join(member(f"{number:03d}.bin", bytes(100_000)) for number in range(300)) + END)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        assert 300 == sum(len(run) for run in stream.members(path))

    assert before == len(os.listdir("/proc/self/fd"))
