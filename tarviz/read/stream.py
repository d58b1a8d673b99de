"""Shards opened through stores and driven through the formats: blocks, records, members, the cached index.

What reading met is counted in a `ReadReport`; errors say shard, record, member and byte.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from inspect import GEN_CLOSED, getgeneratorstate
from os import PathLike
from types import GeneratorType, TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from tarviz import stores
from tarviz.formats.compression import Inflater, kind
from tarviz.formats.records import Grouper
from tarviz.formats.tar import Scanner
from tarviz.model.config import options as configured
from tarviz.model.errors import DataError, Fault, TarvizError, UsageError, redact
from tarviz.model.types import URL, Block, Duplicates, Grouping, KeySplit, Members, OnError, Record, rich_form
from tarviz.read.blocks import Blocks
from tarviz.read.keywords import CHOICES, ReadKeywords
from tarviz.read.report import Noted as Noted
from tarviz.read.report import ReadReport as ReadReport
from tarviz.read.rules import Payloads, Rules
from tarviz.read.walker import Walker
from tarviz.stores import Stat, Stream

URLs = str | PathLike[str] | Iterable[str | PathLike[str]]

if TYPE_CHECKING:
    from tarviz.read.index import Index

_SHARED = "Give each thread records() over shards of its own, or let them take turns with a lock."


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How shards are read; the words are those of the decisions in the documentation.

    `strict`: a record that may be incomplete is an error and not yielded; otherwise it is yielded, warned of and
    marked `pending`. `key_split`: `first-dot` or `last-dot`. `group`: `adjacent` members, or all of the `shard`.
    `duplicates`: a field twice in a record is an `error`, or the `first` or `last` holds. `concatenated`: go on
    after the end-of-archive mark. `on_error`: `raise`, or `skip` damage and count what was lost.
    `block_size`, `max_member_bytes` in bytes, `max_ratio` of inflated to compressed bytes: None takes the
    configured value. `where` is a condition of `tarviz.table` (`"cls = 3 and json.w > 300"`), `keys` a list of keys or the
    name of a file that holds them: records are chosen first, and only their bytes are read.
    """

    strict: bool = True
    key_split: KeySplit = "first-dot"
    group: Grouping = "adjacent"
    duplicates: Duplicates = "error"
    concatenated: bool = False
    on_error: OnError = "raise"
    block_size: int | None = None
    max_member_bytes: int | None = None
    max_ratio: int | None = None
    where: Any = ""
    keys: str | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, values in CHOICES.items():
            if getattr(self, name) not in values:
                raise UsageError(f"{name}={getattr(self, name)!r} is not one of {', '.join(values)}.")

    def rules(self, *, returning: bool = False, payloads: Payloads = "all") -> Rules:
        """What the walker needs of it, configured values filled in; `payloads`: which members are held against the limit."""
        chosen = configured(block_size=self.block_size, max_member_bytes=self.max_member_bytes)
        size = max(chosen.block_size // 512 * 512, 512)
        roomy = 2 * size if self.block_size is None else size
        return Rules(self.strict, self.on_error == "skip", size, roomy, chosen.max_member_bytes, payloads, returning)

    def walker(self, url: str, *, at: int = 0, first: int = 0, returning: bool = False, payloads: Payloads = "all") -> Walker:
        """A walker over a shard, from byte `at` on, where record `first` begins."""
        scanner = Scanner(url, strict=self.strict, concatenated=self.concatenated)
        scanner.at = at
        grouper = Grouper(url, self.key_split, self.duplicates)
        return Walker(scanner, grouper, self.rules(returning=returning, payloads=payloads), first=first)


class Shard:
    """One shard opened for reading from front to back: the tar's bytes, inflated where it is compressed."""

    def __init__(self, url: URL, *, max_ratio: int | None = None, offset: int = 0, etag: str | None = None) -> None:
        self.url = url
        self._stream: Stream = stores.of(url).open(url, offset=offset, etag=etag)
        self.stat: Stat = self._stream.stat
        head = bytearray(6)
        self._inflater: Inflater | None = None
        try:
            count = stores.fill(self._stream, memoryview(head)) if offset == 0 else 0
            self._head = memoryview(bytes(head[:count]))
            self.compression = kind(bytes(self._head))
            if self.compression:
                self._inflater = Inflater(self._stream, self.compression, bytes(self._head), ratio=max_ratio, shard=url)
        except BaseException:
            self._stream.close()
            raise

    def readinto(self, buffer: memoryview, /) -> int:
        if self._inflater is not None:
            return self._inflater.readinto(buffer)
        if self._head:
            count = min(len(buffer), len(self._head))
            buffer[:count] = self._head[:count]
            self._head = self._head[count:]
            return count
        return self._stream.readinto(buffer)

    @property
    def trailing(self) -> int | None:
        """The compressed byte after which no further stream begins though bytes follow."""
        return self._inflater.trailing if self._inflater is not None else None

    def close(self) -> None:
        self._stream.close()


def shards(urls: URLs) -> list[URL]:
    """The shards that URLs, templates, globs and folders stand for, in order."""
    return stores.expand(urls)


def blocks(
    url: str | PathLike[str],
    options: ReadOptions = ReadOptions(),
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
        from tarviz.read.group_by_key import gathered

        return gathered(target, options, report, start, stop)
    return adjacent_blocks(target, options, report, start, stop)


def adjacent_blocks(
    url: URL,
    options: ReadOptions,
    report: ReadReport,
    start: int = 0,
    stop: int | None = None,
    *,
    returning: bool = False,
    place: int | None = None,
    etag: str | None = None,
) -> Generator[Block, None, None]:
    """Like `blocks` for adjacent grouping. `returning=True` disables the check for repeated keys.

    `place`: the byte of a plain tar where record `start` begins, where who asks knows it. Only version `etag` is read, if given.
    """
    start_at = start
    if place is None:
        place, start_at = _entry(url, options, start) if start > 0 else (0, 0)
    chosen, far = configured(max_ratio=options.max_ratio), not stores.is_local(url)
    if far and options.block_size is None:
        options = replace(options, block_size=2 * chosen.block_size)  # each costs something to hand over and to look through
    with closing(Shard(url, max_ratio=chosen.max_ratio, offset=place, etag=etag)) as shard:
        report.opened = shard.stat
        cutter = Blocks(
            shard,
            options.walker(url, at=place, first=start_at, returning=returning),
            interrupt=shard.close,
            ahead=shard.compression is not None or far,
        )
        with closing(cutter):
            noted = Noted(report)
            try:
                for block in cutter:
                    noted.take(cutter)
                    part = _part(block, start, stop)
                    del block
                    if part is not None:
                        report.records += len(part)
                        yield part
                        del part
                    if stop is not None and cutter.count >= stop:
                        break
                else:
                    if shard.trailing is not None:
                        text = f"bytes that are not {shard.compression} follow at compressed byte {shard.trailing}."
                        cutter.notes.append(Fault("W_TRAILING", text, url))
            finally:
                noted.take(cutter)
                report.shards += 1


def _part(block: Block, start: int, stop: int | None) -> Block | None:
    """The records of `block` that lie in `start`…`stop`."""
    low, high = max(start - block.first, 0), len(block) if stop is None else min(stop - block.first, len(block))
    if low == 0 and high == len(block):
        return block
    if low >= high:
        return None
    return block.part(low, high)


def _entry(url: URL, options: ReadOptions, start: int) -> tuple[int, int]:
    """Where record `start` begins in a plain tar, and its number; (0, 0) when it must be read from the front."""
    from tarviz.read.shard_index import shard_index

    index = shard_index(url, options, may_stream=False)
    if index is None or index.packed or start > len(index):
        return 0, 0
    if start == len(index):
        return (int(index.members.end[-1]) if len(index) else 0), start
    return index.span(start)[0], start


def _records(urls: list[URL], options: ReadOptions, report: ReadReport) -> Generator[Record, None, None]:
    for url in urls:
        with closing(blocks(url, options, report=report)) as run:
            try:
                for block in run:
                    records = iter(block)
                    del block  # the records keep it as long as somebody holds one
                    yield from records
                    del records
            except DataError as error:
                if options.on_error == "raise":
                    raise
                report.add(error.at(shard=url).fault, skipped=True)


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
        from tarviz.read.chosen import resolved

        wanted = resolved(targets, wanted)
    return Records(targets, wanted)


def with_changes(options: ReadOptions | None, changes: Mapping[str, Any]) -> ReadOptions:
    """Read options with some replaced; `UsageError` names an option that does not exist."""
    base = ReadOptions() if options is None else options
    known = set(ReadOptions.__dataclass_fields__)
    for name in changes:
        if name not in known:
            raise UsageError(f"reading has no option {name!r}.", hint=f"There are: {', '.join(sorted(known))}.")
    return replace(base, **changes) if changes else base


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
    """The index of shards: records by number and by key, read one at a time. See `tarviz.read.index.Index`."""
    from tarviz.read.index import Index

    return Index(stores.expand(urls), with_changes(None, {"strict": False, **changes}), cache=cache, progress=progress)
