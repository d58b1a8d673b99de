"""The contact sheet: a PNG of a browser's first tiles, within a byte budget, for where no widget can run."""

from __future__ import annotations

import base64
import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

BUDGET = 150_000
_ATTEMPTS = (  # side of a tile, tiles, and (colours, dithered) to try
    (112, 24, ((256, True), (256, False), (128, False))),
    (80, 24, ((64, False),)),
    (72, 12, ((64, False),)),
    (48, 6, ((32, False), (16, False))),
)
_BACK, _INK, _FAINT, _BAD = "#ffffff", "#212121", "#6e6e6e", "#b00020"


@dataclass(frozen=True, slots=True)
class Cell:
    """One picture of the sheet: an encoded picture or a text, and the caption below."""

    picture: bytes
    text: str
    caption: str
    bad: bool = False


def sheet(title: str, foot: str, cells: Sequence[Cell], *, budget: int = BUDGET, columns: int = 6) -> bytes:
    """The sheet as PNG of at most `budget` bytes: smaller tiles, fewer colours, then fewer tiles, with a note that says so."""
    for side, count, ways in _ATTEMPTS:
        kept = cells[:count]
        note = foot if len(kept) == len(cells) else f"{foot} · cut to {len(kept)} of {len(cells)} pictures to stay small"
        page = _draw(title, note, kept, side, columns)
        for colours, dither in ways:
            data = _compress(page, colours, dither)
            if len(data) <= budget:
                return data
    return b""


def _compress(page: Picture, colours: int, dither: bool) -> bytes:
    """The page as PNG of so many colours. An octree is ten times as fast as a median cut, and dithering hides what it lacks."""
    from PIL import Image

    few = page.quantize(colours, method=Image.Quantize.FASTOCTREE)
    if dither:
        few = page.quantize(palette=few, dither=Image.Dither.FLOYDSTEINBERG)
    out = io.BytesIO()
    few.save(out, "PNG")
    return out.getvalue()


def _draw(title: str, foot: str, cells: Sequence[Cell], side: int, columns: int) -> Picture:
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(13)
    small = ImageFont.load_default(12)  # in 11 a space is hardly seen
    gap, caption = 8, 16
    rows = -(-len(cells) // columns)
    width = max(columns * (side + gap) + gap, 560)
    height = 30 + rows * (side + caption + gap) + 24
    page = Image.new("RGB", (width, height), _BACK)
    pen = ImageDraw.Draw(page)

    def write(x: int, y: int, text: str, room: int, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, ink: str) -> None:
        text = printable(text)
        while text and pen.textlength(text, font) > room:
            text = text[:-2].rstrip("…") + "…" if len(text) > 2 else ""
        pen.text((x, y), text, ink, font)

    write(gap, 8, title, width - 2 * gap, font, _INK)
    for number, cell in enumerate(cells):
        x, y = gap + number % columns * (side + gap), 30 + number // columns * (side + caption + gap)
        if cell.picture and not cell.bad:
            with Image.open(io.BytesIO(cell.picture)) as opened:
                picture = opened.convert("RGBA")
                picture.thumbnail((side, side))
                factor = min(side // picture.width, side // picture.height)
                picture = picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.NEAREST)
                page.paste(picture, (x + (side - picture.width) // 2, y + (side - picture.height) // 2), picture)
        else:
            pen.rectangle((x, y, x + side - 1, y + side - 1), outline="#d2d2d2")
            for line, text in enumerate(_wrap(cell.text, 16)[: side // 14]):
                write(x + 4, y + 4 + 13 * line, text, side - 8, small, _BAD if cell.bad else _FAINT)
        write(x, y + side + 2, cell.caption, side, small, _FAINT)
    write(gap, height - 20, foot, width - 2 * gap, small, _FAINT)
    return page


def _wrap(text: str, width: int) -> list[str]:
    return [part for line in printable(text, keep="\n").splitlines() for part in textwrap.wrap(line, width) or [""]]


def bundle(text: str, picture: bytes) -> dict[str, str]:
    """What a notebook keeps of something where no widget can run: words, and the PNG where there is one."""
    return {"text/plain": text, **({"image/png": base64.b64encode(picture).decode()} if picture else {})}


def printable(text: str, keep: str = "") -> str:
    """Text a plain font can draw: control and undecodable characters become a full stop or `?`."""
    text = text[:400].encode("utf-8", "replace").decode()
    return "".join(letter if letter.isprintable() or letter in keep else "·" for letter in text)
