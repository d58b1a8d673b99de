"""What is kept on this machine: indexes, columns, copies of shards; what goes of it, and what is kept of a shard."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import click

from tarviz import stores
from tarviz.cli import verb_base
from tarviz.model.config import format_size, options
from tarviz.model.errors import TarvizError, UsageError, redact
from tarviz.model.redaction import redacted_repr
from tarviz.stores import URLs
from tarviz.stores.cache_files import DERIVED, KeptFile, folder_of, kept_files, oldest, stem, trim
from tarviz.stores.cached import copies, drop

Kind: TypeAlias = Literal["index", "table", "tfrecord", "shards"]
Action: TypeAlias = Literal["list", "prune", "clear"]

KINDS: tuple[Kind, ...] = get_args(Kind)
ACTIONS: tuple[Action, ...] = get_args(Action)
_HOLDS = {
    "index": "indexes",
    "table": "columns",
    "tfrecord": "shards of TFRecord files",
    "shards": "copies of shards",
    "tags": "tags and notes, made by hand",
}


@dataclass(frozen=True)
class Holding:
    """Files of one kind: how many, their bytes together, and when one was used last (seconds since 1970; None: there is none).

    `shard`: the one they are of; None: of all.
    """

    kind: str
    folder: Path
    files: int
    bytes: int
    used: float | None
    shard: str | None = None

    __repr__ = redacted_repr

    @classmethod
    def of(cls, kind: str, folder: Path, rows: Sequence[KeptFile], shard: str | None = None) -> Holding:
        """What these files are together."""
        return cls(kind, folder, len(rows), sum(row.size for row in rows), max((row.used for row in rows), default=None), shard)


@dataclass(frozen=True)
class CacheContents(verb_base.Result):
    """What is kept, by kind (and shard), after what was asked for; `gone` is what was removed."""

    holdings: list[Holding]
    gone: list[Holding] = field(default_factory=list)

    def __str__(self) -> str:
        named = any(each.shard for each in self.holdings)
        rows = [
            (*((each.shard,) if named else ()), _HOLDS[each.kind], f"{each.files:,}", format_size(each.bytes), _ago(each.used), each.folder)
            for each in self.holdings
        ]
        header = (*(("shard",) if named else ()), "what", "files", "size", "used", "folder")
        lines = [verb_base.table(rows, header=header, right=[named + 1, named + 2])]
        lines += [f"removed: {each.files:,} files of {_HOLDS[each.kind]}, {format_size(each.bytes)}" for each in self.gone if each.files]
        return "\n".join(lines)

    def notes(self) -> Iterator[str]:
        """What is left where an earlier version put it."""
        if old := list((options().cache_dir / "tags").glob("*.jsonl")):
            yield f"{len(old)} files of tags on relative paths are left in {old[0].parent}: of which folder's shards is for you to say."
            yield "tarviz.table(SHARDS).tags.load(FILE) takes them over."

    def to_dict(self) -> dict[str, Any]:
        plain = [{**vars(each), "folder": str(each.folder)} for each in (*self.holdings, *self.gone)]
        return {"kept": plain[: len(self.holdings)], "removed": plain[len(self.holdings) :]}


def cache(shards: URLs = (), *, action: Action = "list", kinds: Sequence[Kind] = KINDS) -> CacheContents:
    """What is kept on this machine, of all shards or of these: indexes, columns (`table`), shards of TFRecord
    files (`tfrecord`), copies of shards far away (`shards`).

    `action`: `"list"`; `"prune"` removes what is over the limits (options `cache_size`, `cache_days`, `shard_cache`); `"clear"` all of it.
    Tags and notes are listed and never removed. Everything else is made again where it is needed.
    """
    if unknown := set(kinds) - set(KINDS):
        raise UsageError(f"{unknown.pop()!r} is not a kind.", hint=f"There are: {', '.join(KINDS)}.")
    if action not in ACTIONS:
        raise UsageError(f"{action!r} is not one of {', '.join(ACTIONS)}.")
    urls = _shards(shards)
    if action == "prune" and urls:
        raise UsageError("a limit is of all that is kept.", hint="Name no shard, or clear what is kept of it.")
    before = [] if action == "list" else _holdings(urls, kinds)
    if action == "prune":
        if not set(DERIVED).isdisjoint(kinds):
            trim(at_once=True)
        if "shards" in kinds:
            _remove(oldest(_files("shards"), options().shard_cache))
    elif action == "clear":
        for kind in kinds:
            for begin in map(stem, urls) if urls else ("",):
                _remove(_files(kind, begin))
    after = _holdings(urls, kinds)
    gone = [
        Holding(old.kind, old.folder, old.files - now.files, old.bytes - now.bytes, old.used, old.shard)
        for old, now in zip(before, after, strict=bool(before))
    ]
    return CacheContents(_holdings(urls, [*kinds, "tags"]), gone)


def _shards(shards: URLs) -> list[str]:
    """The shards that are meant; a name that stands for nothing any more is taken as it is, one that is no name of a shard refused."""
    found: list[str] = []
    for url in [shards] if isinstance(shards, str | PathLike) else shards:
        try:
            found += stores.expand(url)
        except TarvizError:
            name = fspath(url)
            if set("./").isdisjoint(name):
                hint = f"An action comes first: tarviz cache clear a.tar. What is there no more is written ./{name}."
                raise UsageError(f"{name!r} is no shard, and none of the actions {', '.join(ACTIONS)}.", hint=hint) from None
            found.append(name)
    return found


def _files(kind: str, begin: str = "") -> list[KeptFile]:
    """What is kept of the shard that the names begin with, or of all."""
    return copies(_folder(kind), begin) if kind == "shards" else kept_files(_folder(kind), begin)


def _folder(kind: str) -> Path:
    return options().data_dir / "tags" if kind == "tags" else folder_of(kind)


def _holdings(urls: list[str], kinds: Sequence[str]) -> list[Holding]:
    if not urls:
        return [Holding.of(kind, _folder(kind), _files(kind)) for kind in kinds]
    return [Holding.of(kind, _folder(kind), _files(kind, stem(url)), redact(url)) for url in urls for kind in kinds]


def _remove(rows: Iterable[KeptFile]) -> None:
    for row in rows:
        drop(row.path)


def _ago(used: float | None) -> str:
    """When something was used last, for people.

    >>> _ago(None), _ago(time.time() - 3 * 86_400)
    ('', '3 days ago')
    """
    if used is None:
        return ""
    days = int((time.time() - used) // 86_400)
    return "today" if days < 1 else "yesterday" if days == 1 else f"{days} days ago"


@verb_base.verb(
    "cache", example=["tarviz cache", "tarviz cache prune", "tarviz cache clear --kind shards", "tarviz cache s3://bucket/train/"]
)
@click.argument("words", nargs=-1, metavar="[list|prune|clear] [SHARD]...")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only these. [default: all]")
@verb_base.result_options
def command(words: tuple[str, ...], kinds: tuple[Kind, ...], as_json: bool) -> Any:
    """Show what is kept on this machine, and remove it.

    Indexes, columns, and copies of shards far away, by kind and size; of a shard where one is named. prune removes what is over the
    limits (TARVIZ_CACHE_SIZE, TARVIZ_CACHE_DAYS, TARVIZ_SHARD_CACHE), clear all, or all of the shards named. All of it is made again
    where it is needed. Tags and notes are listed too; nothing here removes them.
    """
    action: Action = next((each for each in ACTIONS if words[:1] == (each,)), "list")
    shards = words[1:] if words[:1] == (action,) else words
    return verb_base.emit(cache(list(shards), action=action, kinds=kinds or KINDS), as_json)
