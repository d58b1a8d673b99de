"""Chains run over a few records for all to see: every step of every chain kept, each op run once per record."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz import stores
from tarviz.formats.tar_header import TAR_END, tar_member
from tarviz.model import plugins
from tarviz.model.errors import DataError, TarvizError, safe
from tarviz.model.types import URL, to_bytes
from tarviz.ops.base import FieldOp, names_of
from tarviz.ops.chains import Chain, Step
from tarviz.pipeline import Pipeline
from tarviz.viewers import choose
from tarviz.widgets.compare.overlaid import Overlaid
from tarviz.widgets.compare.value_picture import ShownValue, look_at, pixels_of, thumbnail
from tarviz.widgets.panes.overlays import Overlay, Overlays

KEPT = 768 << 20
"""Bytes of values kept for the stage; what comes later keeps its thumbnail only."""

SIDE = 144
"""Pixels a side of a thumbnail."""

EAGER = "eager"
TITLES = {"tf": "tf.data", "eager": "eager"}
SENTENCES = {"tf": "as .tf() runs them: ops as a TensorFlow graph where they have one"}
"""What another runner makes of the chains, for people who choose one."""

Values = dict[str, Any]
_UNSEEN = ShownValue("")


@dataclass(slots=True, eq=False)
class StepTile:
    """One step of one chain for one record. `ext` is the field that is shown, `value` what it holds; None once it was let go.

    `look.pixels` is left out: `look_at(value)` makes them again. `picture` is the thumbnail, `text` stands where there is none. `over` is
    what lies over the picture, `behind` a sentence on what lay there before the op moved its pixels without it.
    """

    op: str
    ext: str = ""
    drawn: str = ""
    seconds: float = 0.0
    value: Any = None
    look: ShownValue = _UNSEEN
    picture: bytes = b""
    text: str = ""
    error: TarvizError | None = None
    over: Overlay | None = None
    behind: str = ""


@dataclass(slots=True, eq=False)
class Strip:
    """One chain over one record: its tiles, the seconds its ops took, the record after it (None where an op failed).

    `difference` is the largest absolute difference to the eager result, for columns of other runners.
    """

    tiles: list[StepTile]
    seconds: float = 0.0
    record: Values | None = None
    error: TarvizError | None = None
    difference: float | None = None
    version: int = 0


@dataclass(slots=True, eq=False)
class Column:
    """A chain under a name, run by a runner (`eager`: step by step) with a seed of its own."""

    name: str
    chain: Chain
    seed: int
    runner: str = EAGER
    strips: list[Strip | None] = field(default_factory=list)
    turn: int = 0  # counts the changes of its chain: work for an earlier one is left out

    @property
    def title(self) -> str:
        """What kind of column it is, for the reader."""
        return TITLES.get(self.runner, self.runner)

    @property
    def done(self) -> list[Strip]:
        """The strips that are there."""
        return [strip for strip in self.strips if strip is not None]

    @property
    def failures(self) -> int:
        """Strips that an error ended."""
        return sum(strip.error is not None for strip in self.done)

    @property
    def seconds(self) -> float | None:
        """Mean seconds of a record; None while there is none."""
        whole = [strip.seconds for strip in self.done if strip.error is None]
        return sum(whole) / len(whole) if whole else None

    @property
    def difference(self) -> float | None:
        """The largest difference to the eager result."""
        found = [strip.difference for strip in self.done if strip.difference is not None]
        return max(found) if found else None


class Room:
    """How many bytes of values may still be kept. An array held by several tiles counts once."""

    def __init__(self, limit: int = KEPT) -> None:
        self.left = limit
        self._held: set[int] = set()

    def keep(self, value: Any) -> Any:
        """The value, or None where there is no room for it."""
        if value is None or id(value) in self._held:
            return value
        size = int(getattr(value, "nbytes", 0)) or (len(value) if isinstance(value, bytes | str) else 64)
        if size > self.left:
            return None
        self.left -= size
        self._held.add(id(value))
        return value


def original(record: Values, ext: str, room: Room, overlays: Overlays) -> StepTile:
    """The record before any op, as the field `ext` shows it."""
    tile = _tile("", record, ext, room)
    tile.over = Overlaid(overlays, Chain()).over(record, ext)
    return tile


def first_field(chains: Sequence[Chain], record: Mapping[str, Any]) -> str:
    """The field to show before any op: the one that the chains begin with, else the first picture, else the first field."""
    for chain in chains:
        for op in chain:
            if isinstance(op, FieldOp):
                with suppress(TarvizError):
                    return op.field(record)
    names = names_of(record)
    return next((name for name in names if choose(name) == "image"), names[0] if names else "")


def trace(column: Column, record: Values, ext: str, epoch: int, room: Room, overlays: Overlays) -> Strip:
    """The chain of a column over one record, in one pass. An op that fails ends the strip with a tile that says why."""
    strip = Strip([])
    overlaid = Overlaid(overlays, column.chain)
    overlaid.over(record, ext)
    for at, step in enumerate(column.chain.trace(record, column.seed, epoch)):
        ext = _standing(step, ext)
        strip.seconds += step.seconds
        op = str(step.op.without(column.chain.ops[:at]))
        if step.error is not None:
            strip.error = step.error
            tile = StepTile(op, ext, error=step.error)
        else:
            strip.record = step.record
            tile = _tile(op, step.record, ext, room)
            tile.behind = overlaid.step(step.op, step.record, ext)
            tile.over = overlaid.over(step.record, ext)
        tile.drawn, tile.seconds = step.drawn, step.seconds
        strip.tiles.append(tile)
    if not column.chain:
        strip.record = record
    return strip


def _standing(step: Step, before: str) -> str:
    """The field that stands for a record after a step: one the op worked on, else the one shown before, else any."""
    for name in (*step.fields, getattr(step.op, "ext", ""), before):
        if name in step.record:
            return name
    return first_field((), step.record)


def _tile(op: str, record: Values, ext: str, room: Room) -> StepTile:
    value = record.get(ext)
    look = look_at(value) if ext in record else ShownValue("", text="no fields")
    picture, text = thumbnail(value, look, record, ext, SIDE) if ext in record else (b"", look.text)
    return StepTile(op, ext, value=room.keep(value), look=replace(look, pixels=None), picture=picture, text=text)


def elsewhere(
    column: Column, records: list[Values], exts: list[str], eager: Sequence[Strip | None], epoch: int, room: Room, overlays: Overlays
) -> Iterator[tuple[int, Strip]]:
    """What another runner makes of the records: their numbers and one-tile strips, with the difference to the eager ones.

    The records are put into shards in memory, so the runner reads, cuts and draws just as it does in training.
    """
    folder = f"memory://tarviz-compare-{secrets.token_hex(6)}"
    urls = [URL(f"{folder}/{number:04d}.tar") for number in range(len(records))]
    for url, record in zip(urls, records, strict=True):
        _write(url, record)
    try:
        begin = 0
        while begin < len(urls):
            number = begin
            started: float | None = None  # the first record waits for the engine to start: its time says nothing
            try:
                pipeline = Pipeline(urls[begin:], column.chain, seed=column.seed, strict=False)
                for values in plugins.load("runners", column.runner).run(pipeline, epoch=epoch):
                    spent = 0.0 if started is None else time.perf_counter() - started
                    result = {name: records[number][name] for name in ("__key__", "__shard__")} | _plain(values)
                    ours = eager[number]
                    strip = _whole(column, result, exts[number], ours, spent, room)
                    if ours is not None and ours.tiles and ours.tiles[-1].over:
                        strip.tiles[0].over = Overlaid(overlays, column.chain).over(_drawable(result), strip.tiles[0].ext)
                    yield number, strip
                    number += 1
                    started = time.perf_counter()
            except Exception as error:  # noqa: BLE001 - a runner raises what its engine raises; it belongs into the tile
                yield number, _failure(column, error)
                number += 1
            begin = max(number, begin + 1)
    finally:
        for url in urls:
            with suppress(TarvizError):
                stores.of(url).delete(url)


def _write(url: URL, record: Values) -> None:
    with stores.of(url).create(url) as sink:
        for ext in names_of(record):
            sink.writev(tar_member(to_bytes(f"{record['__key__']}.{ext}"), record[ext]))
        sink.write(TAR_END)


def _plain(values: Any) -> Values:
    """A runner's element as NumPy and Python values."""
    plain = {}
    for name, value in dict(values).items():
        array = np.asarray(value)
        plain[name] = array.item() if array.ndim == 0 and array.dtype.kind in "OSU" else array
    key = plain.get("__key__")
    return plain | ({"__key__": key.decode("utf-8", "surrogateescape")} if isinstance(key, bytes) else {})


def _whole(column: Column, result: Values, ext: str, eager: Strip | None, seconds: float, room: Room) -> Strip:
    shows = ext if ext in result else first_field((), result)
    tile = _tile(f"{column.title}: the whole chain", result, shows, room)
    strip = Strip([tile], seconds, result)
    if eager is not None and eager.record is not None:
        strip.difference = largest_difference(eager.record, result)
    return strip


def _drawable(result: Values) -> Values:
    """A runner's element as overlays read one: text as bytes."""
    return {name: value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value for name, value in result.items()}


def _failure(column: Column, error: Exception) -> Strip:
    if not isinstance(error, TarvizError):
        text = next((line for line in str(error).splitlines() if line.strip()), "")
        error = DataError(safe(f"{column.title} failed: {type(error).__name__}: {text}")[:400], code="E_OP")
    return Strip([StepTile(f"{column.title}: the whole chain", error=error)], error=error)


def largest_difference(ours: Mapping[str, Any], other: Mapping[str, Any]) -> float | None:
    """The largest absolute difference of any number in fields that both have; infinite where shapes or other values differ."""
    return max((_difference(ours[name], other[name]) for name in names_of(ours) if name in other), default=None)


def _difference(ours: Any, other: Any) -> float:
    a, b = np.asarray(ours), np.asarray(other)
    if a.dtype.kind not in "buif" or b.dtype.kind not in "buif":
        return 0.0 if _raw(ours) == _raw(other) else math.inf
    if a.shape != b.shape:
        return math.inf
    return float(np.max(apart(a, b))) if a.size else 0.0


def _raw(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else bytes(value) if isinstance(value, bytearray | memoryview) else value


def apart(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """|a − b|, number by number; two NaNs are alike, NaN and a number infinitely far apart."""
    with np.errstate(all="ignore"):
        result = np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64))
    if np.isnan(result).any():
        result = np.where(np.isnan(result), np.where(np.isnan(a) & np.isnan(b), 0.0, np.inf), result)
    return result


def differing(one: Any, other: Any) -> dict[str, Any]:
    """How two values differ, in words and numbers: in their values where the dtype is the same, else as shown."""
    kind = "as shown, 0…255"
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and one.dtype == other.dtype and one.dtype.kind in "buif":
        kind = str(one.dtype)
    else:
        one, other = pixels_of(one), pixels_of(other)
    if one is None or other is None:
        return {"text": "one of them is not a picture"}
    if one.ndim == other.ndim == 3 and one.shape[:2] == other.shape[:2] and 1 in (one.shape[2], other.shape[2]):
        one, other = np.broadcast_arrays(one, other)
    if one.shape != other.shape:
        shapes = " and ".join(f"[{', '.join(map(str, array.shape))}]" for array in (one, other))
        return {"text": f"shapes differ: {shapes}; where they lie on each other, B is as large as A"}
    delta = apart(one, other)
    largest = float(delta.max(initial=0.0))
    finite = math.isfinite(largest)
    return {
        "text": "",
        "kind": kind,
        "max": largest if finite else None,
        "mean": float(delta.mean()) if finite and delta.size else None,
        "share": float(np.mean(delta > 0)) if delta.size else 0.0,
        "at": [int(place) for place in np.unravel_index(int(delta.argmax()), delta.shape)] if largest else [],
    }
