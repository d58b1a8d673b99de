"""A block's records as serialised Examples, all at once: everything but the payloads is built as NumPy columns.

Records whose Examples have the same layout (fields, and widths of all length numbers) share one table of header bytes,
a row each; its rows then become `bytes` in one call. Payloads are only pointed at, or copied once where they are short.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, pairwise, repeat
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tarviz.errors import LimitError, SchemaError, TarvizError
from tarviz.formats._features import KEY, LARGEST, TAGS, checked, example, field_feature, kind_of, name_of, order, parse_integer, varint
from tarviz.types import Block, Buffer, OnError

Ints: TypeAlias = NDArray[np.int64]

JOIN_BELOW = 16384  # bytes of an Example; above, copying it costs more than handling its pieces
INLINE = 32  # bytes of a payload; up to here a column of the table is cheaper than a piece of its own
FEW = 6  # records of one layout; below, one after the other is quicker than a table


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

    `fields` names the extensions to write (None: all). A field that is no number where `types` (or `kind_of`) wants one
    is a `DataError` with record and shard; `on_error="skip"` leaves the record out and keeps the error in `faults`.
    """
    checked(types or {})
    used = sorted((ext for ext in block.exts if fields is None or ext in fields), key=order)
    if key and KEY in used:
        raise SchemaError(f"a field is named {KEY!r} like the key's feature.", shard=block.shard, hint="pass key=False or rename it.")
    count = len(block)
    whole = int(block.size.sum()) < JOIN_BELOW * count
    work = _Work(block, types or {}, key, whole, np.zeros(count, np.int64), [b""] * count)
    for names, at, records in _sets(block, used):
        work.add(names, at, records)
    rows, parts = np.arange(count), work.parts
    faults = [work.faults[row] for row in sorted(work.faults)]
    if faults and on_error == "raise":
        raise faults[0]
    if faults:
        rows = np.delete(rows, sorted(work.faults))
        parts = [parts[row] for row in rows.tolist()]
    return Examples(rows, work.size[rows], parts if whole else None, [] if whole else parts, faults)


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


class _Numbers(NamedTuple):
    """Values to write as varints, each `width` bytes wide: int where it is the same for all, else int64 [records]."""

    values: NDArray[Any]
    width: Any


class _Payloads(NamedTuple):
    """Places in the block's data."""

    begin: Ints
    size: Ints


# What an Example is made of, in order, for many records at once: literal bytes, numbers, payloads, or ready bytes of each.
_Item: TypeAlias = "bytes | _Numbers | _Payloads | list[bytes]"


def _numbers(values: NDArray[Any]) -> _Numbers:
    least, most = len(varint(int(values.min()))), len(varint(int(values.max())))
    if least == most:
        return _Numbers(values, most)
    width = np.full(len(values), least, np.int64)
    for bits in range(7 * least, 7 * most, 7):
        width += values >= (1 << bits)
    return _Numbers(values, width)


def _bytes_features(size: Ints, payloads: _Payloads | list[bytes]) -> tuple[list[_Item], Ints]:
    """Items and sizes of bytes features with one payload each."""
    inner = _numbers(size)
    listed = _numbers(size + (1 + inner.width))
    return [TAGS["bytes"], listed, b"\x0a", inner, payloads], listed.values + (1 + listed.width)


def _int64_features(values: Ints) -> tuple[list[_Item], Ints]:
    """Items and sizes of int64 features with one number each."""
    numbers = _numbers(values.view(np.uint64))
    packed = np.zeros(len(values), np.int64) + numbers.width
    return [TAGS["int64"], _Numbers(packed + 2, 1), b"\x0a", _Numbers(packed, 1), numbers], packed + 4


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

    def add(self, names: list[str], at: Ints, records: Ints) -> None:
        """Encode the records that have one set of fields."""
        if len(records) < FEW:
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
        good = size > 0
        if good.any():
            blank = data[np.where(good, offset + size - 1, 0)]
            length = size - ((blank == 10) | (blank == 32))  # the usual line end
            good = (length > 0) & (length < 19)
            for column in range(min(int(length.max()), 18)):
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
        items: list[_Item] = []
        total = np.zeros(len(records), np.int64)
        columns = [*enumerate(names), *([(-1, KEY)] if self.key else [])]
        for column, name in sorted(columns, key=lambda pair: order(pair[1])):
            ready = made.get(column)
            if column < 0:
                keys = [self.block.keys[record] for record in records.tolist()]
                feature, content = _bytes_features(np.fromiter(map(len, keys), np.int64, len(keys)), keys)
            elif ready is None:
                feature, content = _bytes_features(size[:, column], _Payloads(offset[:, column], size[:, column]))
            elif isinstance(ready, np.ndarray):
                feature, content = _int64_features(ready)
            else:
                feature, content = [ready], np.fromiter(map(len, ready), np.int64, len(ready))
            label = name_of(name)
            label = b"\x0a" + varint(len(label)) + label + b"\x12"
            value = _numbers(content)
            entry = _numbers(content + (len(label) + value.width))
            total += entry.values + (1 + entry.width)
            items += [b"\x0a", entry, label, value, *feature]
        for at in np.flatnonzero(total > LARGEST - 16).tolist():
            self.fail(int(records[at]), LimitError(f"the Example would hold {total[at]} bytes; protobuf ends at 2^31-1."))
        outer = _numbers(total)
        self.size[records] = total + (1 + outer.width)
        self.cut([b"\x0a", outer, *items], records)

    def cut(self, items: list[_Item], records: Ints) -> None:
        code: Ints | None = None  # equal for records whose numbers all have equal widths
        for item in items:
            if isinstance(item, _Numbers) and not isinstance(item.width, int):
                # Numbering the codes afresh keeps them small however many numbers there are.
                code = item.width if code is None else np.unique(code * 16 + item.width, return_inverse=True)[1]
        if code is None:
            self.put(self.columns(items, len(records)), records)
            return
        for one in np.unique(code):
            chosen = np.flatnonzero(code == one)
            self.put(self.columns([_choose(item, chosen) for item in items], len(chosen)), records[chosen])

    def put(self, columns: Sequence[Iterable[Buffer]], records: Ints) -> None:
        rows = zip(*columns, strict=False)
        parts = list(map(b"".join, rows)) if self.whole else list(rows)
        if len(records) == len(self.parts):
            self.parts = parts
        else:
            for record, part in zip(records.tolist(), parts, strict=True):
                self.parts[record] = part

    def columns(self, items: Sequence[_Item], count: int) -> list[Iterable[Buffer]]:
        """The items of `count` records of one layout as columns of buffers: header bytes and payloads in turn."""
        columns: list[Iterable[Buffer]] = []
        head: list[bytes | NDArray[np.uint8]] = []
        for item in items:
            payloads: list[Any] | None = None
            if isinstance(item, bytes):
                head.append(item)
            elif isinstance(item, _Numbers):
                head.append(_varints(item.values, len(varint(int(item.values[0])))))
            elif isinstance(item, _Payloads):
                width = int(item.size[0])
                if width <= INLINE and (item.size == width).all():
                    head.append(self.block.array[item.begin[:, None] + np.arange(width)])
                else:
                    data, ends = self.block.data, (item.begin + item.size).tolist()
                    payloads = [data[first:last] for first, last in zip(item.begin.tolist(), ends, strict=True)]
            else:
                payloads = item
            if payloads is not None:
                columns += [_rows(head, count), payloads]
                head = []
        return [*columns, _rows(head, count)] if head else columns


def _choose(item: _Item, chosen: Ints) -> _Item:
    if isinstance(item, _Numbers):
        return _Numbers(item.values[chosen], 0)
    if isinstance(item, _Payloads):
        return _Payloads(item.begin[chosen], item.size[chosen])
    return item if isinstance(item, bytes) else [item[at] for at in chosen.tolist()]


def _varints(values: NDArray[Any], width: int) -> NDArray[np.uint8]:
    """Varints of one width as uint8 [values, width]."""
    table = np.empty((len(values), width), np.uint8)
    for column in range(width - 1):
        table[:, column] = (values & 127) | 128
        values = values >> 7
    table[:, width - 1] = values
    return table


def _rows(head: Sequence[bytes | NDArray[np.uint8]], count: int) -> Iterable[bytes]:
    """Literals and byte columns side by side, one `bytes` for each record."""
    literals = [item for item in head if isinstance(item, bytes)]
    if len(literals) == len(head):
        return repeat(b"".join(literals), count)
    width = sum(len(item) if isinstance(item, bytes) else item.shape[1] for item in head)
    table = np.empty((count, width), np.uint8)
    at = 0
    for item in head:
        span = len(item) if isinstance(item, bytes) else item.shape[1]
        table[:, at : at + span] = np.frombuffer(item, np.uint8) if isinstance(item, bytes) else item
        at += span
    rows: list[bytes] = table.view(f"V{width}").ravel().tolist()
    return rows
