"""Chain text: calls with literal arguments, `resize(jpg, (32, 32))`, read and printed.

Bare names are strings, dots, hyphens and semicolons inside them included (`seg.png`, `jpg;png`); the rest are Python literals.
Nothing is evaluated: Python's parser reads a text in which names and strings are hidden.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tarviz.model.errors import ChainError

_STRING = r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\""""
_TOKEN = re.compile(
    rf"""(?P<space>\s+)
      | (?P<name>[^\W\d]\w*(?:[.;\-]\w+)*|(?:{_STRING})(?=\s*=))
      | (?P<string>{_STRING})
      | (?P<number>[+-]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<mark>[()\[\]{{}},:=|])
      | (?P<wrong>.)""",
    re.VERBOSE,
)
_BARE = re.compile(r"[^\W\d]\w*(?:[.;\-]\w+)*")
_CONSTANTS: dict[str, Any] = {"None": None, "True": True, "False": False}
_DEPTH = 30
_FORM = "A chain reads decode(jpg)|resize(jpg, (32, 32))."


@dataclass(slots=True)
class Call:
    """A name with arguments as it stood in the text, at character `at`."""

    name: str
    at: int
    args: list[Any] = field(default_factory=list)
    keywords: dict[str, Any] = field(default_factory=dict)


def is_bare(text: str) -> bool:
    """Whether a string can stand in chain text without quotes."""
    return _BARE.fullmatch(text) is not None and text not in _CONSTANTS


def print_call(name: str, args: Sequence[Any], keywords: Mapping[str, Any], *, quote: bool = False) -> str:
    """A call as text; `quote` puts every string into quotes, so that it is Python too.

    >>> print_call("resize", ["jpg", (32, 32)], {})
    'resize(jpg, (32, 32))'
    """
    parts = [print_value(value, quote=quote) for value in args]
    parts += [f"{key}={print_value(value, quote=quote)}" for key, value in keywords.items()]
    return f"{name}({', '.join(parts)})"


def print_value(value: Any, *, quote: bool = False) -> str:
    """A literal as text; a string that can stand bare does so unless `quote` is set."""
    if isinstance(value, str):
        if not quote and is_bare(value):
            return value
        text = repr(value)
        return f'"{text[1:-1]}"' if text[0] == "'" and '"' not in text and "\\'" not in text else text
    if isinstance(value, tuple):
        inner = ", ".join(print_value(part, quote=quote) for part in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, list):
        return f"[{', '.join(print_value(part, quote=quote) for part in value)}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{print_value(k, quote=quote)}: {print_value(v, quote=quote)}' for k, v in value.items())}}}"
    return repr(value)


def parse_calls(text: str) -> list[Call]:
    """The calls of a chain text, in order. `ChainError` points at the place that cannot be read."""
    hidden = _hide(text)
    reader = _Reader(text, len(hidden) - len(hidden.lstrip()))
    if not (hidden := hidden.strip()):
        return []
    try:
        node = ast.parse(hidden, mode="eval").body
    except SyntaxError as error:
        why = "only a name can stand before '='" if "assignment" in error.msg else f"the text cannot be read: {error.msg}"
        raise error_at(why, text, reader.shift + (error.offset or len(hidden) + 1) - 1, hint=_FORM) from None
    calls: list[Call] = []
    while isinstance(node, ast.BinOp):
        calls, node = [reader.call(node.right), *calls], node.left
    return [reader.call(node), *calls]


def parse_call(text: str) -> Call:
    """The one call that the text is."""
    calls = parse_calls(text)
    if len(calls) != 1:
        raise ChainError(f"expected one call, got {len(calls)}: {text!r}.")
    return calls[0]


def error_at(message: str, text: str, at: int, *, hint: str | None = None) -> ChainError:
    """An error that quotes the text with a mark before the character at `at`."""
    before, after = text[max(0, at - 40) : at], text[at : at + 40]
    start = "…" if at > 40 else ""
    end = "…" if len(text) > at + 40 else ""
    return ChainError(f"{message}, at character {at + 1}: {start}{before}→{after}{end}", hint=hint, details={"position": at})


def _hide(text: str) -> str:
    """The text as Python's own parser can read it, every sign in its place: no word of it means anything, and no string holds anything."""
    depth = 0

    def hide(found: re.Match[str]) -> str:
        nonlocal depth
        token, at = found[0], found.start()
        depth += (token in "([{") - (token in ")]}")
        if depth > _DEPTH:
            raise error_at(f"more than {_DEPTH} brackets inside each other", text, at)
        match found.lastgroup:
            case "wrong" if token in "'\"":
                raise error_at("a string is not closed", text, at)
            case "wrong":
                raise error_at(f"{token!r} cannot stand here", text, at, hint="Put quotes round names with special characters.")
            case "space":
                return " " * len(token)
            case "name":
                return "x" * len(token)
            case "string":
                return f"'{'x' * (len(token) - 2)}'"
        return token

    return _TOKEN.sub(hide, text)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads what Python's parser found, which lies `shift` characters further in the text."""

    text: str
    shift: int

    def source(self, node: ast.expr | ast.keyword) -> str:
        return self.text[node.col_offset + self.shift :][: (node.end_col_offset or 0) - node.col_offset]

    def error(self, message: str, node: ast.expr | ast.keyword, hint: str | None = None) -> ChainError:
        return error_at(message, self.text, node.col_offset + self.shift, hint=hint)

    def call(self, node: ast.expr) -> Call:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise self.error(f"expected an op with its arguments in brackets, found {self.source(node)!r}", node, _FORM)
        call = Call(self.source(node.func), node.col_offset + self.shift, [self.value(each) for each in node.args])
        for each in node.keywords:
            name = self.unquote(self.source(each)[: len(each.arg or "")], each)
            if name in _CONSTANTS:
                raise self.error("only a name can stand before '='", each)
            if name in call.keywords:
                raise self.error(f"{name} is given twice", each)
            call.keywords[name] = self.value(each.value)
        return call

    def value(self, node: ast.expr) -> Any:
        source = self.source(node)
        match node:
            case ast.Name():
                return _CONSTANTS.get(source, source)
            case ast.Call():
                return self.call(node)
            case ast.List():
                return [self.value(each) for each in node.elts]
            case ast.Tuple():
                return tuple(self.value(each) for each in node.elts)
            case ast.Dict():
                return {self.key(key): self.value(value) for key, value in zip(node.keys, node.values, strict=True) if key is not None}
            case ast.Constant(int() | float()) | ast.UnaryOp() if _TOKEN.fullmatch(source):
                return ast.literal_eval(node)
            case ast.Constant() if _TOKEN.fullmatch(source):
                return self.unquote(source, node)
        raise self.error(f"expected a value, found {source!r}", node)

    def unquote(self, text: str, node: ast.expr | ast.keyword) -> str:
        try:
            return str(ast.literal_eval(text)) if text[0] in "'\"" else text
        except (ValueError, SyntaxError) as error:
            raise self.error(f"{text} cannot be read: {error}", node) from None

    def key(self, node: ast.expr) -> str | int:
        if not isinstance(key := self.value(node), str | int):
            raise self.error("a key has to be a name or a number", node)
        return key
