"""What can be typed next: shards folded to templates, fields and keys of shards, ops of a chain. For the shell and for magics."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path

from tarviz import stores
from tarviz.model import plugins
from tarviz.model.errors import TarvizError

MOST = 200

_NUMBERED = re.compile(r"(.*?)(\d+)(\D*)")
_OP = re.compile(r"(?:^|[|=(])\s*([a-z_]*)$")
_FIELD = re.compile(r"([a-z_]+)\(\s*([\w.;-]*)$")


def shards(text: str) -> list[str]:
    """Local shards and folders that begin with `text`; several that only differ in a number come as one template first."""
    folder, _, start = text.rpartition("/")
    place = Path(os.path.expanduser(folder) if folder else "/" if text.startswith("/") else ".")
    before = f"{folder}/" if "/" in text else ""
    try:
        entries = list(islice(os.scandir(place), 20_000))
    except OSError:
        return []
    names = sorted(entry.name for entry in entries if entry.name.startswith(start) and (start or not entry.name.startswith(".")))
    folders = {entry.name for entry in entries if entry.is_dir()}
    tars = [name for name in names if name not in folders and name.endswith(stores.SHARD_SUFFIXES)]
    found = [*fold_names(tars), *(f"{name}/" for name in names if name in folders), *tars]
    return [before + name for name in found[:MOST]]


def fold_names(names: Iterable[str]) -> list[str]:
    """Names that only differ in one number, without a gap, as templates.

    >>> fold_names(["train-0000.tar", "train-0001.tar", "train-0002.tar", "x.tar"])
    ['train-{0000..0002}.tar']
    """
    runs: dict[tuple[str, int, str], list[int]] = {}
    for name in names:
        if match := _NUMBERED.fullmatch(name):
            runs.setdefault((match[1], len(match[2]), match[3]), []).append(int(match[2]))
    found = []
    for (before, width, behind), numbers in runs.items():
        numbers.sort()
        if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
            found.append(f"{before}{{{numbers[0]:0{width}d}..{numbers[-1]:0{width}d}}}{behind}")
    return found


def fields(urls: Sequence[str]) -> list[str]:
    """The extensions in the first block of the first shard."""
    return list(_peek(tuple(urls))[0])


def keys(urls: Sequence[str], text: str = "") -> list[str]:
    """Keys of the first block of the first shard that begin with `text`."""
    return [key for key in _peek(tuple(urls))[1] if key.startswith(text)][:MOST]


def condition(text: str, urls: Sequence[str]) -> tuple[str, list[str]]:
    """How a condition or a query can go on: the word that is completed, and the columns, functions and values that may stand for it.

    Columns are those of the first shard, values those of its columns that were made before.
    """
    from tarviz.table.table import Table
    from tarviz.widgets.answers.completion import completion

    table = None
    with suppress(TarvizError, OSError):
        table = Table([first]) if (first := _first(urls)) else None
    start, items = completion(text, len(text), fields(urls), table)
    return text[start:], [word for word, _ in items]


def _first(urls: Sequence[str]) -> str | None:
    """The first shard, where it is a file."""
    first = stores.expand(urls)[0]
    return first if stores.is_local(first) else None


def _peek(urls: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    with suppress(TarvizError, OSError):
        if first := _first(urls):
            return _look(first, os.stat(stores.local_path(first)).st_mtime_ns)
    return (), ()


@lru_cache(maxsize=32)
def _look(url: str, _: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Fields and keys of a shard's first block; the second argument is its time, so that a new shard is looked at again."""
    from tarviz.cli.progress import silent_warnings
    from tarviz.model.types import to_text
    from tarviz.read.stream import ReadOptions, blocks

    with silent_warnings(), closing(blocks(url, ReadOptions(strict=False), stop=10_000)) as run:
        for block in run:
            if len(block):
                return tuple(block.exts), tuple(to_text(key) for key in block.keys)
    return (), ()


def chain(text: str, urls: Sequence[str]) -> tuple[str, list[str]]:
    """How the chain `text` can go on: the part that is completed, and what may stand for it.

    >>> chain("decode(jpg)|res", [])
    ('res', ['resize('])
    """
    if match := _FIELD.search(text):
        there = [name for name in fields(urls) if name.startswith(match[2])]
        return match[2], there
    if match := _OP.search(text):
        return match[1], [f"{name}(" for name in plugins.names("ops") if name.startswith(match[1])]
    return "", []
