"""Boxes as other tools write them: KITTI's lines, OpenImages' CSV, the lines of text in hOCR and ALTO; nothing is expanded."""

from __future__ import annotations

import csv
import io
import math
import re
from typing import TypeAlias

Box: TypeAlias = tuple[str, tuple[float, ...], float | None]
"""Name; left, top, right, bottom; score."""

_NUMBER = r"-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?"
_KITTI = re.compile(rf"[A-Za-z_]\w*(?:\s+{_NUMBER}){{14,15}}\s*")
_COLUMNS = ("xmin", "ymin", "xmax", "ymax")
_TAG = re.compile(r"<[\w:]+\s[^>]*>")
_LINE = re.compile(r"\bclass=[\"'][^\"']*\bocr_(line|header|caption|textfloat)\b")
_HOCR_PAGE = re.compile(r"\bclass=[\"'][^\"']*\bocr_page\b")
_BBOX = re.compile(rf"\bbbox\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})")
_ALTO = ("HPOS", "VPOS", "WIDTH", "HEIGHT")


def kitti(text: str) -> list[Box]:
    """The objects of a `label_2` file, pixels, of predictions with a score (the KITTI devkit's readme); none unless every line is one.

    >>> kitti("Car 0.0 0 1.5 10 20 30 40 1.5 1.6 4 1 2 8 0.1")
    [('Car', (10.0, 20.0, 30.0, 40.0), None)]
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not all(_KITTI.fullmatch(line) for line in lines):
        return []
    rows = [line.split() for line in lines]
    return [(row[0], tuple(map(float, row[4:8])), float(row[15]) if len(row) > 15 else None) for row in rows]


def open_images(text: str) -> list[Box]:
    """The rows of a CSV with the columns of OpenImages' boxes, in shares of the picture; none where a column is missing. A row without
    four numbers is left out.

    >>> open_images("LabelName,Confidence,XMin,XMax,YMin,YMax\\n/m/01,1,0.1,0.3,0.2,0.4\\n")
    [('/m/01', (0.1, 0.2, 0.3, 0.4), 1.0)]
    """
    lines = csv.reader(io.StringIO(text), skipinitialspace=True)
    header = [name.strip().lower() for name in next(lines, [])]
    if not {"labelname", *_COLUMNS} <= set(header):
        return []
    rows = (dict(zip(header, line, strict=False)) for line in lines)
    boxes = ((row, tuple(n for name in _COLUMNS if (n := finite(row.get(name))) is not None)) for row in rows)
    return [(row["labelname"], box, finite(row.get("confidence"))) for row, box in boxes if len(box) == 4 and "labelname" in row]


def finite(text: str | None) -> float | None:
    """The number that is written; None where it is none, or not finite."""
    try:
        return number if text and math.isfinite(number := float(text)) else None
    except ValueError:
        return None


def text_lines(text: str) -> list[Box]:
    """The lines of text in hOCR or ALTO, each called `line`, in the pixels of the page.

    >>> text_lines("<span class='ocr_line' title='bbox 1 2 30 9; baseline 0 0'>")
    [('line', (1.0, 2.0, 30.0, 9.0), None)]
    >>> text_lines('<TextLine HPOS="1" VPOS="2" WIDTH="29" HEIGHT="7">')
    [('line', (1.0, 2.0, 30.0, 9.0), None)]
    """
    found = [box for tag in _TAG.findall(text) if (box := _corners(tag, _LINE, "TextLine")) is not None]
    return [("line", box, None) for box in found]


def page(text: str) -> tuple[float, float] | None:
    """Width and height of the page that hOCR or ALTO is of, as written; None where it does not say so."""
    boxes = (_corners(tag, _HOCR_PAGE, "Page") for tag in _TAG.findall(text))
    size = next(((box[2] - box[0], box[3] - box[1]) for box in boxes if box is not None), None)
    return size if size and min(size) >= 1 else None


def _corners(tag: str, hocr: re.Pattern[str], alto: str) -> tuple[float, ...] | None:
    """Left, top, right and bottom of a tag of hOCR's class, or of ALTO's name, that has them."""
    if hocr.search(tag):
        return tuple(map(float, found.groups())) if (found := _BBOX.search(tag)) else None
    if not re.match(rf"<(?:\w+:)?{alto}\s", tag):
        return None
    sides = [re.search(rf"\b{name}=[\"']({_NUMBER})[\"']", tag) for name in _ALTO]
    x, y, width, height = (float(side[1]) if side else 0.0 for side in sides)
    return (x, y, x + width, y + height) if sides[2] and sides[3] else None
