"""TFRecord files: framing with masked CRC32C, written a batch at a time, read a block at a time.

A record is `uint64 length | uint32 masked CRC of length | payload | uint32 masked CRC of payload`, little endian.
Source: tensorflow/core/lib/io/record_writer.h. Reading is stricter than TensorFlow, which passes over a file cut
within a header and over a cut gzip stream without a word, and crashes on a length that lies.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from io import BytesIO
from itertools import chain
from typing import Any, Literal, Protocol, TypeAlias

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from tarviz.formats import sniff
from tarviz.formats.compression import ByteSource, Inflater
from tarviz.formats.compression import kind as _magic
from tarviz.formats.example_block import Examples
from tarviz.model import config
from tarviz.model.errors import DataError, LimitError, UsageError
from tarviz.model.types import Buffer, OnError

Compression: TypeAlias = Literal["gzip", "zlib"]

HEADER, FOOTER = 12, 4
FRAME = HEADER + FOOTER  # bytes that framing adds to a record
_BLOCK = 1 << 20
_TOGETHER, _TOGETHER_BYTES = 1024, 4 << 20  # records, and their bytes, that are framed and written at once
_DELTA = 0xA282EAD8
_LENGTH = struct.Struct("<QI")
_crc: Callable[[Any], int] = google_crc32c.value
_extend: Callable[[int, Any], int] = google_crc32c.extend


class Writable(Protocol):
    """What takes bytes in order: a file, a store's sink."""

    def write(self, data: Buffer, /) -> Any: ...


def crc32c(data: Buffer, start: int = 0) -> int:
    """CRC32C of `data`, or of what gave `start` with `data` after it; no copy is made."""
    # google_crc32c takes no memoryview or bytearray, but any NumPy array in one piece.
    return _extend(start, data if isinstance(data, bytes) else np.frombuffer(data, np.uint8)) if len(data) else start


def masked_crc32c(data: Buffer) -> int:
    """CRC32C of `data`, rotated and offset as TFRecord stores it.

    Source: tensorflow/core/lib/hash/crc32c.h, `Mask`.

    >>> hex(masked_crc32c(b"123456789"))
    '0xc78ab0e5'
    """
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + _DELTA) & 0xFFFFFFFF


@lru_cache(4096)
def _length_crc(length: int) -> int:
    """The masked CRC of a record's length."""
    return masked_crc32c(length.to_bytes(8, "little"))


def _mask(crcs: NDArray[np.uint32]) -> NDArray[np.uint32]:
    return ((crcs >> np.uint32(15)) | (crcs << np.uint32(17))) + np.uint32(_DELTA)


@cache
def _length_tables() -> tuple[int, NDArray[np.uint32]]:
    """The CRC of eight zeros, and what each byte value at each place changes in it: a CRC is linear over XOR."""
    zeros = _crc(bytes(8))
    rows = [[_crc(bytes(place) + bytes([value]) + bytes(7 - place)) ^ zeros for value in range(256)] for place in range(8)]
    return zeros, np.array(rows, np.uint32)


def _headers(size: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The headers of records of these sizes, uint8 [records, 12]."""
    zeros, tables = _length_tables()
    headers = np.empty((len(size), HEADER), np.uint8)
    headers[:, :8] = size.astype("<u8").view(np.uint8).reshape(-1, 8)
    crcs = np.full(len(size), zeros, np.uint32)
    for place in range(8 if len(size) and int(size.max()) >= 2**32 else 4):
        crcs ^= tables[place][headers[:, place]]
    headers[:, 8:] = _mask(crcs).astype("<u4").view(np.uint8).reshape(-1, 4)
    return headers


@dataclass(slots=True, eq=False)
class RecordFrames:
    """Records to be framed: `size` in bytes of each, frame included. They are framed when the buffers are taken."""

    size: NDArray[np.int64]
    _whole: Sequence[bytes] | None
    _pieces: Sequence[tuple[Buffer, ...]]

    def buffers(self, first: int = 0, last: int | None = None) -> list[Buffer]:
        """What to write for the records `first:last`, in order: one buffer where they are short. Long payloads are not copied."""
        whole = self._whole
        records: Sequence[Any] = (self._pieces if whole is None else whole)[first:last]
        crcs = np.fromiter(map(_crc_of_pieces if whole is None else _crc, records), np.uint32, len(records))
        edges = _edges(self.size[first:last] - FRAME, crcs)
        if whole is not None:
            flat: list[bytes] = [b""] * (2 * len(records) + 1)
            flat[0::2], flat[1::2] = edges, records
            return [b"".join(flat)]
        buffers: list[Buffer] = []
        for edge, pieces in zip(edges, records, strict=False):
            # An Example begins with bytes of its own, which are few: two buffers in one.
            buffers += [b"".join((edge, pieces[0])), *pieces[1:]]
        return [*buffers, edges[-1]]


def frame(records: Examples | Sequence[bytes]) -> RecordFrames:
    """Length and CRCs around each record. Long payloads are pointed at, not copied.

    >>> frame([b"abc"]).buffers()[0].hex()
    '0300000000000000b099490e6162636e57f121'
    """
    whole = records.whole if isinstance(records, Examples) else records
    size = records.size if isinstance(records, Examples) else np.fromiter(map(len, records), np.int64, len(records))
    return RecordFrames(size + FRAME, whole, records.pieces if isinstance(records, Examples) else ())


def together(records: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Records in lists to be framed and written at once; the last may be empty."""
    batch: list[bytes] = []
    size = 0
    for data in records:
        batch.append(data)
        size += len(data)
        if len(batch) >= _TOGETHER or size >= _TOGETHER_BYTES:
            yield batch
            batch, size = [], 0
    yield batch


def _crc_of_pieces(pieces: Iterable[Buffer]) -> int:
    crc = 0
    for piece in pieces:
        crc = crc32c(piece, crc)
    return crc


def _edges(size: NDArray[np.int64], crcs: NDArray[np.uint32]) -> list[bytes]:
    """What stands before, between and after records of these sizes and sums: the footer of one and the header of the next."""
    if not len(size):
        return [b""]
    table = np.zeros((len(size) + 1, FRAME), np.uint8)
    table[1:, :FOOTER] = _mask(crcs).astype("<u4").view(np.uint8).reshape(-1, FOOTER)
    table[:-1, FOOTER:] = _headers(size)
    edges = _cut(table, FRAME)
    return [edges[0][FOOTER:], *edges[1:-1], edges[-1][:FOOTER]]


def _cut(table: NDArray[np.uint8], width: int) -> list[bytes]:
    rows: list[bytes] = table.view(f"V{width}").ravel().tolist()
    return rows


def write(file: Writable, records: Iterable[bytes]) -> int:
    """Frame records and write them to an open binary file or sink; returns how many."""
    count = 0
    for batch in together(records):
        for buffer in frame(batch).buffers():
            file.write(buffer)
        count += len(batch)
    return count


def read(
    source: ByteSource | Buffer,
    *,
    shard: str | None = None,
    compression: Compression | Literal["auto"] | None = "auto",
    on_error: OnError = "raise",
    max_record_bytes: int | None = None,
) -> Reader:
    """The payloads of a TFRecord file, one after the other, each checked against its CRC.

    `source` is bytes, or anything with `readinto`: an open file, a store's stream. Compression is told by the first
    bytes (gzip of several members, zlib), whatever the name says, unless it is given. `shard` names the file in errors.

    Raises `DataError` after the last good record: `E_LENGTH_CRC` and `E_TRUNCATED` end the file; a payload that does
    not fit its CRC is `E_DATA_CRC`, and with `on_error="skip"` it is put into `.faults` and reading goes on after it.
    A record longer than `max_record_bytes` (None: the configured limit) is a `LimitError`.

    >>> [bytes(record) for record in read(frame([b"abc", b""]).buffers()[0])]
    [b'abc', b'']
    """
    if on_error not in ("raise", "skip"):
        raise UsageError(f"on_error={on_error!r} is not one of raise, skip.")
    if compression not in ("auto", None, "gzip", "zlib"):
        raise UsageError(f"compression={compression!r} is not one of auto, gzip, zlib, None.")
    limit = config.options(max_member_bytes=max_record_bytes).max_member_bytes
    return Reader(BytesIO(source) if isinstance(source, bytes | bytearray | memoryview) else source, shard, compression, on_error, limit)


class Reader(Iterator[memoryview]):
    """The records of one TFRecord file, as read-only views; a view keeps its block (1 MiB or its record) in memory.

    `records` counts the good ones so far, `offset` is the byte (uncompressed) where the next one begins, `compression`
    what was found, `faults` lists what was skipped.
    """

    def __init__(self, source: ByteSource, shard: str | None, compression: str | None, on_error: OnError, limit: int) -> None:
        self.shard = shard
        self.records = 0
        self.offset = 0
        self.faults: list[DataError] = []
        self.compression = compression
        self._source = source
        self._skip = on_error == "skip"
        self._limit = limit
        self._run = chain.from_iterable(self.blocks())

    def __next__(self) -> memoryview:
        return next(self._run)

    def blocks(self) -> Iterator[list[memoryview]]:
        """The same a block at a time. Use one or the other."""
        buffer, end, need = bytearray(_BLOCK), False, 0
        broken: DataError | None = None
        filled = self._begin(memoryview(buffer)[:HEADER])
        while True:
            view = memoryview(buffer)
            while filled < len(buffer) and not end:
                try:
                    count = self._source.readinto(view[filled:]) or 0
                except DataError as error:  # of the compressed stream
                    count, broken = 0, error
                end, filled = count == 0, filled + count
            places, at, need, wrong = self._walk(buffer, filled)
            yield from self._check(buffer, places)
            if wrong:
                raise self._wrong_length(bytes(view[at : at + 512]))
            if end:
                if broken is not None or at < filled:
                    raise broken.at(shard=self.shard, records_before=self.records) if broken else self._truncation(view[at:filled], need)
                if (trailing := getattr(self._source, "trailing", None)) is not None:
                    text = f"bytes that are no {self.compression} follow at compressed byte {trailing}."
                    raise self._error("E_TRAILING", text, compressed_offset=trailing)
                return
            if filled - at > self._limit + FRAME:
                text = f"a record of {need - FRAME} bytes; the limit is {self._limit}."
                raise LimitError(text, **self._place(), hint="Raise max_record_bytes if you trust it.")
            # As much as is there already once more, at most: a length that lies costs nothing. A byte past the limit is enough to refuse.
            rest = view[at:filled]
            buffer = bytearray(max(_BLOCK, min(need, 2 * len(buffer), self._limit + FRAME + 1)))
            buffer[: len(rest)] = rest
            filled = len(rest)

    def _begin(self, head: memoryview) -> int:
        """Read the first bytes and unpack what is compressed; the number of bytes that are records already."""
        filled = 0
        while filled < len(head) and (count := self._source.readinto(head[filled:]) or 0):
            filled += count
        found = bytes(head[:filled])
        if self.compression == "auto":
            is_header = len(found) == HEADER and masked_crc32c(found[:8]) == int.from_bytes(found[8:], "little")
            self.compression = None if is_header else _kind(found)
        if self.compression is None:
            return filled
        ratio = config.options().max_ratio
        self._source = Inflater(self._source, self.compression, found, ratio=ratio, shard=self.shard)
        return 0

    def _walk(self, buffer: bytearray, filled: int) -> tuple[list[tuple[int, int]], int, int, bool]:
        """Begin and end of the payloads that lie whole in the buffer, the place after, the bytes needed there, and whether
        the length there is wrong."""
        places: list[tuple[int, int]] = []
        at, unpack = 0, _LENGTH.unpack_from
        while at + HEADER <= filled:
            length, crc = unpack(buffer, at)
            if _length_crc(length) != crc:
                return places, at, 0, True
            begin = at + HEADER
            end = begin + length
            if end + FOOTER > filled:
                return places, at, length + FRAME, False
            places.append((begin, end))
            at = end + FOOTER
        return places, at, HEADER, False

    def _check(self, buffer: bytearray, places: list[tuple[int, int]]) -> Iterator[list[memoryview]]:
        """The payloads that fit their CRC, in runs; raises or skips at those that do not."""
        if not places:
            return
        view, data = memoryview(buffer).toreadonly(), np.frombuffer(buffer, np.uint8)
        views = [view[begin:end] for begin, end in places]
        crcs = np.fromiter((_crc(data[begin:end]) for begin, end in places), np.uint32, len(places))
        ends = np.fromiter((end for _, end in places), np.int64, len(places))
        stored = data[ends[:, None] + np.arange(FOOTER)].view("<u4").ravel()
        base, first = self.offset, 0
        for bad in [*np.flatnonzero(_mask(crcs) != stored).tolist(), len(places)]:
            if bad > first:
                self.records += bad - first
                self.offset = base + places[bad - 1][1] + FOOTER
                yield views[first:bad]
            if bad < len(places):
                begin, end = places[bad]
                error = self._error(
                    "E_DATA_CRC",
                    f"the {end - begin} bytes of record {self.records + len(self.faults)} do not fit their CRC.",
                    details={"resumable_at": base + end + FOOTER},
                    hint="Fetch the file again, or pass on_error='skip' to go on after the record.",
                )
                if not self._skip:
                    raise error
                self.faults.append(error)
                self.offset = base + end + FOOTER
                first = bad + 1

    def _place(self) -> dict[str, Any]:
        return {"shard": self.shard, "offset": self.offset, "records_before": self.records}

    def _error(self, code: str, message: str, **more: Any) -> DataError:
        return DataError(message, code=code, **self._place(), **more)

    def _truncation(self, rest: memoryview, need: int) -> DataError:
        head = bytes(rest[:512])
        if self.offset == 0 and len(rest) < HEADER and sniff.kind(head):
            return self._error("E_NOT_TFRECORD", "this is not a TFRecord file.", hint=sniff.hint(head))
        if len(rest) < HEADER:
            text = f"the file ends {len(rest)} bytes into the 12 that begin a record."
        else:
            text = f"a record promises {need - FRAME} bytes, {len(rest) - HEADER} follow, framing included, and the file ends."
        return self._error("E_TRUNCATED", text, hint="Fetch it again, or write it again: the file was not finished.")

    def _wrong_length(self, head: bytes) -> DataError:
        if self.offset == 0 and (found := sniff.kind(head)):
            hint = f"it is {found}: pass compression='auto'." if found in ("gzip", "zlib") else sniff.hint(head)
            return self._error("E_NOT_TFRECORD", "this is not a TFRecord file.", hint=hint)
        length, crc = _LENGTH.unpack_from(head)
        if _crc(head[:8]) == crc:
            hint = "the CRC matches unmasked crc32c: its writer forgot to mask it."
        elif masked_crc32c(head[:8]) == int.from_bytes(head[8:HEADER], "big"):
            hint = "it was written big-endian; TFRecord is little-endian."
        elif not any(head):
            hint = "zeros follow: the file was made larger in advance and never finished."
        else:
            hint = "what follows cannot be found without a length: fetch the file again."
        return self._error("E_LENGTH_CRC", f"a record's length ({length}) does not fit its CRC.", hint=hint)


def _kind(head: bytes) -> str | None:
    # RFC 1950 §2.2: 8 is deflate, and the first two bytes are a multiple of 31.
    if len(head) >= 2 and head[0] & 15 == 8 and head[0] >> 4 <= 7 and int.from_bytes(head[:2], "big") % 31 == 0:
        return "zlib"
    return _magic(head)
