"""What a browser asks of the table over its shards: which rows fit, in what order, and what each column holds.

The table needs the extra `table`; without it a browser knows what its scan found: keys, sizes, which fields there are.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tarviz import stores
from tarviz.model.config import options as configured
from tarviz.model.errors import MissingPackageError, TarvizError, UsageError, redact
from tarviz.model.types import URL
from tarviz.read.stream import ReadOptions
from tarviz.table import columns, conditions, sql
from tarviz.widgets.browse.rows import RECORD_BITS, Rows, places, split_id
from tarviz.widgets.browse.scan import how_read
from tarviz.widgets.host.behind import failure, start_thread

if TYPE_CHECKING:
    import pyarrow as pa

    from tarviz.table.columns import Part
    from tarviz.table.table import Table

MOST_READ = 2 << 30
"""Bytes of shards whose columns are made unasked."""
SOON = 1.0
"""Seconds of scanning after which columns are made beside it."""
TELL = 0.5
"""Seconds between two words that columns have grown."""


class Box(NamedTuple):
    """An object of a record: its class, its score, its place in pixels of a picture of `width` × `height`."""

    label: str
    score: float | None
    x0: float
    y0: float
    x1: float
    y1: float
    width: int
    height: int


def missing() -> MissingPackageError | None:
    """What is not installed here that a table needs."""
    for package in ("duckdb", "pyarrow"):
        if find_spec(package) is None:
            return MissingPackageError.of(package, "Filtering, sorting and counting by what records hold", "table")
    return None


class Questions:
    """The table over a browser's shards, opened when something is first asked of it. Threads may share it."""

    def __init__(self, rows: Rows, options: ReadOptions) -> None:
        self.scanned = rows
        self.options = options
        self.done = self.total = 0  # shards whose columns are made, of how many
        self._began = time.monotonic()
        self._version = 0
        self.failed: TarvizError | None = None
        self._table: Table | None = None
        self._tags = configured().tags  # of the verb that began it
        self._numbers = np.zeros(0, np.int64)
        self._lock = threading.Lock()
        self._told, self._untold = 0.0, False  # when somebody was last told that columns grow, and whether they grew since
        self._growing: tuple[int, dict[frozenset[Part], Table | None]] = (0, {})
        self._running: set[threading.Event] = set()
        self._base: Any = None
        self._job: threading.Thread | None = None

    @property
    def refused(self) -> TarvizError | None:
        """Why nothing can be asked; None where it can."""
        urls = [shard.url for shard in self.scanned.shards]
        if not urls:
            return UsageError("There are no shards yet.", hint="Open some.")
        if "-" in urls:
            return UsageError("Standard input cannot be asked.", hint="Write it to a file first.")
        if len(set(map(redact, urls))) < len(urls):
            return UsageError("A shard that is named twice cannot be asked.", hint="Name each once.")
        return missing()

    @property
    def version(self) -> int:
        """A number that grows when columns were made or tags changed; while they are being made, twice a second at most."""
        if self._untold and time.monotonic() - self._told > TELL:
            self._told, self._untold = time.monotonic(), False
            self._version += 1
        return self._version

    @property
    def ready(self) -> bool:
        """Whether the table is open."""
        return self._table is not None

    @property
    def table(self) -> Table:
        """The table over the shards there are. `MissingPackageError` where it cannot be had."""
        if (refused := self.refused) is not None:
            raise refused
        with self._lock:
            if self._table is None:
                self._table = self._open()
            return self._table

    def _open(self) -> Table:
        from tarviz.read.chosen import version
        from tarviz.table.table import Table

        reading = how_read(self.options)
        shards = [shard for shard in self.scanned.shards if shard.state != "missing"]
        try:
            table = Table([shard.url for shard in shards], progress=self._progress, tags=self._tags, **reading)
        except TarvizError as error:
            if error.code != "E_NOT_FOUND":
                raise
            shards = [shard for shard in shards if _there(shard.url, version)]
            table = Table([shard.url for shard in shards], progress=self._progress, tags=self._tags, **reading)
        self._numbers = np.array([shard.number for shard in shards], np.int64)
        return table

    def forget(self) -> None:
        """The shards are others now."""
        with self._lock:
            self._table, self._job, self.failed = None, None, None
            self._version += 1

    def touch(self) -> None:
        """Say that columns or tags are others than before."""
        self._version += 1
        self.scanned.touch()

    # what is asked

    def check(self, wanted: Sequence[str], label: str = "") -> None:
        """`UsageError` where a condition, or the column to sort by, cannot be read; nothing of the shards is."""
        if (refused := self.refused) is not None:
            raise refused
        with self._lock:
            if self._base is None:
                self._base = conditions.parser()
            possible = columns.of_fields(self.fields)
            for text in wanted:
                conditions.condition(self._base, text, possible)
            if label:
                sql.value(self._base, label, possible)

    @property
    def fields(self) -> list[str]:
        """The fields that the scan has met so far."""
        return sorted({ext for shard in self.scanned.shards for segment in list(shard.segments) for ext in segment.index.exts})

    def rows(
        self, where: str, order: str, *, descending: bool, keys: frozenset[str] = frozenset(), stop: threading.Event
    ) -> NDArray[np.int64]:
        """Numbers of the rows that fit, in an order."""
        with self.until(stop):
            found = self.table.rows(where, order, descending=descending)
            ids = self.row_numbers(found.shard, found.n)
            if keys:
                kept = self.table.by_keys(keys)
                ids = ids[np.isin(ids, self.row_numbers(kept.shard, kept.n))]
            return ids

    def objects(self, ids: NDArray[np.int64], labels: Sequence[str] = ()) -> tuple[NDArray[np.int64], list[Box]]:
        """The objects of rows, of some classes or of all: the row of each, in the order of `ids`, and the object."""
        some = f" WHERE label IN ({', '.join(map(sql.quoted_text, labels))})" if labels else ""
        found = self.table.arrow(f"SELECT shard, n, coalesce(label, '') AS label, {', '.join(Box._fields[1:])} FROM objects{some}")
        place = self.table.place(found)
        rows = self.row_numbers(place.shard, place.n)
        at = places(ids, rows)
        kept = np.flatnonzero(at >= 0)
        kept = kept[np.argsort(at[kept], kind="stable")]
        boxes = [Box(*line) for line in zip(*(found.column(name).to_pylist() for name in Box._fields), strict=True)]
        return rows[kept], [boxes[number] for number in kept.tolist()]

    def columns_of(self, ids: NDArray[np.int64]) -> pa.Table:
        """Every column that was made, for rows of the browser, in the order they lie."""
        table = self.table  # opened, it has the numbers
        shards, n = split_id(ids)
        return table.take(np.searchsorted(self._numbers, shards).astype(np.int32), n)

    def row_numbers(self, shard: NDArray[np.int32], n: NDArray[np.int64]) -> NDArray[np.int64]:
        """Row numbers of the browser for rows of the table."""
        numbers: NDArray[np.int64] = self._numbers[shard] << RECORD_BITS | n
        return numbers

    def by_shard(self, ids: NDArray[np.int64]) -> list[tuple[str, NDArray[np.int64]]]:
        """Rows of the browser as the table has them: shards, each with the numbers of its records."""
        urls = self.table.urls
        shards, n = split_id(ids)
        return [(urls[at], n[shards == number]) for at, number in enumerate(self._numbers.tolist()) if (shards == number).any()]

    def _progress(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        self._untold = True
        self.scanned.touch()

    @contextmanager
    def until(self, stop: threading.Event) -> Iterator[None]:
        """What this thread asks meanwhile is ended by `interrupt(stop)`."""
        self._running.add(stop)
        try:
            with self.table.until(stop):
                yield
        finally:
            self._running.discard(stop)

    def interrupt(self, stop: threading.Event) -> None:
        """End what is asked for the sake of `stop`, which is set."""
        if stop in self._running and self._table is not None:
            self._table.interrupt(stop)

    def so_far(self, parts: set[Part]) -> Table | None:
        """A table over what was read by now of all that `parts` need; None where nothing was."""
        at = self.table.passes.grown
        with self._lock:
            if self._growing[0] != at:
                self._growing = (at, {})
            tables = self._growing[1]
        name = frozenset(parts)
        if name not in tables:
            tables[name] = self.table.so_far(parts)
        return tables[name]

    # columns that are made unasked

    @property
    def cost(self) -> int:
        """Bytes of the shards that are read to make columns; 0 where that is little enough to do it unasked."""
        shards = self.scanned.shards
        size = sum(shard.stat.size or 0 for shard in shards if shard.stat is not None)
        plain = all(shard.local and not shard.compression for shard in shards)
        return 0 if plain and size <= MOST_READ else max(size, 1)

    def prepare(self, *, asked: bool = False) -> str:
        """Begin to make the columns that are read whole (classes, texts, JSON) once the scan is done; what can be expected:
        "ready", "making", "costly", "scanning", or "none" where there is no table."""
        if self.refused is not None or self.failed is not None:
            return "none"
        with self._lock:
            if self._running or (self._job is not None and self._job.is_alive()):
                return "making"
            if self._job is not None:
                return "ready"
            if not asked and not self.scanned.finished and not self._beside():
                return "scanning"
            if not asked and self.cost:
                return "costly" if self._table is None else "ready"
            self._begin(None)
            return "making"

    def _beside(self) -> bool:
        """Whether the scan takes long enough, of shards that are read easily, for columns to be made beside it."""
        if time.monotonic() - self._began < SOON or not all(shard.local and shard.url.endswith(".tar") for shard in self.scanned.shards):
            return False
        try:
            size = sum(stores.of(shard.url).stat(shard.url).size or 0 for shard in self.scanned.shards)
        except (TarvizError, OSError):
            return False
        return size <= MOST_READ

    def begin(self, parts: set[Part]) -> None:
        """Make columns after whatever goes on; `version` grows when they are there."""
        with self._lock:
            if self._job is None or not self._job.is_alive():
                self._begin(parts)

    def _begin(self, parts: set[Part] | None) -> None:
        self._job = start_thread("columns", self._make, parts)

    def wait(self, seconds: float) -> bool:
        """Wait for the columns that are made unasked; whether they are there."""
        thread = self._job if self.prepare() in ("making", "ready") else None
        if thread is not None:
            thread.join(seconds)
        return thread is not None and not thread.is_alive() and self.failed is None

    def _make(self, parts: set[Part] | None) -> None:
        try:
            table = self.table
            table.make([part for part in table.possible.values() if part.tier == "value"] if parts is None else parts)
            table.rows(count=1)  # what answers the first question is loaded now
        except Exception as error:  # noqa: BLE001 - whatever it is, the page says it
            self.failed = failure(error, "Columns cannot be read")
        self.touch()


def _there(url: URL, version: Any) -> bool:
    try:
        version(url)
    except TarvizError:
        return False
    return True
