"""Shards far away: 1 GB by loopback against the barest client of each kind of store, records over HTTP, and over a slow line.

nginx serves them all: it is quicker than any client, so what is measured is the client. AIStore's redirect to a target is one of its rules.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import statistics
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

from bench import Figure, Side, Value, sweep
from bench._data import GIGABYTE, PHOTO
from bench._figure import Prepare
from bench.browse import BANDWIDTH, LATENCY, place, run
from bench.iterate import webdataset

ROUNDS = 3

# argv: shard, latency, bandwidth. Prints the milliseconds to the first record, and the share of the line that was used.
_LINE = """
import tarviz
from tarviz.testing.faults import FaultServer
shard, bandwidth, first = Path(sys.argv[1]), float(sys.argv[3]), None
with FaultServer(latency=float(sys.argv[2]), bandwidth=bandwidth) as server:
    url = server.put("/a.tar", shard)
    begin = time.perf_counter()
    for record in tarviz.records(url):
        first = first or since(begin)
    print(json.dumps([first, shard.stat().st_size / bandwidth / since(begin) * 1000]))
"""


@cache
def address(data: Path) -> str:
    """The server of the folder above the data, which is the bucket. `/v1/objects` is AIStore's way to it."""
    from tests.servers.local import web_server

    above = data.resolve().parent
    proxy = "location /v1/objects/ { return 307 $scheme://$http_host/target$uri?$args&pid=proxy; }"
    target = f"location /target/v1/objects/ {{ alias {above}/; }}"
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(web_server(above, locations=f"{proxy} {target}")).url


def far(data: Path, scheme: str, name: str) -> str:
    """A shard's URL, with what leads to its server in the environment."""
    server, bucket = address(data), data.resolve().name
    os.environ |= {"AWS_ENDPOINT_URL": server, "AWS_SKIP_SIGNATURE": "true", "AIS_ENDPOINT": server}
    return f"{server if scheme == 'http' else f'{scheme}:/'}/{bucket}/{name}"


def cut(data: Path, scheme: str, name: str, unit: str) -> Callable[[], int]:
    """All records, each of their fields looked at: bytes or records."""
    from tarviz import records

    url = far(data, scheme, name)

    def work() -> int:
        count = size = 0
        for record in records(url):
            size, count = size + len(record["jpg"]) + len(record["cls"]), count + 1
        return size if unit == "bytes" else count

    return work


def drained(pieces: Callable[[], Iterable[bytes]]) -> Callable[[], int]:
    return lambda: sum(len(piece) for piece in pieces())


def until_empty(read: Callable[[], bytes]) -> Iterable[bytes]:
    return iter(read, b"")


def bare_urllib3(streamed: bool, size: int) -> Prepare:
    """Pieces of its stream, or read one by one."""

    def prepare(data: Path) -> Callable[[], int]:
        import urllib3

        url, manager = far(data, "http", GIGABYTE), urllib3.PoolManager()

        def pieces() -> Iterable[bytes]:
            answer = manager.request("GET", url, preload_content=False, decode_content=False)
            yield from answer.stream(size, decode_content=False) if streamed else until_empty(partial(answer.read, size))
            answer.release_conn()

        return drained(pieces)

    return prepare


def bare_obstore(size: int, at_once: int) -> Prepare:
    """One answer in pieces of `size` at least, or ranges of that size, so many in flight."""

    def prepare(data: Path) -> Callable[[], int]:
        import obstore
        from obstore.store import S3Store

        options = {"endpoint": address(data), "skip_signature": True, "region": "us-east-1", "client_options": {"allow_http": True}}
        store, length = S3Store(data.resolve().name, **options), (data / GIGABYTE).stat().st_size

        def part(start: int) -> int:
            return len(obstore.get_range(store, GIGABYTE, start=start, end=min(start + size, length)))

        def ranges() -> int:
            with ThreadPoolExecutor(at_once) as pool:
                return sum(pool.map(part, range(0, length, size)))

        return ranges if at_once else drained(lambda: obstore.get(store, GIGABYTE).stream(size))

    return prepare


def bare_aistore(raw: bool, size: int) -> Prepare:
    """Its answer read piece by piece, or the reader's own pieces."""

    def prepare(data: Path) -> Callable[[], int]:
        from aistore.sdk import Client

        shard = Client(address(data)).bucket(data.resolve().name).object(GIGABYTE)

        def pieces() -> Iterable[bytes]:
            reader = shard.get_reader(chunk_size=size)
            yield from until_empty(partial(reader.raw().read, size)) if raw else reader

        return drained(pieces)

    return prepare


@cache
def slow(data: Path) -> tuple[float, float]:
    """Milliseconds to the first record over a slow line, and the share of the line that reading it all used."""
    with place() as folder:
        found = [json.loads(run(_LINE, data / PHOTO.replace("{0..3}", "0"), LATENCY, BANDWIDTH, cache=folder)) for _ in range(ROUNDS)]
    firsts, shares = zip(*found, strict=True)
    return statistics.median(firsts), statistics.median(shares)


def against(scheme: str, label: str, peer: dict[str, Prepare], package: str) -> list[Figure]:
    ours = Side("tarviz", partial(cut, scheme=scheme, name=GIGABYTE, unit="bytes"))
    figures = []
    for name, what, bounds in (
        ("", "records cut", {"at_least": 0.8}),
        ("-cpu", "records cut (CPU time)", {"at_most": 1.25, "clock": time.process_time}),
    ):
        figures.append(
            Figure(
                f"stream-{scheme}{name}",
                f"1 GB of photos over loopback, {scheme}, {what}",
                ours,
                Side(label, peer),
                sets=("gigabyte",),
                unit="bytes",
                packages=(package,),
                **bounds,  # type: ignore[arg-type]
            )
        )
    return figures


PIECES = {f"{size} kB": size << 10 for size in (128, 1024, 8192)}
LARGE = {f"{size} MB": size << 20 for size in (2, 10)}
RANGES = {"one answer": 0, "2 ranges at a time": 2, "8 ranges at a time": 8}
_FAR = "photos over HTTP, 40 ms latency, 100 Mbit/s"

FIGURES = [
    *against("http", "bare urllib3", sweep(bare_urllib3, {"stream": True, "read": False}, PIECES), "urllib3"),
    *against("s3", "bare obstore", sweep(bare_obstore, LARGE, RANGES), "obstore"),
    *against("ais", "the AIStore SDK", sweep(bare_aistore, {"raw": True, "its reader": False}, PIECES), "aistore"),
    Figure(
        "records-http",
        "records over HTTP, raw bytes, photo",
        Side("tarviz", partial(cut, scheme="http", name=PHOTO, unit="records")),
        webdataset("photo", "webdataset (curl)", lambda data, name: far(data, "http", name)),
        at_least=4,
        sets=("photo",),
        packages=("webdataset",),
    ),
    Figure("line-share", f"{_FAR}: of the line", Value(lambda data: slow(data)[1], "of it"), at_least=0.95, sets=("photo",)),
    Figure("line-first", f"{_FAR}: the first record", Value(lambda data: slow(data)[0], "ms"), at_most=300, sets=("photo",)),
]
