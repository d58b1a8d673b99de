"""Compressed fields: unpacked once, within limits."""

from __future__ import annotations

import bz2
import gzip
import lzma
from typing import ClassVar

import pytest

from tarviz.testing.viewers import ViewerTests
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
        assert self.panel("gz", gzip.compress(bytes(64 << 20))).summary.startswith("E_LIMIT")

    def test_nothing_is_unpacked_twice(self):
        assert "twice compressed" in self.panel("txt.gz.gz", gzip.compress(gzip.compress(b"text"))).summary
