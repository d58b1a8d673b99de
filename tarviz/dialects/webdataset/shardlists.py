"""`webdataset.shardlists`: lists of shards as sources of a pipeline, and how they are split among ranks and workers."""

from __future__ import annotations

import glob
import io
import itertools
import os
import random
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

from tarviz.dialects.webdataset.parts.places import Base, Passes, WorkerPlace, place
from tarviz.dialects.webdataset.parts.stages import Custom, draws
from tarviz.dialects.webdataset.utils import is_iterable, make_seed, pytorch_worker_seed
from tarviz.model.errors import UsageError
from tarviz.stores.templates import braces

Splitter: TypeAlias = Callable[[Any], Iterable[Any]]

_VARIABLE = re.compile(r"\$\{(\w+)\}")


class ShardSequence(list[dict[str, str]]):
    """Shards as dicts with a `url`, for splitters: a sequence, and an iterator as webdataset's splitters expect one."""

    def __next__(self) -> dict[str, str]:
        if not self:
            raise StopIteration
        return self.pop(0)


def split_urls(splitter: Splitter, urls: Sequence[str]) -> list[str]:
    """The URLs that a splitter leaves; it gets dicts with a `url`, as webdataset's do, and may give either."""
    return [item["url"] if isinstance(item, dict) else item for item in splitter(ShardSequence({"url": url} for url in urls))]


def single_node_only(src: Iterable[Any], group: Any = None) -> Iterable[Any]:
    """All shards; refuses a distributed run, where every rank would see all of them."""
    refuse_several(place(group))
    return src


def refuse_several(here: WorkerPlace) -> None:
    """`UsageError` for a rank among others."""
    if here.nodes > 1:
        raise UsageError(f"this is node {here.node} of {here.nodes}.", hint="Pass nodesplitter=split_by_node, or one of your own.")


def split_by_node(src: Iterable[Any], group: Any = None) -> Iterator[Any]:
    """Every n-th shard, for n ranks."""
    here = place(group)
    return islice(iter(src), here.node, None, here.nodes)


def split_by_worker(src: Iterable[Any]) -> Iterator[Any]:
    """Every n-th shard, for n workers. `WebDataset` does more: fewer shards than workers are cut into record ranges."""
    here = place()
    return islice(iter(src), here.worker, None, here.workers)


def envsubst(text: str) -> str:
    """`${NAME}` replaced by the environment's `WDS_NAME`. `UsageError` where that is not set."""

    def value(match: re.Match[str]) -> str:
        name = f"WDS_{match[1]}"
        if name not in os.environ:
            raise UsageError(f"the URL has ${{{match[1]}}}, and the environment has no {name}.", hint=f"Set {name} before.")
        return os.environ[name]

    return _VARIABLE.sub(value, text)


def expand_urls(urls: str) -> list[str]:
    """The names that a text stands for: parts joined by `::`, `${NAME}` from the environment (`WDS_NAME`), braces.

    >>> expand_urls("a-{0..1}.tar::b.tar")
    ['a-0.tar', 'a-1.tar', 'b.tar']
    """
    return [name for part in urls.split("::") for name in braces(envsubst(part))]


def expand_source(source: Any, max_urls: int = 1_000_000_000) -> list[str]:
    """Text expanded, a list as it is, the first `max_urls` of another iterable."""
    if isinstance(source, str):
        return expand_urls(source)
    return names_of(islice(source, max_urls) if is_iterable(source) else source)


def names_of(urls: Any) -> list[str]:
    """A list of URLs or paths as texts. `UsageError` for anything else: a dict, an open file."""
    if not is_iterable(urls) or isinstance(urls, Mapping | io.IOBase):
        raise UsageError(f"urls are text or a list of texts, got {type(urls).__name__}.")
    names = list(urls)
    if wrong := [name for name in names if not isinstance(name, str | os.PathLike)]:
        raise UsageError(
            f"a URL is text or a path, got {type(wrong[0]).__name__} in the list.", hint='Of {"url": …} pass the value, of a file its name.'
        )
    return [os.fspath(name) for name in names]


class SimpleShardList(Base):
    """Shards as dicts with a `url`, in order, or in an order that `seed` (True: the time) decides."""

    def __init__(self, urls: str | Iterable[str], seed: int | bool | None = None) -> None:
        self.urls = expand_source(urls)
        if not self.urls:
            raise UsageError("the list of urls is empty.", hint="Name a shard or a template such as train-{0000..0147}.tar.")
        self.seed = time.time_ns() if seed is True else seed

    def __len__(self) -> int:
        return len(self.urls)

    def __iter__(self) -> Iterator[dict[str, str]]:
        urls = self.urls.copy()
        if self.seed is not None:
            random.Random(self.seed).shuffle(urls)
        return ({"url": url} for url in urls)


class ResampledShards(Base):
    """Shards drawn with replacement, `nshards` of them, for ever without: each worker draws its own, anew in every pass.

    `deterministic`: the draws depend on seed, rank, worker and pass alone.
    """

    def __init__(
        self,
        urls: Any,
        nshards: int = sys.maxsize,
        seed: Any = 0,
        worker_seed: Callable[[], Any] | None = None,
        deterministic: bool = False,
        max_urls: int = 1_000_000,
        empty_check: bool = True,
    ) -> None:
        self.urls = expand_source(urls, max_urls)
        if empty_check and not self.urls:
            raise UsageError("there are no shards to draw from.", hint="Pass empty_check=False where that is not a mistake.")
        self.nshards = nshards
        self.worker_seed = pytorch_worker_seed if worker_seed is None else worker_seed
        self.deterministic = deterministic
        self.seed = seed
        self._passes = Passes()

    @property
    def epoch(self) -> int:
        """The number of the latest pass; -1 before the first."""
        return self._passes.next - 1

    def __iter__(self) -> Iterator[dict[str, str]]:
        number = self._passes.begin(self._passes.here())
        seed: Any = make_seed(self.worker_seed(), number, self.seed) if self.deterministic else os.urandom(16)
        draw = random.Random(seed)
        return ({"url": draw.choice(self.urls)} for _ in itertools.islice(itertools.count(), self.nshards))


def resampled(n: int = sys.maxsize) -> Custom:
    """A stage that draws `n` of the items it gets, with replacement."""
    return Custom(partial(draws, n), seeded=True)


def non_empty(src: Iterable[Any]) -> Iterator[Any]:
    """The items as they are; `UsageError` where there are none."""
    count = 0
    for count, item in enumerate(src, 1):  # noqa: B007
        yield item
    if not count:
        raise UsageError("the pipeline has yielded nothing.", hint="Are there fewer shards than workers?")


def check_pid_is_running(pid: int) -> bool:
    """Whether there is a process of that number."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


class DirectoryShardList(Base):
    """The shards that turn up in a folder, each taken by one reader: it bears the process's number while it is read.

    `mode`: what becomes of a shard that was read: `resample` puts it back, `keep` marks it `._done_`, `unlink` deletes it.
    `select`: `random` or `oldest`. `poll`: seconds between two looks at an empty folder; None ends there.
    """

    def __init__(
        self,
        path: str,
        pattern: str = "*.{tar,tgz,tar.tgz}",
        poll: float | None = 1,
        timeout: float = 1e12,
        mode: str = "resample",
        select: str = "random",
        fate: Any = None,
    ) -> None:
        if not path.endswith("/") or not os.path.isdir(path):
            raise UsageError(f"{path} is not a folder with a / after its name.")
        for name, value, words in (("select", select, ("random", "oldest")), ("mode", mode, ("resample", "keep", "unlink"))):
            if value not in words:
                raise UsageError(f"{name}={value!r} is not one of {', '.join(words)}.")
        self.path, self.pattern, self.poll, self.timeout, self.mode, self.select = path, pattern, poll, timeout, mode, select

    def recycle(self, activename: str) -> None:
        """Do with a shard that was read what `mode` says."""
        base = os.path.splitext(activename)[0]
        if self.mode == "unlink":
            os.unlink(activename)
        else:
            os.rename(activename, f"{base}._done_" if self.mode == "keep" else base)

    def cleanup_files_without_processes(self) -> None:
        """Recycle shards whose reader is no more."""
        for path in glob.glob(self.path + "*._*_"):
            pid = re.search(r"\._(\d+)_$", path)
            if pid and not check_pid_is_running(int(pid[1])):
                with suppress(FileNotFoundError):  # another reader was quicker
                    self.recycle(path)

    def __iter__(self) -> Iterator[dict[str, str]]:
        last = time.monotonic()
        while time.monotonic() - last < self.timeout:
            candidates = sorted(path for name in braces(self.pattern) for path in glob.glob(self.path + name))
            if not candidates:
                if self.poll is None:
                    return
                time.sleep(self.poll)
                continue
            try:
                chosen = min(candidates, key=lambda path: os.lstat(path).st_mtime) if self.select == "oldest" else random.choice(candidates)
                active = f"{chosen}._{os.getpid()}_"
                os.rename(chosen, active)
            except FileNotFoundError:  # another reader was quicker
                continue
            yield {"url": active}
            last = time.monotonic()
            self.recycle(active)
            self.cleanup_files_without_processes()


def shardspec(spec: str) -> SimpleShardList:
    """The shards that a text names."""
    if spec.endswith((".yaml", ".yml")):
        raise UsageError("lists of shards in YAML are not offered; webdataset calls them obsolete.", hint="Pass a list of URLs.")
    return SimpleShardList(spec)
