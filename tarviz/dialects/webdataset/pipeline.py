"""`webdataset.pipeline`: `DataPipeline`, a source and the stages after it."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Self

from tarviz.dialects.webdataset.parts.places import Base, Passes, WorkerPlace
from tarviz.dialects.webdataset.parts.stages import Custom, Stage
from tarviz.dialects.webdataset.shardlists import single_node_only, split_by_node, split_by_worker
from tarviz.dialects.webdataset.utils import PipelineStage
from tarviz.model.errors import UsageError

_SPLITTERS = (single_node_only, split_by_node, split_by_worker)


class DataPipeline(Base, PipelineStage):
    """A source and stages: `DataPipeline(SimpleShardList(urls), split_by_worker, tarfile_to_samples(), shuffle(1000), decode("rgb"))`.

    The source is an iterable or a function without arguments; a stage is one of `filters`, a function from iterator to
    iterator, or an object with `run`. None is left out, lists are taken apart.

    Each `iter` is a new pass. The order of a pass depends on its number, and after a splitter also on rank and worker:
    shards shuffled before `split_by_node` or `split_by_worker` stand in one order in all processes, so that each is read once.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        stages = (each for arg in args if arg is not None for each in (arg if isinstance(arg, list) else [arg]))
        self.pipeline: list[Any] = [*map(self._check_stage, stages)]
        self.seed: Any = None
        self.repetitions: int | None = 1
        self.nsamples: int | None = None
        self.size: int | None = None
        self.passes = Passes()

    @staticmethod
    def _check_stage(stage: Any) -> Any:
        if not (callable(stage) or isinstance(stage, Iterable) or hasattr(stage, "run")):
            raise UsageError(f"{stage!r} is neither a source nor a stage.", hint="A stage is a function from iterator to iterator.")
        return stage

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(self.iterator(), self.nsamples) if self.repetitions != 1 else self.iterator()

    def iterator(self) -> Iterator[Any]:
        """All passes that `repeat` or `with_epoch` asks for; ends after a pass that has yielded nothing."""
        here = self.passes.here()
        number = self.passes.begin(here)
        for again in itertools.count():
            item = self  # stands for nothing yielded
            for item in self._flow(here, number_of(number, again)):
                yield item
            if item is self or again + 1 == self.repetitions:
                return

    def iterator1(self) -> Iterator[Any]:
        """One pass."""
        here = self.passes.here()
        return self._flow(here, number_of(self.passes.begin(here)))

    def _flow(self, here: WorkerPlace, number: str) -> Iterator[Any]:
        common = f"{self.seed}/{number}"
        own = f"{common}/{here.chance}/{here.node}/{here.worker}"
        split = max((at for at, stage in enumerate(self.pipeline) if stage in _SPLITTERS), default=0)
        flow = _begin(self.pipeline[0]) if self.pipeline else iter(())
        for at, stage in enumerate(self.pipeline[1:], 1):
            flow = stage_of(stage).run(flow, f"{common if at < split else own}/{at}")
        return flow

    def stage(self, i: int) -> Any:
        """The stage at a place; the source is at 0."""
        return self.pipeline[i]

    def append(self, f: Any) -> None:
        """Add a stage to this pipeline itself."""
        self.pipeline.append(self._check_stage(f))

    def compose(self, *stages: Any) -> Self:
        """The same with more stages; this one stays."""
        other = copy.copy(self)
        other.pipeline = [*self.pipeline, *map(self._check_stage, stages)]
        other.passes = Passes(self.passes.next)
        return other

    def with_length(self, n: int, silent: bool = False) -> Self:
        """Give it `len` n, for training loops that want one; what it yields stays. Returns itself."""
        self.size = n
        return self

    def with_epoch(self, nsamples: int = -1, nbatches: int = -1) -> Self:
        """Make its epochs so many items long: the source is read again and again, up to that number. Returns itself."""
        limit = max(nsamples, nbatches)
        self.repetitions, self.nsamples = None, limit if limit > 0 else None
        return self

    def repeat(self, nepochs: int = -1, nbatches: int = -1) -> Self:
        """Make one iteration so many passes, for ever when left out, up to `nbatches` items. Returns itself."""
        self.repetitions, self.nsamples = nepochs if nepochs > 0 else None, nbatches if nbatches > 0 else None
        return self

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next pass, which decides the order."""
        self.passes.pin(epoch)

    def close(self) -> None:
        """Close the stages that can be closed."""
        for stage in self.pipeline:
            if hasattr(stage, "close"):
                stage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def __len__(self) -> int:
        if self.size is None:
            raise TypeError(f"a {type(self).__name__} knows no length; with_length(n) gives it one")
        return self.size

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: Any) -> Any:
        raise TypeError(f"a {type(self).__name__} can only be iterated over; tarviz.index(urls)[17] reads one record")


def number_of(number: int, again: int = 0) -> str:
    """What names a pass: its number, and which repetition in one iteration it is.

    >>> number_of(3), number_of(3, 1)
    ('3', '3+1')
    """
    return f"{number}+{again}" if again else str(number)


def stage_of(stage: Any) -> Stage:
    """A stage as the engine's own; functions and objects with `run` are wrapped, an iterable in the middle begins anew."""
    if isinstance(stage, Stage):
        return stage
    return Custom(stage if callable(stage) or hasattr(stage, "run") else lambda source: iter(stage))


def _begin(source: Any) -> Iterator[Any]:
    if isinstance(source, Iterable):
        return iter(source)
    return iter(source.run() if hasattr(source, "run") else source())
