"""The objects in shards (boxes, polygons, masks, key points), counted, or written as COCO, YOLO, VOC, Parquet or CSV."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from xml.sax.saxutils import escape

import click

from tarviz import stores
from tarviz.cli import verb_base
from tarviz.commands.sql import Answer, format_of, pieces
from tarviz.formats.tar_header import tar_member
from tarviz.looks import voc
from tarviz.model.class_names import ClassNames, from_zero
from tarviz.model.errors import UsageError, redact, safe
from tarviz.model.redaction import redacted_repr
from tarviz.outputs.inputs import Inputs
from tarviz.outputs.tar_output import TarOutput
from tarviz.stores import URLs
from tarviz.table.columns import kind
from tarviz.table.facets import literal
from tarviz.table.objects import DIGITS
from tarviz.table.sql import quoted_name

if TYPE_CHECKING:
    from tarviz.table.table import Table

Form: TypeAlias = Literal["coco", "yolo", "voc", "parquet", "csv"]
_ENDS: dict[str, Form] = {"json": "coco", "parquet": "parquet", "csv": "csv"}
_HINT = "Name it .json (COCO), .csv or .parquet, or say --yolo or --voc."
_UNLABELLED = "unlabelled"  # the class of objects without a label, in forms where each has one
_PLAIN = "shard, key, n, field, kind, label, label_id, score, x0, y0, x1, y1, area, width, height, crowd"
_HOLDS = {"yolo": {"outlines"}, "voc": set[str](), "csv": {"score", "crowd"}}  # beside label and box; the other forms hold all


@dataclass
class Objects(Answer):
    """The objects as an answer of SQL's; how many there are of each label, and how many have what the form written cannot hold."""

    counts: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)

    __repr__ = redacted_repr
    _repr_mimebundle_ = verb_base.Result._repr_mimebundle_

    def __str__(self) -> str:
        if self.output is not None:
            lost = f"; left out: {', '.join(f'{name} of {count:,}' for name, count in self.left_out.items())}" if self.left_out else ""
            shown = f"{redact(safe(self.output))}: {len(self):,} objects, {len(self.counts):,} labels{lost}"
        else:
            rows = [(safe(label), f"{count:,}") for label, count in self.counts.items()]
            shown = verb_base.table([*rows, ("in all", f"{len(self):,}")], header=("label", "objects"), right=[1])
        return "\n".join([shown, *self._notes_of_findings()])

    def to_dict(self) -> dict[str, Any]:
        return {"objects": len(self), "counts": self.counts, "left_out": self.left_out, "findings": self.findings}


def objects(
    urls: URLs,
    output: str | PathLike[str] | None = None,
    *,
    form: Form | None = None,
    where: str = "",
    classes: ClassNames = (),
    **reading: Any,
) -> Objects:
    """The objects of the records that fit `where`, whatever form they are written in; see the relation `objects` of a table.

    With `output` they are written: `.json` is COCO, `.parquet` and `.csv` a row each; `form` "yolo" or "voc" writes a tar of
    `KEY.txt` or `KEY.xml`, which joins the pictures by its keys. Classes are numbered by `classes` (a list, a mapping, or a file of their
    names). Without it COCO keeps the numbers that classes came with, where each has one of its own, and YOLO those of labels that are
    nothing but numbers; else they are counted in the order of their names. YOLO says the names in a file beside (`.names`). For COCO and
    YOLO objects without a label are `unlabelled`. YOLO has boxes and outlines, VOC boxes: what else there is becomes its box, and
    `left_out` counts it.
    """
    from tarviz.table.table import Table

    table = Table(urls, classes=classes, **reading)
    if output is not None:
        Inputs(table.sources).refuse(fspath(output))
    form = form or (None if output is None else format_of(fspath(output), _ENDS, _HINT))
    found = table.arrow("SELECT * FROM objects ORDER BY shard, n")
    pictures = _pictures(table) if form in ("coco", "voc") and output is not None else []
    if where.strip():
        rows = table.rows(where)
        fit = {(redact(table.urls[shard]), n) for shard, n in zip(rows.shard.tolist(), rows.n.tolist(), strict=True)}
        places = zip(found.column("shard").to_pylist(), found.column("n").to_pylist(), strict=True)
        found = found.filter([place in fit for place in places])
        pictures = [each for each in pictures if (each["shard"], each["n"]) in fit]
    counts = dict(Counter(label or "" for label in found.column("label").to_pylist()).most_common())
    findings = {name: count for name, count in table.findings.items() if name not in table.notes}  # types are nothing to objects
    made = Objects(found, findings, None if output is None else fspath(output), counts=counts)
    if output is not None and form is not None:
        _write(made, fspath(output), form, from_zero(table.classes), pictures)
    return made


def _pictures(table: Table) -> list[dict[str, Any]]:
    """The records with a picture whose size is known, those without an object among them; `name` is its file's."""
    exts = [ext for ext in table.fields if kind(ext) == "picture"]
    if not exts:
        return []
    sides = [f"coalesce({', '.join(quoted_name(f'{ext}.{side}') for ext in exts)}, NULL) AS {side}" for side in ("width", "height")]
    name = " ".join(f"WHEN {quoted_name(f'{ext}.width')} > 0 THEN key || {literal(f'.{ext}')}" for ext in exts)
    found = table.arrow(f"SELECT shard, key, n, {', '.join(sides)}, CASE {name} END AS name FROM records ORDER BY shard, n").to_pylist()
    return [each for each in found if each["width"] and each["height"]]


def _write(made: Objects, output: str, form: Form, classes: Sequence[str], pictures: Sequence[dict[str, Any]]) -> None:
    rows = made.table.to_pylist()
    lost = {"score", "outlines", "runs", "keypoints", "crowd"} - _HOLDS[form] if form in _HOLDS else ()
    there = {name: sum(row[name] not in (None, False) for row in rows) for name in sorted(lost)}
    made.left_out = {name: count for name, count in there.items() if count}
    names = list(classes) or _class_names(made.counts, form)
    files = {(each["shard"], each["n"]): each["name"] for each in pictures}
    if form == "coco":
        stores.write(output, json.dumps(coco(rows, names, pictures, {} if classes else _own_numbers(rows))).encode())
    elif form not in ("yolo", "voc"):
        plain = made.table.select(_PLAIN.split(", ")) if form == "csv" else made.table
        stores.write(output, b"".join(pieces(plain, "csv" if form == "csv" else "parquet")))
    else:
        written: set[str] = set()
        with TarOutput(output, inputs=Inputs(())) as outlet:
            for (key, *place), group in itertools.groupby(rows, key=lambda row: (row["key"], row["shard"], row["n"])):
                ours = list(group)
                if key in written:
                    raise UsageError(f"two records have the key {key!r}, and a file is named by it.", hint="Write one shard at a time.")
                written.add(key)
                text = _yolo(ours, names) if form == "yolo" else _voc(files.get((*place,), key), ours)
                outlet.write(tar_member(f"{key}.{'txt' if form == 'yolo' else 'xml'}", text.encode()))
    if form == "yolo":
        names_file = re.sub(r"\.tar(\.\w+)?$", "", output) + ".names"
        stores.write(names_file, "".join(f"{name}\n" for name in names).encode())


def _class_names(counts: Mapping[str, int], form: Form) -> list[str]:
    """The names of classes by number, where nobody gives them; for YOLO labels that are numbers have their own."""
    names = sorted(filter(None, counts))
    if form == "yolo" and names and all(re.fullmatch("0|[1-9][0-9]{0,4}", name) for name in names):
        names = [str(number) for number in range(max(map(int, names)) + 1)]
    return names + [_UNLABELLED] * ("" in counts and _UNLABELLED not in counts)


def _own_numbers(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    """The numbers that classes have where they come from; {} where one has none, or shares it."""
    told = {(row["label"], row["label_id"]) for row in rows}
    numbers = dict(told)
    apart = len(told) == len(numbers) == len(set(numbers.values()))
    return numbers if apart and None not in numbers and None not in numbers.values() else {}


def _number(row: dict[str, Any], names: Sequence[str]) -> int:
    """The number of an object's class."""
    label = row["label"] or _UNLABELLED
    if label in names:
        return names.index(label)
    hint = f"Name all of them: --classes FILE. Objects without a label are of the class {_UNLABELLED!r}."
    raise UsageError(f"{label!r}, of {row['key']!r}, is none of the classes.", hint=hint)


def _yolo(rows: list[dict[str, Any]], names: Sequence[str]) -> str:
    """A line an object: class, middle and size as shares of the picture; an outline as points."""
    lines = []
    for row in rows:
        across, down = row["width"], row["height"]
        if row["kind"] == "polygon" and row["outlines"]:
            numbers = [n / (across, down)[at % 2] for at, n in enumerate(_one_outline(row["outlines"]))]
        else:
            x0, y0, x1, y1 = (row[name] for name in ("x0", "y0", "x1", "y1"))
            numbers = [(x0 + x1) / 2 / across, (y0 + y1) / 2 / down, (x1 - x0) / across, (y1 - y0) / down]
        lines.append(" ".join([str(_number(row, names)), *(f"{number:.8f}" for number in numbers)]))
    return "".join(f"{line}\n" for line in lines)


def _one_outline(outlines: list[list[float]]) -> list[float]:
    """Several outlines as one, joined by lines there and back, all turning the same way."""
    rings = [list(zip(each[::2], each[1::2], strict=True)) for each in outlines]
    if len(rings) > 1:
        rings = [ring if sum(a * d - b * c for (a, b), (c, d) in pairwise([*ring, ring[0]])) > 0 else ring[::-1] for ring in rings]
        rings = [[*ring, ring[0]] for ring in rings] + [[ring[0]] for ring in rings[-2:0:-1]]
    return [n for ring in rings for point in ring for n in point]


def _as_xml(name: str) -> str:
    """A name as XML, with the white space at its ends kept."""
    plain = re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\U0010ffff]", "\ufffd", name)
    return re.sub(r"^\s+|\s+$", lambda found: "".join(f"&#{ord(each)};" for each in found[0]), escape(plain))


def _voc(name: str, rows: list[dict[str, Any]]) -> str:
    size = f"<size><width>{rows[0]['width']}</width><height>{rows[0]['height']}</height><depth>3</depth></size>"
    found = [f"<annotation><filename>{_as_xml(name)}</filename>{size}"]
    for row in rows:
        # A whole number has no point: many readers of VOC take nothing else.
        sides = zip(voc.CORNERS, (repr(row[side]).removesuffix(".0") for side in ("x0", "y0", "x1", "y1")), strict=True)
        box = "".join(f"<{tag}>{number}</{tag}>" for tag, number in sides)
        found.append(f"<object><name>{_as_xml(row['label'] or '')}</name><bndbox>{box}</bndbox></object>")
    return "\n".join([*found, "</annotation>\n"])


def coco(
    rows: Sequence[dict[str, Any]], names: Sequence[str], there: Sequence[dict[str, Any]] = (), numbers: Mapping[str, int] = {}
) -> dict[str, Any]:
    """The objects as COCO's detection format: pictures in the order of their records, those that are `there` without an object among
    them; classes by `numbers`, else counted from 1."""
    numbers = numbers or {name: at for at, name in enumerate(names, 1)}
    places = {(row["shard"], row["n"]): row for row in (*rows, *there)}
    pictures = {
        place: {"id": at, "file_name": row.get("name") or row["key"], "width": row["width"], "height": row["height"]}
        for at, (place, row) in enumerate(sorted(places.items()), 1)
    }
    found: list[dict[str, Any]] = []
    for row in rows:
        picture = pictures[row["shard"], row["n"]]
        box = [row["x0"], row["y0"], round(row["x1"] - row["x0"], DIGITS), round(row["y1"] - row["y0"], DIGITS)]
        made = {"id": len(found) + 1, "image_id": picture["id"], "category_id": numbers[names[_number(row, names)]]}
        made |= {"bbox": box, "area": row["area"], "iscrowd": int(row["crowd"]), "segmentation": row["outlines"] or _runs(row)}
        if row["score"] is not None:
            made["score"] = row["score"]
        if row["keypoints"]:
            made |= {"keypoints": row["keypoints"], "num_keypoints": sum(seen > 0 for seen in row["keypoints"][2::3])}
        found.append(made)
    categories = [{"id": number, "name": name} for name, number in sorted(numbers.items(), key=itemgetter(1))]
    return {"images": list(pictures.values()), "annotations": found, "categories": categories}


def _runs(row: dict[str, Any]) -> dict[str, Any] | list[Any]:
    """The mask of an object as run lengths, as large as its picture; [] where it has none."""
    if not row["runs"]:
        return []
    import numpy as np

    from tarviz.looks import runs

    down, across, *counts = row["runs"]
    mask = {"size": [down, across], "counts": counts}
    sides = (row["height"], down), (row["width"], across)
    if any(new != old for new, old in sides):
        mask = runs.encode(runs.decode(mask)[np.ix_(*(np.arange(new) * old // new for new, old in sides))], mask)
    return mask


@verb_base.verb(
    "objects",
    example=["tarviz objects data/", "tarviz objects data/ -o coco.json", "tarviz objects data/ --yolo -o labels.tar"],
)
@verb_base.urls_argument
@verb_base.output_option
@click.option("--coco", "form", flag_value="coco", help="One JSON file as COCO has it.")
@click.option("--yolo", "form", flag_value="yolo", help="A tar of KEY.txt, and the names of classes beside it.")
@click.option("--voc", "form", flag_value="voc", help="A tar of KEY.xml.")
@click.option("--classes", metavar="FILE", default="", help="Names of classes, one a line, in the order of their numbers.")
@click.option("--where", metavar="CONDITION", default="", help="Of the records that fit: any_object(label = 'star' and score > 0.5)")
@verb_base.result_options
def command(urls: Sequence[str], output: str | None, form: Form | None, classes: str, where: str, as_json: bool) -> Any:
    """Count boxes, polygons, masks and key points, or write them.

    They are read as overlays are, from COCO, Hugging Face, VOC, YOLO, LabelMe, run lengths and detectors' forms, beside their pictures.
    The output's name says the form: .json is COCO, .csv and .parquet have a row each. In SQL they are the relation objects.
    """
    if form is not None and output in (None, "-"):
        raise UsageError(f"--{form} needs a file.", hint=f"Name it: -o {'coco.json' if form == 'coco' else 'labels.tar'}.")
    found = objects(list(urls), None if output in (None, "-") else output, form=form, where=where, classes=classes or ())
    return verb_base.emit(found, as_json)
