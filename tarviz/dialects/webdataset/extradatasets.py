"""`webdataset.extradatasets`: small data sets for tests, and data sets with another length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, repeat
from typing import Any

from tarviz.dialects.webdataset.parts.places import Base


class MockDataset(Base):
    """One sample, `length` times."""

    def __init__(self, sample: Any, length: int) -> None:
        self.sample = sample
        self.length = length

    def __iter__(self) -> Iterator[Any]:
        return repeat(self.sample, self.length)


class with_epoch(Base):  # noqa: N801
    """Epochs of `length` items: an iteration goes on where the one before it has stopped, the data set read again and again."""

    def __init__(self, dataset: Iterable[Any], length: int) -> None:
        self.dataset, self.length = dataset, length
        self._source: Iterator[Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_source": None}

    def __iter__(self) -> Iterator[Any]:
        left = self.length
        while left:
            fresh, before = self._source is None, left
            self._source = iter(self.dataset) if self._source is None else self._source
            for item in islice(self._source, left):
                left -= 1
                yield item
            if left:
                self._source = None
            if fresh and left == before:
                return


class with_length(Base):  # noqa: N801
    """A data set with a `len`; what it yields stays."""

    def __init__(self, dataset: Iterable[Any], length: int) -> None:
        self.dataset, self.length = dataset, length

    def __iter__(self) -> Iterator[Any]:
        return iter(self.dataset)

    def __len__(self) -> int:
        return self.length
