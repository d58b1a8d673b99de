"""What the tar tools write: one tar, its bytes copied while the next ones are looked for.

Ranges of plain files go from file to file inside the kernel; names that end in gz, zst, bz2 or xz are packed.
"""

from __future__ import annotations

import os
from itertools import cycle
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tarviz.formats.tar_header import TAR_END
from tarviz.model.errors import ChangedError
from tarviz.model.types import URL
from tarviz.outputs.inputs import Inputs
from tarviz.outputs.names import Exists
from tarviz.outputs.output import Output, Piece
from tarviz.outputs.packing import packing
from tarviz.outputs.piped import CommandSink, is_command
from tarviz.read.spans import Batch, HeldTar, ranges

__all__ = ["Picked", "Piece", "Range", "TarOutput"]

_BLOCK = 512
_GATHER = 16 << 10  # bytes: pieces smaller than this on average are gathered into one buffer


class Range(NamedTuple):
    """Bytes of a plain tar, to be copied from file to file."""

    source: HeldTar
    begin: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.begin

    def write_to(self, output: Output) -> None:
        """Copy them; `ChangedError` when the file is another by now, or shorter."""
        if (at := output.send(self.source.fd, self.begin, self.end)) < self.end:
            raise ChangedError("the file is shorter than its headers say.", shard=self.source.url, offset=at)
        self.source.check()


class Picked(NamedTuple):
    """Many small ranges of plain tars, read into one buffer; one source for all of them, or one for each."""

    sources: list[HeldTar]
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

    def write_to(self, output: Output) -> None:
        """Write them; `ChangedError` when a file is another by now."""
        output.put([self.read()])
        for source in set(self.sources):
            source.check()


class TarOutput(Output):
    """One tar being written, packed as its name says. `bytes` counts tar bytes, the end mark included once it is committed."""

    def __init__(self, url: str, *, inputs: Inputs, exists: Exists = "replace") -> None:
        sink = CommandSink(URL(url)) if is_command(url) else None
        packed = packing(url) if sink is None else None
        super().__init__(url, packing=packed, exists=exists, inputs=inputs, ending=TAR_END, summed=False, sink=sink)

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
        if total < _GATHER * len(begin) and int(end[-1]) - base <= whole:
            self.write([_gather(batch.block.array[:whole], begin - base, end - base)])
        else:
            self.write([batch.raw(a, b) for a, b in zip(begin.tolist(), end.tolist(), strict=True)])

    def pick(self, sources: list[HeldTar], begin: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        """Append the bytes `begin`…`end` of plain tars, several of them: one source for all, or one for each."""
        total = int((end - begin).sum())
        if total < _GATHER * len(begin):
            self.write([Picked(sources, begin.tolist(), end.tolist(), total)])
        else:
            self.write([Range(*each) for each in zip(cycle(sources), begin.tolist(), end.tolist(), strict=False)])


def _gather(data: NDArray[np.uint8], begin: NDArray[np.int64], end: NDArray[np.int64]) -> memoryview:
    """Pieces of `data`, all of them multiples of 512 bytes, one after the other in a buffer of their own."""
    first, count = begin // _BLOCK, (end - begin) // _BLOCK
    starts = np.cumsum(count) - count
    blocks = np.repeat(first - starts, count) + np.arange(int(count.sum()))
    return memoryview(data.reshape(-1, _BLOCK).take(blocks, axis=0).ravel().data)
