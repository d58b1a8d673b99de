"""Values from payloads, by the kind their extension names: picture, sound, film, text, JSON, class, arrays, objects, tables, gz.

Nothing here runs code from the data: pickles are refused unless they are named, array headers are checked
against the bytes that are there, and compressed data may not grow without limit.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle
import re
import zipfile
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tarviz.formats import npy, sniff
from tarviz.formats.compression import RATIO_FLOOR
from tarviz.model.config import options
from tarviz.model.errors import DataError, LimitError
from tarviz.model.types import Buffer
from tarviz.ops.values.films import ANIMATIONS, FILMS, WHOLE, Cut, decode_film
from tarviz.ops.values.sounds import SOUNDS, Heard, decode_sound
from tarviz.ops.values.structured import READERS, decode_structured

Kind: TypeAlias = Literal[
    "picture", "sound", "film", "text", "json", "jsonl", "class", "npy", "npz", "structured", "gz", "pickle", "unknown"
]

PICTURES = (
    "jpg", "jpeg", "jpe", "jfif", "png", "gif", "bmp", "webp", "tif", "tiff", "ppm", "pgm", "pbm", "pnm",
    "avif", "jp2", "j2k", "jpx", "jxl",
)  # fmt: skip
_DRAWN = ("exr", "pfm", "flo", "pdf", "apng")  # decoded as pictures are, and no other name for a photo
CLASSES = ("cls", "cls2", "class", "index", "id", "count")
_TEXTS = ("txt", "text", "transcript", "md", "htm", "html", "xml", "svg", "log", "srt", "vtt")
_PICKLES = ("pkl", "pickle", "pyd", "pck", "pth", "pt", "ckpt", "joblib", "dill")
_STRUCTURED = {ending: name for name, reader in READERS.items() for ending in reader.endings}
_KINDS: dict[str, Kind] = {
    **dict.fromkeys((*PICTURES, *_DRAWN), "picture"),
    **dict.fromkeys(SOUNDS, "sound"),
    **dict.fromkeys(FILMS, "film"),
    **dict.fromkeys(_STRUCTURED, "structured"),
    **dict.fromkeys(CLASSES, "class"),
    **dict.fromkeys(_TEXTS, "text"),
    **dict.fromkeys(_PICKLES, "pickle"),
    "json": "json",
    "jsn": "json",
    "jsonl": "jsonl",
    "npy": "npy",
    "npz": "npz",
    "gz": "gz",
}
_MAGIC: dict[Kind, tuple[bytes, ...]] = {  # JPEG, PNG, GIF, BMP, PDF, JPEG 2000 and its stream alone, JPEG XL, EXR, FLO, TIFF
    "picture": (
        b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"BM", b"%PDF-", b"\0\0\0\x0cjP  ", b"\xffO\xffQ", b"\0\0\0\x0cJXL ",
        b"v/1\x01", b"PIEH", b"II*\0", b"MM\0*",
    ),
    "npy": (b"\x93NUMPY",),
    "sound": (b"fLaC", b"OggS", b"ID3"),
    "film": (b"\x1aE\xdf\xa3",),
    "gz": (b"\x1f\x8b",),
}  # fmt: skip
_RIFF: dict[bytes, Kind] = {b"WEBP": "picture", b"WAVE": "sound", b"AVI ": "film"}
_STEP = 1 << 20
_WHOLE = re.compile(rb"[+-]?[0-9]{1,20}")


def kind_of(ext: str, data: Buffer | None = None) -> Kind:
    """The kind of a field: by the last part of its extension, else by the first bytes of `data`.

    >>> kind_of("seg.png"), kind_of("image", b"\\xff\\xd8\\xff\\xe0"), kind_of("mp4")
    ('picture', 'picture', 'film')
    """
    kind = _KINDS.get(ext.lower().rpartition(".")[2])
    if kind is not None or data is None:
        return kind or "unknown"
    head = bytes(data[:64])
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12], "unknown")
    if head[4:8] == b"ftyp":
        found = sniff.kind(head)
        return "picture" if found == "AVIF" else "unknown" if found == "HEIC" else "film"
    return next((kind for kind, magics in _MAGIC.items() if head.startswith(magics)), "unknown")


@dataclass(frozen=True, slots=True)
class Wish:
    """What a chain asks of a payload, beyond its kind: the options of the op `decode`, with their defaults."""

    channels: int = 3
    orient: bool = False
    least: tuple[int, int] | None = None
    dtype: str | None = None
    page: int = 0
    rate: int | None = None
    mono: bool = False
    cut: Cut = WHOLE
    unsafe: Collection[str] = ()


def decode_payload(ext: str, data: Buffer, wish: Wish = Wish()) -> Any:
    """The value of a field's payload.

    Pictures become an array [h, w, channels] (`raster.decode_picture`), sound float32 [samples, channels] (`sounds.decode_sound`), films
    uint8 [frames, h, w, 3] (`films.decode_film`), text `str` (UTF-8, byte order mark dropped), JSON its tree, class fields a number of
    `wish.dtype` (int64), `npy` an array, `npz` a dict of arrays, what `structured.READERS` names its tree or columns; `….gz` is
    unpacked and then decoded by the rest of its name. `wish.unsafe` names the extensions whose pickles may be loaded, which lets the
    data run any code.

    Errors: `E_DECODE`, `E_LIMIT`, `E_IMAGE_TOO_LARGE`, `E_UNSAFE_DECODER`, with the field in `details`; `E_MISSING_PACKAGE`.
    """
    try:
        return _decode(ext, data, wish)
    except DataError as error:
        error.details.setdefault("field", ext)
        raise


def sound_of(ext: str, data: Buffer, wish: Wish) -> Heard:
    """The sound of a payload, of a film too, with its sample rate; errors as `decode_payload` has them."""
    try:
        return decode_sound(data, rate=wish.rate, mono=wish.mono, start=wish.cut.start, seconds=wish.cut.seconds)
    except DataError as error:
        error.details.setdefault("field", ext)
        raise


def _decode(ext: str, data: Buffer, wish: Wish) -> Any:
    last = ext.lower().rpartition(".")[2]
    match kind_of(ext, data):
        case "picture" if wish.cut != WHOLE and last in ANIMATIONS:
            return decode_film(data, wish.cut, least=wish.least)
        case "picture":
            return _picture(data, wish)
        case "sound":
            return sound_of(ext, data, wish).samples
        case "film":
            return decode_film(data, wish.cut, least=wish.least)
        case "class":
            return decode_class(data, wish.dtype or "int64")
        case "text":
            return decode_text(data)
        case "json":
            return decode_json(data)
        case "jsonl":
            return [decode_json(line) for line in bytes(data).splitlines() if line.strip()]
        case "npy":
            return decode_npy(data)
        case "npz":
            return decode_npz(data)
        case "structured":
            return decode_structured(_STRUCTURED[last], data)
        case "gz":
            inner = ext.rpartition(".")[0] if "." in ext else ""
            plain = gunzip(data)
            return _decode(inner, plain, wish) if inner else plain
        case "pickle":
            return _unpickle(ext, data, wish.unsafe)
        case _:
            return _decode_unnamed(ext, data, wish)


def _picture(data: Buffer, wish: Wish) -> NDArray[Any]:
    from tarviz.ops.values.raster import decode_picture

    return decode_picture(data, channels=wish.channels, orient=wish.orient, least=wish.least, dtype=wish.dtype, page=wish.page)


def _decode_unnamed(ext: str, data: Buffer, wish: Wish) -> NDArray[Any]:
    """A picture under a name that says nothing, of a format that `kind_of` does not know by its first bytes."""
    try:
        return _picture(data, wish)
    except DataError as error:
        if error.code != "E_DECODE" or error.hint:
            raise
        known = ", ".join(sorted(_KINDS))
        from tarviz.ops.values.pictures import describe

        message = f"there is no decoder for {ext!r}: {describe(data)}."
        raise DataError(message, code="E_DECODE", hint=f"Decoders: {known}. A Func can read others.") from error


def decode_class(data: Buffer, dtype: str = "int64") -> Any:
    """The number of a class field: ASCII decimal, white space around it allowed, inside the range of `dtype`.

    >>> int(decode_class(b"7\\n"))
    7
    """
    text = bytes(data[:64]).strip() if len(data) <= 64 else b""
    if _WHOLE.fullmatch(text) is None:
        raise DataError(f"{_quote(data)} is not a whole number.", code="E_DECODE")
    number, limits = int(text), np.iinfo(dtype)
    if not limits.min <= number <= limits.max:
        raise DataError(f"{number} is outside the range of {dtype}.", code="E_DECODE")
    return np.dtype(dtype).type(number)


def decode_text(data: Buffer) -> str:
    """UTF-8 text; a byte order mark at its beginning is dropped."""
    try:
        return bytes(data).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"this is not UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}.", code="E_DECODE") from error


def decode_json(data: Buffer) -> Any:
    """A JSON tree (UTF-8, UTF-16 or UTF-32). NaN and Infinity are read; of a name that comes twice the last value counts."""
    try:
        return json.loads(bytes(data))
    except RecursionError as error:
        raise DataError("the JSON is nested too deeply.", code="E_DECODE") from error
    except ValueError as error:
        raise DataError(f"this is not JSON: {error}.", code="E_DECODE") from error


def decode_npy(data: Buffer) -> NDArray[Any]:
    """The array of an npy file, in memory of its own and this machine's byte order; errors as `npy.array_of` has them."""
    array = npy.array_of(data)
    return array.astype(array.dtype.newbyteorder("="), order="K")


def decode_npz(data: Buffer) -> dict[str, NDArray[Any]]:
    """The arrays of an npz file by name; how far it may expand is limited as for gz."""
    limit = _room(len(data))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if len(entries) > 10_000 or sum(entry.file_size for entry in entries) > limit:
                raise _bomb(len(data), limit)
            return {
                entry.filename.removesuffix(".npy"): decode_npy(_read_entry(archive, entry))
                for entry in entries
                if entry.filename.endswith(".npy")
            }
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, ValueError, zlib.error) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"the npz archive is damaged: {error}.", code="E_DECODE") from error


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    with archive.open(entry) as stream:
        content = stream.read(entry.file_size + 1)
    if len(content) != entry.file_size:
        raise DataError(f"{entry.filename} in the npz archive does not have the size it claims.", code="E_DECODE")
    return content


def gunzip(data: Buffer) -> bytes:
    """The plain bytes of a gzip payload, several gzip members allowed.

    `E_LIMIT` above the `max_member_bytes` and `max_ratio` options; the first 64 MiB are always allowed.
    """
    limit, total = _room(len(data)), 0
    parts: list[bytes] = []
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while part := file.read(_STEP):
                parts.append(part)
                total += len(part)
                if total > limit:
                    raise _bomb(len(data), limit)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"the gzip payload is damaged: {error}.", code="E_DECODE") from error
    return b"".join(parts)


def _room(size: int) -> int:
    """How many bytes `size` compressed bytes may become."""
    allowed = options()
    return min(allowed.max_member_bytes, max(RATIO_FLOOR, size * allowed.max_ratio))


def _bomb(size: int, limit: int) -> LimitError:
    return LimitError(
        f"{size} compressed bytes expand to more than {limit} bytes.",
        hint="The options max_ratio and max_member_bytes set the limit.",
        details={"limit": limit},
    )


def _unpickle(ext: str, data: Buffer, unsafe: Collection[str]) -> Any:
    last = ext.lower().rpartition(".")[2]
    if ext not in unsafe and last not in unsafe:
        raise DataError(
            f"{ext!r} is a pickle of {len(data)} bytes, which can run any code when loaded; it was not.",
            code="E_UNSAFE_DECODER",
            hint=f'If you trust its origin, name it: unsafe=["{ext}"].',
        )
    try:
        return pickle.loads(data)  # noqa: S301  the user named this field
    except Exception as error:  # a pickle may raise anything
        raise DataError(f"the pickle cannot be loaded: {type(error).__name__}: {error}.", code="E_DECODE") from error


def _quote(data: Buffer) -> str:
    text = bytes(data[:40]).decode("ascii", "backslashreplace")
    return f"{text!r}{'…' if len(data) > 40 else ''}"
