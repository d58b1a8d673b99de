"""Blocks of records as the dicts that WebDataset yields."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tarviz.model.errors import UsageError
from tarviz.model.types import Block

Sample: TypeAlias = dict[str, Any]

_SMALL = 8192  # bytes of a member; below, a second copy of the block is cheaper than a view on each member


def check_sample(item: Any, stage: str) -> None:
    """`UsageError` for what is no sample: the stage works on dicts."""
    if not isinstance(item, dict):
        raise UsageError(f"{stage} works on samples that are dicts, got {type(item).__name__}.", hint=f"Put {stage} before to_tuple.")


@dataclass(frozen=True, slots=True)
class Needs:
    """The fields that the stages after the source need: groups of alternatives."""

    groups: tuple[tuple[str, ...], ...]

    def columns(self, fields: Sequence[str]) -> Collection[str]:
        """Which of a record's fields have to be cut out; all of them when a needed one is missing."""
        if not all(any(name in fields or name.startswith("__") for name in group) for group in self.groups):
            return fields
        return {name for group in self.groups for name in group}


def samples(block: Block, url: str, place: str | None, needs: Needs | None = None) -> Iterable[Sample]:
    """A block's records as plain dicts: `__key__`, `__url__`, fields as bytes of their own, `__local_path__` if there is a place.

    Short ones are made together, long ones when their turn comes, in memory that the one before has left.
    """
    keys = [key.decode("utf-8", "surrogateescape") for key in block.keys]
    fields = block.fields
    if fields is None:
        return (_sample(block, row, key, url, place, needs) for row, key in enumerate(keys))
    starts, ends = block.offset.tolist(), (block.offset + block.size).tolist()
    wanted = fields if needs is None else needs.columns(fields)
    width, data = len(fields), block.data
    cut: Any = data.tobytes() if int(block.size.sum()) < _SMALL * len(block.size) else None
    names: list[str] = ["__key__", "__url__"]
    columns: list[Iterable[Any]] = [keys, [url] * len(keys)]
    for column, name in enumerate(fields):
        if name not in wanted:
            continue
        places = zip(starts[column::width], ends[column::width], strict=True)
        names.append(name)
        columns.append((bytes(data[a:b]) for a, b in places) if cut is None else [cut[a:b] for a, b in places])
    if place is not None:
        names.append("__local_path__")
        columns.append([place] * len(keys))
    rows = (dict(zip(names, row, strict=False)) for row in zip(*columns, strict=True))
    return rows if cut is None else [*rows]


def _sample(block: Block, row: int, key: str, url: str, place: str | None, needs: Needs | None) -> Sample:
    record = block[row]
    wanted = record if needs is None else needs.columns(tuple(record))
    return _sample_of(key, url, {name: bytes(record[name]) for name in record if name in wanted}, place)


def selected(block: Block, row: int, url: str, place: str | None, select: Callable[[str], bool]) -> Sample | None:
    """One record without the members that `select` refuses by name; None when nothing is left."""
    record = block[row]
    fields = {name: bytes(record[name]) for name, member in zip(record, record.members, strict=True) if select(member.name)}
    return _sample_of(record.key, url, fields, place) if fields else None


def _sample_of(key: str, url: str, fields: Sample, place: str | None) -> Sample:
    return {"__key__": key, "__url__": url, **fields, **({} if place is None else {"__local_path__": place})}
