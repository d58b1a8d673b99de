"""Inflating: every stream to its end, every check sum compared, no bomb unpacked."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import zlib
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarviz.formats import compression
from tarviz.formats.compression import Inflater, kind
from tarviz.model.errors import DataError, LimitError, MissingPackageError
from tests.conftest import each_case

zstandard = pytest.importorskip("zstandard")

PACK = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zstd": lambda data: zstandard.ZstdCompressor().compress(data)}
TEXT = b"the quick brown fox " * 5000


class Source:
    def __init__(self, data: bytes, step: int = 1 << 20) -> None:
        self.file = io.BytesIO(data)
        self.step = step

    def readinto(self, buffer):
        return self.file.readinto(buffer[: self.step])


def inflate(data: bytes, how: str | None = None, *, step: int = 1 << 20, ratio: int | None = None) -> bytes:
    reader = Inflater(Source(data, step), how or kind(data), ratio=ratio)
    out, buffer = bytearray(), bytearray(50_000)
    while count := reader.readinto(memoryview(buffer)):
        out += buffer[:count]
    return bytes(out)


@pytest.mark.parametrize("how", PACK)
class TestEveryKind:
    def test_is_told_by_its_first_bytes(self, how):
        assert how == kind(PACK[how](b"x"))

    @each_case("step", [1, 7, 1000, 1 << 20])
    def test_gives_what_went_in(self, how, step):
        text = TEXT[:3000] if step == 1 else TEXT

        assert text == inflate(PACK[how](text), step=step)

    def test_reads_streams_one_behind_the_other(self, how):
        assert TEXT + b"2" == inflate(PACK[how](TEXT) + PACK[how](b"2"))

    def test_nothing_compressed_is_nothing(self, how):
        assert b"" == inflate(PACK[how](b""))

    def test_every_cut_is_an_error(self, how):
        data = PACK[how](b"0123456789" * 30)
        for length in range(len(data)):
            with pytest.raises(DataError) as caught:
                inflate(data[:length] if length else data[:1], how)
            assert caught.value.code in ("E_TRUNCATED_COMPRESSED", "E_CORRUPT_COMPRESSED")

    def test_a_bomb_is_refused_wherever_it_begins(self, how, monkeypatch):
        monkeypatch.setattr(compression, "RATIO_FLOOR", 1 << 19)
        noise, calm = Random(4).randbytes(1 << 15), Random(5).randbytes(1 << 14) + bytes(1 << 18) + Random(6).randbytes(1 << 14)
        for before in (b"", noise):
            with pytest.raises(LimitError, match="more than 20 to 1"):
                inflate(PACK[how](before + bytes(5 << 19)), ratio=20)

        assert calm == inflate(PACK[how](calm), ratio=20)

    @each_case("step", [1, 5, 1 << 20])
    def test_what_stands_behind_the_last_stream_is_placed(self, how, step):
        data = PACK[how](b"abc") + PACK[how](b"d")
        reader, buffer = Inflater(Source(data + b"garbage", step), how), memoryview(bytearray(9))
        found = b"".join(bytes(buffer[: reader.readinto(buffer)]) for _ in range(9))

        assert (b"abcd", len(data)) == (found, reader.trailing)


class TestGzip:
    def test_data_comes_out_before_its_check_sum_is_judged(self):
        data = bytearray(gzip.compress(TEXT))
        data[-6] ^= 1
        reader = Inflater(Source(bytes(data)), "gzip")
        out, buffer = bytearray(), bytearray(1 << 20)

        def drain() -> None:
            while count := reader.readinto(memoryview(buffer)):
                out.extend(buffer[:count])

        with pytest.raises(DataError) as caught:
            drain()

        assert ("E_CORRUPT_COMPRESSED", TEXT) == (caught.value.code, bytes(out))

    def test_a_source_without_a_byte_is_at_its_end(self):
        reader = Inflater(Source(b""), "gzip")

        assert [0, 0] == [reader.readinto(memoryview(bytearray(9))) for _ in range(2)]

    def test_a_name_without_an_end_is_refused(self):
        with pytest.raises(DataError, match=r"E_CORRUPT_COMPRESSED.*unterminated name"):
            inflate(b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * (3 << 19))

    def test_another_method_than_deflate_is_refused(self):
        with pytest.raises(DataError, match="compression method 7, not deflate"):
            inflate(b"\x1f\x8b\x07" + bytes(20))

    def test_zeros_behind_it_are_no_bytes_of_another_kind(self):
        reader = Inflater(Source(gzip.compress(b"abc") + bytes(700)), "gzip")

        assert [3, 0] == [reader.readinto(memoryview(bytearray(9))) for _ in range(2)]
        assert reader.trailing is None

    @given(st.binary(max_size=2000), st.text(st.characters(codec="latin-1", exclude_characters="\0"), max_size=20), st.integers(1, 60))
    @settings(max_examples=100, deadline=None)
    def test_headers_with_names_are_read_in_any_pieces(self, data, name, step):
        file = io.BytesIO()
        with gzip.GzipFile(name.replace("/", "") + ".gz", "wb", fileobj=file) as out:
            out.write(data)

        assert data == inflate(file.getvalue(), step=step)

    @given(st.binary(min_size=1, max_size=400), st.integers(0, 10**6))
    @settings(max_examples=200, deadline=None)
    def test_a_changed_byte_never_passes_for_the_data(self, data, where):
        packed = bytearray(gzip.compress(data, mtime=0))
        packed[where % len(packed)] ^= 1 + where % 255
        try:
            out = inflate(bytes(packed), "gzip")
        except (DataError, zlib.error) as error:
            assert isinstance(error, DataError)
        else:
            assert data == out


def test_a_gzip_header_may_hold_every_field_of_its_standard():
    """RFC 1952 §2.3.1: an extra field, a name, a comment and a check sum of the header."""
    plain = gzip.compress(TEXT)
    head = plain[:3] + bytes([2 | 4 | 8 | 16]) + plain[4:10] + b"\3\0abc" + b"name\0" + b"comment\0"
    checked = head + (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little")

    assert TEXT == inflate(checked + plain[10:])
    assert TEXT + TEXT == inflate(plain + checked + plain[10:])
    for step in (1, 3, 11):
        assert TEXT == inflate(checked + plain[10:], step=step)


@each_case("step", [1, 5, 1 << 20])
@each_case("padding", [4, 8, 4096])
def test_zeros_may_stand_behind_streams_of_xz(step, padding):
    """The .xz file format, 2.2: stream padding, a multiple of four."""
    packed = lzma.compress(b"one") + bytes(padding) + lzma.compress(b"two") + bytes(padding)
    reader = Inflater(Source(packed, step), "xz")
    pieces, buffer = [], bytearray(100)
    while count := reader.readinto(memoryview(buffer)):
        pieces.append(bytes(buffer[:count]))

    assert (b"onetwo", None) == (b"".join(pieces), reader.trailing)


def test_without_isal_the_standard_library_inflates_the_same():
    code = "import io, sys; sys.modules['isal'] = None; from tarviz.formats.compression import Inflater\n"
    code += "buffer = bytearray(9); reader = Inflater(io.BytesIO(sys.stdin.buffer.read()), 'gzip')\n"
    code += "print(reader.readinto(memoryview(buffer)), bytes(buffer[:3]), reader.readinto(memoryview(buffer)))"
    done = subprocess.run([sys.executable, "-c", code], input=gzip.compress(b"abc"), capture_output=True, check=True)

    assert b"3 b'abc' 0\n" == done.stdout


def test_without_zstandard_the_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)

    with pytest.raises(MissingPackageError, match="zstandard"):
        Inflater(Source(b""), "zstd")
