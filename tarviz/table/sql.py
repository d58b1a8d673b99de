"""Queries and conditions as syntax trees: which columns they name, what has to be made for them, and how SQL is to say it.

DuckDB parses (`json_serialize_sql`) and writes (`json_deserialize_sql`); between the two, names of ours (`jpg.width`, `seg.png.mode`,
`has(json)`) become columns. Nothing of a query is ever put together as text.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tarviz.model.errors import UsageError
from tarviz.table.columns import RECORD, Part

if TYPE_CHECKING:
    import duckdb

Node: TypeAlias = dict[str, Any]

TABLES = ("records", "tags", "objects")
OBJECTS = {  # the columns of `objects`
    "shard": "VARCHAR", "key": "VARCHAR", "n": "BIGINT", "field": "VARCHAR", "kind": "VARCHAR", "label": "VARCHAR", "label_id": "INTEGER",
    "score": "DOUBLE", "x0": "DOUBLE", "y0": "DOUBLE", "x1": "DOUBLE", "y1": "DOUBLE", "area": "DOUBLE", "width": "INTEGER",
    "height": "INTEGER", "outlines": "DOUBLE[][]", "keypoints": "DOUBLE[]",
}  # fmt: skip
NUMBERS = frozenset({"bigint", "integer", "smallint", "tinyint", "hugeint", "ubigint", "uinteger", "double", "float", "decimal"})
_FUNCTIONS = ("unnest", "range", "generate_series")  # as tables: they read nothing
_WORDS = re.compile(r"""("[^"]*"|'(?:[^']|'')*')|\b(has|is|tag):([\w.\-]+)""")
_PLAIN = re.compile(r"[^=<>()\[\]{}\"'!&|%*+]+")
_OPERATORS = re.compile(r"(?i)(?:^|\s)(?:and|or|not|in|is|like|ilike|between|similar|glob)(?:\s|$)|\b(?:has|is|tag):")
_CASTS = re.compile(r"""("[^"]*"|'(?:[^']|'')*')|\b(int|float)\s*\(""")
_NAME = re.compile(r"[A-Za-z_]\w*")
_RESERVED = re.compile(  # duckdb_keywords()
    r"(?i)all|analyse|analyze|and|any|array|as|asc|asymmetric|both|case|cast|check|collate|column|constraint|create|default|deferrable|"
    r"desc|describe|distinct|do|else|end|except|false|fetch|for|foreign|from|group|having|in|initially|intersect|into|lambda|"
    r"lateral|leading|limit|not|null|offset|on|only|or|order|pivot|pivot_longer|pivot_wider|placing|primary|qualify|references|"
    r"returning|select|show|some|summarize|symmetric|table|then|to|trailing|true|union|unique|unpivot|using|variadic|when|where|"
    r"window|with"
)
NOWHERE = {"query_location": 18446744073709551615, "query_location_length": 0}
MAX_LENGTH = 10_000
HINT = "Write cls = 3 and json.w > 300, has:json, size(jpg) > 50000, txt like '%dog%', or plain text to find in keys."


@dataclass
class Asked:
    """A query or condition that was read: its tree, and what it needs."""

    text: str
    tree: Node
    parts: set[Part] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)  # dotted names that are not column
    star: bool = False
    tagged: bool = False


def is_plain(text: str) -> bool:
    """Whether a condition is text to find in keys.

    >>> is_plain("train/0001"), is_plain("cls = 3"), is_plain("has:json"), is_plain("txt like 'a'")
    (True, False, False, False)
    """
    text = text.strip()
    return _PLAIN.fullmatch(text) is not None and not _OPERATORS.search(text)


def parsed(base: duckdb.DuckDBPyConnection, text: str) -> Node:
    """The tree of one SELECT. `UsageError` says what cannot be read."""
    ((read,),) = base.execute("SELECT json_serialize_sql($1::VARCHAR, skip_null := false)", [text]).fetchall()
    tree: Node = json.loads(read)
    if tree["error"]:
        message = str(tree["error_message"]).split("\n")[0]
        raise UsageError(f"the query cannot be read: {message.rstrip('!.')}.", hint="Only SELECT is supported.", code="E_QUERY")
    if len(tree["statements"]) != 1:
        raise UsageError("a query is one statement.", code="E_QUERY")
    return tree


def written(base: duckdb.DuckDBPyConnection, tree: Node) -> str:
    """The SQL of a tree."""
    ((text,),) = base.execute("SELECT json_deserialize_sql($1::JSON)", [json.dumps(tree)]).fetchall()
    return str(text)


def value(base: duckdb.DuckDBPyConnection, text: str, possible: dict[str, Part]) -> Asked:
    """An expression, as the SELECT of one column; it may have the calls of a condition: `size(jpg)`."""
    return query(base, f"SELECT ({text}\n) FROM records", possible, calls=True)


def query(base: duckdb.DuckDBPyConnection, text: str, possible: dict[str, Part], *, calls: bool = False) -> Asked:
    """A whole SELECT over `records` and `tags`, its columns found among `possible`."""
    if len(text) > 20 * MAX_LENGTH:
        raise UsageError("the query is too long.", code="E_QUERY")
    asked = Asked(text, parsed(base, text.strip().rstrip(";")))
    object_calls(base, asked.tree)
    own = _relations(asked.tree)
    if calls:
        replaced(asked.tree, lambda node: _call(base, node, possible, asked))
    _resolve(asked, possible, own)
    if "tags" not in own:
        replaced(asked.tree, lambda node: _tag_test(base, node))
    asked.tagged = any(node.get("column_names", [])[-1:] == ["tag"] and "tags" not in own for node in nodes(asked.tree, "COLUMN_REF"))
    return asked


def condition(base: duckdb.DuckDBPyConnection, text: str, possible: dict[str, Part]) -> Asked:
    """A condition, as the WHERE of `SELECT 1 FROM records`; `finished` makes it SQL once its columns are there."""
    text = text.strip()
    if len(text) > MAX_LENGTH:
        raise UsageError(f"the condition is longer than {MAX_LENGTH} characters.", hint=HINT, code="E_QUERY")
    if is_plain(text):
        text = _key_holds(text)
    source = _WORDS.sub(lambda found: found[1] or f"{_CALLS[found[2]]}('{found[3]}')", text)
    source = _CASTS.sub(lambda found: found[1] or {"int": "whole(", "float": "real_number("}[found[2]], source)
    tree, source = _readable(base, source, possible)
    node = _select(tree)
    if node.get("modifiers") or node["type"] != "SELECT_NODE" or node["from_table"]["type"] != "BASE_TABLE":
        raise UsageError(f"{text!r} is not a condition.", hint=HINT, code="E_QUERY")
    asked = Asked(text, tree)
    object_calls(base, tree)
    _strings(asked, source, possible)
    replaced(tree, lambda found: _call(base, found, possible, asked))
    _resolve(asked, possible, {"records", "objects"})
    replaced(tree, lambda found: _tag_test(base, found))
    return asked


_CALLS = {"has": "has", "is": "marked", "tag": "tagged"}
_BEFORE = "SELECT 1 FROM records WHERE ("


def _key_holds(text: str) -> str:
    needle = "'" + text.replace("'", "''") + "'"
    return f"contains({'lower(key)' if text == text.lower() else 'key'}, {needle})"


def joined(conditions: Sequence[str]) -> str:
    """Conditions as one that is true where all are.

    >>> joined(["dog", "cls = 3 or cls = 4"])
    "(contains(lower(key), 'dog')) and (cls = 3 or cls = 4)"
    >>> joined(["dog"]), joined([])
    ('dog', '')
    """
    if len(conditions) < 2:
        return "".join(conditions)
    made = (_key_holds(text.strip()) if is_plain(text) else text.strip() for text in conditions)
    return " and ".join(f"({text}{chr(10) if '--' in text else ''})" for text in made)


def written_name(name: str, *, path: bool = False) -> str:
    """A column, or with `path` a name inside one, as a condition has it: in quotes where SQL would not read it otherwise.

    >>> written_name("jpg.width"), written_name("seg-map.png.width"), written_name("order", path=True)
    ('jpg.width', '"seg-map.png.width"', '"order"')
    """
    parts = [name] if path else name.split(".")
    if all(_NAME.fullmatch(part) and not _RESERVED.fullmatch(part) for part in parts):
        return name
    return _quote(name)


def first_column(asked: Asked) -> str:
    """The column, or the path inside one, that comes first in a condition, as it is written there; "" where it names none."""
    named = sorted((node for node in nodes(asked.tree, "COLUMN_REF") if "_of" in node), key=lambda node: int(node["query_location"]))
    if not named:
        return ""
    name, *inner = named[0]["_of"]
    return ".".join([written_name(name), *(written_name(each, path=True) for each in inner)])


def _readable(base: duckdb.DuckDBPyConnection, source: str, possible: dict[str, Part]) -> tuple[Node, str]:
    """The tree of a condition; where DuckDB cannot read it, `a < b < c` is taken apart and fields named like SQL words are quoted."""
    ways: list[Callable[[str], str]] = [str, _apart, lambda text: _named(text, possible), lambda text: _named(_apart(text), possible)]
    first: UsageError | None = None
    for way in ways:
        tried = way(source)
        try:
            return parsed(base, f"{_BEFORE}{tried}\n)"), tried
        except UsageError as error:
            first = first or error
    assert first is not None
    raise UsageError(first.message.replace("the query", f"{source!r}", 1), hint=HINT, code="E_QUERY") from first


def _apart(text: str) -> str:
    """Python's chained comparisons as SQL's.

    >>> _apart("100 < json.w <= 500")
    '100 < json.w and json.w <= 500'
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text

    class Chains(ast.NodeTransformer):
        def visit_Compare(self, node: ast.Compare) -> ast.AST:
            self.generic_visit(node)
            if len(node.ops) == 1:
                return node
            sides = [node.left, *node.comparators]
            steps = [ast.Compare(sides[at], [op], [sides[at + 1]]) for at, op in enumerate(node.ops)]
            return ast.BoolOp(ast.And(), list(steps))

    return ast.unparse(Chains().visit(tree))


def _named(text: str, possible: dict[str, Part]) -> str:
    """Fields whose names are words of SQL (`order`, `class`), in quotes."""
    names = {name.removesuffix(".size") for name in possible if name not in RECORD}
    names = {name for name in names if name.isidentifier()}
    pattern = r"""("[^"]*"|'(?:[^']|'')*')|(?<![\w.])(""" + ("|".join(sorted(map(re.escape, names))) or "(?!)") + r")(?![\w(])"
    return re.sub(pattern, lambda found: found[1] or f'"{found[2]}"', text)


def _select(tree: Node) -> Node:
    node: Node = tree["statements"][0]["node"]
    return node


def nodes(tree: Any, kind: str) -> Iterator[Node]:
    """Every node of one class."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if node.get("class") == kind or node.get("type") == kind:
                yield node
            stack += node.values()
        elif isinstance(node, list):
            stack += node


def replaced(tree: Any, change: Callable[[Node], Node | None]) -> None:
    """Put what `change` gives in the place of nodes, from the leaves up."""
    for name, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        if isinstance(value, dict | list):
            replaced(value, change)
            if isinstance(value, dict) and (made := change(value)) is not None:
                tree[name] = made


def _relations(tree: Node) -> set[str]:
    """Names that stand for `records` or `tags` in this query; what else it reads from is refused."""
    made = {str(entry["key"]).lower() for entry in _ctes(tree)}
    own: set[str] = set()
    for table in nodes(tree, "BASE_TABLE"):
        name = str(table["table_name"]).lower()
        if name not in TABLES and name not in made:
            raise UsageError(f"there is no table {name!r}.", hint="Ask FROM records, or objects; marks are in tags.", code="E_QUERY")
        if name in TABLES and name not in made:
            own |= {name, *([str(table["alias"]).lower()] if table.get("alias") else [])}
    for table in nodes(tree, "TABLE_FUNCTION"):
        name = str(table["function"].get("function_name", "")).lower()
        if name not in _FUNCTIONS:
            raise UsageError(f"{name}() is not available: a query sees the records and nothing else.", code="E_QUERY")
    return own


def _ctes(tree: Any) -> Iterator[Node]:
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if isinstance(node.get("cte_map"), dict):
                yield from node["cte_map"].get("map") or []
            stack += node.values()
        elif isinstance(node, list):
            stack += node


def found_name(names: list[str], possible: dict[str, Part]) -> tuple[str, list[str]] | None:
    """The column that dotted names begin with, the longest that is there, and the path that is left.

    >>> found_name(["seg", "png", "width"], {"seg.png.width": "names", "json": "small"})
    ('seg.png.width', [])
    """
    for count in range(len(names), 0, -1):
        name = ".".join(names[:count])
        for each in (name, name.lower()):
            if each in possible:
                return each, names[count:]
    return ("n", []) if names == ["index"] else None


def _resolve(asked: Asked, possible: dict[str, Part], own: set[str]) -> None:
    """Columns by the names they have in the table, functions that are called on a column given it as their argument."""
    for node in nodes(asked.tree, "FUNCTION"):
        path = node["qualified_name"]["path"]
        if len(path) > 1 and found_name(path[:-1], possible) is not None:
            node["arguments"].insert(0, {"name": "", "expression": _column(path[:-1])})
            node["qualified_name"], node["schema"], node["catalog"] = {"path": path[-1:]}, "", ""
    for node in nodes(asked.tree, "COLUMN_REF"):
        names = list(node["column_names"])
        if len(names) == 2 and names[0] == "objects" and names[1] in OBJECTS:
            continue
        prefix = names[:1] if len(names) > 1 and names[0].lower() in own and found_name(names, possible) is None else []
        found = found_name(names[len(prefix) :], possible)
        if found is not None:
            node["column_names"] = [*prefix, found[0], *found[1]]
            node["_of"] = [found[0], *found[1]]
            asked.names.add(found[0])
            asked.parts.add(possible[found[0]])
        elif len(names) > 1:
            asked.unknown.append(".".join(names[len(prefix) :]))
    asked.star = any(True for _ in nodes(asked.tree, "STAR"))
    if asked.star:
        asked.parts |= {part for part in possible.values() if part.tier != "content"}


def _column(names: list[str]) -> Node:
    return {"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "column_names": names, **NOWHERE}


def expression(base: duckdb.DuckDBPyConnection, text: str) -> Node:
    """The tree of an expression of our own."""
    made: Node = _select(parsed(base, f"SELECT {text}"))["select_list"][0]
    return made


def _strings(asked: Asked, source: str, possible: dict[str, Part]) -> None:
    """Words in double quotes that name no column are texts, as in Python."""
    raw = f"{_BEFORE}{source}\n)".encode()

    def change(node: Node) -> Node | None:
        if node.get("class") != "COLUMN_REF" or len(node["column_names"]) != 1 or node["column_names"][0] in possible:
            return None
        at = int(node["query_location"])
        return text_node(node["column_names"][0]) if raw[at : at + 1] == b'"' else None

    replaced(asked.tree, change)


def text_node(value: str) -> Node:
    literal = {"kind": "STRING", "text": value}
    return {"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "literal": literal, **NOWHERE}


def _named_by(node: Node) -> str | None:
    """The field an argument names: a column or a text."""
    if node.get("class") == "COLUMN_REF":
        return ".".join(node["column_names"]).lower()
    if node.get("class") == "CONSTANT" and node["literal"]["kind"] == "STRING":
        return str(node["literal"]["text"]).lower()
    return None


def _call(base: duckdb.DuckDBPyConnection, node: Node, possible: dict[str, Part], asked: Asked) -> Node | None:
    """`has(x)`, `size(x)`, `field(x)`, `is:x` and `tag:x` as what they mean."""
    if node.get("class") != "FUNCTION":
        return None
    name = node["qualified_name"]["path"][-1]
    if name not in ("has", "size", "field", "marked", "tagged") or len(node["arguments"]) != 1 or len(node["qualified_name"]["path"]) > 1:
        return None
    ext = _named_by(node["arguments"][0]["expression"])
    if ext is None:
        return None
    if name in ("marked", "tagged"):
        bad = [column for column in possible if column.endswith(".bad")] if name == "marked" and ext == "bad" else []
        checks = [f"coalesce({_quote(column)}, false)" for column in bad]
        return expression(base, f"({' OR '.join([_tagged(ext), *checks])})")
    if name == "field":
        return _column([ext])
    if f"{ext}.size" not in possible:
        return expression(base, "false" if name == "has" else "NULL::BIGINT")
    return expression(base, f"{_quote(ext + '.size')} IS NOT NULL" if name == "has" else _quote(ext + ".size"))


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _tagged(tag: str) -> str:
    word = "'" + tag.replace("'", "''") + "'"
    return f"EXISTS (SELECT 1 FROM tags WHERE tags.shard = records.shard AND tags.key = records.key AND tags.tag = {word})"


def _tag_test(base: duckdb.DuckDBPyConnection, node: Node) -> Node | None:
    """`tag = 'bad'` as: a tag of the record is so."""
    if node.get("type") != "COMPARE_EQUAL" or node["left"].get("column_names") != ["tag"] or node["right"].get("class") != "CONSTANT":
        return None
    return expression(base, _tagged(str(node["right"]["literal"]["text"])))


def asks_objects(tree: Node) -> bool:
    """Whether a query reads objects."""
    return any(str(node["table_name"]).lower() == "objects" for node in nodes(tree, "BASE_TABLE"))


def object_calls(base: duckdb.DuckDBPyConnection, tree: Node) -> None:
    """`has_object('star')`, `count_objects('star')`, `count_objects()` and `any_object(label = 'star' and score > 0.5)` of a record as
    questions to the relation; in the last one, names that it has are its own."""

    def change(node: Node) -> Node | None:
        if node.get("class") != "FUNCTION" or (name := str(node["qualified_name"]["path"][-1]).lower()) not in (
            "has_object",
            "count_objects",
            "any_object",
        ):
            return None
        given = [each["expression"] for each in node["arguments"]]
        if len(given) > 1 or (not given and name != "count_objects"):
            hint = "Write has_object('star'), count_objects('star') > 3, any_object(label = 'star' and score > 0.5)."
            raise UsageError(f"{name}() takes one argument.", hint=hint, code="E_QUERY")
        fits = "true" if not given else "x" if name == "any_object" else "objects.label = x"
        here = f"FROM objects WHERE objects.shard = records.shard AND objects.n = records.n AND ({fits})"
        question = f"(SELECT {'count(*)' if name == 'count_objects' else '1'} {here})"
        made = expression(base, f"EXISTS {question}" if name != "count_objects" else question)
        if name == "any_object":
            replaced(given[0], _own)
            given = [_own(given[0]) or given[0]]
        replaced(made, lambda found: given[0] if found.get("column_names") == ["x"] else None)
        return made

    replaced(tree, change)


def _own(node: Node) -> Node | None:
    if node.get("class") != "COLUMN_REF" or len(node["column_names"]) != 1 or node["column_names"][0].lower() not in OBJECTS:
        return None
    return {**node, "column_names": ["objects", node["column_names"][0].lower()], **NOWHERE}
