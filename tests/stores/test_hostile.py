"""Servers that never come to an end, real ones on this machine: a reader is rid of them in bounded time, and says why."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading

import pytest

import tarviz
from tarviz.formats import tar
from tarviz.model.errors import LimitError, StoreError, TarvizError
from tarviz.model.types import URL
from tarviz.stores._remote.small_range import SmallRanges
from tarviz.stores.http import HttpStore
from tarviz.testing.strategies import shard
from tests.read.tars import raw
from tests.servers.clock import FakeClock
from tests.stores.streams import drain

SHARD = shard([(f"key{number}", {"txt": b"x"}) for number in range(20)])
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
PIECE = bytes(1 << 20)


def chunks(pieces):
    return (b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


class Endless:
    """Answers every request with the same pieces, however many there are; `sent` bytes until the client went."""

    def __init__(self, pieces, pause=0.0):
        self.pieces, self.pause, self.sent, self.asked = pieces, pause, 0, 0
        self.over = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = URL(f"http://127.0.0.1:{self.listener.getsockname()[1]}/a.tar")
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                self.threads.append(threading.Thread(target=self.serve, args=(self.listener.accept()[0],)))
                self.threads[-1].start()

    def serve(self, line):
        with contextlib.suppress(OSError), line:
            line.settimeout(0.05)
            while not self.over.is_set():
                with contextlib.suppress(TimeoutError):
                    if line.recv(4096):
                        break
            self.asked += 1
            line.settimeout(20)
            for piece in self.pieces():
                line.sendall(piece)
                self.sent += len(piece)
                if self.over.wait(self.pause):
                    return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join()


@pytest.fixture
def small_end(monkeypatch):
    monkeypatch.setattr(tar, "BEHIND", 8 << 20)


@pytest.mark.fault("F55")
class TestAfterTheEnd:
    @pytest.mark.filterwarnings("ignore:W_TRAILING")
    @pytest.mark.parametrize("more", [PIECE, b"words " * 9999], ids=["zeros", "bytes"])
    @pytest.mark.parametrize(
        "head", [OK + b"\r\n", OK + b"Content-Length: 1099511627776\r\n\r\n", CHUNKED], ids=["none", "1 TiB", "chunks"]
    )
    def test_a_body_that_goes_on_behind_the_end_mark_is_left(self, small_end, more, head):
        body = itertools.chain([SHARD], itertools.repeat(more))

        def pieces():
            return itertools.chain([head], chunks(body) if head is CHUNKED else body)

        with Endless(pieces) as server:
            with pytest.raises(LimitError, match="8 MiB follow the end of the archive"):
                list(tarviz.records(server.url, strict=True))
            assert server.sent < 128 << 20

    def test_lenient_reading_ends_there_with_a_warning(self, small_end):
        pieces = [OK, b"\r\n", SHARD]
        with (
            Endless(lambda: itertools.chain(pieces, itertools.repeat(PIECE))) as server,
            pytest.warns(match="W_TRAILING.*8 MiB follow the end"),
        ):
            assert 20 == len(list(tarviz.records(server.url, strict=False)))

    def test_what_any_tar_has_behind_its_end_is_read(self, tmp_path):
        path = tmp_path / "a.tar"
        path.write_bytes(SHARD + bytes(3 << 20))

        assert 20 == len(list(tarviz.records(path)))

    def test_a_member_far_over_the_limit_is_refused_once_some_of_it_came(self):
        head = raw("a.txt", 1) + bytes(512) + raw("big.bin", 8 << 30)

        with Endless(lambda: itertools.chain([OK, b"\r\n", head], itertools.repeat(PIECE))) as server:
            with pytest.raises(LimitError, match="the member has 8589934592 bytes"):
                list(tarviz.records(server.url))
            assert server.sent < 200 << 20


@pytest.mark.fault("F55")
class TestLines:
    """Heads and trailers without end."""

    @pytest.mark.parametrize(
        "line",
        [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", b"X-More: a\r\n", b"x" * 9000],
        ids=["100", "103", "headers", "long"],
    )
    def test_a_flood_before_the_answer_is_refused_at_once(self, line):
        first = b"" if line.startswith(b"HTTP") else OK
        with Endless(lambda: itertools.chain([first], itertools.repeat(line))) as server:
            for ask in (HttpStore().stat, lambda url: HttpStore().read(url, 0, 9), lambda url: HttpStore().open(url)):
                with pytest.raises(StoreError, match="more headers, trailers or answers") as caught:
                    ask(server.url)
                assert ("E_LIMIT", server.url) == (caught.value.code, caught.value.shard)
            assert server.asked <= 5

    def test_some_answers_before_the_answer_are_passed_over(self):
        answer = b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nhello"
        with Endless(lambda: [answer]) as server:
            assert b"hello" == drain(HttpStore(), server.url)

    def test_a_flood_of_trailers_is_refused_at_once(self):
        with Endless(lambda: itertools.chain([CHUNKED, *chunks([SHARD]), b"0\r\n"], itertools.repeat(b"X-More: a\r\n"))) as server:
            with pytest.raises(StoreError, match="more headers, trailers or answers") as caught:
                drain(HttpStore(), server.url)
            assert ("E_LIMIT", 1) == (caught.value.code, server.asked)

    @pytest.mark.parametrize("first", [b"", CHUNKED + b"5\r\nhello\r\n0\r\n"], ids=["head", "trailer"])
    @pytest.mark.matrix
    def test_lines_that_drip_count_as_a_stall(self, first):
        """A byte now and then keeps every timeout of a socket from running out."""
        with Endless(lambda: itertools.chain([first], itertools.repeat(b"x")), pause=0.02) as server:
            store = HttpStore(stall_timeout=0.2, retry_timeout=1.0)
            with pytest.raises(TarvizError) as caught:
                drain(store, server.url)
            assert caught.value.code in ("E_STALL", "E_NETWORK")

    def test_a_small_range_whose_head_drips_is_left_to_the_other_reader(self):
        with Endless(lambda: itertools.repeat(b"x"), pause=0.02) as server:
            store = HttpStore(clock=FakeClock())
            assert SmallRanges(store.wire).read(server.url, 0, 9, None, 0.2, ()) is None
