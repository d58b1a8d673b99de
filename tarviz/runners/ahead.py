"""Shards read by threads of their own, several at a time, whose records come in order, or as they are there."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Generic, TypeVar

from tarviz.read.report import ReadReport

T = TypeVar("T")
P = TypeVar("P")

_DEPTH = 2  # parts that a reading thread is ahead


def ahead(
    found: Sequence[T],
    opened: Callable[[T, ReadReport], Generator[P, None, None]],
    report: ReadReport,
    width: int,
    ordered: bool,
    depth: int = _DEPTH,
) -> Generator[P, None, None]:
    """What comes of shards (or pieces of them), `width` of them read at the same time, each by a thread that stays a few parts ahead.

    In shard order, or else round the shards that are open, whichever has a part. What goes wrong in a thread is raised here,
    where its shard's turn is.
    """
    waiting = deque(found)
    running: deque[ReadingThread[P]] = deque()
    ready = threading.Event()
    try:
        while waiting or running:
            while waiting and len(running) < width:
                running.append(ReadingThread(waiting.popleft(), opened, ready, depth))
            at = 0 if ordered else _ready(running, ready)
            item = running[at].queue.get()
            if item is not None and not isinstance(item, BaseException):
                yield item
                del item
                if not ordered:
                    running.rotate(-1 - at)
                continue
            report.merge(running[at].report)
            del running[at]
            if item is not None:
                raise item
    finally:
        for reader in running:
            reader.stop()


def _ready(running: deque[ReadingThread[P]], found: threading.Event) -> int:
    """The first reader that has something; waits until one has."""
    while True:
        found.clear()
        for at, reader in enumerate(running):
            if not reader.queue.empty():
                return at
        found.wait()


class ReadingThread(Generic[P]):
    """What comes of one shard, or another source, taken by a thread of its own: its queue gives it, at last None or what was raised."""

    def __init__(self, url: T, opened: Callable[[T, ReadReport], Generator[P, None, None]], found: threading.Event, depth: int) -> None:
        self.queue: queue.Queue[P | BaseException | None] = queue.Queue(depth)
        self.report = ReadReport()
        self._stopped = threading.Event()
        self._found = found
        self._thread = threading.Thread(target=self._read, args=(url, opened), name="tarviz-read", daemon=True)
        self._thread.start()

    def _read(self, url: T, opened: Callable[[T, ReadReport], Generator[P, None, None]]) -> None:
        last: BaseException | None = None
        try:
            with closing(opened(url, self.report)) as parts:
                for part in parts:
                    if not self._put(part):
                        return
                    del part
        except BaseException as error:  # noqa: BLE001  it is raised where the blocks are taken
            last = error
        if not self._stopped.is_set():
            self._put(last)

    def _put(self, item: P | BaseException | None) -> bool:
        self.queue.put(item)  # `stop` makes room for one that waits
        self._found.set()
        return not self._stopped.is_set()

    def stop(self) -> None:
        """End the thread and wait until it has closed its shard."""
        self._stopped.set()
        with self.queue.mutex:  # what it holds is let go
            self.queue.queue.clear()
            self.queue.not_full.notify()
        self._thread.join(timeout=0.1)
