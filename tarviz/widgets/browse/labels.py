"""The line below each tile: which path it is where nobody chose one, and its text for every record."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from tarviz import viewers
from tarviz.formats.field_path import FieldPath, field_path
from tarviz.looks import roles
from tarviz.viewers.panel import readable
from tarviz.widgets.browse.query import Fields, values
from tarviz.widgets.browse.rows import Row

_KEPT = 20_000
_LOOKED_AT = 4  # records that a label is looked for in
_MOST_BYTES = 1 << 20
_NUMBERS = re.compile(r"[\s\d.,eE+\-]*")  # YOLO's boxes are not caption


class Labels:
    """`chosen` is the path (None: not settled yet, "": none), `given` the one that was requested; `classes` names class numbers.

    Threads may share it.
    """

    def __init__(self, chosen: str | None, classes: Mapping[int, str]) -> None:
        self.given = chosen
        self.chosen = chosen
        self.classes = classes
        self.counts: dict[str, int] = {}  # of the values of `chosen`, once they were counted
        self._texts: dict[tuple[int, str], str] = {}
        self._lock = threading.Lock()

    def of(self, rows: Sequence[Row], shown: Sequence[str]) -> str:
        """The label chosen, or else the first usual class or caption that these rows have; settled once rows are there.

        `shown` is the field in each one's tile: what a tile says already is not said below it again.
        """
        if self.chosen is None and rows:
            self.chosen = _usual(rows[:_LOOKED_AT], shown)
        return self.chosen or ""

    def find(self, row: Row, label: str) -> str | None:
        """The text of a row, where it was made before."""
        with self._lock:
            return self._texts.get((row.id, label))

    def text(self, row: Row, label: str, path: FieldPath | None, blobs: dict[str, bytes]) -> str:
        """What stands below a row's tile, at most 200 characters."""
        if path is None:
            return ""
        kept = self.find(row, label)
        if kept is not None:
            return kept
        fields = Fields(row, blobs)
        number = path.value(fields)
        text = "" if number is None else readable(str(fields.spell(path, number))[:200])
        if isinstance(number, int) and number in self.classes:
            text = f"{number} {self.classes[number]}"
        with self._lock:
            self._texts[row.id, label] = text
            if len(self._texts) > _KEPT:
                del self._texts[next(iter(self._texts))]
        return text

    def forget(self) -> None:
        """Other bytes: no text is right any more."""
        with self._lock:
            self._texts.clear()


def _usual(rows: Sequence[Row], shown: Sequence[str]) -> str:
    """The first of the usual places of classes, then of captions, that has a value in one of the rows; "" where none has."""
    fields = {ext for row in rows for ext in row.fields}
    paths = {name: field_path(name) for name in (*roles.LABELS, *roles.CAPTIONS) if _root(name, fields)}
    asked = frozenset(ext for path in paths.values() for ext in path.needs if viewers.choose(ext) in ("json", "text", "cls", "bytes"))
    found = values(rows, asked, _MOST_BYTES)
    for name, path in paths.items():
        said = name in roles.CAPTIONS and _root(name, fields) in shown
        if not said and any(_fits(path.value(one), name) for one in found):
            return name
    return ""


def _root(name: str, fields: set[str]) -> str:
    """The field a path reads; "" where it is not among `fields`."""
    return next((ext for ext in fields if name == ext or name.startswith(f"{ext}.")), "")


def _fits(value: Any, name: str) -> bool:
    if value is None or isinstance(value, (list, dict)):
        return False
    text = str(value).strip()
    return bool(text) and (name in roles.LABELS or not _NUMBERS.fullmatch(text))
