"""PAX bodies, numbers of headers, checksums and sparse maps: what is read, and what is refused."""

from __future__ import annotations

import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.formats import pax
from tarviz.model.errors import DataError
from tests.conftest import each_case
from tests.read.tars import pax as pax_header
from tests.read.tars import raw

KEYWORDS = st.text(st.characters(codec="utf-8", exclude_characters="=\0\n "), min_size=1, max_size=20).map(str.encode)


def body(*records: tuple[bytes, bytes]) -> bytes:
    header = pax_header(*records)
    return header[512 : 512 + int(header[124:135], 8)]


class TestRecords:
    @given(st.lists(st.tuples(KEYWORDS, st.binary(max_size=1200)), max_size=6))
    def test_keywords_and_values_of_any_bytes_read_back(self, records: list[tuple[bytes, bytes]]):
        assert records == list(pax.records(body(*records)))

    def test_nuls_may_stand_behind_the_last(self):
        assert [(b"size", b"512")] == list(pax.records(b"12 size=512\n" + bytes(9)))

    @each_case(
        "wrong",
        [
            b"size=512\n",
            bytes(9) + b"12 size=512\n",
            b"99 size=512\n",
            b"12 size=512",
            b"11 size=512\n",
            b"5 ab\n",
            b"5 =b\n",
            b"0 \n",
            b"-3 a=b\n",
            b"12 size=512\nrest",
            b"1 \n",
        ],
    )
    def test_what_is_not_a_record_is_refused(self, wrong: bytes):
        with pytest.raises(DataError, match="E_PAX"):
            list(pax.records(wrong))


class TestHarmless:
    def test_times_and_owners_move_no_data(self):
        assert pax.harmless(body((b"mtime", b"1.5"), (b"uid", b"3"), (b"SCHILY.dev", b"1"), (b"comment", b"c")))

    @each_case("keyword", [b"path", b"size", b"linkpath", b"GNU.sparse.major", b"hdrcharset", b"what"])
    def test_others_may(self, keyword: bytes):
        assert not pax.harmless(body((b"mtime", b"1.5"), (keyword, b"3")))

    def test_a_length_that_hides_a_keyword_is_seen(self):
        assert not pax.harmless(b"30 comment=x\n18 size=512\n".replace(b"30", b"24"))
        assert not pax.harmless(b"99 comment=x\n")


class TestNumbers:
    @given(st.integers(-(2**60), 2**60))
    def test_base_256_is_what_tarfile_writes(self, value: int):
        assert value == pax.number(tarfile.itn(value, 12, tarfile.GNU_FORMAT))

    @each_case(
        ("field", "value"), [(b"0000644\0", 420), (b"   644 \0", 420), (b"\0" * 8, 0), (b"644\0junk", 420), (b"8", None), (b"6 4", None)]
    )
    def test_octal_digits_may_be_padded(self, field: bytes, value: int | None):
        assert value == pax.number(field)


class TestChecksum:
    def test_it_is_the_sum_of_unsigned_bytes_or_of_signed_ones(self):
        header = bytearray(raw("ü.txt"))
        assert pax.checksum_right(bytes(header))
        signed = sum(byte - 256 if byte > 127 else byte for byte in header[:148] + header[156:]) + 8 * 32
        header[148:156] = b"%06o\0 " % signed

        assert pax.checksum_right(bytes(header))
        header[148:156] = b"%06o\0 " % (signed + 1)
        assert not pax.checksum_right(bytes(header))


class TestPieces:
    @each_case("pieces", [[(0, -1)], [(-1, 1)], [(4, 4), (6, 1)], [(8, 3)], [(4, 2), (0, 2)]])
    def test_they_are_in_order_apart_and_inside_the_file(self, pieces: list[tuple[int, int]]):
        pax.pieces_right([(0, 2), (2, 2), (8, 2), (10, 0)], 10, 6)
        with pytest.raises(DataError, match="E_SPARSE"):
            pax.pieces_right(pieces, 10, 100)

    def test_a_list_is_made_of_pairs_of_numbers(self):
        assert [(0, 5), (9, 1)] == pax.listed_pieces([b"0", b"5", b"9", b"1"])
        for wrong in ([b"1"], [b"1", b"x"], [b"1", b"-1"], [b"1", b"9" * 20]):
            with pytest.raises(DataError, match="E_SPARSE"):
                pax.listed_pieces(wrong)

    def test_old_gnu_entries_end_at_the_first_empty_one(self):
        entries = b"".join(b"%011o\0%011o\0" % pair for pair in ((0, 5), (9, 1)))

        assert [(0, 5), (9, 1)] == pax.gnu_pieces(bytes(386) + entries + bytes(24) + entries, 386, 4)
        assert [(0, 5), (9, 1)] == pax.gnu_pieces(bytes(386) + entries * 2, 386, 2)
        large = [tarfile.itn(value, 12, tarfile.GNU_FORMAT) for value in (2**40, 2**50)]
        assert [(2**40, 2**50)] == pax.gnu_pieces(b"".join(large), 0, 1)
        with pytest.raises(DataError, match="E_SPARSE"):
            pax.gnu_pieces(bytes(386) + b"x" * 24, 386, 1)


@pytest.mark.parametrize("byte", [0x7F, 0x80, 0xFF])
def test_a_checksum_over_signed_bytes_is_right_from_0x80_on(byte: int):
    """As the tars of old Suns sum: a byte of 0x80 or more counts less than nothing."""
    header = bytearray(raw("a.txt"))
    header[:1] = bytes([byte])
    for begin, stop in ((1, 100), (157, 257), (345, 512)):  # so much that the sum has six digits
        header[begin:stop] = b"\x7f" * (stop - begin)
    header[148:156] = b" " * 8
    signed = sum(each - 256 if each >= 0x80 else each for each in header)
    header[148:156] = b"%06o\0 " % signed

    assert pax.checksum_right(bytes(header))
