"""Columns of bytes out of blocks, and shards read ahead by threads."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz import stores
from tarviz.model.errors import ChangedError, DataError, SchemaError
from tarviz.model.types import URL, Block
from tarviz.pipeline import Pipeline
from tarviz.read import stream
from tarviz.read.blocks import members_of
from tarviz.read.stream import ReadReport
from tarviz.runners.plans import Position, ReaderPlan, Track, Trail
from tarviz.runners.shares import ShareReader
from tarviz.runners.tf import feed
from tarviz.runners.tf.feed import FeedChunk, ahead, chunks
from tarviz.samples import write_shard
from tarviz.testing.strategies import shard


@pytest.fixture
def urls(tmp_path: Path) -> list[URL]:
    """Five shards of 40 records; every seventh record lacks `txt`."""
    for at in range(5):
        with tarfile.open(tmp_path / f"s-{at}.tar", "w") as tar:
            for n in range(40 * at, 40 * at + 40):
                for ext, data in {"bin": bytes(n), "cls": b"%03d" % n, "txt": b"t"}.items():
                    if ext != "txt" or n % 7:
                        info = tarfile.TarInfo(f"k{n}.{ext}")
                        info.size = len(data)
                        tar.addfile(info, io.BytesIO(data))
    return [URL(str(tmp_path / f"s-{at}.tar")) for at in range(5)]


def names(*exts: str) -> dict[str, tuple[str, ...]]:
    return {ext: (ext,) for ext in exts}


def test_the_place_of_each_record_is_noted(urls: list[URL]) -> None:
    pipeline = Pipeline(urls, block_size=8192)
    for shuffle, expected in ((0, [[0, 0, 1], [0, 0, 40], [0, 1, 1], [0, 4, 40]]), (9, [[0, 0, 1], [0, 0, 40], [0, 0, 41], [0, 0, 200]])):
        plan = ReaderPlan(pipeline, ShareReader(), shuffle)
        track = Track(Trail(), mixed=plan.drawn)
        list(chunks(pipeline, names("cls"), ReadReport(), plan=plan, track=track))

        marks = [track.mark(steps, 1) for steps in (1, 40, 41, 200)]
        assert expected == [mark["place"] for mark in marks]
        assert all(("versions" if shuffle else "version") in mark for mark in marks)


@pytest.mark.filterwarnings("ignore:W_EMPTY")
def test_a_pass_without_records_is_the_last_unless_it_was_resumed_at_its_end(urls: list[URL], tmp_path: Path) -> None:
    write_shard(tmp_path / "empty.tar", [])
    track = Track(Trail(Position(0, 4, 40)), mixed=False)

    assert [] == list(chunks(Pipeline(tmp_path / "empty.tar", strict=False), {}, ReadReport(), repeat=None))
    found = list(chunks(Pipeline(urls), names("cls"), ReadReport(), repeat=2, track=track))
    assert 200 == sum(map(len, found))
    assert {"place": [1, 0, 1]}.items() <= track.mark(1, 1).items()


@pytest.mark.parametrize("wanted", [{"a": ("a",)}, {"b": ("c", "b"), "a": ("a",)}, {"x": ("x", "a")}, {"c": ("c",)}, {}], ids=str)
@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, unique=True), min_size=1, max_size=5))
def test_a_field_of_a_record_is_the_first_of_its_names_that_is_there(wanted: dict[str, tuple[str, ...]], held: list[list[str]]) -> None:
    with stores.of(url := URL("memory://fields/a.tar")).create(url) as sink:
        sink.write(shard((str(at), dict.fromkeys(exts, b"")) for at, exts in enumerate(held)))
    (block,) = stream.blocks(url)
    expected = [[next((exts.index(name) for name in names if name in exts), None) for names in wanted.values()] for exts in held]

    found = [
        [int(at - first) if at >= 0 else None for at in row] for first, row in zip(block.rows, members_of(block, wanted), strict=False)
    ]
    assert expected == found


def test_columns_hold_the_payloads_in_order(urls: list[URL]) -> None:
    report = ReadReport()
    made = list(chunks(Pipeline(urls, block_size=8192), names("cls", "bin"), report))

    assert [b"%03d" % n for n in range(200)] == [value for chunk in made for value in chunk.columns["cls"]]
    assert [bytes(n) for n in range(200)] == [value for chunk in made for value in chunk.columns["bin"]]
    assert list(range(200)) == np.concatenate([chunk.numbers for chunk in made]).tolist()
    assert 200 == report.records
    last = made[-1]
    assert {"__key__": "k199", "__shard__": urls[-1], "__index__": 39} == last.places(len(last) - 1)
    origin = last.origin(len(last) - 1)
    assert origin is not None
    assert "k199.bin" == origin.members[0].name
    assert origin.members[0].header_offset == last.place_error(len(last) - 1, DataError("what")).offset


def test_readers_that_share_a_packed_shard_have_each_record_once(urls: list[URL], tmp_path: Path) -> None:
    """Blocks are smaller than the runs that they take in turn: of some a reader has nothing."""
    (packed := tmp_path / "s.tar.gz").write_bytes(gzip.compress(Path(urls[0]).read_bytes()))
    pipeline = Pipeline(packed, block_size=8192)
    found = []
    for worker in range(2):
        made = chunks(pipeline, names("cls"), ReadReport(), plan=ReaderPlan(pipeline, ShareReader(worker=worker, workers=2)))
        found.append([int(value) for chunk in made for value in chunk.columns["cls"]])

    assert [[*range(16), *range(32, 40)], [*range(16, 32)]] == found


def test_one_worker_reads_in_the_thread_that_asks(urls: list[URL], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "ahead", None)

    assert 200 == sum(map(len, chunks(Pipeline(urls), names("cls"), ReadReport(), workers=1)))


def test_a_record_without_a_field_ends_it_or_is_left_out(urls: list[URL]) -> None:
    made: list[FeedChunk] = []
    with pytest.raises(SchemaError) as caught:
        made.extend(chunks(Pipeline(urls[1]), names("txt"), ReadReport()))
    assert "k42" == caught.value.key
    assert urls[1] == caught.value.shard

    report = ReadReport()
    made = list(chunks(Pipeline(urls, on_error="skip"), names("txt", "cls"), report))
    assert [n for n in range(200) if n % 7] == [int(value) for chunk in made for value in chunk.columns["cls"]]
    assert {"E_SCHEMA": 29} == report.counts()


@pytest.fixture
def photos(tmp_path: Path) -> list[URL]:
    """Four shards of 30 records of 20 kB and more, payloads of random bytes; one field has two names."""
    rng = np.random.default_rng(0)
    for at in range(4):
        records = ((f"{at}-{n:02d}", {"jpg" if n % 2 else "png": rng.bytes(20_000 + n), "cls": b"%d" % n}) for n in range(30))
        write_shard(tmp_path / f"p-{at}.tar", records)
    return [URL(str(tmp_path / f"p-{at}.tar")) for at in range(4)]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("indexed", [False, True])
def test_large_payloads_are_those_of_the_records(photos: list[URL], workers: int, indexed: bool) -> None:
    if indexed:
        stream.index(photos)
    expected = [(record.key.encode(), bytes(record["jpg" if "jpg" in record else "png"])) for record in stream.records(photos)]
    report = ReadReport()

    made = list(chunks(Pipeline(photos), {"image": ("jpg", "png")}, report, repeat=2, workers=workers))

    assert 2 * expected == [pair for chunk in made for pair in zip(chunk.keys, chunk.columns["image"], strict=True)]
    assert (240, 8) == (report.records, report.shards)
    assert all(chunk.origin(0) is not None for chunk in made)


@pytest.mark.parametrize("indexed", [False, True])
def test_a_shard_replaced_while_it_is_read_gives_what_it_was(photos: list[URL], indexed: bool) -> None:
    if indexed:
        stream.index(photos[:1])
    expected = [bytes(record["cls"]) for record in stream.records(photos[0])]
    run = chunks(Pipeline(photos[0], block_size=64 << 10), names("cls"), ReadReport())
    made = list(next(run).columns["cls"])
    os.replace(photos[1], photos[0])
    with suppress(ChangedError):  # where headers are still to be looked at
        made += [value for chunk in run for value in chunk.columns["cls"]]

    assert expected[: len(made)] == made


class TestAhead:
    @pytest.mark.parametrize("width", [2, 3, 9])
    def test_shards_come_in_order(self, urls: list[URL], width: int) -> None:
        another = threading.Event()

        def opened(url: URL, report: ReadReport) -> Generator[Block, None, None]:
            if url == urls[0]:
                assert another.wait(60)
            another.set()
            yield from stream.blocks(url, report=report)

        report = ReadReport()
        found = [key for block in ahead(urls, opened, report, width, True) for key in block.keys]

        assert [b"k%d" % n for n in range(200)] == found
        assert (200, 5) == (report.records, report.shards)

    def test_unordered_a_slow_shard_holds_nobody_up(self, urls: list[URL]) -> None:
        waiting = threading.Event()

        def opened(url: URL, report: ReadReport) -> Generator[Block, None, None]:
            if url == urls[0]:
                assert waiting.wait(60)
            yield from stream.blocks(url, report=report)

        seen: list[str] = []
        for block in ahead(urls, opened, ReadReport(), 2, False):
            seen.append(block.shard)
            if len(set(seen)) == 4:
                waiting.set()

        assert urls[0] == seen[-1]
        assert 5 == len(set(seen))

    def test_an_error_comes_where_its_shard_would(self, urls: list[URL], threads_end: Callable[[], None]) -> None:
        def opened(url: URL, report: ReadReport) -> Generator[Block, None, None]:
            yield from stream.blocks(url, report=report)
            if url == urls[1]:
                raise DataError("broken", shard=url)

        run = ahead(urls, opened, ReadReport(), 3, True)
        found: list[bytes] = []
        with pytest.raises(DataError, match="broken"):
            found.extend(key for block in run for key in block.keys)
        threads_end()

    def test_leaving_ends_the_threads(self, urls: list[URL], threads_end: Callable[[], None]) -> None:
        closed: list[str] = []

        def opened(url: URL, report: ReadReport) -> Generator[Block, None, None]:
            try:
                while True:
                    yield from stream.blocks(url, report=report)
            finally:
                closed.append(url)

        run: Iterator[Block] = ahead(urls, opened, ReadReport(), 3, True)
        next(run)
        run.close()  # type: ignore[attr-defined]

        threads_end()
        assert set(urls[:3]) == set(closed)
