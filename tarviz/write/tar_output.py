"""What the tar tools write: one tar, its bytes copied while the next ones are looked for, whole or not there.

Ranges of plain files go from file to file inside the kernel; names that end in gz, zst, bz2 or xz are packed.
"""

from __future__ import annotations

import bz2
import lzma
import os
from collections.abc import Sequence
from itertools import cycle
from types import ModuleType, TracebackType
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tarviz import stores
from tarviz.formats.tar_header import TAR_END
from tarviz.model.errors import ChangedError, MissingPackageError, redact
from tarviz.model.types import URL, Buffer
from tarviz.read.spans import Batch, Source, ranges
from tarviz.stores import Sink, Stat
from tarviz.write import piped
from tarviz.write.behind import Behind
from tarviz.write.inputs import Inputs

_deflate: ModuleType
try:
    from isal import isal_zlib as _deflate
except ImportError:  # no wheel for this machine
    import zlib as _deflate

_BLOCK = 512
_GATHER = 16 << 10  # bytes: pieces smaller than this on average are gathered into one buffer
_AT_ONCE = 8 << 20  # bytes sent before an abort is looked for
_GZIP_LEVEL = 2


class Range(NamedTuple):
    """Bytes of a plain tar, to be copied from file to file."""

    source: Source
    begin: int
    end: int


class Picked(NamedTuple):
    """Many small ranges of plain tars, read into one buffer; one source for all of them, or one for each."""

    sources: list[Source]
    begin: list[int]
    end: list[int]
    size: int

    def read(self) -> bytearray:
        """The bytes; `ChangedError` when a file has grown shorter."""
        data = bytearray(self.size)
        view, at = memoryview(data), 0
        for source, begin, end in zip(cycle(self.sources), self.begin, self.end, strict=False):
            size = end - begin
            if os.preadv(source.fd, (view[at : at + size],), begin) != size:
                view[at : at + size] = source.read(begin, end)
            at += size
        return data


Piece: TypeAlias = Buffer | Range | Picked


def packing(url: str) -> str | None:
    """`gzip`, `zstd`, `bzip2`, `xz`, or None: what the name of an output asks for.

    >>> packing("a.tgz"), packing("a.tar.zst"), packing("a.tar")
    ('gzip', 'zstd', None)
    """
    name = (url if stores.is_local(url) else url.partition("?")[0]).lower()
    ends = {"gzip": (".gz", ".tgz"), "zstd": (".zst", ".tzst"), "bzip2": (".bz2", ".tbz2"), "xz": (".xz", ".txz")}
    return next((how for how, suffixes in ends.items() if name.endswith(suffixes)), None)


class _Packed(Sink):
    """A sink that packs what it is given."""

    def __init__(self, sink: Sink, how: str) -> None:
        self._sink = sink
        self._packer: Any = _packer(how)

    def write(self, data: Buffer, /) -> None:
        if packed := self._packer.compress(data):
            self._sink.write(packed)

    def commit(self) -> Stat:
        self._sink.write(self._packer.flush())
        return self._sink.commit()

    def abort(self) -> None:
        self._sink.abort()


def _packer(how: str) -> Any:
    if how == "gzip":
        return _deflate.compressobj(_GZIP_LEVEL, _deflate.DEFLATED, 31)  # 31: a gzip header and trailer (zlib.h)
    if how == "zstd":
        try:
            import zstandard
        except ImportError:
            raise MissingPackageError.of("zstandard", "Writing .zst", "fast") from None
        return zstandard.ZstdCompressor(level=3).compressobj()
    return bz2.BZ2Compressor() if how == "bzip2" else lzma.LZMACompressor(lzma.FORMAT_XZ, preset=1)


class Outlet:
    """One tar being written. Nothing has its name before `close`; `bytes` counts tar bytes, end mark included once closed.

    None of `inputs` is written. A thread of its own does the writing: what goes wrong there is raised by the next call. As a context
    manager it closes at the end, and aborts when an exception passes.
    """

    def __init__(self, url: str, *, inputs: Inputs) -> None:
        inputs.refuse(url)
        self.url = URL(url)
        how = None if piped.is_command(url) else packing(url)
        sink: Sink = piped.CommandSink(self.url) if piped.is_command(url) else stores.of(url).create(self.url)
        self._sink = _Packed(sink, how) if how else sink
        self.bytes = 0
        self.records = 0
        self.stat: Stat | None = None
        self._behind = Behind(self._do, name=f"writes {redact(url)}")

    def write(self, pieces: Sequence[Piece]) -> None:
        """Append pieces: bytes and ranges. They belong to the tar until it is settled: they may be written later."""
        self._put(pieces, sum(map(_size, pieces)))

    def copy(self, batch: Batch, begin: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        """Append the raw bytes `begin`…`end` (places in the tar, several of them) of a batch."""
        if not len(begin):
            return
        begin, end = ranges(begin, end)
        total = int((end - begin).sum())
        if batch.source is not None:
            self.pick([batch.source], begin, end)
            return
        base = batch.block.base
        whole = len(batch.block.data) // _BLOCK * _BLOCK
        if len(begin) > 1 and total < _GATHER * len(begin) and int(end[-1]) - base <= whole:
            self._put([_gathered(batch.block.array[:whole], begin - base, end - base)], total)
        else:
            self._put([batch.raw(a, b) for a, b in zip(begin.tolist(), end.tolist(), strict=True)], total)

    def pick(self, sources: list[Source], begin: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        """Append the bytes `begin`…`end` of plain tars, several of them: one source for all, or one for each."""
        total = int((end - begin).sum())
        if len(begin) > 1 and total < _GATHER * len(begin):
            self._put([Picked(sources, begin.tolist(), end.tolist(), total)], total)
        else:
            self._put([Range(*each) for each in zip(cycle(sources), begin.tolist(), end.tolist(), strict=False)], total)

    def _put(self, pieces: Sequence[Piece], size: int) -> None:
        self.bytes += size
        self._behind.put(pieces)

    def settle(self) -> None:
        """Wait until all that was given is written, so that the memory it is in may be used again."""
        self._behind.settle()

    def _do(self, pieces: Sequence[Piece]) -> None:
        held: list[Buffer] = []
        for piece in pieces:
            if isinstance(piece, Range):
                self._write(held)
                held = []
                self._send(piece)
            else:
                held.append(piece.read() if isinstance(piece, Picked) else piece)
        self._write(held)
        sources = [piece.source for piece in pieces if isinstance(piece, Range)]
        for source in set(sources).union(*(piece.sources for piece in pieces if isinstance(piece, Picked))):
            source.check()

    def _write(self, pieces: list[Buffer]) -> None:
        if len(pieces) == 1:
            self._sink.write(pieces[0])
        elif pieces:
            self._sink.writev(pieces)

    def _send(self, piece: Range) -> None:
        at = piece.begin
        while at < piece.end and not self._behind.stopping:
            wanted = min(piece.end - at, _AT_ONCE)
            if self._sink.send(piece.source.fd, at, wanted) < wanted:
                raise ChangedError("the file is shorter than its headers say.", shard=piece.source.url, offset=at)
            at += wanted

    def close(self) -> Stat:
        """Write the end mark, wait until all is written, and give the tar its name."""
        try:
            self.write([TAR_END])
            self._behind.finish()
            self.stat = self._sink.commit()
        except BaseException:
            self.abort()
            raise
        return self.stat

    def abort(self) -> None:
        """Drop what was written; a pipe gets no end mark."""
        self._behind.stop(self._sink.abort)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


def _size(piece: Piece) -> int:
    if isinstance(piece, Range):
        return piece.end - piece.begin
    return piece.size if isinstance(piece, Picked) else len(piece)


def _gathered(data: NDArray[np.uint8], begin: NDArray[np.int64], end: NDArray[np.int64]) -> memoryview:
    """Pieces of `data`, all of them multiples of 512 bytes, one behind the other in a buffer of their own."""
    first, count = begin // _BLOCK, (end - begin) // _BLOCK
    starts = np.cumsum(count) - count
    blocks = np.repeat(first - starts, count) + np.arange(int(count.sum()))
    return memoryview(data.reshape(-1, _BLOCK).take(blocks, axis=0).reshape(-1).data)
