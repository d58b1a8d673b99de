"""The doors to a shard, each with what it says of a tar: its records and its faults."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from tarviz.commands.cat import cat
from tarviz.commands.ls import entries, ls
from tarviz.commands.verify import verify
from tarviz.formats.tar import Scanner
from tarviz.model import errors
from tarviz.model.errors import TarvizError
from tarviz.model.types import PLACES, URL, Block, to_bytes
from tarviz.pipeline import Pipeline
from tarviz.read import stream
from tarviz.read.blocks import Blocks, block_of
from tarviz.read.headers import MemberListing, header_steps
from tarviz.read.report import Noted
from tarviz.read.shard_index import shard_index
from tarviz.read.spans import shard_batches
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.widgets.browse.rows.shard_rows import ShardRows
from tarviz.widgets.browse.scan import scan

Fields = tuple[tuple[str, Any], ...]
Fault = tuple[str, int | None]  # code, byte


class Outcome(NamedTuple):
    """What a door says: records (key, fields with sizes or payloads, pending) and faults (code, byte)."""

    records: list[tuple[bytes, Fields, bool]]
    faults: list[Fault]


def faults(report: ReadReport, error: TarvizError | None) -> list[Fault]:
    found = [*report.warnings, *report.skipped, *([error.fault] if error is not None else [])]
    return sorted(((fault.code, fault.offset) for fault in found), key=str)


def of_blocks(blocks: Iterable[Block]) -> Iterator[tuple[bytes, Fields, bool]]:
    for block in blocks:
        for row, record in enumerate(block):
            yield block.keys[row], tuple((ext, bytes(data)) for ext, data in record.items()), record.pending


def sizes_only(outcome: Outcome) -> Outcome:
    return Outcome(
        [(key, tuple((ext, len(data)) for ext, data in fields), pending) for key, fields, pending in outcome.records], outcome.faults
    )


def collected(run: Iterable[Any], report: ReadReport) -> Outcome:
    found: list[Any] = []
    error = None
    try:
        found.extend(run)
    except TarvizError as raised:
        error = raised
    return Outcome(found, faults(report, error))


def by_blocks(path: Path | str, options: ReadOptions, start: int = 0) -> Outcome:
    report = ReadReport()
    return collected(of_blocks(stream.blocks(str(path), options, report=report, start=start)), report)


def by_records(path: Path, options: ReadOptions) -> Outcome:
    run = stream.records(path, options=options)
    found = ((to_bytes(record.key), tuple((ext, bytes(data)) for ext, data in record.items()), record.pending) for record in run)
    return collected(found, run.report)


class Windows(io.BytesIO):
    """A source that gives a few bytes at a time."""

    def __init__(self, data: bytes, step: int) -> None:
        super().__init__(data)
        self.step = step

    def readinto(self, buffer: Any, /) -> int:
        return super().readinto(memoryview(buffer)[: self.step])


def by_windows(data: bytes, path: Path, options: ReadOptions, size: int, *, ahead: bool) -> Outcome:
    walker = options.walker(str(path))
    walker.rules = replace(walker.rules, block_size=size)
    blocks = Blocks(Windows(data, 7777), walker, ahead=ahead)
    report = ReadReport()
    noted = Noted(report, walker)
    found: list[Any] = []
    error = None
    try:
        found.extend(of_blocks(blocks))
    except TarvizError as raised:
        error = raised
    finally:
        noted.take(blocks.bytes)
        blocks.close()
    return Outcome(found, faults(report, error))


def by_spans(path: Path, options: ReadOptions) -> Outcome:
    report = ReadReport()

    def records() -> Iterator[Any]:
        for batch in shard_batches(URL(str(path)), options, report):
            for record in range(len(batch)):
                fields = tuple((batch.ext(row), bytes(batch.payload(row))) for row in batch.rows(record))
                yield batch.block.keys[record], fields, batch.block.pending == record

    return collected(records(), report)


def by_headers(path: Path, options: ReadOptions) -> Outcome:
    walker = options.walker(str(path), payloads="none")
    report = ReadReport()

    def records() -> Iterator[Any]:
        for step in header_steps(URL(str(path)), walker, report):
            block = block_of(step._replace(data=memoryview(b""), base=0), walker)
            for row in range(len(block)):
                rows = range(int(block.rows[row]), int(block.rows[row + 1]))
                yield block.keys[row], tuple((block.exts[block.ext[at]], int(block.size[at])) for at in rows), block.pending == row
        if walker.error is not None:
            raise walker.error

    found = collected(records(), report)
    told = sorted(((note.code, note.offset) for note in walker.notes), key=str)
    return Outcome(found.records, sorted([*found.faults, *told], key=str))


def of_index(keys: Iterable[bytes], index: Any) -> list[Any]:
    records = []
    for row, key in enumerate(keys):
        rows = range(int(index.rows[row]), int(index.rows[row + 1]))
        fields = tuple((index.exts[int(index.ext[at])], int(index.members.size[at])) for at in rows)
        records.append((key, fields, row in index.pending))
    return records


def of_dicts(found: Iterable[dict[str, Any]]) -> list[Fault]:
    return sorted(((fault["code"], fault.get("offset")) for fault in found), key=str)


def by_index(path: Path | str, options: ReadOptions) -> Outcome:
    index = shard_index(URL(str(path)), options, cache=False)
    assert index is not None
    return Outcome(of_index(index.keys(), index), of_dicts([*index.warnings, *([index.error] if index.error else [])]))


def counted(index: Outcome) -> tuple[int, dict[str, tuple[int, int]], list[Fault]]:
    """Records of an index, of each field how many there are and their bytes, and the faults."""
    found: dict[str, tuple[int, int]] = {}
    for _, own, _ in index.records:
        for ext, size in own:
            count, total = found.get(ext, (0, 0))
            found[ext] = count + 1, total + size
    return len(index.records), found, index.faults


def by_browser(path: Path, options: ReadOptions) -> Outcome:
    shard = ShardRows(0, URL(str(path)))
    for _ in scan(shard, options, cache=False):
        pass
    records = []
    for part in shard.segments:
        for row in range(len(part)):
            index = part.index
            rows = range(int(index.rows[row]), int(index.rows[row + 1]))
            fields = tuple((index.exts[int(index.ext[at])], int(index.members.size[at])) for at in rows)
            records.append((index.key(row), fields, part.first + row in shard.pending))
    shard.close()
    return Outcome(records, sorted(((fault.code, fault.offset) for fault in shard.faults), key=str))


def listed(data: bytes, size: int, *, strict: bool, concatenated: bool) -> tuple[list[Any], list[Any]]:
    """Members as windows of any size show them to a scanner, and what it notes."""
    listing = MemberListing(Scanner("a.tar", strict=strict, concatenated=concatenated))
    found: list[Any] = []
    begin = 0
    while not listing.over:
        end = min(max(begin + size, listing.wants), len(data))
        for run in listing.walk(memoryview(data)[begin:end], begin, final=end == len(data)):
            found += list(run)
        begin = min(listing.place, end // 512 * 512)
    told: list[errors.Fault] = [*listing.notes, *([listing.error.fault] if isinstance(listing.error, TarvizError) else [])]
    return found, sorted(((fault.code, fault.offset) for fault in told), key=str)


def by_members(path: str, *, strict: bool, concatenated: bool) -> tuple[list[Any], list[Any]]:
    report = ReadReport()
    found: list[Any] = []
    error = None
    try:
        for run in stream.members(path, strict=strict, concatenated=concatenated, report=report):
            found += list(run)
    except TarvizError as raised:
        error = raised
    return found, faults(report, error)


# Pipelines: they do not say which record is pending.


def unmarked(outcome: Outcome) -> Outcome:
    """An outcome as a pipeline gives it: no word about records that may lack a member."""
    return Outcome([(key, fields, False) for key, fields, _ in outcome.records], outcome.faults)


def members_of(outcome: Outcome) -> list[tuple[bytes, str, Any]]:
    """The fields of all records in a row, each with its key."""
    return [(key, *field) for key, own, _ in outcome.records for field in own]


def by_name(outcome: Outcome) -> Outcome:
    """The same without a mark, fields in the order of their names, as a graph has them."""
    return Outcome([(key, tuple(sorted(own)), False) for key, own, _ in outcome.records], outcome.faults)


def pipeline_of(path: Path | str, options: ReadOptions, **more: Any) -> Pipeline:
    return Pipeline(str(path), **{part.name: getattr(options, part.name) for part in fields(options)}, **more)


def of_values(values: Iterable[dict[str, Any]]) -> Iterator[tuple[bytes, Fields, bool]]:
    for value in values:
        found = {name: data for name, data in value.items() if name not in PLACES}
        key = value["__key__"]
        yield key if isinstance(key, bytes) else to_bytes(key), tuple(found.items()), False


def by_runner(path: Path, options: ReadOptions, runner: str) -> Outcome:
    """What a pipeline yields in this process: `eager`, or `torch` without workers."""
    run = pipeline_of(path, options).run(runner)
    found = []
    error = None
    try:
        found.extend(of_values(run))
    except TarvizError as raised:
        error = raised
    return Outcome(found, faults(run.report, error))


def by_graph(path: Path, options: ReadOptions, **more: Any) -> Outcome | None:
    """What a `tf.data.Dataset` yields, its fields in the order of their names; None where there is no first record to build it of."""
    try:
        dataset = pipeline_of(path, options).tf(num_workers=1, **more)
    except TarvizError:
        return None
    found: list[Any] = []
    error = None
    try:
        for value in dataset:
            found += of_values([{name: tensor.numpy() for name, tensor in value.items()}])
    except TarvizError as raised:
        error = raised
    return Outcome(found, faults(dataset.report, error))


def by_numbers(path: Path, options: ReadOptions) -> Outcome | TarvizError:
    """A pipeline by number, or why it has none."""
    try:
        return Outcome(list(of_values(pipeline_of(path, options).indexed())), [])
    except TarvizError as error:
        return error


# The verbs.


def by_cat(path: Path, options: ReadOptions) -> tuple[Outcome, list[Fault]] | TarvizError:
    """The records of the tar that `cat` writes, with what it warned of, and what reading that tar does; or the error, and no tar."""
    output = path.with_name("cat.tar")
    output.unlink(missing_ok=True)
    try:
        made = cat(str(path), output, **{part.name: getattr(options, part.name) for part in fields(options)})
    except TarvizError as error:
        assert not output.exists()
        return error
    written = by_blocks(output, ReadOptions(strict=options.strict))
    return Outcome(written.records, faults(made.report, None)), written.faults


def by_ls(path: Path, options: ReadOptions) -> tuple[int, dict[str, tuple[int, int]], list[Fault]]:
    """How many records `ls` counts, of each field how many there are and their bytes, and the faults."""
    (found,) = ls(str(path), cache=False, concatenated=options.concatenated, duplicates=options.duplicates).shards
    told = of_dicts([*found.warnings, *([found.error] if found.error else [])])
    return found.records, {ext: (each.records, each.bytes) for ext, each in found.fields.items()}, told


def by_entries(path: Path, *, concatenated: bool) -> tuple[list[Any], list[Any]]:
    """What `ls --members` lists."""
    found = entries(str(path), concatenated=concatenated)
    members = [member for _, member in found]
    return members, sorted(((fault.code, fault.offset) for fault in (*found.faults, *found.report.warnings)), key=str)


def by_verify(path: Path, options: ReadOptions) -> tuple[int, list[Fault]]:
    """How many records `verify` found, and what was wrong."""
    names = ("duplicates", "concatenated", "max_member_bytes")
    found = verify(str(path), strict=options.strict, format="tar", **{name: getattr(options, name) for name in names})
    return found.records, of_dicts([*found.faults, *found.warnings])
