"""Pascal VOC's XML by its few tags, no XML parser: nothing in it can be expanded."""

from __future__ import annotations

import html
import re

from tarviz.looks.written import finite

CORNERS = ("xmin", "ymin", "xmax", "ymax")
PART = re.compile(r"<part>.*?</part>", re.DOTALL)
_OBJECT = re.compile(r"<object>(.*?)</object>", re.DOTALL)


def objects(text: str) -> list[tuple[str, tuple[float, ...]]]:
    """Name and left, top, right, bottom of the objects that have a box, as they are written.

    >>> objects("<object><name>a</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox></object>")
    [('a', (1.0, 2.0, 3.0, 4.0))]
    """
    bodies = (PART.sub("", body) for body in _OBJECT.findall(text))
    found = ((_tag(body, "name") or "", corners(body)) for body in bodies)
    return [(html.unescape(name), box) for name, box in found if box is not None]


def scale(text: str, width: int, height: int) -> tuple[float, float]:
    """How much larger the picture is than the file says it is, across and down."""
    across, down = size(text) or (width, height)
    return width / across, height / down


def size(text: str) -> tuple[float, float] | None:
    """Width and height of the picture as the file says them.

    >>> size("<size><width>4</width><height>3</height></size>")
    (4.0, 3.0)
    """
    width, height = (finite(_tag(text, name)) or 0 for name in ("width", "height"))
    return (width, height) if min(width, height) > 0 else None


def corners(body: str) -> tuple[float, ...] | None:
    """Left, top, right and bottom of one object or part, as they are written; None where it has no box."""
    found = [n for name in CORNERS if (n := finite(_tag(body, name))) is not None]
    return tuple(found) if len(found) == 4 else None


def _tag(text: str, name: str) -> str | None:
    found = re.search(rf"<{name}>\s*([^<]*?)\s*</{name}>", text)
    return found[1] if found else None
