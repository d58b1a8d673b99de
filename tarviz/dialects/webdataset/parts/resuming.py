"""How far an iteration over a `WebDataset` is, and who takes up what workers and ranks had left."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tarviz.dialects.webdataset.parts.places import WorkerPlace
from tarviz.dialects.webdataset.parts.source import PassProgress
from tarviz.model.errors import UsageError


def take_up(saved: Mapping[str, Any], here: WorkerPlace) -> list[dict[str, Any]]:
    """The states of the workers whose work this worker takes up.

    Where there are as many as before, that is the worker whose turn comes next, so that the order of a DataLoader goes on too. Where
    there are fewer, each takes up several; where there are more, some have nothing to do until the pass is over.
    """
    if "ranks" in saved:
        nodes = len(saved["ranks"])
        common = [{**saved["common"], "node": node, "nodes": nodes} for node in range(nodes)]
        all_workers = [one for node, state in enumerate(saved["ranks"]) for one in _of_workers(state, common[node])]
        return all_workers[here.node * here.workers + here.worker :: here.nodes * here.workers]
    if "states" not in saved and saved["workers"] > 1:
        if (saved["worker"], saved["workers"]) != (here.worker, here.workers):
            whose = f"worker {saved['worker']} of {saved['workers']}"
            raise UsageError(
                f"the state is that of {whose} alone; this is worker {here.worker} of {here.workers}.",
                hint="A WebLoader's state_dict() has the states of all its workers.",
            )
        return [dict(saved)]
    states = _of_workers(saved, {})
    if len(states) == here.workers:
        return [states[(here.worker + saved.get("turn", 0)) % len(states)]]
    return states[here.worker :: here.workers]


def _of_workers(saved: Mapping[str, Any], common: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The states of all workers of a rank, those too that had given nothing yet."""
    if "states" not in saved:
        if saved["workers"] > 1:
            raise UsageError(
                "a state is that of one of several workers.", hint="A WebLoader's state_dict() has the states of all its workers."
            )
        return [dict(saved)]
    begin = {"share": 0, "record": 0, "done": 0, "given": 0, "round": 0, **common, **saved["common"], "workers": saved["workers"]}
    return [{**begin, "worker": worker, **saved["states"].get(str(worker), {})} for worker in range(saved["workers"])]


def place_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """Worker and rank whose state it is."""
    return {name: state[name] for name in ("worker", "workers", "node", "nodes")}


def refuse_mixed(before: int, nodes: int) -> None:
    """`UsageError` where a pass is taken over from another number of ranks: its state cannot be told before it is over."""
    if before != nodes:
        raise UsageError(
            f"this pass is what {before} ranks had left; its state cannot be saved.", hint="Save it before, or behind the end of the pass."
        )


@dataclass(slots=True, eq=False)
class Pass:
    """One iteration over a data set: how far it is. Before it begins, `seed` is None and what follows is not known."""

    progress: PassProgress = field(default_factory=PassProgress)
    given: int = 0
    seed: str | None = None
    done: int = field(init=False, repr=False)
    epoch: int = field(init=False, repr=False)
    round: int = field(init=False, repr=False)
    here: WorkerPlace = field(init=False, repr=False)
    exact: bool = field(init=False, repr=False)

    def begin(self, epoch: int, number: int, seed: str, here: WorkerPlace, *, exact: bool) -> None:
        """A new pass over the shards."""
        self.progress = PassProgress(report=self.progress.report)
        self.epoch, self.round, self.seed, self.here, self.exact, self.done = epoch, number, seed, here, exact, 0

    def counted(self, flow: Iterator[Any], skip: int) -> Iterator[Any]:
        """The flow after its first `skip` items, counted."""
        self.done = skip
        for item in itertools.islice(flow, skip, None):
            self.done += 1
            yield item

    def state(self) -> dict[str, Any]:
        """JSON-ready: pass, seed, worker; the record that comes next, or how many items are done after the last shuffle."""
        here = self.here
        place: dict[str, Any] = {"worker": here.worker, "workers": here.workers, "node": here.node, "nodes": here.nodes}
        place |= {"epoch": self.epoch, "round": self.round, "seed": self.seed}
        share = {"share": self.progress.share, "record": self.progress.record} if self.exact else {"share": 0, "record": 0}
        return {**place, **share, "done": self.done, "given": self.given}
