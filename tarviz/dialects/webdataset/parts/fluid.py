"""The methods that add a stage to a pipeline; each returns a new one and leaves the old as it was."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

from tarviz.dialects.webdataset import filters

P = ParamSpec("P")
T = TypeVar("T")


def _method(make: Callable[P, Any]) -> Callable[Concatenate[T, P], T]:
    """A stage of `filters` as a method."""

    @functools.wraps(make)
    def add(self: Any, *args: P.args, **options: P.kwargs) -> Any:
        return self.compose(make(*args, **options))

    found = inspect.signature(make)
    self = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    add.__signature__ = found.replace(parameters=[self, *found.parameters.values()])  # type: ignore[attr-defined]
    return cast("Callable[Concatenate[T, P], T]", add)


class FluidInterface:
    """The stages of `filters` as methods, for classes with `compose`."""

    def compose(self, *stages: Any) -> Self:
        """The same with more stages."""
        raise NotImplementedError

    batched = _method(filters.batched)
    unbatched = _method(filters.unbatched)
    unlisted = _method(filters.unlisted)
    map = _method(filters.map)
    decode = _method(filters.decode)
    map_dict = _method(filters.map_dict)
    select = _method(filters.select)
    to_tuple = _method(filters.to_tuple)
    map_tuple = _method(filters.map_tuple)
    slice = _method(filters.slice)
    rename = _method(filters.rename)
    rsample = _method(filters.rsample)
    rename_keys = _method(filters.rename_keys)
    extract_keys = _method(filters.extract_keys)
    xdecode = _method(filters.xdecode)
    mcached = _method(filters.Cached)

    def listed(self, batchsize: float, partial: bool = True) -> Self:
        """Lists of `batchsize` items."""
        return self.compose(filters.batched(batchsize, None, partial))

    def shuffle(self, size: float = 1000, *, bufsize: float | None = None, **options: Any) -> Self:
        """Shuffles through a buffer of `size` items (`bufsize` is another name for it); 0 and less do nothing.

        The order depends on seed and pass only. `initial`: how many items are there before the first is given.
        """
        stage = filters.shuffle(size if bufsize is None else bufsize, **options)
        return self.compose(stage) if stage.size else self.compose()

    def log_keys(self, logfile: str | None = None) -> Self:
        """Appends number, worker, rank and key of each sample to a file; None does nothing."""
        return self.compose(filters.log_keys(logfile)) if logfile else self.compose()
