"""Compressed fields: unpacked once, within limits."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from typing import ClassVar

import pytest

from tarviz import viewers
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Meta
from tests.viewers.payloads import encoded


class TestCompressed(ViewerTests):
    viewer = "compressed"
    good: ClassVar = {
        "json.gz": gzip.compress(b'{"a": 1}'),
        "txt.bz2": bz2.compress(b"text"),
        "txt.xz": lzma.compress(b"text"),
        "png.gz": gzip.compress(encoded("PNG")),
        "gz": gzip.compress(b"two ") + gzip.compress(b"members"),
    }
    bad: ClassVar = {"txt.gz": gzip.compress(b"text" * 99)[:-9], "gz": b"plain", "xz": b"\xfd7zXZ\0"}

    def test_what_is_inside_is_shown(self):
        panel = self.panel("json.gz", self.good["json.gz"])

        assert 'gzip: {"a": 1}' == panel.summary
        assert ("compression", "gzip, 28 → 8 bytes") == panel.facts[0]

    def test_zstd_is_unpacked(self):
        zstandard = pytest.importorskip("zstandard", reason="zstandard is in the extra `fast`")

        assert "zstd: 4 characters, 1 line" == self.panel("txt.zst", zstandard.compress(b"text")).summary

    def test_a_bomb_is_refused_while_it_unpacks(self):
        assert self.panel("gz", gzip.compress(bytes((64 << 20) + 1))).summary.startswith("E_LIMIT")

    def test_nothing_is_unpacked_twice(self):
        assert "twice compressed" in self.panel("txt.gz.gz", gzip.compress(gzip.compress(b"text"))).summary

    def test_a_tile_is_that_of_what_is_inside(self):
        assert "text" == viewers.tile(self.good["txt.xz"], Meta("txt.xz"))
        assert "gzip, twice compressed" == viewers.tile(gzip.compress(bz2.compress(b"text")), Meta("txt.bz2.gz"))
        assert viewers.tile(self.good["png.gz"], Meta("png.gz")).startswith(b"\x89PNG")

    @pytest.mark.parametrize(
        ("name", "packed"), [("gzip", gzip.compress(b"text", mtime=0)), ("bzip2", bz2.compress(b"text")), ("xz", lzma.compress(b"text"))]
    )
    def test_members_one_behind_the_other_are_one_and_other_bytes_behind_them_are_left(self, name, packed):
        assert f"{name}: 8 characters, 1 line" == self.panel("txt.gz", packed * 2).summary
        assert f"{name}: 4 characters, 1 line" == self.panel("txt.gz", packed + b"\0other").summary

    @pytest.mark.parametrize(
        ("name", "packed"),
        [("gzip", gzip.compress(b"text" * 99, mtime=0)), ("bzip2", bz2.compress(b"text" * 99)), ("xz", lzma.compress(b"text" * 99))],
    )
    def test_what_is_cut_short_or_damaged_is_told_of_the_field(self, name, packed):
        cut, damaged = self.panel("txt.gz", packed[:-4]), self.panel("txt.gz", packed[:20] + b"\xff\xff" + packed[22:])

        assert cut.summary.startswith(f"E_DECODE: .txt.gz is damaged: the {name} stream ends early")
        assert "E_DECODE" == damaged.error.code
        assert "E_DECODE: .gz is not compressed by gzip, bzip2, xz or zstd." == self.panel("gz", b"plain").summary

    def test_xz_that_asks_for_four_gigabytes_to_work_with_gets_none(self):
        """Its dictionary is said in the block's header, whose check sum is made anew (XZ file format 3.1)."""
        packed = bytearray(lzma.compress(b"text"))
        size = 4 * (packed[12] + 1)
        packed[16] = 40  # 4 GiB - 1
        packed[12 + size - 4 : 12 + size] = zlib.crc32(packed[12 : 12 + size - 4]).to_bytes(4, "little")

        assert "Memory usage limit exceeded" in self.panel("txt.xz", bytes(packed)).summary

    def test_what_is_mostly_empty_is_no_bomb(self):
        assert "gzip: 65,536 characters, 1 line (first 64 kB)" == self.panel("txt.gz", gzip.compress(b"x" * (3 << 20))).summary
