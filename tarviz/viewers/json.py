"""JSON and JSON lines as a tree that keeps every digit, names given twice, NaN and Infinity."""

from __future__ import annotations

import json
from typing import Any

from tarviz.looks import roles
from tarviz.model.errors import DataError, LimitError
from tarviz.viewers.panel import Block, Meta, Node, Note, Pairs, Panel, Text, Tree, Turns, node, node_text

EXTENSIONS = ("json", "jsonl", "ndjson", "geojson", "ipynb")
MAX_JSON = 16 << 20
MOST_TURNS = 200
_TALKS = ("messages", "conversations", "conversation", "turns", "dialog", "dialogue", "chat")


class _Number:
    __slots__ = ("digits",)

    def __init__(self, digits: str) -> None:
        self.digits = digits if len(digits) <= 400 else f"{digits[:40]}… ({len(digits)} digits)"

    def __str__(self) -> str:
        return self.digits


def load(blob: memoryview, ext: str) -> Any:
    """The value, objects as `Pairs`, numbers as written. `DataError` (E_DECODE) where it is not JSON or nested too deep."""
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
        raise DataError(f".{ext} is not JSON: {error}.", code="E_DECODE") from error


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
            panel.blocks.append(Note(f"{bad} of {min(count, 1000)} lines are not JSON.", "warn"))
        return panel
    try:
        root = node(load(blob, meta.ext))
    except DataError as error:
        text = bytes(blob[:4096]).decode("utf-8", "replace")
        return Panel(f"{error.code}: {error.message}", [Note(f"{error.code}: {error.message}", "bad"), Text(text)], error=error)
    return Panel(node_text(root, 120), [*_talk(root), Tree(root, meta.ext)], _facts(root))


def _talk(root: Node) -> list[Block]:
    """What a reader looks for first: a conversation as turns, a text as text."""
    spoken = turns(root)
    if spoken:
        return [Turns(tuple(spoken[:MOST_TURNS]), max(0, len(spoken) - MOST_TURNS))]
    text = main_text(root)
    return [Text(text, numbered=False)] if text and ("\n" in text or len(text) > 80) else []


def _members(root: Node) -> dict[str, Node]:
    return dict(root[1]) if root[0] == "o" else {}


def turns(root: Node) -> list[tuple[str, str]]:
    """(who, what) of a conversation, as chat sets write them (`messages` of role and content, `conversations` of from and value)."""
    members = _members(root)
    listed = next((members[name] for name in _TALKS if name in members), root)
    if listed[0] != "a" or not listed[1]:
        return []
    found = []
    for item in listed[1]:
        one = _members(item)
        who = next((one[name] for name in ("role", "from", "speaker", "author") if name in one), None)
        what = next((one[name] for name in ("content", "value", "text", "message", "utterance") if name in one), None)
        if who is None or what is None or who[0] != "s":
            return []
        found.append((str(who[1]), _words(what)))
    return found


def _words(what: Node) -> str:
    """What was said: text, or the texts of a list of parts, pictures named as such."""
    if what[0] == "s":
        return str(what[1])
    if what[0] == "a":
        parts = [_members(part) for part in what[1]]
        return "\n".join(str(part["text"][1]) if "text" in part else f"[{part['type'][1] if 'type' in part else 'part'}]" for part in parts)
    return node_text(what, 400)


def main_text(root: Node) -> str:
    """The text an object is about; "" where it has none of the usual names."""
    members = _members(root)
    return next((str(members[name][1]) for name in roles.TEXTS if name in members and members[name][0] == "s"), "")


def _facts(root: Node) -> list[tuple[str, str]]:
    what = {"o": "names", "a": "items"}.get(root[0])
    return [(what, f"{len(root[1]) + root[2]}")] if what else []


def tile(blob: memoryview, meta: Meta, size: int) -> str:
    if meta.ext.rpartition(".")[2] in ("jsonl", "ndjson"):
        return bytes(blob[:200]).decode("utf-8", "replace")
    root = node(load(blob, meta.ext), max_nodes=60)
    said = "\n".join(f"{who}: {what}" for who, what in turns(root) if who != "system") or main_text(root)
    return said[:400] or node_text(root, 200)
