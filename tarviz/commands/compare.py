"""Compare op chains: several chains, several records, every step, with times, ranges and what random ops drew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import click

from tarviz import stores
from tarviz.cli import html_page, verb_base
from tarviz.model.errors import redact, safe
from tarviz.model.redaction import redacted_repr
from tarviz.read.keywords import ReadKeywords
from tarviz.read.stream import ReadOptions, URLs

if TYPE_CHECKING:
    from tarviz.widgets.compare.chain_preview import StepTile
    from tarviz.widgets.compare.controller import Compare
    from tarviz.widgets.compare.named_chains import Chains
    from tarviz.widgets.compare.view import CompareView
    from tarviz.widgets.panes.overlays import Overlays


def compare(
    urls: URLs,
    chains: Chains,
    *,
    records: int | Sequence[Any] = 4,
    seed: int = 0,
    epoch: int = 0,
    field: str = "",
    columns: Sequence[str] = (),
    draws: int = 1,
    **reading: Unpack[ReadKeywords],
) -> CompareView:
    """A widget that compares chains on records: every step with dtype, shape, range, time, and what random ops drew.

    `chains` is name → chain (text or ops), a list of chains, or lines `name = chain text`. `records` is how many of the first, or a list
    of keys, numbers or marked ones (`browser.marked`). `columns=["tf.data"]` also runs each chain in the graph and says the largest
    difference. `draws=12` shows every chain with 12 seeds: what random ops make of one record. `field` is shown before any op. Other
    keywords are those of `tarviz.records`. Needs the extra `lab`; `tarviz compare` in a shell does the same as text or as a page.
    """
    from tarviz.read.stream import with_changes
    from tarviz.widgets.compare.controller import Compare

    from tarviz.widgets.compare.view import CompareView  # isort: skip (first what may not be installed would hide the other errors)

    options = with_changes(ReadOptions(strict=False), reading)
    run = Compare(urls, chains, records=records, seed=seed, epoch=epoch, field=field, columns=columns, draws=draws, options=options)
    return CompareView(run)


@dataclass(frozen=True)
class Compared(verb_base.Result):
    """A comparison that is done, as text, data or a page. Exit code 1: an op failed on some record."""

    run: Compare
    page: str | None = None

    __repr__ = redacted_repr

    @property
    def exit_code(self) -> int:
        return 1 if self.run.failures or self.run.fault is not None else 0

    def __str__(self) -> str:
        return self.run.text() if self.page is None else f"{self.run.status}\n{redact(safe(self.page))}"

    def to_dict(self) -> dict[str, Any]:
        from tarviz.widgets.compare.text import plain

        chains = {column.name: str(column.chain) for column in self.run.columns}
        return {"urls": [redact(str(url)) for url in self.run.urls], "chains": chains, "results": plain(self.run.columns, self.run.records)}

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": html_page.fragment(self._body())}

    def to_html(self) -> str:
        """The comparison as a page of its own: no script, nothing loaded from elsewhere."""
        head = f"<h1>{html_page.text(self.run.title)}</h1><p class='soft'>{html_page.text(self.run.status)}</p>"
        return html_page.page(f"compare {self.run.title}", head + self._body())

    def _body(self) -> str:
        from tarviz.widgets.compare.text import apart, milliseconds

        run = self.run
        rows = [
            (column.name, column.title, str(column.chain), column.seed, milliseconds(column.seconds), apart(column.difference))
            for column in run.columns
        ]
        parts = [html_page.table(rows, header=("chain", "runner", "ops", "seed", "a record", ""), right=[3, 4])]
        for at, values in enumerate(run.records):
            parts.append(f"<h2>{html_page.text(values['__key__'])}</h2>")
            for number, column in enumerate(run.columns):
                strip = column.strips[at]
                shown = [_tile(tile, run.overlays) for tile in (strip.tiles if strip is not None else ())]
                first = [_tile(run.originals[at], run.overlays)] if number == 0 else []
                parts.append(f"<p>{html_page.text(column.name)} <span class='soft'>{html_page.text(column.title)}</span></p>")
                parts.append(html_page.sheet([*first, *shown]))
        return "".join(parts)


def _tile(tile: StepTile, overlays: Overlays) -> str:
    from tarviz.widgets.compare.text import milliseconds, reason
    from tarviz.widgets.panes.overlays import paint

    if tile.error is not None:
        return html_page.tile(reason(tile.error), title=tile.op, bad=True)
    look = tile.look
    time = milliseconds(tile.seconds) if tile.op and tile.seconds else ""
    lines = [
        line
        for line in (f"{tile.ext}: {look.feature}", look.range, time, tile.drawn, look.mapping and f"shown {look.mapping}", tile.behind)
        if line
    ]
    shown = paint(tile.picture, tile.over, overlays) if tile.picture else tile.text
    return html_page.tile(shown, title=tile.op or "original", lines=lines)


@verb_base.verb(
    "compare",
    example=[
        "tarviz compare data/ -c 'a = decode(jpg)|resize(jpg, (224, 224))' -c 'b = decode(jpg)|random_crop(jpg, (224, 224))'",
        "tarviz compare data/ --key photo/n00000017 -c 'decode(jpg)|rotate(jpg)' --draws 12 --html compare.html",
    ],
)
@verb_base.urls_argument
@click.option("-c", "--chain", "chains", multiple=True, metavar="NAME = CHAIN", help="A chain to compare; give several.")
@click.option("-n", "--count", type=click.IntRange(1, 32), default=None, help="Records to compare: the first ones. [default: 4; text: 2]")
@click.option("-k", "--key", "keys", multiple=True, metavar="KEY|#N", help="A record to compare, in place of the first ones; give several.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of random ops.")
@click.option("--draws", type=click.IntRange(1, 24), default=1, show_default=True, help="Seeds for every chain, from --seed on.")
@click.option("--field", default="", metavar="EXT", help="Field shown before any op. [default: the one the chains begin with]")
@click.option("--columns", default="", metavar="RUNNERS", help="Also run the whole chain elsewhere and say what differs: tf.data.")
@verb_base.page_option("--html", "page", help="Write a page with all pictures that needs nothing else.")
@verb_base.result_options
def command(
    urls: tuple[str, ...],
    chains: Iterable[str],
    count: int | None,
    keys: tuple[str, ...],
    columns: str,
    page: str | None,
    as_json: bool,
    **wish: Any,
) -> Any:
    """Compare op chains: every step of several chains on several records.

    Each op runs once per record. For every step: dtype, shape, range of values, time, and what random ops drew. In a notebook write
    %%tv compare URL and one `name = chain` a line below: pictures, differences, new seeds.
    """
    wish |= {"columns": [each.strip() for each in columns.split(",") if each.strip()]}
    lines = [*chains, *(verb_base.door().cell or [])]
    if verb_base.for_widgets() and page is None and not as_json:
        return verb_base.emit(compare(list(urls), lines, records=list(keys) or count or 4, **wish))
    from tarviz.widgets.compare.controller import Compare

    run = Compare(list(urls), lines, records=list(keys) or count or (4 if page else 2), **wish)
    try:
        run.wait()
    finally:
        run.close()
    result = Compared(run)
    if page is not None:
        stores.write(page, result.to_html().encode("utf-8", "backslashreplace"))
        result = replace(result, page=page)
    return verb_base.emit(result, as_json)


command.cell = "lines"  # type: ignore[attr-defined]
