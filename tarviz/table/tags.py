"""Tags on records: JSON lines beside the cached indexes, a file a shard, that survive a restart and can be handed on.

A line is `{"shard": URL, "key": KEY, "tag": WORD, "note": TEXT}`; a line whose `note` is null and that has `"gone": true` takes a tag away.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tarviz.model.config import options as configured
from tarviz.model.errors import DataError, UsageError, redact
from tarviz.model.types import URL

if TYPE_CHECKING:
    from tarviz.table.table import Table

MAX_TAG = 100


class Tags:
    """The tags of a table's records."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def add(self, keys: Iterable[tuple[str, str]] | str, tag: str, note: str = "") -> int:
        """Tag records: those a condition chooses, or (shard, key) pairs. How many."""
        return self._write(self._chosen(keys), _checked(tag), {"note": note})

    def add_noted(self, noted: Iterable[tuple[str, str, str]], tag: str) -> int:
        """Tag records, each with a note of its own: (shard, key, note). How many."""
        rows = list(noted)
        return self._write([row[:2] for row in rows], _checked(tag), [{"note": row[2]} for row in rows])

    def remove(self, keys: Iterable[tuple[str, str]] | str, tag: str) -> int:
        """Take a tag away again."""
        return self._write(self._chosen(keys), _checked(tag), {"gone": True})

    def counts(self) -> dict[str, int]:
        """Tag → records that have it."""
        found: dict[str, int] = {}
        for line in self.lines():
            found[line["tag"]] = found.get(line["tag"], 0) + 1
        return found

    def lines(self) -> list[dict[str, str]]:
        """Every tag there is: shard, key, tag, note."""
        return [line for url in dict.fromkeys(self._table.urls) for line in _lines(url)]

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the tags as JSON lines, to hand them on. How many."""
        lines = self.lines()
        Path(path).write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        return len(lines)

    def load(self, path: str | os.PathLike[str]) -> int:
        """Take tags from JSON lines that `save` wrote, or from any with `key` and `tag`; without `shard` a key is looked for in all."""
        found: dict[tuple[str, str], list[tuple[str, str]]] = {}
        names = {redact(url).rpartition("/")[2]: redact(url) for url in self._table.urls}
        here = {redact(url) for url in self._table.urls}
        for number, text in enumerate(Path(path).read_text("utf-8").splitlines(), 1):
            if not text.strip():
                continue
            try:
                line = json.loads(text)
                key, tag = str(line["key"]), _checked(str(line["tag"]))
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                hint = 'A line is {"key": …, "tag": …}.'
                raise DataError(f"line {number} of {path} is not a tag ({error}).", code="E_TAGS", hint=hint) from error
            shard = str(line.get("shard", ""))
            name = shard.rpartition("/")[2]
            where = [shard] if shard in here else [names[name]] if name in names else sorted(here)
            found.setdefault((tag, str(line.get("note") or "")), []).extend((each, key) for each in where)
        return sum(self._write(pairs, tag, {"note": note}) for (tag, note), pairs in found.items())

    def _chosen(self, keys: Iterable[tuple[str, str]] | str) -> list[tuple[str, str]]:
        if not isinstance(keys, str):
            return list(keys)
        table = self._table.arrow(f"SELECT shard, key FROM records WHERE {self._table.condition(keys)}")
        return list(zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True))

    def _write(self, pairs: list[tuple[str, str]], tag: str, more: dict[str, Any] | list[dict[str, Any]]) -> int:
        by_shard: dict[str, list[dict[str, Any]]] = {}
        for at, (shard, key) in enumerate(pairs):
            own = more[at] if isinstance(more, list) else more
            by_shard.setdefault(redact(shard), []).append({"shard": redact(shard), "key": key, "tag": tag, **own})
        known = {redact(url): url for url in self._table.urls}
        for shard, lines in by_shard.items():
            if shard not in known:
                raise UsageError(f"{shard!r} is not a shard of this table.")
            place = _file(known[shard])
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
        self._table.retag()
        return len(pairs)


def _file(url: URL) -> Path:
    name = hashlib.sha256(url.encode("utf-8", "surrogateescape")).hexdigest()[:40]
    return configured().cache_dir / "tags" / f"{name}.jsonl"


def _lines(url: URL) -> Iterator[dict[str, str]]:
    """The tags of one shard, the last word about each."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    try:
        text = _file(url).read_text("utf-8", "replace")
    except OSError:
        return
    for each in text.splitlines():
        try:
            line = json.loads(each)
            at = line["key"], line["tag"]
        except (ValueError, KeyError, TypeError):
            continue  # a line that was cut while it was written
        if line.get("gone"):
            found.pop(at, None)
        else:
            found[at] = {"shard": redact(url), "key": str(line["key"]), "tag": str(line["tag"]), "note": str(line.get("note") or "")}
    yield from found.values()


def _checked(tag: str) -> str:
    if not tag.strip() or len(tag) > MAX_TAG or "," in tag or not tag.isprintable():
        raise UsageError(f"{tag!r} is not a tag.", hint="A tag is a word, without commas.")
    return tag.strip()
