"""Functions of lists in a condition: what they say of a record hangs on the items of its own list, whatever other records hold.

Items are taken as texts, as numbers by sums and such; one that is chosen (`list_max(json.a)`, `list_sort(json.a)[1]`) takes the kind of
what it stands beside. `list_sort` puts numbers by their size, then texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tarviz.table import columns
from tarviz.table.places import Place
from tarviz.table.sql import Node, column, function_name, operator

if TYPE_CHECKING:
    from tarviz.table.comparisons import Rule

TRUTH, TEXT, WHOLE, REAL = range(4)  # what a value may be taken for
FILTERS = frozenset({"list_filter", "filter", "array_filter"})
BY_ITEM = FILTERS | {"list_transform", "list_apply", "apply", "array_apply", "array_transform", "unnest"}
"""Functions over the items of a list, which take a value of two kinds as the list it may be."""
_JSON_ITEMS = "CASE WHEN json_type(x) = 'ARRAY' THEN json_extract(x, '$[*]') END"
_ONE = frozenset({"min", "max", "first", "last", "any_value", "mode", "extract", "element"})
_SORTED = frozenset({"sort", "reverse_sort"})
TAKEN = {  # what functions of lists take items for, others texts
    **dict.fromkeys(("bool_and", "bool_or"), TRUTH), **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), WHOLE), **dict.fromkeys((
        "sum", "avg", "product", "reduce", "median", "mad", "sem", "stddev_pop", "stddev_samp", "var_pop", "var_samp", "kurtosis",
        "kurtosis_pop", "skewness", "cosine_distance", "cosine_similarity", "distance", "dot_product", "inner_product",
        "negative_dot_product", "negative_inner_product",
    ), REAL),
}  # fmt: skip
_WITH_ITEM = {"position": 1, "indexof": 1, "append": 1, "push_back": 1, "push_front": 1, "prepend": 0}
"""Functions of lists that take an item, and where."""


@dataclass(slots=True, eq=False)
class Lists:
    """Writes calls of functions of lists by a `rule`."""

    rule: Rule

    def items(self, node: Node) -> Node:
        """A value as the list it may be, null where it is none."""
        place = self.rule.places.at(node)
        return node if place is None or place.storage == "list" else self._list_at(place)

    def texts_of(self, place: Place) -> Node:
        """The texts of a list's items, null where it is none."""
        return self._each(self._list_at(place), self._item_at(place), TEXT)

    def _list_at(self, place: Place) -> Node:
        if place.storage == "list":
            return place.node
        return self.rule.places.make(_JSON_ITEMS, x=place.node) if place.storage == "json" else self.rule.places.make("NULL::JSON[]")

    def _item_at(self, place: Place) -> Place:
        return self.rule.places.keep("", place.type.children[0][1], column("e")) if place.storage == "list" else Place("json", column("e"))

    def _each(self, items: Node, item: Place, what: int) -> Node:
        return self.rule.places.make("list_transform(x, lambda e: y)", x=items, y=self.rule.take_for(what, item))

    # what an expression is

    def _item(self, node: Node) -> Place | None:
        """What an item `e` of a list is that may be one of any kinds; None where an expression is no such list."""
        if not self.rule.tries:
            return None
        if node.get("class") == "FUNCTION" and function_name(node) in FILTERS:
            return self._item(arguments_of(node)[0])
        if self.takes_lists(node) and not self.gives_item(node):
            return Place("text", column("e"))
        found, place = self.rule.places.steps(node), self.rule.places.at(node)
        of = (found[0].get("_of") or [""])[0] if found is not None else ""
        return self._item_at(place) if place is not None and (not of or columns.kind(of) == "json") else None

    def takes_lists(self, node: Node) -> bool:
        """Whether this calls a function of lists with such a list."""
        return any(self._item(each) is not None for each in list_call(node)[2])

    def gives_item(self, node: Node) -> bool:
        """Whether this gives one of such a list's items, which takes the kind of what it stands beside."""
        if node.get("type") == "ARRAY_EXTRACT":  # of what a function of lists gives; of a path it is one
            return self.rule.places.steps(node) is None and self._item(node["children"][0]) is not None
        called, _, arguments = list_call(node)
        return called in _ONE and self._item(arguments[0]) is not None

    # how it is written

    def taken(self, node: Node, what: int = TEXT) -> Node | None:
        """The items of such a list as texts or numbers, null where it is no list; None where an expression is none."""
        if (item := self._item(node)) is None:
            return None
        return self._each(self.rule.plain(node) if self.rule.places.at(node) is None else self.items(node), item, what)

    def compared(self, *sides: Node) -> list[Node] | None:
        """Two lists to compare, of which one is written out: as numbers where all that is written is, else as texts."""
        written = [each for each in sides if _is_written(each)]
        if len(written) != 1:
            return None
        what = REAL if {self.rule.kind(each) for each in arguments_of(written[0])} == {"number"} else TEXT
        made = [self._written(each, what) if each is written[0] else self.taken(each, what) for each in sides]
        return None if None in made else made  # type: ignore[return-value]

    def _written(self, node: Node, what: int) -> Node:
        return with_arguments(node, [self.rule.number(each).real if what == REAL else self.rule.text(each) for each in arguments_of(node)])

    def one(self, node: Node, what: int) -> Node | None:
        """A call that gives one of a list's items as its text or number; None where an expression is none."""
        if not self.gives_item(node):
            return None
        if node.get("type") == "ARRAY_EXTRACT":
            items, at = node["children"]
            return operator("ARRAY_EXTRACT", self._taken(items, what), self.rule.plain(at))
        _, name, (items, *others) = list_call(node)
        return self._apply(name, [self._taken(items, what), *map(self.rule.plain, others)])

    def _taken(self, node: Node, what: int) -> Node:
        found = self.taken(node, what)
        assert found is not None  # `gives_item` says so
        return found

    def _apply(self, name: str, arguments: Sequence[Node]) -> Node:
        names = [f"a{at}" for at in range(len(arguments))]
        return self.rule.attempt(self.rule.places.make(f"{name}({', '.join(names)})", **dict(zip(names, arguments, strict=True))))

    def call(self, node: Node) -> Node | None:
        """A call of a function of lists, as which it takes their items: as numbers for sums and such, else as texts."""
        if not self.takes_lists(node):
            return None
        called, name, arguments = list_call(node)
        kind = TAKEN.get(called, TEXT)
        made = []
        for at, each in enumerate(arguments):
            found = self._written(each, kind) if _is_written(each) else self.taken(each, kind)
            made.append(found or (self.rule.text(each) if _WITH_ITEM.get(called) == at else self.rule.plain(each)))
        if called not in _SORTED:
            return self._apply(name, made)
        keyed = self.rule.places.make("list_transform(x, lambda e: {'k': real_in(e), 'v': e})", x=made[0])  # by size, then texts
        return self.rule.places.make("list_transform(x, lambda e: e.v)", x=self._apply(name, [keyed, *made[1:]]))


def arguments_of(node: Node) -> list[Node]:
    return [each["expression"] for each in node["arguments"]]


def with_arguments(node: Node, made: Sequence[Node]) -> Node:
    """A call with others in the places of its arguments."""
    return {**node, "arguments": [{**was, "expression": new} for was, new in zip(node["arguments"], made, strict=True)]}


def _is_written(node: Node) -> bool:
    """Whether this is a list written out: `[1, 2]`."""
    return node.get("class") == "FUNCTION" and function_name(node) == "list_value"


def list_call(node: Node) -> tuple[str, str, list[Node]]:
    """What a call of a function of lists does, its name and its arguments: `sum` of `list_sum(x)` and `list_aggregate(x, 'sum')`; "" of
    any other."""
    name = function_name(node) if node.get("class") == "FUNCTION" else ""
    called = next((name.removeprefix(each) for each in ("list_", "array_") if name.startswith(each)), "")
    arguments = arguments_of(node) if called else []
    if not arguments or name in BY_ITEM or called == "value":
        return "", "", []
    if called in ("aggr", "aggregate") and len(arguments) == 2 and arguments[1].get("class") == "CONSTANT":
        wanted = str(arguments[1]["literal"]["text"]).lower()
        return (wanted, f"list_{wanted}", arguments[:1]) if wanted.isidentifier() else ("", "", [])
    return called, name, arguments
