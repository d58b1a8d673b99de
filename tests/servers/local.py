"""Servers of object stores on this machine, for tests and notebooks: each on a free port, gone at the end of its `with`."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers.daemons import Daemon, ask, free_port


@contextlib.contextmanager
def s3_server(*buckets: str) -> Iterator[str]:
    """The address of an S3 server (moto), with these buckets in it."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with Daemon([sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], f"{url}/"):
        for bucket in buckets:
            ask("PUT", f"{url}/{bucket}")
        yield url


@contextlib.contextmanager
def google_emulator(*buckets: str) -> Iterator[str]:
    """The address of a server that speaks Google's JSON and nothing else (gcp-storage-emulator), with these buckets in it."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "gcp_storage_emulator", "start", "--host=127.0.0.1", f"--port={port}", "--in-memory"]
    with Daemon(command, f"{url}/"):
        for bucket in buckets:
            ask("POST", f"{url}/storage/v1/b", {"name": bucket})
        yield url


@contextlib.contextmanager
def token_server(**answer: Any) -> Iterator[tuple[str, list[bytes]]]:
    """The address of a token service that gives `answer` as JSON to everybody, and the bodies of the requests so far."""
    asked: list[bytes] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def google_pool(folder: Path, tokens: str, subject: str = "me") -> Path:
    """The file of an identity of Google that asks the service `tokens` for its token, showing it `subject`."""
    (folder / "subject").write_text(subject)
    kind = "urn:ietf:params:oauth:token-type:jwt"
    settings = {"type": "external_account", "audience": "//pool", "subject_token_type": kind, "token_url": tokens}
    path = folder / "google.json"
    path.write_text(json.dumps({**settings, "credential_source": {"file": str(folder / "subject")}}))
    return path


def azurite_command() -> list[str] | None:
    """What starts azurite, Microsoft's Azure server for tests, or None where it is not installed.

    `AZURITE` names it; `npm install -g azurite` brings it, and so does `make oracles`.
    """
    found = os.environ.get("AZURITE") or shutil.which("azurite-blob")
    return [found] if found else None


@contextlib.contextmanager
def azure_server() -> Iterator[str]:
    """The address of an Azure blob server (azurite) with its usual account, `devstoreaccount1`."""
    command = azurite_command()
    if command is None:
        raise FileNotFoundError("azurite is not installed: npm install -g azurite")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        argv = [*command, "--silent", "--disableTelemetry", "--skipApiVersionCheck", "--location", folder]
        argv += ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
        with Daemon(argv, f"http://127.0.0.1:{port}/"):
            yield f"http://127.0.0.1:{port}/devstoreaccount1"


def nginx_command() -> str | None:
    """The nginx of this machine, or None. `NGINX` names another one."""
    return os.environ.get("NGINX") or shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@contextlib.contextmanager
def web_server(folder: Path, *, port: int | None = None, locations: str = "") -> Iterator[Daemon]:
    """nginx serving a folder, in one process. `locations`: more of its configuration, inside of the server."""
    command = nginx_command()
    if command is None:
        raise FileNotFoundError("nginx is not installed")
    port = port or free_port()
    with tempfile.TemporaryDirectory() as place:
        config = Path(place) / "nginx.conf"
        temporary = "".join(f"{kind}_temp_path {place}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        site = f"listen 127.0.0.1:{port}; root {folder}; autoindex on; autoindex_format json; tcp_nodelay on; {locations}"
        http = f"access_log off; {temporary} server {{ {site} }}"
        config.write_text(f"daemon off; master_process off; pid {place}/pid; error_log stderr crit; events {{}} http {{ {http} }}")
        with Daemon([command, "-p", place, "-c", str(config), "-e", "stderr"], f"http://127.0.0.1:{port}") as server:
            yield server


def tls_context(folder: Path, name: str = "DNS:localhost") -> ssl.SSLContext:
    """What a server of that name shows: a certificate, `cert.pem` in `folder`, that is its own authority, and `key.pem`."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    named = ["-subj", "/CN=localhost", "-addext", f"subjectAltName={name}"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *named, "-keyout", str(key), "-out", str(cert)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("openssl makes no certificate here")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context
