"""The runner `torch`: a pipeline as a `torch.utils.data.IterableDataset`, shared out among workers and ranks, that can be resumed."""

from __future__ import annotations

import functools
import multiprocessing
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Unpack

from tarviz.model.errors import MissingPackageError, TarvizError, UsageError
from tarviz.pipeline import Pipeline
from tarviz.read.stream import ReadReport
from tarviz.run_keywords import TorchKeywords, takes
from tarviz.runners.arguments import batches, whole_numbers
from tarviz.runners.elsewhere import elsewhere
from tarviz.runners.plans import ReaderPlan, Resumed, State, Trail, check, resume, state_of
from tarviz.runners.shares import ShareReader, shared_by_caller, world_of
from tarviz.runners.torch.epochs import SIZE, Epochs
from tarviz.runners.torch.worker_errors import travelling
from tarviz.runners.walk import Walk

try:
    import torch.distributed
    from torch.utils.data import DataLoader, IterableDataset, default_convert, get_worker_info
except ImportError as error:
    raise MissingPackageError.of("torch", "Pipeline.torch()", "torch") from error

from tarviz.runners.torch.collate import Collate

_CHUNK = 16  # records worked on together
# What people ask of this runner that others do, and where it is to be had (`Pipeline.run` says so).
ELSEWHERE = dict.fromkeys(
    ("batch", "batch_size", "num_workers", "drop_remainder", "drop_last", "prefetch", "pin_memory", "collate_fn"),
    "Batches and workers are the DataLoader's: DataLoader(pipeline.torch(), batch_size=8, num_workers=2).",
) | {"pad": "Batches are filled up where they are made: pipeline.torch().loader(8, pad=True)."}


class TorchRecords(IterableDataset):  # type: ignore[misc, type-arg, unused-ignore]
    """What a pipeline yields, for a `DataLoader`: values of the eager runner, arrays as NumPy arrays (images [h, w, c]).

    The collate function of `loader` makes tensors of arrays and numbers; text and bytes stay lists. Each worker of each rank reads
    shards of its own, or a range of the records where there are fewer shards than workers (`shares.pieces`); every record comes
    exactly once an epoch. `rank` and `world_size` default to those of `torch.distributed` where that is initialised, else to the
    environment's RANK and WORLD_SIZE; where accelerate or Hugging Face's Trainer share out what comes, to (0, 1).
    `even` gives every rank equally many records, and so equally many batches where ranks
    have equally many workers; up to `world_size - 1` records are left out, others in each epoch. `reshare` deals the shards out to ranks
    and workers anew in every epoch.

    Every `iter` is a new epoch, with workers or without, persistent or not, from `epoch` on: random ops and shuffling draw anew.
    `set_epoch` pins one, also for workers that persist. `shuffle`: shards come in another order in every epoch, and records pass
    through a buffer of so many, one per worker, as seed, epoch and worker decide. `repeat`: passes over the shards, each an epoch;
    None goes on for ever.

    `engine="ray"`: records are read and worked on by the cluster at `address`, `num_workers` tasks at a time (None: one per processor
    there), and handed out by this process: a loader of it has no workers of its own (`num_workers=0`). `send_functions` lets functions
    of the chain (`Func`) run there. See `eager.Eager`.

    `state_dict` and `load_state_dict` continue after any record, in the same process or, by torchdata's `StatefulDataLoader`, in
    its workers; with workers of torch's own loader take `loader()`.
    """

    @takes(TorchKeywords)
    def __init__(self, pipeline: Pipeline, **options: Unpack[TorchKeywords]) -> None:
        workers, rank, world_size = options["num_workers"], options["rank"], options["world_size"]
        self.elsewhere = elsewhere(pipeline, options["engine"], options["address"], workers, send_functions=options["send_functions"])
        if self.elsewhere is None and workers is not None:
            raise UsageError("Pipeline.torch() has no option 'num_workers' without an engine.", hint=ELSEWHERE["num_workers"])
        whole_numbers(shuffle=options["shuffle"], repeat=options["repeat"], epoch=options["epoch"])
        self._given = None if rank is None and world_size is None else world_of(rank, world_size)
        self._home: tuple[int, int] | None = None  # the world of the process whose worker this is
        self.pipeline = pipeline
        self.shuffle = options["shuffle"] or 0
        self.repeat, self.even, self.reshare = options["repeat"], options["even"], options["reshare"]
        self.report = ReadReport()
        shared: Any = torch.zeros(SIZE, dtype=torch.int64)
        self._shared = shared.share_memory_()
        self.epochs.go_on(options["epoch"])
        self._begun = 0  # iterations in this process, of a worker
        self._loaded: State | None = None
        self._now: tuple[ReaderPlan, int, Trail] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.pipeline!r}>"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_home": self.world(), "_now": None}

    def __len__(self) -> int:
        """Records of all workers of this rank, where an index of every shard is cached; `TypeError` otherwise.

        Also of a mix, or with `reshare=True`, where one pass has more than another: trainers count once and would cut the longer ones.
        """
        return sum(self.lengths(1))

    def lengths(self, workers: int) -> list[int]:
        """Records of each of so many workers of this rank in the next iteration; `TypeError` where that is not known."""
        passes = range(self.epoch, self.epoch + (self.repeat or 0))
        plans = [self.plan(at, workers) for at in range(workers)]
        if any(plan.varies for plan in plans):
            raise TypeError("one pass has more records than another: a mix, or reshare=True, has no length")
        found = [count for plan in plans if (count := plan.length(passes)) is not None]
        if len(found) < workers or self.repeat is None:
            raise TypeError("how many records this rank gets is not known; tarviz.index(urls) counts them and keeps the index")
        return found

    def __bool__(self) -> bool:
        return True

    @property
    def epochs(self) -> Epochs:
        """The count of epochs, shared with workers."""
        return Epochs(self._shared.numpy(), self.repeat or 1)

    @property
    def epoch(self) -> int:
        """The number of the next iteration's first pass."""
        epochs = self.epochs
        return epochs.next if epochs.pinned is None else epochs.pinned

    def set_epoch(self, epoch: int | None) -> None:
        """Pin the first pass of each `iter` to this epoch; None lets every `iter` go on to a new one again.

        What was loaded by `load_state_dict` is forgotten.
        """
        whole_numbers(epoch=epoch)
        self.epochs.pin(epoch)
        self._loaded = self._now = None

    def world(self) -> tuple[int, int]:
        """(rank, number of ranks): (0, 1) where accelerate or Trainer share out what comes."""
        if shared_by_caller():
            if self._given is not None and self._given[1] > 1:
                raise UsageError(
                    f"rank {self._given[0]} of {self._given[1]} was asked for, and accelerate shares out what comes once more.",
                    hint="Leave rank= and world_size= out of Pipeline.torch(): accelerate and Trainer then see every record once.",
                )
            return 0, 1
        if self._home is not None and get_worker_info() is not None:
            return self._home
        return world_of(None, None) if self._given is None else self._given

    def plan(self, worker: int = 0, workers: int = 1, rest: tuple[Mapping[str, Any], ...] = ()) -> ReaderPlan:
        """What one of several workers of this rank reads."""
        return ReaderPlan(self.pipeline, ShareReader(*self.world(), worker, workers), self.shuffle, self.even, self.reshare, rest)

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        if worker is None:
            epoch, at, count = self.epochs.begin(), 0, 1
        else:
            self._begun += 1
            iteration = hash((worker.seed - worker.id, worker.num_workers, self._begun))
            epoch, at, count = self.epochs.begin_in(worker.id, iteration), worker.id, worker.num_workers
        self.report = report = ReadReport()
        with send_errors():
            if worker is not None and self.elsewhere is not None:
                raise UsageError(
                    "the cluster does the work: workers of a loader would each ask it for a part.",
                    hint="Make the DataLoader with num_workers=0; those of the cluster are Pipeline.torch(num_workers=…).",
                )
            plan, trail = self._begin(epoch, at, count)
        self._now = plan, epoch, trail
        return self._steps(plan, epoch, trail, report)

    def _begin(self, epoch: int, at: int, count: int) -> tuple[ReaderPlan, Trail]:
        """What worker `at` of `count` reads in an iteration, and from where on."""
        loaded, self._loaded = self._loaded, None
        resumed = Resumed(-1) if loaded is None else resume(self.plan(at, count), loaded)
        if resumed.epoch != epoch:  # the worker's copy is of a data set whose state was used in the iteration before
            return self.plan(at, count), Trail()
        at = (at + resumed.turn) % count
        return self.plan(at, count, resumed.rest), Trail.of(resumed.marks.get(str(at)))

    def _steps(self, plan: ReaderPlan, epoch: int, trail: Trail, report: ReadReport) -> Generator[Any, None, None]:
        walk = Walk(self.pipeline, shuffle=self.shuffle, repeat=self.repeat, chunk=_CHUNK, elsewhere=self.elsewhere)
        with send_errors(), closing(walk.values(plan, epoch, report, trail)) as values:
            for place, value in values:
                trail.move(place)
                yield value

    def mark(self) -> tuple[int, dict[str, Any]]:
        """Which worker this is, and where it stands."""
        assert self._now is not None  # it is asked for a batch
        plan, _, trail = self._now
        return plan.reader.worker, trail.mark(mixed=plan.drawn)

    def state_dict(self) -> dict[str, Any]:
        """Where the iteration in this process stands, as JSON-ready data."""
        if self._now is not None:
            plan, epoch, _ = self._now
            worker, mark = self.mark()
            return state_of(plan, epoch, {str(worker): mark})
        if isinstance(self._loaded, Mapping):
            return dict(self._loaded)
        return state_of(self.plan(), self.epoch, {})

    def load_state_dict(self, state: State) -> None:
        """Let the next iteration go on where `state` says, and those after it with new epochs.

        It may have been saved with other numbers of workers and ranks; where the number of ranks was another, it is a list of
        the states of all ranks. `ChangedError` when a shard it stands in was replaced, `UsageError` when it is of another pipeline.
        """
        with send_errors():
            states = [state] if isinstance(state, Mapping) else list(state)
            for each in states:
                check(self.plan(), each)
            self._now = None
            self.epochs.go_on(states[0]["epoch"])
            self._loaded = state

    def collate(self, *, pad: Any = None) -> Collate:
        """The collate function of `loader`, for a `DataLoader` of your own; `pad` as there."""
        return Collate(self.pipeline.select, pad)

    def loader(self, batch_size: int | None = 1, *, pad: Any = None, **options: Any) -> Loader:
        """A `DataLoader` over the dataset that can be resumed; keywords are those of `DataLoader`.

        Arrays of different shapes, lists, text and null stay lists in a batch, one value a record. `pad` fills arrays, and lists of
        numbers, of different sizes up to the largest of the batch: True with 0, else with that, as in `Pipeline.tf`.
        """
        return Loader(self, batch_size=batch_size, pad=pad, **options)


run = TorchRecords


class Loader(DataLoader):  # type: ignore[misc, type-arg, unused-ignore]
    """A `DataLoader` whose `state_dict` says what was delivered, whatever its workers had read ahead.

    Resumed with as many workers and the same batch size, it delivers exactly the batches that were left, in the same order; with
    another number, the records that were left. Where TensorFlow is loaded, workers are not forked (`multiprocessing_context` says
    otherwise): a child of a process with its threads can wait for ever for a lock that one of them had.
    """

    dataset: TorchRecords
    collate_fn: Callable[[Any], Any]

    def __init__(
        self,
        dataset: TorchRecords,
        *,
        batch_size: int | None = 1,
        collate_fn: Callable[[Any], Any] | None = None,
        pad: Any = None,
        **options: Any,
    ) -> None:
        if pad is not None and (collate_fn is not None or batch_size is None):
            raise UsageError("pad= fills up what loader() puts into batches itself.", hint="Leave collate_fn= out, and say a batch_size.")
        if options.get("num_workers") and options.get("multiprocessing_context") is None:
            options["multiprocessing_context"] = safe_context()
        collate = collate_fn or (default_convert if batch_size is None else dataset.collate(pad=pad))
        super().__init__(dataset, batch_size=batch_size, collate_fn=collate, **options)
        self._now: tuple[ReaderPlan, int] | None = None
        self._marks: dict[str, Any] = {}
        self._turn = 0

    def __len__(self) -> int:
        """Batches of the next iteration: each worker has a last one of its own."""
        size, lengths = self.batch_size, self.dataset.lengths(max(self.num_workers, 1))
        return sum(batches(length, size, self.drop_last) for length in lengths)

    def _plan(self, rest: tuple[Mapping[str, Any], ...] = ()) -> ReaderPlan:
        return self.dataset.plan(0, max(self.num_workers, 1), rest)

    def __iter__(self) -> Any:
        dataset, epoch = self.dataset, self.dataset.epoch
        loaded = dataset._loaded
        resumed = Resumed(epoch) if loaded is None else resume(self._plan(), loaded)
        if loaded is not None:
            self._iterator = None  # workers that persist have a copy without the state
        self._now = self._plan(resumed.rest), epoch
        self._marks, self._turn = dict(resumed.marks), resumed.turn
        iterator = super().__iter__()
        dataset._loaded = None  # workers have their copies
        return self._values(iterator)

    def _get_iterator(self) -> Any:
        # Batches of this loader bear stamps, those of one that others make of its attributes (accelerate, Ray Train) do not.
        clean: Callable[[Any], Any] = self.collate_fn
        self.collate_fn = functools.partial(_stamp, clean, self.dataset)
        try:
            return super()._get_iterator()
        finally:
            self.collate_fn = clean

    def _values(self, iterator: Any) -> Iterator[Any]:
        for value, (worker, mark) in iterator:
            self._marks[str(worker)], self._turn = mark, (worker + 1) % max(self.num_workers, 1)
            yield value

    def set_epoch(self, epoch: int | None) -> None:
        """`TorchRecords.set_epoch`."""
        self.dataset.set_epoch(epoch)
        self._now = None

    def state_dict(self) -> dict[str, Any]:
        """What was delivered so far, as JSON-ready data: of each worker its place, and whose turn it is."""
        if self._now is None:
            return self.dataset.state_dict() if self.dataset._loaded else state_of(self._plan(), self.dataset.epoch, {})
        plan, epoch = self._now
        return state_of(plan, epoch, self._marks) | {"turn": self._turn}

    def load_state_dict(self, state: State) -> None:
        """Let the next iteration go on where `state` says; see `TorchRecords.load_state_dict`."""
        self.dataset.load_state_dict(state)
        self._now = None


def safe_context() -> str | None:
    """The way to start workers; None is the default of this Python and system."""
    method = multiprocessing.get_start_method(allow_none=True) or ("fork" if sys.platform == "linux" else "spawn")
    if "tensorflow" not in sys.modules or method != "fork":
        return None
    multiprocessing.set_forkserver_preload([__name__])
    return "forkserver"


@contextmanager
def send_errors() -> Iterator[None]:
    """Lets errors of a worker reach the process of its loader as they are."""
    try:
        yield
    except TarvizError as error:
        if get_worker_info() is not None:
            travelling(error)
        raise


def _stamp(collate: Callable[[Any], Any], dataset: TorchRecords, items: Any) -> tuple[Any, tuple[int, dict[str, Any]]]:
    worker = get_worker_info()
    here: Any = dataset if worker is None else worker.dataset
    return collate(items), here.mark()
