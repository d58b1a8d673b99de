"""How much of a shard a table reads: everything where members are small, headers and beginnings where they are large."""

from __future__ import annotations

import io

import pytest
from PIL import Image

import tarviz
from tarviz.model.errors import ChangedError
from tarviz.testing.faults import FaultServer
from tarviz.write import tar_member

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

        assert server.sent < COUNT * 20_000
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
