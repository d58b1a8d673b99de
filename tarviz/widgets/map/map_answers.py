"""What the map of a browser asks: what it can show, where points lie, their colours, which show, whose picture is under the cursor.

Places, colours and what shows go as one binary buffer each: float32 and uint8, a point after the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from tarviz import viewers
from tarviz.looks import projection
from tarviz.model.errors import TarvizError, UsageError, redact
from tarviz.table.columns import RECORD
from tarviz.viewers.panel import readable
from tarviz.widgets.browse import counts as browse_counts
from tarviz.widgets.browse.look import Answers
from tarviz.widgets.browse.tile_rows import TileRows
from tarviz.widgets.host.behind import failure, start_thread
from tarviz.widgets.host.rpc import Answer, Message, rpc
from tarviz.widgets.map import axes, vectors
from tarviz.widgets.map.colours import colour_points
from tarviz.widgets.map.points import MapPoints

_PATIENCE = 0.25  # seconds until a request says that points are still being made


class Making:
    """Points that are made on a thread. `said` tells how far it is."""

    def __init__(self, make: Callable[[Making], MapPoints]) -> None:
        self.said = "reading"
        self.points: MapPoints | None = None
        self.error: TarvizError | None = None
        self.stopped = threading.Event()
        self._make = make
        self.thread = start_thread("map", self._work)

    def say(self, text: str) -> None:
        """How far it is. `UsageError` (E_STOPPED) when another map was asked for."""
        if self.stopped.is_set():
            raise UsageError("stopped.", code="E_STOPPED")
        self.said = text

    def _work(self) -> None:
        try:
            points = self._make(self).shuffle()
            points.sorted  # noqa: B018 (the first line around points is answered as fast as the others)
            self.points = points
        except Exception as error:  # noqa: BLE001 - whatever it is, the page says it
            self.error = failure(error, "The map cannot be made")


class Maps:
    """The maps that pages look at: points of one kind are made once, for all of them."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, ...], Making] = {}
        self._pages: dict[int, tuple[str, ...]] = {}  # what each page looks at
        self._lock = threading.Lock()

    def begin(self, page: int, spec: tuple[str, ...], make: Callable[[Making], MapPoints]) -> Making:
        """Points of a kind, from now on what `page` looks at; what nobody looks at any more is stopped and forgotten."""
        with self._lock:
            self._pages[page] = spec
            for other in set(self._made) - set(self._pages.values()):
                self._made.pop(other).stopped.set()
            if (making := self._made.get(spec)) is None or making.error is not None:
                making = self._made[spec] = Making(make)
            return making

    def leave(self, page: int) -> None:
        """A page looks at no map any more."""
        with self._lock:
            self._pages.pop(page, None)

    def close(self) -> None:
        for making in list(self._made.values()):
            making.stopped.set()


class MapAnswers(Answers):
    """Places records on the map of a page."""

    making: Making | None = None

    @rpc
    def map_choices(self) -> Message:
        """What a map can be of: `fields` (name, kind) with a vector or a picture, `columns` (name, type), projections that can be had."""
        fields, _ = browse_counts.patterns(self.rows)
        kinds = [(ext, viewers.choose(ext)) for ext in fields]
        embeddings = [(ext, kind) for ext, kind in kinds if ext.rpartition(".")[2] == "npy"]
        pictures = [(ext, kind) for ext, kind in kinds if kind == "image" and not ext.endswith(".npy")]
        by = [method for method in projection.METHODS if method == "pca" or find_spec(method) is not None]
        state = "none" if self.questions.refused is not None else self.questions.prepare()
        columns = self._placing_columns() if state in ("ready", "costly") else []
        numeric = [one["name"] for one in columns if one["type"] in axes.NUMBERS or not one["type"]]
        return {
            "fields": [{"name": readable(ext), "kind": kind} for ext, kind in (*embeddings, *pictures)],
            "columns": columns[:400],
            "numeric": numeric[:400],
            "by": by,
            "note": str(self.questions.refused or ""),
            "state": state,
        }

    def _placing_columns(self) -> list[Message]:
        """The columns that say something of where a record may stand."""
        leaves = [(name, kind) for name, kind in self.questions.table.leaves.items() if name not in RECORD and kind != "list"]
        places = [{"name": name, "type": kind or ""} for name, kind in leaves if not name.endswith((".checksum", ".phash"))]
        return [{"name": "size", "type": "bigint"}, *places]

    @rpc
    def map_points(self, x: str, y: str = "", by: str = "pca") -> Answer:
        """Places of points, or `making`, how far they are; two columns, or a field alone whose vectors are projected `by` pca or umap."""
        making = self._begin((x, y, "" if y else by))
        making.thread.join(_PATIENCE)
        if making.thread.is_alive():
            return {"making": redact(making.said)}, []
        points = self._points(making)
        message: Message = {"count": len(points), "low": points.low, "high": points.high, "axes": [readable(name) for name in points.axes]}
        return message | {"note": readable(points.note), "number": id(making)}, [points.xy.tobytes()]

    def _begin(self, spec: tuple[str, str, str]) -> Making:
        self.making = self.shards.maps.begin(id(self), spec, lambda own: self._columns(own, spec) if spec[1] else self._vectors(own, spec))
        return self.making

    @staticmethod
    def _points(making: Making | None) -> MapPoints:
        if making is not None and making.error is not None:
            raise making.error
        if making is None or making.points is None:
            raise UsageError("There is no map.", hint="Choose what it is of.")
        return making.points

    def map(self, x: str, y: str = "", by: str = "pca") -> MapPoints:
        """Records as points, when they are made; the map of the view is of these from now on."""
        making = self._begin((x, y, "" if y else by))
        making.thread.join()
        return self._points(making)

    def _columns(self, making: Making, spec: Sequence[str]) -> MapPoints:
        making.say("reading columns")
        rows, values = axes.numbers(self.questions.table, list(spec[:2]))
        ids = self.questions.row_numbers(rows.shard, rows.n)
        order = np.argsort(ids)
        points = MapPoints.of(ids[order], np.stack(values, axis=1)[order], spec[:2])
        lost = len(ids) - len(points)
        return replace(points, note=f"{lost:,} records lack one of them") if lost else points

    def _vectors(self, making: Making, spec: Sequence[str]) -> MapPoints:
        ids = self._all_rows(making)
        ext, _, by = spec
        found = vectors.read(self.rows, ids, ext, lambda done, of: making.say(f"{done:,} of {of:,} read"))
        making.say("projecting")
        places, words = projection.project(found.values, by)
        picture = viewers.choose(ext) == "image"
        what = "colour and shape of the pictures" if picture else f"{found.values.shape[1]:,} numbers"
        names = (f"{ext}: {by} 1", f"{ext}: {by} 2")
        return MapPoints.of(found.ids, places, names, ", ".join(filter(None, (what, words, found.note))))

    def _all_rows(self, making: Making) -> NDArray[np.int64]:
        """The rows there are, when all shards are scanned."""
        self.scan.go_on()
        while not self.rows.finished:
            making.say(f"scanning: {len(self.rows):,} records")
            self.rows.wait(0.3)
        return np.array(self.rows.ids(0, len(self.rows)), np.int64)

    @rpc
    def map_colours(self, column: str) -> Answer:
        """A code a point, and what the codes mean; `making` where the column is being read first."""
        points = self._points(self.making)
        table = self.questions.table
        if unmade := table.unmade(column):
            self.questions.begin(unmade)
            return {"making": f"reading {readable(column)}"}, []
        groups = axes.groups(table, column)
        found = colour_points(points.ids, groups, self.questions.row_numbers(groups.rows.shard, groups.rows.n))
        legend = [{"code": code, "name": readable(name[:80]), "count": count} for code, name, count in found.legend]
        return {"legend": legend, "ends": found.ends}, [found.codes.tobytes(), found.palette.tobytes()]

    @rpc
    def map_shown(self, query: int) -> Answer:
        """1 for each point whose record shows, 0 for the others; no buffer where all do."""
        points = self._points(self.making)
        if query != self.look.query.number:
            return {"stale": True}, []
        if self.look.query.wish.plain:
            return {"shown": len(points)}, []
        shown = points.among(self.look.query.found_ids())
        return {"shown": int(shown.sum()), "done": self.look.query.done}, [shown.astype(np.uint8).tobytes()]

    @rpc
    def map_record(self, at: int) -> Answer:
        """The record of a point as the grid shows it, and where it shows now."""
        points = self._points(self.making)
        if not 0 <= at < len(points):
            raise UsageError(f"There is no point {at} of {len(points):,}.")
        row = int(points.ids[at])
        message, buffers = TileRows(self.shards, self.look).one(row)
        return message | {"position": self.look.query.position(row)}, buffers

    def inside(self, corners: Sequence[float] | None) -> NDArray[np.int64] | None:
        """The rows of the points inside a polygon, given as x, y, x, y, …; ascending. None where no line is drawn."""
        return None if corners is None else self._points(self.making).rows_inside(corners)
