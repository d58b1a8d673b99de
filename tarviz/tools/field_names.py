"""Field names for files of a folder: one for pictures of several endings, and none made of a dot that belongs to a file's stem."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from tarviz.ops.values.payloads import PICTURES

_JPEG = ("jpg", "jpeg", "jpe", "jfif")
_VERSION = re.compile(r"v?\d[\d_.-]*")
_MANY = 0.5  # of the records: what so many have is a field, whatever it is called


@dataclass(slots=True)
class Named:
    """Records by key, each with (extension, path) of its files; the (key, path) of files whose stem had dots; what was done, in words."""

    records: dict[str, list[tuple[str, str]]]
    renamed: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def name_fields(files: Iterable[tuple[str, str, str]], fields: Set[str] | None = None) -> Named:
    """The records of files given as (key, extension, path), cut at the first dot.

    `IMG_1.v2.jpg` is `IMG_1_v2.jpg` unless `v2` is a field's name: where half of the records have it, or where it stands beside a file
    without it and is no number; or where it is one of `fields`, if these are given ({""}: all dots but the last are a stem's). Endings
    of pictures become one, the most frequent, where no record has two of them; where some do (a photo and its mask), those of JPEG
    alone.

    >>> name_fields([("a", "jpg", "a.jpg"), ("b", "v2.JPEG", "b.v2.JPEG"), ("c", "jpg", "c.jpg")]).records
    {'a': [('jpg', 'a.jpg')], 'b_v2': [('jpg', 'b.v2.JPEG')], 'c': [('jpg', 'c.jpg')]}
    """
    files = list(files)
    fields = _fields(files) if fields is None else fields
    made = Named({})
    keys = {key for key, ext, _ in files if all(ext.split(".")) and _middle(ext) in fields}
    given: dict[tuple[str, str], str] = {}
    for key, ext, path in files:
        middle = _middle(ext)
        if middle not in fields or not all(ext.split(".")):
            wanted = f"{key}_{middle.replace('.', '_')}"
            if (key, middle) not in given:
                given[key, middle] = next(name for name in _candidates(wanted) if name not in keys)
                keys.add(given[key, middle])
            key, ext = given[key, middle], ext.rpartition(".")[2]
            made.renamed.append((key, path))
        made.records.setdefault(key, []).append((ext, path))
    if made.renamed:
        key, path = made.renamed[0]
        made.notes.append(f"{len(made.renamed)} files had dots in their stems, which are _ in keys: {path} is {key}")
    for middle in sorted(fields):
        _merge(made, f"{middle}." if middle else "")
    return made


def _middle(ext: str) -> str:
    return ext.lower().rpartition(".")[0]


def _candidates(name: str) -> Iterable[str]:
    yield name
    number = 2
    while True:
        yield f"{name}_{number}"
        number += 1


def _fields(files: list[tuple[str, str, str]]) -> set[str]:
    """What stands between the first and the last dot of files and names a field."""
    having: dict[str, set[str]] = defaultdict(set)
    for key, ext, _ in files:
        having[_middle(ext)].add(key)
    plain, count = having[""], len({key for key, _, _ in files})

    def is_field(middle: str, keys: set[str]) -> bool:
        beside = len(keys & plain) > len(keys) / 2 and _VERSION.fullmatch(middle) is None
        return not middle or len(keys) >= count * _MANY or beside

    return {middle for middle, keys in having.items() if is_field(middle, keys)}


def _merge(made: Named, prefix: str) -> None:
    """Give the pictures `PREFIX jpg`, `PREFIX jpeg`, … one ending, if no record would have two of it."""

    def ending(ext: str, known: Iterable[str]) -> str:
        last = ext.lower().removeprefix(prefix)
        return last if ext.lower().startswith(prefix) and last in known else ""

    for known in (PICTURES, _JPEG):
        found = [Counter(filter(None, (ending(ext, known) for ext, _ in fields))) for fields in made.records.values()]
        counts = sum(found, Counter[str]())
        if len(counts) < 2:
            return
        if any(len(each) > 1 for each in found):
            continue
        one = counts.most_common(1)[0][0]
        for key, fields in made.records.items():
            made.records[key] = [(prefix + one if ending(ext, known) not in ("", one) else ext, path) for ext, path in fields]
        others = ", ".join(f"{prefix}{name} ×{count}" for name, count in counts.most_common()[1:])
        made.notes.append(f"{len(counts)} kinds of names are one field, {prefix}{one}: {others}")
        if known is PICTURES:
            return
    kept = sum((Counter(filter(None, (ending(ext, PICTURES) for ext, _ in fields))) for fields in made.records.values()), Counter[str]())
    names = ", ".join(f"{prefix}{name} ×{count}" for name, count in kept.most_common())
    made.notes.append(f"{len(kept)} kinds of names stay fields of their own, as records have several: {names}")
