"""Passes over the shards of a table that make its columns: one pass at a time, ended between two records, seen while it grows."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import IO

from tarviz import engines, stores
from tarviz.model.errors import ChangedError, UsageError
from tarviz.model.processors import processors
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL
from tarviz.read.several import AT_ONCE
from tarviz.read.stream import ReadOptions
from tarviz.table.columns import NAMES, Part
from tarviz.table.interrupts import LOOK, stop_error
from tarviz.table.making.kept_columns import KeptColumns, find_kept
from tarviz.table.making.shard_columns import MadeColumns, make_columns

MOST_PROVEN = 2 << 30  # bytes of kept columns that are compared with their checksums before the first question: half a second


def _at_once(shards: Sequence[KeptColumns]) -> int:
    """How many shards are worked on at a time: a server's answers are waited for by many, files by one for each processor."""
    return processors() if all(stores.is_local(shard.url) for shard in shards) else max(processors(), AT_ONCE)


def where(urls: Sequence[str], engine: str | None, address: str | None) -> tuple[str, str | None] | None:
    """Where columns of these shards are made: an engine and its address; None: by threads of this process."""
    if engine is None:
        if address is not None:
            raise UsageError("address= belongs to an engine.", hint='Write engine="ray" beside it.')
        return None
    own = [url for url in urls if engines.is_own(url)]
    if own and engines.travels(engine):
        raise engines.unreachable(own[0])
    return engine, address


@dataclass(frozen=True, slots=True)
class ColumnTask:
    """One shard, and the parts to be made of it."""

    url: URL
    parts: frozenset[Part]

    __repr__ = redacted_repr


@dataclass(frozen=True)
class ColumnJob:
    """The columns of a shard, made by a worker of an engine."""

    options: ReadOptions

    def __call__(self, task: ColumnTask, file: IO[bytes] | None, tick: engines.Tick) -> MadeColumns:
        return make_columns(task.url, self.options, set(task.parts))


class ColumnPasses:
    """The columns of some shards, made when they are asked for: by threads, or on an engine (its name and address).

    `version` grows when a shard gets more, with `lock` held.
    """

    def __init__(
        self,
        kept: list[KeptColumns],
        options: ReadOptions,
        workers: int | None,
        progress: Callable[[int, int], None] | None = None,
        engine: tuple[str, str | None] | None = None,
    ) -> None:
        self.kept, self.progress = kept, progress
        self.version = self.grown = 0  # counts shards that have more columns; and beginnings of shards, too
        self._done = self._todo = 0
        self.lock = threading.Lock()
        self._options, self._workers, self._engine = options, workers, engine
        self._one = threading.Lock()
        self._halts: dict[threading.Event, threading.Event | None] = {}
        self._growing: dict[str, Callable[[], KeptColumns]] = {}

    def make(self, parts: set[Part], stop: threading.Event | None = None) -> None:
        """Make what is not there yet, several shards at once. Ends with `stopped()` between two records when `stop` is set."""
        wanted = {NAMES, *parts}
        if not self.unmade(wanted):
            return
        halt = threading.Event()

        def look() -> None:
            if halt.is_set() or (stop is not None and stop.is_set()):
                raise stop_error()

        self._halts[halt] = stop
        try:
            with self._alone(look):
                self._pass(wanted, halt, look)
        except ChangedError:
            self.renew()
            raise
        finally:
            del self._halts[halt]

    @contextmanager
    def _alone(self, look: Callable[[], None]) -> Iterator[None]:
        while not self._one.acquire(timeout=LOOK):
            look()
        try:
            yield
        finally:
            self._growing.clear()
            self._one.release()

    def _pass(self, wanted: set[Part], halt: threading.Event, look: Callable[[], None]) -> None:
        todo = [shard for shard in self.kept if wanted - shard.parts]
        if not todo:
            return
        self._done, self._todo = 0, len(todo)
        if self._engine is not None:
            self._elsewhere(todo, wanted, look)
            return
        with ThreadPoolExecutor(min(self._workers or _at_once(todo), len(todo)), "tarviz-table") as pool:
            try:
                for done, _ in enumerate(pool.map(lambda shard: self._extend(shard, wanted, look), todo), 1):
                    self._done = done
                    self._tell()
            except BaseException:
                halt.set()  # an interrupt from the keyboard does not wait for the shards that are being read
                pool.shutdown(cancel_futures=True)
                raise

    def _elsewhere(self, todo: list[KeptColumns], wanted: set[Part], look: Callable[[], None]) -> None:
        """The same by workers of an engine, a shard each; what they make is kept here. Ended between two shards."""
        assert self._engine is not None
        name, address = self._engine
        tasks = [ColumnTask(shard.url, frozenset(shard.lacking(wanted))) for shard in todo]
        plan = engines.EnginePlan(engines.count(name, self._workers, len(tasks)), address=address)
        with engines.start(name, ColumnJob(self._options), plan) as engine, closing(engine.run(tasks)) as results:
            for done, (shard, task, (made, _)) in enumerate(zip(todo, tasks, results, strict=True), 1):
                look()
                settle = shard.take(set(task.parts), made)
                with self.lock:
                    settle()
                    self.version += 1
                self._done = done
                self._tell()

    def _extend(self, shard: KeptColumns, wanted: set[Part], look: Callable[[], None]) -> None:
        def grown(found: Callable[[], KeptColumns]) -> None:
            self._growing[shard.url] = found
            self._tell()

        look()
        settle = shard.add(wanted, self._options, look=look, grown=grown)
        with self.lock:
            settle()
            self._growing.pop(shard.url, None)
            self.version += 1

    def _tell(self) -> None:
        self.grown += 1
        if self.progress is not None:
            self.progress(self._done, self._todo)

    def prove(self, stop: threading.Event | None = None) -> None:
        """See to it that what is kept is what was written; what is damaged is made again. Very large tables are taken as they are."""
        doubtful = [(shard, shard.file) for shard in self.kept if not shard.sound and shard.file is not None]
        with suppress(OSError):  # of a file that is gone all is lost
            if not doubtful or sum(file.stat().st_size for _, file in doubtful) > MOST_PROVEN:
                return
        with self.lock:
            lost = {part for shard, _ in doubtful for part in shard.prove()}
            self.version += bool(lost)
        if lost:
            self.make(lost, stop)

    def are_gone(self, stop: threading.Event | None = None) -> bool:
        """Whether files of columns are not there any more, because another process has made more of them; those there are, are taken."""
        lost = [shard for shard in self.kept if shard.memory is None and shard.file is not None and not shard.file.exists()]
        if lost:
            self.renew()
            now = {shard.url: shard.identity for shard in self.kept}
            for shard in lost:
                if now[shard.url] != shard.identity:
                    raise ChangedError("the shard was replaced since the table was opened.", shard=shard.url, hint="Ask again.")
            self.make({part for shard in lost for part in shard.parts}, stop)
        return bool(lost)

    def renew(self) -> None:
        """Take shards that were replaced, and files of columns that are gone, as they are now: whoever asks again is answered."""
        fresh = find_kept([shard.url for shard in self.kept], self._options)
        with self.lock:
            self.kept[:] = [
                old if old.identity == new.identity and (old.memory is not None or (old.file is not None and old.file.exists())) else new
                for old, new in zip(self.kept, fresh, strict=True)
            ]
            self.version += 1

    def unmade(self, parts: set[Part]) -> set[Part]:
        """What of `parts` some shard lacks."""
        return {part for part in parts if any(part not in shard.parts for shard in self.kept)}

    def findings(self) -> dict[str, int]:
        """What was met on the way: fields that are not JSON, warnings and damage by code."""
        found: Counter[str] = Counter()
        for shard in self.kept:
            found.update({f"{ext}.bad": count for ext, count in shard.bad.items() if count})
            found.update(shard.counts)
            found.update([shard.error["code"]] if shard.error else [])
        return dict(found)

    def so_far(self, parts: set[Part]) -> list[KeptColumns]:
        """The shards, and beginnings of shards, that have `parts` by now, in their order."""
        found = []
        for shard in self.kept:
            beginning = None if parts <= shard.parts else self._growing.get(shard.url)
            own = shard if beginning is None else beginning()
            if parts <= own.parts:
                found.append(replace(own, parts=set(own.parts)))  # which does not grow
        return found

    def interrupt(self, stop: threading.Event | None = None) -> None:
        """End the pass that is under way, or only the one for the sake of `stop`."""
        for halt, own in list(self._halts.items()):
            if stop is None or stop is own:
                halt.set()
