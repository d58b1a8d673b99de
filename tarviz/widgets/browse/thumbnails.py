"""Tiles of the grid: small pictures and short texts made from payloads on worker threads, the latest ones kept."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeAlias

from tarviz import viewers
from tarviz.looks import roles
from tarviz.model.errors import TarvizError, redact, safe
from tarviz.model.processors import processors
from tarviz.widgets.answers.questions import Box
from tarviz.widgets.browse.rows import Row, Want, payloads
from tarviz.widgets.panes.overlays import NONE, Over, Overlays

SIZES = (96, 160, 256)
"""Sides of a tile in pixels, as the grid offers them."""


@dataclass(frozen=True, slots=True)
class Tile:
    """What stands for a record: an encoded picture and what lies over it, or text; `reason` where it could not be made."""

    ext: str = ""
    picture: bytes = b""
    text: str = ""
    reason: str = ""
    over: Over | None = None


Payloads: TypeAlias = dict[str, bytes]
_KINDS = ("npy", "video", "audio", "text", "json", "compressed", "cls")
_BACK = (36, 38, 43)
_RIM = 0.1  # of the longer side of a box, around it


@dataclass(frozen=True, slots=True)
class TilePlan:
    """What a tile is made of: fields side by side, and fields that are looked into for what lies over the only one."""

    fields: tuple[str, ...] = ()
    over: tuple[str, ...] = ()


def shown_fields(row: Row, wanted: str = "") -> tuple[str, ...]:
    """The fields that stand for a record: `wanted` where the record has it, else its pictures that belong side by side (at most
    four), else its first picture, else its first text."""
    fields = row.fields
    if wanted in fields:
        return (wanted,)
    kinds = {ext: viewers.choose(ext) for ext in fields}
    beside = roles.roles(kinds).beside
    if beside:
        return beside[:4]
    for kind in _KINDS:
        for ext in fields:
            if kinds[ext] == kind:
                return (ext,)
    return (fields[0],) if fields else ()


class Tiles:
    """Makes tiles and keeps up to `limit` bytes of them. Threads may share it."""

    def __init__(self, limit: int = 64 << 20, overlays: Overlays | None = None) -> None:
        self.overlays = overlays or Overlays(NONE)
        self._limit = limit
        self._used = 0
        self._kept: OrderedDict[tuple[object, ...], Tile] = OrderedDict()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(min(4, processors()), thread_name_prefix="tarviz-tile")
        self.made = 0

    def plan(self, row: Row, wanted: str) -> TilePlan:
        """What the tile of a row is made of."""
        fields = shown_fields(row, wanted)
        over = self.overlays.fields(row.sizes, fields[0]) if len(fields) == 1 and viewers.choose(fields[0]) == "image" else []
        return TilePlan(fields, tuple(ext for ext in over if ext not in fields))

    def get(self, rows: Sequence[Row], wanted: str, size: int, needs: frozenset[str] = frozenset()) -> tuple[list[Tile], list[Payloads]]:
        """A tile a row, in order, and the payloads of the fields that a label `needs`; all read in as few ranges as can be.

        Tiles that are not kept are made side by side on worker threads.
        """
        keys = [(row.id, id(row.shard), wanted, size) for row in rows]
        found = self._held(keys)
        plans = {at: self.plan(rows[at], wanted) for at, tile in enumerate(found) if tile is None}
        asked: dict[tuple[int, str], Want] = {}
        for at, plan in plans.items():
            asked |= {(at, ext): Want(rows[at], ext) for ext in (*plan.fields, *plan.over)}
        asked |= {(at, ext): Want(row, ext) for at, row in enumerate(rows) for ext in row.fields if ext in needs}
        blobs = dict(zip(asked, payloads(asked.values()), strict=True))
        made = self._pool.map(
            lambda item: self._tile(rows[item[0]], item[1], {e: b for (a, e), b in blobs.items() if a == item[0]}, size), plans.items()
        )
        for at, tile in zip(plans, made, strict=True):
            found[at] = tile
            self._keep(keys[at], tile)
        read: list[Payloads] = [{} for _ in rows]
        for (at, ext), blob in blobs.items():
            if ext in needs and isinstance(blob, bytes):
                read[at][ext] = blob
        return [tile or Tile() for tile in found], read

    def _held(self, keys: Sequence[tuple[object, ...]]) -> list[Tile | None]:
        """The tiles that are kept of these, from now on the latest ones."""
        with self._lock:
            for key in keys:
                if key in self._kept:
                    self._kept.move_to_end(key)
            return [self._kept.get(key) for key in keys]

    def _tile(self, row: Row, plan: TilePlan, blobs: Mapping[str, bytes | TarvizError], size: int) -> Tile:
        self.made += 1
        if not plan.fields:
            return Tile()
        if len(plan.fields) > 1:
            return self._side_by_side(row, plan.fields, blobs, size)
        tile = _one(row, plan.fields[0], blobs[plan.fields[0]], size)
        if not plan.over or not tile.picture:
            return tile
        found = {ext: blob for ext in plan.over if isinstance(blob := blobs[ext], bytes)}
        over = self.overlays.over(found, tile.ext, *_size(blobs[tile.ext], tile.ext), size)
        return replace(tile, over=over) if over else tile

    def boxes(self, rows: Sequence[Row], boxes: Sequence[Box], size: int) -> list[Tile]:
        """A tile a box: what is inside it, with a rim, out of the row's first picture."""
        exts = [next((ext for ext in shown_fields(row) if viewers.choose(ext) == "image"), "") for row in rows]
        keys = [(row.id, id(row.shard), box, size) for row, box in zip(rows, boxes, strict=True)]
        found = self._held(keys)
        wanted = {rows[at].id: Want(rows[at], exts[at]) for at, tile in enumerate(found) if tile is None and exts[at]}
        blobs = dict(zip(wanted, payloads(wanted.values()), strict=True))
        todo = [at for at, tile in enumerate(found) if tile is None]
        for at, tile in zip(todo, self._pool.map(lambda at: _cut(exts[at], blobs.get(rows[at].id), boxes[at], size), todo), strict=True):
            found[at] = tile
            self._keep(keys[at], tile)
        return [tile or Tile() for tile in found]

    @staticmethod
    def _side_by_side(row: Row, fields: Sequence[str], blobs: Mapping[str, bytes | TarvizError], size: int) -> Tile:
        """Up to four pictures in one: two over each other, or two by two."""
        from PIL import Image

        from tarviz.viewers.image import encode

        tiles = [_one(row, ext, blobs[ext], size) for ext in fields]
        if not any(tile.picture for tile in tiles):
            return tiles[0]
        pictures = [
            Image.open(io.BytesIO(tile.picture)).convert("RGB") if tile.picture else Image.new("RGB", (4, 3), _BACK) for tile in tiles
        ]
        columns = 1 if len(pictures) == 2 and pictures[0].width >= pictures[0].height else 2
        lines = -(-len(pictures) // columns)
        width = (size - 2 * (columns - 1)) // columns
        height = min(max(round(width * one.height / one.width) for one in pictures), (size - 2 * (lines - 1)) // lines)
        sheet = Image.new("RGB", (columns * (width + 2) - 2, lines * (height + 2) - 2), _BACK)
        for at, one in enumerate(pictures):
            scale = min(width / one.width, height / one.height)
            small = one.resize((max(1, round(one.width * scale)), max(1, round(one.height * scale))), Image.Resampling.BILINEAR)
            left, top = (at % columns) * (width + 2), (at // columns) * (height + 2)
            sheet.paste(small, (left + (width - small.width) // 2, top + (height - small.height) // 2))
        return Tile(" ".join(fields), picture=encode(sheet, "JPEG", 85))

    def _keep(self, key: tuple[object, ...], tile: Tile) -> None:
        if tile.reason.startswith(("E_NETWORK", "E_CHANGED", "E_READ")):
            return  # may be well the next time
        with self._lock:
            self._kept[key] = tile
            self._used += _weight(tile)
            while self._used > self._limit and len(self._kept) > 1:
                _, old = self._kept.popitem(last=False)
                self._used -= _weight(old)

    @staticmethod
    def shown(row: Row, wanted: str) -> str:
        """The field that stands for a record."""
        return next(iter(shown_fields(row, wanted)), "")

    def forget(self) -> None:
        """Drop all tiles: their shards have changed."""
        with self._lock:
            self._kept.clear()
            self._used = 0

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.forget()


def _one(row: Row, ext: str, blob: bytes | TarvizError, size: int) -> Tile:
    if not isinstance(blob, bytes):
        return Tile(ext, reason=_reason(blob))
    try:
        made = viewers.tile(blob, viewers.Meta(ext, row.key, row.shard.url), size)
    except TarvizError as error:
        return Tile(ext, reason=_reason(error))
    return Tile(ext, picture=made) if isinstance(made, bytes) else Tile(ext, text=made[:400])


def _cut(ext: str, blob: bytes | TarvizError | None, box: Box, size: int) -> Tile:
    from tarviz.viewers.image import encode, open_picture

    if not isinstance(blob, bytes):
        return Tile(ext, reason=_reason(blob)) if blob is not None else Tile(text=box.label)
    try:
        picture = open_picture(memoryview(blob), ext)
        across, down = picture.width / (box.width or picture.width), picture.height / (box.height or picture.height)
        rim = _RIM * max(box.x1 - box.x0, box.y1 - box.y0)
        left, top = max(0, int((box.x0 - rim) * across)), max(0, int((box.y0 - rim) * down))
        right, bottom = min(picture.width, int((box.x1 + rim) * across) + 1), min(picture.height, int((box.y1 + rim) * down) + 1)
        part = picture.crop((left, top, max(right, left + 1), max(bottom, top + 1)))
    except TarvizError as error:
        return Tile(ext, reason=_reason(error))
    except (OSError, SyntaxError, ValueError) as error:
        return Tile(ext, reason=f"E_DECODE: {safe(str(error))}"[:300])
    part.thumbnail((size, size))
    return Tile(ext, picture=encode(part, "JPEG", 85) if part.mode in ("L", "RGB") else encode(part, "PNG"))


def _size(blob: bytes | TarvizError, ext: str) -> tuple[int, int]:
    """Width and height of a picture, (0, 0) where it is none."""
    if not isinstance(blob, bytes):
        return 0, 0
    return viewers.picture_size(blob, ext)


def _weight(tile: Tile) -> int:
    over = sum(len(mask.picture) for mask in tile.over.masks) + 200 * len(tile.over.shapes) if tile.over else 0
    return len(tile.picture) + len(tile.text) + over + 200


def _reason(error: TarvizError) -> str:
    return redact(safe(f"{error.code}: {error.message}"))[:300]
