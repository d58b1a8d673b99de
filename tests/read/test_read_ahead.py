"""Buffers read ahead: every byte once and in order, whatever is carried over."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from tarviz.formats.tar_header import tar_header
from tarviz.model.errors import UsageError
from tarviz.read import read_ahead
from tarviz.read.read_ahead import Feed
from tests.conftest import each_case, wait_until

ROOT = Path(__file__).parents[2]
TEXT = b"".join(b"%08d" % n for n in range(384_000))  # no two places are alike: a buffer written again shows


class Source:
    def __init__(self, data: bytes, step: int = 1 << 20) -> None:
        self._file = io.BytesIO(data)
        self._step = step

    def readinto(self, buffer):
        return self._file.readinto(buffer[: self._step])


@each_case("carries", [[0], [1, 600, 4095, 4096, 5000], [300_000, 1, 200_000, 700_000], [700_000] * 5])
@each_case("size", [4096, 300_000])
@each_case("more", [0, 1, 2])
def test_whatever_is_carried_comes_first_in_the_next_piece(carries, size, more):
    text = TEXT[:1_000_000]
    feed = Feed(Source(text, 50_000), size)
    place, data = 0, memoryview(b"")
    for carry in [*carries, *[0] * 2000]:
        keep = min(carry, len(data))
        data = feed.more(keep, more * keep)
        place -= keep
        assert min(more * keep, len(text) - place) <= len(data)
        assert text[place : place + len(data)] == data
        place += len(data)
        if feed.final:
            break
    feed.close()

    assert len(text) == place == feed.bytes


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


def test_a_payload_that_is_moved_out_leaves_its_neighbours():
    memory = memoryview(read_ahead._take(24 << 20))
    text = os.urandom(1 << 20) * 24
    memory[:] = text
    begin, end = 1234, (20 << 20) + 777

    assert read_ahead.take_bytes(memory.toreadonly()[begin:end]) == text[begin:end]
    assert (text[:begin], text[end:]) == (memory[:begin], memory[end:])
    if sys.platform.startswith("linux"):
        assert bytes(4096) == memory[8 << 20 :][:4096]


DOORS = {
    "records": "sum(zlib.crc32(record['bin']) for record in tarviz.records(url))",
    "eager": "sum(zlib.crc32(data) for (data,) in pipeline(url).eager())",
    "torch": "sum(zlib.crc32(data) for (data,) in pipeline(url).torch())",
    "tf": "sum(int(tf.strings.length(data)) for (data,) in pipeline(url).tf())",
    "cat": "tarviz.cat(url, sys.argv[3] + '/out.tar').outputs[0].bytes",
    "convert": "tarviz.convert(url, sys.argv[3] + '/out.record', num_workers=1).records",
}
PROGRAM = """
import sys, zlib, tarviz
from tests import memory
pipeline = lambda url: tarviz.Pipeline(url, select=("bin",))
{imports}
run = lambda url: {door}
run(sys.argv[1])
before = memory.begin()
print(run(sys.argv[2]), memory.peak() - before)
"""
SERVE = """
import sys
from pathlib import Path
from tarviz.testing.faults import FaultServer
with FaultServer() as server:
    print(server.put("/a.tar", Path(sys.argv[1])), flush=True)
    sys.stdin.read()
"""


def large_member(path: Path, size: int) -> int:
    """A shard whose second member has so many bytes, packed as its name says; the sum of its payloads' CRCs."""
    packed = {".gz": lambda: gzip.open(path, "wb", compresslevel=1), ".zst": lambda: zstandard.open(path, "wb")}  # noqa: SIM115
    if path.suffix == ".zst":
        zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    total = 0
    with packed.get(path.suffix, lambda: path.open("wb"))() as file:
        for name, length in (("a.bin", 1000), ("b.bin", size), ("c.bin", 1000)):
            file.write(tar_header(name.encode(), length))
            crc = 0
            for at in range(0, length, 1 << 20):
                piece = (os.urandom(64 << 10) + b"%07d\n" % at * (1 << 17))[: min(length - at, 1 << 20)]
                crc = zlib.crc32(piece, crc)
                file.write(piece)
            file.write(bytes(-length % 512))
            total += crc
        file.write(bytes(1024))
    return total


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits as Linux knows them")
@pytest.mark.parametrize(
    ("size", "more", "way", "door"),
    [
        *((48 << 20, 16 << 20, ".tar", door) for door in ("records", "eager", "cat", "convert")),
        *(
            pytest.param(300 << 20, 64 << 20, way, door, marks=pytest.mark.slow)
            for way in (".tar", ".tar.gz", ".tar.zst", "http")
            for door in DOORS
        ),
    ],
)
def test_streaming_takes_the_largest_member_and_little_more(tmp_path, size, more, way, door):
    """P26, measured in a process of its own: 64 MB more at most. TensorFlow copies each string into its own memory: once more."""
    if door in ("tf", "torch"):
        pytest.importorskip(*{"tf": ("tensorflow",), "torch": ("torch",)}[door], reason=f"{door} is not installed")
    path = tmp_path / ("a.tar" if way == "http" else f"a{way}")
    crcs = large_member(path, size)
    large_member(tmp_path / "small.tar", 1000)
    program = PROGRAM.format(imports="import tensorflow as tf" if door == "tf" else "", door=DOORS[door])
    with subprocess.Popen([sys.executable, "-c", SERVE, str(path)], stdin=-1, stdout=-1, text=True, cwd=ROOT) as server:
        url = server.stdout.readline().strip() if way == "http" else str(path)
        command = [sys.executable, "-c", program, str(tmp_path / "small.tar"), url, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "TARVIZ_MAX_RATIO": "10000"})
        server.communicate()
    assert 0 == done.returncode, done.stderr
    found, grown = map(int, done.stdout.split())

    assert {"tf": size + 2000, "convert": 3, "cat": path.stat().st_size if way in ("http", ".tar") else found}.get(door, crcs) == found
    assert grown < size * (1 + (door == "tf")) + more
