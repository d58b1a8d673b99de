"""Queries and conditions as syntax trees: which columns they name, what has to be made for them, and how SQL is to say it.

DuckDB parses (`json_serialize_sql`) and writes (`json_deserialize_sql`); between the two, names of ours (`jpg.width`, `seg.png.mode`,
`has(json)`) become columns. Nothing of a query is ever put together as text.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tarviz.model.errors import UsageError
from tarviz.table.columns import MAX_FIELDS, ON_REQUEST, Part, kind
from tarviz.table.packages import duckdb

Node: TypeAlias = dict[str, Any]

TABLES = ("records", "tags", "objects")
OBJECTS = {  # the columns of `objects`
    "shard": "VARCHAR", "key": "VARCHAR", "n": "BIGINT", "field": "VARCHAR", "kind": "VARCHAR", "label": "VARCHAR", "label_id": "INTEGER",
    "score": "DOUBLE", "x0": "DOUBLE", "y0": "DOUBLE", "x1": "DOUBLE", "y1": "DOUBLE", "area": "DOUBLE", "width": "INTEGER",
    "height": "INTEGER", "outlines": "DOUBLE[][]", "keypoints": "DOUBLE[]", "runs": "BIGINT[]",
    "crowd": "BOOLEAN",
}  # fmt: skip
COLUMNS = {"objects": [*OBJECTS], "tags": ["shard", "key", "tag", "note"]}
_FUNCTIONS = ("unnest", "range", "generate_series")  # as tables: they read nothing
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


@dataclass
class Question:
    """A query or condition that was read: its tree, and what it needs."""

    tree: Node
    parts: set[Part] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)  # names that are no column
    tagged: bool = False
    words: list[str] = field(default_factory=list)  # that are looked for; a condition has none


def parse(base: duckdb.DuckDBPyConnection, text: str) -> Node:
    """The tree of one SELECT. `UsageError` says what cannot be read."""
    ((read,),) = base.execute("SELECT json_serialize_sql($1::VARCHAR, skip_null := false)", [text]).fetchall()
    try:
        tree: Node = json.loads(read)
    except RecursionError as error:
        raise too_deep() from error
    if tree["error"]:
        message = str(tree["error_message"]).split("\n")[0]
        if "expression depth" in message:
            raise too_deep()
        if re.match(r"\s*pivot\b", text, re.IGNORECASE):
            way = "Name its values: FROM records PIVOT (count(*) FOR txt IN ('cat', 'dog')); or GROUP BY the column."
            raise UsageError("a PIVOT that looks for its values itself is not supported.", hint=way, code="E_QUERY")
        at, length = json.loads(tree.get("location", "[0,0]"))  # in bytes
        details = {"position": at, "near": text.encode()[at : at + length].decode()}
        why = f"the query cannot be read: {message.rstrip('!.')}."
        raise UsageError(why, hint="Only SELECT is supported.", code="E_QUERY", details=details)
    if len(tree["statements"]) != 1:
        raise UsageError("a query is one statement.", code="E_QUERY")
    return tree


def check_alone(base: duckdb.DuckDBPyConnection, text: str) -> None:
    """`UsageError` where a text is an expression in brackets alone: here `x) or (1 = 1` closes what it has not opened."""
    parse(base, f"SELECT 1 WHERE {text}")


def too_deep() -> UsageError:
    return UsageError("the question is nested too deep.", hint="Write fewer brackets within brackets.", code="E_QUERY")


def write(base: duckdb.DuckDBPyConnection, tree: Node) -> str:
    """The SQL of a tree."""
    ((text,),) = base.execute("SELECT json_deserialize_sql($1::JSON)", [json.dumps(tree)]).fetchall()
    return str(text)


def value(base: duckdb.DuckDBPyConnection, text: str, possible: dict[str, Part]) -> Question:
    """An expression, as the SELECT of one column."""
    found = query(base, f"SELECT ({text}\n) FROM records", possible)
    check_alone(base, spell_out(text))
    return found


def query(base: duckdb.DuckDBPyConnection, text: str, possible: dict[str, Part]) -> Question:
    """A whole SELECT over `records` and `tags`, its columns found among `possible`; it may have the calls of a condition: `size(jpg)`."""
    if len(text) > 20 * MAX_LENGTH:
        raise UsageError("the query is too long.", code="E_QUERY")
    text = text.strip().rstrip(";")
    try:
        asked = Question(parse(base, text))
    except UsageError:
        if (spelled := spell_out(text)) == text:
            raise
        asked = Question(parse(base, spelled))
    object_calls(base, asked.tree)
    own = _relations(asked.tree)
    replace_nodes(asked.tree, lambda node: form(base, node, possible))
    resolve(asked, possible, own)
    if "tags" not in own:
        for select in list(nodes(asked.tree, "SELECT_NODE")):  # elsewhere `tag` is a text, with commas between
            if select["from_table"].get("table_name") == "records" and not select["from_table"].get("alias"):
                replace_nodes(select, lambda node: tag_test(base, node))
        asked.tagged = any(
            node["column_names"][-1] == "tag" and node["column_names"][0] != "tags" for node in nodes(asked.tree, "COLUMN_REF")
        )
    return asked


def written_name(name: str, *, path: bool = False) -> str:
    """A column, or with `path` a name inside one, as a condition has it: in quotes where SQL would not read it otherwise.

    >>> written_name("jpg.width"), written_name("seg-map.png.width"), written_name("order", path=True)
    ('jpg.width', '"seg-map.png.width"', '"order"')
    """
    parts = [name] if path else name.split(".")
    if all(_NAME.fullmatch(part) and not _RESERVED.fullmatch(part) for part in parts):
        return name
    return quoted_name(name)


def first_column(asked: Question) -> str:
    """The column, or the path inside one, that comes first in a condition, as it is written there; "" where it names none."""
    there = (node for node in nodes(asked.tree, "COLUMN_REF") if "_of" in node and node["query_location"] != NOWHERE["query_location"])
    named = sorted(there, key=lambda node: int(node["query_location"]))
    if not named:
        return ""
    name, *inner = named[0]["_of"]
    return ".".join([written_name(name), *(written_name(each, path=True) for each in inner)])


def select_of(tree: Node) -> Node:
    node: Node = tree["statements"][0]["node"]
    return node


def nodes(tree: Any, what: str) -> Iterator[Node]:
    """Every node of one class."""
    return (node for node in _all(tree) if node.get("class") == what or node.get("type") == what)


def replace_nodes(tree: Any, change: Callable[[Node], Node | None]) -> None:
    """Put what `change` gives in the place of nodes, from the leaves up."""
    for name, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        if isinstance(value, dict | list):
            if "_made" not in value:
                replace_nodes(value, change)
            if isinstance(value, dict) and (made := change(value)) is not None:
                tree[name] = made


def _relations(tree: Node) -> set[str]:
    """Names that stand for `records` or `tags` in this query; what else it reads from is refused."""
    made = {str(entry["key"]).lower() for entry in common_tables(tree)}
    own: set[str] = set()
    for table in nodes(tree, "BASE_TABLE"):
        name = str(table["table_name"]).lower()
        if name not in TABLES and name not in made:
            raise UsageError(f"there is no table {name!r}.", hint="Ask FROM records, or objects; marks are in tags.", code="E_QUERY")
        if name in TABLES and name not in made:
            own |= {name, *([str(table["alias"]).lower()] if table.get("alias") else [])}
    if any(not node.get("query") for node in nodes(tree, "SHOW_REF")):
        raise UsageError("a query sees records, objects and tags.", hint="DESCRIBE records names the columns.", code="E_QUERY")
    for table in nodes(tree, "TABLE_FUNCTION"):
        name = str(table["function"].get("function_name", "")).lower()
        if name not in _FUNCTIONS:
            raise UsageError(f"{name}() is not available: a query sees the records and nothing else.", code="E_QUERY")
    return own


def common_tables(tree: Any) -> Iterator[Node]:
    """What WITH names."""
    for node in _all(tree):
        if isinstance(node.get("cte_map"), dict):
            yield from node["cte_map"].get("map") or []


def find_name(names: list[str], possible: dict[str, Part]) -> tuple[str, list[str]] | None:
    """The column that dotted names begin with, the longest that is there, and the path that is left.

    >>> find_name(["seg", "png", "width"], {"seg.png.width": "names", "json": "small"})
    ('seg.png.width', [])
    """
    for count in range(len(names), 0, -1):
        name = ".".join(names[:count])
        for each in (name, name.lower()):
            if each in possible:
                return each, names[count:]
    return ("n", []) if names == ["index"] else None


def resolve(asked: Question, possible: dict[str, Part], own: set[str]) -> None:
    """Columns by the names they have in the table, functions that are called on a column given it as their argument. Names that are
    no column are `unknown`, but for those that the query itself gives."""
    given, read = _own_names(asked.tree), relations(asked.tree)
    for node in nodes(asked.tree, "FUNCTION"):
        path = node["qualified_name"]["path"]
        if len(path) > 1:
            node["arguments"].insert(0, {"name": "", "expression": column(*path[:-1])})
            node["qualified_name"], node["schema"], node["catalog"] = {"path": path[-1:]}, "", ""
    for node in nodes(asked.tree, "COLUMN_REF"):
        names = list(node["column_names"])
        if names[0].lower() in given - own and (found := find_name(names, possible)):  # SELECT upper(txt) AS txt
            asked.parts.add(possible[found[0]])
        if names[0].lower() in given - own or _of_relation(node, read):
            continue
        prefix = names[:1] if len(names) > 1 and names[0].lower() in own and find_name(names, possible) is None else []
        found = find_name(names[len(prefix) :], possible)
        if found is not None:
            node["column_names"] = [*prefix, found[0], *found[1]]
            node["_of"] = [found[0], *found[1]]
            asked.parts.add(possible[found[0]])
        else:
            node["_unknown"] = True
            asked.unknown.append(".".join(names[len(prefix) :]))
    if "_words" in relations(asked.tree):
        asked.parts |= {possible[name] for name in texts(possible)}
    if any(nodes(asked.tree, "STAR")):
        asked.parts |= {part for part in possible.values() if part.tier not in ON_REQUEST}


def _of_relation(node: Node, read: set[str]) -> bool:
    """Whether a column is one of `objects` or `tags`, where they are read, or one that we look for words in."""
    first, *rest = node["column_names"]
    if first == "_words":
        return bool(node["query_location"] == NOWHERE["query_location"])
    return first in read and len(rest) == 1 and rest[0] in COLUMNS.get(first, ())


def _own_names(tree: Any) -> set[str]:
    """Names that a query gives itself: of columns, of what it selects from, of a lambda's arguments."""
    found = {str(node["alias"]).lower() for node in _all(tree) if node.get("alias")}
    found |= {str(entry["key"]).lower() for entry in common_tables(tree)}
    found |= {str(name).lower() for node in _all(tree) for name in node.get("column_name_alias") or []}
    for node in nodes(tree, "LAMBDA"):
        found |= {str(name["column_names"][0]).lower() for name in nodes(node["lhs"], "COLUMN_REF")}
    return found


def _all(tree: Any) -> Iterator[Node]:
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack += node.values()
        elif isinstance(node, list):
            stack += node


def function_name(node: Node) -> str:
    return str(node["qualified_name"]["path"][-1]).lower()


def own_name(node: Node) -> str:
    """What a column that a query selects is called: by its alias, else by the last name of its path."""
    return str(node.get("alias") or (node.get("column_names") or [""])[-1])


def column(*names: str) -> Node:
    return {"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "column_names": list(names), **NOWHERE}


def expression(base: duckdb.DuckDBPyConnection, text: str) -> Node:
    """The tree of an expression of our own."""
    if text not in _READ:
        if len(_READ) > 1000:
            _READ.clear()
        _READ[text] = json.dumps(select_of(parse(base, f"SELECT {text}"))["select_list"][0])
    made: Node = json.loads(_READ[text])
    return made


_READ: dict[str, str] = {}  # as text, for a tree is changed by who gets it
_SIGNATURES: dict[str, list[tuple[str, list[str], str]]] = {}


def signatures(base: duckdb.DuckDBPyConnection, name: str) -> list[tuple[str, list[str], str]]:
    """The ways a function of DuckDB can be called: "scalar", "aggregate" or "macro", the types it takes, the one it gives."""
    if name not in _SIGNATURES:
        query = "SELECT function_type, parameter_types, return_type FROM duckdb_functions() WHERE function_name = $1"
        rows = base.execute(query, [name]).fetchall()
        _SIGNATURES[name] = [(what, [each or "" for each in taken or []], given or "") for what, taken, given in rows]
    return _SIGNATURES[name]


def no_function(base: duckdb.DuckDBPyConnection, name: str) -> UsageError:
    """What is said of a call of what is no function, with the nearest that is one."""
    there = [str(each) for (each,) in base.execute("SELECT DISTINCT function_name FROM duckdb_functions() ORDER BY 1").fetchall()]
    close = difflib.get_close_matches(name, there, 1)
    if not name.isidentifier():
        return UsageError(f"there is no operator {name}.", code="E_QUERY")
    return UsageError(f"there is no function {name}().", hint=f"Nearest: {close[0]}()." if close else None, code="E_QUERY")


def constant(value: str | int) -> Node:
    literal = {"kind": "STRING" if isinstance(value, str) else "INTEGER", "text": str(value)}
    return {"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "literal": literal, **NOWHERE}


def operator(what: str, *children: Node, of_class: str = "OPERATOR") -> Node:
    return {"class": of_class, "type": what, "alias": "", "children": [*children], **NOWHERE}


def quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


FORMS = {"has": "has", "is": "marked", "tag": "tagged", "key": "key_holds"}
"""What is written before a colon, and the function that it is."""
_FORM = re.compile(r"""("[^"]*"|'(?:[^']|'')*')|\b(has|is|tag|key):("[^"]+"|'(?:[^']|'')+'|[^\s()"'][^\s()]*)|\b(int|float)\s*\(""")


def spell_out(text: str) -> str:
    """The forms with a colon as calls; a name in them ends at a space or a bracket, or is in quotes. And Python's int() and float(), which
    DuckDB does not read as calls.

    >>> spell_out("tag:don't and not has:seg.png or tag:'at sea' and int(cls) = 3")
    "tagged('don''t') and not has('seg.png') or tagged('at sea') and whole(cls) = 3"
    """

    def call(found: re.Match[str]) -> str:
        if found[4]:
            return {"int": "whole(", "float": "real_number("}[found[4]]
        name = found[3]
        if name[0] in "\"'":
            name = name[1:-1].replace("''", "'")
        return f"{FORMS[found[2]]}({quoted_text(name)})"

    return _FORM.sub(lambda found: found[1] or call(found), text)


def form(base: duckdb.DuckDBPyConnection, node: Node, possible: dict[str, Part], *, streamed: bool = False) -> Node | None:
    """`has(x)`, `size(x)`, `field(x)`, `search('a b')`, `is:x`, `tag:x` and `key:x` as what they mean. A stream has no tags."""
    if node.get("class") != "FUNCTION" or len(node["arguments"]) != 1 or len(node["qualified_name"]["path"]) > 1:
        return None
    name, text = str(node["qualified_name"]["path"][-1]), _name_in(node["arguments"][0]["expression"])
    if text is None or name not in ("has", "size", "field", "search", *FORMS.values()):
        return None
    ext = text.lower()
    if name == "field":
        return column(ext)
    if name == "key_holds":
        return expression(base, f"contains(folded(key), folded({quoted_text(text)}))")
    if name == "search":
        return _search(base, text, possible, streamed)
    if name in ("marked", "tagged"):
        return _mark_test(base, name, text, possible, streamed)
    if f"{ext}.size" not in possible:
        if sum(each.endswith(".size") for each in possible) >= MAX_FIELDS:
            hint = f"A table has columns for {MAX_FIELDS} fields, the first that are met."
            raise UsageError(f"there is no column {ext}.", hint=hint, code="E_QUERY")
        return expression(base, "false" if name == "has" else "NULL::BIGINT")
    return expression(base, f"{quoted_name(ext + '.size')} IS NOT NULL" if name == "has" else quoted_name(ext + ".size"))


def _name_in(node: Node) -> str | None:
    """What an argument names: a column or a text."""
    if node.get("class") == "COLUMN_REF":
        return ".".join(node["column_names"])
    return str(node["literal"]["text"]) if node.get("class") == "CONSTANT" and node["literal"]["kind"] == "STRING" else None


def _mark_test(base: duckdb.DuckDBPyConnection, name: str, tag: str, possible: dict[str, Part], streamed: bool) -> Node:
    """`is:x` and `tag:x`: a tag, and of `is:bad` JSON that is none."""
    is_bad = name == "marked" and tag.lower() == "bad"
    bad = [each for each in possible if each.endswith(".bad")] if is_bad else []
    if streamed and not is_bad:
        raise whole(f"{'is' if name == 'marked' else 'tag'}:{tag}")
    tests = [*(f"coalesce({quoted_name(each)}, false)" for each in bad), *([] if streamed else [_tag_call(tag)])]
    return expression(base, f"({' OR '.join(tests) or 'false'})")


def texts(columns: Iterable[str]) -> dict[str, str]:
    """The columns that words are looked for in, each with its text as SQL: of a class that is a number there is none."""
    ways = {"text": "folded(CAST({} AS VARCHAR))", "number": "folded(words_of(CAST({} AS VARCHAR)))"}
    return {name: ways[what].format(quoted_name(name)) for name in columns if (what := kind(name)) in ways}


def _search(base: duckdb.DuckDBPyConnection, text: str, possible: dict[str, Part], streamed: bool) -> Node:
    """Every word is in the key or in a text: of a table by the relation `_words`, of a stream in the columns themselves."""
    sought = [f"folded({quoted_text(word)})" for word in words(text)]
    if not sought:
        return expression(base, "true")
    if not streamed:
        tests = " AND ".join(f"contains(_words.text, {word})" for word in sought)
        found = expression(base, f"(shard, n) IN (SELECT _words.shard, _words.n FROM _words WHERE {tests})")
        for node in nodes(found, "COLUMN_REF"):
            node |= NOWHERE
        return {**found, "_made": True}
    held = ["folded(key)", *(f"coalesce({text}, '')" for text in texts(possible).values())]
    return expression(base, " AND ".join(f"({' OR '.join(f'contains({each}, {word})' for each in held)})" for word in sought))


_SOUGHT = re.compile(r'"([^"]+)"|(\S+)')


def words(text: str) -> list[str]:
    """The words of a search; double quotes make several one.

    >>> words('boat "at sea"')
    ['boat', 'at sea']
    """
    return [phrase or word for phrase, word in _SOUGHT.findall(text)]


def whole(what: str) -> UsageError:
    """What is refused where only a stream is there."""
    return UsageError(f"{what} needs all records at once, and a stream has only those so far.", hint=_WHOLE, code="E_QUERY")


_WHOLE = "Write the stream to a file first, and ask that."


def quoted_text(text: str) -> str:
    """A text as SQL writes it.

    >>> quoted_text("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def _tag_call(tag: str) -> str:
    return f"tagged(records.shard, records.key, {quoted_text(tag)})"  # in full: the macro has columns of the same names


def tag_test(base: duckdb.DuckDBPyConnection, node: Node) -> Node | None:
    """`tag = 'bad'`, `tag in ('a', 'b')`, `tag like 'G%'` as: one of the record's tags is so; `tag != 'bad'` and whatever else denies
    as: none is."""
    kind = str(node["qualified_name"]["path"][-1]) if node.get("class") == "FUNCTION" else str(node.get("type"))
    sides = [node[name] for name in ("left", "right", "input", "lower", "upper") if name in node] or node.get("children") or []
    if node.get("class") == "FUNCTION":
        sides = [each["expression"] for each in node["arguments"]]
    if kind not in _ASKED_OF_TAGS or not any(side.get("column_names") == ["tag"] for side in sides):
        return None
    box = {"x": {**node, "alias": ""}}
    if positive := _DENIED.get(kind):
        box["x"] |= {"type": positive}
        if node.get("class") == "FUNCTION":
            box["x"] |= {"type": "FUNCTION", "qualified_name": {"path": [positive]}}
    for side in sides:
        if side.get("class") == "CONSTANT" and side["literal"]["kind"] != "NULL_LITERAL":
            side |= constant(str(side["literal"]["text"]))
        elif side.get("column_names") == ["tag"]:
            side |= column("tags", "tag")
    made = expression(base, "EXISTS (SELECT 1 FROM tags WHERE tags.shard = records.shard AND tags.key = records.key AND x)")
    replace_nodes(made, lambda found: box["x"] if found.get("column_names") == ["x"] else None)
    if not positive:
        return made
    return operator("OPERATOR_NOT", made) | {"alias": node.get("alias", "")}


_DENIED = {
    "COMPARE_NOTEQUAL": "COMPARE_EQUAL", "COMPARE_NOT_IN": "COMPARE_IN", "COMPARE_DISTINCT_FROM": "COMPARE_NOT_DISTINCT_FROM",
    "COMPARE_NOT_BETWEEN": "COMPARE_BETWEEN", "OPERATOR_IS_NULL": "OPERATOR_IS_NOT_NULL", "!~~": "~~", "!~~*": "~~*",
}  # fmt: skip
_ASKED_OF_TAGS = {
    *_DENIED, *_DENIED.values(), "COMPARE_LESSTHAN", "COMPARE_GREATERTHAN", "COMPARE_LESSTHANOREQUALTO", "COMPARE_GREATERTHANOREQUALTO",
    "~~~", "startswith", "endswith", "contains", "matches",
}  # fmt: skip


def relations(tree: Node) -> set[str]:
    """What a query reads from."""
    return {str(node["table_name"]).lower() for node in nodes(tree, "BASE_TABLE")}


def object_calls(base: duckdb.DuckDBPyConnection, tree: Node) -> None:
    """`has_object('star')`, `count_objects('star')`, `count_objects()` and `any_object(label = 'star' and score > 0.5)` of a record as
    questions to the relation; in the last one, names that it has are its own."""

    def change(node: Node) -> Node | None:
        if node.get("class") != "FUNCTION" or (name := function_name(node)) not in ("has_object", "count_objects", "any_object"):
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
            replace_nodes(given[0], _own)
            given = [_own(given[0]) or given[0]]
        replace_nodes(made, lambda found: given[0] if found.get("column_names") == ["x"] else None)
        return made

    replace_nodes(tree, change)


def _own(node: Node) -> Node | None:
    if node.get("class") != "COLUMN_REF" or len(node["column_names"]) != 1 or node["column_names"][0].lower() not in OBJECTS:
        return None
    return {**node, "column_names": ["objects", node["column_names"][0].lower()], **NOWHERE}
