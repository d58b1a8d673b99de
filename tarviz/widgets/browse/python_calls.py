"""The Python that shows again what a browser shows, for whoever copies it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from tarviz.model.errors import redact
from tarviz.viewers.panel import readable
from tarviz.widgets.browse.query import ViewWish

_USUAL = {"where": "", "keys": [], "sort": "order", "seed": 0, "image": "", "label": "", "px": 160, "overlay": "", "start": ""}


def browse(urls: Sequence[str | PathLike[str]], wish: ViewWish, chosen: Mapping[str, Any]) -> str:
    """`tarviz.browse(…)` with what differs from the usual.

    >>> browse(["a.tar"], ViewWish("cls = 1", "random", 4), {"px": 96})
    "tarviz.browse('a.tar', where='cls = 1', sort='random', seed=4, px=96)"
    """
    words = {"where": wish.condition, "keys": sorted(wish.keys), "sort": wish.sort, "seed": wish.seed if wish.sort == "random" else 0}
    written = [f"{name}={value!r}" for name, value in (words | dict(chosen)).items() if value != _USUAL[name]]
    return f"tarviz.browse({', '.join([_urls(urls), *written])})"


def compare(urls: Sequence[str | PathLike[str]], field: str, records: Sequence[str], count: int) -> str:
    """`tarviz.compare(…)` of records as Python writes them, of which there were `count`."""
    left = f"  # the first {len(records)} of {count} marked" if count > len(records) else ""
    return readable(f"tarviz.compare({_urls(urls)}, ['decode({field})'], records=[{', '.join(records)}]){left}")


def record(url: str, number: int) -> str:
    """The record of a shard by its number there."""
    return f"tarviz.index({redact(url)!r})[{number}]"


def _urls(urls: Sequence[str | PathLike[str]]) -> str:
    shown = [redact(str(url)) for url in urls]
    return repr(shown[0] if len(shown) == 1 else shown)
