"""Records whose payloads are read one by one where they lie: the same as those of blocks, and so is what is said of damage."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarviz import stores
from tarviz.model.errors import ChangedError, DataError, TarvizError
from tarviz.model.types import URL
from tarviz.read import spans, stream
from tarviz.read.shard_index import cached_index, shard_index
from tarviz.read.spans import held_batches
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.samples import write_shard


@pytest.fixture
def shard(tmp_path: Path) -> URL:
    rng = np.random.default_rng(0)
    path = tmp_path / "p.tar"
    write_shard(path, ((f"{n:03d}", {"jpg": rng.bytes(20_000 + 977 * (n % 9)), "cls": b"%d" % n}) for n in range(300)))
    return URL(str(path))


def held(url: URL, start: int = 0, stop: int | None = None, **options: Any) -> list[tuple[int, bytes, list[bytes]]] | None:
    """Number, key and payloads of each record."""
    report = ReadReport()
    batches = held_batches(url, ReadOptions(**options), report, start, stop)
    if batches is None:
        return None
    found: list[tuple[int, bytes, list[bytes]]] = []
    for batch in batches:
        payloads = [[bytes(batch.payload(at)) for at in batch.rows(row)] for row in range(len(batch))]
        found += zip(itertools.count(batch.block.first), map(bytes, batch.block.keys), payloads, strict=False)
    assert (1, len(found)) == (report.shards, report.records)
    assert report.bytes >= sum(len(part) for _, _, parts in found for part in parts)
    return found


def streamed(url: URL, start: int = 0, stop: int | None = None, **options: Any) -> list[tuple[int, bytes, list[bytes]]]:
    blocks = stream.blocks(url, ReadOptions(**options), start=start, stop=stop)
    return [(record.index, record.key.encode(), [bytes(record[ext]) for ext in record]) for block in blocks for record in block]


@pytest.mark.parametrize("indexed", [False, True])
def test_the_records_are_those_of_blocks(shard: URL, indexed: bool) -> None:
    if indexed:
        stream.index([shard])

    assert streamed(shard) == held(shard)


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (7, 200), (299, None), (0, 10_000), (150, 151)])
def test_a_part_of_a_shard_is_read_by_its_index(shard: URL, start: int, stop: int | None) -> None:
    stream.index([shard])

    assert streamed(shard, start, stop) == held(shard, start, stop)
    assert held(shard, 20, 20) is None


def test_a_batch_is_as_many_records_as_fill_a_block(shard: URL) -> None:
    stream.index([shard])
    batches = held_batches(shard, ReadOptions(block_size=102_400), ReadReport(), 3, 20)
    assert batches is not None
    found = [[*batch.block.members.start, batch.block.members.end[-1]] for batch in batches]

    assert 34 == sum(len(each) - 1 for each in found)
    assert all(each[-1] - each[0] <= 102_400 + 30_000 for each in found)
    assert all(each[-1] - each[0] >= 102_400 for each in found[:-1])


def test_a_part_without_an_index_is_not_read_so(shard: URL) -> None:
    assert held(shard, 7) is None
    assert held(shard, 0, 7) is None


@pytest.mark.parametrize("options", [{"on_error": "skip"}, {"where": "cls = 3"}, {"keys": ("001",)}, {"group": "shard"}])
def test_what_needs_more_than_headers_is_not_read_so(shard: URL, options: dict[str, Any]) -> None:
    assert held(shard, **options) is None


@pytest.mark.parametrize("indexed", [False, True])
def test_small_payloads_are_read_in_blocks(tmp_path: Path, indexed: bool) -> None:
    write_shard(tmp_path / "s.tar", ((f"{n}", {"txt": b"t" * 500, "cls": b"1"}) for n in range(400)))
    if indexed:
        stream.index([str(tmp_path / "s.tar")])

    assert held(URL(str(tmp_path / "s.tar"))) is None


def test_a_packed_shard_is_read_in_blocks(shard: URL, tmp_path: Path) -> None:
    import gzip

    (tmp_path / "p.tar.gz").write_bytes(gzip.compress(Path(shard).read_bytes(), 1))

    assert held(URL(str(tmp_path / "p.tar.gz"))) is None


@pytest.mark.parametrize("cut", [3_000_000, 3_000_448, 5_119_999])
def test_a_shard_cut_off_has_the_records_and_the_error_of_blocks(shard: URL, cut: int) -> None:
    os.truncate(shard, cut)
    errors, keys = [], []
    for batches in (stream.blocks(shard), held_batches(shard, ReadOptions(), ReadReport(), 0, None)):
        assert batches is not None
        mine: list[bytes] = []
        with pytest.raises(TarvizError) as caught:
            mine.extend(bytes(key) for part in batches for key in getattr(part, "block", part).keys)
        errors.append((caught.value.code, str(caught.value)))
        keys.append(mine)

    assert errors[0] == errors[1]
    assert keys[0] == keys[1]


@pytest.mark.parametrize("indexed", [False, True])
def test_a_member_over_the_limit_is_the_error_of_blocks(shard: URL, indexed: bool) -> None:
    if indexed:
        stream.index([shard])
    with pytest.raises(DataError) as expected:
        streamed(shard, max_member_bytes=25_000)
    with pytest.raises(DataError) as found:
        held(shard, max_member_bytes=25_000)

    assert (expected.value.code, expected.value.key) == (found.value.code, found.value.key)


def test_a_shard_that_becomes_shorter_on_the_way_is_an_error(shard: URL) -> None:
    stream.index([shard])
    batches = held_batches(shard, ReadOptions(block_size=1 << 20), ReadReport(), 0, None)
    assert batches is not None
    next(batches)
    os.truncate(shard, 2_000_000)

    with pytest.raises(ChangedError):
        [batch.payload(0) for batch in batches]


class TestTheIndexOfAPass:
    """A pass that looks for headers keeps what it found, and the next one need not."""

    @pytest.mark.parametrize("options", [{}, {"strict": False}, {"key_split": "last-dot"}])
    def test_it_is_what_indexing_the_shard_makes(self, shard: URL, options: dict[str, Any]) -> None:
        first = held(shard, **options)

        kept = cached_index(stores.of(shard).stat(shard), ReadOptions(**options))
        made = shard_index(shard, ReadOptions(**options), cache=False)
        assert kept is not None
        assert made is not None
        assert b"".join(made.dump()) == b"".join(kept.dump())
        assert first == held(shard, **options)

    def test_none_is_kept_of_a_part(self, shard: URL) -> None:
        batches = held_batches(shard, ReadOptions(), ReadReport(), 0, None)
        assert batches is not None
        next(batches)
        batches.close()

        assert index_of(shard) is None

    @pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")
    @pytest.mark.parametrize("cut", [3_000_448, -1024])
    def test_none_is_kept_of_what_is_damaged_or_warned_of(self, shard: URL, cut: int) -> None:
        os.truncate(shard, cut if cut > 0 else os.path.getsize(shard) + cut)
        with contextlib.suppress(TarvizError):
            held(shard, strict=False)

        assert index_of(shard) is None

    def test_none_is_kept_of_a_shard_that_was_changed_meanwhile(self, shard: URL) -> None:
        batches = held_batches(shard, ReadOptions(), ReadReport(), 0, None)
        assert batches is not None
        next(batches)
        with open(shard, "r+b") as file:
            file.seek(100_000)
            file.write(b"!")

        with pytest.raises(ChangedError):
            list(batches)
        assert index_of(shard) is None

    def test_none_is_kept_of_very_many_records(self, shard: URL, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(spans, "_REMEMBERED", 599)

        assert streamed(shard) == held(shard)
        assert index_of(shard) is None


def index_of(url: URL) -> object:
    return cached_index(stores.of(url).stat(url), ReadOptions())
