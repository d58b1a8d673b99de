"""What the record pane and the table of a browser ask: one record, its fields in every form, cells, and what is kept of them."""

from __future__ import annotations

from tarviz import viewers
from tarviz.model.class_names import from_zero
from tarviz.model.types import Buffer
from tarviz.viewers.panel import readable
from tarviz.widgets.browse import cells, thumbnails
from tarviz.widgets.browse.look import Answers
from tarviz.widgets.browse.record_pane import card, header_rows, inspect
from tarviz.widgets.browse.rows import Row, Rows, Want, payloads
from tarviz.widgets.host.rpc import Answer, Media, Message, rpc
from tarviz.widgets.panes.overlays import Overlay


class RecordAnswers(Answers):
    """Answers for single records and for cells; it changes nothing of what is shown."""

    @rpc
    def record(self, row: int, ext: str = "", options: Message | None = None) -> Answer:
        """A record and the panel of one of its fields (default: the one that stands for it in the grid)."""
        found = self.rows.row(row)
        fields = found.fields
        chosen = ext if ext in fields else self.tiles.main_field(found, self.look.image)
        message: Message = inspect.describe(found)
        if not chosen:
            return message, []
        message["ext"] = readable(chosen)
        buffers: list[Buffer] = []
        message["panel"] = self._view(found, chosen, options).to_message(buffers)[0]
        if over := self._over(found, chosen):
            message["over"] = over.message(buffers)
            message["colours"] = {readable(shape.name[:80]): self.overlays.colour(shape.name) for shape in over.shapes}
        if not ext:
            message["card"] = card.message(found, chosen, lambda beside: self._view(found, beside, options), buffers)
        return message, buffers

    def _over(self, row: Row, ext: str) -> Overlay | None:
        """What lies over a picture, at its full size."""
        plan = thumbnails.plan_tile(row.sizes, ext, self.overlays)
        names = (ext, *plan.over) if plan.over else ()
        blobs = payloads([Want(row, name) for name in names], limit=16 << 20)
        return thumbnails.overlay(plan, dict(zip(names, blobs, strict=True)), self.overlays, 2048)

    def _view(self, row: Row, ext: str, options: Message | None) -> viewers.Panel:
        known = self.labels
        named: Message = {"classes": from_zero(known.classes)} if known.classes else {}
        if known.chosen == ext and known.counts:
            named["histogram"] = known.counts
        return inspect.panel(row, ext, named | (options or {}))

    @rpc
    def part(self, row: int, ext: str, start: int = 0, length: int = 1 << 20) -> Answer:
        """Bytes of a field, at most 4 MiB at once."""
        found = self.rows.row(row)
        data = inspect.part(found, ext, int(start), min(int(length), inspect.PART))
        return {"start": start, "size": found.sizes[ext]}, [data]

    @rpc
    def example(self, row: int) -> Answer:
        """The record as `tf.train.Example` and its TFRecord frame."""
        return inspect.example(self.rows.row(row))

    @rpc
    def header(self, row: int, ext: str) -> Answer:
        """The tar headers of a field."""
        return header_rows.header(self.rows.row(row), ext)

    @rpc
    def digest(self, row: int, ext: str) -> Message:
        """SHA-256 of a field."""
        return {"sha256": inspect.digest(self.rows.row(row), ext)}

    @rpc
    def columns(self) -> Message:
        """The columns of the table, as expressions."""
        rows = [self.rows.row(one) for one in self.look.query.ids(0, 24) or self.rows.ids(0, 24)]
        return {"columns": [readable(name) for name in cells.columns(rows)[: cells.MOST]]}

    @rpc
    def cells(self, query: int, start: int, stop: int, columns: list[str]) -> Message:
        """Rows `start`…`stop` (at most 200) of a query as a table: id, number, key and a value a column."""
        if query != self.look.query.number:
            return {"query": query, "start": start, "rows": [], "stale": True}
        stop = min(stop, start + 200)
        self.scan.want(stop)
        with self.scan.calm():
            rows = [self.rows.row(one) for one in self.look.query.ids(start, stop)]
            found = cells.cells(rows, columns[: cells.MOST])
        shown = [{"id": row.id, "key": readable(row.key[:300]), "cells": line} for row, line in zip(rows, found, strict=True)]
        return {"query": query, "ordered": self.look.query.ordered, "start": start, "rows": shown}


def media(rows: Rows, path: str) -> Media | None:
    """The payload of `row/field`; None where there is none."""
    number, _, ext = path.partition("/")
    if not number.isdigit():
        return None
    try:
        row = rows.row(int(number))
        row.member(ext)
    except (IndexError, KeyError):
        return None
    return Media(inspect.mime(row, ext), row.sizes[ext], lambda offset, length: inspect.part(row, ext, offset, length))
