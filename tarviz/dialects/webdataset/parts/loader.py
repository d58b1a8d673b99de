"""`WebLoader`: PyTorch's `DataLoader` with the methods of a `WebDataset`, and a state that it can resume from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

from tarviz.dialects.webdataset.parts.dataset import WebDataset
from tarviz.dialects.webdataset.parts.fluid import FluidInterface
from tarviz.dialects.webdataset.parts.resuming import refuse_mixed
from tarviz.dialects.webdataset.pipeline import DataPipeline, stage_of
from tarviz.model.errors import MissingPackageError, UsageError

try:
    from torch.utils.data import DataLoader, IterableDataset, default_collate, default_convert
except ImportError as missing:
    raise MissingPackageError.of("torch", "WebLoader", "torch") from missing


class Tagged(NamedTuple):
    """An item with the state just behind it of the worker whose work it is; of several, whose work one takes up, the last at the end."""

    states: list[dict[str, Any]]
    value: Any


class _Tagging(IterableDataset[Any]):
    """A data set whose items carry the state behind them."""

    def __init__(self, dataset: WebDataset) -> None:
        self.dataset = dataset

    def __iter__(self) -> Iterator[Tagged]:
        for value in self.dataset:
            yield Tagged([self.dataset.position()], value)


class _Collate:
    """A collate function that lets states through: of each worker whose items these are, that behind the last of them."""

    def __init__(self, f: Callable[[Any], Any], whole: bool) -> None:
        self.f, self.whole = f, whole

    def __call__(self, items: Any) -> Tagged:
        if self.whole:
            return Tagged(items.states, self.f(items.value))
        states: dict[tuple[int, int], dict[str, Any]] = {}
        for state in (state for item in items for state in item.states):
            whose = state["node"], state["worker"]
            states.pop(whose, None)
            states[whose] = state
        return Tagged([*states.values()], self.f([item.value for item in items]))


class Values:
    """The items of a loader over a `WebDataset`, and what each worker has delivered."""

    def __init__(self, dataset: WebDataset, loader: Any) -> None:
        self.dataset, self.loader = dataset, loader
        self.states: dict[str, dict[str, Any]] = {}
        self.last = -1

    def __iter__(self) -> Iterator[Any]:
        saved = self.dataset.resumed
        if saved is not None:
            self.loader._iterator = None  # workers that persist have a copy without the state
        self.states = dict(saved["states"]) if saved and "states" in saved else {}
        self.last = (saved["turn"] - 1) if saved and "states" in saved else -1
        for item in self.loader:
            for state in item.states:
                self.states[str(state["worker"])] = state
                self.last = state["worker"]
            yield item.value
        self.dataset.resumed = None
        self.states, self.last = {}, -1


class WebLoader(DataPipeline, FluidInterface):
    """A `DataLoader` with the methods of a pipeline: `WebLoader(dataset, batch_size=None, num_workers=4).unbatched().shuffle(1000)`.

    Arguments are those of `DataLoader`; `dataset` is a `WebDataset`, a `DataPipeline` or anything else that it loads. `with_epoch`,
    `with_length` and `repeat` change the loader itself, as they do a data set.

    Over a `WebDataset`, `state_dict()` between two steps says what every worker has delivered; after `load_state_dict` on a
    loader of the same settings the next iteration yields exactly the rest, in the same order. With another number of workers it
    yields the same items, each worker taking up what one or more had left, in turn; so it does with another number of ranks, given
    the states of all of them. Stages added here that hold items back
    (shuffle, unbatched) have no state: add them to the data set.
    """

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, *args: Any, collate_fn: Callable[[Any], Any] | None = None, **options: Any
    ) -> None:
        super().__init__()
        self.dataset = dataset
        if isinstance(dataset, WebDataset):
            if options.get("shuffle") or (args and args[0]):
                raise UsageError("a stream cannot be shuffled by its loader.", hint="Use WebDataset(…, shardshuffle=True).shuffle(1000).")
            chosen = _Collate(collate_fn or (default_convert if batch_size is None else default_collate), batch_size is None)
            self.loader: Any = DataLoader(_Tagging(dataset), batch_size, *args, collate_fn=chosen, **options)
            self.append(Values(dataset, self.loader))
            self.seed = dataset.seed
        else:
            self.loader = DataLoader(dataset, batch_size, *args, collate_fn=collate_fn, **options)
            self.append(self.loader)

    def __len__(self) -> int:
        return len(self.loader) if self.size is None else self.size

    def _values(self) -> Values:
        if not isinstance(self.pipeline[0], Values):
            raise UsageError(f"a loader over a {type(self.dataset).__name__} has no state.", hint="A loader over a WebDataset has.")
        return self.pipeline[0]

    def state_dict(self) -> dict[str, Any]:
        """What has been delivered, JSON-ready."""
        values = self._values()
        if any(not stage_of(stage).prompt for stage in self.pipeline[1:]):
            raise UsageError("a stage of the loader holds items back.", hint="Add shuffle and unbatched to the data set instead.")
        known = next(iter(values.states.values()), None)
        if known is not None:
            refuse_mixed(known["nodes"], self.dataset.passes.here().nodes)
        workers = known["workers"] if known else max(self.loader.num_workers, 1)  # where others' work is taken up: theirs
        common = {name: known[name] for name in ("epoch", "seed", "node", "nodes")} if known else {}
        return {"turn": (values.last + 1) % workers, "workers": workers, "common": common, "states": dict(values.states)}

    def load_state_dict(self, state: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """The next iteration yields what was left when `state` was taken; with another number of ranks, a list of the states of all."""
        for each in [state] if isinstance(state, Mapping) else state:
            if not isinstance(each, Mapping) or "states" not in each:
                raise UsageError("this is not the state of a WebLoader.")
        dataset = self._values().dataset
        dataset.load_state_dict(state)
        if dataset.resumed is not None and not dataset.resumed.get("states", True):
            dataset.resumed = None

    def compose(self, *stages: Any) -> Self:
        """The same with more stages; this one stays."""
        other = super().compose(*stages)
        if isinstance(self.pipeline[0], Values):
            other.pipeline[0] = Values(self.dataset, self.loader)
        return other
