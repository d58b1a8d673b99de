"""What a browser answers for keeping: previews, copies, checks that become tags, the label doctor."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.config import format_size
from tarviz.model.errors import UsageError
from tarviz.table.columns import RECORD
from tarviz.table.labels import confusion
from tarviz.viewers.panel import readable
from tarviz.widgets.answers import checks, kept
from tarviz.widgets.answers.jobs import Job
from tarviz.widgets.answers.questions import Questions
from tarviz.widgets.browse.labels import Labels
from tarviz.widgets.browse.query import Query
from tarviz.widgets.browse.rows import Rows
from tarviz.widgets.browse.scan import Scan
from tarviz.widgets.host.rpc import Controller, Message, rpc
from tarviz.write import Exists

_PREDICTED = re.compile(r"(?i)(?:^|[._])(?:pred|prediction|predicted|pred_label|guess)$")
_LABELS = ("bigint", "ubigint", "integer", "varchar", "boolean")
_MEASURED = re.compile(r"\.(?:size|bad|checksum|phash|width|height|mode|dtype|decodable)$")
_CONFIDENCE = re.compile(r"(?i)(?:^|[._])(?:conf|confidence|prob|probability|score|logit)$")


class KeepAnswers(Controller):
    """The part of `Browser` that copies what was found and tags what is wrong."""

    rows: Rows
    scan: Scan
    query: Query
    questions: Questions
    labels: Labels
    job: Job
    title: Any

    def chosen_rows(self, marked: list[int] | None) -> NDArray[np.int64]:
        """The rows marked, or all that show."""
        return np.array(self.query.ids(0, len(self.query)) if marked is None else sorted(marked), np.int64)

    @rpc
    def preview(self, marked: list[int] | None = None) -> Message:
        """How many records would be kept, and their bytes in a tar."""
        ids = self.chosen_rows(marked)
        return {"count": len(ids), "bytes": kept.size(self.rows, ids)}

    @rpc
    def keep(self, path: str, marked: list[int] | None = None) -> Message:
        """Write rows where the kernel runs, behind whatever goes on: by the name's end."""
        if not path.strip():
            raise UsageError("Where to?", hint="Name it subset-{}.tar, subset.csv, subset.parquet or keys.txt.")
        kept.refuse_existing(path)
        ids = self.chosen_rows(marked)

        def work() -> str:
            count = self.write_rows(ids, path)
            return f"{count:,} record{'' if count == 1 else 's'} written to {path}"

        self.job.start(f"writing {path}", work)
        return self.job.message()

    def write_rows(self, ids: NDArray[np.int64], path: str, *, exists: Exists = "error") -> int:
        """Write rows; how many. A name that is taken is a `UsageError`."""
        raise NotImplementedError

    @rpc
    def check(self) -> Message:
        """Decode every field and compare all payloads, behind whatever goes on; what is found becomes the tags `bad` and `dup`."""
        table = self.questions.table
        self.scan.go_on()

        def work() -> str:
            with self.questions.until(self.job.stopping):
                found = checks.check(self.rows, table, self.job.say)
            self.questions.changed()
            return f"checked: {found[checks.BAD]:,} bad, {found[checks.DUPLICATE]:,} duplicates"

        self.job.start("checking all", work)
        return self.job.message()

    @rpc
    def clean(self, path: str) -> Message:
        """Write every record that is neither bad nor a duplicate, behind whatever goes on."""
        kept.refuse_existing(path)

        def work() -> str:
            ids = self.questions.rows(checks.CLEAN, "", descending=False, stop=self.job.stopping)
            count = self.write_rows(ids, path)
            return f"{count:,} of {len(self.rows):,} records written to {path} ({format_size(kept.size(self.rows, ids))})"

        self.job.start(f"writing {path}", work)
        return self.job.message()

    @rpc
    def stop_job(self) -> Message:
        """End the check that runs, between two records."""
        self.job.stop()
        self.questions.interrupt(self.job.stopping)
        return self.job.message()

    @rpc
    def tags(self) -> Message:
        """How many records have each tag; whether anything was checked."""
        return {
            "tags": [[readable(tag), count] for tag, count in self.questions.table.tags.counts().items()],
            "version": self.questions.version,
        }

    @rpc
    def tag(self, tag: str, marked: list[int], note: str = "") -> Message:
        """Give the rows marked a tag, and a note; they are kept beside the index of their shard."""
        count = self.questions.table.tags.add(self._places(marked), tag, note)
        self.questions.changed()
        return self.tags() | {"count": count}

    @rpc
    def untag(self, tag: str, marked: list[int]) -> Message:
        """Take a tag away from the rows marked."""
        count = self.questions.table.tags.remove(self._places(marked), tag)
        self.questions.changed()
        return self.tags() | {"count": count}

    def _places(self, marked: list[int]) -> list[tuple[str, str]]:
        return [(row.shard.url, row.key) for row in (self.rows.row(int(one)) for one in marked)]

    @rpc
    def doctor(self, truth: str = "", predicted: str = "") -> Message:
        """Labels against predictions: `counts[i][j]` records of `labels[i]` taken for `labels[j]`, a condition for each cell; where no
        column is given, one that is named so, or none. `choices` are columns that may hold either. `confidence` is what mistakes are
        ranked by."""
        table = self.questions.table
        names = [name for name, kind in table.leaves.items() if kind]
        truth = truth or self.labels.chosen or "cls"
        predicted = predicted or next((name for name in names if _PREDICTED.search(name)), "")
        choices = [name for name, kind in table.leaves.items() if kind in _LABELS and name not in RECORD and not _MEASURED.search(name)]
        choices = sorted(choices, key=lambda name: _PREDICTED.search(name) is None)[:60]
        if not predicted or truth not in names or predicted == truth:
            return {"truth": truth, "predicted": "", "choices": choices}
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
