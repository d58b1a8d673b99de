"""What reading looks up by name: the records that a condition, or a list of keys, chooses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import UsageError
from tarviz.model.types import URL, lines_of
from tarviz.read.chosen import Chosen
from tarviz.read.stream import ReadOptions
from tarviz.read.tfrecord_names import refuse

MAX_KEYS = 64 << 20  # bytes of a list of keys


def choose(urls: list[URL], options: ReadOptions) -> Chosen:
    """The records of `urls` that fit `options.where` and whose keys are among `options.keys`.

    `UsageError` says what is wrong with the condition, or which keys there are not; `MissingPackageError` names the extra.
    """
    from tarviz.table.table import Table

    refuse(urls)
    streams = frozenset(url for url in urls if url == "-")
    urls = [url for url in urls if url not in streams]
    if options.group == "shard":
        raise UsageError('a condition and group="shard" do not go together.', hint="Sort the shards first: tarviz sort.")
    where, keys = str(options.where), tuple(list_keys(options.keys)) if options.keys else ()
    choice = choose_streamed(streams, where, keys) if streams else Chosen(where, {}, {})
    if not urls:
        return choice
    table = Table(urls, key_split=options.key_split, duplicates=options.duplicates, concatenated=options.concatenated)
    rows = table.rows(where)
    found: dict[str, NDArray[np.int64]] = {url: rows.of(at) for at, url in enumerate(urls)}
    if keys:
        by_key = table.by_keys(keys)
        found = {url: np.intersect1d(found[url], by_key.of(at)) for at, url in enumerate(urls)}
    table.check()
    return replace(choice, rows=found, versions=table.versions)


def choose_streamed(urls: Iterable[URL], where: str, keys: Iterable[str] = ()) -> Chosen:
    """The records of streams that will fit, known when they come."""
    from tarviz.table.streamed import StreamCondition

    return Chosen(where, {}, {}, frozenset(urls), StreamCondition(where, keys))


def join_conditions(texts: list[str]) -> str:
    """Conditions and searches as one condition that is true where all are; empty ones are left out."""
    from tarviz.table.conditions import join

    return join(tuple(text for text in texts if text.strip()))


def list_keys(keys: str | Iterable[str]) -> list[str]:
    """Keys given, or those in a file, one per line."""
    if not isinstance(keys, str):
        return list(keys)
    path = Path(keys)
    try:
        if path.stat().st_size > MAX_KEYS:
            raise UsageError(f"{keys!r} is too large for a list of keys.")
        lines = lines_of(path.read_bytes())
    except OSError as error:
        raise UsageError(f"the list of keys {keys!r} cannot be read: {error.strerror}.") from error
    return [line for line in lines if line.strip()]


def listing(keys: Iterable[str]) -> bytes:
    """The file that `listed` reads. `UsageError` for a key that is no line."""
    found = list(keys)
    bad = next((key for key in found if "\n" in key or key.endswith("\r") or not key.strip()), None)
    if bad is not None:
        raise UsageError(f"The key {bad!r} is no line of a list of keys.", hint="Save the records themselves (.tar), or a table (.csv).")
    return "".join(f"{key}\n" for key in found).encode("utf-8", "surrogateescape")
