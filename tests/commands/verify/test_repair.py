"""Repair: whole records come out bit for bit in a tar that is whole, and what is lost is listed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarviz.commands.verify import Salvage, Verified, beside, save, verify
from tarviz.model.errors import UsageError
from tarviz.model.types import URL
from tarviz.read.stream import ReadOptions
from tarviz.testing.strategies import numbered_records, shard
from tests.commands.conftest import listed, plain
from tests.conftest import DATA

TARS = DATA / "corpora" / "generated"
Make = Callable[..., Path]
LARGE = b"\xff" * 70_000


class TestRepair:
    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    def test_saves_all_but_the_damaged_record(self, make: Make, payload: bytes):
        content = numbered_records(1000 if len(payload) < 1000 else 50, payload=payload)
        data = bytearray(shard(content))
        data[data.index(b"train/n00000017.png")] ^= 1
        a = make(bytes(data))

        result = verify([str(a)], repair=True)

        saved = a.with_name("a.repaired.tar")
        assert [Salvage(str(a), str(saved), len(content) - 1, saved.stat().st_size)] == result.written
        assert [record for record in content if record[0] != "train/n00000017"] == plain(saved)
        assert any("E_CHECKSUM" == fault["code"] for fault in result.faults)
        assert (2, 0) == (result.exit_code, verify([str(saved)]).exit_code)

    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    def test_a_tar_cut_short_gives_its_front(self, make: Make, out: Path, payload: bytes):
        content = numbered_records(30, payload=payload)
        data = shard(content)

        verify([str(make(data[: data.index(b"train/n00000021.cls") + 300]))], repair=True, output=str(out))

        assert [key for key, _ in content[:21]] == [key for key, _ in plain(out)][:21]
        assert 44 >= len(listed(out)) >= 42

    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    def test_what_may_lack_a_member_is_kept_and_told_or_left_out(self, make: Make, out: Path, payload: bytes):
        data = shard(numbered_records(3, payload=payload))
        a = str(make(data[: data.index(b"train/n00000002.cls")]))

        lenient = verify([a], repair=True, output=str(out))
        assert ({"W_NO_EOF": 1, "W_PENDING": 1}, 3) == (lenient.counts, len(plain(out)))
        assert "train/n00000002" == next(each for each in lenient.warnings if each["code"] == "W_PENDING")["record"]

        strict = verify([a], strict=True, repair=True, output=str(out))
        assert ({"E_NO_EOF": 1, "W_DROPPED": 1}, 2) == (strict.counts, len(plain(out)))

    def test_a_shard_without_a_fault_is_left_alone(self, make: Make):
        good, bad = make(numbered_records(3)), make(shard(numbered_records(3))[:3000], "b.tar")

        result = verify([str(good), str(bad)], repair=True)

        assert [str(bad)] == [saved.shard for saved in result.written]
        assert not good.with_name("a.repaired.tar").exists()

    def test_behind_the_end_of_the_archive(self, make: Make, out: Path):
        a = str(make(shard(numbered_records(2)) + shard(numbered_records(2, prefix="b"))))

        verify([a], repair=True, output=str(out))
        assert 2 == len(plain(out))
        verify([a], repair=True, output=str(out), concatenated=True)
        assert 4 == len(plain(out))

    @pytest.mark.parametrize("path", sorted(TARS.glob("B*")), ids=lambda path: path.stem)
    def test_the_corpus(self, path: Path, out: Path):
        result = verify([str(path)], repair=True, output=str(out))

        # B40: a member whose two sizes differ is kept, as lenient reading does, and still told of.
        assert set(verify([str(out)]).counts) <= ({"W_SIZE_MISMATCH"} if path.stem[:3] == "B40" else {"W_EMPTY"})
        assert result.exit_code or path.stem[:3] in ("B10", "B33")
        if path.stem[:3] != "B33":  # which bsdtar cannot read as it came
            listed(out)

    def test_names(self):
        assert "a.repaired.tgz" == beside("a.tgz")
        assert "x.repaired.tar" == beside("memory://f/x.tar")

    @pytest.mark.parametrize(("urls", "options"), [(["a.tar", "a.tar"], {"output": "o.tar"}), (["x.tfrecord"], {})])
    def test_what_cannot_be(self, make: Make, urls: Any, options: Any, monkeypatch: pytest.MonkeyPatch):
        a = make(numbered_records(1))
        (a.parent / "x.tfrecord").write_bytes(b"")
        monkeypatch.chdir(a.parent)

        with pytest.raises(UsageError):
            verify(urls, repair=True, **options)


class TestShell:
    def test_says_what_was_saved(self, make: Make, bash: Any):
        make(shard(numbered_records(3))[:3000], "b.tar")

        done = bash("tarviz verify --repair b.tar")
        content = json.loads(bash("tarviz verify --repair --json b.tar").stdout)

        assert 2 == done.returncode
        assert "b.tar → b.repaired.tar: 1 record, 3.58 kB" in done.stdout.decode()
        assert [{"shard": "b.tar", "output": "b.repaired.tar", "records": 1, "bytes": 3584}] == content["written"]

    def test_a_pipe_cannot_be_repaired(self, make: Make, bash: Any):
        make(numbered_records(1))

        assert b"Save it to a file first" in bash("tarviz verify --repair - < a.tar").stderr


def test_the_whole_of_a_repair(make: Make, monkeypatch: pytest.MonkeyPatch):
    make(shard(numbered_records(3))[:3000], "b.tar")
    make(numbered_records(2), "a.tar")
    monkeypatch.chdir(make(b"", "empty").parent)
    result = verify(["a.tar", "b.tar"], repair=True)

    assert [Salvage("b.tar", "b.repaired.tar", 1, 3072 + 1024 - 512)] == result.written
    *found, saved = str(result).splitlines()
    assert "b.tar → b.repaired.tar: 1 record, 3.58 kB" == saved
    assert "3 records in 2 files: E_TRUNCATED ×1, W_PENDING ×1" == found[-1]
    assert [{"shard": "b.tar", "output": "b.repaired.tar", "records": 1, "bytes": 3584}] == result.to_dict()["written"]
    assert [] == verify("b.tar").to_dict()["written"]


def test_standard_input_cannot_be_read_twice():
    with pytest.raises(UsageError, match="Save it to a file first"):
        save([URL("-")], None, Verified(), ReadOptions())


@pytest.mark.parametrize(("jobs", "expected"), [({"jobs": 1}, "one process")])
def test_a_repair_is_not_spread(make: Make, jobs: Any, expected: str):
    with pytest.raises(UsageError, match=expected):
        verify([make(numbered_records(1)), make(numbered_records(1), "b.tar")], repair=True, **jobs)
