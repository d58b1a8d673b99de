"""`WebDataset`: shards as an iterable of samples, for PyTorch where it is installed."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from tarviz.dialects import refuse_unknown
from tarviz.dialects.webdataset.autodecode import ByExtension, Decoder
from tarviz.dialects.webdataset.handlers import Handler, ignore_and_continue, reraise_exception
from tarviz.dialects.webdataset.parts import per_item, stages
from tarviz.dialects.webdataset.parts.fluid import FluidInterface
from tarviz.dialects.webdataset.parts.places import Passes, WorkerPlace
from tarviz.dialects.webdataset.parts.resuming import Pass, place_of, refuse_mixed, take_up
from tarviz.dialects.webdataset.parts.source import Source
from tarviz.dialects.webdataset.pipeline import DataPipeline, number_of, stage_of
from tarviz.dialects.webdataset.shardlists import Splitter, envsubst, names_of, single_node_only, split_by_node
from tarviz.dialects.webdataset.tariterators import ShardReading
from tarviz.model.errors import UsageError, redact
from tarviz.read.stream import ReadOptions, ReadReport

if TYPE_CHECKING:
    from tarviz.dialects.webdataset.cache import FileCache

_UNSET: Any = object()


class WebDataset(DataPipeline, FluidInterface):
    """Samples of tar shards: dicts of `__key__`, `__url__` and the fields as bytes, then whatever the stages make of them.

    `urls` is a template (`train-{0000..0147}.tgz`), a folder, or a list; lists in one text are joined by `::`.

    The keywords of 2019: `extensions="jpg;png cls"` makes tuples (`;` alternatives), `decoder` an image spec (`rgb`
    when left out; None: bytes), a dict of functions by extension, or a function of the sample; `transforms` a list with
    one function per place of the tuple; `shuffle=N` shuffles the shards and the samples through a buffer of N;
    `size`, `epochs`, `pipeline`, `associate`, `errors=False`. With none of these, samples are raw, as today.

    The keywords of today: `handler`, `shardshuffle`, `resampled`, `repeat`, `nodesplitter`, `workersplitter`, `select_files`,
    `rename_files`, `empty_check`, `seed`; with `cache_dir` remote shards are kept there, up to `cache_size` bytes, under the
    names that `url_to_name` gives. `detshuffle`, `verbose`, `mode` are taken and change nothing, as shuffling always depends
    on the seed alone. Reading options of tarviz (`strict`, `key_split`, `duplicates`, …) may follow.

    In a `DataLoader` each worker reads shards of its own, or record ranges of its own where there are fewer shards than
    workers: every record comes once. Each `iter` is a new pass with a new order; `report` says what the latest one met.
    """

    # A subclass may build its pipeline without this class's __init__ (HaMeR, 4D-Humans).
    resumed: dict[str, Any] | None = None
    _pass = Pass()

    def __init__(
        self,
        urls: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        handler: Handler = reraise_exception,
        mode: str | None = None,
        resampled: bool = False,
        repeat: bool = False,
        *,
        extensions: str | Sequence[str] | None = None,
        decoder: Any = _UNSET,
        transforms: Sequence[Callable[[Any], Any] | None] | Callable[[Any], Any] | None = None,
        shuffle: int = 0,
        size: int | None = None,
        epochs: int = 1,
        pipeline: Callable[[Iterator[Any]], Iterable[Any]] | None = None,
        associate: Mapping[str, Mapping[str, Any]] | Callable[[str], Mapping[str, Any]] | None = None,
        errors: bool = True,
        shardshuffle: int | bool | None = None,
        detshuffle: bool = True,
        nodesplitter: Splitter | None = single_node_only,
        workersplitter: Splitter | bool = True,
        select_files: Callable[[str], bool] | None = None,
        empty_check: bool = True,
        rename_files: Callable[[str], str] | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        cache_size: int | None = None,
        url_to_name: Callable[[str], str] | None = None,
        verbose: bool = False,
        seed: int | None = None,
        unsafe: Iterable[str] = (),
        **options: Any,
    ) -> None:
        _check_options(options)
        if isinstance(shuffle, bool) or not isinstance(shuffle, int) or shuffle < 0:
            raise UsageError(f"shuffle={shuffle!r} is not the size of a buffer.", hint="For example shuffle=1000.")
        super().__init__()
        policy = handler if errors else ignore_and_continue
        cache = _cache(cache_dir, cache_size, url_to_name)
        source = Source(
            urls=_urls(urls),
            shards=ShardReading(ReadOptions(**options), policy, select_files, rename_files, cache, places=True),
            handler=policy,
            shuffled=bool(shuffle) or bool(shardshuffle),
            resampled=resampled or mode == "resampled",
            nodesplitter=nodesplitter,
            workersplitter=workersplitter,
            associate=associate,
            empty_check=empty_check,
        )
        self.seed = seed
        self.repetitions = None if repeat else epochs
        self.size = size
        self._pass = Pass()
        named = extensions is not None or decoder is not _UNSET or transforms is not None or shuffle > 0
        decoder = "rgb" if decoder is _UNSET and named else decoder
        self.pipeline = [source, *_stages_of_2019(extensions, decoder, transforms, shuffle, unsafe)]
        if pipeline is not None:
            self.append(pipeline)

    @property
    def source(self) -> Source:
        """The shards and how they are shared out: the first part of the pipeline."""
        if not self._has_shards():
            raise UsageError(f"{type(self).__name__} did not call WebDataset.__init__: it has no shards of its own, and no state.")
        found: Source = self.pipeline[0]
        return found

    def _has_shards(self) -> bool:
        return bool(self.pipeline) and isinstance(self.pipeline[0], Source)

    @property
    def epoch(self) -> int:
        """The number of the next pass."""
        return self.passes.next

    def compose(self, *stages: Any) -> Self:
        """The same with more stages; this one stays."""
        other = super().compose(*stages)
        other._pass = Pass()
        return other

    @property
    def report(self) -> ReadReport:
        """Records, bytes, warnings and skips of the latest pass in this process."""
        return self._pass.progress.report

    def __repr__(self) -> str:
        urls = map(redact, getattr(self.pipeline[0], "urls", ()) if self.pipeline else ())
        return f"<{type(self).__name__} {', '.join(urls)} and {len(self.pipeline[1:])} stages>"

    def __iter__(self) -> Iterator[Any]:
        if not self._has_shards():
            return super().__iter__()
        saved, self.resumed = self.resumed, None
        here = self.passes.here()
        if saved is None:
            self._pass = one = Pass()
            return self._run(one, here, self.passes, None)
        epoch = self.passes.begin(here)
        begun = [
            (one := Pass(given=state["given"]), self._run(one, replace(here, **place_of(state)), epoch, state))
            for state in take_up(saved, here)
        ]
        if len(begun) == 1 and "ranks" not in saved:
            self._pass, run = begun[0]
            return run
        return self._in_turn(begun)

    def iterator(self) -> Iterator[Any]:
        """What `iter` gives."""
        return iter(self) if self._has_shards() else super().iterator()

    iterator1 = iterator

    def _in_turn(self, runs: list[tuple[Pass, Iterator[Any]]]) -> Iterator[Any]:
        """What several workers had left, an item of each in turn."""
        while runs:
            for each in list(runs):
                self._pass, run = each
                for item in run:
                    yield item
                    break
                else:
                    runs.remove(each)
        self._pass = Pass(self._pass.progress)

    def _run(self, one: Pass, here: WorkerPlace, epoch: Passes | int, state: dict[str, Any] | None) -> Iterator[Any]:
        joined, needs = stages.fuse([stage_of(stage) for stage in self.pipeline[1:]])
        held = max((at + 1 for at, stage in enumerate(joined) if not stage.prompt), default=0)
        epoch = epoch if isinstance(epoch, int) else epoch.begin(here)
        epoch, number = (epoch, 0) if state is None else (state["epoch"], state["round"])
        limit = self.nsamples if self.repetitions != 1 else None
        while self.repetitions is None or number < self.repetitions:
            seed = self._entropy(number_of(epoch, number), here) if state is None else state["seed"]
            one.begin(epoch, number, seed, here, exact=held == 0)
            if state is not None and held == 0:
                one.progress.share, one.progress.record = state["share"], state["record"]
            flow: Iterator[Any] = self.source.run(one.progress, seed, here, needs)
            for at, stage in enumerate(joined):
                flow = stage.run(flow, f"{seed}/{here.node}/{here.worker}/{at}")
                if at + 1 == held:
                    flow = one.counted(flow, 0 if state is None else state["done"])
            before, resumed, state = one.given, state is not None, None
            for item in flow:
                one.given += 1
                yield item
                if one.given == limit:
                    return
            if one.given == before and not resumed:
                return
            number += 1

    def _entropy(self, number: str, here: WorkerPlace) -> str:
        """What the order of a pass depends on: the seed if there is one, else what the DataLoader drew for its pass."""
        return f"{self.seed}/{number}" if self.seed is not None or here.chance is None else f"{here.chance}/{number}"

    def state_dict(self) -> dict[str, Any]:
        """Where the latest iteration stands, JSON-ready. In a worker: where that worker stands (`WebLoader` gathers them)."""
        if self.resumed is not None:
            return dict(self.resumed)
        if self._pass.seed is not None:
            refuse_mixed(self._pass.here.nodes, self.passes.here().nodes)
        return self.position()

    def position(self) -> dict[str, Any]:
        """Where the worker, of this run or of one that was resumed, stands whose item came last."""
        return self._pass.state() if self._pass.seed is not None else self._fresh()

    def _fresh(self) -> dict[str, Any]:
        _ = self.source  # it refuses where there is none
        here, one = self.passes.here(), Pass()
        one.begin(self.epoch, 0, self._entropy(number_of(self.epoch), here), here, exact=True)
        return one.state()

    def load_state_dict(self, state: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """The next iteration goes on where `state` was taken: the rest of that pass, in its order.

        A run of several ranks goes on with another number of them, each taking up what one or more had left, when the states of
        all ranks are given as a list, in their order, and the shards are split by `split_by_node`.
        """
        here = self.passes.here()
        if isinstance(state, Mapping):
            self._check_form(state)
            whose = state.get("common", state)
            if whose and (whose["node"], whose["nodes"]) != (here.node, here.nodes):
                raise UsageError(
                    f"the state is that of rank {whose['node']} of {whose['nodes']}; this is rank {here.node} of {here.nodes}.",
                    hint="With another number of ranks, give the states of all of them as a list.",
                )
            self.resumed = dict(state)
        else:
            self.resumed = self._of_ranks(list(state), here)
        epoch = None if self.resumed is None else self.resumed.get("common", self.resumed).get("epoch")
        if epoch is not None:
            self.passes.pin(epoch)

    def _check_form(self, state: Mapping[str, Any]) -> None:
        wanted = {"turn", "workers", "common", "states"} if "states" in state else set(self._fresh())
        if set(state) != wanted:
            raise UsageError(f"this is not a state of a WebDataset: {state!r}.")

    def _of_ranks(self, states: list[Mapping[str, Any]], here: WorkerPlace) -> dict[str, Any] | None:
        """One state of the states of all ranks: that of this rank where there are as many as before."""
        for node, state in enumerate(states):
            self._check_form(state)
            whose = state.get("common", state)
            if whose and (whose["node"], whose["nodes"]) != (node, len(states)):
                raise UsageError(
                    f"state {node} of {len(states)} is that of rank {whose['node']} of {whose['nodes']}.",
                    hint="Give the states of all ranks, in their order.",
                )
        if len(states) == here.nodes:
            return dict(states[here.node])
        if self.source.nodesplitter is not split_by_node:
            raise UsageError(
                "another number of ranks takes over only what split_by_node has split.", hint="Pass nodesplitter=split_by_node."
            )
        common = next((whose for state in states if (whose := state.get("common", state))), None)
        return None if common is None else {"common": {name: common[name] for name in ("epoch", "seed")}, "ranks": [*map(dict, states)]}


def _stages_of_2019(extensions: Any, decoder: Any, transforms: Any, shuffle: int, unsafe: Iterable[str]) -> Iterator[stages.Stage]:
    if shuffle > 1:
        yield stages.Shuffle(shuffle)
    if decoder is True:
        decoder = "rgb"
    if isinstance(decoder, str):
        yield stages.Each(Decoder([decoder], unsafe=unsafe))
    elif isinstance(decoder, Mapping):
        yield stages.Each(Decoder([ByExtension(decoder)], unsafe=unsafe))
    elif callable(decoder):
        yield stages.Each(partial(per_item.apply, decoder))
    elif decoder is not _UNSET and decoder is not None and decoder is not False:
        raise UsageError(
            f"decoder={decoder!r} is not an image spec, dict or function.", hint='For example decoder="rgb", or None for bytes.'
        )
    groups = per_item.groups_of((extensions,) if isinstance(extensions, str) else tuple(extensions)) if extensions is not None else None
    if groups is not None:
        yield stages.Each(per_item.ToTuple(groups))
    if transforms is None:
        return
    if groups is None:
        raise UsageError("transforms work on tuples.", hint='Name the fields with extensions="jpg cls", or use .map_dict(jpg=…).')
    functions = tuple(transforms) if isinstance(transforms, Iterable) else (transforms,)
    if len(functions) != len(groups):
        raise UsageError(
            f"there are {len(functions)} transforms for {len(groups)} extensions.", hint="Give one for each; None leaves a value as it is."
        )
    for f in functions:
        if f is not None and not callable(f):
            raise UsageError(f"a transform is a function or None, got {f!r}.")
    yield stages.Each(partial(per_item.apply_by_place, functions, True))


def _cache(folder: Any, size: int | None, url_to_name: Callable[[str], str] | None) -> FileCache | None:
    """The cache for remote shards; the environment's `WDS_CACHE` and `WDS_CACHE_SIZE` stand in for what is not given."""
    folder = os.environ.get("WDS_CACHE") if folder is None else folder
    size = int(os.environ.get("WDS_CACHE_SIZE", -1)) if size is None else int(size)
    if folder is None or size == 0:
        return None
    from tarviz.dialects.webdataset.cache import FileCache, url_to_cache_name

    folder = os.path.expanduser(os.fspath(folder))
    if not os.path.isdir(folder):
        raise UsageError(f"the folder {folder} for cached shards does not exist.", hint="Make it first, or leave cache_dir out.")
    return FileCache(folder, cache_size=size, url_to_name=url_to_name or url_to_cache_name)


def _urls(urls: Any) -> tuple[str, ...]:
    parts = os.fspath(urls).split("::") if isinstance(urls, str | os.PathLike) else names_of(urls)
    found = tuple(_url(envsubst(part)) for part in parts)
    if not found or not all(found):
        raise UsageError("the list of urls is empty.", hint="Name a shard or a template such as train-{0000..0147}.tar.")
    return found


def _url(url: str) -> str:
    # `file:name`, as the deck writes it, beside `file:///name`
    return url[5:] if url.startswith("file:") and not url.startswith("file://") else url


def _check_options(options: Mapping[str, Any]) -> None:
    known = set(ReadOptions.__dataclass_fields__)
    if refused := [name for name in options if name in ("opener", "keys", "container", "extra_meta", "prepare_for_worker")]:
        raise UsageError(f"{refused[0]} is not offered here.", hint="Stores open URLs by their scheme; see tarviz.stores.")
    own = [name for name in inspect.signature(WebDataset).parameters if name not in ("urls", "options")]
    refuse_unknown("WebDataset", options.keys() - known, [*own, *sorted(known)])
