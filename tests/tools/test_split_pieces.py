"""Where records are cut into shards when each shard is measured by itself: as one pass over all of them cuts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.commands.split import split
from tarviz.model.errors import ChangedError, DataError, Fault, StoreError, UsageError
from tarviz.model.types import URL
from tarviz.outputs.limits import Limits
from tarviz.read.chosen import version
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.testing.strategies import numbered_records
from tarviz.tools.split_pieces import OutputJob, OutputPart, OutputTask, cut, output_tasks, run_on
from tests.conftest import sampled

SIZES = st.lists(st.lists(st.integers(1, 6).map(lambda blocks: 512 * blocks), max_size=8).map(lambda each: np.array(each, np.int64)))


class TestCut:
    @given(SIZES, st.integers(1, 5), st.integers(1, 9000) | st.integers(3, 18).map(lambda blocks: 512 * blocks))
    def test_every_record_is_in_one_output_which_is_as_full_as_limits_allow(self, shards: Any, count: int, size: int):
        every = [(shard, at, int(each)) for shard, sizes in enumerate(shards) for at, each in enumerate(sizes)]
        found = []
        for part in cut(shards, Limits(count, size)):
            own = every[len(found) : len(found) + part.records]
            assert (part.shard, part.first, part.last) == (*own[0][:2], own[-1][0])
            assert len(own) <= count
            assert sum(each for *_, each in own) + 1024 <= size or len(own) == 1
            found += own
            more = sum(each for *_, each in (*own, *every[len(found) :][:1]))
            assert len(own) == count or more + 1024 > size or every == found

        assert every == found

    def test_no_shard_is_measured_that_is_not_needed(self):
        def shards():
            yield np.full(5, 512)
            raise AssertionError("nobody needs the second")

        assert [2, 2] == [part.records for part in cut(shards(), Limits(count=2), most=2)]

    def test_outputs_that_begin_in_one_shard_are_one_task(self):
        parts = list(cut([np.full(5, 512), np.full(1, 512), np.full(4, 512)], Limits(count=2)))
        versions = [{"size": at} for at in range(3)]

        tasks = output_tasks(parts, ["a", "b", "c"], versions, lambda number: f"out-{number}")

        assert [(("out-0", "out-1", "out-2"), ("a", "b")), (("out-3", "out-4"), ("c",))] == [(task.names, task.urls) for task in tasks]


@pytest.fixture
def shards(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for at, (count, payload) in enumerate(((7, b"x" * 600), (0, b""), (12, b"y" * 1500), (3, b"\xff" * 70_000))):
        make(numbered_records(count, payload=payload, prefix=f"p{at}-"), f"in-{at}.tar")
    monkeypatch.chdir(tmp_path)
    return "in-{0..3}.tar"


def files(pattern: str) -> dict[str, bytes]:
    return {path.name.partition("-")[2]: path.read_bytes() for path in sorted(Path.cwd().glob(pattern))}


class TestWorkers:
    CUTS = ({"count": 4}, {"size": 9000}, {"count": 3, "size": 100_000}, {"count": 5, "start": 7}, {"count": 6, "where": "n % 2 = 0"}, {})

    @pytest.mark.parametrize(
        ("jobs", "options"),
        [*((1, cut) for cut in CUTS), (2, CUTS[2]), *sampled([(2, cut) for cut in (*CUTS[:2], *CUTS[3:])], 0)],
        ids=str,
    )
    def test_bytes_are_those_of_one_pass(self, shards: str, jobs: int, options: Any):
        if "where" in options:
            pytest.importorskip("duckdb", reason="conditions need the extra table")
        expected = split(shards, "here-%03d.tar", **options)

        found = split(shards, "away-%03d.tar", jobs=jobs, **options)

        assert files("here-*.tar") == files("away-*.tar")
        assert [(tar.records, tar.bytes) for tar in expected.outputs] == [(tar.records, tar.bytes) for tar in found.outputs]
        assert expected.report.to_dict() == found.report.to_dict()

    @pytest.mark.matrix
    def test_packed_outputs_and_no_more_than_asked_for(self, shards: str):
        split(shards, "here-%03d.tar.gz", count=4, maxshards=3)
        split(shards, "away-%03d.tar.gz", count=4, maxshards=3, jobs=2)

        assert files("here-*") == files("away-*")

    @pytest.mark.matrix
    def test_what_is_damaged_is_left_out_the_same(self, shards: str):
        Path("in-2.tar").write_bytes(Path("in-2.tar").read_bytes()[:9000])

        expected = split(shards, "here-%03d.tar", count=4, on_error="skip")
        found = split(shards, "away-%03d.tar", count=4, on_error="skip", jobs=2)

        assert files("here-*") == files("away-*")
        assert (1, expected.report.to_dict()) == (found.exit_code, found.report.to_dict())
        with pytest.raises(DataError, match=r"in-2\.tar"):
            split(shards, "none-%03d.tar", count=4, jobs=2)
        assert {} == files("none-*")

    def test_neighbours_of_one_key_are_warned_of_once(self, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(tmp_path)
        make(numbered_records(3), "in-0.tar")
        make(numbered_records(3)[2:] + numbered_records(2, prefix="b"), "in-1.tar")

        expected, found = split("in-{0..1}.tar", "here-%d.tar", count=6), split("in-{0..1}.tar", "away-%d.tar", count=6, jobs=2)

        assert ["W_MERGED_RECORD"] == [fault.code for fault in found.report.warnings]
        assert expected.report.to_dict() == found.report.to_dict()

    def test_run_again_only_what_is_missing_is_written(self, shards: str):
        split(shards, "x-%03d.tar", count=2, resume=True)
        before = {name: os.stat(f"x-{name}").st_mtime_ns for name in files("x-*.tar")}
        expected = files("x-*.tar")
        os.unlink("x-003.tar")
        Path("x-004.tar").write_bytes(b"other")

        split(shards, "x-%03d.tar", count=2, resume=True)

        assert expected == files("x-*.tar")
        assert {"003.tar", "004.tar"} == {name for name, stamp in before.items() if os.stat(f"x-{name}").st_mtime_ns != stamp}

    def test_another_way_to_cut_keeps_nothing(self, shards: str):
        split(shards, "x-%03d.tar", count=2, resume=True)
        stamp = os.stat("x-000.tar").st_mtime_ns

        split(shards, "x-%03d.tar", count=3, resume=True)

        assert stamp != os.stat("x-000.tar").st_mtime_ns

    @pytest.mark.matrix
    def test_the_command_is_run_on_every_output(self, shards: str):
        split(shards, "x-%03d.tar", count=4, jobs=2, command="cp {shard} {base}.copy")

        assert [path.read_bytes() for path in sorted(Path.cwd().glob("*.copy"))] == list(files("x-*.tar").values())
        with pytest.raises(StoreError, match="E_COMMAND"):
            split(shards, "x-%03d.tar", count=4, jobs=2, command="false")
        with pytest.raises(UsageError, match="no manifest proves"):
            split(shards, "x-%03d.tar", count=4, resume=True, command="true")

    def test_a_shard_that_changes_between_measuring_and_writing_is_an_error(self, shards: str):
        was = version("in-0.tar")
        Path("in-0.tar").write_bytes(Path("in-2.tar").read_bytes())
        job = OutputJob(ReadOptions(), "replace", None, False, None)

        with pytest.raises(ChangedError, match="after it was measured"):
            job(OutputTask((OutputPart(0, 2, 0, 0, 0),), ("x-0.tar",), ("in-0.tar",), (was,)), None, print)
        with pytest.raises(ChangedError, match="fewer records"):
            job(OutputTask((OutputPart(0, 99, 0, 0, 0),), ("x-0.tar",), ("in-0.tar",), (version("in-0.tar"),)), None, print)
        assert {} == files("x-*")

    @pytest.mark.parametrize("target", ["-", "memory://x/in.tar"])
    def test_what_is_of_this_process_alone_is_refused(self, target: str):
        with pytest.raises(UsageError, match="of this process alone"):
            split(target, "x-%03d.tar", count=4, jobs=2)


class TestCommand:
    def test_one_that_succeeds_says_nothing(self):
        run_on("true; ", URL("a.tar"), report := ReadReport(), skip=False)

        assert {} == report.counts()

    def test_one_that_fails_is_an_error_or_counted(self):
        with pytest.raises(StoreError, match=r"E_COMMAND a\.tar: the command ended with 3 on this shard, which is written"):
            run_on("exit 3; ", URL("a.tar"), ReadReport(), skip=False)
        run_on("kill -9 $$; ", URL("a.tar"), report := ReadReport(), skip=True)
        assert [Fault("E_COMMAND", "the command ended with -9 on this shard, which is written.", "a.tar")] == report.skipped
