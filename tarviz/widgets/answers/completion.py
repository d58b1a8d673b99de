"""What can be written next in the filter or label box: columns, functions, and the values of the column before the cursor."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tarviz.table.facets import literal

if TYPE_CHECKING:
    from tarviz.table.table import Table

MOST = 12
FUNCTIONS = {
    "has:": "has this field",
    "is:": "is tagged so: is:bad, is:dup",
    "size(": "bytes of a field",
    "contains(": "contains(txt, 'cat')",
    "starts_with(": "starts_with(key, 'val/')",
    "regexp_matches(": "regexp_matches(txt, '^a ')",
    "lower(": "in small letters",
    "length(": "characters of a text",
    "len(": "items of a list",
    "abs(": "without its sign",
    "and": "",
    "or": "",
    "not": "",
    "in (": "one of these",
    "like": "like '%cat%'",
    "between": "between 1 and 5",
    "is null": "is missing",
}
_VALUE = re.compile(
    r"""(?P<column>[\w.]+(?:\."[^"]+")*|"[^"]+")\s*(?P<sign>==?|!=|<>|<=?|>=?|\bin\s*\((?:[^()]*,)?)\s*(?P<word>'[^']*|[\w.\-]*)$"""
)
_FIELD = re.compile(r"""\bhas:(?P<word>[\w.]*)$|\b(?:has|size)\(\s*(?P<inner>'?[\w.]*)$""")
_TAG = re.compile(r"""\b(?:is|tag):(?P<word>[\w\-]*)$""")
_OPEN = re.compile(r"""(?i)(?:^|\(|\b(?:and|or|not))\s*$""")  # where a name is expected
_BREAK = re.compile(r"""[^\w.]""")

Item = tuple[str, str]


def completion(text: str, at: int, fields: list[str], table: Table | None, *, label: bool = False) -> tuple[int, list[Item]]:
    """(where the word begins, what can stand there with a note beside each), for the cursor at `at`. Without a table: fields only.

    >>> completion("has:j", 5, ["jpg", "json", "cls"], None)
    (4, [('jpg', 'field'), ('json', 'field')])
    """
    before = text[:at]
    if label:
        return _names(before, 0, table, fields, functions=False)
    if found := _FIELD.search(before):
        inner = found["inner"]
        word = found["word"] if inner is None else inner.lstrip("'")
        end = "" if inner is None else ")" if word == inner else "')"
        return len(before) - len(word), [(name + end, "field") for name in fields if name.startswith(word)][:MOST]
    if found := _TAG.search(before):
        tags = ["bad", *(table.tags.counts() if table is not None else ())]
        return found.start("word"), [(name, "tag") for name in dict.fromkeys(tags) if name.startswith(found["word"])][:MOST]
    found = _VALUE.search(before)
    if found and table is not None:
        return found.start("word"), _values(table, found["column"], found["word"])
    return _names(before, len(before) - len(_BREAK.split(before)[-1]), table, fields, functions=True)


def _names(before: str, start: int, table: Table | None, fields: list[str], *, functions: bool) -> tuple[int, list[Item]]:
    word = before[start:].lower()
    if not word and not _OPEN.search(before):
        return start, []
    columns = dict.fromkeys(fields, "")
    if table is not None:
        columns = {name: kind or "" for name, kind in table.leaves.items()} | ({"tag": "varchar"} if functions else {})
    first = [(name, kind) for name, kind in columns.items() if name.lower().startswith(word)]
    inside = [(name, kind) for name, kind in columns.items() if word and word in name.lower() and not name.lower().startswith(word)]
    spoken = [(name, note) for name, note in FUNCTIONS.items() if functions and word and name.startswith(word) and name != word]
    found = [*sorted(first, key=lambda item: (item[0].endswith((".size", ".bad")), item[0].count("."))), *spoken, *inside]
    return start, [item for item in found if item[0].lower() != word][:MOST]


def _values(table: Table, column: str, word: str) -> list[Item]:
    """The most frequent values of a column that was made already, those that begin as `word` does."""
    if table.leaves.get(column) is None:
        return []
    facet = table.remember(("completed", column), lambda: table.facets(column))
    found: list[Item] = []
    for bar in (each for each in facet.bars if each.low is None or each.low == each.high):
        value: Any = bar.label if bar.low is None else int(bar.low) if float(bar.low).is_integer() else bar.low
        text = literal(value) if facet.type != "boolean" else str(value).lower()
        if text != word and text.lower().startswith((word.lower(), f"'{word.lower()}")):
            found.append((text, f"{bar.all:,}"))
    return found[:MOST]
