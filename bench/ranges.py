"""Records of a shard far away by number: eight ranges in flight, of an S3 bucket that nginx serves on this machine."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench import Figure, Side, sweep
from bench._figure import Prepare

SHARD = "photo-0.tar"
READS, AT_ONCE = 400, 8


@cache
def address(data: Path) -> str:
    """The server of the folder above the data: the folder itself is the bucket. It ends with the process."""
    from tests.servers.local import web_server

    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(web_server(data.resolve().parent)).url


def numbers() -> list[int]:
    return np.random.default_rng(0).integers(0, 1_500, READS).tolist()


def at_once(read: Callable[[int], int]) -> Callable[[], int]:
    def work() -> int:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return sum(count > 0 for count in pool.map(read, numbers()))

    return work


def tarviz_ranges(data: Path) -> Callable[[], int]:
    from tarviz import index

    os.environ |= {"AWS_ENDPOINT_URL": address(data), "AWS_SKIP_SIGNATURE": "true"}
    made = index(f"s3://{data.resolve().name}/{SHARD}")
    return at_once(lambda number: len(made[number]["jpg"]))


def obstore_ranges(threads: bool, client: dict[str, Any]) -> Prepare:
    """As many in flight by threads, or in an event loop."""

    def prepare(data: Path) -> Callable[[], int]:
        import obstore
        from obstore.store import S3Store

        from tarviz import index

        spans = index(str(data / SHARD)).shards[0].span
        options = {
            "endpoint": address(data),
            "skip_signature": True,
            "region": "us-east-1",
            "client_options": {"allow_http": True, **client},
        }
        store = S3Store(data.resolve().name, **options)

        def read(number: int) -> int:
            begin, end = spans(number)
            return len(obstore.get_range(store, SHARD, start=begin, end=end))

        async def read_in_loop(each: Iterator[int]) -> int:
            count = 0
            for number in each:
                begin, end = spans(number)
                count += len(await obstore.get_range_async(store, SHARD, start=begin, end=end)) > 0
            return count

        async def all_in_loop() -> int:
            each = iter(numbers())
            return sum(await asyncio.gather(*(read_in_loop(each) for _ in range(AT_ONCE))))

        return at_once(read) if threads else lambda: asyncio.run(all_in_loop())

    return prepare


CLIENTS: dict[str, dict[str, Any]] = {
    "its client's defaults": {},
    "HTTP/1 only": {"http1_only": True},
    "no idle limit": {"pool_idle_timeout": "1h"},
}
FIGURES = [
    Figure(
        "ranges-s3",
        "records by number from S3, eight in flight, photos",
        Side("tarviz", tarviz_ranges),
        Side("bare obstore.get_range", sweep(obstore_ranges, {"threads": True, "asyncio": False}, CLIENTS)),
        at_least=0.7,
        sets=("photo",),
        packages=("obstore",),
    ),
]
