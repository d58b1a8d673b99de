"""What users write with `WebDataset(…).stage()…`, run with webdataset and with the dialect: equal, item by item."""

from __future__ import annotations

import io
import operator
import os
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarviz.dialects.webdataset as wds
from tests.dialects.webdataset.beside import Script, differences, make

theirs: Any = pytest.importorskip("webdataset", reason="webdataset is what the dialect is held against: pip install webdataset")
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),  # webdataset leaves its files open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

IM = "/im-{0000..0003}.tar"


def ds(w: Any, d: str, name: str = IM, **options: Any) -> Any:
    return w.WebDataset(d + name, **{"shardshuffle": False, **options})


def fails(value: Any) -> Any:
    raise ValueError("no")


def odd_fails(sample: Any) -> Any:
    return sample if int(sample["cls"]) % 2 == 0 else fails(sample)


def keys(source: Any) -> list[str]:
    return [sample["__key__"] for sample in source]


def calls(w: Any, d: str) -> list[Any]:
    """Which errors a handler of one's own is asked about, by number."""
    asked: list[Exception] = []
    found = keys(ds(w, d, "/broken.tar").decode("rgb8", handler=lambda error: asked.append(error) or True))
    return [*found, len(asked)]


class Halves:
    """A data set of one's own over another."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __iter__(self) -> Any:
        return islice(iter(self.source), 0, None, 2)


def subclass(w: Any, d: str) -> Any:
    class Own(w.WebDataset):  # type: ignore[misc,name-defined]
        def doubled(self) -> Any:
            return self.map_dict(cls=lambda cls: cls * 2)

    return Own(d + IM, shardshuffle=False).doubled().to_tuple("cls")


def in_place(w: Any, d: str, change: Any) -> list[Any]:
    dataset = ds(w, d).to_tuple("cls")
    change(dataset)
    return list(dataset)


def context(w: Any, d: str) -> list[Any]:
    with ds(w, d).to_tuple("__key__") as dataset:
        return list(dataset)


def missing_shard(w: Any, d: str, handler: str) -> list[str]:
    urls = [d + "/im-0000.tar", d + "/gone.tar", d + "/im-0001.tar"]
    return keys(w.WebDataset(urls, shardshuffle=False, handler=getattr(w, handler)))


def appended(w: Any, d: str) -> Any:
    dataset = ds(w, d)
    dataset.append(w.map(lambda sample: sample["__key__"]))
    return dataset


def environment(w: Any, d: str) -> Any:
    os.environ["WDS_SCRIPTS"] = d
    try:
        return list(w.WebDataset("${SCRIPTS}/im-{0000..0001}.tar", shardshuffle=False))
    finally:
        del os.environ["WDS_SCRIPTS"]


def splitter(source: Any) -> Any:
    for shard in source:
        if shard["url"].endswith(("0.tar", "2.tar")):
            yield shard


def is_cls(name: str) -> bool:
    return name.endswith(".cls")


def to_label(name: str) -> str:
    return name.replace(".cls", ".label.txt")


SCRIPTS: dict[str, Script] = {
    "raw": lambda w, d: ds(w, d),
    "a list of urls": lambda w, d: w.WebDataset([f"{d}/im-000{n}.tar" for n in range(4)], shardshuffle=False),
    "urls joined by colons": lambda w, d: w.WebDataset(f"{d}/im-0000.tar::{d}/im-0002.tar", shardshuffle=False),
    "a url twice": lambda w, d: w.WebDataset([d + "/im-0000.tar"] * 2, shardshuffle=False),
    "braces with words": lambda w, d: w.WebDataset(d + "/{im-0001,odd}.tar", shardshuffle=False),
    "nested braces": lambda w, d: w.WebDataset(d + "/im-000{0,{2..3}}.tar", shardshuffle=False),
    "a glob of one's own": lambda w, d: w.WebDataset(sorted(str(path) for path in Path(d).glob("im-*.tar")), shardshuffle=False),
    "a variable of the environment": environment,
    "tgz": lambda w, d: ds(w, d, "/one.tgz"),
    "tar.gz": lambda w, d: ds(w, d, "/one.tar.gz"),
    "tar.bz2": lambda w, d: ds(w, d, "/one.tar.bz2"),
    "tar.xz": lambda w, d: ds(w, d, "/one.tar.xz"),
    "README": lambda w, d: ds(w, d).decode("rgb8").to_tuple("png", "cls"),
    "two names in one text": lambda w, d: ds(w, d).decode().to_tuple("json cls"),
    "alternatives": lambda w, d: ds(w, d, "/odd.tar").to_tuple("jpg;png", "cls"),
    "alternatives as a list": lambda w, d: ds(w, d, "/odd.tar").to_tuple(["png", "jpg"], "cls"),
    "meta data": lambda w, d: ds(w, d).to_tuple("__key__", "__url__", "cls"),
    "a missing field": lambda w, d: ds(w, d).to_tuple("gone"),
    "a missing field, handled": lambda w, d: ds(w, d, "/some.tar").to_tuple("a", "b", handler=w.ignore_and_continue),
    "a missing field, stopped": lambda w, d: ds(w, d, "/some.tar").to_tuple("b", handler=w.ignore_and_stop),
    "a missing field as None": lambda w, d: ds(w, d, "/some.tar").to_tuple("a", "b", missing_is_error=False),
    "None is an error": lambda w, d: ds(w, d).map_dict(cls=lambda cls: None).to_tuple("cls"),
    "None is none": lambda w, d: ds(w, d).map_dict(cls=lambda cls: None).to_tuple("cls", none_is_error=False),
    "decode": lambda w, d: ds(w, d).decode(),
    "decode l8": lambda w, d: ds(w, d).decode("l8").to_tuple("png"),
    "decode rgb": lambda w, d: ds(w, d).decode("rgb").to_tuple("png"),
    "decode rgba8": lambda w, d: ds(w, d).decode("rgba8").to_tuple("png"),
    "decode pil": lambda w, d: ds(w, d).decode("pil").to_tuple("png"),
    "decode pilrgba": lambda w, d: ds(w, d).decode("pilrgba").to_tuple("png"),
    "decode only": lambda w, d: ds(w, d).decode("rgb8", only=["cls", "json"]),
    "decode only in a text": lambda w, d: ds(w, d).decode(only="cls txt"),
    "decode twice": lambda w, d: ds(w, d).decode(only="cls").decode(partial=True),
    "decode twice, an error": lambda w, d: ds(w, d).decode().decode(),
    "decode with a function": lambda w, d: ds(w, d).decode(lambda key, data: len(data) if key == ".png" else None),
    "decode an extension": lambda w, d: ds(w, d).decode(w.handle_extension("png", len)),
    "decode a long extension": lambda w, d: ds(w, d, "/names.tar").decode(w.handle_extension("seg.png", len), "rgb8"),
    "decode without the usual": lambda w, d: ds(w, d).decode(post=[]),
    "decode classes": lambda w, d: ds(w, d, "/classes.tar").decode(),
    "decode texts": lambda w, d: ds(w, d, "/texts.tar").decode(),
    "decode arrays": lambda w, d: ds(w, d, "/arrays.tar").decode(),
    "a broken picture": lambda w, d: ds(w, d, "/broken.tar").decode("rgb8"),
    "broken pictures, handled": lambda w, d: keys(ds(w, d, "/broken.tar").decode("rgb8", handler=w.ignore_and_continue)),
    "broken pictures, stopped": lambda w, d: keys(ds(w, d, "/broken.tar").decode("rgb8", handler=w.warn_and_stop)),
    "broken pictures, a handler of one's own": calls,
    "map": lambda w, d: ds(w, d).map(lambda sample: {"n": int(sample["cls"])}),
    "map to a tuple": lambda w, d: ds(w, d).map(lambda sample: (sample["__key__"], len(sample))),
    "map to None": lambda w, d: ds(w, d).map(lambda sample: None if int(sample["cls"]) % 2 else sample["__key__"]),
    "map fails": lambda w, d: ds(w, d).map(fails),
    "map fails, handled": lambda w, d: ds(w, d).map(odd_fails, handler=w.ignore_and_continue),
    "map fails, warned": lambda w, d: islice(ds(w, d).map(odd_fails, handler=w.warn_and_stop), 3),
    "map_dict": lambda w, d: ds(w, d).map_dict(cls=int, txt=bytes.upper),
    "map_dict of a missing field": lambda w, d: ds(w, d).map_dict(gone=int),
    "map_dict, handled": lambda w, d: ds(w, d, "/some.tar").map_dict(b=int, handler=w.ignore_and_continue),
    "map_tuple": lambda w, d: ds(w, d).to_tuple("cls", "txt").map_tuple(int, bytes.decode),
    "map_tuple with None": lambda w, d: ds(w, d).to_tuple("cls", "txt").map_tuple(None, bytes.decode),
    "map_tuple with fewer": lambda w, d: ds(w, d).to_tuple("cls", "txt").map_tuple(int),
    "map_tuple fails, handled": lambda w, d: ds(w, d).to_tuple("txt").map_tuple(int, handler=w.ignore_and_continue),
    "select": lambda w, d: ds(w, d).select(lambda sample: sample["cls"] == b"3"),
    "select all away": lambda w, d: ds(w, d).select(lambda sample: False),
    "rename": lambda w, d: ds(w, d).rename(image="png", label="cls"),
    "rename alternatives": lambda w, d: ds(w, d, "/odd.tar").rename(image="jpg;png"),
    "rename, nothing else kept": lambda w, d: ds(w, d).rename(image="png", keep=False),
    "rename a missing field": lambda w, d: ds(w, d).rename(image="gone"),
    "rename, handled": lambda w, d: ds(w, d, "/some.tar").rename(x="b", handler=w.ignore_and_continue),
    "rename_keys": lambda w, d: ds(w, d).rename_keys(("image", "*png"), ("label", "cls")),
    "rename_keys by keyword": lambda w, d: ds(w, d).rename_keys(image="p*", keep_unselected=True),
    "rename_keys must match": lambda w, d: ds(w, d).rename_keys(image="gone*"),
    "rename_keys may miss": lambda w, d: ds(w, d).rename_keys(image="gone*", must_match=False, keep_unselected=True),
    "extract_keys": lambda w, d: ds(w, d).extract_keys("*.png;*.jpg", "*.cls"),
    "extract_keys of a name in capitals": lambda w, d: ds(w, d).rename(Image="png").extract_keys("Image"),
    "decode what a sample says of itself": lambda w, d: ds(w, d, "/sources.tar").decode(),
    "decode it on the way to a tuple": lambda w, d: ds(w, d, "/sources.tar").decode().to_tuple("__source__", "cls"),
    "extract_keys of a missing field": lambda w, d: ds(w, d).extract_keys("*.gone"),
    "extract_keys may miss": lambda w, d: ds(w, d).extract_keys("*.gone", "cls", ignore_missing=True),
    "extract_keys fits twice": lambda w, d: ds(w, d).extract_keys("*"),
    "slice": lambda w, d: ds(w, d).slice(5),
    "slice with steps": lambda w, d: ds(w, d).slice(3, 30, 4).to_tuple("__key__"),
    "batched": lambda w, d: ds(w, d).decode("rgb8").to_tuple("png", "cls").batched(7),
    "batched, whole ones": lambda w, d: ds(w, d).decode().to_tuple("cls", "txt").batched(7, partial=False),
    "batched dicts": lambda w, d: ds(w, d).decode("rgb8", only="cls png").map(lambda s: {"cls": s["cls"], "png": s["png"]}).batched(5),
    "batched with a function": lambda w, d: ds(w, d).to_tuple("cls").batched(5, collation_fn=len),
    "batched without a function": lambda w, d: ds(w, d).to_tuple("cls").batched(5, collation_fn=None),
    "batched floats": lambda w, d: ds(w, d).map(lambda s: (float(s["cls"]), np.float32(1), np.int64(2))).batched(5),
    "batched texts": lambda w, d: ds(w, d).decode().to_tuple("txt", "json").batched(4),
    "batched open files": lambda w, d: ds(w, d).map_dict(cls=io.BytesIO).to_tuple("cls").batched(4).map(lambda batch: type(batch[0])),
    "batched ragged": lambda w, d: ds(w, d).map(lambda s: (1,) * (1 + int(s["cls"]) % 2)).batched(4),
    "batched shapes that differ": lambda w, d: ds(w, d).map(lambda s: (np.zeros(int(s["cls"])),)).batched(4),
    "unbatched": lambda w, d: ds(w, d).decode("rgb8").to_tuple("png", "cls").batched(7).unbatched(),
    "unbatched dicts": lambda w, d: ds(w, d).map(lambda s: {"cls": int(s["cls"])}).batched(7).unbatched().map(lambda s: int(s["cls"])),
    "unbatched arrays": lambda w, d: ds(w, d).map(lambda s: np.zeros((4, 3))).unbatched(),
    "unbatched texts": lambda w, d: ds(w, d).map(lambda s: "ab").unbatched(),
    "unbatched samples": lambda w, d: ds(w, d).unbatched(),
    "unlisted samples": lambda w, d: ds(w, d).unlisted(),
    "listed": lambda w, d: ds(w, d).to_tuple("__key__").listed(5),
    "unlisted": lambda w, d: ds(w, d).to_tuple("__key__").listed(5).unlisted(),
    "compose": lambda w, d: ds(w, d).compose(lambda source: (s["__key__"] for s in source)),
    "compose two": lambda w, d: ds(w, d).compose(lambda source: islice(source, 9), lambda source: (s["cls"] for s in source)),
    "compose stages": lambda w, d: ds(w, d).compose(w.map(operator.itemgetter("cls")), w.batched(3, collation_fn=None)),
    "append": appended,
    "a context manager": context,
    "a subclass": subclass,
    "a data set over a data set": lambda w, d: keys(Halves(ds(w, d))),
    "with_epoch": lambda w, d: ds(w, d).to_tuple("__key__").with_epoch(130),
    "with_epoch, shorter": lambda w, d: ds(w, d).to_tuple("__key__").with_epoch(30),
    "with_epoch in place": lambda w, d: in_place(w, d, lambda dataset: dataset.with_epoch(7)),
    "with_epoch of batches": lambda w, d: ds(w, d).to_tuple("cls").batched(5).with_epoch(nbatches=13),
    "repeat": lambda w, d: ds(w, d).to_tuple("__key__").repeat(2),
    "repeat in place": lambda w, d: in_place(w, d, lambda dataset: dataset.repeat(2)),
    "repeat up to batches": lambda w, d: ds(w, d).to_tuple("cls").batched(5).repeat(nbatches=23),
    "with_length in place": lambda w, d: in_place(w, d, lambda dataset: dataset.with_length(7, silent=True)),
    "len": lambda w, d: [len(ds(w, d).with_length(7, silent=True))],
    "len without": lambda w, d: [len(ds(w, d))],
    "two iterations": lambda w, d: (lambda dataset: [list(dataset), list(dataset)])(ds(w, d).to_tuple("__key__")),
    "select_files": lambda w, d: ds(w, d, select_files=is_cls),
    "rename_files": lambda w, d: ds(w, d, rename_files=to_label),
    "rename_files and select_files": lambda w, d: ds(w, d, rename_files=to_label, select_files=lambda name: name.endswith(".label.txt")),
    "no node splitter": lambda w, d: ds(w, d, nodesplitter=None),
    "split_by_node": lambda w, d: ds(w, d, nodesplitter=w.split_by_node),
    "a node splitter of one's own": lambda w, d: ds(w, d, nodesplitter=splitter),
    "a worker splitter of one's own": lambda w, d: ds(w, d, workersplitter=splitter),
    "a splitter that passes": lambda w, d: ds(w, d, nodesplitter=lambda source: source),
    "no worker splitter": lambda w, d: ds(w, d, workersplitter=None),
    "a missing shard": lambda w, d: w.WebDataset(d + "/gone.tar", shardshuffle=False),
    "a missing shard, ignored": lambda w, d: missing_shard(w, d, "ignore_and_continue"),
    "a missing shard, warned": lambda w, d: missing_shard(w, d, "ignore_and_continue"),
    "a missing shard, stopped": lambda w, d: missing_shard(w, d, "ignore_and_stop"),
    "missing shards of a range": lambda w, d: keys(ds(w, d, "/im-{0000..0006}.tar", handler=w.ignore_and_continue)),
    "a shard that is cut": lambda w, d: ds(w, d, "/cut.tar"),
    "no tar": lambda w, d: ds(w, d, "/text.tar"),
    "an empty shard": lambda w, d: ds(w, d, "/empty.tar"),
    "an empty shard, allowed": lambda w, d: ds(w, d, "/empty.tar", empty_check=False),
    "files about the shard": lambda w, d: ds(w, d, "/meta.tar"),
    "names with dots": lambda w, d: ds(w, d, "/names.tar"),
    "log_keys": lambda w, d: [list(ds(w, d, "/odd.tar").log_keys(f"{d}/{w.__name__}.log")), Path(f"{d}/{w.__name__}.log").read_text()],
    "xdecode": lambda w, d: ds(w, d).xdecode(cls=lambda file: int(file.read()), must_decode=False),
    "xdecode must": lambda w, d: ds(w, d).xdecode(cls=lambda file: 1),
    "mcached": lambda w, d: (lambda dataset: [list(dataset), list(dataset)])(ds(w, d).to_tuple("__key__").mcached()),
    "open_clip, fluently": lambda w, d: (
        ds(w, d, "/odd.tar", handler=w.ignore_and_continue)
        .select(lambda sample: "cls" in sample)
        .decode("pilrgb", handler=w.ignore_and_continue)
        .rename(image="jpg;png;jpeg;webp", text="cls")
        .map_dict(image=np.asarray, text=str)
        .to_tuple("image", "text")
        .batched(3, partial=False)
    ),
    "an own decoder for sound": lambda w, d: ds(w, d).decode(w.handle_extension("flac txt", lambda data: io.BytesIO(data).read())),
}
UNORDERED: dict[str, Script] = {
    "shuffle": lambda w, d: ds(w, d).shuffle(10),
    "shuffle with initial": lambda w, d: ds(w, d).shuffle(100, initial=5),
    "shuffle with a seed": lambda w, d: ds(w, d).shuffle(10, seed=3),
    "shuffle with a generator": lambda w, d: ds(w, d).shuffle(10, rng=__import__("random").Random(1)),
    "shuffle of nothing": lambda w, d: ds(w, d).shuffle(0),
    "shardshuffle": lambda w, d: ds(w, d, shardshuffle=100),
    "shardshuffle True": lambda w, d: ds(w, d, shardshuffle=True),
    "detshuffle": lambda w, d: ds(w, d, shardshuffle=100, detshuffle=True, seed=5),
    "rsample of all": lambda w, d: ds(w, d).rsample(1.0),
    "rsample of none": lambda w, d: ds(w, d).rsample(0.0),
    "resampled": lambda w, d: [{"n": len(list(ds(w, d, resampled=True).with_epoch(100)))}],
    "resampled batches": lambda w, d: [{"n": len(list(ds(w, d, resampled=True).to_tuple("cls").batched(5).with_epoch(9)))}],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("scripts")
    make(path)
    return str(path)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_gives_what_it_gives_with_webdataset(folder: str, name: str) -> None:
    assert differences(SCRIPTS[name], wds, theirs, folder) == []


@pytest.mark.parametrize("name", UNORDERED)
def test_a_random_script_gives_the_same_items(folder: str, name: str) -> None:
    assert differences(UNORDERED[name], wds, theirs, folder, ordered=False) == []
