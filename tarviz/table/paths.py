"""The paths inside the columns that hold structs, and what lies there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tarviz.table.sql import written_name


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
