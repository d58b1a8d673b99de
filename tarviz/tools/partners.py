"""What `join` finds for keys: the records of other shards, or the rows of a table; neither is held in memory."""

from __future__ import annotations

import csv
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, TypeAlias, TypeVar

import numpy as np

from tarviz import stores
from tarviz.model.errors import Fault, SchemaError, TarvizError, UsageError, redact, safe
from tarviz.model.types import URL, Duplicates, to_bytes, to_text
from tarviz.model.urls import without_query
from tarviz.read.headers import packing
from tarviz.read.index import Index
from tarviz.read.picked import pick
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.table.database import ALONE, memory_limit, require
from tarviz.table.facets import literal
from tarviz.table.refusals import in_our_words
from tarviz.table.sql import quoted_name
from tarviz.tools.plain_json import plain_json
from tarviz.tools.sort_table import hashes
from tarviz.tools.spool import spool_shard
from tarviz.tools.table_formats import CLASSES, TEXTS, unescape

Fields: TypeAlias = Mapping[str, Any]
"""What a partner brings, by extension: bytes, or columns (a dict) that go into JSON."""

Found: TypeAlias = list[Callable[[], Fields]]
"""Partners of one key, each made when it is looked at; `SchemaError` where a cell cannot be what its field is."""

T = TypeVar("T")

_AT_ONCE = 8 << 20  # bytes of partners held at a time
_ROWS = range(16, 4096)  # looked for at a time
_CSV = "SELECT * FROM read_csv({place}, auto_detect=false, columns={{{columns}}}, header=true, max_line_size=67108864, "
_LINES = "SELECT json FROM read_ndjson_objects({place}, maximum_object_size=67108864)"
_TABLES = {
    ".parquet": "SELECT * FROM read_parquet({place})",
    ".csv": _CSV + "delim=',', quote='\"', escape='\"')",
    ".tsv": _CSV + "delim='\t', quote='', escape='', nullstr='\\N')",
    ".jsonl": _LINES,
    ".ndjson": _LINES,
}
_ENDING = r"'^(?:\./)*((?:.*/)?[^/.]+)\.[^/]*$'"
_WHOLE, _NUMBER = r"-?(0|[1-9]\d{0,17})", r"-?(0|[1-9]\d{0,14})(\.\d+)?([eE][+-]?\d+)?"


class OtherShards:
    """The records of other shards, found by their index: read in the order of the keys that are asked for, neighbours at once.

    What has no places to go to (a pipe, a packed shard) goes through a file in `folder`. `names` chooses fields and renames them.
    `used` says of each record whether somebody asked for it.
    """

    def __init__(self, urls: Sequence[URL], options: ReadOptions, folder: str, names: Mapping[str, str] | None, report: ReadReport) -> None:
        strict = options.strict and options.on_error == "raise"
        self._options, self._names, self._report = replace(options, where="", keys=(), strict=strict), names, report
        places = {self._direct(url, os.path.join(folder, str(at))): url for at, url in enumerate(urls)}
        try:
            self._index = Index(list(places), self._options)
        except TarvizError as error:
            error.shard = places.get(URL(error.shard or ""), error.shard)
            raise
        for place, shard in zip(places, self._index.shards, strict=True):
            for found in [*shard.warnings, *([shard.error] if shard.error else [])]:
                report.add(Fault(found["code"], found["message"], places[place], found.get("key")), skipped=found is shard.error)
        hashed = np.concatenate([shard.hash for shard in self._index.shards])
        self._order = np.argsort(hashed, kind="stable")
        self._sorted = hashed[self._order]
        self.used = np.zeros(len(hashed), np.bool_)

    def _direct(self, url: URL, spool: str) -> URL:
        if url != "-" and stores.of(url).stat(url).ranges and packing(url) is None:
            return url
        return spool_shard(url, spool, self._options, self._report).url

    def of(self, keys: Sequence[bytes]) -> Iterator[Found]:
        """For each key those it is the key of, in their order. Several are not to be looked at."""
        wanted = hashes(keys)
        bounds = zip(np.searchsorted(self._sorted, wanted).tolist(), np.searchsorted(self._sorted, wanted, "right").tolist(), strict=True)
        alike = (self._order[low:high].tolist() for low, high in bounds)
        for part in self._parts(self._of_key(some, key) for some, key in zip(alike, keys, strict=True)):
            records = dict(self._read(sorted({some[0] for some in part if len(some) == 1})))
            for some in part:
                yield [partial(records.__getitem__, number) for number in some]

    def _of_key(self, numbers: list[int], key: bytes) -> list[int]:
        """Those of the key itself, not only of its hash."""
        some = [number for number in numbers if (at := self._at(number))[0].key(at[1]) == key]
        self.used[some] = True
        return one(some, self._options.duplicates)

    def _at(self, number: int) -> tuple[Any, int]:
        shard, record = self._index.locate(number)
        return self._index.shards[shard], record

    def _parts(self, found: Iterator[list[int]]) -> Iterator[list[list[int]]]:
        """As many at a time as memory is to hold."""
        part: list[list[int]] = []
        size = 0
        for some in found:
            part.append(some)
            for shard, record in map(self._at, some):
                low, high = shard.span(record)
                size += high - low
            if size > _AT_ONCE:
                yield part
                part, size = [], 0
        yield part

    def _read(self, numbers: Sequence[int]) -> Iterator[tuple[int, Fields]]:
        for shard, some in groupby(numbers, lambda number: self._index.locate(number)[0]):
            ours = list(some)
            rows = [self._index.locate(number)[1] for number in ours]
            records = pick(self._index.urls[shard], self._index.shards[shard], rows, self._options, self._report)
            for number, record in zip(ours, records, strict=True):
                names = {ext: ext for ext in record} if self._names is None else self._names
                yield number, {names[ext]: record[ext] for ext in record if ext in names}


def one(some: list[T], duplicates: Duplicates) -> list[T]:
    """The first or the last of some, if that is asked for, else all."""
    return some if duplicates == "error" else some[:1] if duplicates == "first" else some[-1:]


def is_table(url: str) -> bool:
    """Whether a name is that of a table: CSV, TSV, JSON lines, Parquet, packed by gzip or not.

    >>> is_table("labels.csv.gz"), is_table("a.tar")
    (True, False)
    """
    return _ending(url) in _TABLES


def _ending(url: str) -> str:
    name = re.sub(r"\.(gz|zst|bz2|xz)$", "", without_query(url)[0].lower())
    return os.path.splitext(name)[1]


class PartnerRows:
    """The rows of a table by the column `on`, kept by DuckDB in a file of `folder`. A name with an ending (`a/1.jpg`) stands for its key.

    `names` makes fields of columns (column → extension); without it all columns but `on` are one object. `used` as of `OtherShards`.
    """

    def __init__(self, url: str, on: str | None, names: Mapping[str, str] | None, folder: str, options: ReadOptions) -> None:
        require()
        import duckdb

        self._names, self._ending, self._options = names, _ending(url), options
        place = os.path.join(folder, f"table{self._ending}")  # no name of the user's is a pattern to DuckDB
        if stores.is_local(url) and packing(URL(url)) is None:
            os.symlink(os.path.abspath(stores.local_path(URL(url))), place)
        else:
            spool_shard(URL(url), place, ReadOptions(), ReadReport())
        limit = f"{min(memory_limit(), 1 << 30) >> 20}MiB"
        self._base = duckdb.connect(os.path.join(folder, "rows"), config={**ALONE, "memory_limit": limit})
        try:
            titles = _titles(place, self._ending) if self._ending in (".csv", ".tsv") else []
            columns = ", ".join(f"{literal(title)}: 'VARCHAR'" for title in titles)  # DuckDB is to guess nothing: it may leave out lines
            scan = _TABLES[self._ending].format(place=literal(place), columns=columns)
            self._columns: list[str] = in_our_words(lambda: self._load(scan, on, url))
        except UsageError as error:
            error.message = error.message.replace(place, safe(redact(url))).partition("Possible fixes:")[0].rstrip()  # options of DuckDB
            raise error.at(shard=url) from error.__cause__
        count = self._one("SELECT count(*) FROM _rows")[0]
        self._step = min(max(_AT_ONCE // (os.path.getsize(place) // (count + 1) + 1), _ROWS.start), _ROWS.stop)
        self.used = np.zeros(count, np.bool_)

    def _load(self, scan: str, on: str | None, url: str) -> list[str]:
        """The table `_rows` of row number, key and columns, in the order of the keys; the names of these columns."""
        lines = scan.startswith("SELECT json")
        there = list(self._one(f"SELECT json_keys(json) FROM ({scan}) LIMIT 1")[0]) if lines else self._base.sql(scan).columns
        on = on or next((name for name in ("__key__", "key") if name in there), "key")
        wanted = [name for name in there if name != on] if self._names is None else list(self._names)
        for name in [on] if lines else [on, *wanted]:
            if name not in there and name.partition(".")[0] not in there:
                raise self._without(name, there, url)
        names = [quoted_name(name) if name in there else ".".join(map(quoted_name, name.split("."))) for name in [on, *wanted]]
        key, *found = (f"json ->> {literal(on)}", "json") if lines else names
        key = f"CAST({key} AS VARCHAR)"
        if self._options.key_split == "first-dot":  # else a key may hold a dot itself
            key = f"regexp_replace({key}, {_ENDING}, '\\1', 's')"
        columns = "".join(f", {text} AS c{at}" for at, text in enumerate(found))
        self._base.execute(f"CREATE TABLE _rows AS SELECT row_number() OVER () - 1 AS n, {key} AS key{columns} FROM ({scan}) ORDER BY key")
        self._kinds = [self._kind(f"c{at}") if self._ending in (".csv", ".tsv") else None for at in range(len(found))]
        return [on] if lines else wanted

    def _without(self, name: str, there: Sequence[str], url: str) -> UsageError:
        """What is said of a column that is not there; one title that holds another sign is of a table of that sign."""
        apart = {".csv": "commas", ".tsv": "tabs"}.get(self._ending) if len(there) == 1 and re.search("[;,\t|]", there[0]) else None
        hint = f"In {self._ending} cells are apart by {apart}." if apart else "--on COLUMN says where the keys are."
        return UsageError(f"the table has no column {name!r}; it has {', '.join(map(safe, there))}.", shard=url, hint=hint)

    def _kind(self, column: str) -> type | None:
        """What a column of texts holds: whole numbers, numbers, or None for texts, `007` among them."""
        fits = (f"bool_and(regexp_full_match({column}, {literal(pattern)}))" for pattern in (_WHOLE, _NUMBER))
        whole, number = self._one(f"SELECT {', '.join(fits)} FROM _rows")
        return int if whole else float if number else None

    def _all(self, query: str) -> list[tuple[Any, ...]]:
        return self._base.execute(query).fetchall()

    def _one(self, query: str) -> tuple[Any, ...]:
        return next(iter(self._all(query)), ((),))

    def of(self, keys: Sequence[bytes]) -> Iterator[Found]:
        """For each key its rows, in their order."""
        import pyarrow as pa

        for low in range(0, len(keys), self._step):
            some = [key.decode("utf-8", "replace") for key in keys[low : low + self._step]]
            self._base.register("_wanted", pa.table({"nth": range(len(some)), "key": some}))
            query = "SELECT nth, _rows.* EXCLUDE (key) FROM _wanted JOIN _rows USING (key) ORDER BY nth, n"
            found: dict[int, Found] = defaultdict(list)
            for at, number, *row in in_our_words(partial(self._all, query)):
                self.used[number] = True
                found[at].append(partial(self._fields, row))
            yield from (one(found[at], self._options.duplicates) for at in range(len(some)))

    def _fields(self, row: list[Any]) -> Fields:
        if self._ending in (".jsonl", ".ndjson"):
            values = json.loads(row[0])
            if self._names is None:
                values.pop(self._columns[0])
        else:
            cells = [unescape(cell) if self._ending == ".tsv" and isinstance(cell, str) else cell for cell in row]
            values = dict(zip(self._columns, cells, strict=True))
        if self._names is not None:
            return {ext: _payload(ext, values[name]) for name, ext in self._names.items() if values.get(name) is not None}
        kinds = dict(zip(self._columns, self._kinds, strict=True))
        return {"json": {name: _plain(name, value, kinds.get(name)) for name, value in values.items()}}


def _titles(place: str, ending: str) -> list[str]:
    """The first line of a table."""
    with open(place, encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = csv.reader(file) if ending == ".csv" else csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        titles = next(rows, [])
    if "\0" in "".join(titles):
        raise UsageError("the table is UTF-16, or no text.", hint="Save it as UTF-8: iconv -f UTF-16 -t UTF-8.")
    if not titles or len(set(titles)) < len(titles):
        raise UsageError("the first line of the table names no columns, or one twice.", hint="Its first line is key,label.")
    return titles


def _payload(ext: str, value: Any) -> bytes:
    """A cell as a field: text and bytes as they are, all else as the op `encode` makes it."""
    from tarviz.ops import Encode

    last = ext.rpartition(".")[2]
    if isinstance(value, bytes) and last in CLASSES:
        value = to_text(value)
    if isinstance(value, str) and not (last in CLASSES and not value.strip().lstrip("+-").isdecimal()):
        return to_bytes(value)
    if isinstance(value, bytes):
        return value
    return str(value).encode() if last in TEXTS else Encode(ext).apply(value)


def _plain(name: str, value: Any, kind: type | None) -> Any:
    """A cell as JSON has it."""
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            raise SchemaError(
                f"the column {name!r} holds bytes, which JSON cannot.", hint=f"Make a field of it: --as jpg={name}."
            ) from None
    return plain_json(value) if kind is None or value is None else kind(value)
