"""What users write with `DataPipeline`, open_clip's pipeline among it, run with webdataset and with the dialect."""

from __future__ import annotations

import importlib
import io
import operator
import random
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarviz.dialects.webdataset as wds
from tests.dialects.webdataset.beside import Script, differences, make, tar

theirs: Any = pytest.importorskip("webdataset", reason="webdataset is what the dialect is held against: pip install webdataset")
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),  # webdataset leaves its files open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def shards(w: Any, d: str, name: str = "/im-{0000..0003}.tar") -> Any:
    return w.SimpleShardList(d + name)


def pipe(w: Any, d: str, *stages: Any, name: str = "/im-{0000..0003}.tar") -> Any:
    return w.DataPipeline(shards(w, d, name), w.tarfile_to_samples(), *stages)


def module(w: Any, name: str) -> Any:
    return importlib.import_module(f"{w.__name__}.{name}")


def group_by_keys_nothrow(data: Any, w: Any) -> Any:
    """The loop that open_clip, diffusers and others have, in other words: it knows no end of a shard, and a field that comes twice
    begins a new sample."""
    iterators = module(w, "tariterators")
    current: Any = None
    for file in data:
        prefix, suffix = iterators.base_plus_ext(file["fname"])
        if prefix is None:
            continue
        suffix = suffix.lower()
        if current is None or prefix != current["__key__"] or suffix in current:
            if iterators.valid_sample(current):
                yield current
            current = {"__key__": prefix, "__url__": file["__url__"]}
        current[suffix] = file["data"]
    if iterators.valid_sample(current):
        yield current


def tarfile_to_samples_nothrow(w: Any) -> Any:
    iterators = module(w, "tariterators")

    def stage(source: Any) -> Any:
        streams = iterators.url_opener(source, handler=w.warn_and_continue)
        # webdataset 1 stops such loops with a KeyError, which is why open_clip pins 0.2.86; without its marks it reads as that does.
        marks = {"eof_value": None} if w is theirs else {}
        return group_by_keys_nothrow(iterators.tar_file_expander(streams, handler=w.warn_and_continue, **marks), w)

    return stage


def own_loop_of_today(w: Any, d: str) -> Any:
    """A loop that asks for the mark behind each shard, as those written for webdataset 1 do: two shards hold the same keys."""
    iterators = module(w, "tariterators")

    def stage(source: Any) -> Any:
        names: list[str] = []
        for file in iterators.tar_file_expander(iterators.url_opener(source)):
            if file == {}:
                yield tuple(names)
                names = []
            else:
                names.append(file["fname"])

    return w.DataPipeline(w.SimpleShardList([d + "/im-0000.tar"] * 2), stage)


def grouped(w: Any, d: str, **marks: Any) -> Any:
    """Files grouped by webdataset's own function: the last record of one shard has the key of the first of the next."""
    iterators = module(w, "tariterators")
    tar(Path(d) / "single.tar", [("a.cls", b"1"), ("a.txt", b"x")])
    shards = [{"url": f"{d}/single.tar"}] * 2
    if w is not theirs and marks:
        shards = [{"url": f"{d}/single.tar"}, {"url": f"{d}/./single.tar"}]
    files = iterators.tar_file_expander(iterators.url_opener(shards), **({} if w is theirs else marks))
    return [sample["__key__"] for sample in iterators.group_by_keys(files)]


def open_clip(w: Any, d: str) -> Any:
    return w.DataPipeline(
        w.SimpleShardList(d + "/odd.tar"),
        w.split_by_node,
        w.split_by_worker,
        tarfile_to_samples_nothrow(w),
        w.select(lambda sample: "cls" in sample),
        w.decode("pilrgb", handler=w.warn_and_continue),
        w.rename(image="jpg;png;jpeg;webp", text="cls"),
        w.map_dict(image=np.asarray, text=str),
        w.to_tuple("image", "text"),
        w.batched(3, partial=False),
    )


def own_shuffle(w: Any, d: str) -> Any:
    """open_clip's `detshuffle2`, a stage of one's own that calls `filters._shuffle`."""

    class Shuffle2(w.PipelineStage):  # type: ignore[misc,name-defined]
        epoch = -1

        def run(self, source: Any) -> Any:
            self.epoch += 1
            return module(w, "filters")._shuffle(source, 5, 2, random.Random(self.epoch))

    return sorted(sample["__key__"] for sample in pipe(w, d, Shuffle2()))


def resampled_shards(w: Any, d: str) -> Any:
    """open_clip's `ResampledShards2`, a shard list of one's own."""

    class Own(module(w, "pytorch").IterableDataset if w is theirs else object):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.urls = module(w, "shardlists").expand_urls(d + "/im-{0000..0003}.tar")

        def __iter__(self) -> Any:
            draw = random.Random(1)
            return ({"url": draw.choice(self.urls)} for _ in range(3))

    return w.DataPipeline(Own(), w.tarfile_to_samples(), w.to_tuple("__key__"))


def pushed(w: Any, d: str) -> Any:
    """Reading from openers of one's own, by scheme."""
    w.gopen_schemes["own"] = lambda url, mode, bufsize, **options: open(d + url.removeprefix("own:/"), mode)  # noqa: SIM115
    try:
        return list(w.DataPipeline(w.SimpleShardList("own://im-{0000..0001}.tar"), w.tarfile_to_samples(), w.to_tuple("__key__", "cls")))
    finally:
        del w.gopen_schemes["own"]


def opened_by_template(w: Any, d: str) -> Any:
    """What an opener of one's own is asked for by a data set of a template: each shard."""
    asked: list[str] = []

    def opener(url: str, mode: str = "rb", bufsize: int = 8192, **options: Any) -> Any:
        asked.append(url)
        return open(d + url.removeprefix("own:/"), mode)

    w.gopen_schemes["own"] = opener
    try:
        samples = list(w.WebDataset("own://im-{0000..0001}.tar", shardshuffle=False).to_tuple("__key__", "cls"))
    finally:
        del w.gopen_schemes["own"]
    return [*samples, *asked]


def piped(w: Any, d: str) -> Any:
    """Shards of a command, by a function that runs what `pipe:` names."""
    before = w.gopen_schemes["pipe"]
    w.gopen_schemes["pipe"] = lambda url, mode="rb", bufsize=8192, **options: io.BytesIO(subprocess.check_output(url[5:].split()))
    try:
        return list(w.WebDataset(f"pipe:cat {d}/im-{{0000..0001}}.tar", shardshuffle=False))
    finally:
        w.gopen_schemes["pipe"] = before


def built_without_init(w: Any, d: str) -> Any:
    """A data set that never calls `WebDataset.__init__`, as HaMeR and 4D-Humans have it."""

    class Mixed(w.WebDataset):  # type: ignore[misc,name-defined]
        def __init__(self, datasets: Any, weights: Any) -> None:
            super(w.WebDataset, self).__init__()
            self.append(w.RandomMix(datasets, weights))

    mixed = Mixed([w.WebDataset(d + "/im-{0000..0003}.tar", shardshuffle=False)], [1.0])
    keys = [sample["__key__"] for sample in mixed.with_epoch(40).shuffle(20, initial=20)]
    return [len(keys), len(set(keys))]


def dotted(w: Any, d: str) -> Any:
    """Names with dots in keys, as of arXiv, renamed before they are cut."""
    tar(Path(d) / "arxiv.tar", [(f"0704/0704.{n:04d}.{ext}", b"%d" % n) for n in range(4) for ext in ("txt", "json")])
    rename = lambda name: name.replace(".", "_", 1)  # noqa: E731
    return list(w.DataPipeline(w.SimpleShardList(d + "/arxiv.tar"), w.tarfile_to_samples(rename_files=rename)))


def directory(w: Any, d: str) -> Any:
    folder = Path(d) / f"queue-{w.__name__}"
    folder.mkdir()
    for n in range(3):
        (folder / f"{n}.tar").write_bytes((Path(d) / f"im-000{n}.tar").read_bytes())
    found = module(w, "shardlists").DirectoryShardList(f"{folder}/", pattern="*.tar", poll=None, mode="unlink")
    return sorted(sample["__key__"] for sample in w.DataPipeline(found, w.tarfile_to_samples()))


def double(source: Any, times: int = 2) -> Any:
    return (item for item in source for _ in range(times))


def handled(w: Any, d: str, handler: str, *urls: str) -> Any:
    source = w.SimpleShardList([d + url for url in urls])
    return w.DataPipeline(source, w.tarfile_to_samples(handler=getattr(w, handler)), w.to_tuple("__key__"))


SCRIPTS: dict[str, Script] = {
    "a function as source": lambda w, d: w.DataPipeline(lambda: iter([1, 2, 3])),
    "a list of stages": lambda w, d: w.DataPipeline([shards(w, d), w.tarfile_to_samples(), w.to_tuple("cls")]),
    "None is left out": lambda w, d: w.DataPipeline(shards(w, d), None, w.tarfile_to_samples(), None),
    "shards": lambda w, d: shards(w, "x"),
    "shards with a seed": lambda w, d: w.SimpleShardList("{00..19}", seed=17),
    "len of shards": lambda w, d: [len(shards(w, "x"))],
    "samples": lambda w, d: pipe(w, d),
    "tarfile_samples as it is": lambda w, d: w.DataPipeline(shards(w, d), w.tarfile_samples),
    "README": lambda w, d: pipe(w, d, w.decode("rgb8"), w.to_tuple("png", "cls"), w.batched(5)),
    "compose": lambda w, d: pipe(w, d).compose(w.decode(), w.to_tuple("cls", "txt")),
    "append": lambda w, d: (lambda p: [p.append(w.to_tuple("cls")), *p][1:])(pipe(w, d)),
    "stage": lambda w, d: [pipe(w, d).stage(0).urls],
    "pipeline": lambda w, d: [len(pipe(w, d, w.decode()).pipeline)],
    "split_by_node and split_by_worker": lambda w, d: w.DataPipeline(
        shards(w, d), w.split_by_node, w.split_by_worker, w.tarfile_to_samples()
    ),
    "single_node_only": lambda w, d: w.DataPipeline(shards(w, d), w.single_node_only, w.tarfile_to_samples()),
    "select": lambda w, d: pipe(w, d, w.select(lambda s: s["cls"] == b"1")),
    "map": lambda w, d: pipe(w, d, w.map(operator.itemgetter("cls"))),
    "map_dict": lambda w, d: pipe(w, d, w.map_dict(cls=int)),
    "map_tuple": lambda w, d: pipe(w, d, w.to_tuple("cls", "txt"), w.map_tuple(int, None)),
    "rename": lambda w, d: pipe(w, d, w.rename(image="png;jpg", keep=False)),
    "rename_keys": lambda w, d: pipe(w, d, w.rename_keys(image="png", keep_unselected=True)),
    "extract_keys": lambda w, d: pipe(w, d, w.extract_keys("*.png", "*.cls")),
    "slice": lambda w, d: pipe(w, d, w.slice(7)),
    "xdecode": lambda w, d: pipe(w, d, w.xdecode(("*.json", lambda file: file.read()), must_decode=False)),
    "associate": lambda w, d: pipe(w, d, w.associate({"000001": {"extra": 1}})),
    "associate with a function": lambda w, d: pipe(w, d, w.associate(lambda key: {"extra": key})),
    "batched and unbatched": lambda w, d: pipe(w, d, w.decode("rgb8"), w.to_tuple("png", "cls"), w.batched(5), w.unbatched()),
    "Cached": lambda w, d: (lambda p: [list(p), list(p)])(pipe(w, d, w.Cached())),
    "info": lambda w, d: pipe(w, d, w.info(n=1, stream=open("/dev/null", "w"))),  # noqa: SIM115
    "pipelinefilter": lambda w, d: pipe(w, d, w.to_tuple("cls"), w.pipelinefilter(double)(times=3)),
    "getfirst": lambda w, d: [w.getfirst({"a": 1, "b": 2}, "c;b"), w.getfirst({}, "x", default=5, missing_is_error=False)],
    "transform_with": lambda w, d: [w.transform_with([1, 2, 3], [str, None])],
    "a function of one's own": lambda w, d: pipe(w, d, lambda source: islice(source, 5)),
    "non_empty": lambda w, d: pipe(w, d, w.non_empty),
    "non_empty of nothing": lambda w, d: w.DataPipeline(lambda: iter([]), w.non_empty),
    "with_epoch": lambda w, d: pipe(w, d, w.to_tuple("__key__")).with_epoch(60),
    "with_epoch, then again": lambda w, d: (lambda p: [len(list(p)), len(list(p.with_epoch(5))), len(list(p))])(pipe(w, d)),
    "repeat": lambda w, d: pipe(w, d, w.to_tuple("__key__")).repeat(3),
    "with_length": lambda w, d: [len(pipe(w, d).with_length(9, silent=True))],
    "resampled": lambda w, d: [len(list(w.DataPipeline(shards(w, "x"), w.resampled(27))))],
    "ResampledShards": lambda w, d: [len(list(w.ResampledShards("x-{0..9}", nshards=30)))],
    "ResampledShards of nothing": lambda w, d: w.ResampledShards([]),
    "shardspec": lambda w, d: w.DataPipeline(w.shardspec(d + "/im-0000.tar"), w.tarfile_samples),
    "a missing shard": lambda w, d: handled(w, d, "reraise_exception", "/im-0000.tar", "/gone.tar"),
    "a missing shard, ignored": lambda w, d: handled(w, d, "ignore_and_continue", "/im-0000.tar", "/gone.tar", "/im-0001.tar"),
    "a missing shard, stopped": lambda w, d: handled(w, d, "ignore_and_stop", "/im-0000.tar", "/gone.tar", "/im-0001.tar"),
    "no tar, ignored": lambda w, d: handled(w, d, "ignore_and_continue", "/im-0000.tar", "/text.tar", "/im-0001.tar"),
    "open_clip": open_clip,
    "open_clip's shuffle": own_shuffle,
    "a loop of today": own_loop_of_today,
    "files grouped": grouped,
    "files grouped, shards told apart by URL": lambda w, d: grouped(w, d, eof_value=None),
    "sizes that are whole floats": lambda w, d: pipe(w, d, w.shuffle(10.0, initial=1e1), w.batched(48.0), w.map(len)),
    "no shuffle": lambda w, d: pipe(w, d, w.shuffle(-1)),
    "a stage of one's own by the names of filters": lambda w, d: [issubclass(module(w, "filters").PipelineStage, w.PipelineStage)],
    "a filter by the names of compat": lambda w, d: pipe(w, d, module(w, "compat").pipelinefilter(double)()),
    "torch's names": lambda w, d: [
        issubclass(w.WebDataset, module(w, "pytorch").IterableDataset),
        isinstance(module(w, "pytorch").TorchTensor, type),
    ],
    "open_clip's shards": resampled_shards,
    "an opener of one's own": pushed,
    "an opener of one's own and a template": opened_by_template,
    "a command, by an opener of one's own": piped,
    "a subclass that skips __init__": built_without_init,
    "arXiv": dotted,
    "a folder of shards": directory,
    "RoundRobin": lambda w, d: w.RoundRobin([pipe(w, d, w.to_tuple("cls")), pipe(w, d, w.to_tuple("txt"))]),
    "RoundRobin, the longest": lambda w, d: w.RoundRobin([[1, 2, 3], [4], [5, 6]], longest=True),
    "RandomMix": lambda w, d: sorted(w.RandomMix([pipe(w, d, w.to_tuple("cls")), [(b"x",)] * 9], longest=True)),
    "RandomMix of one": lambda w, d: list(w.RandomMix([[1, 2, 3], [4, 5]], probs=[1, 0])),
    "FluidWrapper": lambda w, d: w.FluidWrapper(pipe(w, d)).to_tuple("cls").batched(5),
    "MockDataset": lambda w, d: w.MockDataset((1, 2), 7),
    "repeatedly": lambda w, d: w.repeatedly([1, 2, 3], nepochs=2),
    "split_by_worker at once": lambda w, d: w.split_by_worker(iter([1, 2, 3])),
    "the shards of an expression": lambda w, d: module(w, "shardlists").expand_urls("a-{0..2}.tar::b.tar"),
    "stages at once": lambda w, d: module(w, "filters")._batched(iter([(1, "a"), (2, "b"), (3, "c")]), 2),
    "shuffle is all there": lambda w, d: sorted(sample["__key__"] for sample in pipe(w, d, w.shuffle(7, initial=3))),
    "shuffle by its names": lambda w, d: sorted(sample["__key__"] for sample in pipe(w, d, w.shuffle(bufsize=10, initial=3))),
    "detshuffle": lambda w, d: (lambda stage: [sorted(s["__key__"] for s in pipe(w, d, stage)), stage.epoch])(w.detshuffle(10)),
    "rsample": lambda w, d: pipe(w, d, w.rsample(1.0)),
    "an error of decode": lambda w, d: pipe(w, d, w.decode(lambda key, data: 1 // 0)),
    "ten arrays": lambda w, d: module(w, "tenbin").decode_buffer(module(w, "tenbin").encode_buffer([np.eye(3), np.arange(4, dtype="i2")])),
    "ten arrays as bytes": lambda w, d: [bytes(module(w, "tenbin").encode_buffer([np.eye(3, dtype="f4")]))],
    "a worker's number": lambda w, d: [module(w, "utils").pytorch_worker_info()],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("scripts")
    make(path)
    return str(path)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_gives_what_it_gives_with_webdataset(folder: str, name: str) -> None:
    assert differences(SCRIPTS[name], wds, theirs, folder) == []


class TestNames:
    # What README, FAQ, docs and notebooks of webdataset 1.0.2 use of `wds`, counted in its repository.
    TEXTS = (
        *("DataPipeline", "Decoder", "FluidInterface", "RandomMix", "ResampledShards", "ShardWriter", "SimpleShardList"),
        *("TarWriter", "WebDataset", "WebLoader", "batched", "decode", "detshuffle", "gopen"),
        *("gopen_schemes", "handle_extension", "ignore_and_continue", "map", "map_dict", "map_tuple", "rename"),
        *("reraise_exception", "select", "shuffle", "slice", "split_by_node", "split_by_worker", "tarfile_samples"),
        *("tarfile_to_samples", "to_tuple", "torch_audio", "torch_video", "unbatched", "warn_and_continue", "with_epoch"),
    )
    ABSENT = {"LMDBCached": "pickles every sample", "MultiShardSample": "obsolete in webdataset itself"}

    def test_every_name_that_webdataset_exports_is_there_but_two(self) -> None:
        modules = type(sys)
        exported = {name for name, value in vars(theirs).items() if not name.startswith("_") and not isinstance(value, modules)}

        assert len(exported) >= 69
        assert set(self.ABSENT) == {name for name in exported if not hasattr(wds, name)}

    def test_every_name_that_its_texts_use_is_there(self) -> None:
        assert len(self.TEXTS) == 35
        assert [name for name in self.TEXTS if not hasattr(wds, name)] == []

    def test_its_modules_have_their_names(self) -> None:
        expected = {"autodecode", "cache", "compat", "extradatasets", "filters", "gopen", "handlers", "mix", "pipeline", "shardlists"}
        expected |= {"pytorch", "tariterators", "tenbin", "utils", "writer"}

        for name in expected:
            there = {each for each in vars(importlib.import_module(f"webdataset.{name}")) if not each.startswith("_")}
            assert there & set(vars(importlib.import_module(f"{wds.__name__}.{name}"))), name
