"""A pipeline walked through: chunks and threads change neither what comes nor what comes before an error."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarviz.model.errors import DataError, SchemaError
from tarviz.model.types import URL
from tarviz.ops import Func, parse_chain
from tarviz.pipeline import Pipeline
from tarviz.read.stream import ReadReport
from tarviz.runners.plans import Position, ReaderPlan, Trail, version
from tarviz.runners.shares import ShareReader
from tarviz.runners.walk import Walk
from tarviz.samples import write_shard
from tarviz.stores.base import Stat
from tarviz.testing.strategies import numbered_records, shard


@pytest.fixture
def damaged(make: Callable[..., Path]) -> Path:
    """43 records of 2,560 bytes; the first header behind 40 of them is damaged."""
    data = bytearray(shard(numbered_records(43)))
    data[40 * 2560] ^= 0x55
    return make(bytes(data))


@pytest.mark.parametrize(("chunk", "num_workers"), [(1, 0), (16, 0), (50, 0), (1, 2)])
def test_the_records_before_damage_come_before_its_error(damaged: Path, chunk: int, num_workers: int) -> None:
    pipeline = Pipeline(damaged, select="__index__")
    walk = Walk(pipeline, chunk=chunk, num_workers=num_workers)
    found: list[int] = []
    with pytest.raises(DataError, match="E_CHECKSUM"):
        found.extend(value for _, value in walk.values(ReaderPlan(pipeline, ShareReader()), 0, ReadReport(), Trail()))

    assert list(range(39)) == found  # the 40th may lack a member


@pytest.mark.parametrize("chain", [None, "decode(cls)", "decode(jpg)"])
def test_a_picture_under_another_ending_is_named(tmp_path: Path, chain: str | None) -> None:
    write_shard(tmp_path / "a.tar", [("a", {"jpeg": b"no picture is needed", "cls": b"1"})])

    with pytest.raises(SchemaError, match='name all of them: "jpg;jpeg"'):
        list(Pipeline(tmp_path / "a.tar", chain, select="jpg").eager())


def test_a_place_is_behind_its_value(make: Callable[..., Path]) -> None:
    pipeline = Pipeline(make(numbered_records(3)), select="__index__")
    found = list(Walk(pipeline, repeat=2, chunk=2).values(ReaderPlan(pipeline, ShareReader()), 0, ReadReport(), Trail()))

    assert [(Position(turn, 0, number + 1), number) for turn in (0, 1) for number in range(3)] == found


def test_a_walk_goes_on_from_a_place(make: Callable[..., Path]) -> None:
    pipeline = Pipeline(make(numbered_records(5)), select="__index__")
    trail = Trail(Position(1, 0, 3))

    assert [3, 4] == [value for _, value in Walk(pipeline, repeat=2).values(ReaderPlan(pipeline, ShareReader()), 0, ReadReport(), trail)]


def test_large_records_are_shared_out_in_smaller_parts(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.tar", ((f"{n:02d}", {"bin": bytes(900_000), "cls": b"%d" % n}) for n in range(12)))
    seen: set[int] = set()
    several = threading.Event()

    def look(record: dict[str, Any]) -> None:
        seen.add(threading.get_ident())
        if len(seen) > 1:
            several.set()
        several.wait(20)  # for another thread, which has none of twelve where they are taken by sixteen

    made = list(Pipeline(str(tmp_path / "a.tar"), [Func(look), parse_chain("decode(cls)")], select=("cls", "bin")).eager(num_workers=3))

    assert list(range(12)) == [number for number, _ in made]
    assert len(seen) > 1


def test_the_version_of_a_shard_is_the_one_it_had_when_it_was_opened_first():
    """A shard that is opened again in the same pass (one range of it after another) and is another by then is no place to go on from."""
    trail = Trail()
    for etag in ('"one"', '"two"'):
        trail.open(0, Stat(URL("memory://a.tar"), 9, etag))

    assert {0: version(Stat(URL("memory://a.tar"), 9, '"one"'))} == trail.versions
