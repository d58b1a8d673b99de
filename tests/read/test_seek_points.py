"""Records of shards packed by gzip by number: the same bytes, and after the first without inflating from the front."""

from __future__ import annotations

import gzip
import itertools
import os
import random
import threading
import zlib

import pytest

import tarviz
from tarviz.model.errors import ChangedError, DataError
from tarviz.model.types import URL
from tarviz.read import seek_points
from tarviz.read.seek_points import SeekPoints
from tarviz.samples import write_shard
from tarviz.testing.faults import Fault, FaultServer

CHANCE = random.Random(8)
RECORDS = [(f"{n:04d}", {"bin": CHANCE.randbytes(CHANCE.randrange(30_000)).hex().encode(), "txt": b"text " * 2000}) for n in range(300)]


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(seek_points, "SPACING", 1 << 18)
    seek_points._points_of.cache_clear()
    yield
    seek_points._points_of.cache_clear()


@pytest.fixture(scope="module")
def tar(tmp_path_factory):
    path = tmp_path_factory.mktemp("points") / "a.tar"
    write_shard(path, RECORDS)
    return path.read_bytes()


def several(data):
    """Members of gzip one after the other, as pigz -i and bgzip write them."""
    return b"".join(gzip.compress(data[at : at + 700_001], 1) for at in range(0, len(data), 700_001))


def flushed(data):
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return (
        b"".join(packer.compress(data[at : at + 9000]) + packer.flush(zlib.Z_FULL_FLUSH) for at in range(0, len(data), 9000))
        + packer.flush()
    )


PACKED = {"one": lambda data: gzip.compress(data, 1), "stored": lambda data: gzip.compress(data, 0), "several": several, "flushed": flushed}


@pytest.fixture
def server():
    with FaultServer() as server:
        yield server


class TestRecords:
    @pytest.mark.parametrize(("how", "far"), [(how, far) for far in (False, True) for how in PACKED])
    @pytest.mark.matrix
    def test_they_are_those_of_the_shard(self, tar, tmp_path, server, how, far):
        path = tmp_path / "a.tar.gz"
        path.write_bytes(PACKED[how](tar))
        index = tarviz.index(server.put("/a.tar.gz", path) if far else path, cache=False)

        assert "gzip" == index.shards[0].packed
        for number in random.Random(1).sample(range(300), 60):
            key, fields = RECORDS[number]
            assert (key, fields) == (index[number].key, {ext: bytes(data) for ext, data in index[number].items()})

    def test_the_shard_is_not_inflated_from_the_front_again(self, tar, server):
        packed = gzip.compress(tar, 1)
        index = tarviz.index(server.put("/a.tar.gz", packed), cache=False)
        index[299]
        before = server.sent
        for number in range(290, 200, -10):
            assert RECORDS[number][1]["bin"] == index[number]["bin"]

        assert server.sent - before < 9 * (1 << 20)
        assert 9 * len(packed) > 3 * 9 << 20

    def test_threads_share_the_points(self, tar, tmp_path):
        path = tmp_path / "a.tar.gz"
        path.write_bytes(several(tar))
        index, wrong = tarviz.index(path, cache=False), []

        def read(seed):
            numbers = random.Random(seed).sample(range(300), 40)
            wrong.extend(number for number in numbers if index[number]["bin"] != RECORDS[number][1]["bin"])

        threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [] == wrong

    def test_a_child_reads_on(self, tar, tmp_path):
        path = tmp_path / "a.tar.gz"
        path.write_bytes(gzip.compress(tar, 1))
        index = tarviz.index(path, cache=False)
        index[250]
        child = os.fork()
        if child == 0:
            os._exit(0 if index[240]["bin"] == RECORDS[240][1]["bin"] else 1)

        assert 0 == os.waitpid(child, 0)[1]

    def test_a_replaced_shard_is_refused(self, tar, server):
        packed = gzip.compress(tar, 1)
        index = tarviz.index(server.put("/a.tar.gz", packed), cache=False)
        index[200]
        server.put("/a.tar.gz", packed)

        with pytest.raises(ChangedError):
            index[100]

    def test_a_cut_on_the_way_is_no_matter(self, tar, server):
        packed = gzip.compress(tar, 1)
        index = tarviz.index(server.put("/a.tar.gz", packed, etag='"v"'), cache=False)
        server.put("/a.tar.gz", packed, etag='"v"', plan=[Fault(cut=100_000), Fault(cut=900_000, end="reset")])

        assert RECORDS[299][1]["bin"] == index[299]["bin"]

    def test_damage_on_the_way_is_the_error_of_reading_it_all(self, tar, server):
        packed = bytearray(gzip.compress(tar, 6))
        index = tarviz.index(server.put("/a.tar.gz", bytes(packed), etag='"v"'), cache=False)
        packed[len(packed) // 2 : len(packed) // 2 + 3000] = b"\xff" * 3000
        server.put("/a.tar.gz", bytes(packed), etag='"v"')

        assert RECORDS[20][1]["bin"] == index[20]["bin"]
        with pytest.raises(DataError, match="E_CORRUPT_COMPRESSED"):
            index[290]

    @pytest.mark.parametrize("pack", ["bz2", "lzma"])
    def test_other_compressions_are_read_from_the_front(self, tar, tmp_path, pack, monkeypatch):
        monkeypatch.setattr(SeekPoints, "read", lambda *_: pytest.fail("points are of gzip"))
        path = tmp_path / "a.tar.x"
        path.write_bytes(__import__(pack).compress(tar[: 1 << 20] + bytes(1024)))
        index = tarviz.index(path, cache=False)

        assert RECORDS[3][1]["bin"] == index[3]["bin"]


class TestPoints:
    def test_there_are_never_too_many(self, tar, tmp_path, monkeypatch):
        monkeypatch.setattr(seek_points, "SPACING", 1 << 10)
        monkeypatch.setattr(seek_points, "MOST", 10)
        path = tmp_path / "a.tar.gz"
        path.write_bytes(gzip.compress(tar, 1))
        points = SeekPoints(URL(str(path)), tarviz.stores.of(str(path)).stat(URL(str(path))).etag)
        for at in (len(tar) - 100, 5, len(tar) // 2, len(tar) // 3):
            assert tar[at : at + 100] == points.read(at, 100)

        assert 4 <= len(points) <= 10

    def test_they_are_apart_whichever_way_was_gone(self, tar, tmp_path, monkeypatch):
        monkeypatch.setattr(seek_points, "SPACING", 1 << 19)
        path = tmp_path / "a.tar.gz"
        path.write_bytes(gzip.compress(tar, 1))
        points = SeekPoints(URL(str(path)), tarviz.stores.of(str(path)).stat(URL(str(path))).etag)
        for at in (2 << 20, 0, len(tar) - 100, 3 << 20, (3 << 20) + 50_000, (1 << 20) + 7):
            assert tar[at : at + 100] == points.read(at, 100)
        places = [point.inflated for point in points._points]

        assert len(tar) >> 20 < len(places)
        assert all(after - before >= 1 << 19 for before, after in itertools.pairwise(places))

    def test_what_lies_past_the_end_is_none(self, tar, tmp_path):
        path = tmp_path / "a.tar.gz"
        path.write_bytes(gzip.compress(tar, 1) + b"no gzip")
        points = SeekPoints(URL(str(path)), tarviz.stores.of(str(path)).stat(URL(str(path))).etag)

        assert points.read(len(tar) - 10, 20) is None
        assert tar[-10:] == points.read(len(tar) - 10, 10)
