"""`webdataset.writer`: `TarWriter` and `ShardWriter`, samples into tar shards, through the engine's writer.

A shard has its name when it is complete.
"""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from tarviz.dialects.webdataset.parts.encoders import Encoder, SampleEncoder, encode_field
from tarviz.dialects.webdataset.parts.encoders import default_handlers as default_handlers
from tarviz.formats.tfrecord import Writable
from tarviz.model.errors import UsageError
from tarviz.model.types import URL, Buffer
from tarviz.outputs import TAR_END, Inputs, Names, Output, Packer, Packing, Written, packer, packing
from tarviz.stores import Whole

_HELD = 1 << 20  # bytes that wait before they are written
_PERCENT = re.compile(r"%(0?\d*)d")
_NUMBER = re.compile(r"\d{1,18}")
_PACKINGS: dict[str, Packing] = {"gz": "gzip", "bz2": "bzip2", "xz": "xz", "zst": "zstd"}


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
        self._pieces: list[Buffer] = []
        self._waiting = [0, 0]  # samples and bytes in `_pieces`
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
        count = sum(map(len, pieces))
        self._pieces += pieces
        self._waiting = [self._waiting[0] + 1, self._waiting[1] + count]
        self.size += count
        if self._waiting[1] >= _HELD:
            self._flush()

    def dwrite(self, key: str, /, **fields: Any) -> int:
        """`write` with fields as keywords, `_` standing for `.`: `dwrite("a", seg_png=mask)`."""
        return self.write({"__key__": key, **{name.replace("_", "."): value for name, value in fields.items()}})

    def _flush(self) -> None:
        (count, size), pieces = self._waiting, self._pieces
        self._pieces, self._waiting = [], [0, 0]
        # One buffer where members are short: fewer calls.
        buffers = [b"".join(pieces)] if size < 8192 * len(pieces) else pieces
        if self._output is not None:
            self._output.write(buffers, count)
        elif self._stream is not None:
            data = b"".join(buffers)
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
            self._refuse(origin)
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

    def _refuse(self, origin: str) -> None:
        """`UsageError` when a shard that samples come from is one that is written, now, before or later."""
        self._origin = origin
        near = {int(digits) - less for digits in _NUMBER.findall(origin) for less in (0, 1)}
        for number in near | {self.shard, self.shard - 1}:
            if number >= self._start:
                Inputs([origin]).refuse(self._names.at(number))

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
