"""Samples from shards: which part of them a worker reads, and blocks turned into the dicts that WebDataset yields."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tarviz.dialects.webdataset.gopen import own_opener
from tarviz.dialects.webdataset.handlers import Handler, reraise_exception
from tarviz.dialects.webdataset.parts.per_item import with_associate
from tarviz.dialects.webdataset.parts.places import WorkerPlace
from tarviz.dialects.webdataset.parts.samples import Needs, Sample
from tarviz.dialects.webdataset.shardlists import Splitter, refuse_several, single_node_only, split_by_node, split_by_worker, split_urls
from tarviz.dialects.webdataset.tariterators import ShardReading
from tarviz.model.errors import NotFoundError, UsageError
from tarviz.model.redaction import redacted_repr
from tarviz.read import stream as reading
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.stores.templates import braces

Share: TypeAlias = tuple[str, int, int | None]  # shard, first record, record after the last (None: its end)

_RESAMPLED = 1 << 60


def shares(urls: Sequence[str], worker: int, workers: int, options: ReadOptions) -> list[Share]:
    """What one of several workers reads, so that all together read every record once.

    Shards go round; where there are fewer of them than workers, each worker gets a range of the records, found by index.
    """
    if len(urls) >= workers:
        return [(url, 0, None) for url in urls[worker::workers]]
    told = {name: getattr(options, name) for name in ("key_split", "group", "duplicates", "concatenated")}
    counts = [len(reading.index(url, **told)) for url in urls]
    total, found, before = sum(counts), [], 0
    low, high = total * worker // workers, total * (worker + 1) // workers
    for url, count in zip(urls, counts, strict=True):
        first, last = max(low - before, 0), min(high - before, count)
        if first < last:
            # The last range runs to the end of the shard, so that damage after the last record is met by somebody.
            found.append((url, first, None if last == count else last))
        before += count
    return found


@dataclass(frozen=True)
class Source:
    """Shards and how they are shared out: the first part of a `WebDataset`, a value that pickles."""

    urls: tuple[str, ...]
    shards: ShardReading = field(default_factory=ShardReading)
    handler: Handler = reraise_exception
    shuffled: bool = False
    resampled: bool = False
    nodesplitter: Splitter | None = single_node_only
    workersplitter: Splitter | bool | None = True
    associate: Any = None
    empty_check: bool = True

    __repr__ = redacted_repr

    def known(self) -> list[str]:
        """The shards that the URLs stand for. One that is missing stays among them where a handler is to be asked."""
        found: list[str] = []
        for url in self.urls:
            try:
                found += braces(url) if own_opener(url) is not None else reading.shards([url])
            except NotFoundError:
                if self.handler is reraise_exception:
                    raise
                found += [shard for name in braces(url) for shard in _there(name)]
        return found

    def shares(self, seed: str, here: WorkerPlace) -> Iterator[Share]:
        """What this process reads in one pass, in order: split among ranks and workers first, shuffled then."""
        urls = self.known()
        chance = random.Random(f"{seed}/{here.node}/{here.worker}/shards")
        if self.nodesplitter is single_node_only:
            refuse_several(here)
        if self.resampled:
            return ((chance.choice(urls), 0, None) for _ in range(_RESAMPLED))
        if self.nodesplitter is split_by_node:  # of the rank whose pass this is, which may be one of a run that is resumed
            own = urls[here.node :: here.nodes]
        else:
            own = urls if self.nodesplitter in (None, single_node_only) else split_urls(self.nodesplitter, urls)
        if not own and self.empty_check:
            raise UsageError(
                f"rank {here.node} of {here.nodes} has no shard: there are {len(urls)} of them.",
                hint="Make at least as many shards as ranks, or pass empty_check=False where a rank may go without.",
            )
        if self.workersplitter is True or self.workersplitter is split_by_worker:
            found = shares(own, here.worker, here.workers, self.shards.options) if own else []
        else:
            found = [(url, 0, None) for url in (split_urls(self.workersplitter, own) if self.workersplitter else own)]
        if self.shuffled:
            chance.shuffle(found)
        return iter(found)

    def run(self, progress: PassProgress, seed: str, here: WorkerPlace, needs: Needs | None) -> Iterator[Sample]:
        """The samples of one pass, from `progress` on; it is kept up to date."""
        begin = progress.share, progress.record
        seen = begin != (0, 0)
        for number, (url, start, stop) in enumerate(self.shares(seed, here)):
            if number < begin[0]:
                continue
            first = max(start, begin[1]) if number == begin[0] else start
            try:
                with closing(self.shards.runs(url, progress.report, first, stop, needs)) as runs:  # type: ignore[type-var]
                    for at, rows in runs:
                        progress.share, progress.record = number, at
                        for sample in self._associate(rows):
                            progress.record += 1
                            if sample is not None:
                                seen = True
                                yield sample
            except Exception as error:  # noqa: BLE001  the handler decides
                if not self.handler(error):
                    return
            if not seen and self.resampled and number >= len(self.urls):
                break
        if not seen and self.empty_check and here.workers == 1:
            raise UsageError(f"there are no samples in {', '.join(self.urls)}.", hint="Pass empty_check=False where that is not a mistake.")

    def _associate(self, rows: Iterable[Sample | None]) -> Iterable[Sample | None]:
        return rows if self.associate is None else (sample and with_associate(self.associate, sample) for sample in rows)


def _there(name: str) -> Iterable[str]:
    """What one name stands for; the name itself where nothing is."""
    try:
        return reading.shards([name])
    except NotFoundError:
        return [name]


@dataclass(slots=True)
class PassProgress:
    """How far a pass is: the share and the record in its shard that come next, and what reading met."""

    share: int = 0
    record: int = 0
    report: ReadReport = field(default_factory=ReadReport)
