"""Annotations that move with their picture: boxes, outlines and key points rewritten in the form they are written in."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tarviz.looks import runs, shapes, voc, yolo
from tarviz.looks.clipping import Point, area, clip, hull
from tarviz.looks.shapes import BoxRows, Frame, Items
from tarviz.model.errors import DataError

_BESIDE = frozenset(
    (*shapes.MANY_NAMES, *shapes.MANY_SCORES, "category_ids", "area", "areas", "id", "ids", "iscrowd", "difficult", "truncated", "occluded",
     "track_ids", "attributes")
)  # fmt: skip
_SIZES = (("width", "height"), ("imageWidth", "imageHeight"), ("image_width", "image_height"), ("img_width", "img_height"))
_SUSPECT = re.compile(r"box|polygon|segment|keypoint|landmark", re.IGNORECASE)
_OBJECT = re.compile(r"[ \t]*<object>.*?</object>\n?", re.DOTALL)


class Move(Protocol):
    """What is done to a picture: its (height, width) before and after, and where points of it (x, y in pixels, [n, 2]) go."""

    @property
    def before(self) -> tuple[int, int]: ...

    @property
    def after(self) -> tuple[int, int]: ...

    def points(self, places: NDArray[np.float64]) -> NDArray[np.float64]: ...


class Carrier:
    """Rewrites annotations for a picture that is moved by `move`; `form` (xywh, xyxy, cxcywh) where the names do not say it.

    Boxes and outlines are cut at the new frame. One of which less than the share `visible` of its area is left, or nothing, is taken
    out with its label, its score and whatever else its object holds; with None all stay, those outside without any size. Key points
    outside become 0, 0, 0 (not labelled), as COCO writes them. All numbers are written as floats. Run-length masks are moved by `mask`,
    which is given and gives an array [h, w] of 0 and 1, and are written as they were: a list or a text.
    """

    def __init__(
        self, move: Move, form: str = "", visible: float | None = 0.0, mask: Callable[[NDArray[Any]], NDArray[Any]] | None = None
    ) -> None:
        self._move, self._form, self._visible, self._mask = move, form, visible, mask
        (height, width), (self._height, self._width) = move.before, move.after
        self._frame = Frame(width, height, form)

    def payload(self, blob: bytes | bytearray | memoryview, ext: str) -> bytes:
        """A field's bytes: JSON, VOC's XML, YOLO's lines. `DataError` where they hold something else."""
        data = bytes(blob)
        last = ext.rpartition(".")[2]
        if not data.strip():
            return data
        if last == "xml" or data.lstrip()[:1] == b"<":
            return self._voc(data.decode("utf-8", "replace")).encode()
        if last != "txt" or data.lstrip()[:1] in (b"{", b"["):
            try:
                tree = json.loads(data)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{ext} holds no JSON that could be carried along: {error}", details={"field": ext}) from error
            return json.dumps(self.tree(tree)).encode()
        return self._yolo(data.decode("utf-8", "replace"), ext).encode()

    def tree(self, value: Any) -> Any:
        """A decoded JSON, a new one; `DataError` where what it holds cannot be read, or not in one way only."""
        made = copy.deepcopy(value)
        found = [site for site, _ in shapes.sites(made, self._frame)]
        if not found and (word := _suspect(made, 0)):
            raise DataError(
                f"{word!r} looks like annotations, in a form that is not recognised; they would stay behind.",
                hint="Known are COCO, YOLO, VOC, LabelMe and lists of boxes; a Func can bring others into one of these.",
            )
        for site in found:
            if isinstance(site, BoxRows):
                self._rows(site)
            else:
                self._items(site)
        if isinstance(made, dict):
            for part in (made, made.get("image"), made.get("size")):
                self._size(part)
        return made

    def rows(self, array: NDArray[Any]) -> NDArray[Any]:
        """An array of boxes [n, 4 or more] or, where the form is `points`, of points [n, 2 or more]; other columns go along with their row.

        The dtype stays where it is of floats, else it is float32. Shares stay shares.
        """
        numbers = np.asarray(array, np.float64)
        made = np.array(array, array.dtype if array.dtype.kind == "f" else np.float32)
        columns = 2 if self._form == "points" else 4
        if numbers.ndim != 2 or numbers.shape[1] < columns:
            raise DataError(f"{self._form} expects numbers [n, {columns} or more], got {list(array.shape)}.")
        share = shapes.in_shares(numbers[:, :columns].tolist())
        kept = []
        for at, row in enumerate(numbers[:, :columns].tolist()):
            if columns == 2:
                new, left = self._point(row, share)
            else:
                new, left = self._box(row, self._form, share)
            made[at, :columns] = new
            kept.append(self._stays(left))
        return made[np.array(kept, bool)] if kept else made

    # ---- one thing at a time

    def _stays(self, left: float) -> bool:
        return self._visible is None or (left > 0 and left >= self._visible - 1e-9)

    def _move_points(self, flat: Sequence[float]) -> list[Point]:
        pairs = np.asarray(flat, np.float64).reshape(-1, 2)
        return [(float(x), float(y)) for x, y in self._move.points(pairs)]

    def _box(self, row: Sequence[float], form: str, share: bool) -> tuple[list[float], float]:
        """A box in its own form after the move, and how much of its area is left in the frame."""
        x, y, w, h = shapes.xywh(row, form, *((self._frame.width, self._frame.height) if share else (1, 1)))
        corners = self._move_points((x, y, x + w, y, x + w, y + h, x, y + h))
        left = clip(corners, self._width, self._height)
        whole = area(corners)
        part = area(left) / whole if whole > 0 else float(bool(left))
        x0, y0, x1, y1 = hull(left or corners, self._width, self._height)
        return self._write_box((x0, y0, x1 - x0, y1 - y0), form, share), part

    def _write_box(self, box: tuple[float, ...], form: str, share: bool) -> list[float]:
        sizes = (self._width, self._height) * 2 if share else (1, 1, 1, 1)
        return [_neat(n / size, share) for n, size in zip(_in_form(box, form), sizes, strict=True)]

    def _outline(self, flat: Sequence[float]) -> tuple[list[float], float, float]:
        """An outline after the move, its area, and the area it had before it was cut; [] where nothing of it is left."""
        share = shapes.in_shares([flat])
        corners = self._move_points(self._frame.pixels(flat))
        left = clip(corners, self._width, self._height)
        sizes = (self._width, self._height) if share else (1, 1)
        return [_neat(n / sizes[at], share) for point in left for at, n in enumerate(point)], area(left), area(corners)

    def _growth(self) -> float:
        """How much larger areas become: every move is affine."""
        (ax, ay), (bx, by), (cx, cy) = self._move_points((0, 0, 1, 0, 0, 1))
        return abs((bx - ax) * (cy - ay) - (by - ay) * (cx - ax))

    def _point(self, pair: Sequence[float], share: bool = False) -> tuple[list[float], float]:
        """A point after the move, and 1 where it lies in the frame, else 0."""
        before = (self._frame.width, self._frame.height) if share else (1, 1)
        ((x, y),) = self._move_points([n * size for n, size in zip(pair, before, strict=True)])
        after = (self._width, self._height) if share else (1, 1)
        inside = 0 <= x <= self._width and 0 <= y <= self._height
        return [_neat(x / after[0], share), _neat(y / after[1], share)], float(inside)

    # ---- places where annotations are

    def _form_of(self, rows: Sequence[Any], guess: str) -> tuple[str, bool]:
        form, share = self._frame.form_of(rows, guess)
        if form != guess != "coco" and not self._form and any(map(shapes.four, rows)):
            size = f"{self._frame.width} x {self._frame.height}"
            raise DataError(
                f"boxes that by their name are {guess} do not lie like that in a picture of {size} pixels.",
                hint=f'Say their form: carry="json:{form}". Where the picture was resized before, that op has to carry them, too.',
            )
        return form, share

    def _rows(self, site: BoxRows) -> None:
        if not all(map(shapes.four, site.rows)):
            raise DataError("not every box has four numbers; those that have none cannot be carried along.")
        form, share = self._form_of(site.rows, site.guess)
        count, kept = len(site.rows), []
        for at, row in enumerate(site.rows):
            new, left = self._box(row, form, share)
            site.rows[at] = [*new, *row[4:]]
            if self._stays(left):
                kept.append(at)
        beside = [values for name, values in site.holder.items() if name in _BESIDE and isinstance(values, list)]
        for values in (site.rows, *beside):
            if len(kept) < count and len(values) in (count, count - 1):
                values[:] = [values[at] for at in kept if at < len(values)]

    def _items(self, site: Items) -> None:
        rows, guess = shapes.rows_of(site.items)
        form, share = self._form_of(rows, guess) if any(map(shapes.four, rows)) else (guess, False)
        kept = [item for item, row in zip(site.items, rows, strict=True) if self._item(item, row, form, share) or site.alone]
        site.items[:] = kept

    def _item(self, item: dict[str, Any], row: Any, form: str, share: bool) -> bool:
        """Rewrite one annotation; False where too little of it is left."""
        parts: list[float] = []
        if round_one := shapes.circle(item):  # it may be none behind the move
            item |= {"shape_type": "polygon", "points": round_one}
        if shapes.four(row):
            parts.append(self._own_box(item, row, form, share))
        elif (corners := shapes.rectangle(item)) is not None:
            (x, y, w, h), left = self._box(corners, "xywh", False)
            item["points"] = [[x, y], [x + w, y + h]]
            parts.append(left)
        outline, whole = self._outlines(item)
        if whole > 0:
            parts.append(outline / whole)
        if isinstance(item.get("area"), int | float) and parts:
            item["area"] = _neat(item["area"] * self._growth() * (outline / whole if whole > 0 else parts[0]), False)
        if shapes.triples(item.get("keypoints")):
            seen = self._key_points(item)
            parts = parts or [seen]
        elif places := shapes.marked_points(item):
            item["points"] = [list(place) for place in self._move_points([n for place in places for n in place])]
            parts = parts or [float(any(0 <= x <= self._width and 0 <= y <= self._height for x, y in item["points"]))]
        return not parts or self._stays(parts[0])

    def _own_box(self, item: dict[str, Any], row: Any, form: str, share: bool) -> float:
        """Rewrite an annotation's box; how much of it is left."""
        place = shapes.box_of(item)
        names, own = shapes.corners_of(place) if isinstance(place, Mapping) else ((), form)
        moved, left = self._box(row, form, share)
        if isinstance(place, list):
            place[:4] = moved
        else:
            for name, n in zip(names, _in_form(shapes.xywh(moved, form, 1, 1), own), strict=True):
                place[name] = str(_neat(n, share)) if isinstance(place[name], str) else _neat(n, share)
        return left

    def _outlines(self, item: dict[str, Any]) -> tuple[float, float]:
        """Rewrite an annotation's outlines; their area in the frame, and what it were without one."""
        word = shapes.outline_word(item)
        value: Any = item.get(word)
        if isinstance(value, Mapping) and "counts" in value:
            item[word], left, whole = self._runs(value, word)
            return left, whole
        flats = list(shapes.outlines(value))
        if not flats or (word == "points" and shapes.rectangle(item) is not None):
            return 0.0, 0.0
        made = [self._outline(flat) for flat in flats]
        first = next(filter(None, value), None)  # an outline may be empty
        single = isinstance(first, int | float) or (isinstance(first, list) and len(first) == 2)
        pairs = isinstance(first, list) and (single or isinstance(first[0], list))
        kept = [_pairs(flat) if pairs else flat for flat, _, _ in made if len(flat) >= 6]
        item[word] = (kept[0] if kept else []) if single else kept
        return sum(left for _, left, _ in made), sum(whole for *_, whole in made)

    def _runs(self, value: Mapping[str, Any], word: str) -> tuple[dict[str, Any], float, float]:
        """A run-length mask after the move, how many pixels it has, and how many it had if none of them were cut off."""
        if not runs.is_runs(value) or self._mask is None:
            raise DataError(f"{word!r} is a mask of run lengths that cannot be read.", hint="Its form is size: [height, width], counts: …")
        if tuple(value["size"]) != self._move.before:
            sizes = " and ".join(f"{h} x {w}" for h, w in (self._move.before, value["size"]))
            raise DataError(
                f"the run-length mask {word!r} is not as large as the picture: {sizes}.",
                hint="Where the picture was resized before, that op has to carry it, too.",
            )
        mask = runs.decode(value)
        moved = self._mask(mask)
        return runs.encode(moved, value), float(np.count_nonzero(moved)), float(np.count_nonzero(mask)) * self._growth()

    def _key_points(self, item: dict[str, Any]) -> float:
        """Rewrite an annotation's key points; 1 where one of them is left, else 0."""
        made = self._marks(item["keypoints"])
        item["keypoints"] = made
        count = sum(1 for seen in made[2::3] if seen)
        if "num_keypoints" in item:
            item["num_keypoints"] = count
        return float(count > 0)

    def _marks(self, flat: Sequence[float], share: bool = False) -> list[float]:
        """x, y, seen, x, y, seen, … after the move; 0, 0, 0 for those that are not seen or lie outside."""
        made: list[float] = []
        for x, y, seen in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
            place, inside = self._point((x, y), share) if seen else ([0.0, 0.0], 0.0)
            made += [*place, seen] if inside else [0.0, 0.0, 0]
        return made

    def _size(self, part: Any) -> None:
        """The picture's size, where a JSON says it."""
        for wide, high in _SIZES if isinstance(part, dict) and "x" not in part and "left" not in part else ():
            if part.get(wide) == self._frame.width and part.get(high) == self._frame.height:
                part[wide], part[high] = self._width, self._height

    # ---- texts

    def _yolo(self, text: str, ext: str) -> str:
        lines = yolo.lines(text)
        if not lines:
            raise DataError(f"{ext} holds no lines of YOLO: class x y width height, in shares of the picture.", details={"field": ext})
        made = []
        for line in lines:
            if not line.kind:
                raise DataError(
                    f"a line of {ext} with {len(line.numbers)} numbers is neither a box nor an outline nor a pose.", details={"field": ext}
                )
            if line.kind == "outline":
                new, inside, whole = self._outline(line.numbers)
                left = inside / whole if whole else 0.0
            else:
                new, left = self._box(line.numbers, "cxcywh", True)
                new += self._marks(line.numbers[4:], share=True) if line.kind == "pose" else line.numbers[4:]
            if new and self._stays(left):
                made.append(
                    " ".join([line.name, *(_yolo_number(n, line.kind == "pose" and at > 3 and at % 3 == 0) for at, n in enumerate(new))])
                )
        return "\n".join(made) + "\n" if made else ""

    def _voc(self, text: str) -> str:
        scale_x, scale_y = voc.scale(text, self._frame.width, self._frame.height)

        def piece(text: str) -> tuple[str, bool]:
            """An object or a part of one after the move, and whether it stays."""
            corners = voc.corners(text)
            if corners is None:
                return text, True
            a, b, c, d = corners
            new, left = self._box((a * scale_x, b * scale_y, c * scale_x, d * scale_y), "xyxy", False)
            for name, number in zip(voc.CORNERS, new, strict=True):
                text = _put_tag(text, name, number)
            return text, self._stays(left)

        def one(found: re.Match[str]) -> str:
            parts = voc.PART.findall(found[0])
            made, stays = piece(voc.PART.sub("\0", found[0]))
            kept = iter([text if stays else "" for text, stays in map(piece, parts)])
            return re.sub("\0", lambda _: next(kept, ""), made) if stays else ""

        made = _OBJECT.sub(one, text)
        before, size, after = made.partition("</size>")
        if not size:
            return made
        return _put_tag(_put_tag(before, "width", self._width), "height", self._height) + size + after


def _in_form(box: tuple[float, ...], form: str) -> tuple[float, ...]:
    x, y, w, h = box
    return (x, y, x + w, y + h) if form == "xyxy" else (x + w / 2, y + h / 2, w, h) if form == "cxcywh" else box


def _yolo_number(number: float, is_seen: bool) -> str:
    return f"{number:g}" if is_seen else repr(float(number))


def _neat(number: float, share: bool) -> float:
    return round(float(number), 9 if share else 5)


def _pairs(flat: Sequence[float]) -> list[list[float]]:
    return [list(pair) for pair in zip(flat[::2], flat[1::2], strict=True)]


def _put_tag(text: str, name: str, number: float) -> str:
    put: Callable[[re.Match[str]], str] = lambda found: f"{found[1]}{number:g}{found[2]}"  # noqa: E731
    return re.sub(rf"(<{name}>\s*)[^<]*?(\s*</{name}>)", put, text, count=1)


def _suspect(value: Any, depth: int) -> str:
    """The name of something that holds numbers, and is called like boxes or the like; "" where there is none."""
    if depth > 4:
        return ""
    if isinstance(value, Mapping):
        if "counts" in value and "size" in value:
            return "counts"
        for name, inner in value.items():
            if _SUSPECT.search(str(name)) and isinstance(inner, list | Mapping) and _numbers(inner):
                return str(name)
        return next((found for inner in value.values() if (found := _suspect(inner, depth + 1))), "")
    if isinstance(value, list):
        return next((found for inner in value[:20] if (found := _suspect(inner, depth + 1))), "")
    return ""


def _numbers(value: Any, depth: int = 0) -> bool:
    inner = list(value.values()) if isinstance(value, Mapping) else value
    if not isinstance(inner, list) or depth > 4:
        return isinstance(value, int | float)
    return any(_numbers(one, depth + 1) for one in inner[:20])
