"""Blocks: whole records cut out of a stream, nothing copied but the record that is open."""

from __future__ import annotations

import io
from typing import Any

import pytest

from tarviz.model.errors import DataError
from tarviz.read.blocks import Blocks
from tarviz.read.stream import ReadOptions
from tarviz.testing.strategies import numbered_records, shard
from tests.read.tars import END, member, pax

TEN = shard(numbered_records(10))


def blocks(data: bytes, **options: Any) -> Blocks:
    return Blocks(io.BytesIO(data), ReadOptions(**options).walker("a.tar"), ahead=False)


class TestCut:
    @pytest.mark.parametrize("size", [4096, 8192, 1 << 20])
    def test_every_record_is_whole_in_one_block(self, size: int):
        run = blocks(TEN, block_size=size)
        found = [
            (block.first + row, block.keys[row], {ext: bytes(data) for ext, data in record.items()})
            for block in run
            for row, record in enumerate(block)
        ]

        assert [(n, key.encode(), fields) for n, (key, fields) in enumerate(numbered_records(10))] == found
        assert 10 == run.walker.records
        assert len(TEN) == run.bytes

    @pytest.mark.parametrize(
        ("payload", "options", "most"),
        [(1 << 20, {}, 8 << 20), (1 << 20, {"block_size": 4 << 20}, 4 << 20), (2000, {}, 4 << 20)],
        ids=["large payloads", "a size asked for", "small payloads"],
    )
    def test_blocks_of_large_payloads_are_twice_as_long(self, payload: int, options: dict[str, int], most: int):
        run = blocks(b"".join(member(f"{number:05d}.bin", bytes(payload)) for number in range((24 << 20) // payload)) + END, **options)
        lengths = [len(block.data) for block in run]

        assert most - (2 << 20) < max(lengths) <= most
        assert (24 << 20) // payload == run.walker.records

    def test_payloads_are_views_of_the_buffer(self):
        (block,) = blocks(TEN)

        assert block.data.obj is block[0]["png"].obj is block[9]["cls"].obj

    def test_a_block_says_the_step_it_is_made_of(self):
        for step, block in blocks(TEN, block_size=4096).steps():
            assert (step.first, len(step.records), step.base) == (block.first, len(block), block.base)
            assert TEN[step.base : step.base + len(step.data)] == bytes(step.data)


class TestSparse:
    def test_pieces_lie_where_the_map_says_and_zeros_between(self):
        header = pax((b"GNU.sparse.major", b"0"), (b"GNU.sparse.size", b"50"), (b"GNU.sparse.map", b"3,2,40,4"))
        (block,) = blocks(member("a.txt", b"before") + header + member("a.bin", b"ABCDEF") + member("b.txt", b"behind") + END)

        assert bytes(3) + b"AB" + bytes(35) + b"CDEF" + bytes(6) == bytes(block[0]["bin"])
        assert [b"before", b"behind"] == [bytes(block[row]["txt"]) for row in (0, 1)]


class TestEnd:
    def test_what_is_certain_comes_before_the_error(self):
        run = blocks(TEN[: 2560 * 5 + 700])

        assert [key.encode() for key, _ in numbered_records(5)] == next(run).keys
        with pytest.raises(DataError, match="E_TRUNCATED"):
            next(run)

    def test_notes_and_skips_fill_while_it_runs(self):
        run = blocks(member("README", b"1") + member("a.txt", b"2") + bytes(b"x" * 512) + member("b.txt", b"3") + END, on_error="skip")
        list(run)

        assert "W_NO_KEY" in [note.code for note in run.walker.notes]
        assert ["E_CHECKSUM"] == [fault.code for fault in run.walker.skipped]

    def test_nothing_comes_after_it_is_closed(self):
        run = blocks(TEN, block_size=4096)
        next(run)
        run.close()

        assert [] == list(run)
