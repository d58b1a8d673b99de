"""`Daemon`: a server in a process of its own, which tests end without a word and start again under the same address."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import IO, Any, Self


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as place:
        port: int = place.getsockname()[1]
        return port


class Daemon:
    """The command `argv`, which answers at `url` once it serves. A context manager: it runs inside of its `with`.

    `url` is `tcp://host:port` for what is no HTTP.
    It is ended by its own id, and gets no Ctrl-C of this process. What it says goes to a file: a pipe that nobody reads would stop it.
    """

    def __init__(self, argv: Sequence[str], url: str, *, env: Mapping[str, str] | None = None) -> None:
        self.url = url
        self._argv = list(argv)
        self._env = env
        self._kept = contextlib.ExitStack()
        self._log: IO[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Begin, and return once it answers; `RuntimeError` with what it said where it does not."""
        if self.runs:
            return
        self._let_go()
        with contextlib.ExitStack() as stack:
            self._log = stack.enter_context(tempfile.TemporaryFile())
            self._kept = stack.pop_all()
        self._process = subprocess.Popen(
            self._argv, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, env=self._env, start_new_session=True
        )
        try:
            self._await()
        except BaseException:
            self.kill()
            self._let_go()
            raise

    def kill(self) -> None:
        """SIGKILL: it is gone when this returns, and its connections with it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """End it kindly, or else by force."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
        self._let_go()

    def _let_go(self) -> None:
        self._kept.close()
        self._log = self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _await(self) -> None:
        assert self._log is not None
        end = time.monotonic() + 60
        while time.monotonic() < end and self.runs:
            try:
                _meet(self.url)
            except urllib.error.HTTPError as error:
                error.close()
                return  # it answers, whatever it says
            except OSError:
                time.sleep(0.05)
                continue
            return
        self._log.seek(0)
        said = self._log.read()[-2000:]
        raise RuntimeError(f"{self._argv!r} does not answer: {said.decode('utf-8', 'replace')[-500:]}")


def _meet(url: str) -> None:
    if url.startswith("tcp://"):
        host, _, port = url.removeprefix("tcp://").rpartition(":")
        socket.create_connection((host, int(port)), 5).close()
    else:
        ask("GET", url)


def ask(method: str, url: str, said: Any = None) -> None:
    """One request to a server of this machine, whatever proxy the environment names; `said` goes with it as JSON."""
    body = None if said is None else json.dumps(said).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5) as answer:
        answer.read()
