"""DuckDB's errors in our words: what is wrong, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from tarviz.model.errors import LimitError, MissingPackageError, TarvizError, UsageError
from tarviz.table.interrupts import stop_error
from tarviz.table.packages import duckdb
from tarviz.table.sql import OBJECTS, too_deep

T = TypeVar("T")
_OWN = frozenset({*OBJECTS, "tag", "note"})  # names that no record has and a query may ask for
_KINDS = {"INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INTEGER", "INT64": "BIGINT", "INT128": "HUGEINT", "BOOL": "BOOLEAN"}
_SIGNS = {"~~": "LIKE", "~~*": "ILIKE", "~~~": "GLOB", "!~~": "NOT LIKE", "!~~*": "NOT ILIKE"}
_THERE = "Ask FROM records, or objects; marks are in tags."
_MIXED = (
    "Of a value of two kinds ask the path itself, json.v = 'cat', its number, json.v + 0, or its text, (json.v ->> '$') = 'cat'; "
    "one of a list by a name: SELECT x + 1 FROM (SELECT unnest(json.list) AS x FROM records)."
)
_SAID = (  # what DuckDB says, what is said instead with its groups, of which `one` and `two` are types, and the way out
    (
        "clause cannot contain aggregates",
        "a record is chosen and placed by itself, and a count, a sum or a maximum is of many.",
        "Write SELECT cls FROM records GROUP BY cls HAVING count(*) > 1, or cls = (SELECT max(cls) FROM records).",
    ),
    (
        "clause cannot contain window functions|Window functions are not supported|is not an aggregate function",
        "a record is chosen and placed by itself, and a window is over many.",
        "Write SELECT key FROM records QUALIFY row_number() OVER (PARTITION BY cls) = 1.",
    ),
    (
        "UNNEST not supported",
        "unnest() makes several rows of one, and a record is one.",
        "Write 3 in json.list, or SELECT key FROM (SELECT key, unnest(json.list) AS x FROM records) WHERE x = 3.",
    ),
    (
        r"UNNEST\(\) can only|LIST argument|needs to be List",
        "a list is needed there, and this is none.",
        "Put one value in brackets: [json.v].",
    ),
    (
        'column "([^"]+)" must appear in the GROUP BY',
        "{0} is of one record and stands beside what is of many.",
        "Write GROUP BY {0}, or any_value({0}).",
    ),
    ("Malformed JSON|value to numerical", "a value is no JSON that it could be compared with or taken for.", _MIXED),
    (
        "volatile function",
        "a condition must give the same answer each time; a call such as random() does not.",
        "Choose records by their key: hash(key) % 10 = 0, or matches(key, '7$').",
    ),
    (r'Function with name "?(\w+)"? does not exist!\s+Did you mean "(\w+)"', "there is no function {0}().", "Nearest: {1}()."),
    (r'Function with name "?(\w+)"? does not exist!', "there is no function {0}().", None),
    (r"Function with name (\S+) does not exist", "there is no operator {0}.", None),
    (r'Table with name "?([^\s"]+)|Referenced table "([^"]+)"', "there is no table {0}{1}.", _THERE),
    ("is a table function", "a query sees the records and nothing else.", _THERE),
    (r'Type with name "?(\w+)', "there is no type {0}.", "Types are BIGINT, DOUBLE, VARCHAR, BOOLEAN, DATE, TIMESTAMP."),
    (r"(?:with name|TimeZone|specifier|configuration parameter) [\"']?([^\s\"':]+)", "{0} is not known.", None),
    (
        "'(?P<one>[^']+)', from first occurrence +- '(?P<two>[^']+)', which",
        "{one} and {two} do not go together.",
        "Cast one of them: …::VARCHAR.",
    ),
    (r"Type \w+ with value '?(.*?)'? can't be cast .* type (\w+)", "'{0}' is no {1}.", "try_cast(… AS {1}) is null there."),
    ("Overflow in|out of range for", "a number is out of range there.", "Count in …::DOUBLE."),
    (r"STRUCT to STRUCT|Expected (?:OBJECT|ARRAY), but got", "a value does not become the object or the list that is asked for.", _MIXED),
    ('Ambiguous reference to column name "([^"]+)"', "{0} is in two of the tables.", "Write of which: a.{0}, after FROM records a."),
    ("cannot encode", "a text has half a character in it, a surrogate that stands alone.", None),
    (r"Could not convert string '(.*?)' to (\w+)", "'{0}' is no {1}.", "try_cast(… AS {1}) is null there."),
    (r'(\w+) field (?:format|value out of range): "(.*?)"', "'{1}' is no {0}.", "try_cast(… AS {0}) is null there."),
    (
        r"type for cast \((?P<one>.*) -> (?P<two>.*?)\)(?: when|$)",
        "{one} does not become {two}.",
        "A list or an object is asked by what it holds: json.list[0], json.meta.name.",
    ),
    (
        r"Cannot [a-z]+ (?:values of )?types? (?:of )?(?P<one>.+?) and (?:type )?(?P<two>.+?)(?: in [A-Z]+ operator)?(?: - .*)?$",
        "{one} and {two} do not go together.",
        "Cast one of them: …::VARCHAR.",
    ),
    (r"Subquery returns (\d+) columns", "a subquery here gives one column, and this gives {0}.", "Name one after SELECT."),
    ("More than one row returned", "a subquery here gives one row, and this gives more.", "Write IN (SELECT …), or LIMIT 1."),
    ("Values were not provided", "a query has no parameters.", "Write the value itself in its place."),
    ("STAR expression", "* is all columns, and no value.", "Name one of them."),
    ("DEFAULT clause|[Ii]nvalid lambda", "a value is missing there.", None),
    (
        "(?:^|: )(missing .|invalid perl operator|no argument for repetition operator|invalid [a-z ]+|bad [a-z ]+|unexpected .): (.*)$",
        "{1} is no regular expression: {0}.",
        None,
    ),
    (
        "state machine reached an invalid state",
        "its lines end in several ways, some with CR LF and some with LF or CR, outside of quotes.",
        "Make them end alike: dos2unix, or sed 's/\\r$//'.",
    ),
    ("Cannot extract field '(.*?)' from", "there is no {0} in what is no object.", None),
)
_CALL = re.compile(
    r"""(?:name and argument types '|function call ")(?P<name>.+?)\((?P<kinds>.*)\)['"]|Macro "?(?P<macro>\w+)"?\(\) does not support"""
)


def translate(error: Exception, hinted: Callable[[str], str] | None = None, unknown: list[str] | None = None) -> TarvizError:
    """DuckDB's error in our words; `hinted` says what there is instead of one of the names that are `unknown`."""
    whole = re.sub(r"\n\s*LINE \d+:.*", "", str(error), flags=re.DOTALL).strip()
    whole = re.sub(r"^(?:[A-Z][A-Za-z ]+ Error): ", "", whole)
    text = re.split(r"[\s:]*\bCandidate", whole)[0].replace("_records", "records").replace("\n", " ")
    if isinstance(error, ImportError) or "is required for this operation but it was not installed" in text:
        return MissingPackageError.of(getattr(error, "name", None) or text.split("'")[1], "This form of an answer")
    if isinstance(error, RecursionError):
        return too_deep()
    if isinstance(error, duckdb.OutOfMemoryException):
        return LimitError(f"the query needs more memory than the limit allows ({text}).", hint="Ask for less, or aggregate.")
    if isinstance(error, duckdb.InterruptException):
        return stop_error()
    missing = [name for name in unknown or () if name.rpartition(".")[2] not in _OWN]
    found = re.search(r'(?:struct entry|key|Referenced column|^Column|a column named) "([^"]+)"', text)
    name = missing[0] if missing else found[1] if found else None
    if (missing and isinstance(error, duckdb.BinderException)) or found:
        return UsageError(f"there is no column {name}.", hint=hinted(str(name)) if hinted is not None else None, code="E_QUERY")
    said, hint = _say(text, whole)
    return UsageError(said, hint=hint, code="E_QUERY")


def _say(text: str, whole: str) -> tuple[str, str | None]:
    """An error and its hint; `whole` has the ways a function can be called."""
    if call := _CALL.search(text):
        name = call["name"] or call["macro"]
        kinds = f" with {_kinds(call['kinds'])}" if call["name"] else " so"
        if "JSON" in kinds:
            return f"{name} cannot be used{kinds}.", _MIXED
        if not re.match(r"\w", name):
            return f"{_SIGNS.get(name, name)} cannot be used{kinds}.", "Cast a side: …::DOUBLE, …::VARCHAR."
        ways = [re.sub(r'"|, /', "", way) for way in re.findall(r"^\s*(\w+\(.*?\))(?: ->.*)?$", whole, re.MULTILINE)]
        return f"{name}() cannot be called{kinds}.", f"Write {' or '.join(ways[:2])}." if ways else None
    for pattern, said, hint in _SAID:
        if found := re.search(pattern, text):
            groups = [_KINDS.get(each, each) for each in found.groups("")]
            types = {name: _kind(each) for name, each in found.groupdict("").items()}
            return said.format(*groups, **types), hint and hint.format(*groups, **types)
    short = re.split(r"[.!](?:\s|$)| \* SET| - an explicit| when casting from", text)[0]
    return f"the query cannot be answered: {short.replace('_LITERAL', '')}.", None


def _kinds(types: str) -> str:
    """The types of a call's arguments in words.

    >>> _kinds('VARCHAR, STRUCT(a INTEGER, b VARCHAR)[], DECIMAL(2,1)'), _kinds("")
    ('a text, a list, a number', 'no argument')
    """
    inner = ""
    while inner != types:
        inner, types = types, re.sub(r"\([^()]*\)", "", types)
    return ", ".join(map(_kind, types.split(", "))) if types else "no argument"


def _kind(name: str) -> str:
    """A type in words.

    >>> _kind("STRUCT(a INTEGER)"), _kind("BIGINT"), _kind("JSON")
    ('an object', 'a number', 'JSON')
    """
    if name.endswith("]"):
        return "a list"
    first = name.partition("(")[0].strip('"')
    if re.search(r"INT|DOUBLE|DECIMAL|FLOAT", first):
        return "a number"
    words = {"VARCHAR": "a text", "STRING_LITERAL": "a text", "STRUCT": "an object", "TUPLE": "a tuple", "BOOLEAN": "true or false"}
    return words.get(first, first if first == "JSON" else first.lower())


def in_our_words(work: Callable[[], T]) -> T:
    """What `work` gives; DuckDB's errors are ours."""
    try:
        return work()
    except (duckdb.Error, RecursionError) as error:
        raise translate(error) from error
