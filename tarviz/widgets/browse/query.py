"""Which rows a view shows, and in what order: a filter over headers or content, a sort, found while rows still arrive."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import TarvizError, UsageError
from tarviz.query import expressions
from tarviz.query.expressions import Expression
from tarviz.widgets.browse.scanned_records import Row, Rows, Want, payloads, row_id, split_id

SORTS = ("order", "key", "size", "label", "random")
_CHUNK = 256


@dataclass(frozen=True, slots=True)
class Wish:
    """What a view is to show: rows where `where` is true, of one `shard` (None: of all), `sort`ed, `seed` for random.

    `descending` turns the order round; what has no label stays behind.
    """

    where: str = ""
    sort: str = "order"
    seed: int = 0
    shard: int | None = None
    label: str = ""
    only: tuple[int, ...] | None = None
    descending: bool = False

    def __post_init__(self) -> None:
        if self.sort not in SORTS:
            raise UsageError(f"There is no order {self.sort!r}.", hint=f"There are: {', '.join(SORTS)}.")

    @property
    def plain(self) -> bool:
        """Whether all rows show in the order they lie."""
        return not self.where.strip() and self.sort == "order" and not self.descending and self.shard is None and self.only is None


class Fields(Mapping[str, Any]):
    """A row as an expression sees it: sizes and presence from the columns, payloads where they were read."""

    __slots__ = ("_payloads", "_row", "_sizes", "index")

    def __init__(self, row: Row, payloads: dict[str, bytes]) -> None:
        self._row = row
        self._payloads = payloads
        self._sizes: dict[str, int] | None = None
        self.index = row.record

    @property
    def sizes(self) -> dict[str, int]:
        if self._sizes is None:
            self._sizes = self._row.sizes
        return self._sizes

    @property
    def key(self) -> str:
        return self._row.key

    @property
    def shard(self) -> str:
        return self._row.shard.url

    def __getitem__(self, ext: str) -> Any:
        found = self._payloads.get(ext)
        if found is None and ext not in self.sizes:
            raise KeyError(ext)
        return found or b""  # unreadable: whatever is asked of it is false

    def __contains__(self, ext: object) -> bool:
        return ext in self._payloads or ext in self.sizes

    def __iter__(self) -> Iterator[str]:
        return iter(self.sizes)

    def __len__(self) -> int:
        return len(self.sizes)


def values(rows: list[Row], expression: Expression) -> list[Fields]:
    """The rows as an expression sees them, the payloads it needs read in few ranges."""
    wants = [Want(row, ext) for row in rows for ext in row.sizes if ext in expression.needs]
    read: dict[int, dict[str, bytes]] = {}
    for want, blob in zip(wants, payloads(wants, limit=16 << 20), strict=True):
        if not isinstance(blob, TarvizError):
            read.setdefault(want.row.id, {})[want.ext] = blob
    return [Fields(row, read.get(row.id, {})) for row in rows]


@dataclass(eq=False)
class Query:
    """The rows of one wish, found on a thread; `ids` grows until `done`. `checked` of the rows known were looked at."""

    rows: Rows
    wish: Wish
    number: int = 0
    found: int = 0
    checked: int = 0
    done: bool = False
    error: TarvizError | None = None
    seconds: float = 0.0
    _ids: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1024, np.int64))
    _order: NDArray[np.int64] | None = None
    _stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> Query:
        """Parse the wish (raises `UsageError`) and begin."""
        self._where = expressions.parse(self.wish.where)
        self._label = expressions.parse_value(self.wish.label) if self.wish.sort == "label" and self.wish.label else None
        if not self.wish.plain:
            threading.Thread(target=self._work, daemon=True, name="tarviz-query").start()
        return self

    def stop(self) -> None:
        """End the search; what was found stays."""
        self._stop.set()

    @property
    def needs_content(self) -> bool:
        return bool(self._where.needs)

    @property
    def ordered(self) -> bool:
        """Whether the rows are in the order wished for; while they are still being found, they are as they lie."""
        return (self.wish.sort == "order" and not self.wish.descending) or self.done

    def __len__(self) -> int:
        return len(self.rows) if self.wish.plain else self.found

    def ids(self, start: int, stop: int) -> list[int]:
        """Numbers of the rows at the positions `start`…`stop`."""
        if self.wish.plain:
            return self.rows.ids(start, stop)
        shown = self._ids[: self.found] if self._order is None else self._order
        result: list[int] = shown[max(start, 0) : stop].tolist()
        return result

    def position(self, row: int) -> int | None:
        """Where a row shows; None where it does not."""
        if self.wish.plain:
            return self.rows.position(row)
        shown = self._ids[: self.found] if self._order is None else self._order
        at = np.flatnonzero(shown == row)
        return int(at[0]) if len(at) else None

    def _work(self) -> None:
        begin = time.monotonic()
        try:
            for chunk in self._arriving() if self.wish.only is None else self._chosen():
                self._take(chunk)
                self.seconds = time.monotonic() - begin
                if self._stop.is_set():
                    break
            if self.wish.sort != "order" or self.wish.descending:
                self._order = self._sorted()
        except TarvizError as error:
            self.error = error
        except (OSError, ValueError, MemoryError) as error:
            self.error = UsageError(f"The search ended: {error}.")
        self.done = True
        self.seconds = time.monotonic() - begin
        self._tell()

    def _tell(self) -> None:
        with self.rows.changed:
            self.rows.version += 1
            self.rows.changed.notify_all()

    def _arriving(self) -> Iterator[range]:
        """Row numbers of one shard at a time, as scanning finds them, until all are scanned or the search is stopped."""
        chosen = self.rows.shards if self.wish.shard is None else self.rows.shards[self.wish.shard : self.wish.shard + 1]
        large = _CHUNK if self._where.needs else 65_536
        for number in [shard.number for shard in chosen]:
            at = 0
            while not self._stop.is_set():
                shard = self.rows.shards[number]
                seen, finished = shard.count, shard.finished
                if at < seen:
                    stop = min(seen, at + large)
                    yield range(row_id(number, at), row_id(number, stop))
                    at = stop
                elif finished:
                    break
                else:
                    with self.rows.changed:
                        if self.rows.shards[number].count == seen:
                            self.rows.changed.wait(0.5)

    def _chosen(self) -> Iterator[range]:
        """The rows of `wish.only` that there are, in the order they lie."""
        for row in sorted(set(self.wish.only or ())):
            shard, record = split_id(row)
            if 0 <= shard < len(self.rows.shards) and record < self.rows.shards[shard].count:
                yield range(row, row + 1)

    def _take(self, ids: range) -> None:
        if not self.wish.where.strip():
            self._add(np.arange(ids.start, ids.stop, dtype=np.int64))
        elif (quick := self._by_columns(ids)) is not None:
            self._add(quick)
        else:
            for low in range(ids.start, ids.stop, 1024):
                rows = [self.rows.row(row) for row in range(low, min(low + 1024, ids.stop))]
                good = [row.id for row, fields in zip(rows, values(rows, self._where), strict=True) if self._where.test(fields)]
                self._add(np.array(good, np.int64))
                if self._stop.is_set():
                    return
        self.checked += len(ids)
        self._tell()

    def _by_columns(self, ids: range) -> NDArray[np.int64] | None:
        """Plain text in keys, without a step per row; None for any other filter."""
        text = self.wish.where.strip()
        if not expressions.is_plain(text):
            return None
        fold = text == text.lower()
        needle = text.encode("utf-8", "surrogateescape")
        found: list[int] = []
        at = ids.start
        while at < ids.stop:
            row = self.rows.row(at)
            segment = row.segment
            low = row.record - segment.first
            high = min(len(segment), low + ids.stop - at)
            keys = segment.keys(low, high)
            keys = [key.decode("utf-8", "replace").lower().encode() for key in keys] if fold else keys
            found += [at + place for place, key in enumerate(keys) if needle in key]
            at += high - low
        return np.array(found, np.int64)

    def _add(self, ids: NDArray[np.int64]) -> None:
        need = self.found + len(ids)
        if need > len(self._ids):
            grown = np.zeros(max(need, 2 * len(self._ids)), np.int64)
            grown[: self.found] = self._ids[: self.found]
            self._ids = grown
        self._ids[self.found : need] = ids
        self.found = need

    def _sorted(self) -> NDArray[np.int64]:
        ids = self._ids[: self.found]
        match self.wish.sort:
            case "random":
                order = np.random.default_rng(self.wish.seed).permutation(len(ids))
            case "size":
                sizes = np.array([sum(self.rows.row(row).sizes.values()) for row in ids.tolist()], np.int64)
                order = np.argsort(-sizes, kind="stable")
            case "label" if self._label is not None:
                return ids[np.array(self._label_order(ids.tolist()), np.int64)]
            case "key":
                keys = [self.rows.row(row).key for row in ids.tolist()]
                order = np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)
            case _:
                order = np.arange(len(ids))
        return ids[order[::-1]] if self.wish.descending else ids[order]

    def _label_order(self, ids: list[int]) -> list[int]:
        assert self._label is not None
        labels: list[tuple[int, Any]] = []
        for low in range(0, len(ids), 1024):
            rows = [self.rows.row(row) for row in ids[low : low + 1024]]
            labels += [_sortable(self._label.value(fields)) for fields in values(rows, self._label)]
        order = sorted(range(len(ids)), key=labels.__getitem__, reverse=self.wish.descending)
        return sorted(order, key=lambda at: labels[at][0]) if self.wish.descending else order


def _sortable(value: Any) -> tuple[int, Any]:
    """Numbers first, then text, then what is missing."""
    if isinstance(value, (int, float)):
        return (0, value)
    return (2, "") if value is None else (1, str(value))


def find_part(rows: Rows, needle: bytes) -> int | None:
    """The number of the first known row whose key holds these bytes."""
    for shard in rows.shards:
        for segment in shard.segments:
            for low in range(0, len(segment), 65_536):
                for at, key in enumerate(segment.keys(low, low + 65_536), low):
                    if needle in key:
                        return row_id(shard.number, segment.first + at)
    return None
