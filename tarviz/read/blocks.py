"""A stream of tar bytes cut into blocks of whole records.

The record that is open at a buffer's end moves to the next buffer; nothing else is copied. A record is handed out
when it is certain to be whole: a member of another key follows, or the end-of-archive mark.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tarviz.formats.compression import Source
from tarviz.formats.member_table import joined, picked
from tarviz.formats.records import Grouped, Grouper, cut_at, is_meta, split_name, without
from tarviz.formats.tar import Scanner
from tarviz.model.errors import DataError, Fault, LimitError, TarvizError
from tarviz.model.types import Block, Members, to_bytes, to_text
from tarviz.read.read_ahead import Feed

_NOTHING = memoryview(b"")


@dataclass(frozen=True, slots=True)
class Cut:
    """How a shard is cut: what is strict, what a limit, what happens at damage."""

    strict: bool = True
    skip: bool = False
    block_size: int = 4 << 20
    max_member_bytes: int = 1 << 30
    returning: bool = False  # a key may come back later in the shard: whoever reads will gather the pieces


class Blocks(Iterator[Block]):
    """The blocks of one shard out of a source of tar bytes; `notes` and `skipped` fill while it runs.

    Ends with `DataError` behind the last certain record when the shard is damaged (not when `cut.skip`: then it
    goes on at the next valid header, and records that may have lost a member are left out and listed).
    """

    def __init__(
        self,
        source: Source,
        scanner: Scanner,
        grouper: Grouper,
        cut: Cut,
        *,
        first: int = 0,
        interrupt: Callable[[], None] | None = None,
        ahead: bool = True,
    ) -> None:
        self.scanner = scanner
        self.grouper = grouper
        self.skipped: list[Fault] = []
        self._feed = Feed(source, cut.block_size, interrupt, ahead=ahead)
        self._cut = cut
        self._first = first
        self._fields: frozenset[int] | None = None  # extension codes of the record before
        self._suspect = False  # the next record may lack a member that damage took
        self._run = self._blocks()

    def __next__(self) -> Block:
        return next(self._run)

    def close(self) -> None:
        self._run.close()
        self._feed.close()

    @property
    def count(self) -> int:
        """Records given so far, those before `first` included."""
        return self._first

    @property
    def bytes(self) -> int:
        """Bytes of the tar taken from the source so far."""
        return self._feed.bytes

    def _blocks(self) -> Generator[Block, None, None]:
        scanner, feed = self.scanner, self._feed
        base = noted = scanner.at
        carry: Members | None = None
        data = feed.more(_NOTHING)
        while True:
            broken = feed.broken
            new = scanner.scan(data, base, final=feed.final and broken is None)
            members = new if carry is None else joined([carry, new])
            error = broken if broken is not None and not scanner.ended else scanner.error
            behind = None
            if (row := self._too_large(members, base + len(data))) is not None:
                error, behind = self._oversize(members, row), int(members.end[row])
                members = picked(members, np.arange(row))
            whole = self._whole(members, base + len(data))
            grouped = self.grouper.group(members, quiet_before=noted)
            noted = scanner.at
            stop, pending = self._closed(grouped, members, whole, feed.final or scanner.ended or error is not None, error)
            block, problem = self._block(grouped, stop, data, base, pending)
            if block is not None:
                yield block
                del block
            if problem is not None:
                raise problem
            carry = None
            if error is not None:
                if not isinstance(error, DataError):
                    raise error
                if not self._cut.skip or error is broken:
                    raise self._placed(error, grouped, stop, data, base, whole)
                go_on = scanner.resync(data, base) if behind is None else behind
                while go_on is None and not feed.final:
                    base += len(data)
                    data = feed.more(_NOTHING)
                    go_on = scanner.resync(data, base)
                self._skip(error, go_on)
                if go_on is None:
                    return
                scanner.skip_to(go_on)
                noted = begin = go_on
            elif scanner.ended:
                found = self._behind_end(data, base)
                if found is None:
                    return
                data, base = found
                noted = scanner.at
                continue
            elif stop < len(grouped):
                begin = int(grouped.members.start[int(grouped.rows[stop])])
                carry = picked(members, members.start >= begin)
            else:
                begin = scanner.at
            begin = min(begin, base + len(data))
            need = max(scanner.wants, int(members.end[-1]) if len(members) else 0) - begin
            left = data[begin - base :]
            del new, members, grouped
            data = feed.more(left, min(need, 2 * len(left) + self._cut.block_size))
            del left
            base = begin

    def _behind_end(self, data: memoryview, base: int) -> tuple[memoryview, int] | None:
        """Read what stands behind the end mark to the end, so that the source's own checks are made.

        The buffer in which another archive begins, when `concatenated` archives are wanted; else None.
        """
        scanner, feed = self.scanner, self._feed
        noted = len(scanner.notes)
        while True:
            if len(scanner.notes) == noted and scanner.trailing(data, base):
                return data, base
            broken = feed.broken
            if isinstance(broken, TarvizError) and broken.code == "E_LENGTH":
                scanner.notes.append(Fault("W_LENGTH", f"{broken.message} The tar itself is whole.", scanner.shard))
            elif broken is not None:
                raise broken.at(shard=scanner.shard, records_before=self._first) if isinstance(broken, DataError) else broken
            if feed.final:
                return None
            base += len(data)
            data = feed.more(_NOTHING)

    @staticmethod
    def _whole(members: Members, until: int) -> bool:
        """Whether the last member's payload is in the buffer."""
        return not len(members) or int(members.data[-1]) + _stored(members, len(members) - 1) <= until

    def _too_large(self, members: Members, until: int) -> int | None:
        """The first member over the limit that is really there (a promise alone may be a truncation)."""
        limit = self._cut.max_member_bytes
        if not len(members) or int(members.size.max()) <= limit:
            return None
        for row in np.flatnonzero(members.size > limit).tolist():
            have = until - int(members.data[row])
            if row in members.sparse or have > limit or have >= int(members.size[row]):
                return int(row)
        return None

    def _oversize(self, members: Members, row: int) -> LimitError:
        return LimitError(
            f"the member has {int(members.size[row])} bytes, {self._cut.max_member_bytes} are allowed.",
            member=to_text(bytes(members.name[row])),
            offset=int(members.start[row]),
            hint="Raise max_member_bytes if you want it in memory.",
            details={"need": int(members.size[row])},
        )

    def _closed(self, grouped: Grouped, members: Members, whole: bool, done: bool, error: Exception | None) -> tuple[int, int]:
        """How many records may be given, and which of them is pending (-1: none)."""
        count = len(grouped)
        if not count:
            return 0, -1
        last_row_cut = not whole and len(grouped.members) and grouped.members.start[-1] == members.start[-1]
        if last_row_cut:
            return count - 1, -1
        if not done:
            return count - 1, -1
        if error is not None and not isinstance(error, DataError):
            return count - 1, -1  # the store failed: nobody knows what would have come
        if error is None:
            doubtful = any(note.code in ("W_NO_EOF", "W_TRUNCATED_PADDING", "W_ORPHAN_EXT") for note in self.scanner.notes[-1:])
            if doubtful and self.scanner.notes[-1].message.startswith("one zero block"):
                doubtful = False
            return count, count - 1 if doubtful else -1
        readable = error.code in ("E_SIZE", "E_SPARSE") or "need" in error.details
        key = self._record_key(error.member) if error.member else None
        if readable and key is not None:
            same = key == to_text(bytes(grouped.keys[-1]))
            return (count - 1 if same else count), -1
        if self._cut.skip:
            usual = _fields(grouped, count - 2) if count > 1 else self._fields
            if _fields(grouped, count - 1) == usual:
                return count, -1
        return (count - 1, -1) if self._cut.strict else (count, count - 1)

    def _record_key(self, member: str) -> str | None:
        """The key of the record a damaged member is of; None for a file about the shard, and where the name has no key."""
        return None if is_meta(to_bytes(member)) else self._key(member)

    def _key(self, member: str | None) -> str | None:
        cut = split_name(to_bytes(member), self.grouper.key_split) if member else None
        return to_text(cut[0]) if cut else None

    def _block(self, grouped: Grouped, stop: int, data: memoryview, base: int, pending: int) -> tuple[Block | None, DataError | None]:
        """Records 0…`stop` as a block, and the error that ends the shard behind them."""
        if not stop:
            return None, None
        settled, problem = self.grouper.settle(grouped, stop)
        while problem is not None and self._cut.skip:
            row = len(settled)
            grouped, stop, pending = self._left_out(grouped, row, problem), stop - 1, -1 if pending == row else max(pending - 1, -1)
            settled, problem = self.grouper.settle(grouped, stop)
        again = [] if self._cut.returning else self.grouper.returns(settled)
        while again and self._cut.strict and self._cut.skip:
            row, first_at = again.pop()
            settled, pending = (
                self._left_out(settled, row, self._returned(settled, row, first_at)),
                -1 if pending == row else max(pending - 1, -1),
            )
        if again and self._cut.strict:
            row, first_at = again[0]
            problem = self._returned(settled, row, first_at)
            settled = cut_at(settled, 0, row)
        for row, first_at in again if not self._cut.strict else []:
            error = self._returned(settled, row, first_at)
            self.grouper.notes.append(Fault("W_SPLIT_RECORD", error.message, error.shard, error.key, error.member, error.offset))
        if self._suspect and len(settled):
            self._suspect = False
            if _fields(settled, 0) != self._fields:
                self._lost(settled, 0)
                settled, pending = cut_at(settled, 1, len(settled)), max(pending - 1, -1)
        if problem is not None:
            problem.at(shard=self.scanner.shard, records_before=self._first + len(settled))
        if not len(settled):
            return None, problem
        members = settled.members
        offset = members.data - base
        if members.sparse:
            data, offset = self._expanded(members, data, offset)
        block = Block(
            shard=self.scanner.shard,
            data=data,
            base=base,
            first=self._first,
            keys=settled.keys.tolist(),
            rows=settled.rows,
            offset=offset,
            size=members.size,
            ext=settled.ext,
            exts=tuple(self.grouper.exts),
            members=members,
            pending=pending if pending < len(settled) else -1,
        )
        self._first += len(settled)
        if self._cut.skip:
            self._fields = _fields(settled, len(settled) - 1)
        return block, problem

    def _left_out(self, grouped: Grouped, row: int, problem: DataError) -> Grouped:
        """The records without the one that is no whole, single record; it is listed."""
        self.skipped.append(problem.at(shard=self.scanner.shard).fault)
        return without(grouped, row)

    def _returned(self, grouped: Grouped, row: int, first_at: int) -> DataError:
        at = int(grouped.rows[row])
        offset = int(grouped.members.start[at])
        return DataError(
            f"the key was at byte {first_at} and comes again at byte {offset}: members of one record do not stand together.",
            code="E_SPLIT_RECORD",
            shard=self.scanner.shard,
            key=to_text(bytes(grouped.keys[row])),
            member=to_text(bytes(grouped.members.name[at])),
            offset=offset,
            hint='Sort the shard (tarviz sort) or read with group="shard".',
        )

    def _expanded(self, members: Members, data: memoryview, offset: NDArray[np.int64]) -> tuple[memoryview, NDArray[np.int64]]:
        """Sparse payloads unfolded behind the block's bytes."""
        out = bytearray(data)
        offset = offset.copy()
        for row, pieces in members.sparse.items():
            payload = bytearray(int(members.size[row]))
            at = int(offset[row])
            for place, length in pieces:
                payload[place : place + length] = data[at : at + length]
                at += length
            offset[row] = len(out)
            out += payload
        return memoryview(out).toreadonly(), offset

    def _placed(self, error: DataError, grouped: Grouped, stop: int, data: memoryview, base: int, whole: bool) -> DataError:
        """The error with record, member and how many records stand before it."""
        key = self._key(error.member)
        if error.code == "E_CHECKSUM" and error.member is not None:
            error.at(key=self._key_behind(data, base))
        error.at(key=key, shard=self.scanner.shard)
        before = self._first
        if stop < len(grouped):
            last = to_text(bytes(grouped.keys[-1]))
            if whole and last != error.key:
                before += 1
                fields = [self.grouper.exts[code] for code in grouped.ext[int(grouped.rows[-2]) :].tolist()]
                error.details.setdefault("pending", {"key": last, "fields": fields})
        error.at(records_before=before)
        if (go_on := self.scanner.resync(data, base)) is not None:
            error.details.setdefault("resync_at", go_on)
        return error

    def _key_behind(self, data: memoryview, base: int) -> str | None:
        """The key of the next readable header, whose record lost the member with the damaged one."""
        at = self.scanner.resync(data, base)
        if at is None:
            return None
        return self._key(to_text(bytes(data[at - base : at - base + 100]).split(b"\0", 1)[0]))

    def _skip(self, error: DataError, go_on: int | None) -> None:
        fault = error.at(shard=self.scanner.shard, key=self._key(error.member)).fault
        self.skipped.append(fault)
        self._suspect = go_on is not None and error.code not in ("E_SIZE", "E_SPARSE")

    def _lost(self, grouped: Grouped, row: int) -> None:
        text = "the record may have lost a member to the damage before it and is left out."
        key = to_text(bytes(grouped.keys[row]))
        at = int(grouped.members.start[int(grouped.rows[row])])
        self.grouper.notes.append(Fault("W_DROPPED", text, self.scanner.shard, key, None, at))


def _fields(grouped: Grouped, record: int) -> frozenset[int]:
    """The extension codes of one record."""
    return frozenset(grouped.ext[int(grouped.rows[record]) : int(grouped.rows[record + 1])].tolist())


def _stored(members: Members, row: int) -> int:
    pieces = members.sparse.get(row)
    return int(members.size[row]) if pieces is None else sum(length for _, length in pieces)
