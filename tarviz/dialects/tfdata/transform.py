"""Transforms: functions from sample to sample, or from example to example."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tarviz.dialects import check_function
from tarviz.dialects.tfdata.core import Sample, TFExample
from tarviz.dialects.tfdata.selection import Selection
from tarviz.model.errors import UsageError
from tarviz.ops import Rename

Transform: TypeAlias = Callable[[Any], Mapping[str, Any]]


@dataclass(frozen=True)
class Renaming:
    """What `rename` gives; where no source is there, nothing is made."""

    op: Rename

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(old for _, sources in self.op.moves for old in sources)

    def finds(self, entries: Mapping[str, Any]) -> bool:
        """Whether one of the sources is there."""
        return any(old in entries for old in self.sources)

    def __call__(self, entries: Mapping[str, Any]) -> Mapping[str, Any]:
        return like(entries, self.op.run(entries) if self.finds(entries) else dict(entries))


def like(entries: Mapping[str, Any], found: Mapping[str, Any]) -> Mapping[str, Any]:
    """`found` as the kind of thing that `entries` is, from the same place."""
    if isinstance(entries, TFExample):
        return TFExample(found, shard=entries.shard, kinds=entries.kinds)
    return Sample(found, shard=getattr(entries, "shard", None))


def sample_selections(*selections: Selection) -> Transform:
    """Keeps the entries, or (`example_selections`) features, that one of the selections selects; `__key__` too only where one does."""
    if not selections:
        raise UsageError("there are no selections.", hint='For example selection.by_key("image").')
    for one in selections:
        check_function(one, "a selection is made by by_key(…), by_prefix(…) and the like")

    def transform(entries: Mapping[str, Any]) -> Mapping[str, Any]:
        names = {name for one in selections for name in one(entries)}
        return like(entries, {name: value for name, value in entries.items() if name in names})

    return transform


def rename(dest: str, srcs: str | Iterable[str]) -> Transform:
    """A copy of an entry under another name; of several that are there the last one counts, and without any nothing is made.

    The source stays.
    """
    return Renaming(Rename({dest: srcs}, keep=True))


def sample_f(f: Transform) -> Transform:
    """A function of your own from sample to sample, or (`example_f`) from example to example."""
    return check_function(f, "a transform is a function")  # type: ignore[no-any-return]


def id_(entries: Any) -> Any:
    """What it was given."""
    return entries


example_selections = sample_selections
example_f = tf_example_f = sample_f
rename_transformation = rename
