"""The one place where what records hold becomes HTML: escaped text, inline styles, pictures as data. For notebooks' outputs.

JupyterLab's sanitiser keeps just this (inline `style`, `img` with `data:`) and takes out `<style>`, `<svg>` and scripts.
"""

from __future__ import annotations

import base64
import html
import warnings
from collections.abc import Container, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from tarviz.model.config import format_size
from tarviz.model.errors import TarvizError, TarvizWarning, redact, safe
from tarviz.viewers.panel import Meta, readable
from tarviz.viewers.registry import tile

BUDGET = 64 << 10
_SHOWN_FIELDS = 12
_PICTURE_BYTES = 4 << 20
_CARD = "display:inline-block;vertical-align:top;margin:2px 10px 8px 0;max-width:260px"
_FAINT = "opacity:.75;font-size:12px"


def text(value: object, limit: int = 400) -> str:
    """Any text as HTML: control and bidi characters spelled out, markup escaped, cut at `limit` characters."""
    shown = readable(safe(str(value)))
    return html.escape(shown if len(shown) <= limit else shown[: limit - 1] + "…")


def picture(data: bytes, alt: str = "") -> str:
    """An encoded picture as an `<img>`; its type is told by its bytes."""
    kind = "png" if data.startswith(b"\x89PNG") else "webp" if data[8:12] == b"WEBP" else "jpeg"
    return (
        f'<img alt="{text(alt)}" style="max-width:160px;max-height:160px" src="data:image/{kind};base64,{base64.b64encode(data).decode()}">'
    )


def field(ext: str, blob: bytes | memoryview, key: str = "") -> str:
    """One field as a small card: name, size, and a picture, a short text, or the reason why there is none."""
    head = f"<b>{text(ext)}</b> <span style='{_FAINT}'>{format_size(len(blob))}</span>"
    if len(blob) > _PICTURE_BYTES:
        body = "too large for this preview"
    else:
        try:
            shown = tile(blob, Meta(ext, key), 160)
        except TarvizError as error:
            shown = f"{error.code}: {error.message}"
        body = picture(shown, ext) if isinstance(shown, bytes) else f"<code style='white-space:pre-wrap'>{text(shown, 240)}</code>"
    return f"<div style='{_CARD}'>{head}<br>{body}</div>"


def record(found: Any) -> str:
    """A record: its key and shard, and a card for each field, within 64 kB."""
    place = f"record {found.index} of {redact(found.shard)}"
    parts = [
        f"<div><b>{text(found.key)}</b> <span style='{_FAINT}'>{text(place)}{', may be incomplete' if found.pending else ''}</span></div>"
    ]
    return "".join([*parts, *_within_budget(field(ext, found[ext], found.key) for ext in list(found)[:_SHOWN_FIELDS])])


def _within_budget(cards: Iterable[str]) -> list[str]:
    kept: list[str] = []
    used = 0
    for card in cards:
        used += len(card)
        if used > BUDGET:
            kept.append(f"<div style='{_FAINT}'>cut here: this preview stays below {BUDGET // 1024} kB</div>")
            break
        kept.append(card)
    return kept


def table(rows: Iterable[Mapping[str, object]], *, right: Container[str] = ()) -> str:
    """Rows of like mappings as a table; the columns named in `right` are set to the right."""
    found = list(rows)
    if not found:
        return ""
    style = {name: f"text-align:{'right' if name in right else 'left'};padding-right:14px" for name in found[0]}
    head = "".join(f"<th style='{style[name]}'>{text(name)}</th>" for name in found[0])
    lines = ("".join(f"<td style='{style[name]}'>{text(cell)}</td>" for name, cell in row.items()) for row in found)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def index(found: Any) -> str:
    """An index: its shards, its fields, and the first records of local ones as pictures."""
    from tarviz import stores

    shards = [{"shard": redact(url), "records": f"{len(shard):,}"} for url, shard in zip(found.urls, found.shards, strict=False)]
    fields = ", ".join(f"{ext} {count:,}" for ext, count in list(found.fields().items())[:_SHOWN_FIELDS])
    parts = [f"<div><b>{len(found):,} records</b> <span style='{_FAINT}'>{text(fields)}</span></div>", _shards(shards)]
    if len(found) and stores.is_local(found.urls[0]):
        parts += _within_budget(_first_field(found[number]) for number in range(min(6, len(found.shards[0]))))
    return "".join(parts)


def _shards(rows: list[dict[str, str]]) -> str:
    """The first shards, and how many more there are."""
    return table(rows[:10], right=("records",)) + (
        f"<div style='{_FAINT}'>and {len(rows) - 10} more shards</div>" if len(rows) > 10 else ""
    )


def _first_field(found: Any) -> str:
    ext = next(iter(found), "")
    return field(ext, found[ext], found.key) if ext else ""


def records(found: Any) -> str:
    """An iterator over records: its shards, how far it is, and the first records of local ones, read anew so that none is used up."""
    from tarviz import stores
    from tarviz.read.stream import blocks

    parts = [
        f"<div><b>records</b> <span style='{_FAINT}'>so far {text(found.report)}</span></div>",
        _shards([{"shard": redact(url)} for url in found.urls]),
    ]
    if stores.is_local(found.urls[0]):
        with warnings.catch_warnings(), closing(blocks(found.urls[0], replace(found.options, strict=False), stop=6)) as run:
            warnings.simplefilter("ignore", TarvizWarning)
            parts += _within_budget(_first_field(one) for block in run for one in block)
    return "".join(parts)


def rows(found: Any) -> str:
    """A table over shards: its first records, in the columns made so far, and how many more columns there can be."""
    from tarviz.table.sql import quoted_name

    made = [name for name, kind in found.columns.items() if kind is not None]
    names = ", ".join(map(quoted_name, made[:_SHOWN_FIELDS]))
    first = found.sql(f"SELECT {names} FROM records ORDER BY shard, n LIMIT 8").to_arrow_table().to_pylist()
    shown = [{name: "" if value is None else str(value)[:80] for name, value in row.items()} for row in first]
    others = ", ".join(name for name in found.columns if name not in made)
    parts = [
        f"<div><b>{len(found):,} records</b> <span style='{_FAINT}'>in {len(found.urls):,} shard(s)</span></div>",
        table(shown, right=[name for name in made if name not in ("key", "shard")]),
        f"<div style='{_FAINT}'>made when they are asked for: {text(others, 400)}</div>" if others else "",
    ]
    return "".join(parts)


def chain(found: Any) -> str:
    """A chain: its text, and what each op does."""
    steps = [{"op": str(op), "does": (type(op).__doc__ or "").strip().partition("\n")[0]} for op in found]
    return f"<div><b>chain</b> <code>{text(found, 2000)}</code></div>{table(steps)}"


def pipeline(found: Any) -> str:
    """A pipeline: shards, ops, selection, and what it yields where that can be told from names alone."""
    from tarviz import selection, stores

    rows: list[tuple[str, object]] = [("shards" if number == 0 else "", redact(url)) for number, url in enumerate(found.urls[:5])]
    rows += [("", f"and {len(found.urls) - 5} more")] if len(found.urls) > 5 else []
    rows.append(("chain", str(found.chain) or "none: raw records"))
    rows += [("yields", str(selection.plain(found.select) or "a dict of all fields"))]
    if found.seed:
        rows.append(("seed", found.seed))
    if stores.is_local(found.urls[0]) and all(op.typed for op in found.chain):
        try:
            rows.append(("schema", _structure(found.schema())))
        except TarvizError as error:
            rows.append(("schema", str(error)))
    return f"<div><b>pipeline</b></div>{table({'': name, 'value': value} for name, value in rows)}"


def _structure(features: Any) -> str:
    """Features in the structure of a selection, as people write it: `(uint8[4, 4, 3], bytes)`."""
    if isinstance(features, Mapping):
        return ", ".join(f"{name}: {_structure(part)}" for name, part in features.items())
    if isinstance(features, list | tuple):
        return f"({', '.join(map(_structure, features))})"
    return str(features)


def bundle(found: Any) -> dict[str, str]:
    """What a notebook shows for a record, records, an index, a table, a chain or a pipeline; plain text where HTML is not wanted."""
    makers = {"Records": records, "Chain": chain, "Pipeline": pipeline, "Table": rows}
    make = makers.get(type(found).__name__) or (index if hasattr(found, "shards") else record)
    try:
        return {"text/plain": repr(found), "text/html": make(found)}
    except (TarvizError, OSError) as error:  # the shard changed or went away since
        return {"text/plain": f"{found!r}\n{error}"}
