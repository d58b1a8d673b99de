"""Write a data set's card: a README with counts, fields, splits, pictures and histograms, and Croissant metadata beside it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike, fspath
from typing import Any, Unpack

import click

from tarviz import stores
from tarviz.cli import verb_base
from tarviz.commands.ls import Listing, ls
from tarviz.commands.show import show
from tarviz.commands.show.inline_images import pictures, sheet
from tarviz.model.config import format_size
from tarviz.model.errors import DataError, Fault, MissingPackageError, redact, safe
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL
from tarviz.model.wording import plural
from tarviz.outputs.names import Exists, refuse_existing
from tarviz.read.keywords import CutKeywords
from tarviz.read.stream import shards
from tarviz.stores import URLs
from tarviz.tools import croissant

_SHEET = 24  # records whose pictures are shown
_HISTOGRAMS = 12
_ASKED = ("number", "json", "picture")  # kinds of fields whose columns are shown, in this order
_BARS = 12  # of numbers
_WIDE, _LABEL = 32, 40  # characters of the longest bar, and of what stands before it
_SPLITS = {"train": "train", "training": "train", "test": "test", "val": "validation", "valid": "validation", "validation": "validation"}
_SPLITS["dev"] = "validation"
_ENDS = ("n", "1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")  # of the hub's classes of size
_TO_FILL = "(to be filled in)"


@dataclass
class Card(verb_base.Result):
    """The card as Markdown, `.text`; the metadata as a dict, `.croissant`; the files written."""

    text: str
    croissant: dict[str, Any]
    records: int
    outputs: list[str] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)

    __repr__ = redacted_repr

    def __str__(self) -> str:
        return "\n".join(redact(safe(name)) for name in self.outputs) if self.outputs else self.text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/markdown": self.text}

    def notes(self) -> Iterator[str]:
        yield from map(str, self.warnings)

    def to_dict(self) -> dict[str, Any]:
        return {"records": self.records, "outputs": [redact(name) for name in self.outputs], "croissant": self.croissant}


def card(
    urls: URLs,
    output: str | PathLike[str] = "-",
    *,
    name: str | None = None,
    exists: Exists = "error",
    **reading: Unpack[CutKeywords],
) -> Card:
    """The card of a data set, as the Hugging Face hub shows it: splits by the names of shards, fields, pictures, histograms of classes and
    of what is in JSON. Licence, description and source are left to fill in.

    Beside `output` come `croissant.json` (Croissant 1.1, with the sum of each shard, which are read for it) and `sheet.png` where there
    are pictures; with `"-"` nothing is written but the card. `exists="replace"` writes over a card that is there. `name` is that of the
    folder of the shards. Histograms need the extra `table`. `DataError` for a damaged shard.
    """
    target, targets = fspath(output), shards(urls)
    folder = os.path.dirname(target)
    beside = {} if target == "-" else {end: URL(os.path.join(folder, end)) for end in ("croissant.json", "sheet.png")}
    if exists == "error":
        for place in (URL(target), *beside.values()):
            refuse_existing(place)
    listing = ls(targets, **reading)
    if damaged := [shard for shard in listing.shards if shard.error]:
        raise DataError("the shard is damaged.", shard=damaged[0].url, hint="tarviz verify names the byte.")
    named = {url: os.path.relpath(stores.local_path(url), folder or ".") if stores.is_local(url) else redact(url) for url in targets}
    name = name or os.path.basename(os.path.dirname(os.path.abspath(targets[0]))) or "data"
    about = f"{plural(listing.records, 'record')} in {plural(len(targets), 'tar shard')}, with the fields {', '.join(listing.fields)}."
    made = Card("", croissant.metadata(name, about, _sum_shards(named), list(listing.fields)), listing.records)
    made.warnings = [Fault.of(each, shard.url) for shard in listing.shards for each in shard.warnings]
    with verb_base.silent_warnings():
        shown = show(targets, count=_SHEET if beside else 0, **reading)
        has_pictures = any(True for record in shown.records for _ in pictures(record, None, 16))
        made.text = markdown(name, about, listing, named, list(_histograms(targets, reading)), has_pictures)
    if beside:
        _write(URL(target), made.text.encode(), made)
        _write(beside["croissant.json"], json.dumps(made.croissant, indent=2, ensure_ascii=False).encode(), made)
    if has_pictures:
        _write(beside["sheet.png"], sheet(shown), made)
    return made


def _sum_shards(named: Mapping[URL, str]) -> list[croissant.ShardFile]:
    files = []
    with verb_base.progress(len(named), "shards", label="summing") as bar:
        for url, name in named.items():
            files.append(croissant.ShardFile.of(url, name))
            bar.add()
    return files


def _write(place: URL, data: bytes, made: Card) -> None:
    stores.write(place, data)
    made.outputs.append(place)


def split_of(name: str) -> str:
    """The split that the name of a shard tells, its file's name before its folders'; train where it tells none.

    >>> split_of("train/part-valid-0001.tar"), split_of("test/0001.tar"), split_of("trains-0001.tar")
    ('validation', 'test', 'train')
    """
    words = re.split(r"[^a-z]+", name.lower())
    return next((_SPLITS[word] for word in reversed(words) if word in _SPLITS), "train")


def markdown(name: str, about: str, listing: Listing, named: Mapping[URL, str], histograms: Sequence[str], has_pictures: bool) -> str:
    """The card, from what the shards hold: `named` says what each is called in it."""
    splits: dict[str, list[Any]] = {}
    for shard in listing.shards:
        splits.setdefault(split_of(named[shard.url]), []).append(shard)
    files = {split: sorted({re.sub(r"\d+(?=\D*$)", "*", named[shard.url]) for shard in some}) for split, some in splits.items()}
    at = min(max(len(str(listing.records)) - 3, 0), len(_ENDS) - 2)
    size = f"{_ENDS[at]}<{_ENDS[1]}" if not at else f"{_ENDS[at]}<n<{_ENDS[at + 1]}"
    head = ["---", f"license: # {_TO_FILL}", f"pretty_name: {json.dumps(name)}", "size_categories:", f"- {size}", "tags:", "- webdataset"]
    head += ["configs:", "- config_name: default", "  data_files:"]
    for split, patterns in files.items():
        head += [f"  - split: {split}", "    path:", *(f"    - {json.dumps(pattern)}" for pattern in patterns)]
    rows = [
        (split, f"{len(some):,}", f"{sum(each.records for each in some):,}", format_size(sum(each.bytes or 0 for each in some)))
        for split, some in splits.items()
    ]
    fields = [
        (ext, croissant.type_of(ext).partition(":")[2], f"{each.records:,}", format_size(each.bytes), format_size(each.mean))
        for ext, each in listing.fields.items()
    ]
    parts = ["\n".join([*head, "---"]), f"# {name}", about, f"Description: {_TO_FILL}"]
    parts += ["![The first records](sheet.png)"] if has_pictures else []
    parts += ["## Splits", _table(("split", "shards", "records", "size"), rows)]
    parts += ["## Fields", _table(("field", "kind", "records", "bytes", "mean"), fields)]
    parts += ["## Values", *histograms] if histograms else []
    first = next(iter(named.values()))
    loading = f'import tarviz\n\nfor record in tarviz.records("{first}"):\n    print(record.key, *record)'
    parts += ["## Loading", f"```python\n{loading}\n```", f"## Licence\n\n{_TO_FILL}", f"## Source and citation\n\n{_TO_FILL}"]
    return "\n\n".join(parts) + "\n"


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [titles, ["---", *["--:"] * (len(titles) - 1)], *rows]
    return "\n".join(f"| {' | '.join(safe(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _histograms(targets: Sequence[URL], reading: CutKeywords) -> Iterator[str]:
    """The bars of the first columns that have few values, or numbers; nothing without DuckDB."""
    from tarviz.table.columns import kind
    from tarviz.table.facets import VALUES
    from tarviz.table.places import NUMBERS
    from tarviz.table.table import Table

    try:
        table = Table(list(targets), **reading)
    except MissingPackageError:
        return
    parts = [part for part in table.possible.values() if part.tier in ("value", "head") and kind(part.ext) in _ASKED]
    table.make(parts)
    asked = {ext: _ASKED.index(kind(ext)) for ext in dict.fromkeys(part.ext for part in parts)}
    columns = [(name, of) for name, of in table.leaves.items() if name.partition(".")[0] in asked and not name.endswith((".size", ".bad"))]
    columns.sort(key=lambda each: asked[each[0].partition(".")[0]])
    facets = ((column, of, table.facets(column, bins=_BARS)) for column, of in columns if of in (*NUMBERS, "varchar", "boolean"))
    told = ((column, facet) for column, of, facet in facets if facet.bars and (of != "varchar" or facet.all.distinct <= VALUES))
    for column, facet in islice(told, _HISTOGRAMS):
        most = max(bar.all for bar in facet.bars)
        labels = [safe(bar.label)[:_LABEL] for bar in facet.bars]
        wide = max(map(len, labels))
        bars = (f"{label:{wide}}  {'█' * -(-bar.all * _WIDE // most)} {bar.all:,}" for label, bar in zip(labels, facet.bars, strict=True))
        values = plural(facet.all.distinct, "value")
        yield f"`{safe(column)}`: {values}, {plural(facet.all.missing, 'record')} without\n\n```\n" + "\n".join(bars) + "\n```"


@verb_base.verb("card", example=["tarviz card data/ -o data/README.md", "tarviz card --replace --name digits 'train-*.tar' -o README.md"])
@verb_base.urls_argument
@verb_base.output_option
@click.option("--name", metavar="NAME", help="Of the data set. [default: that of the folder]")
@click.option("--replace", "exists", flag_value="replace", default="error", help="Write over a card that is there.")
@verb_base.result_options
def command(urls: Sequence[str], output: str | None, name: str | None, exists: Exists, as_json: bool) -> Any:
    """Write the card of a data set: README.md as the Hugging Face hub shows it, croissant.json, and a contact sheet.

    Counts, fields, splits (by the names of shards), histograms; licence, description and citation are left to fill in. Without -o the card
    is printed and nothing else made.
    """
    return verb_base.emit(card(list(urls), output or "-", name=name, exists=exists), as_json)
