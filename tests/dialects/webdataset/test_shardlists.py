"""`webdataset.shardlists`: names, orders, draws and splits of shards, and folders that shards turn up in."""

from __future__ import annotations

import glob
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tarviz.dialects.webdataset as wds
from tarviz.dialects.webdataset import shardlists
from tarviz.dialects.webdataset.shardlists import DirectoryShardList
from tarviz.model.errors import UsageError
from tarviz.samples import write_shard
from tests.conftest import each_case


def urls(shards: Any) -> list[str]:
    return [shard["url"] for shard in shards]


class TestNames:
    def test_the_environment_names_a_part(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WDS_PLACE", "s3://b")
        monkeypatch.delenv("WDS_NONE", raising=False)

        assert ["s3://b/a-0.tar", "s3://b/a-1.tar"] == shardlists.expand_urls("${PLACE}/a-{0..1}.tar")
        with pytest.raises(UsageError, match=r"the URL has \${NONE}, and the environment has no WDS_NONE"):
            shardlists.expand_urls("${NONE}/a.tar")

    def test_of_an_endless_list_so_many_are_taken(self) -> None:
        endless = (f"{number}.tar" for number in itertools.count())

        assert ["0.tar", "1.tar", "2.tar"] == shardlists.expand_source(endless, 3)
        with pytest.raises(UsageError, match="urls are text or a list of texts, got NoneType"):
            shardlists.expand_source(None)

    def test_no_name_is_an_error(self) -> None:
        with pytest.raises(UsageError, match="the list of urls is empty"):
            wds.SimpleShardList([])
        with pytest.raises(UsageError, match="there are no shards to draw from"):
            wds.ResampledShards([])
        assert [] == wds.ResampledShards([], empty_check=False).urls

    def test_lists_in_yaml_are_refused(self) -> None:
        for name in ("a.yaml", "a.yml"):
            with pytest.raises(UsageError, match="YAML"):
                wds.shardspec(name)
        assert ["a.tar"] == urls(wds.shardspec("a.tar"))


class TestOrders:
    def test_a_seed_decides_it(self) -> None:
        plain, seeded = wds.SimpleShardList("{0..9}"), wds.SimpleShardList("{0..9}", seed=17)

        assert [str(number) for number in range(10)] == urls(plain)
        assert urls(seeded) == urls(seeded) != urls(plain)
        assert sorted(urls(seeded)) == urls(plain)
        assert 10 == len(seeded)

    def test_by_the_time_it_is_another_for_each_list(self) -> None:
        orders = {tuple(urls(wds.SimpleShardList("{000..199}", seed=True))) for _ in range(2)}

        assert 2 == len(orders)


class TestDraws:
    def test_determined_ones_depend_on_seed_pass_rank_and_worker_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def drawn(**options: Any) -> list[list[str]]:
            shards = wds.ResampledShards("{00..99}", nshards=20, deterministic=True, **options)
            return [urls(shards) for _ in range(2)]

        first = drawn()

        assert first == drawn()
        assert [20, 20] == [len(each) for each in first]
        assert first[0] != first[1]
        assert first != drawn(seed=1)
        monkeypatch.setenv("WORKER", "1")
        assert first != drawn()
        assert drawn(worker_seed=lambda: 0) == first

    def test_others_are_new_each_time(self) -> None:
        shards = wds.ResampledShards("{00..99}", nshards=20)

        assert urls(shards) != urls(shards)
        assert {*urls(shards)} <= {f"{number:02d}" for number in range(100)}

    def test_passes_are_counted(self) -> None:
        shards = wds.ResampledShards("a", nshards=1)
        counted = [shards.epoch]
        for _ in range(2):
            list(shards)
            counted.append(shards.epoch)

        assert [-1, 0, 1] == counted


class TestSplits:
    @pytest.fixture(autouse=True)
    def place(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Rank 1 of 3, worker 2 of 4."""
        for name, value in {"RANK": "1", "WORLD_SIZE": "3", "WORKER": "2", "NUM_WORKERS": "4"}.items():
            monkeypatch.setenv(name, value)

    def test_each_takes_every_nth(self) -> None:
        assert [1, 4, 7] == list(wds.split_by_node(range(10)))
        assert [2, 6] == list(wds.split_by_worker(range(10)))

    def test_single_node_only_says_which_node_it_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(UsageError, match=r"this is node 1 of 3\."):
            wds.single_node_only([])
        for name in ("RANK", "WORLD_SIZE"):
            monkeypatch.delenv(name)
        assert [1, 2] == wds.single_node_only([1, 2])

    def test_a_splitter_may_ask_for_one_after_the_other(self) -> None:
        def every_other(shards: Any) -> Iterator[Any]:
            for shard in shards:
                yield shard
                break
            yield next(shards)
            yield next(shards)["url"]

        assert ["a", "a", "b"] == shardlists.split_urls(every_other, ["a", "b"])
        with pytest.raises(StopIteration):
            next(shardlists.ShardSequence())


class TestFolder:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """Three shards; the second is the oldest."""
        for name, age in (("a.tar", 30), ("b.tgz", 10), ("c.tar.tgz", 20), ("d.txt", 0)):
            (tmp_path / name).write_bytes(b"")
            os.utime(tmp_path / name, (age, age))
        return tmp_path

    def shards(self, folder: Path, **options: Any) -> DirectoryShardList:
        return DirectoryShardList(f"{folder}/", **{"poll": None, "select": "oldest", **options})

    def test_the_oldest_comes_first_under_the_name_of_its_reader(self, folder: Path) -> None:
        mine = f"._{os.getpid()}_"
        seen = []
        for shard in self.shards(folder, mode="unlink"):
            assert Path(shard["url"]).exists()
            seen.append(Path(shard["url"]).name)

        assert [f"b.tgz{mine}", f"c.tar.tgz{mine}", f"a.tar{mine}"] == seen
        assert ["d.txt"] == os.listdir(folder)

    def test_those_that_are_kept_are_marked(self, folder: Path) -> None:
        assert 3 == len(list(self.shards(folder, mode="keep", select="random")))
        assert ["a.tar._done_", "b.tgz._done_", "c.tar.tgz._done_", "d.txt"] == sorted(os.listdir(folder))

    def test_else_they_come_again(self, folder: Path) -> None:
        found = [shard["url"] for shard in itertools.islice(self.shards(folder, select="random"), 60)]

        assert 3 == len({*found})
        assert 4 == len(os.listdir(folder))

    def test_an_empty_folder_is_looked_at_again_until_the_time_is_over(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        now, slept = [100.0], list[float]()

        def sleep(seconds: float) -> None:
            now[0] += seconds
            slept.append(seconds)
            if len(slept) == 2:
                (tmp_path / "late.tar").write_bytes(b"")

        monkeypatch.setattr(shardlists, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
        found = [Path(shard["url"]).name for shard in self.shards(tmp_path, poll=3, timeout=9, mode="unlink")]

        assert [f"late.tar._{os.getpid()}_"] == found
        assert [3] * 5 == slept  # two before it came, three after it was done with

    @pytest.mark.parametrize("select", ["random", "oldest"])
    def test_a_shard_that_another_reader_has_taken_is_passed_over(self, folder: Path, monkeypatch: pytest.MonkeyPatch, select: str) -> None:
        looks: list[str] = []

        def look(pattern: str) -> list[str]:
            looks.append(pattern)
            return [*glob.glob(pattern), f"{folder}/gone.tar"] if len(looks) == 1 else glob.glob(pattern)

        monkeypatch.setattr(shardlists, "glob", SimpleNamespace(glob=look))
        monkeypatch.setattr(shardlists, "random", SimpleNamespace(choice=lambda paths: paths[-1]))

        assert 3 == len(list(self.shards(folder, mode="unlink", select=select)))

    def test_what_a_dead_reader_held_is_put_back(self, folder: Path) -> None:
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        (folder / "a.tar").rename(folder / f"a.tar._{dead.pid}_")
        (folder / "b.tgz").rename(folder / f"b.tgz._{os.getppid()}_")
        (folder / "e.tar._x_").write_bytes(b"")
        shards = self.shards(folder)

        assert not shardlists.check_pid_is_running(dead.pid)
        assert shardlists.check_pid_is_running(os.getpid())
        shards.cleanup_files_without_processes()
        assert ["a.tar", f"b.tgz._{os.getppid()}_", "c.tar.tgz", "d.txt", "e.tar._x_"] == sorted(os.listdir(folder))

    def test_another_reader_may_have_put_it_back(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("a.tar", "b.tgz"):
            (folder / name).rename(folder / f"{name}._77_")

        def gone(pid: int) -> bool:
            (folder / "a.tar._77_").unlink(missing_ok=True)
            return False

        monkeypatch.setattr(shardlists, "check_pid_is_running", gone)
        self.shards(folder).cleanup_files_without_processes()

        assert ["b.tgz", "c.tar.tgz", "d.txt"] == sorted(os.listdir(folder))

    def test_a_pipeline_reads_it(self, tmp_path: Path) -> None:
        for name in "ab":
            write_shard(tmp_path / f"{name}.tar", [(name, {"cls": b"1"})])
        shards = self.shards(tmp_path, mode="unlink", pattern="*.tar")

        assert ["a", "b"] == sorted(sample["__key__"] for sample in wds.DataPipeline(shards, wds.tarfile_to_samples()))

    @each_case(
        ("name", "options", "message"),
        [
            ("", {}, "is not a folder with a / after its name"),
            ("/none/", {}, "is not a folder with a / after its name"),
            ("/", {"mode": "delete"}, "mode='delete' is not one of resample, keep, unlink"),
            ("/", {"select": "newest"}, "select='newest' is not one of random, oldest"),
        ],
    )
    def test_a_wrong_call_is_refused(self, tmp_path: Path, name: str, options: dict[str, str], message: str) -> None:
        with pytest.raises(UsageError, match=message):
            DirectoryShardList(f"{tmp_path}{name}", **options)  # type: ignore[arg-type]


def test_what_yields_nothing_is_an_error() -> None:
    assert [1, 2] == list(wds.non_empty([1, 2]))
    with pytest.raises(UsageError, match="the pipeline has yielded nothing"):
        list(wds.non_empty([]))


def test_a_stage_that_draws_takes_from_what_comes() -> None:
    found = list(wds.resampled(30)([1, 2, 3]))

    assert 30 == len(found)
    assert {1, 2, 3} == {*found}
    assert [] == list(wds.resampled(30)([]))
