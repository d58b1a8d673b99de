"""Tell two data sets apart: records that were added, that are gone, and the fields that changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Unpack

import click

from tarviz.cli import verb_base
from tarviz.model.errors import Fault, safe
from tarviz.read.keywords import ReadKeywords
from tarviz.read.stream import ReadOptions, ReadReport, records, shards, with_changes
from tarviz.stores import URLs

_SHOWN = 20  # keys that the shell shows of each kind


@dataclass(frozen=True)
class Difference(verb_base.Result):
    """Keys of the records of B that A has not (`added`), of those of A that B has not (`gone`), in their order; the fields that are
    others, there or not there, by key (`changed`); how many records are `equal`."""

    added: list[str]
    gone: list[str]
    changed: dict[str, list[str]]
    equal: int
    report: ReadReport = field(default_factory=ReadReport, repr=False)

    @property
    def exit_code(self) -> int:
        """0: the same records with the same bytes; 1: not, or something was skipped."""
        return 1 if self.added or self.gone or self.changed or self.report.skipped else 0

    def __str__(self) -> str:
        fields = Counter(ext for exts in self.changed.values() for ext in exts)
        what = ", ".join(f"{safe(ext)} of {count:,}" for ext, count in fields.most_common(_SHOWN))
        rows = [
            ("added", len(self.added), _some(self.added)),
            ("gone", len(self.gone), _some(self.gone)),
            ("changed", len(self.changed), what),
            ("equal", self.equal, ""),
        ]
        lines = [verb_base.table([(name, f"{count:,}", text) for name, count, text in rows], right=[1])]
        lines += [f"{safe(key)}: {', '.join(map(safe, exts))}" for key, exts in list(self.changed.items())[:_SHOWN]]
        return "\n".join(lines)

    def notes(self) -> Iterator[str]:
        found: list[Fault] = [*self.report.skipped, *self.report.warnings]
        yield from map(str, found[:_SHOWN])

    def to_dict(self) -> dict[str, Any]:
        return {"added": self.added, "gone": self.gone, "changed": self.changed, "equal": self.equal}


def diff(a: URLs, b: URLs, **reading: Unpack[ReadKeywords]) -> Difference:
    """How the records of `b` differ from those of `a`: found by key in whatever shard, compared by the bytes of each field.

    Neither the order of records nor how they are spread over shards counts, nor owners and times of members. A key that comes again is
    counted: the second `k` of `a` is held against the second of `b`, and named `k (2)`. A digest of each field is kept in memory, some
    hundred bytes a record.
    """
    options = with_changes(ReadOptions(), reading)
    report = ReadReport()
    with verb_base.silent_warnings():
        before, now = _digests(a, options, report), _digests(b, options, report)
    changed = {
        _title(*key): sorted(ext for ext in old.keys() | new.keys() if old.get(ext) != new.get(ext))
        for key, old in before.items()
        if (new := now.get(key)) is not None and new != old
    }
    added, gone = [_title(*key) for key in now if key not in before], [_title(*key) for key in before if key not in now]
    return Difference(added, gone, changed, len(before) - len(gone) - len(changed), report)


def _title(key: str, time: int) -> str:
    return key if time == 1 else f"{key} ({time})"


def _digests(urls: URLs, options: ReadOptions, report: ReadReport) -> dict[tuple[str, int], dict[str, bytes]]:
    """Fields and their digests by key and the time that it comes."""
    found: dict[tuple[str, int], dict[str, bytes]] = {}
    times: Counter[str] = Counter()
    with verb_base.progress(None, "records") as bar, closing(records(shards(urls), options=options)) as run:
        for record in run:
            times[record.key] += 1
            found[record.key, times[record.key]] = {ext: blake2b(record[ext], digest_size=12).digest() for ext in record}
            bar.add()
    report.merge(run.report)
    return found


def _some(keys: Sequence[str]) -> str:
    """The first of some keys.

    >>> _some(["a", "b"]), _some([str(n) for n in range(9)])
    ('a, b', '0, 1, 2, 3, …')
    """
    return ", ".join([*map(safe, keys[:4]), *(["…"] if len(keys) > 4 else [])])


@verb_base.verb("diff", example=["tarviz diff before/ after/", "tarviz diff --json 'a-{0..3}.tar' b.tar"])
@click.argument("a", shell_complete=verb_base.complete_shards)
@click.argument("b", shell_complete=verb_base.complete_shards)
@verb_base.reading_options
@verb_base.on_error_option
@verb_base.result_options
def command(a: str, b: str, as_json: bool, **options: Any) -> Any:
    """Tell two data sets apart: which records B has and A has not, which are gone, and which fields of the others changed.

    Each is a shard, a folder or a pattern; records are found by key, in whatever shard they are, and compared by their bytes. Exit code
    0: equal; 1: different.
    """
    given = {name: value for name, value in options.items() if value is not None}
    return verb_base.emit(diff(a, b, **given), as_json)
