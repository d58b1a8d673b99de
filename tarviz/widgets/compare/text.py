"""What a comparison says: messages for a view, a table for a terminal, cells for the static picture."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tarviz.model.errors import TarvizError, redact, safe
from tarviz.model.types import Buffer
from tarviz.model.wording import plural
from tarviz.viewers.panel import readable
from tarviz.widgets.compare.chain_numbers import numbers
from tarviz.widgets.compare.chain_preview import EAGER, Column, StepTile, Strip, Values
from tarviz.widgets.compare.value_picture import number
from tarviz.widgets.host.contact_sheet import Cell
from tarviz.widgets.host.rpc import Message
from tarviz.widgets.panes.overlays import Overlays, paint


class Pictures:
    """Buffers of a message; a picture that comes again is sent once."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self._known: dict[bytes, int] = {}

    def put(self, picture: bytes) -> int | None:
        """The picture's number in `buffers`; None where it is empty."""
        if not picture:
            return None
        if picture not in self._known:
            self._known[picture] = len(self.buffers)
            self.buffers.append(picture)
        return self._known[picture]


def milliseconds(seconds: float | None) -> str:
    """Time as people read it.

    >>> milliseconds(0.0021), milliseconds(0.000012), milliseconds(2.5)
    ('2.10 ms', '0.012 ms', '2500 ms')
    """
    if seconds is None:
        return ""
    value = seconds * 1000
    digits = sum(value < limit for limit in (100, 10, 1))
    return f"{value:.{digits}f} ms"


def apart(difference: float | None) -> str:
    """The largest difference between runners in words."""
    if difference is None:
        return ""
    if math.isinf(difference):
        return "not the same shape or text"
    return "no difference" if difference == 0 else f"largest difference {number(difference)}"


def reason(error: TarvizError) -> str:
    """An error as a tile shows it."""
    return redact(safe(f"{error.code}: {error.message}{f' {error.hint}' if error.hint else ''}"))[:600]


def tile_message(tile: StepTile, pictures: Pictures) -> Message:
    """A tile as a view draws it."""
    return {
        "op": readable(tile.op),
        "ext": readable(tile.ext),
        "feature": tile.look.feature,
        "range": tile.look.range,
        "mapping": tile.look.mapping,
        "drawn": tile.drawn,
        "ms": milliseconds(tile.seconds) if tile.op else "",
        "text": readable(tile.text),
        "error": readable(reason(tile.error)) if tile.error is not None else "",
        "buffer": pictures.put(tile.picture),
        "over": tile.over.message(pictures.buffers) if tile.over else None,
        "behind": readable(tile.behind),
    }


def strip_message(column: int, record: int, strip: Strip, pictures: Pictures) -> Message:
    """A strip as a view draws it."""
    return {
        "column": column,
        "record": record,
        "ms": milliseconds(strip.seconds),
        "failed": strip.error is not None,
        "apart": apart(strip.difference),
        "tiles": [tile_message(tile, pictures) for tile in strip.tiles],
    }


def column_message(column: Column) -> Message:
    """A column's head."""
    last = next((strip.tiles[-1] for strip in column.done if strip.error is None and strip.tiles), None)
    return {
        "name": readable(column.name),
        "chain": readable(str(column.chain)),
        "seed": column.seed,
        "random": column.chain.draws > 0,
        "numbers": [asdict(number) for number in numbers(column.chain)],
        "runner": column.title,
        "seconds": column.seconds,
        "ms": milliseconds(column.seconds),
        "out": last.look.feature if last is not None else "",
        "apart": apart(column.difference),
        "failed": column.failures,
        "done": len(column.done),
    }


def status(
    columns: Sequence[Column], records: Sequence[Values], running: bool, warned: Mapping[str, int], fault: TarvizError | None
) -> str:
    """One sentence: how far it is, what failed, what differs, what reading warned of."""
    chains = sum(column.runner == EAGER for column in columns)
    parts = [f"{plural(len(records), 'record')} × {plural(chains, 'chain')}"]
    if running:
        done, all_ = sum(len(column.done) for column in columns), len(columns) * len(records)
        parts.append(f"running, {done} of {all_} done")
    else:
        parts.append("every op ran once per record")
    if failed := sum(column.failures for column in columns):
        parts.append(f"{failed} failed")
    parts += [f"{column.name}, {column.title}: {apart(column.difference)}" for column in columns if column.difference is not None]
    parts += [code for code in warned if fault is None or code != fault.code]
    if fault is not None:
        parts.append(reason(fault))
    return " · ".join(parts)


def _strips(columns: Sequence[Column], record: int) -> Iterator[tuple[Column, Strip]]:
    """The strips of a record that are there."""
    return ((column, strip) for column in columns if (strip := column.strips[record]) is not None)


def table(title: str, columns: Sequence[Column], records: Sequence[Values], originals: Sequence[StepTile], line: str) -> str:
    """Every step as a line of text, by record and chain."""
    rows: list[tuple[str, ...]] = []
    for at, values in enumerate(records):
        rows.append((safe(values["__key__"])[:60],))
        rows.append(("  original", "", originals[at].ext, originals[at].look.feature, originals[at].look.range, "", ""))
        for column, strip in _strips(columns, at):
            name = f"  {column.name}" if column.runner == EAGER else f"  {column.name}, {column.title}"
            for tile in strip.tiles:
                if tile.error is not None:
                    rows.append((name, tile.op, f"failed: {reason(tile.error)}"))
                else:
                    look = tile.look
                    note = tile.drawn or apart(strip.difference)
                    spent = milliseconds(tile.seconds or (strip.seconds if column.runner != EAGER else 0.0))
                    rows.append((name, tile.op, tile.ext, look.feature, look.range, spent, note))
                name = ""
    return "\n".join([f"tarviz compare {safe(title)}", line, "", *align(rows)])


def align(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Rows of text in columns, two spaces apart; rows with fewer cells do not widen the columns they end in. `right` are set flush right.

    >>> align([("a", "b"), ("long", "c")])
    ['a     b', 'long  c']
    """
    full = max((len(row) for row in rows), default=0)
    widths = [max((len(safe(row[at])) for row in rows if len(row) == full), default=0) for at in range(full)]
    sides = [">" if at in right else "<" for at in range(full)]
    return [
        "  ".join(f"{safe(cell):{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=False)).rstrip() for row in rows
    ]


def cells(
    columns: Sequence[Column], records: Sequence[Values], originals: Sequence[StepTile], overlays: Overlays
) -> tuple[list[Cell], int]:
    """Cells of the static picture and how many stand in a row: a record's original and each result, or all steps of one chain."""
    rows: list[list[Cell]] = []
    for at in range(len(records)):
        made_here = [_cell(originals[at], overlays, safe(records[at]["__key__"]).rpartition("/")[2])]
        for column, strip in _strips(columns, at):
            of = f"{column.name} {column.title if column.runner != EAGER else ''}"
            for tile in strip.tiles if len(columns) == 1 else strip.tiles[-1:]:
                caption = tile.op.partition("(")[0] if len(columns) == 1 else of
                made_here.append(_cell(tile, overlays, caption.strip()))
        rows.append(made_here)
    width = max(map(len, rows), default=1)
    return [cell for row in rows for cell in row + [Cell(b"", "", "")] * (width - len(row))], width


def _cell(tile: StepTile, overlays: Overlays, caption: str) -> Cell:
    if tile.error is not None:
        return Cell(b"", reason(tile.error), caption, True)
    return Cell(paint(tile.picture, tile.over, overlays) if tile.picture else b"", tile.text, caption)


def plain(columns: Sequence[Column], records: Sequence[Values]) -> list[dict[str, Any]]:
    """The comparison as JSON-ready data, a dict for each record and chain."""
    found = []
    for at, values in enumerate(records):
        for column, strip in _strips(columns, at):
            steps = [
                {
                    "op": tile.op,
                    "field": readable(tile.ext),
                    "feature": tile.look.feature,
                    "range": tile.look.range,
                    "shown": tile.look.mapping,
                    "drawn": tile.drawn,
                    "seconds": tile.seconds,
                    **({"shapes": [[shape.kind, *shape.numbers, shape.name] for shape in tile.over.shapes]} if tile.over else {}),
                    **({"behind": tile.behind} if tile.behind else {}),
                    **({"error": tile.error.to_dict()} if tile.error is not None else {}),
                }
                for tile in strip.tiles
            ]
            far = strip.difference
            more = {} if far is None else {"largest_difference": far if math.isfinite(far) else None}
            head = {"key": readable(values["__key__"]), "chain": column.name, "runner": column.title, "seed": column.seed}
            found.append({**head, "seconds": strip.seconds, **more, "steps": steps})
    return found
