"""Pictures in a terminal that can show them (kitty, iTerm2, sixel), and a contact sheet as one PNG.

Nothing is asked of the terminal, so nothing is waited for: its kind is told by the environment it sets.
"""

from __future__ import annotations

import base64
import io
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, TypeAlias

from tarviz.model.errors import TarvizError
from tarviz.model.types import Record

if TYPE_CHECKING:
    from tarviz.commands.show import Shown

Inline: TypeAlias = Literal["auto", "no", "kitty", "iterm2", "sixel"]
_SIDE = 256  # pixels of a picture in a terminal
_CHUNK = 4096  # bytes of base64 that kitty takes at once (its graphics protocol, "Remote client")
_COLOURS = 128
_TILE, _GAP, _LINE = 160, 8, 14
_ACROSS = 8


def protocol(choice: Inline = "auto", environ: Mapping[str, str] = os.environ) -> str | None:
    """How the terminal that standard output goes to shows pictures; None: not at all. `auto` believes the environment.

    >>> protocol("sixel"), protocol("no")
    ('sixel', None)
    """
    if choice != "auto":
        return None if choice == "no" else choice
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return _terminal_protocol(environ)


def _terminal_protocol(environ: Mapping[str, str]) -> str | None:
    term, program = environ.get("TERM", ""), environ.get("TERM_PROGRAM", "")
    if term.startswith(("screen", "tmux")) or program == "tmux":
        return None  # passes no pictures on unless it is told to
    if environ.get("KITTY_WINDOW_ID") or "kitty" in term or program == "ghostty" or environ.get("KONSOLE_VERSION"):
        return "kitty"
    if program in ("iTerm.app", "WezTerm", "mintty", "rio") or environ.get("LC_TERMINAL") == "iTerm2":
        return "iterm2"
    return "sixel" if "sixel" in term or term.partition("-")[0] in ("mlterm", "foot", "contour", "yaft") else None


def draw(picture: bytes, how: str) -> str:
    """The characters that make a terminal draw a picture (PNG or JPEG bytes)."""
    if how == "sixel":
        return _sixel(picture)
    if how == "iterm2":
        return f"\x1b]1337;File=inline=1;size={len(picture)};preserveAspectRatio=1:{base64.b64encode(picture).decode()}\a"
    text = base64.b64encode(_png(picture)).decode()
    parts = [text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK)]
    first = f"\x1b_Ga=T,f=100,q=2,m={int(len(parts) > 1)};{parts[0]}\x1b\\"
    return first + "".join(f"\x1b_Gm={int(at < len(parts) - 1)};{part}\x1b\\" for at, part in enumerate(parts) if at)


def _png(picture: bytes) -> bytes:
    if picture[:4] == b"\x89PNG":
        return picture
    from PIL import Image

    out = io.BytesIO()
    Image.open(io.BytesIO(picture)).save(out, "PNG")
    return out.getvalue()


def _sixel(picture: bytes) -> str:
    """A picture as sixels, six rows at a time, one colour after the other (DEC VT330/340 manual, chapter 14)."""
    import numpy as np
    from PIL import Image

    image = Image.open(io.BytesIO(picture)).convert("RGB").quantize(_COLOURS)
    indexed = np.asarray(image)
    palette = (image.getpalette() or [])[: 3 * _COLOURS]
    height, width = indexed.shape
    parts = [f'\x1bPq"1;1;{width};{height}']
    used = [int(colour) for colour in np.unique(indexed)]
    for colour in used:
        red, green, blue = (round(value * 100 / 255) for value in palette[3 * colour : 3 * colour + 3])
        parts.append(f"#{colour};2;{red};{green};{blue}")
    weights = 1 << np.arange(6)
    for top in range(0, height, 6):
        band = indexed[top : top + 6]
        for colour in np.unique(band).tolist():
            bits = ((band == colour) * weights[: len(band), None]).sum(0) + 63
            row = bits.astype(np.uint8).tobytes().decode("ascii")
            parts.append(f"#{colour}{re.sub(_RUN, lambda run: f'!{len(run[0])}{run[0][0]}', row)}$")
        parts.append("-")
    return "".join([*parts, "\x1b\\"])


_RUN = re.compile(r"(.)\1{3,}")


def pictures(record: Record, fields: frozenset[str] | None, side: int = _SIDE) -> Iterator[tuple[str, bytes]]:
    """The fields of a record that are pictures, each as an encoded tile; what cannot be decoded is left out."""
    from tarviz import viewers

    for ext in record:
        if (fields is None or ext in fields) and viewers.choose(ext, record[ext][:4096]) == "image":
            with suppress(TarvizError):  # the text beside it says why
                tile = viewers.tile(record[ext], viewers.Meta(ext, record.key, record.shard), side)
                if isinstance(tile, bytes):
                    yield ext, tile


def sheet(shown: Shown) -> bytes:
    """The pictures of records side by side, each with its key below, as a PNG."""
    from PIL import Image, ImageDraw, ImageFont

    tiles = [(record.key, tile) for record in shown.records for _, tile in pictures(record, shown.fields, _TILE)]
    across = max(min(len(tiles), _ACROSS), 1)
    cell, line = _TILE + _GAP, _TILE + _GAP + _LINE
    page = Image.new("RGB", (across * cell + _GAP, max(-(-len(tiles) // across), 1) * line + _GAP), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default()
    for at, (key, tile) in enumerate(tiles):
        x, y = _GAP + at % across * cell, _GAP + at // across * line
        picture = Image.open(io.BytesIO(tile)).convert("RGBA")
        page.paste(picture, (x + (_TILE - picture.width) // 2, y + (_TILE - picture.height) // 2), picture)
        name = "".join(char if " " <= char <= "~" else "?" for char in key)
        draw.text((x, y + _TILE), name if len(name) <= 26 else f"..{name[-25:]}", fill="black", font=font)
    out = io.BytesIO()
    page.save(out, "PNG")
    return out.getvalue()
