"""Folders of files as records: what is split, label and key in a path."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tarviz.formats.records import split_name
from tarviz.model.errors import Fault, NotFoundError, UsageError
from tarviz.read.stream import ReadReport
from tarviz.tools.field_names import Named, named

Layout: TypeAlias = Literal["auto", "split/label", "label", "flat"]
_DEPTH = {"split/label": 3, "label": 2, "flat": 1}
_CLUTTER = frozenset((".DS_Store", "Thumbs.db", "desktop.ini"))


@dataclass(slots=True)
class Group:
    """The files of one record: (extension, path below the folder) of each, in order."""

    key: str
    split: str = ""
    label: str = ""
    files: list[tuple[str, str]] = field(default_factory=list)


def files_of(root: str, layout: Layout, report: ReadReport) -> tuple[list[Group], list[str], Named]:
    """The records of a folder, sorted by path, its labels, sorted, and how fields were named (`field_names.named`).

    A link to a file counts as that file, a link to a folder is passed over. Files without key or extension are warned of.
    """
    paths = sorted(_walk(root, report), key=os.fsencode)
    cut: list[tuple[str, str, str]] = []
    for path in paths:
        found = split_name(os.fsencode(path))
        if found is None:
            report.add(Fault("W_NO_KEY", "the name has no key or no extension; the file belongs to no record.", root, None, path))
            continue
        key = os.fsdecode(found[0])
        cut.append((key, path[len(key) + 1 :], path))
    made = named(cut)
    groups = {key: Group(key, files=fields) for key, fields in made.records.items()}
    if not groups:
        raise NotFoundError("the folder holds no file that could be a field.", shard=root)
    depths = {key.count("/") + 1 for key in groups}
    if layout == "auto":
        if len(depths) > 1 or max(depths) > 3:
            deep = ", ".join(str(depth - 1) for depth in sorted(depths))
            raise UsageError(
                f"the folder's files lie {deep} folders deep.", shard=root, hint="Say what they are: --layout split/label, label or flat."
            )
        layout = {3: "split/label", 2: "label", 1: "flat"}[max(depths)]  # type: ignore[assignment]
    elif min(depths) < _DEPTH[layout]:
        short = next(key for key in groups if key.count("/") + 1 < _DEPTH[layout])
        raise UsageError(f"{short!r} is not nested deeply enough for the layout {layout}.", shard=root)
    for group in groups.values():
        parts = group.key.split("/")
        if layout == "split/label":
            group.split, group.label = parts[0], parts[1]
        elif layout == "label":
            group.label = parts[0]
        lower = [ext.lower() for ext, _ in group.files]
        if len(set(lower)) < len(lower):
            raise UsageError(f"two files of {group.key!r} have extensions that differ only in case.", shard=root)
    return list(groups.values()), sorted({group.label for group in groups.values() if group.label}, key=os.fsencode), made


def _walk(root: str, report: ReadReport) -> list[str]:
    found = []
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in folders:
            if os.path.islink(os.path.join(folder, name)):
                report.add(Fault("W_SKIPPED_TYPE", "a link to a folder is skipped.", root, None, os.path.join(folder, name)))
        for name in names:
            path = os.path.join(folder, name)
            if name in _CLUTTER or name.startswith("._"):
                continue
            if os.path.isfile(path):
                found.append(os.path.relpath(path, root))
            else:
                report.add(Fault("W_SKIPPED_TYPE", "it is not a regular file.", root, None, path))
    return found
