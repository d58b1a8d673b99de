"""Conditions as they are written: which texts are one and which are words to look for, and the tree of either."""

from __future__ import annotations

import ast
import difflib
import functools
import itertools
import re

from tarviz.model.errors import UsageError
from tarviz.table import sql
from tarviz.table.columns import RECORD, Part
from tarviz.table.database import empty, require
from tarviz.table.packages import duckdb
from tarviz.table.sql import MAX_LENGTH, Node, Question

HINT = "Write cls = 3 and json.w > 300, has:json, size(jpg) > 50000, txt like '%dog%', or words to look for in keys and texts."

_PHRASE = re.compile(r'"[^"]*"')
_MEANT = re.compile(r"[=<>()\[\]]|\b(?:has|is|tag|key):")  # half a condition is an error, not a search for its words
_PATH = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.\w+)+")
_CALLED = ("startswith", "endswith", "contains", "matches", "lower", "upper", "len")
_KEYWORDS = ("and", "or", "not", "in", "is", "like", "ilike", "between", "null", "similar to", "glob", *_CALLED)
_BEFORE = "SELECT 1 FROM records WHERE "
_FIELDS = ("cls", "json", "txt")  # meant as fields also where no record has them
_OPERATORS = frozenset({"+", "-", "*", "/", "//", "%", "||", "&", "|", "^", "**"})


def condition(base: duckdb.DuckDBPyConnection, text: str, possible: dict[str, Part], *, streamed: bool = False) -> Question:
    """A condition, or a search, as the WHERE of `SELECT 1 FROM records`; `finished` makes it SQL once its columns are there.

    Names that are no column are in `unknown`. With `streamed`, what needs all records at once is refused.
    """
    text = text.strip()
    if len(text) > MAX_LENGTH:
        raise UsageError(f"the condition is longer than {MAX_LENGTH} characters.", hint=HINT, code="E_QUERY")
    tree, source = _read(base, text, possible)
    asked = Question(tree)
    if source is None:
        asked.words = sql.words(text)
    _strings(asked, source or "", possible)
    if streamed and "objects" in sql.relations(tree):
        raise sql.whole("a question about objects")
    sql.object_calls(base, tree)
    sql.replace_nodes(tree, _any_of)
    sql.replace_nodes(tree, lambda found: sql.form(base, found, possible, streamed=streamed))
    sql.replace_nodes(tree, lambda found: sql.tag_test(base, found))
    sql.resolve(asked, possible, {"records", "objects"} & sql.relations(tree))
    if streamed and (what := needs_whole(base, tree)):
        raise sql.whole(what)
    return asked


def _any_of(node: Node) -> Node | None:
    """`x = ANY([1, 2])`, which DuckDB reads as a subquery over the list, as `x IN (1, 2)`."""
    if node.get("class") != "SUBQUERY" or (node["subquery_type"], node["comparison_type"]) != ("ANY", "COMPARE_EQUAL"):
        return None
    inner = node["subquery"]["node"]
    chosen = inner.get("select_list") or [{}]
    calls = [chosen[0], *(each["expression"] for each in chosen[0].get("arguments") or [])]
    if inner["type"] != "SELECT_NODE" or inner["from_table"]["type"] != "EMPTY":
        return None
    if [call.get("qualified_name", {}).get("path") for call in calls] != [["unnest"], ["list_value"]] or not calls[1]["arguments"]:
        return None
    return sql.operator("COMPARE_IN", node["child"], *(each["expression"] for each in calls[1]["arguments"]))


def parser() -> duckdb.DuckDBPyConnection:
    """A database that reads conditions and holds nothing. `MissingPackageError` without the extra `table`."""
    require()
    return empty()


def is_search(base: duckdb.DuckDBPyConnection, text: str, possible: dict[str, Part]) -> bool:
    """Whether a text is words to look for rather than a condition."""
    return _read(base, text.strip(), possible)[1] is None


@functools.lru_cache(256)
def join(conditions: tuple[str, ...]) -> str:
    """Conditions and searches as one condition that is true where all are.

    >>> join(("dog", "cls = 3 or cls = 4")), join(("dog",)), join(())
    ("(search('dog')) and (cls = 3 or cls = 4)", 'dog', '')
    """
    if len(conditions) < 2:
        return "".join(conditions)
    with parser() as base:
        made = [f"search({sql.quoted_text(text.strip())})" if is_search(base, text, {}) else text.strip() for text in conditions]
    return " and ".join(f"({text}{chr(10) if '--' in text else ''})" for text in made)


def _read(base: duckdb.DuckDBPyConnection, text: str, possible: dict[str, Part]) -> tuple[Node, str | None]:
    """The tree of a condition and its source as DuckDB took it; of a search, the tree of that and None.

    The leaves decide: a known column or path, one of our forms, a comparison, a call make a condition. Other words and numbers alone,
    and what DuckDB cannot read, are looked for.
    """
    try:
        tree, source = _readable(base, sql.spell_out(text), possible)
    except UsageError:
        rest = _PHRASE.sub("", text)
        if _MEANT.search(rest) or not sql.words(text) or any(_is_path(each.split("."), possible) for each in _PATH.findall(rest)):
            raise
        tree = None
    if tree is not None and _is_condition(sql.select_of(tree)["where_clause"], possible):
        return tree, source
    return sql.parse(base, f"{_BEFORE}search({sql.quoted_text(text)})"), None


def _is_path(names: list[str], possible: dict[str, Part]) -> bool:
    """Whether dotted names begin with a field: what holds them is no search for words."""
    found = sql.find_name(names, possible)
    return names[0] in _FIELDS or f"{'.'.join(names).lower()}.size" in possible or (found is not None and found[0] not in RECORD)


def _is_condition(node: Node, possible: dict[str, Part]) -> bool:
    """Whether a leaf of this expression is more than a word or a number."""
    if node.get("class") == "CONJUNCTION" or node.get("type") == "OPERATOR_NOT":
        return any(_is_condition(child, possible) for child in node["children"])
    if node.get("class") == "FUNCTION" and node["qualified_name"]["path"][-1] in _OPERATORS:
        return any(_is_condition(each["expression"], possible) for each in node["arguments"])
    if node.get("class") == "COLUMN_REF":
        names = [name.lower() for name in node["column_names"]]
        if sql.find_name(names, possible) is not None:
            return True
        if len(names) == 1:
            return names[0] in _FIELDS or names[0] in RECORD
        return f"{names[0]}.size" in possible or names[0] in _FIELDS
    if node.get("class") == "CONSTANT":
        return node["literal"]["kind"] in ("BOOLEAN", "NULL_LITERAL")
    return node.get("class") != "STAR"


def needs_whole(base: duckdb.DuckDBPyConnection, tree: Node) -> str:
    """What of a condition cannot be answered from one record; "" where all can."""
    if "tags" in sql.relations(tree) or any(node["qualified_name"]["path"] == ["tagged"] for node in sql.nodes(tree, "FUNCTION")):
        return "a tag"
    for what, name in (("SUBQUERY", "a subquery"), ("WINDOW", "a window")):
        if any(sql.nodes(tree, what)):
            return name
    for node in sql.nodes(tree, "FUNCTION"):
        name = sql.function_name(node)
        if any(what == "aggregate" for what, _, _ in sql.signatures(base, name)) and name not in ("first", "last"):
            return "count(*)" if name == "count_star" else f"{name}()"
    return ""


def _readable(base: duckdb.DuckDBPyConnection, source: str, possible: dict[str, Part]) -> tuple[Node, str]:
    """The tree of a condition; where DuckDB cannot read it, `a < b < c` is taken apart and fields named like SQL words are quoted."""
    first: UsageError | None = None
    for quoted, chained in itertools.product((False, True), repeat=2):
        tried = _apart(source) if chained else source
        tried = _quote(tried, possible) if quoted else tried
        try:
            tree = sql.parse(base, f"{_BEFORE}({tried}\n)")
            sql.check_alone(base, tried)
            return tree, tried
        except UsageError as error:
            first = first or error
    assert first is not None
    message, hint = first.message.replace("the query", f"{source!r}", 1), HINT
    if near := first.details.get("near"):
        ends = first.details["position"] > len(f"{_BEFORE}({source}".encode()) and source.count("(") >= source.count(")")
        what = "something is missing at its end" if ends else f"{near!r} does not fit there"
        message = f"{source!r} cannot be read: {what}."
        if close := difflib.get_close_matches(near.lower(), _KEYWORDS, 1):
            hint = f"Write {close[0]}(…, '…')" if close[0] in _CALLED else f"Nearest: {close[0]}"
            hint += "; words to look for that have a column's name among them go in double quotes."
    raise UsageError(message, hint=hint, code="E_QUERY") from first


def _apart(text: str) -> str:
    """Python's chained comparisons as SQL's.

    >>> _apart("100 < json.w <= 500")
    '100 < json.w and json.w <= 500'
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    if isinstance(tree.body, ast.Tuple):  # which would be written in brackets, and be one expression
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


def _quote(text: str, possible: dict[str, Part]) -> str:
    """Fields whose names are words of SQL (`order`, `class`), in quotes."""
    names = {name.removesuffix(".size") for name in possible if name not in RECORD}
    names = {name for name in names if name.isidentifier()}
    pattern = r"""("[^"]*"|'(?:[^']|'')*')|(?<![\w.])(""" + ("|".join(sorted(map(re.escape, names))) or "(?!)") + r")(?![\w(])"
    return re.sub(pattern, lambda found: found[1] or f'"{found[2]}"', text)


def _strings(asked: Question, source: str, possible: dict[str, Part]) -> None:
    """Words in double quotes that name no column are texts, as in Python; `"json.id"` is the path."""
    raw = f"{_BEFORE}({source}".encode()

    def change(node: Node) -> Node | None:
        if node.get("class") != "COLUMN_REF" or len(node["column_names"]) != 1 or node["column_names"][0] in possible:
            return None
        name, at = node["column_names"][0], int(node["query_location"])
        if "." in name and _is_path(name.split("."), possible):
            return {**node, "column_names": name.split(".")}
        return sql.constant(name) if raw[at : at + 1] == b'"' else None

    sql.replace_nodes(asked.tree, change)
