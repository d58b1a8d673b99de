"""Build, concatenate and select `Members` tables."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.formats.header_parse import Entry
from tarviz.model.types import Members

_LONG = 512  # names longer than this are kept one by one, not as a column of that width
_NONE = np.zeros(0, np.int64)


def gather(parts: Iterable[Members | Entry]) -> Members:
    """Members and single entries as columns, in order."""
    runs: list[Members] = []
    for single, some in groupby(parts, lambda part: isinstance(part, Entry)):
        run: list[Any] = list(some)
        runs += [columns(run)] if single else run
    return join(runs)


def columns(entries: list[Entry]) -> Members:
    """Entries as columns."""
    start, data, size, end = np.array([(e.start, e.data, e.size, e.end) for e in entries], np.int64).reshape(-1, 4).T
    sparse = {row: e.sparse for row, e in enumerate(entries) if e.sparse is not None}
    types = np.array([e.type for e in entries], np.uint8)
    return Members(_names([e.name for e in entries]), types, start, data, size, end, sparse)


def _names(names: list[bytes]) -> NDArray[Any]:
    # NumPy drops NULs at the end of an S item: names with a NUL inside keep their bytes as objects.
    if any(len(name) > _LONG or b"\0" in name for name in names):
        array = np.empty(len(names), object)
        array[:] = names
        return array
    return np.array(names or [b""], "S")[: len(names)]


def join(parts: list[Members]) -> Members:
    """Columns one after the other."""
    parts = [part for part in parts if len(part)]
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Members(np.zeros(0, "S1"), np.zeros(0, np.uint8), _NONE, _NONE, _NONE, _NONE)
    sparse: dict[int, list[tuple[int, int]]] = {}
    row = 0
    for part in parts:
        sparse.update({row + at: pieces for at, pieces in part.sparse.items()})
        row += len(part)
    columns = ("name", "type", "start", "data", "size", "end")
    name, kind, start, data, size, end = (np.concatenate([getattr(part, column) for part in parts]) for column in columns)
    return Members(name, kind, start, data, size, end, sparse)


def pick(members: Members, rows: NDArray[Any]) -> Members:
    """The rows chosen, by mask or by number."""
    at = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
    sparse = {place: members.sparse[row] for place, row in enumerate(at.tolist()) if row in members.sparse} if members.sparse else {}
    m = members
    return Members(m.name[at], m.type[at], m.start[at], m.data[at], m.size[at], m.end[at], sparse)
