"""A block's records as serialised Examples, all at once: everything but the payloads is built as NumPy columns.

Records whose Examples have the same layout (fields, and widths of all length numbers) share one table of header bytes,
a row each; its rows then become `bytes` in one call. Payloads are only pointed at, or copied once where they are short.
"""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress, groupby, pairwise
from typing import Any

import numpy as np

from tarviz.formats.example_columns import (
    BufferColumn,
    Head,
    Ints,
    Item,
    NumberColumn,
    Payloads,
    bytes_features,
    choose,
    int64_features,
    lengths,
    width_of,
)
from tarviz.formats.features import KEY, LARGEST, check_kinds, example, field_feature, kind_of, name_of, order, parse_integer, varint
from tarviz.model.errors import LimitError, SchemaError, TarvizError
from tarviz.model.types import Block, Buffer, OnError

JOIN_BELOW = 16384  # bytes of an Example; above, copying it costs more than handling its pieces
COPY_BELOW = 4096  # bytes of a payload among longer ones, on average
INLINE = 32  # bytes of a payload; up to here a column of the table is cheaper than a piece of its own
FEW = 6  # records of one layout; below, one after the other is quicker than a table
MUCH = 1 << 20  # … but joins their bytes, several times: not with so many


@dataclass(slots=True, eq=False)
class Examples:
    """Serialised Examples in record order.

    `rows` are the numbers of their records in the block (all of it, unless faulty ones were skipped), `size` the bytes
    of each. Short Examples lie in `whole`; where they are long it is None and `pieces` holds the buffers that make up
    each one, views on the block among them. `faults` are the errors of the records left out.
    """

    rows: Ints
    size: Ints
    whole: list[bytes] | None
    pieces: list[tuple[Buffer, ...]] = field(default_factory=list)
    faults: list[TarvizError] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.size)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.whole) if self.whole is not None else map(b"".join, self.pieces)


def encode_block(
    block: Block,
    types: Mapping[str, str] | None = None,
    *,
    key: bool = True,
    fields: Collection[str] | None = None,
    on_error: OnError = "raise",
) -> Examples:
    """All records of a block as `encode` would write them, many times faster.

    `fields` names the extensions to write (None: all); a record that lacks one is a `SchemaError`. A field that is no
    number where `types` (or `kind_of`) wants one is a `DataError`. Errors name record and shard; `on_error="skip"` leaves
    the record out and keeps the error in `faults`.
    """
    check_kinds(types or {})
    used = sorted((ext for ext in block.exts if fields is None or ext in fields), key=order)
    if key and KEY in used:
        raise SchemaError(f"a field is named {KEY!r} like the key's feature.", shard=block.shard, hint="Pass key=False or rename it.")
    count = len(block)
    whole = int(block.size.sum()) < JOIN_BELOW * count
    work = _Work(block, types or {}, key, whole, np.zeros(count, np.int64), [b""] * count)
    with _collector_at_rest():
        for names, at, records in _sets(block, used):
            if missing := sorted(set(fields or ()).difference(names)):
                work.lack(missing[0], records)
            else:
                work.add(names, at, records)
    rows, parts = np.arange(count), work.parts
    faults = [work.faults[row] for row in sorted(work.faults)]
    if faults and on_error == "raise":
        raise faults[0]
    if faults:
        rows = np.delete(rows, sorted(work.faults))
        parts = [parts[row] for row in rows.tolist()]
    return Examples(rows, work.size[rows], parts if whole else None, [] if whole else parts, faults)


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """No garbage collection inside: thousands of views made at once would have it go through them again and again."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _sets(block: Block, used: Sequence[str]) -> Iterator[tuple[list[str], Ints, Ints]]:
    """For each set of fields that records have: names in writing order, member rows [records, fields], records."""
    if len(block) == 0:
        return
    groups: dict[bytes, Sequence[int]] = {}
    if block.fields is not None:
        groups[block.ext[: block.rows[1]].tobytes()] = range(len(block))
    else:
        listed: dict[bytes, list[int]] = {}
        for record, (first, last) in enumerate(pairwise(block.rows.tolist())):
            listed.setdefault(block.ext[first:last].tobytes(), []).append(record)
        groups.update(listed)
    rank = {ext: at for at, ext in enumerate(used)}
    for codes, members in groups.items():
        names = [block.exts[code] for code in np.frombuffer(codes, block.ext.dtype)] if codes else []
        columns = sorted((rank[name], column) for column, name in enumerate(names) if name in rank)
        records = np.asarray(members, np.int64)
        at = block.rows[records][:, None] + np.array([column for _, column in columns], np.int64)
        yield [used[place] for place, _ in columns], at, records


@dataclass(slots=True)
class _Work:
    """One block being encoded; `size`, `parts` and `faults` fill up by record."""

    block: Block
    types: Mapping[str, str]
    key: bool
    whole: bool
    size: Ints
    parts: list[Any]
    faults: dict[int, TarvizError] = field(default_factory=dict)

    def fail(self, record: int, error: TarvizError) -> None:
        key = self.block.keys[record].decode("utf-8", "surrogateescape")
        self.faults.setdefault(record, error.at(key=key, shard=self.block.shard, records_before=self.block.first + record))

    def lack(self, name: str, records: Ints) -> None:
        for record in records.tolist():
            there = ", ".join(self.block[record])
            self.fail(record, SchemaError(f"the record lacks the field {name!r}; it has {there}.", details={"field": name}))

    def add(self, names: list[str], at: Ints, records: Ints) -> None:
        """Encode the records that have one set of fields."""
        if len(records) < FEW and int(self.block.size[at].sum()) < MUCH:
            for row, record in zip(at.tolist(), records.tolist(), strict=True):
                self.one(names, row, record)
            return
        offset, size = self.block.offset[at], self.block.size[at]
        made: dict[int, Ints | list[bytes]] = {}
        for column, name in enumerate(names):
            kind = kind_of(name, self.types)
            if kind != "bytes":
                make = self.integers if kind == "int64" else self.features
                made[column] = make(name, offset[:, column], size[:, column], records)
        good = [record not in self.faults for record in records.tolist()] if self.faults else [True]
        if not all(good):
            offset, size, records = offset[good], size[good], records[good]
            made = {at: some[good] if isinstance(some, np.ndarray) else list(compress(some, good)) for at, some in made.items()}
        if len(records):
            self.lay_out(names, offset, size, records, made)

    def one(self, names: list[str], row: list[int], record: int) -> None:
        """Encode one record by itself."""
        block = self.block
        fields: dict[str, Any] = {KEY: block.keys[record]} if self.key else {}
        for name, at in zip(names, row, strict=True):
            fields[name] = block.data[block.offset[at] : block.offset[at] + block.size[at]]
        try:
            data = example((name_of(name), field_feature(name, fields[name], self.types)) for name in sorted(fields, key=order))
            self.size[record], self.parts[record] = len(data), data if self.whole else (data,)
        except TarvizError as error:
            self.fail(record, error)

    def integers(self, name: str, offset: Ints, size: Ints, records: Ints) -> Ints:
        """The numbers of an int64 field. Plain digits are read column by column, anything else one by one."""
        data, values = self.block.array, np.zeros(len(offset), np.int64)
        width = int(size[0])
        if 0 < width < 19 and (size == width).all():
            digits = data[offset[:, None] + np.arange(width)] - np.uint8(48)
            if (digits < 10).all():
                values += digits @ 10 ** np.arange(width - 1, -1, -1, dtype=np.int64)
                return values
        good = size > 0
        if good.any():
            blank = data[np.where(good, offset + size - 1, 0)]
            length = size - ((blank == 10) | (blank == 32))  # the usual line end
            good = (length > 0) & (length < 19)
            for column in range(int(length[good].max(initial=0))):
                here = length > column
                digit = data[np.where(here, offset + column, 0)] - np.uint8(48)
                good &= ~here | (digit < 10)
                values = np.where(here, values * 10 + digit, values)
        for at in np.flatnonzero(~good).tolist():
            try:
                values[at] = parse_integer(bytes(self.block.data[offset[at] : offset[at] + size[at]]), name)
            except TarvizError as error:
                self.fail(int(records[at]), error)
        return values

    def features(self, name: str, offset: Ints, size: Ints, records: Ints) -> list[bytes]:
        """The serialised features of a field, made one by one."""
        made = [b""] * len(offset)
        for at, (begin, length) in enumerate(zip(offset.tolist(), size.tolist(), strict=True)):
            try:
                made[at] = field_feature(name, self.block.data[begin : begin + length], self.types)
            except TarvizError as error:
                self.fail(int(records[at]), error)
        return made

    def lay_out(self, names: list[str], offset: Ints, size: Ints, records: Ints, made: Mapping[int, Ints | list[bytes]]) -> None:
        """Measure from the inside (payload) to the outside (message), then cut, one layout after the other."""
        items: list[Item] = []
        total = np.zeros(len(records), np.int64)
        columns = [*enumerate(names), *([(-1, KEY)] if self.key else [])]
        for column, name in sorted(columns, key=lambda pair: order(pair[1])):
            ready = made.get(column)
            if column < 0:
                keys = self.block.keys
                if len(records) < len(keys):
                    keys = [keys[record] for record in records.tolist()]
                feature, content = bytes_features(lengths(keys), keys)
            elif ready is None:
                place = Payloads(offset[:, column], size[:, column])
                feature, content = bytes_features(NumberColumn.of(place.size), place)
            elif isinstance(ready, np.ndarray):
                feature, content = int64_features(ready)
            else:
                feature, content = [ready], lengths(ready)
            label = name_of(name)
            label = b"\x0a" + varint(len(label)) + label + b"\x12"
            entry = content.around(len(label))
            total += entry.around(1).values
            items += [b"\x0a", entry, label, content, *feature]
        for at in np.flatnonzero(total > LARGEST - 16).tolist():
            self.fail(int(records[at]), LimitError(f"the Example would hold {total[at]} bytes; protobuf ends at 2^31-1."))
        outer = NumberColumn.of(total)
        self.size[records] = outer.around(1).values
        self.cut([b"\x0a", outer, *items], records)

    def cut(self, items: list[Item], records: Ints) -> None:
        """Sort the records by layout and cut the Examples of each."""
        code: Ints | None = None  # equal for records whose numbers all have equal widths
        for item in items:
            if isinstance(item, NumberColumn) and width_of(item.low) < width_of(item.high):
                # Numbering the codes afresh keeps them small however many numbers there are.
                code = item.width if code is None else np.unique(code * 16 + item.width, return_inverse=True)[1]
        if code is None:
            self.put(self.columns(items, len(records)), records)
            return
        for one in np.unique(code):
            chosen = np.flatnonzero(code == one)
            self.put(self.columns([choose(item, chosen) for item in items], len(chosen)), records[chosen])

    def put(self, columns: Sequence[BufferColumn], records: Ints) -> None:
        """Make Examples of columns: joined, or with nothing joined to the long payloads."""
        parts: list[Any]
        if self.whole:
            parts = list(map(b"".join, zip(*(column.buffers for column in columns), strict=False)))
        else:
            runs = [[column.buffers for column in run] for _, run in groupby(columns, lambda column: id(column) if column.long else 0)]
            joined = [run[0] if len(run) == 1 else map(b"".join, zip(*run, strict=False)) for run in runs]
            parts = list(zip(*joined, strict=False))
        if len(records) == len(self.parts):
            self.parts = parts
        else:
            for record, part in zip(records.tolist(), parts, strict=True):
                self.parts[record] = part

    def columns(self, items: Sequence[Item], count: int) -> list[BufferColumn]:
        """The items of `count` records of one layout as columns of buffers: header bytes and payloads in turn."""
        columns: list[BufferColumn] = []
        head = Head()
        for item in items:
            column: BufferColumn | None = None
            if isinstance(item, bytes):
                head.literal(item)
            elif isinstance(item, NumberColumn):
                head.number(item)
            elif isinstance(item, Payloads):
                width = int(item.size[0])
                if width <= INLINE and (item.size == width).all():
                    head.table(self.block.array[item.begin[:, None] + np.arange(width)])
                else:
                    data, ends = self.block.data, (item.begin + item.size).tolist()
                    views = [data[first:last] for first, last in zip(item.begin.tolist(), ends, strict=True)]
                    column = BufferColumn(views, not self.whole and int(item.size.sum()) >= COPY_BELOW * count)
            else:
                column = BufferColumn(item)
            if column is not None:
                columns += [BufferColumn(head.rows(count)), column]
                head = Head()
        return [*columns, BufferColumn(head.rows(count))] if head.template else columns
