"""A server that is every host of the clouds, where it is named as a proxy: it logs who asks for what, and gives tokens."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.servers.local import tls_context

_WHO = ("client_id", "refresh_token", "scope", "resource", "subject_token", "audience", "scopes", "delegates")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came; the names of its headers in lower case."""

    method: str
    address: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Clouds:
    """Where the server is, and what it was asked for, tokens apart."""

    url: str
    asked: list[Asked] = field(default_factory=list)
    tokens: list[Asked] = field(default_factory=list)


@contextlib.contextmanager
def cloud_server(folder: Path, hosts: tuple[str, ...]) -> Iterator[Clouds]:
    """The server; its certificate, `cert.pem` in `folder`, is for these hosts."""
    tls = tls_context(folder, ",".join(f"DNS:{host}" for host in hosts))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        found = Clouds(f"http://127.0.0.1:{server.server_port}")
        server.clouds, server.tls = found, tls  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


def name_as_proxy(monkeypatch: pytest.MonkeyPatch, server: Clouds, folder: Path) -> None:
    """Have every library go through the server, and trust its certificate; metadata servers of machines are not asked."""
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, server.url)
        monkeypatch.setenv(name.upper(), server.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "169.254.169.254")
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.setenv(name, str(folder / "cert.pem"))


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 20.0
    _tunnel = ""

    def do_CONNECT(self) -> None:
        self.send_response(200)
        self.end_headers()
        self._tunnel = f"https://{self.path.removesuffix(':443')}"
        tls: ssl.SSLContext = self.server.tls  # type: ignore[attr-defined]
        self.connection = tls.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", 0)
        self.close_connection = False

    def finish(self) -> None:
        super().finish()
        self.connection.close()

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        address = self.path if self.path.startswith("http") else f"{self._tunnel or 'http://' + self.headers['Host']}{self.path}"
        asked = Asked(self.command, address, {name.lower(): value for name, value in self.headers.items()}, body)
        clouds: Clouds = self.server.clouds  # type: ignore[attr-defined]
        answer = _answer(asked)
        (clouds.asked if answer is None else clouds.tokens).append(asked)
        text = b"" if answer is None else json.dumps(answer).encode()
        text = b'{"generation": "1", "size": "0"}' if "/storage/v1/" in asked.address else text  # how Google describes an object
        self.send_response(401 if answer and "error" in answer else 200)
        if asked.headers.get("metadata-flavor"):
            self.send_header("Metadata-Flavor", "Google")
        for name, value in {"Content-Type": "application/json", "ETag": '"1"', "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        self.send_header("Last-Modified", "Mon, 27 Jul 2009 12:28:53 GMT")
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_PUT = do_HEAD = do_GET  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        return


def _answer(asked: Asked) -> dict[str, Any] | None:
    """What a service of tokens says; None where it is an object that was asked for. A token tells by whom and where it was asked for."""
    parts = urlsplit(asked.address)
    place = f"{parts.scheme}://{parts.netloc}"
    if parts.path.endswith("openid-configuration"):
        tenant = f"{place}{parts.path.removesuffix('/.well-known/openid-configuration')}"
        base = tenant.removesuffix("/v2.0")
        ends = {f"{name}_endpoint": f"{base}/oauth2/v2.0/{name}" for name in ("authorization", "token", "device_authorization")}
        return {"issuer": tenant, **ends}
    if parts.path.endswith("/discovery/instance"):
        return {"metadata": []}
    if not any(word in parts.path.lower() for word in ("token", "/computemetadata/", "/msi")):
        return None
    if "/computeMetadata/" in parts.path and not parts.path.endswith("/token"):
        return {"email": "machine@host", "scopes": ["devstorage"], "aliases": ["default"]}
    if b"=wrong-" in asked.body:
        return {"error": "invalid_client", "error_description": f"AADSTS7000215: this is wrong: {asked.body!r}"}
    said = dict(parse_qsl(parts.query) or ()) | dict(parse_qsl(asked.body.decode()) or ())
    if asked.body[:1] == b"{":
        said |= {name: str(value) for name, value in json.loads(asked.body).items()}
    who = [f"{name}={said[name]}" for name in _WHO if name in said]
    claims = said.get("assertion", said.get("client_assertion", "")).split(".")
    if len(claims) == 3:
        decoded = json.loads(base64.urlsafe_b64decode(claims[1] + "=="))
        who += [f"{name}={decoded[name]}" for name in ("iss", "sub", "scope") if name in decoded]
    proof = base64.urlsafe_b64encode(f"{place}{parts.path} {who}".encode()).decode()
    times = {"resource": said.get("resource"), "expires_in": 3600, "expires_on": "4070908800", "expireTime": "2099-01-01T00:00:00Z"}
    return {"access_token": proof, "accessToken": proof, "token_type": "Bearer", **times}
