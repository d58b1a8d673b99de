"""Reading from real servers that are killed and come back."""

from __future__ import annotations

import hashlib
import random
import urllib.error
import urllib.request

import pytest

from tarviz import stores
from tarviz.model.types import URL
from tests.servers.daemons import free_port
from tests.servers.local import nginx_command, s3_server, web_server

DATA = random.Random(9).randbytes(30_000_000)


@pytest.mark.matrix
def test_a_server_that_says_much_goes_on_answering():
    pytest.importorskip("moto.server", reason="moto serves S3: pip install 'moto[server,s3]'")
    with s3_server("data") as address:
        for _ in range(100):  # a line of its log each, 200 kB together: more than a pipe holds
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(f"{address}/data/{'n' * 2000}", timeout=30)


@pytest.mark.skipif(nginx_command() is None, reason="nginx is not installed")
class TestNginx:
    @pytest.mark.parametrize("scheme", ["http", "s3"])
    def test_killed_and_started_again_in_the_middle_of_a_stream(self, scheme, tmp_path, monkeypatch):
        (tmp_path / "data").mkdir()
        (tmp_path / "data/a.tar").write_bytes(DATA)
        port = free_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
        url = URL(f"http://127.0.0.1:{port}/data/a.tar" if scheme == "http" else "s3://data/a.tar")
        found = hashlib.sha256()
        buffer = memoryview(bytearray(1_000_000))
        with web_server(tmp_path, port=port) as server:
            stream = stores.of(url).open(url)
            for _ in range(3):
                found.update(buffer[: stores.fill(stream, buffer)])
            server.kill()
        with web_server(tmp_path, port=port), stream:
            while count := stores.fill(stream, buffer):
                found.update(buffer[:count])

        assert hashlib.sha256(DATA).hexdigest() == found.hexdigest()

    def test_its_list_of_a_folder_has_sizes(self, tmp_path):
        (tmp_path / "a b.tar").write_bytes(b"some bytes")
        with web_server(tmp_path) as server:
            assert [(f"{server.url}/a%20b.tar", 10)] == [
                (each.url, each.size) for each in stores.of(server.url).list(URL(f"{server.url}/"))
            ]
