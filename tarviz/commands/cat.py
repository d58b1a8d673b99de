"""Concatenate the records of shards: some of them, some of their fields, under new keys, in another order."""

from __future__ import annotations

import random
from collections.abc import Iterable
from contextlib import closing
from os import PathLike, fspath
from typing import Any, Unpack

import click
import numpy as np

from tarviz.cli import verb_base
from tarviz.cli.shard_map import MappedKeywords, engine_options, shard_to_shard
from tarviz.cli.tar_tool_options import Made, Tar, command_shards, inputs_argument, shuffled, tool_options
from tarviz.model.errors import UsageError
from tarviz.outputs.inputs import Inputs
from tarviz.outputs.tar_output import TarOutput
from tarviz.read.spans import intake
from tarviz.read.stream import ReadOptions, ReadReport, with_changes
from tarviz.stores import URLs
from tarviz.tools import field_selection


@shard_to_shard()
def cat(
    urls: URLs = "-",
    output: str | PathLike[str] = "-",
    *,
    count: int | None = None,
    skip: int = 0,
    slice: str | slice | None = None,
    shuffle: int = 0,
    seed: int = 0,
    fields: str | None = None,
    drop: str | Iterable[str] = (),
    key: str | None = None,
    sub: tuple[str, str] | None = None,
    files: str | None = None,
    **reading: Unpack[MappedKeywords],
) -> Made:
    """Writes the records of shards into one tar. Raw bytes are copied: a member that keeps its name stays as it is, bit for bit.

    `skip` and `count` choose records over all shards, `slice` too (`"10:100:2"`). `shuffle` takes the shards in random order and draws
    records from a buffer of so many. `fields` (`"jpg;png cls"`, `"image:jpg;png json?"`) and `drop` choose members, `key` is a template
    (`"val/{base}_{n:06d}"`), `sub` a pattern and what replaces it in keys. `files` is a list of shards. `reading` holds options of
    `ReadOptions`; strict, so that damage is a `DataError` and the output is not there.

    An output with a counter (`x-{}.tar`) makes a tar of each shard by itself, `jobs` at a time, on the engine (`"local"`, `"ray"`) at
    `address`; `resume` keeps outputs that their manifest proves.
    """
    options = with_changes(ReadOptions(), reading)
    report = ReadReport()
    start, stop, step = _span(count, skip, slice)
    form = field_selection.Form(
        field_selection.picks(fields) if fields is not None else (),
        frozenset(drop.lower().split() if isinstance(drop, str) else drop),
        _keys(key, sub),
        options.on_error == "skip",
        report,
    )
    targets = command_shards(urls, files)
    if shuffle:
        random.Random(seed).shuffle(targets)
    with (
        verb_base.silent_warnings(),
        TarOutput(fspath(output), inputs=Inputs(targets)) as outlet,
        verb_base.progress(None, "records") as bar,
    ):
        if shuffle:
            with closing(intake(targets, options, report)) as batches:
                form.put_each(outlet, shuffled(batches, shuffle, seed), bar.add, start=start, stop=stop, step=step)
        else:
            place = start
            with closing(intake(targets, options, report, start=start, stop=stop)) as batches:
                for batch in batches:
                    chosen = None if step == 1 else np.arange((start - place) % step, len(batch), step)
                    form.put(outlet, batch, chosen)
                    place += len(batch)
                    bar.add(len(batch))
                    del batch
    return Made([Tar(fspath(output), outlet.records, outlet.bytes)], report)


def _keys(template: str | None, sub: tuple[str, str] | None) -> Any:
    """The function that makes new keys: first the substitution, then the template."""
    if template is None and sub is None:
        return None
    made = field_selection.key_template(template) if template is not None else None
    replaced = field_selection.substitution(*sub) if sub is not None else None

    def key(old: bytes, shard: str, number: int) -> bytes:
        old = replaced(old) if replaced is not None else old
        return made(old, shard, number) if made is not None else old

    return key


def _span(count: int | None, skip: int, part: str | slice | None) -> tuple[int, int | None, int]:
    """First record, the one after the last (None: all), step.

    >>> _span(10, 5, None), _span(None, 0, "10:100:2")
    ((5, 15, 1), (10, 100, 2))
    """
    if part is None:
        return skip, None if count is None else skip + count, 1
    if count is not None or skip:
        raise UsageError("a slice says which records; leave out count and skip.")
    if isinstance(part, str):
        words = part.split(":")
        if not 2 <= len(words) <= 3 or not all(word == "" or word.isdigit() for word in words):
            raise UsageError(f"{part!r} is not a slice.", hint="Write FIRST:STOP or FIRST:STOP:STEP, counted from 0.")
        part = slice_of(*(int(word) if word else None for word in words))
    low, high, step = part.start or 0, part.stop, 1 if part.step is None else part.step
    if low < 0 or (high is not None and high < 0) or step < 1:
        raise UsageError("a slice of a stream counts from its beginning and goes forward.")
    return low, high, step


slice_of = slice


@verb_base.verb("cat", example=["tarviz cat A.tar 'B-{00..03}.tar' -o all.tar", "tarviz cat -c 100 -f 'jpg cls' - < big.tgz > small.tar"])
@verb_base.output_option
@click.option("-c", "--count", type=click.IntRange(min=0), metavar="N", help="Records to write at most.")
@click.option("-s", "--skip", type=click.IntRange(min=0), default=0, metavar="N", help="Records to skip first.")
@click.option("--slice", metavar="FIRST:STOP:STEP", help="Which records, counted from 0 over all shards.")
@click.option("--shuffle", type=click.IntRange(min=0), default=0, metavar="N", help="Shards in random order, records out of a buffer of N.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the shuffle.")
@click.option("-f", "--fields", metavar="LIST", help="Fields to keep: 'jpg;png cls', renamed 'image:jpg;png', optional 'json?'.")
@click.option("--drop", default="", metavar="LIST", help="Fields to leave out.")
@click.option("--key", metavar="TEMPLATE", help="New keys of {key} {folder} {base} {shard} {n:06d}.")
@click.option("--sub", nargs=2, metavar="PATTERN TEXT", help="Replace a regular expression in keys.")
@inputs_argument
@engine_options
@tool_options
def command(output: str | None, as_json: bool, **options: Any) -> Any:
    """Concatenate the records of shards into one tar, on standard output unless -o names it.

    Bytes are copied as they are; a member gets a new header only where its name changes. Shards are paths, templates, URLs, or - (which
    is what is read when none is named); they may be packed, and so is the output when its name ends in .gz, .zst, .bz2 or .xz. Folders
    and links in a tar are not records and stay behind. Exit code 1: something was left out or warned of; 2: damage, and nothing has the
    output's name. Also there as tarscat and tarcat; GNU tar has a tarcat of its own, which joins volumes.
    """
    return verb_base.emit(cat(output=output or "-", **options), as_json)
