"""The controller that compares chains: several chains, several records, every step, in one pass. It knows no GUI."""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
import warnings
import weakref
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any

from tarviz.model import plugins
from tarviz.model.errors import TarvizError, TarvizWarning, UsageError, redact, safe
from tarviz.model.types import Record
from tarviz.ops.base import unpack
from tarviz.read import stream
from tarviz.read.stream import ReadOptions, URLs
from tarviz.viewers.panel import readable
from tarviz.widgets.compare import text as compare_text
from tarviz.widgets.compare.chain_numbers import tune
from tarviz.widgets.compare.chain_preview import (
    EAGER,
    SENTENCES,
    TITLES,
    Column,
    Room,
    StepTile,
    Strip,
    Values,
    differing,
    elsewhere,
    first_field,
    original,
    trace,
)
from tarviz.widgets.compare.named_chains import Chains, draw_columns
from tarviz.widgets.compare.value_picture import encode_pixels, pixels_of
from tarviz.widgets.host import contact_sheet
from tarviz.widgets.host.behind import failure, start_thread
from tarviz.widgets.host.rpc import Answer, Controller, Message, rpc
from tarviz.widgets.panes.overlays import Overlays

_SAME = ("eager", "torch", "indexed", "ray_data")  # itself, and what runs it in other processes or asks for it in another way
MOST = 32
"""Records that are compared at most."""

_AT_FIRST = 1.0  # seconds that the first picture waits for steps


class Compare(Controller):
    """Chains compared on records; tracing begins at once, on a thread. Every method may be called from any thread.

    `chains` is name → chain (text, ops, `Chain`), a list of chains, or lines `name = chain text`. `records` is how many of the first,
    or a list of keys, numbers, `Record`s or marked ones of a browser. `columns` names runners beside `eager` (`tf.data`), whose results
    get columns of their own with the largest difference to the eager one. `field` is the one shown before any op. `draws` gives every chain
    so many columns, each with a seed of its own.
    """

    script = "compare"

    def __init__(
        self,
        urls: URLs,
        chains: Chains,
        *,
        records: int | Sequence[Any] = 4,
        seed: int = 0,
        epoch: int = 0,
        field: str = "",
        columns: Sequence[str] = (),
        draws: int = 1,
        options: ReadOptions | None = None,
    ) -> None:
        self.urls = [urls] if isinstance(urls, (str, PathLike)) else list(urls)
        self.epoch = epoch
        self.field = field.lower()
        self.options = options or ReadOptions(strict=False)
        self.columns = [Column(*column) for column in draw_columns(chains, draws, int(seed))]
        self.records: list[Values] = []
        self.originals: list[StepTile] = []
        self.fault: TarvizError | None = None
        self.version = 0
        self.changed = threading.Condition()
        self._listed = 0  # the version in which the records changed
        self._count = records if isinstance(records, int) else None
        self._shards = stream.shards(self.urls)
        self._reader = stream.records(self._shards, options=self.options)
        self._more: Iterator[Record] = iter(self._reader)
        self._room = Room()
        self.overlays = Overlays()
        self._jobs: queue.SimpleQueue[tuple[Column, int, int] | None] = queue.SimpleQueue()
        self._waiting = 0
        self._closed = False
        self._read(records)
        for runner in columns:
            self._beside(runner)
        self._order(self.columns, range(len(self.records)))
        weakref.finalize(self, self._jobs.put, None)  # nobody holds it any more: its thread ends, its shard is closed
        start_thread("compare", _work, self._jobs, weakref.ref(self))

    # ---- records and work

    def _read(self, records: int | Sequence[Any]) -> None:
        count = records if isinstance(records, int) else len(records)
        if not 1 <= count <= MOST:
            raise UsageError(f"{count} records cannot be compared at once; 1 to {MOST} can.")
        if isinstance(records, int):
            self._take(records)
        else:
            for wish in records:
                self._put(wish if isinstance(wish, Record) else self._find(wish))
            self._more = iter(())
        if not self.records:
            raise self.fault or UsageError(f"There are no records in {redact(' '.join(map(str, self.urls)))}.")

    def _take(self, count: int) -> int:
        """Read `count` records more; how many there were. Damage ends it and is kept in `fault`."""
        before = len(self.records)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TarvizWarning)  # the status line says them
            try:
                for record in itertools.islice(self._more, count):
                    self._put(record)
            except TarvizError as error:
                self.fault = error
        return len(self.records) - before

    def _put(self, record: Record) -> None:
        values = unpack(record)
        ext = self.field if self.field in values else first_field([column.chain for column in self.columns], values)
        tile = original(values, ext, self._room, self.overlays)
        with self.changed:
            self.records.append(values)
            self.originals.append(tile)
            for column in self.columns:
                column.strips.append(None)
            self.version += 1
            self._listed = self.version

    def _find(self, wish: Any) -> Record:
        """The record of a key, a number from 0, `#number`, or a marked one of a browser."""
        shard = getattr(wish, "shard", None)
        number = getattr(wish, "index", wish) if shard is not None else wish
        if isinstance(number, str) and number.startswith("#") and number[1:].isdigit():
            number = int(number[1:])
        index = stream.index([shard] if shard is not None else self._shards)
        try:
            found: Record = index[number]
        except (KeyError, IndexError, TypeError) as error:
            raise UsageError(f"There is no record {wish!r} among {len(index):,}.", hint="Give keys, or numbers from 0.") from error
        return found

    def _beside(self, runner: str) -> list[Column]:
        """Give every chain a column of another runner, after its own; the columns that are new."""
        name = {title: key for key, title in TITLES.items()}.get(runner, runner)
        if name not in (others := _others()):
            there = ", ".join(TITLES.get(each, each) for each in others)
            raise UsageError(f"There is no runner {runner!r} to compare with.", hint=f"Those to compare with: {there}.")
        known = {(column.name, column.runner) for column in self.columns}
        fresh = []
        made = []
        for column in self.columns:
            made.append(column)
            if column.runner == EAGER and (column.name, name) not in known:
                made.append(Column(column.name, column.chain, column.seed, name, [None] * len(self.records)))
                fresh.append(made[-1])
        self.columns = made
        return fresh

    def _order(self, columns: Sequence[Column], records: Sequence[int]) -> None:
        """Put columns to the work, record by record; other runners take all records in one go, after the eager ones."""
        jobs = [(column, record, column.turn) for record in records for column in columns if column.runner == EAGER]
        jobs += [(column, -1, column.turn) for column in columns if column.runner != EAGER]
        with self.changed:
            self._waiting += len(jobs)
        for job in jobs:
            self._jobs.put(job)

    def work(self, column: Column, record: int, turn: int) -> None:
        """One strip, or a whole column of another runner; called by the thread."""
        try:
            if not self._closed and turn == column.turn:
                if column.runner == EAGER:
                    strip = trace(column, self.records[record], self.originals[record].ext, self.epoch, self._room, self.overlays)
                    self._keep(column, record, strip)
                else:
                    self._elsewhere(column)
        except Exception as error:  # noqa: BLE001 - a thread that ends would leave its pages waiting
            self.fault = failure(error, f"comparing {column.name}")
        with self.changed:
            self._waiting -= 1
            self.version += 1
            self.changed.notify_all()

    def _elsewhere(self, column: Column) -> None:
        eager = next(other for other in self.columns if other.name == column.name and other.runner == EAGER)
        shows = [strip.tiles[-1] if strip and strip.tiles else tile for strip, tile in zip(eager.strips, self.originals, strict=True)]
        exts = [tile.ext for tile in shows]
        for number, strip in elsewhere(column, self.records, exts, eager.strips, self.epoch, self._room, self.overlays):
            self._keep(column, number, strip)
            if self._closed:
                return

    def _keep(self, column: Column, record: int, strip: Strip) -> None:
        with self.changed:
            self.version += 1
            strip.version = self.version
            column.strips[record] = strip
            self.changed.notify_all()

    @property
    def running(self) -> bool:
        """Whether steps are still to come."""
        return self._waiting > 0

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until every step of every chain is there; False when the time was over first."""
        with self.changed:
            return self.changed.wait_for(lambda: not self.running, seconds)

    # ---- what a view asks

    @rpc
    def poll(self, since: int = -1) -> Answer:
        """Strips that changed after version `since`, with their pictures."""
        with self.changed:
            version, running, columns, count = self.version, self.running, self.columns, len(self.records)
            found = [(at, no, strip) for at, column in enumerate(columns) for no, strip in enumerate(column.strips) if strip is not None]
        pictures = compare_text.Pictures()
        message: Message = {"version": version, "running": running, "status": self.status}
        message["colours"] = {readable(name): colour for name, colour in self.overlays.colours.items()}
        message["strips"] = [compare_text.strip_message(*place, pictures) for place in found if place[2].version > since]
        message["columns"] = [compare_text.column_message(column) for column in columns]
        if since < self._listed:
            message["records"] = [
                {"key": readable(values["__key__"])[:1200], "shard": readable(redact(values["__shard__"])), "number": values["__index__"]}
                for values in self.records[:count]
            ]
            message["originals"] = [compare_text.tile_message(tile, pictures) for tile in self.originals[:count]]
        return message, pictures.buffers

    @rpc
    def step(self, record: int, column: int = 0, step: int = -1) -> Answer:
        """One step in full, as PNG; `step` -1 is the record before any op."""
        tile = self._tile(record, column, step)
        pixels = pixels_of(tile.value)
        if pixels is None:
            gone = tile.value is None and tile.error is None
            return {"picture": False, "text": "No longer held: too many values, too large." if gone else readable(tile.text)}, []
        return {"picture": True, "width": pixels.shape[1], "height": pixels.shape[0]}, [encode_pixels(pixels)]

    @rpc
    def difference(self, record: int, a: Sequence[int], b: Sequence[int]) -> Message:
        """How two steps of a record, each as [column, step], differ: in their values where the dtype is the same, else as shown."""
        return differing(*(self._tile(record, int(at[0]), int(at[1])).value for at in (a, b)))

    @rpc
    def reroll(self, column: int | None = None) -> Message:
        """A new seed for one column and its other runners, or for all; only these run again."""
        names = {each.name for each in self.columns} if column is None else {self.columns[int(column)].name}
        again = [each for each in self.columns if each.name in names]
        with self.changed:
            for each in again:
                each.seed += 1
            self.version += 1
        self._order(again, range(len(self.records)))
        return {}

    @rpc
    def tune(self, column: int, op: int, name: str, value: float, at: int | None = None) -> Message:
        """Put another number into a chain, where `chain_numbers.numbers` found one; it runs again, as do its other runners."""
        chain = tune(self.columns[int(column)].chain, op, name, at, value)
        again = [each for each in self.columns if each.name == self.columns[int(column)].name]
        with self.changed:
            for each in again:
                each.chain = chain
                each.turn += 1
            self.version += 1
        self._order(again, range(len(self.records)))
        return {"chain": readable(str(chain))}

    @rpc
    def more(self, count: int = 1) -> Message:
        """Compare `count` records more, where there are any."""
        before = len(self.records)
        found = self._take(max(0, min(int(count), MOST - before)))
        self._order(self.columns if found else [], range(before, before + found))
        return {"found": found, "count": len(self.records)}

    @rpc
    def add(self, runner: str) -> Message:
        """Columns of another runner: what it makes of the same records."""
        with self.changed:
            fresh = self._beside(runner)
            self.version += 1
            self._listed = self.version  # columns have moved: everything is told again
            for column in self.columns:
                for strip in column.done:
                    strip.version = self.version
        self._order(fresh, range(len(self.records)))
        return {}

    # ---- what a host asks

    def first(self, session: str = "") -> Answer:
        self.wait(_AT_FIRST)
        message, buffers = self.poll()
        others = [[name, TITLES.get(name, name), SENTENCES.get(name, "")] for name in _others()]
        config: Message = {"title": self.title, "runners": others, "most": MOST, "python": readable(self.spec)}
        return {"config": config, "poll": message}, buffers

    def text(self) -> str:
        return compare_text.table(self.title, self.columns, self.records, self.originals, self.status)

    def picture(self) -> bytes:
        self.wait(_AT_FIRST)
        cells, width = compare_text.cells(self.columns, self.records, self.originals, self.overlays)
        return contact_sheet.sheet(self.title, self.status, cells, columns=width)

    def likely(self) -> Iterator[tuple[str, Message | None]]:
        later = []
        for record in range(len(self.records)):
            yield "step", {"record": record, "column": 0, "step": -1}
            for number, column in enumerate(self.columns):
                strip = column.strips[record]
                last = len(strip.tiles) - 1 if strip is not None else -1
                later += [(record, number, step) for step in range(last)]
                yield from _requests(record, number, last)
        for place in later:
            yield from _requests(*place)

    def close(self) -> None:
        self._closed = True
        self._jobs.put(None)
        with contextlib.suppress(ValueError):  # it is being read this moment, and closes with its last reference
            self._reader.close()

    # ---- what Python asks

    @property
    def status(self) -> str:
        """One sentence: how far it is, what failed, what differs."""
        return compare_text.status(self.columns, self.records, self.running, self._reader.report.counts(), self.fault)

    @property
    def failures(self) -> int:
        """Strips that an error ended."""
        return sum(column.failures for column in self.columns)

    @property
    def title(self) -> str:
        """The shards as they were named."""
        return readable(redact(" ".join(str(url) for url in self.urls)))[:300]

    @property
    def spec(self) -> str:
        """The Python call that makes this comparison."""
        urls: Any = [redact(str(url)) for url in self.urls]
        chains = {column.name: str(column.chain) for column in self.columns if column.runner == EAGER}
        records: Any = self._count if self._count is not None else [str(values["__key__"]) for values in self.records]
        others = sorted({column.title for column in self.columns} - {EAGER})
        more = "".join(f", {name}={value!r}" for name, value in (("seed", self.columns[0].seed), ("columns", others)) if value)
        return safe(f"tarviz.compare({urls[0] if len(urls) == 1 else urls!r}, {chains!r}, records={records!r}{more})")

    def _tile(self, record: int, column: int, step: int) -> StepTile:
        try:
            if step < 0:
                return self.originals[int(record)]
            strip = self.columns[int(column)].strips[int(record)]
            if strip is not None:
                return strip.tiles[int(step)]
        except IndexError:
            pass
        raise UsageError("There is no such step (any more).")


def _others() -> list[str]:
    """The runners that may make of a record what the eager one does not."""
    return [name for name in plugins.names("runners") if name not in _SAME]


def _requests(record: int, column: int, step: int) -> Iterator[tuple[str, Message]]:
    yield "step", {"record": record, "column": column, "step": step}
    yield "difference", {"record": record, "a": [0, -1], "b": [column, step]}


def _work(jobs: queue.SimpleQueue[tuple[Column, int, int] | None], owner: weakref.ref[Compare]) -> None:
    """The thread of a comparison, which does not keep it alive."""
    while (job := jobs.get()) is not None and (compare := owner()) is not None:
        compare.work(*job)
        del compare, job
