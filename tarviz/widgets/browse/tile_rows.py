"""Rows as the grid of a page shows them: each with its tile and the line below it."""

from __future__ import annotations

from collections.abc import Sequence

from tarviz.formats.field_path import field_path
from tarviz.model.types import Buffer
from tarviz.viewers.panel import readable
from tarviz.widgets.browse.look import Answers
from tarviz.widgets.browse.rows import Row
from tarviz.widgets.browse.thumbnails import SIZES, Tile
from tarviz.widgets.host.rpc import Answer, Message, rpc


class TileRows(Answers):
    """Answers with rows of the search that a page shows."""

    @rpc
    def fetch(self, query: int, start: int, stop: int, px: int = 160, image: str = "", label: str | None = None) -> Answer:
        """Rows at the positions `start`…`stop` (at most 120) of a query, each with its tile and label."""
        if query != self.look.query.number:
            return {"query": query, "start": start, "rows": [], "stale": True}, []
        stop = min(stop, start + 120)
        self.scan.want(stop)
        px = px if px in SIZES else 160
        if self.look.query.wish.objects is not None:
            return self._boxes(start, stop, px)
        return self._message(self.look.query.ids(start, stop), start, px, image or self.look.image, label)

    def first(self, count: int) -> Answer:
        """The first rows, as they are shown before anything was asked."""
        return self._message(self.look.query.ids(0, count), 0, self.look.px, self.look.image, None)

    def one(self, row: int) -> Answer:
        """A row by its number, as small as tiles are."""
        return self._message([row], 0, SIZES[0], self.look.image, None)

    def label_of(self, rows: Sequence[Row]) -> str:
        """The label chosen, or the first usual class or caption that these rows have; settled once rows are there."""
        return self.labels.of(rows, [self.tiles.main_field(row, self.look.image) for row in rows[:4]])

    def _boxes(self, start: int, stop: int, px: int) -> Answer:
        """Rows that are boxes: what is inside each, its class and score."""
        query, buffers, shown = self.look.query, list[Buffer](), []
        with self.scan.calm():
            rows, boxes = [self.rows.row(one) for one in query.ids(start, stop)], query.boxes[start:stop]
            tiles = self.tiles.boxes(rows, boxes, px)
        for at, (row, box, tile) in enumerate(zip(rows, boxes, tiles, strict=True)):
            label = " ".join(filter(None, (box.label, "" if box.score is None else f"{box.score:.2f}")))
            shown.append(self._item(row, tile, readable(label[:200]), buffers) | {"box": start + at})
        found: Message = {"query": query.number, "ordered": query.ordered, "start": start, "rows": shown, "label": None, "px": px}
        return found | {"colours": {}}, buffers

    @staticmethod
    def _item(row: Row, tile: Tile, label: str, buffers: list[Buffer]) -> Message:
        """A row with its tile, whose bytes are put after `buffers`."""
        item: Message = {"id": row.id, "n": row.record, "s": row.shard.number, "key": readable(row.key[:1200])}
        item |= {"fields": [readable(ext) for ext in row.fields], "label": label, "pending": row.pending}
        item["tile"] = {"ext": readable(tile.ext), "text": readable(tile.text), "reason": tile.reason}
        if tile.picture:
            item["tile"]["buffer"] = len(buffers)
            buffers.append(tile.picture)
        if tile.over:
            item["tile"]["over"] = tile.over.message(buffers)
        return item

    def _message(self, ids: list[int], start: int, px: int, image: str, label: str | None) -> Answer:
        query = self.look.query
        with self.scan.calm():
            rows = [self.rows.row(one) for one in ids]
            label = self.label_of(rows) if label is None else label
            path = field_path(label) if label else None
            needs = path.needs if path else frozenset()
            unlabelled = frozenset() if all(self.labels.find(row, label) is not None for row in rows) else needs
            tiles, read = self.tiles.get(rows, image, px, unlabelled)
        buffers: list[Buffer] = []
        shown = []
        names: dict[str, None] = {}  # in the order they come: colours are dealt out by it
        for row, tile, blobs in zip(rows, tiles, read, strict=True):
            shown.append(self._item(row, tile, self.labels.text(row, label, path, blobs), buffers))
            names |= dict.fromkeys(shape.name for shape in tile.over.shapes) if tile.over else {}
        colours = {readable(name[:80]): self.overlays.colour(name) for name in names}
        found = {"query": query.number, "ordered": query.ordered, "start": start, "rows": shown, "label": label, "px": px}
        return found | {"colours": colours}, buffers
