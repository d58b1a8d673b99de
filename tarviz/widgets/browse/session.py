"""One page of the browser: its search, order and tiles are its own; rows, columns, marks and tags are everybody's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from tarviz import viewers
from tarviz.model.errors import redact
from tarviz.model.types import Buffer, to_bytes
from tarviz.table.interrupts import stop_error
from tarviz.viewers.panel import readable
from tarviz.widgets.answers.by_hand import ViewAnswers
from tarviz.widgets.answers.keep_answers import KeepAnswers
from tarviz.widgets.answers.table_answers import TableAnswers
from tarviz.widgets.browse import python_calls, status
from tarviz.widgets.browse.look import Answers, Look, RecordRef
from tarviz.widgets.browse.opened import OpenShards
from tarviz.widgets.browse.query import Query, ViewWish, find_row
from tarviz.widgets.browse.record_pane.record_answers import RecordAnswers
from tarviz.widgets.browse.rows import split_id
from tarviz.widgets.browse.thumbnails import SIZES
from tarviz.widgets.browse.tile_rows import TileRows
from tarviz.widgets.host.rpc import Answer, Message, rpc
from tarviz.widgets.map.map_answers import MapAnswers

MOST_COMPARED = 12
ALIVE = 30.0
"""Seconds after which a page that asked nothing counts as closed."""


class Session(Answers):
    """What one page asks. `spec` is the Python call that shows what a look shows; `used` hears that this page was worked with."""

    def __init__(
        self, shards: OpenShards, look: Look, *, spec: Callable[[Look], str], used: Callable[[Session], None], pages: Callable[[], int]
    ) -> None:
        super().__init__(shards, look)
        self.spec = partial(spec, look)
        self.asked = time.monotonic()
        self._used = used
        self._pages = pages
        self._lock = threading.Lock()
        self._asked = [0.0, 0.0]  # when the page asked for what it shows
        self.page = TileRows(shards, look)
        self.records = RecordAnswers(shards, look)
        self.table = TableAnswers(shards, look)
        self.keeping = KeepAnswers(shards, look)
        self.map = MapAnswers(shards, look)
        self.views = ViewAnswers(shards, look)
        self.parts = (self, self.page, self.records, self.table, self.keeping, self.map, self.views)

    @rpc
    def poll(self, since: int = -1, want: int = 0, idle: bool = False) -> Message:
        """What changed after version `since`; `want`: how far the rows are looked at; `idle`: look for changes on disk too."""
        rows, query, marks = self.rows, self.look.query, self.shards.marks
        self.scan.want(want)
        if idle:
            status.notice_changes(rows)
        version = rows.version
        answer: Message = {
            "version": version,
            "query": {
                "number": query.number,
                "count": len(query),
                "checked": query.checked,
                "ordered": query.ordered,
                "done": query.done or (query.wish.plain and rows.finished),
                "error": redact(str(query.error)) if query.error else "",
                "note": self.table.making() if not query.done and query.needs_content and not query.by_keys else "",
            },
            "total": sum(shard.count for shard in rows.shards),
            "exact": rows.finished,
            "shards": [status.shard_message(shard) for shard in rows.shards if shard.changed > since or since < 0],
            "trouble": next(filter(None, map(status.trouble, rows.shards)), ""),
            "status": status.sentence(rows),
            "table": self.table.about_table(),
            "job": self.shards.job.message(),
            "marks": {"version": marks.version, "count": len(marks)},
            "pages": self._pages(),
        }
        if version > since:
            answer["summary"] = self.shards.figures(version)
        return answer

    @rpc
    def search(
        self,
        where: str = "",
        sort: str = "order",
        seed: int = 0,
        shard: int | None = None,
        label: str = "",
        only: bool = False,
        descending: bool = False,
        also: list[str] | None = None,
        area: list[float] | None = None,
        objects: list[str] | None = None,
        asked: list[float] | None = None,
    ) -> Message:
        """Show other rows (`only` the marked ones, and inside the line `area` on the map), or another order; with `objects` one for each
        box, of these classes alone where any is named. `UsageError` where a condition cannot be read, and where the page has `asked` for
        another since: when it was opened, and the milliseconds from then on."""
        if sort == "label" and not label:
            label = self.page.label_of([self.rows.row(row) for row in self.rows.ids(0, 1)])
        label = label or self.labels.chosen or ""
        among = tuple(self.shards.marks.array().tolist()) if only else None
        inside, boxes = self.map.inside(area), None if objects is None else tuple(objects)
        keys = self.look.query.wish.keys
        return self._show(ViewWish(where, sort, seed, shard, label, among, bool(descending), tuple(also or ()), keys, inside, boxes), asked)

    def _show(self, wish: ViewWish, asked: list[float] | None = None) -> Message:
        with self._lock:
            if asked is not None:
                opened, since = self._asked
                if asked[0] == opened and asked[1] < since:  # requests that are under way overtake each other
                    raise stop_error()
                self._asked = asked
            before = self.look.query
            query = self.look.query = Query(self.rows, wish, self.questions, next(self.shards.numbers)).start()
        before.stop()
        self._used(self)
        self.scan.look_at(wish.shard)
        if wish.plain or (wish.sort == "order" and not wish.conditions):
            self.scan.rest(self)
        else:  # what is searched for may lie behind what was read so far
            self.scan.go_on(self)
        found: Message = {"query": query.number, "where": wish.where, "sort": wish.sort, "seed": wish.seed, "shard": wish.shard}
        found |= {"also": list(wish.also), "descending": wish.descending, "words": [readable(word) for word in query.words]}
        return found | {"python": self.spec()}

    @rpc
    def stop(self) -> Message:
        """End the running search, and reading for its sake; what was found stays."""
        self.look.query.stop()
        self.scan.rest(self)
        return {}

    @rpc
    def go_on(self) -> Message:
        """Scan every shard to its end."""
        self.scan.go_on()
        return {}

    @rpc
    def again(self, shard: int) -> Message:
        """Scan a shard anew."""
        self.shards.again(int(shard))
        return self._show(replace(self.look.query.wish, only=None, area=None))

    @rpc
    def mark(self, add: list[int] | None = None, drop: list[int] | None = None) -> Message:
        """Mark rows and unmark others, for every page: the rows that were not marked before, and those that were."""
        marks, shards = self.shards.marks, self.rows.shards
        for shard, record in map(split_id, add or ()):
            if shards[shard].count <= record:
                raise IndexError(f"record {record} of {shards[shard].count}")
        fresh, gone = marks.change(add or (), drop or ())
        return {"version": marks.version, "count": len(marks), "added": fresh, "dropped": gone}

    @rpc
    def mark_shown(self, query: int, start: int = 0, stop: int | None = None, how: str = "mark") -> Message:
        """Mark the rows at the positions `start`…`stop` that a search shows (None: all of them), "unmark" them, or "invert" their marks."""
        found = self.look.search(query)
        ids = list(dict.fromkeys(found.ids(start, len(found) if stop is None else stop)))
        marked = self.shards.marks.rows
        add = [row for row in ids if row not in marked] if how in ("mark", "invert") else []
        return self.mark(add, [row for row in ids if row in marked] if how in ("unmark", "invert") else [])

    @rpc
    def marks(self) -> Answer:
        """The rows that are marked: float64 [n], which holds their numbers exactly."""
        marks = self.shards.marks
        version, ids = marks.version, marks.array()
        buffers: list[Buffer] = [ids.astype(np.float64).tobytes()]
        return {"version": version, "count": len(ids)}, buffers

    @rpc
    def call(self, marked: bool = False) -> Message:
        """The Python call that shows what is shown now, or the one that compares marked records."""
        if not marked:
            return {"python": readable(self.spec())}
        rows = self.shards.marks.array().tolist()
        refs = {row: ref for row in rows[:MOST_COMPARED] if (ref := RecordRef.of(self.rows, row)) is not None}
        field = self.look.image or self._picture(rows)
        records = [  # a key is its first record's
            repr(ref.key) if self.rows.find(to_bytes(ref.key)) == row else python_calls.record(ref.shard, ref.index)
            for row, ref in refs.items()
        ]
        return {"python": python_calls.compare(self.shards.urls, field, records, len(rows))}

    def _picture(self, rows: list[int]) -> str:
        """The first picture of the first of these rows, in the words of a chain."""
        fields = self.rows.row(rows[0]).fields if rows else []
        found = next((ext for ext in fields if viewers.choose(ext) == "image"), "jpg")
        return found if found.isidentifier() else repr(found)

    @rpc
    def find(self, text: str, at: int | None = None) -> Message:
        """The row of a key, of a part of a key, or of `#number` among the rows shown, and where it shows: `at`, where it does (too)."""
        query = self.look.query
        for row in [] if at is None else query.ids(at, at + 1):
            if text in (f"#{at}", readable(self.rows.row(row).key)):
                return {"row": row, "position": at}
        row = find_row(self.rows, query, text.strip())
        return {"row": row, "position": query.position(row)}

    def remember(self, state: Message) -> None:
        """What the page shows beside its rows: the record under its cursor, the field and the side of its tiles."""
        self.look.selected = RecordRef.of(self.rows, state.get("selected"))
        if state.get("px") in SIZES:
            self.look.px = state["px"]
        self.look.image = str(state.get("image") or "")
        self._used(self)

    def close(self) -> None:
        self.look.query.stop()
        self.table.stop_sql()
        self.scan.rest(self)
        self.shards.maps.leave(id(self.map))
