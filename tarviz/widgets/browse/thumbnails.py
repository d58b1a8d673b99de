"""Tiles of the grid: small pictures and short texts made from payloads on worker threads, the latest ones kept."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeAlias

from tarviz import viewers
from tarviz.looks import roles
from tarviz.model.errors import TarvizError, redact, safe
from tarviz.model.processors import processors
from tarviz.widgets.answers.questions import Box
from tarviz.widgets.browse.rows import Row, Want, payloads
from tarviz.widgets.panes.overlays import Overlay, Overlays

SIZES = (96, 160, 256)
"""Sides of a tile in pixels, as the grid offers them."""


@dataclass(frozen=True, slots=True)
class Tile:
    """What stands for a record: an encoded picture and what lies over it, or text; `reason` where it could not be made."""

    ext: str = ""
    picture: bytes = b""
    text: str = ""
    reason: str = ""
    over: Overlay | None = None


Payloads: TypeAlias = dict[str, bytes]
_KINDS = ("volume", "cloud", "npy", "video", "audio", "text", "json", "structured", "compressed", "cls")
_MOST_HELD = 64 << 20  # bytes of tiles that are kept
_BACK = "#24262b"
_RIM = 0.1  # of the longer side of a box, around it


@dataclass(frozen=True, slots=True)
class TilePlan:
    """What a tile is made of: fields side by side, and fields that are looked into for what lies over the only one."""

    fields: tuple[str, ...] = ()
    over: tuple[str, ...] = ()


def main_fields(fields: Sequence[str], wanted: str = "") -> tuple[str, ...]:
    """Those of a record's fields that stand for it: `wanted` where it is among them, else its pictures that belong side by side (at most
    four), else its first picture, else its first text."""
    if wanted in fields:
        return (wanted,)
    kinds = {ext: viewers.choose(ext) for ext in fields}
    if beside := roles.roles(kinds).beside:
        return beside[:4]
    ranked = sorted(fields, key=lambda ext: _KINDS.index(kinds[ext]) if kinds[ext] in _KINDS else len(_KINDS))
    return tuple(ranked[:1])


class Tiles:
    """Makes tiles and keeps the latest of them. Threads may share it."""

    def __init__(self, overlays: Overlays) -> None:
        self.overlays = overlays
        self._used = 0
        self._kept: OrderedDict[tuple[object, ...], Tile] = OrderedDict()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(processors(), thread_name_prefix="tarviz-tile")

    def get(self, rows: Sequence[Row], wanted: str, size: int, needs: frozenset[str] = frozenset()) -> tuple[list[Tile], list[Payloads]]:
        """A tile a row, in order, and the payloads of the fields that a label `needs`; all read in as few ranges as can be.

        Tiles that are not kept are made side by side on worker threads.
        """
        keys = [(row.id, id(row.shard), wanted, size) for row in rows]
        found = self._recall(keys)
        plans = {at: plan_tile(rows[at].sizes, wanted, self.overlays) for at, tile in enumerate(found) if tile is None}
        asked: dict[tuple[int, str], Want] = {}
        for at, plan in plans.items():
            asked |= {(at, ext): Want(rows[at], ext) for ext in (*plan.fields, *plan.over)}
        asked |= {(at, ext): Want(row, ext) for at, row in enumerate(rows) for ext in row.fields if ext in needs}
        blobs = dict(zip(asked, payloads(asked.values()), strict=True))

        def made(at: int) -> Tile:
            own = {ext: blob for (of, ext), blob in blobs.items() if of == at}
            return make_tile(plans[at], own, self.overlays, size, key=rows[at].key, shard=rows[at].shard.url)

        tiles = self._fill(keys, found, made)
        read: list[Payloads] = [{} for _ in rows]
        for (at, ext), blob in blobs.items():
            if ext in needs and isinstance(blob, bytes):
                read[at][ext] = blob
        return tiles, read

    def _recall(self, keys: Sequence[tuple[object, ...]]) -> list[Tile | None]:
        """The tiles that are kept of these, from now on the latest ones."""
        with self._lock:
            for key in keys:
                if key in self._kept:
                    self._kept.move_to_end(key)
            return [self._kept.get(key) for key in keys]

    def boxes(self, rows: Sequence[Row], boxes: Sequence[Box], size: int) -> list[Tile]:
        """A tile a box: what is inside it, with a rim, out of the row's first picture."""
        exts = [next((ext for ext in main_fields(row.fields) if viewers.choose(ext) == "image"), "") for row in rows]
        keys = [(row.id, id(row.shard), box, size) for row, box in zip(rows, boxes, strict=True)]
        found = self._recall(keys)
        wanted = {rows[at].id: Want(rows[at], exts[at]) for at, tile in enumerate(found) if tile is None and exts[at]}
        blobs = dict(zip(wanted, payloads(wanted.values()), strict=True))
        return self._fill(keys, found, lambda at: _cut(exts[at], blobs.get(rows[at].id), boxes[at], size))

    def _fill(self, keys: Sequence[tuple[object, ...]], found: Sequence[Tile | None], make: Callable[[int], Tile]) -> list[Tile]:
        """The tiles found, and those that lack made side by side."""
        made = self._pool.map(make, [at for at, tile in enumerate(found) if tile is None])
        tiles = [tile or next(made) for tile in found]
        for key, tile, before in zip(keys, tiles, found, strict=True):
            if before is None:
                self._keep(key, tile)
        return tiles

    def _keep(self, key: tuple[object, ...], tile: Tile) -> None:
        if tile.reason.startswith(("E_NETWORK", "E_CHANGED", "E_READ")):
            return  # may be well the next time
        with self._lock:
            self._kept[key] = tile
            self._used += _weight(tile)
            while self._used > _MOST_HELD and len(self._kept) > 1:
                _, old = self._kept.popitem(last=False)
                self._used -= _weight(old)

    @staticmethod
    def main_field(row: Row, wanted: str) -> str:
        """The field that stands for a record."""
        return next(iter(main_fields(row.fields, wanted)), "")

    def forget(self) -> None:
        """Drop all tiles: their shards have changed."""
        with self._lock:
            self._kept.clear()
            self._used = 0

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.forget()


def plan_tile(sizes: Mapping[str, int], wanted: str, overlays: Overlays) -> TilePlan:
    """What the tile of a record with fields of these sizes is made of."""
    fields = main_fields(tuple(sizes), wanted)
    over = overlays.fields(sizes, fields[0]) if len(fields) == 1 and viewers.choose(fields[0]) == "image" else []
    return TilePlan(fields, tuple(ext for ext in over if ext not in fields))


def make_tile(
    plan: TilePlan, blobs: Mapping[str, bytes | TarvizError], overlays: Overlays, size: int, *, key: str = "", shard: str = ""
) -> Tile:
    """The tile that `plan` says, out of the payloads of its fields."""
    if not plan.fields:
        return Tile()
    tiles = [_one(viewers.Meta(ext, key, shard), blobs[ext], size) for ext in plan.fields]
    if len(tiles) > 1:
        return _side_by_side(tiles, size)
    tile = tiles[0]
    return replace(tile, over=overlay(plan, blobs, overlays, size)) if tile.picture else tile


def overlay(plan: TilePlan, blobs: Mapping[str, bytes | TarvizError], overlays: Overlays, side: int) -> Overlay | None:
    """What lies over the only field of a plan, its masks at most `side` pixels a side; None where nothing does."""
    ext = plan.fields[0]
    if not plan.over or not isinstance(picture := blobs[ext], bytes):
        return None
    found = {name: blob for name in plan.over if isinstance(blob := blobs[name], bytes)}
    return overlays.over(found, ext, *viewers.picture_size(picture, ext), side) or None


def _side_by_side(tiles: Sequence[Tile], size: int) -> Tile:
    """Up to four pictures in one: two over each other, or two by two."""
    from PIL import Image

    from tarviz.viewers.image import encode

    if not any(tile.picture for tile in tiles):
        return tiles[0]
    pictures = [Image.open(io.BytesIO(tile.picture)).convert("RGB") if tile.picture else Image.new("RGB", (4, 3), _BACK) for tile in tiles]
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
    return Tile(" ".join(tile.ext for tile in tiles), picture=encode(sheet, "JPEG", 85))


def _one(meta: viewers.Meta, blob: bytes | TarvizError, size: int) -> Tile:
    ext = meta.ext
    if not isinstance(blob, bytes):
        return Tile(ext, reason=_reason(blob))
    try:
        made = viewers.tile(blob, meta, size)
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


def _weight(tile: Tile) -> int:
    over = sum(len(mask.picture) for mask in tile.over.masks) + 200 * len(tile.over.shapes) if tile.over else 0
    return len(tile.picture) + len(tile.text) + over + 200


def _reason(error: TarvizError) -> str:
    return redact(safe(f"{error.code}: {error.message}"))[:300]
