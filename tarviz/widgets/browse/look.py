"""What one page of the browser shows: its search, the field on its tiles, the record under its cursor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tarviz.model.errors import UsageError
from tarviz.model.redaction import redacted_repr
from tarviz.widgets.browse.query import Query
from tarviz.widgets.browse.rows import Rows

if TYPE_CHECKING:
    from tarviz.widgets.browse.opened import OpenShards


@dataclass(frozen=True, slots=True)
class RecordRef:
    """A record by its place: the URL of its shard, its number there (from 0), its key."""

    shard: str
    index: int
    key: str

    __repr__ = redacted_repr

    @classmethod
    def of(cls, rows: Rows, row: object) -> RecordRef | None:
        """The record of a row's number; None where there is none."""
        try:
            found = rows.row(row) if isinstance(row, int) else None
        except IndexError:
            return None
        return None if found is None else cls(found.shard.url, found.record, found.key)


@dataclass(slots=True, eq=False)
class Look:
    """`query` are the rows shown, `image` the field on the tiles ("": the first picture), `px` their side, `selected` the record under
    the cursor."""

    query: Query
    image: str
    px: int
    selected: RecordRef | None = None

    def search(self, number: int) -> Query:
        """The search of this number. `UsageError` (E_CHANGED) where the page shows another one by now: nothing is written of rows that
        nobody sees."""
        if number != self.query.number:
            raise UsageError("The page shows another search by now.", hint="Look at what is shown, and try again.", code="E_CHANGED")
        return self.query


class Answers:
    """The base of what answers a page: what all pages share, and what this one shows."""

    def __init__(self, shards: OpenShards, look: Look) -> None:
        self.shards = shards
        self.look = look
        self.rows, self.scan, self.questions = shards.rows, shards.scan, shards.questions
        self.tiles, self.overlays, self.labels = shards.tiles, shards.overlays, shards.labels
