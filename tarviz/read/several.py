"""Shards far away looked at several at a time: waiting for one server's answers is no reason not to ask for the next shard."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import TypeVar, cast

from tarviz import stores
from tarviz.model.errors import UsageError
from tarviz.model.types import URL

AT_ONCE = 16
R = TypeVar("R")


def stats(urls: Sequence[URL]) -> Generator[stores.Stat, None, None]:
    """What the stores say of each URL, in order, asked as in `several`: the first that is not there raises its error."""
    return several(urls, lambda url, _: stores.of(url).stat(url))


def several(urls: Sequence[URL], work: Callable[[URL, Callable[[], None]], R], jobs: int | None = None) -> Generator[R, None, None]:
    """What `work` makes of each shard, in order: of shards far away `jobs` (16) at a time, of those here one.

    `work` also gets what raises where its outcome is wanted no more, to be called now and then.
    """
    ended = threading.Event()

    def look() -> None:
        if ended.is_set():
            raise UsageError("nobody waits for it any more.", code="E_STOPPED")

    count = min(jobs or AT_ONCE, sum(url != "-" and not stores.is_local(url) for url in urls))
    if count < 2:
        yield from (work(url, look) for url in urls)
        return
    from concurrent.futures import ThreadPoolExecutor  # what looks at one shard does not wait for its import

    from tarviz.model.in_order import in_order

    def outcome(url: URL) -> tuple[R, None] | tuple[None, Exception]:
        try:
            return work(url, look), None
        except Exception as error:  # noqa: BLE001  raised where its turn comes
            return None, error

    with ThreadPoolExecutor(count, "tarviz-shards") as pool:
        try:
            with closing(in_order(iter(urls), outcome, pool, ahead=count)) as found:
                for made, error in found:
                    if error is not None:
                        raise error
                    yield cast("R", made)
        finally:
            ended.set()
