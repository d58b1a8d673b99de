"""COCO's annotation file as a plan of records: each picture with what is said of it, as overlays and the relation `objects` read it."""

from __future__ import annotations

import glob
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tarviz.formats.records import split_name
from tarviz.model.errors import UsageError, safe
from tarviz.model.types import URL
from tarviz.tools.create_plan import Planned
from tarviz.tools.field_names import Named, name_fields
from tarviz.tools.whole_file import contents

_LARGEST = 16 << 30  # bytes
_SHOWN = 120  # characters of an entry
_NEEDS: dict[str, tuple[str, ...]] = {"images": ("id", "file_name"), "annotations": (), "categories": ("id",)}


def read_plan(url: str, root: str, *, check: bool) -> tuple[list[Planned], Named]:
    """A record for each picture that the file lists, below `root` or a folder in it, and how fields were named.

    Its `json` is the picture's entry, with its `annotations` and the `categories` these are of. With `check` every picture must be there.
    """
    from tarviz.outputs.encoded import check_key  # loads what makes pictures

    try:
        found = json.loads(contents(url, "the annotation file", _LARGEST))
    except ValueError as error:
        raise UsageError(f"this is no JSON: {error}.", shard=url) from error
    if not isinstance(found, dict) or not isinstance(found.get("images"), list) or not isinstance(found.get("annotations"), list):
        raise UsageError("COCO's file holds images and annotations; this one does not.", shard=url)
    for name, needs in _NEEDS.items():
        _check(found.get(name) or [], name, needs, url)
    pictures = _pictures(found["images"], url)
    cut = [(name, split_name(os.fsencode(name))) for name in pictures]
    if lacking := [name for name, parts in cut if parts is None]:
        raise UsageError(f"the picture {safe(lacking[0])!r} has no ending.", shard=url)
    made = name_fields(((os.fsdecode(parts[0]), parts[1], name) for name, parts in cut if parts is not None), {""})
    folder = _folder(root, list(pictures), url)
    said, of_none = _by_picture(found)
    records = []
    for key, files in made.records.items():
        if len(files) > 1:
            raise UsageError(f"{safe(files[0][1])!r} and {safe(files[1][1])!r} would be one record, {safe(key)!r}.", shard=url)
        check_key(key)
        ((ext, name),) = files
        path = os.path.join(folder, name)
        if check and not os.path.isfile(path):
            raise UsageError(f"there is no file {safe(path)!r}.", shard=url, hint="Name the folder of the pictures; --on-error skip.")
        entry = pictures[name] | said.pop(pictures[name]["id"], {"annotations": [], "categories": []})
        payload = json.dumps(entry, ensure_ascii=False).encode()
        records.append(Planned(os.fsencode(key), [(os.fsencode(ext), URL(path)), (b"json", payload)], name))
    made.notes += _strays(found, of_none + sum(len(each["annotations"]) for each in said.values()))
    if others := sum(os.path.isfile(os.path.join(folder, name)) for name in set(os.listdir(folder)) - pictures.keys()):
        made.notes.append(f"{others:,} files beside the pictures are not in the list")
    return records, made


def _check(listed: Any, name: str, needs: tuple[str, ...], url: str) -> None:
    """`UsageError` for an entry of a list that is no object, or lacks what COCO's own tools need of it."""
    for at, each in enumerate(listed):
        good = isinstance(each, dict) and all(isinstance(each.get(need), int | str) for need in needs)
        if not good or any(isinstance(each.get(name), list | dict) for name in ("image_id", "category_id")):
            what = " with ".join(["an object", *needs[:1]]) + "".join(f" and {need}" for need in needs[1:])
            raise UsageError(f"{name}[{at}] is not {what}: {safe(json.dumps(each))[:_SHOWN]}", shard=url)


def _pictures(listed: list[dict[str, Any]], url: str) -> dict[str, dict[str, Any]]:
    """The entries of pictures by their names; one that is there twice is one."""
    pictures: dict[str, dict[str, Any]] = {}
    names: dict[Any, str] = {}
    for each in listed:
        name = str(each["file_name"])
        if pictures.setdefault(name, each)["id"] != each["id"]:
            raise UsageError(f"the picture {safe(name)!r} has two ids, {pictures[name]['id']!r} and {each['id']!r}.", shard=url)
        if names.setdefault(each["id"], name) != name:
            raise UsageError(f"two pictures have the id {each['id']!r}: {safe(names[each['id']])!r} and {safe(name)!r}.", shard=url)
    return pictures


def _strays(found: dict[str, Any], of_none: int) -> Iterator[str]:
    """How many annotations name no category, or no picture (`of_none`), that is there."""
    categories = {each["id"] for each in found.get("categories") or ()}
    if unnamed := sum("category_id" in each and each["category_id"] not in categories for each in found["annotations"] if categories):
        yield f"{unnamed:,} annotations are of no category in the list"
    if of_none:
        yield f"{of_none:,} annotations are of no picture in the list"


def _by_picture(found: dict[str, Any]) -> tuple[dict[Any, dict[str, Any]], int]:
    """Annotations and their categories by the number of the picture; how many annotations name none."""
    categories = {each["id"]: each for each in found.get("categories") or ()}
    lists: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for each in found["annotations"]:
        lists[each.get("image_id")].append(each)
    of_none = len(lists.pop(None, ()))

    def of(some: list[dict[str, Any]]) -> list[Any]:
        numbers = {part.get("category_id") for each in some for part in (each, *(each.get("segments_info") or ()))}
        return [category for number, category in categories.items() if number in numbers]

    return {number: {"annotations": some, "categories": of(some)} for number, some in lists.items()}, of_none


def _folder(root: str, names: list[str], url: str) -> str:
    """The folder that holds the first of the pictures: `root`, or one in it or in one of these."""
    below = (place for depth in ("", "*/", "*/*/") for place in sorted(glob.glob(os.path.join(glob.escape(root), depth))))
    folder = next((place for place in below if any(os.path.isfile(os.path.join(place, name)) for name in names[:9])), None)
    if folder is None and names:
        raise UsageError(f"no picture such as {safe(names[0])!r} is there.", shard=root, hint="Name the folder of the pictures.")
    return folder or root
