"""One shard from front to back: bytes inflated, blocks cut to the records asked for, entered in the middle."""

from __future__ import annotations

import gzip
import random

import pytest

from tarviz import stores
from tarviz.model.errors import StoreError
from tarviz.model.types import URL
from tarviz.read.options import ReadOptions
from tarviz.read.report import ReadReport
from tarviz.read.shard import Shard, adjacent_blocks
from tarviz.read.shard_index import entered_blocks, entry
from tarviz.stores.base import Stat, Stream
from tarviz.testing.strategies import numbered_records, shard
from tests.read.tars import END, member


@pytest.fixture
def data():
    return shard(numbered_records(20))


def everything(opened: Shard) -> bytes:
    found, room = bytearray(), memoryview(bytearray(1000))
    while count := opened.readinto(room):
        found += room[:count]
    return bytes(found)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_the_bytes_are_those_of_the_tar(pack, data, tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(pack(data))
    opened = Shard(URL(str(path)))
    try:
        assert data == everything(opened)
        assert (None if pack is bytes else "gzip") == opened.compression
    finally:
        opened.close()


def keys(blocks) -> list[bytes]:
    return [key for block in blocks for key in block.keys]


def test_an_entry_is_the_byte_and_number_of_a_record(data, tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(data)
    options, url = ReadOptions(), URL(str(path))
    place, number = entry(url, options, 7)

    assert 7 == number
    assert keys(adjacent_blocks(url, options, ReadReport()))[7:9] == keys(
        adjacent_blocks(url, options, ReadReport(), 7, 9, entry=(place, number))
    )
    assert (0, 0) == entry(url, options, 0) == entry(url, options, 21)
    place, number = entry(url, options, 20)
    assert (20, bytes(len(data) - place)) == (number, data[place:])
    assert [] == keys(adjacent_blocks(url, options, ReadReport(), 20, entry=(place, number)))


def test_a_packed_shard_is_read_from_its_front_and_cut(data, tmp_path):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(data))
    url, options = URL(str(path)), ReadOptions()

    assert (0, 0) == entry(url, options, 7)
    assert keys(adjacent_blocks(url, options, ReadReport()))[7:9] == keys(entered_blocks(url, options, ReadReport(), 7, 9))


def test_a_shard_whose_first_bytes_do_not_come_is_closed(monkeypatch):
    class Broken(Stream):
        stat, offset, closed = Stat(URL("memory://a.tar"), 9), 0, False

        def readinto(self, buffer, /):
            raise StoreError("nothing comes")

        def close(self):
            Broken.closed = True

    store = stores.of(URL("memory://a.tar"))
    monkeypatch.setattr(type(store), "open", lambda self, url, *, offset=0, etag=None: Broken())
    with pytest.raises(StoreError, match="nothing comes"):
        Shard(URL("memory://a.tar"))

    assert Broken.closed


@pytest.mark.parametrize("packed", [False, True])
def test_what_lies_behind_the_last_record_wanted_is_not_read(tmp_path, packed):
    data = b"".join(member(f"{number:03d}.bin", random.Random(number).randbytes(100_000)) for number in range(200)) + END
    (tmp_path / "a.tar").write_bytes(gzip.compress(data, 1) if packed else data)
    report = ReadReport()
    found = [record.key for block in adjacent_blocks(URL(str(tmp_path / "a.tar")), ReadOptions(), report, 1, 3) for record in block]

    assert (["001", "002"], 2, 1) == (found, report.records, report.shards)
    assert report.bytes < len(data) / 2
