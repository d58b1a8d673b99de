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

from tarviz.model.errors import ChangedError, DataError, NotFoundError, UsageError
from tarviz.ops import Decode, Func, Rotate
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


def pictured(record: dict[str, Any]) -> None:
    record["image"] = np.arange(432, dtype=np.uint16).astype(np.uint8).reshape(12, 12, 3)


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

    def test_a_loader_made_of_its_attributes_gives_the_same_batches(self, tmp_path: Path) -> None:
        loader = numbers(counted(tmp_path, [20])).torch().loader(5)
        rebuilt = DataLoader(loader.dataset, batch_size=loader.batch_size, collate_fn=loader.collate_fn)

        assert [batch.tolist() for batch in loader] == [batch.tolist() for batch in rebuilt]

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

        with pytest.raises(DataError, match=r'a\.tar.*record "k7"') as sent:
            drained(loaded(numbers(path).torch(), num_workers=2))
        assert caught.value.to_dict() == sent.value.to_dict()
        assert "E_DECODE" == sent.value.code
        assert type(sent.value) is DataError
        assert "Original Traceback" in sent.value.__notes__[0]

    def test_an_error_of_the_store_arrives_as_it_is(self, tmp_path: Path) -> None:
        path = counted(tmp_path, [4])
        dataset = numbers(path).torch()
        Path(path).unlink()

        with pytest.raises(NotFoundError) as caught:
            drained(loaded(dataset, num_workers=1))
        assert "E_NOT_FOUND" == caught.value.code

    def test_skipped_records_are_counted(self, tmp_path: Path) -> None:
        path = shard(tmp_path / "a.tar", [(f"k{n}", {"cls": b"%d" % n if n % 5 else b"x"}) for n in range(20)])
        dataset = numbers(path, on_error="skip").torch()

        assert [n for n in range(20) if n % 5] == drained(dataset)
        assert {"E_DECODE": 4} == dataset.report.counts()


class TestEpochs:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"num_workers": 2},
            {"num_workers": 2, "persistent_workers": True},
            pytest.param({"num_workers": 1, "multiprocessing_context": "spawn"}, marks=pytest.mark.slow),
            pytest.param({"num_workers": 1, "multiprocessing_context": "forkserver", "persistent_workers": True}, marks=pytest.mark.slow),
        ],
        ids=str,
    )
    def test_every_iter_is_a_new_one(self, tmp_path: Path, options: dict[str, Any]) -> None:
        pipeline = Pipeline(counted(tmp_path, [20, 20, 24]), [Decode("cls"), Func(pictured), Rotate("image")], select=("cls", "image"))
        loader = loaded(pipeline.torch(shuffle=64), batch_size=None, **options)
        epochs = [[(int(number), bytes(image.numpy())) for number, image in loader] for _ in range(2)]

        assert all(list(range(64)) == sorted(number for number, _ in epoch) for epoch in epochs)
        assert [number for number, _ in epochs[0]] != [number for number, _ in epochs[1]]
        assert not set(epochs[0]) & set(epochs[1])  # all drawn anew

    @pytest.mark.parametrize("workers", [0, 2])
    def test_one_that_is_left_early_counts(self, tmp_path: Path, workers: int) -> None:
        loader = loaded(numbers(counted(tmp_path, [64])).torch(shuffle=64), num_workers=workers)
        firsts = [next(iter(loader)).item() for _ in range(6)]

        assert len(set(firsts)) > 1

    def test_seeding_torch_alike_before_each_changes_nothing(self, tmp_path: Path) -> None:
        loader = loaded(numbers(counted(tmp_path, [64])).torch(shuffle=64), num_workers=2)
        orders = []
        for _ in range(3):
            torch.manual_seed(0)
            orders.append(drained(loader))

        assert orders[0] != orders[1] != orders[2] != orders[0]

    @pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}], ids=str)
    def test_set_epoch_pins_one(self, tmp_path: Path, options: dict[str, Any]) -> None:
        dataset = numbers(counted(tmp_path, [64])).torch(shuffle=64)
        loader = loaded(dataset, **options)
        orders = [drained(loader) for _ in range(3)]
        dataset.set_epoch(1)
        assert orders[1] == drained(loader) == drained(loader)

        dataset.set_epoch(None)
        assert orders[2] == drained(loader)
        assert 3 == dataset.epoch

    def test_loaders_of_other_numbers_of_workers_go_on(self, tmp_path: Path) -> None:
        dataset = numbers(counted(tmp_path, [64])).torch(shuffle=64)
        seen = []
        for workers in (1, 3, 0, 2):
            seen.append(dataset.epoch)
            drained(loaded(dataset, num_workers=workers))

        assert [0, 1, 2, 3] == seen

    def test_passes_of_one_iter_are_epochs_too(self, tmp_path: Path) -> None:
        dataset = numbers(counted(tmp_path, [64])).torch(shuffle=64, repeat=2)
        loader = loaded(dataset, num_workers=1)
        first, second = drained(loader), drained(loader)

        assert 4 == len({tuple(part) for part in (first[:64], first[64:], second[:64], second[64:])})
        assert 4 == dataset.epoch


class TestRanks:
    @pytest.mark.parametrize("world", [2, pytest.param(4, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("workers", [0, 1, 2, pytest.param(5, marks=pytest.mark.slow)])
    @pytest.mark.parametrize(("shards", "reshare"), [(1, False), (4, False), (4, True), (12, False)])
    def test_each_record_comes_once_an_epoch_in_a_new_order(
        self, tmp_path: Path, world: int, workers: int, shards: int, reshare: bool
    ) -> None:
        urls = counted(tmp_path, [96 // shards] * shards)
        torch.manual_seed(0)
        loaders = [
            loaded(
                numbers(urls).torch(rank=rank, world_size=world, shuffle=50, reshare=reshare),
                batch_size=4,
                num_workers=workers,
                persistent_workers=workers > 0,
            )
            for rank in range(world)
        ]
        orders = []
        for _ in range(3):
            orders.append([drained(loader) for loader in loaders])

            assert list(range(96)) == sorted(itertools.chain.from_iterable(orders[-1]))
        for rank in range(world):
            assert orders[0][rank] != orders[1][rank] != orders[2][rank]

    def test_they_are_those_of_the_environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        urls = counted(tmp_path, [5, 5])
        dataset = numbers(urls).torch()
        monkeypatch.setenv("RANK", "1")
        monkeypatch.setenv("WORLD_SIZE", "2")

        assert list(range(5, 10)) == drained(dataset) == drained(loaded(dataset, num_workers=1))
        assert list(range(10)) == drained(numbers(urls).torch(rank=0, world_size=1))

    def test_they_are_those_of_torch_distributed(self, tmp_path: Path) -> None:
        urls = counted(tmp_path, [5, 5, 5])
        processes = torch.multiprocessing.get_context(safe_context() or "fork")
        answers = processes.Queue()
        running = [processes.Process(target=_rank, args=(rank, str(tmp_path / "store"), urls, answers)) for rank in range(2)]
        for process in running:
            process.start()
        parts = dict(answers.get(timeout=60) for _ in running)
        for process in running:
            process.join()

        assert {0: [0, 1, 2, 3, 4, 10, 11, 12, 13, 14], 1: [5, 6, 7, 8, 9]} == parts

    def test_even_ones_have_as_many_batches(self, tmp_path: Path) -> None:
        urls = counted(tmp_path, [33, 20, 4])
        for workers in (0, 2):
            ranks = [numbers(urls).torch(rank=rank, world_size=4, even=True) for rank in range(4)]
            batches = [[len(batch) for batch in loaded(dataset, batch_size=4, num_workers=workers)] for dataset in ranks]

            assert [batches[0]] * 4 == batches
            assert [14] * 4 == [len(dataset) for dataset in ranks] == [sum(sizes) for sizes in batches]

    @pytest.mark.parametrize("workers", [0, 2])
    def test_one_without_a_shard_is_an_error(self, tmp_path: Path, workers: int) -> None:
        dataset = numbers(counted(tmp_path, [9], "tar.gz")).torch(rank=1, world_size=2)

        with pytest.raises(UsageError, match="rank 1 is without a shard"):
            drained(loaded(dataset, num_workers=workers))


def _rank(rank: int, store: str, urls: str, answers: Any) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    answers.put((rank, [int(number) for number in DataLoader(numbers(urls).torch(), batch_size=None)]))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


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

    @pytest.mark.parametrize(("before", "behind"), [(2, 3), (3, 0), (0, 2)])
    @pytest.mark.parametrize("options", [{}, {"shuffle": 10, "repeat": 2}], ids=str)
    def test_with_another_number_of_workers(self, tmp_path: Path, before: int, behind: int, options: dict[str, Any]) -> None:
        pipeline = numbers(counted(tmp_path, [20, 3, 2, 31]))
        expected = sorted([*range(56)] * options.get("repeat", 1))
        for cut in (5,):
            first = pipeline.torch(**options).loader(4, num_workers=before)
            got = [batch.tolist() for batch in itertools.islice(first, cut)]
            second = pipeline.torch(**options).loader(4, num_workers=behind)
            second.load_state_dict(json.loads(json.dumps(first.state_dict())))
            got += [batch.tolist() for batch in itertools.islice(second, 3)]
            third = pipeline.torch(**options).loader(4, num_workers=before)
            third.load_state_dict(json.loads(json.dumps(second.state_dict())))
            got += [batch.tolist() for batch in third]

            assert expected == sorted(itertools.chain.from_iterable(got))

    def test_with_another_number_of_ranks(self, tmp_path: Path) -> None:
        pipeline = numbers(counted(tmp_path, [20, 3, 2, 31]))
        got: list[Any] = []
        states = []
        for rank in range(2):
            loader = pipeline.torch(rank=rank, world_size=2).loader(4, num_workers=2)
            got += [batch.tolist() for batch in itertools.islice(loader, 2)]
            states.append(loader.state_dict())
        for rank in range(3):
            loader = pipeline.torch(rank=rank, world_size=3).loader(4, num_workers=1)
            loader.load_state_dict(states)
            got += [batch.tolist() for batch in loader]

        assert list(range(56)) == sorted(itertools.chain.from_iterable(got))

    @pytest.mark.parametrize("persistent", [False, True])
    def test_the_iteration_behind_a_resumed_one_is_whole_and_new(self, tmp_path: Path, persistent: bool) -> None:
        pipeline = numbers(counted(tmp_path, [40]))

        def made() -> Any:
            return pipeline.torch(shuffle=40).loader(4, num_workers=2, persistent_workers=persistent)

        straight = made()
        epochs = [[batch.tolist() for batch in straight] for _ in range(3)]
        first = made()
        list(first)
        list(itertools.islice(first, 3))
        state = first.state_dict()
        list(itertools.islice(first, 2))  # workers that persist have gone on
        for again in (made(), first):
            again.load_state_dict(state)
            rest = [[batch.tolist() for batch in again] for _ in range(2)]

            assert epochs[1][3:] == rest[0]
            assert epochs[2] == rest[1]

    def test_what_is_loaded_stands_in_place_of_an_iteration_that_has_begun(self, tmp_path: Path) -> None:
        dataset = numbers(counted(tmp_path, [40, 40])).torch()
        began = itertools.islice(dataset, 70)
        list(itertools.islice(began, 10))
        early = dataset.state_dict()
        list(began)
        dataset.load_state_dict(early)

        assert early == dataset.state_dict()
        assert list(range(10, 80)) == drained(dataset)

    def test_by_a_plain_loader_it_is_used_once(self, tmp_path: Path) -> None:
        pipeline = numbers(counted(tmp_path, [40, 40]))
        dataset = pipeline.torch()
        list(itertools.islice(dataset, 30))
        again = pipeline.torch()
        again.load_state_dict(dataset.state_dict())
        loader = loaded(again, num_workers=2)

        assert list(range(30, 80)) == sorted(drained(loader))
        assert list(range(80)) == sorted(drained(loader))

    def test_by_this_process_and_by_workers_states_are_alike(self, tmp_path: Path) -> None:
        pipeline = numbers(counted(tmp_path, [40, 40]))
        run = pipeline.eager()
        list(itertools.islice(run, 30))
        loader = pipeline.torch().loader(5, num_workers=2)
        loader.load_state_dict(run.state_dict())

        assert list(range(30, 80)) == sorted(itertools.chain.from_iterable(batch.tolist() for batch in loader))

    def test_a_shard_that_was_replaced_is_an_error(self, tmp_path: Path) -> None:
        path = Path(counted(tmp_path, [40]))
        pipeline = numbers(path)
        for workers in (0, 2):
            loader = pipeline.torch().loader(4, num_workers=workers)
            list(itertools.islice(loader, 3))
            state = loader.state_dict()
            data = path.read_bytes()
            path.unlink()
            path.write_bytes(data)

            with pytest.raises(ChangedError, match="replaced since the state was saved"):
                pipeline.torch().loader(4, num_workers=workers).load_state_dict(state)

    def test_a_state_of_another_pipeline_is_refused(self, tmp_path: Path) -> None:
        urls = counted(tmp_path, [40])
        state = numbers(urls).torch(shuffle=4).state_dict()

        for other in (numbers(urls).torch(), numbers(urls, seed=1).torch(shuffle=4), numbers([urls, urls]).torch(shuffle=4)):
            with pytest.raises(UsageError, match="the state is of a pipeline with"):
                other.load_state_dict(state)
        with pytest.raises(UsageError, match="not a state"):
            numbers(urls).torch().load_state_dict({"epoch": 0, "slots": 1})


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")  # torchdata 0.11 on torch 2.13
class TestStatefulDataLoader:
    """torchdata's loader asks the data set in each worker for its state."""

    @pytest.mark.parametrize(("workers", "options"), [(0, {"shuffle": 10}), (2, {}), (2, {"shuffle": 10})], ids=str)
    def test_it_goes_on_behind_any_batch(self, tmp_path: Path, workers: int, options: dict[str, Any]) -> None:
        stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata: pip install 'tarviz[torch]' torchdata")
        pipeline = numbers(counted(tmp_path, [20, 3, 2, 31]))

        def made() -> Any:
            context = safe_context() if workers else None
            return stateful.StatefulDataLoader(
                pipeline.torch(**options), batch_size=4, num_workers=workers, multiprocessing_context=context
            )

        straight = made()
        epochs = [[batch.tolist() for batch in straight] for _ in range(2)]
        assert epochs[0] != epochs[1] or not options
        for cut in (6, len(epochs[0])):
            first = made()
            head = [batch.tolist() for batch in itertools.islice(first, cut)]
            state = first.state_dict()
            again = made()
            again.load_state_dict(state)
            rest = [batch.tolist() for batch in again]

            if cut == len(epochs[0]):  # torchdata begins the next epoch where one was over
                rest = [] if rest == epochs[1] else rest
            assert epochs[0] == head + rest


class TestByNumber:
    def test_loaders_and_samplers_take_it(self, tmp_path: Path) -> None:
        view = numbers(counted(tmp_path, [20, 0, 31])).indexed()
        mixed = drained(loaded(view, batch_size=8, shuffle=True, num_workers=2))
        ranks = [torch.utils.data.DistributedSampler(view, num_replicas=3, rank=rank, shuffle=True) for rank in range(3)]

        assert list(range(51)) == sorted(mixed)
        assert list(range(51)) != mixed
        parts = [drained(DataLoader(view, batch_size=5, sampler=sampler)) for sampler in ranks]
        assert list(range(51)) == sorted(itertools.chain.from_iterable(parts))


class TestDataset:
    @pytest.mark.parametrize("options", [{"batch": 8}, {"num_workers": 2}, {"drop_remainder": True}])
    def test_what_is_the_loaders_is_told(self, tmp_path: Path, options: dict[str, Any]) -> None:
        with pytest.raises(UsageError, match=r"has no option .*DataLoader\(pipeline.torch\(\), batch_size=8"):
            numbers(counted(tmp_path, [4])).torch(**options)

    def test_its_length_is_known_of_plain_local_shards(self, tmp_path: Path) -> None:
        dataset = numbers(counted(tmp_path, [40, 3])).torch(repeat=2)

        assert dataset
        assert 86 == len(dataset) == len(drained(dataset))

    def test_it_pickles(self, tmp_path: Path) -> None:
        dataset = numbers(counted(tmp_path, [4])).torch(epoch=3)

        assert 3 == pickle.loads(pickle.dumps(dataset)).epoch
        assert "n-0.tar" in repr(dataset)

    @pytest.mark.parametrize("options", [{"rank": 1}, {"rank": 2, "world_size": 2}, {"shuffle": -1}, {"repeat": 1.5}])
    def test_arguments_that_cannot_work(self, tmp_path: Path, options: dict[str, Any]) -> None:
        with pytest.raises(UsageError):
            numbers(counted(tmp_path, [4])).torch(**options)
