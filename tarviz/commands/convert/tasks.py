"""How `convert` works: a recipe that makes Examples of a shard, and jobs that write them, here or in worker processes."""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tarviz import selection, write
from tarviz.engines import Tick
from tarviz.formats import example, tfrecord
from tarviz.model.errors import DataError, StoreError, TarvizError, UsageError
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL, Block, Buffer
from tarviz.ops import Chain, draws, unpack
from tarviz.ops.func import Func
from tarviz.ops.rename import Rename
from tarviz.read import stream
from tarviz.read.chosen import Chosen
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.selection import Select, SelectJSON
from tarviz.write import Names, Outputs, Written
from tarviz.write.inputs import Inputs

_BATCH = 4 << 20  # bytes of Examples that are framed and written together
_CHUNK = 4 << 20

Ints = NDArray[np.int64]


@dataclass(slots=True)
class FramedExamples:
    """Framed Examples with the numbers of their records in the shard; `stop` is the number after the last record looked at."""

    frames: tfrecord.Frames
    numbers: Ints
    stop: int


@dataclass(frozen=True)
class Recipe:
    """How the records of a shard become Examples."""

    chain: Chain
    select: selection.Selection
    types: Mapping[str, str]
    key: bool
    seed: int
    options: ReadOptions
    record_to_example: Callable[[dict[str, Any]], Any] | None = None

    def __post_init__(self) -> None:
        example.kind_of("", self.types)
        if not isinstance(self.select, selection.SelectAll):
            self.leaves()

    def leaves(self) -> dict[str, Select | SelectJSON]:
        """Feature name → what is selected for it; empty where the whole record is."""
        if isinstance(self.select, selection.SelectAll):
            return {}
        parts = selection.plain(self.select)
        if isinstance(parts, dict):
            items = list(parts.items())
        else:
            items = [(None, part) for part in (parts if isinstance(parts, tuple | list) else [parts])]
        named: dict[str, Select | SelectJSON] = {}
        for name, part in items:
            leaf = selection.parse(part)
            if not isinstance(leaf, Select | SelectJSON):
                raise UsageError("an Example is flat: select names, or a dict of names.", hint='For example ("jpg", "cls").')
            own = leaf.path[-1] if isinstance(leaf, SelectJSON) and leaf.path else leaf.ext
            named[name or str(own)] = leaf
        return named

    @cached_property
    def numbered(self) -> frozenset[str]:
        """Features that are not called `cls` (`INTEGER_FIELDS`) and hold such a field: behind renaming it is an integer still."""
        found = dict.fromkeys(example.INTEGER_FIELDS, True)
        for op in [op for op in self.chain if isinstance(op, Rename)]:
            for new, sources in op.moves:
                whole = all(found.get(old, False) for old in sources)
                found = {name: kind for name, kind in found.items() if op.keep or name not in sources} | {new: whole}
        leaves = self.leaves()
        if leaves:
            found = {name: found.get(leaf.ext, False) for name, leaf in leaves.items() if isinstance(leaf, Select)}
        return frozenset(name for name, whole in found.items() if whole) - {*example.INTEGER_FIELDS, *self.types}

    @property
    def renames(self) -> dict[str, str] | None:
        """Field → feature name when nothing but names matters, so that blocks are encoded as they are; else None."""
        leaves = self.leaves()
        plain = all(isinstance(leaf, Select) and ";" not in leaf.ext and not leaf.ext.startswith("__") for leaf in leaves.values())
        once = len({leaf.ext for leaf in leaves.values()}) == len(leaves)
        if self.chain or self.record_to_example or not plain or not once:
            return None
        return {leaf.ext: name for name, leaf in leaves.items()}

    @property
    def provable(self) -> bool:
        """Whether text says all of it: a Python function may change without its name changing."""
        return self.record_to_example is None and not any(isinstance(op, Func) for op in self.chain)

    def to_dict(self) -> dict[str, Any]:
        """What a manifest says of it."""
        options = {name: getattr(self.options, name) for name in ("strict", "key_split", "group", "duplicates", "concatenated", "on_error")}
        select = None if isinstance(self.select, selection.SelectAll) else repr(selection.plain(self.select))
        seed = self.seed if self.chain.draws else None
        if isinstance(self.options.where, Chosen):
            chosen = b"".join(self.options.where.rows[url].tobytes() for url in sorted(self.options.where.rows))
            options |= {"where": self.options.where.where, "chosen": hashlib.sha256(chosen).hexdigest()}
        types = {**dict.fromkeys(sorted(self.numbered), "int64"), **self.types}
        return {"chain": str(self.chain), "select": select, "types": types, "key": self.key, "seed": seed, **options}

    def batches(self, url: URL, progress: ConversionProgress, start: int = 0) -> Iterator[FramedExamples]:
        """The Examples of a shard, from record `start` on."""
        blocks = stream.blocks(url, self.options, report=progress.report, start=start)
        renames = self.renames
        try:
            with closing(blocks):
                for block in blocks:
                    progress.tick()
                    yield from self._plain(block, renames, progress) if renames is not None else self._chained(block, progress)
                    del block
        except DataError as error:
            if self.options.on_error == "raise":
                raise error.at(shard=url) from error.__cause__
            progress.skip(error.at(shard=url))
        finally:
            progress.tick()

    def _plain(self, block: Block, renames: Mapping[str, str], progress: ConversionProgress) -> Iterator[FramedExamples]:
        fields = None
        if renames:
            block = replace(block, exts=tuple(renames.get(ext, f"\0{ext}") for ext in block.exts))
            fields = tuple(renames.values())
        progress.seen.update(block.exts if fields is None else fields)
        types = {**dict.fromkeys(self.numbered, "int64"), **self.types}
        made = example.encode_block(block, types, key=self.key, fields=fields, on_error=self.options.on_error)
        for error in made.faults:
            progress.skip(error)
        yield FramedExamples(tfrecord.frame(made), block.first + made.rows, block.first + len(block))

    def _chained(self, block: Block, progress: ConversionProgress) -> Iterator[FramedExamples]:
        needs = None if self.record_to_example and isinstance(self.select, selection.SelectAll) else self.chain.needs(self.select.needs())
        drawn = draws(self.chain, block.keys, self.seed) if self.chain.draws else None
        leaves = self.leaves()
        made: list[bytes] = []
        numbers: list[int] = []
        size = 0
        for row, record in enumerate(block):
            try:
                data = self._example(unpack(record, needs), None if drawn is None else drawn[row], leaves, progress)
            except TarvizError as error:
                if self.options.on_error == "raise":
                    raise error.at(key=record.key, shard=record.shard, records_before=record.index) from error.__cause__
                progress.skip(error.at(key=record.key, shard=record.shard))
                continue
            made.append(data)
            numbers.append(record.index)
            size += len(data)
            if size >= _BATCH:
                yield FramedExamples(tfrecord.frame(made), np.array(numbers), record.index + 1)
                made, numbers, size = [], [], 0
        yield FramedExamples(tfrecord.frame(made), np.array(numbers, np.int64), block.first + len(block))

    def _example(
        self, record: dict[str, Any], drawn: Any, leaves: Mapping[str, Select | SelectJSON], progress: ConversionProgress
    ) -> bytes:
        made = self.chain.run(record, drawn)
        if leaves:
            made = {"__key__": made["__key__"], **{name: leaf.pick(made) for name, leaf in leaves.items()}}
        if self.record_to_example is not None:
            result = self.record_to_example(made)
            if hasattr(result, "SerializeToString"):
                data: bytes = result.SerializeToString(deterministic=True)
                return data
            if isinstance(result, bytes):
                return result
            if not isinstance(result, Mapping):
                what = type(result).__name__
                raise UsageError(f"record_to_example returned {what}; it returns an Example, its bytes, or a dict of values.")
            made = dict(result)
        progress.seen.update(made)
        for name in self.numbered if self.record_to_example is None else ():
            if isinstance(text := made.get(name), bytes | bytearray | memoryview):
                made[name] = example.parse_integer(bytes(text), name)
        return example.encode(made, self.types, key=self.key)


class ConversionProgress:
    """What a conversion tells while it works: the report, the fields it met, and bytes read."""

    def __init__(self, tick: Tick, report: ReadReport | None = None) -> None:
        self.report = report or ReadReport()
        self.seen: set[str] = set()
        self._tick = tick
        self._bytes = self.report.bytes

    def tick(self) -> None:
        """Tell how many bytes were read since the last time."""
        self._tick(self.report.bytes - self._bytes)
        self._bytes = self.report.bytes

    def skip(self, error: TarvizError) -> None:
        """Count a record or the rest of a shard that was left out."""
        self.report.add(error.fault, skipped=True)


@dataclass(frozen=True)
class Settings:
    """How outputs are written; the same for all of them."""

    names: Names
    compression: tfrecord.Compression | None
    exists: write.Exists
    manifest: Mapping[str, Any] | None
    max_size: int | None = None

    def outputs(self, start: int = 0, done: Sequence[Written] = (), inputs: Inputs | None = None) -> Outputs:
        return Outputs(
            self.names,
            max_size=self.max_size,
            compression=self.compression,
            exists=self.exists,
            manifest=self.manifest,
            start=start,
            done=list(done),
            inputs=inputs,
        )


@dataclass(frozen=True, slots=True)
class ShardToConvert:
    """A shard to convert: its number among the inputs, what the manifest says of it, and the record to begin with."""

    number: int
    url: URL
    entry: dict[str, Any]
    start: int = 0

    __repr__ = redacted_repr


@dataclass(slots=True)
class Outcome:
    """What a job gives back."""

    report: ReadReport
    seen: set[str]
    written: list[Written] = field(default_factory=list)
    size: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    numbers: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    stop: int = 0
    error: TarvizError | None = None


@dataclass(frozen=True)
class EachJob:
    """One output for a shard, written whole by whoever does the job."""

    recipe: Recipe
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
    """The framed records of a shard in an unnamed file, for the parent to spread over outputs."""

    recipe: Recipe

    def __call__(self, source: ShardToConvert, file: IO[bytes] | None, tick: Tick) -> Outcome:
        assert file is not None
        progress = ConversionProgress(tick)
        outcome = Outcome(progress.report, progress.seen, stop=source.start)
        sizes, numbers = [outcome.size], [outcome.numbers]
        try:
            for batch in self.recipe.batches(source.url, progress, source.start):
                _append(file, batch.frames.buffers())
                sizes.append(batch.frames.size)
                numbers.append(batch.numbers)
                outcome.stop = batch.stop
        except TarvizError as error:
            outcome.error = error  # raised by the parent, after the records before it
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
        view = memoryview(self._map)
        return [view[at : min(at + _CHUNK, end)] for at in range(begin, end, _CHUNK)]


def digest(entries: Sequence[Mapping[str, Any]]) -> str:
    """A name for a list of inputs as they are now."""
    return hashlib.sha256(json.dumps(list(entries), sort_keys=True).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def kept_each(settings: Settings, sources: Sequence[ShardToConvert]) -> dict[int, Written]:
    """Source number → its output, where manifest and bytes prove that it need not be made again."""
    kept = {}
    for source in sources:
        url = settings.names.at(source.number)
        manifest = _manifest(url, settings)
        parts = manifest.get("sources", []) if manifest else []
        if manifest and len(parts) == 1 and _same(parts[0], source.entry) and (written := write.proven(url, manifest)):
            kept[source.number] = written
    return kept


def kept_sequence(settings: Settings, sources: Sequence[ShardToConvert]) -> tuple[list[Written], int, int]:
    """The outputs from the first on that are proven, then source and record with which the next one begins."""
    kept: list[Written] = []
    number = record = 0
    while True:
        url = settings.names.at(len(kept)) if settings.max_size is not None or not kept else None
        manifest = _manifest(url, settings) if url else None
        parts = manifest.get("sources", []) if manifest else []
        if url is None or manifest is None or not _follows(parts, sources, number, record):
            return kept, number, record
        whole = settings.manifest is not None and manifest.get("inputs") == settings.manifest.get("inputs")
        if not (manifest.get("full") or whole) or (written := write.proven(url, manifest)) is None:
            return kept, number, record
        kept.append(written)
        if not manifest.get("full"):
            return kept, len(sources), 0
        number, record = parts[-1]["number"], parts[-1]["stop"]


def _follows(parts: Sequence[Mapping[str, Any]], sources: Sequence[ShardToConvert], number: int, record: int) -> bool:
    """Whether the records of an output begin at a record of a source and come from sources that are still the same."""
    for at, part in enumerate(parts):
        place = part.get("number")
        if not isinstance(place, int) or not 0 <= place < len(sources) or not _same(part, sources[place].entry):
            return False
        if at == 0 and (place, part.get("first")) != (number, record) and not (place > number and part.get("first") == 0):
            return False
    return True


def _manifest(url: URL, settings: Settings) -> dict[str, Any] | None:
    found = write.read_manifest(url)
    wanted = json.loads(json.dumps(dict(settings.manifest or {})))
    return found if found and all(found.get(name) == wanted.get(name) for name in ("format", "options")) else None


def _same(part: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    # A source whose version is not known may have changed.
    known = entry["etag"] is not None or entry["mtime"] is not None
    return known and all(part.get(name) == entry[name] for name in ("shard", "size", "etag", "mtime"))
