"""Records by number: neighbours in one read, and never those of another version of the shard."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tarviz.model.errors import ChangedError, LimitError
from tarviz.model.types import URL
from tarviz.read.picked import pick
from tarviz.read.shard_index import shard_index
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.testing.faults import FaultServer
from tests.read.tars import END, member

OPTIONS = ReadOptions()


def data_of(count: int, size: int) -> bytes:
    return b"".join(member(f"{number:03d}.bin", b"%03d" % number + bytes(size)) for number in range(count)) + END


def payloads(url: URL, numbers: list[int], report: ReadReport | None = None) -> list[tuple[int, bytes]]:
    index = shard_index(url, OPTIONS, cache=False)
    return [(record.index, bytes(record["bin"])[:3]) for record in pick(url, index, numbers, OPTIONS, report or ReadReport())]


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as found:
        yield found


class TestReads:
    WANTED = [0, 1, 7, 19]
    EXPECTED = [(0, b"000"), (1, b"001"), (7, b"007"), (19, b"019")]

    def test_of_a_file_of_a_packed_one_and_from_afar(self, make: Callable[..., Path], server: FaultServer):
        data = data_of(20, 600)
        urls = [make(data), make(gzip.compress(data), "a.tar.gz"), server.put("/a.tar", data)]

        assert [self.EXPECTED] * 3 == [payloads(URL(str(url)), self.WANTED) for url in urls]

    def test_neighbours_are_one_read_and_what_is_far_is_left_out(self, server: FaultServer):
        url = URL(server.put("/a.tar", data_of(20, 100_000)))
        index = shard_index(url, OPTIONS, cache=False)
        asked, report = len(server.requests), ReadReport()
        found = [record.index for record in pick(url, index, self.WANTED, OPTIONS, report)]

        assert self.WANTED == found
        assert 3 == len(server.requests) - asked
        assert report.bytes < 5 * 101_000
        assert 4 == report.records

    def test_what_lies_near_is_read_along(self, server: FaultServer):
        url = URL(server.put("/a.tar", data_of(200, 600)))
        index = shard_index(url, OPTIONS, cache=False)
        asked, report = len(server.requests), ReadReport()

        assert [3, 40] == [record.index for record in pick(url, index, [3, 40], OPTIONS, report)]
        assert (1, 38 * 1536) == (len(server.requests) - asked, report.bytes)
        assert [3, 60] == [record.index for record in pick(url, index, [3, 60], OPTIONS, report)]
        assert 3 == len(server.requests) - asked

    def test_one_member_over_the_limit_is_refused_among_small_ones(self, make: Callable[..., Path]):
        url = URL(str(make(b"".join(member(f"{size}.bin", bytes(size)) for size in (10, 5000, 20)) + END)))
        index = shard_index(url, OPTIONS, cache=False)

        with pytest.raises(LimitError, match="5000"):
            list(pick(url, index, [0, 1, 2], ReadOptions(max_member_bytes=4999), ReadReport()))

    def test_nothing_wanted_is_nothing_read(self, make: Callable[..., Path], server: FaultServer):
        report, data = ReadReport(), data_of(3, 10)

        for url in (make(gzip.compress(data), "a.tar.gz"), make(data), server.put("/a.tar", data)):
            assert [] == payloads(URL(str(url)), [], report)
        assert 0 == report.bytes


class TestChanged:
    @pytest.mark.parametrize("new", [data_of(20, 700), data_of(3, 600)], ids=["other", "shorter"])
    @pytest.mark.parametrize("far", [False, True])
    def test_a_shard_that_was_replaced_is_an_error(self, make: Callable[..., Path], server: FaultServer, new: bytes, far: bool):
        put = (lambda data: server.put("/a.tar", data)) if far else make
        url = URL(str(put(data_of(20, 600))))
        index = shard_index(url, OPTIONS, cache=False)
        put(new)
        with pytest.raises(ChangedError):
            list(pick(url, index, [0, 19], OPTIONS, ReadReport()))

    def test_a_packed_shard_with_fewer_records_is_too(self, make: Callable[..., Path]):
        url = URL(str(make(gzip.compress(data_of(20, 600)), "a.tar.gz")))
        index = shard_index(url, OPTIONS, cache=False)
        make(gzip.compress(data_of(5, 600)), "a.tar.gz")
        with pytest.raises(ChangedError, match="fewer records"):
            list(pick(url, index, [3, 19], OPTIONS, ReadReport()))
