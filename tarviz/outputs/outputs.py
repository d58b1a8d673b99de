"""Outputs that follow each other: records go into the one that is open until it is full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tarviz.formats.tfrecord import RecordFrames
from tarviz.model import config
from tarviz.model.errors import UsageError
from tarviz.model.types import Buffer
from tarviz.outputs.inputs import Inputs
from tarviz.outputs.limits import Limits
from tarviz.outputs.manifest import SourcePart, Written
from tarviz.outputs.names import Exists, Names
from tarviz.outputs.output import Output
from tarviz.outputs.packing import Packing
from tarviz.stores import Whole


class Run(Protocol):
    """Records ready to be written: `size` in bytes of each, and the buffers that make up some of them."""

    @property
    def size(self) -> NDArray[np.int64]: ...

    def buffers(self, first: int = 0, last: int | None = None) -> list[Buffer]: ...


@dataclass(frozen=True, slots=True, eq=False)
class _FramedRecords:
    """Records that are framed by the thread that writes them."""

    run: RecordFrames
    first: int
    last: int
    size: int

    def write_to(self, output: Output) -> None:
        output.put(self.run.buffers(self.first, self.last))


@dataclass(eq=False)
class Outputs(Whole):
    """Outputs that follow each other: records go into the one that is open until it is full.

    `max_size` (bytes, or text such as `"100MB"`) is the most a file may have, framing and `ending` counted in; only a
    record that is larger by itself gets a file that exceeds it. With `compression` it counts the bytes before that.
    `max_records` limits the records of a file. `ending` closes each file (tar's zero blocks). `manifest`, if not None, is
    what the manifest of every output holds beside its own figures (`full`: the next record did not fit). None of `inputs` is written.

    Use as a context manager: an exception drops the output that is open; those before it are complete and stay.
    `done` lists what is written; `start` is the number of the first output.
    """

    names: Names
    max_size: int | str | float | None = None
    max_records: int | None = None
    compression: Packing | None = None
    exists: Exists = "replace"
    ending: bytes = b""
    manifest: Mapping[str, Any] | None = None
    start: int = 0
    done: list[Written] = field(default_factory=list)
    inputs: Inputs | None = None
    _output: Output | None = None
    _parts: list[SourcePart] = field(default_factory=list)
    _source: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        limit = None
        if self.max_size is not None:
            limit = config.parse_size(self.max_size)
            if limit <= 0:
                raise UsageError("max_shard_size must be more than 0 bytes.")
        if self.max_records is not None and self.max_records < 1:
            raise UsageError("an output holds at least one record.")
        self._limits = Limits(self.max_records, limit, len(self.ending))

    def source(self, entry: dict[str, Any]) -> None:
        """Set the source shard that later `add` calls are attributed to in the manifest (see `source_entry`)."""
        self._source = entry

    def add(self, run: Run, numbers: NDArray[np.int64] | None = None, stop: int = 0) -> None:
        """Write records. `numbers` are theirs in the source, `stop` the number that comes after them there."""
        ends = np.cumsum(run.size)
        first = 0
        while first < len(ends):
            output = self._open()
            last = self._limits.fit(ends, first, output.records, output.bytes)
            if last == first:
                self._close(full=True)
                continue
            size = int(ends[last - 1]) - (int(ends[first - 1]) if first else 0)
            output.write(
                [_FramedRecords(run, first, last, size)] if isinstance(run, RecordFrames) else run.buffers(first, last), last - first
            )
            if self._source is not None and numbers is not None:
                self._note(int(numbers[first]), stop if last == len(ends) else int(numbers[last]))
            first = last

    def settle(self) -> None:
        """Wait until all that was added is written, so that the memory it is in may be used again."""
        if self._output is not None:
            self._output.settle()

    def _open(self) -> Output:
        if self._output is None:
            url = self.names.at(self.start + len(self.done))
            if self.inputs is not None:
                self.inputs.refuse(url)
            self._output = Output(url, packing=self.compression, exists=self.exists, ending=self.ending)
            self._parts = []
        return self._output

    def _note(self, first: int, stop: int) -> None:
        assert self._source is not None
        if self._parts and self._parts[-1].source is self._source:
            self._parts[-1].stop = stop
        else:
            self._parts.append(SourcePart(self._source, first, stop))

    def _close(self, *, full: bool = False) -> None:
        output = self._output
        if output is None:
            return
        manifest = None
        if self.manifest is not None:
            parts = self._parts or ([SourcePart(self._source, 0, 0)] if self._source is not None else [])
            manifest = {**self.manifest, "full": full, "sources": [part.to_dict() for part in parts]}
        self.done.append(output.commit(manifest))
        self._output = None

    def commit(self) -> list[Written]:
        """Complete the last output. There is always one: it is empty when there were no records."""
        if not self.done:
            self._open()
        self._close()
        return self.done

    def abort(self) -> None:
        """Drop the output that is open."""
        if self._output is not None:
            self._output.abort()
            self._output = None
