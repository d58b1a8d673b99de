"""Which rows a view shows, and in what order: by keys, sizes and fields while rows still arrive, by anything through the table."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz import viewers
from tarviz.formats.field_path import FieldPath
from tarviz.model.errors import TarvizError, UsageError
from tarviz.model.types import Buffer, to_bytes, to_text
from tarviz.table import columns, conditions
from tarviz.table.making.chunks import Chunk
from tarviz.table.sql import quoted_text
from tarviz.table.streamed import StreamCondition
from tarviz.widgets.answers.questions import Box, Questions, missing
from tarviz.widgets.browse.rows import RECORD_BITS, Row, Rows, Want, payloads, row_id, split_id
from tarviz.widgets.host.behind import failure, start_thread

SORTS = ("order", "key", "size", "label", "random")
_CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class ViewWish:
    """What a view is to show: rows where `where` and all of `also` are true, of one `shard` (None: of all), `sort`ed, `seed` for random.

    `label` is the column that "label" sorts by. `descending` turns the order round; what has no value comes last. `keys` are the only
    ones there are, `only` the only rows, `area` those that were circled on a map, ascending. `objects`: a row for each box, of these
    classes where any is named.
    """

    where: str = ""
    sort: str = "order"
    seed: int = 0
    shard: int | None = None
    label: str = ""
    only: tuple[int, ...] | None = None
    descending: bool = False
    also: tuple[str, ...] = ()
    keys: frozenset[str] = frozenset()
    area: NDArray[np.int64] | None = None
    objects: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.sort not in SORTS:
            raise UsageError(f"There is no order {self.sort!r}.", hint=f"There are: {', '.join(SORTS)}.")

    @property
    def conditions(self) -> tuple[str, ...]:
        """What was typed and what was clicked, each a condition."""
        return tuple(text.strip() for text in (self.where, *self.also) if text.strip())

    @property
    def condition(self) -> str:
        """All conditions as one."""
        return conditions.join(self.conditions)

    @property
    def plain(self) -> bool:
        """Whether all rows show in the order they lie."""
        alone = not self.conditions and not self.keys and self.only is None and self.area is None and self.objects is None
        return alone and self.sort == "order" and not self.descending and self.shard is None

    @property
    def among(self) -> NDArray[np.int64] | None:
        """The only rows there can be, ascending; None where it can be all."""
        chosen = None if self.only is None else np.unique(np.array(self.only, np.int64))
        if chosen is None or self.area is None:
            return self.area if chosen is None else chosen
        return np.intersect1d(chosen, self.area)


def live(text: str, fields: list[str]) -> tuple[StreamCondition | None, Sequence[str]]:
    """A condition that keys, sizes and the presence of fields answer, which a scan knows; None where the table has to be asked. And the
    words of a search, none where `text` is a condition."""
    with conditions.parser() as base:
        asked = conditions.condition(base, text, columns.of_fields(fields))
        if asked.words or asked.unknown or not asked.parts <= {columns.NAMES} or conditions.needs_whole(base, asked.tree):
            return None, asked.words
    return StreamCondition(text), ()


class Fields(dict[str, bytes]):
    """A row as a path sees it: sizes and presence from the columns, payloads where they were read."""

    __slots__ = ("index", "key", "shard", "sizes")

    def __init__(self, row: Row, payloads: Mapping[str, bytes]) -> None:
        self.sizes = row.sizes
        super().__init__({ext: payloads.get(ext, b"") for ext in self.sizes})  # unreadable: whatever is asked of it is false
        self.key, self.shard, self.index = row.key, row.shard.url, row.record

    def at(self, path: FieldPath) -> Any:
        """The value there as SQL has it: 007 in a text is no 7."""
        return self.spell(path, path.value(self))

    def spell(self, path: FieldPath, value: Any) -> Any:
        """The same of a value that was read already."""
        ext, steps = path.ways[0] if path.ways and not path.of else ("", ())
        if isinstance(value, int | float) and not steps and ext in self and viewers.choose(ext) == "text":
            return self[ext].decode("utf-8-sig").strip()
        return value


def values(rows: Sequence[Row], needs: frozenset[str], limit: int = 16 << 20) -> list[Fields]:
    """The rows as paths see them, the payloads of the fields that are needed read in few ranges, none above `limit` bytes."""
    wants = [Want(row, ext) for row in rows for ext in row.sizes if ext in needs]
    read: dict[int, dict[str, bytes]] = {}
    for want, blob in zip(wants, payloads(wants, limit=limit), strict=True):
        if not isinstance(blob, TarvizError):
            read.setdefault(want.row.id, {})[want.ext] = blob
    return [Fields(row, read.get(row.id, {})) for row in rows]


@dataclass(eq=False)
class Query:
    """The rows of one wish, found on a thread; `ids` grows until `done`. `checked` of the rows known were looked at."""

    rows: Rows
    wish: ViewWish
    questions: Questions
    number: int = 0
    found: int = 0
    checked: int = 0
    done: bool = False
    error: TarvizError | None = None
    by_keys: bool = False  # words are looked for in keys, until all is read
    _ids: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1024, np.int64))
    boxes: list[Box] = field(default_factory=list)  # one a row found, where each is a box
    _stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> Query:
        """Read the wish (`UsageError` says what cannot be read, `MissingPackageError` what cannot be asked here) and begin."""
        wish = self.wish
        if wish.conditions and (refused := missing()) is not None:
            raise refused
        found = [live(text, self.questions.fields) for text in wish.conditions]
        self._live, self.words = [test for test, _ in found], [word for _, words in found for word in words]
        if self.needs_content:
            self.questions.check(wish.conditions, wish.label if wish.sort == "label" else "")
        if not wish.plain:
            start_thread("query", self._work)
        return self

    def stop(self) -> None:
        """End the search; what was found stays."""
        self._stop.set()
        self.questions.interrupt(self._stop)

    @property
    def needs_content(self) -> bool:
        """Whether more is asked than a scan knows."""
        return None in self._live or (self.wish.sort == "label" and bool(self.wish.label)) or self.wish.objects is not None

    @property
    def ordered(self) -> bool:
        """Whether the rows are in the order wished for; while they are still being found, they are as they lie."""
        return (self.wish.sort == "order" and not self.wish.descending) or self.done

    def __len__(self) -> int:
        return len(self.rows) if self.wish.plain else self.found

    def ids(self, start: int, stop: int) -> list[int]:
        """Numbers of the rows at the positions `start`…`stop`."""
        start = max(start, 0)
        if self.wish.plain:
            return self.rows.ids(start, stop)
        result: list[int] = self.found_ids()[start:stop].tolist()
        return result

    def found_ids(self) -> NDArray[np.int64]:
        """Numbers of all rows found, in their order; nothing where all rows show."""
        return self._ids[: self.found]

    def position(self, row: int) -> int | None:
        """Where a row shows; None where it does not."""
        if self.wish.plain:
            return self.rows.position(row)
        at = np.flatnonzero(self.found_ids() == row)
        return int(at[0]) if len(at) else None

    def _work(self) -> None:
        try:
            wish = self.wish
            as_they_lie = wish.sort == "order" and not wish.conditions and not wish.keys  # a scan knows these at once
            if self.needs_content or (self.questions.ready and self.rows.finished and not as_they_lie):
                self._scan_keys()
                self._ask()
            else:
                try:
                    self._scan()
                except _PayloadsWantedError:  # nobody knew before the scan came to a field
                    self._live, self.found = [None], 0
                    self._ask()
        except Exception as error:  # noqa: BLE001 - whatever it is, the page says it
            self.error = None if self._stop.is_set() else failure(error, "The search ended")
        self.done = True
        self.rows.touch()

    def _scan(self) -> None:
        """What the scan knows, as rows arrive."""
        chunks = self._arriving() if (among := self.wish.among) is None else self._there(among)
        for chunk in takewhile(lambda chunk: not self._stop.is_set(), chunks):
            self._take(chunk)
        self._ids = self._order()

    def _scan_keys(self) -> None:
        """Words that are looked for in shards not read yet are found in keys as rows arrive: the texts are known when all are read."""
        alone = len(self.wish.conditions) == 1 and self.ordered and not self.wish.keys and self.wish.among is None
        if not self.words or not alone or self.rows.finished:
            return
        test = StreamCondition(" and ".join(f"contains(lower(key), lower({quoted_text(word)}))" for word in self.words))
        self.by_keys = True
        for chunk in self._arriving():
            self._add(self._fit(chunk, test))
            self.checked += len(chunk)
            self.rows.touch()
        self.by_keys = False

    def _ask(self) -> None:
        """What the table knows; rows show as soon as the scan has come to them."""
        wish = self.wish
        order = {"key": "key", "size": "size", "label": wish.label}.get(wish.sort, "")
        descending = wish.descending != (wish.sort == "size")
        ids = self.questions.rows(wish.condition, order, descending=descending, keys=wish.keys, stop=self._stop)
        if wish.shard is not None:
            ids = ids[ids >> RECORD_BITS == wish.shard]
        if (among := wish.among) is not None:
            ids = ids[np.isin(ids, among)]
        if wish.sort == "random":
            ids = ids[np.random.default_rng(wish.seed).permutation(len(ids))]
        if descending and wish.sort in ("order", "random"):
            ids = ids[::-1]
        while not self._stop.is_set():
            finished, early = self.rows.finished, wish.objects is None  # which boxes there are is known when all is read
            known = self.rows.exist(ids)
            if finished or (early and known.all()):
                ids = ids[known]
                if wish.objects is not None:
                    ids, self.boxes = self.questions.objects(ids, wish.objects)
                self._ids, self.found = ids, len(ids)
                break
            if early and self.ordered:
                self._ids, self.found = ids, int(np.argmin(known))
                self.rows.touch()
            self.rows.wait(0.5)
        self.checked = sum(shard.count for shard in self.rows.shards)

    def _arriving(self) -> Iterator[NDArray[np.int64]]:
        """Row numbers of one shard at a time, as scanning finds them, until all are scanned or the search is stopped."""
        chosen = self.rows.shards if self.wish.shard is None else self.rows.shards[self.wish.shard : self.wish.shard + 1]
        for number in [shard.number for shard in chosen]:
            at = 0
            while not self._stop.is_set():
                shard = self.rows.shards[number]
                seen, finished = shard.count, shard.finished
                if at < seen:
                    stop = min(seen, at + _CHUNK)
                    yield np.arange(row_id(number, at), row_id(number, stop), dtype=np.int64)
                    at = stop
                elif finished:
                    break
                else:
                    with self.rows.changed:
                        if self.rows.shards[number].count == seen:
                            self.rows.changed.wait(0.5)

    def _there(self, rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Those of these rows that there are, in the order they lie."""
        rows = rows[self.rows.exist(rows)]
        if self.wish.shard is not None:
            rows = rows[rows >> RECORD_BITS == self.wish.shard]
        for low in range(0, len(rows), _CHUNK):
            yield rows[low : low + _CHUNK]

    def _take(self, good: NDArray[np.int64]) -> None:
        """Those of these rows that fit, after those found before."""
        count = len(good)
        if self.wish.keys:
            good = good[[key in self.wish.keys for key in self._keys(good)]]
        for test in filter(None, self._live):
            good = self._fit(good, test)
        self._add(good)
        self.checked += count
        self.rows.touch()

    def _fit(self, ids: NDArray[np.int64], test: StreamCondition) -> NDArray[np.int64]:
        """Those of these rows, all of one shard, that fit; neighbours are asked at once."""
        found = []
        for part, row, low, high in self._segments(ids):
            index = row.index
            a, b = index.rows[[low, high]].tolist()
            rows = index.rows[low : high + 1] - a
            chunk = Chunk(row.record, index.keys(low, high), rows, index.ext[a:b], index.exts, index.members.size[a:b], _unread)
            found.append(np.intersect1d(part, test.of_chunk(chunk, row.shard.url) + row.id))
        return np.concatenate(found) if found else ids

    def _keys(self, ids: NDArray[np.int64]) -> list[str]:
        """The keys of rows in the order they lie; of neighbours without a step per row."""
        found: list[str] = []
        for part, row, low, high in self._segments(ids):
            if high - low == len(part):
                found += map(to_text, row.index.keys(low, high))
            else:  # those between would be many more
                found += [self.rows.row(each).key for each in part.tolist()]
        return found

    def _segments(self, ids: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], Row, int, int]]:
        """Ascending rows by the segments they are of: those, the first of them, and from where to where they lie in the segment."""
        at = 0
        while at < len(ids):
            row = self.rows.row(int(ids[at]))
            stop = int(np.searchsorted(ids, row_id(row.shard.number, row.segment.first + len(row.segment))))
            yield ids[at:stop], row, row.record - row.segment.first, split_id(int(ids[stop - 1]))[1] - row.segment.first + 1
            at = stop

    def _add(self, ids: NDArray[np.int64]) -> None:
        need = self.found + len(ids)
        if need > len(self._ids):
            grown = np.zeros(max(need, 2 * len(self._ids)), np.int64)
            grown[: self.found] = self._ids[: self.found]
            self._ids = grown
        self._ids[self.found : need] = ids
        self.found = need

    def _order(self) -> NDArray[np.int64]:
        ids = self._ids[: self.found]
        match self.wish.sort:
            case "random":
                order = np.random.default_rng(self.wish.seed).permutation(len(ids))
            case "size":
                sizes = np.array([sum(self.rows.row(row).sizes.values()) for row in ids.tolist()], np.int64)
                order = np.argsort(-sizes, kind="stable")
            case "key":
                keys = [self.rows.row(row).key for row in ids.tolist()]
                order = np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)
            case _:
                order = np.arange(len(ids))
        return ids[order[::-1]] if self.wish.descending else ids[order]


def find_row(rows: Rows, query: Query, text: str) -> int:
    """The row of a key, of a part of a key, or of `#number` among the rows of a query. `UsageError` where there is none."""
    number = text[1:].replace(" ", "") if text.startswith("#") else ""
    if number.isdigit():
        row = next(iter(query.ids(int(number), int(number) + 1)), None)
    else:
        row = rows.find(to_bytes(text))
        if row is None and text:
            row = _find_part(rows, to_bytes(text))
    if row is None:
        known = sum(shard.count for shard in rows.shards)
        raise UsageError(f"No record {text!r} among {known:,}{'' if rows.finished else ' scanned so far'}.")
    return row


def _find_part(rows: Rows, needle: bytes) -> int | None:
    """The number of the first known row whose key holds these bytes."""
    for shard in rows.shards:
        for segment in shard.segments:
            for low in range(0, len(segment), 65_536):
                for at, key in enumerate(segment.index.keys(low, low + 65_536), low):
                    if needle in key:
                        return row_id(shard.number, segment.first + at)
    return None


class _PayloadsWantedError(Exception):
    """A condition is about a field whose values a scan does not read."""


def _unread(rows: NDArray[np.int64], most: int | None) -> list[Buffer]:
    raise _PayloadsWantedError
