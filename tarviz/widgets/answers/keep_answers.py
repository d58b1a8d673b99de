"""What a browser answers for keeping: previews, copies, checks that become tags, the label doctor."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tarviz.looks import roles
from tarviz.model.config import format_size
from tarviz.model.errors import UsageError, redact
from tarviz.model.wording import plural
from tarviz.outputs import Names
from tarviz.table.columns import RECORD
from tarviz.table.labels import confusion
from tarviz.viewers.panel import readable
from tarviz.widgets.answers import checks, kept
from tarviz.widgets.browse import export
from tarviz.widgets.browse.look import Answers
from tarviz.widgets.host.rpc import Answer, Message, rpc

_PREDICTED = re.compile(r"(?i)(?:^|[._])(?:pred|prediction|predicted|pred_label|guess)$")
_LABELS = ("bigint", "ubigint", "integer", "varchar", "boolean")
_MEASURED = re.compile(r"\.(?:size|bad|checksum|phash|width|height|mode|dtype|decodable)$")
_CONFIDENCE = re.compile(r"(?i)(?:^|[._])(?:conf|confidence|prob|probability|score|logit)$")


class KeepAnswers(Answers):
    """Copies what a page shows or what is marked, and tags what is wrong."""

    def choose(self, query: int, marked: bool) -> NDArray[np.int64]:
        """The rows marked, or all that the page shows by its search `query`. `UsageError` where there are none, or it shows another."""
        shown = self.look.search(query)
        ids = self.shards.marks.array() if marked else np.array(list(dict.fromkeys(shown.ids(0, len(shown)))), np.int64)
        if not len(ids):
            raise UsageError("There is nothing to save.", hint="Mark records (Space), or show some.")
        return ids

    @rpc
    def preview(self, query: int, marked: bool = False) -> Message:
        """How many records would be kept, and their bytes in a tar."""
        ids = self.choose(query, marked)
        return {"count": len(ids), "bytes": kept.size(self.rows, ids)}

    @rpc
    def export(self, query: int, kind: str = "tar", marked: bool = False, columns: list[str] | None = None) -> Answer:
        """The rows marked, or all that the page shows, as a shard (`tar`), a table (`csv`, `parquet`) or a list of keys (`txt`)."""
        ids = self.choose(query, marked)
        data = export.as_file(kind, self.rows, ids, self.questions, columns)
        return {"count": len(ids), "size": len(data)}, [data]

    @rpc
    def keep(self, path: str, query: int, marked: bool = False, columns: list[str] | None = None) -> Message:
        """Write rows where the kernel runs, behind whatever goes on: by the name's end."""
        if not path.strip():
            raise UsageError("Where to?", hint="Name it subset-{}.tar, subset.csv, subset.parquet or keys.txt.")
        path = self.shards.place(path)
        Names(path).refuse_taken()
        ids = self.choose(query, marked)

        def work() -> str:
            count = export.write(path, self.rows, ids, self.questions, columns)
            return f"{plural(count, 'record')} written to {path}"

        return self.shards.job.start(f"writing {path}", work)

    @rpc
    def check(self) -> Message:
        """Decode every field and compare all payloads, behind whatever goes on; what is found becomes the tags `bad` and `dup`."""
        table = self.questions.table
        self.scan.go_on()

        def work() -> str:
            with self.questions.until(self.shards.job.stopping):
                found = checks.check(self.rows, table, self.shards.job.say)
            self.questions.touch()
            return f"checked: {found[checks.BAD]:,} bad, {found[checks.DUPLICATE]:,} duplicates"

        return self.shards.job.start("checking all", work)

    @rpc
    def clean(self, path: str) -> Message:
        """Write every record that is neither bad nor a duplicate, behind whatever goes on."""
        path = self.shards.place(path)
        Names(path).refuse_taken()

        def work() -> str:
            ids = self.questions.rows(checks.CLEAN, "", descending=False, stop=self.shards.job.stopping)
            count = export.write(path, self.rows, ids, self.questions)
            return f"{count:,} of {len(self.rows):,} records written to {path} ({format_size(kept.size(self.rows, ids))})"

        return self.shards.job.start(f"writing {path}", work)

    @rpc
    def stop_job(self) -> Message:
        """End the check that runs, between two records."""
        self.shards.job.stop()
        self.questions.interrupt(self.shards.job.stopping)
        return self.shards.job.message()

    @rpc
    def tags(self) -> Message:
        """How many records have each tag; whether anything was checked."""
        counts = self.questions.table.tags.counts()
        return {"tags": [[readable(tag), count] for tag, count in counts.items()], "version": self.questions.version}

    @rpc
    def tag(self, tag: str, marked: list[int], note: str = "") -> Message:
        """Give rows a tag, and a note. `before` are those that this changed, for `retag`."""
        return self._tag(tag, [(row, note) for row in marked])

    @rpc
    def untag(self, tag: str, marked: list[int]) -> Message:
        """Take a tag away from rows. `before` are those that had it, for `retag`."""
        return self._tag(tag, [(row, None) for row in marked])

    @rpc
    def retag(self, tag: str, before: list[tuple[int, str | None]]) -> Message:
        """Give rows the tag as they had it: each its note, None where it had no such tag."""
        return self._tag(tag, before)

    def _tag(self, tag: str, noted: Sequence[tuple[int, str | None]]) -> Message:
        tags = self.questions.table.tags
        had = {(line["shard"], line["key"]): line["note"] for line in tags.lines() if line["tag"] == tag.strip()}
        places = [self._place(row) for row, _ in noted]
        count = tags.add_noted([(*place, note) for place, (_, note) in zip(places, noted, strict=True)], tag)
        self.questions.touch()
        before = [[row, had.get(place)] for place, (row, note) in zip(places, noted, strict=True) if had.get(place) != note]
        return self.tags() | {"count": count, "before": before}

    def _place(self, row: int) -> tuple[str, str]:
        found = self.rows.row(int(row))
        return redact(found.shard.url), found.key

    @rpc
    def doctor(self, truth: str = "", predicted: str = "") -> Message:
        """Labels against predictions: `counts[i][j]` records of `labels[i]` taken for `labels[j]`, a condition for each cell; where no
        column is given, one that is named so, or none. `choices` are columns that may hold either. `confidence` is what mistakes are
        ranked by."""
        table = self.questions.table
        names = [name for name, kind in table.leaves.items() if kind]
        truth = truth or next((name for name in (self.labels.chosen, *roles.LABELS) if name in names), "")
        predicted = predicted or next((name for name in names if _PREDICTED.search(name)), "")
        choices = _label_columns(table.leaves)[:60]
        if not predicted or truth not in names or predicted == truth:
            return {"truth": truth, "predicted": "", "choices": choices if truth or predicted else []}  # no labels: nothing to compare
        found = confusion(table, truth, predicted)
        shown = found.labels[:20]
        return {
            "truth": truth,
            "predicted": predicted,
            "choices": choices,
            "confidence": next((name for name in names if _CONFIDENCE.search(name)), ""),
            "labels": [readable(label[:60]) for label in shown],
            "more": len(found.labels) - len(shown),
            "counts": [row[: len(shown)] for row in found.counts[: len(shown)]],
            "cells": [[found.cell(one, other) for other in shown] for one in shown],
            "wrong": f"cast({truth} as varchar) != cast({predicted} as varchar)",
            "accuracy": found.accuracy,
        }


def _label_columns(kinds: Mapping[str, str | None]) -> list[str]:
    """The columns that may hold labels or predictions, those named like predictions first."""
    names = [name for name, kind in kinds.items() if kind in _LABELS and name not in RECORD and not _MEASURED.search(name)]
    return sorted(names, key=lambda name: _PREDICTED.search(name) is None)
