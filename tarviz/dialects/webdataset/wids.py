"""`wids`: shards listed in JSON as a data set with `len` and `[k]`, and samplers that keep to one shard or chunk at a time.

`import tarviz.dialects.webdataset.wids as wids` in place of `import wids`, which came with webdataset up to 0.2.111.
`tarviz index SHARDS --wids FILE` writes the list.
"""

from __future__ import annotations

import io
import json
import math
import operator
import os
import posixpath
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import IO, Any, Self

import numpy as np

from tarviz.dialects.webdataset.autodecode import BasicHandler, Decoder
from tarviz.dialects.webdataset.cache import FileCache
from tarviz.dialects.webdataset.gopen import gopen
from tarviz.dialects.webdataset.parts.places import place
from tarviz.dialects.webdataset.parts.samples import Sample
from tarviz.model.errors import ChangedError, UsageError
from tarviz.model.types import URL
from tarviz.model.urls import without_query
from tarviz.read.index import Index
from tarviz.read.shard_index import refusal

Transform = Callable[[Any], Any]

_PICTURES = ("jpg", "png", "ppm", "pgm", "pbm", "pnm")
_FIELDS = ("txt", "text", "cls", "cls2", "json", "npy", "mp", "pth", "pickle", "pkl")


def urldir(url: str) -> str:
    """The folder of a URL, without a slash after it and without its query."""
    place, path = _split(without_query(url)[0])
    return place + posixpath.dirname(path)


def urlmerge(base: str, url: str) -> str:
    """A URL as seen from a folder: what it lacks is the folder's.

    >>> urlmerge("s3://bucket/data", "../a.tar"), urlmerge("data", "/x/a.tar"), urlmerge("data", "s3://bucket/a.tar")
    ('s3://bucket/a.tar', '/x/a.tar', 's3://bucket/a.tar')
    """
    if _split(url)[0] or url.startswith("pipe:"):
        return url
    place, folder = _split(base)
    if url.startswith("/"):
        return f"{place.partition('//')[0] if url.startswith('//') else place}{url}"
    whole, query = without_query(place + posixpath.join(folder or (place and "/"), url))
    return place + posixpath.normpath(whole.removeprefix(place)) + query


def _split(url: str) -> tuple[str, str]:
    """Scheme and host or bucket of a URL, and the path in there; a local path has the latter alone."""
    scheme, sign, rest = url.partition("://")
    if not sign or "/" in scheme:
        return "", url
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host}", slash + path


def load_dsdesc_and_resolve(source: str | IO[Any], *, options: dict[str, Any] | None = None, base: str | None = None) -> dict[str, Any]:
    """The list of shards at a URL or in an open file, as a dict: its own and those of the lists that it names, every URL whole."""
    found = _read(source) | (options or {})
    if found.get("wids_version") != 1:
        raise _no_list(source)
    shards = _shards(found, base, {"weight": found.get("weight"), "name": found.get("name")})
    for part in found.get("datasets", []):
        origin = part.get("source_url")
        inner = part if origin is None else _read(origin)
        more = {"weight": part.get("weight"), "source_url": origin, "dataset": inner.get("name")}
        shards += _shards(inner, inner.get("base", None if origin is None else urldir(origin)), more)
    return {**found, "shardlist": shards}


def _read(source: str | IO[Any]) -> dict[str, Any]:
    with gopen(source) if isinstance(source, str) else nullcontext(source) as file:
        try:
            found = json.load(file)
        except ValueError:
            found = None
    if not isinstance(found, dict):
        raise _no_list(source)
    return found


def _no_list(source: str | IO[Any]) -> UsageError:
    hint = 'It has "wids_version": 1; tarviz index SHARDS --wids FILE writes one.'
    return UsageError(f"{source} is no list of shards for wids.", hint=hint)


def _shards(part: dict[str, Any], base: str | None, more: dict[str, Any]) -> list[dict[str, Any]]:
    shards = part.get("shardlist", [])
    known = {name: value for name, value in more.items() if value is not None}
    return [{**known, **shard, "url": shard["url"] if base is None else urlmerge(base, shard["url"])} for shard in _check_shards(shards)]


def _check_shards(shards: Any) -> list[dict[str, Any]]:
    if not isinstance(shards, list) or not all(isinstance(shard, dict) and "url" in shard and _counts(shard) for shard in shards):
        raise UsageError('a shard is {"url": …, "nsamples": …}, a whole number, and the shards are a list of those.')
    return shards


def _counts(shard: dict[str, Any]) -> bool:
    return isinstance(count := shard.get("nsamples"), int | np.integer) and int(count) >= 0


def _picture(form: str, key: str, data: bytes) -> Any:
    if key.rpartition(".")[2].lower() not in _PICTURES:
        return None
    from tarviz.ops.values.pictures import open_picture

    picture = open_picture(data)  # in the mode that it is stored in
    return picture if form == "pil" else np.asarray(picture)


def _field(key: str, data: bytes) -> Any:
    return BasicHandler()(key, data) if key.rpartition(".")[2].lower() in _FIELDS else io.BytesIO(data)


def default_decoder(sample: Sample, format: str = "PIL") -> Sample:
    """A sample with text, classes, JSON, npy, MessagePack and pictures decoded; other fields stay files.

    `format`: `PIL` or `numpy`, pictures in the mode that they are stored in. `DecodingError` for pickles, and for what is damaged.
    """
    if (form := format.lower()) not in ("pil", "numpy"):
        raise UsageError(f"pictures are decoded to PIL or numpy, not {format!r}.")
    decoder, placed = Decoder([partial(_picture, form)], post=[_field]), {**sample, "__url__": sample.get("__shard__")}
    data = {name: value.read() if hasattr(value, "read") else value for name, value in sample.items()}
    return {name: value if name.startswith("__") else decoder.field(placed, name.lstrip("."), value) for name, value in data.items()}


def _transforms(given: Any) -> list[Transform]:
    each = given if isinstance(given, list) else [given]
    found = [partial(default_decoder, format=one) if isinstance(one, str) else one for one in each]
    if wrong := [one for one in found if not callable(one)]:
        raise UsageError(f"{wrong[0]!r} is not a transformation.", hint='One is "PIL", "numpy" or a function of a sample.')
    return found


class ShardListDataset:
    """The samples of listed shards, by number over all of them: `len(dataset)`, `dataset[17]`; a data set for torch.

    `shards`: where the JSON list lies, an open file of it, or a list of `{"url": …, "nsamples": …}`. URLs are seen from `base`,
    else from the folder of the list. A sample has its fields with a dot (`.jpg`), and `__key__`, `__index__`, `__shard__`,
    `__shardindex__`, `__dataset__`; `transformations` are applied in order, the first to fields that are open files (`[]` leaves
    them so).

    A shard is indexed when it is first asked for (`lru_size` indexes are held), and of it the bytes of the sample are read. With
    `cache_dir` it is fetched whole first, and stays (`keep` or not) while all fit into `cache_size` bytes. `IndexError`;
    `ChangedError` where a shard has another number of records than the list says, `DataError` where that is because it is damaged.
    """

    def __init__(
        self,
        shards: str | os.PathLike[str] | IO[Any] | Sequence[dict[str, Any]],
        *,
        cache_size: int = int(1e12),
        cache_dir: str | None = None,
        lru_size: int = 10,
        dataset_name: str | None = None,
        transformations: Any = "PIL",
        keep: bool = False,
        base: str | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        source = os.fspath(shards) if isinstance(shards, os.PathLike) else shards
        if isinstance(source, list | tuple):
            self.base, self.spec = None, {"shardlist": _check_shards(list(source)), **(options or {})}
        else:
            self.base = urldir(source) if base is None and isinstance(source, str) else base
            self.spec = load_dsdesc_and_resolve(source, options=options, base=self.base)  # type: ignore[arg-type]
        self.shards: list[dict[str, Any]] = self.spec["shardlist"]
        if not self.shards:
            raise UsageError("the list has no shards.", hint="tarviz index SHARDS --wids FILE writes one.")
        self.dataset_name = dataset_name or self.spec.get("name")
        self.lengths = [shard["nsamples"] for shard in self.shards]
        self.cum_lengths = np.cumsum(self.lengths)
        self.transformations = _transforms(transformations)
        self._cache = None if cache_dir is None else FileCache(cache_dir, cache_size=cache_size)
        self._limit, self._held, self._places = lru_size, dict[str, Index](), dict[str, str]()
        self._accesses = self._misses = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": {}, "_places": {}}

    def __len__(self) -> int:
        return int(self.cum_lengths[-1])

    def add_transform(self, transform: Transform) -> Self:
        """Apply one more function to samples, after the others."""
        self.transformations.append(transform)
        return self

    def get_stats(self) -> tuple[int, int]:
        """How many samples were asked for in this process, and for how many of them a shard had to be indexed."""
        return self._accesses, self._misses

    def close(self) -> None:
        """Let the indexes go."""
        self._held.clear()

    def __getitem__(self, index: int) -> Any:
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f"sample {number} of {len(self)}")
        number %= len(self)
        at = int(np.searchsorted(self.cum_lengths, number, side="right"))
        shard, inner = self.shards[at], number - int(self.cum_lengths[at]) + self.lengths[at]
        record = self._index(shard)[inner]
        sample: Any = {f".{ext}": io.BytesIO(record[ext]) for ext in record}
        sample |= {"__key__": record.key, "__dataset__": shard.get("dataset"), "__index__": number}
        sample |= {"__shard__": shard["url"], "__shardindex__": inner}
        for transform in self.transformations:
            sample = transform(sample)
        return sample

    def _index(self, shard: dict[str, Any]) -> Index:
        url, listed = shard["url"], shard["nsamples"]
        self._accesses += 1
        if (found := self._held.pop(url, None)) is None:
            self._misses += 1
            found = Index([self._place(url)])
            if len(found) != listed:
                if damage := refusal(found.urls[0], replace(found.options, strict=True), found.shards[0]):
                    raise damage
                hint = "Write the list again: tarviz index SHARDS --wids FILE."
                raise ChangedError(f"the shard has {len(found)} records, the list says {listed}.", shard=url, hint=hint)
            while self._held and len(self._held) >= self._limit:
                del self._held[next(iter(self._held))]
        self._held[url] = found  # last of all: used latest
        return found

    def _place(self, url: str) -> URL:
        """Where a shard is read. A fetched one is held against its checksums, all of it, when this process first uses it."""
        if self._cache is None:
            return URL(url)
        if not os.path.exists(self._places.get(url, "")):
            self._places[url] = self._cache.get_file(url)
        return URL(self._places[url])


class _RangeSampler:
    """The numbers of ranges, each range shuffled in itself; the ranges too, from the second epoch on or with `shufflefirst`.

    The order depends on `seed` and `epoch`, which a pass that is gone through adds one to.
    """

    def __init__(self, ranges: Iterable[tuple[int, int]], length: int, seed: int, shuffle: bool, shufflefirst: bool) -> None:
        self.ranges, self.seed, self.shuffle, self.shufflefirst, self.epoch = [*ranges], seed, shuffle, shufflefirst, 0
        self._length = length

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next pass."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        chance, order = random.Random(self.seed + 1289738273 * self.epoch), self.ranges.copy()
        if self.shuffle and (self.shufflefirst or self.epoch):
            chance.shuffle(order)
        for low, high in order:
            numbers = list(range(low, high))
            if self.shuffle:
                chance.shuffle(numbers)
            yield from numbers
        self.epoch += 1


class ShardListSampler(_RangeSampler):
    """The samples of a `ShardListDataset` in random order, shard by shard."""

    def __init__(self, dataset: Any, *, lengths: Sequence[int] | None = None, seed: int = 0, shufflefirst: bool = False) -> None:
        ends = list(accumulate(dataset.lengths if lengths is None else lengths, initial=0))
        super().__init__(pairwise(ends), ends[-1], seed, True, shufflefirst)


ShardedSampler = ShardListSampler


class ChunkedSampler(_RangeSampler):
    """The samples of a data set in random order, `chunksize` neighbours after another; `num_samples`: how many, or (first, last + 1)."""

    def __init__(
        self,
        dataset: Any,
        *,
        dslength_per_replica: int = -1,
        num_samples: int | Sequence[int] | None = None,
        chunksize: int = 2000,
        seed: int = 0,
        shuffle: bool = True,
        shufflefirst: bool = False,
    ) -> None:
        wanted = len(dataset) if num_samples is None else num_samples
        low, high = wanted if isinstance(wanted, Sequence) else (0, wanted)
        ranges = ((first, min(first + chunksize, high)) for first in range(low, high, chunksize))
        length = dslength_per_replica if dslength_per_replica > 0 else high - low
        super().__init__(ranges, length, seed, shuffle, shufflefirst)


def DistributedChunkedSampler(  # noqa: N802
    dataset: Any,
    *,
    num_replicas: int | None = None,
    num_samples: int | None = None,
    rank: int | None = None,
    shuffle: bool = True,
    shufflefirst: bool = False,
    seed: int = 0,
    chunksize: int = 1_000_000,
) -> ChunkedSampler:
    """A `ChunkedSampler` of this rank's part of the numbers, all parts but the last equally long; its `len` is that of the first part.

    Rank and number of ranks are those of torch's process group, else of `RANK` and `WORLD_SIZE`, where they are not given.
    """
    here = place()
    ranks, mine = num_replicas or here.nodes, here.node if rank is None else rank
    if not 0 <= mine < ranks:
        raise UsageError(f"there is no rank {mine} of {ranks}.")
    total = num_samples or len(dataset)
    part = math.ceil(total / ranks)
    low = min(mine * part, total)
    return ChunkedSampler(
        dataset,
        dslength_per_replica=part,
        num_samples=(low, min(low + part, total)),
        chunksize=chunksize,
        seed=seed,
        shuffle=shuffle,
        shufflefirst=shufflefirst,
    )
