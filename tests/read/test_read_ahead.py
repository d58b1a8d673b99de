"""Buffers read ahead: every byte once and in order, whatever is carried over."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarviz.formats.tar_header import tar_header
from tarviz.model.errors import UsageError
from tarviz.read import read_ahead
from tarviz.read.read_ahead import Feed
from tests.conftest import wait_until

ROOT = Path(__file__).parents[2]
TEXT = b"".join(b"%08d" % n for n in range(384_000))  # no two places are alike: a buffer written again shows


class Source:
    def __init__(self, data: bytes, step: int = 1 << 20) -> None:
        self._file = io.BytesIO(data)
        self._step = step

    def readinto(self, buffer):
        return self._file.readinto(buffer[: self._step])


@given(st.lists(st.integers(0, 700_000), min_size=1, max_size=20), st.sampled_from([4096, 65536, 300_000]), st.integers(1, 1 << 20))
@settings(max_examples=40, deadline=None)
def test_whatever_is_carried_comes_first_in_the_next_piece(carries, size, step):
    feed = Feed(Source(TEXT, max(step, 4096)), size)
    place, data = 0, memoryview(b"")
    for carry in [*carries, *[0] * 2000]:
        keep = min(carry, len(data))
        data = feed.more(keep, keep)
        place -= keep
        assert TEXT[place : place + len(data)] == data
        place += len(data)
        if feed.final:
            break
    feed.close()

    assert len(TEXT) == place == feed.bytes


def test_a_piece_that_is_held_is_never_written_again():
    feed = Feed(Source(TEXT), 65536)
    held = []
    while not feed.final:
        held.append(feed.more())

    assert TEXT == b"".join(held)


def test_an_error_comes_with_the_bytes_before_it():
    class Failing(Source):
        def readinto(self, buffer):
            count = super().readinto(buffer)
            if not count:
                raise OSError("gone")
            return count

    feed = Feed(Failing(TEXT, 50_000), 65536)
    total = 0
    while not feed.final:
        total += len(feed.more())

    assert (len(TEXT), "gone") == (total, str(feed.broken))


def test_closing_ends_a_read_that_waits():
    go_on = threading.Event()

    class Waiting(Source):
        def readinto(self, buffer):
            if self._file.tell() >= 1 << 20:
                go_on.wait(60)
            return super().readinto(buffer)

    feed = Feed(Waiting(TEXT), read_ahead.FIRST, go_on.set)
    for _ in range(4):
        feed.more()
    feed.close()

    assert go_on.is_set()


@pytest.mark.parametrize("rounds", [200])
def test_no_thread_stays(rounds):
    before = threading.active_count()
    for _ in range(rounds):
        feed = Feed(Source(TEXT), 65536)
        feed.more()
        feed.more()
        feed.close()

    assert threading.active_count() <= before + 1


@pytest.mark.parametrize(("ahead", "expected"), [(True, [1, 4, 16, 32, 32]), (False, [1, 32, 32, 32, 32])])
def test_pieces_read_ahead_grow_to_their_size(ahead, expected):
    with closing(Feed(Source(bytes(64 << 20)), 8 << 20, ahead=ahead)) as feed:
        assert expected == [len(feed.more()) // read_ahead.FIRST for _ in range(5)]


def test_little_memory_is_kept_for_later():
    for size in (1 << 16, 4 << 20, 8 << 20):
        with closing(Feed(Source(bytes(40 << 20)), size)) as feed:
            held = []
            while not feed.final:
                held.append(feed.more())

    assert sum(map(len, read_ahead._spare)) <= read_ahead._SPARE_BYTES
    assert len(read_ahead._spare) <= read_ahead._SPARE


def test_one_thread_reads_all_and_goes_with_its_feed():
    feed, threads = Feed(Source(TEXT), 65536), set()
    while not feed.final:
        feed.more()
        threads |= {feed._reader._thread} if feed._reader is not None else set()
    assert 1 == len(threads)
    del feed

    wait_until(lambda: not any(thread.is_alive() for thread in threads))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_in_the_middle_of_a_shard_is_told_so():
    go_on = threading.Event()

    class Waiting(Source):
        def readinto(self, buffer):
            if threading.current_thread() is not threading.main_thread():
                go_on.wait(60)
            return super().readinto(buffer)

    with closing(Feed(Waiting(TEXT), 65536)) as feed:
        data = bytes(feed.more()) + bytes(feed.more())
        child = os.fork()
        if child == 0:
            feed.more()
            os._exit(0 if isinstance(feed.broken, UsageError) and feed.final else 1)
        assert 0 == os.waitpid(child, 0)[1]
        go_on.set()
        while not feed.final:
            data += feed.more()

    assert TEXT == data


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits as Linux knows them")
@pytest.mark.parametrize(
    ("size", "more", "packed"),
    [
        (48 << 20, 16 << 20, False),
        pytest.param(300 << 20, 64 << 20, False, marks=pytest.mark.slow),
        pytest.param(300 << 20, 64 << 20, True, marks=pytest.mark.slow),
    ],
    ids=["small", "large", "gzip"],
)
def test_streaming_takes_the_largest_member_and_little_more(tmp_path, size, more, packed):
    """P26, measured in a process of its own: 64 MB more at most."""
    path = tmp_path / ("a.tar.gz" if packed else "a.tar")
    with gzip.open(path, "wb", compresslevel=1) if packed else open(path, "wb") as file:
        for name, length in (("a.bin", 1000), ("b.bin", size), ("c.bin", 1000)):
            file.write(tar_header(name.encode(), length))
            for at in range(0, length + -length % 512, 1 << 20):
                file.write(b"%07d\n" % (at >> 20) * (min(length + -length % 512 - at, 1 << 20) // 8))
        file.write(bytes(1024))
    program = (
        "import sys, warnings; from tests import memory; from tarviz.read import stream; warnings.simplefilter('error')\n"
        "run = stream.records(sys.argv[1], max_ratio=10_000); next(run); before = memory.begin()\n"
        "print([(record.key, len(record['bin'])) for record in run], memory.peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, cwd=ROOT, check=True)
    found, _, taken = done.stdout.rpartition(" ")

    assert f"[('b', {size}), ('c', 1000)]" == found
    assert int(taken) < size + more
