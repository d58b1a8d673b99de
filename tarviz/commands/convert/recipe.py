"""What `convert` makes of a shard: its records as framed Examples, by a chain, a selection and types."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz import selection
from tarviz.engines import Tick
from tarviz.formats import example, example_fields, tfrecord
from tarviz.formats.features import check_kinds
from tarviz.model.errors import DataError, TarvizError, UsageError
from tarviz.model.types import URL, Block
from tarviz.ops import Chain, draws, unpack
from tarviz.ops.func import Func
from tarviz.ops.rename import Rename
from tarviz.outputs import Run
from tarviz.read import stream
from tarviz.read.chosen import Chosen
from tarviz.read.indexed import RecordRange, range_blocks
from tarviz.read.read_ahead import take_bytes
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.selection import Select, SelectJSON

_BATCH = 4 << 20  # bytes of Examples that are framed and written together
Ints = NDArray[np.int64]


@dataclass(slots=True)
class FramedRecords:
    """Records ready to be written, with their numbers in the shard; `stop` is the number after the last record looked at."""

    frames: Run
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
        check_kinds(self.types)
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

    def batches(self, url: URL, progress: ConversionProgress, start: int = 0, part: RecordRange | None = None) -> Iterator[FramedRecords]:
        """The Examples of a shard, from record `start` on, or of a range of it."""
        if part is None:
            blocks = stream.blocks(url, self.options, report=progress.report, start=start)
        else:
            blocks = range_blocks(url, self.options, part, progress.report)
        renames = self.renames
        try:
            with closing(blocks):
                for block in blocks:
                    progress.tick()
                    restored = not renames and example_fields.MARK in block.exts
                    plain = renames is not None and not restored
                    yield from self._plain(block, renames or {}, progress) if plain else self._run_chain(block, progress)
                    del block
        except DataError as error:
            if self.options.on_error == "raise":
                raise error.at(shard=url) from error.__cause__
            progress.skip(error.at(shard=url))
        finally:
            progress.tick()

    def _plain(self, block: Block, renames: Mapping[str, str], progress: ConversionProgress) -> Iterator[FramedRecords]:
        fields = None
        if renames:
            block = replace(block, exts=tuple(renames.get(ext, f"\0{ext}") for ext in block.exts))
            fields = tuple(renames.values())
        progress.seen.update(block.exts if fields is None else fields)
        types = {**dict.fromkeys(self.numbered, "int64"), **self.types}
        made = example.encode_block(block, types, key=self.key, fields=fields, on_error=self.options.on_error)
        for error in made.faults:
            progress.skip(error)
        yield FramedRecords(tfrecord.frame(made), block.first + made.rows, block.first + len(block))

    def _run_chain(self, block: Block, progress: ConversionProgress) -> Iterator[FramedRecords]:
        needs = None if self.record_to_example and isinstance(self.select, selection.SelectAll) else self.chain.needs(self.select.needs())
        drawn = draws(self.chain, block.keys, self.seed) if self.chain.draws else None
        leaves = self.leaves()
        made: list[bytes] = []
        numbers: list[int] = []
        size = 0
        for row, record in enumerate(block):
            try:
                data = self._example(unpack(record, needs, take_bytes), None if drawn is None else drawn[row], leaves, progress)
            except TarvizError as error:
                if self.options.on_error == "raise":
                    raise error.at(key=record.key, shard=record.shard, records_before=record.index) from error.__cause__
                progress.skip(error.at(key=record.key, shard=record.shard))
                continue
            made.append(data)
            numbers.append(record.index)
            size += len(data)
            if size >= _BATCH:
                yield FramedRecords(tfrecord.frame(made), np.array(numbers), record.index + 1)
                made, numbers, size = [], [], 0
        yield FramedRecords(tfrecord.frame(made), np.array(numbers, np.int64), block.first + len(block))

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
        if not leaves and self.record_to_example is None and example_fields.MARK in made:
            return example_fields.restore(made, self.types, key=self.key)
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

    def settle(self, part: RecordRange) -> None:
        """Count a range that was read, so that all ranges of a shard count what the shard does."""
        self.report.bytes, self.report.shards = part.size, int(part.last)
        self.tick()

    def skip(self, error: TarvizError) -> None:
        """Count a record or the rest of a shard that was left out."""
        self.report.add(error.fault, skipped=True)
