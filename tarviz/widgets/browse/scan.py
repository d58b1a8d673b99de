"""The thread that scans shards while people already look: cached index, headers only, or one stream, whichever serves.

A plain local shard is read around its payloads; a remote or compressed one is streamed, and no further than what
is looked at wants, so that a look at the first records of a remote shard reads the first megabytes only.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tarviz import stores
from tarviz.formats import header_scan
from tarviz.formats.compression import kind
from tarviz.formats.index import ShardIndex
from tarviz.formats.member_table import joined, picked
from tarviz.formats.records import Grouper
from tarviz.formats.tar import Scanner
from tarviz.model.config import options as configured
from tarviz.model.errors import DataError, Fault, TarvizError
from tarviz.model.types import Members, to_text
from tarviz.read.blocks import Blocks
from tarviz.read.shard_index import cached_index, header_runs, keep_index
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.read.stream import Shard as Opened
from tarviz.widgets.browse.scanned_records import Rows, Segment, Shard, Spill

log = logging.getLogger(__name__)
AHEAD = 48
"""Records a streamed shard is scanned beyond what is looked at."""
_REMOTE_BLOCK = 512 << 10
_FIRST = 64
_FAULTS = 200


class Scan:
    """Scans the shards of `rows` on a thread of its own, in order, the one in `focus` first.

    `want` is how many records somebody wants to see (of the focus, or of all); streamed shards stop beyond it until
    it grows. `options` are those of an index (`duplicates="error"`), so that what is found can be kept as one.
    """

    def __init__(self, rows: Rows, options: ReadOptions, *, cache: bool = True) -> None:
        self.rows = rows
        self.options = options
        self.cache = cache
        self.focus: int | None = None
        self._want = 0
        self._all = False
        self._closed = False
        self._wake = threading.Condition()
        self._calm = threading.Condition()
        self._busy = 0
        self._runs: dict[int, Iterator[None]] = {}
        self._thread = threading.Thread(target=self._work, daemon=True, name="tarviz-scan")
        self._thread.start()

    def want(self, count: int) -> None:
        """Somebody looks at rows up to `count`."""
        with self._wake:
            self._want = max(self._want, count)
            self._wake.notify_all()

    def go_on(self) -> None:
        """Scan everything to its end."""
        with self._wake:
            self._all = True
            self._wake.notify_all()

    def look_at(self, shard: int | None) -> None:
        """Scan this shard first; None: in order."""
        with self._wake:
            self.focus = shard
            self._want = 0
            self._wake.notify_all()

    def again(self, shard: Shard) -> None:
        """Forget what is known of a shard and scan it anew."""
        with self._wake:
            run = self._runs.pop(shard.number, None)
            fresh = Shard(shard.number, shard.url, changed=shard.changed)
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

    def _next(self) -> Shard | None:
        """The shard to go on with now; None when there is nothing to do."""
        shards = self.rows.shards
        ahead = [shards[self.focus]] if self.focus is not None and self.focus < len(shards) else []
        before = 0
        for shard in ahead + shards:
            have = shard.count if shard in ahead else before + shard.count
            if not shard.finished and (self._all or not _streamed(shard) or have < self._want + AHEAD):
                return shard
            if not shard.finished and shard not in ahead:
                return None  # those behind it are wanted even less
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
                run = self._runs.get(shard.number)
                if run is None:
                    run = self._runs[shard.number] = scan(shard, self.options, cache=self.cache)
            try:
                next(run)
            except StopIteration:
                self._runs.pop(shard.number, None)
            except TarvizError as error:
                self._fail(shard, error)
            except Exception as error:
                log.exception("scanning %s", shard.url)
                self._fail(shard, DataError(f"{type(error).__name__}: {error}", code="E_INTERNAL"))
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

    def _fail(self, shard: Shard, error: TarvizError) -> None:
        self._runs.pop(shard.number, None)
        shard.faults.append(fault_of(error.at(shard=shard.url)))
        shard.state = "missing" if error.code == "E_NOT_FOUND" else "damaged"


def fault_of(error: TarvizError) -> Fault:
    """The error as a fault, its hint said too."""
    return replace(error.fault, message=f"{error.message} {error.hint or ''}".strip())


def _streamed(shard: Shard) -> bool:
    return bool(shard.compression) or (not shard.local and not shard.cached)


def scan(shard: Shard, options: ReadOptions, *, cache: bool = True) -> Iterator[None]:
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
        shard.compression = kind(store.read(shard.url, 0, 6)) or ""
    if shard.local and stat.ranges and not shard.compression:
        yield from _headers(shard, options, cache)
    else:
        yield from _stream(shard, options, cache)


def _take(shard: Shard, index: ShardIndex) -> None:
    """Rows from a kept index, all at once."""
    shard.cached = True
    shard.add(Segment(0, index.members, index.rows, index.ext, index.exts, index.hash))
    shard.pending = index.pending
    shard.faults = [_fault(one) for one in [*index.warnings[:_FAULTS], *([index.error] if index.error else [])]]
    shard.scanned = (shard.stat.size or 0) if shard.stat else 0
    shard.state = "damaged" if index.error else "done"


def _fault(found: dict[str, object]) -> Fault:
    names = ("code", "message", "shard", "key", "member", "offset")
    return Fault(**{"code": "E_CORRUPT", "message": "", **{name: found[name] for name in names if name in found}})  # type: ignore[arg-type]


def _headers(shard: Shard, options: ReadOptions, cache: bool) -> Iterator[None]:
    """A plain local shard: windows around its headers, gathered for some milliseconds at a time."""
    report = ReadReport()
    scanner = Scanner(shard.url, strict=False, concatenated=options.concatenated)
    growing = _Growing(shard, options, scanner)
    runs: list[Members] = []
    count, flushed = 0, time.monotonic()
    for run in header_runs(shard.url, scanner, report):
        runs.append(run)
        count += len(run)
        now = time.monotonic()
        if count >= _FIRST and (not shard.count or now - flushed > 0.05):
            growing.grow(joined(runs), final=False)
            runs, count, flushed = [], 0, now
            shard.scanned = scanner.at
            yield
    growing.grow(joined(runs), final=True)
    growing.finish(cache=cache)


class _Growing:
    """Members turned into a shard's records as they come; the record that may go on is held back."""

    def __init__(self, shard: Shard, options: ReadOptions, scanner: Scanner) -> None:
        self.shard = shard
        self.options = options
        self.scanner = scanner
        # of a field given twice the first is shown, and a note says so: a browser goes on where a loader stops
        self.grouper = Grouper(shard.url, options.key_split, "first" if options.duplicates == "error" else options.duplicates)
        self.carry: Members | None = None
        self.noted = 0
        self.twice = False

    def grow(self, members: Members, *, final: bool) -> None:
        members = members if self.carry is None else joined([self.carry, members])
        self.carry = None
        grouped = self.grouper.group(members, quiet_before=self.noted)
        self.noted = self.scanner.at
        stop = len(grouped) if final else len(grouped) - 1
        if final and (error := self.scanner.error) is not None and stop and "need" in error.details:
            # the last member's payload is cut: its record cannot be shown whole
            stop -= int(grouped.members.start[-1]) == int(members.start[-1])
        if not final and len(grouped):
            self.carry = picked(members, members.start >= int(grouped.members.start[int(grouped.rows[max(stop, 0)])]))
        if stop <= 0:
            return
        settled, _ = self.grouper.settle(grouped, stop)
        if len(settled.members) < int(grouped.rows[stop]):
            self.twice = True
            note = Fault("W_DUP_FIELD", "a record has a field twice; the first is shown.", self.shard.url)
            self._note(note)
        for record, first_at in self.grouper.returns(settled):
            at = int(settled.members.start[int(settled.rows[record])])
            text = f"the key was at byte {first_at} and comes again at byte {at}; it is shown as another record."
            self._note(Fault("W_SPLIT_RECORD", text, self.shard.url, to_text(bytes(settled.keys[record])), None, at))
        self.shard.add(Segment(self.shard.count, settled.members, settled.rows, settled.ext, settled.exts, settled.key_hash))

    def _note(self, fault: Fault) -> None:
        if len(self.shard.faults) < _FAULTS:
            self.shard.faults.append(fault)

    def finish(self, *, cache: bool) -> None:
        shard, scanner = self.shard, self.scanner
        error = scanner.error
        notes = scanner.notes + self.grouper.notes
        for note in notes:
            self._note(note)
        doubtful = any(note.code in ("W_NO_EOF", "W_TRUNCATED_PADDING") for note in scanner.notes)
        if doubtful or (error is not None and "need" not in error.details):
            shard.pending = shard.count - 1
        if error is not None:
            shard.faults.append(fault_of(error.at(shard=shard.url)))
        shard.scanned = scanner.at
        shard.state = "damaged" if error is not None else "done"
        index = _whole(shard, self.grouper.exts, error)
        if cache and shard.stat is not None and not self.twice:
            keep_index(shard.stat, self.options, index)


def _whole(shard: Shard, exts: Sequence[str], error: DataError | None) -> ShardIndex:
    """The index of all that was scanned; the shard's many segments become one, which finds records faster."""
    parts = shard.segments
    rows = [np.zeros(1, np.int64)]
    for part in parts:
        rows.append(part.rows[1:] + rows[-1][-1])
    index = ShardIndex(
        joined([part.members for part in parts]),
        np.concatenate(rows),
        np.concatenate([part.ext for part in parts]) if parts else np.zeros(0, np.int32),
        tuple(exts),
        np.concatenate([part.hash for part in parts]) if parts else np.zeros(0, np.uint64),
        warnings=[fault.to_dict() for fault in shard.faults if fault.code.startswith("W_")][:1000],
        error=error.to_dict() if error is not None else None,
        pending=shard.pending,
    )
    whole = Segment(0, index.members, index.rows, index.ext, index.exts, index.hash)
    shard.swap([whole] if len(whole) else [])
    return index


def _stream(shard: Shard, options: ReadOptions, cache: bool) -> Iterator[None]:
    """A remote or compressed shard: one pass from the front; its blocks are kept for a while, inflated ones on disk."""
    with closing(Opened(shard.url, max_ratio=configured(max_ratio=options.max_ratio).max_ratio)) as opened:
        shard.compression = opened.compression or ("stream" if shard.url == "-" else "")
        shard.stat = opened.stat
        if shard.compression:
            shard.spill = Spill()
        scanner = Scanner(shard.url, strict=False, concatenated=options.concatenated)
        grouper = Grouper(shard.url, options.key_split, "first" if options.duplicates == "error" else options.duplicates)
        lenient = replace(options, strict=False, block_size=options.block_size or (None if shard.local else _REMOTE_BLOCK))
        cutter = Blocks(opened, scanner, grouper, lenient.cut())
        error: DataError | None = None
        with closing(cutter):
            try:
                for block in cutter:
                    shard.keep(block)
                    shard.add(Segment(block.first, block.members, block.rows, block.ext, block.exts, _hashes(block.keys)))
                    shard.pending = block.first + block.pending if block.pending >= 0 else -1
                    shard.scanned = block.base + len(block.data)
                    shard.faults = _notes(cutter)[:_FAULTS]
                    yield
                    shard.state = "scanning"
            except DataError as found:
                error = found
        shard.faults = [*_notes(cutter)[:_FAULTS], *([fault_of(error.at(shard=shard.url))] if error else [])]
        shard.state = "damaged" if error is not None else "done"
        index = _whole(shard, grouper.exts, error)
        if cache and shard.url != "-" and not any(note.code == "W_DUP_FIELD" for note in shard.faults):
            keep_index(shard.stat, options, index)


def _notes(cutter: Blocks) -> list[Fault]:
    return cutter.scanner.notes + cutter.grouper.notes


def _hashes(keys: list[bytes]) -> NDArray[np.uint64]:
    width = max((len(key) for key in keys), default=1) or 1
    table = np.zeros((len(keys), width), np.uint8)
    for at, key in enumerate(keys):
        table[at, : len(key)] = np.frombuffer(key, np.uint8)
    return header_scan.hashes(table)
