"""What a reader reads, pass by pass; and states: where readers stood, as JSON, and what they had left."""

from __future__ import annotations

import hashlib
import itertools
from bisect import bisect_right, insort
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tarviz import stores
from tarviz.model import urls
from tarviz.model.errors import ChangedError, DataError, StoreError, UsageError
from tarviz.model.types import URL
from tarviz.pipeline import Pipeline
from tarviz.read import stream
from tarviz.read.mixes import Course, Mix
from tarviz.runners.shares import SEED, Piece, ShareReader, by_source, check_any, count_records, cut, lengths, pieces, quick, shards, span
from tarviz.runners.shuffle_buffer import Begun, replay, shuffled
from tarviz.stores import Stat

State: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A state, or those of all ranks."""

Order: TypeAlias = NDArray[np.int64] | None

T = TypeVar("T")

FORM = 1
_MIX = 0x313C  # tells the draws of a mix from others of the same seed and epoch
_MANY = 8  # pieces a reader from which on they are not cut any more


class Position(NamedTuple):
    """Where a reader goes on: in pass `turn`, at record `record` of piece `piece`; in a shuffled one, after `record` records."""

    turn: int = 0
    piece: int = 0
    record: int = 0


@dataclass(slots=True)
class Trail:
    """How far a reader came: its place, and the versions of the shards that the pass has opened so far, by the number of the piece."""

    place: Position = field(default_factory=Position)
    versions: dict[int, str] = field(default_factory=dict)
    loaded: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, mark: Mapping[str, Any] | None) -> Trail:
        """Where a mark says; None is the beginning."""
        return cls() if mark is None else cls(Position(*mark["place"]), loaded=mark)

    def open(self, number: int, stat: Stat | None) -> None:
        """Note the shard of piece `number`, once."""
        if number not in self.versions:
            self.versions[number] = version(stat)

    def move(self, place: Position) -> None:
        """A value was delivered; `place` is after it."""
        self.place, self.loaded = place, None

    def mark(self, *, mixed: bool) -> dict[str, Any]:
        """The place, and by which versions of shards one may go on from it; JSON-ready."""
        if self.loaded is not None:
            return dict(self.loaded)
        made: dict[str, Any] = {"place": list(self.place)}
        if mixed and self.place.record:
            opened = dict(sorted(self.versions.copy().items()))  # threads that read ahead may open more
            numbers = list(opened)
            in_a_row = numbers == list(range(len(numbers)))
            made |= {"opened": len(numbers) if in_a_row else numbers, "versions": digest(list(opened.values()))}
        elif self.place.record and self.place.piece in self.versions:
            made["version"] = self.versions[self.place.piece]
        return made


class Track:
    """The places of an iteration's records by their number, for who counts what was taken while more was read already.

    Records in a row of one shard, or of a pass that is shuffled, take one entry together.
    """

    def __init__(self, trail: Trail, *, mixed: bool) -> None:
        self.trail = trail
        self._mixed = mixed
        self._runs: list[tuple[int, Position, dict[int, str]]] = []  # number of the first, its place, what the pass has opened
        self._lost: list[int] = []
        self._read = 0

    def note(self, first: int, turn: int, piece: int, records: NDArray[np.int64], versions: dict[int, str]) -> None:
        """The records from number `first` on are these of a piece; of a shuffled pass, they come as these."""
        self._read = first + len(records)
        for at in (0, *(np.flatnonzero(np.diff(records) != 1) + 1).tolist()):
            place = Position(turn, piece, int(records[at]))
            if self._runs:
                number, begin, _ = self._runs[-1]
                if begin._replace(record=begin.record + first + at - number) == place:
                    continue
            self._runs.append((first + at, place, versions))

    def lose(self, number: int) -> None:
        """A record was skipped: nobody takes it."""
        insort(self._lost, number)

    def mark(self, steps: int, batch: int | None) -> dict[str, Any]:
        """The mark behind so many steps of `batch` records (None: one); `UsageError` where not so many were read."""
        if not steps:
            return self.trail.mark(mixed=self._mixed)
        last = steps * (batch or 1) - 1
        for lost in self._lost.copy():
            last += lost <= last
        if last - (batch or 1) >= self._read - 1:
            raise UsageError(f"{steps} steps were not read yet.", hint="steps= counts those taken of the latest iteration.")
        last = min(last, self._read - 1)  # the last step may have fewer
        at = bisect_right(self._runs, last, key=lambda run: run[0]) - 1
        first, place, versions = self._runs[at]
        return Trail(place._replace(record=place.record + last - first + 1), versions).mark(mixed=self._mixed)


class Reentry(NamedTuple):
    """How a shuffled pass goes on: its buffer holds the records of `pieces` in the order `held`, and then come those behind `after`."""

    held: list[int]
    numbers: list[int]
    pieces: list[Piece]
    after: int
    random: np.random.Generator | None

    def fill(self, items: Iterable[T]) -> Begun[T]:
        """The buffer, filled with what was read of the pieces."""
        found = dict(zip(self.numbers, items, strict=True))
        return [found[number] for number in self.held], self.random


def reentry(whole: Sequence[Piece], counts: Sequence[int], size: int, seed: list[int], taken: int, order: Order = None) -> Reentry:
    """How a pass over pieces of so many records goes on behind `taken` of them; in another `order` than their own, by these numbers."""
    held, after, random = replay(sum(counts) if order is None else len(order), size, seed, taken)
    if order is not None:
        held = order[held].tolist()
    found, numbers, left = [], list[int](), sorted(held)
    while left:  # a record that is in the buffer twice, of a source that began again, is read twice
        layer = list(dict.fromkeys(left))
        left = [number for number, before in zip(left[1:], left, strict=False) if number == before]
        numbers, begin = numbers + layer, 0
        for piece, count in zip(whole, counts, strict=True):
            if mine := tuple(piece.number(number - begin) for number in layer if begin <= number < begin + count):
                found.append(replace(piece, start=0, stop=None, only=mine))
            begin += count
    return Reentry(held, numbers, found, after, random)


def version(stat: Stat | None) -> str:
    """Which shard it is, and which bytes: its identity, size and etag (or time) as text."""
    return "" if stat is None else f"{urls.digest(urls.identity(stat.url), 10)}:{stat.size}:{stat.etag or stat.mtime}"


def digest(versions: Sequence[str]) -> str:
    """Versions in a row as one short text."""
    return hashlib.blake2b("\n".join(versions).encode(), digest_size=8).hexdigest()


def buffer_seed(seed: int, epoch: int, reader: ShareReader) -> list[int]:
    """The seed of a reader's shuffle buffer in an epoch."""
    return [seed & SEED, epoch, *reader.numbers]


def behind(whole: Sequence[Piece], number: int, record: int) -> list[Piece]:
    """What is left of pieces in a row, from record `record` of piece `number` on.

    >>> [(piece.url, piece.start) for piece in behind([Piece("a.tar"), Piece("b.tar"), Piece("c.tar")], 1, 7)]
    [('b.tar', 7), ('c.tar', 0)]
    """
    return [piece.behind(record) if at == number and record else piece for at, piece in enumerate(whole) if at >= number]


def locate(found: Sequence[Piece], counts: Sequence[int], place: int) -> tuple[int, int]:
    """(piece, record of its shard) of record `place` of pieces in a row; (number of pieces, 0) after the last."""
    for at, (piece, count) in enumerate(zip(found, counts, strict=True)):
        if place < count:
            return at, piece.number(place)
        place -= count
    return len(found), 0


@dataclass(frozen=True, slots=True)
class ReaderPlan:
    """What one reader reads in each pass. `rest`: states of readers, of another number, whose work it takes over with others."""

    pipeline: Pipeline
    reader: ShareReader
    shuffle: int = 0
    even: bool = False
    reshare: bool = False
    rest: tuple[Mapping[str, Any], ...] = ()

    @property
    def varies(self) -> bool:
        """Whether a pass may have more records than another."""
        return self.pipeline.mix is not None or (self.reshare and not self.even and self.reader.world > 1)

    @property
    def drawn(self) -> bool:
        """Whether records come in an order that is drawn: out of the sources of a mix, or of a shuffle buffer."""
        return self.pipeline.mix is not None or self.shuffle > 1

    def resumes(self, turn: int) -> bool:
        """Whether the pass was begun by others."""
        return any(turn <= _latest(state) for state in self.rest)

    def pieces(self, turn: int, epoch: int) -> list[Piece]:
        """What is read in a pass, in the order in which it is read."""
        if not self.resumes(turn):
            found = self._share(self.reader, epoch)
        else:
            left = [piece for state in self.rest for piece in remaining(self.pipeline, state, turn)]
            found = [piece for part in by_source(sorted(left, key=_source)) for piece in self._share_rest(part)]
        if self.shuffle > 1:
            order = np.random.default_rng([self.pipeline.seed & SEED, epoch, 0x5EED]).permutation(len(found))
            found = sorted((found[at] for at in order.tolist()), key=_source)
        return found

    def records(
        self,
        turn: int,
        epoch: int,
        whole: Sequence[Piece],
        taken: int,
        read: Callable[[int, int, int], Generator[T, None, None]],
        pick: Callable[[list[Piece]], Iterable[T]],
        versions: dict[int, str],
    ) -> Generator[T, None, None]:
        """What a pass over `whole` gives in an order that is drawn, behind the first `taken`, with the `versions` of what was read before.

        `read(piece, record, end)` gives the records of its pieces up to `end`, from one of a piece on, `pick` those of other pieces.
        """
        counts, seed = lengths(whole, self.pipeline.options) if taken else None, buffer_seed(self.pipeline.seed, epoch, self.reader)
        mixed = Mixed.of(self, turn, epoch, whole, counts)
        begun: Begun[T] | None = None
        after = 0 if counts is None else taken
        if counts is not None and self.shuffle > 1:
            back = reentry(whole, counts, self.shuffle, seed, taken, mixed.order)
            begun, after = back.fill(pick(back.pieces)), back.after
        if counts is not None:
            versions.update((at, version(stores.of(whole[at].url).stat(whole[at].url))) for at in mixed.pieces_read(after))
        with closing(mixed.records(read, after)) as items:
            order = shuffled(items, self.shuffle, seed, begun) if self.shuffle > 1 else items
            yield from itertools.islice(order, taken if counts is None else 0, None)

    def _share(self, reader: ShareReader, epoch: int) -> list[Piece]:
        return pieces(self.pipeline, reader, even=self.even, reshare=self.reshare, epoch=epoch)

    def check_any(self, epoch: int) -> None:
        """`UsageError` where a pass has no record because all shards of this rank, of several, are empty."""
        if self.reader.world > 1:
            check_any(self.pipeline, self.reader, self._share(ShareReader(self.reader.rank, self.reader.world), epoch))

    def length(self, epochs: range, *, build: bool = True) -> int | None:
        """How many records whole passes have, where indexes tell: those in the cache, or (`build`) made now of plain local shards that are
        small enough for it; None otherwise."""
        options, reader = self.pipeline.options, self.reader
        if options.on_error == "skip" or options.group == "shard":
            return None
        with suppress(DataError, StoreError, UsageError):  # what is wrong is said in its place, when the shard is read
            whole = shards(self.pipeline)  # an even share is found by the index anyhow
            if (counts := lengths(whole, options, build=self.even or (build and quick(whole)))) is not None:
                held = dict(zip((piece.url for piece in whole), counts, strict=True))
                found = [self._length(epoch, held) for epoch in (epochs if self.varies else epochs[:1])]
                told = [count for count in found if count is not None]
                return sum(told) * (1 if self.varies else len(epochs)) if len(told) == len(found) else None
        count = self.pipeline.count() if reader.world * reader.workers == 1 else None
        return None if count is None else count * len(epochs)

    def _length(self, epoch: int, held: Mapping[URL, int]) -> int | None:
        own = self._share(self.reader, epoch)
        counts = [count for piece in own if (count := piece.length(held[piece.url])) is not None]
        if len(counts) < len(own):
            return None
        order = Mixed.of(self, 0, epoch, own, counts).order
        return sum(counts) if order is None else len(order)

    def _share_rest(self, left: list[Piece]) -> list[Piece]:
        """This reader's part of what was left: of all ranks where their number is another now, else of its own rank."""
        reader = self.reader
        rank, world = (reader.rank, reader.world) if self.rest[0]["world"] != reader.world else (0, 1)
        many = len(left) >= _MANY * world * reader.workers and not self.even
        counts = None if many else lengths(left, self.pipeline.options)
        if counts is None:
            return left[rank::world][reader.worker :: reader.workers]
        total = sum(counts) - (sum(counts) % world if self.even else 0)
        low, high = span(total, rank, world)
        return cut(left, counts, *(low + edge for edge in span(high - low, reader.worker, reader.workers)))


def _source(piece: Piece) -> int:
    return piece.source


@dataclass(frozen=True, slots=True)
class Mixed:
    """A pass over pieces, which stand by source, in the order in which a mix draws from them; in their own where there is none.

    `ends` has where the pieces of each source end, `counts` the records of each piece, where they are known.
    """

    whole: Sequence[Piece]
    counts: Sequence[int] | None
    mix: Mix | None
    seed: list[int]
    ends: list[int]

    @classmethod
    def of(cls, plan: ReaderPlan, turn: int, epoch: int, whole: Sequence[Piece], counts: Sequence[int] | None) -> Mixed:
        """The draws are those of every rank: with equally many records of each source (`even`) passes are equally long."""
        mix = plan.pipeline.mix
        if mix is not None and plan.resumes(turn):
            mix = replace(mix, stop="rest")
        ends = [bisect_right(whole, source, key=_source) for source in range(1 if mix is None else len(mix.weights))]
        return cls(whole, counts, mix, [plan.pipeline.seed & SEED, epoch, _MIX, plan.reader.worker], ends)

    def _parts(self, counts: Sequence[int]) -> list[tuple[int, int, int]]:
        """Of each source where its pieces begin and end, and how many records these have."""
        return [(low, high, sum(counts[low:high])) for low, high in itertools.pairwise([0, *self.ends])]

    def _course(self, counts: Sequence[int], mix: Mix) -> Course:
        return mix.course([count for _, _, count in self._parts(counts)], self.seed)

    @property
    def order(self) -> Order:
        """The records as they come, by their numbers over all pieces; None: as these stand."""
        if self.mix is None or self.counts is None:
            return None
        course, sizes = self._course(self.counts, self.mix), np.array([count for _, _, count in self._parts(self.counts)], np.int64)
        return (np.cumsum(sizes) - sizes)[course.sources] + course.turns % sizes[course.sources]

    def _behind(self, taken: int, counts: Sequence[int]) -> list[tuple[int, int]]:
        """(first, end) of each source in records of it, as it goes on where it is spent: what comes behind `taken` records of the pass."""
        if self.mix is None:
            return [(taken, sum(counts))]
        sources = self._course(counts, self.mix).sources
        many = len(self.ends)
        return list(zip(*(np.bincount(part, minlength=many).tolist() for part in (sources[:taken], sources)), strict=True))

    def rest_behind(self, taken: int) -> list[Piece]:
        """What comes behind `taken` records, as pieces; `counts` are known."""
        assert self.counts is not None
        found: list[Piece] = []
        for (low, high, count), (first, end) in zip(self._parts(self.counts), self._behind(taken, self.counts), strict=True):
            rounds = -(-end // max(count, 1))
            found += cut([*self.whole[low:high]] * rounds, [*self.counts[low:high]] * rounds, first, end)
        return found

    def pieces_read(self, taken: int) -> list[int]:
        """The pieces that were read for the first `taken` records; `counts` are known."""
        assert self.counts is not None
        found: list[int] = []
        for (low, high, count), (first, _) in zip(self._parts(self.counts), self._behind(taken, self.counts), strict=True):
            found += range(low, high if first >= count else low + locate(self.whole[low:high], self.counts[low:high], first)[0] + 1)
        return found

    def records(self, read: Callable[[int, int, int], Generator[T, None, None]], taken: int) -> Generator[T, None, None]:
        """The records behind the first `taken`, which are none where `counts` are not known; `read` is that of `ReaderPlan.records`."""
        counts = self.counts or [0] * len(self.whole)
        parts = self._parts(counts)

        def open_source(source: int, skip: int) -> Generator[T, None, None]:
            low, high, _ = parts[source]
            number, record = locate(self.whole[low:high], counts[low:high], skip) if skip else (0, 0)
            return read(low + number, record, high)

        if self.mix is None:
            return open_source(0, taken)
        return self.mix.records(open_source, self.seed, [count for _, _, count in parts] if taken else (), taken)


def _latest(state: Mapping[str, Any]) -> int:
    """The last pass that readers had begun when a state was saved, or that others had begun before them."""
    turns = [mark["place"][0] for mark in state["marks"].values()]
    return max(turns + [_latest(part) for part in state.get("rest", ())], default=-1)


def plan_of(pipeline: Pipeline, state: Mapping[str, Any], worker: int) -> ReaderPlan:
    """The plan that worker `worker` had when the state was saved."""
    reader = ShareReader(state["rank"], state["world"], worker, state["workers"])
    return ReaderPlan(pipeline, reader, state["shuffle"], state["even"], state.get("reshare", False), tuple(state.get("rest", ())))


def remaining(pipeline: Pipeline, state: Mapping[str, Any], turn: int) -> list[Piece]:
    """What the workers of a rank had left of a pass."""
    found: list[Piece] = []
    for worker in range(state["workers"]):
        place = Position(*state["marks"].get(str(worker), {}).get("place", (0, 0, 0)))
        if place.turn > turn:
            continue
        plan = plan_of(pipeline, state, worker)
        whole = plan.pieces(turn, state["epoch"] + turn)
        begun = place.turn == turn and any(place[1:])
        if plan.drawn and (begun or pipeline.mix is not None):
            found += _rest_of_drawn(plan, whole, turn, state["epoch"] + turn, place.record if begun else 0)
        elif not begun:
            found += whole
        else:
            found += behind(whole, place.piece, place.record)
    return found


def _rest_of_drawn(plan: ReaderPlan, whole: list[Piece], turn: int, epoch: int, taken: int) -> list[Piece]:
    numbered = [count_records(piece, plan.pipeline.options) for piece in whole]
    told = [each for each in numbered if each is not None]
    if len(told) < len(whole):
        raise UsageError(
            "a pass that is shuffled or mixed can go on with another number of workers only where its records can be counted.",
            hint="Take as many workers and ranks as before. tarviz verify names damaged shards.",
        )
    whole, counts = [piece for piece, _ in told], [count for _, count in told]
    mixed, found = Mixed.of(plan, turn, epoch, whole, counts), list[Piece]()
    if plan.shuffle > 1 and taken:
        back = reentry(whole, counts, plan.shuffle, buffer_seed(plan.pipeline.seed, epoch, plan.reader), taken, mixed.order)
        found, taken = back.pieces, back.after
    return found + mixed.rest_behind(taken)


def check(plan: ReaderPlan, state: Mapping[str, Any]) -> None:
    """`UsageError` where a state is of another pipeline, `ChangedError` where a shard it stands in is another by now."""
    if not isinstance(state, Mapping) or state.get("form") != FORM:
        raise UsageError("this is not a state of this version of tarviz.", hint="Begin the epoch anew.")
    pipeline = plan.pipeline
    for name, value in _own(plan).items():
        if (was := state.get(name, False)) != value:
            raise UsageError(f"the state is of a pipeline with {name}={was!r}, this one has {name}={value!r}.")
    for worker, mark in state["marks"].items():
        if "version" in mark or "versions" in mark:
            _check_versions(pipeline, state, int(worker), mark)


def _own(plan: ReaderPlan) -> dict[str, Any]:
    """What a plan and the one that goes on with its state have to have in common."""
    pipeline = plan.pipeline
    own = {"seed": pipeline.seed, "shuffle": plan.shuffle, "even": plan.even, "reshare": plan.reshare}
    mix = pipeline.mix is not None and [[weight for _, weight in pipeline.mix.weights], pipeline.mix.stop]
    return own | {"shards": len(stream.shards(pipeline.urls)), "mix": mix}


def _check_versions(pipeline: Pipeline, state: Mapping[str, Any], worker: int, mark: Mapping[str, Any]) -> None:
    place = Position(*mark["place"])
    whole = plan_of(pipeline, state, worker).pieces(place.turn, state["epoch"] + place.turn)
    hint = "Begin the epoch anew, or put the shard back."
    if "version" in mark:
        url = whole[place.piece].url
        now = version(stores.of(url).stat(url))
        if now != mark["version"]:
            raise ChangedError(f"the shard was replaced since the state was saved: {mark['version']}, now {now}.", shard=url, hint=hint)
        return
    numbers = mark["opened"]
    opened = whole[:numbers] if isinstance(numbers, int) else [whole[number] for number in numbers]
    if digest([version(stores.of(piece.url).stat(piece.url)) for piece in opened]) != mark["versions"]:
        text = f"one of the {len(opened)} shards read so far was replaced since the state was saved, this one or one after it."
        raise ChangedError(text, shard=opened[0].url, hint=hint)


def state_of(plan: ReaderPlan, epoch: int, marks: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """A state, JSON-ready: what the readers of a rank share, and the mark of each worker."""
    reader = plan.reader
    state = {
        "form": FORM,
        "epoch": epoch,
        "rank": reader.rank,
        "world": reader.world,
        "workers": reader.workers,
        **_own(plan),
        "marks": {worker: dict(mark) for worker, mark in marks.items()},
    }
    return state | ({"rest": [dict(part) for part in plan.rest]} if plan.rest else {})


@dataclass(frozen=True, slots=True)
class Resumed:
    """What to go on with: in which epoch, what of others is taken over, and the marks of the workers; `turn` gives the first batch."""

    epoch: int
    rest: tuple[Mapping[str, Any], ...] = ()
    marks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    turn: int = 0


def resume(plan: ReaderPlan, given: State) -> Resumed:
    """What the readers of a rank go on with by the state, or the states, given.

    With as many ranks and workers as when it was saved, each goes on where it stood. Else what was left is shared out anew: that of
    this rank where the number of ranks is the same, that of all ranks, whose states are given as a list, where it is another.
    `UsageError` says which are wanted.
    """
    states = [given] if isinstance(given, Mapping) else list(given)
    reader = plan.reader
    for state in states:
        check(plan, state)
    if len({state["epoch"] for state in states}) != 1:
        raise UsageError("the states are of different epochs." if states else "there is no state in the list.")
    own = [state for state in states if state["rank"] == reader.rank]
    world = states[0]["world"]
    if world == reader.world:
        if len(own) != 1:
            raise UsageError(f"there is no state of rank {reader.rank} among those given.", hint="Load the state that this rank saved.")
        if own[0]["workers"] == reader.workers:
            return Resumed(own[0]["epoch"], tuple(own[0].get("rest", ())), own[0]["marks"], own[0].get("turn", 0))
        states = own
    elif sorted(state["rank"] for state in states) != list(range(world)):
        raise UsageError(
            f"the state is of {world} rank(s), this is one of {reader.world}: what all of them had left is shared out anew.",
            hint="Load the states of all ranks, as a list: load_state_dict([state_0, state_1, …]).",
        )
    if not any(state["marks"] for state in states) and not any(state.get("rest") for state in states):
        return Resumed(states[0]["epoch"])
    return Resumed(states[0]["epoch"], tuple(states))
