"""A small safe language over records: `cls == 3 and json.w > 300`, `has:json`, or plain text found in the key.

An expression is parsed by Python's `ast`, checked against an allow-list and turned into closures; nothing is
ever passed to `eval`. Names are fields of the record (`cls`, `json.meta.src`, `seg.png`), besides `key`, `shard` and
`index`. A payload converts itself to what it is compared with: a number, a text, a JSON value. Whatever is missing
or does not convert makes the comparison around it false.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tarviz.errors import UsageError

MAX_LENGTH = 2000
MAX_TEXT = 10_000
MAX_PAYLOAD = 16 << 20

_PLAIN = re.compile(r"[^=<>()\[\]{}\"'!&|%*+]+")
_WORDS = re.compile(r"(?:^|\s)(?:and|or|not|in)(?:\s|$)|\bhas:")
_HAS = re.compile(r"""("[^"]*"|'[^']*')|\bhas:([\w.\-]+)""")
_HINT = 'Write cls == 3 and json.w > 300, has:json, size(jpg) > 50000, txt.startswith("a"), or plain text to find in the key.'


class _Missing:
    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "missing"


MISSING: Final = _Missing()
"""What a field, path or conversion that is not there evaluates to."""

Step = Callable[["_Place"], Any]


def _always(value: Any) -> Step:
    return lambda _place: value


class _Payload:
    """One field's bytes, converted on demand."""

    __slots__ = ("_text", "buffer")

    def __init__(self, buffer: bytes | bytearray | memoryview) -> None:
        self.buffer = buffer
        self._text: str | None = None

    def text(self) -> str:
        if self._text is None:
            self._text = bytes(self.buffer[:MAX_PAYLOAD]).decode("utf-8-sig", "replace").strip()
        return self._text

    def number(self) -> Any:
        return _number(self.text())

    def tree(self) -> Any:
        if len(self.buffer) > MAX_PAYLOAD:
            return MISSING
        try:
            return json.loads(bytes(self.buffer))
        except (ValueError, RecursionError):
            return MISSING


class _Place:
    """The record an expression looks at, with one conversion per field."""

    __slots__ = ("_payloads", "_trees", "record")

    def __init__(self, record: Mapping[str, Any]) -> None:
        self.record = record
        self._payloads: dict[str, Any] = {}
        self._trees: dict[str, Any] = {}

    def fact(self, name: str) -> Any:
        value = getattr(self.record, name, None)
        return self.record.get(f"__{name}__", MISSING) if value is None or callable(value) else value

    def payload(self, ext: str) -> Any:
        if ext not in self._payloads:
            value = self.record.get(ext, MISSING)
            self._payloads[ext] = _Payload(value) if isinstance(value, (bytes, bytearray, memoryview)) else value
        return self._payloads[ext]

    def tree(self, ext: str) -> Any:
        if ext not in self._trees:
            value = self.payload(ext)
            self._trees[ext] = value.tree() if isinstance(value, _Payload) else value
        return self._trees[ext]

    def size(self, ext: str) -> Any:
        sizes = getattr(self.record, "sizes", None)
        if sizes is not None:
            return sizes.get(ext, MISSING)
        return len(self.record[ext]) if ext in self.record else MISSING


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
        return _truth(self._step(_Place(record)))

    def value(self, record: Mapping[str, Any]) -> Any:
        """The value itself: a number, text, JSON value, bool, or None where something is missing."""
        value = self._step(_Place(record))
        if isinstance(value, _Payload):
            number = value.number()
            return value.text() if number is MISSING else number
        return None if value is MISSING else value

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
    try:
        tree = ast.parse(source.strip(), mode="eval")
        reader = _Reader(text)
        step = reader.step(tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{text!r} cannot be read as an expression: {error}.", hint=_HINT) from error
    return Expression(text, frozenset(reader.needs), step)


def _key_holds(text: str) -> Step:
    if text == text.lower():
        return lambda place: text in str(place.fact("key")).lower()
    return lambda place: text in str(place.fact("key"))


def _number(value: Any) -> Any:
    """`value` as int or float, MISSING where it is none. Long digit strings are no numbers here."""
    if isinstance(value, _Payload):
        return value.number()
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str) and 0 < len(value) <= 400:
        for kind in (int, float):
            try:
                return kind(value)
            except ValueError:
                continue
    return MISSING


def _text(value: Any) -> Any:
    if value is MISSING or isinstance(value, str):
        return value
    return value.text() if isinstance(value, _Payload) else str(value)[:MAX_TEXT]


def _truth(value: Any) -> bool:
    if isinstance(value, _Payload):
        number = value.number()
        return bool(value.text()) if number is MISSING else bool(number)
    return bool(value)


def _plain(value: Any, other: Any) -> Any:
    """A payload as the kind of thing it is compared with."""
    if not isinstance(value, _Payload):
        return value
    if isinstance(other, (int, float)):
        return value.number()
    if isinstance(other, _Payload):
        return value.text() if MISSING in (value.number(), other.number()) else value.number()
    return value.text()


def _inside(item: Any, box: Any) -> bool:
    if isinstance(box, (_Payload, str)):
        found = _text(item)
        return found is not MISSING and found in _text(box)
    if isinstance(box, Mapping):
        return _text(item) in box
    if not isinstance(box, Iterable):
        return False
    return any(_plain(item, one) == one for one in box)


_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FACTS = ("key", "shard", "index")
_CONSTANTS = {"true": True, "false": False, "null": None, "nan": float("nan"), "inf": float("inf")}


def _text_function(work: Callable[[str, str], Any]) -> Callable[[Any, Any], Any]:
    def apply(value: Any, other: Any) -> Any:
        value, other = _text(value), _text(other)
        return False if MISSING in (value, other) else work(value, other)

    return apply


_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "startswith": _text_function(str.startswith),
    "endswith": _text_function(str.endswith),
    "contains": lambda value, other: _inside(other, value),
}


def _length(value: Any) -> Any:
    if isinstance(value, _Payload):
        return len(value.text())
    return len(value) if isinstance(value, (str, list, dict, tuple)) else MISSING


def _to_int(value: Any) -> Any:
    number = _number(value)
    try:
        return MISSING if number is MISSING else int(number)
    except (ValueError, OverflowError):
        return MISSING


def _to_float(value: Any) -> Any:
    number = _number(value)
    try:
        return MISSING if number is MISSING else float(number)
    except OverflowError:
        return MISSING


def _text_step(work: Callable[[str], Any]) -> Callable[[Any], Any]:
    return lambda value: MISSING if _text(value) is MISSING else work(_text(value))


def _json(value: Any) -> Any:
    return value.tree() if isinstance(value, _Payload) else value


_ONE: dict[str, Callable[[Any], Any]] = {
    "len": _length,
    "int": _to_int,
    "float": _to_float,
    "text": _text,
    "str": _text,
    "json": _json,
    "lower": _text_step(str.lower),
    "upper": _text_step(str.upper),
    "strip": _text_step(str.strip),
    "abs": lambda value: MISSING if _number(value) is MISSING else abs(_number(value)),
}


class _Reader:
    """Turns the syntax tree into closures, refusing what is not on the list."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.needs: set[str] = set()

    def refuse(self, what: str) -> UsageError:
        return UsageError(f"{what} is not part of the expression language ({self.text!r}).", hint=_HINT)

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
                return lambda place: not _truth(inner(place))
            case ast.UnaryOp(op=ast.USub()):
                inner = self.step(node.operand)
                return lambda place: MISSING if _number(inner(place)) is MISSING else -_number(inner(place))
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
        return lambda place: every(_truth(step(place)) for step in steps)

    def arithmetic(self, node: ast.BinOp) -> Step:
        work = _ARITHMETIC.get(type(node.op))
        if work is None:
            raise self.refuse(f"The operator of {ast.unparse(node)}")
        left, right = self.step(node.left), self.step(node.right)

        def run(place: _Place) -> Any:
            a, b = _number(left(place)), _number(right(place))
            if MISSING in (a, b):
                return MISSING
            try:
                return work(a, b)
            except (ZeroDivisionError, OverflowError):
                return MISSING

        return run

    def compare(self, node: ast.Compare) -> Step:
        steps = [self.step(one) for one in (node.left, *node.comparators)]
        works = [self._comparison(op) for op in node.ops]

        def run(place: _Place) -> bool:
            values = [step(place) for step in steps]
            return all(work(values[at], values[at + 1]) for at, work in enumerate(works))

        return run

    def _comparison(self, op: ast.cmpop) -> Callable[[Any, Any], bool]:
        if isinstance(op, (ast.In, ast.NotIn)):
            wanted = isinstance(op, ast.In)
            return lambda a, b: MISSING not in (a, b) and _inside(a, b) is wanted
        work = _COMPARE.get(type(op))
        if work is None:
            raise self.refuse("`is`")

        def run(a: Any, b: Any) -> bool:
            a, b = _plain(a, b), _plain(b, a)
            if a is MISSING or b is MISSING:
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
        if name in _ONE and len(arguments) == 1:
            one, inner = _ONE[name], self.step(arguments[0])
            return lambda place: one(inner(place))
        if name in _TWO and len(arguments) == 2:
            two, left, right = _TWO[name], self.step(arguments[0]), self.step(arguments[1])
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
            raise self.refuse("A pattern that is no plain text")
        found, inner = bounded(pattern.value).search, self.step(value)

        def run(place: _Place) -> bool:
            text = _text(inner(place))
            return text is not MISSING and found(text[:MAX_TEXT]) is not None

        return run

    def path(self, node: ast.expr) -> list[str | int]:
        match node:
            case ast.Name(id=name):
                return [name]
            case ast.Attribute(value=value, attr=name) if not name.startswith("__"):
                return [*self.path(value), name]
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

        def run(place: _Place) -> Any:
            for ext, rest in ways:
                if ext in place.record:
                    return _walk(place.tree(ext), rest) if rest else place.payload(ext)
            return MISSING

        return run


def _walk(tree: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        try:
            tree = tree[part]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return tree


def bounded(pattern: str) -> re.Pattern[str]:
    """A compiled regular expression that cannot run away: no repeat inside a repeat, at most two open repeats.

    >>> bounded(r"^n\\d+_").search("n0142_7") is not None
    True
    """
    if len(pattern) > 200:
        raise UsageError("A pattern may have 200 characters at most.")
    try:
        found = re.compile(pattern)
        tree: Any = re._parser.parse(pattern)  # type: ignore[attr-defined]
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"{pattern!r} is no regular expression: {error}.") from error
    if _open_repeats(tree) > 2:
        raise UsageError(f"The pattern {pattern!r} could take for ever: it repeats without end more than twice or inside a repeat.")
    return found


def _open_repeats(tree: Any, inside: bool = False) -> int:
    """How many repeats without a small bound `tree` holds; one inside another, or a choice inside one, counts as many."""
    total = 0
    for code, value in tree:
        name = str(code)
        if "REPEAT" in name:
            grows = int(value[1]) > 16
            total += (100 if inside and int(value[1]) > 1 else 0) + grows + _open_repeats(value[2], inside or grows)
        elif name == "BRANCH":
            total += 100 * inside + sum(_open_repeats(one, inside) for one in value[1])
        elif name == "SUBPATTERN":
            total += _open_repeats(value[3], inside)
        elif name in ("ASSERT", "ASSERT_NOT"):
            total += _open_repeats(value[1], inside)
        elif name == "GROUPREF" and inside:
            total += 100
        elif name == "GROUPREF_EXISTS":
            total += sum(_open_repeats(one, inside) for one in value[1:] if one)
        elif name == "ATOMIC_GROUP":
            total += _open_repeats(value, inside)
    return total
