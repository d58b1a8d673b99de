"""The file of an index reads back as it was, and speaks DALI."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from tarviz.formats.index import ShardIndex, parse_dali
from tarviz.model.errors import DataError, UsageError
from tarviz.model.types import URL
from tarviz.read.chosen import subset
from tarviz.read.shard_index import shard_index
from tarviz.read.stream import ReadOptions, ReadReport, blocks
from tarviz.testing.strategies import records, shard
from tests.conftest import each_case
from tests.read.tars import END, member, pax


def of(path: Path, **options: object) -> ShardIndex:
    found = shard_index(URL(str(path)), ReadOptions(**options), cache=False)  # type: ignore[arg-type]
    assert found is not None
    return found


def again(index: ShardIndex) -> ShardIndex:
    return ShardIndex.load(b"".join(index.dump()))


class TestFile:
    @given(content=records(max_size=6))
    @pytest.mark.matrix
    def test_keys_fields_and_places_read_back(self, tmp_path_factory: pytest.TempPathFactory, content: list[tuple[str, dict[str, bytes]]]):
        path = tmp_path_factory.mktemp("index") / "a.tar"
        path.write_bytes(shard(content, format=1))
        index = of(path)
        read = again(index)

        assert index.keys() == read.keys()
        assert index.fields() == read.fields()
        assert [index.span(row) for row in range(len(index))] == [read.span(row) for row in range(len(read))]
        assert all(read.find(key) == row for row, key in enumerate(index.keys()))
        assert (index.identity, index.warnings, index.error, index.pending) == (read.identity, read.warnings, read.error, read.pending)

    def test_long_names_sparse_maps_and_faults_do_too(self, make: Callable[..., Path]):
        sparse = pax((b"GNU.sparse.major", b"0"), (b"GNU.sparse.size", b"90"), (b"GNU.sparse.map", b"1,3"), (b"path", b"s" * 700 + b".bin"))
        index = of(make(member("README", b"1") + sparse + member("x", b"abc") + member("././b.TXT", b"2")), strict=False)
        read = again(index)

        assert [b"s" * 700, b"b"] == read.keys()
        assert {0: [(1, 3)]} == read.members.sparse
        assert ["W_NO_KEY", "W_NO_EOF"] == [fault["code"] for fault in read.warnings]
        assert (1,) == read.pending

    @each_case("data", [b"", b"tarviz", bytes(500), b"{}" * 100])
    def test_other_bytes_are_refused(self, data: bytes):
        with pytest.raises(DataError, match="E_INDEX"):
            ShardIndex.load(data)


class TestFind:
    def test_of_two_keys_of_one_hash_the_right_one_is_found(self, make: Callable[..., Path]):
        index = of(make(b"".join(member(f"{name}.txt", b"1") for name in "abc") + END))
        index.hash = np.full(3, index.hash[1])  # as if they had one
        index.__dict__["order"] = np.array([2, 0, 1], np.uint32)

        assert (1, None) == (index.find(b"b"), index.find(b"d"))


class TestDali:
    def test_its_text_reads_back(self, make: Callable[..., Path]):
        index = of(make(member("a.JPG", b"123") + member("a.cls", b"4") + member("b.JPG", b"56") + END))
        text = index.to_dali()

        assert "v1.2 2\nJPG 512 3 a.JPG cls 1536 1 a.cls\nJPG 2560 2 b.JPG\n" == text
        assert [[("JPG", 512, 3, "a.JPG"), ("cls", 1536, 1, "a.cls")], [("JPG", 2560, 2, "b.JPG")]] == parse_dali(text)

    def test_a_name_with_white_space_has_no_place_in_it(self, make: Callable[..., Path]):
        with pytest.raises(UsageError, match=r"'a b\.txt' has white space"):
            of(make(member("a b.txt", b"1") + END)).to_dali()

    @each_case(
        "text",
        ["", "v2 1\n", "v1.2 x\n", "v1.2 2\njpg 1 2 a\n", "v1.2 1\njpg 1 2\n", "v1.1 1\njpg 1 x\n"],
    )
    def test_other_text_is_refused(self, text: str):
        with pytest.raises(DataError, match="E_INDEX"):
            parse_dali(text)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("v1.2 2\njpg 1 2 a\n", "promises 2 records and holds 1."),
            ("v1.2 2\njpg 1 2 a\njpg 1 2\n", "line 3 of the DALI index has 3 words, not a multiple of 4."),
            ("v1.0 2 x\n", "begins with 'v1.2 COUNT', this with 'v1.0 2 x'."),
        ],
    )
    def test_the_line_and_what_is_wrong_there_are_said(self, text: str, said: str):
        with pytest.raises(DataError) as caught:
            parse_dali(text)

        assert caught.value.message.endswith(said)

    def test_lines_without_a_word_are_passed_over(self):
        assert [[("jpg", 512, 10, None)]] == parse_dali("v1.0 1\n\njpg 512 10\n\n")


class TestBlocks:
    @pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")
    @pytest.mark.parametrize("rows", [[0, 1, 2, 3], [1, 3]], ids=["all", "some"])
    def test_a_block_is_what_reading_the_shard_gives(self, make: Callable[..., Path], rows: list[int]):
        path = make(b"".join(member(f"{number}.a", b"%d" % number) + member(f"{number}.B", b"xy") for number in range(4)))
        data = path.read_bytes()
        index = of(path, strict=False)
        (whole,) = blocks(str(path), ReadOptions(strict=False), report=ReadReport())
        index = index if len(rows) == 4 else subset(index, np.array(rows))
        made, bare = index.block("s", 0, len(rows), memoryview(data), 0), index.block("s", 0, len(rows))

        expected = [(b"%d" % n, {"a": b"%d" % n, "b": b"xy"}) for n in rows]
        for block in (made, replace(bare, data=memoryview(data))):
            assert expected == [(key, dict(record.items())) for key, record in zip(block.keys, block, strict=True)]
        assert (whole.exts, rows[0]) == (made.exts, made.first)
        assert len(rows) - 1 == made.pending
        assert [b"%d" % n for n in rows] == pickle.loads(pickle.dumps(made.keys))

    def test_its_keys_are_a_list_made_when_looked_at(self, make: Callable[..., Path]):
        index = of(make(b"".join(member(f"{number}.a", b"1") for number in range(6)) + END))
        keys = index.block("s", 1, 5).keys

        assert (4, b"1", b"4", [b"2", b"3"], [b"4", b"2"]) == (len(keys), keys[0], keys[-1], keys[1:3], keys[::-2])
        with pytest.raises(IndexError):
            keys[4]

    def test_part_of_one_lies_where_it_does_in_the_shard(self, make: Callable[..., Path]):
        path = make(b"".join(member(f"{number}.a", b"%d" % number) for number in range(4)) + END)
        begin, end = of(path).span(1)[0], of(path).span(2)[1]
        block = of(path).block("s", 1, 3, memoryview(path.read_bytes()[begin:end]), begin)

        assert (1, begin, [b"1", b"2"], -1) == (block.first, block.base, [bytes(record["a"]) for record in block], block.pending)
        assert [1024, 2048] == block.members.start.tolist()
