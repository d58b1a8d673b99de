"""Concatenate many shards with parallel readers, mixed by weight or shuffled; every shard is read to its end."""

from __future__ import annotations

import random
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Unpack

import click

from tarviz.cli import verb_base
from tarviz.cli.shard_map import MappedKeywords, engine_options, shard_to_shard
from tarviz.cli.tar_tool_options import Made, Tar, command_shards, inputs_argument, list_urls, shuffled, tool_options
from tarviz.model import config
from tarviz.model.errors import UsageError
from tarviz.model.processors import processors
from tarviz.model.types import URL
from tarviz.outputs.inputs import Inputs
from tarviz.outputs.tar_output import TarOutput
from tarviz.read.chosen import resolve
from tarviz.read.spans import Batch, shard_batches
from tarviz.read.stream import ReadOptions, ReadReport, with_changes
from tarviz.runners.ahead import ahead
from tarviz.stores import URLs
from tarviz.tools import field_selection

_AHEAD = 4  # batches a reader may be ahead


@shard_to_shard(mixing="weights")
def pcat(
    urls: URLs,
    output: str | PathLike[str] = "-",
    *,
    weights: Sequence[float] | None = None,
    shuffle: int = 0,
    seed: int = 0,
    count: int | None = None,
    workers: int | None = None,
    files: str | None = None,
    **reading: Unpack[MappedKeywords],
) -> Made:
    """Writes the records of shards into one tar, `workers` shards being read at a time (None: as configured; 0: one per processor).

    The order is that of `cat`, whatever the number of workers. `weights`, one for each URL given (a template counts as one), mixes
    instead: every next record comes from one of the URLs, chosen with these odds among those that have records left, so that all
    are read to their end. `shuffle` takes shards in random order and draws records from a buffer of so many. The same `seed` gives
    the same bytes.

    An output with a counter (`x-{}.tar`) makes a tar of each shard by itself, `jobs` at a time, on the engine (`"local"`, `"ray"`) at
    `address`; `resume` keeps outputs that their manifest proves.
    """
    order = _Order(None if weights is None else tuple(weights), shuffle, seed)
    groups = order.groups(urls, files)
    targets = [url for group in groups for url in group]
    options, report = resolve(targets, with_changes(ReadOptions(), reading)), ReadReport()
    form = field_selection.Form(report=report)
    # Readers of its own for each lane: one that waits for room never keeps another lane's next shard from being read.
    readers = max((config.options(workers=workers).workers or processors()) // len(groups), 1)
    with (
        verb_base.silent_warnings(),
        TarOutput(fspath(output), inputs=Inputs(targets)) as outlet,
        verb_base.progress(None, "records") as bar,
        ExitStack() as stack,
    ):
        lanes = [stack.enter_context(closing(_lane(group, options, report, readers))) for group in groups]
        if order.of_shards:
            _copy(lanes[0], outlet, form, count, bar)
        else:
            form.put_each(outlet, order.draw(lanes), bar.add, stop=count)
    return Made([Tar(fspath(output), outlet.records, outlet.bytes)], report)


@dataclass(frozen=True, slots=True)
class _Order:
    """In which order records are written: that of the shards, a mix with `weights`, a shuffle with a buffer of `shuffle` records."""

    weights: tuple[float, ...] | None
    shuffle: int
    seed: int

    def groups(self, urls: URLs, files: str | None) -> list[list[URL]]:
        """The shards of each lane: of each URL given where they are mixed, else all in one."""
        if self.weights is None:
            groups = [command_shards(urls, files)]
        else:
            named = list_urls(urls)
            if len(self.weights) != len(named) or files is not None:
                what = f"there are {len(self.weights)} weights for {len(named)} URLs."
                raise UsageError(what, hint="Give one weight for each URL or template.")
            if not all(0 < weight < float("inf") for weight in self.weights):
                raise UsageError("weights must be numbers above 0.")
            groups = [command_shards(url) for url in named]
            if sum(group.count(URL("-")) for group in groups) > 1:
                raise UsageError("standard input can be read once only.")
        if self.shuffle:
            for group in groups:
                random.Random(self.seed).shuffle(group)
        return groups

    @property
    def of_shards(self) -> bool:
        """Whether records are written as they lie, so that batches are copied whole."""
        return self.weights is None and not self.shuffle

    def draw(self, lanes: list[Generator[Batch, None, None]]) -> Iterable[tuple[Batch, int]]:
        """The records of the lanes, one by one."""
        if self.weights is None:
            return shuffled(lanes[0], self.shuffle, self.seed)
        mixed = _mix(lanes, self.weights, self.seed)
        return shuffled((batch.part(at, at + 1) for batch, at in mixed), self.shuffle, self.seed) if self.shuffle else mixed


def _copy(batches: Iterable[Batch], outlet: TarOutput, form: field_selection.Form, count: int | None, bar: verb_base.Progress) -> None:
    for batch in batches:
        room = len(batch) if count is None else min(len(batch), count - outlet.records)
        if room:
            form.put(outlet, batch.part(0, room))
            bar.add(room)
        if room < len(batch):
            return


def _mix(lanes: list[Generator[Batch, None, None]], weights: Sequence[float], seed: int) -> Iterator[tuple[Batch, int]]:
    """Records of all lanes, each next one from a lane drawn by weight."""
    draw = random.Random(seed)
    runs = [_records(lane) for lane in lanes]
    left = list(range(len(runs)))
    odds = list(weights)
    while left:
        at = draw.choices(range(len(left)), odds)[0] if len(left) > 1 else 0
        found = next(runs[left[at]], None)
        if found is None:
            del left[at], odds[at]
        else:
            yield found


def _records(batches: Iterable[Batch]) -> Iterator[tuple[Batch, int]]:
    for batch in batches:
        for record in range(len(batch)):
            yield batch, record


def _lane(group: list[URL], options: ReadOptions, report: ReadReport, readers: int) -> Generator[Batch, None, None]:
    """The batches of shards in their order, `readers` of them being read at a time; faults go into the report as they are passed."""

    def read(url: URL, own: ReadReport) -> Generator[Batch, None, None]:
        with own.skip_damage(url, options.on_error), closing(shard_batches(url, options, own)) as batches:
            yield from batches

    return ahead(group, read, report, readers, True, _AHEAD)


def _weights(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    try:
        return None if value is None else tuple(float(word) for word in value.replace(":", ",").split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} are not weights; write 3,1.", ctx, param) from None


@verb_base.verb(
    "pcat", example=["tarviz pcat -j 4 'train-{0000..0147}.tar.gz' -o all.tar", "tarviz pcat --weights 3,1 A.tar B.tar > mix.tar"]
)
@verb_base.output_option
@verb_base.workers_option
@click.option("-w", "--weights", callback=_weights, metavar="N,N...", help="Mix the URLs with these odds, one for each.")
@click.option("--shuffle", type=click.IntRange(min=0), default=0, metavar="N", help="Shards in random order, records out of a buffer of N.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the shuffle and the mix.")
@click.option("-c", "--count", type=click.IntRange(min=0), metavar="N", help="Records to write at most.")
@inputs_argument
@engine_options
@tool_options
def command(urls: tuple[str, ...], output: str | None, as_json: bool, **options: Any) -> Any:
    """Concatenate many shards with parallel readers; pays where shards are packed or far away.

    Every shard is read to its end. The order is that of cat, or a mix by weight, or a shuffle; the same seed gives the same bytes, whatever
    the number of readers.
    """
    return verb_base.emit(pcat(urls, output or "-", **options), as_json)
