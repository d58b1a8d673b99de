"""Jobs that write the Examples of a shard: whole outputs, and pieces to be put together elsewhere."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from tarviz.commands.convert import tasks
from tarviz.commands.convert.recipe import Recipe
from tarviz.commands.convert.tasks import EachJob, Outcome, PieceJob, Settings, ShardToConvert, WrittenPiece, sources
from tarviz.model.errors import DataError, StoreError
from tarviz.model.types import URL
from tarviz.ops import Chain
from tarviz.outputs import Names
from tarviz.read.stream import ReadOptions
from tarviz.selection import SelectAll
from tarviz.testing.strategies import shard

RECIPE = Recipe(Chain(), SelectAll(), {}, True, 0, ReadOptions())
CONTENT = [(f"k{at}", {"txt": b"x" * (100 * at), "cls": b"%d" % at}) for at in range(10)]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ShardToConvert:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.tar").write_bytes(shard(CONTENT))
    return sources([URL("in.tar")])[0]


def piece(source: ShardToConvert) -> tuple[Outcome, bytes, list[float]]:
    """What a job gives back and writes, and what it tells of."""
    told: list[float] = []
    with open("piece", "w+b", buffering=0) as file:
        outcome = PieceJob(RECIPE)(source, file, told.append)
    return outcome, Path("piece").read_bytes(), told


def test_a_piece_holds_the_records_that_an_output_does(source: ShardToConvert):
    outcome, data, told = piece(source)
    whole = EachJob(RECIPE, Settings(Names("o"), None, "replace"))(source, None, lambda size: None)

    assert Path("o").read_bytes() == data
    assert [(10, len(data))] == [(written.records, written.bytes) for written in whole.written]
    assert ([*range(10)], 10, len(data), {"txt", "cls"}) == (outcome.numbers.tolist(), outcome.stop, int(outcome.size.sum()), outcome.seen)
    assert (10, outcome.seen, None, []) == (whole.report.records, whole.seen, outcome.error, outcome.written)
    assert Path("in.tar").stat().st_size == sum(told) == outcome.report.bytes


def test_a_piece_begins_with_a_record(source: ShardToConvert):
    whole, data, _ = piece(source)
    rest, end, _ = piece(ShardToConvert(0, source.url, source.entry, 7))

    assert ([7, 8, 9], 10) == (rest.numbers.tolist(), rest.stop)
    assert data.endswith(end)
    assert whole.size[7:].tolist() == rest.size.tolist()
    none, end, _ = piece(ShardToConvert(0, source.url, source.entry, 10))
    assert (b"", [], 10) == (end, none.size.tolist(), none.stop)


def test_what_comes_before_damage_is_there_with_the_error(source: ShardToConvert):
    Path("in.tar").write_bytes(shard(CONTENT)[:9000])
    outcome, data, _ = piece(source)

    assert isinstance(outcome.error, DataError)
    assert outcome.numbers.tolist() == [*range(outcome.stop)] != []
    assert len(data) == int(outcome.size.sum())
    with pytest.raises(DataError):
        EachJob(RECIPE, Settings(Names("o"), None, "replace"))(source, None, lambda size: None)
    assert not Path("o").exists()


@pytest.mark.parametrize("chunk", [7, 1 << 20])
def test_records_of_a_written_piece_are_read_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int):
    monkeypatch.setattr(tasks, "_CHUNK", chunk)
    (tmp_path / "piece").write_bytes(b"aabbbbccccccccdd")
    with open(tmp_path / "piece", "rb") as file:
        written = WrittenPiece(np.array([2, 4, 8]), file)

        for first, last, expected in (
            (0, None, b"aabbbbcccccccc"),
            (1, 2, b"bbbb"),
            (2, None, b"cccccccc"),
            (0, 2, b"aabbbb"),
            (3, None, b""),
        ):
            found = written.buffers(first, last)
            assert expected == b"".join(found)
            assert max(map(len, found), default=0) <= chunk
        assert [] == WrittenPiece(np.zeros(0, np.int64), file).buffers()


class Slow(io.RawIOBase):
    """A file that takes three bytes at a time, up to a limit."""

    def __init__(self, most: int) -> None:
        self.held, self.most = b"", most

    def write(self, data: object, /) -> int:
        taken = bytes(data)[: min(3, self.most - len(self.held))]  # type: ignore[call-overload]
        if not taken:
            raise OSError(28, "No space left on device")
        self.held += taken
        return len(taken)


def test_a_file_that_takes_less_than_it_is_given_gets_all_of_it(source: ShardToConvert):
    slow, full = Slow(1 << 20), Slow(1000)
    PieceJob(RECIPE)(source, slow, lambda size: None)

    assert piece(source)[1] == slow.held
    error = PieceJob(RECIPE)(source, full, lambda size: None).error
    assert isinstance(error, StoreError)
    assert "E_WRITE: the workers' temporary files cannot be written: No space left on device." in str(error)


@pytest.mark.parametrize(("names", "size", "each"), [("o-{}", None, True), ("o-{}", 100, False), ("o", None, False)])
def test_each_shard_has_an_output_of_its_own_where_names_count_and_no_size_is_said(names: str, size: int | None, each: bool):
    assert each is Settings(Names(names), None, "replace", max_size=size).each
