"""States: from the middle of an epoch, onto other numbers of workers and ranks, and never onto another shard."""

from __future__ import annotations

import io
import itertools
import json
import os
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import tarviz
from tarviz.model.errors import ChangedError, UsageError
from tarviz.pipeline import Pipeline
from tarviz.runners.eager import Eager

pytestmark = pytest.mark.filterwarnings("ignore:W_EMPTY")


def counted(folder: Path, sizes: Iterable[int], suffix: str = "tar") -> Pipeline:
    """Shards of so many records; `cls` counts from 0 over all of them."""
    numbers = itertools.count()
    urls = []
    for at, size in enumerate(sizes):
        urls.append(folder / f"n-{at}.{suffix}")
        with tarfile.open(urls[-1], "w:gz" if suffix.endswith("gz") else "w") as tar:
            for number in itertools.islice(numbers, size):
                data = b"%d" % number
                info = tarfile.TarInfo(f"r{number:04d}.cls")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return Pipeline(urls, "decode(cls)", select="cls", seed=3)


def saved(run: Eager, count: int) -> tuple[list[int], dict[str, Any]]:
    """The first steps of a run, and its state behind them, through JSON."""
    head = [int(value) for value in itertools.islice(run, count)]
    text = json.dumps(run.state_dict())
    assert len(text) < 4096
    return head, json.loads(text)


class TestTheSameReader:
    @pytest.mark.parametrize(
        "options",
        [{}, {"shuffle": 7}, {"shuffle": 60, "repeat": 2}, {"repeat": 2}, {"num_workers": 2}, {"reshare": True, "repeat": 3}],
        ids=str,
    )
    @pytest.mark.parametrize("suffix", ["tar", "tar.gz"])
    def test_goes_on_behind_any_step(self, tmp_path: Path, options: dict[str, Any], suffix: str) -> None:
        pipeline = counted(tmp_path, [17, 0, 1, 20], suffix)
        whole = list(pipeline.eager(**options))
        for cut in range(0, len(whole) + 1, 3):
            head, state = saved(pipeline.eager(**options), cut)
            again = pipeline.eager(**options)
            again.load_state_dict(state)

            assert state == again.state_dict()
            assert whole == head + list(again)

    def test_goes_on_behind_batches_and_with_later_epochs(self, tmp_path: Path) -> None:
        pipeline = counted(tmp_path, [17, 20])
        run = pipeline.eager(batch=5, shuffle=9)
        epochs = [[batch.tolist() for batch in run] for _ in range(3)]
        run = pipeline.eager(batch=5, shuffle=9, epoch=1)
        list(itertools.islice(run, 3))
        again = pipeline.eager(batch=5, shuffle=9)
        again.load_state_dict(run.state_dict())

        assert epochs[1][3:] == [batch.tolist() for batch in again]
        assert epochs[2] == [batch.tolist() for batch in again]

    @pytest.mark.parametrize("shuffle", [0, 25])
    def test_does_not_read_again_what_it_read(self, tmp_path: Path, shuffle: int) -> None:
        pipeline = counted(tmp_path, [400, 400])
        tarviz.index(pipeline.urls)
        whole = pipeline.eager(shuffle=shuffle)
        list(whole)
        _, state = saved(pipeline.eager(shuffle=shuffle), 700)
        again = pipeline.eager(shuffle=shuffle)
        again.load_state_dict(state)

        assert 100 == len(list(again))
        assert again.report.records <= 100
        assert again.report.bytes < whole.report.bytes / 4

    def test_skips_what_it_skipped(self, tmp_path: Path) -> None:
        urls = counted(tmp_path, [40]).urls
        Path(urls[0]).write_bytes(Path(urls[0]).read_bytes().replace(b"7" + bytes(500), b"x" + bytes(500)))
        pipeline = Pipeline(urls, "decode(cls)", select="cls", on_error="skip")
        whole = list(pipeline.eager())
        assert 36 == len(whole)
        for cut in (0, 6, 7, 8, len(whole)):
            head, state = saved(pipeline.eager(), cut)
            again = pipeline.eager()
            again.load_state_dict(state)

            assert whole == head + list(again)


class TestOtherReaders:
    @pytest.mark.parametrize("reshare", [False, True])
    @pytest.mark.parametrize("shuffle", [0, 9, 100])
    @pytest.mark.parametrize(("before", "behind"), [(1, 2), (2, 1), (2, 4), (4, 3), (3, 3)])
    @pytest.mark.parametrize("sizes", [[50], [9, 2, 30, 11], [4] * 13], ids=str)
    def test_of_other_ranks_take_over_what_was_left(
        self, tmp_path: Path, before: int, behind: int, sizes: list[int], shuffle: int, reshare: bool
    ) -> None:
        pipeline = counted(tmp_path, sizes)
        heads: list[int] = []
        states = []
        for rank in range(before):
            head, state = saved(pipeline.eager(rank=rank, world_size=before, shuffle=shuffle, reshare=reshare), 3 + 2 * rank)
            heads += head
            states.append(state)
        rests, middle = [], []
        for rank in range(behind):
            run = pipeline.eager(rank=rank, world_size=behind, shuffle=shuffle, reshare=reshare)
            run.load_state_dict(states)
            head, state = saved(run, 2)
            rests += head
            middle.append(state)
        last: list[int] = []
        for rank in range(5):  # and once more, in the epoch that was taken over
            run = pipeline.eager(rank=rank, world_size=5, shuffle=shuffle, reshare=reshare)
            run.load_state_dict(middle)
            last += run
            assert 1 == run.epoch

        assert list(range(sum(sizes))) == sorted(heads + rests + last)

    @pytest.mark.parametrize("shuffle", [0, 9])
    @pytest.mark.matrix
    def test_of_an_epoch_that_shares_anew_go_on_in_it(self, tmp_path: Path, shuffle: int) -> None:
        """Behind any step, three ranks in the second epoch, where each has other shards than in the first."""
        pipeline = counted(tmp_path, [4] * 9)
        options: dict[str, Any] = {"world_size": 3, "shuffle": shuffle, "reshare": True}
        for cut in range(13):
            for rank in range(3):
                whole = list(pipeline.eager(rank=rank, epoch=1, **options))
                head, state = saved(pipeline.eager(rank=rank, epoch=1, **options), cut)
                again = pipeline.eager(rank=rank, **options)
                again.load_state_dict(state)

                assert whole == head + list(again)
        with pytest.raises(UsageError, match="a pipeline with reshare=True, this one has reshare=False"):
            pipeline.eager(rank=2, world_size=3, shuffle=shuffle).load_state_dict(state)

    def test_that_lack_a_state_are_told_which(self, tmp_path: Path) -> None:
        pipeline = counted(tmp_path, [9, 9])
        state = pipeline.eager(rank=1, world_size=2).state_dict()

        with pytest.raises(UsageError, match=r"of 2 rank\(s\), this is one of 1.*as a list"):
            pipeline.eager().load_state_dict(state)
        with pytest.raises(UsageError, match="no state of rank 0"):
            pipeline.eager(rank=0, world_size=2).load_state_dict(state)
        with pytest.raises(UsageError, match="no state in the list"):
            pipeline.eager().load_state_dict([])

    @pytest.mark.parametrize("sizes", [[9, 9], [40], [70, 3]], ids=str)
    def test_of_shuffled_compressed_shards_take_over_too(self, tmp_path: Path, sizes: list[int]) -> None:
        pipeline = counted(tmp_path, sizes, "tar.gz")
        world = min(len(sizes), 2)
        heads: list[int] = []
        states = []
        for rank in range(world):
            head, state = saved(pipeline.eager(rank=rank, world_size=world, shuffle=8), 5)
            heads, states = heads + head, [*states, state]
        rests: list[int] = []
        for rank in range(3):
            run = pipeline.eager(rank=rank, world_size=3, shuffle=8)
            run.load_state_dict(states)
            rests += run

        assert list(range(sum(sizes))) == sorted(heads + rests)

    @pytest.mark.parametrize("even", [False, True])
    @pytest.mark.parametrize("shuffle", [0, 9])
    def test_of_a_choice_take_over_the_rest_of_it(self, tmp_path: Path, shuffle: int, even: bool) -> None:
        pipeline = Pipeline(counted(tmp_path, [30, 2, 15]).urls, "decode(cls)", select="cls", where="cls % 3 > 0")
        states, heads, rests = [], [], []
        for rank in range(2):
            head, state = saved(pipeline.eager(rank=rank, world_size=2, shuffle=shuffle, even=even), 4)
            heads, states = heads + head, [*states, state]
        for rank in range(3):
            run = pipeline.eager(rank=rank, world_size=3, shuffle=shuffle, even=even)
            run.load_state_dict(states)
            rests += list(run)

        got = sorted(heads + rests)
        assert len(got) == len(set(got))
        assert not set(got) - {number for number in range(47) if number % 3}
        assert 31 - len(got) < (5 if even else 1)

    def test_of_a_shuffled_pass_that_skips_damage_are_refused(self, tmp_path: Path) -> None:
        urls = counted(tmp_path, [9, 9], "tar.gz").urls
        Path(urls[0]).write_bytes(Path(urls[0]).read_bytes()[:-20])
        pipeline = Pipeline(urls, "decode(cls)", select="cls", on_error="skip")
        states = [saved(pipeline.eager(rank=rank, world_size=2, shuffle=4), 3)[1] for rank in range(2)]
        run = pipeline.eager(shuffle=4)
        run.load_state_dict(states)

        with pytest.raises(UsageError, match="can be counted"):
            list(run)


class TestAnotherShard:
    @pytest.mark.parametrize("shuffle", [0, 9])
    def test_under_the_same_name_is_an_error(self, tmp_path: Path, shuffle: int) -> None:
        pipeline = counted(tmp_path, [30, 30])
        _, state = saved(pipeline.eager(shuffle=shuffle), 7)
        again = pipeline.eager(shuffle=shuffle)
        again.load_state_dict(state)
        for at in range(2):
            data = (tmp_path / f"n-{at}.tar").read_bytes()
            (tmp_path / f"n-{at}.tar").unlink()
            (tmp_path / f"n-{at}.tar").write_bytes(data)

        with pytest.raises(ChangedError, match="replaced since the state was saved") as caught:
            pipeline.eager(shuffle=shuffle).load_state_dict(state)
        assert "E_CHANGED" == caught.value.code

    def test_of_the_same_name_size_and_time_in_another_folder_is_an_error(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        states = []
        for folder in ("A", "B"):
            (tmp_path / folder).mkdir()
            counted(tmp_path / folder, [30])
            os.utime(tmp_path / folder / "n-0.tar", (1, 1))
            monkeypatch.chdir(tmp_path / folder)
            states.append(saved(Pipeline("n-0.tar", "decode(cls)", select="cls").eager(), 7)[1])

        with pytest.raises(ChangedError, match="replaced since the state was saved"):
            Pipeline("n-0.tar", "decode(cls)", select="cls").eager().load_state_dict(states[0])

    def test_that_was_not_open_is_none(self, tmp_path: Path) -> None:
        pipeline = counted(tmp_path, [30, 30])
        _, state = saved(pipeline.eager(), 7)
        (tmp_path / "n-1.tar").write_bytes((tmp_path / "n-1.tar").read_bytes())
        again = pipeline.eager()
        again.load_state_dict(state)

        assert list(range(7, 60)) == list(again)
