"""The HTTP store against a server that fails on purpose. F… are the scenarios of the fault list in the design notes."""

from __future__ import annotations

import base64
import contextlib
import email.utils
import functools
import gc
import hashlib
import http.server
import json
import logging
import os
import pickle
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import warnings

import google_crc32c
import pytest

from tarviz import stores
from tarviz.model.errors import ChangedError, NotFoundError, StoreError, UsageError
from tarviz.model.types import URL
from tarviz.stores.http import HttpStore
from tarviz.stores.retry import Clock
from tarviz.testing.faults import ALWAYS, Fault, FaultServer
from tarviz.testing.stores import StoreTests, open_files
from tests.conftest import each_case, wait_until
from tests.servers.clock import FakeClock
from tests.servers.local import tls_context
from tests.stores.random_faults import random_fault
from tests.stores.streams import drain

DATA = random.Random(1).randbytes(2_040_000)
XML = b"<?xml version='1.0'?><Error><Code>%s</Code><Message>Reduce your request rate.</Message></Error>"


@pytest.fixture
def store(clock):
    return HttpStore(clock=clock, stall_timeout=60)


@pytest.fixture
def hasty(clock):
    """Takes a server that says nothing for a third of a second for stalled."""
    return HttpStore(clock=clock, stall_timeout=0.3)


def get(server):
    return [request for request in server.requests if request.method == "GET"]


class TestHttpStore(StoreTests):
    """The contract of all stores; the server shows an index page for the folder."""

    @pytest.fixture
    def store(self):
        return HttpStore(clock=FakeClock())

    @pytest.fixture
    def folder(self, server):
        self.server = server
        self.names = []
        return URL(f"{server.url}/folder")

    def put(self, store, url, data):
        path = url.removeprefix(self.server.url)
        self.names.append(path.removeprefix("/folder/"))
        self.server.put(path, data)
        self.server.put("/folder/", "".join(f'<a href="{name}">x</a>' for name in self.names).encode())


class TestWhole:
    @pytest.mark.fault("F01")
    def test_one_request_gives_the_object(self, server, store):
        url = server.put("/a.tar", DATA)

        assert DATA == drain(store, url)
        assert [200] == [request.status for request in server.requests]
        assert "identity" == server.requests[0].headers["accept-encoding"]

    def test_an_empty_object_is_empty(self, server, store):
        assert b"" == drain(store, server.put("/a.tar", b""))

    @pytest.mark.parametrize("offset", [1, 5000, len(DATA) - 1, len(DATA), len(DATA) + 5])
    @pytest.mark.parametrize("ignore", [False, True])
    def test_an_offset_skips_what_lies_before(self, server, store, offset, ignore):
        url = server.put("/a.tar", DATA, plan=[Fault(ignore_range=ignore)])

        assert DATA[offset:] == drain(store, url, offset=offset)

    def test_stat_tells_size_and_version(self, server, store):
        url = server.put("/a.tar", DATA, etag='"v1"', modified="Sun, 06 Nov 1994 08:49:37 GMT")

        assert stores.Stat(url, len(DATA), '"v1"', 784111777.0, True) == store.stat(url)

    @pytest.mark.parametrize("status", [403, 405, 501])
    def test_stat_asks_for_one_byte_where_head_is_refused(self, server, store, status):
        url = server.put("/a.tar", DATA, etag='"v1"', plan=[Fault(method="HEAD", status=status)])

        assert (len(DATA), '"v1"') == (store.stat(url).size, store.stat(url).etag)

    def test_the_connection_is_used_again(self, server, store):
        urls = [server.put(f"/{name}", DATA[:1000]) for name in "abc"]

        assert [DATA[:1000]] * 3 == [drain(store, url) for url in urls]
        assert 1 == server.connections

    @pytest.mark.parametrize("size", [1 << 16, 4 << 20])
    def test_large_shards_share_a_connection(self, server, store, size):
        urls = [server.put(f"/{name}", DATA + name.encode()) for name in "abc"]
        for url in urls:
            assert len(DATA) + 1 == store.stat(url).size
            assert DATA + url[-1].encode() == drain(store, url, size=size)

        assert 1 == server.taken

    @pytest.mark.parametrize("fault", [Fault(lie=-1000), Fault(cut=len(DATA) - 1), Fault(headers={"Connection": "close"})])
    def test_a_connection_that_is_not_at_an_answers_end_is_not_used_again(self, server, store, fault):
        url = server.put("/a.tar", DATA, plan=[fault])
        with contextlib.suppress(StoreError):
            drain(store, url)

        assert DATA == drain(store, server.put("/b.tar", DATA))
        assert server.taken >= 2

    def test_the_stream_knows_its_object(self, server, store):
        url = server.put("/a.tar", DATA, etag='"v1"')

        with store.open(url) as stream:
            assert (len(DATA), '"v1"', True) == (stream.stat.size, stream.stat.etag, stream.stat.ranges)


class TestRead:
    @pytest.mark.parametrize(
        ("offset", "length"), [(0, 10), (7, 0), (1000, 300_000), (len(DATA) - 5, 50), (len(DATA), 5), (len(DATA) + 9, 5)]
    )
    @pytest.mark.parametrize("ignore", [False, True])
    def test_a_range_is_exact(self, server, store, offset, length, ignore):
        url = server.put("/a.tar", DATA, plan=[Fault(ignore_range=ignore)])

        assert DATA[offset : offset + length] == store.read(url, offset, length)

    @pytest.mark.fault("F42")
    def test_a_broken_range_is_resumed(self, server, store):
        url = server.put("/a.tar", DATA, plan=[Fault(cut_after=1000, times=3)])

        assert DATA[5000:10_000] == store.read(url, 5000, 5000)
        assert ["bytes=5000-9999", "bytes=6000-9999", "bytes=7000-9999", "bytes=8000-9999"] == [
            each.headers["range"] for each in get(server)
        ]

    def test_ranges_of_another_version_are_refused(self, server, store):
        url = server.put("/a.tar", DATA, etag='"v1"')
        etag = store.stat(url).etag
        server.put("/a.tar", DATA[::-1], etag='"v2"')

        with pytest.raises(ChangedError, match=r'"v1".*"v2"'):
            store.read(url, 0, 10, etag=etag)


class TestBroken:
    @pytest.mark.fault("F02", "F03", "F04", "F13", "F16")
    @pytest.mark.parametrize("end", ["close", "reset", "stall"])
    @pytest.mark.parametrize("cut", [0, 1, 512, 1_000_000, len(DATA) - 1])
    def test_a_cut_is_resumed(self, server, store, hasty, cut, end):
        url = server.put("/a.tar", DATA, plan=[Fault(cut=cut, end=end)])

        assert DATA == drain(hasty if end == "stall" else store, url)
        assert '"1"' == get(server)[1].headers.get("if-match", '"1"')
        assert server.sent <= len(DATA) + (1 << 22 if end == "reset" else 0)

    def test_a_resume_asks_for_the_rest_of_the_same_version(self, server, store):
        url = server.put("/a.tar", DATA, etag='"v1"', plan=[Fault(cut=1000)])
        drain(store, url)

        assert ("bytes=1000-", '"v1"') == (get(server)[1].headers["range"], get(server)[1].headers["if-match"])

    @pytest.mark.fault("F05")
    def test_no_progress_ends_with_the_attempts(self, server, store, clock):
        url = server.put("/a.tar", DATA, plan=[Fault(cut=1000, times=ALWAYS)])

        with pytest.raises(StoreError, match=r"gave up after \d+ attempts .*at byte 1000 ") as caught:
            drain(store, url)

        assert "E_NETWORK" == caught.value.code
        assert 150 <= sum(clock.waits) <= 180
        assert all(attempt["offset"] == 1000 for attempt in caught.value.details["attempts"])

    @pytest.mark.fault("F06")
    def test_many_cuts_with_progress_never_run_out(self, server, store, clock):
        data = DATA * 4
        url = server.put("/a.tar", data, plan=[Fault(cut_after=1 << 17, times=ALWAYS)])

        assert data == drain(store, url)
        assert 60 < len(get(server))
        assert 0 == sum(clock.waits)

    @pytest.mark.fault("F07")
    def test_without_a_length_the_end_is_where_it_ends(self, server, store):  # the tar's end blocks tell
        url = server.put("/a.tar", DATA, plan=[Fault(headers={"Content-Length": None}, cut=3000)])

        with store.open(url) as stream:
            buffer = memoryview(bytearray(5000))

            assert stream.stat.size is None
            assert 3000 == stores.fill(stream, buffer)

    @each_case("cut", [0, 100, 65536, 100_000, len(DATA)])
    @pytest.mark.fault("F08")
    def test_chunks_without_the_last_are_resumed(self, server, store, cut):
        url = server.put("/a.tar", DATA, plan=[Fault(chunked=True, cut=cut)])

        assert DATA == drain(store, url)

    def test_chunks_are_read(self, server, store):
        assert DATA == drain(store, server.put("/a.tar", DATA, plan=[Fault(chunked=True)]))

    @pytest.mark.fault("F09")
    def test_a_promise_of_more_is_an_error_after_all_bytes(self, server, store):
        url = server.put("/a.tar", DATA, plan=[Fault(lie=1000, times=ALWAYS)])
        buffer = memoryview(bytearray(len(DATA) + 2000))

        with store.open(url) as stream, pytest.raises(StoreError, match="promised 2041000 bytes and has 2040000") as caught:
            stores.fill(stream, buffer)

        assert "E_LENGTH" == caught.value.code
        assert len(DATA) == stream.offset
        assert DATA == buffer[: len(DATA)]

    @each_case("size", [3000, len(DATA)])
    @each_case("headers", [{}, {"Connection": "close"}])
    @pytest.mark.fault("F10")
    def test_a_promise_of_less_is_an_error(self, server, store, size, headers):
        url = server.put("/a.tar", DATA[:size], plan=[Fault(lie=-1000, headers=headers)])

        with pytest.raises(StoreError, match=f"goes on after byte {size - 1000}, where Content-Length ends it") as caught:
            drain(store, url)

        assert "E_LENGTH" == caught.value.code

    @pytest.mark.fault("F12")
    def test_a_stall_before_the_answer_is_retried(self, server, hasty):
        url = server.put("/a.tar", DATA, plan=[Fault(before_headers=True, end="stall")])

        assert DATA == drain(hasty, url)

    def test_endless_stalls_are_named(self, server, store):
        url = server.put("/a.tar", DATA, plan=[Fault(cut=10, end="stall", times=ALWAYS)])
        store = HttpStore(clock=FakeClock(), stall_timeout=0.05, retry_timeout=5)

        with pytest.raises(StoreError, match="no byte came") as caught:
            drain(store, url)

        assert "E_STALL" == caught.value.code

    @pytest.mark.fault("F15")
    @pytest.mark.matrix
    def test_a_slow_steady_server_is_left_alone(self, server, store):
        server.bandwidth = 3e6
        url = server.put("/a.tar", DATA)

        assert DATA == drain(store, url)
        assert 1 == len(server.requests)

    @pytest.mark.fault("F14")
    def test_a_server_that_dribbles_is_asked_again(self, server, monkeypatch):
        class Slow(FakeClock):
            """Every look at it costs half a second: a hundred bytes at a time are two hundred a second."""

            def now(self):
                self.wait(0.5, threading.Event())
                return super().now()

        monkeypatch.setenv("TARVIZ_MIN_RATE", "1kB")

        assert DATA[:100_000] == drain(HttpStore(clock=Slow()), server.put("/a.tar", DATA[:100_000]), size=100)
        assert 5 <= len(server.requests) <= 10
        assert all("range" in request.headers for request in server.requests[1:])

    @pytest.mark.fault("F17", "F44")
    @pytest.mark.parametrize("end", ["close", "reset"])
    def test_a_connection_lost_before_the_answer_is_made_again(self, server, store, end):
        url = server.put("/a.tar", DATA, plan=[Fault(before_headers=True, end=end, times=2)])

        assert DATA == drain(store, url)

    @pytest.mark.fault("F46")
    def test_a_reader_may_pause(self, server, store, clock):
        url = server.put("/a.tar", DATA, plan=[Fault(cut=100_000, end="reset")])
        with store.open(url) as stream:
            buffer = memoryview(bytearray(len(DATA)))
            done = stream.readinto(buffer)
            clock.wait(600, threading.Event())

            assert len(DATA) == done + stores.fill(stream, buffer[done:])
            assert DATA == buffer

    @pytest.mark.fault("F19")
    def test_a_name_that_is_not_found_once_is_looked_up_again(self, server, store, monkeypatch):
        look_up, failures = socket.getaddrinfo, [socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")]

        def flaky(*args, **options):
            if failures:
                raise failures.pop()
            return look_up(*args, **options)

        monkeypatch.setattr(socket, "getaddrinfo", flaky)

        assert DATA == drain(store, server.put("/a.tar", DATA))
        assert [] == failures

    @pytest.mark.fault("F45")
    def test_a_server_of_http_1_0_that_knows_no_ranges(self, tmp_path, store):
        cuts = [700_000, 1_500_000]

        class Handler(http.server.SimpleHTTPRequestHandler):  # what `python -m http.server` runs
            def copyfile(self, source, target):
                target.write(source.read(cuts.pop(0) if cuts else -1))

            def log_message(self, *_):
                pass

        (tmp_path / "a.tar").write_bytes(DATA)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=tmp_path)) as simple:
            thread = threading.Thread(target=simple.serve_forever, args=(0.01,))
            thread.start()
            try:
                url = URL(f"http://127.0.0.1:{simple.server_port}/a.tar")

                assert DATA == drain(store, url)
                assert [] == cuts
                assert DATA[1000:3000] == store.read(url, 1000, 2000)
            finally:
                simple.shutdown()
                thread.join()

    @pytest.mark.fault("F54")
    def test_a_wall_clock_that_jumps_changes_no_wait(self, server):
        class Jumping(FakeClock):
            def wall(self):
                return super().wall() + 1e6 * len(self.waits) * (-1) ** len(self.waits)

        clock = Jumping()
        url = server.put("/a.tar", DATA, plan=[Fault(status=503, times=3), Fault(status=503, headers={"Retry-After": "2"})])

        assert DATA == drain(HttpStore(clock=clock, stall_timeout=5), url)
        assert [0.15, 0.3, 0.6, 2.0] == pytest.approx(clock.waits)


class TestStatus:
    @pytest.mark.fault("F21")
    def test_retry_after_seconds_are_waited(self, server, store, clock):
        url = server.put("/a.tar", DATA, plan=[Fault(status=503, headers={"Retry-After": "1"}, times=2)])

        assert DATA == drain(store, url)
        assert [1.0, 1.0] == clock.waits

    @pytest.mark.fault("F22")
    def test_retry_after_date_is_held_against_the_servers_clock(self, server, store, clock):
        dates = {"Date": email.utils.formatdate(1e9, usegmt=True), "Retry-After": email.utils.formatdate(1e9 + 7, usegmt=True)}
        url = server.put("/a.tar", DATA, plan=[Fault(status=429, headers=dates)])

        assert DATA == drain(store, url)
        assert [7.0] == clock.waits

    def test_retry_after_is_capped(self, server, store, clock):
        url = server.put("/a.tar", DATA, plan=[Fault(status=429, headers={"Retry-After": "86400"})])

        assert DATA == drain(store, url)
        assert [60.0] == clock.waits

    @each_case("value", ["soon", "-5", "", "Sun, 99 Nov 1994"])
    def test_an_unreadable_retry_after_is_ignored(self, server, store, clock, value):
        url = server.put("/a.tar", DATA, plan=[Fault(status=503, headers={"Retry-After": value})])

        assert DATA == drain(store, url)
        assert 0 < clock.waits[0] < 1

    @pytest.mark.fault("F23")
    def test_a_mix_of_server_errors_passes(self, server, store, clock):
        plan = [Fault(status=status) for status in (500, 502, 504, 503, 408, 425)]

        assert DATA == drain(store, server.put("/a.tar", DATA, plan=plan))
        assert sorted(clock.waits) == clock.waits

    @pytest.mark.fault("F24")
    def test_a_refused_resume_is_tried_again(self, server, store):
        url = server.put("/a.tar", DATA, plan=[Fault(cut=1000), Fault(status=503, resumed=True)])

        assert DATA == drain(store, url)

    @pytest.mark.fault("F25")
    @each_case("code", [b"SlowDown", b"InternalError"])
    @each_case("chunked", [False, True])
    def test_an_error_page_with_status_200_is_retried(self, server, store, code, chunked):
        plan = [Fault(status=200, body=XML % code, chunked=chunked), Fault(cut=1000), Fault(status=200, body=XML % code, resumed=True)]

        assert DATA == drain(store, server.put("/a.tar", DATA, plan=plan))

    @pytest.mark.fault("F25")
    def test_an_error_page_that_comes_in_pieces_is_too(self, store):
        page = XML % b"SlowDown"
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def answer():
                for body, first in ((page, 40), (b"data", 4)):
                    connection, _ = listener.accept()
                    with connection:
                        connection.recv(1 << 16)
                        head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
                        connection.sendall(head + body[:first])
                        time.sleep(0.2)
                        connection.sendall(body[first:])

            thread = threading.Thread(target=answer)
            thread.start()

            assert b"data" == drain(store, URL(f"http://127.0.0.1:{listener.getsockname()[1]}/a"))
            thread.join()

    @pytest.mark.fault("F26")
    def test_a_missing_object_is_said_at_once(self, server, store, clock):
        with pytest.raises(NotFoundError, match=r"E_NOT_FOUND http://127.0.0.1:\d+/none.tar: .*404 Not Found"):
            store.open(URL(server.url + "/none.tar"))

        assert [] == clock.waits
        assert 1 == len(server.requests)

    @pytest.mark.fault("F35")
    def test_a_deleted_object_is_missing(self, server, store):
        url = server.put("/a.tar", DATA, plan=[Fault(cut=1000), Fault(status=404)])

        with pytest.raises(NotFoundError):
            drain(store, url)

    @pytest.mark.fault("F27", "F28")
    @pytest.mark.parametrize("status", [401, 403])
    def test_a_refusal_is_final_and_keeps_secrets(self, server, store, clock, status):
        body = XML % b"AccessDenied"
        url = server.put("/a.tar", DATA, plan=[Fault(cut=1000), Fault(status=status, body=body)])

        with pytest.raises(StoreError, match=r"refuses access: .*AccessDenied: Reduce") as caught:
            drain(store, URL(url + "?X-Amz-Signature=abcdef0123&v=1"))

        assert "E_AUTH" == caught.value.code
        assert "abcdef0123" not in str(caught.value)
        assert [] == clock.waits

    @each_case("status", [400, 406, 411, 418, 501])
    def test_other_errors_of_the_request_are_final(self, server, store, clock, status):
        url = server.put("/a.tar", DATA, plan=[Fault(status=status, times=ALWAYS)])

        with pytest.raises(StoreError, match=str(status)):
            store.open(url)

        assert [] == clock.waits

    @pytest.mark.fault("F29")
    def test_a_login_page_is_given_on(self, server, store):  # E_NOT_TAR is the tar reader's word
        page = b"<html>Please log in</html>"

        assert page == drain(store, server.put("/a.tar", DATA, plan=[Fault(status=200, body=page)]))


class TestVersion:
    @each_case("version", [{}, {"etag": 'W/"1"'}, {"etag": None}, {"etag": None, "modified": None}])
    @pytest.mark.fault("F30")
    def test_an_ignored_range_repeats_no_byte(self, server, store, version):
        url = server.put(
            "/a.tar", DATA, plan=[Fault(cut=500_000), Fault(ignore_range=True, cut=900_000), Fault(ignore_range=True)], **version
        )

        assert DATA == drain(store, url)

    @pytest.mark.fault("F11")
    def test_a_wrong_range_is_an_error(self, server, store):
        wrong = {"Content-Range": f"bytes 999-{len(DATA) - 1}/{len(DATA)}"}
        url = server.put("/a.tar", DATA, plan=[Fault(cut=1000), Fault(headers=wrong)])

        with pytest.raises(StoreError, match="asked for bytes 1000-, the server sends bytes 999-") as caught:
            drain(store, url)

        assert "E_RANGE" == caught.value.code
        for wrong in ("bytes 9-1500009/*", "bytes 9-5/*"):
            url = server.put("/a.tar", DATA, plan=[Fault(headers={"Content-Range": wrong}, chunked=True)])
            with pytest.raises(StoreError, match="asked for bytes 9-1500008, the server sends bytes 9-"):
                store.read(url, 9, 1_500_000)

    @pytest.mark.fault("F11")
    def test_another_total_is_another_object(self, server, store):
        other = {"Content-Range": f"bytes 1000-{len(DATA) - 1}/{len(DATA) + 1}"}
        url = server.put("/a.tar", DATA, plan=[Fault(cut=1000), Fault(headers=other)])

        with pytest.raises(ChangedError, match="2040000 bytes before, 2040001 now"):
            drain(store, url)

    @pytest.mark.fault("F31")
    def test_an_unknown_total_is_fine(self, server, store):
        unknown = {"Content-Range": f"bytes 1000-{len(DATA) - 1}/*"}
        url = server.put("/a.tar", DATA, plan=[Fault(cut=1000), Fault(headers=unknown)])

        assert DATA == drain(store, url)

    @pytest.mark.fault("F31")
    def test_many_parts_are_not_taken_for_one(self, server, store):
        parts = {"Content-Range": None, "Content-Type": "multipart/byteranges; boundary=x"}
        url = server.put("/a.tar", DATA, plan=[Fault(cut=1000), Fault(headers=parts)])

        with pytest.raises(StoreError, match="no Content-Range"):
            drain(store, url)

    def test_a_server_may_give_less_than_asked(self, server, store):
        less = {"Content-Range": f"bytes 1000-1999/{len(DATA)}", "Content-Length": "1000"}
        url = server.put("/a.tar", DATA, plan=[Fault(cut=1000), Fault(headers=less, cut=2000)])

        assert DATA == drain(store, url)

    @pytest.mark.fault("F32")
    def test_416_at_the_end_is_the_end(self, server, store):
        url = server.put("/a.tar", DATA, plan=[Fault(chunked=True, cut=len(DATA))])

        assert DATA == drain(store, url)
        assert 416 == get(server)[1].status

    @pytest.mark.parametrize(
        ("told", "code", "said"),
        [
            (f"bytes */{len(DATA)}", "E_RANGE", f"the server has no bytes from 1000 on, and of {len(DATA)} in all."),
            ("bytes */1000", "E_LENGTH", f"the server promised {len(DATA)} bytes and has 1000."),
            ("bytes */500", "E_CHANGED", "the object was replaced: 500 bytes now."),
        ],
    )
    @pytest.mark.fault("F32")
    def test_416_anywhere_else_is_an_error(self, server, store, told, code, said):
        plan = [Fault(cut=1000), Fault(status=416, headers={"Content-Range": told})]

        with pytest.raises(StoreError) as caught:
            drain(store, server.put("/a.tar", DATA, plan=plan))
        assert (code, said) == (caught.value.code, caught.value.message)

    @pytest.mark.fault("F32")
    def test_a_416_that_tells_no_size_is_asked_about(self, server, store):
        url = server.put("/a.tar", DATA, plan=[Fault(status=416)])

        with pytest.raises(StoreError, match=f"no bytes from 5 on, and of {len(DATA)} in all"):
            store.open(url, offset=5)
        url = server.put("/b.tar", DATA, plan=[Fault(status=416)])
        with store.open(url, offset=len(DATA)) as stream:
            assert (b"", len(DATA), True) == (stores.base.take(stream, 9), stream.stat.size, stream.stat.ranges)

    @pytest.mark.fault("F33")
    def test_416_is_of_a_version_too(self, server, store):
        for etag, told, same in (('"old"', '"v1"', False), ('"v1"', '"v1"', True), ('"old"', None, True)):
            answer = Fault(status=416, headers={"Content-Range": f"bytes */{len(DATA)}", "ETag": told})
            url = server.put("/a.tar", DATA, etag='"v1"', plan=[answer])
            if same:
                assert b"" == drain(store, url, offset=len(DATA), etag=etag)
            else:
                with pytest.raises(ChangedError, match=r'ETag "old" before, ETag "v1" now'):
                    store.open(url, offset=len(DATA), etag=etag)

    @pytest.mark.fault("F34")
    def test_without_any_version_a_second_break_before_new_bytes_is_one_more_attempt(self, server, store):
        url = server.put("/a.tar", DATA, etag=None, modified=None, plan=[Fault(cut=1_000_000), Fault(cut=500_000)])

        assert DATA == drain(store, url)
        assert 3 == len(get(server))

    @pytest.mark.fault("F34")
    def test_without_any_version_an_object_that_is_shorter_now_is_another(self, server, store):
        plan = [Fault(chunked=True, cut=1_000_000, then=DATA[:5000])]

        with pytest.raises(ChangedError, match="5000 bytes now"):
            drain(store, server.put("/a.tar", DATA, etag=None, modified=None, plan=plan))

    @pytest.mark.parametrize("lengths", ["same", "shorter", "longer"])
    @pytest.mark.parametrize("obeys", [True, False])
    @pytest.mark.fault("F33")
    def test_a_replaced_object_is_never_spliced(self, server, store, lengths, obeys):
        new = {"same": DATA[::-1], "shorter": DATA[:5000], "longer": DATA + b"x"}[lengths]
        url = server.put("/a.tar", DATA, plan=[Fault(cut=1000, then=new), Fault(ignore_range=not obeys)])

        with pytest.raises(ChangedError, match=r'ETag "1" before, ETag "2" now') as caught:
            drain(store, url)

        assert "E_CHANGED" == caught.value.code

    @pytest.mark.parametrize("version", [{"etag": None}, {"etag": None, "modified": None}])
    @pytest.mark.fault("F34")
    def test_a_replaced_object_without_etag_is_never_spliced(self, server, store, version):
        new = b"x" + DATA[1:]
        url = server.put("/a.tar", DATA, plan=[Fault(cut=1_000_000, then=new)], **version)

        with pytest.raises(ChangedError):
            drain(store, url)

    @pytest.mark.fault("F34")
    def test_weak_etags_are_compared(self, server, store):
        url = server.put("/a.tar", DATA, etag='W/"1"', plan=[Fault(cut=1000), Fault(headers={"ETag": 'W/"2"'})])

        with pytest.raises(ChangedError, match=r'ETag W/"1" before, ETag W/"2" now'):
            drain(store, url)

        assert "if-match" not in get(server)[1].headers

    @pytest.mark.fault("F34")
    def test_without_any_version_the_beginning_is_compared(self, server, store):
        url = server.put("/a.tar", DATA, etag=None, modified=None, plan=[Fault(cut=1_000_000), Fault(cut=1_500_000)])

        assert DATA == drain(store, url)
        assert [None] * 3 == [request.headers.get("range") for request in get(server)]

    def test_the_asked_version_is_held(self, server, store):
        url = server.put("/a.tar", DATA, etag='"v1"')

        assert DATA == drain(store, url, etag='"v1"')
        with pytest.raises(ChangedError, match=r'"v0" before, ETag "v1" now'):
            store.open(url, etag='"v0"')

    @pytest.mark.fault("F37")
    def test_a_coding_on_the_way_turns_ranges_off(self, server, store):
        coded = {"Content-Encoding": "gzip"}
        url = server.put("/a.tar", DATA, plan=[Fault(headers=coded, cut=1000), Fault(headers=coded)])

        assert DATA == drain(store, url)
        assert [(None, None)] * 2 == [(request.headers.get("range"), request.headers.get("if-match")) for request in get(server)]


class TestRedirects:
    def chain(self, server, count):
        for step in range(count):
            server.put(f"/{step}", b"", plan=[Fault(status=307, headers={"Location": f"/{step + 1}"}, times=ALWAYS)])
        server.put(f"/{count}", DATA)
        return URL(server.url + "/0")

    @pytest.mark.parametrize("count", [1, 5])
    @pytest.mark.fault("F39")
    def test_redirects_are_followed(self, server, store, count):
        assert DATA == drain(store, self.chain(server, count))

    def test_the_sixth_is_one_too_many(self, server, store):
        with pytest.raises(StoreError, match="more than 5 times"):
            store.open(self.chain(server, 6))

    @pytest.mark.parametrize("place", ["file:///etc/passwd", "ftp://host/a", "http://169.254.169.254/latest", "gopher://x"])
    def test_redirects_elsewhere_are_refused(self, server, store, place):
        url = server.put("/a.tar", DATA, plan=[Fault(status=302, headers={"Location": place}, times=ALWAYS)])

        with pytest.raises(StoreError, match="redirects to"):
            store.open(url)

    def test_credentials_stay_with_their_origin(self, server, store, monkeypatch):
        monkeypatch.setenv("TARVIZ_HTTP_HEADERS", json.dumps({server.url: {"X-Token": "t0k3n"}}))
        with FaultServer() as other:
            place = {"Location": other.put("/b.tar", DATA)}
            url = server.put("/a.tar", b"", plan=[Fault(status=302, headers=place)])

            assert DATA == drain(store, URL(url.replace("http://", "http://me:p%40w@")))
            assert ("t0k3n", "Basic bWU6cEB3") == (server.requests[0].headers["x-token"], server.requests[0].headers["authorization"])
            assert {"x-token", "authorization"}.isdisjoint(other.requests[0].headers)

    @pytest.mark.parametrize(("user", "sent"), [("t0k3n", b"t0k3n:"), (":secret", b":secret"), ("a%3Ab:c:d", b"a:b:c:d")])
    def test_a_token_may_stand_where_the_user_does(self, server, store, user, sent):
        url = URL(server.put("/a.tar", DATA).replace("http://", f"http://{user}@"))

        assert DATA == drain(store, url)
        assert f"Basic {base64.b64encode(sent).decode()}" == server.requests[0].headers["authorization"]

    def test_headers_of_the_environment_go_to_their_origin_alone(self, server, store, monkeypatch):
        url = server.put("/a.tar", DATA)
        monkeypatch.setenv("TARVIZ_HTTP_HEADERS", json.dumps({server.url: {"Authorization": "Bearer abc"}}))
        with FaultServer() as other:
            drain(store, url)
            drain(store, other.put("/a.tar", DATA))

            assert "Bearer abc" == server.requests[0].headers["authorization"]
            assert "authorization" not in other.requests[0].headers

    def test_a_broken_table_of_headers_is_a_clear_error(self, server, store, monkeypatch):
        monkeypatch.setenv("TARVIZ_HTTP_HEADERS", "Authorization: x")

        with pytest.raises(UsageError, match="TARVIZ_HTTP_HEADERS"):
            store.open(server.put("/a.tar", DATA))


class TestUnreached:
    @pytest.mark.fault("F18")
    def test_a_server_that_comes_up_late_is_waited_for(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        late: list[http.server.HTTPServer] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", "4")
                self.end_headers()
                self.wfile.write(b"late")

            def log_message(self, *_):
                pass

        def serve():
            late[0].handle_request()
            late[0].server_close()

        thread = threading.Thread(target=serve)

        class Coming(FakeClock):
            """The server comes up while the store waits for the third time."""

            def wait(self, seconds, stop):
                super().wait(seconds, stop)
                if 3 == len(self.waits):
                    late.append(http.server.HTTPServer(("127.0.0.1", port), Handler))
                    thread.start()

        clock = Coming()

        assert b"late" == drain(HttpStore(clock=clock), URL(f"http://127.0.0.1:{port}/a"))
        assert 3 == len(clock.waits)
        thread.join()

    def test_a_server_that_never_was_is_given_up_soon(self, store, clock):
        with socket.create_server(("127.0.0.1", 0)) as free:
            url = URL(f"http://127.0.0.1:{free.getsockname()[1]}/a.tar")

        with pytest.raises(StoreError, match=r"no connection to 127\.0\.0\.1: Connection refused") as caught:
            store.open(url)

        assert "E_NETWORK" == caught.value.code
        assert 0.5 < sum(clock.waits) <= 1.5

    @pytest.mark.fault("F20")
    def test_plain_http_behind_https_is_said_at_once(self, server, store, clock):
        url = server.put("/a.tar", DATA).replace("http://", "https://")

        with pytest.raises(StoreError, match=r"TLS failed.* begins with http://"):
            store.open(URL(url))

        assert [] == clock.waits

    @pytest.mark.fault("F20")
    def test_an_untrusted_certificate_is_said_at_once(self, store, clock, tmp_path):
        with FaultServer(tls=tls_context(tmp_path)) as server, pytest.raises(StoreError, match="certificate verify failed"):
            store.open(server.put("/a.tar", DATA))

        assert [] == clock.waits

    def test_a_trusted_certificate_is_enough(self, store, tmp_path, monkeypatch):
        context = tls_context(tmp_path)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        with FaultServer(tls=context) as server:
            plan = [Fault(cut=100_000), Fault(cut=300_000, end="reset"), Fault(lie=-5)]
            url = URL(server.put("/a.tar", DATA, plan=plan).replace("127.0.0.1", "localhost"))
            with pytest.raises(StoreError, match="Content-Length"):
                drain(store, url)

            assert DATA == drain(store, url)

    @pytest.mark.fault("F20")
    def test_small_ranges_over_tls_trust_no_more(self, clock, tmp_path, monkeypatch):
        context = tls_context(tmp_path)
        with FaultServer(tls=context) as server:
            url = URL(server.put("/a.tar", DATA).replace("127.0.0.1", "localhost"))
            with pytest.raises(StoreError, match="certificate verify failed"):
                HttpStore(clock=clock).read(url, 0, 10)
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
            store = HttpStore(clock=clock)
            for at in range(0, 500_000, 100_000):
                assert DATA[at : at + 100_000] == store.read(url, at, 100_000)

            assert 5 == len(server.requests)
            with pytest.raises(StoreError, match="certificate verify failed"):  # it is for another name
                store.read(URL(url.replace("localhost", "127.0.0.1")), 0, 10)

    def test_something_else_than_http_is_said_at_once(self, store):
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def greet():
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1000)
                    connection.sendall(b"220 mail ready\r\n")

            thread = threading.Thread(target=greet)
            thread.start()
            with pytest.raises(StoreError, match="does not speak HTTP"):
                store.open(URL(f"http://127.0.0.1:{listener.getsockname()[1]}/a"))
            thread.join()

    @each_case("url", ["http://", "http:///a", "http://host:99999/a", "http://h:x/a", "http://[::1/a"])
    def test_a_url_that_cannot_be_is_a_usage_error(self, store, url):
        with pytest.raises(UsageError):
            store.open(URL(url))

    @pytest.mark.fault("F53")
    def test_a_proxy_is_used_and_left_out(self, server, store, monkeypatch):
        monkeypatch.setenv("http_proxy", server.url)
        server.put("http://data.invalid/a.tar", DATA)

        assert DATA == drain(store, URL("http://data.invalid/a.tar"))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert DATA == drain(store, server.put("/a.tar", DATA))
        assert ["http://data.invalid/a.tar", "/a.tar"] == [request.path for request in server.requests]

    @pytest.mark.fault("F53")
    def test_ipv6(self, store):
        try:
            server = FaultServer(host="::1")
        except OSError:
            pytest.skip("no IPv6 here")
        with server:
            assert DATA == drain(store, server.put("/a.tar", DATA))


class TestClose:
    def test_an_early_close_is_prompt_and_stops_the_server(self, server, store):
        url = server.put("/huge", lambda at, count: bytes(count), size=1 << 34)
        stream = store.open(url)
        stream.readinto(memoryview(bytearray(1000)))
        sent = server.sent
        stream.close()

        wait_until(lambda: server.connections == 0)
        assert server.sent < sent + (4 << 20)

    def test_close_twice_and_read_after_close(self, server, store):
        stream = store.open(server.put("/a.tar", DATA))
        stream.close()
        stream.close()

        with pytest.raises(StoreError, match="closed"):
            stream.readinto(memoryview(bytearray(10)))

    @pytest.mark.parametrize("fault", [Fault(cut=10, end="stall"), Fault(cut=10), Fault(status=503, headers={"Retry-After": "50"})])
    @pytest.mark.fault("F47")
    def test_close_from_another_thread_ends_stall_and_backoff(self, server, fault):
        url = server.put("/a.tar", DATA, plan=[Fault(cut=10), fault, Fault(status=503, headers={"Retry-After": "50"}, times=ALWAYS)])
        clock = Patient()
        stream = HttpStore(clock=clock, stall_timeout=600).open(url)
        stores.fill(stream, memoryview(bytearray(10)))
        caught: list[StoreError] = []

        def read():
            try:
                stream.readinto(memoryview(bytearray(10)))
            except StoreError as error:
                caught.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        wait_until(lambda: clock.waiting or (fault.end == "stall" and len(get(server)) == 2))
        stream.close()
        thread.join()

        assert ["the stream is closed."] == [error.message for error in caught]
        wait_until(lambda: server.connections <= (1 if fault.status else 0))

    @pytest.mark.parametrize("fault", [Fault(cut=10, end="stall"), Fault(cut=10), Fault(before_headers=True, end="stall", resumed=True)])
    @pytest.mark.fault("F47")
    def test_an_interrupt_ends_stall_and_backoff(self, server, fault):
        later = [Fault(status=503, headers={"Retry-After": "50"}, times=ALWAYS)]
        url = server.put("/a.tar", DATA, plan=[Fault(cut=10), fault, *later])
        clock = Patient()

        raised = []

        def interrupt(*_):
            if not raised:
                raised.append(True)
                raise KeyboardInterrupt

        def press():
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
            return raised

        def hurry():
            wait_until(lambda: clock.waiting or (fault.end == "stall" and len(get(server)) == 2))
            wait_until(press)  # again and again: one that comes just before a system call does not end it

        thread = threading.Thread(target=hurry)
        before = signal.signal(signal.SIGUSR1, interrupt)
        try:
            with HttpStore(clock=clock, stall_timeout=600).open(url) as stream:
                thread.start()
                with pytest.raises(KeyboardInterrupt):
                    stores.fill(stream, memoryview(bytearray(100)))
        finally:
            thread.join()
            signal.signal(signal.SIGUSR1, before)

    def test_many_streams_leave_nothing_behind(self, server, store):
        url = server.put("/a.tar", DATA, plan=[Fault(cut_after=100_000, times=20)])

        def some():
            for count in range(60):
                with store.open(url) as stream:
                    for _ in range(count % 5):
                        stream.readinto(memoryview(bytearray(1 << 16)))

        some()
        wait_until(lambda: server.connections <= 1)
        files, threads = open_files(), threading.active_count()
        with warnings.catch_warnings():
            warnings.simplefilter("error", ResourceWarning)
            some()
            wait_until(lambda: server.connections <= 1)

        assert open_files() <= files + 2  # a connection kept, both ends of it
        assert threading.active_count() <= threads + 1

    def test_a_stream_that_is_dropped_closes_its_socket(self, server, store):
        stream = store.open(server.put("/huge", lambda at, count: bytes(count), size=1 << 30))
        del stream
        gc.collect()

        wait_until(lambda: server.connections == 0)


class Patient(Clock):
    """Waits ten minutes for whatever is waited for, unless it is stopped: longer than any test may take."""

    waiting = False

    def wait(self, seconds, stop):
        self.waiting = True
        stop.wait(600)


class TestFork:
    @pytest.mark.fault("F52")
    def test_a_child_goes_on_with_a_connection_of_its_own(self, server):
        url = server.put("/a.tar", DATA)
        code = f"""
import hashlib, os, sys
from contextlib import nullcontext
from tarviz import stores
from tarviz.model.types import URL
store, url = stores.of({str(url)!r}), URL({str(url)!r})
stream = store.open(url)
data = bytearray({len(DATA)})
done = stream.readinto(memoryview(data))
for turn in range(20):
    with stream._busy if turn % 2 else nullcontext():  # as a thread that reads just then
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
            continue
        stores.fill(stream, memoryview(data)[done:])
        stream.close()
        same = hashlib.sha256(data).hexdigest() == {hashlib.sha256(DATA).hexdigest()!r} and store.read(url, 5, 6) == data[5:11]
        os._exit(0 if same else 1)
stores.fill(stream, memoryview(data)[done:])
assert hashlib.sha256(data).hexdigest() == {hashlib.sha256(DATA).hexdigest()!r}
stream.close()
"""
        subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)

        assert "bytes=5-10" == get(server)[-1].headers["range"]  # no child took bytes that were for the parent, so it asks for none again

    def test_a_stream_that_was_closed_stays_closed_in_a_child(self, server):
        stream = HttpStore().open(server.put("/a.tar", DATA))
        stream.readinto(memoryview(bytearray(10)))
        stream.close()
        child = os.fork()
        if child == 0:
            try:
                stream.readinto(memoryview(bytearray(10)))
            except StoreError as error:
                os._exit(0 if "closed" in str(error) else 2)
            os._exit(1)

        assert 0 == os.waitpid(child, 0)[1]

    def test_what_lies_before_the_place_it_began_at_is_not_held_against_it(self, server, clock):
        """Without a version what came before is compared with what comes again; a server without ranges sends what never came, too."""
        cut = Fault(cut=1_500_000)
        url = server.put("/a.tar", DATA, etag=None, modified=None, plan=[cut, Fault(ignore_range=True)])
        rest = bytearray(len(DATA) - 1000)
        with HttpStore(clock=clock).open(url, offset=1000) as stream:
            assert len(rest) == stores.fill(stream, memoryview(rest))

        assert DATA[1000:] == rest

    def test_the_store_pickles_with_its_settings(self, server):
        store = pickle.loads(pickle.dumps(HttpStore(retry_timeout=7)))

        assert (7, 30, 0) == (store.options().retry_timeout, store.options().stall_timeout, store.options().min_rate)
        assert DATA == drain(store, server.put("/a.tar", DATA))


class TestManyAtOnce:
    @pytest.mark.fault("F43")
    def test_32_streams_share_a_server(self, server, store):
        url = server.put("/a.tar", DATA, plan=[Fault(before_headers=True, end="reset", times=28), Fault(cut=50_000, times=20)])
        found: list[bool] = []
        threads = [threading.Thread(target=lambda: found.append(DATA == drain(store, url))) for _ in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)

        assert [True] * 32 == found


class TestSecrets:
    def test_secrets_stay_out_of_what_is_printed(self, server, caplog, monkeypatch):
        caplog.set_level(logging.DEBUG)
        url = server.put("/a.tar", DATA, plan=[Fault(cut=1000, times=2), Fault(status=503), Fault(status=403)])
        url = URL(url.replace("http://", "http://user:hunter22@") + "?X-Amz-Signature=5ec4e7aa&sig=5ec4e7bb")
        monkeypatch.setenv("TARVIZ_HTTP_HEADERS", json.dumps({server.url: {"X-Token": "5ec4e7cc"}}))
        store = HttpStore(clock=FakeClock())
        try:
            drain(store, url)
        except StoreError as error:
            text = "".join(traceback.format_exception(error)) + repr(error) + str(error.to_dict())
        text += caplog.text + repr(store) + repr(store.wire) + repr(store.stat(url))

        assert "GET /a.tar" in caplog.text
        assert [] == [secret for secret in ("hunter22", "5ec4e7aa", "5ec4e7bb", "5ec4e7cc") if secret in text]


class TestList:
    def test_the_page_of_http_server_is_read(self, tmp_path, store):
        for name in ("b 1.tar", "a.tar", "x#y.tar", "note.txt"):
            (tmp_path / name).write_bytes(b"x")
        (tmp_path / "folder").mkdir()

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args):
                super().__init__(*args, directory=str(tmp_path))

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            base = f"http://127.0.0.1:{server.server_address[1]}/"
            found = stores.expand(base)
            data = [drain(store, url) for url in found]
            server.shutdown()
            thread.join()

        assert [f"{base}a.tar", f"{base}b%201.tar", f"{base}x%23y.tar"] == found
        assert [b"x"] * 3 == data

    def test_the_page_of_nginx_is_read(self, server, store):
        page = (
            b'<html><body><h1>Index of /d/</h1><pre><a href="../">../</a>\n<a href="sub/">sub/</a>\n<a href="t-1.tar">t-1.tar</a>  5</pre>'
        )
        folder = server.put("/d/", page + b'<a href="?C=N;O=D">Name</a><a href="/other.tar">x</a><a href="http://else/d/z.tar">z</a>')

        assert [f"{folder}t-1.tar"] == [stat.url for stat in store.list(folder)]

    def test_a_json_page_has_sizes(self, server, store):
        rows = [
            {"name": "s", "type": "directory"},
            {"name": "a b.tar", "type": "file", "mtime": "Sun, 06 Nov 1994 08:49:37 GMT", "size": 7},
        ]
        folder = server.put("/d/", json.dumps(rows).encode())

        assert [stores.Stat(URL(f"{folder}a%20b.tar"), 7, None, 784111777.0)] == list(store.list(folder))

    @each_case("page", [b"hello", b"[1]", b"[" * 5000, b""])
    def test_anything_else_is_no_list(self, server, store, page):
        with pytest.raises(StoreError, match="list"):
            store.list(server.put("/d/", page))


def test_writing_is_refused_with_a_way_out(store):
    with pytest.raises(UsageError, match="local path"):
        store.create(URL("http://host/a.tar"))
    with pytest.raises(UsageError):
        store.delete(URL("http://host/a.tar"))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.matrix
def test_random_plans_give_the_same_bytes(server, seed):
    """P14: cuts, resets, errors and ignored ranges at random places never change a byte."""
    chance = random.Random(seed)
    data = DATA * 2
    expected = hashlib.sha256(data).hexdigest()
    for round in range(25):
        plan = [random_fault(chance, len(data), body=XML % b"SlowDown", stalls=0.3) for _ in range(chance.randrange(1, 9))]
        version = chance.choice([{}, {}, {"etag": 'W/"x"'}, {"etag": None}, {"etag": None, "modified": None}])
        url = server.put("/a.tar", data, plan=plan, **version)
        store = HttpStore(clock=FakeClock(), stall_timeout=0.1)

        assert expected == hashlib.sha256(drain(store, url, size=chance.choice([4096, 1 << 18, 1 << 21]))).hexdigest(), (seed, round, plan)


@pytest.mark.parametrize("seed", range(2))
def test_random_replacements_are_never_spliced(server, seed):
    """P15: what is read is one version whole, or `ChangedError`."""
    chance = random.Random(seed)
    for _ in range(50):
        new = bytes(chance.randbytes(1)) + DATA[1:]
        version = chance.choice([{}, {"etag": None}, {"etag": None, "modified": None}])
        plan = [Fault(cut=chance.randrange(1, len(DATA)), then=new, ignore_range=chance.random() < 0.3)]
        url = server.put("/a.tar", DATA, plan=plan, **version)
        store = HttpStore(clock=FakeClock())
        try:
            found = drain(store, url)
        except ChangedError:
            continue

        assert found in (DATA, new)


class TestDates:
    """Servers that tell no ETag: time and size name the version."""

    def test_a_replaced_object_is_noticed_behind_an_index(self, server, store):
        url = server.put("/a.tar", DATA, etag=None)
        etag = store.stat(url).etag
        server.put("/a.tar", DATA[::-1], etag=None)

        for ask in (lambda: store.read(url, 5, 5, etag=etag), lambda: store.open(url, etag=etag)):
            with pytest.raises(ChangedError, match=r"Last-Modified .* before, Last-Modified .* now"):
                ask()
        assert "if-unmodified-since" in server.requests[-2].headers

    def test_another_size_at_the_same_time_is_another_version(self, server, store):
        date = email.utils.formatdate(1e9, usegmt=True)
        url = server.put("/a.tar", DATA, etag=None, modified=date)
        etag = store.stat(url).etag
        server.put("/a.tar", DATA[1:], etag=None, modified=date)

        with pytest.raises(ChangedError, match="2040000 bytes before, 2039999 now"):
            store.read(url, 5, 5, etag=etag)

    def test_the_version_asked_for_is_read(self, server, store):
        url = server.put("/a.tar", DATA, etag=None)
        etag = store.stat(url).etag

        assert DATA[5:9] == store.read(url, 5, 4, etag=etag)
        with store.open(url) as stream:
            assert etag == stream.stat.etag


class TestChecksum:
    @pytest.mark.parametrize("plan", [[], [Fault(cut=1_000_000)], [Fault(cut=1_000_000), Fault(ignore_range=True, chunked=True)]])
    @pytest.mark.fault("F38")
    def test_a_flipped_byte_is_an_error(self, server, store, plan):
        value = base64.b64encode(google_crc32c.Checksum(DATA).digest()).decode()
        wrong = DATA[:-1] + bytes([DATA[-1] ^ 1])
        headers = {"x-goog-hash": f"crc32c={value},md5=AAAA"}

        assert DATA == drain(store, server.put("/right.tar", DATA, plan=plan, headers=headers))
        with pytest.raises(StoreError, match="do not have the crc32c checksum") as caught:
            drain(store, server.put("/wrong.tar", wrong, plan=plan, headers=headers))
        assert "E_CORRUPT" == caught.value.code

    @pytest.mark.parametrize(
        "headers", [{"x-amz-checksum-crc32c": "AAAA-3"}, {"x-goog-hash": "crc32c=not base64!"}, {"x-goog-hash": "md5=AA"}]
    )
    def test_what_cannot_be_compared_is_left(self, server, store, headers):
        assert DATA == drain(store, server.put("/a.tar", DATA, plan=[Fault(headers=headers)]))


class TestMutants:
    """Lines whose loss no other test would notice."""

    @pytest.mark.fault("F39")
    def test_a_redirect_from_tls_to_plain_http_is_not_followed(self, tmp_path, monkeypatch, clock):
        context = tls_context(tmp_path)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        with FaultServer() as plain, FaultServer(tls=context) as secure:
            plain.put("/a.tar", DATA)
            url = secure.put("/a.tar", b"", plan=[Fault(status=302, headers={"Location": f"{plain.url}/a.tar"}, times=ALWAYS)])

            with pytest.raises(StoreError, match=r"from https to plain http .* not followed"):
                drain(HttpStore(clock=clock), URL(url.replace("127.0.0.1", "localhost")))
            assert [] == plain.requests

    @pytest.mark.fault("F10", "F11")
    def test_content_length_and_content_range_must_agree(self, server, store):
        url = server.put("/a.tar", DATA, plan=[Fault(lie=-5, times=ALWAYS)])

        with pytest.raises(StoreError, match=r"Content-Length 95 and Content-Range .* differ") as caught:
            store.read(url, 100, 100)
        assert "E_LENGTH" == caught.value.code
