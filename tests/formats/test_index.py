"""The file of an index reads back as it was, and speaks DALI."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from tarviz.formats.index import ShardIndex, parse_dali
from tarviz.model.errors import DataError, UsageError
from tarviz.model.types import URL
from tarviz.read.shard_index import shard_index
from tarviz.read.stream import ReadOptions
from tarviz.testing.strategies import records, shard
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
        index = of(make(member("README", b"1") + sparse + member("x", b"abc") + member("b.TXT", b"2")), strict=False)
        read = again(index)

        assert [b"s" * 700, b"b"] == read.keys()
        assert {0: [(1, 3)]} == read.members.sparse
        assert ["W_NO_KEY", "W_NO_EOF"] == [fault["code"] for fault in read.warnings]
        assert (1,) == read.pending

    @pytest.mark.parametrize("data", [b"", b"tarviz", bytes(500), b"{}" * 100])
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

    @pytest.mark.parametrize(
        "text",
        ["", "v2 1\n", "v1.2 x\n", "v1.2 2\njpg 1 2 a\n", "v1.2 1\njpg 1 2\n", "v1.1 1\njpg 1 x\n"],
        ids=["empty", "version", "count", "fewer", "width", "number"],
    )
    def test_other_text_is_refused(self, text: str):
        with pytest.raises(DataError, match="E_INDEX"):
            parse_dali(text)
