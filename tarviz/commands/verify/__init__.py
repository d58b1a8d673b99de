"""Find every fault in shards and TFRecord files: damage, what readers disagree about, and with --deep what cannot be decoded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import IO, Any, Unpack

import click

from tarviz import engines
from tarviz.cli import shard_table, verb_base
from tarviz.cli.shard_map import jobs_options
from tarviz.commands.verify.checks import check_tar, check_tfrecord
from tarviz.commands.verify.verified import Verified as Verified
from tarviz.formats.features import Kind, check_kinds
from tarviz.model.errors import UsageError, redact
from tarviz.model.types import URL
from tarviz.read import stream as read_stream
from tarviz.read.chosen import resolve
from tarviz.read.keywords import ReadKeywords
from tarviz.read.several import several
from tarviz.read.tfrecords import is_tfrecord
from tarviz.stores import URLs


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
    from tarviz.commands.verify.repair import repair as save

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
