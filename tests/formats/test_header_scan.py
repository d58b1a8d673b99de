"""Headers as columns say what careful reading says, name by name, or leave them to it."""

from __future__ import annotations

import io
import tarfile

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tarviz.formats import header_scan
from tarviz.formats.records import split_name
from tests.conftest import each_case
from tests.read.tars import END, member, pax, raw

NAMES = st.lists(
    st.text(st.sampled_from("aBZ@[0._/-é"), min_size=1, max_size=30).map(str.encode).filter(lambda name: not name.startswith(b"./")),
    min_size=1,
    max_size=12,
)


def scanned(data: bytes) -> header_scan.HeaderColumns:
    return header_scan.headers(np.frombuffer(data, np.uint8).reshape(-1, 512))


class TestPlain:
    @pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    def test_sizes_and_places_are_those_of_tarfile(self, format: int):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=format) as tar:
            for number, size in enumerate((0, 1, 511, 512, 513, 70_000)):
                info = tarfile.TarInfo(f"train/{number:04d}.bin")
                info.size = size
                tar.addfile(info, io.BytesIO(bytes(size)))
        with tarfile.open(fileobj=io.BytesIO(file.getvalue())) as tar:
            expected = [(one.offset // 512, one.size, one.name.encode()) for one in tar]
        found = scanned(file.getvalue())

        assert found.plain.all()
        assert expected == [(at, size, bytes(name).rstrip(b"\0")) for at, size, name in zip(found.at, found.size, found.name, strict=True)]
        assert [5] == found.breaks.tolist()  # each leads to the next, the last one to none

    def test_no_damaged_byte_goes_unseen(self):
        """But for the two behind the digits of the checksum."""
        for byte in {*range(512)} - {154, 155}:
            header = bytearray(raw("train/0001.jpg", 1234))
            header[byte] ^= 0x11
            assert not scanned(bytes(header)).plain.any(), byte

    @each_case(
        "header",
        [
            raw("folder/", 0),
            raw("a.txt", 0, b"5"),
            raw("a.txt", 0, b"L"),
            raw(b"a\0b.txt", 0),
            raw(b"", 0),
            pax((b"path", b"x.txt"), kind=b"g")[:512],
        ],
    )
    def test_what_is_unusual_is_left_to_careful_reading(self, header: bytes):
        assert [False, True] == scanned(header + raw("b.txt")).plain.tolist()

    def test_behind_the_owner_stands_a_prefix_and_in_gnu_a_time(self):
        for format, plain in ((tarfile.USTAR_FORMAT, False), (tarfile.GNU_FORMAT, True)):
            header = bytearray(tarfile.TarInfo("a.txt").tobuf(format))
            header[345:356], header[148:156] = b"0" * 11, b" " * 8
            header[148:156] = b"%06o\0 " % sum(header)

            assert [plain, True] == scanned(bytes(header) + raw("b.txt")).plain.tolist()

    def test_a_folder_among_names_of_one_length_is_left_to_careful_reading(self):
        assert [True, False] == scanned(raw("a00.txt") + raw("folder/")).plain.tolist()

    @pytest.mark.parametrize("length", [1, 2, 8, 9, 96, 97, 99, 100])
    def test_names_of_up_to_a_hundred_bytes_are_whole_and_folders_are_told(self, length: int):
        names = [b"a" * length, b"b", b"a" * (length - 1) + b"/"]
        found = scanned(b"".join(map(raw, names)))

        assert [True, True, False] == found.plain.tolist()
        assert names == [bytes(name).rstrip(b"\0") for name in found.name]

    @pytest.mark.parametrize(("end", "plain"), [(b"\0 ", True), (b" \xff", True), (b"0 ", False), (b"!\0", False)])
    def test_the_digits_of_the_checksum_end_with_a_nul_or_a_space(self, end: bytes, plain: bool):
        header = raw("a.txt")

        assert [plain] == scanned(header[:154] + end + header[156:]).plain.tolist()

    @each_case("size", [0, *(7 << 3 * digit for digit in range(11)), 8**11 - 1])
    def test_sizes_of_up_to_eleven_digits_are_read(self, size: int):
        found = scanned(raw("a.bin", 7) + raw("b.bin", size))

        assert ([7, size], [True, True]) == (found.size.tolist(), found.plain.tolist())

    def test_a_pax_header_is_marked(self):
        found = scanned(pax((b"mtime", b"1.5")) + member("a.txt", b"1") + END)

        assert ([True, True], [True, False]) == (found.plain.tolist(), found.pax.tolist())

    def test_a_header_inside_a_payload_breaks_the_row(self):
        found = scanned(member("outer.tar", member("inner.txt", b"1")) + member("b.txt", b"2") + END)

        assert [0, 1, 3] == found.at.tolist()
        assert [0, 2] == found.breaks.tolist()[:2]

    def test_names_beyond_ascii_are_marked(self):
        assert [True, False] == scanned(raw("a.txt") + raw("ü.txt")).ascii.tolist()

    def test_headers_are_followed_over_large_payloads(self):
        data = member("a.bin", bytes(5000)) + member("b.bin", bytes(100_000)) + raw("c.bin", 1 << 30)

        assert [0, 11, 208] == header_scan.follow(memoryview(data), 0).tolist()

    @pytest.mark.parametrize("size", [(4096).to_bytes(12, "big"), b"-0000000001\0", b"-0000001000\0", b"no number!!\0"])
    def test_a_header_whose_size_is_not_octal_is_the_last_that_is_followed(self, size: bytes):
        data = member("a.bin", bytes(4096)) + raw("b.bin", size) + member("c.bin", bytes(9))

        assert [0, 9] == header_scan.follow(memoryview(data), 0).tolist()


class TestSplit:
    @given(NAMES, st.booleans())
    @example([b"a.b", b"c.D"], False)
    @example([b"a.b", b"c."], True)
    def test_it_cuts_as_one_name_is_cut(self, names: list[bytes], last: bool):
        table = header_scan.matrix(np.array(names, "S"))
        cut = header_scan.split(table.copy(), header_scan.base(table == 47), last=last)
        for row, name in enumerate(names):
            expected = split_name(name, "last-dot" if last else "first-dot")
            assert (expected is not None) == bool(cut.valid[row]), name
            if expected is not None and name.isascii():
                assert expected[0] == bytes(cut.key[row]).rstrip(b"\0")[: cut.length[row]]
                assert expected[1].encode() == bytes(cut.ext[row]).rstrip(b"\0")

    @given(NAMES)
    def test_a_record_begins_where_the_key_is_another(self, keys: list[bytes]):
        table = header_scan.matrix(np.array(keys, "S"))
        begins = header_scan.starts(table, np.array([len(key) for key in keys]))

        assert [row == 0 or keys[row] != keys[row - 1] for row in range(len(keys))] == begins.tolist()


class TestTables:
    @given(st.lists(st.sampled_from([b"%03d" % number for number in range(90)] + [b"a", b"seg.png.long"]), max_size=200))
    def test_distinct_rows_are_numbered_as_they_appear(self, rows: list[bytes]):
        table = header_scan.matrix(np.array(rows, "S16")) if rows else np.zeros((0, 1), np.uint8)
        codes, found = header_scan.distinct(table)

        assert list(dict.fromkeys(rows)) == found
        assert rows == [found[code] for code in codes]

    @given(st.lists(st.binary(min_size=1, max_size=40).filter(lambda key: b"\0" not in key), min_size=1, max_size=10), st.integers(0, 20))
    def test_a_key_hashes_the_same_alone_and_in_any_table(self, keys: list[bytes], more: int):
        table = header_scan.matrix(np.array(keys, f"S{max(map(len, keys)) + more}"))

        assert [header_scan.hash_one(key) for key in keys] == header_scan.hashes(table).tolist()
