"""`wids`: listed shards by number, and its samplers. test_peers.py holds them beside the real package."""

from __future__ import annotations

import gzip
import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz import cli
from tarviz.commands.index import index
from tarviz.dialects.webdataset import wids
from tarviz.model.errors import ChangedError, DataError, UsageError
from tarviz.testing.faults import FaultServer
from tests.conftest import each_case
from tests.dialects.webdataset.beside import picture, record, tar


class Counted:
    """A data set of three shards of 3, 4 and 2 samples, as samplers see it."""

    lengths = (3, 4, 2)

    def __len__(self) -> int:
        return 9


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wids")
    tar(folder / "a.tar", [file for number in range(3) for file in record(number)])
    tar(folder / "b.tar", [file for number in range(3, 7) for file in record(number)])
    assert 0 == cli.main(["index", "-q", f"{folder}/{{a,b}}.tar", "--wids", str(folder / "list.json")])
    return folder / "list.json"


def test_the_list_is_that_of_wids(listed: Path) -> None:
    found = json.loads(listed.read_text())

    sizes = [(listed.parent / name).stat().st_size for name in ("a.tar", "b.tar")]
    shards = [{"url": f"{name}.tar", "nsamples": count, "filesize": size} for name, count, size in zip("ab", (3, 4), sizes, strict=True)]
    assert {"__kind__": "wids-shard-index-v1", "wids_version": 1, "name": "list", "shardlist": shards} == found


def test_a_choice_of_records_is_not_listed(listed: Path) -> None:
    with pytest.raises(UsageError, match="wids counts all records"):
        index(str(listed.with_name("a.tar")), keys=["000001"], wids=listed.with_name("no.json"))


def test_samples_come_by_number_over_all_shards(listed: Path) -> None:
    dataset = wids.ShardListDataset(str(listed))

    assert 7 == len(dataset)
    assert [f"{number:06d}" for number in range(7)] == [sample["__key__"] for sample in dataset]
    assert "000006" == dataset[-1]["__key__"]
    with pytest.raises(IndexError):
        dataset[7]


def test_fields_have_a_dot_and_are_decoded(listed: Path) -> None:
    sample = wids.ShardListDataset(listed, transformations=["numpy"])[np.int64(4)]

    pixels = sample.pop(".png")
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(picture(4)))), pixels)
    place = {"__shard__": str(listed.with_name("b.tar")), "__shardindex__": 1, "__index__": 4, "__dataset__": None, "__key__": "000004"}
    assert {".cls": 4, ".json": {"n": 4, "tags": ["a", "b"]}, ".txt": "no 4", **place} == sample


def test_without_transformations_fields_are_open_files(listed: Path) -> None:
    dataset = wids.ShardListDataset(str(listed), transformations=[]).add_transform(lambda sample: sample[".txt"].read())

    assert b"no 5" == dataset[5]


def test_packed_fields_are_decoded_and_pickles_are_not() -> None:
    sample = {".txt.gz": io.BytesIO(gzip.compress(b"hello")), ".bin": io.BytesIO(b"\0"), "__key__": "k", "__shard__": "s.tar"}

    decoded = wids.default_decoder(sample)

    assert ("hello", b"\0") == (decoded[".txt.gz"], decoded[".bin"].read())
    with pytest.raises(DataError, match="pkl") as caught:
        wids.default_decoder({".pkl": io.BytesIO(pickle.dumps(1)), "__key__": "k", "__shard__": "s.tar"})
    assert "s.tar" == caught.value.shard


def test_few_shards_are_held_and_counted(listed: Path) -> None:
    dataset = wids.ShardListDataset(str(listed), lru_size=1)

    for number in (0, 1, 3, 0):
        dataset[number]

    assert (4, 3) == dataset.get_stats()


def test_a_shard_is_fetched_once_and_again_when_it_has_gone(listed: Path, tmp_path: Path) -> None:
    with FaultServer() as server:
        urls = {name: server.put(f"/{name}.tar", listed.with_name(f"{name}.tar").read_bytes()) for name in "ab"}
        shards = [{"url": urls["a"], "nsamples": 3}, {"url": urls["b"], "nsamples": 4}]
        dataset = wids.ShardListDataset(shards, lru_size=1, cache_dir=str(tmp_path))
        keys = [dataset[number]["__key__"] for number in (0, 3)]
        before = len(server.requests)

        assert ["000000", "000003"] == keys == [dataset[number]["__key__"] for number in (0, 3)]
        assert before == len(server.requests)
        for path in (tmp_path / ".tarviz").iterdir():
            path.unlink()
        assert "000000" == dataset[0]["__key__"]
        assert before < len(server.requests)


def test_it_travels_to_workers(listed: Path, tmp_path: Path) -> None:
    dataset = wids.ShardListDataset(str(listed), cache_dir=str(tmp_path))
    dataset[0]

    assert 5 == pickle.loads(pickle.dumps(dataset))[5][".cls"]


def test_lists_name_lists(listed: Path) -> None:
    (listed.parent / "sub").mkdir()
    inner = {"name": "inner", "shardlist": [{"url": "../b.tar", "nsamples": 4}]}
    (listed.parent / "sub" / "inner.json").write_text(json.dumps(inner))
    parts = [
        {"source_url": f"{listed.parent}/sub/inner.json", "weight": 2},
        {"shardlist": [{"url": f"{listed.parent}/a.tar", "nsamples": 3}]},
    ]
    outer = {"wids_version": 1, "name": "outer", "shardlist": [{"url": "a.tar", "nsamples": 3}], "datasets": parts}
    listed.with_name("outer.json").write_text(json.dumps(outer))

    dataset = wids.ShardListDataset(str(listed.with_name("outer.json")))

    assert [3, 4, 3] == dataset.lengths
    assert [("outer", None), (None, "inner"), (None, None)] == [(shard.get("name"), shard.get("dataset")) for shard in dataset.shards]
    assert ("000003", "inner") == (dataset[3]["__key__"], dataset[3]["__dataset__"])


def test_a_shard_that_is_not_as_listed_is_an_error(listed: Path) -> None:
    dataset = wids.ShardListDataset([{"url": str(listed.with_name("a.tar")), "nsamples": 4}])

    with pytest.raises(ChangedError, match="3 records, the list says 4"):
        dataset[0]


@pytest.mark.parametrize(("kept", "what"), [(2600, "the header promises"), (700, "padding is cut"), (0, "the file is empty")])
def test_a_shard_that_is_damaged_is_said_to_be(listed: Path, tmp_path: Path, kept: int, what: str) -> None:
    (tmp_path / "a.tar").write_bytes(listed.with_name("a.tar").read_bytes()[:kept])

    with pytest.raises(DataError, match=what):
        wids.ShardListDataset([{"url": str(tmp_path / "a.tar"), "nsamples": np.int64(3)}])[0]


@each_case(
    ("wrong", "message"),
    [
        ({"shardlist": []}, "no list of shards"),
        ({"wids_version": 1, "shardlist": []}, "the list has no shards"),
        *(
            ({"wids_version": 1, "shardlist": [{"url": "a", **count}]}, "a whole number")
            for count in ({}, {"nsamples": "3"}, {"nsamples": 3.0}, {"nsamples": -1}, {"nsamples": None})
        ),
    ],
)
def test_what_is_no_list_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        wids.ShardListDataset(io.StringIO(json.dumps(wrong)))


@each_case("wrong", [b"<html>", b"\x1f\x8b\x08", b"[]", b'[{"url": "a.tar", "nsamples": 1}]'])
def test_what_is_no_list_is_said_to_be_none(wrong: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(wrong)

    with pytest.raises(UsageError, match=r"a\.tar is no list of shards for wids"):
        wids.ShardListDataset(tmp_path / "a.tar")


def test_samplers_draw_as_those_of_wids() -> None:
    """The orders that wids of webdataset 0.2.111 gives."""
    by_shard, by_chunk = wids.ShardedSampler(Counted(), seed=5), wids.ChunkedSampler(Counted(), seed=5, chunksize=4)

    assert [[0, 1, 2, 4, 3, 6, 5, 7, 8], [8, 7, 6, 3, 4, 5, 2, 0, 1]] == [list(by_shard) for _ in range(2)]
    assert [[0, 1, 3, 2, 6, 7, 5, 4, 8], [8, 7, 6, 5, 4, 2, 3, 1, 0]] == [list(by_chunk) for _ in range(2)]
    by_chunk.set_epoch(1)
    assert [8, 7, 6, 5, 4, 2, 3, 1, 0] == list(by_chunk)


def test_ranks_have_each_number_once() -> None:
    ranks = [wids.DistributedChunkedSampler(Counted(), num_replicas=4, rank=rank, chunksize=2) for rank in range(4)]

    assert [[0, 1, 2], [3, 4, 5], [6, 7, 8], []] == [sorted(rank) for rank in ranks]
    with pytest.raises(UsageError, match="rank 4 of 4"):
        wids.DistributedChunkedSampler(Counted(), num_replicas=4, rank=4)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
def test_a_loader_takes_it_with_its_sampler(listed: Path) -> None:
    data = pytest.importorskip("torch.utils.data", reason="torch is not installed")
    dataset = wids.ShardListDataset(str(listed), transformations="numpy").add_transform(Label())

    loader = data.DataLoader(dataset, batch_size=2, sampler=wids.ShardedSampler(dataset), num_workers=1, multiprocessing_context="spawn")

    assert 4 == len(loader)
    assert [0, 1, 2, 3, 4, 5, 6] == sorted(label for batch in loader for label in batch.tolist())


class Label:
    def __call__(self, sample: dict[str, Any]) -> int:
        return int(sample[".cls"])


@each_case(
    ("base", "url", "expected"),
    [
        ("s3://b/d", "a.tar?x#y", "s3://b/d/a.tar?x#y"),
        ("s3://b/d", "//c/a.tar", "s3://c/a.tar"),
        ("https://h/d", "/a.tar", "https://h/a.tar"),
        ("/d/e", "../a.tar", "/d/a.tar"),
        ("s3://b/run#3?", "a?1#2.tar", "s3://b/run#3?/a?1#2.tar"),
        ("s3://b/d", "s3://b/x//y.tar", "s3://b/x//y.tar"),
        ("d", "run:1.tar", "d/run:1.tar"),
        ("https://h", "a.tar?u=//x/../y", "https://h/a.tar?u=//x/../y"),
        ("d", "pipe:cat a//b.tar", "pipe:cat a//b.tar"),
    ],
)
def test_urls_are_seen_from_their_list(base: str, url: str, expected: str) -> None:
    assert expected == wids.urlmerge(base, url)


def test_the_folder_of_a_url_has_no_query() -> None:
    urls = "https://h/d/list.json?x=1#y", "list.json", "s3://b/l.json", "s3://b/run#3/l?.json", "what?/l.json"

    assert ["https://h/d", "", "s3://b", "s3://b/run#3", "what?"] == [wids.urldir(url).rstrip("/") for url in urls]


def test_the_folder_of_a_list_may_have_any_name(listed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run #3? 100%20 {a,b} ü"
    folder.mkdir()
    for name in ("a:1?.tar", "b#2.tar"):
        (folder / name).write_bytes(listed.with_name("a.tar").read_bytes())
    index([str(folder / "a:1?.tar"), str(folder / "b#2.tar")], wids=folder / "list.json")

    assert [0, 1, 2, 0, 1, 2] == [sample[".cls"] for sample in wids.ShardListDataset(str(folder / "list.json"))]


def test_pictures_and_transformations_are_of_a_kind(listed: Path) -> None:
    with pytest.raises(UsageError, match="pictures are decoded to PIL or numpy, not 'torch'"):
        wids.default_decoder({}, "torch")
    with pytest.raises(UsageError, match="3 is not a transformation"):
        wids.ShardListDataset(listed, transformations=["PIL", 3])
    assert isinstance(wids.ShardListDataset(listed, transformations="PIL")[0][".png"], Image.Image)


def test_options_go_before_what_the_list_says(listed: Path) -> None:
    renamed = wids.ShardListDataset(listed, options={"name": "other"})

    assert ("other", "other", "list") == (renamed.dataset_name, renamed.shards[0]["name"], wids.ShardListDataset(listed).dataset_name)
    assert "mine" == wids.ShardListDataset(listed, dataset_name="mine").dataset_name
    own = [{"url": "a.tar", "nsamples": 2}, {"url": "b.tar", "nsamples": 3}]
    assert ("x", 5, None) == ((one := wids.ShardListDataset(own, options={"name": "x"})).dataset_name, len(one), one.base)
    with listed.open() as file:
        assert ["s3://b/a.tar", "s3://b/b.tar"] == [shard["url"] for shard in wids.ShardListDataset(file, base="s3://b").shards]


def test_indexes_are_held_as_long_as_they_are_used_and_until_it_is_closed(listed: Path) -> None:
    dataset = wids.ShardListDataset(listed, lru_size=2)
    for number in (0, 3, 0, 3, 0):
        dataset[number]
    assert (5, 2) == dataset.get_stats()
    dataset.close()
    dataset[-7]
    assert "000006" == wids.ShardListDataset(listed, lru_size=0)[6]["__key__"]

    assert (6, 3) == dataset.get_stats()
    with pytest.raises(IndexError, match="sample -8 of 7"):
        dataset[-8]


def test_ranges_of_numbers_are_shuffled_or_not() -> None:
    plain = wids.ChunkedSampler(Counted(), num_samples=(2, 9), chunksize=3, shuffle=False)
    first = wids.ChunkedSampler(Counted(), num_samples=6, chunksize=4, seed=1, shufflefirst=True, dslength_per_replica=3)

    assert (7, [2, 3, 4, 5, 6, 7, 8]) == (len(plain), list(plain))
    assert [2, 3] == list(wids.ChunkedSampler(Counted(), num_samples=[2, 4], shuffle=False))
    assert (3, [0, 1, 2, 3, 4, 5]) == (len(first), sorted(first))
    assert 3 == len(wids.DistributedChunkedSampler(Counted(), num_replicas=4, rank=3))
    half = wids.DistributedChunkedSampler(Counted(), num_replicas=2, rank=0, num_samples=6)
    assert (3, [0, 1, 2]) == (len(half), sorted(half))
    lengths = wids.ShardListSampler(None, lengths=[2, 1])
    assert (3, [0, 1, 2]) == (len(lengths), sorted(lengths))
