"""`TarWriter` and `ShardWriter`: samples into tar shards, through the engine's writer: a shard has its name when it is complete."""

from __future__ import annotations

import gzip
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from tarviz.formats.tfrecord import Compression
from tarviz.model.errors import SchemaError, TarvizWarning, UsageError
from tarviz.model.types import URL, Buffer
from tarviz.write.output import TAR_END, Names, Output, Outputs, Written, tar_member

Encoder: TypeAlias = bool | Mapping[str, Callable[[Any], bytes]] | Callable[[dict[str, Any]], dict[str, Any]] | None

_HELD = 1 << 20  # bytes that wait before they are written
_CLASSES = ("cls", "cls2", "class", "count", "index", "inx", "id")
_FORMATS = {
    **{ext: ext for ext in ("jpg", "jpeg", "png", "webp", "bmp", "ppm", "pgm", "tif", "tiff")},
    **dict.fromkeys(("img", "image"), "ppm"),
    **dict.fromkeys(_CLASSES, "cls"),
    **dict.fromkeys(("json", "jsn"), "json"),
    "npy": "npy",
}
_PIXELS = frozenset(_FORMATS.values()) - {"cls", "json", "npy"}
_PERCENT = re.compile(r"%(0?\d*)d")


class Writable(Protocol):
    """An open binary file."""

    def write(self, data: bytes, /) -> object: ...


class Members:
    """Samples as tar members, ready for `writer.Outputs`."""

    def __init__(self) -> None:
        self.size: NDArray[np.int64] = np.empty(0, np.int64)  # tar bytes of each sample, once `closed`
        self._sizes: list[int] = []
        self._pieces: list[list[Buffer]] = []
        self.bytes = 0

    def closed(self) -> Members:
        """The same, ready to be written."""
        self.size = np.array(self._sizes, np.int64)
        return self

    def __len__(self) -> int:
        return len(self._sizes)

    def add(self, pieces: list[Buffer]) -> None:
        size = sum(map(len, pieces))
        self._sizes.append(size)
        self._pieces.append(pieces)
        self.bytes += size

    def buffers(self, first: int = 0, last: int | None = None) -> list[Buffer]:
        """What to write for the samples `first:last`: one buffer where they are short."""
        found = [piece for pieces in self._pieces[first:last] for piece in pieces]
        return [b"".join(found)] if sum(self._sizes[first:last]) < 8192 * len(found) else found


class SampleEncoder:
    """Samples to tar members: checks the key, encodes each field, puts fields in order of their names."""

    def __init__(self, encoder: Encoder, keep_meta: bool, mtime: float | None, mode: int) -> None:
        if not (encoder is None or isinstance(encoder, bool | Mapping) or callable(encoder)):
            raise UsageError(f"encoder={encoder!r} is no encoder.", hint="True, False, a dict of functions by extension, or a function.")
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
            value = value.encode("utf-8", "surrogateescape")
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
    """A value as its extension says, by the op `encode`: images (PIL, NumPy uint8 or floats in 0…1), classes, JSON, npy.

    JPEG is written with quality 100. `SchemaError` names the field when there is no encoder or the value does not fit it.
    """
    from tarviz.ops import Encode

    form = _FORMATS.get(ext.rpartition(".")[2].lower())
    if form is None:
        known = ", ".join(_FORMATS)
        raise SchemaError(
            f"there is no encoder for {ext!r}; it holds {type(value).__name__}.",
            hint=f"Give bytes, text, or encoder={{{ext!r}: f}}. There are {known}.",
            key=key,
        )
    if hasattr(value, "detach"):  # a torch tensor
        value = value.detach().cpu().numpy()
    try:
        return Encode(ext, form, quality=100).apply(_pixels(ext, value) if form in _PIXELS else value)
    except SchemaError as error:
        raise error.at(key=key) from error.__cause__


def _pixels(ext: str, value: Any) -> NDArray[np.uint8]:
    """An image as uint8 [height, width, channels]."""
    if hasattr(value, "convert") and hasattr(value, "mode"):  # PIL, which is not imported to ask
        value = np.asarray(value if value.mode in ("L", "RGB", "RGBA", "LA") else value.convert("RGB"))
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


class TarWriter:
    """Writes samples to one tar: `with TarWriter("out.tar") as sink: sink.write({"__key__": "0001", "png": image, "cls": 7})`.

    `fileobj` is a path or URL (`.tar.gz`, `.tgz`: gzip), which is there once `close` has completed it, or an open
    binary file. `encoder`: True encodes by extension, False takes bytes and text only, a dict has functions by extension,
    a function gets the sample. `mtime` is the time of the members, now when left out. `user`, `group` and `format` are
    taken for old code's sake: names of owners are not written, and long names are written as GNU tar does.
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
        self._encoder = SampleEncoder(encoder, keep_meta, mtime, mode)
        self._members = Members()
        self._output: Output | None = None
        self._stream: Writable | None = None
        self._packer: gzip.GzipFile | None = None
        self.written: Written | None = None
        if isinstance(fileobj, str | os.PathLike):
            url = URL(os.fspath(fileobj))
            self._output = Output(url, compression=packing(url, compress))
        elif hasattr(fileobj, "write"):
            self._stream = fileobj
            if packing("", compress):
                self._stream = self._packer = gzip.GzipFile(fileobj=cast("Any", fileobj), mode="wb", mtime=0)
        else:
            raise UsageError(f"TarWriter writes to a path, a URL or an open file, got {type(fileobj).__name__}.")
        self._open = True

    def write(self, obj: Mapping[str, Any]) -> int:
        """Add a sample: a member `key.ext` per field, sorted by name. Returns the bytes of its payloads."""
        if not self._open:
            raise UsageError("the tar is closed.")
        pieces, size = self._encoder.members(obj)
        self._members.add(pieces)
        if self._members.bytes >= _HELD:
            self._flush()
        return size

    def dwrite(self, key: str, /, **fields: Any) -> int:
        """`write` with fields as keywords, `_` standing for `.`: `dwrite("a", seg_png=mask)`."""
        return self.write({"__key__": key, **{name.replace("_", "."): value for name, value in fields.items()}})

    def _flush(self) -> None:
        members, self._members = self._members, Members()
        if self._output is not None:
            self._output.write(members.buffers(), len(members))
        elif self._stream is not None:
            self._stream.write(b"".join(members.buffers()))

    def close(self) -> None:
        """Complete the tar. Closing twice does nothing."""
        if not self._open:
            return
        self._open = False
        self._flush()
        if self._output is not None:
            self._output.write([TAR_END])
            self.written = self._output.commit()
        elif self._stream is not None:
            self._stream.write(TAR_END)
            if self._packer is not None:
                self._packer.close()

    def abort(self) -> None:
        """Drop the tar: nothing is there under its name."""
        self._open = False
        if self._output is not None:
            self._output.abort()

    def __del__(self) -> None:
        if getattr(self, "_open", False):
            warnings.warn("a TarWriter was not closed: what it held is not written.", ResourceWarning, stacklevel=2)
            self.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


class ShardWriter:
    """Writes samples to shards that follow each other: `ShardWriter("out-%06d.tar", maxcount=10_000, maxsize=1e9)`.

    `pattern` counts with `%06d`, `{shard:06d}` (both from `start_shard`) or `{}` (from 1). A shard ends before the sample that would
    take it beyond `maxcount` samples or `maxsize` bytes of tar, headers counted in. `post` is called with the name of each
    shard that is complete. There is no empty shard. Other keywords are those of `TarWriter`.
    """

    def __init__(
        self,
        pattern: str,
        maxcount: int = 100_000,
        maxsize: float = 3e9,
        post: Callable[[str], Any] | None = None,
        start_shard: int = 0,
        verbose: int = 0,
        *,
        compress: bool | str | None = None,
        encoder: Encoder = True,
        keep_meta: bool = False,
        mtime: float | None = None,
        mode: int = 0o444,
        user: str = "",
        group: str = "",
    ) -> None:
        if post is not None and not callable(post):
            raise UsageError(f"post={post!r} is no function.")
        names = Names(_PERCENT.sub(lambda match: f"{{shard:{match[1]}d}}", os.fspath(pattern)))
        if not names.counts:
            raise UsageError(f"the pattern {pattern!r} counts nothing.", hint="For example out-%06d.tar.")
        self._outputs = Outputs(
            names, maxsize, int(maxcount), compression=packing(os.fspath(pattern), compress), ending=TAR_END, start=start_shard
        )
        self._encoder = SampleEncoder(encoder, keep_meta, mtime, mode)
        self._members = Members()
        self._post = post
        self._told = 0
        self._open = True
        self.total = 0

    @property
    def done(self) -> Sequence[Written]:
        """The shards that are complete."""
        return self._outputs.done

    def write(self, obj: Mapping[str, Any]) -> int:
        """Add a sample, whole, to the shard that is open. Returns the bytes of its payloads."""
        if not self._open:
            raise UsageError("the shards are closed.")
        pieces, size = self._encoder.members(obj)
        self._members.add(pieces)
        self.total += 1
        if self._members.bytes >= _HELD or len(self._members) >= 1024:
            self._flush()
        return size

    def _flush(self) -> None:
        members, self._members = self._members, Members()
        if len(members):
            self._outputs.add(members.closed())
        self._tell()

    def _tell(self) -> None:
        for written in self._outputs.done[self._told :]:
            self._told += 1
            if self._post is not None:
                self._post(written.url)

    def close(self) -> None:
        """Complete the last shard. Closing twice does nothing."""
        if not self._open:
            return
        self._flush()
        self._open = False
        if self.total:
            self._outputs.finish()
        self._tell()

    def abort(self) -> None:
        """Drop the shard that is open; those before it stay."""
        self._open = False
        self._outputs.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


def packing(name: str, compress: bool | str | None) -> Compression | None:
    """gzip or nothing, by what is asked for or else by the name."""
    if compress is True or compress == "gz" or (compress is None and name.endswith(("gz",))):
        return "gzip"
    if compress in (None, False):
        if compress is None and name.endswith((".bz2", ".xz", ".zst")):
            raise UsageError(f"a tar is written plain or with gzip, not as {name.rpartition('.')[2]}.", hint="Name it .tar or .tar.gz.")
        return None
    raise UsageError(f"compress={compress!r} is not one of True, False, 'gz'.")
