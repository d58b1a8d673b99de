"""A small safe language over records: `cls == 3 and json.w > 300`, `has:json`, or plain text found in the key.

An expression is parsed by Python's `ast`, checked against an allow-list and turned into closures; nothing is
ever passed to `eval`. Names are fields of the record (`cls`, `json.meta.src`, `seg.png`), besides `key`, `shard` and
`index`; `_["cls"]` is the field `cls` too. A payload converts itself to what it is compared with: a number, a text, a JSON
value. Whatever is missing or does not convert makes the comparison around it false.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tarviz.model.errors import UsageError
from tarviz.query import values as query_values
from tarviz.query.patterns import bounded
from tarviz.query.sample_names import SAMPLE, without_sample

MAX_LENGTH = 2000

_PLAIN = re.compile(r"[^=<>()\[\]{}\"'!&|%*+]+")
_WORDS = re.compile(r"(?:^|\s)(?:and|or|not|in)(?:\s|$)|\bhas:")
_HAS = re.compile(r"""("[^"]*"|'[^']*')|\bhas:([\w.\-]+)""")
# `json.class` and `class` are fields as good as others: words that Python keeps for itself are marked before it reads them
_SPOKEN = ("and", "or", "not", "in", "is", "if", "else", "for", "lambda", "True", "False", "None")
_RESERVED = "|".join(keyword.kwlist)
_OWN = "|".join(word for word in keyword.kwlist if word not in _SPOKEN)
_KEPT = re.compile(rf"""("[^"]*"|'[^']*')|(?<=[\w\])])(\s*\.\s*)({_RESERVED})\b|(?<![\w.])({_OWN})\b""")
_MARK = "_keyword_"
_HINT = 'Write cls == 3 and json.w > 300, has:json, size(jpg) > 50000, txt.startswith("a"), or plain text to find in the key.'


Step = Callable[["query_values.RecordInView"], Any]


def _always(value: Any) -> Step:
    return lambda _place: value


@dataclass(frozen=True)
class Expression:
    """A parsed expression. `test(record)` is its truth for a record or a plain dict, `value(record)` its value.

    `needs` names every extension whose payload it may read; it is empty when key, position, sizes and presence of
    fields are enough. Thread-safe: an expression holds no state.

    >>> found = parse("cls == 3 and json.w > 300")
    >>> found.test({"__key__": "a", "cls": b"3", "json": b'{"w": 500}'})
    True
    >>> parse("a/00").test({"__key__": "data/0001"})
    True
    """

    text: str
    needs: frozenset[str] = frozenset()
    _step: Step = field(repr=False, compare=False, default=_always(True))

    def test(self, record: Mapping[str, Any]) -> bool:
        return query_values.truth(self._step(query_values.RecordInView(record)))

    def value(self, record: Mapping[str, Any]) -> Any:
        """The value itself: a number, text, JSON value, bool, or None where something is missing."""
        value = self._step(query_values.RecordInView(record))
        if isinstance(value, query_values.Payload):
            number = value.number()
            return value.text() if number is query_values.MISSING else number
        return None if value is query_values.MISSING else value

    def __str__(self) -> str:
        return self.text


def parse(text: str) -> Expression:
    """The expression written as `text`; empty text is true for every record.

    Plain text (no operator, bracket or quote) is looked for in the key; lower-case text finds both cases.
    `UsageError` says what is not part of the language.
    """
    text = text.strip()
    if not text:
        return Expression("")
    return Expression(text, frozenset(), _key_holds(text)) if is_plain(text) else parse_value(text)


def is_plain(text: str) -> bool:
    """Whether `parse` looks for the text in the key instead of reading it as an expression.

    >>> is_plain("train/0001"), is_plain("cls == 3"), is_plain("has:json")
    (True, False, False)
    """
    text = text.strip()
    return len(text) <= MAX_LENGTH and _PLAIN.fullmatch(text) is not None and not _WORDS.search(text)


def parse_value(text: str) -> Expression:
    """Like `parse`, but plain text is a field or path too: what a label or a sort order is written in.

    >>> parse_value("json.label").value({"__key__": "a", "json": b'{"label": "cat"}'})
    'cat'
    """
    text = text.strip()
    if len(text) > MAX_LENGTH:
        raise UsageError(f"The expression is longer than {MAX_LENGTH} characters.", hint=_HINT)
    source = _HAS.sub(lambda found: found[1] or f"has({found[2]!r})", text)
    source = _KEPT.sub(lambda found: found[1] or f"{found[2] or ''}{_MARK}{found[3] or found[4]}", source)
    try:
        tree = ast.parse(source.strip(), mode="eval")
        reader = _Reader(text)
        step = reader.step(without_sample(tree.body))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, UsageError):
            raise
        why = error.msg if isinstance(error, SyntaxError) else error
        raise UsageError(f"{text!r} cannot be read as an expression: {why}.", hint=_HINT) from error
    return Expression(text, frozenset(reader.needs), step)


def _key_holds(text: str) -> Step:
    if text == text.lower():
        return lambda place: text in str(place.fact("key")).lower()
    return lambda place: text in str(place.fact("key"))


_FACTS = ("key", "shard", "index")
_CONSTANTS = {"true": True, "false": False, "null": None, "nan": float("nan"), "inf": float("inf")}


class _Reader:
    """Turns the syntax tree into closures, refusing what is not on the list."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.needs: set[str] = set()

    def refuse(self, what: str) -> UsageError:
        return UsageError(f"{what.replace(_MARK, '')} is not part of the expression language ({self.text!r}).", hint=_HINT)

    def step(self, node: ast.expr) -> Step:
        match node:
            case ast.Constant(value=str() | int() | float() | None as value):
                return _always(value)
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return self.field(node)
            case ast.Tuple() | ast.List() | ast.Set():
                return self.box(node.elts)
            case ast.BoolOp():
                return self.boolean(node)
            case ast.UnaryOp(op=ast.Not()):
                inner = self.step(node.operand)
                return lambda place: not query_values.truth(inner(place))
            case ast.UnaryOp(op=ast.USub()):
                inner = self.step(node.operand)
                return lambda place: (
                    query_values.MISSING
                    if query_values.number(inner(place)) is query_values.MISSING
                    else -query_values.number(inner(place))
                )
            case ast.BinOp():
                return self.arithmetic(node)
            case ast.Compare():
                return self.compare(node)
            case ast.Call():
                return self.call(node)
        raise self.refuse(ast.unparse(node))

    def box(self, nodes: list[ast.expr]) -> Step:
        steps = [self.step(node) for node in nodes]
        return lambda place: [step(place) for step in steps]

    def boolean(self, node: ast.BoolOp) -> Step:
        steps = [self.step(value) for value in node.values]
        every = all if isinstance(node.op, ast.And) else any
        return lambda place: every(query_values.truth(step(place)) for step in steps)

    def arithmetic(self, node: ast.BinOp) -> Step:
        work = query_values.ARITHMETIC.get(type(node.op))
        if work is None:
            raise self.refuse(f"The operator of {ast.unparse(node)}")
        left, right = self.step(node.left), self.step(node.right)

        def run(place: query_values.RecordInView) -> Any:
            a, b = query_values.number(left(place)), query_values.number(right(place))
            if query_values.MISSING in (a, b):
                return query_values.MISSING
            try:
                return work(a, b)
            except (ZeroDivisionError, OverflowError):
                return query_values.MISSING

        return run

    def compare(self, node: ast.Compare) -> Step:
        steps = [self.step(one) for one in (node.left, *node.comparators)]
        works = [self._comparison(op) for op in node.ops]

        def run(place: query_values.RecordInView) -> bool:
            values = [step(place) for step in steps]
            return all(work(values[at], values[at + 1]) for at, work in enumerate(works))

        return run

    def _comparison(self, op: ast.cmpop) -> Callable[[Any, Any], bool]:
        if isinstance(op, (ast.In, ast.NotIn)):
            wanted = isinstance(op, ast.In)
            return lambda a, b: query_values.MISSING not in (a, b) and query_values.inside(a, b) is wanted
        work = query_values.COMPARE.get(type(op))
        if work is None:
            raise self.refuse("`is`")

        def run(a: Any, b: Any) -> bool:
            a, b = query_values.comparable(a, b), query_values.comparable(b, a)
            if a is query_values.MISSING or b is query_values.MISSING:
                return False
            try:
                return bool(work(a, b))
            except TypeError:
                return False

        return run

    def call(self, node: ast.Call) -> Step:
        name, arguments = "", list(node.args)
        if isinstance(node.func, ast.Name):
            name = node.func.id
        elif isinstance(node.func, ast.Attribute):
            name = node.func.attr
            arguments.insert(0, node.func.value)
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in arguments):
            raise self.refuse(f"The way {name or 'this'} is called")
        if name in ("has", "size", "field") and len(arguments) == 1:
            return self.about(name, arguments[0])
        if name in query_values.ONE and len(arguments) == 1:
            one, inner = query_values.ONE[name], self.step(arguments[0])
            return lambda place: one(inner(place))
        if name in query_values.TWO and len(arguments) == 2:
            two, left, right = query_values.TWO[name], self.step(arguments[0]), self.step(arguments[1])
            return lambda place: two(left(place), right(place))
        if name == "matches" and len(arguments) == 2:
            return self.matches(*arguments)
        raise self.refuse(f"{ast.unparse(node.func)}() with {len(arguments)} arguments")

    def about(self, name: str, node: ast.expr) -> Step:
        ext = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ".".join(map(str, self.path(node)))
        ext = ext.lower()
        if name == "has":
            return lambda place: ext in place.record
        if name == "size":
            return lambda place: place.size(ext)
        self.needs.add(ext)
        return lambda place: place.payload(ext)

    def matches(self, value: ast.expr, pattern: ast.expr) -> Step:
        if not (isinstance(pattern, ast.Constant) and isinstance(pattern.value, str)):
            raise self.refuse("A pattern that is not a plain text")
        found, inner = bounded(pattern.value).search, self.step(value)

        def run(place: query_values.RecordInView) -> bool:
            text = query_values.as_text(inner(place))
            return text is not query_values.MISSING and found(text[: query_values.MAX_TEXT]) is not None

        return run

    def path(self, node: ast.expr) -> list[str | int]:
        match node:
            case ast.Name(id=name) if name != SAMPLE:
                return [name.removeprefix(_MARK)]
            case ast.Attribute(value=value, attr=name) if not name.startswith("__"):
                return [*self.path(value), name.removeprefix(_MARK)]
            case ast.Subscript(value=value, slice=ast.Constant(value=str() | int() as name)):
                return [*self.path(value), name]
            case ast.Subscript(value=value, slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(name)))):
                return [*self.path(value), -name]
            case ast.Call(func=ast.Name(id="field"), args=[ast.Constant(value=str(name))]):
                return [name]
        raise self.refuse(ast.unparse(node))

    def field(self, node: ast.expr) -> Step:
        path = self.path(node)
        root = str(path[0])
        if len(path) == 1 and root in _FACTS:
            return lambda place: place.fact(root)
        if len(path) == 1 and root in _CONSTANTS:
            return _always(_CONSTANTS[root])
        words = 1
        while words < len(path) and isinstance(path[words], str):
            words += 1
        # `seg.png` is a field with a dot in its extension, `json.w` a path into one: the longest field there is wins
        ways = [(".".join(map(str, path[:count])).lower(), tuple(path[count:])) for count in range(words, 0, -1)]
        self.needs.update(ext for ext, _ in ways)

        def run(place: query_values.RecordInView) -> Any:
            for ext, rest in ways:
                if ext in place.record:
                    return _walk(place.tree(ext), rest) if rest else place.payload(ext)
            return query_values.MISSING

        return run


def _walk(tree: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        try:
            tree = tree[part]
        except (KeyError, IndexError, TypeError):
            return query_values.MISSING
    return tree
