"""Packed shards: a bomb is refused before it costs memory, and a picture of zeros is not a bomb."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os

import pytest

import tarviz
from tarviz.commands.ls import ls
from tarviz.model.errors import DataError, LimitError
from tarviz.read import stream
from tarviz.testing.faults import FaultServer
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
        path.write_bytes(gzip.compress(bytes(head) + bytes(100 << 20), 9))
        before = memory.begin()
        with pytest.raises(LimitError):
            list(stream.records(path))
        assert memory.peak() - before < 160 << 20  # what may come out at any ratio, and room to grow


class TestWrongTrailer:
    """What packs a shard holds a checksum of it all at its end: what is wrong there is found after the last record, and costs none."""

    CONTENT = [(f"k{number}", {"bin": bytes([number]) * 100_000, "cls": b"1"}) for number in range(90)]  # more than a window of headers
    ENDS = {
        "E_CORRUPT_COMPRESSED": lambda data: data[:-8] + bytes([data[-8] ^ 1]) + data[-7:],
        "E_TRUNCATED_COMPRESSED": lambda data: data[:-4],
    }

    @pytest.fixture(params=ENDS)
    def damaged(self, request, tmp_path):
        path = tmp_path / "a.tar.gz"
        path.write_bytes(self.ENDS[request.param](gzip.compress(shard(self.CONTENT), 1)))
        return path, request.param

    @pytest.mark.parametrize("far", [False, True])
    @pytest.mark.parametrize("cache", [False, True])
    def test_the_index_has_all_records_and_says_so(self, damaged, far, cache):
        path, code = damaged
        with FaultServer() as server:
            for _ in range(2):  # the second time it may be kept
                index = tarviz.index(server.put("/a.tar.gz", path, etag='"1"') if far else path, cache=cache)

                assert [key for key, _ in self.CONTENT] == list(index.keys())
                assert [code] == [fault["code"] for fault in index.warnings]
                assert [fields for _, fields in self.CONTENT] == [{ext: bytes(data) for ext, data in record.items()} for record in index]

    def test_it_is_what_reading_all_ends_with(self, damaged):
        path, code = damaged
        found = []
        with pytest.raises(DataError) as caught:
            found += [record.key for record in stream.records(path, strict=False)]

        assert code == caught.value.code
        with pytest.raises(DataError) as caught:
            tarviz.index(path, strict=True)
        assert (code, str(path)) == (caught.value.code, caught.value.shard)

    def test_a_list_shows_the_shard_and_what_is_wrong(self, damaged):
        path, code = damaged
        listing = ls(str(path))

        assert (90, 2) == (listing.records, listing.exit_code)
        assert code == listing.shards[0].error["code"]

    def test_damage_in_the_tar_comes_first(self, tmp_path):
        path = tmp_path / "a.tar.gz"
        tar = bytearray(shard(self.CONTENT))
        place = tar.index(b"k40.bin")
        tar[place : place + 512] = b"x" * 512
        path.write_bytes(self.ENDS["E_TRUNCATED_COMPRESSED"](gzip.compress(bytes(tar), 1)))
        index = tarviz.index(path, cache=False)

        assert "E_CHECKSUM" in [fault["code"] for fault in index.warnings]
        assert 40 <= len(index) < 90
