"""`webdataset.writer`: `TarWriter` and `ShardWriter`, samples into tar shards, through the engine's writer.

A shard has its name when it is complete.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tarviz.formats.tenbin import encode_buffer
from tarviz.formats.tfrecord import Writable
from tarviz.model.errors import SchemaError, TarvizWarning, UsageError, require
from tarviz.model.types import URL, Buffer, to_bytes
from tarviz.outputs import TAR_END, Inputs, Names, Output, Packer, Packing, Written, packer, packing, tar_member
from tarviz.outputs.encoded import EncodedRecords, encode
from tarviz.stores import Whole

Encoder: TypeAlias = bool | Mapping[str, Callable[[Any], bytes]] | Callable[[dict[str, Any]], dict[str, Any]] | None

_HELD = 1 << 20  # bytes that wait before they are written
_PERCENT = re.compile(r"%(0?\d*)d")
_PACKINGS: dict[str, Packing] = {"gz": "gzip", "bz2": "bzip2", "xz": "xz", "zst": "zstd"}
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

    data = encode(partial(Encode, format=form, quality=100), ext, value, partial(_pixels, ext) if form in _PIXELS else None)
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
    msgpack = require("msgpack", "writing MessagePack")
    try:
        packed: bytes = msgpack.packb(data)
    except (TypeError, ValueError, OverflowError) as error:
        raise SchemaError(f"MessagePack cannot hold this value: {error}.") from error
    return packed


def tenbin_dumps(data: Any) -> bytes:
    """An array, or a list of arrays, as a `ten` field."""
    return encode_buffer(data if isinstance(data, list) else [data])


# By extension; a function that is put here writes the fields of its extension from then on, as with webdataset.
default_handlers: dict[str, Callable[[Any], bytes]] = {
    **{ext: partial(_encoded, ext, form) for ext, form in _FORMATS.items()},
    "npz": npz_dumps,
    **dict.fromkeys(("mp", "msg", "msgpack"), mp_dumps),
    **dict.fromkeys(("ten", "tenbin", "tb"), tenbin_dumps),
}


def numpy_dumps(data: Any) -> bytes:
    """An array as an npy file."""
    return encode_field("npy", data)


def torch_dumps(data: Any) -> bytes:
    """A value as `torch.save` writes it; for `encoder={"pth": torch_dumps}`."""
    import torch

    file = io.BytesIO()
    torch.save(data, file)
    return file.getvalue()


class TarWriter(Whole):
    """Writes samples to one tar: `with TarWriter("out.tar") as sink: sink.write({"__key__": "0001", "png": image, "cls": 7})`.

    `fileobj` is a path or URL, packed as its name (`.tar.gz`, `.tgz`, `.tar.bz2`, `.tar.xz`, `.tar.zst`) or `compress` says
    (True, "gz", "bz2", "xz", "zst"), which is there once `close` has completed it, or an open binary file. `encoder`: True
    encodes by extension, False takes bytes and text only, a dict has functions by extension, a function gets the sample.
    `mtime` is the time of the members, now when left out. `user`, `group` and `format` are taken for old code's sake: names
    of owners are not written, and long names are written as GNU tar does.

    `UsageError` for a sample that was read from the tar being written, as its `__url__` says.
    """

    def __init__(
        self,
        fileobj: str | os.PathLike[str] | Writable,
        user: str = "",
        group: str = "",
        mode: int = 0o444,
        compress: bool | str | None = None,
        encoder: Encoder = True,
        keep_meta: bool = False,
        mtime: float | None = None,
        format: Any = None,
    ) -> None:
        self.encoder = SampleEncoder(encoder, keep_meta, mtime, mode)
        self.size = len(TAR_END)  # bytes of tar so far
        self._waiting = EncodedRecords()
        self._output: Output | None = None
        self._stream: Writable | None = None
        self._packer: Packer | None = None
        self.written: Written | None = None
        if isinstance(fileobj, str | os.PathLike):
            url = URL(os.fspath(fileobj))
            self._output = Output(url, packing=_packing(url, compress), ending=TAR_END)
        elif hasattr(fileobj, "write"):
            self._stream = fileobj
            how = _packing("", compress)
            self._packer = packer(how) if how is not None else None
        else:
            raise UsageError(f"TarWriter writes to a path, a URL or an open file, got {type(fileobj).__name__}.")
        self._origin = ""  # what the last sample was read from
        self._open = True

    def write(self, obj: Mapping[str, Any]) -> int:
        """Add a sample: a member `key.ext` per field, sorted by name. Returns the bytes of its payloads."""
        if not self._open:
            raise UsageError("the tar is closed.")
        pieces, size = self.encoder.members(obj)
        origin = obj.get("__url__")
        if self._output is not None and isinstance(origin, str) and origin != self._origin:
            self._origin = origin
            Inputs([origin]).refuse(self._output.url)
        self.add(pieces)
        return size

    def add(self, pieces: list[Buffer]) -> None:
        """Add the members of one sample as they stand."""
        self._waiting.add(pieces)
        self.size += self._waiting.sizes[-1]
        if self._waiting.bytes >= _HELD:
            self._flush()

    def dwrite(self, key: str, /, **fields: Any) -> int:
        """`write` with fields as keywords, `_` standing for `.`: `dwrite("a", seg_png=mask)`."""
        return self.write({"__key__": key, **{name.replace("_", "."): value for name, value in fields.items()}})

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, EncodedRecords()
        if self._output is not None:
            self._output.write(waiting.buffers(), len(waiting.sizes))
        elif self._stream is not None:
            data = b"".join(waiting.buffers())
            self._stream.write(data if self._packer is None else self._packer.compress(data))

    def close(self) -> None:
        """Complete the tar, or drop it where that fails. Closing twice does nothing."""
        if not self._open:
            return
        self._open = False
        try:
            self._flush()
            if self._output is not None:
                self.written = self._output.commit()
            elif self._stream is not None:
                self._stream.write(TAR_END if self._packer is None else self._packer.compress(TAR_END) + self._packer.flush())
        except BaseException:
            self.abort()
            raise

    commit = close

    def abort(self) -> None:
        """Drop the tar: nothing is there under its name."""
        self._open = False
        if self._output is not None:
            self._output.abort()

    def __del__(self) -> None:
        if getattr(self, "_open", False):
            warnings.warn("a TarWriter was not closed: what it held is not written.", ResourceWarning, stacklevel=2)
            self.abort()


class ShardWriter(Whole):
    """Writes samples to shards that follow each other: `ShardWriter("out-%06d.tar", maxcount=10_000, maxsize=1e9)`.

    `pattern` counts with `%06d`, `{shard:06d}` (both from `start_shard`) or `{}` (from 1). A shard ends with its `maxcount`-th
    sample, or before the sample that would take it beyond `maxsize` bytes of tar, headers counted in. It is complete at that
    moment: it has its name, and `post` is called with it. An exception drops the shard that is open, those before it stay.
    There is no empty shard. `opener` opens outputs of your own by name. Other keywords are those of `TarWriter`.

    `UsageError` for a sample that was read from a shard that this pattern names, as its `__url__` says: before any of it is written.
    """

    def __init__(
        self,
        pattern: str,
        maxcount: int = 100_000,
        maxsize: float = 3e9,
        post: Callable[[str], Any] | None = None,
        start_shard: int = 0,
        verbose: int = 0,
        opener: Callable[[str], Any] | None = None,
        *,
        compress: bool | str | None = None,
        encoder: Encoder = True,
        keep_meta: bool = False,
        mtime: float | None = None,
        mode: int = 0o444,
        user: str = "",
        group: str = "",
        format: Any = None,
    ) -> None:
        for name, value in (("post", post), ("opener", opener)):
            if value is not None and not callable(value):
                raise UsageError(f"{name}={value!r} is not a function.")
        if maxcount < 1 or maxsize <= 0:
            raise UsageError(f"maxcount={maxcount!r} and maxsize={maxsize!r} must be more than 0.")
        self._names = Names(_PERCENT.sub(lambda match: f"{{shard:{match[1]}d}}", os.fspath(pattern)))
        if not self._names.counts:
            raise UsageError(f"the pattern {pattern!r} counts nothing.", hint="For example out-%06d.tar.")
        how = _packing(os.fspath(pattern), compress)
        self._compress = next((name for name, packed in _PACKINGS.items() if packed == how), False)
        self._encoder = SampleEncoder(encoder, keep_meta, mtime, mode)
        self.maxcount, self.maxsize, self.post, self.opener = int(maxcount), maxsize, post, opener
        self.tarstream: TarWriter | None = None
        self.shard = start_shard
        self.fname: str | None = None
        self.count = self.total = 0
        self.done: list[Written] = []
        self._start, self._origin = start_shard, ""  # the first number; what the last sample was read from
        self._open = True

    @property
    def size(self) -> int:
        """Bytes of tar in the shard that is open."""
        return self.tarstream.size if self.tarstream is not None else 0

    def write(self, obj: Mapping[str, Any]) -> None:
        """Add a sample, whole, to the shard that is open."""
        if not self._open:
            raise UsageError("the shards are closed.")
        pieces, _ = self._encoder.members(obj)
        origin = obj.get("__url__")
        if self.opener is None and isinstance(origin, str) and origin != self._origin:
            self._origin = origin
            Inputs([origin]).refuse_any(self._names, first=self._start)
        if self.tarstream is not None and self.tarstream.size + sum(map(len, pieces)) > self.maxsize:
            self.finish()
        if self.tarstream is None:
            self.next_stream()
        assert self.tarstream is not None
        self.tarstream.add(pieces)
        self.count += 1
        self.total += 1
        if self.count >= self.maxcount:
            self.finish()

    def next_stream(self) -> None:
        """Complete the shard that is open and begin the next."""
        self.finish()
        self.fname = self._names.at(self.shard)
        target = self.fname if self.opener is None else self.opener(self.fname)
        self.tarstream = TarWriter(target, compress=self._compress)
        self.shard += 1
        self.count = 0

    def finish(self) -> None:
        """Complete the shard that is open, if one is, and call `post` with its name."""
        tar, self.tarstream = self.tarstream, None
        if tar is None:
            return
        tar.close()
        if tar.written is not None:
            self.done.append(tar.written)
        if self.post is not None and self.fname is not None:
            self.post(self.fname)

    def close(self) -> None:
        """Complete the last shard. Closing twice does nothing."""
        self._open = False
        self.finish()

    commit = close

    def abort(self) -> None:
        """Drop the shard that is open; those before it stay."""
        self._open = False
        tar, self.tarstream = self.tarstream, None
        if tar is not None:
            tar.abort()


def _packing(name: str, compress: bool | str | None) -> Packing | None:
    """How a tar is packed, by the argument, or else by the name."""
    if compress is None:
        return "gzip" if name.endswith("gz") else packing(name)
    if compress is False:
        return None
    if (how := _PACKINGS.get("gz" if compress is True else str(compress))) is None:
        raise UsageError(f"compress={compress!r} is not one of True, False, {', '.join(map(repr, _PACKINGS))}.")
    return how
