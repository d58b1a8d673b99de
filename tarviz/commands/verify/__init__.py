"""Find every fault in shards and TFRecord files: damage, what readers disagree about, and with --deep what cannot be decoded."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import IO, Any

import click

from tarviz import engines, stores
from tarviz.cli import html_page, verb_base
from tarviz.cli.shard_map import jobs_options
from tarviz.formats import example, tfrecord
from tarviz.model.errors import DataError, Fault, SchemaError, TarvizError, UsageError, redact
from tarviz.model.types import URL, Block, Record
from tarviz.read import stream as read_stream
from tarviz.read.chosen import resolved
from tarviz.stores import URLs

MAX_KEPT = 10_000  # findings of one kind kept whole; beyond that they are counted
TFRECORD_SUFFIXES = (".tfrecord", ".tfrecords", ".tfrec", ".record", ".records")


@dataclass
class Verified(verb_base.Result):
    """What was read, and every finding as a dict: `code`, `message`, `shard`, `record`, `member`, `offset`, and more where it is known.

    `offset` counts bytes of the uncompressed file; `counts` says how often each code came.
    """

    records: int = 0
    bytes: int = 0
    shards: int = 0
    faults: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

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

    @property
    def exit_code(self) -> int:
        return 2 if self.faults else 1 if self.warnings else 0

    def _lines(self) -> list[str]:
        return [_text(found) for found in (*self.faults, *self.warnings)]

    def _verdict(self) -> str:
        counts = ", ".join(f"{code} ×{count}" for code, count in sorted(self.counts.items()))
        shards = f"{self.shards} file{'' if self.shards == 1 else 's'}"
        records = f"{self.records:,} record{'' if self.records == 1 else 's'}"
        return f"{records} in {shards}: {counts or 'no fault found'}"

    def __str__(self) -> str:
        return "\n".join([*self._lines(), self._verdict()])

    def to_dict(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "faults": self.faults,
            "warnings": self.warnings,
            "counts": self.counts,
            "bytes": self.bytes,
            "shards": self.shards,
        }

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        tone = {0: "good", 1: "", 2: "bad"}[self.exit_code]
        columns = ("code", "shard", "record", "member", "offset", "message")
        rows = [[found.get(name, "") for name in columns] for found in (*self.faults, *self.warnings)[:200]]
        body = f'<p class="{tone}">{html_page.text(self._verdict())}</p>' + _listing(rows, columns)
        return {"text/plain": str(self), "text/html": html_page.fragment(body)}


def _listing(rows: list[list[Any]], columns: tuple[str, ...]) -> str:
    """Findings as a table that keeps room for what they say, and scrolls where there is too little."""
    return f'<div class="findings">{html_page.table(rows, header=columns, right=[4])}</div>' if rows else ""


def _text(found: dict[str, Any]) -> str:
    fault = Fault(found["code"], found["message"], found.get("shard"), found.get("record"), found.get("member"), found.get("offset"))
    hint = f" Hint: {found['hint']}" if found.get("hint") else ""
    return f"{fault}{hint}"


def verify(
    urls: URLs,
    *,
    strict: bool = False,
    deep: bool = False,
    examples: bool | Mapping[str, str] = False,
    format: str | None = None,
    repair: bool = False,
    output: str | None = None,
    tag: bool = False,
    engine: str = "local",
    address: str | None = None,
    jobs: int | None = None,
    **reading_options: Any,
) -> Verified:
    """Reads shards to their end and lists every fault; goes on after damage at the next header that is whole.

    Lenient as `ls` is; `strict` makes errors of what strict reading refuses (missing end blocks, split records). `deep` decodes every field
    that tarviz knows, and never runs a pickle. `examples` parses each record of a TFRecord file as `tf.train.Example`; a mapping
    also says what its features must hold (`{"cls": "int64"}`). `format` is `tar` or `tfrecord`, None
    decides by name, then by content. With `repair` what can be saved of a damaged tar is written beside it, or as `output`.
    With `tag` the records that faults name are tagged `bad` (`is:bad` in conditions and in the browser); that needs the extra `table`.
    `NotFoundError` and `StoreError` are raised: they say nothing about the data. `jobs` shards are read at a time, on the engine
    (`"local"`, `"ray"`) at `address`.
    """
    options = read_stream.with_changes(read_stream.ReadOptions(strict=strict, on_error="skip"), reading_options)
    types = None if examples is False else {} if examples is True else examples
    result = Verified()
    targets = read_stream.shards(urls)
    if "-" not in targets and (engines.travels(engine) or (jobs is not None and len(targets) > 1)):
        if repair:
            raise UsageError("a repair is done by one process.", hint="Leave out jobs and engine.")
        job = _Job({"strict": strict, "deep": deep, "examples": examples, "format": format, **reading_options})
        with verb_base.progress(len(targets), "shards") as bar:
            for found in engines.each(engine, job, targets, jobs=jobs, address=address):
                result.merge(found)
                bar.add()
        if tag:
            _tag(targets, result, resolved(targets, options))
        return result
    options = resolved(targets, options)
    with verb_base.progress(None, "records") as bar, verb_base.silent_warnings():
        for url in targets:
            bar.add(0, label=redact(url))
            if (format or _format(url)) == "tfrecord":
                _verify_tfrecord(url, result, types, bar)
            else:
                _verify_tar(url, options, result, deep, bar)
            result.shards += 1
    if tag:
        _tag(targets, result, options)
    if not repair:
        return result
    if "tfrecord" in (format or _format(url) for url in targets):
        raise UsageError("only tars can be repaired, no TFRecord files.", hint="tarviz convert --on-error skip writes what can be read.")
    from tarviz.commands.verify.repair import repair as save

    return save(targets, output, result, options)


def _tag(targets: list[URL], result: Verified, options: read_stream.ReadOptions) -> None:
    """Tag the records that faults name, with what was found as the note."""
    from tarviz.table import opened

    table = opened(targets, key_split=options.key_split, duplicates=options.duplicates)
    notes: dict[str, list[tuple[str, str]]] = {}
    for found in result.faults:
        if found.get("record") is not None and found.get("shard"):
            notes.setdefault(f"{found['code']}: {found['message']}"[:300], []).append((found["shard"], found["record"]))
    for note, pairs in notes.items():
        table.tags.add(pairs, "bad", note)


@dataclass(frozen=True)
class _Job:
    """Verifies one shard, in a process that may be another."""

    keywords: Mapping[str, Any]

    def __call__(self, url: URL, file: IO[bytes] | None, tick: engines.Tick) -> Verified:
        with verb_base.hushed():
            return verify(url, **self.keywords)


def _format(url: URL) -> str:
    """`tar` or `tfrecord`: by name, else by the CRC that a TFRecord's first header has."""
    name = url.partition("?")[0].lower()
    for packed in (".gz", ".zlib", ".zst"):
        name = name.removesuffix(packed)
    if name.endswith((*TFRECORD_SUFFIXES, ".tar", ".tgz")) or url == "-":
        return "tfrecord" if name.endswith(TFRECORD_SUFFIXES) else "tar"
    head = stores.of(url).read(url, 0, tfrecord.HEADER)
    right = len(head) == tfrecord.HEADER and tfrecord.masked_crc32c(head[:8]) == int.from_bytes(head[8:], "little")
    return "tfrecord" if right else "tar"


def _verify_tar(url: URL, options: read_stream.ReadOptions, result: Verified, deep: bool, bar: verb_base.Progress) -> None:
    report = read_stream.ReadReport()
    error: TarvizError | None = None
    run = read_stream.blocks(url, options, report=report)
    with closing(run):
        try:
            for block in run:
                if deep:
                    _decode(block, result)
                bar.add(len(block))
        except DataError as found:
            error = found.at(shard=url)
    for fault in (*report.skipped, *report.warnings):
        result.add(fault)
    if error is not None:
        result.add(error)
    result.records += report.records
    result.bytes += report.bytes


def _verify_tfrecord(url: URL, result: Verified, types: Mapping[str, str] | None, bar: verb_base.Progress) -> None:
    """`types` None: the framing alone; a mapping: each record is parsed too, its features held against it and the first record's."""
    kinds: dict[str, str | None] = dict(types or {})
    with stores.of(url).open(url) as stream:
        reader = tfrecord.read(stream, shard=url, on_error="skip")
        number = -1
        try:
            for number, payload in enumerate(reader):
                if types is not None and (error := _unparsable(payload, kinds)) is not None:
                    result.add(error.at(shard=url, records_before=number))
                bar.add()
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
    error = DataError(refused[1], code=refused[0], shard=record.shard, key=record.key)
    for member in record.members:
        if member.name.lower().endswith(f".{ext}"):
            error.at(member=member.name, offset=member.header_offset)
    return error


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
@verb_base.json_option
@verb_base.quiet_option
@verb_base.reading_options
def command(urls: tuple[str, ...], as_json: bool, strict: bool | None, examples: bool, types: str | None, **options: Any) -> Any:
    """Find every fault in shards and TFRecord files.

    Goes on after damage, so that all of it is listed: code, shard, record, member, byte offset. Exit code 0: clean; 1: warnings;
    2: faults.
    """
    return verb_base.emit(verify(urls, strict=bool(strict), examples=_types(types) if types else examples, **options), as_json)


def _types(text: str) -> dict[str, str]:
    """`"cls=int64,jpg=bytes"` as a mapping.

    >>> _types("cls=int64,jpg=bytes")
    {'cls': 'int64', 'jpg': 'bytes'}
    """
    parts = [each.partition("=") for each in text.split(",")]
    for name, _, kind in parts:
        if not name or kind not in ("bytes", "int64", "float"):
            raise UsageError(
                f"--types {text!r}: {name!r} is to hold {kind!r}.", hint="Write NAME=KIND with KIND one of bytes, int64, float."
            )
    return {name: kind for name, _, kind in parts}
