"""A pipeline walked through: the passes of one reader over its pieces, each value with the place to go on from."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeAlias

from tarviz.model.errors import SchemaError, TarvizError
from tarviz.model.in_order import in_order
from tarviz.model.types import Block, Record, to_bytes
from tarviz.ops.base import another_name, unpack
from tarviz.ops.random_draws import draws
from tarviz.pipeline import Pipeline
from tarviz.read.indexed import blocks as indexed_blocks
from tarviz.read.picked import pick
from tarviz.read.read_ahead import take_bytes
from tarviz.read.stream import ReadReport
from tarviz.runners.batch_memory import BatchRows, Offers
from tarviz.runners.elsewhere import MOST, PART, Elsewhere, MadeRow, RowSource, weight
from tarviz.runners.plans import Position, ReaderPlan, Trail
from tarviz.runners.shares import TURN, Piece, trusted_index
from tarviz.runners.stage_timer import DRAW, PICK, StageTimer

Item: TypeAlias = tuple[dict[str, Any], Record | None]
Placed: TypeAlias = tuple[int, int, Any]
"""An item, or what was made of it elsewhere, with its piece, and the record to go on with."""

_CHUNK = 16
_HEAVY = 2 << 20  # bytes of records that are work enough for a thread; with more, the others would wait for it at the end


@dataclass(eq=False, repr=False)
class Walk:
    """A pipeline, and how its records are worked on: in the order they come, or through a shuffle buffer, by threads or not, or elsewhere.

    Elsewhere the values pass through the buffer, here the records as they were read: the order is the same.
    """

    pipeline: Pipeline
    _: KW_ONLY
    shuffle: int = 0
    repeat: int | None = 1
    num_workers: int = 0
    chunk: int = 1
    elsewhere: Elsewhere | None = None
    timer: StageTimer | None = None
    stops: bool = True  # with an error that is to be raised

    def __post_init__(self) -> None:
        self.chunk = 1 if self.elsewhere else _CHUNK if self.num_workers else self.chunk

    def values(
        self, plan: ReaderPlan, epoch: int, report: ReadReport, trail: Trail, rows: BatchRows | None = None
    ) -> Generator[tuple[Position, Any], None, None]:
        """(place after it, value) of each record, from the trail's place on. A pass without records is the last.

        `rows` offers memory for what the chain makes of the records, in this order.
        """
        turn, number, record = trail.place
        stops = self.pipeline.options.on_error == "raise" and self.shuffle <= 1
        with self.elsewhere.start(self.pipeline, work, stops=stops) if self.elsewhere else nullcontext() as workers:
            while self.repeat is None or turn < self.repeat:
                found = [number, record] != [0, 0]
                trail.versions = {}
                with closing(self._pass(plan, turn, epoch + turn, number, record, report, trail, workers, rows)) as values:
                    for at, after, value in values:
                        found = True
                        yield Position(turn, at, after), value
                report.tell_skipped()
                if not found and not plan.resumes(turn):
                    plan.check_any(epoch + turn)
                    return
                turn, number, record = turn + 1, 0, 0

    def _pass(
        self,
        plan: ReaderPlan,
        turn: int,
        epoch: int,
        number: int,
        record: int,
        report: ReadReport,
        trail: Trail,
        workers: RowSource | None,
        rows: BatchRows | None,
    ) -> Generator[tuple[int, int, Any], None, None]:
        pieces = plan.pieces(turn, epoch)

        def read(number: int, record: int, end: int | None = None) -> Generator[Placed, None, None]:
            left = [piece.behind(record) if at == number and record else piece for at, piece in enumerate(pieces[:end])]
            if workers is None:
                return self.items(left, report, trail, number)
            return _unwrap(workers.rows(left, epoch, report, trail, number))

        def pick(held: list[Piece]) -> Generator[Placed, None, None]:
            return self.items(held, report, Trail()) if workers is None else _unwrap(workers.rows(held, epoch, report))

        if not plan.drawn:
            with closing(read(number, record)) as items:
                yield from self._values(items, epoch, report, rows)
            return
        with closing(plan.records(turn, epoch, pieces, record, read, pick, trail.versions)) as order:
            taken = ((0, count, item) for count, (_, _, item) in enumerate(order, record + 1))
            yield from self._values(taken, epoch, report, rows)

    def items(self, pieces: list[Piece], report: ReadReport, trail: Trail, number: int = 0) -> Generator[Placed, None, None]:
        """(piece, record to go on with, record) from piece `number` on."""
        options = self.pipeline.options
        for at, piece in enumerate(pieces[number:], number):
            report.opened = None
            with report.skip_damage(piece.url, options.on_error), closing(self._records(piece, report)) as records:
                for each in records:
                    trail.open(at, report.opened)
                    yield at, each.index + 1, (self._unpack(each), None if self.shuffle > 1 else each)
            trail.open(at, report.opened)

    def _records(self, piece: Piece, report: ReadReport) -> Generator[Record, None, None]:
        options = self.pipeline.options
        if piece.only is not None:
            yield from pick(piece.url, trusted_index(piece.url, options), piece.only, options, report)
            return
        with closing(self._open(piece, report)) as blocks:
            for each in itertools.chain.from_iterable(blocks):
                if piece.of == 1 or each.index // TURN % piece.of == piece.share:
                    yield each

    def _open(self, piece: Piece, report: ReadReport) -> Generator[Block, None, None]:
        blocks = indexed_blocks(piece.url, self.pipeline.options, report, piece.start, piece.stop)
        return blocks if self.timer is None else self.timer.read(blocks)

    def _unpack(self, record: Record) -> dict[str, Any]:
        if self.timer is None:
            return unpack(record, self.pipeline.needs, take_bytes)
        begin = self.timer.clock()
        values = unpack(record, self.pipeline.needs, take_bytes)
        self.timer.note_cut(begin)
        return values

    def _values(
        self, items: Iterator[Placed], epoch: int, report: ReadReport, rows: BatchRows | None
    ) -> Generator[tuple[int, int, Any], None, None]:
        for chunk, results in self._results(_chunks(items, lambda: self.chunk), epoch, rows):
            for (at, behind, _), value in zip(chunk, results, strict=False):  # after an error that is raised nothing follows
                if not isinstance(value, TarvizError):
                    yield at, behind, value
                elif self.pipeline.options.on_error == "raise":
                    raise value
                else:
                    report.add(value.fault, skipped=True)
                    if rows is not None:
                        rows.leave_out()

    def _results(
        self, chunks: Iterator[list[Placed]], epoch: int, rows: BatchRows | None
    ) -> Generator[tuple[list[Placed], list[Any]], None, None]:
        def process(part: tuple[list[Placed], Offers | None]) -> tuple[list[Placed], list[Any]]:
            chunk, offers = part
            return chunk, self.work_on([item for _, _, item in chunk], epoch, offers)

        offered = ((chunk, None if rows is None else rows.offers(len(chunk))) for chunk in chunks)
        if self.elsewhere:
            yield from ((chunk, [item for _, _, item in chunk]) for chunk in chunks)
        elif self.num_workers:
            with ThreadPoolExecutor(self.num_workers, "tarviz-eager") as pool:
                yield from in_order(offered, process, pool, 2 * self.num_workers)
        else:
            yield from map(process, offered)

    def work_on(self, chunk: list[Item], epoch: int, offers: Offers | None = None) -> list[Any]:
        """Values of records, or the error in place of a value; after an error that is to be raised nothing follows."""
        chain, select = self.pipeline.chain, self.pipeline.select
        laps = None if self.timer is None else self.timer.laps(chain)
        drawn = draws(chain, [to_bytes(record["__key__"]) for record, _ in chunk], self.pipeline.seed, epoch) if chain.draws else None
        if laps is not None and drawn is not None:
            laps(DRAW)
        results: list[Any] = []
        for number, (record, origin) in enumerate(chunk):
            try:
                room = None if offers is None else offers.rooms[number]
                made = chain.run(record, None if drawn is None else drawn[number], room, None if laps is None else laps.note_step)
                if offers is not None and not room:
                    offers.note(made)
                results.append(select.pick(made))
                if laps is not None:
                    laps(PICK)
            except TarvizError as error:
                results.append(place_error(error, origin))
                if self.stops and self.pipeline.options.on_error == "raise":
                    break
        if laps is not None and self.timer is not None:
            self.timer.add(laps)
        return results


def work(pipeline: Pipeline, piece: Piece, epoch: int, report: ReadReport, stops: bool) -> Generator[list[MadeRow], None, None]:
    """What a worker elsewhere makes of a piece: rows of about `PART` bytes together, the first alone, at last none."""
    walk, sizes = Walk(pipeline, stops=stops), [1]
    with closing(walk.items([piece], report, Trail())) as items:
        for chunk in _chunks(items, lambda: sizes[0]):
            keys = [record["__key__"] for _, _, (record, _) in chunk]
            values = walk.work_on([item for _, _, item in chunk], epoch)
            rows = [MadeRow(key, behind, value) for key, (_, behind, _), value in zip(keys, chunk, values, strict=False)]
            yield rows
            if stops and isinstance(rows[-1].value, TarvizError):
                return
            sizes[0] = max(min(PART * len(rows) // (1 + sum(weight(row.value) for row in rows)), MOST), 1)
    yield []


def _unwrap(rows: Generator[tuple[int, MadeRow], None, None]) -> Generator[Placed, None, None]:
    with closing(rows):
        for at, row in rows:
            yield at, row.behind, row.value


def place_error(error: TarvizError, origin: Record | None) -> TarvizError:
    """The error with member and byte of the field it is about, where these are known."""
    field = str(error.details.get("field"))
    if origin is not None and field not in origin and isinstance(error, SchemaError):
        error.at(hint=another_name(field, origin))
        if "field" in error.details:  # what is said to be there are the fields that are read
            error.at(hint=f"The record has {', '.join(origin) or 'no fields'}.")
    if origin is not None and field in origin:
        member = origin.members[list(origin).index(field)]
        error.at(member=member.name, offset=member.header_offset)
    return error


def _chunks(items: Iterator[Placed], size: Callable[[], int]) -> Iterator[list[Placed]]:
    """Items `size()` at a time, fewer where they are large; those that stand before an error come before it."""
    chunk: list[Placed] = []
    weighed = 0
    try:
        for item in items:
            chunk.append(item)
            if len(chunk) >= size() or (weighed := weighed + _bytes(item)) >= _HEAVY:
                yield chunk
                chunk, weighed = [], 0
    except TarvizError:
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk


def _bytes(item: Placed) -> int:
    return sum(len(value) for value in item[2][0].values() if isinstance(value, bytes))
