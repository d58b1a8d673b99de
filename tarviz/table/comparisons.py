"""Conditions made fit for the types that columns turned out to have, and written as SQL.

A value of another type than it is compared with makes a condition false, not an error: `txt > 3`, `json.w = 'five'`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from tarviz.table.sql import NOWHERE, Asked, Node, expression, nodes, replaced, text_node, written

if TYPE_CHECKING:
    import duckdb

Typed: TypeAlias = Callable[[str, list[str]], str]  # a column and a path inside it → "number", "text", "nested", "other"


def finished(base: duckdb.DuckDBPyConnection, asked: Asked, typed: Typed, *, lenient: bool) -> str:
    """The SQL. With `lenient` (a condition) a value of another type than it is compared with makes the comparison false, and lists
    are counted from 0."""
    tree = copy.deepcopy(asked.tree)
    if lenient:
        replaced(tree, lambda node: _compared(base, node, typed))
    replaced(tree, lambda node: _inside_text(base, node, typed))
    for node in nodes(tree, "COLUMN_REF"):
        node.pop("_of", None)
    return written(base, tree)


def where_of(sql: str) -> str:
    """The condition in the SQL of `finished`."""
    return sql.partition(" WHERE ")[2] or "true"


_COMPARE = ("COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_LESSTHAN", "COMPARE_GREATERTHAN", "COMPARE_LESSTHANOREQUALTO")
_COMPARES = frozenset({*_COMPARE, "COMPARE_GREATERTHANOREQUALTO", "COMPARE_DISTINCT_FROM", "COMPARE_NOT_DISTINCT_FROM"})


def _compared(base: duckdb.DuckDBPyConnection, node: Node, typed: Typed) -> Node | None:
    kind = node.get("type")
    if kind == "ARRAY_EXTRACT":
        at = node["children"][1]
        if at.get("class") == "CONSTANT" and at["literal"]["kind"] == "INTEGER" and not str(at["literal"]["text"]).startswith("-"):
            at["literal"]["text"] = str(int(at["literal"]["text"]) + 1)
        return None
    if kind in _COMPARES:
        left, right = node["left"], node["right"]
        if _is_null(right) or _is_null(left):
            test = "OPERATOR_IS_NULL" if kind == "COMPARE_EQUAL" else "OPERATOR_IS_NOT_NULL"
            return {"class": "OPERATOR", "type": test, "alias": "", "children": [left if _is_null(right) else right], **NOWHERE}
        node["left"], node["right"] = _against(base, left, [right], typed), _against(base, right, [left], typed)
    elif kind in ("COMPARE_IN", "COMPARE_NOT_IN"):
        node["children"][0] = _against(base, node["children"][0], node["children"][1:], typed)
    elif kind in ("COMPARE_BETWEEN", "COMPARE_NOT_BETWEEN"):
        node["input"] = _against(base, node["input"], [node["lower"], node["upper"]], typed)
    elif kind == "FUNCTION" and node.get("function_name") in ("+", "-", "*", "/", "%", "//", "abs"):
        for argument in node["arguments"]:
            if _type_of(argument["expression"], typed) == "text":
                argument["expression"] = _cast(base, argument["expression"], "DOUBLE")
    elif kind == "FUNCTION" and node.get("function_name") == "contains" and len(node["arguments"]) == 2:
        _contains(base, node["arguments"], typed)
    return None


def _contains(base: duckdb.DuckDBPyConnection, arguments: list[Node], typed: Typed) -> None:
    """`x in [1, 2]`, which DuckDB writes as contains([1, 2], x)."""
    box = arguments[0]["expression"]
    if box.get("class") == "FUNCTION" and box.get("function_name") == "list_value":
        choices = [each["expression"] for each in box["arguments"]]
        arguments[1]["expression"] = _against(base, arguments[1]["expression"], choices, typed)
    elif _type_of(box, typed) == "number":
        arguments[0]["expression"] = _cast(base, box, "VARCHAR")


def _is_null(node: Node) -> bool:
    return node.get("class") == "CONSTANT" and node["literal"]["kind"] == "NULL_LITERAL"


def _type_of(node: Node, typed: Typed) -> str:
    of = node.get("_of")
    return typed(of[0], of[1:]) if of else "other"


def _against(base: duckdb.DuckDBPyConnection, node: Node, others: list[Node], typed: Typed) -> Node:
    """A column made fit to be compared with constants: text with numbers as a number, a number with words as text."""
    kinds = [other["literal"]["kind"] if other.get("class") == "CONSTANT" else _numeric(other) for other in others]
    what = _type_of(node, typed)
    if what == "text" and any(kind in ("INTEGER", "DECIMAL", "DOUBLE", "NUMERIC", "FLOAT", "BIGINT") for kind in kinds):
        return _cast(base, node, "DOUBLE")
    if what == "number" and any(
        kind == "STRING" and not _is_number(str(other["literal"]["text"])) for kind, other in zip(kinds, others, strict=True)
    ):
        return _cast(base, node, "VARCHAR")
    return node


def _numeric(node: Node) -> str:
    """`NUMERIC` for -3, which is a function of a constant."""
    if node.get("class") == "FUNCTION" and node.get("function_name") == "-" and len(node["arguments"]) == 1:
        return "NUMERIC" if node["arguments"][0]["expression"].get("class") == "CONSTANT" else ""
    return ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _cast(base: duckdb.DuckDBPyConnection, node: Node, kind: str) -> Node:
    made = expression(base, f"TRY_CAST(x AS {kind})")
    made["child"] = node
    return made


def _inside_text(base: duckdb.DuckDBPyConnection, node: Node, typed: Typed) -> Node | None:
    """A path into a column that is JSON text."""
    of = node.get("_of")
    if node.get("class") != "COLUMN_REF" or not of or len(of) < 2:
        return None
    for count in range(1, len(of)):
        if typed(of[0], of[1:count]) == "text":
            path = "$" + "".join(f'."{name}"' for name in of[count:])
            made = expression(base, "CASE WHEN json_valid(x) THEN json_extract_string(x, 'p') END")
            inner = {**node, "column_names": node["column_names"][: len(node["column_names"]) - len(of) + count]}
            inner.pop("_of")

            def change(found: Node, inner: Node = inner, path: str = path) -> Node | None:
                if found.get("class") == "COLUMN_REF" and found["column_names"] == ["x"]:
                    return dict(inner)
                return text_node(path) if found.get("class") == "CONSTANT" and found["literal"].get("text") == "p" else None

            replaced(made, change)
            made["alias"] = node.get("alias", "")
            return made
    return None
