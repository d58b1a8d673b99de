"""List shards: records, sizes, fields, and what is damaged; with --members every entry of the tar."""

from __future__ import annotations

import json as _json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Unpack

import click
import numpy as np

from tarviz import stores
from tarviz.cli import html_page, verb_base
from tarviz.model.config import format_size
from tarviz.model.errors import DataError, Fault, redact, safe
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL, Member
from tarviz.read import stream
from tarviz.read.chosen import resolve
from tarviz.read.index import Index
from tarviz.read.keywords import ReadKeywords
from tarviz.read.several import several
from tarviz.read.tfrecord_names import has_tfrecord_name
from tarviz.stores import URLs

MAX_NOTES = 20  # warnings of one shard shown as text


@dataclass(frozen=True, slots=True)
class Field:
    """One extension: how many records have it, and how many bytes it has together."""

    records: int
    bytes: int

    @property
    def mean(self) -> float:
        """Bytes of one payload on average."""
        return self.bytes / self.records if self.records else 0.0


@dataclass(frozen=True, slots=True)
class ShardListing:
    """One shard: its size in bytes (None where the store does not tell), records, fields, and what was found wrong."""

    url: URL
    bytes: int | None
    records: int
    fields: dict[str, Field]
    warnings: tuple[dict[str, Any], ...] = ()
    error: dict[str, Any] | None = None

    __repr__ = redacted_repr

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; the URL redacted."""
        return {**asdict(self), "url": redact(self.url), "warnings": list(self.warnings)}


@dataclass(frozen=True)
class Listing(verb_base.Result):
    """The shards listed, one entry each."""

    shards: list[ShardListing]

    @property
    def records(self) -> int:
        """Records of all shards."""
        return sum(shard.records for shard in self.shards)

    @property
    def bytes(self) -> int:
        """Bytes of all shards whose size is known."""
        return sum(shard.bytes or 0 for shard in self.shards)

    @property
    def fields(self) -> dict[str, Field]:
        """Extension → what all shards have of it."""
        total: dict[str, Field] = {}
        for shard in self.shards:
            for ext, each in shard.fields.items():
                so_far = total.get(ext, Field(0, 0))
                total[ext] = Field(so_far.records + each.records, so_far.bytes + each.bytes)
        return total

    @property
    def exit_code(self) -> int:
        if any(shard.error for shard in self.shards):
            return 2
        return 1 if any(shard.warnings for shard in self.shards) else 0

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [
            (redact(shard.url), f"{shard.records:,}", _size(shard.bytes), " ".join(shard.fields), "damaged" if shard.error else "")
            for shard in self.shards
        ]
        if len(rows) > 1:
            rows.append((f"{len(rows)} shards", f"{self.records:,}", _size(self.bytes), "", ""))
        return rows

    def _field_rows(self) -> list[tuple[str, ...]]:
        return [(ext, f"{each.records:,}", format_size(each.bytes), format_size(each.mean)) for ext, each in self.fields.items()]

    def _notes(self) -> Iterator[str]:
        for shard in self.shards:
            if shard.error:
                yield str(Fault.of(shard.error, shard.url))
            for warning in shard.warnings[:MAX_NOTES]:
                yield str(Fault.of(warning, shard.url))
            if len(shard.warnings) > MAX_NOTES:
                yield f"… {len(shard.warnings) - MAX_NOTES} warnings more in {redact(safe(shard.url))}"

    def __str__(self) -> str:
        parts = [verb_base.table(self._rows(), right=[1, 2], header=("shard", "records", "size", "fields", ""))]
        if self.fields:
            parts.append(verb_base.table(self._field_rows(), right=[1, 2, 3], header=("field", "records", "bytes", "mean")))
        if notes := list(self._notes()):
            parts.append("\n".join(notes))
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        fields = {ext: asdict(each) for ext, each in self.fields.items()}
        return {"records": self.records, "bytes": self.bytes, "fields": fields, "shards": [shard.to_dict() for shard in self.shards]}

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        notes = "".join(f'<p class="bad">{html_page.text(note)}</p>' for note in self._notes())
        body = html_page.table(self._rows(), header=("shard", "records", "size", "fields", ""), right=[1, 2])
        body += html_page.table(self._field_rows(), header=("field", "records", "bytes", "mean"), right=[1, 2, 3])
        return {"text/plain": str(self), "text/html": html_page.fragment(body + notes)}


def _size(size: int | None) -> str:
    return "?" if size is None else format_size(size)


def ls(urls: URLs, *, cache: bool = True, jobs: int | None = None, **reading_options: Unpack[ReadKeywords]) -> Listing:
    """What shards hold: records, bytes, fields. The index that comes of it is kept (`cache`).

    Of local shards, and of those far away with large members, only headers are read; of others far away, `jobs` (16) of which are
    looked at at a time, everything, since that costs less than a request a header; of a TFRecord file, the fields that `convert` would
    make of its Examples. Reads leniently and lists damage beside its shard; `NotFoundError` where a shard is missing.
    """
    targets = stream.shards(urls)
    options = resolve(targets, stream.with_changes(None, {"strict": False, **reading_options}))
    listed = []
    with verb_base.progress(len(targets), "shards") as bar, verb_base.silent_warnings():
        bar.add(0, label=redact(targets[0]))
        for found in several(targets, lambda url, look: _list_shard(url, cache, options, look), jobs):
            listed.append(found)
            bar.add(label=redact(found.url))
    return Listing(listed)


def _list_shard(url: URL, cache: bool, options: stream.ReadOptions, look: Callable[[], None]) -> ShardListing:
    if has_tfrecord_name(url):
        return _list_examples(url, options, look)
    try:
        index = Index([url], options, cache=cache, look=look).shards[0]
    except DataError as error:
        return ShardListing(url, None, 0, {}, (), error.to_dict())
    weights = np.bincount(index.ext, weights=index.members.size, minlength=len(index.exts))
    fields = {ext: Field(count, int(weights[index.exts.index(ext)])) for ext, count in index.fields().items()}
    return ShardListing(url, index.identity.get("size"), len(index), fields, tuple(index.warnings), index.error)


def _list_examples(url: URL, options: stream.ReadOptions, look: Callable[[], None]) -> ShardListing:
    """A TFRecord file, read to its end: the fields are those that `convert` would make of its features."""
    from tarviz.read import tfrecords

    report = stream.ReadReport()
    size = stores.of(url).stat(url).size
    options = replace(options, on_error="skip")
    counts: dict[str, list[int]] = {}
    for _, _, fields in tfrecords.records(url, options, report, stem="", lists=tfrecords.lists_in(url, options)):
        look()
        for ext, payload in tfrecords.without_mark(fields).items():
            each = counts.setdefault(ext, [0, 0])
            each[0] += 1
            each[1] += len(payload)
    faults = [fault.to_dict() for fault in report.skipped]
    found = {ext: Field(*both) for ext, both in counts.items()}
    return ShardListing(url, size, report.records, found, tuple(faults[1:]), faults[0] if faults else None)


class Entries(verb_base.Result):
    """Every entry of tars, of any type, in file order; reads while it is iterated, once."""

    def __init__(self, urls: list[URL], concatenated: bool = False) -> None:
        self.urls = urls
        self.concatenated = concatenated
        self.report = stream.ReadReport()
        self.faults: list[Fault] = []

    def __iter__(self) -> Iterator[tuple[URL, Member]]:
        for url in self.urls:
            try:
                for members in stream.members(url, concatenated=self.concatenated, report=self.report):
                    for member in members:
                        yield url, member
            except DataError as error:
                self.faults.append(error.at(shard=url).fault)

    def lines(self, json: bool = False) -> Iterator[str]:
        for url, member in self:
            if json:
                yield _json.dumps({**({"shard": redact(url)} if len(self.urls) > 1 else {}), **asdict(member)})
            else:
                yield f"{member.type:8} {member.size:>14,} {member.header_offset:>14,}  {safe(member.name)}"
        if not json:
            yield from (str(fault) for fault in (*self.faults, *self.report.warnings))

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, Any]:
        return {"members": [{"shard": redact(url), **asdict(member)} for url, member in self]}


def entries(urls: URLs, *, concatenated: bool = False) -> Entries:
    """Every entry of tars: directories, links and files of no record too. Links are shown, never followed."""
    return Entries(stream.shards(urls), concatenated)


@verb_base.verb("ls", example=["tarviz ls 'data/train-{0000..0003}.tar'", "tarviz ls --members --json data/train-0000.tar"])
@verb_base.urls_argument
@click.option("--members", is_flag=True, help="Every entry of the tar, of any type; with --json one object per line.")
@click.option("--cache/--no-cache", default=True, help="Keep the index that comes of it.", show_default=True)
@click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Shards far away that are looked at at a time. [default: 16]")
@verb_base.result_options
@verb_base.reading_options
def command(urls: tuple[str, ...], members: bool, as_json: bool, strict: bool | None, **options: Any) -> Any:
    """List shards: records, sizes, fields, and what is damaged.

    Only headers are read, but for shards far away with small members: those are streamed once. Exit code 0: clean; 1: warnings;
    2: damage. A folder stands for the shards in it, and quotes keep a template from the shell.
    """
    if members:
        return verb_base.emit(entries(urls, concatenated=options["concatenated"]), as_json)
    return verb_base.emit(ls(urls, strict=bool(strict), **options), as_json)
