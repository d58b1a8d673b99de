"""Records on both sides of damage that is skipped: which of them may have lost a member to it.

The damaged member was of the record before it, of the one after it, or of neither; a header that cannot be read does not say. In
a shard whose records have all had the same fields so far, a record that lacks one tells: it is the one that lost the member, and
the other is whole. Where neither lacks anything, the member was one more than usual, of either: both may have lost it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tarviz.formats.records import Grouped, Grouper
from tarviz.model.errors import Fault
from tarviz.model.types import Members, to_text

_ENOUGH = 16  # records of the same fields that tell what is usual in a shard


class Held(NamedTuple):
    """A record, and the bytes its payloads are in."""

    record: Grouped
    data: memoryview
    base: int


@dataclass
class Damage:
    """Members that were lost at one place: `keys` of the records they are of, `unknown` when that is not sure of all.

    `name` is the one in the damaged header, as far as it can be read.
    """

    keys: set[bytes] = field(default_factory=set)
    unknown: bool = False
    name: bytes | None = None


class Neighbours:
    """Judges the records before and after damage, in the order of a shard. `held` is the one before, until the one after is known."""

    def __init__(self, grouper: Grouper) -> None:
        self.held: Held | None = None
        self.damage: Damage | None = None
        self._grouper = grouper
        self._usual: frozenset[int] | None = None
        self._seen = 0
        self._mixed = False  # records had different fields

    def note_damage(self, key: bytes | None, name: bytes | None = None) -> None:
        """A member is lost here: of the record `key`, or, None, of one that is not known."""
        self.damage = self.damage or Damage()
        if key is None:
            self.damage.unknown, self.damage.name = True, name if not self.damage.unknown else None
        else:
            self.damage.keys.add(key)

    def learn(self, records: Grouped) -> None:
        """See the fields of records that are whole."""
        if self._mixed or not len(records):
            return
        self._seen += len(records)
        first = frozenset(records.ext[: int(records.rows[1])].tolist())
        self._usual = self._usual or first
        width = len(first)
        table = records.ext
        same = first == self._usual and width * len(records) == len(table) and bool((records.rows[1:] - records.rows[:-1] == width).all())
        self._mixed = not same or bool((table.reshape(-1, width) != table[:width]).any())

    def between(self, right: Grouped, *, closed: bool) -> tuple[Held | None, bool, bool]:
        """The record held, if any, whether it is whole, and whether `right`, the first record after the damage, is.

        `closed`: `right` ends before a record or the end mark, not at damage once more.
        """
        damage, self.damage = self.damage or Damage(), None
        left, self.held = self.held, None
        if not damage.unknown:
            return left, True, bytes(right.keys[0]) not in damage.keys
        before = left is not None and self._complete(left.record)
        behind = self._complete(right)
        lacking = closed and self._lacks(right)
        both = before and behind and closed and left is not None and self._of_neither(damage, left.record, right)
        return left, both or (before and lacking), both or (behind and left is not None and self._lacks(left.record))

    def alone(self) -> Held | None:
        """The record held before damage that nothing follows: nobody can say whether it is whole."""
        left, self.held, self.damage = self.held, None, None
        return left

    def note_lost(self, record: Grouped) -> None:
        """Note that a record is left out."""
        text = "the record may have lost a member to the damage beside it and is left out."
        self._note(text, to_text(bytes(record.keys[0])), None, int(record.members.start[0]))

    def note_lost_member(self, members: Members) -> None:
        """Note that a member is left out whose extension header is lost."""
        text = "the member may have lost its name or size with the header before it and is left out."
        self._note(text, None, to_text(bytes(members.name[0])), int(members.start[0]))

    def _note(self, text: str, key: str | None, member: str | None, offset: int) -> None:
        self._grouper.notes.append(Fault("W_DROPPED", text, self._grouper.shard, key, member, offset))

    def _complete(self, record: Grouped) -> bool:
        return self._knows_usual() and frozenset(record.ext[: int(record.rows[1])].tolist()) == self._usual

    def _lacks(self, record: Grouped) -> bool:
        return self._knows_usual() and self._usual is not None and frozenset(record.ext[: int(record.rows[1])].tolist()) < self._usual

    def _knows_usual(self) -> bool:
        return not self._mixed and self._seen >= _ENOUGH

    def _of_neither(self, damage: Damage, left: Grouped, right: Grouped) -> bool:
        """Whether the damaged member was a record by itself, as records of one field are."""
        cut = None if damage.name is None or damage.keys else self._grouper.split(damage.name)
        if cut is None or self._usual is None or len(self._usual) > 1:
            return False
        usual = {self._grouper.exts[code] for code in self._usual}
        return cut[1] in usual and cut[0] not in (bytes(left.keys[0]), bytes(right.keys[0]))
