"""What the words of http.client mean, where it gives words alone; the rest is tried in `tests/stores/test_http.py`."""

from __future__ import annotations

import http.client
import socket
import threading

import pytest
import urllib3

from tarviz.model.errors import StoreError, UsageError
from tarviz.stores._remote.wire import _raise
from tarviz.stores.retry import RetryError


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
