"""Boxes, polygons, key points and masks over a picture, told by the shape of what a field holds: COCO, YOLO, VOC, LabelMe, detectors."""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeGuard

from tarviz.looks import runs, voc, written, yolo
from tarviz.model.errors import DataError

MOST = 400
"""Shapes kept of one record."""

FORMATS = ("xywh", "xyxy", "cxcywh")
_MAX_BYTES = 4 << 20
_MOST_POINTS = 240
_MOST_OUTLINES = 50
_CORNERS_OF_CIRCLE = 64  # 0.2 % of its area is lost
_LISTS = (
    "annotations", "objects", "object", "detections", "instances", "predictions", "shapes", "bboxes", "boxes", "bbox", "regions", "figures",
)  # fmt: skip
_BOXES = ("bbox", "box", "bndbox", "bounding_box", "boundingBox", "xyxy", "xywh", "boxes", "bboxes", "bounding_boxes")
_NAMES = ("category_name", "category", "name", "label", "class_name", "class", "category_id", "label_id", "class_id", "cls", "title")
MANY_NAMES = ("labels", "names", "categories", "category", "classes", "class_names", "label", "category_id")
MANY_SCORES = ("scores", "score", "confidences", "confidence")
_SCORES = ("score", "confidence", "conf", "prob", "probability")
_CORNERS = (
    (("xmin", "ymin", "xmax", "ymax"), "xyxy"), (("x1", "y1", "x2", "y2"), "xyxy"), (("left", "top", "right", "bottom"), "xyxy"),
    (("x", "y", "w", "h"), "xywh"), (("x", "y", "width", "height"), "xywh"), (("left", "top", "width", "height"), "xywh"),
    (("cx", "cy", "w", "h"), "cxcywh"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shape:
    """One thing drawn over a picture, in its pixels: a box (x, y, width, height), a polygon (x, y, x, y, …), points (x, y, seen, …), or a
    mask as large as the picture (its own height and width, then runs of 0 and 1 down its columns: `looks/runs.py`)."""

    kind: Literal["box", "polygon", "points", "mask"]
    numbers: tuple[float, ...]
    name: str = ""
    score: float | None = None
    item: int = field(default=0, compare=False, repr=False)  # shapes of one annotation have the same
    number: int | None = field(default=None, compare=False, repr=False)  # of the class, beside its name
    crowd: bool = field(default=False, compare=False, repr=False)  # COCO's: several things as one


def read(blob: bytes | memoryview, ext: str, width: int, height: int, form: str = "") -> list[Shape]:
    """The shapes in one payload for a picture of `width` × `height` pixels; none where it holds none. Never raises for what it holds.

    JSON and XML are told by their extension, YOLO's lines by their form. `form` (xywh, xyxy, cxcywh) overrides what is guessed for boxes.

    >>> read(b"2 0.5 0.5 0.2 0.4", "txt", 100, 50)
    [Shape(kind='box', numbers=(40.0, 15.0, 20.0, 20.0), name='2', score=None)]
    """
    return read_over(blob, ext, Frame(width, height, form))


def read_over(blob: bytes | memoryview, ext: str, frame: Frame) -> list[Shape]:
    """The same over a frame, which says how many shapes are kept and how exactly."""
    data = bytes(blob)
    width, height = frame.width, frame.height
    if (len(data) > _MAX_BYTES and not frame.is_all) or min(width, height) < 1:
        return []
    last = ext.rpartition(".")[2]
    try:
        if last in ("json", "boxes", "ann", "anno", "annotation") or data[:1] in (b"{", b"["):
            return _flat(json.loads(data), frame)
        if last == "xml" or data[:12].lstrip().startswith(b"<"):
            text = data.decode("utf-8", "replace")
            return _voc(text, frame) or _boxes(written.text_lines(text), frame, written.page(text))
        text = data.decode("utf-8-sig")
        return _yolo(text, frame) or _boxes(written.kitti(text), frame) or _boxes(written.open_images(text), frame, (1, 1))
    except (ValueError, RecursionError, TypeError, KeyError, OverflowError, csv.Error):
        return []


def find(value: Any, width: int, height: int, form: str = "") -> list[Shape]:
    """The shapes in a JSON value: a list of annotations, an object of boxes and names side by side, or either below a usual name."""
    return _flat(value, Frame(width, height, form))


def _flat(value: Any, frame: Frame) -> list[Shape]:
    found: list[Shape] = []
    for _, shapes in sites(value, frame):
        before = found[-1].item + 1 if found else 0
        found += [replace(each, item=before + each.item) for each in shapes] if before else shapes
    return found[: frame.most]


@dataclass(frozen=True, slots=True)
class BoxRows:
    """A place where boxes are: `rows` of numbers, names and scores beside them in lists of `holder`; `guess` is the form by name."""

    rows: list[Any]
    holder: Mapping[str, Any]
    guess: str


@dataclass(frozen=True, slots=True)
class Items:
    """A place where annotations are: an object each. `alone`: the one object stands in no list."""

    items: list[Any]
    alone: bool = False


def sites(value: Any, frame: Frame) -> Iterator[tuple[BoxRows | Items, list[Shape]]]:
    """The places in a JSON value where shapes are, each with its first `MOST` shapes; places that hold none are passed over."""
    yield from _find(value, frame, _category_names(value), 0)


@dataclass(frozen=True, slots=True)
class Frame:
    """A picture of `width` × `height` pixels, over which numbers are read; `form` overrides what is guessed for boxes. `most` shapes are
    kept, in pixels of `digits` decimals."""

    width: int
    height: int
    form: str = ""
    most: int = MOST
    digits: int = 2

    @property
    def is_all(self) -> bool:
        """Whether more is wanted than is shown: nothing is thinned out."""
        return self.most > MOST

    def boxes(self, rows: Sequence[Sequence[float]], guess: str) -> list[tuple[float, ...] | None]:
        """Rows of four numbers as x, y, width, height in pixels; None for those that are none. The form is told by all rows together."""
        form, share = self.form_of(rows, guess)
        sx, sy = (self.width, self.height) if share else (1, 1)
        return [xywh(row, form, sx, sy) if four(row) else None for row in rows]

    def form_of(self, rows: Sequence[Sequence[float]], guess: str) -> tuple[str, bool]:
        """In which of `FORMATS` rows of numbers are written, and whether in shares of the picture; `guess` "coco" is sure of both."""
        if guess == "coco" and not self.form:
            return "xywh", False
        good = [row for row in rows if four(row)]
        share = in_shares([row[:4] for row in good])
        return self.form or self._form(good, guess, 1 if share else self.width, 1 if share else self.height), share

    def pixels(self, flat: Sequence[float]) -> list[float]:
        """x, y, x, y … in pixels, where they may be shares."""
        return [n * (self.width, self.height)[at % 2] for at, n in enumerate(flat)] if in_shares([flat]) else list(flat)

    @staticmethod
    def _form(rows: Sequence[Sequence[float]], guess: str, width: float, height: float) -> str:
        corners = all(row[2] > row[0] and row[3] > row[1] for row in rows)
        beyond = any(row[0] + row[2] > width * 1.02 or row[1] + row[3] > height * 1.02 for row in rows)
        if guess == "xyxy":
            return "xyxy" if corners else "xywh"
        return "xyxy" if beyond and corners else "xywh"


def in_shares(rows: Sequence[Sequence[float]]) -> bool:
    """Whether numbers are shares of a picture rather than pixels: all from 0 to 1, and not all of them 0.

    >>> in_shares([[0, 0, 1, 1]]), in_shares([[0, 0, 2, 1]])
    (True, False)
    """
    return all(0 <= n <= 1 for row in rows for n in row) and any(n for row in rows for n in row)


def four(row: Any) -> bool:
    """Whether a row begins with four numbers."""
    return (
        isinstance(row, Sequence)
        and not isinstance(row, str)
        and len(row) >= 4
        and all(isinstance(n, (int, float)) and not isinstance(n, bool) and math.isfinite(n) for n in row[:4])
    )


def xywh(row: Sequence[float], form: str, sx: float, sy: float) -> tuple[float, ...]:
    """x, y, width, height of a box written in one of `FORMATS`, times `sx` and `sy`."""
    a, b, c, d = (float(n) for n in row[:4])
    if form == "xyxy":
        c, d = c - a, d - b
    elif form == "cxcywh":
        a, b = a - c / 2, b - d / 2
    return a * sx, b * sy, c * sx, d * sy


def _category_names(value: Any) -> dict[Any, str]:
    """Number → name where the JSON says so, as COCO's categories or as a list or object of names."""
    if not isinstance(value, Mapping):
        return {}
    listed = value.get("categories")
    if isinstance(listed, list) and all(isinstance(one, Mapping) and isinstance(one.get("id"), int | str) for one in listed):
        return {one["id"]: str(one.get("name", one["id"])) for one in listed}
    for word in ("class_names", "id2label", "names"):
        names = value.get(word)
        if isinstance(names, Mapping):
            return {int(number): str(name) for number, name in names.items() if str(number).isdecimal()}
        if word == "class_names" and isinstance(names, list):
            return {number: str(name) for number, name in enumerate(names)}
    return {}


def _find(value: Any, frame: Frame, names: Mapping[Any, str], depth: int) -> Iterator[tuple[BoxRows | Items, list[Shape]]]:
    if depth > 4:
        return
    if isinstance(value, list) and value:
        if any(value) and all(row is None or (four(row) and len(row) in (4, 5, 6)) for row in value):
            yield from _holding(BoxRows(value, {}, "xyxy"), frame, names)
        elif all(isinstance(one, Mapping) for one in value):
            yield from _holding(Items(value), frame, names)
    if not isinstance(value, Mapping):
        return
    for word in _BOXES:
        rows = value.get(word)
        if isinstance(rows, list) and any(map(four, rows)):
            yield from _holding(BoxRows(rows, value, "xywh" if word in ("bbox", "xywh") else "xyxy"), frame, names)
            return
    for word in ("annotation", *_LISTS):
        if found := _below(value.get(word), word, frame, names, depth):
            yield from found
            return
    if any(word in value for word in (*_BOXES, "segmentation", "keypoints", "polygon")):
        yield from _holding(Items([value], True), frame, names)


def _below(inner: Any, word: str, frame: Frame, names: Mapping[Any, str], depth: int) -> list[tuple[BoxRows | Items, list[Shape]]]:
    """What a list or object behind `word` holds. VOC's `object` is one annotation where there is only one."""
    if word == "object" and isinstance(inner, Mapping):
        return list(_holding(Items([inner], True), frame, names))
    return list(_find(inner, frame, names, depth + 1)) if isinstance(inner, list | Mapping) else []


def _holding(site: BoxRows | Items, frame: Frame, names: Mapping[Any, str]) -> Iterator[tuple[BoxRows | Items, list[Shape]]]:
    """The place with its shapes, where it holds any."""
    made = _side_by_side(site, frame, names) if isinstance(site, BoxRows) else _annotations(site.items, frame, names)
    shapes = list(itertools.islice(made, frame.most))
    if shapes:
        yield site, shapes


def _side_by_side(site: BoxRows, frame: Frame, names: Mapping[Any, str]) -> Iterator[Shape]:
    rows, holder = site.rows, site.holder
    whole = (holder[key] for key in MANY_NAMES if _as_long(holder.get(key), len(rows)))
    short = (holder[key] for key in ("labels", "label", "category", "category_id") if _as_long(holder.get(key), len(rows) - 1))
    called: list[Any] = next(itertools.chain(whole, short), [])
    scores: list[Any] = next((holder[key] for key in MANY_SCORES if _as_long(holder.get(key), len(rows))), [])
    for at, box in enumerate(frame.boxes(rows, site.guess)):
        if box is None:
            continue
        name = called[at] if at < len(called) else rows[at][5] if len(rows[at]) > 5 else ""
        score = scores[at] if at < len(scores) else rows[at][4] if len(rows[at]) > 4 else None
        yield Shape("box", _round(box, frame.digits), _name(name, names), _score(score), at, _class_number(name))


def _round(numbers: Iterable[float], digits: int) -> tuple[float, ...]:
    return tuple(round(float(n), digits) for n in numbers)


def _as_long(value: Any, count: int) -> bool:
    """Whether a value is a list of so many names or numbers; a few of them may be something else."""
    return isinstance(value, list) and len(value) == count and any(isinstance(one, (str, int, float)) for one in value)


def _name(name: Any, names: Mapping[Any, str]) -> str:
    if isinstance(name, float) and name.is_integer():
        name = int(name)
    return names.get(name, str(name)) if isinstance(name, (str, int)) else ""


def _class_number(name: Any) -> int | None:
    whole = (isinstance(name, int) and not isinstance(name, bool)) or (isinstance(name, float) and name.is_integer())
    return int(name) if whole else None


def _score(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 100 else None


def _annotations(items: Sequence[Mapping[str, Any]], frame: Frame, names: Mapping[Any, str]) -> Iterator[Shape]:
    rows, guess = rows_of(items)
    boxes = frame.boxes(rows, guess)
    for at, (item, box) in enumerate(zip(items, boxes, strict=True)):
        name = next((_name(item[key], names) for key in _NAMES if isinstance(item.get(key), (str, int))), "")
        if name.isdecimal() and isinstance(item.get("category_id"), int):
            name = names.get(item["category_id"], name)
        number = next((whole for key in _NAMES if (whole := _class_number(item.get(key))) is not None), None)
        score = next((found for key in _SCORES if (found := _score(item.get(key))) is not None), None)
        about = name, score, at, number, item.get("iscrowd") in (1, True)
        if box is not None:
            yield Shape("box", _round(box, frame.digits), *about)
        elif (corners := rectangle(item)) is not None:
            yield Shape("box", _round(corners, frame.digits), *about)
        most = None if frame.is_all else _MOST_OUTLINES
        for outline in [*outlines(item.get(outline_word(item)), most), *outlines(circle(item))]:
            pixels = outline if guess == "coco" else frame.pixels(outline)
            yield Shape("polygon", _round(pixels if frame.is_all else _thin(pixels), frame.digits), *about)
        if mask := _runs(item.get(outline_word(item))):
            yield Shape("mask", mask, *about)
        if marks := _marks(item):
            yield Shape("points", tuple(marks if frame.is_all else marks[:_MOST_POINTS]), *about)


def _marks(item: Mapping[str, Any]) -> list[float]:
    """COCO's key points, or LabelMe's points as such, all of them seen."""
    marks = item.get("keypoints")
    return [float(n) for n in (marks if triples(marks) else (n for pair in marked_points(item) for n in (*pair, 2)))]


def _runs(value: Any) -> tuple[int, ...]:
    """A run-length mask as a shape has it; () where there is none, or it is damaged."""
    try:
        return runs.thin(value) if runs.is_runs(value) else ()
    except DataError:
        return ()


def rectangle(item: Mapping[str, Any]) -> tuple[float, ...] | None:
    """x, y, width, height of LabelMe's rectangle, which is two points, of its successors' all four; None where the item is none."""
    if len(points := marked_points(item, "rectangle")) < 2:
        return None
    across, down = zip(*points, strict=True)
    return min(across), min(down), max(across) - min(across), max(down) - min(down)


def marked_points(item: Mapping[str, Any], *kinds: str) -> list[Any]:
    """The points of LabelMe's point or line, or of another of its kinds; [] where the item is none."""
    points = item.get("points")
    if item.get("shape_type") not in (kinds or ("point", "points", "line", "linestrip")) or not isinstance(points, list):
        return []
    good = all(isinstance(each, list) and len(each) == 2 and all(isinstance(n, int | float) for n in each) for each in points)
    return points if good and all(math.isfinite(n) for each in points for n in each) else []


def circle(item: Mapping[str, Any]) -> list[list[float]]:
    """LabelMe's circle, which is its middle and a point on it, as an outline; [] where the item is none."""
    if len(points := marked_points(item, "circle")) != 2:
        return []
    (x, y), edge = points
    radius = math.dist((x, y), edge)
    turns = [math.tau * at / _CORNERS_OF_CIRCLE for at in range(_CORNERS_OF_CIRCLE)]
    return [[x + radius * math.cos(turn), y + radius * math.sin(turn)] for turn in turns]


def triples(marks: Any) -> TypeGuard[list[float]]:
    """Whether a value is COCO's key points: x, y, seen, x, y, seen, …"""
    return isinstance(marks, list) and len(marks) >= 3 and len(marks) % 3 == 0 and all(isinstance(n, (int, float)) for n in marks)


def outline_word(item: Mapping[str, Any]) -> str:
    """Where the outlines of an annotation are."""
    if "segmentation" in item or "polygon" in item:
        return "segmentation" if "segmentation" in item else "polygon"
    return "points" if item.get("shape_type", "polygon") == "polygon" else ""


def rows_of(items: Sequence[Mapping[str, Any]]) -> tuple[list[Any], str]:
    """The four numbers of every item, () where there are none, and the form their names promise: "coco" where COCO's own are there."""
    rows: list[Any] = []
    guess = "xywh"
    for item in items:
        row: Any = box_of(item)
        guess = "xyxy" if "xyxy" in item or ("box" in item and "bbox" not in item) else guess
        if isinstance(row, Mapping):
            corners, form = corners_of(row)
            row = [_number(row[name]) for name in corners]
            if form == "cxcywh":
                row = xywh(row, form, 1, 1)
            guess = {"": guess, "xyxy": form}.get(form, "xywh")
        rows.append(row)
    return rows, "coco" if guess == "xywh" and any("iscrowd" in item or "image_id" in item for item in items) else guess


def box_of(item: Mapping[str, Any]) -> Any:
    """The value of an annotation that is its box, a list or an object; the annotation itself where none of the usual names is there."""
    return next((item[word] for word in _BOXES if word in item and isinstance(item[word], (list, Mapping))), item)


def corners_of(row: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
    """The names under which an object has its four numbers, and their form; (), "" where it has none."""
    return next(((names, form) for names, form in _CORNERS if all(isinstance(_number(row.get(name)), float) for name in names)), ((), ""))


def _number(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else None
    except ValueError:
        return None


def outlines(value: Any, most: int | None = _MOST_OUTLINES) -> Iterator[list[float]]:
    """Polygons as x, y, x, y …, out of lists of such numbers or of [x, y] pairs, one or several."""
    if not isinstance(value, list) or not value:
        return
    many = [value] if isinstance(value[0], (int, float)) or (isinstance(value[0], list) and len(value[0]) == 2) else value
    for one in many[:most]:
        flat = one if isinstance(one, list) else []
        if flat and isinstance(flat[0], list):
            flat = [n for pair in flat for n in (pair if isinstance(pair, list) else [math.nan])]
        if len(flat) >= 6 and len(flat) % 2 == 0 and all(isinstance(n, (int, float)) and math.isfinite(n) for n in flat):
            yield flat


def _thin(flat: list[float]) -> list[float]:
    every = max(1, len(flat) // 2 // (_MOST_POINTS // 2))
    return [n for at in range(0, len(flat), 2 * every) for n in flat[at : at + 2]]


def _voc(text: str, frame: Frame) -> list[Shape]:
    return _boxes([(name, corners, None) for name, corners in voc.objects(text)], frame, voc.size(text))


def _boxes(found: Sequence[written.Box], frame: Frame, size: tuple[float, float] | None = None) -> list[Shape]:
    """Boxes over a picture that is said to be of `size`, its own where it is not."""
    across, down = size or (frame.width, frame.height)
    scale = frame.width / across, frame.height / down
    rows = enumerate(found[: frame.most])
    return [Shape("box", _round(xywh(box, "xyxy", *scale), frame.digits), name, score, at) for at, (name, box, score) in rows]


def _yolo(text: str, frame: Frame) -> list[Shape]:
    found = []
    size, digits = (frame.width, frame.height), frame.digits
    for at, line in enumerate(yolo.lines(text)[: frame.most]):
        numbers = line.numbers
        if line.kind in ("box", "pose"):
            score = numbers[4] if len(numbers) == 5 else None
            found.append(Shape("box", _round(xywh(numbers, "cxcywh", *size), digits), line.name, score, at, int(line.name)))
        if line.kind == "outline":
            outline = (n * size[place % 2] for place, n in enumerate(numbers))
            found.append(Shape("polygon", _round(outline, digits), line.name, item=at, number=int(line.name)))
        elif line.kind == "pose":
            marks = (n if place % 3 == 2 else n * size[place % 3] for place, n in enumerate(numbers[4:]))
            found.append(Shape("points", _round(marks, digits), line.name, item=at))
    return found
