"""One object over several connections: the same bytes under the same faults, and only where one connection is the limit."""

from __future__ import annotations

import gc
import itertools
import os
import random
import threading

import google_crc32c
import pytest
from urllib3.connection import HTTPConnection

from tarviz import stores
from tarviz.model.errors import ChangedError, StoreError
from tarviz.stores._remote import parallel
from tarviz.stores.http import HttpStore
from tarviz.testing.faults import ALWAYS, Fault
from tarviz.testing.stores import open_files
from tests.conftest import wait_until
from tests.servers.clock import FakeClock
from tests.stores.random_faults import random_fault
from tests.stores.streams import drain

DATA = random.Random(5).randbytes(3_000_001)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(parallel, "TRIAL", 1 << 18)
    monkeypatch.setattr(parallel, "PART", 200_000)
    monkeypatch.setenv("TARVIZ_CONNECTIONS", "3")


class Waiting(FakeClock):
    """Time passes while bytes are waited for, and while the reader works on them: seconds for each look at the clock, in turn."""

    def __init__(self, *seconds):
        super().__init__()
        self._turns = seconds
        self._looks = 0

    def now(self):
        if threading.current_thread() is threading.main_thread():
            self._ahead += self._turns[self._looks % len(self._turns)]
            self._looks += 1
        return super().now()


def compare(stream, buffer, done):
    """Read to the end, and hold what comes against `DATA` from byte `done` on."""
    while count := stream.readinto(buffer):
        assert buffer[:count] == DATA[done : done + count]
        done += count


def ranges(server):
    return [request.headers["range"] for request in server.requests if "range" in request.headers]


class TestSpreading:
    def test_a_reader_that_waits_gets_more_connections(self, server, monkeypatch):
        url = server.put("/a.tar", DATA)
        begin, opened, numbers, three = parallel.ParallelStream._begin, [], itertools.count(), threading.Barrier(3)

        def begun(stream, part):
            begin(stream, part)
            opened.append(len(stream._parts))
            if next(numbers) < 3:  # the first three wait for each other: they are open side by side
                three.wait(60)

        monkeypatch.setattr(parallel.ParallelStream, "_begin", begun)

        assert DATA == drain(HttpStore(clock=Waiting(1.0)), url)
        asked = [tuple(map(int, each.removeprefix("bytes=").split("-"))) for each in ranges(server)]
        assert asked[0][0] >= 1 << 18
        assert [start for start, _ in sorted(asked)[1:]] == [stop + 1 for _, stop in sorted(asked)[:-1]]
        assert 13 <= len(asked) <= 14
        assert 3 == max(opened)
        assert server.sent < len(DATA) + (8 << 20)

    def test_a_reader_that_works_keeps_the_one(self, server):
        class Busy(FakeClock):
            pass

        clock = Busy()
        url = server.put("/a.tar", DATA)
        with HttpStore(clock=clock).open(url) as stream:
            data, buffer = bytearray(), memoryview(bytearray(1 << 16))
            while count := stream.readinto(buffer):
                data += buffer[:count]
                clock.wait(10.0, threading.Event())  # decoding

        assert DATA == bytes(data)
        assert [] == ranges(server)

    @pytest.mark.parametrize(
        ("options", "headers"),
        [({"etag": None, "modified": None}, {}), ({}, {"Accept-Ranges": "none"}), ({}, {"Transfer-Encoding": "chunked"})],
        ids=["no version", "no ranges", "no length"],
    )
    def test_what_cannot_be_read_in_ranges_is_not(self, server, options, headers):
        chunked = "Transfer-Encoding" in headers
        url = server.put("/a.tar", DATA, plan=[Fault(chunked=chunked, headers={} if chunked else headers)], **options)

        assert DATA == drain(HttpStore(clock=Waiting(1.0)), url)
        assert [] == ranges(server)

    def test_one_connection_is_the_default(self, server, monkeypatch):
        monkeypatch.delenv("TARVIZ_CONNECTIONS")

        assert DATA == drain(HttpStore(clock=Waiting(1.0)), server.put("/a.tar", DATA))
        assert 1 == len(server.requests)

    def test_from_an_offset_and_a_small_rest(self, server):
        url = server.put("/a.tar", DATA)

        assert DATA[500_000:] == drain(HttpStore(clock=Waiting(1.0)), url, offset=500_000)
        before = len(server.requests)
        assert DATA[-900_000:] == drain(HttpStore(clock=Waiting(1.0)), url, offset=len(DATA) - 900_000)
        assert before + 1 == len(server.requests)


class TestFaults:
    def test_a_replaced_object_is_never_spliced(self, server):
        url = server.put("/a.tar", DATA)
        with HttpStore(clock=Waiting(1.0)).open(url) as stream:
            buffer = memoryview(bytearray(1 << 19))
            done = sum(stores.fill(stream, part) for part in (buffer[: 1 << 18], buffer[1 << 18 :]))
            server.put("/a.tar", DATA[::-1])
            with pytest.raises(ChangedError, match=r"before, .* now"):
                compare(stream, buffer, done)

    def test_a_part_that_makes_no_progress_is_given_up(self, server):
        url = server.put("/a.tar", DATA, plan=[Fault(resumed=True, cut_after=0, times=ALWAYS)])

        with pytest.raises(StoreError, match="without progress"):
            drain(HttpStore(clock=Waiting(1.0)), url)

    def test_a_part_that_ends_early_is_an_error_and_never_filled_with_zeros(self, server):
        """The server forgets ranges and lengths, and ends its answer properly before the part does."""
        short = Fault(resumed=True, status=200, chunked=True, body=DATA[:450_000], headers={"ETag": '"one"'}, times=ALWAYS)
        url = server.put("/a.tar", DATA, etag='"one"', plan=[short])
        with HttpStore(clock=Waiting(1.0)).open(url) as stream, pytest.raises(StoreError, match="promised 3000001 bytes") as caught:
            compare(stream, memoryview(bytearray(1 << 16)), 0)

        assert ("E_LENGTH", 450_000) == (caught.value.code, caught.value.offset)

    @pytest.mark.parametrize("wrong", [False, True])
    def test_the_whole_is_held_against_its_checksum(self, server, wrong):
        import base64

        value = base64.b64encode(google_crc32c.Checksum(DATA[::-1] if wrong else DATA).digest()).decode()
        url = server.put("/a.tar", DATA, headers={"x-goog-hash": f"crc32c={value}"})
        store = HttpStore(clock=Waiting(1.0))
        if not wrong:
            assert DATA == drain(store, url)
        else:
            with pytest.raises(StoreError, match="crc32c checksum"):
                drain(store, url)
        assert ranges(server)

    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.fault("F42")
    def test_random_faults(self, server, seed):
        self.run(server, random.Random(seed), 4)

    @pytest.mark.slow
    @pytest.mark.timeout(3600)
    def test_three_hundred_plans(self, server):
        self.run(server, random.Random(99), 300)

    def run(self, server, chance, count):
        for _ in range(count):
            plan = [random_fault(chance, len(DATA), body=b"<Error><Code>SlowDown</Code></Error>", stalls=0.1) for _ in range(5)]
            url = server.put("/a.tar", DATA, plan=plan)

            assert DATA == drain(HttpStore(clock=Waiting(0.001), stall_timeout=0.2), url), plan
        assert server.most >= 3


@pytest.mark.fault("F47")
class TestClose:
    def test_it_leaves_nothing_wherever_it_is_closed(self, server):
        url = server.put("/a.tar", DATA)
        store = HttpStore(clock=Waiting(1.0))
        gc.collect()  # connections that stores of other tests have kept
        before = open_files()
        for count in (0, 1, 6, 20, 6):
            with store.open(url) as stream:
                for _ in range(count):
                    stream.readinto(memoryview(bytearray(1 << 16)))
            with pytest.raises(StoreError, match="closed"):
                stream.readinto(memoryview(bytearray(10)))

        wait_until(lambda: not parts())
        wait_until(lambda: server.connections <= 3)  # those that are kept for the next request
        wait_until(lambda: open_files() - 2 * server.connections == before)

    def test_reading_on_where_it_would_have_spread_begins_no_thread(self, server):
        with HttpStore(clock=Waiting(1.0)).open(server.put("/a.tar", DATA)) as stream:
            stores.fill(stream, memoryview(bytearray(1 << 18)))
        with pytest.raises(StoreError, match="closed"):
            stream.readinto(memoryview(bytearray(10)))

        assert [] == parts() == ranges(server)

    def test_a_part_whose_turn_comes_later_does_not_connect(self, server):
        stream = HttpStore(clock=Waiting(1.0)).open(server.put("/a.tar", DATA))
        stores.fill(stream, memoryview(bytearray(1 << 18)))  # from here on more connections pay
        begun, closed, open_part = threading.Event(), threading.Event(), stream._open_part

        def late(*args):
            begun.set()
            closed.wait(60)
            return open_part(*args)

        stream._open_part = late
        caught = []

        def read():
            try:
                stream.readinto(memoryview(bytearray(10)))
            except StoreError as error:
                caught.append(error.message)

        reader = threading.Thread(target=read)
        reader.start()
        assert begun.wait(60)
        stream.close()
        closed.set()
        reader.join(60)

        wait_until(lambda: not parts())
        assert (["the stream is closed."], []) == (caught, ranges(server))

    def test_while_a_part_stalls(self, server):
        url = server.put("/a.tar", DATA, plan=[Fault(resumed=True, cut_after=10, end="stall", times=ALWAYS)])
        stream = HttpStore(clock=Waiting(1.0), stall_timeout=600).open(url)

        def close():
            wait_until(lambda: ranges(server))
            stream.close()

        closer = threading.Thread(target=close)
        closer.start()
        with pytest.raises(StoreError, match="closed"):
            compare(stream, memoryview(bytearray(1 << 16)), 0)
        closer.join()
        stream.close()

        wait_until(lambda: not parts())

    @pytest.mark.parametrize("late", [Fault(resumed=True, before_headers=True, end="stall", times=ALWAYS), None], ids=["answer", "accept"])
    def test_while_parts_connect(self, server, late, monkeypatch):
        url = server.put("/a.tar", DATA, plan=[late] if late else [])
        stream = HttpStore(clock=Waiting(1.0), stall_timeout=600).open(url)
        data, buffer = bytearray(), memoryview(bytearray(1 << 16))
        while len(data) < 1 << 18:  # from here on more connections pay
            data += buffer[: stream.readinto(buffer)]
        asked, held = threading.Event(), threading.Event()
        if late is None:

            def connect(_):
                asked.set()
                held.wait(60)
                raise ConnectionRefusedError

            monkeypatch.setattr(HTTPConnection, "connect", connect)
        caught = []

        def read():
            try:
                while stream.readinto(buffer):
                    pass
            except StoreError as error:
                caught.append(error.message)

        reader = threading.Thread(target=read)
        reader.start()
        wait_until(lambda: parts() and (asked.is_set() if late is None else len(ranges(server)) >= 3))
        stream.close()
        reader.join(60)

        assert (False, ["the stream is closed."]) == (reader.is_alive(), caught)
        held.set()
        wait_until(lambda: not parts())


def parts():
    return [thread for thread in threading.enumerate() if thread.name.startswith("tarviz-part")]


class TestFork:
    def test_a_child_goes_on_with_a_connection_of_its_own(self, server):
        url = server.put("/a.tar", DATA)
        stream = HttpStore(clock=Waiting(1.0)).open(url)
        buffer = memoryview(bytearray(1 << 19))
        done = sum(stores.fill(stream, part) for part in (buffer[: 1 << 18], buffer[1 << 18 :]))
        assert ranges(server)  # threads fetch parts, and stay with the parent
        child = os.fork()
        if child == 0:
            code = 4
            try:
                rest = bytearray(len(DATA))
                count = stores.fill(stream, memoryview(rest))
                code = (rest[:count] != DATA[done:]) + 2 * bool(parts())
                stream.close()
            finally:
                os._exit(code)

        assert 0 == os.waitpid(child, 0)[1]
        compare(stream, buffer, done)
        stream.close()
