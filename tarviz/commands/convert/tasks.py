"""How `convert` works: jobs that write the Examples of a shard, here or in worker processes."""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

from tarviz.commands.convert.from_examples import AnyRecipe
from tarviz.commands.convert.recipe import ConversionProgress, Ints
from tarviz.engines import Tick
from tarviz.model.errors import StoreError, TarvizError
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL, Buffer
from tarviz.outputs import Exists, Names, Outputs, Packing, Written, source_entry
from tarviz.outputs.inputs import Inputs
from tarviz.read.indexed import RecordRange
from tarviz.read.several import stats
from tarviz.read.stream import ReadReport

_CHUNK = 4 << 20


@dataclass(frozen=True)
class Settings:
    """How outputs are written; the same for all of them."""

    names: Names
    compression: Packing | None
    exists: Exists
    manifest: Mapping[str, Any] | None = None
    max_size: int | None = None
    ending: bytes = b""

    @property
    def each(self) -> bool:
        """Whether each shard has an output of its own."""
        return self.names.counts and self.max_size is None

    def outputs(self, start: int = 0, done: Sequence[Written] = (), inputs: Inputs | None = None) -> Outputs:
        return Outputs(**vars(self), start=start, done=list(done), inputs=inputs)


@dataclass(frozen=True, slots=True)
class ShardToConvert:
    """A shard to convert: its number among the inputs, what the manifest says of it, and the record to begin with; or one range of it."""

    number: int
    url: URL
    entry: dict[str, Any]
    start: int = 0
    part: RecordRange | None = None

    __repr__ = redacted_repr


def sources(shards: Sequence[URL]) -> list[ShardToConvert]:
    """The shards as they are now."""
    found = zip(shards, stats(shards), strict=True)
    return [ShardToConvert(at, url, {"number": at, **source_entry(stat)}) for at, (url, stat) in enumerate(found)]


@dataclass(slots=True)
class Outcome:
    """What a job gives back."""

    report: ReadReport = field(default_factory=ReadReport)
    seen: set[str] = field(default_factory=set)
    written: list[Written] = field(default_factory=list)
    size: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    numbers: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    stop: int = 0
    error: Exception | None = None


@dataclass(frozen=True)
class EachJob:
    """One output for a shard, written whole by whoever does the job."""

    recipe: AnyRecipe
    settings: Settings

    def __call__(self, source: ShardToConvert, file: IO[bytes] | None, tick: Tick) -> Outcome:
        progress = ConversionProgress(tick)
        with self.settings.outputs(source.number) as run:
            run.source(source.entry)
            for batch in self.recipe.batches(source.url, progress):
                run.add(batch.frames, batch.numbers, batch.stop)
        return Outcome(progress.report, progress.seen, run.done)


@dataclass(frozen=True)
class PieceJob:
    """The framed records of a shard, or of a range of it, in an unnamed file, for the parent to spread over outputs."""

    recipe: AnyRecipe

    def __call__(self, source: ShardToConvert, file: IO[bytes] | None, tick: Tick) -> Outcome:
        assert file is not None
        progress = ConversionProgress(tick)
        outcome = Outcome(progress.report, progress.seen, stop=source.start)
        sizes, numbers = [outcome.size], [outcome.numbers]
        try:
            for batch in self.recipe.batches(source.url, progress, source.start, source.part):
                _append(file, batch.frames.buffers())
                sizes.append(batch.frames.size)
                numbers.append(batch.numbers)
                outcome.stop = batch.stop
        except TarvizError as error:
            outcome.error = error  # raised by the parent, after the records before it
        if source.part is not None:
            progress.settle(source.part)
        outcome.size, outcome.numbers = np.concatenate(sizes), np.concatenate(numbers)
        return outcome


def _append(file: IO[bytes], buffers: Sequence[Buffer]) -> None:
    try:
        for buffer in buffers:
            view = memoryview(buffer)
            while view:
                view = view[file.write(view) :]
    except OSError as error:
        what = f"the workers' temporary files cannot be written: {error.strerror}."
        raise StoreError(what, code="E_WRITE", hint="Free some space, or use num_workers=1.") from error


class WrittenPiece:
    """What a `PieceJob` wrote, as records to be written elsewhere."""

    def __init__(self, size: Ints, file: IO[bytes]) -> None:
        self.size = size
        self._begin = np.concatenate(([0], np.cumsum(size)))
        self._map = mmap.mmap(file.fileno(), int(self._begin[-1]), access=mmap.ACCESS_READ) if len(size) else None

    def buffers(self, first: int = 0, last: int | None = None) -> list[Buffer]:
        begin, end = int(self._begin[first]), int(self._begin[len(self.size) if last is None else last])
        if self._map is None:
            return []
        view = memoryview(self._map)[begin:end]
        return [view[at : at + _CHUNK] for at in range(0, len(view), _CHUNK)]
