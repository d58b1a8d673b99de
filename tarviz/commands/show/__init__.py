"""Show the first records: their fields, sizes and small values as text, their pictures as a contact sheet with --html."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Unpack

import click
import numpy as np
from numpy.typing import NDArray

from tarviz import stores
from tarviz.cli import html_page, verb_base
from tarviz.model.config import format_size
from tarviz.model.errors import DataError, Fault, UsageError, redact, safe
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL, Record
from tarviz.read.chosen import Chosen, resolve
from tarviz.read.keywords import ReadKeywords
from tarviz.read.stream import ReadOptions, ReadReport, blocks, shards, with_changes
from tarviz.read.tfrecord_names import has_tfrecord_name, refuse
from tarviz.stores import URLs

if TYPE_CHECKING:
    from tarviz.widgets.panes.overlays import Overlays

_LONGEST = 300  # characters of a value that are looked at

TEXT_COUNT, SHEET_COUNT = 5, 60


@dataclass(frozen=True)
class Shown(verb_base.Result):
    """The records looked at, what was found wrong on the way, the page that was written; `fields` are those shown (None: all).

    `inline`: how a terminal is told to draw the pictures below each record's text.
    """

    records: list[Record]
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)
    page: str | None = None
    fields: frozenset[str] | None = None
    inline: str | None = None

    __repr__ = redacted_repr

    def __str__(self) -> str:
        if self.page is not None:
            parts = [f"{len(self.records)} records in {self.page}"]
        else:
            parts = [line for record in self.records for line in self._lines(record)] or ["no records"]
        return "\n".join([*parts, *(str(fault) for fault in (*self.faults, *self.warnings))])

    def _lines(self, record: Record) -> Iterator[str]:
        yield record_text(record, self.fields)
        if self.inline is not None:
            from tarviz.commands.show.inline_images import draw, pictures

            if tiles := " ".join(draw(tile, self.inline) for _, tile in pictures(record, self.fields)):
                yield tiles

    def to_dict(self) -> dict[str, Any]:
        return {
            "records": [
                {
                    "shard": redact(record.shard),
                    "index": record.index,
                    "key": record.key,
                    "pending": record.pending,
                    "fields": {ext: {"size": len(record[ext]), "shows": summary(record, ext)} for ext in shown_fields(record, self.fields)},
                }
                for record in self.records
            ],
            "faults": [fault.to_dict() for fault in self.faults],
            "warnings": [fault.to_dict() for fault in self.warnings],
        }

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": html_page.fragment(self._sheet())}

    def _sheet(self) -> str:
        notes = "".join(f'<p class="bad">{html_page.text(fault)}</p>' for fault in (*self.faults, *self.warnings))
        from tarviz.widgets.panes.overlays import Overlays

        overlays = Overlays()
        return html_page.sheet(_tile(record, self.fields, overlays) for record in self.records) + notes

    def to_html(self) -> str:
        """The contact sheet as a page of its own: no script, nothing loaded from elsewhere, light and dark."""
        urls = [*(record.shard for record in self.records), *(fault.shard for fault in (*self.faults, *self.warnings) if fault.shard)]
        names = list(dict.fromkeys(map(redact, urls)))
        title = names[0].rpartition("/")[2] if len(names) == 1 else f"{len(names)} shards"
        about = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
        head = f'<h1>{html_page.text(title)}</h1><p class="soft">{len(self.records)} records of {html_page.text(about)}</p>'
        return html_page.page(title, head + self._sheet())


def show(
    urls: URLs, *, count: int = TEXT_COUNT, fields: str | None = None, like: str = "", by: str = "", **reading: Unpack[ReadKeywords]
) -> Shown:
    """The first `count` records of shards, as a result that is text, HTML or JSON as asked; `fields` (`"jpg cls"`) are shown, None is all.

    With `like`, a key, that record and then those nearest to it, by their vectors or pictures: see `Table.similar`, also for `by`.
    A TFRecord file shows the records that `convert` would make of its Examples.
    Reads leniently: a record that may be incomplete is shown and warned of. Damage ends a shard and is listed; `reading` holds options of
    `ReadOptions`. `NotFoundError` where a shard is missing.
    """
    targets = shards(urls)
    order: dict[tuple[str, int], int] = {}
    options = with_changes(ReadOptions(strict=False), reading)
    if like:
        options, order = _alike(targets, options, like, by, count)
    options = resolve(targets, options)
    report = ReadReport()
    found: list[Record] = []
    faults: list[Fault] = []
    for url in takewhile(lambda url: len(found) < count, targets):
        left = count - len(found)
        if has_tfrecord_name(url):
            from tarviz.read import tfrecords

            run = tfrecords.first_blocks(url, options, report, left)
        else:
            run = blocks(url, options, report=report, stop=None if options.where else left)
        try:
            with verb_base.silent_warnings(), closing(run):
                for block in run:
                    found.extend(islice(block, count - len(found)))
        except DataError as error:
            faults.append(error.at(shard=url).fault)
    if order:
        found.sort(key=lambda record: order[record.shard, record.index])
    chosen = None if fields is None else frozenset(fields.lower().replace(",", " ").replace(";", " ").split())
    return Shown(found, [*faults, *report.skipped], report.warnings, fields=chosen)


def _alike(targets: list[URL], options: ReadOptions, key: str, by: str, count: int) -> tuple[ReadOptions, dict[tuple[str, int], int]]:
    """What reads the record of a key and those nearest to it, and the place of each."""
    from tarviz.table.table import Table

    refuse(targets)
    if options.where or options.keys:
        raise UsageError("like= and a condition do not go together.", hint="Leave out one of them.")
    table = Table(targets, key_split=options.key_split, duplicates=options.duplicates)
    own, near = table.by_keys([key]), table.similar(key, by, count - 1)
    shard, n = np.concatenate((own.shard[:1], near.shard)), np.concatenate((own.n[:1], near.n))
    rows: dict[str, NDArray[np.int64]] = {url: np.sort(n[shard == at]) for at, url in enumerate(table.urls)}
    order = {(table.urls[at], number): place for place, (at, number) in enumerate(zip(shard.tolist(), n.tolist(), strict=True))}
    return replace(options, where=Chosen(f"like {key}", rows, table.versions)), order


def _tile(record: Record, fields: frozenset[str] | None, overlays: Overlays) -> str:
    """What stands for a record in a browser, with what lies over it; its other small fields below it."""
    from tarviz.widgets.browse import thumbnails
    from tarviz.widgets.panes.overlays import paint

    blobs = {ext: bytes(record[ext]) for ext in shown_fields(record, fields)}
    plan = thumbnails.plan_tile({ext: len(blob) for ext, blob in blobs.items()}, "", overlays)
    tile = thumbnails.make_tile(plan, blobs, overlays, html_page.TILE * 2, key=record.key, shard=record.shard)
    shown = paint(tile.picture, tile.over, overlays) if tile.picture else tile.reason or tile.text or "no fields"
    drawn = () if tile.reason else plan.fields
    lines = [f"{ext}: {shorten(summary(record, ext), 56)}" for ext in blobs if ext not in drawn]
    if record.pending:
        lines.append("may be incomplete")
    small = isinstance(shown, bytes) and _small(shown)
    return html_page.tile(shown, title=record.key, lines=lines[:6], bad=bool(tile.reason), small=small)


def _small(picture: bytes) -> bool:
    """Whether a PNG tile has so few pixels that they should be seen as squares."""
    return picture[:4] == b"\x89PNG" and max(int.from_bytes(picture[16:20]), int.from_bytes(picture[20:24])) <= html_page.TILE // 2


@verb_base.verb(
    "show", example=["tarviz show 'data/train-{0000..0003}.tar'", "tarviz show -n 100 --html sheet.html data/", "tarviz show x.tfrecord"]
)
@verb_base.urls_argument
@verb_base.result_options
@click.option(
    "-n", "-c", "--count", type=click.IntRange(min=1), help=f"Records. [default: {TEXT_COUNT}; {SHEET_COUNT} with --html or --png]"
)
@click.option("-f", "--fields", metavar="LIST", help="Fields to show: 'jpg cls'.")
@click.option("--like", metavar="KEY", default="", help="That record, and those nearest to it.")
@click.option("--by", metavar="FIELD", default="", help="What --like compares: npy, json.embedding, jpg. [default: the first there is]")
@verb_base.page_option("--html", "page", help="Write a contact sheet, one page that needs nothing else.")
@verb_base.page_option("--png", "picture", help="Write a contact sheet of the pictures as one PNG.")
@click.option("--inline", type=click.Choice(["auto", "no", "kitty", "iterm2", "sixel"]), default="auto", help="Pictures in the terminal.")
@verb_base.reading_options
def command(
    urls: tuple[str, ...], count: int | None, page: str | None, picture: str | None, inline: Any, as_json: bool, **rest: Any
) -> Any:
    """Show the first records: fields, sizes, small values; pictures where the terminal can, with --html, with --png.

    Nothing a record holds is executed; what cannot be shown safely is named and left as bytes. Damage ends a shard and is reported after
    its last record. kitty, iTerm2 and terminals with sixels show pictures between the lines; nothing is ever waited for.
    """
    from tarviz.commands.show import inline_images

    result = show(urls, count=count or (SHEET_COUNT if page or picture else TEXT_COUNT), **{**rest, "strict": bool(rest["strict"])})
    if picture is not None:
        stores.write(picture, inline_images.sheet(result))
    if page is not None:
        stores.write(page, result.to_html().encode("utf-8", "backslashreplace"))
    if page or picture:
        return verb_base.emit(replace(result, page=" and ".join(filter(None, (page, picture)))), as_json)
    return verb_base.emit(replace(result, inline=inline_images.protocol(inline)), as_json)


def record_text(record: Record, fields: frozenset[str] | None = None) -> str:
    """A record as lines of text: where it is, then a line for each field."""
    doubt = "  (may be incomplete)" if record.pending else ""
    head = f"{safe(redact(record.shard))}  record {record.index}  {safe(record.key)}{doubt}"
    sizes = {ext: format_size(len(record[ext])) for ext in shown_fields(record, fields)}
    if not sizes:
        return head
    beside = max(map(len, sizes)) + max(map(len, sizes.values())) + 6  # columns of the terminal that a value lacks
    room = max(shutil.get_terminal_size().columns - beside, 20)
    rows = [("", ext, size, shorten(summary(record, ext), room)) for ext, size in sizes.items()]
    return f"{head}\n{verb_base.table(rows, right=[2])}"


def summary(record: Record, ext: str) -> str:
    """What a field shows, in one line."""
    from tarviz import viewers

    panel = viewers.view(record[ext], viewers.Meta(ext, record.key, record.shard))
    written = next((block for block in panel.blocks if isinstance(block, viewers.Text)), None) if panel.viewer == "text" else None
    return " ".join(written.text[:_LONGEST].split()) if written else panel.summary


def shorten(text: str, length: int) -> str:
    """`text`, of `length` characters at most."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def shown_fields(record: Record, fields: frozenset[str] | None) -> list[str]:
    """The fields that are shown."""
    return [ext for ext in record if fields is None or ext in fields]
