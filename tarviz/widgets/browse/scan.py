"""The thread that scans shards while people already look: cached index, headers only, or one stream, whichever serves.

A plain local shard is read around its payloads; a remote or compressed one is streamed, and no further than what
is looked at wants, so that a look at the first records of a remote shard reads the first megabytes only.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

from tarviz import stores
from tarviz.formats.index import ShardIndex
from tarviz.model.config import options as configured
from tarviz.model.errors import DataError, Fault, StoreError, TarvizError
from tarviz.model.types import Duplicates
from tarviz.read.blocks import Blocks
from tarviz.read.headers import header_steps, packing
from tarviz.read.rules import Decided
from tarviz.read.shard import Shard
from tarviz.read.shard_index import cached_index, index_of, keep_index
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.read.walker import Walker
from tarviz.widgets.browse.rows import Rows, Segment, ShardRows, Spill
from tarviz.widgets.host.behind import failure, start_thread

AHEAD = 48
"""Records a streamed shard is scanned beyond what is looked at."""
_REMOTE_BLOCK = 512 << 10
_FIRST = 64
_FAULTS = 200
_READ = ("key_split", "concatenated", "block_size", "max_member_bytes", "max_ratio")


class Scan:
    """Scans the shards of `rows` on a thread of its own, in order, the one in `focus` first.

    `want` is how many records somebody wants to see (of the focus, or of all); streamed shards stop beyond it until
    it grows. `options` are those of an index (`duplicates="error"`), so that what is found can be kept as one.
    """

    def __init__(self, rows: Rows, options: ReadOptions, *, cache: bool) -> None:
        self.rows = rows
        self.options = options
        self.cache = cache
        self.focus: int | None = None
        self._want = 0
        self._all: set[object] = set()  # who wants everything scanned
        self._closed = False
        self._wake = threading.Condition()
        self._calm = threading.Condition()
        self._busy = 0
        self._runs: dict[int, Iterator[None]] = {}
        self._thread = start_thread("scan", self._work)

    def want(self, count: int) -> None:
        """Somebody looks at rows up to `count`."""
        with self._wake:
            self._want = max(self._want, count)
            self._wake.notify_all()

    def go_on(self, who: object = None) -> None:
        """Scan everything to its end, for somebody's sake."""
        with self._wake:
            self._all.add(who)
            self._wake.notify_all()

    def rest(self, who: object) -> None:
        """Somebody wants no more than what is looked at."""
        with self._wake:
            self._all.discard(who)

    def look_at(self, shard: int | None) -> None:
        """Scan this shard first; None: in order."""
        with self._wake:
            self.focus = shard
            self._want = 0
            self._wake.notify_all()

    def again(self, shard: ShardRows) -> None:
        """Forget what is known of a shard and scan it anew."""
        with self._wake:
            run = self._runs.pop(shard.number, None)
            fresh = ShardRows(shard.number, shard.url, changed=shard.changed)
            self.rows.shards[shard.number] = fresh
            self._wake.notify_all()
        if run is not None:
            shard.state = "done"
        shard.close()
        self.rows.touch(fresh)

    @contextmanager
    def calm(self) -> Iterator[None]:
        """Hold the scan back while pictures are being made: they need the same processor, and somebody waits for them."""
        with self._calm:
            self._busy += 1
        try:
            yield
        finally:
            with self._calm:
                self._busy -= 1
                self._calm.notify_all()

    def close(self) -> None:
        with self._wake:
            self._closed = True
            self._wake.notify_all()
        with self.rows.changed:
            self.rows.changed.notify_all()
        if self._thread is not threading.current_thread():
            self._thread.join(2)

    def _next(self) -> ShardRows | None:
        """The shard to go on with now; None when there is nothing to do."""
        shards = self.rows.shards
        ahead = [shards[self.focus]] if self.focus is not None and self.focus < len(shards) else []
        before = 0
        for shard in ahead + shards:
            have = shard.count if shard in ahead else before + shard.count
            if not shard.finished and (self._all or not _is_stream(shard) or have < self._want + AHEAD):
                return shard
            if not shard.finished and shard not in ahead:
                return None  # those after it are wanted even less
            before = have if shard not in ahead else before
        return None

    def _work(self) -> None:
        while True:
            with self._wake:
                while not self._closed and (shard := self._next()) is None:
                    self._pause()
                    self._wake.wait()
                if self._closed:
                    break
                assert shard is not None
                if (run := self._runs.get(shard.number)) is None:
                    run = self._runs[shard.number] = scan(shard, self.options, cache=self.cache)
            try:
                next(run)
            except StopIteration:
                self._runs.pop(shard.number, None)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault of this shard
                self._fail(shard, failure(error, "It cannot be scanned"))
            self.rows.touch(shard)
            if len(shard.segments) == 1:
                time.sleep(0.01)  # whoever waited for the first rows goes first
            with self._calm:
                self._calm.wait_for(lambda: self._busy == 0, timeout=0.3)
        for run in self._runs.values():
            run.close()  # type: ignore[attr-defined]
        self._runs.clear()

    def _pause(self) -> None:
        for shard in self.rows.shards:
            if shard.state == "scanning":
                shard.state = "paused"
                self.rows.touch(shard)

    def _fail(self, shard: ShardRows, error: TarvizError) -> None:
        self._runs.pop(shard.number, None)
        shard.faults.append(fault_of(error.at(shard=shard.url)))
        far = isinstance(error, StoreError) and not shard.local
        shard.state = "missing" if error.code == "E_NOT_FOUND" else "unreachable" if far else "damaged"


def fault_of(error: TarvizError) -> Fault:
    """The error as a fault, its hint said too."""
    return replace(error.fault, message=error.words)


def _is_stream(shard: ShardRows) -> bool:
    return bool(shard.compression) or (not shard.local and not shard.cached)


def scan(shard: ShardRows, options: ReadOptions, *, cache: bool) -> Iterator[None]:
    """Scan one shard, yielding whenever it has grown. Raises what cannot be read; damage is noted in the shard."""
    shard.state = "scanning"
    store = stores.of(shard.url)
    if shard.url == "-":
        yield from _stream(shard, options, cache)
        return
    stat = shard.stat = store.stat(shard.url)
    found = cached_index(stat, options) if cache else None
    if found is not None and (found.error is None or found.error.get("code") != "E_DUP_FIELD"):
        _take(shard, found)
        return
    if shard.local and stat.ranges:
        shard.compression = packing(shard.url) or ""
    if shard.local and stat.ranges and not shard.compression:
        yield from _headers(shard, options, cache)
    else:
        yield from _stream(shard, options, cache)


def _take(shard: ShardRows, index: ShardIndex) -> None:
    """Rows from a kept index, all at once."""
    shard.cached = True
    shard.add(Segment(0, index))
    shard.pending = index.pending
    shard.faults = [Fault.of(one, shard.url) for one in [*index.warnings[:_FAULTS], *filter(None, [index.error])]]
    shard.scanned = (shard.stat.size or 0) if shard.stat else 0
    shard.state = "damaged" if index.error else "done"


def _headers(shard: ShardRows, options: ReadOptions, cache: bool) -> Iterator[None]:
    """A plain local shard: windows around its headers, gathered for some milliseconds at a time."""
    walker = _lenient(shard, options).walker(shard.url, payloads="none")
    growing = _Growing(shard, walker)
    flushed = time.monotonic()
    for step in header_steps(shard.url, walker, ReadReport()):
        growing.add(step)
        now = time.monotonic()
        if growing.waiting >= _FIRST and (not shard.count or now - flushed > 0.05):
            growing.grow()
            flushed = now
            shard.scanned = walker.scanner.at
            yield
    growing.grow()
    growing.finish(options, cache=cache)


def _lenient(shard: ShardRows, options: ReadOptions) -> ReadOptions:
    """How a browser reads: leniently, taking the first of a repeated field, where a loader stops."""
    size = options.block_size or (None if shard.local else _REMOTE_BLOCK)
    return replace(options, strict=False, on_error="raise", duplicates=_duplicates(options), block_size=size)


def _duplicates(options: ReadOptions) -> Duplicates:
    return "first" if options.duplicates == "error" else options.duplicates


def how_read(options: ReadOptions) -> dict[str, Any]:
    """What tables and copies have to read as the scan did."""
    return {name: getattr(options, name) for name in _READ} | {"duplicates": _duplicates(options)}


class _Growing:
    """A walker's steps turned into a shard's records as they come, and into its index at the end."""

    def __init__(self, shard: ShardRows, walker: Walker) -> None:
        self.shard = shard
        self.walker = walker
        self.waiting = 0
        self._new: list[Decided] = []
        self._steps: list[Decided] = []

    def add(self, step: Decided) -> None:
        """Records to be shown at the next `grow`."""
        step = step._replace(data=memoryview(b""))
        self.waiting += len(step.records)
        self._new.append(step)
        self._steps.append(step)

    def grow(self) -> None:
        """Show what was added."""
        shard = self.shard
        if self._new:
            index = index_of(self.walker, self._new)
            shard.add(Segment(shard.count, index))
            shard.pending += index.pending
        shard.faults = self._faults()
        self.waiting, self._new = 0, []

    def _faults(self) -> list[Fault]:
        twice = self.walker.grouper.twice
        found = [Fault("W_DUP_FIELD", f"{twice} fields appear twice; the first is shown.", self.shard.url)] if twice else []
        return [*found, *self.walker.notes[:_FAULTS]]

    def finish(self, options: ReadOptions, *, cache: bool) -> None:
        """The shard is read to its end, or to its damage: its many segments become one, which finds records faster."""
        shard, walker = self.shard, self.walker
        error = walker.error
        index = index_of(walker, self._steps, shard.compression or None)
        shard.faults = [*self._faults(), *([fault_of(error.at(shard=shard.url))] if isinstance(error, TarvizError) else [])]
        shard.pending, shard.scanned = index.pending, walker.scanner.at
        shard.state = "damaged" if error is not None else "done"
        shard.segments = [Segment(0, index)] if len(index) else []
        if cache and shard.stat is not None and shard.url != "-" and not walker.grouper.twice:
            keep_index(shard.stat, options, index)


def _stream(shard: ShardRows, options: ReadOptions, cache: bool) -> Iterator[None]:
    """A remote or compressed shard: one pass from the front; its blocks are kept for a while, inflated ones on disk."""
    with closing(Shard(shard.url, max_ratio=configured(max_ratio=options.max_ratio).max_ratio)) as opened:
        shard.compression = opened.compression or ("stream" if shard.url == "-" else "")
        shard.stat = opened.stat
        if shard.compression:
            shard.spill = Spill()
        blocks = Blocks(opened, _lenient(shard, options).walker(shard.url))
        growing = _Growing(shard, blocks.walker)
        with closing(blocks):
            try:
                for step, block in blocks.steps():
                    shard.keep(block)
                    growing.add(step)
                    growing.grow()
                    shard.scanned = block.base + len(block.data)
                    yield
                    shard.state = "scanning"
            except DataError:
                pass  # the walker holds it
        growing.finish(options, cache=cache)
