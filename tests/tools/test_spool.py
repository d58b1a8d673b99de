"""Shards kept in a file: their inflated bytes, as far as they are whole, and what a full disk says."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tarviz.model.errors import DataError, NotFoundError
from tarviz.model.types import URL
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.testing.strategies import numbered_records, shard
from tarviz.tools import spool
from tarviz.tools.spool import spool_shard

Make = Callable[..., Path]
DATA = shard(numbered_records(30))


@pytest.mark.parametrize("piece", [1000, 1 << 20])
def test_it_is_the_inflated_shard(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int):
    monkeypatch.setattr(spool, "_PIECE", piece)
    report = ReadReport()
    held = spool_shard(URL(str(make(gzip.compress(DATA)))), str(tmp_path / "held"), ReadOptions(), report)

    assert (str(tmp_path / "held"), len(DATA)) == (held.url, held.size)
    assert DATA == (tmp_path / "held").read_bytes() == held.read(0, len(DATA))
    assert {} == report.counts()


def test_what_is_damaged_is_an_error_or_kept_as_far_as_it_is_whole(make: Make, tmp_path: Path):
    packed = gzip.compress(DATA)
    url = URL(str(make(packed[: len(packed) // 2])))
    with pytest.raises(DataError):
        spool_shard(url, str(tmp_path / "held"), ReadOptions(), ReadReport())
    report = ReadReport()
    spool_shard(url, str(tmp_path / "again"), ReadOptions(on_error="skip"), report)

    assert DATA.startswith((tmp_path / "again").read_bytes())
    assert [url] == [fault.shard for fault in report.skipped]


def test_a_shard_that_is_not_there_is_no_fault_of_the_disk(tmp_path: Path):
    with pytest.raises(NotFoundError):
        spool_shard(URL(str(tmp_path / "none.tar")), str(tmp_path / "held"), ReadOptions(on_error="skip"), ReadReport())


def test_a_full_disk_says_where_there_may_be_room(make: Make, tmp_path: Path):
    path = make(gzip.compress(DATA))
    code = (
        "import resource, signal, sys, tarviz\n"
        "from tarviz.read.stream import ReadOptions, ReadReport\n"
        "from tarviz.tools.spool import spool_shard\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "try: spool_shard(sys.argv[1], sys.argv[2], ReadOptions(on_error='skip'), ReadReport())\n"
        "except tarviz.TarvizError as error: print(error)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(tmp_path / "held")],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )

    assert "E_WRITE" in done.stdout
    assert f"cannot be kept in {tmp_path}/held: File too large." in done.stdout
    assert "--tmp" in done.stdout
