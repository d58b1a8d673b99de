"""The paths inside the columns that hold structs, and what lies there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tarviz.table.sql import NUMBERS, written_name


def typed(types: Mapping[str, Any], name: str, path: list[str]) -> str:
    """What a column, or what lies inside it, is to a comparison."""
    kind = types.get(name)
    for step in path:
        if kind is None or kind.id != "struct":
            return "text" if kind is not None and kind.id in ("varchar", "json") else "other"
        kind = next((inner for field, inner in kind.children if field.lower() == step.lower()), None)
    if kind is None:
        return "other"
    if kind.id in ("varchar", "json"):
        return "text"
    return "number" if kind.id in NUMBERS else "nested" if kind.id in ("struct", "list") else "other"


def leaves(text: str, kind: Any, most: int = 2000) -> Iterator[tuple[str, Any]]:
    """A column's paths that hold values."""
    if kind.id != "struct":
        yield text, kind
        return
    for inner, each in kind.children[:most]:
        yield from leaves(f"{text}.{written_name(inner, path=True)}", each)


def inside_structs(types: Mapping[str, Any], most: int = 5000) -> list[str]:
    """The paths inside structs."""
    found: list[str] = []
    stack = [(name, kind) for name, kind in types.items() if kind.id == "struct"]
    while stack and len(found) < most:
        name, kind = stack.pop()
        for inner, each in kind.children:
            found.append(f"{name}.{inner}")
            if each.id == "struct":
                stack.append((f"{name}.{inner}", each))
    return found
