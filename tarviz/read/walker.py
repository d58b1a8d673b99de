"""The one walk over a shard: which records are certain, pending, doubled, split or lost is decided here and nowhere else.

A walker is handed the bytes of a tar window by window, of any size, and says what they decide. A record is certain when
something follows that is not of it: a member of another key, or the end-of-archive mark with nothing but padding after it.
The record that is open at a window's end waits for the next window, so where windows end changes nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

import numpy as np

from tarviz.formats.header_parse import header_name
from tarviz.formats.header_scan import BLOCK
from tarviz.formats.member_table import join, pick
from tarviz.formats.records import Grouped, Grouper, part
from tarviz.formats.tar import FILE, Damaged, Scanner
from tarviz.model.errors import DataError, Fault, LimitError, TarvizError
from tarviz.model.types import Members, to_bytes, to_text
from tarviz.read.neighbours import Held, Neighbours
from tarviz.read.rules import Decided, Rules
from tarviz.read.settle import settle

NOTHING = memoryview(b"")
_LOOK = 1 << 20  # bytes after damage in which the next header is looked for, to say in the error where it is
_BELIEVED = 16 << 20  # bytes of a member over the limit after which its size is no mere promise
_ENDS = ("E_TRUNCATED", "E_NO_EOF", "E_EMPTY", "E_TRAILING")  # there is nothing to look for after these


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """Headers follow each other.

    `distrust`: what was damaged before this byte may have been an extension header, so the member here may lack its name or size.
    """

    distrust: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Resyncing:
    """A header was damaged: the next valid one is looked for, to go on there, or to say in the error where it is.

    `lost`: the record that was open there, and is not given.
    """

    damage: Damaged
    lost: Grouped | None


@dataclass(frozen=True, slots=True, eq=False)
class PassingOver:
    """A member over the limit goes by, none of its bytes are kept. `lost`: as in `Resyncing`.

    It is an error of the limit once byte `enough` has come; a tar that ends before has promised it only, and is cut short.
    """

    name: bytes
    start: int
    size: int
    end: int
    enough: int
    lost: Grouped | None = None


@dataclass(frozen=True, slots=True, eq=False)
class AfterEnd:
    """An end mark was read. What stands behind it says whether the record before it, `last`, is whole.

    `doubt`: that record may lack a member, whatever follows.
    """

    last: Held | None
    doubt: bool


@dataclass(frozen=True, slots=True, eq=False)
class Over:
    """All is decided; the shard ended, or this error ended it."""

    error: Exception | None


State = Reading | Resyncing | PassingOver | AfterEnd | Over


@dataclass(frozen=True, slots=True, eq=False)
class _RunEnd:
    """What ended a run of members: an error, or a member over the limit. `member`: name and type of the one, where they are known."""

    cause: Exception | PassingOver
    member: tuple[bytes, int] | None


class Walker:
    """Decides over the records of one shard; `notes` (warnings, in the order of the shard) and `skipped` fill while it walks.

    After each `walk`, `keep` is the byte of the tar from which the next window must begin where payloads are wanted, and `need` how
    many bytes from there it must have at least; headers alone are needed from `place` up to `wants`. It is `over` at the shard's
    end, or where `error` ended it. With `rules.skip` damage is listed in `skipped`, and the walk goes on at the next header.

    `Reading` leads to each other state, and each leads back to it: `Resyncing` at the next header, `PassingOver` behind the member,
    `AfterEnd` where another archive follows and is read. All lead to `Over`.
    """

    def __init__(self, scanner: Scanner, grouper: Grouper, rules: Rules, first: int) -> None:
        self.scanner = scanner
        self.grouper = grouper
        self.rules = rules
        self.notes: list[Fault] = []
        self.skipped: list[Fault] = []
        self.records = first
        self.keep = self.place = scanner.at
        self.wants = scanner.at + BLOCK
        self.need = 0
        self.patience = 0  # members that may wait to be decided over together; for who reads headers only
        self.state: State = Reading()
        self._near = Neighbours(grouper)
        self._waiting: list[Members] = []  # members of the record that is open
        self._noted = scanner.at
        self._data, self._base, self._until = NOTHING, 0, scanner.at

    @property
    def over(self) -> bool:
        """Whether no window can decide anything more."""
        return isinstance(self.state, Over)

    @property
    def error(self) -> Exception | None:
        """What ended the shard, once it is over."""
        return self.state.error if isinstance(self.state, Over) else None

    def source_failed(self, error: Exception) -> None:
        """The source failed behind the end of the tar: an error, where there is none yet."""
        if self.error is None:
            self.state = Over(error)

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
            more = True
            while more:
                match self.state:
                    case Resyncing() as state:
                        more = yield from self._resync(state, final or broken is not None)
                    case PassingOver() as state:
                        more = self._pass_by(state, final, broken)
                    case Reading() | AfterEnd():
                        more = yield from self._next(final, broken)
                    case Over():
                        break
        finally:
            self._data = NOTHING
        self._say_what_next()

    def _next(self, final: bool, broken: Exception | None) -> Generator[Decided, None, bool]:
        """Scan the window from where we are and judge what is found; False when it is used up."""
        scanner = self.scanner
        new, end, again = None, None, False
        if not scanner.ended:
            new = self._scan(final and broken is None)
        if scanner.ended:
            end = self.state if isinstance(self.state, AfterEnd) else AfterEnd(None, scanner.open_end)
            short = isinstance(broken, TarvizError) and broken.code == "E_LENGTH"
            again = not scanner.over and scanner.behind(self._data, self._base, final=final and (broken is None or short))
            if isinstance(broken, TarvizError) and short and scanner.over and scanner.error is None:
                scanner.notes.append(Fault("W_LENGTH", f"{broken.message} The tar itself is whole.", scanner.shard))
                broken = None
            end = replace(end, doubt=end.doubt or scanner.open_end)
        yield from self._judge(new, end, again, scanner.error or broken)
        return again or isinstance(self.state, Resyncing | PassingOver)

    def _scan(self, final: bool) -> Members:
        """The next members of the window, without the first after damage that may have lost its extension header."""
        new = self.scanner.scan(self._data, self._base, final=final)
        if len(new) and isinstance(self.state, Reading) and self.state.distrust is not None:
            if int(new.start[0]) >= self.state.distrust:
                self._near.note_lost_member(new)
                new = new.part(1, len(new))
            self.state = Reading()
        return new

    def _say_what_next(self) -> None:
        until = self._until // BLOCK * BLOCK
        self.place, self.wants = self.scanner.at, self.scanner.wants
        match self.state:
            case Resyncing():
                self.place, self.wants = until, until + BLOCK
            case PassingOver(end=end, enough=enough):
                self.place, self.wants = end, max(enough, until) + 1
        if self._waiting and len(self._waiting[0]) and not isinstance(self.state, PassingOver):
            self.keep = int(self._waiting[0].start[0])
            self.need = self.wants - self.keep
        else:
            self.keep = min(self.place, until)
            self.need = self.wants - self.keep if self.place < until else 0

    # What is decided over the members of a window.

    def _judge(self, new: Members | None, end: AfterEnd | None, again: bool, error: Exception | None) -> Iterator[Decided]:
        """Decide over the members that wait and the new ones; `new` is None after an end mark that was met before.

        `end`: an end mark stands behind them. `again`: another archive follows it, and is read.
        """
        if new is not None and error is None and end is None and sum(map(len, self._waiting)) + len(new) < self.patience:
            self._waiting.append(new)
            return
        members, damage = self._until_damage(self._join(new), error if end is None or again else None)
        if damage is not None:
            end = None  # a mark behind it was read too soon
        records = self.grouper.group(members, quiet_before=self._noted)
        self._noted = max(self._noted, self.scanner.at)
        if len(records) and self._near.damage is not None:
            records = yield from self._behind_damage(records, ended=end is not None, damaged=damage is not None)
        if end is not None and error is None and (again or self.scanner.over):
            yield from self._close(records, end, again)
            return
        closed, last = _last_apart(records)
        yield from self._emit(closed)
        if self.over:
            return
        if damage is not None:
            yield from self._at_damage(last, damage)
        elif end is None:
            self._waiting = [] if last is None else [pick(members, members.start >= int(last.members.start[0]))]
        else:
            self.state = end if last is None else AfterEnd(Held(last, self._data, self._base), end.doubt)
            if error is not None:
                yield from self._at_bad_end(error, self.state)

    def _until_damage(self, members: Members, error: Exception | None) -> tuple[Members, _RunEnd | None]:
        """The members up to one over the limit, or all of them up to `error`, and what ended them."""
        large = self._too_large(members)
        if large is not None:
            member = bytes(members.name[large]), int(members.type[large])
            return members.part(0, large), _RunEnd(self._pass_over(members, large), member)
        if error is None:
            return members, None
        state = self.scanner.state
        return members, _RunEnd(error, state.faulty if isinstance(state, Damaged) and error is state.error else None)

    def _join(self, new: Members | None) -> Members:
        """The members that wait and the new ones; none wait from here on."""
        parts, self._waiting = [*self._waiting, *([] if new is None else [new])], []
        return parts[0] if len(parts) == 1 else join(parts)

    def _emit(self, records: Grouped, pending: int = -1, held: Held | None = None) -> Iterator[Decided]:
        """Records whose end is known, as a step: each field once, no key for the second time."""
        if not len(records) or self.over:
            return
        if pending < 0 and self.scanner.continued:
            key = self.grouper.key_of(self.scanner.continued, FILE)
            pending = next((row for row, each in enumerate(records.keys) if bytes(each) == key), -1)
        whole, pending, problem = settle(records, pending, self.grouper, self.rules, self.skipped)
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

    def _close(self, records: Grouped, end: AfterEnd, again: bool) -> Iterator[Decided]:
        """Give the records before an end mark of which it is known what follows: nothing, or, `again`, another archive."""
        yield from self._give_last(end)
        yield from self._emit(records, len(records) - 1 if end.doubt else -1)
        if not again:
            yield from self._finish()
        elif not self.over:
            self.state = Reading()

    def _give_last(self, end: AfterEnd) -> Iterator[Decided]:
        """The record that waited after an end mark."""
        if end.last is not None:
            yield from self._emit(end.last.record, 0 if end.doubt else -1, end.last)

    def _at_bad_end(self, error: Exception, end: AfterEnd) -> Iterator[Decided]:
        """A header stands after the end-of-archive marker, or the source failed there: the last record is not certain."""
        lost = None if end.last is None else end.last.record
        if not self.rules.strict and isinstance(error, DataError):
            yield from self._give_last(replace(end, doubt=True))
            lost = None
        if isinstance(error, TarvizError):
            self._place(error, None, lost)
        if error is self.scanner.error and self.rules.skip:
            self.skipped.append(self.scanner.error.fault)
            yield from self._finish()
        else:
            self._stop(error)

    def _at_damage(self, last: Grouped | None, damage: _RunEnd) -> Iterator[Decided]:
        """Decide over the record that was open at damage, `last`, and begin to look for what follows."""
        scanner, rules, cause = self.scanner, self.rules, damage.cause
        key = None if damage.member is None else self.grouper.key_of(*damage.member)
        in_tar = cause is scanner.error or isinstance(cause, PassingOver)  # its source did not fail
        lost = None if last is None else (yield from self._open_at_damage(last, key, cause, in_tar))
        if self.over:
            return
        if rules.skip and in_tar:
            self._near.note_damage(key, scanner.damaged_name)
        if isinstance(cause, PassingOver):
            self.state = replace(cause, lost=lost)
        elif isinstance(scanner.state, Damaged) and in_tar and (rules.skip or scanner.state.error.code not in _ENDS):
            self.state = Resyncing(scanner.state, lost)
        else:
            if isinstance(cause, TarvizError):
                self._place(cause, None, lost)
            yield from self._abandon()
            self._stop(cause)

    def _open_at_damage(
        self, last: Grouped, key: bytes | None, cause: Exception | PassingOver, in_tar: bool
    ) -> Generator[Decided, None, Grouped | None]:
        """Give the record that was open at damage, keep it until what follows tells, or return it, lost."""
        skips = self.rules.skip and in_tar
        if key is not None and key != bytes(last.keys[0]):
            yield from self._emit(last)  # the damaged member is of another record: this one is whole
        elif key is not None or not (in_tar or (isinstance(cause, DataError) and self._in_window(last.members))):
            if skips:
                self._near.note_lost(last)
        elif skips:
            self._near.held = Held(last, self._data, self._base)
            return last
        elif self.rules.strict:
            return last
        else:
            yield from self._emit(last, 0)
        return None

    def _behind_damage(self, records: Grouped, *, ended: bool, damaged: bool) -> Generator[Decided, None, Grouped]:
        """Give the record before damage, where it is whole; the records after it, without the first where that may not be.

        `ended`, `damaged`: what stands behind these records. With neither, the only one is still open, and tells nothing yet.
        """
        closed = len(records) > 1 or ended
        if not (closed or damaged):
            return records
        left, whole, right = self._near.between(part(records, 0, 1), closed=closed)
        if left is not None and (whole or not self.rules.strict):
            yield from self._emit(left.record, -1 if whole else 0, left)
        elif left is not None:
            self._near.note_lost(left.record)
        if right:
            return records
        self._near.note_lost(part(records, 0, 1))
        return part(records, 1, len(records))

    def _abandon(self) -> Iterator[Decided]:
        """The record before damage that nothing follows."""
        left = self._near.alone()
        if left is not None and not self.rules.strict:
            yield from self._emit(left.record, 0, left)
        elif left is not None:
            self._near.note_lost(left.record)

    def _finish(self) -> Iterator[Decided]:
        yield from self._abandon()
        if not self.over:
            self.state = Over(None)
        self._tell(None)

    def _stop(self, error: Exception) -> None:
        self.state = Over(error)
        self._tell(None)

    def _resync(self, state: Resyncing, final: bool) -> Generator[Decided, None, bool]:
        """Look for the header to go on at; False when the window does not tell."""
        scanner, skip = self.scanner, self.rules.skip
        place = scanner.resync(self._data, self._base)
        limit, error = state.damage.bad + _LOOK, state.damage.error
        if not skip and place is not None and place >= limit:
            place = None
        if place is None and not final and (skip or self._until < limit):
            return False
        self._place(error, place, state.lost)
        if not skip:
            self._stop(error)
            return True
        self.skipped.append(error.fault)
        if place is None:
            yield from self._finish()
        else:
            self.state = Reading(distrust=place if state.damage.extended else None)
            scanner.skip_to(place)
            self._noted = place
        return True

    def _place(self, error: TarvizError, go_on: int | None, lost: Grouped | None) -> None:
        """Fill in the record of an error, how many stand before it, and the byte where the next header is. `lost` was open there."""
        if error.code == "E_CHECKSUM" and error.member is not None and go_on is not None and go_on >= self._base:
            error.at(key=self._key(header_name(bytes(self._data[go_on - self._base :][:BLOCK]))))
        error.at(key=self._key(to_bytes(error.member)) if error.member else None, shard=self.scanner.shard)
        before = self.records
        if lost is not None and (last := to_text(bytes(lost.keys[0]))) != error.key:
            before += 1
            fields = [self.grouper.exts[code] for code in lost.ext.tolist()]
            error.details.setdefault("pending", {"key": last, "fields": fields})
        error.at(records_before=before)
        if go_on is not None:
            error.details.setdefault("resync_at", go_on)

    def _key(self, name: bytes) -> str | None:
        found = self.grouper.split(name)
        return None if found is None else to_text(found[0])

    def _in_window(self, members: Members) -> bool:
        """Whether the last member's payload arrived before the source failed."""
        return int(members.data[-1]) + _stored_size(members, len(members) - 1) <= self._until

    # Members over the limit.

    def _too_large(self, members: Members) -> int | None:
        limit, payloads = self.rules.max_member_bytes, self.rules.payloads
        if payloads == "none" or not len(members) or int(members.size.max()) <= limit:
            return None
        if payloads == "sparse":
            return min((row for row in members.sparse if members.size[row] > limit), default=None)
        return int(np.argmax(members.size > limit))

    def _pass_over(self, members: Members, row: int) -> PassingOver:
        """Go on after a member over the limit, as if nothing behind it was read."""
        name, start, data, end = bytes(members.name[row]), int(members.start[row]), int(members.data[row]), int(members.end[row])
        stored, limit = _stored_size(members, row), self.rules.max_member_bytes
        self.scanner.skip_to(end, (name, start, data, stored))
        enough = data if row in members.sparse else data + min(stored, limit + 1, _BELIEVED)
        return PassingOver(name, start, int(members.size[row]), end, enough)

    def _pass_by(self, large: PassingOver, final: bool, broken: Exception | None) -> bool:
        """Whether the large member is there, and not only promised; False while the window does not tell."""
        error: Exception | None
        if self._until >= large.enough:
            error = LimitError(
                f"the member has {large.size} bytes, {self.rules.max_member_bytes} are allowed.",
                member=to_text(large.name),
                offset=large.start,
                hint="Raise max_member_bytes if you want it in memory.",
                details={"need": large.size},
            )
        elif broken is not None:
            error = broken
        elif final:
            self.scanner.scan(self._data, self._base, final=True)
            error = self.scanner.error
        else:
            return False
        self.state = Reading()
        if isinstance(error, TarvizError):
            self._place(error, None, large.lost)
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


def _last_apart(records: Grouped) -> tuple[Grouped, Grouped | None]:
    """The records before the last one, which may still be open, and that one."""
    count = len(records)
    return (part(records, 0, count - 1), part(records, count - 1, count)) if count else (records, None)


def _stored_size(members: Members, row: int) -> int:
    """Bytes of a member's payload in the tar."""
    pieces = members.sparse.get(row)
    return int(members.size[row]) if pieces is None else sum(length for _, length in pieces)
