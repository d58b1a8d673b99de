"""Words looked for in the key and all texts of records: the relation `_words`, made when words are first looked for.

It holds the texts folded (small letters, a letter with its accents as one, ß as ss), once, so that `contains` takes tens of milliseconds on
a million captions; it finds parts of words, which an index (DuckDB's own has to be downloaded) would not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarviz.model.errors import UsageError
from tarviz.table.packages import duckdb
from tarviz.table.rows import check_count
from tarviz.table.sql import quoted_text, texts, words

if TYPE_CHECKING:
    from tarviz.table.rows import ChosenRows
    from tarviz.table.table import Table

_SHARE = 4  # of the memory a query may use, this part may hold texts; more are looked through where they lie


def fill(base: duckdb.DuckDBPyConnection, fields: list[str], room: int) -> None:
    """The relation: shard, n, the key and all texts folded, as a table if it fits into a share of `room` bytes."""
    columns = base.sql("SELECT * FROM _records LIMIT 0").columns
    there = {name: text for name, text in texts(fields).items() if name in columns}
    held = ", ".join(["folded(key)", *there.values()])
    sizes = " + ".join(["sum(strlen(key))", *(f'coalesce(sum("{name}.size"), 0)' for name in there)])
    ((size,),) = base.execute(f"SELECT coalesce({sizes}, 0)::BIGINT FROM _records").fetchall()
    what = "TABLE" if size <= room // _SHARE else "VIEW"
    base.execute(f"CREATE {what} _words AS SELECT shard, n, folded(key) AS key, concat_ws(chr(31), {held}) AS text FROM _records")


def search(table: Table, text: str, count: int | None = 24) -> ChosenRows:
    """The records whose key or texts hold all words of `text`, a phrase being in double quotes; a word after `key:` is in the key.

    Those that have more of them as whole words come first, then the shorter texts, then as they lie. `score` counts the whole words.
    """
    if not isinstance(text, str):
        raise UsageError(f"{text!r} is no text.", hint='Write words: table.search("boat at sea").')
    sought = [("key", word[4:]) if word.lower().startswith("key:") else ("text", word) for word in words(text)]
    if not all(word for _, word in sought) or not sought:
        raise UsageError("there is no word to look for.", hint='Write words, or a phrase in double quotes: table.search("boat at sea").')
    tests = " AND ".join(f"contains({column}, folded({quoted_text(word)}))" for column, word in sought)
    score = " + ".join(f"regexp_matches({column}, {_whole(word)})::INT" for column, word in sought)
    span = "" if check_count(count) is None else f" LIMIT {count}"
    table.give("_words")
    found = table.fetched_arrow(
        f"SELECT shard, n, {score} AS score FROM _words WHERE {tests} ORDER BY score DESC, length(text), shard, n{span}"
    )
    return table.place(found)


def _whole(word: str) -> str:
    r"""The pattern of a whole word, as SQL.

    >>> _whole("boat")
    "'(^|[^\\pL\\pN_])' || regexp_escape(folded('boat')) || '($|[^\\pL\\pN_])'"
    """
    return rf"'(^|[^\pL\pN_])' || regexp_escape(folded({quoted_text(word)})) || '($|[^\pL\pN_])'"
