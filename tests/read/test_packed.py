"""Packed shards: a bomb is refused before it costs memory, and a picture of zeros is not a bomb."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os

import pytest

from tarviz.model.errors import LimitError
from tarviz.read import stream
from tarviz.testing.strategies import shard
from tests import memory
from tests.read.tars import raw


class TestPackedBombs:
    """F13, F14: a bomb is refused before it costs memory, and a picture of zeros is not a bomb."""

    @pytest.mark.parametrize("suffix", ["gz", "bz2", "xz"])
    def test_members_of_zeros_are_read(self, tmp_path, suffix):
        content = [(f"k{number}", {"npy": bytes(5 << 20), "cls": os.urandom(40_000)}) for number in range(3)]
        path = tmp_path / f"a.tar.{suffix}"
        path.write_bytes({"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[suffix](shard(content)))

        assert ["k0", "k1", "k2"] == [record.key for record in stream.records(path)]

    @pytest.mark.parametrize("promise", [900 << 20, 8 << 30], ids=["below the limit", "above it"])
    def test_a_bomb_is_refused_in_little_memory(self, tmp_path, promise):
        header = raw("a.bin").replace(b"00000000000\0", b"%011o\0" % promise, 1) if promise < 8 << 30 else raw("a.bin")
        head = bytearray(header)
        if promise >= 8 << 30:
            head[124:136] = b"\x80" + promise.to_bytes(11, "big")
        head[148:156] = b" " * 8
        head[148:156] = b"%06o\0 " % sum(head)
        path = tmp_path / "a.tar.gz"
        path.write_bytes(gzip.compress(bytes(head) + bytes(60 << 20), 9))
        before = memory.begin()
        with pytest.raises(LimitError):
            list(stream.records(path))
        assert memory.peak() - before < 64 << 20
