"""Servers in processes of their own: they answer, are killed, and serve again where they did."""

from __future__ import annotations

import sys
import urllib.request

import pytest

from tests.servers.daemons import Daemon, free_port


@pytest.fixture
def daemon(tmp_path):
    (tmp_path / "a.txt").write_text("some text")
    port = free_port()
    serve = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(tmp_path), str(port)]
    with Daemon(serve, f"http://127.0.0.1:{port}") as daemon:
        yield daemon


def fetch(daemon):
    with urllib.request.urlopen(f"{daemon.url}/a.txt", timeout=30) as answer:
        return answer.read()


def test_it_is_killed_and_serves_again_under_the_same_address(daemon):
    assert b"some text" == fetch(daemon)
    daemon.kill()
    assert not daemon.runs
    with pytest.raises(OSError, match="refused"):
        fetch(daemon)
    daemon.start()

    assert b"some text" == fetch(daemon)


def test_its_end_ends_the_process(daemon):
    daemon.close()

    assert not daemon.runs


def test_what_it_said_is_the_error_where_it_does_not_serve():
    with (
        pytest.raises(RuntimeError, match="no port today"),
        Daemon([sys.executable, "-c", "raise SystemExit('no port today')"], "http://127.0.0.1:1"),
    ):
        pass
