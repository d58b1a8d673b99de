"""The front door of reading: blocks, records, members and the index of shards, by URL.

What reading met is counted in a `ReadReport`; errors say shard, record, member and byte.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from inspect import GEN_CLOSED, getgeneratorstate
from os import PathLike
from types import GeneratorType, TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from tarviz import stores
from tarviz.formats.tar import Scanner
from tarviz.model.errors import TarvizError, UsageError, redact
from tarviz.model.types import URL, Block, Members, Record, rich_form
from tarviz.read.keywords import ReadKeywords
from tarviz.read.options import ReadOptions as ReadOptions
from tarviz.read.options import with_changes as with_changes
from tarviz.read.report import ReadReport as ReadReport
from tarviz.read.shard import adjacent_blocks
from tarviz.stores import URLs as URLs

if TYPE_CHECKING:
    from tarviz.read.index import Index

shards = stores.expand
_USUAL = ReadOptions()
_SHARED = "Give each thread records() over shards of its own, or let them take turns with a lock."


def blocks(
    url: str | PathLike[str],
    options: ReadOptions = _USUAL,
    *,
    report: ReadReport | None = None,
    start: int = 0,
    stop: int | None = None,
) -> Generator[Block, None, None]:
    """The blocks of one shard, in order: whole records, `start`…`stop` of them.

    Raises `DataError` after the last certain record of a damaged shard, `NotFoundError`, `StoreError`. With
    `start` a plain tar is entered in the middle, where its index (built if need be) says. Closing the iterator
    closes the shard at once.
    """
    report = ReadReport() if report is None else report
    target = stores.expand([url])[0] if not isinstance(url, str) else URL(url)
    if options.where or options.keys:
        from tarviz.read import chosen

        return chosen.blocks(target, options, report, start, stop)
    if options.group == "shard":
        from tarviz.read.group_by_key import gather

        return gather(target, options, report, start, stop)
    if start > 0:
        from tarviz.read.shard_index import entered_blocks

        return entered_blocks(target, options, report, start, stop)
    return adjacent_blocks(target, options, report, start, stop)


def _records(urls: list[URL], options: ReadOptions, report: ReadReport) -> Generator[Record, None, None]:
    for url in urls:
        with closing(blocks(url, options, report=report)) as run, report.skip_damage(url, options.on_error):
            for block in run:
                records = iter(block)
                del block  # the records keep it as long as somebody holds one
                yield from records
                del records


class Records(Iterator[Record]):
    """The records of shards, one after the other; `report` says what was met. Close it, or use `with`.

    Threads may take turns. `UsageError` where one asks for the next record while another is waiting for it: nothing is lost by that.
    """

    def __init__(self, urls: list[URL], options: ReadOptions) -> None:
        self.report = ReadReport()
        self.urls = urls
        self.options = options
        # Not a method: an iterator dropped in the middle must be freed, and its file closed, without the cycle collector.
        self._run = cast("GeneratorType[Record, None, None]", _records(self.urls, options, self.report))

    def __next__(self) -> Record:
        try:
            return next(self._run)
        except ValueError:
            if getgeneratorstate(self._run) != GEN_CLOSED:  # it has not raised that itself
                raise UsageError("two threads read one iterator at a time.", hint=_SHARED) from None
            raise

    def __iter__(self) -> Self:
        return self

    def close(self) -> None:
        """Close the shard that is open. What was read stays in `report`."""
        self._run.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Records of {len(self.urls)} shard(s), first {redact(self.urls[0])}; so far {self.report}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return rich_form(self)


def records(urls: URLs, *, options: ReadOptions | None = None, **changes: Unpack[ReadKeywords]) -> Records:
    """An iterator over the records of shards, in shard and record order, with a `.report`.

    `urls`: a path, URL, template (`train-{0000..0147}.tar`), folder, or a list of these. Keywords are those of
    `ReadOptions` (`strict`, `key_split`, `duplicates`, `on_error`, …). Raises `DataError` where a shard is
    damaged, after its last certain record; each warning code comes once through `warnings` as `TarvizWarning`.
    """
    targets, wanted = stores.expand(urls), with_changes(options, changes)
    if wanted.where or wanted.keys:
        from tarviz.read.chosen import resolve

        wanted = resolve(targets, wanted)
    return Records(targets, wanted)


def members(
    url: str | PathLike[str], *, strict: bool = False, concatenated: bool = False, report: ReadReport | None = None
) -> Iterator[Members]:
    """Every entry of one shard, of any type, in file order, as columns; payloads are passed over, not kept.

    A plain local tar is read around its headers only. Raises `DataError` after the last readable header.
    """
    from tarviz.read.headers import MemberListing, header_steps

    target = stores.expand([url])[0] if not isinstance(url, str) else URL(url)
    report = ReadReport() if report is None else report
    listing = MemberListing(Scanner(target, strict=strict, concatenated=concatenated))
    try:
        for run in header_steps(target, listing, report):
            if len(run):
                yield run
        if listing.error is not None:
            raise listing.error.at(shard=target) if isinstance(listing.error, TarvizError) else listing.error
    finally:
        for fault in listing.scanner.notes:
            report.add(fault)
        report.shards += 1


def index(urls: URLs, *, cache: bool = True, progress: Callable[[int, int], None] | None = None, **changes: Unpack[ReadKeywords]) -> Index:
    """The index of shards or TFRecord files: records by number and by key, read one at a time. See `tarviz.read.index.Index`."""
    from tarviz.read.index import Index
    from tarviz.read.tfrecords import as_shards

    return Index(as_shards(stores.expand(urls)), with_changes(None, {"strict": False, **changes}), cache=cache, progress=progress)
