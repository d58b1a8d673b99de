"""`WebLoader`: PyTorch's `DataLoader` with the methods of a `WebDataset`, and a state that it can resume from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Self

from tarviz.dialects.webdataset import _stages as stages
from tarviz.dialects.webdataset._dataset import WebDataset
from tarviz.dialects.webdataset._fluid import Fluid
from tarviz.model.errors import MissingPackageError, UsageError

try:
    from torch.utils.data import DataLoader, IterableDataset, default_collate, default_convert
except ImportError as missing:
    raise MissingPackageError.of("torch", "WebLoader", "torch") from missing


class Tagged(NamedTuple):
    """An item with the state of the worker it comes from, just behind it."""

    state: dict[str, Any]
    value: Any


class _Tagging(IterableDataset[Any]):
    """A data set whose items carry the state behind them."""

    def __init__(self, dataset: WebDataset) -> None:
        self.dataset = dataset

    def __iter__(self) -> Iterator[Tagged]:
        for value in self.dataset:
            yield Tagged(self.dataset.state_dict(), value)


class _Collate:
    """A collate function that lets the state of the last item through."""

    def __init__(self, f: Callable[[Any], Any], whole: bool) -> None:
        self.f, self.whole = f, whole

    def __call__(self, items: Any) -> Tagged:
        if self.whole:
            return Tagged(items.state, self.f(items.value))
        return Tagged(items[-1].state, self.f([item.value for item in items]))


class WebLoader(Fluid):
    """A `DataLoader` over a `WebDataset`: `WebLoader(dataset, batch_size=None, num_workers=4)`.

    `state_dict()` between two steps says what every worker has delivered; after `load_state_dict` on a loader of
    the same settings the next iteration yields exactly the rest, in the same order. Stages added here that hold items
    back (shuffle, unbatched) have no state: add them to the data set.
    """

    def __init__(
        self, dataset: WebDataset, batch_size: int | None = 1, *, collate_fn: Callable[[Any], Any] | None = None, **options: Any
    ) -> None:
        if not isinstance(dataset, WebDataset):
            raise UsageError(f"a WebLoader loads a WebDataset, got {type(dataset).__name__}.", hint="A DataLoader loads others.")
        if options.get("shuffle"):
            raise UsageError("a stream cannot be shuffled by its loader.", hint="Use WebDataset(…, shardshuffle=True).shuffle(1000).")
        chosen = collate_fn or (default_convert if batch_size is None else default_collate)
        self.dataset = dataset
        self._loader = DataLoader(_Tagging(dataset), batch_size=batch_size, collate_fn=_Collate(chosen, batch_size is None), **options)
        self._stages: tuple[stages.Stage, ...] = ()
        self._states: dict[str, dict[str, Any]] = {}
        self._last = -1

    def _then(self, *more: stages.Stage) -> Self:
        other = object.__new__(type(self))
        other.__dict__ = {**self.__dict__, "_stages": (*self._stages, *more), "_states": {}}
        return other

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        saved = self.dataset._saved
        self._states = dict(saved["states"]) if saved and "states" in saved else {}
        self._last = (saved["turn"] - 1) if saved and "states" in saved else -1
        flow = self._values()
        for at, stage in enumerate(self._stages):
            flow = stage.run(flow, f"{self.dataset.seed}/{self.dataset.epoch}/loader/{at}")
        return flow

    def _values(self) -> Iterator[Any]:
        epoch = self.dataset.epoch
        for item in self._loader:
            self._states[str(item.state["worker"])] = item.state
            self._last = item.state["worker"]
            yield item.value
        self.dataset._saved = None
        self._states, self._last = {}, -1
        self.dataset.epoch = max(self.dataset.epoch, epoch + 1)

    def state_dict(self) -> dict[str, Any]:
        """What has been delivered, JSON-ready."""
        if any(not stage.prompt for stage in self._stages):
            raise UsageError("a stage of the loader holds items back.", hint="Add shuffle and unbatched to the data set instead.")
        workers = max(self._loader.num_workers, 1)
        known = next(iter(self._states.values()), None)
        common = {"epoch": known["epoch"], "seed": known["seed"]} if known else {}
        return {"turn": (self._last + 1) % workers, "workers": workers, "common": common, "states": dict(self._states)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration yields what was left when `state` was taken."""
        if not isinstance(state, Mapping) or "states" not in state:
            raise UsageError("this is no state of a WebLoader.")
        self.dataset.load_state_dict(state)
        if not state["states"]:
            self.dataset._saved = None
