"""What is said of the machine: file systems, what is in memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tarviz.model.types import URL
from tarviz.widgets.bench import machine

MOUNTS = """\
root / ext4 rw 0 0
odd
disk /data xfs rw 0 0
disk /data/with\\040space btrfs rw 0 0
other /dat tmpfs rw 0 0
"""


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("/home/a.tar", "ext4"),
        ("/data/a.tar", "xfs"),
        ("/data", "xfs"),
        ("/database/a.tar", "ext4"),
        ("/data/with space/a.tar", "btrfs"),
        ("/dat/a.tar", "tmpfs"),
        ("s3://bucket/a.tar", "s3"),
        ("-", "pipe"),
    ],
)
def test_a_file_system_is_that_of_the_longest_mount(url: str, kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Path, "read_text", lambda self: MOUNTS.replace("odd\n", "") if str(self) == "/proc/self/mounts" else "")

    assert kind == machine.file_system(URL(url))


def test_mounts_that_cannot_be_read_make_it_a_file(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Path, "read_text", lambda _: MOUNTS)

    assert "file" == machine.file_system(URL("/home/a.tar"))


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="Linux says what is in memory")
def test_what_is_in_memory_is_told_from_64_places_of_each_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a.tar").write_bytes(bytes(6400))
    (tmp_path / "empty.tar").write_bytes(b"")
    asked = []

    def preadv(_descriptor: int, buffers: list[bytearray], offset: int, flags: int) -> int:
        asked.append((len(buffers[0]), offset, flags))
        if offset < 1600:
            raise BlockingIOError
        return 1

    monkeypatch.setattr(os, "preadv", preadv)

    assert 0.75 == machine.cached_share([URL(str(tmp_path / "a.tar")), URL(str(tmp_path / "empty.tar"))])
    assert [(1, 100 * at, os.RWF_NOWAIT) for at in range(64)] == asked
    assert machine.cached_share([URL(str(tmp_path / "empty.tar"))]) is None
    assert machine.cached_share([URL("s3://bucket/a.tar")]) is None
    assert machine.cached_share([URL(str(tmp_path / "none.tar"))]) is None
    monkeypatch.delattr(os, "RWF_NOWAIT")
    assert machine.cached_share([URL(str(tmp_path / "a.tar"))]) is None


def test_only_local_shards_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked = []

    def advise(descriptor: int, *rest: int) -> None:
        asked.append((os.fstat(descriptor).st_ino, *rest))

    paths = [tmp_path / "a.tar", tmp_path / "b.tar"]
    for path in paths:
        path.write_bytes(b"1")
    urls = [URL(str(paths[0])), URL("s3://bucket/a.tar"), URL(str(paths[1]))]
    monkeypatch.setattr(os, "posix_fadvise", advise, raising=False)
    monkeypatch.setattr(os, "POSIX_FADV_DONTNEED", 4, raising=False)
    machine.evict(urls)
    monkeypatch.delattr(os, "posix_fadvise")
    machine.evict(urls)

    assert [(path.stat().st_ino, 0, 0, 4) for path in paths] == asked


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.981, "warm (all in memory)"),
        (0.98, "partly warm (98 % in memory)"),
        (0.02, "partly warm (2 % in memory)"),
        (0.019, "cold (nothing in memory)"),
    ],
)
def test_cold_and_warm_have_their_bounds(share: float, words: str):
    assert words == machine.cache_words(share)
