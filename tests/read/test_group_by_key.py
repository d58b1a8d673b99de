"""`group="shard"`: a record is all members of its key, wherever in the shard they stand."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tarviz
from tarviz.model.errors import DataError, UsageError
from tarviz.read import stream
from tarviz.read.stream import ReadOptions, ReadReport
from tests.read.tars import END, member

APART = member("a.txt", b"1") + member("b.txt", b"2") + member("a.cls", b"3") + member("c.txt", b"4") + member("b.cls", b"5") + END


def found(path: Any, **options: Any) -> list[tuple[str, dict[str, bytes]]]:
    return [
        (str(record.key), {ext: bytes(data) for ext, data in record.items()}) for record in tarviz.records(path, group="shard", **options)
    ]


class TestGathered:
    EXPECTED = [("a", {"txt": b"1", "cls": b"3"}), ("b", {"txt": b"2", "cls": b"5"}), ("c", {"txt": b"4"})]

    def test_records_stand_where_their_first_member_does(self, make: Callable[..., Path]):
        assert self.EXPECTED == found(make(APART))

    def test_blocks_make_no_difference(self, make: Callable[..., Path]):
        parts = [member(f"{number % 9}.f{number // 9}", b"%d" % number) for number in range(90)]
        expected = [(str(key), {f"f{at}": b"%d" % (9 * at + key) for at in range(10)}) for key in range(9)]

        assert expected == found(make(b"".join(parts) + END), block_size=4096)

    def test_a_stream_that_can_be_read_once_is_gathered_too(self, monkeypatch: pytest.MonkeyPatch):
        class Stdin:
            buffer = io.BytesIO(APART)

        monkeypatch.setattr("sys.stdin", Stdin())

        assert self.EXPECTED == found("-")

    def test_some_of_them_by_number(self, make: Callable[..., Path]):
        report = ReadReport()
        blocks = list(stream.blocks(str(make(APART)), ReadOptions(group="shard"), report=report, start=1, stop=2))

        assert [(1, [b"b"])] == [(block.first, block.keys) for block in blocks]
        assert 1 == report.records

    def test_their_numbers_and_members_are_those_of_the_shard(self, make: Callable[..., Path]):
        records = list(tarviz.records(make(APART), group="shard"))

        assert [0, 1, 2] == [record.index for record in records]
        assert [0, 2048] == [one.header_offset for one in records[0].members]

    def test_a_shard_whose_keys_do_not_come_again_streams(self, make: Callable[..., Path]):
        path = make(b"".join(member(f"{number:04d}.txt", bytes(3000)) for number in range(50)) + END)
        blocks = list(stream.blocks(str(path), ReadOptions(group="shard", block_size=8192)))

        assert len(blocks) > 10


class TestTwice:
    TWICE = member("a.txt", b"1") + member("b.txt", b"2") + member("a.txt", b"3") + member("a.cls", b"4") + END

    def test_a_field_that_comes_again_is_an_error_with_its_place(self, make: Callable[..., Path]):
        with pytest.raises(DataError) as caught:
            found(make(self.TWICE))

        assert ("E_DUP_FIELD", "a", "a.txt", 2048) == (caught.value.code, caught.value.key, caught.value.member, caught.value.offset)

    @pytest.mark.parametrize(("duplicates", "expected"), [("first", b"1"), ("last", b"3")])
    def test_or_one_of_them_holds(self, make: Callable[..., Path], duplicates: str, expected: bytes):
        assert [("a", {"txt": expected, "cls": b"4"}), ("b", {"txt": b"2"})] == found(make(self.TWICE), duplicates=duplicates)


@pytest.mark.parametrize("door", ["index", "table"])
def test_what_says_where_a_record_is_refuses_to_gather(make: Callable[..., Path], door: str):
    if door == "table":
        pytest.importorskip("duckdb", reason="duckdb is not installed")
    with pytest.raises(UsageError, match=r"side by side.*tarviz sort"):
        getattr(tarviz, door)(make(APART), group="shard")


def test_a_shard_that_cannot_be_gathered_is_left_out_where_damage_is_skipped(make: Callable[..., Path]):
    bad = make(member("a.txt", b"1") + member("b.txt", b"2") + member("a.txt", b"3") + END, "bad.tar")
    good = make(member("c.txt", b"4") + member("d.txt", b"5") + member("c.cls", b"6") + END, "good.tar")
    run = stream.records([bad, good], group="shard", on_error="skip")

    assert ["c", "d"] == [record.key for record in run]
    assert [("E_DUP_FIELD", str(bad), "a")] == [(fault.code, fault.shard, fault.key) for fault in run.report.skipped]
