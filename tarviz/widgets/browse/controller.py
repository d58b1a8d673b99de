"""The shard browser's controller: shards that any number of pages look at, each in its own way. It knows no GUI."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from os import PathLike

from tarviz.formats.field_path import field_path
from tarviz.model.class_names import ClassNames, class_names
from tarviz.model.errors import TarvizError, UsageError, redact
from tarviz.model.types import Record
from tarviz.outputs import Exists
from tarviz.read.stream import ReadOptions, URLs
from tarviz.table.choice import list_keys
from tarviz.viewers.panel import readable
from tarviz.widgets.browse import counts as browse_counts
from tarviz.widgets.browse import export, python_calls, status
from tarviz.widgets.browse.look import Look, RecordRef
from tarviz.widgets.browse.opened import OpenShards
from tarviz.widgets.browse.query import Query, ViewWish
from tarviz.widgets.browse.record_pane.record_answers import media
from tarviz.widgets.browse.session import ALIVE, Session
from tarviz.widgets.browse.thumbnails import SIZES
from tarviz.widgets.host import contact_sheet
from tarviz.widgets.host.rpc import Answer, Controller, Media, Message
from tarviz.widgets.map.points import MapPoints
from tarviz.widgets.panes.overlays import paint

FIRST = 24
MOST_SESSIONS = 64
"""Pages whose searches are kept; one that was forgotten searches anew when it asks again."""
_MOST_SAVED = 1000  # records whose tiles are saved for where there is no kernel
_STILL = 12  # records that can be opened where there is no kernel


class Browser(Controller):
    """Shards being looked at by any number of pages. Scanning begins at once, on a thread; every method may be called from any thread.

    `where` is a condition of `tarviz.table`, `keys` a list of keys or the name of a file of them, `also` further conditions, which the
    page shows one by one; `sort` is one of order, key, size, label, random (with `seed`), `image`
    names the field shown in the grid, `label` the expression below each tile (`cls`, `json.label` or `json:label`), `px` the tiles' side
    (96, 160, 256), `start` a key or `#number` to begin at, `classes` names class numbers. `overlay` says where boxes or a mask over the
    picture come from (`json.annotations`, `json.boxes:xyxy`, `seg.png`, `none`; "" finds them). `UsageError` for what cannot work.

    `shards` is what all pages share, marks and tags included; every page has a `Session` with a search and an order of its own. What
    Python asks for (`selected`, `records()`, `spec`) is of the page that was used last.
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
        classes: ClassNames = (),
        overlay: str = "",
        cache: bool = True,
        options: ReadOptions | None = None,
    ) -> None:
        if px not in SIZES:
            raise UsageError(f"Tiles have {', '.join(map(str, SIZES))} pixels, not {px}.")
        label = None if label is None else label.replace(":", ".", 1)
        if label:
            field_path(label)
        wish = ViewWish(where, sort, seed, label=label or "", also=tuple(also), keys=frozenset(list_keys(keys)) if keys else frozenset())
        self._cache = cache
        self.start = start
        self.overlay = overlay
        self.shards = OpenShards(urls, label, class_names(classes), overlay, options, cache=cache)
        self.shards.marks.changed = self._tell_marks
        self._first = Look(Query(self.shards.rows, wish, self.shards.questions).start(), image.lower(), px)
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._lock = threading.Lock()
        self.changed: Callable[[], None] = lambda: None
        self.named = ""  # what its reader calls these shards, where that is not their URLs
        self.closed = False
        self.session = self._begin("")
        if self.query.needs_content:
            self.shards.scan.go_on()

    def _begin(self, name: str) -> Session:
        """A session that shows what the browser was opened with."""
        query = self._first.query
        if name and not (query.done or query.wish.plain):  # one that is stopped must not end the search of another
            query = Query(query.rows, query.wish, query.questions, query.number).start()
        session = Session(self.shards, replace(self._first, query=query), spec=self.spec_of, used=self._use, pages=self._pages)
        self._sessions[name] = session
        return session

    def session_of(self, name: str) -> Session:
        """The session of a page; it begins when the page asks for the first time, and ends when many others have asked since."""
        with self._lock:
            session = self._sessions.get(name) or self._begin(name)
            session.asked = time.monotonic()
            self._sessions.move_to_end(name)
            ended = []
            while len(self._sessions) > MOST_SESSIONS:
                oldest = next(other for other, one in self._sessions.items() if other and one is not session)
                ended.append(self._sessions.pop(oldest))
        for one in ended:
            one.close()
        return session

    def parts(self, session: str) -> Iterable[object]:
        return self.session_of(session).parts

    def _pages(self) -> int:
        """How many pages asked something lately."""
        since = time.monotonic() - ALIVE
        return sum(session.asked > since for name, session in list(self._sessions.items()) if name)

    def _use(self, session: Session) -> None:
        self.session = session
        self.changed()

    def _tell_marks(self) -> None:
        self.shards.rows.touch()
        self.changed()

    def beside(self, urls: str) -> Browser:
        return Browser([urls], px=self._first.px, cache=self._cache, options=self.shards.questions.options)

    @property
    def query(self) -> Query:
        """The rows that the page shows."""
        return self.session.look.query

    @property
    def selected(self) -> RecordRef | None:
        return self.session.look.selected

    @property
    def marked(self) -> list[RecordRef]:
        """The records that are marked, in the order they lie."""
        refs = (RecordRef.of(self.shards.rows, row) for row in self.shards.marks.array().tolist())
        return [ref for ref in refs if ref is not None]

    def first(self, session: str = "") -> Answer:
        return self._first_rows(session, FIRST)

    def still(self, budget: int) -> Answer:
        found = self._first_rows("", FIRST)
        each = sum(memoryview(picture).nbytes for picture in found[1]) // FIRST + 300
        most = min(_MOST_SAVED, budget // each)
        return self._first_rows("", most) if most > FIRST else found

    def _first_rows(self, session: str, count: int) -> Answer:
        page = self.session_of(session) if session else self.session
        page.views.opener = self.opener
        self.wait(count, 0.4 if count == FIRST else 10.0)
        message, buffers = page.page.first(count)
        look, wish = page.look, page.look.query.wish
        config: Message = {"title": self.title, "px": look.px, "sizes": list(SIZES), "image": look.image, "start": self.start}
        config |= {"where": wish.where, "also": list(wish.also), "sort": wish.sort, "seed": wish.seed}
        config |= {"label": self.shards.labels.chosen or "", "marked": self.shards.marks.array().tolist()}
        config |= {"python": page.spec(), "opens": self.opener is not None}
        return {"config": config, "poll": page.poll(), "rows": message}, buffers

    def wait(self, count: int, seconds: float) -> bool:
        """Wait until `count` rows show, or all that there are; False when the time was over first."""
        rows = self.shards.rows
        self.shards.scan.want(count)

        def there() -> bool:
            return len(self.query) >= count or (rows.finished and (self.query.done or self.query.wish.plain))

        with rows.changed:
            return rows.changed.wait_for(there, seconds)

    def text(self) -> str:
        rows = self.shards.rows
        fields, _ = browse_counts.patterns(rows)
        return status.summary(self.title, rows, fields, [rows.row(row).key for row in self.query.ids(0, 5)])

    def picture(self) -> bytes:
        shards, look = self.shards, self.session.look
        self.wait(FIRST, 0.4 if all(shard.local for shard in shards.rows.shards[:1]) else 1.5)
        try:
            rows = [shards.rows.row(row) for row in look.query.ids(0, FIRST)]
            tiles, _ = shards.tiles.get(rows, look.image, look.px)
        except (TarvizError, OSError):
            return b""
        cells = []
        with shards.scan.calm():
            for row, tile in zip(rows, tiles, strict=True):
                label = shards.labels.find(row, shards.labels.chosen or "")
                caption = " · ".join(filter(None, (label, row.key.rpartition("/")[2])))
                picture = paint(tile.picture, tile.over, shards.overlays)
                cells.append(contact_sheet.Cell(picture, tile.reason or tile.text, caption, bool(tile.reason)))
            return contact_sheet.sheet(self.title, status.sentence(shards.rows), cells)

    def likely(self) -> Iterator[tuple[str, Message | None]]:
        self.wait(FIRST, 5.0)
        rows = self.query.ids(0, _STILL)
        yield "poll", None
        if self.start:
            with suppress(UsageError):
                rows = list(dict.fromkeys([self.session.find(self.start)["row"], *rows]))
            yield "find", {"text": self.start, "at": 0}
        for row in rows:
            yield "record", {"row": row, "ext": "", "options": {}}
        yield from self.session.table.likely_of_table()
        for row in rows:
            yield "example", {"row": row}
            for ext in self.shards.rows.row(row).fields:
                yield "header", {"row": row, "ext": ext}
                yield "record", {"row": row, "ext": ext, "options": {}}

    def remember(self, state: Message, session: str = "") -> None:
        self.session_of(session).remember(state)

    def media(self, path: str) -> Media | None:
        return media(self.shards.rows, path)

    @property
    def title(self) -> str:
        """The shards as they were named."""
        return readable(redact(self.named or " ".join(str(url) for url in self.shards.urls)))[:300]

    @property
    def spec(self) -> str:
        """The Python call that shows what is shown now."""
        return self.session.spec()

    def spec_of(self, look: Look) -> str:
        """The Python call that shows what a look shows."""
        start = look.selected.key if look.selected else ""
        chosen = {"image": look.image, "label": self.shards.labels.given or "", "px": look.px, "overlay": self.overlay, "start": start}
        return python_calls.browse(self.shards.urls, look.query.wish, chosen)

    def write(self, path: str | PathLike[str], *, exists: Exists = "error") -> int:
        """Write the marked records, or else all that show, by the name's end (see `export.KINDS`): how many."""
        ids = self.session.keeping.choose(self.query.number, bool(len(self.shards.marks)))
        return export.write(path, self.shards.rows, ids, self.shards.questions, exists=exists)

    def map(self, x: str, y: str = "", by: str = "pca") -> MapPoints:
        """Records as points, when they are made; the map of the page is of these from now on."""
        return self.session.map.map(x, y, by)

    def records(self) -> Iterator[Record]:
        """The records of the rows that show, in their order, as far as they are known."""
        for low in range(0, len(self.query), 256):
            for row in self.query.ids(low, low + 256):
                yield self.shards.rows.row(row).load()

    def close(self) -> None:
        self.closed = True
        for session in list(self._sessions.values()):
            session.close()
        self.shards.close()
