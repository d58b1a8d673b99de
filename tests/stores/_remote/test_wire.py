"""What the words of http.client mean, where it gives words alone; the rest is tried in `tests/stores/test_http.py`."""

from __future__ import annotations

import http.client
import json
import socket
import sys
import threading

import pytest
import urllib3

from tarviz.model.errors import NotFoundError, StoreError, UsageError
from tarviz.model.types import URL
from tarviz.stores._remote import small_range, wire
from tarviz.stores._remote.access import Access
from tarviz.stores._remote.wire import WRITTEN, Wire, _raise, json_error, read_whole
from tarviz.stores.retry import RetryError
from tarviz.testing.faults import Fault, FaultServer
from tests.conftest import each_case
from tests.servers.clock import FakeClock


def proxy_that_says(status: str) -> int:
    """The port of a proxy that answers one CONNECT."""
    server = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        with server, server.accept()[0] as connection:
            connection.recv(4096)
            connection.sendall(f"HTTP/1.1 {status}\r\n\r\n".encode())

    threading.Thread(target=answer, daemon=True).start()
    return int(server.getsockname()[1])


def raised_through_proxy(port: int) -> Exception:
    with urllib3.ProxyManager(f"http://127.0.0.1:{port}") as manager, pytest.raises(urllib3.exceptions.HTTPError) as caught:
        manager.request("GET", "https://example.test/a.tar", retries=False, timeout=20)
    return caught.value


@pytest.mark.parametrize(
    ("status", "kind"), [("407 Proxy Authentication Required", StoreError), ("403 No", StoreError), ("502 Bad Gateway", RetryError)]
)
def test_a_proxy_that_refuses_the_tunnel_is_final_and_one_that_is_broken_is_not(status: str, kind: type[Exception]):
    with pytest.raises(kind):
        _raise(raised_through_proxy(proxy_that_says(status)), "https://example.test/a.tar", "example.test")


def test_a_header_that_cannot_be_sent_is_not_shown():
    connection = http.client.HTTPConnection("127.0.0.1", 9)
    connection.putrequest("GET", "/", skip_host=True)
    with pytest.raises(ValueError, match="Invalid header value") as caught:
        connection.putheader("authorization", "Bearer secret\nline")

    with pytest.raises(UsageError) as shown:
        _raise(caught.value, "http://127.0.0.1:9/a.tar", "127.0.0.1")
    assert "secret" not in str(shown.value)
    assert "the end of a line" in str(shown.value)


def test_a_port_where_nobody_listens_is_a_refusal():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with urllib3.PoolManager() as manager, pytest.raises(urllib3.exceptions.HTTPError) as caught:
        manager.request("GET", f"http://127.0.0.1:{port}/", retries=False)

    with pytest.raises(RetryError) as found:
        _raise(caught.value, f"http://127.0.0.1:{port}/", "127.0.0.1")
    assert (True, True) == (found.value.unreached, found.value.refused)


@pytest.mark.skipif(sys.platform != "linux", reason="a queue of connections that is full is Linux's")
@pytest.mark.parametrize(("connect", "stall"), [(0.05, 60), (60, 0.05)])
def test_a_server_that_takes_no_connection_in_time_was_never_reached(monkeypatch: pytest.MonkeyPatch, connect: float, stall: float):
    monkeypatch.setattr(wire, "CONNECT_TIMEOUT", connect)
    monkeypatch.setattr(small_range, "CONNECT_TIMEOUT", connect)
    asking = Wire(FakeClock(), Access())
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, socket.create_connection(server.getsockname()):
        url = URL(f"http://127.0.0.1:{server.getsockname()[1]}/a.tar")
        with pytest.raises(RetryError) as found:
            asking.send("GET", url, {}, stall)
        front = small_range.SmallRanges(asking).read(url, 0, 9, None, stall, ())

    assert front is None  # the other reader finds words for it
    assert ("E_STALL", True, False, "no connection to 127.0.0.1 in time") == (
        found.value.code,
        found.value.unreached,
        found.value.refused,
        found.value.reason,
    )


@each_case(
    ("body", "code", "expected"),
    [
        ('{"error": {"code": 404, "message": "No such  object:\\n b/o"}}', "", ("", "No such object: b/o")),
        ('{"error": "Entry not found"}', "X", ("X", "Entry not found")),
        ('{"tcode": "ErrBckNotFound", "message": "bucket"}', "", ("ErrBckNotFound", "bucket")),
        ('{"tcode": "ErrBckNotFound", "message": "bucket"}', "first", ("first", "bucket")),
        ('{"message": "%s"}' % ("x" * 400), "", ("", "x" * 300)),
        ('{"message": 5}', "X", ("X", "")),
        ("[1]", "X", ("X", "")),
        ("<html>", "X", ("X", "")),
    ],
)
def test_an_error_in_json_is_its_code_and_its_text(body: str, code: str, expected: tuple[str, str]):
    assert expected == json_error(body, code) == json_error(body.encode(), code)


def test_an_answer_that_breaks_off_is_asked_for_again():
    with FaultServer() as server:
        url = server.put("/a", b"x" * 100, plan=[Fault(cut=50)])
        wire = Wire(FakeClock(), Access())
        with pytest.raises(RetryError, match="before the answer was whole") as found:
            read_whole(wire.send("GET", url, {}, 5.0))

        assert found.value.at_once
        assert b"x" * 30 == read_whole(wire.send("GET", url, {}, 5.0), 30)


def test_a_refusal_whose_words_break_off_is_one_all_the_same():
    with FaultServer() as server:
        url = server.put("/a", b"", plan=[Fault(status=404, body=b"<Error><Code>NoSuchKey</Code>", lie=100)])
        with pytest.raises(NotFoundError, match=r"no such object: 404 Not Found \(NoSuchKey\)"):
            Wire(FakeClock(), Access()).send("GET", url, {}, 5.0)


@pytest.mark.parametrize(("size", "taken"), [(1 << 16, 1), ((1 << 16) + 1, 2)])
def test_the_line_of_a_redirect_is_kept_where_little_is_left_on_it(size: int, taken: int):
    with FaultServer() as server:
        target = server.put("/b", b"data")
        url = server.put("/a", b"", plan=[Fault(status=307, headers={"Location": target}, body=bytes(size))])

        assert b"data" == read_whole(Wire(FakeClock(), Access()).send("GET", url, {}, 5.0))
        assert (taken, ["/a", "/b"]) == (server.taken, [request.path for request in server.requests])


def test_every_status_is_a_refusal_an_absence_something_that_passes_or_final():
    found: dict[str, set[int]] = {}
    with FaultServer() as server:
        for status in [each.value for each in http.HTTPStatus if each >= 400]:
            url = server.put("/a", b"", plan=[Fault(status=status)])
            with pytest.raises((StoreError, NotFoundError, RetryError)) as caught:
                Wire(FakeClock(), Access()).send("GET", url, {}, 5.0, accept=WRITTEN)
            passes = isinstance(caught.value, RetryError)
            found.setdefault("passes" if passes else f"{caught.value.code} {bool(caught.value.hint)}", set()).add(status)

    assert {408, 425, 429, 500, 502, 503, 504, 506, 507, 508, 510, 511} == found.pop("passes")
    assert {"E_AUTH True": {401, 403, 407}, "E_NOT_FOUND True": {404, 410}} == {
        code: found.pop(code) for code in list(found) if "True" in code
    }
    assert ["E_NETWORK False"] == list(found)


@pytest.mark.parametrize("status", [400, 403, 404])
def test_a_refusal_names_where_it_was_redirected_to(status: int):
    with FaultServer() as server:
        target = server.put("/b", b"", plan=[Fault(status=status, times=2)])
        url = server.put("/a", b"", plan=[Fault(status=307, headers={"Location": f"{target}?sig=planted"})])
        said = []
        for each in (url, target):
            with pytest.raises((StoreError, NotFoundError)) as caught:
                Wire(FakeClock(), Access()).send("GET", each, {}, 5.0)
            said.append(caught.value.message)

    assert [True, False] == [f"({target}?sig=" in each and "where the server redirected to)" in each for each in said]
    assert "planted" not in "".join(said)


@each_case(
    ("target", "expected"),
    [
        ("http://host/b", {"Authorization": "Basic bWU6cEB3", "X-Key": "own"}),
        ("http://HOST:80/b", {"Authorization": "Basic bWU6cEB3", "X-Key": "own"}),
        ("http://host:81/b", {}),
        ("https://host/b", {}),
        ("http://other/b", {"X-Key": "of another"}),
    ],
)
def test_what_a_url_or_its_origin_has_goes_to_no_other(target: str, expected: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    given = {"http://host": {"X-Key": "own"}, "http://other": {"X-Key": "of another"}}
    monkeypatch.setenv("TARVIZ_HTTP_HEADERS", json.dumps(given))

    assert expected == Wire(FakeClock(), Access()).credentials("GET", "http://me:p%40w@host/a", target, {}, b"")
