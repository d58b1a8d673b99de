"""The runner `eager`: a pipeline run in this process, yielding NumPy and Python values."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any, TypeAlias, TypeVar

import numpy as np

from tarviz.model.errors import DataError, TarvizError, UsageError
from tarviz.model.types import Record, to_bytes
from tarviz.ops.base import unpack
from tarviz.ops.random_draws import draws
from tarviz.pipeline import Pipeline
from tarviz.read import stream
from tarviz.read.stream import ReadReport

_CHUNK = 16

Item: TypeAlias = tuple[dict[str, Any], Record | None]
T = TypeVar("T")


def run(
    pipeline: Pipeline,
    *,
    batch: int | None = None,
    shuffle: int | None = None,
    repeat: int | None = 1,
    num_workers: int = 0,
    drop_remainder: bool = False,
    epoch: int = 0,
) -> Eager:
    """The pipeline as an iterable, in shard and record order. See `Eager` for the arguments."""
    return Eager(
        pipeline,
        batch=batch,
        shuffle=shuffle,
        repeat=repeat,
        num_workers=num_workers,
        drop_remainder=drop_remainder,
        epoch=epoch,
    )


class Eager(Iterable[Any]):
    """What a pipeline yields, in this process.

    `batch`: so many steps become one; numbers and arrays of one shape are stacked along a new first axis, the rest become lists;
    `drop_remainder` leaves out a last batch that is smaller. `shuffle`: records pass through a buffer of so many, in an order that
    seed and epoch decide. `repeat`: passes over the shards, each an epoch; None goes on for ever. `num_workers`: threads that run
    the chain; the order stays. `epoch` is the number of the first pass: every `iter` goes on to new epochs, so that random
    ops draw anew.

    `report` tells what the latest pass read, warned of and skipped (`on_error="skip"`). One iterator may be used by one thread.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        batch: int | None = None,
        shuffle: int | None = None,
        repeat: int | None = 1,
        num_workers: int = 0,
        drop_remainder: bool = False,
        epoch: int = 0,
    ) -> None:
        for name, value, least in (("batch", batch, 1), ("shuffle", shuffle, 0), ("repeat", repeat, 0), ("num_workers", num_workers, 0)):
            if value is not None and (not isinstance(value, int) or value < least):
                raise UsageError(f"{name}={value!r} is no whole number from {least} on.")
        self.pipeline = pipeline
        self.batch = batch
        self.shuffle = shuffle or 0
        self.repeat = repeat
        self.num_workers = num_workers
        self.drop_remainder = drop_remainder
        self.epoch = epoch
        self.report = ReadReport()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.pipeline!r}>"

    def __len__(self) -> int:
        """Steps, where an index of every shard is there; `TypeError` otherwise."""
        if self.repeat is None:
            raise TypeError("a pipeline that repeats for ever has no length")
        count = len(self.pipeline) * self.repeat
        if self.batch is None:
            return count
        return count // self.batch if self.drop_remainder else -(-count // self.batch)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        epochs: Iterator[int] = itertools.count(self.epoch) if self.repeat is None else iter(range(self.epoch, self.epoch + self.repeat))
        self.epoch += self.repeat or 1
        self.report = ReadReport()
        values = self._passes(epochs, self.report)
        return values if self.batch is None else self._batches(values, self.batch)

    def _passes(self, epochs: Iterator[int], report: ReadReport) -> Generator[Any, None, None]:
        for epoch in epochs:
            found = False
            with closing(self._items(report)) as items:
                order = shuffled(items, self.shuffle, [self.pipeline.seed & 0xFFFFFFFFFFFFFFFF, epoch]) if self.shuffle > 1 else items
                for value in self._values(_chunks(order, _CHUNK if self.num_workers else 1), epoch, report):
                    found = True
                    yield value
            if not found:
                return  # nothing to repeat

    def _items(self, report: ReadReport) -> Generator[Item, None, None]:
        needs, options = self.pipeline.needs, self.pipeline.options
        for url in stream.shards(self.pipeline.urls):
            try:
                with closing(stream.blocks(url, options, report=report)) as blocks:
                    for record in itertools.chain.from_iterable(blocks):
                        yield unpack(record, needs), None if self.shuffle else record
            except DataError as error:
                if options.on_error == "raise":
                    raise
                report.add(error.at(shard=url).fault, skipped=True)

    def _values(self, chunks: Iterator[list[Item]], epoch: int, report: ReadReport) -> Iterator[Any]:
        if not self.num_workers:
            for chunk in chunks:
                yield from self._settled(self._process(chunk, epoch), report)
            return
        waiting: deque[Future[list[Any]]] = deque()
        with ThreadPoolExecutor(self.num_workers, "tarviz-eager") as pool:
            try:
                for chunk in chunks:
                    waiting.append(pool.submit(self._process, chunk, epoch))
                    if len(waiting) > 2 * self.num_workers:
                        yield from self._settled(waiting.popleft().result(), report)
                while waiting:
                    yield from self._settled(waiting.popleft().result(), report)
            finally:
                for future in waiting:
                    future.cancel()

    def _process(self, chunk: list[Item], epoch: int) -> list[Any]:
        """Values of records, or the error in place of a value; behind an error that is to be raised nothing follows."""
        chain, select = self.pipeline.chain, self.pipeline.select
        drawn = draws(chain, [to_bytes(record["__key__"]) for record, _ in chunk], self.pipeline.seed, epoch) if chain.draws else None
        results: list[Any] = []
        for number, (record, origin) in enumerate(chunk):
            try:
                results.append(select.pick(chain.run(record, None if drawn is None else drawn[number])))
            except TarvizError as error:
                results.append(placed(error, origin))
                if self.pipeline.options.on_error == "raise":
                    break
        return results

    def _settled(self, results: list[Any], report: ReadReport) -> Iterator[Any]:
        for value in results:
            if not isinstance(value, TarvizError):
                yield value
            elif self.pipeline.options.on_error == "raise":
                raise value
            else:
                report.add(value.fault, skipped=True)

    def _batches(self, values: Iterator[Any], size: int) -> Iterator[Any]:
        for batch in _chunks(values, size):
            if len(batch) == size or not self.drop_remainder:
                yield collate(batch)


def collate(values: list[Any]) -> Any:
    """Steps as one: numbers and arrays of one shape stacked, structures kept, anything else a list.

    >>> collate([(1, b"a"), (2, b"b")])
    (array([1, 2]), [b'a', b'b'])
    """
    first = values[0]
    if isinstance(first, Mapping):
        if any(value.keys() != first.keys() for value in values):
            return values
        return {name: collate([value[name] for value in values]) for name in first}
    if isinstance(first, tuple):
        return tuple(collate(list(part)) for part in zip(*values, strict=True))
    if isinstance(first, list):
        same = all(len(value) == len(first) for value in values)
        return [collate(list(part)) for part in zip(*values, strict=True)] if same else values
    if isinstance(first, np.ndarray | np.generic):
        return np.stack(values) if len({(np.shape(value), np.asarray(value).dtype) for value in values}) == 1 else values
    if isinstance(first, bool | int | float) and all(type(value) is type(first) for value in values):
        try:
            return np.array(values)
        except OverflowError:
            return values
    return values


def _chunks(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while chunk := list(itertools.islice(items, size)):
        yield chunk


def shuffled(items: Iterator[T], size: int, seed: list[int]) -> Iterator[T]:
    """Items in the order a buffer of `size` gives them, as `tf.data.Dataset.shuffle` describes it."""
    random = np.random.default_rng(seed)
    buffer = list(itertools.islice(items, size))
    for item in items:
        place = int(random.integers(len(buffer)))
        yield buffer[place]
        buffer[place] = item
    for place in random.permutation(len(buffer)):
        yield buffer[place]


def placed(error: TarvizError, origin: Record | None) -> TarvizError:
    """The error with member and byte of the field it is about, where these are known."""
    field = str(error.details.get("field"))
    if origin is not None and field in origin:
        member = origin.members[list(origin).index(field)]
        error.at(member=member.name, offset=member.header_offset)
    return error
