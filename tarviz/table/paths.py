"""The paths inside the columns that hold structs, and what lies there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tarviz.table.making.json_structure import Structure
from tarviz.table.sql import written_name


def leaves(text: str, kind: Any, most: int = 2000) -> Iterator[tuple[str, Any]]:
    """A column's paths that hold values."""
    if kind.id != "struct":
        yield text, kind
        return
    for inner, each in kind.children[:most]:
        yield from leaves(f"{text}.{written_name(inner, path=True)}", each)


def inside(structures: Mapping[str, Structure], most: int = 20_000) -> list[str]:
    """The paths inside JSON fields, those of what stays JSON too."""
    found: list[str] = []
    level = [*structures.items()]
    for name, structure in level:  # grows: what lies deeper comes later
        if isinstance(structure, list):
            level.append((f"{name}[0]", structure[0]))
        inner = [(f"{name}.{each}", below) for each, below in structure.items()] if isinstance(structure, dict) else []
        found += [path for path, _ in inner]
        level += inner if len(found) < most else []
    return found
