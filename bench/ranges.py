"""Records of a shard far away by number: eight ranges in flight, of an S3 bucket that nginx serves on this machine."""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np

from bench import Figure, Side

SHARD = "photo-0.tar"
READS, AT_ONCE = 400, 8


@cache
def address(data: Path) -> str:
    """The server of the folder above the data: the folder itself is the bucket. It ends with the process."""
    from tests.servers.local import web_server

    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(web_server(data.resolve().parent)).url


def at_once(read: Callable[[int], int]) -> Callable[[], int]:
    numbers = np.random.default_rng(0).integers(0, 1_500, READS).tolist()

    def work() -> int:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return sum(count > 0 for count in pool.map(read, numbers))

    return work


def tarviz_ranges(data: Path) -> Callable[[], int]:
    from tarviz import index

    os.environ |= {"AWS_ENDPOINT_URL": address(data), "AWS_SKIP_SIGNATURE": "true"}
    made = index(f"s3://{data.resolve().name}/{SHARD}")
    return at_once(lambda number: len(made[number]["jpg"]))


def obstore_ranges(data: Path) -> Callable[[], int]:
    import obstore
    from obstore.store import S3Store

    from tarviz import index

    spans = index(str(data / SHARD)).shards[0].span
    options = {"endpoint": address(data), "skip_signature": True, "region": "us-east-1", "client_options": {"allow_http": True}}
    store = S3Store(data.resolve().name, **options)

    def read(number: int) -> int:
        begin, end = spans(number)
        return len(obstore.get_range(store, SHARD, start=begin, end=end))

    return at_once(read)


FIGURES = [
    Figure(
        "ranges-s3",
        "records by number from S3, eight in flight, photos",
        Side("tarviz", tarviz_ranges),
        Side("bare obstore.get_range", obstore_ranges),
        at_least=0.7,
        sets=("photo",),
        packages=("obstore",),
    ),
]
