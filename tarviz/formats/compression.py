"""Compressed streams, told by their first bytes and never by a name: gzip, bzip2, xz, zstd.

Every stream is read to its end, several members or streams one after the other included, and its check sums are
compared; a stream that stops early is an error (CPython's `tarfile` in stream mode passes over it in silence).
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any, Protocol

from tarviz.model.errors import DataError, LimitError, require

_gzip: Any
try:
    from isal import isal_zlib as _gzip
except ImportError:  # no wheel for this machine: the standard library, at half the speed
    _gzip = zlib

_DAMAGE: tuple[type[Exception], ...] = (zlib.error, _gzip.error, OSError, lzma.LZMAError, EOFError, ValueError)

CHUNK = 256 << 10
# zstandard cannot bound what one call gives, and 4 bytes may stand for 128 KiB (RFC 8878 §3.1.1.2.3): small bites.
BITE = 2 << 10
RATIO_FLOOR = 64 << 20  # bytes that may come out in a row at more than the ratio: empty masks and arrays are no bomb
_MEASURED = 1 << 20  # bytes by which the ratio is taken

MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


class ByteSource(Protocol):
    """What bytes come from: a store's stream, a file, another reader."""

    def readinto(self, buffer: memoryview, /) -> int: ...


def kind(head: bytes) -> str | None:
    """`gzip`, `bzip2`, `xz`, `zstd`, or None for bytes of no compression known.

    >>> kind(b"\\x1f\\x8b\\x08"), kind(b"abc")
    ('gzip', None)
    """
    return next((name for magic, name in MAGIC.items() if head.startswith(magic)), None)


class Inflater:
    """A source of inflated bytes over a source of compressed ones.

    `ratio` is the most bytes that may come out for each that went in, over 64 MiB in a row; `memory` the most that xz may work with.
    `compressed` counts the bytes taken so far. Trailing bytes that are not a further stream are left, with `trailing` set to their
    place.
    """

    def __init__(
        self,
        source: ByteSource,
        how: str,
        head: bytes = b"",
        *,
        ratio: int | None = None,
        memory: int | None = None,
        shard: str | None = None,
    ) -> None:
        self._source = source
        self._how = how
        self._new, self._damage = _decoders(how, memory)
        self._decoder = self._new()
        self._pending = head
        self._chunk = bytearray(CHUNK)
        self._ratio = ratio
        self._shard = shard
        self._begun = bool(head)
        self._dry = False
        self._left = memoryview(b"")
        self._begin = (0, 0)  # compressed and inflated bytes where the ratio is taken from
        self.compressed = len(head)
        self.inflated = 0
        self.trailing: int | None = None

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill `buffer` as far as one step of inflation reaches; 0 at the end."""
        while not self._left:
            if self.trailing is not None:
                return 0
            if self._decoder is None and not self._next_stream():
                return 0
            piece = self._step()
            if piece is None:
                return 0
            self._left = memoryview(piece)
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count

    def _fill(self) -> bool:
        """More compressed bytes into `_pending`; False when there are none."""
        if self._dry:
            return False
        count = self._source.readinto(memoryview(self._chunk))
        if count == 0:
            self._dry = True
            return False
        self.compressed += count
        self._pending = self._pending + bytes(self._chunk[:count]) if self._pending else bytes(self._chunk[:count])
        return True

    def _step(self) -> bytes | None:
        if not self._pending and not self._needs_no_input() and not self._fill():
            if not self._begun:
                return None
            what = f"ends early, after {self.compressed} compressed bytes"
            raise self._fault("E_TRUNCATED_COMPRESSED", what, "Fetch it again; it was not transferred whole.")
        self._begun = True
        data, self._pending = self._pending, b""
        if self._how == "zstd":
            data, self._pending = data[:BITE], data[BITE:]
        elif self._how in ("bzip2", "xz"):  # these keep what they were given: in small bites it is known what went in
            bite = 0 if self._needs_no_input() else 2 * BITE
            data, self._pending = data[:bite], data[bite:]
        tail = getattr(self._decoder, "unconsumed_tail", b"")  # of gzip and zlib
        most = () if self._how == "zstd" else (4 * CHUNK,)
        try:
            piece: bytes = self._decoder.decompress(tail + data, *most)
        except self._damage as error:
            what = f"is damaged near compressed byte {self.compressed} ({error})"
            raise self._fault("E_CORRUPT_COMPRESSED", what, "Fetch it again or ask whoever wrote it.") from error
        self.inflated += len(piece)
        if self._ratio:
            self._measure(self._ratio)
        if self._decoder.eof:
            self._pending = self._decoder.unused_data + self._pending
            self._decoder = None
        return piece

    def _measure(self, ratio: int) -> None:
        """Refuse what expands beyond the ratio for long; where it does not, the count begins anew."""
        taken = self.compressed - len(self._pending) - len(getattr(self._decoder, "unconsumed_tail", b""))
        went_in, came_out = taken - self._begin[0], self.inflated - self._begin[1]
        large = came_out > ratio * went_in
        if large and came_out > RATIO_FLOOR:
            raise LimitError(
                f"{self.compressed} compressed bytes gave {self.inflated}, most recently more than {ratio} to 1.",
                shard=self._shard,
                compressed_offset=self.compressed,
                hint="A decompression bomb? If you trust it, raise max_ratio.",
            )
        if came_out >= _MEASURED and not large:
            self._begin = taken, self.inflated

    def _needs_no_input(self) -> bool:
        return bool(getattr(self._decoder, "unconsumed_tail", b"")) or getattr(self._decoder, "needs_input", True) is False

    def _next_stream(self) -> bool:
        """Begin the stream after the one that ended; False at the end of the bytes or before trailing ones."""
        longest = 6
        while len(self._pending) < longest and self._fill():
            pass
        if self._how == "xz":  # stream padding: zeros, a multiple of four
            while self._pending[:4] == b"\0\0\0\0":
                self._pending = self._pending[4:]
                while len(self._pending) < longest and self._fill():
                    pass
        if not self._pending:
            return False
        if kind(self._pending) != self._how:
            if self._pending.strip(b"\0") or self._fill():
                self.trailing = self.compressed - len(self._pending)
            return False
        self._decoder = self._new()
        return True

    def _fault(self, code: str, what: str, hint: str) -> DataError:
        return DataError(f"the {self._how} stream {what}.", code=code, shard=self._shard, compressed_offset=self.compressed, hint=hint)


class _Gzip:
    """One gzip member. Header and trailer are parsed here, so that data is yielded before its CRC is verified.

    Source: RFC 1952 §2.3.
    """

    def __init__(self) -> None:
        self._raw: Any = None  # the deflate stream after the header
        self._tail = b""  # bytes of a header or trailer that is not there whole yet
        self._crc = 0
        self._size = 0
        self.eof = False
        self.unused_data = b""
        self.unconsumed_tail = b""

    def decompress(self, data: bytes, limit: int) -> bytes:
        if self._raw is None:
            self._tail += data
            length = _header_length(self._tail)
            if length is None:
                return b""
            data, self._tail = self._tail[length:], b""
            self._raw = _gzip.decompressobj(-15)
        piece: bytes = b""
        if not self._raw.eof:
            piece = self._raw.decompress(data, limit)
            self.unconsumed_tail = self._raw.unconsumed_tail
            self._crc = _gzip.crc32(piece, self._crc)
            self._size = (self._size + len(piece)) & 0xFFFFFFFF
            if not self._raw.eof:
                return piece
            self.unconsumed_tail, data = b"", self._raw.unused_data
        self._tail += data
        if len(self._tail) >= 8 and not piece:  # what was inflated goes out first
            crc, size = int.from_bytes(self._tail[:4], "little"), int.from_bytes(self._tail[4:8], "little")
            if (crc, size) != (self._crc, self._size):
                raise ValueError("check sum or length in the trailer is wrong")
            self.eof, self.unused_data = True, self._tail[8:]
        return piece

    @property
    def needs_input(self) -> bool:
        return not (len(self._tail) >= 8 and self._raw is not None and self._raw.eof)


def _header_length(data: bytes) -> int | None:
    """Bytes of the gzip header at the front of `data`; None while it is not there whole."""
    if len(data) < 10:
        return None
    if data[2] != 8:
        raise ValueError(f"compression method {data[2]}, not deflate")
    flags, at = data[3], 10
    if flags & 4:
        if len(data) < at + 2:
            return None
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for flag in (8, 16):
        if flags & flag:
            end = data.find(b"\0", at)
            if end < 0:
                if len(data) > 1 << 20:
                    raise ValueError("an unterminated name in the header")
                return None
            at = end + 1
    at += 2 if flags & 2 else 0
    return at if len(data) >= at else None


def _decoders(how: str, memory: int | None) -> tuple[Callable[[], Any], tuple[type[Exception], ...]]:
    """A maker of decoders, and the errors they raise at damage."""
    if how != "zstd":
        makers: dict[str, Callable[[], Any]] = {
            "gzip": _Gzip,
            "zlib": lambda: _gzip.decompressobj(15),  # TFRecord only: two bytes tell it, too few to go by for a tar
            "bzip2": bz2.BZ2Decompressor,
            "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memory),
        }
        return makers[how], _DAMAGE
    zstandard = require("zstandard", "Reading .zst", "fast")
    return lambda: zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj(), (*_DAMAGE, zstandard.ZstdError)
