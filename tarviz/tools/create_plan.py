"""Plans of tars: a table whose header names extensions, with a row for each record."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tarviz import stores
from tarviz.model.errors import UsageError, require, safe
from tarviz.model.types import URL, to_bytes, to_text
from tarviz.model.urls import without_query
from tarviz.model.wording import plural
from tarviz.tools import field_selection, table_formats
from tarviz.tools.plain_json import plain_json
from tarviz.tools.whole_file import contents

_LARGEST = 1 << 30  # bytes of a plan
_CELL = 64 << 20
_TITLES = 200  # characters of a header that an error shows
_LOOKED = 100  # paths
_PATH = 4096  # bytes; Linux has no longer one


@dataclass(slots=True)
class Planned:
    """One record to write: its key, and (extension, file or bytes) of each field."""

    key: bytes
    fields: list[tuple[bytes, URL | bytes]]
    place: str
    split: str = ""


def read_plan(
    url: str, delimiter: str | None, template: str, base: str, fields: Mapping[str, str], *, check: bool
) -> tuple[list[Planned], list[str]]:
    """The records of a plan, and the labels that `cls` numbers where one was text; with `check` every local file it names must be there.

    `fields` are titles for some columns, by the titles that they have; the others are left out then.
    """
    name = without_query(url)[0].lower()
    if name.endswith((".xlsx", ".xls", ".json", ".jsonl")):
        raise UsageError("a plan is a table in CSV, TSV or Parquet.", shard=url, hint="Save it as CSV.")
    delimiter = {"\\t": "\t", None: ""}.get(delimiter, delimiter) or ("," if name.endswith(".csv") else "\t")
    rows = _rows(url, delimiter)
    titles = _titles([title if delimiter == "\t" else title.strip() for title in next(rows, (0, []))[1]], fields, url)
    make = field_selection.key_template(template.replace("{record", "{n"))
    records: list[Planned] = []
    for number, (line, cells) in enumerate(rows):
        where = f"line {line}"
        if len(cells) != len(titles):
            raise UsageError(f"{where} of the plan has {plural(len(cells), 'cell')}, the header {len(titles)}.", shard=url)
        found = {title: cell for title, cell in zip(titles, cells, strict=True) if title}
        key = found.pop("__key__", None) if "__key__" in found else make(b"", url, number)
        if not key:
            raise UsageError(f"{where} of the plan has no key.", shard=url)
        contents: list[tuple[bytes, URL | bytes]] = []
        for title, cell in found.items():
            if cell is not None:
                contents.append((to_bytes(title.removeprefix("@")), _file(cell, base, url, where, check) if title[0] == "@" else cell))
        if check:
            field_selection.check_new_key(key, key)
        records.append(Planned(key, contents, where))
    return records, [] if delimiter == "\t" and "__key__" in titles else _number_labels(records)  # `tsv` writes fields as they are


def _titles(titles: list[str], fields: Mapping[str, str], url: str) -> list[str]:
    """What each column becomes, "" for one that is left out."""
    if not any(titles):
        raise UsageError("the plan is empty.", shard=url, hint="Its first line names the fields: __key__, cls, @jpg.")
    if lacking := fields.keys() - set(titles):
        text = f"the plan has no column {min(lacking)!r}; it has {', '.join(map(safe, titles))}."
        raise UsageError(text, shard=url)
    if fields:
        titles = [title if title == "__key__" else fields.get(title, "") for title in titles]
    kept = [title for title in titles if title]
    named = [title.removeprefix("@").lower() if title != "__key__" else title for title in kept]
    if len(set(named)) < len(named) or not all(re.fullmatch(r"[^/\0]*[^/\0.]", name) and not name.startswith(".") for name in named):
        raise UsageError(f"the plan's header {safe(' '.join(kept))[:_TITLES]!r} names no field, or one twice.", shard=url)
    return titles


def _number_labels(records: list[Planned]) -> list[str]:
    """Number the labels of the field `cls` where one is text, in place; returns them, sorted: a label's place is its number."""
    cells = {content for record in records for ext, content in record.fields if ext.lower() == b"cls" and isinstance(content, bytes)}
    whole = {cell: re.fullmatch(rb"\s*([+-]?[0-9]+)(\.0*)?\s*", cell) for cell in cells}  # 3.0: pandas, where a cell was empty
    labels = [] if all(whole.values()) else sorted(cells)
    number = {label: b"%d" % at for at, label in enumerate(labels)} or {cell: found[1] for cell, found in whole.items() if found}
    for record in records:
        record.fields = [
            (ext, number[content] if ext.lower() == b"cls" and isinstance(content, bytes) else content) for ext, content in record.fields
        ]
    return [to_text(label) for label in labels]


def paths_in(records: list[Planned], folders: list[str]) -> Iterator[str]:
    """How to take files: of each field whose text is a path in every record, and in one of the first that of a file that is there."""
    cells: dict[str, list[str]] = {}
    for record in records:
        for ext, content in record.fields:
            cells.setdefault(to_text(ext), []).append(to_text(content) if isinstance(content, bytes) and len(content) < _PATH else "")
    for column, names in cells.items():
        if not all(os.path.splitext(name)[1] and "\0" not in name for name in names):
            continue
        folder = next((place for place in folders if any(os.path.isfile(_find_file(place, name)) for name in names[:_LOOKED])), None)
        if folder is not None:
            ending = safe(Counter(os.path.splitext(name)[1][1:].lower() for name in names).most_common(1)[0][0])
            more = f" -C {safe(folder)}" if folder not in ("", folders[0]) else ""
            how = f"--as @{ending}={safe(column)}{more} takes the files"
            yield f"{safe(column)} holds paths of files, and their text was written; {how}, --as cls=COLUMN the labels beside them."


def _rows(url: str, delimiter: str) -> Iterator[tuple[int, list[Any]]]:
    """Lines with their numbers: the header as text, then cells as bytes, None for what is not there."""
    data = contents(url, "the plan", _LARGEST)
    if without_query(url)[0].lower().endswith(".parquet"):
        return _parquet(data)
    return _table(data.decode("utf-8", "surrogateescape").removeprefix("\ufeff"), delimiter, url)


def _parquet(data: bytearray) -> Iterator[tuple[int, list[Any]]]:
    """The rows of a Parquet file; numbers as text, lists and objects as JSON, of pictures the bytes."""
    pyarrow, parquet = (require(module, "A plan in Parquet", "table", package="pyarrow") for module in ("pyarrow", "pyarrow.parquet"))
    try:
        file = parquet.ParquetFile(pyarrow.BufferReader(data))
    except pyarrow.ArrowInvalid as error:
        raise UsageError(f"this is no Parquet file: {error}.") from error
    yield 0, list(file.schema_arrow.names)
    rows = (row for batch in file.iter_batches(1024) for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
    for number, row in enumerate(rows, 1):
        yield number, [_cell(value) for value in row]


def _cell(value: Any) -> bytes | None:
    if isinstance(value, dict) and value.keys() == {"bytes", "path"}:  # as datasets keeps pictures and sounds
        if value["bytes"] is None and value["path"] is not None:
            hint = "Take the files: write the paths into a column of their own, titled @jpg."
            raise UsageError(f"the table has the path {safe(value['path'])} and not the bytes of it.", hint=hint)
        value = value["bytes"]
    if value is None or isinstance(value, bytes):
        return value
    if value != value:  # NaN, where pandas had nothing
        return None
    return to_bytes(json.dumps(plain_json(value), ensure_ascii=False) if isinstance(value, list | dict) else str(value))


def _table(text: str, delimiter: str, url: str) -> Iterator[tuple[int, list[Any]]]:
    tabs = delimiter == "\t"
    for at, (line, row) in enumerate(_tabs(text) if tabs else _csv(text, delimiter, url)):
        if at == 0:
            _one_column(row, url)
            yield line, row
        else:
            yield line, [table_formats.unescape(cell) if tabs else to_bytes(cell) if cell else None for cell in row]


def _tabs(text: str) -> Iterator[tuple[int, list[str]]]:
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return ((number, line.split("\t")) for number, line in enumerate(lines, 1) if line)


def _csv(text: str, delimiter: str, url: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    csv.field_size_limit(_CELL)
    try:
        yield from ((reader.line_num, row) for row in reader if row)
    except csv.Error as error:
        raise UsageError(f"line {reader.line_num} of the plan cannot be read: {error}.", shard=url) from error


def _one_column(titles: list[str], url: str) -> None:
    """`UsageError` for a header that is not cut where its cells end: spreadsheets write semicolons where the comma is for decimals."""
    if len(titles) == 1 and (mark := re.search(r"[;,|\t]", titles[0])):
        written = mark[0].replace("\t", "\\t")
        text = f"the plan's header is one title, {safe(titles[0])[:_TITLES]!r}."
        raise UsageError(text, shard=url, hint=f"-d '{written}' says what stands between the cells.")


def _find_file(base: str, name: str) -> str:
    """The path of a file that a plan names; one written on Windows too."""
    path = os.path.join(base, name)
    return path if "\\" not in name or os.path.isfile(path) else os.path.join(base, name.replace("\\", "/"))


def _file(cell: bytes, base: str, plan: str, where: str, check: bool) -> URL:
    name = to_text(cell)
    if "://" not in name:
        if plan != "-" and not stores.is_local(plan):
            raise UsageError(f"{where}: a plan from another machine names {name!r}, a file of this one.", shard=plan)
        name = _find_file(base, name)
        if check and not os.path.isfile(name):
            hint = "Paths are relative to -C, or to where you are."
            raise UsageError(f"{where}: there is no file {safe(name)!r}.", shard=plan, hint=hint)
    return URL(name)
