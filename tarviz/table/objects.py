"""The relation `objects`: one row for each annotation over a picture, whatever form it is written in; read as overlays read it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tarviz.looks import clipping, shapes, voc, written, yolo
from tarviz.looks.shapes import Shape
from tarviz.table.columns import NAMES, Part, kind, of_field, text_of
from tarviz.table.making.kept_columns import KeptColumns
from tarviz.table.packages import pa
from tarviz.table.sql import OBJECTS

DIGITS = 6  # decimals of a pixel
_MOST = 1_000_000  # of one record
_WIDEST = (1 << 31) - 1  # pixels, as the relation holds them
_TEXTS = ("xml", "txt", "csv", "hocr", "html", "alto", "label", "label_2")


def _sources(exts: Sequence[str]) -> list[str]:
    return [ext for ext in exts if kind(ext) == "json" or ext.rpartition(".")[2] in _TEXTS]


def parts(exts: Sequence[str]) -> set[Part]:
    """What has to be made before objects can be read: the sizes of pictures, and the fields that may hold annotations."""
    pictures = {of_field(ext)[f"{ext}.width"] for ext in exts if kind(ext) == "picture"}
    return {NAMES, *pictures, *(Part("value", ext) for ext in _sources(exts))}


def rows(shards: Sequence[KeptColumns], classes: Mapping[int, str] = {}) -> pa.Table:
    """The objects of shards, a row each. Pixels are those of the record's first picture; without one, of the size that the annotation
    names. `classes` are names of numbers."""
    simple = {"VARCHAR": pa.string(), "BIGINT": pa.int64(), "INTEGER": pa.int32(), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_()}
    simple |= {"DOUBLE[]": pa.list_(pa.float64()), "DOUBLE[][]": pa.list_(pa.list_(pa.float64())), "BIGINT[]": pa.list_(pa.int64())}
    schema = pa.schema([(name, simple[kind]) for name, kind in OBJECTS.items()])
    return pa.concat_tables([schema.empty_table(), *(pa.Table.from_pylist([*_of_shard(shard, classes)], schema) for shard in shards)])


def outside(shards: Sequence[KeptColumns]) -> dict[str, int]:
    """How many records of a field have YOLO's lines with numbers outside of the picture, which YOLO's own tools leave out.

    Where no record of the field has YOLO's shares, its numbers are something else.
    """
    found: dict[str, int] = {}
    for ext in {ext for shard in shards for ext in _sources(shard.exts) if kind(ext) == "text"}:
        texts = [text for shard in shards if ext in shard.exts for text in shard.table().column(ext).to_pylist() if text]
        formed = {text: lines for text in set(texts) if (lines := yolo.lines(text, mostly=0))}
        beyond = {text for text, lines in formed.items() if any(line.outside for line in lines)}
        if beyond and any(map(yolo.lines, formed)) and (count := sum(text in beyond for text in texts)):
            found[f"{ext} with numbers outside of the picture"] = count
    return found


def _of_shard(shard: KeptColumns, classes: Mapping[int, str]) -> Iterator[dict[str, Any]]:
    table = shard.table()
    there = set(table.column_names)
    if "key" not in there:
        return  # a shard without a record has no columns
    sources = [(ext, text_of(ext) if kind(ext) == "json" else ext) for ext in _sources(shard.exts)]
    texts = {ext: table.column(name).to_pylist() for ext, name in sources if name in there}
    sizes = _sizes(table, shard.exts)
    names = zip(*(table.column(name).to_pylist() for name in ("shard", "key", "n")), strict=True)
    for at, (place, key, n) in enumerate(names):
        size = next((each[at] for each in sizes if all(each[at])), None)
        for ext, column in texts.items():
            for row in _of_text(column[at], ext, size, classes):
                yield {"shard": place, "key": key, "n": n, "field": ext} | row


def _sizes(table: pa.Table, exts: Sequence[str]) -> list[list[tuple[int | None, int | None]]]:
    """Width and height of the pictures of each field."""
    sides = [(f"{ext}.width", f"{ext}.height") for ext in exts]
    there = [names for names in sides if names[0] in table.column_names and names[1] in table.column_names]
    return [list(zip(*(table.column(name).to_pylist() for name in names), strict=True)) for names in there]


def _of_text(text: str | None, ext: str, size: Any, classes: Mapping[int, str]) -> Iterator[dict[str, Any]]:
    over = (size or _size_in(text)) if text else None
    if not text or not over or not all(1 <= side <= _WIDEST for side in over):
        return
    frame = shapes.Frame(int(over[0]), int(over[1]), most=_MOST, digits=DIGITS)
    found = shapes.read_over(text.encode(), "json" if kind(ext) == "json" else ext, frame)
    for _, group in itertools.groupby(found, key=lambda shape: shape.item):
        yield _row(list(group), frame, classes)


def _size_in(text: str) -> tuple[float, float] | None:
    """Width and height that an annotation names."""
    if text.lstrip()[:1] == "{":
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):  # a caption may begin with a brace
            return None
        inner = value.get("image") if isinstance(value.get("image"), dict) else value
        size = inner.get("width") or value.get("imageWidth"), inner.get("height") or value.get("imageHeight")
        return size if all(isinstance(side, int | float) for side in size) else None
    return (voc.size(text) or written.page(text)) if text.lstrip()[:1] == "<" else None


def _row(group: list[Shape], frame: shapes.Frame, classes: Mapping[int, str]) -> dict[str, Any]:
    """One object, of the shapes it is written in; `runs` are a mask's own height and width, and its runs of 0 and 1 down its columns."""
    first = {shape.kind: shape for shape in reversed(group)}
    outlines = [list(shape.numbers) for shape in group if shape.kind == "polygon"]
    points = list(first["points"].numbers) if "points" in first else None
    *box, area = _extent(first, outlines, frame)
    name, number = group[0].name, group[0].number
    if number is not None and name == str(number):
        name = classes.get(number, name)
    elif name in classes.values():
        number = next(at for at, named in classes.items() if named == name)
    elif name.isdecimal() and number is None:
        number = int(name)
        name = classes.get(number, name)
    if number is not None and not 0 <= number < 1 << 31:
        number = None
    what = next(each for each in ("mask", "polygon", "points", "box") if each in first)
    found = {"kind": what, "label": name or None, "label_id": number, "score": group[0].score, "area": area}
    found |= dict(zip(("x0", "y0", "x1", "y1"), box, strict=True)) | {"width": frame.width, "height": frame.height}
    return (
        found
        | {"outlines": outlines or None, "keypoints": points, "runs": list(first["mask"].numbers) if "mask" in first else None}
        | {"crowd": group[0].crowd}
    )


def _extent(first: Mapping[Any, Shape], outlines: list[list[float]], frame: shapes.Frame) -> tuple[float, ...]:
    """Left, top, right, bottom and area: the box where one is written, the area of the mask, else of the outlines, else of the box."""
    mask = _mask(first["mask"].numbers, frame) if "mask" in first else None
    if "box" in first:
        x, y, width, height = first["box"].numbers
        box: tuple[float, ...] = (x, y, round(x + width, DIGITS), round(y + height, DIGITS))
    elif mask is not None:
        box = mask[:4]
    else:
        flat = [n for each in outlines for n in each]
        if not flat and "points" in first:
            marks = list(zip(*[iter(first["points"].numbers)] * 3, strict=True))
            labelled = [mark for mark in marks if mark[2] > 0] or marks
            flat = [n for mark in labelled for n in mark[:2]]
        box = (min(flat[::2]), min(flat[1::2]), max(flat[::2]), max(flat[1::2])) if flat else (0.0, 0.0, 0.0, 0.0)
    if mask is not None:
        return *box, mask[4]
    if outlines:
        return *box, sum(abs(clipping.area(list(zip(each[::2], each[1::2], strict=True)))) for each in outlines)
    return *box, (box[2] - box[0]) * (box[3] - box[1])


def _mask(numbers: Sequence[float], frame: shapes.Frame) -> tuple[float, float, float, float, float] | None:
    """The box around a mask and its area, in pixels of the picture."""
    height, width, *lengths = map(int, numbers)
    flat = np.repeat(np.arange(len(lengths)) % 2, lengths)
    mask = flat.reshape(width, height).T if len(flat) == width * height else np.zeros((1, 1), int)
    if not mask.any():
        return None
    across, down = frame.width / width, frame.height / height
    x, y = np.flatnonzero(mask.any(0)), np.flatnonzero(mask.any(1))
    return x[0] * across, y[0] * down, (x[-1] + 1) * across, (y[-1] + 1) * down, float(mask.sum()) * across * down
