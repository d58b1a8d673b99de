"""What a browser answers through the table over its shards: facets, completion, why nothing fits."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from tarviz.model.errors import TarvizError, redact
from tarviz.table import sql, why
from tarviz.table.columns import NAMES, RECORD
from tarviz.table.facets import MOST_AMONG, Bar, Summary, literal
from tarviz.viewers.panel import readable
from tarviz.widgets.answers import completion
from tarviz.widgets.browse import counts as browse_counts
from tarviz.widgets.browse.look import Answers
from tarviz.widgets.browse.query import ViewWish
from tarviz.widgets.host.rpc import Message, rpc

MOST_COLUMNS = 200
_LONGEST = 120  # characters of a value
_MOST_ROWS = 500  # of a query's answer
_LAST = (".size", ".bad")  # parts of fields that few ask for


class TableAnswers(Answers):
    """Answers for columns, over all records and over those that a page shows."""

    def __init__(self, *shared: Any) -> None:
        super().__init__(*shared)
        self._sql_ends = threading.Event()  # of the query in the page's box

    def about_table(self) -> Message:
        """How far the columns are: `state` as `Questions.prepare` says, a `note` for people, `version`."""
        questions = self.questions
        state = questions.prepare()
        error = questions.refused or questions.failed
        note = error.words if error else self.making() if state == "making" else ""
        return {"state": state, "note": redact(note), "version": questions.version, "bytes": questions.cost}

    def making(self) -> str:
        """How far columns are made, as a sentence; "" where none are being made."""
        done, total = self.questions.done, self.questions.total
        return f"reading columns: {done:,} of {total:,} shards" if total and done < total else "reading columns"

    @rpc
    def prepare(self) -> Message:
        """Make the columns that a browser shows, whatever has to be read for that."""
        self.scan.go_on()
        self.questions.prepare(asked=True)
        return self.about_table()

    @rpc
    def facets(self) -> Message:
        """The columns there are, in the order they are shown: name, type ("" where it was not made yet). None while names are read."""
        table = self.questions.table
        if self._names_missing():
            return {"columns": [], "version": self.questions.version}
        label = self.labels.chosen or ""
        wrong = table.findings
        leaves = dict(table.leaves)
        reading = table.passes.unmade({part for part in table.possible.values() if part.tier == "value"})
        if reading and (growing := self.questions.so_far(reading)) is not None:
            known = growing.possible
            leaves = dict(growing.leaves) | {sql.written_name(name): None for name in table.possible if name not in known}
        found = [(name, kind or "") for name, kind in leaves.items() if name not in RECORD and not name.endswith((".checksum", ".phash"))]
        found = [(name, kind) for name, kind in found if not name.endswith(".bad") or name in wrong]
        found.append(("size", "bigint"))
        found.sort(key=lambda one: (one[0] != label, one[0].endswith(_LAST), not one[1]))
        columns = [{"name": readable(name), "type": kind} for name, kind in found[:MOST_COLUMNS]]
        return {"columns": columns, "version": self.questions.version}

    @rpc
    def facet(self, column: str, number: int = -1) -> Message:
        """What a column holds over all records and over those that the query `number` shows. While it is read, what it holds in the
        records that were read by now, and `of` how many these are; `making` before there are any."""
        if number not in (-1, self.look.query.number):
            return {"stale": True}
        table = self.questions.table
        if self._names_missing():
            return {"making": True}
        condition, of = self.condition_of(self.look.query.wish), None
        if unmade := table.unmade(column, condition):
            self.questions.begin(unmade)
            if (grown := self.questions.so_far(unmade)) is None:
                return {"making": True}
            table, of = grown, len(grown)
        rows = self.look.query.wish.among
        found = table.facets(column, condition, among=None if rows is None or len(rows) > MOST_AMONG else self.questions.by_shard(rows))
        if column == self.labels.chosen and not found.other[0]:
            self.labels.counts = {bar.label: bar.all for bar in found.bars if bar.low == bar.high}
        own = self.look.query.wish.label == column or column == self.labels.chosen
        bars = [_bar(bar, self.labels.classes if own else {}) for bar in found.bars]
        return {
            "column": column,
            "number": self.look.query.number,
            "type": found.type,
            "all": _summary(found.all),
            "kept": _summary(found.kept),
            "bars": bars,
            "log": found.log,
            "other": list(found.other),
            "of": of,
            "version": self.questions.version,
        }

    def _names_missing(self) -> bool:
        """Whether not even the fields of all shards are known; then they are read."""
        if not self.questions.table.passes.unmade({NAMES}):
            return False
        if self.questions.prepare() == "costly":
            self.questions.begin({NAMES})
        return True

    def condition_of(self, wish: ViewWish) -> str:
        """What a wish chooses, its shard too."""
        more = () if wish.shard is None else (f"shard = {literal(redact(self.rows.shards[wish.shard].url))}",)
        return ViewWish(wish.where, also=(*wish.also, *more)).condition

    @rpc
    def complete(self, text: str, at: int, label: bool = False) -> Message:
        """What can be written at the cursor: `start` of the word, `items` of (text, note); `making` where a later answer may tell more."""
        making = self.questions.prepare() in ("making", "scanning")
        fields, _ = browse_counts.patterns(self.rows)
        table = self.questions.table if self.questions.ready else None
        start, items = completion.completion(text[:2000], at, [readable(ext) for ext in fields], table, label=bool(label))
        return {"start": start, "items": [[readable(word), note] for word, note in items], "making": making}

    @rpc
    def why(self) -> Message:
        """Why the filter fits nothing: of each condition how many it fits alone, how many fit the others, what its column holds."""
        wish = self.look.query.wish
        if self.questions.refused is not None or not wish.conditions:
            return {"reasons": []}
        found = why.reasons(self.questions.table, wish.conditions)
        return {"reasons": [[readable(each.text), each.fits, each.others, readable(each.holds)] for each in found]}

    @rpc
    def sql(self, query: str) -> Message:
        """What a query over `records`, `objects` and `tags` gives: names of columns, at most 500 rows, whether there are `more`. It ends
        the one before."""
        self.stop_sql()
        self._sql_ends = threading.Event()
        with self.questions.until(self._sql_ends):
            found = self.questions.table.sql(query)
            rows = found.limit(_MOST_ROWS + 1).fetchall()
        return {
            "columns": [readable(name) for name in found.columns],
            "rows": [[_plain(value) for value in row] for row in rows[:_MOST_ROWS]],
            "more": len(rows) > _MOST_ROWS,
        }

    @rpc
    def stop_sql(self) -> Message:
        """End the query of `sql`."""
        self._sql_ends.set()
        self.questions.interrupt(self._sql_ends)
        return {}

    @rpc
    def object_classes(self, query: int) -> Message:
        """The classes of objects, most frequent first: name, objects, records that have one, and how many of these the page shows."""
        if query != self.look.query.number:
            return {"stale": True}
        table, condition = self.questions.table, self.condition_of(self.look.query.wish)
        every = "SELECT label, count(*), count(DISTINCT (shard, n)) FROM objects WHERE label IS NOT NULL GROUP BY label"
        found = {label: [objects, records, records] for label, objects, records in table.sql(every).fetchall()}
        if condition:
            ids = self.questions.rows(condition, "", descending=False, stop=threading.Event())
            rows, boxes = self.questions.objects(ids)
            shown: dict[str, set[int]] = {}
            for row, box in zip(rows.tolist(), boxes, strict=True):
                shown.setdefault(box.label, set()).add(row)
            found = {label: [objects, records, len(shown.get(label, ()))] for label, (objects, records, _) in found.items()}
        ranked = sorted(found.items(), key=lambda pair: (-pair[1][0], pair[0]))
        return {"classes": [[readable(label), *counts] for label, counts in ranked[:400]], "version": self.questions.version}

    def likely_of_table(self) -> Iterator[tuple[str, Message | None]]:
        """What the rail asks first, for a page without a kernel."""
        if self.questions.wait(10.0):
            yield "facets", None
            try:
                names = [column["name"] for column in self.facets()["columns"] if column["type"]]
            except TarvizError:
                return
            for name in names[:12]:
                yield "facet", {"column": name, "number": self.look.query.number}


def _summary(found: Summary) -> Message:
    return {name: _plain(getattr(found, name)) for name in ("records", "missing", "distinct", "min", "max", "mean")}


def _plain(value: Any) -> Any:
    """A value that JSON and a page can hold."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 1 << 53 else str(value)  # a page's numbers are doubles
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    text = str(value)
    return readable(text[:_LONGEST] + ("…" if len(text) > _LONGEST else ""))


def _bar(bar: Bar, classes: Mapping[int, str]) -> Message:
    name = classes.get(int(bar.low), "") if bar.low is not None and bar.low == bar.high and float(bar.low).is_integer() else ""
    shown: Message = {"text": _plain(f"{bar.label} {name}".strip()), "low": _plain(bar.low), "high": _plain(bar.high)}
    return shown | {"all": bar.all, "kept": bar.kept, "where": bar.where}
