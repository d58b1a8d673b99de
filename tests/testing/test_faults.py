"""The fault server does what a plan says; http.client, which forgives nothing and repairs nothing, watches."""

import http.client
import random
import socket
import threading
import time

import pytest

from tarviz.testing.faults import ALWAYS, Fault, FaultServer
from tests.conftest import each_case, wait_until

DATA = random.Random(2).randbytes(300_000)


@pytest.fixture
def server():
    with FaultServer() as server:
        yield server


def ask(server, path="/a", method="GET", **headers):
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def test_objects_are_served(server):
    server.put("/a", DATA, etag='"v1"')
    status, headers, body = ask(server)

    assert (200, '"v1"', str(len(DATA)), DATA) == (status, headers["ETag"], headers["Content-Length"], body)
    assert ("GET", "/a", 200, len(DATA)) == (server.requests[0].method, server.requests[0].path, server.requests[0].status, server.sent)


def test_a_head_has_no_body(server):
    server.put("/a", DATA)

    assert (200, b"") == ask(server, method="HEAD")[::2]


@each_case(
    ("asked", "expected"), [("bytes=0-0", DATA[:1]), ("bytes=7-", DATA[7:]), ("bytes=-9", DATA[-9:]), ("bytes=299999-400000", DATA[-1:])]
)
def test_ranges_are_served(server, asked, expected):
    server.put("/a", DATA)

    assert (206, expected) == ask(server, Range=asked)[::2]


def test_what_lies_behind_the_end_is_416(server):
    server.put("/a", DATA)
    status, headers, _ = ask(server, Range="bytes=300000-")

    assert (416, "bytes */300000") == (status, headers["Content-Range"])


def test_conditions_are_held(server):
    server.put("/a", DATA, etag='"v1"')

    assert [200, 412] == [ask(server, If_Match=etag)[0] for etag in ('"v1"', '"v0"')]


def test_files_and_functions_are_served(server, tmp_path):
    (tmp_path / "file").write_bytes(DATA)
    server.put("/file", tmp_path / "file")
    server.put("/huge", lambda at, count: bytes([at >> 32]) * count, size=1 << 40)

    assert DATA == ask(server, "/file")[2]
    assert b"\x80\x80" == ask(server, "/huge", Range=f"bytes={1 << 39}-{(1 << 39) + 1}")[2]


def test_a_plan_happens_in_order_and_ends(server):
    server.put("/a", DATA, plan=[Fault(status=503, times=2), Fault(resumed=True, status=500), Fault(method="HEAD", status=405)])

    assert [503, 503, 200] == [ask(server)[0] for _ in range(3)]
    assert [500, 206] == [ask(server, Range="bytes=0-1")[0] for _ in range(2)]
    assert [405, 200] == [ask(server, method="HEAD")[0] for _ in range(2)]


def test_what_happens_always_never_ends(server):
    server.put("/a", DATA, plan=[Fault(status=500, times=ALWAYS)])

    assert {500} == {ask(server)[0] for _ in range(20)}


@each_case("fault", [Fault(cut=1000), Fault(cut_after=1000), Fault(lie=500), Fault(chunked=True, cut=1000)])
def test_a_short_body_is_noticed(server, fault):
    server.put("/a", DATA, plan=[fault])

    with pytest.raises(http.client.IncompleteRead):
        ask(server)


def test_a_reset_is_a_reset(server):
    server.put("/a", DATA, plan=[Fault(before_headers=True, end="reset")])

    with pytest.raises(ConnectionResetError):
        ask(server)


def test_a_stall_lasts_until_the_client_goes(server):
    server.put("/a", DATA, plan=[Fault(cut=10, end="stall")])
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
    connection.request("GET", "/a")
    with connection.getresponse() as answer:
        assert DATA[:10] == answer.read(10)
        connection.sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            answer.read()
    connection.close()

    wait_until(lambda: 0 == server.connections)


def test_an_object_is_replaced_when_the_plan_says_so(server):
    server.put("/a", b"old", plan=[Fault(), Fault(then=b"new"), Fault(status=503)])

    assert [b"old", b"old", b"", b"new"] == [ask(server)[2] for _ in range(4)]


def test_headers_are_changed_and_left_out(server):
    server.put("/a", DATA, plan=[Fault(headers={"ETag": '"other"', "Last-Modified": None})])
    headers = ask(server)[1]

    assert ('"other"', False) == (headers["ETag"], "Last-Modified" in headers)


def test_latency_and_bandwidth_are_felt(server):
    server.put("/a", DATA)
    server.latency, server.bandwidth = 0.05, 1e6
    begin = time.monotonic()
    ask(server)

    assert 0.35 < time.monotonic() - begin


def test_closing_ends_every_thread_and_socket():
    before = threading.active_count()
    with FaultServer() as server:
        server.put("/a", DATA, plan=[Fault(cut=5, end="stall")])
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
        connection.request("GET", "/a")
    connection.close()

    assert before == threading.active_count()


@pytest.mark.parametrize("part", [b"GET /a HTTP/1.1\r\nHost", b"PUT /a HTTP/1.1\r\nContent-Length: 9\r\n\r\nfour"])
def test_a_client_that_goes_in_the_middle_of_a_request_has_asked_for_nothing(part):
    with FaultServer() as server:
        with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as connection:
            connection.sendall(part)
        wait_until(lambda: server.taken and not server.connections)

    assert [] == server.requests


def test_what_is_no_http_is_refused(server):
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=60) as client:
        client.sendall(b"\x16\x03\x01")

        assert client.recv(100).startswith(b"HTTP/1.1 400")
