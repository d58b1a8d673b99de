"""Samples as the members of a tar: keys checked, fields encoded by extension."""

from __future__ import annotations

import gzip
import io
import json
import re
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import MissingPackageError, SchemaError, TarvizWarning, UsageError
from tarviz.model.types import Buffer, to_bytes
from tarviz.outputs import tar_member
from tarviz.outputs.encoded import array_of

Encoder: TypeAlias = bool | Mapping[str, Callable[[Any], bytes]] | Callable[[dict[str, Any]], dict[str, Any]] | None

_CLASSES = ("cls", "cls2", "class", "count", "index", "inx", "id")
_FORMATS = {
    **{ext: ext for ext in ("jpg", "jpeg", "png", "webp", "bmp", "ppm", "pgm", "tif", "tiff")},
    **dict.fromkeys(("img", "image"), "ppm"),
    **dict.fromkeys(_CLASSES, "cls"),
    **dict.fromkeys(("json", "jsn"), "json"),
    "npy": "npy",
}
_PIXELS = frozenset(_FORMATS.values()) - {"cls", "json", "npy"}
_PICKLES = frozenset({"pyd", "pkl", "pickle", "pth"})


class SampleEncoder:
    """Samples to tar members: checks the key, encodes each field, puts fields in order of their names."""

    def __init__(self, encoder: Encoder, keep_meta: bool, mtime: float | None, mode: int) -> None:
        if not (encoder is None or isinstance(encoder, bool | Mapping) or callable(encoder)):
            raise UsageError(
                f"encoder={encoder!r} is not an encoder.", hint="True, False, a dict of functions by extension, or a function."
            )
        self.encoder = encoder
        self.keep_meta = keep_meta
        self.mtime = mtime
        self.mode = mode
        self._before: str | None = None
        self._dotted = False

    def members(self, sample: Mapping[str, Any]) -> tuple[list[Buffer], int]:
        """The members of one sample, and the bytes of their payloads."""
        if not isinstance(sample, Mapping):
            raise UsageError(f"a sample is a dict, got {type(sample).__name__}.", hint='For example {"__key__": "0001", "png": image}.')
        key = sample.get("__key__")
        if not isinstance(key, str) or not key:
            raise UsageError(f"a sample needs a __key__, a text; it has {key!r}.")
        self._check_key(key)
        fields: Mapping[str, Any] = sample
        if callable(self.encoder) and not isinstance(self.encoder, bool | Mapping):
            fields = self.encoder(dict(sample))
        when = int(time.time() if self.mtime is None else self.mtime)
        pieces: list[Buffer] = []
        total = 0
        for ext in sorted(fields):
            if ext == "__key__" or (ext.startswith("_") and not self.keep_meta):
                continue
            data = self._encoded(key, ext, fields[ext])
            pieces += tar_member(f"{key}.{ext}", data, when, mode=self.mode)
            total += len(data)
        return pieces, total

    def _check_key(self, key: str) -> None:
        if key == self._before:
            raise UsageError(f"the key {key!r} comes twice in a row: readers would take it for one record.", key=key)
        self._before = key
        parts = re.split(r"[/\\]", key)
        if ".." in parts or parts[0] in ("", "~") or "\0" in key or re.match(r"[A-Za-z]:", parts[0]):
            raise UsageError(
                f"the key {key!r} leads out of the folder that a shard is unpacked into.",
                code="E_UNSAFE_NAME",
                key=key,
                hint="Keys are relative, without '..'.",
            )
        if "." in key.rpartition("/")[2] and not self._dotted:
            self._dotted = True
            text = f"W_DOTTED_KEY the key {key!r} has a dot in its base name: readers cut it there."
            warnings.warn(text, TarvizWarning, stacklevel=4)

    def _encoded(self, key: str, ext: str, value: Any) -> Buffer:
        if isinstance(value, str):
            value = to_bytes(value)
        plain = ext.removesuffix(".gz")
        if not isinstance(value, bytes | bytearray | memoryview):
            if self.encoder is None or self.encoder is False or ext.startswith("_"):
                raise SchemaError(f"the field {ext!r} is {type(value).__name__}, not bytes.", key=key)
            value = self._by_table(key, plain, value) if isinstance(self.encoder, Mapping) else encode_field(plain, value, key)
        # A copy of what is not bytes: it may change before it is written.
        return gzip.compress(value, mtime=0) if plain != ext else bytes(value)

    def _by_table(self, key: str, ext: str, value: Any) -> bytes:
        assert isinstance(self.encoder, Mapping)
        f = self.encoder.get(ext) or self.encoder.get(ext.rpartition(".")[2])
        data = encode_field(ext, value, key) if f is None else f(value)
        if not isinstance(data, bytes | bytearray | memoryview):
            raise SchemaError(f"the encoder of the field {ext!r} returned {type(data).__name__}, not bytes.", key=key)
        return bytes(data)


def encode_field(ext: str, value: Any, key: str | None = None) -> bytes:
    """A value as its extension says, by the op `encode`: images (PIL, NumPy uint8 or floats in 0…1), classes, JSON, npy,
    npz (a dict of arrays), MessagePack, ten (arrays).

    JPEG is written with quality 100. `SchemaError` names the field when there is no encoder or the value does not fit it.
    """
    last = ext.rpartition(".")[2].lower()
    encode = default_handlers.get(last)
    if encode is None:
        known = ", ".join(default_handlers)
        pickled = f" Pickles are not written by themselves: encoder={{{ext!r}: pickle.dumps}} does." if last in _PICKLES else ""
        raise SchemaError(
            f"there is no encoder for {ext!r}; it holds {type(value).__name__}.",
            hint=f"Give bytes, text, or encoder={{{ext!r}: f}}. There are {known}.{pickled}",
            key=key,
        )
    try:
        return encode(value)
    except SchemaError as error:
        raise error.at(key=key) from error.__cause__


def _encoded(ext: str, form: str, value: Any) -> bytes:
    """A value by the op `encode`."""
    from tarviz.ops import Encode

    data = Encode(ext, form, quality=100).apply(_pixels(ext, array_of(value)) if form in _PIXELS else array_of(value))
    # JSON as webdataset writes it: beyond ASCII in escapes.
    return json.dumps(json.loads(data)).encode() if form == "json" and not data.isascii() else data


def _pixels(ext: str, value: Any) -> NDArray[np.uint8]:
    """An image as uint8 [height, width, channels]."""
    if not isinstance(value, np.ndarray) or value.ndim not in (2, 3):
        raise SchemaError(f"the field {ext!r} expects an image (PIL or NumPy), got {type(value).__name__}.")
    image = value[:, :, None] if value.ndim == 2 else value
    if image.dtype.kind == "f":
        from tarviz.ops.convert import convert_image

        low, high = (float(image.min()), float(image.max())) if image.size else (0.0, 0.0)
        if not (low > -0.001 and high < 1.001):
            raise SchemaError(f"the field {ext!r} expects floats in 0…1, got {low:g}…{high:g}.")
        image = convert_image(np.clip(image, 0, 1), np.dtype(np.uint8))
    return image


def npz_dumps(data: Mapping[str, Any]) -> bytes:
    """A dict of arrays as an npz file, compressed."""
    if not isinstance(data, Mapping) or not all(isinstance(name, str) for name in data):
        raise SchemaError(f"npz holds a dict of arrays by name, not {type(data).__name__}.")
    arrays = {name: np.asarray(value) for name, value in data.items()}
    if held := [name for name, array in arrays.items() if array.dtype.hasobject]:
        raise SchemaError(f"the array {held[0]!r} holds Python objects, which npz can only pickle.")
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def mp_dumps(data: Any) -> bytes:
    """A value as MessagePack."""
    try:
        import msgpack  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise MissingPackageError.of("msgpack", "writing MessagePack") from error
    try:
        packed: bytes = msgpack.packb(data)
    except (TypeError, ValueError, OverflowError) as error:
        raise SchemaError(f"MessagePack cannot hold this value: {error}.") from error
    return packed


def tenbin_dumps(data: Any) -> bytes:
    """An array, or a list of arrays, as a `ten` field."""
    from tarviz.dialects.webdataset import tenbin

    return tenbin.encode_buffer(data if isinstance(data, list) else [data])


# By extension; a function that is put here writes the fields of its extension from then on, as with webdataset.
default_handlers: dict[str, Callable[[Any], bytes]] = {
    **{ext: partial(_encoded, ext, form) for ext, form in _FORMATS.items()},
    "npz": npz_dumps,
    **dict.fromkeys(("mp", "msg", "msgpack"), mp_dumps),
    **dict.fromkeys(("ten", "tenbin", "tb"), tenbin_dumps),
}
