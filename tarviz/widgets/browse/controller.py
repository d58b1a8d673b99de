"""The shard browser's controller: which rows show, their tiles and labels, the record pane. It knows no GUI."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz import stores, viewers
from tarviz.model.errors import TarvizError, UsageError, redact
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL, Buffer, Record
from tarviz.query import expressions
from tarviz.read.stream import ReadOptions, URLs
from tarviz.table.choice import listed
from tarviz.viewers.panel import readable
from tarviz.widgets.answers.jobs import Job
from tarviz.widgets.answers.keep_answers import KeepAnswers
from tarviz.widgets.answers.questions import Questions
from tarviz.widgets.answers.table_answers import TableAnswers
from tarviz.widgets.browse import counts as browse_counts
from tarviz.widgets.browse import export, python_calls, status
from tarviz.widgets.browse.labels import Labels
from tarviz.widgets.browse.query import Query, Wish, find_row
from tarviz.widgets.browse.record_pane.record_answers import RecordAnswers
from tarviz.widgets.browse.rows import Row, Rows, row_id
from tarviz.widgets.browse.scan import Scan
from tarviz.widgets.browse.thumbnails import SIZES, Tile, Tiles
from tarviz.widgets.host import contact_sheet
from tarviz.widgets.host.rpc import Answer, Message, rpc
from tarviz.widgets.map.map_answers import MapAnswers
from tarviz.widgets.panes.overlays import Overlays, painted
from tarviz.write import Exists

FIRST = 24
MOST_COMPARED = 12
_STILL = 12  # records that can be opened where there is no kernel


@dataclass(frozen=True, slots=True)
class RecordRef:
    """A record by its place: the URL of its shard, its number there (from 0), its key."""

    shard: str
    index: int
    key: str

    __repr__ = redacted_repr


class Browser(RecordAnswers, TableAnswers, KeepAnswers, MapAnswers):
    """Shards being looked at. Scanning begins at once, on a thread; every method may be called from any thread.

    `where` is a condition of `tarviz.table`, `keys` a list of keys or the name of a file of them, `also` further conditions, which the
    page shows one by one; `sort` is one of order, key, size, label, random (with `seed`), `image`
    names the field shown in the grid, `label` the expression below each tile (`cls`, `json.label` or `json:label`), `px` the tiles' side
    (96, 160, 256), `start` a key or `#number` to begin at, `classes` names class numbers. `overlay` says where boxes or a mask over the
    picture come from (`json.annotations`, `json.boxes:xyxy`, `seg.png`, `none`; "" finds them). `UsageError` for what cannot work.
    """

    script = "browse"

    def __init__(
        self,
        urls: URLs,
        *,
        where: str = "",
        keys: str | Sequence[str] = (),
        also: Sequence[str] = (),
        sort: str = "order",
        seed: int = 0,
        label: str | None = None,
        image: str = "",
        px: int = 160,
        start: str = "",
        classes: Sequence[str] | Mapping[int, str] = (),
        overlay: str = "",
        cache: bool = True,
        options: ReadOptions | None = None,
    ) -> None:
        if px not in SIZES:
            raise UsageError(f"Tiles have {', '.join(map(str, SIZES))} pixels, not {px}.")
        self.urls = [urls] if isinstance(urls, (str, PathLike)) else list(urls)
        self.image = image.lower()
        self.px = px
        self.start = start
        self.classes = {at: str(name) for at, name in (classes.items() if isinstance(classes, Mapping) else enumerate(classes))}
        label = None if label is None else label.replace(":", ".", 1)
        if label:
            expressions.parse_value(label)
        self.labels = Labels(label, self.classes)
        self.overlay = overlay
        self.overlays = Overlays(overlay)
        self.keys = frozenset(listed(keys)) if keys else frozenset()
        wish = Wish(where, sort, seed, label=label or "", also=tuple(also), keys=self.keys)
        self.rows = Rows(stores.expand(self.urls))
        self.tiles = Tiles(overlays=self.overlays)
        options = replace(options or ReadOptions(), strict=False, where="", keys=())
        self.questions = Questions(self.rows, options)
        self.job = Job(self.questions.told)
        self.query = Query(self.rows, wish, self.questions).start()
        self.scan = Scan(self.rows, options, cache=cache)
        if self.query.needs_content:
            self.scan.go_on()
        self.selected: RecordRef | None = None
        self.marked: list[RecordRef] = []
        self.state: Message = {}
        self.changed: Callable[[], None] = lambda: None
        self.label_counts: dict[str, int] = {}
        self._summary: tuple[int, Message] = (-1, {})
        self._lock = threading.Lock()
        self._queries = 0
        self.closed = False

    @rpc
    def poll(self, since: int = -1, want: int = 0, idle: bool = False) -> Message:
        """What changed after version `since`; `want`: how far the rows are looked at; `idle`: look for changes on disk too."""
        self.scan.want(want)
        if idle:
            status.notice_changes(self.rows)
        version = self.rows.version
        query = self.query
        answer: Message = {
            "version": version,
            "query": {
                "number": query.number,
                "count": len(query),
                "checked": query.checked,
                "ordered": query.ordered,
                "done": query.done or (query.wish.plain and self.rows.finished),
                "error": redact(str(query.error)) if query.error else "",
                "note": self.making() if not query.done and query.needs_content else "",
                "seconds": round(query.seconds, 2),
            },
            "total": sum(shard.count for shard in self.rows.shards),
            "exact": self.rows.finished,
            "shards": [status.shard_message(shard) for shard in self.rows.shards if shard.changed > since or since < 0],
            "status": status.sentence(self.rows),
            "table": self.about_table(),
            "job": self.job.message(),
        }
        if version > since:
            answer["summary"] = self._figures(version)
        return answer

    def _figures(self, version: int) -> Message:
        with self._lock:
            if self._summary[0] != version:
                fields, sets = browse_counts.patterns(self.rows)
                shown = [[[readable(ext) for ext in names], count] for names, count in sets]
                faults = status.faults(self.rows)
                self._summary = version, {"fields": [[readable(e), n] for e, n in fields.items()], "sets": shown, "faults": faults}
            return self._summary[1]

    @rpc
    def fetch(self, query: int, start: int, stop: int, px: int = 160, image: str = "", label: str | None = None) -> Answer:
        """Rows at the positions `start`…`stop` (at most 120) of a query, each with its tile and label."""
        if query != self.query.number:
            return {"query": query, "start": start, "rows": [], "stale": True}, []
        stop = min(stop, start + 120)
        self.scan.want(stop)
        return self._message(self.query.ids(start, stop), query, start, px if px in SIZES else 160, image or self.image, label)

    def _message(self, ids: list[int], query: int, start: int, px: int, image: str, label: str | None) -> Answer:
        with self.scan.calm():
            rows = [self.rows.row(one) for one in ids]
            label = self.label_of(rows) if label is None else label
            expression = expressions.parse_value(label) if label else None
            needs = expression.needs if expression else frozenset()
            unlabelled = frozenset() if all(self.labels.known(row, label) is not None for row in rows) else needs
            tiles, read = self.tiles.get(rows, image, px, unlabelled)
        buffers: list[Buffer] = []
        shown = []
        names: set[str] = set()
        for row, tile, blobs in zip(rows, tiles, read, strict=True):
            item: Message = {"id": row.id, "n": row.record, "s": row.shard.number, "key": readable(row.key[:1200])}
            item |= {
                "fields": [readable(ext) for ext in row.fields],
                "label": self.labels.text(row, label, expression, blobs),
                "pending": row.pending,
            }
            item["tile"] = {"ext": readable(tile.ext), "text": readable(tile.text), "reason": tile.reason}
            if tile.picture:
                item["tile"]["buffer"] = len(buffers)
                buffers.append(tile.picture)
            if tile.over:
                item["tile"]["over"] = tile.over.message(buffers)
                names |= {shape.name for shape in tile.over.shapes}
            shown.append(item)
        colours = {readable(name[:80]): self.overlays.colour(name) for name in names}
        found = {"query": query, "ordered": self.query.ordered, "start": start, "rows": shown, "label": label, "px": px, "colours": colours}
        return found, buffers

    def row_message(self, row: int) -> Answer:
        return self._message([row], self.query.number, 0, SIZES[0], self.image, None)

    def label_of(self, rows: Sequence[Row]) -> str:
        """The label chosen, or the first usual class or caption that these rows have; settled once rows are there."""
        return self.labels.of(rows, [self.tiles.shown(row, self.image) for row in rows[:4]])

    @rpc
    def search(
        self,
        where: str = "",
        sort: str = "order",
        seed: int = 0,
        shard: int | None = None,
        label: str = "",
        only: list[int] | None = None,
        descending: bool = False,
        also: list[str] | None = None,
        area: list[float] | None = None,
    ) -> Message:
        """Show other rows (of the rows `only`, and inside the line `area` on the map), or another order. `UsageError` where a condition
        cannot be read."""
        if sort == "label" and not label:
            label = self.label_of([self.rows.row(row) for row in self.rows.ids(0, 1)])
        among = None if only is None else tuple(only)
        label = label or self.labels.chosen or ""
        wish = Wish(where, sort, seed, shard, label, among, bool(descending), tuple(also or ()), self.keys, self.inside(area))
        with self._lock:
            self._queries += 1
            query = Query(self.rows, wish, self.questions, self._queries).start()
            self.query.stop()
            self.query = query
        self.scan.look_at(shard)
        if query.needs_content:
            self.scan.go_on()
        found: Message = {"query": query.number, "where": where, "sort": sort, "seed": seed, "shard": shard, "also": list(wish.also)}
        return found | {"descending": descending, "python": self.spec}

    @rpc
    def stop(self) -> Message:
        """End the running search; what was found stays."""
        self.query.stop()
        return {}

    @rpc
    def go_on(self) -> Message:
        """Scan every shard to its end."""
        self.scan.go_on()
        return {}

    def scan_all(self) -> None:
        self.scan.go_on()

    @rpc
    def again(self, shard: int) -> Message:
        """Scan a shard anew."""
        self.scan.again(self.rows.shards[int(shard)])
        self.tiles.forget()
        self.labels.forget()
        self.questions.forget()
        wish = self.query.wish
        return self.search(wish.where, wish.sort, wish.seed, wish.shard, wish.label, None, wish.descending, list(wish.also))

    @rpc
    def call(self, marked: list[int] | None = None) -> Message:
        """The Python call that shows what is shown now, or the one that compares marked records."""
        if marked is None:
            return {"python": readable(self.spec)}
        refs = [ref for row in marked if (ref := self._ref(row)) is not None]
        keys = [ref.key for ref in refs[:MOST_COMPARED]]
        return {"python": python_calls.compare(self.urls, self.image or self._picture(marked), keys, len(refs))}

    def _picture(self, rows: list[int]) -> str:
        """The first picture of the first of these rows, in the words of a chain."""
        fields = self.rows.row(rows[0]).fields if rows else []
        found = next((ext for ext in fields if viewers.choose(ext) == "image"), "jpg")
        return found if found.isidentifier() else repr(found)

    @rpc
    def find(self, text: str) -> Message:
        """The row of a key, of a part of a key, or of `#number` among the rows shown, and where it shows."""
        row = find_row(self.rows, self.query, text.strip())
        return {"row": row, "position": self.query.position(row)}

    def first(self) -> Answer:
        self.wait(FIRST, 0.4)
        message, buffers = self._message(self.query.ids(0, FIRST), self.query.number, 0, self.px, self.image, None)
        wish = self.query.wish
        config: Message = {"title": self.title, "px": self.px, "sizes": list(SIZES), "image": self.image, "start": self.start}
        config["also"] = list(wish.also)
        config |= {"where": wish.where, "sort": wish.sort, "seed": wish.seed, "label": self.labels.chosen or "", "python": self.spec}
        return {"config": config, "poll": self.poll(), "rows": message}, buffers

    def wait(self, count: int, seconds: float) -> bool:
        """Wait until `count` rows show, or all that there are; False when the time was over first."""
        until = time.monotonic() + seconds
        self.scan.want(count)
        with self.rows.changed:
            while len(self.query) < count and not (self.rows.finished and (self.query.done or self.query.wish.plain)):
                left = until - time.monotonic()
                if left <= 0:
                    return False
                self.rows.changed.wait(left)
        return True

    def text(self) -> str:
        fields, _ = browse_counts.patterns(self.rows)
        return status.summary(self.title, self.rows, fields, [self.rows.row(row).key for row in self.query.ids(0, 5)])

    def picture(self) -> bytes:
        self.wait(FIRST, 0.4 if all(shard.local for shard in self.rows.shards[:1]) else 1.5)
        try:
            rows = [self.rows.row(row) for row in self.query.ids(0, FIRST)]
            tiles, _ = self.tiles.get(rows, self.image, self.px)
        except (TarvizError, OSError):
            return b""
        with self.scan.calm():
            return self._sheet(rows, tiles)

    def _sheet(self, rows: list[Row], tiles: list[Tile]) -> bytes:
        labels = [self.labels.known(row, self.labels.chosen or "") or "" for row in rows]
        captions = [" · ".join(filter(None, (label, row.key.rpartition("/")[2]))) for row, label in zip(rows, labels, strict=True)]
        pairs = zip(tiles, captions, strict=True)
        cells = [
            contact_sheet.Cell(painted(tile.picture, tile.over, self.overlays), tile.reason or tile.text, caption, bool(tile.reason))
            for tile, caption in pairs
        ]
        return contact_sheet.sheet(self.title, status.sentence(self.rows), cells)

    def likely(self) -> Iterator[tuple[str, Message | None]]:
        self.wait(FIRST, 5.0)
        rows = self.query.ids(0, _STILL)
        yield "poll", None
        if self.start:
            with suppress(UsageError):
                rows = list(dict.fromkeys([self.find(self.start)["row"], *rows]))
            yield "find", {"text": self.start}
        for row in rows:
            yield "record", {"row": row, "ext": "", "options": {}}
        yield from self.likely_of_table()
        for row in rows:
            yield "example", {"row": row}
            for ext in self.rows.row(row).fields:
                yield "header", {"row": row, "ext": ext}
                yield "record", {"row": row, "ext": ext, "options": {}}

    def remember(self, state: Message) -> None:
        self.state = state
        self.selected = self._ref(state.get("selected"))
        self.marked = [ref for row in list(state.get("marked") or ())[:100_000] if (ref := self._ref(row)) is not None]
        if isinstance(state.get("px"), int) and state["px"] in SIZES:
            self.px = state["px"]
        self.image = str(state.get("image") or self.image)
        self.changed()

    def _ref(self, row: Any) -> RecordRef | None:
        try:
            found = self.rows.row(row) if isinstance(row, int) else None
        except IndexError:
            return None
        return None if found is None else RecordRef(found.shard.url, found.record, found.key)

    @property
    def title(self) -> str:
        """The shards as they were named."""
        return readable(redact(" ".join(str(url) for url in self.urls)))[:300]

    @property
    def spec(self) -> str:
        """The Python call that shows what is shown now."""
        start = self.selected.key if self.selected else ""
        chosen = {"image": self.image, "label": self.labels.given or "", "px": self.px, "overlay": self.overlay, "start": start}
        return python_calls.browse(self.urls, self.query.wish, chosen)

    def write(self, path: str | PathLike[str], *, exists: Exists = "error") -> int:
        """Write the marked records, or else all that show, by the name's end (see `export.KINDS`): how many."""
        urls = [shard.url for shard in self.rows.shards]
        ids = [row_id(urls.index(URL(ref.shard)), ref.index) for ref in self.marked]
        return self.write_rows(self.chosen_rows(ids or None), str(path), exists=exists)

    def write_rows(self, ids: NDArray[np.int64], path: str, *, exists: Exists = "error") -> int:
        return export.write(path, self.rows, ids, self.questions, exists=exists)

    def records(self) -> Iterator[Record]:
        """The records of the rows that show, in their order, as far as they are known."""
        for low in range(0, len(self.query), 256):
            for row in self.query.ids(low, low + 256):
                yield self.rows.row(row).load()

    def close(self) -> None:
        self.closed = True
        self.query.stop()
        self.job.stop()
        self.end_map()
        self.scan.close()
        self.tiles.close()
        self.rows.close()
