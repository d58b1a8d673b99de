"""The columns of one shard, made in one pass over it."""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tarviz.looks.tones import shade
from tarviz.model.errors import DataError
from tarviz.model.types import URL, Buffer
from tarviz.ops.values.structured import decode_structured
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.table.alike import SIDE, cuts
from tarviz.table.columns import MAX_FIELDS, NAMES, Part, kind, small_of, text_of
from tarviz.table.making import headers
from tarviz.table.making.arrow_types import together
from tarviz.table.making.chunks import Chunk, chunks
from tarviz.table.making.json_columns import binary, payload_column, typed_json, unpack
from tarviz.table.making.json_structure import Structure
from tarviz.table.packages import pa, pc

if TYPE_CHECKING:
    from PIL import Image

GROWS = 1.0  # seconds after which a shard's first columns are shown
_HASH = (9, 8)  # pixels: each row of nine gives eight bits


@dataclass(slots=True)
class MadeColumns:
    """Columns of one shard, all of `records` rows, and what was met on the way."""

    records: int
    columns: dict[str, pa.Array]
    exts: list[str]
    structures: dict[str, Structure] = field(default_factory=dict)  # of fields that are JSON
    bad: dict[str, int] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    counts: dict[str, int] = field(default_factory=dict)


def _nothing(*_: object) -> None:
    """Nobody looks."""


def make_columns(
    url: URL,
    options: ReadOptions,
    parts: set[Part],
    *,
    look: Callable[[], None] = _nothing,
    grown: Callable[[Callable[[], MadeColumns]], None] = _nothing,
) -> MadeColumns:
    """The columns of `parts` for one shard. A damaged shard has the records that stand before the damage, and `error`.

    `look` is called between records and may raise. `grown` gets what makes the columns of the first records, after a second and then
    after twice as long each time; nobody waits for them where nobody looks.
    """
    report = ReadReport()
    pieces: dict[str, list[tuple[int, pa.Array]]] = {}
    exts: list[str] = []
    records, error = 0, None
    begin, after = time.monotonic(), GROWS
    try:
        for chunk in chunks(url, options, parts, report):
            exts += [ext for ext in chunk.exts if ext not in exts]
            for name, column in _columns(chunk, parts, look):
                pieces.setdefault(name, []).append((records, column))
            records += len(chunk)
            look()
            if grown is not _nothing and time.monotonic() - begin >= after:
                after *= 2
                grown(partial(_assemble, {name: [*parts] for name, parts in pieces.items()}, records, [*exts]))
    except DataError as found:
        error = found.at(shard=url).to_dict()
    return replace(_assemble(pieces, records, exts), error=error, counts=report.counts())


def columns_of(chunk: Chunk, parts: set[Part]) -> MadeColumns:
    """The columns of `parts` for some records alone."""
    pieces = {name: [(0, column)] for name, column in _columns(chunk, parts, _nothing)}
    return _assemble(pieces, len(chunk), list(chunk.exts))


def _assemble(pieces: dict[str, list[tuple[int, pa.Array]]], records: int, exts: list[str]) -> MadeColumns:
    """What was read of a shard, each column in one piece, JSON typed."""
    columns = {name: _whole(parts, records) for name, parts in pieces.items()}
    structures, bad = {}, {}
    for ext in [name for name in columns if kind(name) == "json"]:
        found = typed_json(columns[ext])
        structures[ext] = found.structure
        bad[ext] = found.bad.true_count
        columns |= {ext: found.column, f"{ext}.bad": found.bad, text_of(ext): found.texts}
    return MadeColumns(records, columns, exts[: MAX_FIELDS + 1], structures, bad)


def _whole(pieces: list[tuple[int, pa.Array]], records: int) -> pa.Array:
    """A column out of its pieces; nulls where a chunk had none of it."""
    parts, at = [], 0
    for first, column in pieces:
        if first > at:
            parts.append(pa.nulls(first - at))
        parts.append(column)
        at = first + len(column)
    if records > at:
        parts.append(pa.nulls(records - at))
    return together(parts)


def _columns(chunk: Chunk, parts: set[Part], look: Callable[[], None]) -> Iterator[tuple[str, pa.Array]]:
    if NAMES in parts:
        yield from _names(chunk)
    for part in sorted(parts - {NAMES}):
        rows, owners = chunk.members(part.ext)
        if not len(rows):
            continue
        if part.tier == "head":
            found = _heads(part.ext, chunk, rows, look)
        elif part.tier == "value":
            found = _values(part.ext, chunk.read(rows, None))
        else:
            whole = {"content": _contents, "quality": _quality, "vector": _vectors}[part.tier]
            found = whole(part.ext, _each(chunk.read(rows, None), look))
        for name, column in found:
            yield name, _spread(column, owners, len(chunk))


def _each(payloads: list[Buffer], look: Callable[[], None]) -> Iterator[Buffer]:
    for payload in payloads:
        look()
        yield payload


def _spread(column: pa.Array, owners: NDArray[np.int64], count: int) -> pa.Array:
    """A column of some records as one of all of them, null for the others."""
    if len(column) == count:
        return column
    place = np.full(count, -1, np.int64)
    place[owners] = np.arange(len(owners))
    return column.take(pa.array(place, mask=place < 0))


def _names(chunk: Chunk) -> Iterator[tuple[str, pa.Array]]:
    try:
        yield "key", pa.array(chunk.keys, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        yield "key", pa.array([key.decode("utf-8", "replace") for key in chunk.keys])
    yield "n", pa.array(np.arange(chunk.first, chunk.first + len(chunk), dtype=np.int64))
    yield "size", pa.array(np.add.reduceat(chunk.size, chunk.rows[:-1]) if len(chunk) else chunk.size[:0])
    for ext in chunk.exts[:MAX_FIELDS]:
        rows, owners = chunk.members(ext)
        yield f"{ext}.size", _spread(pa.array(chunk.size[rows]), owners, len(chunk))


def _values(ext: str, payloads: list[Buffer]) -> Iterator[tuple[str, pa.Array]]:
    if kind(ext) == "json":
        yield ext, payload_column(ext, payloads)
        return
    if ext.endswith(".gz"):
        payloads = [unpack(ext, payload) for payload in payloads]
    try:
        texts = binary(payloads).cast(pa.string())
    except pa.ArrowInvalid:
        texts = pa.array([_decode(bytes(payload)) for payload in payloads], pa.string())
    texts = pc.utf8_ltrim(texts, "\ufeff")  # a byte order mark
    yield ext, _numbers(texts) if kind(ext) == "number" else texts


def _decode(data: bytes) -> str:
    return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "replace")


def _numbers(texts: pa.Array) -> pa.Array:
    """Whole numbers, else numbers, else the texts themselves."""
    trimmed = pc.utf8_trim_whitespace(texts)
    trimmed = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)
    for wanted in (pa.int64(), pa.float64()):
        with suppress(pa.ArrowInvalid):
            return trimmed.cast(wanted)
    return trimmed


def _heads(ext: str, chunk: Chunk, rows: NDArray[np.int64], look: Callable[[], None]) -> Iterator[tuple[str, pa.Array]]:
    what = kind(ext)
    read = headers.READERS[what]
    sizes = chunk.size[rows].tolist()
    found = []
    for at, (data, size) in enumerate(zip(chunk.read(rows, headers.FIRST), sizes, strict=True)):
        look()
        seen = read(bytes(data), size)
        while isinstance(seen, int):
            (data,) = chunk.read(rows[at : at + 1], 2 * seen)
            seen = read(bytes(data), size)
        found.append(seen)
    types: dict[str, dict[str, pa.DataType]] = {
        "picture": {"width": pa.int32(), "height": pa.int32(), "mode": pa.string()},
        "sound": {"duration": pa.float64(), "rate": pa.float64()},
        "array": {"dtype": pa.string(), "shape": pa.list_(pa.int64())},
    }
    return _side_by_side(ext, found, types[what])


def _side_by_side(ext: str, found: list[Any], types: dict[str, pa.DataType]) -> Iterator[tuple[str, pa.Array]]:
    """A column for each thing that was found of a payload; None where nothing was."""
    for at, (name, wanted) in enumerate(types.items()):
        yield f"{ext}.{name}", pa.array([None if each is None else each[at] for each in found], wanted)


def _contents(ext: str, payloads: Iterable[Buffer]) -> Iterator[tuple[str, pa.Array]]:
    sums, seen = [], []
    for payload in payloads:
        sums.append(hashlib.blake2b(payload, digest_size=16).hexdigest())
        seen.append(_fingerprint(payload) if kind(ext) == "picture" else None)
    yield f"{ext}.checksum", pa.array(sums, pa.string())
    if kind(ext) == "picture":
        yield f"{ext}.decodable", pa.array([each is not None for each in seen])
        yield from _side_by_side(ext, seen, {"mean": pa.float64(), "phash": pa.uint64()})
        yield small_of(ext), pa.array([None if each is None else each[2] for each in seen], pa.binary())


def _quality(ext: str, payloads: Iterable[Buffer]) -> Iterator[tuple[str, pa.Array]]:
    """Of texts how many characters they have, of pictures how bright and how sharp they are."""
    if kind(ext) == "text":
        ((_, found),) = _values(ext, list(payloads))
        yield f"{ext}.length", pc.utf8_length(found).cast(pa.int64())
    else:
        yield from _side_by_side(ext, [*map(_light, payloads)], {"brightness": pa.float64(), "sharpness": pa.float64()})


def _light(payload: Buffer) -> tuple[float, float] | None:
    """The mean grey of a picture, 0…255, and the variance of its Laplacian, which is small where nothing is sharp (Pech-Pacheco 2000);
    None where it cannot be decoded."""
    if (picture := _grey(payload)) is None:
        return None
    grey = np.asarray(picture, np.float32)
    edges = grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:] - 4 * grey[1:-1, 1:-1]
    return float(grey.mean()), float(edges.var()) if edges.size else 0.0


def _vectors(ext: str, payloads: Iterable[Buffer]) -> Iterator[tuple[str, pa.Array]]:
    yield f"{ext}.vector", pa.array([_vector(ext, bytes(payload)) for payload in payloads], pa.list_(pa.float32()))


def _vector(ext: str, payload: bytes) -> NDArray[np.float32] | None:
    """The one array of numbers in a payload, as float32 in a row; None where there is none, or several."""
    try:
        if kind(ext) == "array":
            found = np.load(io.BytesIO(payload), allow_pickle=False)
        else:
            (found,) = decode_structured("safetensors", payload).values()
        return np.asarray(found, np.float32).ravel()
    except (ValueError, TypeError, OSError, EOFError, DataError):
        return None


def _grey(payload: Buffer) -> Image.Image | None:
    """A picture in grey, one of more than 8 bits from its least value to its greatest; None where it cannot be decoded."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(payload)) as image:
            image.load()
            if image.mode[0] in "IF":  # which `convert` cuts off at 255
                return Image.fromarray(shade(np.asarray(image), "min–max", "grey")[0]).convert("L")
            return image.convert("L")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def _fingerprint(payload: Buffer) -> tuple[float, int, bytes] | None:
    """Mean grey (0…255), difference hash and small grey pixels of the cuts of a picture; None where it cannot be decoded.

    The hash compares neighbours of the picture shrunk to 9 × 8 grey pixels: equal pictures of other size or quality differ in few bits.
    """
    from PIL import Image

    if (grey := _grey(payload)) is None:
        return None
    small = np.asarray(grey.resize(_HASH, Image.Resampling.BOX), np.int16)
    bits = np.packbits(small[:, 1:] > small[:, :-1])
    # HAMMING weighs pixels alike from both sides, where BOX takes or leaves them: a mirrored picture is shrunk to its mirror
    cut = (grey.resize((SIDE, SIDE), Image.Resampling.HAMMING, box=box).tobytes() for box in cuts(*grey.size))
    return float(small.mean()), int.from_bytes(bits.tobytes(), "big"), b"".join(cut)
