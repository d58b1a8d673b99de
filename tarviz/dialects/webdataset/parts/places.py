"""Where a process stands (rank, worker), and which pass over the data this is, in every worker of a DataLoader."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from multiprocessing.context import get_spawning_popen
from multiprocessing.sharedctypes import RawArray
from typing import Any

from tarviz.dialects.webdataset.pytorch import IterableDataset as Base
from tarviz.runners.shares import distributed_rank, shared_by_caller

__all__ = ["Base", "Passes", "WorkerPlace", "place"]

_REMEMBERED = 64  # passes of DataLoaders that may run at once over one data set


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """Which of how many processes this is: worker of a DataLoader, node (rank) of a distributed run."""

    worker: int = 0
    workers: int = 1
    node: int = 0
    nodes: int = 1
    seed: int | None = None  # of the DataLoader's pass, the same in all its workers
    shared: bool = False  # by whoever asks (accelerate): every rank reads the same, in the same order

    @property
    def chance(self) -> int | None:
        """What else than a seed of one's own an order depends on: the seed of the DataLoader's pass, which is another on each rank."""
        return None if self.shared else self.seed


def place(group: Any = None) -> WorkerPlace:
    """Where this process stands. Torch is asked only when somebody imported it; its process group goes before `RANK`.

    Where accelerate or Trainer share out among the ranks what comes, there is one rank.
    """
    shared = shared_by_caller()
    node, nodes = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    node, nodes = (0, 1) if shared else distributed_rank(group) or (node, nodes)
    data = sys.modules.get("torch.utils.data")
    info = data.get_worker_info() if data is not None else None
    if info is not None:
        return WorkerPlace(info.id, info.num_workers, node, nodes, info.seed - info.id, shared)
    return WorkerPlace(int(os.environ.get("WORKER", 0)), int(os.environ.get("NUM_WORKERS", 1)), node, nodes, shared=shared)


class Passes:
    """Counts the passes over a data set, in all the processes that have a copy of it.

    A DataLoader's workers begin each pass with a fresh copy of the data set, which knows nothing of the passes before.
    They share a table of the seeds that the DataLoader drew, one for each pass: a seed's place in it is the pass's number.
    Workers that persist have one seed for all passes and count by themselves.
    """

    def __init__(self, first: int = 0) -> None:
        self._own = first  # passes begun by this copy
        self._table = RawArray("q", 1 + _REMEMBERED)
        self._home: WorkerPlace | None = None  # where the copy was made that a spawned worker got

    @property
    def next(self) -> int:
        """The number of the pass that begins next in this process."""
        return self._own + int(self._table[0])

    def pin(self, number: int) -> None:
        """Let the next pass be `number`."""
        self._own = number - int(self._table[0])

    def here(self) -> WorkerPlace:
        """Where this process stands; a spawned worker has its rank from the process that made it."""
        now, home = place(), self._home
        if home is None or now.seed is None or now.shared:
            return now
        return replace(now, node=home.node, nodes=home.nodes, shared=home.shared)

    def begin(self, here: WorkerPlace) -> int:
        """The number of the pass that begins now."""
        number = self._own + (int(self._table[0]) if here.seed is None else self._turn(here.seed))
        self._own += 1
        return number

    def _turn(self, seed: int) -> int:
        count = int(self._table[0])
        for turn in range(count - 1, count - 1 - _REMEMBERED, -1):
            if self._table[1 + turn % _REMEMBERED] == seed:
                return turn
        # No lock: all workers of a pass write the same.
        self._table[1 + count % _REMEMBERED] = seed
        self._table[0] = count + 1
        return count

    def __getstate__(self) -> dict[str, Any]:
        if get_spawning_popen() is not None:  # type: ignore[no-untyped-call,unused-ignore]
            return {**self.__dict__, "_home": self.here()}
        return {"_own": self.next, "_home": self._home}  # memory is shared with the processes that are started, and no others

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_table" not in state:
            self._table = RawArray("q", 1 + _REMEMBERED)
