"""Who reads what: the shards of a pipeline shared out among ranks and workers, so that each record is read once an epoch."""

from __future__ import annotations

import inspect
import itertools
import os
import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz import stores
from tarviz.formats.index import ShardIndex
from tarviz.model.errors import UsageError
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL, Block
from tarviz.model.wording import plural
from tarviz.pipeline import Pipeline
from tarviz.read import stream
from tarviz.read.chosen import Chosen, numbers
from tarviz.read.shard_index import cached_index, is_doubtful, numbers_alike, shard_index
from tarviz.read.stream import ReadOptions

_QUICK = 1 << 30  # bytes of local shards that are indexed for the sake of their number
TURN = 16  # records that workers which share a shard take in turn
SEED = 0xFFFFFFFFFFFFFFFF
_DEAL = 0xDEA1  # tells the draws of dealing out from others of the same seed and epoch


@dataclass(frozen=True, slots=True)
class Piece:
    """What one reader reads of one shard: the records `start`…`stop`, and of these every `of`-th run of 16, the `share`-th.

    With `only`, these numbers of records, in ascending order, and nothing else. `chosen`: the numbers, in ascending order, of those
    that a condition chose in the whole shard; None where there is none. `source`: of a mix, from 0.
    """

    url: URL
    start: int = 0
    stop: int | None = None
    share: int = 0
    of: int = 1
    only: tuple[int, ...] | None = None
    chosen: NDArray[np.int64] | None = field(default=None, repr=False, compare=False)
    source: int = 0

    __repr__ = redacted_repr

    def length(self, records: int | None) -> int | None:
        """How many records it has, in a shard of `records`; None where that is not known.

        >>> Piece(URL("a.tar"), start=3).length(10), Piece(URL("a.tar"), share=1, of=2).length(10)
        (7, None)
        """
        if self.only is not None:
            return len(self.only)
        if self.chosen is not None:
            return len(self._choose(self.chosen))
        if self.of > 1 or (records is None and self.stop is None):
            return None
        stop = self.stop if records is None else records if self.stop is None else min(self.stop, records)
        return max((stop or 0) - self.start, 0)

    def _choose(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return rows[np.searchsorted(rows, self.start) : None if self.stop is None else np.searchsorted(rows, self.stop)]

    def part(self, low: int, high: int | None) -> Piece:
        """The piece without its first `low` records and those from `high` on."""
        if self.only is not None:
            return replace(self, only=self.only[low:high])
        if self.chosen is not None:
            rows = self._choose(self.chosen)[low:high]
            return replace(self, start=int(rows[0]), stop=int(rows[-1]) + 1) if len(rows) else replace(self, stop=self.start)
        stop = self.stop if high is None else self.start + high if self.stop is None else min(self.stop, self.start + high)
        return replace(self, start=self.start + low, stop=stop)

    @property
    def begin(self) -> int:
        """The record of its shard that it begins with."""
        return self.start if self.only is None else self.only[0]

    @property
    def end(self) -> int | None:
        """The record of its shard that it ends before; None: at the end of the shard."""
        return self.stop if self.only is None else self.only[-1] + 1

    def has(self, record: int) -> bool:
        """Whether record `record` of its shard is one of its own, where no condition chooses."""
        if self.only is not None:
            return record in self.only
        return self.start <= record and (self.stop is None or record < self.stop) and record // TURN % self.of == self.share

    def rows(self, block: Block) -> NDArray[np.int64]:
        """Which rows of a block of its shard it has."""
        numbers = np.arange(block.first, block.first + len(block))
        if self.only is not None:
            return np.flatnonzero(np.isin(numbers, self.only))
        return np.flatnonzero((numbers >= self.start) & (numbers // TURN % self.of == self.share))

    def behind(self, record: int) -> Piece:
        """The piece from record `record` of its shard on."""
        if self.only is not None:
            return replace(self, only=self.only[bisect_left(self.only, record) :])
        return replace(self, start=max(self.start, record))

    def number(self, place: int) -> int:
        """Which record of the shard its record `place` is."""
        if self.only is not None:
            return self.only[place]
        return self.start + place if self.chosen is None else int(self._choose(self.chosen)[place])


@dataclass(frozen=True, slots=True)
class ShareReader:
    """One of those that share the shards: worker `worker` of `workers` in rank `rank` of `world`."""

    rank: int = 0
    world: int = 1
    worker: int = 0
    workers: int = 1

    @property
    def numbers(self) -> tuple[int, ...]:
        """What tells its random order from that of others; nothing where it is alone."""
        return (self.rank * self.workers + self.worker,) if self.world * self.workers > 1 else ()


# Classes that share out among ranks what one data set yields: they read it on rank 0 alone, or the same on every rank.
_SHARING_MODULES = frozenset({"accelerate.data_loader", "transformers.trainer_pt_utils"})
_SHARING_CLASSES = frozenset({"DataLoaderDispatcher", "IterableDatasetShard"})


def shared_by_caller() -> bool:
    """Whether whoever asks for records shares them out among the ranks itself, as accelerate does, and so Hugging Face's Trainer.

    They take a DataLoader apart and tell its data set nothing; but what they ask of it is asked below their frames, which a
    forked worker has too. https://huggingface.co/docs/accelerate/concept_guides/internal_mechanism
    """
    if _SHARING_MODULES.isdisjoint(sys.modules):
        return False
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__") in _SHARING_MODULES and type(frame.f_locals.get("self")).__name__ in _SHARING_CLASSES:
            return True
        frame = frame.f_back
    return False


def distributed_rank(group: Any = None) -> tuple[int, int] | None:
    """(rank, number of ranks) of `torch.distributed`; None where nobody has imported or initialised it."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(group), distributed.get_world_size(group)


def world_of(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """(rank, number of ranks): those given, else those of `torch.distributed`, else RANK and WORLD_SIZE, else (0, 1)."""
    given = rank, world_size
    if given == (None, None):
        if (found := distributed_rank()) is not None:
            return found
        words = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
        if None in words:
            return 0, 1
        try:
            rank, world_size = (int(word or "") for word in words)
        except ValueError:
            raise UsageError(
                f"RANK={words[0]!r} and WORLD_SIZE={words[1]!r} are not two numbers.", hint="Pass rank= and world_size=."
            ) from None
    whole = all(isinstance(number, int) and not isinstance(number, bool) for number in (rank, world_size))
    if rank is None or world_size is None or not whole or not 0 <= rank < world_size:
        raise UsageError(f"rank={rank!r} and world_size={world_size!r} go together, and rank counts from 0.")
    return rank, world_size


def pieces(pipeline: Pipeline, reader: ShareReader, *, even: bool = False, reshare: bool = False, epoch: int = 0) -> list[Piece]:
    """What a reader reads in one pass, in shard order.

    Ranks first: each takes every `world`-th shard, or, where there are fewer shards than ranks, a range of the records. Then its workers
    in the same way. Ranges need the index of each shard (that of a plain local tar is made if need be); where there is none, workers
    take turns in a shard, and ranks are an error. `even` gives every rank a range of equally many records; the fewer than `world`
    that are left out are others in each epoch. `reshare` deals the shards out in another order in each epoch, as the seed says, and lets
    ranges begin at another record. Of each source of a mix a part, in this way.
    """
    seed = [pipeline.seed & SEED, epoch, _DEAL] if reshare else None
    return [piece for part in by_source(shards(pipeline)) for piece in _deal(part, pipeline.options, reader, even, epoch, seed)]


def by_source(whole: Iterable[Piece]) -> list[list[Piece]]:
    """Pieces, in the order of their sources, by source."""
    return [list(part) for _, part in itertools.groupby(whole, key=lambda piece: piece.source)]


def _deal(whole: list[Piece], options: ReadOptions, reader: ShareReader, even: bool, epoch: int, seed: list[int] | None) -> list[Piece]:
    begin, place = 0.0, {piece.url: at for at, piece in enumerate(whole)}
    if seed:
        random = np.random.default_rng(seed)
        whole, begin = [whole[at] for at in random.permutation(len(whole)).tolist()], float(random.random())
    if even:
        found = _even(whole, _count(whole, options), reader, epoch, begin)
    else:
        own = whole[reader.rank :: reader.world] if len(whole) >= reader.world else _ranges(whole, options, reader, begin)
        found = share_out(own, options, reader.worker, reader.workers)
    return sorted(found, key=lambda piece: (place[piece.url], piece.begin)) if seed else found


def shards(pipeline: Pipeline) -> list[Piece]:
    """The shards of a pipeline, each as a whole, with the records that its condition chooses where these can be counted."""
    options = pipeline.options
    sources = [pipeline.urls] if pipeline.mix is None else [(url,) for url in pipeline.urls]
    whole = [Piece(url, source=source) for source, given in enumerate(sources) for url in stream.shards(given)]
    if not isinstance(options.where, Chosen) or options.on_error == "skip" or options.group == "shard":
        return whole
    return [replace(piece, chosen=numbers(piece.url, options)) for piece in whole]


def share_out(own: list[Piece], options: ReadOptions, worker: int, workers: int) -> list[Piece]:
    """The part of one of several workers."""
    if workers == 1:
        return own
    if len(own) >= workers:
        return own[worker::workers]
    counts = lengths(own, options)
    if counts is not None:
        return cut(own, counts, *span(sum(counts), worker, workers))
    at = worker % len(own)
    return [replace(own[at], share=worker // len(own), of=len(range(at, workers, len(own))))]


def span(total: int, at: int, many: int) -> tuple[int, int]:
    """Where the part `at` of `many` begins and ends in so many in a row.

    >>> [span(10, at, 3) for at in range(3)]
    [(0, 3), (3, 6), (6, 10)]
    """
    return total * at // many, total * (at + 1) // many


def cut(whole: Sequence[Piece], counts: Sequence[int], low: int, high: int) -> list[Piece]:
    """The records `low`…`high` of pieces in a row."""
    found, begin = [], 0
    for piece, count in zip(whole, counts, strict=True):
        start, stop = max(low - begin, 0), min(high - begin, count)
        if start < stop:
            found.append(piece.part(start, stop) if (start, stop) != (0, count) else piece)
        begin += count
    return found


def lengths(whole: Sequence[Piece], options: ReadOptions, *, build: bool = True) -> list[int] | None:
    """How many records each piece has; None where the index of a shard does not tell."""
    found: list[int] = []
    for piece in whole:
        count = piece.length(None)
        if count is None and piece.of == 1:
            index = trusted_index(piece.url, options, build=build)
            count = None if index is None else piece.length(len(index))
        if count is None:
            return None
        found.append(count)
    return found


def tasks(whole: list[Piece], options: ReadOptions, wanted: int, *, build: bool) -> list[list[Piece]]:
    """What each task reads: a shard, or, where more tasks than shards are wanted, a range of the records, by the index (made if `build`);
    where fewer are, several shards."""
    counts = lengths(whole, options, build=build) if len(whole) < wanted else None
    if counts is not None:
        many = max(1, min(wanted, sum(counts)))
        return [cut(whole, counts, *span(sum(counts), at, many)) for at in range(many)]
    many = max(1, min(wanted, len(whole))) if build else len(whole)
    return [whole[slice(*span(len(whole), at, many))] for at in range(many)]


def trusted_index(url: URL, options: ReadOptions, *, build: bool = True) -> ShardIndex | None:
    """The index of a plain shard whose records have the same numbers there and where they are read; None without one."""
    if url == "-" or options.where or options.keys:
        return None
    index = shard_index(url, options, may_stream=False) if build else cached_index(stores.of(url).stat(url), options)
    return index if index is not None and not index.packed and _tells(index, options) else None


def count_records(piece: Piece, options: ReadOptions) -> tuple[Piece, int] | None:
    """A piece whose records are numbered, and how many they are, though its shard be read for it once; None where that does not tell."""
    count = piece.length(None)
    if count is None:
        if piece.url == "-" or options.where or options.keys or options.group == "shard":
            return None
        index = shard_index(piece.url, options)
        if index is None or not _tells(index, options):
            return None
        if piece.of > 1:
            piece = replace(piece, share=0, of=1, only=tuple(filter(piece.has, range(piece.start, len(index)))))
        count = piece.length(len(index))
    return None if count is None else (piece, count)


def _tells(index: ShardIndex, options: ReadOptions) -> bool:
    """Whether records have the same numbers in an index and where they are read."""
    # Of a shard without a record nobody would read anything, and nobody would see why it has none.
    return numbers_alike(index, options) and not (options.strict and not len(index) and is_doubtful(index))


def quick(whole: Sequence[Piece]) -> bool:
    """Whether the headers of all these shards are read in less than a second, whatever lies in them."""
    if not all(stores.is_local(piece.url) for piece in whole):
        return False
    return sum(stores.of(piece.url).stat(piece.url).size or _QUICK for piece in whole) <= _QUICK


def check_any(pipeline: Pipeline, reader: ShareReader, own: Sequence[Piece]) -> None:
    """`UsageError` where a rank, of several, turned out to have shards, its `own`, without a record."""
    counts = lengths(own, pipeline.options)
    if (counts is None and reader.workers == 1) or (counts is not None and not sum(counts)):
        raise UsageError(
            f"rank {reader.rank} of {reader.world} gets no record: its {len(own)} shard(s) are empty"
            + (", or nothing in them was chosen." if pipeline.options.where else "."),
            hint="Leave empty shards out, or share out records with even=True; the other ranks would wait for this one.",
        )


def _count(whole: list[Piece], options: ReadOptions) -> list[int]:
    if options.on_error == "skip":
        raise UsageError('even=True cannot count records that on_error="skip" leaves out.', hint='Use on_error="raise".')
    counts = lengths(whole, options)
    if counts is None:
        raise UsageError(
            "even=True shares out records by number, which needs the index of each shard.",
            hint="tarviz index makes it, for tars that are not compressed.",
        )
    return counts


def _ranges(whole: list[Piece], options: ReadOptions, reader: ShareReader, begin: float) -> list[Piece]:
    """A rank's range of the records, where there are fewer shards than ranks; that of the first begins at this part of all of them."""
    counts = lengths(whole, options)
    what = f"{plural(len(whole), 'shard')} cannot be shared out among {reader.world} ranks"
    if counts is None:
        raise UsageError(
            f"{what}: {_without(len(whole), reader.world)} without a shard.",
            hint="Make more shards (tarviz split), or index them (tarviz index) if they are not compressed: ranks then share records.",
        )
    total = sum(counts)
    if total < reader.world:
        raise UsageError(f"{what}: they hold {total} record(s), {_without(total, reader.world)} without one.", hint="Start fewer ranks.")
    low, high = (int(begin * total) + edge for edge in span(total, reader.rank, reader.world))
    return cut([*whole, *whole], [*counts, *counts], low, high)


def _without(served: int, world: int) -> str:
    return f"rank {served} is" if world - served == 1 else f"ranks {served} to {world - 1} are"


def _even(whole: list[Piece], counts: list[int], reader: ShareReader, epoch: int, begin: float) -> list[Piece]:
    total = sum(counts)
    each, spare = divmod(total, reader.world)
    if not each:
        raise UsageError(f"{total} record(s) cannot be shared out evenly among {reader.world} ranks.", hint="Start fewer ranks.")
    first = (epoch * spare + int(begin * total)) % total + reader.rank * each
    low, high = (first + edge for edge in span(each, reader.worker, reader.workers))
    return cut([*whole, *whole], [*counts, *counts], low, high)
