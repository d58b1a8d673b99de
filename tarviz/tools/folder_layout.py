"""Folders of files as records: what is split, label and key in a path."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tarviz.formats.records import split_name
from tarviz.model.class_names import class_names, from_zero
from tarviz.model.errors import Fault, NotFoundError, UsageError, require
from tarviz.ops.values.payloads import PICTURES
from tarviz.read.stream import ReadReport
from tarviz.tools.field_names import Named, name_fields

Layout: TypeAlias = Literal["auto", "split/label", "label", "flat", "yolo", "voc"]
_DEPTH: dict[Layout, int] = {"split/label": 3, "label": 2, "flat": 1}
_BESIDE = {"yolo": ("images", "labels"), "voc": ("JPEGImages", "Annotations")}  # folders of pictures and of what is said of them
_DOWNLOADED = re.compile(r"(\d{5,})/\1\d{4,}")  # as img2dataset writes: the folders are shards, no classes
_CLUTTER = frozenset((".DS_Store", "Thumbs.db", "desktop.ini"))


@dataclass(slots=True)
class FileGroup:
    """The files of one record: (extension, path below the folder) of each, in order."""

    key: str
    split: str = ""
    label: str = ""
    files: list[tuple[str, str]] = field(default_factory=list)


def files_of(root: str, layout: Layout, report: ReadReport) -> tuple[list[FileGroup], list[str], Named]:
    """The records of a folder, sorted by path, its labels, sorted, and how fields were named (`field_names.name_fields`).

    A link to a file counts as that file, a link to a folder is passed over. Files without key or extension are warned of. The labels of
    YOLO's layout are its names of classes.
    """
    paths = sorted(_walk(root, report), key=os.fsencode)
    labels, said = _class_names(root, paths) if layout == "yolo" else ([], "")
    places, others = _name_records([path for path in paths if path != said], _BESIDE.get(layout, ()))
    cut: list[tuple[str, str, str]] = []
    for path, place in places.items():
        found = split_name(os.fsencode(place))
        if found is None:
            report.add(Fault("W_NO_KEY", "the name has no key or no extension; the file belongs to no record.", root, None, path))
            continue
        key = os.fsdecode(found[0])
        cut.append((key, place[len(key) + 1 :], path))
    made = name_fields(cut, {""} if layout in _BESIDE else None)
    groups = {key: FileGroup(key, files=fields) for key, fields in made.records.items()}
    if layout in _BESIDE:
        for key in [key for key, each in groups.items() if not any(ext.lower() in PICTURES for ext, _ in each.files)]:
            path = groups.pop(key).files[0][1]
            report.add(Fault("W_NO_KEY", "no picture has this name; the file belongs to no record.", root, None, path))
        made.notes += [f"{len(others)} files elsewhere are of no record: {others[0]}"] if others else []
    if not groups:
        raise NotFoundError("the folder holds no file that could be a field.", shard=root)
    if layout not in ("flat", *_BESIDE):
        _without_top(groups, root, report)
    layout = _layout(layout, groups, root)
    for group in groups.values():
        _assign(group, layout)
    return list(groups.values()), labels or sorted({group.label for group in groups.values() if group.label}, key=os.fsencode), made


def _without_top(groups: dict[str, FileGroup], root: str, report: ReadReport) -> None:
    """Take out files at the top that lack what most others have, a README or `00000_stats.json`, and warn of them."""
    top, below = ([group for key, group in groups.items() if ("/" in key) is deep] for deep in (False, True))
    counts = Counter(ext for group in below for ext, _ in group.files)
    shared = {ext for ext, count in counts.items() if 2 * count > len(below)}
    for group in top:
        if shared - {ext for ext, _ in group.files}:
            path = groups.pop(group.key).files[0][1]
            report.add(Fault("W_NO_KEY", "it lies above the folders of the records; the file belongs to no record.", root, None, path))


def _layout(layout: Layout, groups: Iterable[str], root: str) -> Layout:
    """The layout that keys of such depths have, or that was asked for if it can be."""
    if layout == "auto":
        if all(map(_DOWNLOADED.fullmatch, groups)):
            return "flat"
        depths = {key.count("/") + 1 for key in groups}
        if not (named := [name for name, depth in _DEPTH.items() if {depth} == depths]):
            deep = ", ".join(str(depth - 1) for depth in sorted(depths))
            raise UsageError(
                f"the folder's files lie {deep} folders deep.", shard=root, hint="Say what they are: --layout split/label, label or flat."
            )
        return named[0]
    short = next((key for key in groups if key.count("/") + 1 < _DEPTH.get(layout, 1)), None)
    if short is not None:
        raise UsageError(f"{short!r} is not nested deeply enough for the layout {layout}.", shard=root)
    return layout


def _assign(group: FileGroup, layout: Layout) -> None:
    """Split and label of a record, which its key tells."""
    parts = group.key.split("/")
    if layout == "split/label":
        group.split, group.label = parts[0], parts[1]
    elif layout == "label":
        group.label = parts[0]
    elif layout in _BESIDE and len(parts) > 1:
        group.split = parts[0]
    lower = [ext.lower() for ext, _ in group.files]
    if len(set(lower)) < len(lower):
        raise UsageError(f"two files of {group.key!r} have extensions that differ only in case.", shard=group.files[0][1])


def _name_records(paths: list[str], folders: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
    """Paths, and what names the record of each: without the folder of one of these names; and those that lie in none of them.

    Where no path lies in one, all stay as they are: pictures lie beside what is said of them.
    """
    places = {path: _without(path, folders) for path in paths}
    if not any(places.values()):
        return {path: path for path in paths}, []
    return {path: place for path, place in places.items() if place}, [path for path, place in places.items() if not place]


def _without(path: str, folders: tuple[str, ...]) -> str | None:
    """A path without the folder of one of these names; None where it lies in none of them."""
    parts = path.split("/")
    at = next((at for at, part in enumerate(parts[:-1]) if part in folders), None)
    return None if at is None else "/".join(parts[:at] + parts[at + 1 :])


def _class_names(root: str, paths: list[str]) -> tuple[list[str], str]:
    """The names of YOLO's classes, and the path that says them: `names` in a YAML file at the top, else the lines of the topmost
    `classes.txt` or file `.names`; LabelImg puts one among the labels."""
    for path in paths:
        if "/" not in path and path.endswith((".yaml", ".yml")):
            yaml = require("yaml", f"{path}, which names the classes,", "media", package="pyyaml")
            try:
                with open(os.path.join(root, path), encoding="utf-8") as file:
                    found = yaml.safe_load(file)
            except (yaml.YAMLError, UnicodeDecodeError) as error:
                raise UsageError(f"{path} cannot be read as YAML: {error}.", shard=root) from error
            names = found.get("names") if isinstance(found, dict) else None
            if isinstance(names, list | dict):
                return from_zero(class_names(names)), path
    lists = [path for path in paths if path.rpartition("/")[2] == "classes.txt" or path.endswith(".names")]
    top = min(lists, key=lambda path: path.count("/"), default="")
    return (from_zero(class_names(os.path.join(root, top))), top) if top else ([], "")


def _walk(root: str, report: ReadReport) -> list[str]:
    found = []
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in folders[:]:
            if name.startswith(".") or os.path.islink(os.path.join(folder, name)):
                what = "a hidden folder" if name.startswith(".") else "a link to a folder"
                report.add(Fault("W_SKIPPED_TYPE", f"{what} is skipped.", root, None, os.path.join(folder, name)))
                folders.remove(name)
        for name in names:
            path = os.path.join(folder, name)
            if name in _CLUTTER or name.startswith("._"):
                continue
            if os.path.isfile(path):
                found.append(os.path.relpath(path, root))
            else:
                report.add(Fault("W_SKIPPED_TYPE", "it is not a regular file.", root, None, path))
    return found
