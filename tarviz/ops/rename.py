"""Fields under other names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tarviz.model.errors import ChainError
from tarviz.ops.base import NamesOp, missing
from tarviz.ops.chain_text import is_bare


@dataclass(frozen=True, slots=True, init=False)
class Rename(NamesOp):
    """Gives fields new names: `Rename(image="jpg")`; of several sources, `Rename(image="jpg;png")`, those that are there.

    A source that is there goes away under its old name; where several are there, the last one wins. `keep=True` copies and
    leaves the sources where they are. A name that is not a Python name goes into a dict: `Rename({"seg.png": "png"})`.
    """

    moves: tuple[tuple[str, tuple[str, ...]], ...]
    keep: bool

    name: ClassVar[str] = "rename"

    def __init__(
        self, moves: Mapping[str, str | Iterable[str]] | None = None, /, *, keep: bool = False, **more: str | Iterable[str]
    ) -> None:
        if moves is not None and not isinstance(moves, Mapping):
            raise ChainError(f"{self.name} expects new=old, got {moves!r}.", hint="For example rename(image=jpg).")
        given = {**(moves or {}), **more}
        if not given or not isinstance(keep, bool):
            raise ChainError(f"{self.name} expects new=old" + (f", keep=True or False; got {keep!r}." if given else "."))
        object.__setattr__(self, "moves", tuple((str(new), _sources(new, old)) for new, old in given.items()))
        object.__setattr__(self, "keep", keep)

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        moves = {new: ";".join(old) for new, old in self.moves}
        keyword: dict[str, Any] = {"keep": True} if self.keep else {}
        if all(is_bare(new) and new != "keep" for new in moves):
            return [], moves | keyword
        return [moves], keyword

    def move(self, fields: dict[str, Any]) -> dict[str, Any]:
        for new, sources in self.moves:
            there = [old for old in sources if old in fields]
            if not there:
                raise missing(self, ";".join(sources), fields)
            value = fields[there[-1]]
            if not self.keep:
                for old in there:
                    del fields[old]
            fields[new] = value
        return fields

    @property
    def alternatives(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(reversed(sources)) for _, sources in self.moves)

    @property
    def new_names(self) -> frozenset[str]:
        return frozenset(new for new, _ in self.moves)

    def needs(self, wanted: frozenset[str] | None) -> frozenset[str] | None:
        if wanted is None:
            return None
        for new, sources in reversed(self.moves):
            wanted = (wanted - {new}) | set(sources)
        return wanted


def _sources(new: Any, old: Any) -> tuple[str, ...]:
    names = old.split(";") if isinstance(old, str) else old
    sources = tuple(name.strip() if isinstance(name, str) else "" for name in (names if isinstance(names, Iterable) else ()))
    if not new or not sources or not all(sources):
        raise ChainError(f"rename expects the old name of {new!r}, got {old!r}.")
    return sources
