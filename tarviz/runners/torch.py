"""The runner `torch`: a pipeline as a `torch.utils.data.IterableDataset`, shared out among workers and ranks, that can be resumed."""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from tarviz.model.errors import DataError, MissingPackageError, TarvizError, UsageError
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL, Record
from tarviz.ops.base import unpack
from tarviz.pipeline import Pipeline
from tarviz.read import stream
from tarviz.read.indexed import blocks as indexed_blocks
from tarviz.read.shard_index import shard_index
from tarviz.read.stream import ReadReport
from tarviz.runners.eager import Eager, shuffled

try:
    import torch.distributed
    from torch.utils.data import DataLoader, IterableDataset, default_collate, default_convert, get_worker_info
except ImportError as error:
    raise MissingPackageError.of("torch", "Pipeline.torch()", "torch") from error

_CHUNK = 16  # records worked on together; also what workers that share a shard take in turn


def run(
    pipeline: Pipeline,
    *,
    shuffle: int | None = None,
    repeat: int | None = 1,
    rank: int | None = None,
    world_size: int | None = None,
    epoch: int = 0,
) -> Records:
    """The pipeline as an `IterableDataset`. See `Records` for the arguments."""
    return Records(pipeline, shuffle=shuffle, repeat=repeat, rank=rank, world_size=world_size, epoch=epoch)


@dataclass(frozen=True, slots=True)
class Piece:
    """What one worker reads of one shard: records `start`…`stop`, and of these every `of`-th run of 16, the `share`-th."""

    url: URL
    start: int = 0
    stop: int | None = None
    share: int = 0
    of: int = 1

    __repr__ = redacted_repr


class Records(IterableDataset):  # type: ignore[misc, type-arg, unused-ignore]
    """What a pipeline yields, for a `DataLoader`: values of the eager runner, arrays as NumPy arrays (images [h, w, c]).

    The loader's collate function makes tensors of arrays and numbers; text and bytes stay lists. Each worker of each rank reads
    shards of its own, or a range of the records where there are fewer shards than workers; every record comes exactly once.
    Where ranges are not known beforehand (a compressed shard, `on_error="skip"`), those workers read the shard together and
    take turns.

    `shuffle`: records pass through a buffer of so many, one per worker, in an order that seed, epoch and worker decide. `repeat`:
    passes over the shards, each an epoch; None goes on for ever. `rank` and `world_size` default to those of
    `torch.distributed` where that is initialised. `set_epoch` makes random ops and shuffling draw anew, and reaches workers that
    persist.

    `state_dict` and `load_state_dict` continue behind any record, in the same process; with workers take the `loader`.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        shuffle: int | None = None,
        repeat: int | None = 1,
        rank: int | None = None,
        world_size: int | None = None,
        epoch: int = 0,
    ) -> None:
        for name, value in (("shuffle", shuffle), ("repeat", repeat), ("epoch", epoch)):
            if value is not None and (not isinstance(value, int) or value < 0):
                raise UsageError(f"{name}={value!r} is no whole number from 0 on.")
        if (rank is None) != (world_size is None) or (rank is not None and world_size is not None and not 0 <= rank < world_size):
            raise UsageError(f"rank={rank!r} and world_size={world_size!r} go together, and rank counts from 0.")
        self.pipeline = pipeline
        self.shuffle = shuffle or 0
        self.repeat = repeat
        self.report = ReadReport()
        self._given = None if rank is None or world_size is None else (rank, world_size)
        shared: Any = torch.tensor([epoch], dtype=torch.int64)
        self._epoch = shared.share_memory_()  # workers that persist see it change
        self._turn = 0
        self._places: dict[int, list[int]] = {}
        self._resume: dict[int, list[int]] = {}
        self._slots: int | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.pipeline!r}>"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_given": self._world()}

    def __len__(self) -> int:
        """Records of all workers, where an index of every shard is cached and there is one rank; `TypeError` otherwise."""
        if self.repeat is None or self._world() not in (None, (0, 1)):
            raise TypeError("how many records this rank gets is not known")
        return len(self.pipeline) * self.repeat

    def __bool__(self) -> bool:
        return True

    @property
    def epoch(self) -> int:
        """The number of the first pass."""
        return int(self._epoch[0])

    def set_epoch(self, epoch: int) -> None:
        """The number of the next iteration's first pass; what was loaded by `load_state_dict` is forgotten."""
        self._epoch[0] = epoch
        self.clear()

    def clear(self) -> None:
        """Forget a state that was loaded."""
        self._resume, self._slots, self._turn = {}, None, 0

    def _world(self) -> tuple[int, int] | None:
        if self._given is None and torch.distributed.is_available() and torch.distributed.is_initialized():
            return torch.distributed.get_rank(), torch.distributed.get_world_size()
        return self._given

    def slot(self) -> tuple[int, int]:
        """Which worker of how many this is, all ranks counted."""
        rank, world = self._world() or (0, 1)
        worker = get_worker_info()
        count = 1 if worker is None else worker.num_workers
        own = 0 if worker is None else (worker.id + self._turn) % count
        return rank * count + own, world * count

    def __iter__(self) -> Iterator[Any]:
        slot, slots = self.slot()
        if self._slots not in (None, slots):
            raise UsageError(f"The state is of {self._slots} worker(s) in all, this is one of {slots}.", hint="Take as many as before.")
        begin = self._resume.pop(slot, [0, 0, 0])
        self.report = ReadReport()
        self._places[slot] = begin
        return self._passes(slot, slots, self.epoch, begin, self.report)

    def _passes(self, slot: int, slots: int, epoch: int, begin: list[int], report: ReadReport) -> Generator[Any, None, None]:
        pieces = self._pieces(slot, slots)
        count, number, record = begin
        while self.repeat is None or count < self.repeat:
            found = [number, record] != [0, 0]
            with closing(self._values(pieces, slot, epoch + count, number, record, report)) as values:
                for number, record, value in values:
                    found = True
                    self._places[slot] = [count, number, record]
                    yield value
            if not found:
                return
            count, number, record = count + 1, 0, 0
            self._places[slot] = [count, 0, 0]

    def _values(
        self, pieces: list[Piece], slot: int, epoch: int, number: int, record: int, report: ReadReport
    ) -> Generator[tuple[int, int, Any], None, None]:
        """(piece, record to go on with, value); when shuffled: (0, records taken, value)."""
        pipeline, work = self.pipeline, Eager(self.pipeline)
        raising = pipeline.options.on_error == "raise"
        mixed = self.shuffle > 1
        with closing(self._records(pieces, report) if mixed else self._records(pieces, report, number, record)) as records:
            items = ((at, each.index + 1, (unpack(each, pipeline.needs), None if mixed else each)) for at, each in records)
            if mixed:
                order = shuffled(items, self.shuffle, [pipeline.seed & 0xFFFFFFFFFFFFFFFF, epoch, slot])
                items = ((0, taken, item) for taken, (_, _, item) in enumerate(itertools.islice(order, record, None), record + 1))
            while chunk := list(itertools.islice(items, _CHUNK)):
                results = work._process([item for _, _, item in chunk], epoch)
                for (at, after, _), value in zip(chunk, results, strict=False):
                    if not isinstance(value, TarvizError):
                        yield at, after, value
                    elif raising:
                        raise value
                    else:
                        report.add(value.fault, skipped=True)

    def _records(
        self, pieces: list[Piece], report: ReadReport, number: int = 0, record: int = 0
    ) -> Generator[tuple[int, Record], None, None]:
        """(piece, record) from record `record` of piece `number` on."""
        options = self.pipeline.options
        for at, piece in enumerate(pieces[number:], number):
            start = max(piece.start, record if at == number else 0)
            try:
                # Where damage is skipped, records have other numbers than in an index: count them from the front.
                run = indexed_blocks(piece.url, options, report, start if options.on_error == "raise" else 0, piece.stop)
                with closing(run) as blocks:
                    for each in itertools.chain.from_iterable(blocks):
                        if each.index >= start and each.index // _CHUNK % piece.of == piece.share:
                            yield at, each
            except DataError as error:
                if options.on_error == "raise":
                    raise
                report.add(error.at(shard=piece.url).fault, skipped=True)

    def _pieces(self, slot: int, slots: int) -> list[Piece]:
        """What worker `slot` of `slots` reads."""
        options, urls = self.pipeline.options, stream.shards(self.pipeline.urls)
        if len(urls) >= slots:
            return [Piece(url) for url in urls[slot::slots]]
        ranges = options.on_error == "raise" and options.group == "adjacent"
        counts: list[int] = []
        for url in urls if ranges else ():
            index = shard_index(url, options, may_stream=False)
            if index is None or index.packed or index.error is not None:
                break
            counts.append(len(index))
        if len(counts) == len(urls):
            total, begin = sum(counts), 0
            low, high = total * slot // slots, total * (slot + 1) // slots
            pieces = []
            for url, count in zip(urls, counts, strict=True):
                start, stop = max(low - begin, 0), min(high - begin, count)
                if start < stop:
                    pieces.append(Piece(url, start, stop))
                begin += count
            return pieces
        at = slot % len(urls)
        return [Piece(urls[at], share=slot // len(urls), of=len(range(at, slots, len(urls))))]

    def place(self) -> tuple[int, list[int]]:
        """Which worker this is, and where it stands: pass, piece, record to go on with."""
        slot = self.slot()[0]
        return slot, self._places.get(slot, [0, 0, 0])

    def state_dict(self) -> dict[str, Any]:
        """Where the iteration in this process stands, as JSON-ready data."""
        slot, place = self.place()
        return {"epoch": self.epoch, "slots": self.slot()[1], "places": {str(slot): list(place)}, "turn": 0}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next iteration go on where `state` says. `UsageError` there when the number of workers is another."""
        self._epoch[0] = state["epoch"]
        self._slots, self._turn = state["slots"], state["turn"]
        self._resume = {int(slot): list(place) for slot, place in state["places"].items()}

    def loader(self, batch_size: int | None = 1, **options: Any) -> Loader:
        """A `DataLoader` over the dataset that can be resumed; keywords are those of `DataLoader`."""
        return Loader(self, batch_size=batch_size, **options)


class Loader(DataLoader):  # type: ignore[misc, type-arg, unused-ignore]
    """A `DataLoader` whose `state_dict` says what was delivered, whatever its workers had read ahead.

    Resumed with as many workers and the same batch size, it delivers exactly the batches that were left, in the same order.
    Where TensorFlow is loaded, workers are not forked (`multiprocessing_context` says otherwise): a child of a process with its
    threads can wait for ever for a lock that one of them had.
    """

    dataset: Records

    def __init__(
        self, dataset: Records, *, batch_size: int | None = 1, collate_fn: Callable[[Any], Any] | None = None, **options: Any
    ) -> None:
        if options.get("num_workers") and options.get("multiprocessing_context") is None:
            options["multiprocessing_context"] = safe_context()
        collate = collate_fn or (default_convert if batch_size is None else default_collate)
        super().__init__(dataset, batch_size=batch_size, collate_fn=functools.partial(_stamped, collate, dataset), **options)
        self._places: dict[int, list[int]] = {}
        self._last = -1

    def __iter__(self) -> Any:
        dataset = self.dataset
        self._places, self._last = dict(dataset._resume), dataset._turn - 1
        rank, _ = dataset._world() or (0, 1)
        iterator = super().__iter__()
        dataset.clear()  # workers have their copies
        return self._values(iterator, rank * max(self.num_workers, 1))

    def _values(self, iterator: Any, first: int) -> Iterator[Any]:
        for value, (slot, place) in iterator:
            self._places[slot], self._last = place, slot - first
            yield value

    def state_dict(self) -> dict[str, Any]:
        """What was delivered so far, as JSON-ready data: of each worker its place, and whose turn it is."""
        workers = max(self.num_workers, 1)
        _, world = self.dataset._world() or (0, 1)
        places = {str(slot): list(place) for slot, place in self._places.items()}
        return {"epoch": self.dataset.epoch, "slots": workers * world, "places": places, "turn": (self._last + 1) % workers}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next iteration go on where `state` says."""
        self.dataset.load_state_dict(state)


def safe_context() -> str | None:
    """The way to start workers; None is the default of this Python and system."""
    method = multiprocessing.get_start_method(allow_none=True) or ("fork" if sys.platform == "linux" else "spawn")
    if "tensorflow" not in sys.modules or method != "fork":
        return None
    multiprocessing.set_forkserver_preload([__name__])
    return "forkserver"


def _stamped(collate: Callable[[Any], Any], dataset: Records, items: Any) -> tuple[Any, tuple[int, list[int]]]:
    worker = get_worker_info()
    here: Any = dataset if worker is None else worker.dataset
    slot, place = here.place()
    return collate(items), (slot, list(place))
