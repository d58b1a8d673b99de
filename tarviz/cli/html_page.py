"""HTML that verbs write: one stand-alone page, light and dark, no script, no request to anywhere.

Everything that comes from a record passes `text` or `picture`; nothing else may put data into a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tarviz.model.errors import safe

TILE = 148  # pixels of a tile's side
CSP = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"

_KINDS = ((b"\x89PNG", "png"), (b"\xff\xd8", "jpeg"), (b"GIF8", "gif"), (b"RIFF", "webp"), (b"BM", "bmp"))


def style() -> str:
    """What a fragment looks like; touches nothing outside of `.tarviz`."""
    return Path(__file__).with_name("fragment.css").read_text("utf-8")


def text(value: object) -> str:
    """Data as HTML text: markup, quotes, control and direction characters lose their power."""
    import html

    return html.escape(safe(str(value)), quote=True)


def code(lines: str) -> str:
    """Lines of code or output as they are."""
    return f"<pre>{chr(10).join(map(text, lines.splitlines()))}</pre>"


def picture(data: bytes | memoryview, *, alt: str = "", small: bool = False) -> str:
    """An encoded picture (PNG, JPEG, GIF, WebP, BMP) as an image that carries its bytes."""
    import base64

    head = bytes(data[:4])
    kind = next((name for magic, name in _KINDS if head.startswith(magic)), "png")
    shape = ' class="small"' if small else ""
    return f'<img{shape} alt="{text(alt)}" src="data:image/{kind};base64,{base64.b64encode(data).decode()}">'


def tile(shown: bytes | str, *, title: str, lines: Iterable[str] = (), bad: bool = False, small: bool = False) -> str:
    """One record of a contact sheet: a picture or a few words above its caption."""
    inner = (
        picture(shown, alt=title, small=small)
        if isinstance(shown, bytes)
        else f'<span class="{"bad" if bad else "soft"}">{"<br>".join(map(text, shown.splitlines()))}</span>'
    )
    caption = "".join(f"{text(line)}<br>" for line in lines)
    return f'<figure><div class="well">{inner}</div><figcaption><b>{text(title)}</b>{caption}</figcaption></figure>'


def sheet(tiles: Iterable[str]) -> str:
    """Tiles side by side, as many in a row as fit."""
    return f'<div class="sheet" style="--tile: {TILE}px">{"".join(tiles)}</div>'


def table(rows: Sequence[Sequence[object]], *, header: Sequence[str] = (), right: Sequence[int] = ()) -> str:
    """Rows of data as an HTML table."""

    def row(cells: Sequence[object], tag: str) -> str:
        return "".join(f"<{tag}{' class=right' if at in right else ''}>{text(cell)}</{tag}>" for at, cell in enumerate(cells))

    head = f"<tr>{row(header, 'th')}</tr>" if header else ""
    lines = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return f"<table>{head}{lines}</table>"


def fragment(body: str) -> str:
    """HTML for a notebook's output: the style comes along and touches nothing else."""
    return f'<div class="tarviz"><style>{style()}</style>{body}</div>'


def page(title: str, body: str, *, more: str = "") -> str:
    """A whole page; `body` is HTML made by the functions above, `more` style of its own."""
    around = Path(__file__).with_name("page.css").read_text("utf-8")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{CSP}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{text(title)}</title>'
        f'<style>{style()}{around}{more}</style></head>\n<body><main class="tarviz">{body}</main></body></html>\n'
    )
