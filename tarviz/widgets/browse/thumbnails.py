"""Tiles of the grid: small pictures and short texts made from payloads on worker threads, the latest ones kept."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

from tarviz import viewers
from tarviz.model.errors import TarvizError, redact, safe
from tarviz.widgets.browse.scanned_records import Row, Want, payloads

SIZES = (96, 160, 256)
"""Sides of a tile in pixels, as the grid offers them."""


@dataclass(frozen=True, slots=True)
class Tile:
    """What stands for a record: an encoded picture, or text; `reason` where it could not be made."""

    ext: str = ""
    picture: bytes = b""
    text: str = ""
    reason: str = ""


_PICTURES = ("image", "npy")
Payloads: TypeAlias = dict[str, bytes]


def shown_field(row: Row, wanted: str = "") -> str:
    """The field that stands for a record: `wanted` where the record has it, else its first picture, else its first text."""
    fields = row.fields
    if wanted in fields:
        return wanted
    kinds = {ext: viewers.choose(ext) for ext in fields}
    for kind in (*_PICTURES, "video", "audio", "text", "json", "compressed", "cls"):
        for ext in fields:
            if kinds[ext] == kind:
                return ext
    return fields[0] if fields else ""


class Tiles:
    """Makes tiles and keeps up to `limit` bytes of them. Threads may share it."""

    def __init__(self, limit: int = 64 << 20) -> None:
        self._limit = limit
        self._used = 0
        self._kept: OrderedDict[tuple[object, ...], Tile] = OrderedDict()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(min(4, os.cpu_count() or 1), thread_name_prefix="tarviz-tile")
        self.made = 0

    def get(self, rows: Sequence[Row], wanted: str, size: int, needs: frozenset[str] = frozenset()) -> tuple[list[Tile], list[Payloads]]:
        """A tile a row, in order, and the payloads of the fields that a label `needs`; all read in as few ranges as can be.

        Tiles that are not kept are made side by side on worker threads.
        """
        keys = [(row.id, id(row.shard), wanted, size) for row in rows]
        with self._lock:
            found = [self._kept.get(key) for key in keys]
            for key, tile in zip(keys, found, strict=True):
                if tile is not None:
                    self._kept.move_to_end(key)
        missing = [at for at, tile in enumerate(found) if tile is None]
        wants = [Want(rows[at], shown_field(rows[at], wanted)) for at in missing]
        extra = [Want(row, ext) for row in rows for ext in row.fields if ext in needs]
        blobs = payloads([*wants, *extra])
        made = list(self._pool.map(lambda pair: self._tile(pair[0], pair[1], size), zip(wants, blobs[: len(wants)], strict=True)))
        for at, tile in zip(missing, made, strict=True):
            found[at] = tile
            self._keep(keys[at], tile)
        read: dict[int, Payloads] = {row.id: {} for row in rows}
        for want, blob in zip(extra, blobs[len(wants) :], strict=True):
            if isinstance(blob, bytes):
                read[want.row.id][want.ext] = blob
        return [tile or Tile() for tile in found], [read[row.id] for row in rows]

    def _tile(self, want: Want, blob: bytes | TarvizError, size: int) -> Tile:
        self.made += 1
        if not isinstance(blob, bytes):
            return Tile(want.ext, reason=_reason(blob))
        meta = viewers.Meta(want.ext, want.row.key, want.row.shard.url)
        try:
            made = viewers.tile(blob, meta, size)
        except TarvizError as error:
            return Tile(want.ext, reason=_reason(error))
        return Tile(want.ext, picture=made) if isinstance(made, bytes) else Tile(want.ext, text=made[:400])

    def _keep(self, key: tuple[object, ...], tile: Tile) -> None:
        if tile.reason.startswith(("E_NETWORK", "E_CHANGED", "E_READ")):
            return  # may be well the next time
        with self._lock:
            self._kept[key] = tile
            self._used += len(tile.picture) + len(tile.text) + 200
            while self._used > self._limit and len(self._kept) > 1:
                _, old = self._kept.popitem(last=False)
                self._used -= len(old.picture) + len(old.text) + 200

    @staticmethod
    def shown(row: Row, wanted: str) -> str:
        """The field that stands for a record."""
        return shown_field(row, wanted)

    def forget(self) -> None:
        """Drop all tiles: their shards have changed."""
        with self._lock:
            self._kept.clear()
            self._used = 0

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.forget()


def _reason(error: TarvizError) -> str:
    return redact(safe(f"{error.code}: {error.message}"))[:300]
