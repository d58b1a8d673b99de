"""Chain text: calls with literal arguments, `resize(jpg, (32, 32))`, read and printed.

Bare names are strings, dots, hyphens and semicolons inside them included (`seg.png`, `jpg;png`); the rest are Python literals.
Nothing is evaluated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tarviz.model.errors import ChainError

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
      | (?P<number>[+-]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<name>[^\W\d]\w*(?:[.;\-]\w+)*)
      | (?P<mark>[()\[\]{},:=|])""",
    re.VERBOSE,
)
_BARE = re.compile(r"[^\W\d]\w*(?:[.;\-]\w+)*")
_CONSTANTS: dict[str, Any] = {"None": None, "True": True, "False": False}
_CLOSE = {"(": ")", "[": "]", "{": "}"}
_DEPTH = 30


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
    return _Parser(text).chain()


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


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.kind = ""
        self.token = ""
        self.start = 0
        self.depth = 0
        self.advance()

    def advance(self) -> None:
        while True:
            self.start = self.at
            if self.at == len(self.text):
                self.kind = self.token = ""
                return
            match = _TOKEN.match(self.text, self.at)
            if match is None:
                char = self.text[self.at]
                if char in "'\"":
                    raise self.error("a string is not closed")
                raise self.error(f"{char!r} cannot stand here", hint="Put quotes round names with special characters.")
            self.at = match.end()
            self.kind, self.token = str(match.lastgroup), match.group()
            self.depth += (self.token in _CLOSE) - (self.token in _CLOSE.values())
            if self.depth > _DEPTH:
                raise self.error(f"more than {_DEPTH} brackets inside each other")
            if self.kind != "space":
                return

    def error(self, message: str, at: int | None = None, *, hint: str | None = None) -> ChainError:
        return error_at(message, self.text, self.start if at is None else at, hint=hint)

    def words(self) -> str:
        return repr(self.token) if self.kind else "the end of the text"

    def chain(self) -> list[Call]:
        if not self.kind:
            return []
        calls = []
        while True:
            if self.kind != "name":
                raise self.error(f"expected the name of an op, found {self.words()}")
            calls.append(self.call())
            if not self.kind:
                return calls
            if self.token != "|":
                raise self.error(f"expected '|' or the end, found {self.words()}", hint="A chain reads decode(jpg)|resize(jpg, (32, 32)).")
            self.advance()

    def call(self) -> Call:
        call = Call(self.token, self.start)
        self.advance()
        if self.token != "(":
            raise self.error(f"expected '(' after {call.name!r}, found {self.words()}", hint=f"An op is written {call.name}(jpg).")
        for _ in self.parts(call.name):
            self.argument(call)
        return call

    def parts(self, name: str = "") -> Iterator[None]:
        """Stops at each part of what the bracket here opens, which `name` stands before, and ends behind the one that closes it."""
        opened, start, close = self.token, self.start, _CLOSE[self.token]
        self.advance()
        while self.token != close:
            yield
            if self.token == ",":
                self.advance()
            elif self.token != close:
                if not self.kind and not name:
                    raise self.error(f"{opened!r} is not closed", start)
                raise self.error(f"expected ',' or {close!r}{f' inside {name}(…)' if name else ''}, found {self.words()}")
        self.advance()

    def argument(self, call: Call) -> None:
        start = self.start
        value = self.value()
        if self.token != "=":
            if call.keywords:
                raise self.error("an argument without a name stands after one with a name", start)
            call.args.append(value)
            return
        if not isinstance(value, str):
            raise self.error("only a name can stand before '='", start)
        if value in call.keywords:
            raise self.error(f"{value} is given twice", start)
        self.advance()
        call.keywords[value] = self.value()

    def value(self) -> Any:
        if self.kind in ("string", "number"):
            return self.literal()
        if self.kind == "name":
            if self.text[self.at : self.at + 1] == "(":
                return self.call()
            name = self.token
            self.advance()
            return _CONSTANTS.get(name, name)
        if self.token in ("(", "["):
            return self.items()
        if self.token == "{":
            return self.mapping()
        raise self.error(f"expected a value, found {self.words()}")

    def literal(self) -> Any:
        try:
            value = ast.literal_eval(self.token)
        except (ValueError, SyntaxError):
            raise self.error(f"{self.token!r} cannot be read as a {self.kind}") from None
        self.advance()
        return value

    def items(self) -> Any:
        opened, comma = self.token, False
        values = []
        for _ in self.parts():
            values.append(self.value())
            comma = self.token == ","
        if opened == "[":
            return values
        return values[0] if len(values) == 1 and not comma else tuple(values)

    def mapping(self) -> dict[Any, Any]:
        values: dict[Any, Any] = {}
        for _ in self.parts():
            start = self.start
            key = self.value()
            if not isinstance(key, str | int):
                raise self.error("a key has to be a name or a number", start)
            if self.token != ":":
                raise self.error(f"expected ':' after {key!r}, found {self.words()}")
            self.advance()
            values[key] = self.value()
        return values
