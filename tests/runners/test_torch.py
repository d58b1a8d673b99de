"""The torch runner: every record once, whatever workers and ranks there are, and exact resuming."""

from __future__ import annotations

import io
import itertools
import json
import pickle
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz.model.errors import DataError, UsageError
from tarviz.pipeline import Pipeline

torch = pytest.importorskip("torch", reason="torch: make test-torch")
from torch.utils.data import DataLoader  # noqa: E402

from tarviz.runners.torch import safe_context  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:W_EMPTY"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),  # more workers than processors are meant
]


def shard(path: Path, records: Iterable[tuple[str, dict[str, bytes]]]) -> str:
    """A tar of records: (key, field → payload); compressed when the name ends with gz."""
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as tar:
        for key, fields in records:
            for ext, data in fields.items():
                info = tarfile.TarInfo(f"{key}.{ext}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return str(path)


def counted(folder: Path, sizes: Iterable[int], suffix: str = "tar") -> str:
    """Shards of so many records; `cls` counts from 0 over all of them."""
    numbers = itertools.count()
    count = 0
    for at, size in enumerate(sizes):
        shard(folder / f"n-{at}.{suffix}", [(f"r{n:04d}", {"cls": b"%d" % n}) for n in itertools.islice(numbers, size)])
        count += 1
    return str(folder / f"n-{{0..{count - 1}}}.{suffix}") if count > 1 else str(folder / f"n-0.{suffix}")


def numbers(urls: Any, **options: Any) -> Pipeline:
    return Pipeline(urls, "decode(cls)", select="cls", **options)


def loaded(dataset: Any, **options: Any) -> Any:
    """A `DataLoader` whose workers are forked only when TensorFlow, of other tests, is not in this process."""
    if options.get("num_workers"):
        options.setdefault("multiprocessing_context", safe_context())
    return DataLoader(dataset, **options)


def drained(loader: Any) -> list[int]:
    return [int(value) for batch in loader for value in np.atleast_1d(batch)]


class TestValues:
    def test_they_are_the_eager_runners(self, tmp_path: Path) -> None:
        def picture(seed: int) -> bytes:
            stream = io.BytesIO()
            Image.fromarray(np.random.default_rng(seed).integers(0, 256, (12, 10, 3), np.uint8)).save(stream, "jpeg")
            return stream.getvalue()

        path = shard(tmp_path / "a.tar", [(f"k{n}", {"jpg": picture(n), "cls": b"%d" % n}) for n in range(40)])
        pipeline = Pipeline(path, "decode(jpg)|flip(jpg)|rotate(jpg)|decode(cls)", select=("jpg", "cls", "__key__"), seed=3)
        for (image, cls, key), (other, number, name) in zip(pipeline, pipeline.torch(), strict=True):
            np.testing.assert_array_equal(image, other)
            assert isinstance(other, np.ndarray)
            assert (cls, key) == (number, name)

        images, labels, keys = next(iter(loaded(pipeline.torch(), batch_size=8)))
        assert (torch.uint8, (8, 12, 10, 3)) == (images.dtype, tuple(images.shape))
        assert list(range(8)) == labels.tolist()
        assert [f"k{n}" for n in range(8)] == list(keys)

    def test_epochs_shuffle_anew_and_repeat(self, tmp_path: Path) -> None:
        dataset = numbers(counted(tmp_path, [60])).torch(shuffle=30)
        first = drained(dataset)
        dataset.set_epoch(1)
        second = drained(dataset)

        assert list(range(60)) == sorted(first) == sorted(second)
        assert first != second
        assert first + second == drained(numbers(tmp_path / "n-0.tar").torch(shuffle=30, repeat=2))


class TestWorkers:
    @pytest.mark.parametrize("workers", [0, 1, 2, 3, 5])
    @pytest.mark.parametrize("sizes", [[100], [0, 7, 1, 50], [5] * 8, [1], [0, 3]])
    def test_every_record_comes_once(self, tmp_path: Path, workers: int, sizes: list[int]) -> None:
        dataset = numbers(counted(tmp_path, sizes)).torch()
        loader = loaded(dataset, batch_size=4, num_workers=workers)

        assert list(range(sum(sizes))) == sorted(drained(loader)) == sorted(drained(loader))

    @pytest.mark.parametrize("suffix", ["tar.gz", "tar"])
    def test_workers_take_turns_where_ranges_are_not_known(self, tmp_path: Path, suffix: str) -> None:
        urls = counted(tmp_path, [100, 30], suffix)
        for options in ({}, {"on_error": "skip"}):
            loader = loaded(numbers(urls, **options).torch(), batch_size=None, num_workers=5)

            assert list(range(130)) == sorted(drained(loader))

    def test_ranks_share_too(self, tmp_path: Path) -> None:
        urls = counted(tmp_path, [33, 20])
        for world in (2, 3):
            ranks = [drained(loaded(numbers(urls).torch(rank=rank, world_size=world), num_workers=2)) for rank in range(world)]

            assert all(ranks)
            assert list(range(53)) == sorted(itertools.chain.from_iterable(ranks))

    def test_spawned_workers_get_it_pickled(self, tmp_path: Path) -> None:
        loader = loaded(numbers(counted(tmp_path, [20])).torch(), batch_size=5, num_workers=2, multiprocessing_context="spawn")

        assert list(range(20)) == sorted(drained(loader))

    def test_workers_that_persist_see_the_epoch(self, tmp_path: Path) -> None:
        dataset = numbers(counted(tmp_path, [64])).torch(shuffle=64)
        loader = loaded(dataset, batch_size=4, num_workers=1, persistent_workers=True)
        first = drained(loader)
        dataset.set_epoch(1)
        second = drained(loader)

        assert first != second
        dataset.set_epoch(0)
        assert first == drained(loader)

    def test_an_error_names_its_record(self, tmp_path: Path) -> None:
        path = shard(tmp_path / "a.tar", [(f"k{n}", {"cls": b"%d" % n if n != 7 else b"x"}) for n in range(20)])
        values = []
        with pytest.raises(DataError, match=r'a\.tar.*record "k7"') as caught:
            values.extend(numbers(path).torch())
        assert caught.value.offset is not None

        with pytest.raises(Exception, match=r'a\.tar.*record "k7"'):
            drained(loaded(numbers(path).torch(), num_workers=2))

    def test_skipped_records_are_counted(self, tmp_path: Path) -> None:
        path = shard(tmp_path / "a.tar", [(f"k{n}", {"cls": b"%d" % n if n % 5 else b"x"}) for n in range(20)])
        dataset = numbers(path, on_error="skip").torch()

        assert [n for n in range(20) if n % 5] == drained(dataset)
        assert {"E_DECODE": 4} == dataset.report.counts()


class TestResuming:
    @pytest.mark.parametrize("options", [{}, {"shuffle": 20}, {"repeat": 2}])
    def test_behind_any_record_in_this_process(self, tmp_path: Path, options: dict[str, Any]) -> None:
        pipeline = numbers(counted(tmp_path, [17, 0, 1, 20]))
        whole = drained(pipeline.torch(**options))
        for cut in range(0, len(whole) + 1, 1 if not options else 5):
            dataset = pipeline.torch(**options)
            run = iter(dataset)
            head = list(itertools.islice(run, cut))
            state = json.loads(json.dumps(dataset.state_dict()))
            again = pipeline.torch(**options)
            again.load_state_dict(state)

            assert whole == head + drained(again)
            again.set_epoch(0)
            assert whole == drained(again)  # a state is used once

    @pytest.mark.parametrize("workers", [0, 1, 2, 4])
    @pytest.mark.parametrize("sizes", [[60], [20, 3, 0, 31, 6]])
    @pytest.mark.parametrize("options", [{}, {"shuffle": 10, "repeat": 2}])
    def test_behind_any_batch_of_a_loader(self, tmp_path: Path, workers: int, sizes: list[int], options: dict[str, Any]) -> None:
        pipeline = numbers(counted(tmp_path, sizes))

        def loader() -> Any:
            return pipeline.torch(**options).loader(4, num_workers=workers)

        batches = [batch.tolist() for batch in loader()]
        assert sorted([*range(sum(sizes))] * options.get("repeat", 1)) == sorted(itertools.chain.from_iterable(batches))
        for cut in {0, 1, 2, 7, len(batches) // 2, len(batches) - 1, len(batches)}:
            first = loader()
            head = [batch.tolist() for batch in itertools.islice(first, cut)]
            state = json.dumps(first.state_dict())
            again = loader()
            again.load_state_dict(json.loads(state))

            assert batches == head + [batch.tolist() for batch in again]
            assert len(state) < 4096

    def test_a_resumed_loader_can_be_resumed(self, tmp_path: Path) -> None:
        pipeline = numbers(counted(tmp_path, [40, 9, 30]))
        whole = [batch.tolist() for batch in pipeline.torch().loader(3, num_workers=2)]
        got: list[Any] = []
        state = None
        while True:
            loader = pipeline.torch().loader(3, num_workers=2)
            if state is not None:
                loader.load_state_dict(state)
            part = [batch.tolist() for batch in itertools.islice(loader, 5)]
            got += part
            state = loader.state_dict()
            if not part:
                break

        assert whole == got

    def test_without_records_in_bad_shards(self, tmp_path: Path) -> None:
        path = shard(tmp_path / "a.tar", [(f"k{n}", {"cls": b"%d" % n if n % 4 else b"x"}) for n in range(40)])
        pipeline = numbers(path, on_error="skip")
        whole = drained(pipeline.torch())
        for cut in (0, 1, 13, len(whole)):
            dataset = pipeline.torch()
            head = list(itertools.islice(dataset, cut))
            again = pipeline.torch()
            again.load_state_dict(dataset.state_dict())

            assert whole == head + drained(again)

    def test_a_state_of_another_pipeline_is_refused(self, tmp_path: Path) -> None:
        urls = counted(tmp_path, [40])
        state = numbers(urls).torch(shuffle=4).state_dict()

        for other in (numbers(urls).torch(), numbers(urls, seed=1).torch(shuffle=4), numbers([urls, urls]).torch(shuffle=4)):
            with pytest.raises(UsageError, match="the state is of a pipeline with"):
                other.load_state_dict(state)
        with pytest.raises(UsageError, match="not a state"):
            numbers(urls).torch().load_state_dict({"epoch": 0, "slots": 1})


class TestDataset:
    def test_its_length_is_known_from_an_index(self, tmp_path: Path) -> None:
        import tarviz

        urls = counted(tmp_path, [40, 3])
        dataset = numbers(urls).torch(repeat=2)
        assert dataset
        with pytest.raises(TypeError):
            len(dataset)

        tarviz.index(urls)

        assert 86 == len(dataset) == len(drained(dataset))

    def test_it_pickles(self, tmp_path: Path) -> None:
        dataset = numbers(counted(tmp_path, [4])).torch(epoch=3)

        assert 3 == pickle.loads(pickle.dumps(dataset)).epoch
        assert "n-0.tar" in repr(dataset)

    @pytest.mark.parametrize("options", [{"rank": 1}, {"rank": 2, "world_size": 2}, {"shuffle": -1}, {"repeat": 1.5}])
    def test_arguments_that_cannot_work(self, tmp_path: Path, options: dict[str, Any]) -> None:
        with pytest.raises(UsageError):
            numbers(counted(tmp_path, [4])).torch(**options)
