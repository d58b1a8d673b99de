"""What a viewer is told (`Meta`) and what it answers (`Panel`, a list of typed blocks): data, never HTML.

The hosts (notebook, stand-alone page, saved picture, terminal) each draw the blocks their own way, so a viewer
written once shows everywhere and nothing in it can inject markup.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal, TypeAlias

from tarviz.model.errors import LimitError, TarvizError, safe
from tarviz.model.redaction import redacted_repr

MAX_PIXELS = 64_000_000
MAX_PREVIEW_BYTES = 64 << 20
MAX_TEXT_BYTES = 64 << 10
_DEEPEST, _LONGEST = 60, 2000  # levels, and characters of a text, of a tree that is shown
_ONE_LINE = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})
_TURNED = {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}


@dataclass(frozen=True, slots=True)
class Meta:
    """What is known about a payload besides its bytes.

    `ext` is the field's extension (lower case), `key` and `shard` the record's. `options` are the reader's wishes, as
    `Panel.controls` offered them (`{"slice": [3]}`), and what the host knows (`{"classes": ["cat", "dog"]}`).
    """

    ext: str = ""
    key: str = ""
    shard: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    __repr__ = redacted_repr

    def check_unpacked(self, size: int) -> None:
        """Raise `LimitError` where `size` bytes are more than a preview unpacks."""
        if size > MAX_PREVIEW_BYTES:
            raise LimitError(f"Unpacks to {size} bytes or more; a preview stops at {MAX_PREVIEW_BYTES}.")


@dataclass(frozen=True, slots=True)
class Text:
    """Text as it is, shown with line numbers. `preview` is a MIME type when the bytes may also be shown as a picture."""

    text: str
    numbered: bool = True
    preview: str = ""
    data: bytes | memoryview = b""


@dataclass(frozen=True, slots=True)
class Image:
    """An encoded picture (`mime` one of PNG, JPEG, WebP, GIF, BMP) of `width` × `height` pixels.

    Where its colours stand for numbers, `values` holds them row by row as `dtype` (uint8, uint16, int32 or float32, little endian), every
    `step`th pixel of every `step`th row; `names` are those of the numbers 0, 1, 2, …, where they are classes.
    """

    data: bytes | memoryview
    mime: str
    width: int
    height: int
    label: str = ""
    values: bytes = b""
    dtype: str = ""
    step: int = 1
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tree:
    """A JSON-like value made of `Node`s; `ext` is the field its paths start from."""

    root: Node
    ext: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under column names; `right` columns hold numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Audio:
    """The payload is sound: the host plays the member's bytes as `mime`."""

    mime: str


@dataclass(frozen=True, slots=True)
class Video:
    """The payload is a film: the host plays the member's bytes as `mime`."""

    mime: str


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames of a film side by side in one picture, each taken at its time in `times` (seconds)."""

    data: bytes
    mime: str
    times: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Turns:
    """A conversation: who said what, in order. `left` counts turns that were cut."""

    turns: tuple[tuple[str, str], ...]
    left: int = 0


@dataclass(frozen=True, slots=True)
class Points:
    """A point cloud to be turned: float32 places [n, 3] within −1 … 1, and uint8 colours [n, 3]; `total` is how many there were."""

    places: bytes
    colours: bytes
    total: int


@dataclass(frozen=True, slots=True)
class Plot:
    """Numbers as a picture: `lines` over their index, `bars`, or the `envelope` of low and high values.

    `series` holds (name, values); an envelope has exactly two, low and high. `mark` is the number of a bar that stands out.
    """

    kind: Literal["lines", "bars", "envelope"]
    series: tuple[tuple[str, tuple[float, ...]], ...]
    label: str = ""
    mark: int | None = None


@dataclass(frozen=True, slots=True)
class Hex:
    """The payload's bytes, 16 to a row; the host fetches what it shows."""


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence for the reader: `info`, a warning, or `bad` (broken or refused)."""

    text: str
    tone: Literal["info", "warn", "bad"] = "info"


Block: TypeAlias = Text | Image | Tree | Table | Audio | Video | Frames | Turns | Points | Plot | Hex | Note
Node: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Control:
    """A choice the reader has: `name` goes back in `Meta.options`. Either `choices`, or a whole number in 0…`high`."""

    name: str
    label: str
    value: Any
    high: int = 0
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Panel:
    """One field, ready to be shown: a one-line `summary`, `facts` as (name, value), `blocks`, `controls`.

    `viewer` is the viewer's name, set by the registry; `error` says why the field is not shown. `str()` is its plain text.

    >>> print(Panel("2 lines", [Text("hello\\nworld")]))
    2 lines
    hello
    world
    """

    summary: str
    blocks: list[Block] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)
    viewer: str = ""
    error: TarvizError | None = None

    def __str__(self) -> str:
        lines = [safe(self.summary), *(f"{safe(name)}: {safe(value)}" for name, value in self.facts)]
        for block in self.blocks:
            if isinstance(block, Note):
                lines.append(safe(block.text))
            elif isinstance(block, Text):
                lines += [safe(line) for line in block.text.splitlines()[:40]]
            elif isinstance(block, Turns):
                lines += [safe(f"{who}: {said}") for who, said in block.turns]
            elif isinstance(block, Tree):
                lines.append(safe(node_text(block.root, 2000)))
            elif isinstance(block, Table):
                lines += [safe("  ".join(row)) for row in (block.columns, *block.rows[:20])]
        return "\n".join(lines)

    def to_message(self, buffers: list[Any] | None = None) -> tuple[dict[str, Any], list[Any]]:
        """JSON-ready form and the buffers it refers to as `{"buffer": n}`, put after those in `buffers`."""
        buffers = [] if buffers is None else buffers
        blocks = [_block_message(block, buffers) for block in self.blocks]
        controls = [{name: getattr(control, name) for name in ("name", "label", "value", "high", "choices")} for control in self.controls]
        return {
            "summary": readable(self.summary),
            "facts": [[readable(name), readable(value)] for name, value in self.facts],
            "blocks": blocks,
            "controls": controls,
            "viewer": self.viewer,
        }, buffers


def readable(text: str) -> str:
    """Text a JSON message can carry: lone surrogates (undecodable name bytes) and marks that turn text round (U+202E) are spelled out."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode().translate(_TURNED)


def _block_message(block: Block, buffers: list[bytes | memoryview]) -> dict[str, Any]:
    message: dict[str, Any] = {"type": type(block).__name__.lower()}
    for name in block.__slots__:
        value = getattr(block, name)
        if not isinstance(value, bytes | memoryview):
            message[name] = _plain(value)
        elif len(value):
            message[name] = {"buffer": len(buffers)}
            buffers.append(value)
    return message


def _plain(value: Any) -> Any:
    """A value of a block, JSON-ready: readable texts, and null for numbers that JSON has not."""
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


class Pairs(list[tuple[str, Any]]):
    """A JSON object that keeps order and repeated names."""


def node(value: Any, *, max_nodes: int = 5000) -> Node:
    """A JSON-like value as nested tuples a browser can show without losing digits, names given twice or NaN.

    `("o", ((name, node), …), left)`, `("a", (node, …), left)`, `("s", text, length)`, `("n", digits)`, `("k", word)`;
    `left` counts what was cut when `max_nodes` were used up.
    """
    room = max_nodes

    def made(value: Any, depth: int) -> Node:
        nonlocal room
        room -= 1
        within = lambda _: room > 0 and depth <= _DEEPEST  # noqa: E731
        if isinstance(value, dict | Pairs):
            items = list(value.items() if isinstance(value, dict) else value)
            named = tuple((readable(str(name))[:_LONGEST], made(item, depth + 1)) for name, item in takewhile(within, items))
            return ("o", named, len(items) - len(named))
        if isinstance(value, list | tuple):
            shown = tuple(made(item, depth + 1) for item in takewhile(within, value))
            return ("a", shown, len(value) - len(shown))
        if isinstance(value, str):
            return ("s", readable(value[:_LONGEST]), len(value))
        if isinstance(value, bytes):
            return ("k", f"{len(value):,} bytes")
        if value is None or isinstance(value, bool):
            return ("k", "null" if value is None else str(value).lower())
        return ("n", str(value))

    return made(value, 0)


def node_text(value: Node, limit: int = 400) -> str:
    """A node as one line of JSON-like text, cut at `limit` characters.

    >>> node_text(node({"a": [1, None], "b": "x"}))
    '{"a": [1, null], "b": "x"}'
    """
    text = ""
    for piece in _pieces(value):
        text += piece.translate(_ONE_LINE)
        if len(text) > limit:
            return text[: limit - 1] + "…"
    return text


def _pieces(value: Node) -> Iterator[str]:
    match value:
        case ("o", children, left):
            yield "{"
            for at, (name, child) in enumerate(children):
                yield f'{", " if at else ""}"{name}": '
                yield from _pieces(child)
            yield ", …}" if left else "}"
        case ("a", children, left):
            yield "["
            for at, child in enumerate(children):
                yield ", " if at else ""
                yield from _pieces(child)
            yield ", …]" if left else "]"
        case ("s", text, length):
            yield f'"{text}"' if length <= _LONGEST else f'"{text}…"'
        case (_, text):
            yield str(text)
