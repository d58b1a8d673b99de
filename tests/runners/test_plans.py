"""Places and states of readers: by which a pass goes on, held against what was read one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tarviz.model.errors import UsageError
from tarviz.model.types import URL
from tarviz.pipeline import Pipeline
from tarviz.runners.plans import (
    Mixed,
    Position,
    ReaderPlan,
    Resumed,
    Track,
    Trail,
    check,
    digest,
    locate,
    reentry,
    remaining,
    resume,
    state_of,
    version,
)
from tarviz.runners.shares import Piece, ShareReader
from tarviz.runners.shuffle_buffer import shuffled
from tarviz.stores.base import Stat
from tarviz.testing.strategies import numbered_records

RUNS = st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True).map(sorted)), max_size=6)


@pytest.fixture
def pipeline(tmp_path: Path, make: Callable[..., Path]) -> Pipeline:
    """Three shards, of 5, 4 and 6 records."""
    urls = [str(make(numbered_records(count, prefix=f"{at}/"), f"{at}.tar")) for at, count in enumerate((5, 4, 6))]
    return Pipeline(urls, "decode(cls)", select="cls", seed=3)


class TestTrack:
    @given(RUNS, st.sets(st.integers(0, 40)), st.integers(1, 4), st.booleans())
    @example([(0, [0, 1]), (0, [2, 4])], set(), 1, True)
    def test_the_place_behind_a_step_is_behind_the_last_record_in_it(
        self, runs: list[tuple[int, list[int]]], lost: set[int], batch: int, single: bool
    ) -> None:
        versions = {piece: f"v{piece}" for piece in range(3)}
        track = Track(Trail(Position(0, 1, 7), versions), mixed=False)
        places: list[Position] = []
        for at, (piece, records) in enumerate(runs):
            track.note(len(places), at // 2, piece, np.array(records), versions)
            places += [Position(at // 2, piece, record + 1) for record in records]
        for number in lost:
            if number < len(places):
                track.lose(number)
        taken = [place for number, place in enumerate(places) if number not in lost]
        size = 1 if single else batch

        assert {"place": [0, 1, 7], "version": "v1"} == track.mark(0, batch)
        for steps in range(1, len(taken) // size + 1):
            place = taken[steps * size - 1]
            assert {"place": [*place], "version": f"v{place.piece}"} == track.mark(steps, None if single else batch)
        if len(taken) % size:  # the last step has fewer
            assert [*places[-1]] == track.mark(len(taken) // size + 1, batch)["place"]
        with pytest.raises(UsageError, match="were not read yet"):
            track.mark(-(-len(taken) // size) + 1, None if single else batch)


class TestTrail:
    @pytest.mark.parametrize(("opened", "told"), [({0: "a", 1: "b"}, 2), ({1: "b", 0: "a"}, 2), ({0: "a", 2: "b"}, [0, 2]), ({}, 0)])
    def test_of_a_pass_in_a_drawn_order_a_mark_tells_all_that_was_opened(self, opened: dict[int, str], told: Any) -> None:
        mark = Trail(Position(1, 0, 4), opened).mark(mixed=True)

        assert {"place": [1, 0, 4], "opened": told, "versions": digest([opened[at] for at in sorted(opened)])} == mark

    def test_where_nothing_is_open_there_is_no_version(self) -> None:
        assert {"place": [1, 0, 0]} == Trail(Position(1), {0: "a"}).mark(mixed=True) == Trail(Position(1), {0: "a"}).mark(mixed=False)
        assert {"place": [0, 2, 3]} == Trail(Position(0, 2, 3), {0: "a"}).mark(mixed=False)

    def test_what_was_loaded_stays_until_a_value_is_taken(self) -> None:
        mark = {"place": [0, 2, 3], "version": "a"}
        trail = Trail.of(mark)

        assert (Position(0, 2, 3), mark) == (trail.place, trail.mark(mixed=False))
        trail.move(Position(0, 2, 4))
        assert {"place": [0, 2, 4]} == trail.mark(mixed=False)
        assert Position() == Trail.of(None).place

    def test_a_version_is_the_shard_and_its_bytes(self) -> None:
        one, other = (version(Stat(URL(f"memory://{name}.tar"), 9, '"e"')) for name in "ab")

        assert one.partition(":")[2] == other.partition(":")[2] == '9:"e"'
        assert one != other
        assert version(Stat(URL("memory://a.tar"), 9, None, mtime=5.0)).endswith(":9:5.0")
        assert "" == version(None)


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=4).filter(sum),
    st.integers(1, 20),
    st.integers(0, 40),
    st.booleans(),
)
def test_a_shuffled_pass_goes_on_as_if_it_had_not_stopped(counts: list[int], size: int, taken: int, again: bool) -> None:
    """`again`: of a source that began again, a record may be in the buffer twice."""
    whole = [Piece(URL(f"{at}.tar"), start=at, stop=at + count) for at, count in enumerate(counts)]
    records = [(at, number) for at, count in enumerate(counts) for number in range(at, at + count)]
    order = np.array([*range(len(records))] * 2, np.int64) if again else None
    items = [records[number] for number in ([*range(len(records))] if order is None else order)]
    taken = min(taken, len(items))

    back = reentry(whole, counts, size, [1], taken, order)
    read = [(int(piece.url[0]), number) for piece in back.pieces for number in piece.only or ()]

    rest = shuffled(iter(items[back.after :]), size, [1], back.fill(read))
    assert list(shuffled(iter(items), size, [1]))[taken:] == list(rest)


def test_a_record_is_found_by_its_place_among_pieces() -> None:
    pieces = [Piece(URL("a.tar"), start=2), Piece(URL("b.tar")), Piece(URL("c.tar"), only=(4, 7))]

    assert [(0, 2), (0, 3), (2, 4), (2, 7), (3, 0)] == [locate(pieces, [2, 0, 2], place) for place in range(5)]


def test_of_a_pass_without_records_nothing_is_left(pipeline: Pipeline) -> None:
    mixed = Mixed.of(ReaderPlan(pipeline, ShareReader()), 0, 0, [Piece(URL("a.tar"))], [0])

    assert [] == mixed.rest_behind(0)
    assert [0] == mixed.pieces_read(0)


class TestRemaining:
    def left(self, pipeline: Pipeline, marks: dict[str, Any], turn: int = 0, **options: Any) -> list[tuple[str, int, int | None]]:
        """(shard, first record, end) of what three workers had left."""
        state = state_of(ReaderPlan(pipeline, ShareReader(workers=3), **options), 0, marks)
        return [(piece.url[-5:], piece.begin, piece.end) for piece in remaining(pipeline, state, turn)]

    def test_it_is_what_is_behind_the_place_of_each_worker(self, pipeline: Pipeline) -> None:
        marks = {"0": {"place": [1, 0, 2]}, "1": {"place": [0, 0, 3]}}

        assert [("1.tar", 3, None), ("2.tar", 0, None)] == self.left(pipeline, marks)
        assert [("0.tar", 2, None), ("1.tar", 0, None), ("2.tar", 0, None)] == self.left(pipeline, marks, 1)
        assert [("0.tar", 0, None), ("1.tar", 0, None), ("2.tar", 0, None)] == self.left(pipeline, {})

    def test_a_pass_was_begun_where_one_worker_was_in_it(self, pipeline: Pipeline) -> None:
        state = state_of(ReaderPlan(pipeline, ShareReader(workers=2)), 0, {"0": {"place": [2, 0, 1]}, "1": {"place": [1, 0, 0]}})
        plan = ReaderPlan(pipeline, ShareReader(), rest=(state,))

        assert [True, True, True, False] == [plan.resumes(turn) for turn in range(4)]

    def test_of_a_shuffled_pass_it_is_what_is_in_the_buffer_and_behind_it(self, pipeline: Pipeline) -> None:
        left = self.left(pipeline, {"2": {"place": [0, 0, 4]}}, shuffle=2)

        assert [("0.tar", 0, None), ("1.tar", 0, None)] == left[:2]
        assert {"2.tar"} == {url for url, _, _ in left[2:]}
        assert len(left) == 3  # of six records four came, and two are in the buffer


class TestStates:
    def state(self, pipeline: Pipeline, rank: int = 0, world: int = 1, workers: int = 2, **more: Any) -> dict[str, Any]:
        plan = ReaderPlan(pipeline, ShareReader(rank, world, workers=workers))
        return state_of(plan, 4, {"0": {"place": [0, 0, 0]}}) | more

    def test_with_as_many_workers_each_goes_on_where_it_stood(self, pipeline: Pipeline) -> None:
        state = self.state(pipeline, turn=1)

        assert Resumed(4, (), state["marks"], 1) == resume(ReaderPlan(pipeline, ShareReader(workers=2)), state)

    def test_with_other_workers_what_is_left_is_shared_out_anew(self, pipeline: Pipeline) -> None:
        states = [self.state(pipeline, rank, 2) for rank in range(2)]
        other = ReaderPlan(pipeline, ShareReader(1, 2, workers=3))

        assert Resumed(4, (states[1],)) == resume(other, states)
        assert Resumed(4, tuple(states)) == resume(ReaderPlan(pipeline, ShareReader()), states)
        assert Resumed(4) == resume(other, [each | {"marks": {}} for each in states])
        assert Resumed(4, (begun := states[1] | {"marks": {}, "rest": [states[0]]},)) == resume(other, begun)

    def test_others_are_refused(self, pipeline: Pipeline) -> None:
        for states, match in [
            (lambda one, two: [], "no state in the list"),
            (lambda one, two: [one, two | {"epoch": 5}], "different epochs"),
            (lambda one, two: one, "no state of rank 1"),
            (lambda one, two: [two, two], "no state of rank 1"),
            (lambda one, two: two | {"form": 0}, "not a state of this version"),
            (lambda one, two: [two, "state"], "not a state of this version"),
            (lambda one, two: two | {"seed": 4}, r"with seed=4, this one has seed=3"),
            (lambda one, two: two | {"shards": 2}, r"with shards=2, this one has shards=3"),
            (lambda one, two: two | {"reshare": True}, r"with reshare=True, this one has reshare=False"),
        ]:
            one, two = (self.state(pipeline, rank, 2) for rank in range(2))
            plan = ReaderPlan(pipeline, ShareReader(1, 2, workers=2))

            with pytest.raises(UsageError, match=match):
                resume(plan, states(one, two))
            check(plan, two)

    def test_of_fewer_ranks_than_there_were_all_are_asked_for(self, pipeline: Pipeline) -> None:
        with pytest.raises(UsageError, match=r"is of 2 rank\(s\), this is one of 1"):
            resume(ReaderPlan(pipeline, ShareReader()), self.state(pipeline, 1, 2))
