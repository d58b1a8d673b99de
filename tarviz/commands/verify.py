"""Find every fault in shards and TFRecord files: damage, what readers disagree about, and with --deep what cannot be decoded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from os import PathLike, fspath
from typing import IO, Any, Unpack

import click

from tarviz import engines, stores
from tarviz.cli import html_page, shard_table, verb_base
from tarviz.cli.shard_map import jobs_options
from tarviz.cli.tar_tool_options import Tar
from tarviz.commands.cat import cat
from tarviz.formats import example, tfrecord
from tarviz.formats.features import Kind, check_kinds
from tarviz.model.errors import DataError, Fault, SchemaError, TarvizError, UsageError, redact, safe
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL, Block, Record
from tarviz.model.urls import without_query
from tarviz.model.wording import plural
from tarviz.read import stream as read_stream
from tarviz.read.chosen import resolve
from tarviz.read.keywords import ReadKeywords
from tarviz.read.several import several
from tarviz.read.stream import ReadOptions
from tarviz.read.tfrecords import is_tfrecord
from tarviz.stores import URLs

MAX_KEPT = 10_000  # findings of one kind kept whole; beyond that they are counted


@dataclass(frozen=True)
class Salvage:
    """What could be saved of a damaged shard: the tar it is in, its records and bytes."""

    shard: str
    output: str
    records: int
    bytes: int

    __repr__ = redacted_repr

    def __str__(self) -> str:
        return f"{redact(safe(self.shard))} → {Tar(self.output, self.records, self.bytes)}"


@dataclass
class Verified(verb_base.Result):
    """What was read, and every finding as a dict: `code`, `message`, `shard`, `record`, `member`, `offset`, and more where it is known.

    `offset` counts bytes of the uncompressed file; `counts` says how often each code came; `written` is what a repair saved.
    """

    records: int = 0
    bytes: int = 0
    shards: int = 0
    faults: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    written: list[Salvage] = field(default_factory=list)

    def add(self, found: Fault | TarvizError) -> None:
        """File one finding: `W_…` under warnings, the rest under faults."""
        kept = self.warnings if found.code.startswith("W_") else self.faults
        self.counts[found.code] = self.counts.get(found.code, 0) + 1
        if len(kept) < MAX_KEPT:
            places = {name: value for name, value in found.to_dict().items() if name != "key"}
            kept.append({**places, **({"record": found.key} if found.key is not None else {})})

    def merge(self, other: Verified) -> None:
        """File what was found in other shards."""
        self.records, self.bytes, self.shards = self.records + other.records, self.bytes + other.bytes, self.shards + other.shards
        for code, count in other.counts.items():
            self.counts[code] = self.counts.get(code, 0) + count
        for mine, others in ((self.faults, other.faults), (self.warnings, other.warnings)):
            mine += others[: max(MAX_KEPT - len(mine), 0)]

    def _verdict(self) -> str:
        counts = ", ".join(f"{code} ×{count}" for code, count in sorted(self.counts.items()))
        return f"{plural(self.records, 'record')} in {plural(self.shards, 'file')}: {counts or 'no fault found'}"

    def __str__(self) -> str:
        return "\n".join([*map(_text, (*self.faults, *self.warnings)), self._verdict(), *map(str, self.written)])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        tone = {0: "good", 1: "", 2: "bad"}[self.exit_code]
        columns = ("code", "shard", "record", "member", "offset", "message")
        rows = [[found.get(name, "") for name in columns] for found in (*self.faults, *self.warnings)[:200]]
        body = f'<p class="{tone}">{html_page.text(self._verdict())}</p>'
        if rows:  # a table that keeps room for what they say, and scrolls where there is too little
            body += f'<div class="findings">{html_page.table(rows, header=columns, right=[4])}</div>'
        return {"text/plain": str(self), "text/html": html_page.fragment(body)}


def _text(found: dict[str, Any]) -> str:
    fault = Fault(found["code"], found["message"], found.get("shard"), found.get("record"), found.get("member"), found.get("offset"))
    return f"{fault} Hint: {found['hint']}" if found.get("hint") else str(fault)


def verify(
    urls: URLs,
    *,
    deep: bool = False,
    examples: bool | Mapping[str, Kind] = False,
    format: str | None = None,
    repair: bool = False,
    output: str | None = None,
    tag: bool = False,
    engine: str = "local",
    address: str | None = None,
    jobs: int | None = None,
    **reading_options: Unpack[ReadKeywords],
) -> Verified:
    """Reads shards to their end and lists every fault; goes on after damage at the next header that is whole.

    Lenient as `ls` is; `strict=True` makes errors of what strict reading refuses (missing end blocks, split records). `deep` decodes every
    field that tarviz knows, and never runs a pickle. `examples` parses each record of a TFRecord file as `tf.train.Example`; a mapping
    also says what its features must hold (`{"cls": "int64"}`). `format` is `tar` or `tfrecord`, None decides by name, then by content.
    With `repair` what can be saved of a damaged tar is written beside it, or as `output`.
    With `tag` the records that faults name are tagged `bad` (`is:bad` in conditions and in the browser); that needs the extra `table`.
    `NotFoundError` and `StoreError` are raised: they say nothing about the data. `jobs` shards are read at a time, on the engine
    (`"local"`, `"ray"`) at `address`.
    """
    options = read_stream.with_changes(read_stream.ReadOptions(strict=False, on_error="skip"), reading_options)
    types = None if examples is False else check_kinds({} if examples is True else examples)
    result = Verified()
    targets = read_stream.shards(urls)
    if "-" not in targets and (engines.travels(engine) or (jobs is not None and len(targets) > 1)):
        if repair:
            raise UsageError("a repair is done by one process.", hint="Leave out jobs and engine.")
        job = partial(_verify_one, {"deep": deep, "examples": examples, "format": format, **reading_options})
        errors = engines.Errors(targets)
        for _, found in shard_table.each_task("verify", job, targets, lambda found: (found.records, None), engine, address, jobs, errors):
            result.merge(found)
    else:
        options = resolve(targets, options)
        with verb_base.progress(None, "records") as bar, verb_base.silent_warnings():

            def check(url: URL, look: Callable[[], None]) -> Verified:
                own = Verified(shards=1)
                bar.add(0, label=redact(url))

                def tick(count: int) -> None:
                    look()
                    bar.add(count)

                if _is_tfrecord(url, format):
                    check_tfrecord(url, own, types, tick)
                else:
                    check_tar(url, options, own, deep, tick)
                return own

            for own in several(targets, check):
                result.merge(own)
    if tag:
        _tag(targets, result, options)
    if not repair:
        return result
    if any(_is_tfrecord(url, format) for url in targets):
        raise UsageError("only tars can be repaired, no TFRecord files.", hint="tarviz convert --on-error skip writes what can be read.")
    save(targets, output, result, options)
    return result


def _is_tfrecord(url: URL, format: str | None) -> bool:
    return format == "tfrecord" if format else is_tfrecord(url)


def _tag(targets: list[URL], result: Verified, options: read_stream.ReadOptions) -> None:
    """Tag the records that faults name, with what was found as the note."""
    from tarviz.table.table import Table

    table = Table(targets, key_split=options.key_split, duplicates=options.duplicates)
    notes: dict[str, list[tuple[str, str]]] = {}
    for found in result.faults:
        if found.get("record") is not None and found.get("shard"):
            notes.setdefault(f"{found['code']}: {found['message']}"[:300], []).append((found["shard"], found["record"]))
    for note, pairs in notes.items():
        table.tags.add(pairs, "bad", note)


def _verify_one(keywords: Mapping[str, Any], url: URL, file: IO[bytes] | None, tick: engines.Tick) -> Verified:
    """Verify one shard, in a process that may be another."""
    with verb_base.hush():
        return verify(url, **keywords)


def check_tar(url: URL, options: read_stream.ReadOptions, result: Verified, deep: bool, tick: Callable[[int], object]) -> None:
    report = read_stream.ReadReport()
    error: TarvizError | None = None
    run = read_stream.blocks(url, options, report=report)
    with closing(run):
        try:
            for block in run:
                if deep:
                    _decode(block, result)
                tick(len(block))
        except DataError as found:
            error = found.at(shard=url)
    for fault in (*report.skipped, *report.warnings):
        result.add(fault)
    if error is not None:
        result.add(error)
    result.records += report.records
    result.bytes += report.bytes


def check_tfrecord(url: URL, result: Verified, types: Mapping[str, str] | None, tick: Callable[[int], object]) -> None:
    """`types` None: the framing alone; a mapping: each record is parsed too, its features held against it and the first record's."""
    kinds: dict[str, str | None] = dict(types or {})
    with stores.of(url).open(url) as stream:
        reader = tfrecord.read(stream, shard=url, on_error="skip")
        number = -1
        try:
            for number, payload in enumerate(reader):
                if types is not None and (error := _unparsable(payload, kinds)) is not None:
                    result.add(error.at(shard=url, records_before=number))
                tick(1)
        except DataError as error:
            result.add(error.at(shard=url))
    for fault in reader.faults:
        result.add(fault)
    result.records += reader.records
    result.bytes += reader.offset


def _unparsable(payload: memoryview, kinds: dict[str, str | None]) -> DataError | SchemaError | None:
    """Why a payload is no `tf.train.Example`, or what in it differs from `kinds`, which learns the features it did not know."""
    try:
        features = example.features(payload)
    except DataError as error:
        return error
    for name, (kind, _) in features.items():
        expected = kinds.setdefault(name, kind)
        if kind is not None and expected is not None and kind != expected:
            return SchemaError(f"the feature {name!r} holds {kind}, not {expected}.", member=name)
    return None


def _decode(block: Block, result: Verified) -> None:
    """Decode every field of a block; what cannot be decoded is a finding."""
    for record in block:
        for ext in record:
            found = undecodable(record, ext)
            if found is not None:
                result.add(found)


def undecodable(record: Record, ext: str) -> TarvizError | None:
    """Why a field cannot be decoded; None when it can, or is of no kind that tarviz decodes."""
    from tarviz import viewers

    refused = viewers.refusal(record[ext], viewers.Meta(ext, record.key, record.shard))
    if refused is None:
        return None
    error = DataError(refused.message, code=refused.code, shard=record.shard, key=record.key)
    for member in record.members:
        if member.name.lower().endswith(f".{ext}"):
            error.at(member=member.name, offset=member.header_offset)
    return error


def save(urls: list[URL], output: str | PathLike[str] | None, found: Verified, options: ReadOptions) -> None:
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


@verb_base.verb(
    "verify", example=["tarviz verify data/", "tarviz verify --deep --json shard.tar", "tarviz verify --repair -o saved.tar bad.tar"]
)
@verb_base.urls_argument
@click.option("--deep", is_flag=True, help="Decode every field of a known kind.")
@click.option("--tag", is_flag=True, help="Tag the records with faults: is:bad in conditions and in the browser.")
@click.option("--examples", is_flag=True, help="Parse every record of a TFRecord file as tf.train.Example.")
@click.option("--types", metavar="NAME=KIND,...", help="What features must hold (bytes, int64, float); implies --examples.")
@click.option("--format", type=click.Choice(["tar", "tfrecord"]), help="What the files are. [default: by name]")
@click.option("--repair", is_flag=True, help="Write what can be saved of a damaged a.tar as a.repaired.tar, or where -o says.")
@verb_base.output_option
@jobs_options
@verb_base.result_options
@verb_base.reading_options
def command(urls: tuple[str, ...], as_json: bool, strict: bool | None, examples: bool, types: str | None, **options: Any) -> Any:
    """Find every fault in shards and TFRecord files.

    Goes on after damage, so that all of it is listed: code, shard, record, member, byte offset. Exit code 0: clean; 1: warnings;
    2: faults.
    """
    kinds = verb_base.pairs([types], "--types", "cls=int64,jpg=bytes") if types else examples
    return verb_base.emit(verify(urls, strict=bool(strict), examples=kinds, **options), as_json)
