"""JSON and JSON lines as a tree that keeps every digit, names given twice, NaN and Infinity."""

from __future__ import annotations

import json
from typing import Any

from tarviz.model.errors import DataError, LimitError
from tarviz.viewers.panel import Meta, Node, Note, Pairs, Panel, Text, Tree, node, node_text

EXTENSIONS = ("json", "jsonl", "ndjson", "geojson", "ipynb")
MAX_JSON = 16 << 20


class _Number:
    __slots__ = ("digits",)

    def __init__(self, digits: str) -> None:
        self.digits = digits if len(digits) <= 400 else f"{digits[:40]}… ({len(digits)} digits)"

    def __str__(self) -> str:
        return self.digits


def load(blob: memoryview, ext: str) -> Any:
    """The value, objects as `Pairs`, numbers as written. `DataError` (E_DECODE) where it is no JSON or nested too deep."""
    if len(blob) > MAX_JSON:
        raise LimitError(f".{ext} has {len(blob):,} bytes; the tree shows up to {MAX_JSON:,}.", hint="See the Bytes tab")
    try:
        data = bytes(blob)
        text = data.decode(json.detect_encoding(data))
        return json.loads(
            text.removeprefix("\ufeff"), object_pairs_hook=Pairs, parse_int=_Number, parse_float=_Number, parse_constant=_Number
        )
    except RecursionError as error:
        raise DataError(f".{ext} is nested too deeply to be read.", code="E_DECODE") from error
    except ValueError as error:
        raise DataError(f".{ext} is no JSON: {error}.", code="E_DECODE") from error


def _lines(blob: memoryview, ext: str) -> tuple[Node, int, int]:
    rows, bad = [], 0
    lines = [line for line in bytes(blob[: 1 << 20]).splitlines() if line.strip()]
    for line in lines[:1000]:
        try:
            rows.append(load(memoryview(line), ext))
        except DataError:
            bad += 1
    return node(rows), len(lines), bad


def view(blob: memoryview, meta: Meta) -> Panel:
    if meta.ext.rpartition(".")[2] in ("jsonl", "ndjson"):
        root, count, bad = _lines(blob, meta.ext)
        panel = Panel(f"{count} lines", [Tree(root, meta.ext)], [("lines", str(count))])
        if bad:
            panel.blocks.append(Note(f"{bad} of {min(count, 1000)} lines are no JSON.", "warn"))
        return panel
    try:
        root = node(load(blob, meta.ext))
    except DataError as error:
        text = bytes(blob[:4096]).decode("utf-8", "replace")
        return Panel(f"{error.code}: {error.message}", [Note(f"{error.code}: {error.message}", "bad"), Text(text)])
    return Panel(node_text(root, 120), [Tree(root, meta.ext)], _facts(root))


def _facts(root: Node) -> list[tuple[str, str]]:
    match root:
        case ("o", children, left):
            return [("names", f"{len(children) + left}")]
        case ("a", children, left):
            return [("items", f"{len(children) + left}")]
    return []


def tile(blob: memoryview, meta: Meta, size: int) -> str:
    if meta.ext.rpartition(".")[2] in ("jsonl", "ndjson"):
        return bytes(blob[:200]).decode("utf-8", "replace")
    return node_text(node(load(blob, meta.ext), max_nodes=60), 200)
