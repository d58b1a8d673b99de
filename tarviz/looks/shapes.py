"""Boxes, polygons and key points over a picture, told by the shape of what a field holds: COCO, YOLO, VOC, LabelMe, detectors."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

MOST = 400
"""Shapes kept of one record."""

FORMATS = ("xywh", "xyxy", "cxcywh")
_MAX_BYTES = 4 << 20
_MOST_POINTS = 240
_LISTS = (
    "annotations",
    "objects",
    "object",
    "detections",
    "instances",
    "predictions",
    "shapes",
    "bboxes",
    "boxes",
    "bbox",
    "regions",
    "figures",
)
_BOXES = ("bbox", "box", "bndbox", "bounding_box", "boundingBox", "xyxy", "xywh", "boxes", "bboxes", "bounding_boxes")
_NAMES = ("category_name", "category", "name", "label", "class_name", "class", "category_id", "label_id", "class_id", "cls", "title")
_MANY_NAMES = ("labels", "names", "categories", "category", "classes", "class_names", "label", "category_id")
_SCORES = ("score", "confidence", "conf", "prob", "probability")
_CORNERS = (
    (("xmin", "ymin", "xmax", "ymax"), "xyxy"), (("x1", "y1", "x2", "y2"), "xyxy"), (("left", "top", "right", "bottom"), "xyxy"),
    (("x", "y", "w", "h"), "xywh"), (("x", "y", "width", "height"), "xywh"), (("left", "top", "width", "height"), "xywh"),
    (("cx", "cy", "w", "h"), "cxcywh"),
)  # fmt: skip
_YOLO = re.compile(r"\s*\d{1,5}(?:\s+-?\d*\.?\d+(?:[eE]-?\d+)?){4,}\s*")
_OBJECT = re.compile(r"<object>(.*?)</object>", re.DOTALL)
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&amp;": "&"}


@dataclass(frozen=True, slots=True)
class Shape:
    """One thing drawn over a picture, in its pixels: a box (x, y, width, height), a polygon (x, y, x, y, …), or points (x, y, seen, …)."""

    kind: Literal["box", "polygon", "points"]
    numbers: tuple[float, ...]
    name: str = ""
    score: float | None = None


def read(blob: bytes | memoryview, ext: str, width: int, height: int, form: str = "") -> list[Shape]:
    """The shapes in one payload for a picture of `width` × `height` pixels; none where it holds none. Never raises for what it holds.

    JSON and XML are told by their extension, YOLO's lines by their form. `form` (xywh, xyxy, cxcywh) overrides what is guessed for boxes.

    >>> read(b"2 0.5 0.5 0.2 0.4", "txt", 100, 50)
    [Shape(kind='box', numbers=(40.0, 15.0, 20.0, 20.0), name='2', score=None)]
    """
    data = bytes(blob)
    if len(data) > _MAX_BYTES or width < 1 or height < 1:
        return []
    last = ext.rpartition(".")[2]
    try:
        if last in ("json", "boxes", "ann", "anno", "annotation") or data[:1] in (b"{", b"["):
            return find(json.loads(data), width, height, form)
        if last == "xml" or data[:12].lstrip().startswith((b"<annotation", b"<?xml")):
            return _voc(data.decode("utf-8", "replace"), width, height)
        return _yolo(data.decode("utf-8"), width, height)
    except (ValueError, RecursionError, TypeError, KeyError, OverflowError):
        return []


def find(value: Any, width: int, height: int, form: str = "") -> list[Shape]:
    """The shapes in a JSON value: a list of annotations, an object of boxes and names side by side, or either below a usual name."""
    names = _category_names(value)
    found: list[Shape] = []
    for shape in _found(value, _Frame(width, height, form), names, 0):
        found.append(shape)
        if len(found) >= MOST:
            break
    return found


@dataclass(frozen=True, slots=True)
class _Frame:
    width: int
    height: int
    form: str

    def boxes(self, rows: Sequence[Sequence[float]], guess: str) -> list[tuple[float, ...] | None]:
        """Rows of four numbers as x, y, width, height in pixels; None for those that are none. The form is told by all rows together."""
        good = [row for row in rows if _four(row)]
        share = bool(good) and all(0 <= n <= 1 for row in good for n in row[:4]) and any(0 < n < 1 for row in good for n in row[:4])
        sx, sy = (self.width, self.height) if share else (1, 1)
        form = self.form or self._form(good, guess, 1 if share else self.width, 1 if share else self.height)
        return [_xywh(row, form, sx, sy) if _four(row) else None for row in rows]

    @staticmethod
    def _form(rows: Sequence[Sequence[float]], guess: str, width: float, height: float) -> str:
        corners = all(row[2] > row[0] and row[3] > row[1] for row in rows)
        beyond = any(row[0] + row[2] > width * 1.02 or row[1] + row[3] > height * 1.02 for row in rows)
        if guess == "xyxy":
            return "xyxy" if corners else "xywh"
        return "xyxy" if beyond and corners else "xywh"


def _four(row: Any) -> bool:
    return (
        isinstance(row, Sequence)
        and not isinstance(row, str)
        and len(row) >= 4
        and all(isinstance(n, (int, float)) and not isinstance(n, bool) and math.isfinite(n) for n in row[:4])
    )


def _xywh(row: Sequence[float], form: str, sx: float, sy: float) -> tuple[float, ...]:
    a, b, c, d = (float(n) for n in row[:4])
    if form == "xyxy":
        c, d = c - a, d - b
    elif form == "cxcywh":
        a, b = a - c / 2, b - d / 2
    return tuple(round(n, 2) for n in (a * sx, b * sy, c * sx, d * sy))


def _category_names(value: Any) -> dict[Any, str]:
    """Number → name where the JSON says so, as COCO's categories or as a list or object of names."""
    if not isinstance(value, Mapping):
        return {}
    listed = value.get("categories")
    if isinstance(listed, list) and all(isinstance(one, Mapping) and "id" in one for one in listed):
        return {one["id"]: str(one.get("name", one["id"])) for one in listed}
    for word in ("class_names", "id2label", "names"):
        names = value.get(word)
        if isinstance(names, Mapping):
            return {int(number): str(name) for number, name in names.items() if str(number).isdigit()}
        if word == "class_names" and isinstance(names, list):
            return {number: str(name) for number, name in enumerate(names)}
    return {}


def _found(value: Any, frame: _Frame, names: Mapping[Any, str], depth: int) -> Iterator[Shape]:
    if depth > 4:
        return
    if isinstance(value, list):
        if value and all(_four(row) and len(row) in (4, 5, 6) for row in value):
            yield from _parallel(value, [], [], frame, names, "xyxy")
        elif value and all(isinstance(one, Mapping) for one in value):
            yield from _annotations(value, frame, names)
        return
    if not isinstance(value, Mapping):
        return
    for word in _BOXES:
        rows = value.get(word)
        if isinstance(rows, list) and rows and all(_four(row) for row in rows):
            called: list[Any] = next((value[key] for key in _MANY_NAMES if _as_long(value.get(key), rows)), [])
            scores: list[Any] = next(
                (value[key] for key in ("scores", "score", "confidences", "confidence") if _as_long(value.get(key), rows)), []
            )
            yield from _parallel(rows, called, scores, frame, names, "xywh" if word in ("bbox", "xywh") else "xyxy")
            return
    for word in ("annotation", *_LISTS):
        if isinstance(value.get(word), (list, Mapping)):
            inner = value[word]
            inner = [inner] if word == "object" and isinstance(inner, Mapping) else inner
            before = None
            for before in _found(inner, frame, names, depth + 1):
                yield before
            if before is not None:
                return
    if any(word in value for word in (*_BOXES, "segmentation", "keypoints", "polygon")):
        yield from _annotations([value], frame, names)


def _as_long(value: Any, rows: list[Any]) -> bool:
    return isinstance(value, list) and len(value) == len(rows) and not any(isinstance(one, (list, Mapping)) for one in value)


def _parallel(
    rows: list[Any], called: Sequence[Any], scores: Sequence[Any], frame: _Frame, names: Mapping[Any, str], guess: str
) -> Iterator[Shape]:
    for at, box in enumerate(frame.boxes(rows, guess)):
        if box is None:
            continue
        name = called[at] if at < len(called) else rows[at][5] if len(rows[at]) > 5 else ""
        score = scores[at] if at < len(scores) else rows[at][4] if len(rows[at]) > 4 else None
        yield Shape("box", box, _called(name, names), _score(score))


def _called(name: Any, names: Mapping[Any, str]) -> str:
    if isinstance(name, float) and name.is_integer():
        name = int(name)
    return names.get(name, str(name)) if isinstance(name, (str, int)) else ""


def _score(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 100 else None


def _annotations(items: Sequence[Mapping[str, Any]], frame: _Frame, names: Mapping[Any, str]) -> Iterator[Shape]:
    rows, guess = _rows_of(items)
    boxes = frame.boxes(rows, guess)
    for item, box in zip(items, boxes, strict=True):
        name = next((_called(item[key], names) for key in _NAMES if isinstance(item.get(key), (str, int))), "")
        if name.isdigit() and isinstance(item.get("category_id"), int):
            name = names.get(item["category_id"], name)
        score = next((found for key in _SCORES if (found := _score(item.get(key))) is not None), None)
        points = item.get("points")
        if box is not None:
            yield Shape("box", box, name, score)
        elif item.get("shape_type") == "rectangle" and isinstance(points, list) and len(points) == 2:
            (a, b), (c, d) = points
            yield Shape("box", (min(a, c), min(b, d), abs(c - a), abs(d - b)), name, score)
        outlines = item.get("segmentation", item.get("polygon", points if item.get("shape_type", "polygon") == "polygon" else None))
        for outline in _outlines(outlines, frame):
            yield Shape("polygon", outline, name, score)
        marks = item.get("keypoints")
        if isinstance(marks, list) and len(marks) >= 3 and len(marks) % 3 == 0 and all(isinstance(n, (int, float)) for n in marks):
            yield Shape("points", tuple(float(n) for n in marks[:_MOST_POINTS]), name, score)


def _rows_of(items: Sequence[Mapping[str, Any]]) -> tuple[list[Any], str]:
    """The four numbers of every item, () where there are none, and the form their names promise."""
    rows: list[Any] = []
    guess = "xywh"
    for item in items:
        row: Any = next((item[word] for word in _BOXES if word in item and isinstance(item[word], (list, Mapping))), item)
        guess = "xyxy" if "xyxy" in item or ("box" in item and "bbox" not in item) else guess
        if isinstance(row, Mapping):
            corners, form = next(((c, f) for c, f in _CORNERS if all(isinstance(_number(row.get(name)), float) for name in c)), ((), ""))
            row = [_number(row[name]) for name in corners]
            if form == "cxcywh":
                row = [row[0] - row[2] / 2, row[1] - row[3] / 2, *row[2:]]
            guess = "xyxy" if form == "xyxy" else guess
        rows.append(row)
    return rows, guess


def _number(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else None
    except ValueError:
        return None


def _outlines(value: Any, frame: _Frame) -> Iterator[tuple[float, ...]]:
    """Polygons as lists of x, y, x, y … or of [x, y] pairs; run-length masks are left out."""
    if not isinstance(value, list) or not value:
        return
    many = [value] if isinstance(value[0], (int, float)) or (isinstance(value[0], list) and len(value[0]) == 2) else value
    for one in many[:50]:
        if not isinstance(one, list):
            continue
        flat = [n for pair in one for n in pair] if one and isinstance(one[0], list) else one
        if len(flat) >= 6 and len(flat) % 2 == 0 and all(isinstance(n, (int, float)) and math.isfinite(n) for n in flat):
            share = all(0 <= n <= 1 for n in flat)
            size = (frame.width, frame.height) if share else (1, 1)
            every = max(1, len(flat) // 2 // (_MOST_POINTS // 2))
            pairs = [(flat[at] * size[0], flat[at + 1] * size[1]) for at in range(0, len(flat), 2 * every)]
            yield tuple(round(float(n), 2) for pair in pairs for n in pair)


def _voc(text: str, width: int, height: int) -> list[Shape]:
    """Pascal VOC by its few tags, no XML parser: nothing in it can be expanded."""
    size = [_tag(text, name) for name in ("width", "height")]
    scale = [
        real / float(said) if said and _number(said) and float(said) > 0 else 1.0 for real, said in zip((width, height), size, strict=True)
    ]
    found = []
    for body in _OBJECT.findall(text)[:MOST]:
        corners = [_number(_tag(body, name)) for name in ("xmin", "ymin", "xmax", "ymax")]
        if None in corners:
            continue
        left, top, right, bottom = (float(n or 0) for n in corners)
        box = (left * scale[0], top * scale[1], (right - left) * scale[0], (bottom - top) * scale[1])
        found.append(Shape("box", tuple(round(n, 2) for n in box), _unescaped(_tag(body, "name") or "")))
    return found


def _tag(text: str, name: str) -> str | None:
    found = re.search(rf"<{name}>\s*([^<]*?)\s*</{name}>", text)
    return found[1] if found else None


def _unescaped(text: str) -> str:
    for written, letter in _ENTITIES.items():
        text = text.replace(written, letter)
    return text


def _yolo(text: str, width: int, height: int) -> list[Shape]:
    """Lines `class x y w h [score]` or `class x y x y x y …`, in shares of the picture; no shapes unless every line is one."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or len(lines) > 2000 or not all(_YOLO.fullmatch(line) for line in lines):
        return []
    found = []
    for line in lines[:MOST]:
        name, *rest = line.split()
        numbers = [float(word) for word in rest]
        if any(abs(n) > 1.5 for n in numbers):
            return []
        if len(numbers) in (4, 5):
            box = _xywh(numbers, "cxcywh", width, height)
            found.append(Shape("box", box, name, numbers[4] if len(numbers) == 5 else None))
        elif len(numbers) % 2 == 0:
            pairs = zip(numbers[::2], numbers[1::2], strict=True)
            found.append(Shape("polygon", tuple(round(n, 2) for x, y in pairs for n in (x * width, y * height)), name))
    return found


def painter(picture: Any, shapes: Sequence[Shape], colour: Callable[[str], str], scale: float = 1.0) -> None:
    """Draw shapes onto a PIL picture (RGB), for where nothing can be drawn over it; `scale` is its size to the original's."""
    from PIL import ImageDraw

    pen = ImageDraw.Draw(picture)
    for shape in shapes:
        numbers = [n * scale for n in shape.numbers]
        if shape.kind == "box":
            x, y, w, h = numbers
            pen.rectangle((x, y, x + max(w, 0), y + max(h, 0)), outline=colour(shape.name), width=2)
        elif shape.kind == "polygon":
            pen.line([*zip(numbers[::2], numbers[1::2], strict=True), (numbers[0], numbers[1])], fill=colour(shape.name), width=2)
        else:
            for x, y in zip(numbers[::3], numbers[1::3], strict=True):
                pen.ellipse((x - 2, y - 2, x + 2, y + 2), fill=colour(shape.name))
