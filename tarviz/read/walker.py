"""The one walk over a shard: which records are certain, pending, doubled, split or lost is decided here and nowhere else.

A walker is handed the bytes of a tar window by window, of any size, and says what they decide. A record is certain when
something follows that is not of it: a member of another key, or the end-of-archive mark with nothing but padding after it.
The record that is open at a window's end waits for the next window, so where windows end changes nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple

import numpy as np

from tarviz.formats.header_scan import BLOCK
from tarviz.formats.member_table import joined, picked
from tarviz.formats.records import Grouped, Grouper, part
from tarviz.formats.tar import Scanner
from tarviz.model.errors import DataError, Fault, LimitError, TarvizError
from tarviz.model.types import Members, to_bytes, to_text
from tarviz.read.neighbours import Held, Neighbours
from tarviz.read.rules import Decided, Rules
from tarviz.read.settle import settled

NOTHING = memoryview(b"")
_LOOK = 1 << 20  # bytes after damage in which the next header is looked for, to say in the error where it is
_ENDS = ("E_TRUNCATED", "E_NO_EOF", "E_EMPTY", "E_TRAILING")  # there is nothing to look for after these


class _Large(NamedTuple):
    """A member over the limit, which is passed over."""

    member: tuple[bytes, int, int, int]  # name, start, data, stored bytes
    size: int
    end: int
    enough: int  # byte of the tar from which on it is sure that the member is there, and not a promise only


class Walker:
    """Decides over the records of one shard; `notes` (warnings, in the order of the shard) and `skipped` fill while it walks.

    After each `walk`, `keep` is the byte of the tar from which the next window must begin where payloads are wanted, and `need` how
    many bytes from there it must have at least; headers alone are needed from `place` up to `wants`. It is `over` at the shard's
    end, or where `error` ended it. With `rules.skip` damage is listed in `skipped`, and the walk goes on at the next header.
    """

    def __init__(self, scanner: Scanner, grouper: Grouper, rules: Rules, *, first: int = 0) -> None:
        self.scanner = scanner
        self.grouper = grouper
        self.rules = rules
        self.notes: list[Fault] = []
        self.skipped: list[Fault] = []
        self.records = first
        self.error: Exception | None = None
        self.over = False
        self.keep = self.place = scanner.at
        self.wants = scanner.at + BLOCK
        self.need = 0
        self.patience = 0  # members that may wait to be decided over together; for who reads headers only
        self._near = Neighbours(grouper)
        self._waiting: list[Members] = []  # members of the record that is open
        self._noted = scanner.at
        self._last: Held | None = None  # the last record before an end mark, until it is known what stands after that
        self._doubt = False  # … and whether it may lack a member
        self._search: DataError | None = None  # damage, until the next header is found
        self._lost: Grouped | None = None  # the record that ended before the damage, or did not
        self._large: _Large | None = None
        self._distrust: int | None = None  # the member from this byte on has lost its extension header, perhaps
        self._data, self._base, self._until = NOTHING, 0, scanner.at

    def add(self, members: Members) -> None:
        """Take members that the scanner found already; the next `walk` decides over them."""
        if len(members):
            self._waiting.append(members)

    def walk(
        self, data: memoryview = NOTHING, base: int = 0, *, final: bool = False, broken: Exception | None = None
    ) -> Generator[Decided, None, None]:
        """What the window `data`, whose first byte is byte `base` of the tar (a multiple of 512), decides.

        `final`: the tar ends with it; `broken`: its source does, with this error. Take all the steps before the next window.
        """
        self._data, self._base, self._until = data, base, base + len(data)
        try:
            while not self.over:
                if self._search is not None or self._large is not None:
                    if not (self._passed(final, broken) if self._search is None else (yield from self._found(final or broken is not None))):
                        break
                elif not (yield from self._next(final, broken)):
                    break
        finally:
            self._data = NOTHING
        self._say_what_next()

    def _next(self, final: bool, broken: Exception | None) -> Generator[Decided, None, bool]:
        """Scan the window from where we are and judge what is found; False when it is used up."""
        scanner, data, base = self.scanner, self._data, self._base
        new = None if scanner.ended else scanner.scan(data, base, final=final and broken is None)
        again = False
        if scanner.ended:
            self._doubt = self._doubt if new is None else scanner.open_end
            short = isinstance(broken, TarvizError) and broken.code == "E_LENGTH"
            again = not scanner.over and scanner.behind(data, base, final=final and (broken is None or short))
            if isinstance(broken, TarvizError) and short and scanner.over and scanner.error is None:
                scanner.notes.append(Fault("W_LENGTH", f"{broken.message} The tar itself is whole.", scanner.shard))
                broken = None
            self._doubt = self._doubt or scanner.open_end
        yield from self._judge(new, again, scanner.error or broken)
        return again or self._search is not None or self._large is not None

    def _say_what_next(self) -> None:
        until = self._until // BLOCK * BLOCK
        self.place, self.wants = self.scanner.at, self.scanner.wants
        if self._search is not None:
            self.place, self.wants = until, until + BLOCK
        elif self._large is not None:
            self.place, self.wants = self._large.end, max(self._large.enough, until) + 1
        if self._waiting and len(self._waiting[0]) and self._large is None:
            self.keep = int(self._waiting[0].start[0])
            self.need = self.wants - self.keep
        else:
            self.keep = min(self.place, until)
            self.need = self.wants - self.keep if self.place < until else 0

    # What is decided over the members of a window.

    def _judge(self, new: Members | None, again: bool, error: Exception | None) -> Iterator[Decided]:
        """`new` is None after an end mark that was met before. `again`: another archive follows it, and is read."""
        scanner = self.scanner
        if new is not None and error is None and not (scanner.ended or again) and sum(map(len, self._waiting)) + len(new) < self.patience:
            self._waiting.append(new)
            return
        members = self._members(new)
        faulty = scanner.faulty if error is scanner.error else None
        row = self._too_large(members)
        if row is not None:
            faulty, error, again = (bytes(members.name[row]), int(members.type[row])), None, False
            self._pass_over(members, row)
            members = members.part(0, row)
        damaged = row is not None or (error is not None and not scanner.ended)
        ends = (scanner.ended or again) and not damaged
        records = self.grouper.group(members, quiet_before=self._noted)
        self._noted = max(self._noted, scanner.at)
        if len(records) and self._near.damage is not None and (len(records) > 1 or ends or damaged):
            records = yield from self._behind_damage(records, closed=len(records) > 1 or ends)
        count = len(records)
        if ends and error is None and (again or scanner.over):
            yield from self._give_last()
            yield from self._emit(records, count - 1 if self._doubt else -1)
            self._doubt = False
            if not again:
                yield from self._finish()
            return
        last = part(records, count - 1, count) if count else None
        yield from self._emit(part(records, 0, count - 1) if count else records)
        if self.over:
            return
        if damaged:
            yield from self._at_damage(last, error, faulty)
        elif ends:
            self._last = self._last if last is None else Held(last, self._data, self._base)
            if error is not None:
                yield from self._at_bad_end(error)
        elif last is not None:
            self._waiting = [picked(members, members.start >= int(last.members.start[0]))]

    def _members(self, new: Members | None) -> Members:
        """The members that wait and the new ones."""
        if new is not None and len(new) and self._distrust is not None:
            if int(new.start[0]) >= self._distrust:
                self._near.lost_member(new)
                new = new.part(1, len(new))
            self._distrust = None
        parts, self._waiting = [*self._waiting, *([] if new is None else [new])], []
        return parts[0] if len(parts) == 1 else joined(parts)

    def _emit(self, records: Grouped, pending: int = -1, held: Held | None = None) -> Iterator[Decided]:
        """Records whose end is known, as a step: each field once, no key for the second time."""
        if not len(records) or self.over:
            return
        whole, pending, problem = settled(records, pending, self.grouper, self.rules, self.skipped)
        if problem is not None:
            place = problem.offset or 0
            for notes in (self.scanner.notes, self.grouper.notes):  # nothing after it was looked at
                notes[:] = [note for note in notes if (note.offset or 0) <= place]
        first, data, base = self.records, self._data if held is None else held.data, self._base if held is None else held.base
        self.records += len(whole)
        if len(whole):
            if self.rules.skip and pending < 0:
                self._near.learn(whole)
            self._tell(int(whole.members.end[-1]))
            yield Decided(whole, pending, first, data, base)
        if problem is not None:
            self._stop(problem.at(shard=self.scanner.shard, records_before=self.records))

    # The end of the shard, and damage.

    def _give_last(self) -> Iterator[Decided]:
        """The record that waited after an end mark; it may lack a member where there is a doubt."""
        last, self._last = self._last, None
        if last is not None:
            yield from self._emit(last.record, 0 if self._doubt else -1, last)

    def _at_bad_end(self, error: Exception) -> Iterator[Decided]:
        """A header stands after the end-of-archive marker, or the source failed there: the last record is not certain."""
        self._doubt = True
        if not self.rules.strict and isinstance(error, DataError):
            yield from self._give_last()
        self._lost, self._last = None if self._last is None else self._last.record, None
        if isinstance(error, TarvizError):
            self._place(error, None)
        if error is self.scanner.error and self.rules.skip:
            self.skipped.append(self.scanner.error.fault)
            yield from self._finish()
        else:
            self._stop(error)

    def _at_damage(self, last: Grouped | None, error: Exception | None, faulty: tuple[bytes, int] | None) -> Iterator[Decided]:
        """`last` is the record that was open there, `faulty` the damaged member where it is known; no error: a large one."""
        scanner, rules = self.scanner, self.rules
        key = None if faulty is None else self.grouper.key_of(*faulty)
        found = error is None or error is scanner.error  # … in the tar: its source did not fail
        self._lost = None
        if last is not None:
            if key is not None and key != bytes(last.keys[0]):
                yield from self._emit(last)
            elif key is not None or not (found or (isinstance(error, DataError) and self._in_window(last.members))):
                if rules.skip and found:
                    self._near.lost(last)
            elif rules.skip and found:
                self._near.held, self._lost = Held(last, self._data, self._base), last
            elif rules.strict:
                self._lost = last
            else:
                yield from self._emit(last, 0)
        if self.over:
            return
        if rules.skip and found:
            self._near.damaged(key, scanner.damaged_name)
        if error is None:
            return
        if found and (rules.skip or error.code not in _ENDS):  # type: ignore[attr-defined]
            self._search = scanner.error
            return
        if isinstance(error, TarvizError):
            self._place(error, None)
        yield from self._abandon()
        self._stop(error)

    def _behind_damage(self, records: Grouped, *, closed: bool) -> Generator[Decided, None, Grouped]:
        """Give the record before damage, where it is whole; the records after it, without the first where that may not be."""
        left, whole, right = self._near.between(part(records, 0, 1), closed=closed)
        if left is not None and (whole or not self.rules.strict):
            yield from self._emit(left.record, -1 if whole else 0, left)
        elif left is not None:
            self._near.lost(left.record)
        if right:
            return records
        self._near.lost(part(records, 0, 1))
        return part(records, 1, len(records))

    def _abandon(self) -> Iterator[Decided]:
        """The record before damage that nothing follows."""
        left = self._near.alone()
        if left is not None and not self.rules.strict:
            yield from self._emit(left.record, 0, left)
        elif left is not None:
            self._near.lost(left.record)

    def _finish(self) -> Iterator[Decided]:
        yield from self._abandon()
        self.over = True
        self._tell(None)

    def _stop(self, error: Exception) -> None:
        self.error, self.over = error, True
        self._tell(None)

    def _found(self, final: bool) -> Generator[Decided, None, bool]:
        """Look for the header to go on at; False when the window does not tell."""
        error, scanner, skip = self._search, self.scanner, self.rules.skip
        assert error is not None
        place = scanner.resync(self._data, self._base)
        limit = scanner.bad + _LOOK
        if not skip and place is not None and place >= limit:
            place = None
        if place is None and not final and (skip or self._until < limit):
            return False
        self._search = None
        self._place(error, place)
        if not skip:
            self._stop(error)
            return True
        self.skipped.append(error.fault)
        if place is None:
            yield from self._finish()
            return True
        self._distrust = place if scanner.extended else None
        scanner.skip_to(place)
        self._noted = place
        return True

    def _place(self, error: TarvizError, go_on: int | None) -> None:
        """Fill in the record of an error, how many stand before it, and the byte where the next header is."""
        if error.code == "E_CHECKSUM" and error.member is not None and go_on is not None and go_on >= self._base:
            error.at(key=self._key(bytes(self._data[go_on - self._base :][:100]).split(b"\0", 1)[0]))
        error.at(key=self._key(to_bytes(error.member)) if error.member else None, shard=self.scanner.shard)
        before = self.records
        if self._lost is not None and (last := to_text(bytes(self._lost.keys[0]))) != error.key:
            before += 1
            fields = [self.grouper.exts[code] for code in self._lost.ext.tolist()]
            error.details.setdefault("pending", {"key": last, "fields": fields})
        error.at(records_before=before)
        if go_on is not None:
            error.details.setdefault("resync_at", go_on)

    def _key(self, name: bytes) -> str | None:
        found = self.grouper.split(name)
        return None if found is None else to_text(found[0])

    def _in_window(self, members: Members) -> bool:
        """Whether the last member's payload arrived before the source failed."""
        return int(members.data[-1]) + _stored(members, len(members) - 1) <= self._until

    # Members over the limit.

    def _too_large(self, members: Members) -> int | None:
        limit, payloads = self.rules.max_member_bytes, self.rules.payloads
        if payloads == "none" or not len(members) or int(members.size.max()) <= limit:
            return None
        if payloads == "sparse":
            return min((row for row in members.sparse if members.size[row] > limit), default=None)
        return int(np.argmax(members.size > limit))

    def _pass_over(self, members: Members, row: int) -> None:
        """Go on after a member over the limit: none of its bytes are kept."""
        start, data, end, stored = int(members.start[row]), int(members.data[row]), int(members.end[row]), _stored(members, row)
        member = bytes(members.name[row]), start, data, stored
        limit = self.rules.max_member_bytes
        self._large = _Large(member, int(members.size[row]), end, data if row in members.sparse else data + min(stored, limit + 1))
        self.scanner.skip_to(end, member)

    def _passed(self, final: bool, broken: Exception | None) -> bool:
        """Whether the large member is there, and not only promised; False while the window does not tell."""
        large, scanner = self._large, self.scanner
        assert large is not None
        error: Exception | None
        if self._until >= large.enough:
            error = LimitError(
                f"the member has {large.size} bytes, {self.rules.max_member_bytes} are allowed.",
                member=to_text(large.member[0]),
                offset=large.member[1],
                hint="Raise max_member_bytes if you want it in memory.",
                details={"need": large.size},
            )
        elif broken is not None:
            error = broken
        elif final:
            scanner.scan(self._data, self._base, final=True)
            error = scanner.error
        else:
            return False
        self._large = None
        if isinstance(error, TarvizError):
            self._place(error, None)
        if self.rules.skip and isinstance(error, LimitError):
            self.skipped.append(error.fault)
        elif error is not None:
            self._stop(error)
        return True

    def _tell(self, until: int | None) -> None:
        """Hand out the warnings of what stands before byte `until` and is decided."""
        told: list[Fault] = []
        for notes in (self.scanner.notes, self.grouper.notes):
            told += [note for note in notes if until is None or (note.offset or 0) < until]
            notes[:] = [] if until is None else [note for note in notes if (note.offset or 0) >= until]
        self.notes += sorted(told, key=lambda note: note.offset or 0)


def _stored(members: Members, row: int) -> int:
    """Bytes of a member's payload in the tar."""
    pieces = members.sparse.get(row)
    return int(members.size[row]) if pieces is None else sum(length for _, length in pieces)
