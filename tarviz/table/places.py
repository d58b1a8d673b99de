"""What lies at a column or at a path inside one, by the types that columns turned out to have, and the SQL that reads it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from tarviz.table import columns
from tarviz.table.packages import duckdb
from tarviz.table.sql import Node, constant, expression, operator, quoted_name, quoted_text, replace_nodes

Storage: TypeAlias = Literal["integer", "real", "truth", "text", "class", "json", "list", "struct", "null", "other"]
INTEGERS = frozenset({"bigint", "integer", "smallint", "tinyint", "hugeint", "ubigint", "uinteger", "usmallint", "utinyint", "uhugeint"})
_NEVER = 2**31  # an item that no list has: the 0th of SQL
REALS = frozenset({"double", "float", "decimal"})
NUMBERS = INTEGERS | REALS


class Place(NamedTuple):
    """What lies at a column or a path inside one: how it is stored, and the SQL that reads it."""

    storage: Storage
    node: Node
    type: Any = None


@dataclass(slots=True, eq=False)
class Places:
    """The columns of a question. `missing` is told of paths that no record has, which those into JSON show by a test that `holds` of
    none; `lenient`: a condition; lists are counted `from_zero`; `given` are the types of values that inner queries and lambdas name."""

    base: duckdb.DuckDBPyConnection
    types: Mapping[str, Any]
    missing: Callable[[str], None]
    lenient: bool
    from_zero: bool
    holds: Callable[[str], bool]
    given: dict[str, Any] = field(default_factory=dict)

    def make(self, template: str, **parts: Node) -> Node:
        """The tree of an expression of ours, with trees in the places of its names."""
        box = {"made": expression(self.base, template)}

        def change(node: Node) -> Node | None:
            names = node.get("column_names") if node.get("class") == "COLUMN_REF" else None
            return copy.deepcopy(parts[names[0]]) if names is not None and len(names) == 1 and names[0] in parts else None

        replace_nodes(box, change)
        return {**box["made"], "_made": True}

    def steps(self, node: Node) -> tuple[Node, list[str | int]] | None:
        """The column that a path begins with, and the steps from there; None where an expression is no path."""
        if node.get("class") == "COLUMN_REF":
            of = node.get("_of")
            if not of and (count := self._given_at(node)):
                return node, node["column_names"][count:]
            return (node, list(of[1:])) if of else (node, []) if node.get("_unknown") and self.lenient else None  # a query may give it
        if node.get("type") not in ("ARRAY_EXTRACT", "STRUCT_EXTRACT"):
            return None
        inner, at = node["children"]
        found = self.steps(inner)
        if found is None or at.get("class") != "CONSTANT" or at["literal"]["kind"] not in ("STRING", "INTEGER"):
            return None
        text = str(at["literal"]["text"])
        step: str | int = text
        if at["literal"]["kind"] == "INTEGER":
            step = int(text) if self.from_zero or int(text) < 0 else (int(text) or _NEVER) - 1
        return found[0], [*found[1], step]

    def at(self, node: Node) -> Place | None:
        found = self.steps(node)
        if found is None:
            return None
        column, steps = found
        nothing = Place("null", self.make("NULL"))
        count = self._given_at(column)
        if column.get("_unknown") and not count:
            return nothing
        name = column["column_names"][count - 1].lower() if count else column["_of"][0]
        if name not in self.types and not count:
            self._lacking(name, steps, 0)
            return nothing
        whole = {**column, "column_names": column["column_names"][: count or len(column["column_names"]) - len(column["_of"]) + 1]}
        whole.pop("_of", None)
        place = self.keep(name, self.given[name] if count else self.types[name], whole)
        for count, step in enumerate(steps):
            if place.storage == "json":
                if name in self.types:
                    self._sought(name, steps)
                rest = constant("$" + "".join(_step(each) for each in steps[count:]))
                return Place("json", self.make("json_extract(x, p)", x=place.node, p=rest))
            inner = self._inside(place, step)
            if inner is None:
                self._lacking(name, steps, count)
                return nothing
            place = inner
        return place

    def _lacking(self, name: str, steps: list[str | int], known: int) -> None:
        """Tell of a path of which the steps behind those that are `known` lead nowhere, whole, so that every block tells of the same; which
        items lists have says nothing."""
        names = [at for at, step in enumerate(steps, 1) if isinstance(step, str)]
        if names and names[-1] > known:
            self.missing(_spell(name, steps[: names[-1]]))

    def _sought(self, name: str, steps: list[str | int]) -> None:
        """Tell of a path into JSON that no record has; which items lists have says nothing."""
        names = [at for at, step in enumerate(steps, 1) if isinstance(step, str)]
        if not names:
            return
        path = "$" + "".join(_step(step) if isinstance(step, str) else "[*]" for step in steps[: names[-1]])
        found = f"json_extract(to_json({quoted_name(name)}), {quoted_text(path)})"
        if not self.holds(f"{found} IS NOT NULL" if len(names) == names[-1] else f"len({found}) > 0"):
            self._lacking(name, steps, 0)

    def _given_at(self, node: Node) -> int:
        """How many of a column's names say a value that an inner query gives: `x`, `t.x`; 0 where they say none."""
        names = [str(name).lower() for name in node["column_names"][:2]]
        return 0 if node.get("_of") else next((at for at, name in enumerate(names, 1) if name in self.given), 0)

    def _inside(self, place: Place, step: str | int) -> Place | None:
        if place.storage == "list" and isinstance(step, int):
            item = operator("ARRAY_EXTRACT", place.node, constant(step + 1 if step >= 0 else step))
            return self.keep("", place.type.children[0][1], item)
        if place.storage == "struct" and isinstance(step, str):
            for name, kind in place.type.children:
                if name == step and place.node.get("class") == "COLUMN_REF":  # DuckDB writes a quote in a name twice otherwise
                    return self.keep("", kind, {**place.node, "column_names": [*place.node["column_names"], step]})
                if name == step:
                    return self.keep("", kind, self.make("struct_extract(x, p)", x=place.node, p=constant(step)))
        return None

    def keep(self, name: str, kind: Any, node: Node) -> Place:
        if str(kind) == "JSON":
            return Place("json", node, kind)
        if kind.id == "varchar":
            return Place("class" if name and columns.kind(name) == "number" else "text", node, kind)
        storage: dict[str, Storage] = {"boolean": "truth", "list": "list", "array": "list", "struct": "struct", "null": "null"}
        return Place("integer" if kind.id in INTEGERS else "real" if kind.id in REALS else storage.get(kind.id, "other"), node, kind)


def _spell(name: str, steps: list[str | int]) -> str:
    return name + "".join(f".{step}" if isinstance(step, str) else "[]" for step in steps)


def _step(step: str | int) -> str:
    """A step as a JSON path has it; a name is quoted."""
    if isinstance(step, int):
        return f"[{step}]" if step >= 0 else f"[#{step}]"
    return "." + json.dumps(step, ensure_ascii=False)
