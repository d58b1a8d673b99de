"""One shard opened from front to back: its bytes, inflated where it is compressed, and its blocks."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import replace

from tarviz import stores
from tarviz.formats.compression import Inflater, kind
from tarviz.model.config import options as configured
from tarviz.model.errors import Fault
from tarviz.model.types import URL, Block
from tarviz.read.blocks import Blocks
from tarviz.read.options import ReadOptions
from tarviz.read.report import Noted, ReadReport
from tarviz.stores import Stat, Stream


class Shard:
    """One shard opened for reading from front to back: the tar's bytes, inflated where it is compressed."""

    def __init__(self, url: URL, *, max_ratio: int | None = None, offset: int = 0, etag: str | None = None) -> None:
        self.url = url
        self._stream: Stream = stores.of(url).open(url, offset=offset, etag=etag)
        self.stat: Stat = self._stream.stat
        head = bytearray(6)
        self._inflater: Inflater | None = None
        try:
            count = stores.fill(self._stream, memoryview(head)) if offset == 0 else 0
            self._head = memoryview(bytes(head[:count]))
            self.compression = kind(bytes(self._head))
            if self.compression:
                self._inflater = Inflater(self._stream, self.compression, bytes(self._head), ratio=max_ratio, shard=url)
        except BaseException:
            self._stream.close()
            raise

    def readinto(self, buffer: memoryview, /) -> int:
        if self._inflater is not None:
            return self._inflater.readinto(buffer)
        if self._head:
            count = min(len(buffer), len(self._head))
            buffer[:count] = self._head[:count]
            self._head = self._head[count:]
            return count
        return self._stream.readinto(buffer)

    def note_trailing(self, notes: list[Fault]) -> None:
        """Warn, at the end, of bytes that follow behind the last compressed stream."""
        if self._inflater is not None and self._inflater.trailing is not None:
            text = f"bytes that are not {self.compression} follow at compressed byte {self._inflater.trailing}."
            notes.append(Fault("W_TRAILING", text, self.url))

    def close(self) -> None:
        self._stream.close()


def adjacent_blocks(
    url: URL,
    options: ReadOptions,
    report: ReadReport,
    start: int = 0,
    stop: int | None = None,
    *,
    returning: bool = False,
    entry: tuple[int, int] = (0, 0),
    etag: str | None = None,
) -> Generator[Block, None, None]:
    """The blocks of records `start`…`stop` of one shard, whose members stand side by side. `returning=True`: a key may come back.

    `entry`: the byte of a plain tar at which reading begins, and the number of the record there (`shard_index.entry` finds it for any
    record). With `etag` only that version is read.
    """
    place, first = entry
    chosen, far = configured(max_ratio=options.max_ratio), not stores.is_local(url)
    if far and options.block_size is None:
        options = replace(options, block_size=2 * chosen.block_size)  # each costs something to hand over and to look through
    with closing(Shard(url, max_ratio=chosen.max_ratio, offset=place, etag=etag)) as shard:
        report.opened = shard.stat
        walker = options.walker(url, at=place, first=first, returning=returning)
        noted = Noted(report, walker)
        with closing(Blocks(shard, walker, interrupt=shard.close, ahead=shard.compression is not None or far)) as cutter:
            try:
                for block in cutter:
                    noted.take(cutter.bytes)
                    part = _part(block, start, stop)
                    del block
                    if part is not None:
                        report.records += len(part)
                        yield part
                        del part
                    if stop is not None and walker.records >= stop:
                        break
                else:
                    shard.note_trailing(walker.notes)
            finally:
                noted.take(cutter.bytes)
                report.shards += 1


def _part(block: Block, start: int, stop: int | None) -> Block | None:
    """The records of `block` that lie in `start`…`stop`."""
    low, high = max(start - block.first, 0), len(block) if stop is None else min(stop - block.first, len(block))
    if low == 0 and high == len(block):
        return block
    if low >= high:
        return None
    return block.part(low, high)
