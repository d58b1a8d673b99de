"""How much of a shard a table reads: everything where members are small, headers and beginnings where they are large."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator

import pytest
from PIL import Image

import tarviz
from tarviz.model.errors import ChangedError
from tarviz.model.types import URL
from tarviz.outputs import tar_member
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.table.columns import NAMES, Part
from tarviz.table.making import chunks
from tarviz.testing.faults import FaultServer
from tests.read.tars import END, member, pax

pytest.importorskip("duckdb", reason="the extra table brings DuckDB: pip install 'tarviz[table]'")
COUNT = 12


def photo(width: int, height: int, size: int) -> bytes:
    """A JPEG of so many bytes; what follows its end is passed over by every reader."""
    made = io.BytesIO()
    Image.new("RGB", (width, height), (200, 80, 20)).save(made, "JPEG")
    return made.getvalue().ljust(size, b"\0")


def shard(size: int, count: int = COUNT) -> bytes:
    records = [
        [*tar_member(f"p{at:03d}.jpg", photo(100 + at, 60 + at, size)), *tar_member(f"p{at:03d}.cls", b"%d" % (at % 3))]
        for at in range(count)
    ]
    return b"".join(map(b"".join, records)) + bytes(1024)


def asked(url) -> list[tuple[object, ...]]:
    return tarviz.table([str(url)]).sql("SELECT key, n, cls, jpg.width, jpg.height, jpg.mode, jpg.size FROM records ORDER BY n").fetchall()


@pytest.fixture
def server():
    with FaultServer() as server:
        yield server


class TestFarAway:
    @pytest.mark.parametrize("size", [3_000, 1_500_000])
    def test_the_columns_are_those_of_the_file(self, server, tmp_path, size):
        (tmp_path / "a.tar").write_bytes(shard(size))

        found = asked(server.put("/a.tar", shard(size)))
        assert found == asked(tmp_path / "a.tar")
        assert [(f"p{at:03d}", at, at % 3, 100 + at, 60 + at, "RGB", size) for at in range(COUNT)] == found

    def test_of_large_pictures_some_kilobytes_are_read(self, server):
        asked(server.put("/a.tar", shard(1_500_000)))

        assert server.sent < COUNT * 1_500_000 / 10  # the one answer that is left in the middle was on its way
        assert server.most >= 2

    def test_small_ones_come_in_whole_passes(self, server):  # one for the names of the columns, one for what they hold
        data = shard(3_000)
        asked(server.put("/a.tar", data))

        assert [len(data)] * 2 == [request.sent for request in server.requests if request.method == "GET" and request.sent > 8192]

    def test_a_shard_that_is_replaced_meanwhile_is_told(self, server):
        url = server.put("/a.tar", shard(1_500_000))
        table = tarviz.table([str(url)])
        table.sql("SELECT count(*) FROM records").fetchall()
        server.put("/a.tar", shard(1_500_000, COUNT - 1))
        with pytest.raises(ChangedError):
            table.sql("SELECT max(jpg.width) FROM records").fetchall()


LARGE = 1_500_000


def read_heads(url: URL) -> Iterator[chunks.Chunk]:
    """The records of a shard of large pictures, and of these what their beginnings say."""
    return chunks.chunks(url, ReadOptions(), {NAMES, Part("head", "jpg")}, ReadReport())


class TestAroundPayloads:
    def test_what_comes_in_several_chunks_is_one_table(self, tmp_path, monkeypatch):
        monkeypatch.setattr(chunks, "_RECORDS", 5)
        (tmp_path / "a.tar").write_bytes(shard(LARGE))

        assert [(f"p{at:03d}", at, at % 3, 100 + at, 60 + at, "RGB", LARGE) for at in range(COUNT)] == asked(tmp_path / "a.tar")

    def test_a_sparse_member_has_its_holes(self, tmp_path):
        sparse = pax((b"GNU.sparse.major", b"0"), (b"GNU.sparse.size", b"5"), (b"GNU.sparse.map", b"0,2,4,1"), (b"path", b"q.txt"))
        data = shard(LARGE)[: -len(END)] + sparse + member("x", b"abc") + END
        (tmp_path / "a.tar").write_bytes(data)
        table = tarviz.table([str(tmp_path / "a.tar")])

        assert [("q", "ab\0\0c")] == table.sql("SELECT key, txt FROM records WHERE txt IS NOT NULL").fetchall()
        assert [(COUNT,)] == table.sql("SELECT count(jpg.width) FROM records").fetchall()

    @pytest.mark.parametrize(
        ("cut", "code", "records"), [(len(END) + 700, "E_TRUNCATED", COUNT - 1), (len(END), "W_NO_EOF", COUNT)], ids=["cut", "no end"]
    )
    def test_damage_is_among_the_findings(self, tmp_path, cut, code, records):
        (tmp_path / "a.tar").write_bytes(shard(LARGE)[:-cut])
        table = tarviz.table([str(tmp_path / "a.tar")])

        assert records <= table.sql("SELECT count(jpg.width) FROM records").fetchall()[0][0] <= COUNT
        assert {code: 1} == table.findings

    def test_a_file_cut_after_its_headers_were_read_is_told(self, tmp_path):
        (tmp_path / "a.tar").write_bytes(shard(LARGE))
        found = read_heads(URL(str(tmp_path / "a.tar")))
        chunk = next(found)
        os.truncate(tmp_path / "a.tar", 3 * LARGE)

        with pytest.raises(ChangedError, match="shorter than its index says"):
            chunk.read(chunk.members("jpg")[0], 1024)

    def test_so_is_an_object_replaced_by_one_of_the_same_shape(self, server):
        found = read_heads(server.put("/a.tar", shard(LARGE)))
        chunk = next(found)
        server.put("/a.tar", shard(LARGE))

        with pytest.raises(ChangedError):
            chunk.read(chunk.members("jpg")[0], 1024)

    def test_so_is_an_object_without_a_version_that_is_shorter_now(self, server):
        found = read_heads(server.put("/a.tar", shard(LARGE), etag=None, modified=None))
        chunk = next(found)
        server.put("/a.tar", shard(LARGE)[: 3 * LARGE], etag=None, modified=None)

        with pytest.raises(ChangedError, match="shorter than its index says"):
            chunk.read(chunk.members("jpg")[0], 1024)


@pytest.mark.filterwarnings("ignore:W_NO_EOF")
@pytest.mark.parametrize("size", [3_000, 1_500_000])
def test_what_strict_reading_refuses_is_in_no_column(tmp_path, size):
    """Whether a question reads names or values first, and whatever a lenient table has kept."""
    (tmp_path / "a.tar").write_bytes(shard(size, 3)[:-1024])
    for strict, count in ((False, 3), (True, 2)):
        table = tarviz.table(tmp_path / "a.tar", strict=strict)
        assert count == len(table)
        assert [(count, count)] == table.sql("SELECT count(*), count(cls) FROM records").fetchall()
        assert ["E_NO_EOF" if strict else "W_NO_EOF"] == list(table.passes.findings())
