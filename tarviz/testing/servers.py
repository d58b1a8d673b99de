"""Servers of object stores on this machine, for tests and notebooks: each on a free port, gone at the end of its `with`."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as place:
        port: int = place.getsockname()[1]
        return port


@contextlib.contextmanager
def s3_server(*buckets: str) -> Iterator[str]:
    """The address of an S3 server (moto), with these buckets in it. Google's XML interface is much the same."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with _process([sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], f"{url}/"):
        for bucket in buckets:
            _ask("PUT", f"{url}/{bucket}")
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
        with _process(argv, f"http://127.0.0.1:{port}/"):
            yield f"http://127.0.0.1:{port}/devstoreaccount1"


def nginx_command() -> str | None:
    """The nginx of this machine, or None. `NGINX` names another one."""
    return os.environ.get("NGINX") or shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@dataclass
class WebServer:
    """A web server that runs: its address, and how to end it without a word."""

    url: str
    kill: Callable[[], None]


@contextlib.contextmanager
def web_server(folder: Path, *, port: int | None = None) -> Iterator[WebServer]:
    """nginx serving a folder."""
    command = nginx_command()
    if command is None:
        raise FileNotFoundError("nginx is not installed")
    port = port or free_port()
    with tempfile.TemporaryDirectory() as place:
        config = Path(place) / "nginx.conf"
        temporary = "".join(f"{kind}_temp_path {place}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        site = f"listen 127.0.0.1:{port}; root {folder}; autoindex on; autoindex_format json; tcp_nodelay on;"
        http = f"access_log off; {temporary} server {{ {site} }}"
        config.write_text(f"daemon off; master_process off; pid {place}/pid; error_log stderr crit; events {{}} http {{ {http} }}")
        with _process([command, "-p", place, "-c", str(config), "-e", "stderr"], f"http://127.0.0.1:{port}/") as process:
            yield WebServer(f"http://127.0.0.1:{port}", process.kill)


@contextlib.contextmanager
def _process(argv: list[str], url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server that has answered once; ended by its own id. What it says goes to a file: a pipe that nobody reads stops it when full."""
    nothing = subprocess.DEVNULL
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(argv, stdin=nothing, stdout=nothing, stderr=log, start_new_session=True) as process,
    ):
        try:
            _await(process, url, log)
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _await(process: subprocess.Popen[bytes], url: str, log: IO[bytes]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            _ask("GET", url)
        except urllib.error.HTTPError as error:
            error.close()
            return  # it answers, whatever it says
        except OSError:
            time.sleep(0.05)
            continue
        return
    log.seek(0)
    said = log.read(2000)
    raise RuntimeError(f"{process.args!r} does not answer: {said.decode('utf-8', 'replace')[:500]}")


def _ask(method: str, url: str) -> None:
    request = urllib.request.Request(url, method=method)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5) as answer:
        answer.read()
