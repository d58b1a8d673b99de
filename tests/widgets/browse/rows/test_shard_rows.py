"""The bytes of a shard that is streamed: held for a while, in memory or on disk, and read again from its store where it can be."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest

from tarviz import stores
from tarviz.model.errors import ChangedError, LimitError
from tarviz.model.types import URL
from tarviz.read.stream import ReadOptions
from tarviz.testing.faults import FaultServer
from tarviz.widgets.browse.rows import Rows, Spill, Want, payloads, row_id, shard_rows, spill
from tarviz.widgets.browse.scan import Scan
from tests.conftest import wait_until
from tests.widgets.conftest import tar

COUNT, SIZE = 400, 3000


@pytest.fixture
def far(tmp_path: Path):
    """A plain shard of 400 records on a server, and that server."""
    path = tar(tmp_path / "a.tar", [(f"k{at:04d}", {"bin": bytes([at % 251]) * SIZE}) for at in range(COUNT)])
    with FaultServer() as server:
        yield server.put("/a.tar", path.read_bytes()), server


def scanned(url: str) -> Rows:
    rows = Rows([URL(url)])
    scan = Scan(rows, ReadOptions(), cache=False)
    scan.go_on()
    wait_until(lambda: rows.finished)
    scan.close()
    return rows


def blob(rows: Rows, at: int) -> bytes:
    return bytes(rows.row(row_id(0, at)).load()["bin"])


def test_what_was_streamed_is_not_fetched_again(far):
    url, server = far
    rows = scanned(url)
    before = len(server.requests)

    assert ("done", COUNT) == (rows.shards[0].state, rows.shards[0].count)
    assert [bytes([at % 251]) * SIZE for at in range(COUNT)] == [blob(rows, at) for at in range(COUNT)]
    assert before == len(server.requests)
    rows.close()
    assert bytes([7]) * SIZE == blob(rows, 7)
    assert before < len(server.requests)


def test_the_latest_blocks_are_held_and_the_others_are_fetched(far, monkeypatch: pytest.MonkeyPatch):
    url, server = far
    monkeypatch.setattr(shard_rows, "BLOCKS_KEPT", 1 << 20)
    rows = scanned(url)
    held = rows.shards[0].held
    before = len(server.requests)

    assert 0 < sum(map(len, held.values())) <= 1 << 20
    assert max(held) + len(held[max(held)]) >= COUNT * 3584
    assert bytes([(COUNT - 1) % 251]) * SIZE == blob(rows, COUNT - 1)
    assert before == len(server.requests)
    assert bytes([3]) * SIZE == blob(rows, 3)
    assert before < len(server.requests)


def test_one_block_is_held_however_large_it_is(far, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shard_rows, "BLOCKS_KEPT", 1)

    assert 1 == len(scanned(far[0]).shards[0].held)


def test_bytes_are_put_together_out_of_neighbours():
    shard = shard_rows.ShardRows(0, URL("s3://bucket/a.tar"))
    shard.held.update({0: memoryview(b"abc"), 3: memoryview(b"def"), 7: memoryview(b"hij")})

    assert [b"abc", b"cde", b"abcdef", b"hij", b"f", b"j"] == [
        shard.read(*span) for span in ((0, 3), (2, 3), (0, 6), (7, 3), (5, 1), (9, 1))
    ]
    for span in ((5, 3), (6, 1), (9, 2), (10, 1)):
        assert shard._from_blocks(*span) is None


def test_a_shard_that_is_shorter_by_now_is_noticed(tmp_path: Path):
    rows = scanned(str(tar(tmp_path / "a.tar", [("k", {"bin": b"x" * 5000})])))
    shard = rows.shards[0]
    assert shard.stat is not None
    os.truncate(shard.url, 2000)
    shard.stat = stores.of(shard.url).stat(shard.url)
    with pytest.raises(ChangedError, match="shorter than when it was scanned"):
        shard.read(512, 5000)
    assert 1488 == len(shard.read(512, 1488))


def test_a_compressed_shard_lies_on_disk_inflated_until_it_is_closed(tmp_path: Path):
    plain = tar(tmp_path / "a.tar", [(f"k{at}", {"bin": bytes([at]) * SIZE}) for at in range(9)])
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(plain.read_bytes()))
    rows = scanned(str(tmp_path / "a.tar.gz"))
    plain.unlink()
    (tmp_path / "a.tar.gz").unlink()

    assert [bytes([at]) * SIZE for at in range(9)] == [blob(rows, at) for at in range(9)]
    assert not rows.shards[0].held
    rows.close()
    (refused,) = payloads([Want(rows.row(0), "bin")])
    assert isinstance(refused, LimitError)
    assert "no longer kept" in refused.message


def test_where_the_disk_has_no_room_it_is_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(spill, "_MOST", 0)
    plain = tar(tmp_path / "a.tar", [(f"k{at}", {"bin": bytes([at]) * SIZE}) for at in range(9)])
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(plain.read_bytes()))
    rows = scanned(str(tmp_path / "a.tar.gz"))

    assert rows.shards[0].held
    assert [bytes([at]) * SIZE for at in range(9)] == [blob(rows, at) for at in range(9)]


class TestSpill:
    def test_bytes_come_back_from_where_they_were_put(self):
        kept = Spill()

        assert kept.put(3, memoryview(b"defg"))
        assert kept.put(0, memoryview(b"abc"))
        assert [b"abcdefg", b"cd", b"g", b""] == [kept.get(*span) for span in ((0, 7), (2, 2), (6, 1), (7, 0))]
        assert kept.get(6, 2) is None
        kept.close()
        assert kept.get(0, 1) is None
        assert not kept.put(0, memoryview(b"a"))
        kept.close()

    def test_it_takes_no_more_than_it_may_and_nothing_of_a_full_disk(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(spill, "_MOST", 4)
        kept = Spill()

        assert (True, False, True) == (kept.put(0, memoryview(b"abcd")), kept.put(1, memoryview(b"abcd")), kept.put(3, memoryview(b"d")))

        def full(*_: object) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "pwrite", full)
        assert not kept.put(0, memoryview(b"a"))
        kept.close()


def test_a_record_without_bytes_is_loaded(tmp_path: Path):
    rows = scanned(str(tar(tmp_path / "a.tar", [("k", {"a": b"", "b": b"1", "c": b""})])))

    assert {"a": b"", "b": b"1", "c": b""} == {ext: bytes(value) for ext, value in rows.row(0).load().items()}
    assert [b"", b"1", b""] == payloads([Want(rows.row(0), ext) for ext in "abc"])
    assert b"" == rows.row(0).payload(0)


def test_positions_are_known_up_to_the_first_shard_that_is_not_read(tmp_path: Path):
    paths = [tar(tmp_path / f"{at}.tar", [(f"{at}{n}", {"a": b"1"}) for n in range(count)]) for at, count in enumerate((3, 0, 4, 2))]
    rows = Rows(stores.expand(paths))
    scan = Scan(rows, ReadOptions(), cache=False)
    wait_until(lambda: rows.finished)
    scan.close()
    every = [row_id(shard, at) for shard, count in enumerate((3, 0, 4, 2)) for at in range(count)]
    assert ([0, 3, 3, 7, 9], 9) == (rows.starts(), len(rows))
    for start in range(10):
        for stop in range(11):
            assert every[start:stop] == rows.ids(start, stop)
    assert list(range(9)) == [rows.position(row) for row in every]
    rows.shards[2].state = "scanning"

    assert ([0, 3, 3, 7], 7, every[:7]) == (rows.starts(), len(rows), rows.ids(0, 99))
    assert [*range(7), None, None] == [rows.position(row) for row in every]
    assert rows.position(row_id(0, 3)) is None
    with pytest.raises(IndexError):
        rows.row(row_id(4, 0))
    with pytest.raises(IndexError):
        rows.row(-1)


class TestRuns:
    """Payloads of neighbours come in one read."""

    def reads(self, tmp_path: Path, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
        found = []
        rows = scanned(str(tar(tmp_path / "r.tar", [(f"k{at}", {"bin": bytes([at + 1]) * size}) for at, size in enumerate(sizes)])))
        read = shard_rows.ShardRows.read
        monkeypatch.setattr(shard_rows.ShardRows, "read", lambda self, *span: found.append(span) or read(self, *span))
        wants = [Want(rows.row(row_id(0, at)), "bin") for at in range(0, len(sizes), 2)]
        assert [bytes([at + 1]) * sizes[at] for at in range(0, len(sizes), 2)] == payloads(reversed(wants))[::-1]
        return found

    @pytest.mark.parametrize(("between", "count"), [(512, 1), (32_256, 1), (32_768, 2)])
    def test_a_gap_of_32_kib_is_read_over_and_a_larger_one_not(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, between: int, count: int
    ):
        assert count == len(self.reads(tmp_path, [512, between - 512, 512], monkeypatch))

    def test_no_read_is_larger_than_four_mebibytes(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        spans = self.reads(tmp_path, [2 << 20, 0, 2 << 20, 0, 512], monkeypatch)

        assert all(length <= 4 << 20 for _, length in spans)
        assert 2 == len(spans)

    def test_where_a_run_reaches_past_the_end_each_is_read_alone(self, tmp_path: Path):
        path = tar(tmp_path / "r.tar", [(f"k{at}", {"bin": bytes([at + 1]) * 512}) for at in range(3)])
        rows = scanned(str(path))
        shard = rows.shards[0]
        os.truncate(path, 2 * 1024 + 512 + 100)
        shard.stat = stores.of(shard.url).stat(shard.url)
        first, second, cut = payloads([Want(rows.row(at), "bin") for at in range(3)])

        assert [b"\1" * 512, b"\2" * 512] == [first, second]
        assert isinstance(cut, ChangedError)


def test_sparse_members_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "sparse.tar"
    header = tarfile.TarInfo("k.bin")
    header.size = 512
    header.pax_headers = {
        "GNU.sparse.major": "0",
        "GNU.sparse.minor": "1",
        "GNU.sparse.size": "100000",
        "GNU.sparse.numblocks": "1",
        "GNU.sparse.map": "50000,512",
    }
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as file:
        file.addfile(header, io.BytesIO(b"data" + bytes(508)))
    rows = scanned(str(path))
    row = rows.row(0)
    whole = bytes(row.load()["bin"])

    assert (100_000, b"data", 50_000) == (len(whole), whole[50_000:50_004], whole.count(0, 0, 50_000))
    assert [whole] == payloads([Want(row, "bin")])
    monkeypatch.setattr(shard_rows, "_LARGEST", 99_999)
    with pytest.raises(LimitError, match="A field has 100,000 bytes; at most 99,999 are read at once"):
        row.load()


def test_beside_a_sparse_member_others_are_as_they_are(tmp_path: Path):
    sparse = tarfile.TarInfo("k.bin")
    sparse.size = 512
    sparse.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.size": "2000", "GNU.sparse.map": "1000,512"}
    plain, empty = tarfile.TarInfo("k.cls"), tarfile.TarInfo("k.txt")
    plain.size = 2
    with tarfile.open(path := tmp_path / "sparse.tar", "w", format=tarfile.PAX_FORMAT) as file:
        for header, data in ((sparse, b"data".ljust(512, b"\0")), (plain, b"17"), (empty, b"")):
            file.addfile(header, io.BytesIO(data))

    record = scanned(str(path)).row(0).load()
    assert {"bin": b"data".rjust(1004, b"\0").ljust(2000, b"\0"), "cls": b"17", "txt": b""} == {ext: bytes(record[ext]) for ext in record}


def test_a_record_behind_which_the_shard_ends_is_read_as_one_that_may_be_cut(tmp_path: Path):
    path = tar(tmp_path / "cut.tar", [(f"k{at}", {"txt": b"1"}) for at in range(3)])
    path.write_bytes(path.read_bytes()[: 6 * 512])
    rows = scanned(str(path))

    assert [False, False, True] == [rows.row(row_id(0, at)).load().pending for at in range(3)]
