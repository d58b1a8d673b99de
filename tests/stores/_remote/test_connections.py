"""Bodies that come straight into a buffer: all there is, an error after the bytes before it, and none past the length."""

from __future__ import annotations

import contextlib
import random
import socket
import sys
import threading
from http.client import HTTPException

import pytest

from tarviz.stores._remote import connections
from tarviz.stores._remote.connections import excess, make_manager, read_direct
from tarviz.testing.faults import Fault, FaultServer

DATA = random.Random(3).randbytes(256 * 8000)


@contextlib.contextmanager
def asked(*plan):
    with FaultServer() as server, make_manager("") as manager:
        url = server.put("/a.tar", DATA, plan=plan)
        answer = manager.request("GET", url, retries=False, preload_content=False, decode_content=False, timeout=0.3)
        with contextlib.closing(answer):
            yield answer


def all_of(answer, size, found=None):
    """What comes into buffers of `size` bytes, one after the other; in `found` too."""
    found, buffer = bytearray() if found is None else found, memoryview(bytearray(size))
    while count := read_direct(answer, buffer):
        found += buffer[:count]
    return bytes(found)


@pytest.mark.parametrize("size", [1000, 1 << 18, 4 << 20])
def test_all_bytes_come(size):
    with asked() as answer:
        assert DATA == all_of(answer, size)


@pytest.mark.parametrize("batch", [1, 1000, 100_000, len(DATA) - 1, len(DATA), 8 << 20])
def test_how_many_bytes_wake_the_reader_changes_nothing(batch, monkeypatch):
    monkeypatch.setattr(connections, "_BATCH", batch)
    with asked() as answer:
        assert DATA == all_of(answer, 150_000)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel waits on Linux alone")
def test_the_next_answer_wakes_its_reader_at_once():
    with asked() as answer:
        line = answer._original_response.wire
        all_of(answer, 1 << 18)

        assert 1 == line.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)


@pytest.mark.parametrize("cut", [1, 512, 10_000, 20_001, 1_500_000])
@pytest.mark.parametrize("size", [100, 8192, 9000, 1 << 20, 4 << 20])
def test_no_byte_before_a_stall_is_lost(cut, size):
    with asked(Fault(cut=cut, end="stall")) as answer:
        found = bytearray()
        with pytest.raises(TimeoutError):
            all_of(answer, size, found)

    assert DATA[:cut] == found


@pytest.mark.parametrize("end", ["close", "reset", "stall"])
def test_what_came_before_an_error_comes_first(end):
    with asked(Fault(cut=1_000_000, end=end)) as answer:
        found = bytearray()
        with pytest.raises(OSError, match=r"timed out|reset") if end != "close" else contextlib.nullcontext():
            all_of(answer, 4 << 20, found)

    assert 0 < len(found) <= 1_000_000
    assert DATA[: len(found)] == found


def test_a_body_without_a_length_is_read_by_the_answer():
    with asked(Fault(chunked=True)) as answer:
        assert read_direct(answer, memoryview(bytearray(100))) is None
        assert DATA == answer.read()


def test_a_body_longer_than_it_says_is_found_out():
    with asked(Fault(lie=-1000)) as answer, pytest.raises(HTTPException) as caught:
        all_of(answer, 1 << 20)

    assert excess(caught.value)


@contextlib.contextmanager
def dribbling(total, returned):
    """The answer of a server that sends a kilobyte each hundredth of a second, and all the rest as soon as `returned` is set."""
    with socket.create_server(("127.0.0.1", 0)) as server, make_manager("") as manager:

        def answer():
            line, _ = server.accept()
            with line:
                line.recv(1 << 16)
                line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
                sent = 0
                while sent < total // 2 and not returned.wait(0.01):
                    line.sendall(DATA[sent : sent + 1000])
                    sent += 1000
                line.sendall(DATA[sent:total])

        thread = threading.Thread(target=answer)
        thread.start()
        answer = manager.request("GET", f"http://127.0.0.1:{server.getsockname()[1]}/", preload_content=False, timeout=20)
        with contextlib.closing(answer):
            yield answer
        thread.join()


@pytest.mark.parametrize("platform", ["linux", "darwin"], ids=["the kernel waits", "Python waits"])
def test_what_came_in_a_moment_is_handed_on_though_more_is_wanted(platform, monkeypatch):
    monkeypatch.setattr(connections.sys, "platform", platform)
    returned, total = threading.Event(), 1_000_000
    with dribbling(total, returned) as answer:
        buffer = memoryview(bytearray(total))
        first = read_direct(answer, buffer)
        returned.set()

        assert 0 < first < total // 2
        assert DATA[first:total] == all_of(answer, total)
        assert DATA[:first] == buffer[:first]


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel waits on Linux alone")
def test_the_kernel_keeps_the_time_of_a_plain_socket():
    """Half the calls, and half the turns of Python's lock."""
    with asked() as answer:
        buffer = memoryview(bytearray(1 << 18))
        for _ in range(3):
            read_direct(answer, buffer)

        assert answer._original_response.wire.gettimeout() is None
