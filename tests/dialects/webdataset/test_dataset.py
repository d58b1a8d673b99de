"""`WebDataset`: what it yields, held against webdataset itself; shuffling, workers, state, and clear errors."""

from __future__ import annotations

import io
import itertools
import json
import random
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarviz.dialects.webdataset as wds
from tarviz.dialects.webdataset.parts.places import Passes, WorkerPlace
from tarviz.dialects.webdataset.parts.source import shares
from tarviz.model.errors import DataError, SchemaError, TarvizError, TarvizWarning, UsageError
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.samples import write_shard
from tests.conftest import DATA, each_case

Shards = Callable[..., str]
peer = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # webdataset leaves its files open


@pytest.fixture
def shards(tmp_path: Path) -> Shards:
    """Makes `count` records of `cls` (0, 1, …) and `txt` in so many shards; returns their template."""

    def make(count: int, number: int = 2, suffix: str = "tar") -> str:
        bounds = np.linspace(0, count, number + 1).astype(int).tolist()
        for shard, (first, last) in enumerate(itertools.pairwise(bounds)):
            write_shard(
                tmp_path / f"s-{shard}.{suffix}", ((f"k{n:05d}", {"cls": b"%d" % n, "txt": b"no %d" % n}) for n in range(first, last))
            )
        return str(tmp_path / (f"s-{{0..{number - 1}}}.{suffix}" if number > 1 else f"s-0.{suffix}"))

    return make


def numbers(dataset: Any) -> list[int]:
    return [int(sample["cls"]) for sample in dataset]


class TestSamples:
    @peer
    def test_a_sample_is_what_webdataset_yields(self, photos: Path) -> None:
        theirs = pytest.importorskip("webdataset")
        url = str(photos / "photos-{0000..0001}.tar")

        assert list(theirs.WebDataset(url, shardshuffle=False)) == list(wds.WebDataset(url))

    @peer
    @pytest.mark.parametrize("name", ["sample.tgz", "compressed.tar", "testgz-40.tar", "mpdata.tar", "tendata-8.tar", "tarproc-sample.tar"])
    def test_shards_of_webdatasets_own_tests_read_the_same(self, name: str) -> None:
        theirs = pytest.importorskip("webdataset")
        path = DATA / "corpora/webdataset" / name

        expected = list(theirs.WebDataset(str(path), shardshuffle=False, empty_check=False))
        actual = list(wds.WebDataset(str(path), empty_check=False))

        assert [dict(sample) for sample in expected] == actual

    def test_records_whose_fields_differ_keep_their_own(self, tmp_path: Path) -> None:
        write_shard(tmp_path / "a.tar", [("a", {"cls": b"1"}), ("b", {"txt": b"x", "cls": b"2"})])

        first, second = wds.WebDataset(str(tmp_path / "a.tar"))

        assert ["__key__", "__url__", "cls", "__local_path__"] == list(first)
        assert (b"x", b"2") == (second["txt"], second["cls"])

    def test_lists_joined_by_colons_and_file_urls_are_understood(self, shards: Shards) -> None:
        url = shards(10)
        one, two = url.replace("{0..1}", "0"), url.replace("{0..1}", "1")

        assert list(range(10)) == numbers(wds.WebDataset(f"{one}::file:{two}"))
        assert list(range(10)) == numbers(wds.WebDataset([one, Path(two)]))

    def test_select_files_leaves_members_out(self, shards: Shards) -> None:
        dataset = wds.WebDataset(shards(4), select_files=lambda name: name.endswith(".cls"))

        assert {"__key__", "__url__", "cls", "__local_path__"} == set(next(iter(dataset)))

    @pytest.mark.parametrize("chosen", [None, lambda name: name.endswith("bin")])
    def test_long_samples_are_not_made_before_their_turn(self, tmp_path: Path, chosen: Callable[[str], bool] | None) -> None:
        size, count = 100_000, 60  # six megabytes: one block
        write_shard(tmp_path / "s.tar", ((f"k{n:02d}", {"bin": bytes([n]) * size, "cls": b"%d" % n}) for n in range(count)))
        dataset = wds.WebDataset(str(tmp_path / "s.tar"), select_files=chosen)
        assert list(range(count)) == [sample["bin"][-1] for sample in dataset]  # the block's memory is kept from now on

        tracemalloc.start()
        try:
            assert count == sum(1 for _ in dataset)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

        assert most < 10 * size

    def test_two_iterations_yield_the_same_records(self, shards: Shards) -> None:
        dataset = wds.WebDataset(shards(50))

        assert [] != list(dataset) == list(dataset)


class TestTheApiOf2019:
    def test_extensions_make_tuples_decoded_to_floats(self, photos: Path) -> None:
        image, cls = next(iter(wds.WebDataset(str(photos / "photos-0000.tar"), extensions="jpg cls")))

        assert (np.float32, 3) == (image.dtype, image.ndim)
        assert 0 <= image.min() < image.max() <= 1
        assert isinstance(cls, int)

    def test_decoder_none_gives_bytes(self, shards: Shards) -> None:
        assert (b"0", b"no 0") == next(iter(wds.WebDataset(shards(3), extensions="cls txt", decoder=None)))

    def test_alternatives_take_the_first_that_is_there(self, tmp_path: Path) -> None:
        write_shard(tmp_path / "a.tar", [("a", {"b": b"B", "c": b"C"}), ("d", {"c": b"D"})])

        assert [(b"B",), (b"D",)] == list(wds.WebDataset(str(tmp_path / "a.tar"), extensions="b;c", decoder=None))

    def test_a_dict_or_a_function_decodes(self, shards: Shards) -> None:
        url = shards(3)

        assert [(-0,), (-1,), (-2,)] == list(wds.WebDataset(url, extensions="cls", decoder={"cls": lambda data: -int(data)}))
        assert [(0,), (1,), (2,)] == list(wds.WebDataset(url, extensions="n", decoder=lambda sample: {"n": int(sample["cls"])}))

    def test_transforms_belong_to_their_places(self, shards: Shards) -> None:
        dataset = wds.WebDataset(shards(3), extensions="txt cls", transforms=[str.upper, lambda cls: cls - 1])

        assert ("NO 0", -1) == next(iter(dataset))

    @pytest.mark.parametrize("size", [2, 50, 99, 100, 1000])
    def test_shuffle_of_any_size_yields_every_record_once(self, shards: Shards, size: int) -> None:
        found = numbers(wds.WebDataset(shards(501, 3), shuffle=size, decoder=None))

        assert list(range(501)) == sorted(found) != found

    def test_size_epochs_pipeline_and_associate(self, shards: Shards) -> None:
        url = shards(4)

        assert 7 == len(wds.WebDataset(url, size=7))
        assert 8 == len(list(wds.WebDataset(url, epochs=2)))
        assert [1, 3] == list(wds.WebDataset(url, pipeline=lambda source: (int(s["cls"]) for s in source if int(s["cls"]) % 2)))
        assert ["x", None, None, None] == [s.get("extra") for s in wds.WebDataset(url, associate={"k00000": {"extra": "x"}})]


class TestTheApiOfToday:
    @peer
    def test_it_yields_what_webdataset_yields(self, photos: Path) -> None:
        theirs = pytest.importorskip("webdataset")
        url = str(photos / "photos-{0000..0001}.tar")

        def chained(dataset: Any) -> Any:
            return dataset.decode("rgb8").rename(image="jpg").to_tuple("image", "cls", "__key__").map_tuple(lambda image: image[:64, :64])

        expected, actual = list(chained(theirs.WebDataset(url, shardshuffle=False))), list(chained(wds.WebDataset(url)))

        assert len(expected) == len(actual) == 24
        for (image, *rest), (other, *others) in zip(expected, actual, strict=True):
            assert rest == others
            assert image.dtype == other.dtype
            assert np.abs(image.astype(int) - other).max() <= 1

    @peer
    @pytest.mark.parametrize(
        "chain",
        [
            lambda d: d.map(lambda s: None if b"1" in s["cls"] else s),
            lambda d: d.select(lambda s: int(s["cls"]) % 3 == 0),
            lambda d: d.map_dict(cls=int, txt=len),
            lambda d: d.rename(label="cls", keep=True),
            lambda d: d.rename(label="none;cls", keep=False),
            lambda d: d.rename_keys(("label", "*cls")),
            lambda d: d.rename_keys(label="*cls", keep_unselected=True),
            lambda d: d.extract_keys("*.cls", "txt"),
            lambda d: d.to_tuple("cls txt"),
            lambda d: d.to_tuple("none;cls", "txt"),
            lambda d: d.to_tuple("cls", "txt").map_tuple(int),
            lambda d: d.slice(3, 9, 2),
            lambda d: d.listed(4),
            lambda d: d.listed(4).unlisted(),
            lambda d: d.decode().to_tuple("cls", "txt").batched(4).map(lambda b: (b[0].tolist(), b[1])),
            lambda d: d.decode().to_tuple("cls", "txt").batched(4, partial=False).unbatched(),
            lambda d: d.decode(only="cls").map(lambda s: (s["cls"], s["txt"])),
        ],
    )
    def test_each_stage_does_what_webdatasets_does(self, shards: Shards, chain: Callable[[Any], Any]) -> None:
        theirs = pytest.importorskip("webdataset")
        url = shards(22)

        assert list(chain(theirs.WebDataset(url, shardshuffle=False))) == list(chain(wds.WebDataset(url)))

    def test_shuffle_depends_on_seed_and_pass_alone(self, shards: Shards) -> None:
        url = shards(300, 4)
        one, two = (wds.WebDataset(url, shardshuffle=True, seed=3).shuffle(50) for _ in range(2))
        first, second = numbers(one), numbers(one)

        assert sorted(first) == sorted(second) == list(range(300))
        assert first != second
        assert first == numbers(two)

    def test_rsample_keeps_a_share(self, shards: Shards) -> None:
        assert 380 < len(list(wds.WebDataset(shards(1000)).rsample(0.45))) < 520

    def test_epochs_have_the_length_that_is_asked_for(self, shards: Shards) -> None:
        url = shards(10)

        assert [*range(10), *range(10), 0, 1, 2] == numbers(wds.WebDataset(url).with_epoch(23))
        assert [*range(10), *range(10)] == numbers(wds.WebDataset(url).repeat(2))
        assert 5 == len(wds.WebDataset(url).with_length(5))

    def test_resampled_goes_on_over_random_shards(self, shards: Shards) -> None:
        found = numbers(wds.WebDataset(shards(40, 4), resampled=True).with_epoch(100))

        assert 100 == len(found)
        assert len(set(found)) > 15

    def test_compose_takes_functions_on_iterators(self, shards: Shards) -> None:
        assert [0, 2] == list(wds.WebDataset(shards(4)).compose(lambda source: (int(s["cls"]) for s in source if int(s["cls"]) % 2 == 0)))

    def test_log_keys_writes_the_keys(self, shards: Shards, tmp_path: Path) -> None:
        list(wds.WebDataset(shards(2)).log_keys(str(tmp_path / "log")))

        assert "0\tNone\tNone\tk00000\n1\tNone\tNone\tk00001\n" == (tmp_path / "log").read_text()

    def test_only_what_to_tuple_asks_for_is_decoded(self, tmp_path: Path) -> None:
        write_shard(tmp_path / "a.tar", [("a", {"cls": b"1", "json": b"{broken", "pkl": b"\x80"})])

        assert [(1,)] == list(wds.WebDataset(str(tmp_path / "a.tar")).decode().to_tuple("cls"))

    def test_a_stage_leaves_the_data_set_before_it_alone(self, shards: Shards) -> None:
        dataset = wds.WebDataset(shards(4))
        dataset.slice(1)

        assert 4 == len(list(dataset))


class TestHandlers:
    def bad(self, sample: dict[str, Any]) -> dict[str, Any]:
        if sample["cls"] == b"2":
            raise RuntimeError("two")
        return sample

    def test_errors_of_a_function_are_raised_ignored_or_end_the_data(self, shards: Shards) -> None:
        dataset = wds.WebDataset(shards(5))

        with pytest.raises(RuntimeError, match="two"):
            list(dataset.map(self.bad))
        assert [0, 1, 3, 4] == numbers(dataset.map(self.bad, handler=wds.ignore_and_continue))
        assert [0, 1] == numbers(dataset.map(self.bad, handler=wds.ignore_and_stop))
        with pytest.warns(TarvizWarning, match="two"):
            assert [0, 1, 3, 4] == numbers(dataset.map(self.bad, handler=wds.warn_and_continue))

    def test_damage_is_raised_or_skipped_and_counted(self, shards: Shards) -> None:
        url = shards(20, 1)
        data = bytearray(Path(url).read_bytes())
        at = data.index(b"k00007.cls")
        data[at : at + 4] = b"XXXX"
        Path(url).write_bytes(data)

        with pytest.raises(DataError, match="E_CHECKSUM"):
            list(wds.WebDataset(url))
        dataset = wds.WebDataset(url, handler=wds.ignore_and_continue)
        with pytest.warns(TarvizWarning):
            found = numbers(dataset)
        assert {*range(20)} - {7} <= {*found, 6, 8}
        assert dataset.report.skipped

    def test_errors_false_is_the_old_word_for_it(self, shards: Shards, tmp_path: Path) -> None:
        url = shards(4, 1)
        Path(url).write_bytes(Path(url).read_bytes()[:3000])

        with pytest.warns(TarvizWarning):
            assert numbers(wds.WebDataset(url, errors=False))[:1] == [0]


class TestWorkers:
    @pytest.mark.parametrize(
        ("count", "number", "workers"), [(100, 4, 2), (100, 5, 2), (101, 1, 2), (101, 2, 5), (3, 1, 4), (1, 1, 3), (97, 3, 4)]
    )
    def test_every_record_comes_once(self, shards: Shards, count: int, number: int, workers: int) -> None:
        urls = sorted(str(path) for path in Path(shards(count, number)).parent.glob("s-*.tar"))
        found = [share for worker in range(workers) for share in shares(urls, worker, workers, ReadOptions())]

        total = [int(sample["cls"]) for url, first, last in found for sample in list(wds.WebDataset(url))[first:last]]
        assert list(range(count)) == sorted(total)

    @pytest.mark.torch
    @pytest.mark.filterwarnings("ignore:This DataLoader will create")
    @pytest.mark.parametrize(("number", "workers", "suffix"), [(4, 2, "tar"), (1, 2, "tar"), (2, 3, "tar")])
    def test_a_dataloader_yields_every_record_once(self, shards: Shards, number: int, workers: int, suffix: str) -> None:
        data = pytest.importorskip("torch.utils.data")
        dataset = wds.WebDataset(shards(203, number, suffix)).decode().to_tuple("cls", "txt")
        loader = data.DataLoader(dataset, batch_size=10, num_workers=workers)

        assert list(range(203)) == sorted(int(cls) for batch, _ in loader for cls in batch)

    @pytest.mark.torch
    def test_workers_of_a_dataloader_read_distinct_shards(self, shards: Shards) -> None:
        data = pytest.importorskip("torch.utils.data")
        dataset = wds.WebDataset(shards(40, 4)).map(shard_and_worker)

        found = list(data.DataLoader(dataset, batch_size=None, num_workers=2))

        assert {"0": {"0", "2"}, "1": {"1", "3"}} == {w: {s for s, worker in found if worker == w} for w in "01"}

    @pytest.mark.torch
    def test_shuffled_passes_of_a_dataloader_differ_and_are_complete(self, shards: Shards) -> None:
        torch = pytest.importorskip("torch")
        dataset = wds.WebDataset(shards(200, 4), shardshuffle=True).shuffle(40).map(lambda sample: int(sample["cls"]))
        loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2)
        torch.manual_seed(5)
        first, second = list(loader), list(loader)
        torch.manual_seed(5)

        assert sorted(first) == sorted(second) == list(range(200))
        assert first != second
        assert first == list(loader)

    def test_a_distributed_run_has_to_say_how_it_splits(self, shards: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
        url = shards(40, 4)
        monkeypatch.setenv("RANK", "1")
        monkeypatch.setenv("WORLD_SIZE", "2")

        with pytest.raises(UsageError, match="split_by_node"):
            list(wds.WebDataset(url))
        assert [*range(10, 20), *range(30, 40)] == numbers(wds.WebDataset(url, nodesplitter=wds.split_by_node))

    def test_what_several_workers_had_left_comes_in_turn(self, shards: Shards) -> None:
        dataset = wds.WebDataset(shards(40, 4))
        common = {name: value for name, value in dataset.state_dict().items() if name in ("epoch", "seed", "node", "nodes")}
        dataset.load_state_dict({"turn": 0, "workers": 3, "common": common, "states": {}})
        turns = itertools.zip_longest([*range(10), *range(30, 40)], range(10, 20), range(20, 30))

        assert [each for turn in turns for each in turn if each is not None] == numbers(dataset)
        assert list(range(40)) == numbers(dataset)

    def test_each_worker_of_each_rank_has_a_seed_of_its_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RANK", "1")
        monkeypatch.setenv("WORKER", "2")

        assert 1002 == wds.utils.pytorch_worker_seed()


def shard_and_worker(sample: dict[str, Any]) -> tuple[str, str]:
    from torch.utils.data import get_worker_info

    return sample["__url__"][-5], str(get_worker_info().id)


class TestState:
    CHAINS = (
        lambda d: d.map(lambda s: int(s["cls"])),
        lambda d: d.select(lambda s: int(s["cls"]) % 3).map(lambda s: int(s["cls"])).listed(4),
        lambda d: d.shuffle(20).map(lambda s: int(s["cls"])),
        lambda d: d.map(lambda s: int(s["cls"])).listed(4).unlisted().shuffle(7).listed(3),
    )

    @pytest.mark.parametrize("chain", CHAINS)
    @pytest.mark.parametrize("settings", [{}, {"shardshuffle": True}])
    def test_the_rest_comes_after_any_item(self, shards: Shards, chain: Callable[[Any], Any], settings: dict[str, Any]) -> None:
        url = shards(61, 3)
        whole = list(chain(wds.WebDataset(url, **settings)))
        for stop in {0, 1, 2, len(whole) // 2, len(whole) - 1, len(whole), *random.Random(0).sample(range(len(whole)), 3)}:
            dataset = chain(wds.WebDataset(url, **settings))
            run = iter(dataset)
            for _ in range(stop):
                next(run)
            state = json.dumps(dataset.state_dict())
            resumed = chain(wds.WebDataset(url, **settings))
            resumed.load_state_dict(json.loads(state))

            assert len(state) < 4096
            assert whole[stop:] == list(resumed)

    def test_the_pass_behind_a_resumed_one_is_the_next(self, shards: Shards) -> None:
        one, two = (wds.WebDataset(shards(30, 3), shardshuffle=True).shuffle(9) for _ in range(2))
        first, second = numbers(one), numbers(one)
        run = iter(two)
        assert first[:11] == [int(next(run)["cls"]) for _ in range(11)]
        two.load_state_dict(two.state_dict())

        assert first[11:] == numbers(two)
        assert second == numbers(two)

    def test_a_limit_over_several_passes_is_kept(self, shards: Shards) -> None:
        make = lambda: wds.WebDataset(shards(10), shardshuffle=True).with_epoch(35)  # noqa: E731
        whole, dataset, resumed = numbers(make()), make(), make()
        run = iter(dataset)
        for _ in range(27):
            next(run)
        resumed.load_state_dict(dataset.state_dict())

        assert whole[27:] == numbers(resumed)

    def test_ranks_go_on_with_the_states_of_all_of_them(self, shards: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
        url = shards(24, 4)

        def rank(node: int, nodes: int) -> Any:
            monkeypatch.setenv("RANK", str(node))
            monkeypatch.setenv("WORLD_SIZE", str(nodes))
            return wds.WebDataset(url, nodesplitter=wds.split_by_node)

        whole = [numbers(rank(node, 2)) for node in range(2)]
        states, taken = [], (5, 7)
        for node, count in enumerate(taken):
            run = iter(dataset := rank(node, 2))
            assert whole[node][:count] == [int(next(run)["cls"]) for _ in range(count)]
            states.append(dataset.state_dict())
        with pytest.raises(UsageError, match="the state is that of rank 0 of 2; this is rank 1 of 2"):
            rank(1, 2).load_state_dict(states[0])
        (again := rank(1, 2)).load_state_dict(states)
        assert whole[1][7:] == numbers(again)

        (alone := rank(0, 1)).load_state_dict(states)

        assert sorted(whole[0][5:] + whole[1][7:]) == sorted(numbers(alone))
        with pytest.raises(UsageError, match="state 0 of 2 is that of rank 1 of 2"):
            alone.load_state_dict(states[::-1])
        with pytest.raises(UsageError, match="state 0 of 1 is that of rank 0 of 2"):
            alone.load_state_dict(states[:1])
        with pytest.raises(UsageError, match="takes over only what split_by_node has split"):
            wds.WebDataset(url).load_state_dict(states)

    @pytest.mark.parametrize("begun", [False, True])
    def test_a_loader_of_a_rank_that_has_not_begun_says_no_place(self, shards: Shards, begun: bool) -> None:
        dataset = wds.WebDataset(shards(24, 4), nodesplitter=wds.split_by_node)
        fresh = {"turn": 0, "workers": 1, "common": {}, "states": {}}
        common = {"epoch": 3, "seed": "s", "node": 1, "nodes": 2}
        dataset.load_state_dict([fresh, {**fresh, "common": common} if begun else fresh])

        assert (3 if begun else 0) == dataset.epoch
        assert list(range(24)) == sorted(numbers(dataset))

    def test_a_state_of_something_else_is_refused(self, shards: Shards) -> None:
        with pytest.raises(UsageError, match="not a state of a WebDataset"):
            wds.WebDataset(shards(2)).load_state_dict({"epoch": 1})


class TestMisuse:
    @each_case(
        ("make", "message"),
        [
            (lambda url: wds.WebDataset(url, extension="jpg"), "Did you mean 'extensions'"),
            (lambda url: wds.WebDataset(url, opener=open), "opener is not offered"),
            (lambda url: wds.WebDataset(url, extensions="cls", decoder="rgb16"), "no image spec 'rgb16'"),
            (lambda url: wds.WebDataset(url, extensions="cls", decoder=3), "decoder=3"),
            (lambda url: wds.WebDataset(url, extensions="cls txt", transforms=[len]), "1 transforms for 2 extensions"),
            (lambda url: wds.WebDataset(url, extensions="cls txt", transforms=len), "1 transforms for 2 extensions"),
            (lambda url: wds.WebDataset(url, extensions="cls", transforms=["x"]), "a transform is a function"),
            (lambda url: wds.WebDataset(url, transforms=[len]), "transforms work on tuples"),
            (lambda url: wds.WebDataset(url, extensions=" "), "names of fields"),
            (lambda url: wds.WebDataset(url, shuffle=True), "shuffle=True"),
            (lambda url: wds.WebDataset([]), "the list of urls is empty"),
            (lambda url: wds.WebDataset(3), "E_USAGE: urls are text or a list of texts, got int"),
            (lambda url: wds.WebDataset([{"url": url}]), "E_USAGE: a URL is text or a path, got dict in the list"),
            (lambda url: wds.WebDataset(io.BytesIO()), "E_USAGE: urls are text or a list of texts, got BytesIO"),
            (lambda url: wds.SimpleShardList([{"url": url}]), "E_USAGE: a URL is text or a path, got dict in the list"),
            (lambda url: wds.WebDataset(url).batched(4.5), "batched expects a whole number from 1 on, got 4.5"),
            (lambda url: wds.WebDataset(url, key_split="any"), "key_split='any'"),
            (lambda url: wds.WebDataset(url).batched(0), "batched expects"),
            (lambda url: wds.WebDataset(url).shuffle(None), "shuffle expects"),
            (lambda url: wds.WebDataset(url).map(3), "map expects a function"),
            (lambda url: wds.WebDataset(url).map_dict(), "map_dict expects"),
            (lambda url: wds.WebDataset(url).to_tuple(), "names of fields"),
            (lambda url: wds.WebDataset(url).rsample(2), "from 0 to 1"),
            (lambda url: wds.WebDataset(url).decode("rbg"), "no image spec 'rbg'"),
            (lambda url: wds.WebDataset(url).decode(3), "not a decoder"),
        ],
    )
    def test_a_wrong_call_is_refused_at_once(self, make: Callable[[str], Any], message: str) -> None:
        with pytest.raises(UsageError, match=message):
            make("a.tar")

    def test_a_missing_field_names_shard_record_and_field(self, shards: Shards) -> None:
        with pytest.raises(SchemaError) as caught:
            list(wds.WebDataset(shards(2), extensions="jpg;png cls"))

        assert ("k00000", True) == (caught.value.key, str(caught.value.shard).endswith("s-0.tar"))
        assert "no field 'jpg' or 'png'; there are cls, txt" in str(caught.value)

    def test_a_value_that_does_not_decode_names_shard_record_and_field(self, tmp_path: Path) -> None:
        write_shard(tmp_path / "a.tar", [("a", {"cls": b"seven"})])

        with pytest.raises(DataError, match="'seven' is not a whole number") as caught:
            list(wds.WebDataset(str(tmp_path / "a.tar")).decode())
        assert ("a", "a.cls", str(tmp_path / "a.tar")) == (caught.value.key, caught.value.member, caught.value.shard)

    @pytest.mark.filterwarnings("ignore:W_EMPTY")
    def test_shards_without_samples_are_an_error_unless_expected(self, tmp_path: Path) -> None:
        write_shard(tmp_path / "a.tar", [])

        with pytest.raises(UsageError, match="no samples"):
            list(wds.WebDataset(str(tmp_path / "a.tar")))
        assert [] == list(wds.WebDataset(str(tmp_path / "a.tar"), empty_check=False))
        with pytest.raises(UsageError, match="no samples"):
            list(wds.WebDataset(str(tmp_path / "a.tar"), resampled=True))

    def test_pipes_are_never_run(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="would run a shell command"):
            list(wds.WebDataset(f"pipe:touch {tmp_path}/canary"))
        assert not (tmp_path / "canary").exists()

    def test_it_has_no_index_and_no_length(self, shards: Shards) -> None:
        dataset = wds.WebDataset(shards(2))

        with pytest.raises(TypeError, match="only be iterated"):
            dataset[0]
        with pytest.raises(TypeError, match="no length"):
            len(dataset)

    def test_values_of_different_shapes_do_not_make_a_batch(self, shards: Shards) -> None:
        dataset = wds.WebDataset(shards(4)).map(lambda s: (np.zeros(int(s["cls"])),)).batched(4)

        with pytest.raises(SchemaError, match=r"shapes \[0\], \[1\], \[2\]"):
            list(dataset)


class TestTorch:
    @pytest.mark.torch
    def test_the_base_is_iterable_dataset(self) -> None:
        data = pytest.importorskip("torch.utils.data")

        assert issubclass(wds.WebDataset, data.IterableDataset)

    def test_without_torch_it_is_a_plain_iterable(self, shards: Shards) -> None:
        code = (
            "import sys; sys.modules['torch'] = None\n"
            "from tarviz.dialects.webdataset import WebDataset\n"
            f"print(sum(cls for cls, in WebDataset({shards(10)!r}, extensions='cls').shuffle(5)), WebDataset.__mro__[2])"
        )

        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
        assert "45 <class 'tarviz.dialects.webdataset.pytorch.IterableDataset'>" == out.stdout.strip()

    def test_what_needs_torch_says_so(self) -> None:
        code = (
            "import sys; sys.modules['torch'] = None\n"
            "import tarviz.dialects.webdataset as wds\n"
            "for make in (lambda: wds.WebDataset('a.tar').decode('torchl8'), lambda: wds.WebLoader):\n"
            "    try: make()\n"
            "    except ImportError as error: print(error)"
        )

        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
        first, second = out.stdout.splitlines()
        assert "the image spec 'torchl8' needs the package torch" in first
        assert "WebLoader needs the package torch, which is not installed. Hint: pip install 'tarviz[torch]'" in second

    def test_the_writers_do_not_bring_torch(self) -> None:
        code = "import sys\nfrom tarviz.dialects.webdataset import ShardWriter, TarWriter\nprint('torch' in sys.modules)"

        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
        assert "False" == out.stdout.strip()


def test_every_exported_name_is_there() -> None:
    with warnings.catch_warnings():
        for name in wds.__all__:
            if name == "WebLoader" and "torch" not in sys.modules:
                continue
            assert getattr(wds, name) is not None
    with pytest.raises(AttributeError, match="nothing named 'WebDataSet'"):
        wds.WebDataSet  # noqa: B018
    assert issubclass(UsageError, TarvizError)


def test_whoever_has_the_last_records_reads_to_the_end_of_the_shard(tmp_path: Path) -> None:
    """So that damage behind the last record is met by somebody."""
    write_shard(tmp_path / "s.tar", ((f"k{n}", {"cls": b"1"}) for n in range(6)))
    url = str(tmp_path / "s.tar")

    assert [(url, 0, 3)] == shares([url], 0, 2, ReadOptions())
    assert [(url, 3, None)] == shares([url], 1, 2, ReadOptions())


def test_it_shows_its_shards_and_stages() -> None:
    dataset = wds.WebDataset(["https://h/a.tar?X-Amz-Signature=abc", "b-{0..1}.tar"]).shuffle(5).decode("rgb")

    assert "<WebDataset https://h/a.tar?X-Amz-Signature=***, b-{0..1}.tar and 2 stages>" == repr(dataset)


def test_a_cache_of_no_size_is_none() -> None:
    assert wds.WebDataset("a.tar", cache_dir="none", cache_size=0)
    with pytest.raises(UsageError, match="the folder none for cached shards does not exist"):
        wds.WebDataset("a.tar", cache_dir="none", cache_size=1)


class TestSources:
    def test_what_is_added_by_key_is_there_before_the_stages(self, shards: Shards) -> None:
        found = list(wds.WebDataset(shards(3), associate=lambda key: {"n": key[-1]}, select_files=lambda name: "k00001" not in name))

        assert [("k00000", "0"), ("k00002", "2")] == [(sample["__key__"], sample["n"]) for sample in found]

    def test_shards_are_drawn_for_ever_and_nothing_in_them_is_noticed(self, shards: Shards, tmp_path: Path) -> None:
        url = shards(6, 3)
        draws = [[int(s["cls"]) for s in itertools.islice(wds.WebDataset(url, resampled=True, seed=seed), 30)] for seed in (1, 1, 2)]
        by_mode = [int(s["cls"]) for s in itertools.islice(wds.WebDataset(url, mode="resampled", seed=1), 30)]

        assert draws[0] == draws[1] == by_mode != draws[2]
        assert {*range(6)} == {*draws[0]}

    def test_true_is_rgb_and_false_is_bytes(self, photos: Path) -> None:
        url = str(photos / "photos-0000.tar")
        kinds = {decoder: next(iter(wds.WebDataset(url, extensions="jpg", decoder=decoder)))[0] for decoder in (True, False)}

        assert (np.float32, bytes) == (kinds[True].dtype, type(kinds[False]))

    def test_with_a_splitter_of_ones_own_a_rank_may_go_without(self, shards: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WORLD_SIZE", "2")
        url = shards(4)
        nobody = {"nodesplitter": lambda urls: []}

        with pytest.raises(UsageError, match="rank 0 of 2 has no shard: there are 2 of them"):
            list(wds.WebDataset(url, **nobody))
        assert [] == list(wds.WebDataset(url, empty_check=False, **nobody))
        assert [0, 1, 2, 3] == numbers(wds.WebDataset(url, nodesplitter=None))

    def test_one_built_without_init_has_no_shards_and_no_state(self) -> None:
        class Own(wds.WebDataset):
            def __init__(self) -> None:
                wds.DataPipeline.__init__(self, range(3))

        assert [0, 1, 2] == list(Own()) == list(Own().iterator())
        for call in (lambda: Own().state_dict(), lambda: Own().source):
            with pytest.raises(UsageError, match=r"Own did not call WebDataset\.__init__"):
                call()

    def test_some_of_the_records_of_a_shard_are_read(self, shards: Shards) -> None:
        """As a worker does: by range, and by range where files are renamed."""
        url = shards(20, 1)
        for options in ({}, {"rename_files": lambda name: name}):
            reading = wds.WebDataset(url, **options).source.shards
            found = [(at, [s["cls"] for s in rows]) for at, rows in reading.runs(url, ReadReport(), 5, 8)]

            assert 5 == found[0][0]
            assert [b"5", b"6", b"7"] == [cls for _, run in found for cls in run]


class TestPasses:
    def test_an_epoch_has_a_number_that_decides_its_order(self, shards: Shards) -> None:
        dataset = wds.WebDataset(shards(30, 3), shardshuffle=True, seed=1).shuffle(9)
        numbered = [dataset.epoch]
        found = []
        for _ in range(2):
            found.append(numbers(dataset))
            numbered.append(dataset.epoch)
        dataset.set_epoch(1)

        assert [0, 1, 2] == numbered
        assert found[1] == numbers(dataset)

    def test_repeating_for_ever_stops_at_what_is_empty(self, shards: Shards) -> None:
        assert [] == list(wds.WebDataset(shards(4), repeat=True).select(lambda sample: False))
        assert 9 == len(list(itertools.islice(wds.WebDataset(shards(4), repeat=True), 9)))

    def test_the_report_is_that_of_the_latest_pass(self, shards: Shards) -> None:
        dataset = wds.WebDataset(shards(4))
        assert 0 == dataset.report.records
        list(dataset)

        assert (4, 2) == (dataset.report.records, dataset.report.shards)
        assert 0 == dataset.compose().report.records

    @pytest.mark.parametrize(
        ("seed", "here", "expected"),
        [
            (7, WorkerPlace(seed=9), "7/0"),
            (None, WorkerPlace(seed=9), "9/0"),
            (None, WorkerPlace(seed=9, shared=True), "None/0"),
            (None, WorkerPlace(), "None/0"),
        ],
    )
    def test_its_order_depends_on_its_seed_or_on_that_of_the_loader(
        self, shards: Shards, monkeypatch: pytest.MonkeyPatch, seed: int | None, here: WorkerPlace, expected: str
    ) -> None:
        monkeypatch.setattr(Passes, "here", lambda self: here)

        assert expected == wds.WebDataset(shards(2), seed=seed).state_dict()["seed"]

    def test_a_state_holds_where_it_is(self, shards: Shards) -> None:
        dataset = wds.WebDataset(shards(10, 2), seed=7)
        place = {"worker": 0, "workers": 1, "node": 0, "nodes": 1, "round": 0, "done": 0}
        fresh = dataset.state_dict()
        run = iter(dataset)
        for _ in range(7):
            next(run)

        assert place | {"epoch": 0, "seed": "7/0", "share": 0, "record": 0, "given": 0} == fresh
        assert place | {"epoch": 0, "seed": "7/0", "share": 1, "record": 2, "given": 7} == dataset.state_dict()
        dataset.load_state_dict(before := dataset.state_dict())
        assert before == dataset.state_dict()

    def test_behind_a_shuffle_it_counts_what_was_given(self, shards: Shards) -> None:
        dataset = wds.WebDataset(shards(10, 2)).shuffle(4).listed(2)
        run = iter(dataset)
        for _ in range(3):
            next(run)
        state = dataset.state_dict()

        assert (0, 0, 6, 3) == (state["share"], state["record"], state["done"], state["given"])


def test_a_file_url_may_do_without_its_slashes(shards: Shards) -> None:
    path = shards(4, 2)

    assert [[f"k{n:05d}" for n in range(4)]] * 3 == [
        [sample["__key__"] for sample in wds.WebDataset(url)] for url in (path, f"file:{path}", f"file://{path}")
    ]
