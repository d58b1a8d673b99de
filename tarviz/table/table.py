"""The table over shards: columns made when a question needs them, SQL, conditions, rows in an order."""

from __future__ import annotations

import copy
import difflib
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from tarviz import stores
from tarviz.model.class_names import ClassNames, class_names
from tarviz.model.config import options as configured
from tarviz.model.config import parse_size
from tarviz.model.errors import ChangedError, TarvizError, UsageError, redact
from tarviz.model.types import rich_form
from tarviz.read import tfrecords
from tarviz.read.chosen import version
from tarviz.read.keywords import ReadKeywords
from tarviz.read.stream import with_changes
from tarviz.stores import URLs
from tarviz.table import columns, conditions, database, neighbours, objects, paths, refusals, sql, words
from tarviz.table.columns import NAMES, Part
from tarviz.table.finished import Kind, finish, where_of
from tarviz.table.interrupts import Interrupts, answer, run_known
from tarviz.table.making import json_structure, kept_columns
from tarviz.table.making.passes import ColumnPasses, where
from tarviz.table.packages import duckdb, pa, pc
from tarviz.table.relation import Relation
from tarviz.table.rows import ChosenRows
from tarviz.table.sql import Question
from tarviz.table.tags import GONE, Tags

if TYPE_CHECKING:
    from tarviz.table.facets import Among, Facet

T = TypeVar("T")


class Table:
    """Records of shards as rows, fields as columns; nothing is read before something is asked. Safe to use from several threads; a query
    runs in one of them at a time, or is `interrupt`ed.

    `urls`: a path, URL, template, folder, or a list of these. `memory` limits what a query may use ("2GB"; else half of the
    machine, 4 GiB at most), `timeout` how many seconds it may take. Columns are made by `workers` threads, or by workers of an engine
    (`"ray"`, at `address`), a shard at a time each, and kept here; `progress` hears how many shards are done, of how many. `tags` is a
    file of tags beside the data set, in place of those in the user's data folder. `classes` are the names of class numbers in `objects`:
    a list, a mapping, or a file of them, one a line. `reading` holds options of `ReadOptions`; damaged shards have the records before the
    damage. `MissingPackageError` where DuckDB or pyarrow is not installed.
    """

    def __init__(
        self,
        urls: URLs,
        *,
        memory: int | str | None = None,
        workers: int | None = None,
        engine: str | None = None,
        address: str | None = None,
        timeout: float | None = None,
        classes: ClassNames = (),
        progress: Callable[[int, int], None] | None = None,
        tags: str | PathLike[str] | None = None,
        **reading: Unpack[ReadKeywords],
    ) -> None:
        database.require()
        self.sources = stores.expand(urls)
        self.urls = tfrecords.as_shards(self.sources)
        self.options = with_changes(None, {"strict": False, **reading})
        self.options.refuse_gathering("a table")
        chosen = configured(tags=None if tags is None else fspath(tags)).tags
        self.tags_file = Path(chosen).expanduser().absolute() if chosen else None
        self._limit = None if memory is None else parse_size(memory)
        self.timeout = timeout
        self.classes = class_names(classes)
        self._given: set[str] = set()  # relations that were asked for
        self._base: duckdb.DuckDBPyConnection | None = None
        self._lock = threading.RLock()
        self._cached: dict[Any, Any] = {}
        self._asked = Interrupts()
        place = where(self.urls, engine, address)
        kept = kept_columns.find_kept(self.urls, self.options)
        self.passes = ColumnPasses(kept, self.options, workers, progress, place)
        self._partial = False  # over beginnings of shards, in which a name may not have come yet
        self._seen = 0  # the version of the columns that `_base` and `_cached` are of

    # what there is

    def make(self, parts: Iterable[Part]) -> None:
        """Make the columns of `parts` where they are not there yet, several shards at once; `interrupt` ends it between two records."""
        self.passes.make({*parts}, self._asked.stop)

    def so_far(self, parts: Iterable[Part]) -> Table | None:
        """A table over what has `parts` by now, shards and beginnings of shards, while a pass goes on; None where nothing has."""
        if not (found := [shard for shard in self.passes.so_far({NAMES, *parts}) if shard.records]):
            return None
        other = copy.copy(self)  # its queries are ended as ours are
        other.urls, other._partial = [shard.url for shard in found], True
        other._given = set()
        other._base, other._cached, other._lock = None, {}, threading.RLock()
        other.passes = ColumnPasses(found, self.options, 1)
        return other

    @property
    def fields(self) -> list[str]:
        """The extensions there are, in the order they are met."""
        self.make([NAMES])
        return list(dict.fromkeys(ext for shard in self.passes.kept for ext in shard.exts[: columns.MAX_FIELDS]))

    @property
    def possible(self) -> dict[str, Part]:
        """Every column there can be, and the part that makes it."""
        return columns.of_fields(self.fields)

    @property
    def columns(self) -> dict[str, str | None]:
        """Every column and its type in SQL, None where it was not made yet."""
        known = {name: str(kind) for name, kind, *_ in self.fetch("DESCRIBE _records")}
        return {name: known.get(name) for name in self.possible}

    @property
    def leaves(self) -> dict[str, str | None]:
        """Every column, and every path inside those that were made and hold structs, as it is written in a condition; its type
        (`bigint`, `varchar`, `list`, …), None where it was not made yet."""
        return self.remember("leaves", self._leaves)

    def _leaves(self) -> dict[str, str | None]:
        made = self._types()
        found: dict[str, str | None] = {}
        for name in self.possible:
            if name in made:
                found |= {text: kind.id for text, kind in paths.leaves(sql.written_name(name), made[name])}
            else:
                found[sql.written_name(name)] = None
        return found

    @property
    def findings(self) -> dict[str, int]:
        """What was met while columns were made: fields that are not JSON, objects outside, damage by code; lost tags; `notes`."""
        found = self.passes.findings()
        if all(NAMES in shard.parts for shard in self.passes.kept):
            lost = self.remember("gone", lambda: len(self.tags.missing()) if self.tags.lines() else 0)
            found |= {GONE: lost} if lost else {}
        if "objects" in self._given:
            found |= self.remember("outside", lambda: objects.outside(self.passes.kept))
        return found | dict.fromkeys(self.notes, 1)

    @property
    def notes(self) -> list[str]:
        """What there is to know of fields: paths of two kinds or too many of them, integers of more than 64 bits, too many, taken names."""
        found = database.structures(self.passes.kept)
        notes = [note for ext, each in found.items() for note in json_structure.notes(ext, each)]
        if any(len(shard.exts) > columns.MAX_FIELDS for shard in self.passes.kept):
            notes.append(f"a shard has more than {columns.MAX_FIELDS} fields: those after them have no columns")
        hidden = {ext for shard in self.passes.kept for ext in shard.exts} & {*columns.RECORD, "tag"}
        notes += [f"{name} is the table's own column: the field of that name has none" for name in sorted(hidden)]
        return notes

    def __len__(self) -> int:
        self.make([NAMES])
        return sum(shard.records for shard in self.passes.kept)

    # questions

    def sql(self, query: str) -> Relation:
        """What a query gives: `.fetchall()`, `.to_arrow_table()`, `.df()` (with pandas), `.pl()` (with polars). The query sees `records`,
        `objects` and `tags` and nothing else.

        `UsageError` names what is not there, with the nearest columns; `LimitError` comes when the query is run and needs too much memory.
        """
        asked = self._read(sql.query, query)
        text = self._sql_of(asked, "query")
        cursor = self._asked.cursor(self._with_tags() if asked.tagged else self._ready())
        relation = self._translate(lambda: cursor.sql(text), asked)
        return Relation(relation, lambda work: self._answer(work, cursor))

    def arrow(self, query: str) -> pa.Table:
        """What `query` gives, as an Arrow table; errors are ours."""
        return self.sql(query).to_arrow_table()

    def condition(self, where: str) -> str:
        """A condition of ours as SQL, its columns made: `has:json and cls = 3`, `dog`, `100 < json.w <= 500`."""
        if not where.strip():
            return "true"
        return self.remember(("condition", where), lambda: self._condition(where))

    def _condition(self, where: str) -> str:
        asked = self._read(conditions.condition, where)
        for name in asked.unknown:
            self._missing(name, asked)
        text = self._sql_of(asked, "condition")
        self._translate(lambda: self._ready().cursor().sql(text), asked)
        return where_of(text)

    def rows(self, where: str = "", order: str = "", *, descending: bool = False, count: int | None = None, skip: int = 0) -> ChosenRows:
        """The records that fit, in the order they lie, or by an expression; what is missing comes last, either way."""
        condition = self.condition(where)
        if not order.strip():  # a database promises no order, least of all behind a join with tags
            found = self._in_order(self.fetched_arrow(f"SELECT shard, n FROM records WHERE {condition}"))
            part = slice(skip, None if count is None else skip + count)
            return ChosenRows(self.urls, found.shard[part], found.n[part])
        by = f"{self.expression(order)} {'DESC' if descending else 'ASC'} NULLS LAST, shard, n"
        span = ("" if count is None else f" LIMIT {int(count)}") + (f" OFFSET {int(skip)}" if skip else "")
        return self.place(self.fetched_arrow(f"SELECT shard, n FROM records WHERE {condition} ORDER BY {by}{span}"))

    def expression(self, text: str) -> str:
        """An expression over columns (`json.w / json.h`, `jpg.width`) as SQL, its columns made."""
        asked = self._read(sql.value, text)
        made = self._sql_of(asked, "value")
        found = made.removeprefix("SELECT ").removesuffix(" FROM records")
        self._translate(lambda: self._ready().cursor().sql(f"SELECT 1 FROM records WHERE {found} IS NULL"), asked)  # no aggregate
        return found

    def first_column(self, where: str) -> str:
        """The column, or the path inside one, that a condition names first; "" where it names none."""
        return sql.first_column(self._read(conditions.condition, where))

    def unmade(self, text: str, where: str = "") -> set[Part]:
        """What has to be made before an expression, over what a condition leaves, can be answered."""
        parts = self._read(sql.value, text).parts
        return self.passes.unmade(parts | self._read(conditions.condition, where).parts if where.strip() else parts)

    def sizes(self, where: str = "") -> tuple[int, int]:
        """How many records fit, and the bytes of their payloads."""
        (row,) = self.fetch(f"SELECT count(*), coalesce(sum(size), 0)::BIGINT FROM records WHERE {self.condition(where)}")
        return int(row[0]), int(row[1])

    def by_keys(self, keys: Iterable[str]) -> ChosenRows:
        """The records of these keys, in the order they lie; `UsageError` names keys that no record has."""
        wanted = list(dict.fromkeys(keys))
        base = self._asked.cursor(self._ready())
        base.register("wanted", pa.table({"key": pa.array(wanted, pa.string())}))
        query = "SELECT r.shard, r.n, r.key FROM records r SEMI JOIN wanted USING (key)"
        found = self._translate(lambda: base.sql(query).to_arrow_table())
        have = set(found.column("key").to_pylist())
        if missing := [key for key in wanted if key not in have]:
            near = difflib.get_close_matches(missing[0], [key for (key,) in self.fetch("SELECT key FROM records LIMIT 10000")], 1)
            hint = f"Nearest: {near[0]}." if near else None
            raise UsageError(f"{len(missing)} of {len(wanted)} keys are in no shard, {missing[0][:200]!r} first.", hint=hint)
        return self._in_order(found)

    def take(self, shard: NDArray[np.int32], n: NDArray[np.int64]) -> pa.Table:
        """Every column made so far, for the records `n` of the shards numbered `shard`, in the order they lie."""
        base = self._asked.cursor(self._ready())
        names = pa.array([redact(url) for url in self.urls], pa.string()).take(pa.array(shard))
        base.register("wanted", pa.table({"shard": names, "n": pa.array(n)}))
        rows = base.sql("SELECT r.* FROM _records r SEMI JOIN wanted USING (shard, n) ORDER BY shard, n")
        return self._answer(rows.to_arrow_table, base)

    def facets(self, column: str, where: str = "", *, bins: int = 30, among: Among | None = None) -> Facet:
        """What a column holds, exactly, over all records and over those that fit (and are of `among`): see `tarviz.table.facets`."""
        from tarviz.table.facets import facet

        return facet(self, column, where, bins, among)

    def search(self, text: str, count: int | None = 24) -> ChosenRows:
        """The `count` records (None: all) that hold all words of `text` in their key or texts, the best first: `boat "at sea" key:0001`.

        First those that have more of them as whole words, then the shorter texts. `UsageError` where there is no word.
        """
        return words.search(self, text, count)

    def similar(self, key: str, by: str = "", count: int | None = 24) -> ChosenRows:
        """The `count` records (None: all) nearest to that of `key`, the nearest first; `score` is the cosine of their vectors.

        `by` is a field of vectors (`npy`, `safetensors`), a list in JSON (`json.embedding`), or a field of pictures, of whose hashes
        `score` is the share of equal bits; else the first field there is of these. `UsageError` where the record has none, or there is
        no such key.
        """
        return neighbours.similar(self, key, by, count)

    @property
    def tags(self) -> Tags:
        """Marks on records; see `tarviz.table.tags`."""
        return Tags(self)  # not kept: in a cycle the database would end whenever garbage is collected, in a forked worker too

    def until(self, stop: threading.Event) -> AbstractContextManager[None]:
        """What this thread asks meanwhile is ended by `interrupt(stop)`."""
        return self._asked.until(stop)

    def look(self) -> None:
        """Raise E_STOPPED where this thread's question was ended: for what takes long beside a query."""
        self._asked.look()

    def interrupt(self, stop: threading.Event | None = None) -> None:
        """End whatever is asked or read, in whatever thread, or only what is `until(stop)`; it raises `UsageError` with E_STOPPED."""
        self.passes.interrupt(stop)
        self._asked.interrupt(stop)

    @property
    def versions(self) -> dict[str, dict[str, Any]]:
        """Which version of each shard is asked."""
        return {shard.url: shard.identity for shard in self.passes.kept}

    def check(self) -> None:
        """`ChangedError` when a shard is no longer the one that was asked."""
        for shard in self.passes.kept:
            if version(shard.url) != shard.identity:
                self.passes.renew()
                raise ChangedError("the shard was replaced since the table was opened.", shard=shard.url, hint="Ask again.")

    # what the parts of this package use

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of SQL that was made from conditions and expressions of this table."""
        return self._run(lambda cursor: cursor.execute(query).fetchall())

    def fetched_arrow(self, query: str) -> pa.Table:
        """The same as an Arrow table."""
        return self._run(lambda cursor: cursor.sql(query).to_arrow_table())

    def give(self, name: str) -> None:
        """See to it that a relation is there that is made when it is asked for first: `objects`, or `_words`."""
        if name == "objects":
            self.make(objects.parts(self.fields))
        elif name == "_words":
            self.make(self.possible[each] for each in sql.texts(self.possible))
        else:
            return
        with self._lock:
            base = self._ready()
            if name not in self._given:
                self._fill(base, name)
                self._given.add(name)

    def type_of(self, expression: str) -> str:
        """The type of an expression that `expression` made: `bigint`, `varchar`, `struct`, …"""
        relation = self._translate(lambda: self._ready().cursor().sql(f"SELECT {expression} FROM records LIMIT 0"))
        return str(relation.types[0].id)

    def remember(self, name: Any, make: Callable[[], T]) -> T:
        """What `make` gives, kept until columns or tags change."""
        self._renew()
        if name in self._cached:
            return cast(T, self._cached[name])
        version, found = self.passes.version, make()
        if version == self.passes.version:
            self._cached[name] = found
        return found

    # inside

    def _ready(self) -> duckdb.DuckDBPyConnection:
        self.make([NAMES])
        self.passes.are_gone(self._asked.stop)
        self.passes.prove(self._asked.stop)
        with self._lock:
            self._renew()
            if self._base is None:
                with self.passes.lock:
                    self._base = database.connect(self.passes.kept, self._limit)
                self._fill_tags(self._base)
                for name in self._given:
                    self._fill(self._base, name)
            return self._base

    def _read(self, read: Callable[[duckdb.DuckDBPyConnection, str, dict[str, Part]], Question], text: str) -> Question:
        """A query, a condition or an expression that was read."""
        base = self._ready().cursor()
        return self._translate(lambda: read(base, text, self.possible))

    def _renew(self) -> None:
        """Forget what was known of fewer columns."""
        with self._lock:
            if self._seen != self.passes.version:
                self._seen, self._base = self.passes.version, None
                self._cached.clear()

    def _fill_tags(self, base: duckdb.DuckDBPyConnection) -> None:
        if lines := self.tags.lines():
            schema = pa.schema([(name, pa.string()) for name in sql.COLUMNS["tags"]])
            base.from_arrow(pa.Table.from_pylist(lines, schema)).insert_into("tags")

    def retag(self) -> None:
        """Take the tags as they are kept now."""
        with self._lock:
            if self._base is not None:
                self._base.execute("DELETE FROM tags")
                self._fill_tags(self._base)
            self._cached.clear()

    def _with_tags(self) -> duckdb.DuckDBPyConnection:
        """The view with a column `tag`: a record's tags with commas between."""
        base = self._ready()
        joined = "(SELECT shard, key, string_agg(DISTINCT tag, ',' ORDER BY tag) AS tag FROM tags GROUP BY shard, key)"
        base.execute(f"CREATE OR REPLACE VIEW records AS SELECT r.*, t.tag FROM _records r LEFT JOIN {joined} t USING (shard, key)")
        return base

    def _missing(self, name: str, asked: Question) -> None:
        """`UsageError` for a name that is no column."""
        if not self._partial:
            raise UsageError(f"there is no column {name}.", hint=self._hint(name, asked), code="E_QUERY")

    def _hint(self, name: str, asked: Question | None = None) -> str:
        """What there is instead of a column: of the records, and of what else is asked."""
        if name == "tag":
            return "Write tag:x, tag != 'x', tag in ('x', 'y'), tag like 'x%', tag is null."
        read = sql.relations(asked.tree) if asked else {"records"}
        if name.startswith("objects.") and "objects" not in read:
            return f"Write any_object({name.partition('.')[2]} = …)."
        near = self.nearest(name) if "records" in read else []
        if name in near:
            each = ".".join(map(sql.quoted_name, name.split(".")))
            return f"It is a path: write it without quotes, or with quotes around each name, {each}."
        others = {each: sql.COLUMNS[each] for each in sorted(read & {*sql.COLUMNS})}
        close = [one for each in others.values() for one in difflib.get_close_matches(name.rpartition(".")[2], each, 1)]
        close += near
        hint = [f"Nearest: {', '.join(dict.fromkeys(close))}."] if close else []
        if not close and "records" in read:
            hint = [f"There are {', '.join(self.possible)}."]
        return " ".join([*hint, *(f"Columns of {each}: {', '.join(names)}." for each, names in others.items())])

    def _sql_of(self, asked: Question, kind: Kind) -> str:
        self.make(asked.parts)
        for name in sorted(sql.relations(asked.tree)):
            self.give(name)
        base = self._ready().cursor()
        types = self.remember("types", self._types)
        missing = partial(self._missing, asked=asked)
        return self._translate(lambda: finish(base, asked, types, kind=kind, missing=missing, holds=self._holds), asked)

    def _holds(self, test: str) -> bool:
        """Whether a record fits an expression of SQL over columns that are made."""
        return self.remember(("holds", test), lambda: bool(self.fetch(f"SELECT 1 FROM _records WHERE {test} LIMIT 1")))

    def _fill(self, base: duckdb.DuckDBPyConnection, name: str) -> None:
        if name == "_words":
            words.fill(base, self.fields, self._limit or database.memory_limit())
        else:
            base.from_arrow(objects.rows(self.passes.kept, self.classes)).insert_into("objects")

    def _types(self) -> dict[str, Any]:
        relation = self._ready().cursor().sql("SELECT * FROM _records LIMIT 0")
        return dict(zip(relation.columns, relation.types, strict=True))

    def _run(self, take: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        while True:
            cursor, version = self._asked.cursor(self._ready()), self.passes.version
            try:
                return self._answer(partial(take, cursor), cursor)
            except TarvizError:  # files that got more columns meanwhile, here or in another process, are gone
                if version == self.passes.version and not self.passes.are_gone(self._asked.stop):
                    raise

    def _answer(self, work: Callable[[], T], cursor: duckdb.DuckDBPyConnection) -> T:
        return self._translate(lambda: answer(work, cursor.interrupt, self.timeout, self._asked.stop))

    def _translate(self, work: Callable[[], T], asked: Question | None = None) -> T:
        try:
            return run_known(work)
        except (duckdb.Error, RecursionError, ModuleNotFoundError) as error:  # the last of `.pl()`
            hinted = partial(self._hint, asked=asked)
            raise refusals.translate(error, hinted, asked.unknown if asked else None) from error

    def nearest(self, name: str) -> list[str]:
        """Up to three columns or paths that are spelled like `name`."""
        words = [*self.possible, *paths.inside(database.structures(self.passes.kept))]
        last = {word.rpartition(".")[2]: word for word in words}
        close = difflib.get_close_matches(name, words, 3, 0.5)
        close += [last[each] for each in difflib.get_close_matches(name.rpartition(".")[2], list(last), 3, 0.6)]
        return list(dict.fromkeys(close))[:3]

    def _in_order(self, table: pa.Table) -> ChosenRows:
        rows = self.place(table)
        order = np.lexsort((rows.n, rows.shard))
        return ChosenRows(self.urls, rows.shard[order], rows.n[order])

    def place(self, table: pa.Table) -> ChosenRows:
        """Where the records of an answer with the columns `shard` and `n` lie."""
        names = pa.array([redact(url) for url in self.urls], pa.string())
        place = pc.index_in(table.column("shard").cast(pa.string()), value_set=names)
        score = table.column("score").to_numpy().astype(np.float64) if "score" in table.column_names else None
        return ChosenRows(self.urls, place.to_numpy().astype(np.int32), table.column("n").to_numpy(), score)

    def __repr__(self) -> str:
        return f"<Table of {len(self):,} records in {len(self.urls)} shard(s): {', '.join(self.possible)}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return rich_form(self)
