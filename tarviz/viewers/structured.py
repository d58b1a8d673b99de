"""Tables and objects of other libraries: Parquet, Arrow and Feather as rows, MessagePack and CBOR as a tree, by the readers of chains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tarviz.looks.points import of_columns
from tarviz.model.wording import plural
from tarviz.ops.values.payloads import decode_payload
from tarviz.viewers.npy import draw, draw_tile
from tarviz.viewers.panel import Meta, Panel, Table, Tree, node, node_text

EXTENSIONS = ("parquet", "pq", "arrow", "feather", "ipc", "mp", "msgpack", "msg", "cbor")
MAGIC = (b"PAR1", b"ARROW1")

_ROWS, _COLUMNS, _LONGEST = 200, 40, 80


def view(blob: memoryview, meta: Meta) -> Panel:
    value = decode_payload(_true_ext(blob, meta.ext), blob)
    if is_table(value):
        found, summary = table(value)
        panel = Panel(summary, [], [("columns", ", ".join(f"{name} {column.dtype}" for name, column in list(value.items())[:_COLUMNS]))])
        if has_places(value):
            draw(of_columns(value), "points", meta, panel)
        panel.blocks.append(found)
        return panel
    root = node(value)
    return Panel(node_text(root, 120), [Tree(root, meta.ext)])


def tile(blob: memoryview, meta: Meta, size: int) -> bytes | str:
    value = decode_payload(_true_ext(blob, meta.ext), blob)
    if is_table(value) and has_places(value):
        return draw_tile(of_columns(value), "points", size)
    if not is_table(value):
        return node_text(node(value, max_nodes=60), 200)
    found, summary = table(value)
    return "\n".join([summary, "  ".join(found.columns), *("  ".join(row) for row in found.rows[:4])])[:400]


def _true_ext(blob: memoryview, ext: str) -> str:
    """The extension that says what the bytes are, where the field's own does not."""
    known = ext.rpartition(".")[2] in EXTENSIONS
    return ext if known else "parquet" if bytes(blob[:4]) == b"PAR1" else "arrow"


def is_table(value: Any) -> bool:
    """Whether a value is columns of equal length."""
    return isinstance(value, Mapping) and all(isinstance(one, np.ndarray) and one.ndim == 1 for one in value.values())


def has_places(columns: Mapping[str, Any]) -> bool:
    """Whether columns are a LiDAR's points, as Argoverse has them."""
    return all(name in columns and columns[name].dtype.kind in "iuf" and len(columns[name]) > 3 for name in "xyz")


def table(columns: Mapping[str, Any]) -> tuple[Table, str]:
    """The first rows of columns, and how many there are."""
    count = len(next(iter(columns.values()), ()))
    shown = {name: column[:_ROWS].tolist() for name, column in list(columns.items())[:_COLUMNS]}
    rows = tuple(tuple(_cell(cell) for cell in row) for row in zip(*shown.values(), strict=True))
    right = tuple(at for at, name in enumerate(shown) if columns[name].dtype.kind in "iuf")
    cut = f", the first {_ROWS} shown" if count > _ROWS else ""
    return Table(tuple(shown), rows, right), f"{plural(count, 'row')}, {plural(len(columns), 'column')}{cut}"


def _cell(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
