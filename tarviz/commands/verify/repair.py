"""What can be saved of a damaged tar, written as a tar that is whole, and a list of what cannot."""

from __future__ import annotations

from dataclasses import dataclass, fields
from os import PathLike, fspath
from typing import Any

from tarviz import stores
from tarviz.commands.cat import cat
from tarviz.commands.verify.verified import Verified
from tarviz.model.config import format_size
from tarviz.model.errors import UsageError, redact, safe
from tarviz.model.types import URL
from tarviz.model.urls import without_query
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.stores import SHARD_SUFFIXES


@dataclass
class Repaired(Verified):
    """What `verify` found, and the tars written out of what could be saved: (shard, tar, records, bytes) each."""

    written: tuple[tuple[str, str, int, int], ...] = ()

    def __str__(self) -> str:
        lines = [
            f"{redact(safe(shard))} → {redact(safe(tar))}: {records:,} record{'' if records == 1 else 's'}, {format_size(size)}"
            for shard, tar, records, size in self.written
        ]
        return "\n".join([super().__str__(), *lines])

    def to_dict(self) -> dict[str, Any]:
        names = ("shard", "output", "records", "bytes")
        written = [dict(zip(names, (redact(shard), redact(tar), records, size), strict=True)) for shard, tar, records, size in self.written]
        return super().to_dict() | {"written": written}


def repair(urls: list[URL], output: str | PathLike[str] | None, found: Verified, options: ReadOptions) -> Repaired:
    """`found` with a tar beside each damaged shard (`a.tar` → `a.repaired.tar`), or under the name `output` where there is one shard.

    Saved are records all of whose members can be read, bit for bit; one that may lack a member is kept with a warning unless
    `options.strict`. What is not saved stands in the list: damaged members and their records, files of no record. A shard
    without a fault is left alone, unless `output` is given.
    """
    if output is not None and len(urls) > 1:
        raise UsageError(f"there are {len(urls)} shards and one output.", hint="Leave out -o: each repaired tar lies beside its shard.")
    if URL("-") in urls:
        raise UsageError("standard input can be read once only.", hint="Save it to a file first.")
    told = Repaired(**{each.name: getattr(found, each.name) for each in fields(Verified)})
    changes = {name: getattr(options, name) for name in ("strict", "key_split", "duplicates", "concatenated")}
    for url in urls:
        damaged = any(each.get("shard") == redact(url) for each in (*found.faults, *found.warnings))
        if output is None and not damaged:
            continue
        target = beside(url) if output is None else fspath(output)
        made = cat([url], target, on_error="skip", **changes)
        told.written = (*told.written, (url, target, made.records, made.bytes))
        _add_new(told, made.report)
    return told


def beside(url: str) -> str:
    """The name of what is saved of a shard.

    >>> beside("data/a.tar.gz"), beside("https://host/a.tar?x=1")
    ('data/a.repaired.tar.gz', 'a.repaired.tar')
    """
    name = url if stores.is_local(url) else without_query(url)[0].rpartition("/")[2]
    suffix = next((suffix for suffix in sorted(SHARD_SUFFIXES, key=len, reverse=True) if name.endswith(suffix)), "")
    return f"{name.removesuffix(suffix)}.repaired{suffix or '.tar'}"


def _add_new(told: Repaired, report: ReadReport) -> None:
    """Faults that the lenient look did not list: what strict reading leaves out."""
    known = {(each["code"], each.get("offset"), each.get("record")) for each in (*told.faults, *told.warnings)}
    for fault in (*report.skipped, *report.warnings):
        if (fault.code, fault.offset, fault.key) not in known:
            told.add(fault)
