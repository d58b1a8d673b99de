"""`WebDataset`: shards as an iterable of samples, for PyTorch where it is installed."""

from __future__ import annotations

import contextlib
import copy
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from tarviz.dialects.webdataset import _stages as stages
from tarviz.dialects.webdataset._decode import ByExtension, Decoder
from tarviz.dialects.webdataset._fluid import Fluid
from tarviz.dialects.webdataset._handlers import Handler, ignore_and_continue, reraise_exception
from tarviz.dialects.webdataset._source import Place, Progress, Source, Splitter, place, single_node_only
from tarviz.model.errors import UsageError
from tarviz.read.stream import ReadOptions, ReadReport


class Base:
    """An iterable and no more; where torch is installed, its `IterableDataset` stands here."""


if not TYPE_CHECKING:
    with contextlib.suppress(ImportError):
        from torch.utils.data import IterableDataset as Base

_UNSET: Any = object()
_2019 = ("extensions", "decoder", "transforms", "shuffle", "size", "pipeline", "epochs", "errors", "associate")


class WebDataset(Base, Fluid):
    """Samples of tar shards: dicts of `__key__`, `__url__` and the fields as bytes, then whatever the stages make of them.

    `urls` is a template (`train-{0000..0147}.tgz`), a folder, or a list; lists in one text are joined by `::`.

    The keywords of 2019: `extensions="jpg;png cls"` makes tuples (`;` alternatives), `decoder` an image spec (`rgb`
    when left out; None: bytes), a dict of functions by extension, or a function of the sample; `transforms` a list with
    one function per place of the tuple; `shuffle=N` shuffles the shards and the samples through a buffer of N;
    `size`, `epochs`, `pipeline`, `associate`, `errors=False`. With none of these, samples are raw, as today.

    The keywords of today: `handler`, `shardshuffle`, `resampled`, `nodesplitter`, `workersplitter`, `select_files`,
    `empty_check`, `seed`; `detshuffle`, `cache_dir`, `cache_size`, `verbose`, `mode` are taken and change nothing, as
    shuffling always depends on the seed alone and nothing is cached. Reading options of tarviz (`strict`, `key_split`,
    `duplicates`, …) may follow.

    In a `DataLoader` each worker reads shards of its own, or record ranges of its own where there are fewer shards than
    workers: every record comes once. Each `iter` is a new pass with a new order; `report` says what the latest one met.
    """

    def __init__(
        self,
        urls: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
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
        handler: Handler = reraise_exception,
        mode: str | None = None,
        resampled: bool = False,
        shardshuffle: int | bool | None = None,
        detshuffle: bool = True,
        nodesplitter: Splitter | None = single_node_only,
        workersplitter: Splitter | bool = True,
        select_files: Callable[[str], bool] | None = None,
        empty_check: bool = True,
        cache_dir: str | None = None,
        cache_size: int = -1,
        verbose: bool = False,
        seed: int | None = None,
        unsafe: Iterable[str] = (),
        **options: Any,
    ) -> None:
        _known(options)
        if isinstance(shuffle, bool) or not isinstance(shuffle, int) or shuffle < 0:
            raise UsageError(f"shuffle={shuffle!r} is not the size of a buffer.", hint="For example shuffle=1000.")
        self.source = Source(
            urls=_urls(urls),
            options=ReadOptions(**options),
            handler=handler if errors else ignore_and_continue,
            shuffled=bool(shuffle) or bool(shardshuffle),
            resampled=resampled or mode == "resampled",
            nodesplitter=nodesplitter,
            workersplitter=workersplitter,
            select_files=select_files,
            associate=associate,
            empty_check=empty_check,
        )
        self.seed = seed
        self.epoch = 0
        self._passes: int | None = epochs
        self._limit: int | None = None
        self._length = size
        self._saved: dict[str, Any] | None = None
        self._pass = Pass(Progress())
        self._stages: tuple[stages.Stage, ...] = ()
        named = extensions is not None or decoder is not _UNSET or transforms is not None or shuffle > 0
        self._stages = tuple(_stages_of_2019(extensions, "rgb" if decoder is _UNSET and named else decoder, transforms, shuffle, unsafe))
        if pipeline is not None:
            self._stages += (stages.Custom(pipeline),)

    def _then(self, *more: stages.Stage) -> Self:
        other = copy.copy(self)
        other._stages = (*self._stages, *more)
        other._pass = Pass(Progress())
        return other

    @property
    def report(self) -> ReadReport:
        """Records, bytes, warnings and skips of the latest pass in this process."""
        return self._pass.progress.report

    def with_length(self, n: int, silent: bool = False) -> Self:
        """The same with `len` n, for training loops that want one; what it yields stays."""
        return self._changed(_length=n)

    def with_epoch(self, nsamples: int = -1, nbatches: int = -1) -> Self:
        """The same with epochs of so many items: the shards are read again and again, up to that number."""
        limit = max(nsamples, nbatches)
        return self._changed(_passes=None, _limit=limit if limit > 0 else None)

    def repeat(self, nepochs: int = -1, nbatches: int = -1) -> Self:
        """The same, so many passes over the shards in one iteration; for ever when left out."""
        return self._changed(_passes=nepochs if nepochs > 0 else None, _limit=nbatches if nbatches > 0 else None)

    def _changed(self, **changes: Any) -> Self:
        other = self._then()
        for name, value in changes.items():
            setattr(other, name, value)
        return other

    def set_epoch(self, epoch: int) -> None:
        """The number of the next pass, which with the seed decides the order."""
        self.epoch = epoch

    def __len__(self) -> int:
        if self._length is None:
            raise TypeError("a WebDataset knows no length; with_length(n) gives it one, len(tarviz.index(urls)) counts")
        return self._length

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: Any) -> Any:
        raise TypeError("a WebDataset can only be iterated over; tarviz.index(urls)[17] reads one record")

    def __repr__(self) -> str:
        names = "".join(f".{type(stage).__name__}" for stage in self._stages)
        return f"<WebDataset {', '.join(self.source.urls)}{names}>"

    def __iter__(self) -> Iterator[Any]:
        saved, self._saved = self._saved, None
        here = place()
        state = None if saved is None else _own(saved, here)
        if state is not None:
            here = replace(here, worker=state["worker"])
        self._pass = one = Pass(Progress(), 0 if state is None else state["given"])
        return self._run(one, here, state)

    def _run(self, one: Pass, here: Place, state: dict[str, Any] | None) -> Iterator[Any]:
        joined, needs = stages.fused(self._stages)
        held = max((at + 1 for at, stage in enumerate(joined) if not stage.prompt), default=0)
        epoch, number = (self.epoch, 0) if state is None else (state["epoch"], state["round"])
        while self._passes is None or number < self._passes:
            seed = self._entropy(epoch, here) if state is None else state["seed"]
            one.begin(epoch, number, seed, here, exact=held == 0)
            if state is not None and held == 0:
                one.progress.share, one.progress.record = state["share"], state["record"]
            self.epoch = epoch + 1
            flow: Iterator[Any] = self.source.run(one.progress, seed, here, needs)
            for at, stage in enumerate(joined):
                flow = stage.run(flow, f"{seed}/{here.worker}/{at}")
                if at + 1 == held:
                    flow = one.counted(flow, 0 if state is None else state["done"])
            before, resumed, state = one.given, state is not None, None
            for item in flow:
                one.given += 1
                yield item
                if one.given == self._limit:
                    return
            if one.given == before and not resumed:
                return
            epoch, number = epoch + 1, number + 1

    def _entropy(self, epoch: int, here: Place) -> str:
        """What the order of a pass depends on: the seed if there is one, else what the DataLoader drew for its pass."""
        return f"{self.seed}/{epoch}" if self.seed is not None or here.seed is None else f"{here.seed}/{epoch}"

    def state_dict(self) -> dict[str, Any]:
        """Where the latest iteration stands, JSON-ready. In a worker: where that worker stands (`WebLoader` gathers them)."""
        if self._saved is not None:
            return dict(self._saved)
        return self._pass.state() if self._pass.seed is not None else self._fresh()

    def _fresh(self) -> dict[str, Any]:
        here = place()
        one = Pass(Progress())
        one.begin(self.epoch, 0, self._entropy(self.epoch, here), here, exact=True)
        return one.state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration goes on where `state` was taken: the rest of that pass, in its order."""
        wanted = {"turn", "workers", "common", "states"} if "states" in state else set(self._fresh())
        if not isinstance(state, Mapping) or set(state) != wanted:
            raise UsageError(f"this is no state of a WebDataset: {state!r}.")
        self._saved = dict(state)


def _own(saved: Mapping[str, Any], here: Place) -> dict[str, Any]:
    """The state of this worker: `saved` itself, or its part of what a `WebLoader` gathered.

    Workers take up the work of those whose turn comes next, so that the order of a DataLoader goes on too.
    """
    if saved["workers"] != here.workers or ("states" not in saved and saved["worker"] != here.worker):
        whose = f"worker {saved['worker']} of {saved['workers']}" if "worker" in saved else f"{saved['workers']} workers"
        raise UsageError(
            f"the state is that of {whose}; this is worker {here.worker} of {here.workers}.", hint="Resume with as many workers."
        )
    if "states" not in saved:
        return dict(saved)
    worker = (here.worker + saved["turn"]) % here.workers
    begin = {"share": 0, "record": 0, "done": 0, "given": 0, "round": 0}
    return saved["states"].get(str(worker)) or {**begin, **saved["common"], "worker": worker, "workers": here.workers}


class Pass:
    """One iteration over a data set: how far it is."""

    def __init__(self, progress: Progress, given: int = 0) -> None:
        self.progress = progress
        self.given = given
        self.done = 0
        self.epoch = 0
        self.round = 0
        self.seed: str | None = None
        self.here = Place()
        self.exact = True

    def begin(self, epoch: int, number: int, seed: str, here: Place, *, exact: bool) -> None:
        """A new pass over the shards."""
        self.progress = Progress(report=self.progress.report)
        self.epoch, self.round, self.seed, self.here, self.exact, self.done = epoch, number, seed, here, exact, 0

    def counted(self, flow: Iterator[Any], skip: int) -> Iterator[Any]:
        """The flow behind its first `skip` items, counted."""
        self.done = skip
        for item in itertools.islice(flow, skip, None):
            self.done += 1
            yield item

    def state(self) -> dict[str, Any]:
        """JSON-ready: pass, seed, worker; the record that comes next, or how many items are done behind the last shuffle."""
        place = {"epoch": self.epoch, "round": self.round, "seed": self.seed, "worker": self.here.worker, "workers": self.here.workers}
        share = {"share": self.progress.share, "record": self.progress.record} if self.exact else {"share": 0, "record": 0}
        return {**place, **share, "done": self.done, "given": self.given}


def _stages_of_2019(extensions: Any, decoder: Any, transforms: Any, shuffle: int, unsafe: Iterable[str]) -> Iterator[stages.Stage]:
    if shuffle > 1:
        yield stages.Shuffle(shuffle)
    if decoder is True:
        decoder = "rgb"
    if isinstance(decoder, str):
        yield stages.Decode(Decoder([decoder], unsafe=unsafe))
    elif isinstance(decoder, Mapping):
        yield stages.Decode(Decoder([ByExtension(decoder)], unsafe=unsafe))
    elif callable(decoder):
        yield stages.Map(decoder)
    elif decoder is not _UNSET and decoder is not None and decoder is not False:
        raise UsageError(f"decoder={decoder!r} is no image spec, dict or function.", hint='For example decoder="rgb", or None for bytes.')
    groups = stages.groups_of((extensions,) if isinstance(extensions, str) else tuple(extensions)) if extensions is not None else None
    if groups is not None:
        yield stages.ToTuple(groups)
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
    yield stages.MapTuple(functions, exact=True)


def _urls(urls: Any) -> tuple[str, ...]:
    if isinstance(urls, str | os.PathLike):
        parts: Iterable[Any] = os.fspath(urls).split("::")
    elif isinstance(urls, Iterable) and not isinstance(urls, bytes | Mapping):
        parts = [os.fspath(url) for url in urls]
    else:
        raise UsageError(f"urls are text or a list of texts, got {type(urls).__name__}.")
    found = tuple(_url(part) for part in parts)
    if not found or not all(found):
        raise UsageError("the list of urls is empty.", hint="Name a shard or a template such as train-{0000..0147}.tar.")
    return found


def _url(url: str) -> str:
    # `file:name`, as the deck writes it, beside `file:///name`
    return url[5:] if url.startswith("file:") and not url.startswith("file://") else url


def _known(options: Mapping[str, Any]) -> None:
    known = set(ReadOptions.__dataclass_fields__)
    for name in options:
        if name == "rename_files":
            raise UsageError(
                "rename_files is not offered: keys are cut before anything is renamed.", hint='Use .rename(new="old") behind it.'
            )
        if name in ("opener", "keys", "container", "extra_meta", "prepare_for_worker", "url_to_name"):
            raise UsageError(f"{name} is not offered here.", hint="Stores open URLs by their scheme; see tarviz.stores.")
        if name not in known:
            import difflib

            words = [
                *_2019,
                "shardshuffle",
                "resampled",
                "handler",
                "nodesplitter",
                "workersplitter",
                "select_files",
                "empty_check",
                "seed",
            ]
            close = difflib.get_close_matches(name, [*words, *known], 1, cutoff=0.5)
            meant = f"Did you mean {close[0]!r}? " if close else ""
            raise UsageError(f"WebDataset has no keyword {name!r}.", hint=f"{meant}There are {', '.join([*words, *sorted(known)])}.")
