"""What can be saved of a damaged tar, written as a tar that is whole, and a list of what cannot."""

from __future__ import annotations

from os import PathLike, fspath

from tarviz import stores
from tarviz.commands.cat import cat
from tarviz.commands.verify.verified import Salvage, Verified
from tarviz.model.errors import UsageError, redact
from tarviz.model.types import URL
from tarviz.model.urls import without_query
from tarviz.read.stream import ReadOptions


def repair(urls: list[URL], output: str | PathLike[str] | None, found: Verified, options: ReadOptions) -> None:
    """Write a tar beside each damaged shard (`a.tar` → `a.repaired.tar`), or under the name `output` where there is one shard.

    Saved are records all of whose members can be read, bit for bit; one that may lack a member is kept with a warning unless
    `options.strict`. `found` gets what was written, and what was not saved: damaged members and their records, files of no record. A shard
    without a fault is left alone, unless `output` is given.
    """
    if output is not None and len(urls) > 1:
        raise UsageError(f"there are {len(urls)} shards and one output.", hint="Leave out -o: each repaired tar lies beside its shard.")
    if URL("-") in urls:
        raise UsageError("standard input can be read once only.", hint="Save it to a file first.")
    changes = {name: getattr(options, name) for name in ("strict", "key_split", "duplicates", "concatenated")}
    for url in urls:
        damaged = any(each.get("shard") == redact(url) for each in (*found.faults, *found.warnings))
        if output is None and not damaged:
            continue
        target = beside(url) if output is None else fspath(output)
        made = cat([url], target, on_error="skip", **changes)
        found.written.append(Salvage(url, target, made.records, made.bytes))
        known = {(each["code"], each.get("offset"), each.get("record")) for each in (*found.faults, *found.warnings)}
        for fault in (*made.report.skipped, *made.report.warnings):
            if (fault.code, fault.offset, fault.key) not in known:  # what strict reading leaves out
                found.add(fault)


def beside(url: str) -> str:
    """The name of what is saved of a shard.

    >>> beside("data/a.tar.gz"), beside("https://host/a.tar?x=1")
    ('data/a.repaired.tar.gz', 'a.repaired.tar')
    """
    name = url if stores.is_local(url) else without_query(url)[0].rpartition("/")[2]
    return stores.before_suffix(name, ".repaired")
