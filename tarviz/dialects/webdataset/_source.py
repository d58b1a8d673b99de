"""Samples from shards: which part of them a worker reads, and blocks turned into the dicts that WebDataset yields."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tarviz.dialects.webdataset._handlers import Handler, ignore_and_continue, reraise_exception, warn_and_continue
from tarviz.model.errors import TarvizError, UsageError
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL, Block
from tarviz.read import stream
from tarviz.read.stream import ReadOptions, ReadReport

Sample: TypeAlias = dict[str, Any]
Share: TypeAlias = tuple[str, int, int | None]  # shard, first record, record behind the last (None: its end)
Splitter: TypeAlias = Callable[[Sequence[str]], Sequence[str]]

_SMALL = 8192  # bytes of a member; below, a second copy of the block is cheaper than a view on each member
_RESAMPLED = 1 << 60


@dataclass(frozen=True, slots=True)
class Place:
    """Which of how many processes this is: worker of a DataLoader, node of a distributed run."""

    worker: int = 0
    workers: int = 1
    node: int = 0
    nodes: int = 1
    seed: int | None = None  # of the DataLoader's pass, the same in all its workers


def place() -> Place:
    """Where this process stands. Torch is asked only when somebody imported it."""
    node, nodes = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        node, nodes = distributed.get_rank(), distributed.get_world_size()
    data = sys.modules.get("torch.utils.data")
    info = data.get_worker_info() if data is not None else None
    if info is None:
        return Place(node=node, nodes=nodes)
    return Place(info.id, info.num_workers, node, nodes, info.seed - info.id)


def single_node_only(urls: Sequence[str]) -> Sequence[str]:
    """All shards; refuses a distributed run, where every node would see all of them."""
    here = place()
    if here.nodes > 1:
        raise UsageError(f"this is node {here.node} of {here.nodes}.", hint="Pass nodesplitter=split_by_node, or one of your own.")
    return urls


def split_by_node(urls: Sequence[str]) -> Sequence[str]:
    """Every n-th shard, for n nodes."""
    here = place()
    return urls[here.node :: here.nodes]


def split_by_worker(urls: Sequence[str]) -> Sequence[str]:
    """Every n-th shard, for n workers. `WebDataset` does more: fewer shards than workers are cut into record ranges."""
    here = place()
    return urls[here.worker :: here.workers]


def shares(urls: Sequence[str], worker: int, workers: int, options: ReadOptions) -> list[Share]:
    """What one of several workers reads, so that all together read every record once.

    Shards go round; where there are fewer of them than workers, each worker gets a range of the records, found by index.
    """
    if len(urls) >= workers:
        return [(url, 0, None) for url in urls[worker::workers]]
    counts = [len(stream.index(url, **_index_options(options))) for url in urls]
    total, found, before = sum(counts), [], 0
    low, high = total * worker // workers, total * (worker + 1) // workers
    for url, count in zip(urls, counts, strict=True):
        first, last = max(low - before, 0), min(high - before, count)
        if first < last:
            # The last range runs to the end of the shard, so that damage behind the last record is met by somebody.
            found.append((url, first, None if last == count else last))
        before += count
    return found


def _index_options(options: ReadOptions) -> dict[str, Any]:
    return {name: getattr(options, name) for name in ("key_split", "group", "duplicates", "concatenated")}


@dataclass(frozen=True)
class Source:
    """Shards and how they are read: the first part of a `WebDataset`, a value that pickles."""

    urls: tuple[str, ...]
    options: ReadOptions = field(default_factory=ReadOptions)
    handler: Handler = reraise_exception
    shuffled: bool = False
    resampled: bool = False
    nodesplitter: Splitter | None = single_node_only
    workersplitter: Splitter | bool = True
    select_files: Callable[[str], bool] | None = None
    associate: Any = None
    empty_check: bool = True

    __repr__ = redacted_repr

    def shares(self, seed: str, here: Place) -> Iterator[Share]:
        """What this process reads in one pass, in order."""
        urls: list[str] = list(stream.shards(self.urls))
        if self.resampled:
            chance = random.Random(f"{seed}/{here.node}/{here.worker}/shards")
            return ((chance.choice(urls), 0, None) for _ in range(_RESAMPLED))
        if self.shuffled:
            random.Random(f"{seed}/shards").shuffle(urls)
        own: Sequence[str] = urls if self.nodesplitter is None else list(self.nodesplitter(urls))
        if self.workersplitter is True:
            return iter(shares(own, here.worker, here.workers, self.options))
        return ((url, 0, None) for url in (self.workersplitter(own) if self.workersplitter else own))

    def run(self, progress: Progress, seed: str, here: Place, needs: Needs | None) -> Iterator[Sample]:
        """The samples of one pass, from `progress` on; it is kept up to date."""
        options = self.options
        if self.handler in (ignore_and_continue, warn_and_continue):
            options = stream.with_changes(options, {"on_error": "skip"})
        begin = progress.share, progress.record
        seen = begin != (0, 0)
        for number, (url, start, stop) in enumerate(self.shares(seed, here)):
            if number < begin[0]:
                continue
            first = max(start, begin[1]) if number == begin[0] else start
            try:
                with closing(stream.blocks(URL(url), options, report=progress.report, start=first, stop=stop)) as run:
                    for block in run:
                        rows = self._rows(block, url, needs)
                        progress.share, progress.record = number, block.first
                        del block
                        for sample in rows:
                            progress.record += 1
                            if sample is not None:
                                seen = True
                                yield sample
            except TarvizError as error:
                if not self.handler(error):
                    return
            if not seen and self.resampled and number >= len(self.urls):
                break
        if not seen and self.empty_check and here.workers == here.nodes == 1:
            raise UsageError(f"there are no samples in {', '.join(self.urls)}.", hint="Pass empty_check=False where that is no mistake.")

    def _rows(self, block: Block, url: str, needs: Needs | None) -> list[Sample | None]:
        rows: list[Sample | None] = []
        if self.select_files is None:
            rows += samples(block, url, needs)
        else:
            rows += [_selected(block, row, url, self.select_files) for row in range(len(block))]
        if self.associate is not None:
            for sample in rows:
                if sample is not None:
                    key = sample["__key__"]
                    sample.update(self.associate(key) if callable(self.associate) else self.associate.get(key, {}))
        return rows


@dataclass(slots=True)
class Progress:
    """How far a pass is: the share and the record in its shard that come next, and what reading met."""

    share: int = 0
    record: int = 0
    report: ReadReport = field(default_factory=ReadReport)


@dataclass(frozen=True, slots=True)
class Needs:
    """The fields that are asked for behind the source: groups of alternatives."""

    groups: tuple[tuple[str, ...], ...]

    def columns(self, fields: Sequence[str]) -> Collection[str]:
        """Which of a record's fields have to be cut out; all of them when one that is asked for is missing."""
        if not all(any(name in fields or name.startswith("__") for name in group) for group in self.groups):
            return fields
        return {name for group in self.groups for name in group}


def samples(block: Block, url: str, needs: Needs | None = None) -> list[Sample]:
    """A block's records as plain dicts: `__key__`, `__url__`, fields as bytes of their own, `__local_path__`."""
    keys = [key.decode("utf-8", "surrogateescape") for key in block.keys]
    fields = block.fields
    if fields is None:
        return [_sample(block, row, key, url, needs) for row, key in enumerate(keys)]
    starts, ends = block.offset.tolist(), (block.offset + block.size).tolist()
    wanted = fields if needs is None else needs.columns(fields)
    width, data = len(fields), block.data
    cut: Any = data.tobytes() if int(block.size.sum()) < _SMALL * len(block.size) else None
    names: list[str] = ["__key__", "__url__"]
    columns: list[list[Any]] = [keys, [url] * len(keys)]
    for column, name in enumerate(fields):
        if name not in wanted:
            continue
        places = zip(starts[column::width], ends[column::width], strict=True)
        names.append(name)
        columns.append([cut[a:b] for a, b in places] if cut is not None else [bytes(data[a:b]) for a, b in places])
    names.append("__local_path__")
    columns.append(columns[1])
    return [dict(zip(names, row, strict=False)) for row in zip(*columns, strict=True)]


def _sample(block: Block, row: int, key: str, url: str, needs: Needs | None) -> Sample:
    record = block[row]
    wanted = record if needs is None else needs.columns(tuple(record))
    fields = {name: bytes(record[name]) for name in record if name in wanted}
    return {"__key__": key, "__url__": url, **fields, "__local_path__": url}


def _selected(block: Block, row: int, url: str, select: Callable[[str], bool]) -> Sample | None:
    """The record without the members that `select` refuses by name; None when nothing is left."""
    record = block[row]
    fields = {name: bytes(record[name]) for name, member in zip(record, record.members, strict=True) if select(member.name)}
    return {"__key__": record.key, "__url__": url, **fields, "__local_path__": url} if fields else None
