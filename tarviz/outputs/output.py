"""One output being written: packed, summed and written behind, under its name when it is whole.

The only place that does so, for TFRecord, for tars, for the writers of the dialects. Stores see to it that nothing has its
final name before it is complete.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from tarviz import stores
from tarviz.formats.tfrecord import crc32c
from tarviz.model.redaction import redact
from tarviz.model.types import URL, Buffer
from tarviz.outputs.behind import Behind
from tarviz.outputs.inputs import Inputs
from tarviz.outputs.manifest import Written, forget_manifest, write_manifest
from tarviz.outputs.names import Exists, refuse_existing
from tarviz.outputs.packing import Packing, packer
from tarviz.stores import Sink, Whole

_DIRECT = 1 << 20  # bytes of an output from which on a thread writes
_AT_ONCE = 8 << 20  # bytes written before an abort is looked for


class Later(Protocol):
    """A piece whose bytes are fetched when it is written."""

    @property
    def size(self) -> int:
        """How many bytes."""
        ...

    def write_to(self, output: Output) -> None:
        """Write it by `output.put` or `output.send`."""
        ...


Piece: TypeAlias = Buffer | Later


def size_of(piece: Piece) -> int:
    """The bytes of a piece."""
    return len(piece) if isinstance(piece, Buffer) else piece.size


class Output(Whole):
    """One output being written. `commit` makes it visible under its name, replacing what was there; `ending` is its last bytes.

    Large ones are written by a thread: what goes wrong there is raised by the next call. None of `inputs` is written. `bytes`
    counts what was given, before any packing; `records` the records. The CRC of what is written is taken where it is `summed`.
    `sink` takes the bytes where they do not go to the store of the URL.
    """

    def __init__(
        self,
        url: str,
        *,
        packing: Packing | None = None,
        exists: Exists = "replace",
        inputs: Inputs | None = None,
        ending: bytes = b"",
        summed: bool = True,
        sink: Sink | None = None,
    ) -> None:
        self.url = URL(url)
        self.records = 0
        self.bytes = 0
        self.written: Written | None = None
        if inputs is not None:
            inputs.refuse(url)
        if exists == "error":
            refuse_existing(self.url)
        self._ending = ending
        self._packer = packer(packing) if packing is not None else None
        self._crc = 0
        self._size = 0  # bytes of the file
        self._summed = summed
        self._behind: Behind[Sequence[Piece]] | None = None
        spared = {} if exists == "replace" else {"replace": False}  # stores of other packages may not know it yet
        self._sink = stores.of(url).create(self.url, **spared) if sink is None else sink

    def write(self, pieces: Sequence[Piece], records: int = 0) -> None:
        """Append pieces that hold so many records. They belong to the output until it is settled: they may be written later."""
        self.bytes += sum(map(size_of, pieces))
        self.records += records
        if self._behind is None and self.bytes > _DIRECT:
            self._behind = Behind(self._write, name=f"writes {redact(self.url)}")
        if self._behind is not None:
            self._behind.put(pieces)
        else:
            self._write(pieces)

    def settle(self) -> None:
        """Wait until all that was given is written, so that the memory it is in may be used again."""
        if self._behind is not None:
            self._behind.settle()

    def _write(self, pieces: Sequence[Piece]) -> None:
        held: list[Buffer] = []
        size = 0
        for piece in pieces:
            if self._stopping:
                return
            if isinstance(piece, Buffer):
                held.append(piece)
                size += len(piece)
                if size < _AT_ONCE:
                    continue
            self.put(held)
            held, size = [], 0
            if not isinstance(piece, Buffer):
                piece.write_to(self)
        self.put(held)

    @property
    def _stopping(self) -> bool:
        return self._behind is not None and self._behind.stopping

    def put(self, buffers: Sequence[Buffer]) -> None:
        """Append bytes at once, packed where the output is: for pieces that are being written."""
        if self._packer is not None:
            self._put([data for buffer in buffers if (data := self._packer.compress(buffer))])
        else:
            self._put(buffers)

    def _put(self, buffers: Sequence[Buffer]) -> None:
        if not buffers:
            return
        for buffer in buffers if self._summed else ():
            self._crc = crc32c(buffer, self._crc)
        self._size += sum(map(len, buffers))
        self._sink.writev(buffers)

    def send(self, fd: int, begin: int, end: int) -> int:
        """Append the bytes `begin`…`end` of an open file: up to where it had them."""
        at = begin
        while at < end and not self._stopping:
            wanted = min(end - at, _AT_ONCE)
            if self._packer is None and not self._summed:
                done = self._sink.send(fd, at, wanted)
                self._size += done
            else:
                data = os.pread(fd, wanted, at)
                self.put([data])
                done = len(data)
            if not done:
                break
            at += done
        return end if self._stopping else at

    def commit(self, manifest: Mapping[str, Any] | None = None) -> Written:
        """Finish the file and, where a manifest is given, write that beside it with records, bytes and CRC filled in."""
        if self.written is not None:
            return self.written
        try:
            if self._ending:
                self.write([self._ending])
            if self._behind is not None:
                self._behind.finish()
            if self._packer is not None:
                self._put([self._packer.flush()])
            forget_manifest(self.url)
            stat = self._sink.commit()
        except BaseException:
            self.abort()
            raise
        self.written = Written(self.url, self.records, self._size, f"{self._crc:08x}" if self._summed else "")
        if manifest is not None and stat.ranges:  # a pipe has nothing beside it
            write_manifest(self.written, manifest)
        return self.written

    def abort(self) -> None:
        """Drop what was written; nothing of it is seen, and a pipe gets no ending. Does nothing after `commit`."""
        if self.written is not None:
            return
        if self._behind is not None:
            self._behind.stop(self._sink.abort)
        else:
            self._sink.abort()
