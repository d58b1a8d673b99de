"""A stream of tar bytes cut into blocks of whole records.

The record that is open at a buffer's end moves to the next buffer; nothing else is copied. Which records there are, and which are
certain, the walker says.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tarviz.formats.compression import ByteSource
from tarviz.model.types import Block, Members
from tarviz.read.read_ahead import Feed
from tarviz.read.rules import Decided
from tarviz.read.walker import Walker

_LARGE = 16 << 10  # bytes of a tar for each member, on average


class Blocks(Iterator[Block]):
    """The blocks of one shard out of a source of tar bytes; `walker.notes` and `walker.skipped` fill while it runs.

    Ends with `DataError` after the last certain record when the shard is damaged (not when the walker skips: then it goes on at the
    next valid header, and records that may have lost a member are left out and listed).
    """

    def __init__(self, source: ByteSource, walker: Walker, *, interrupt: Callable[[], None] | None = None, ahead: bool = True) -> None:
        self.walker = walker
        self._feed = Feed(source, walker.rules.block_size, interrupt, ahead=ahead)
        self._run = _blocks(self._feed, walker)

    def __next__(self) -> Block:
        return next(self._run)[1]

    def steps(self) -> Iterator[tuple[Decided, Block]]:
        """The blocks, each with the walker's step it is made of."""
        return self._run

    def close(self) -> None:
        self._run.close()
        self._feed.close()

    @property
    def bytes(self) -> int:
        """Bytes of the tar taken from the source so far."""
        return self._feed.bytes


def _blocks(feed: Feed, walker: Walker) -> Generator[tuple[Decided, Block], None, None]:
    base = walker.keep
    data = feed.more()
    while True:
        before = walker.scanner.found
        for step in walker.walk(data, base, final=feed.final, broken=feed.broken):
            yield step, block_of(step, walker)
            del step
        if walker.over:
            break
        feed.fit(walker.rules.roomy_size if (walker.scanner.found - before) * _LARGE < len(data) else walker.rules.block_size)
        left = base + len(data) - walker.keep
        del data  # the feed lets go of its memory before it takes more
        base = walker.keep
        data = feed.more(left, walker.need)
    if walker.error is not None:
        raise walker.error


def block_of(step: Decided, walker: Walker) -> Block:
    """The block of decided records whose payloads lie in the step's bytes."""
    records, data = step.records, step.data
    members = records.members
    offset = members.data - step.base
    if members.sparse:
        data, offset = _unfold(members, data, offset)
    return Block(
        shard=walker.scanner.shard,
        data=data,
        base=step.base,
        first=step.first,
        keys=records.keys.tolist(),
        rows=records.rows,
        offset=offset,
        size=members.size,
        ext=records.ext,
        exts=tuple(records.exts),
        members=members,
        pending=step.pending,
    )


def members_of(block: Block, fields: Mapping[str, tuple[str, ...]]) -> NDArray[np.int64]:
    """The member that is each record's field, as a row of the block: int64 [records, fields], -1 where there is none."""
    if (there := block.fields) is not None:
        found = [next((there.index(name) for name in names if name in there), -1) for names in fields.values()]
        if -1 not in found:
            return block.rows[:-1, None] + np.array(found, np.int64)
    table = np.full((len(block), len(fields)), -1, np.int64)
    record = np.repeat(np.arange(len(block)), np.diff(block.rows))
    for column, names in enumerate(fields.values()):
        for name in reversed(names):
            if name in block.exts:
                at = np.flatnonzero(block.ext == block.exts.index(name))
                table[record[at], column] = at
    return table


def _unfold(members: Members, data: memoryview, offset: NDArray[np.int64]) -> tuple[memoryview, NDArray[np.int64]]:
    """Sparse payloads unfolded after the block's bytes."""
    begin = len(data)
    out = bytearray(begin + sum(int(members.size[row]) for row in members.sparse))
    out[:begin] = data
    offset = offset.copy()
    for row, pieces in members.sparse.items():
        at, offset[row] = int(offset[row]), begin
        for place, length in pieces:
            out[begin + place : begin + place + length] = data[at : at + length]
            at += length
        begin += int(members.size[row])
    return memoryview(out).toreadonly(), offset
