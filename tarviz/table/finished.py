"""A question that was read, written as the SQL that answers it, once the types of its columns are known."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from tarviz.table.comparisons import Rule, is_read
from tarviz.table.list_functions import BY_ITEM, FILTERS
from tarviz.table.packages import duckdb
from tarviz.table.places import Places
from tarviz.table.sql import Node, Question, common_tables, function_name, nodes, own_name, parse, replace_nodes, select_of, write

_TYPED = ("objects", "tags", "_words")  # relations of ours, whose columns have types

Kind: TypeAlias = Literal["condition", "value", "query"]


def finish(
    base: duckdb.DuckDBPyConnection,
    asked: Question,
    types: Mapping[str, Any],
    *,
    kind: Kind,
    missing: Callable[[str], None],
    holds: Callable[[str], bool],
) -> str:
    """The SQL of a question over columns of these `types`. A condition is read by the rule, and so are the conditions behind the WHERE of a
    query and its other comparisons of values. JSON as a value is its text by the rule. Lists are counted from 0, in a query from 1.
    `missing` is told of paths that no record has; `holds` says whether a test holds of any."""
    tree = copy.deepcopy(asked.tree)
    rule = Rule(base, Places(base, types, missing, kind == "condition", kind != "query", holds))
    _unite(rule, tree)
    while (given := _given_types(rule, tree)) != rule.places.given:  # a query may name what another has named
        rule.places.given = given
        _unite(rule, tree)
    for select in reversed([*nodes(tree, "SELECT_NODE")]):  # the inner ones first
        if select.get("where_clause") is not None and select["from_table"].get("table_name") not in _TYPED:
            select["where_clause"] = rule.truth(select["where_clause"])
    rule.tries = kind == "condition"
    if not rule.tries:
        for join in nodes(tree, "JOIN"):  # of two values of one type as they are stored, for a hash join
            for node in nodes(join.get("condition") or {}, "COMPARISON"):
                one, two = rule.places.at(node["left"]), rule.places.at(node["right"])
                node |= {"_made": True} if one is not None and two is not None and str(one.type) == str(two.type) else {}
        chosen = select_of(tree).get("select_list") or []
        before = copy.deepcopy(chosen)
        replace_nodes(tree, lambda node: _outside_where(rule, node))
        for was, new in zip(before, chosen, strict=True):
            if new != was and not new["alias"] and kind == "query":  # its column is called what was asked
                named = parse(base, "SELECT 1")
                select_of(named)["select_list"] = [_bare(was)]
                new["alias"] = write(base, named).removeprefix("SELECT ")
        _items(rule, tree, leaves=kind == "value")
        replace_nodes(tree, lambda node: _inside_json(rule, node, leaves=kind == "value"))
    return write(base, _bare(tree))


def _given_types(rule: Rule, tree: Node) -> dict[str, Any]:
    """The types of values of records that queries and lambdas give a name which is no column; without names that are given to other
    things too."""
    found: dict[str, list[Any]] = {}
    for names, items in _names_and_items(tree):
        for item, name in zip(items, [*names, *(own_name(each) for each in items[len(names) :])], strict=False):
            kind = _type(rule, item)
            if kind is not None or (item.get("column_names") or [""])[-1] != name:  # `SELECT x FROM t` gives what t does
                found.setdefault(name.lower(), []).append(kind)
    return {
        name: kinds[0]
        for name, kinds in found.items()
        if name not in rule.places.types and None not in kinds and all(kind == kinds[0] for kind in kinds)
    }


def _names_and_items(tree: Node) -> Iterator[tuple[list[str], list[Node]]]:
    """What queries select, unnest and hand to lambdas, and the names that are given to it; the others are its own."""
    for select in nodes(tree, "SELECT_NODE"):
        yield [], select["select_list"]
    inner = [(each.get("column_name_alias") or [], each["subquery"]["node"]) for each in nodes(tree, "SUBQUERY")]
    for names, query in [*inner, *((each["value"]["aliases"], each["value"]["query_node"]) for each in common_tables(tree))]:
        if selects := _selects(query):
            yield names, selects[0]["select_list"]
    for table in nodes(tree, "TABLE_FUNCTION"):
        yield table.get("column_name_alias") or ["unnest"], [table["function"]]
    for call in nodes(tree, "FUNCTION"):
        if function_name(call) in BY_ITEM and len(call["arguments"]) == 2:
            items, each = (argument["expression"] for argument in call["arguments"])
            names = [found["column_names"][0] for found in nodes(each.get("lhs") or {}, "COLUMN_REF")]
            yield names, [{**call, "qualified_name": {"path": ["unnest"]}, "arguments": [{"expression": items}]}]


def _type(rule: Rule, node: Node) -> Any:
    """The type of a value of records, of a list of such or of its items; None where an expression is none of these."""
    if (place := rule.places.at(node)) is not None:
        return rule.places.types["key"] if is_read(place) else place.type
    name = function_name(node) if node.get("class") == "FUNCTION" else ""
    if name == "to_json" or (name == "json_extract" and node.get("_made")):
        return rule.base.sqltype("JSON")
    parts = [each["expression"] for each in node.get("arguments") or []]
    if name == "list_value":
        types = [_type(rule, each) for each in parts]
        return rule.base.list_type(types[0]) if types and None not in types and all(each == types[0] for each in types) else None
    kind = _list_type(rule, parts[0]) if parts and (name in FILTERS or name == "unnest") else None
    return kind if kind is None or name != "unnest" else kind.children[0][1]


def _list_type(rule: Rule, node: Node) -> Any:
    """The type of what may be a list; None where it is none."""
    if (place := rule.places.at(node)) is not None and place.storage != "list":
        return rule.base.list_type(rule.base.sqltype("JSON"))
    kind = _type(rule, node)
    return kind if kind is not None and kind.id == "list" else None


def _selects(node: Node) -> list[Node]:
    """The SELECTs of a query, of a UNION its parts."""
    return [one for each in node["children"] for one in _selects(each)] if "children" in node else [node] if node.get("select_list") else []


def _unite(rule: Rule, tree: Node) -> None:
    """What stands in a UNION with values of two kinds as JSON, as which DuckDB would read it."""
    for node in nodes(tree, "SET_OPERATION_NODE"):
        selects = [select["select_list"] for select in _selects(node)]
        for at in range(min(map(len, selects), default=0)):
            if any(str(_type(rule, select[at])) == "JSON" for select in selects):
                for select in selects:
                    item, place = select[at], rule.places.at(select[at])
                    if str(_type(rule, item)) != "JSON":
                        read = place is not None and is_read(place)
                        made = rule.places.make("x" if read else "to_json(x)", x=place.node if place is not None else rule.plain(item))
                        select[at] = {**made, "alias": own_name(item)}


def _bare(tree: Any) -> Any:
    """A tree without our notes in it."""
    if isinstance(tree, dict):
        return {name: _bare(value) for name, value in tree.items() if not name.startswith("_")}
    return [_bare(value) for value in tree] if isinstance(tree, list) else tree


def where_of(sql: str) -> str:
    """The condition in the SQL of `finished`."""
    return sql.partition(" WHERE ")[2] or "true"


def _items(rule: Rule, tree: Any, *, leaves: bool) -> None:
    """Items of lists, from the outermost step in: in JSON its text, and with `leaves` as a condition reads them."""
    for name, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        steps = isinstance(value, dict) and value.get("type") in ("ARRAY_EXTRACT", "STRUCT_EXTRACT")
        if steps and (place := rule.places.at(value)) is not None and (leaves or is_read(place)):
            made = rule.places.make("text_of_json(x)" if leaves else "x ->> '$'", x=place.node) if place.storage == "json" else place.node
            tree[name] = {**made, "alias": value.get("alias", "")}
        elif isinstance(value, dict | list):
            _items(rule, value, leaves=leaves)


def _outside_where(rule: Rule, node: Node) -> Node | None:
    """A comparison anywhere in a query by the rule: of a value with what is none, or with one that holds values of two kinds; and what
    is made of these, where the kind of something else says what they are taken for."""
    kind = node.get("type")
    if node.get("class") in ("FUNCTION", "CAST", "CASE") or kind == "OPERATOR_COALESCE":
        return {**made, "alias": node.get("alias", "")} if (made := rule.of_mixed(node)) else None
    if node.get("class") == "COMPARISON":
        sides = [node["left"], node["right"]]
    elif kind in ("COMPARE_IN", "COMPARE_NOT_IN"):
        sides = node["children"]
    elif kind in ("COMPARE_BETWEEN", "COMPARE_NOT_BETWEEN"):
        sides = [node["input"], node["lower"], node["upper"]]
    else:
        return None
    kinds = {rule.kind(side) for side in sides}
    places = [place for side in sides if (place := rule.places.at(side)) is not None]
    if "value" not in kinds or (len(kinds) == 1 and all(place.storage != "json" for place in places)):
        return None
    return {**rule.truth(node), "alias": node.get("alias", "")}


def _inside_json(rule: Rule, node: Node, *, leaves: bool) -> Node | None:
    """In a query, a path into what is JSON: its text. With `leaves` also JSON itself, by the rule."""
    of = node.get("_of")
    if node.get("class") != "COLUMN_REF" or not of or len(of) < 2:
        return None
    place = rule.places.at(node)
    if place is None or place.storage != "json" or not (leaves or is_read(place)):
        return None
    return {**rule.places.make("text_of_json(x)" if leaves else "x ->> '$'", x=place.node), "alias": node.get("alias", "")}
