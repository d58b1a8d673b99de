"""What a condition means for the types that columns turned out to have, written as SQL.

One rule decides every comparison, so that a record's answer depends on its own values alone: a value out of a record takes the kind of
the other side. Against a text it is its text, against a number or in arithmetic its number (exact for integers), against true and false
its truth. Two such values compare as numbers where both are, else as texts. What cannot be cast is unknown, and fits nothing: no payload
raises an error. DuckDB's own casts do (`'"cat"'::JSON = 'cat'`), and they depend on what else the column holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from tarviz.model.errors import UsageError
from tarviz.table import columns
from tarviz.table.list_functions import BY_ITEM, FILTERS, REAL, TAKEN, TEXT, TRUTH, WHOLE, Lists, arguments_of, list_call, with_arguments
from tarviz.table.packages import duckdb
from tarviz.table.places import INTEGERS, NUMBERS, Place, Places, Storage
from tarviz.table.sql import NOWHERE, Node, function_name, no_function, nodes, operator, signatures

Kind: TypeAlias = Literal["value", "number", "text", "truth", "null", "other"]

_EXACT = 2**53  # whole numbers below this are themselves as DOUBLE
MACROS = (
    f"whole_of(d) AS CASE WHEN abs(d) < {_EXACT} AND d = trunc(d) THEN CAST(d AS HUGEINT) END",
    "real_in(t) AS nullif(TRY_CAST(t AS DOUBLE), 'nan'::DOUBLE)",
    r"whole_in(t) AS CASE WHEN regexp_full_match(t, '\s*[+-]?[0-9]{1,38}\s*') THEN TRY_CAST(t AS HUGEINT) "
    "ELSE whole_of(TRY_CAST(t AS DOUBLE)) END",
    "text_of_real(d) AS coalesce(CAST(whole_of(d) AS VARCHAR), CAST(d AS VARCHAR))",
    "text_of_class(t) AS coalesce(CAST(whole_in(t) AS VARCHAR), text_of_real(TRY_CAST(t AS DOUBLE)), t)",
    "text_of_json(j) AS CASE json_type(j) WHEN 'VARCHAR' THEN j->>'$' WHEN 'BOOLEAN' THEN j->>'$' WHEN 'NULL' THEN NULL "
    "WHEN 'ARRAY' THEN NULL WHEN 'OBJECT' THEN NULL ELSE text_of_class(j->>'$') END",
    "truth_in(t) AS coalesce(TRY_CAST(t AS BOOLEAN), TRY_CAST(t AS DOUBLE) <> 0)",
)
_FORMS: dict[Storage, tuple[str, str, str, str]] = {  # how what is stored in each way is taken for these
    "truth": ("x", "CAST(x AS VARCHAR)", "NULL::HUGEINT", "NULL::DOUBLE"),
    "integer": ("x <> 0", "CAST(x AS VARCHAR)", "CAST(x AS HUGEINT)", "CAST(x AS DOUBLE)"),
    "real": ("x <> 0", "text_of_real(x)", "whole_of(x)", "nullif(CAST(x AS DOUBLE), 'nan'::DOUBLE)"),
    "text": ("truth_in(x)", "x", "whole_in(x)", "real_in(x)"),
    "class": ("truth_in(text_of_class(x))", "text_of_class(x)", "whole_in(x)", "real_in(x)"),
    "json": ("truth_in(text_of_json(x))", "text_of_json(x)", "whole_in(text_of_json(x))", "real_in(text_of_json(x))"),
    "other": ("truth_in(CAST(x AS VARCHAR))", "CAST(x AS VARCHAR)", "NULL::HUGEINT", "NULL::DOUBLE"),
}
_NONE = ("NULL::BOOLEAN", "NULL::VARCHAR", "NULL::HUGEINT", "NULL::DOUBLE")  # a list, a struct
_NUMBER_TYPES = frozenset(map(str.upper, NUMBERS))
_NUMBER_TYPES |= {"INT", "INT4", "INT8", "REAL", "FLOAT8", "LONG", "NUMERIC", "SHORT"}
_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "abs", "whole", "real_number"})
_OF_NULL = {  # what compares with NULL, = as Python's == None, and whether it asks for what is null
    "COMPARE_EQUAL": True, "COMPARE_NOT_DISTINCT_FROM": True, "COMPARE_NOTEQUAL": False, "COMPARE_DISTINCT_FROM": False,
}  # fmt: skip


class NumberPair(NamedTuple):
    """A number twice: as HUGEINT where it is whole (null where it is not; None where it never is), and as DOUBLE."""

    exact: Node | None
    real: Node


@dataclass(slots=True, eq=False)
class Rule:
    """Writes expressions by the rule of comparison; `tries`: in a condition, where what would be an error is unknown."""

    base: duckdb.DuckDBPyConnection
    places: Places
    tries: bool = True

    @property
    def lists(self) -> Lists:
        return Lists(self)  # made anew: in a circle a table would outlive those who ask it

    # what an expression is

    def kind(self, node: Node) -> Kind:
        """What an expression gives; a `value` takes the kind of the other side."""
        of_class = node.get("class")
        if of_class == "CONSTANT":
            literal = node["literal"]["kind"]
            return {"STRING": "text", "BOOLEAN": "truth", "NULL_LITERAL": "null"}.get(literal, "number")  # type: ignore[return-value]
        if of_class in ("COMPARISON", "CONJUNCTION", "BETWEEN") or node.get("type") in _TESTS:
            return "truth"
        if self.places.steps(node) is not None or self.lists.gives_item(node):
            return "value"
        if of_class == "CASE" or node.get("type") == "OPERATOR_COALESCE":
            return self._common(_branches(node))
        if of_class == "CAST":
            return _kind_of(_type_name(node))
        if of_class == "FUNCTION":
            return self._kind_of_call(node)
        if of_class == "SUBQUERY":
            if node["subquery_type"] != "SCALAR":
                return "truth"
            chosen = node["subquery"]["node"].get("select_list") or [{}]
            return self.kind(chosen[0])
        return "other"

    def _kind_of_call(self, node: Node) -> Kind:
        name = function_name(node)
        if name in _OF_ARGUMENTS:
            found = self._common(arguments_of(node))
            return "number" if found == "value" and all(map(self._is_number, arguments_of(node))) else found
        if name == "as_text":
            return "text"
        if (taken := TAKEN.get(list_call(node)[0])) is not None and self.lists.takes_lists(node):
            return "truth" if taken == TRUTH else "number"
        return "number" if name in _ARITHMETIC else _kind_of(self._type_given(name))

    def _common(self, parts: Sequence[Node]) -> Kind:
        kinds = [self.kind(part) for part in parts]
        return next((kind for kind in kinds if kind not in ("value", "null")), "value")

    def _is_number(self, node: Node) -> bool:
        place = self.places.at(node)
        return place is not None and place.storage in ("integer", "real")

    def _type_given(self, name: str) -> str:
        return next((returned for _, _, returned in signatures(self.base, name) if returned), "")

    # truths

    def truth(self, node: Node) -> Node:
        """An expression as BOOLEAN."""
        if node.get("_made"):
            return node
        kind = node.get("type", "")
        if node.get("class") == "CONJUNCTION" or kind == "OPERATOR_NOT":
            return {**node, "children": [self.truth(child) for child in node["children"]]}
        if node.get("class") == "COMPARISON":
            return self._compare(kind, node["left"], node["right"])
        if kind in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
            return self._null(node["children"][0], kind == "OPERATOR_IS_NULL")
        if kind in ("COMPARE_IN", "COMPARE_NOT_IN"):
            found = self._among(node["children"][0], node["children"][1:])
            return found if kind == "COMPARE_IN" else self.places.make("NOT x", x=found)
        if kind in ("COMPARE_BETWEEN", "COMPARE_NOT_BETWEEN"):
            low = self._compare("COMPARE_GREATERTHANOREQUALTO", node["input"], node["lower"])
            high = self._compare("COMPARE_LESSTHANOREQUALTO", node["input"], node["upper"])
            found = self.places.make("x AND y", x=low, y=high)
            return found if kind == "COMPARE_BETWEEN" else self.places.make("NOT x", x=found)
        if node.get("class") == "CASE" or kind == "OPERATOR_COALESCE":
            return self._each_branch(node, self.truth)
        if (place := self.places.at(node)) is not None:
            return self.take_for(TRUTH, place)
        match self.kind(node):
            case "number":
                return self.places.make("x <> 0", x=self.number(node).real)
            case "text" | "value":
                return self.places.make("truth_in(x)", x=self.text(node))
            case "other" if self.tries:
                return self.places.make("TRY_CAST(x AS BOOLEAN)", x=self.plain(node))
        return self.plain(node)

    def take_for(self, what: int, place: Place) -> Node:
        """What lies at a place as its truth, text or number."""
        form = _FORMS.get(place.storage, _NONE)[what]
        return place.node if form == "x" else self.places.make(form, x=place.node)

    def _null(self, node: Node, wanted: bool) -> Node:
        place = self.places.at(node)
        if place is not None and place.storage == "json":
            return self.places.make(f"coalesce(json_type(x), 'NULL') {'=' if wanted else '<>'} 'NULL'", x=place.node)
        return self.places.make("x IS NULL" if wanted else "x IS NOT NULL", x=self.plain(node) if place is None else place.node)

    def _compare(self, op: str, left: Node, right: Node) -> Node:
        kinds = self.kind(left), self.kind(right)
        if "null" in kinds and op in _OF_NULL:
            return self._null(left if kinds[1] == "null" else right, _OF_NULL[op])
        if "truth" in kinds:
            return _comparison(op, self.truth(left), self.truth(right))
        if "other" in kinds:
            return self.attempt(_comparison(op, *(self.lists.compared(left, right) or (self.plain(left), self.plain(right)))))
        if "number" in kinds:
            return self._by_number(op, left, right)
        if "text" in kinds:
            return _comparison(op, self.text(left), self.text(right))
        one, two = self.places.at(left), self.places.at(right)
        if one is not None and two is not None and {one.storage, two.storage} <= {"integer", "real"}:
            return self._by_number(op, left, right)
        return self.places.make(
            "CASE WHEN a IS NULL OR b IS NULL THEN t ELSE n END",
            a=self.number(left).real,
            b=self.number(right).real,
            t=_comparison(op, self.text(left), self.text(right)),
            n=self._by_number(op, left, right),
        )

    def _by_number(self, op: str, left: Node, right: Node) -> Node:
        one, two = self.places.at(left), self.places.at(right)
        if all(_is_whole(node) or (place is not None and place.storage == "integer") for node, place in ((left, one), (right, two))):
            return _comparison(op, left if one is None else one.node, right if two is None else two.node)
        first, second = self.number(left), self.number(right)
        real = _comparison(op, first.real, second.real)
        stored = any(place is not None and place.storage == "real" and _constant(node) for place, node in ((one, right), (two, left)))
        if first.exact is None or second.exact is None or stored:  # a DOUBLE below 2⁵³ says the same
            return real
        exact = _comparison(op, first.exact, second.exact)
        if "DISTINCT" in op:
            return self.places.make("CASE WHEN a IS NULL OR b IS NULL THEN x ELSE y END", a=first.exact, b=second.exact, x=real, y=exact)
        return self.places.make("coalesce(x, y)", x=exact, y=real)

    def _among(self, node: Node, choices: Sequence[Node]) -> Node:
        """`x IN (…)`: equal to one of them, and of none to nothing."""
        if not choices:
            return self.places.make("CASE WHEN x THEN false END", x=self._null(node, False))
        place = self.places.at(node)
        if place is not None and place.storage == "integer" and all(map(_is_whole, choices)):
            return operator("COMPARE_IN", place.node, *choices)
        tests: list[Node] = []
        if texts := [each for each in choices if self.kind(each) == "text"] if self.kind(node) in ("value", "text") else []:
            tests.append(operator("COMPARE_IN", self.text(node), *texts))
        tests += [self._compare("COMPARE_EQUAL", node, each) for each in choices if each not in texts]
        return tests[0] if len(tests) == 1 else operator("CONJUNCTION_OR", *tests, of_class="CONJUNCTION")

    # texts and numbers

    def text(self, node: Node) -> Node:
        """An expression as VARCHAR."""
        if (place := self.places.at(node)) is not None:
            return self.take_for(TEXT, place)
        if (item := self.lists.one(node, TEXT)) is not None:
            return item
        if node.get("class") == "CASE" or node.get("type") == "OPERATOR_COALESCE":
            return self._each_branch(node, self.text)
        match self.kind(node):
            case "text":
                return self.plain(node)
            case "number":
                number = self.number(node)
                if number.exact is None:
                    return self.places.make("text_of_real(x)", x=number.real)
                return self.places.make("coalesce(CAST(x AS VARCHAR), text_of_real(y))", x=number.exact, y=number.real)
        return self.places.make("CAST(x AS VARCHAR)", x=self.plain(node))

    def number(self, node: Node) -> NumberPair:
        """An expression as a number."""
        if (place := self.places.at(node)) is not None:
            return NumberPair(self.take_for(WHOLE, place), self.take_for(REAL, place))
        if (item := self.lists.one(node, REAL)) is not None:
            return NumberPair(self.places.make("whole_of(x)", x=item), item)
        if node.get("class") == "CONSTANT" and node["literal"]["kind"] not in ("STRING", "BOOLEAN", "NULL_LITERAL"):
            return NumberPair(node if _is_whole(node) else None, self.places.make("CAST(x AS DOUBLE)", x=node))
        if node.get("class") == "CASE" or node.get("type") == "OPERATOR_COALESCE":
            branches = _branches(node)
            exact = None
            if all(self.number(branch).exact is not None for branch in branches if self.kind(branch) != "null"):
                # of the branch that is taken: one that is no whole number is null there, and the DOUBLE counts
                taken = _as_case(self, node)
                exact = self._each_branch(taken, lambda each: self.number(each).exact or self.places.make("NULL::HUGEINT"))
            return NumberPair(exact, self._each_branch(node, lambda each: self.number(each).real))
        if node.get("class") == "FUNCTION" and (name := function_name(node)) in _ARITHMETIC:
            return self._arithmetic(name, [self.number(each) for each in arguments_of(node)])
        match self.kind(node):
            case "number":
                value = self.plain(node)
                if self._whole_result(node):
                    return NumberPair(value, self.places.make("CAST(x AS DOUBLE)", x=value))
                return NumberPair(None, self.places.make("nullif(CAST(x AS DOUBLE), 'nan'::DOUBLE)", x=value))
            case "null":
                return NumberPair(self.places.make("NULL::HUGEINT"), self.places.make("NULL::DOUBLE"))
        text = self.text(node)
        return NumberPair(self.places.make("whole_in(x)", x=text), self.places.make("real_in(x)", x=text))

    def _whole_result(self, node: Node) -> bool:
        if node.get("class") == "CAST":
            return _type_name(node).lower() in INTEGERS or _type_name(node) in ("INT", "INT4", "INT8", "LONG")
        if node.get("class") == "FUNCTION":
            found = {returned for _, _, returned in signatures(self.base, function_name(node))}
            return bool(found) and all(name.lower() in INTEGERS for name in found)
        return False

    def _arithmetic(self, name: str, sides: list[NumberPair]) -> NumberPair:
        """Arithmetic. Where whole numbers would not fit into HUGEINT, the DOUBLE is left."""
        if name[0].isalpha() and len(sides) != 1:
            written = {"whole": "int", "real_number": "float"}.get(name, name)
            raise UsageError(f"{written}() takes one argument.", code="E_QUERY")
        if name == "real_number":
            return NumberPair(None, sides[0].real)
        if name == "whole":
            real = self.places.make("trunc(x)", x=sides[0].real)
            whole = self.places.make("TRY_CAST(x AS HUGEINT)", x=real)
            return NumberPair(whole if sides[0].exact is None else self.places.make("coalesce(x, y)", x=sides[0].exact, y=whole), real)
        form = {1: f"{name}(x)" if name == "abs" else f"{name} x", 2: f"x {name} y"}[len(sides)]
        real = self.places.make({"//": "trunc(x / y)"}.get(name, form), x=sides[0].real, y=sides[-1].real)
        exact = [self.places.make("CAST(x AS HUGEINT)", x=side.exact) for side in sides if side.exact is not None]
        if name == "/" or len(exact) < len(sides):
            return NumberPair(None, real)
        return NumberPair(self.places.make(f"TRY({form})", x=exact[0], y=exact[-1]), real)

    # the rest

    def of_mixed(self, node: Node) -> Node | None:
        """A call, cast, CASE or coalesce() of a query over values of two kinds, which take the kind of what they stand beside; None where
        it has none of these, or nothing says a kind."""
        of_class = node.get("class")
        parts = [node["child"]] if of_class == "CAST" else arguments_of(node) if of_class == "FUNCTION" else _branches(node)
        if not any((place := self.places.at(part)) is not None and place.storage == "json" for part in parts):
            return None
        if of_class == "CAST":
            return self._cast(node) if _kind_of(_type_name(node)) in ("number", "truth") else None
        if of_class != "FUNCTION" or function_name(node) in _OF_ARGUMENTS:
            return None if self.kind(node) == "value" else self.plain(node)
        name = function_name(node)
        taken = {each for _, types, _ in signatures(self.base, name) for each in types}
        known = name in BY_ITEM or name in _ARITHMETIC or name in _JOINED or taken & (_NUMBER_TYPES | {"VARCHAR"})
        return self._call(node) if known and "JSON" not in taken else None

    def plain(self, node: Node) -> Node:
        """An expression of which no kind is wanted."""
        if node.get("_made"):
            return node
        if (place := self.places.at(node)) is not None:
            return place.node
        of_class, kind = node.get("class"), node.get("type")
        if of_class in ("CONJUNCTION", "COMPARISON", "BETWEEN") or kind in _TESTS:
            return self.truth(node)
        if of_class == "CAST":
            return self._cast(node)
        if of_class == "COLLATE":
            return {**node, "child": self.text(node["child"])}
        if of_class == "FUNCTION":
            return self._call(node)
        if of_class == "SUBQUERY":
            return self._subquery(node)
        if of_class == "CASE" or kind == "OPERATOR_COALESCE":
            wanted = {"number": lambda each: self.number(each).real, "text": self.text, "truth": self.truth}
            common = self._common(_branches(node))
            return self._each_branch(node, wanted.get(common, self.text if common == "value" else self.plain))
        if of_class == "LAMBDA":
            return {**node, "expr": self.plain(node["expr"])}
        found = dict(node)
        if isinstance(found.get("children"), list):
            found["children"] = [self.plain(each) for each in found["children"]]
            if kind == "ARRAY_SLICE":
                found["children"][0] = self.lists.taken(node["children"][0]) or found["children"][0]
        if isinstance(found.get("child"), dict):
            found["child"] = self.plain(found["child"])
        return found

    def _cast(self, node: Node) -> Node:
        child, name = node["child"], _type_name(node)
        if name in ("BOOLEAN", "BOOL"):
            return self.truth(child)
        cast = {**node, "try_cast": True}
        place = self.places.at(child)
        if place is not None and place.storage == "json" and _kind_of(name) == "number":
            return self._cast_json(cast, place.node)
        if (texts := self.lists.taken(child) if name in ("LIST", "VARCHAR") else None) is not None:
            if name == "LIST":
                return {**cast, "child": texts}
            if place is None or place.storage in ("list", "json"):
                return self.places.make(_AS_WRITTEN, x=texts, y=self.text(child))
        if place is not None and (place.storage not in ("text", "class", "json") or _kind_of(name) == "number"):
            return {**cast, "child": place.node}  # as DuckDB casts what is stored
        if self.kind(child) in ("value", "text") or name == "VARCHAR":
            return {**cast, "child": self.text(child)}
        if _kind_of(name) == "number" and self.kind(child) == "number":
            number = self.number(child)
            real = {**cast, "child": number.real}
            return real if number.exact is None else self.places.make("coalesce(x, y)", x={**cast, "child": number.exact}, y=real)
        return {**cast, "child": self.plain(child)}

    def _cast_json(self, cast: Node, json: Node) -> Node:
        """A value of JSON as a number, as DuckDB casts one that is stored as what it is: 2.5 and '2.5' are rounded differently."""
        made = self.places.make
        text = made("x ->> '$'", x=json)
        return made(
            "CASE json_type(x) WHEN 'VARCHAR' THEN t WHEN 'BOOLEAN' THEN b WHEN 'ARRAY' THEN NULL WHEN 'OBJECT' THEN NULL "
            "ELSE coalesce(w, r) END",
            x=json,
            t={**cast, "child": text},
            b={**cast, "child": made("TRY_CAST(x AS BOOLEAN)", x=text)},
            w={**cast, "child": made("whole_in(x)", x=text)},
            r={**cast, "child": made("TRY_CAST(x AS DOUBLE)", x=text)},
        )

    def _subquery(self, node: Node) -> Node:
        inner = node["subquery"]["node"]
        if node["subquery_type"] not in ("ANY", "SCALAR") or not inner.get("select_list"):
            return node
        chosen: Node = inner["select_list"][0]
        if node["subquery_type"] == "SCALAR":
            inner["select_list"] = [self.number(chosen).real if self.kind(chosen) == "number" else self.plain(chosen)]
            return node
        child: Node = node["child"]
        kinds = {self.kind(chosen), self.kind(child)}
        if "number" in kinds:
            inner["select_list"], child = [self.number(chosen).real], self.number(child).real
        elif "other" not in kinds:
            inner["select_list"], child = [self.text(chosen)], self.text(child)
        return {**node, "child": child}

    def _call(self, node: Node) -> Node:
        name, arguments = function_name(node), arguments_of(node)
        if name in ("typeof", "pg_typeof") and any(self.kind(each) == "value" for each in arguments):
            hint = "Write json_type(json.w) = 'UBIGINT' of the value itself."
            raise UsageError(f"{name}() says what a column was made of all records, and a condition is of one.", hint=hint, code="E_QUERY")
        if name in _ARITHMETIC:
            return self.number(node).real
        if name in ("contains", "list_contains", "array_contains", "list_has") and len(arguments) == 2:
            return self._contains(*arguments)
        if name == "as_text" and len(arguments) == 1:  # of a whole list or struct, as DuckDB writes it
            return self.places.make("CAST(x AS VARCHAR)", x=self.plain(arguments[0]))
        if name in ("len", "length", "array_length", "list_length") and len(arguments) == 1:
            return self._length(arguments[0])
        return self.lists.call(node) or self._other_call(node)

    def _other_call(self, node: Node) -> Node:
        name, arguments = function_name(node), arguments_of(node)
        if name in _OF_ARGUMENTS:
            common = self.kind(node)
            made = [self.number(each).real if common == "number" else self.text(each) for each in arguments]
        else:
            made = self._fit(name, self._by_item(name, *arguments) if name in BY_ITEM and arguments else arguments)
        found = with_arguments(node, made)
        scalar = all(what != "aggregate" for what, _, _ in signatures(self.base, name))
        return self.attempt(found) if scalar and name not in _SURE else found

    def _by_item(self, name: str, items: Node, *lambdas: Node) -> list[Node]:
        """The arguments of a function over a list's items; what a filter asks of an item is a condition."""
        asked = [{**each, "expr": self.truth(each["expr"])} if name in FILTERS and "expr" in each else each for each in lambdas]
        return [self.lists.items(items), *asked]

    def _fit(self, name: str, arguments: Sequence[Node]) -> list[Node]:
        """Arguments as the function takes them."""
        known = signatures(self.base, name)
        if not known:
            raise no_function(self.base, name)
        fitting = [types for _, types, _ in known if len(types) == len(arguments)] or [types for _, types, _ in known]
        kinds = [self.kind(each) for each in arguments]
        stored = {place.storage for each in arguments if (place := self.places.at(each)) is not None}
        lists = ("other" in kinds or not self.tries) and stored <= {"list", "null"}
        made = []
        for at, each in enumerate(arguments):
            taken = {types[min(at, len(types) - 1)] for types in fitting if types}
            if name in _OF_TEXT or (name in _JOINED and not lists):
                taken = {"VARCHAR"}
            elif "VARCHAR" in taken or name in _JOINED:
                taken |= {"VARCHAR"}
            made.append(self._argument(each, taken) if kinds[at] == "value" else self.plain(each))
        return made

    def _argument(self, node: Node, taken: set[str]) -> Node:
        """A value as one of the types that a function takes there."""
        place, found = self.places.at(node), self.places.steps(node)
        if place is not None and "JSON" in taken and found is not None and columns.kind((found[0].get("_of") or [""])[0]) == "json":
            json = self.places.make("to_json(x)", x=place.node)
            return self.places.make("CASE WHEN json_type(x) <> 'NULL' THEN x END", x=json)
        if place is not None and place.storage in ("list", "struct") and not taken <= {"VARCHAR", "BLOB"}:
            return place.node
        if "VARCHAR" in taken:
            return self.text(node)
        if taken & {"DOUBLE", "FLOAT"}:
            return self.number(node).real
        if taken & _NUMBER_TYPES:
            return self.places.make("TRY_CAST(x AS BIGINT)", x=self.number(node).exact or self.places.make("NULL"))
        if taken & {"TIMESTAMP", "DATE"}:
            return self.places.make("TRY_CAST(x AS TIMESTAMP)", x=self.text(node))
        if place is not None and any(one.endswith("[]") for one in taken):
            return self.lists.texts_of(place)
        return self.plain(node)

    def _contains(self, box: Node, item: Node) -> Node:
        """`x in [1, 2]`, `'a' in json.tags`, `'ar' in txt`: an item of a list, or a part of a text."""
        if box.get("class") == "FUNCTION" and function_name(box) == "list_value":
            return self._among(item, arguments_of(box))
        place = self.places.at(box)
        if place is None and (texts := self.lists.taken(box)) is not None:
            return self.places.make("list_contains(x, y)", x=texts, y=self.text(item))
        if place is None and self.kind(box) == "other":
            return self.attempt(self.places.make("contains(x, y)", x=self.plain(box), y=self.plain(item)))
        wanted = self.text(item)
        part = self.places.make("contains(x, y)", x=self.text(box), y=wanted)
        if place is None or place.storage not in ("json", "list"):
            return part
        member = self.places.make("list_contains(x, y)", x=self.lists.texts_of(place), y=wanted)
        return member if place.storage == "list" else self.places.make("coalesce(x, y)", x=member, y=part)

    def _length(self, node: Node) -> Node:
        place = self.places.at(node)
        if self.kind(node) == "other" if place is None else place.storage == "list":
            return self.places.make("len(x)", x=self.plain(node))
        length = self.places.make("length(x)", x=self.text(node))
        if place is not None and place.storage == "json":
            count = "CASE WHEN json_type(x) = 'ARRAY' THEN CAST(json_array_length(x) AS BIGINT) ELSE y END"
            return self.places.make(count, x=place.node, y=length)
        return length

    def attempt(self, node: Node) -> Node:
        """Unknown where it would be an error. DuckDB cannot try a subquery."""
        return node if not self.tries or any(nodes(node, "SUBQUERY")) else operator("OPERATOR_TRY", node)

    def _each_branch(self, node: Node, wanted: Callable[[Node], Node]) -> Node:
        """CASE and coalesce() with their results as wanted."""
        if node.get("class") != "CASE":
            return {**node, "children": [wanted(child) for child in node["children"]]}
        checks = [{"when_expr": self.truth(each["when_expr"]), "then_expr": wanted(each["then_expr"])} for each in node["case_checks"]]
        return {**node, "case_checks": checks, "else_expr": wanted(node["else_expr"])}


_TESTS = frozenset({"OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "COMPARE_IN", "COMPARE_NOT_IN"})
_OF_ARGUMENTS = frozenset({"greatest", "least", "nullif", "min", "max", "any_value", "first", "last"})
_AS_WRITTEN = "coalesce('[' || array_to_string(list_transform(x, lambda e: coalesce(e, 'NULL')), ', ') || ']', y)"
_JOINED = frozenset({"concat", "concat_ws", "||"})
_OURS = frozenset({"startswith", "endswith", "matches", "words_of", "tagged"})
_OF_TEXT = _OURS | {"hash"}  # which would take a value as it is stored
_SURE = _OURS | {  # scalar functions that raise no error
    "lower", "upper", "trim", "starts_with", "ends_with", "prefix", "suffix", "~~", "!~~", "~~*", "!~~*", "~~~", "list_value",
}  # fmt: skip


def _branches(node: Node) -> list[Node]:
    """The results that CASE and coalesce() have."""
    if node.get("class") != "CASE":
        return list(node["children"])
    return [*(each["then_expr"] for each in node["case_checks"]), node["else_expr"]]


def _as_case(rule: Rule, node: Node) -> Node:
    """coalesce() of numbers as the CASE that takes the first that is one."""
    if node.get("class") == "CASE":
        return node
    *others, last = node["children"]
    checks = [{"when_expr": rule.places.make("x IS NOT NULL", x=rule.number(each).real), "then_expr": each} for each in others]
    return {"class": "CASE", "type": "CASE_EXPR", "alias": "", "case_checks": checks, "else_expr": last, **NOWHERE}


def _type_name(node: Node) -> str:
    return str(node["type_expr"].get("type_name", "")).upper()


def _kind_of(name: str) -> Kind:
    name = name.upper()
    if name in ("VARCHAR", "TEXT", "STRING", "CHAR"):
        return "text"
    if name in ("BOOLEAN", "BOOL"):
        return "truth"
    return "number" if name in _NUMBER_TYPES else "other"


def is_read(place: Place) -> bool:
    """Whether this is read out of a document: a query has its text."""
    return place.node.get("class") == "FUNCTION" and function_name(place.node) == "json_extract"


def _constant(node: Node) -> bool:
    return node.get("class") == "CONSTANT"


def _is_whole(node: Node) -> bool:
    """Whether this is a whole number that HUGEINT holds."""
    if not (_constant(node) and node["literal"]["kind"] == "INTEGER"):
        return False
    return abs(int(str(node["literal"]["text"]).replace("_", ""), 0 if "x" in str(node["literal"]["text"]) else 10)) < 10**38


def _comparison(op: str, left: Node, right: Node) -> Node:
    return {"class": "COMPARISON", "type": op, "alias": "", "left": left, "right": right, **NOWHERE}
