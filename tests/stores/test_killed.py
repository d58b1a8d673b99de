"""Real servers killed by SIGKILL while they are read, and started again: every byte comes, once and in order."""

from __future__ import annotations

import hashlib
import io
import itertools
import random
import socket
import tarfile
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import tarviz
from tarviz import stores
from tarviz.model.errors import StoreError
from tarviz.model.types import URL
from tarviz.stores.ais import AisStore
from tarviz.stores.base import Store
from tarviz.stores.http import HttpStore
from tarviz.stores.retry import Clock
from tarviz.stores.s3 import S3Store
from tests.servers.aistore_processes import Processes
from tests.servers.clock import FakeClock
from tests.servers.daemons import Daemon
from tests.servers.local import nginx_command, web_server
from tests.servers.swift import KEYS, Swift, is_installed

pytestmark = pytest.mark.programs  # tests/testing/test_servers.py kills a server in `make test`

COUNT = 320
NAMES = ("one.tar", "x.tar")  # one on each target of an AIStore
needs_nginx = pytest.mark.skipif(nginx_command() is None, reason="nginx is not installed")
needs_swift = pytest.mark.skipif(not is_installed(), reason="swift is not installed: make oracles, or pip install swift pyeclib")
CASES = [
    pytest.param("http", "nginx", ("nginx",), marks=needs_nginx, id="http-nginx"),
    pytest.param("s3", "nginx", ("nginx",), marks=needs_nginx, id="s3-nginx"),
    pytest.param("s3", "swift", ("proxy",), marks=needs_swift, id="s3-swift-proxy"),
    pytest.param("s3", "swift", ("object",), marks=needs_swift, id="s3-swift-object"),
    pytest.param("ais", "ais", ("t1",), id="ais-t1"),
    pytest.param("ais", "ais", ("t2",), id="ais-t2"),
    pytest.param("ais", "ais", ("t1", "proxy"), id="ais-t1-and-proxy"),
]


def fields(number: int) -> dict[str, bytes]:
    return {"cls": str(number).encode(), "bin": random.Random(number).randbytes(200_000 + number)}


@pytest.fixture(scope="module")
def shard() -> bytes:
    """64 MB in 320 records: several times what the kernel's buffers hold of a connection."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for number in range(COUNT):
            for ext, data in fields(number).items():
                info = tarfile.TarInfo(f"{number:05d}.{ext}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return made.getvalue()


class BackAgain(Clock):
    """A clock that starts the killed servers again when a reader waits for the next attempt: it has met their absence then."""

    def __init__(self, servers: list[Daemon]) -> None:
        self.servers = servers
        self.times = 0
        self.lock = threading.Lock()

    def wait(self, seconds, stop):
        with self.lock:
            self.times += not all(server.runs for server in self.servers)
            for server in self.servers:
                server.start()
        super().wait(seconds, stop)


@dataclass
class Place:
    """A shard on a server, and the processes of it that are killed."""

    url: URL
    kind: Callable[..., Store]
    killed: list[Daemon]

    def kill(self) -> None:
        for server in self.killed:
            server.kill()


@dataclass
class Servers:
    """Processes by name, the settings that lead to them, and the URL of the shard by the process that has it."""

    nodes: dict[str, Daemon]
    settings: dict[str, str]
    url: Callable[[str, str], str] = lambda kind, node: f"{kind}://data/one.tar"


def nginx(stack: ExitStack, folder: Path, shard: bytes) -> Servers:
    (folder / "data" / "one.tar").write_bytes(shard)
    server = stack.enter_context(web_server(folder))
    settings = {"AWS_ENDPOINT_URL": server.url, "AWS_SKIP_SIGNATURE": "true"}
    return Servers({"nginx": server}, settings, lambda kind, _: f"{server.url if kind == 'http' else 's3:/'}/data/one.tar")


def swift(stack: ExitStack, folder: Path, shard: bytes) -> Servers:
    there = stack.enter_context(Swift())
    settings = {"AWS_ENDPOINT_URL": there.url, "AWS_ACCESS_KEY_ID": KEYS[0], "AWS_SECRET_ACCESS_KEY": KEYS[1]}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        S3Store().wire.send("PUT", URL("s3://data/"), {}, 30.0).close()
        with S3Store().create(URL("s3://data/one.tar")) as sink:
            sink.write(shard)
    return Servers(there.servers, settings)


def ais(stack: ExitStack, folder: Path, shard: bytes) -> Servers:
    for name in NAMES:
        (folder / "data" / name).write_bytes(shard)
    cluster = stack.enter_context(Processes(folder))
    names = {cluster.target_of("data", name): name for name in NAMES}
    return Servers(cluster.nodes, {"AIS_ENDPOINT": cluster.url}, lambda _, node: f"ais://data/{names[node]}")


@pytest.fixture(scope="module")
def started(shard, tmp_path_factory):
    """Servers by their name, started once."""
    with ExitStack() as stack:

        @cache
        def start(name: str) -> Servers:
            folder = tmp_path_factory.mktemp(name)
            (folder / "data").mkdir()
            return {"nginx": nginx, "swift": swift, "ais": ais}[name](stack, folder, shard)

        yield start


@pytest.fixture
def place(request, started, monkeypatch):
    kind, server, names = request.param
    servers = started(server)
    for name, value in servers.settings.items():
        monkeypatch.setenv(name, value)
    store = {"http": HttpStore, "s3": S3Store, "ais": AisStore}[kind]
    killed = [servers.nodes[name] for name in names]
    yield Place(URL(servers.url(kind, names[0])), store, killed)
    for each in killed:
        each.start()


def on(*names):
    """The same test on several servers, all of them where none is named."""
    chosen = [case for case in CASES if not names or case.id in names]
    cases = [pytest.param(case.values, marks=case.marks, id=case.id) for case in chosen]
    return pytest.mark.parametrize("place", cases, indirect=True)


@pytest.fixture
def small_buffers(monkeypatch):
    """Connections of which the kernel holds little: it may let them grow to 32 MB, so that a reader does not meet a server's end."""
    connect = socket.socket.connect

    def bounded(line, address):
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
        connect(line, address)

    monkeypatch.setattr(socket.socket, "connect", bounded)


@on()
class TestKilledAndStartedAgain:
    @pytest.mark.usefixtures("small_buffers")
    def test_a_stream_is_byte_identical(self, place, shard):
        clock = BackAgain(place.killed)
        store, found = place.kind(clock=clock, stall_timeout=60), hashlib.sha256()
        buffer = memoryview(bytearray(1 << 20))
        moments = (2, 18, 34)  # MiB: what the kernel holds of one connection is read in between
        with store.open(place.url) as stream:
            for number in itertools.count():
                if number in moments:
                    place.kill()
                if not (count := stores.fill(stream, buffer)):
                    break
                found.update(buffer[:count])

        assert hashlib.sha256(shard).digest() == found.digest()
        assert len(moments) == clock.times

    def test_all_records_come(self, place, monkeypatch):
        store = place.kind(clock=BackAgain(place.killed), stall_timeout=60)
        monkeypatch.setattr("tarviz.stores._store", lambda scheme: store)
        found = []
        for number, record in enumerate(tarviz.records(place.url)):
            if number in (3, 150):
                place.kill()
            found.append((record.key, {ext: bytes(record[ext]) for ext in record}))

        assert [(f"{number:05d}", fields(number)) for number in range(COUNT)] == found

    def test_a_record_by_its_number_comes(self, place, monkeypatch):
        clock = BackAgain(place.killed)
        store = place.kind(clock=clock, stall_timeout=60)
        monkeypatch.setattr("tarviz.stores._store", lambda scheme: store)
        index = tarviz.index(place.url)
        for times, number in enumerate((7, 310, 80), 1):
            place.kill()

            assert fields(number) == {ext: bytes(data) for ext, data in index[number].items()}
            assert times == clock.times


@on("http-nginx", "ais-t1")
def test_one_that_stays_away_is_said(place):
    store = place.kind(clock=FakeClock(), stall_timeout=60)
    with store.open(place.url) as stream:
        stores.fill(stream, memoryview(bytearray(1 << 20)))
        place.kill()
        with pytest.raises(StoreError, match=r"gave up after \d+ attempts .*refused") as caught:
            stores.fill(stream, memoryview(bytearray(1 << 27)))

    assert ("E_NETWORK", place.url) == (caught.value.code, caught.value.shard)


@on("s3-swift-proxy", "s3-swift-object")
def test_a_write_is_whole_or_nothing(place, shard, monkeypatch, request):
    monkeypatch.setattr("tarviz.stores._remote.upload.PART", 5 << 20)
    store, url = place.kind(clock=BackAgain(place.killed), stall_timeout=60), URL(f"s3://data/new-{request.node.callspec.id}.tar")
    with store.create(url) as sink:
        for number, at in enumerate(range(0, len(shard), 1 << 20)):
            if number in (7, 20):
                place.kill()
            sink.write(shard[at : at + (1 << 20)])
        for server in place.killed:
            server.start()
        assert not stores.is_there(store, url)

    with store.open(url) as stream:
        found = bytearray(len(shard) + 1)
        assert shard == found[: stores.fill(stream, memoryview(found))]
