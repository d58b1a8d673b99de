"""Payloads as cells of a table: TSV that reads back byte for byte, CSV, JSON lines, Parquet."""

from __future__ import annotations

import io
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tarviz.formats.example_fields import json_text
from tarviz.model.errors import DataError, require
from tarviz.model.types import PLACES, to_bytes, to_text

MISSING = "\\N"
CLASSES = frozenset(("cls", "cls2", "class", "count", "index", "inx", "id", "__index__"))
TREES = frozenset(("json", "jsn"))
TEXTS = frozenset(("txt", "text", "transcript", "caption", "label", "wnid", "xml", "csv", "tsv", "yaml", "yml", "html"))
_INT64 = range(-(2**63), 2**63)
_ROWS = 4096  # of a Parquet row group

# C0, C1, delete, the backslash, characters that turn the direction of text, and bytes that are not UTF-8.
_SPECIAL = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\udc80-\udcff]")
_ESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|(.))", re.DOTALL)
_LETTERS = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"}
_BACK = {"t": b"\t", "n": b"\n", "r": b"\r", "\\": b"\\"}
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

Cell = bytes | None
Row = Sequence[Cell]


def escape(payload: bytes) -> str:
    r"""A payload as a TSV cell: one line, no control character, every byte to be had back by `unescape`.

    >>> escape(b"a\tb\\ \xff")
    'a\\tb\\\\ \\xff'
    """
    return _SPECIAL.sub(_letter, to_text(payload))


def _letter(match: re.Match[str]) -> str:
    char = match[0]
    if char in _LETTERS:
        return _LETTERS[char]
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


def unescape(cell: str) -> bytes | None:
    r"""The payload that a TSV cell says; None for a field that was missing.

    >>> unescape("a\\tb\\\\ \\xff"), unescape("\\N")
    (b'a\tb\\ \xff', None)
    """
    if cell == MISSING:
        return None
    parts: list[bytes] = []
    place = 0
    for match in _ESCAPED.finditer(cell):
        parts.append(to_bytes(cell[place : match.start()]))
        parts.append(_letter_of(match))
        place = match.end()
    return b"".join([*parts, to_bytes(cell[place:])])


def _letter_of(match: re.Match[str]) -> bytes:
    if match[1]:
        return bytes([int(match[1], 16)])
    return chr(int(match[2], 16)).encode("utf-8", "surrogatepass") if match[2] else _BACK.get(match[3], to_bytes(match[0]))


class TableWriter(ABC):
    """A table being written: rows in, bytes out."""

    def head(self) -> bytes:
        return b""

    @abstractmethod
    def row(self, cells: Row) -> bytes: ...

    def end(self) -> bytes:
        return b""


class Tsv(TableWriter):
    """Tabs between cells; `\\N` stands for what is missing."""

    def __init__(self, titles: Sequence[str]) -> None:
        self.titles = titles

    def head(self) -> bytes:
        return b"\t".join(escape(to_bytes(title)).encode() for title in self.titles) + b"\n"

    def row(self, cells: Row) -> bytes:
        return "\t".join([MISSING if cell is None else escape(cell) for cell in cells]).encode() + b"\n"


class Csv(TableWriter):
    """Commas between cells (RFC 4180); nothing stands for what is missing, `""` for what is empty.

    `safe` puts a `'` before what a spreadsheet would take for a formula.
    """

    def __init__(self, titles: Sequence[str], *, safe: bool = False) -> None:
        self.titles, self.safe = titles, safe

    def head(self) -> bytes:
        return self.row([to_bytes(title) for title in self.titles])

    def row(self, cells: Row) -> bytes:
        return to_bytes(",".join(map(self._cell, cells)) or '""') + b"\n"  # an empty line is no row to those who read it

    def _cell(self, cell: Cell) -> str:
        if cell is None:
            return ""
        text = to_text(cell)
        if self.safe and _FORMULA.match(text) and not _NUMBER.fullmatch(text):
            text = f"'{text}"
        quoted = not text or text != text.strip() or any(char in text for char in ',"\n\r')
        return '"' + text.replace('"', '""') + '"' if quoted else text


class JsonLines(TableWriter):
    """One object per line: text as a string, classes as integers, JSON as it is, other bytes as `{"base64": …}`, null for missing."""

    def __init__(self, titles: Sequence[str], exts: Sequence[Sequence[str]]) -> None:
        self.titles = titles
        self._read = [_reader(each) for each in exts]

    def row(self, cells: Row) -> bytes:
        row = {title: None if cell is None else read(cell) for title, read, cell in zip(self.titles, self._read, cells, strict=True)}
        return json.dumps(row, separators=(",", ":")).encode() + b"\n"


def _reader(exts: Sequence[str]) -> Callable[[bytes], Any]:
    if all(ext.rpartition(".")[2] in CLASSES for ext in exts):
        return _class
    if all(ext.rpartition(".")[2] in TREES for ext in exts):
        return _tree
    return to_text if exts[0] in PLACES else json_text


def _class(payload: bytes) -> Any:
    number = _number(payload)
    return json_text(payload) if number is None else number


def _number(payload: bytes) -> int | None:
    text = payload[:64].strip()
    if len(payload) > 64 or not re.fullmatch(rb"[+-]?[0-9]{1,20}", text) or int(text) not in _INT64:
        return None
    return int(text)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _tree(payload: bytes) -> Any:
    try:
        return json.loads(payload, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return json_text(payload)


class Parquet(TableWriter):
    """A Parquet file: classes as int64, text and JSON as strings, everything else as binary. Needs pyarrow."""

    def __init__(self, titles: Sequence[str], exts: Sequence[Sequence[str]]) -> None:
        pyarrow, parquet = (require(module, "A Parquet file", "table", package="pyarrow") for module in ("pyarrow", "pyarrow.parquet"))
        self._arrow = pyarrow
        self._kinds = [_kind(each) for each in exts]
        types = {"int": pyarrow.int64(), "text": pyarrow.string(), "binary": pyarrow.binary()}
        self._schema = pyarrow.schema([(title, types[kind]) for title, kind in zip(titles, self._kinds, strict=True)])
        self._sink = _Taken()
        self._writer = parquet.ParquetWriter(self._sink, self._schema)
        self._rows: list[list[Any]] = []

    def head(self) -> bytes:
        return self._sink.take()

    def row(self, cells: Row) -> bytes:
        self._rows.append([_as_kind(cell, kind) for cell, kind in zip(cells, self._kinds, strict=True)])
        return self._group() if len(self._rows) >= _ROWS else b""

    def _group(self) -> bytes:
        columns = [list(column) for column in zip(*self._rows, strict=True)]
        arrays = [self._arrow.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
        self._writer.write_table(self._arrow.table(arrays, schema=self._schema))
        self._rows = []
        return self._sink.take()

    def end(self) -> bytes:
        rest = self._group() if self._rows else b""
        self._writer.close()
        return rest + self._sink.take()


def _kind(exts: Sequence[str]) -> str:
    last = {ext.rpartition(".")[2] for ext in exts}
    if last <= CLASSES:
        return "int"
    return "text" if last <= TEXTS | TREES or exts[0] in ("__key__", "__shard__") else "binary"


def _as_kind(cell: Cell, kind: str) -> Any:
    if cell is None or kind == "binary":
        return cell
    if kind == "int":
        number = _number(cell)
        if number is None:
            raise DataError(f"{cell[:40]!r} is not a 64-bit integer, which this column holds.", code="E_SCHEMA")
        return number
    try:
        return cell.decode()
    except UnicodeDecodeError:
        raise DataError(f"{cell[:40]!r} is not UTF-8, which this column holds.", code="E_SCHEMA") from None


class _Taken(io.BytesIO):
    """A file to write to, whose bytes are taken as they come; who writes counts them."""

    def take(self) -> bytes:
        data = self.getvalue()
        self.seek(0)
        self.truncate()
        return data


def parse_tsv(text: str) -> Iterator[dict[str, bytes | None]]:
    """The rows of a TSV with a header, as `tsv` writes it: column → payload, None where the field was missing.

    >>> list(parse_tsv("__key__\\tcls\\na/0\\t7\\na/1\\t\\\\N\\n"))
    [{'__key__': b'a/0', 'cls': b'7'}, {'__key__': b'a/1', 'cls': None}]
    """
    lines = text.split("\n")
    titles = [to_text(unescape(cell) or b"") for cell in lines[0].split("\t")]
    for line in lines[1:]:
        if line:
            yield dict(zip(titles, map(unescape, line.split("\t")), strict=True))
