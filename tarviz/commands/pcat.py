"""Concatenate many shards with parallel readers, mixed by weight or shuffled; every shard is read to its end."""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from os import PathLike, fspath
from types import TracebackType
from typing import Any, Self, Unpack

import click

from tarviz.cli import verb_base
from tarviz.cli.shard_map import Shards, engine_options
from tarviz.cli.tar_tool_options import Made, Tar, inputs_argument, opened, shuffled, tool_options
from tarviz.model import config
from tarviz.model.errors import DataError, UsageError
from tarviz.model.offers import offer
from tarviz.model.processors import processors
from tarviz.model.types import URL
from tarviz.outputs.inputs import Inputs
from tarviz.outputs.tar_output import TarOutput
from tarviz.read.chosen import resolved
from tarviz.read.keywords import ReadKeywords
from tarviz.read.spans import Batch, shard_batches
from tarviz.read.stream import ReadOptions, ReadReport, with_changes
from tarviz.stores import URLs
from tarviz.tools import field_selection

_AHEAD = 4  # batches a reader may be ahead


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
    engine: str = "local",
    address: str | None = None,
    jobs: int | None = None,
    resume: bool = False,
    **reading: Unpack[ReadKeywords],
) -> Made:
    """Writes the records of shards into one tar, `workers` shards being read at a time (None: as configured; 0: one per processor).

    The order is that of `cat`, whatever the number of workers. `weights`, one for each URL given (a template counts as one), mixes
    instead: every next record comes from one of the URLs, chosen with these odds among those that have records left, so that all
    are read to their end. `shuffle` takes shards in random order and draws records from a buffer of so many. The same `seed` gives
    the same bytes.

    An output with a counter (`x-{}.tar`) makes a tar of each shard by itself, `jobs` at a time, on the engine (`"local"`, `"ray"`) at
    `address`; `resume` keeps outputs that their manifest proves.
    """
    if shards := Shards.of(urls, output, files, engine, address, jobs, resume):
        if weights is not None:
            raise UsageError("shard to shard mixes nothing.", hint="Leave out weights, or the counter of the output.")
        mapped = shards.run(pcat, shuffle=shuffle, seed=seed, count=count, workers=workers, **reading)
        return Made(mapped.tars, mapped.report)
    options = with_changes(ReadOptions(), reading)
    report = ReadReport()
    given = [fspath(url) for url in ([urls] if isinstance(urls, str | PathLike) else urls)]
    if weights is not None and (len(weights) != len(given) or files is not None):
        raise UsageError(f"there are {len(weights)} weights for {len(given)} URLs.", hint="Give one weight for each URL or template.")
    if weights is not None and not all(0 < weight < float("inf") for weight in weights):
        raise UsageError("weights must be numbers above 0.")
    groups = [opened(given, files)] if weights is None else [opened([url]) for url in given]
    options = resolved([url for group in groups for url in group], options)
    if sum(group.count(URL("-")) for group in groups) > 1:
        raise UsageError("standard input can be read once only.")
    if shuffle:
        for group in groups:
            random.Random(seed).shuffle(group)
    readers = config.options(workers=workers).workers or processors()
    form = field_selection.Form(report=report)
    with (
        verb_base.silent_warnings(),
        TarOutput(fspath(output), inputs=Inputs(url for group in groups for url in group)) as outlet,
        verb_base.progress(None, "records") as bar,
        _Lanes(groups, options, report, readers) as lanes,
    ):
        records = _mixed(lanes, weights, seed) if weights is not None else None
        if shuffle:
            batches = lanes.batches(0) if records is None else (batch.part(at, at + 1) for batch, at in records)
            records = shuffled(batches, shuffle, seed)
        if records is None:
            _copy(lanes.batches(0), outlet, form, count, bar)
        else:
            for number, (batch, record) in enumerate(records):
                if count is not None and number >= count:
                    break
                form.put_one(outlet, batch, record)
                bar.add()
            form.flush(outlet)
    return Made([Tar(fspath(output), outlet.records, outlet.bytes)], report)


def _copy(batches: Iterable[Batch], outlet: TarOutput, form: field_selection.Form, count: int | None, bar: verb_base.Progress) -> None:
    for batch in batches:
        room = len(batch) if count is None else min(len(batch), count - outlet.records)
        if room:
            form.put(outlet, batch.part(0, room))
            bar.add(room)
        if room < len(batch):
            return


def _mixed(lanes: _Lanes, weights: Sequence[float], seed: int) -> Iterator[tuple[Batch, int]]:
    """Records of all lanes, each next one from a lane drawn by weight."""
    draw = random.Random(seed)
    runs = [_records(lanes.batches(lane)) for lane in range(len(weights))]
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


class _Reading:
    """One shard being read by a thread: its batches, then its report, or the error it ended with."""

    def __init__(self, url: URL) -> None:
        self.url = url
        self.report = ReadReport()
        self.error: BaseException | None = None
        self.queue: queue.Queue[Batch | None] = queue.Queue(_AHEAD)


class _Lanes:
    """Shards in lanes, read ahead by threads in the order in which they will be wanted."""

    def __init__(self, groups: list[list[URL]], options: ReadOptions, report: ReadReport, workers: int) -> None:
        self.options, self.report = options, report
        self._lanes = [[_Reading(url) for url in group] for group in groups]
        self._stop = False
        # Readers of its own for each lane: one that waits for room never keeps another lane's next shard from being read.
        each = max(workers // len(groups), 1)
        self._threads: list[threading.Thread] = []
        for number, lane in enumerate(self._lanes):
            waiting: queue.SimpleQueue[_Reading] = queue.SimpleQueue()
            for shard in lane:
                waiting.put(shard)
            for _ in range(min(each, len(lane))):
                self._threads.append(threading.Thread(target=self._work, args=(waiting,), name=f"reads lane {number}", daemon=True))
        for thread in self._threads:
            thread.start()

    def _work(self, waiting: queue.SimpleQueue[_Reading]) -> None:
        while not self._stop and not waiting.empty():
            try:
                shard = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                with closing(shard_batches(shard.url, self.options, shard.report)) as batches:
                    for batch in batches:
                        if not self._put(shard, batch):
                            return
                        del batch
            except BaseException as error:  # noqa: BLE001 - raised again where the shard's records are wanted
                shard.error = error
            self._put(shard, None)

    def _put(self, shard: _Reading, batch: Batch | None) -> bool:
        return offer(shard.queue, batch, lambda: self._stop)

    def batches(self, lane: int) -> Generator[Batch, None, None]:
        """The batches of a lane in shard order; faults go into the report as they are passed."""
        for shard in self._lanes[lane]:
            while (batch := shard.queue.get()) is not None:
                yield batch
                del batch
            self._note(shard.report)
            if shard.error is not None:
                if self.options.on_error == "raise" or not isinstance(shard.error, DataError):
                    raise shard.error
                self.report.add(shard.error.at(shard=shard.url).fault, skipped=True)

    def _note(self, report: ReadReport) -> None:
        self.report.records += report.records
        self.report.bytes += report.bytes
        self.report.shards += report.shards
        for fault in report.warnings:
            self.report.add(fault)
        for fault in report.skipped:
            self.report.add(fault, skipped=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop = True
        for thread in self._threads:
            thread.join(0.5)


def _weights(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    try:
        return None if value is None else tuple(float(word) for word in value.replace(":", ",").split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} are not weights; write 3,1.", ctx, param) from None


@verb_base.verb(
    "pcat", example=["tarviz pcat -j 4 'train-{0000..0147}.tar.gz' -o all.tar", "tarviz pcat --weights 3,1 A.tar B.tar > mix.tar"]
)
@inputs_argument
@verb_base.output_option
@verb_base.workers_option
@click.option("-w", "--weights", callback=_weights, metavar="N,N...", help="Mix the URLs with these odds, one for each.")
@click.option("--shuffle", type=click.IntRange(min=0), default=0, metavar="N", help="Shards in random order, records out of a buffer of N.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the shuffle and the mix.")
@click.option("-c", "--count", type=click.IntRange(min=0), metavar="N", help="Records to write at most.")
@click.option("-T", "--files", metavar="FILE", help="Read the names of shards from a list, one per line.")
@engine_options
@tool_options
def command(urls: tuple[str, ...], output: str | None, as_json: bool, **options: Any) -> Any:
    """Concatenate many shards with parallel readers; pays where shards are packed or far away.

    Every shard is read to its end. The order is that of cat, or a mix by weight, or a shuffle; the same seed gives the same bytes, whatever
    the number of readers.
    """
    result = pcat(urls, output or "-", **options)
    return verb_base.emit(result, as_json, err=result.to_stdout)
