"""A comparison that nobody holds ends its thread and lets go of its shard."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import pytest

from tarviz.samples import write_shard
from tarviz.widgets.compare.controller import Compare


def opened(path: Path) -> int:
    return sum(os.path.realpath(f"/proc/self/fd/{name}") == str(path) for name in os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="/proc shows what is open")
def test_one_that_is_dropped_ends_its_thread_and_closes_its_shard(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    write_shard(path, [(f"k{at}", {"txt": b"x" * 5_000_000}) for at in range(3)])
    before = set(threading.enumerate())
    run = Compare(path, "decode(txt)", records=1)
    assert run.wait(60)
    (thread,) = [each for each in set(threading.enumerate()) - before if each.name == "tarviz-compare"]
    assert 1 == opened(path)

    del run
    gc.collect()
    thread.join(60)
    assert not thread.is_alive()
    assert 0 == opened(path)


def test_one_that_is_closed_ends_its_thread_while_it_is_held(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.tar", [("k", {"txt": b"x"}), ("l", {"txt": b"y"})])
    before = set(threading.enumerate())
    run = Compare(tmp_path / "a.tar", "decode(txt)", records=1)
    assert run.wait(60)
    (thread,) = [each for each in set(threading.enumerate()) - before if each.name == "tarviz-compare"]

    run.close()

    thread.join(60)
    assert not thread.is_alive()
    assert {"found": 0, "count": 1} == run.more()
