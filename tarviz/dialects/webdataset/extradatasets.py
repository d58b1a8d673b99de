"""`webdataset.extradatasets`: small data sets for tests, and data sets with another length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any

from tarviz.dialects.webdataset import utils
from tarviz.dialects.webdataset.parts.places import Base


class MockDataset(Base):
    """One sample, `length` times."""

    def __init__(self, sample: Any, length: int) -> None:
        super().__init__()
        self.sample = sample
        self.length = length

    def __iter__(self) -> Iterator[Any]:
        return repeat(self.sample, self.length)


class repeatedly(Base):  # noqa: N801  webdataset's name
    """A data set again and again: so many passes or items, for ever without."""

    def __init__(self, source: Iterable[Any], nepochs: int | None = None, nbatches: int | None = None, length: int | None = None) -> None:
        super().__init__()
        self.source, self.nepochs, self.nbatches, self.length = source, nepochs, nbatches, length

    def __iter__(self) -> Iterator[Any]:
        return utils.repeatedly(self.source, self.nepochs, self.nbatches)

    def __len__(self) -> int:
        if self.length is None:
            raise TypeError("no length was given")
        return self.length


class with_epoch(Base):  # noqa: N801
    """Epochs of `length` items: an iteration goes on where the one before it has stopped, the data set read again and again."""

    def __init__(self, dataset: Iterable[Any], length: int) -> None:
        super().__init__()
        self.dataset, self.length = dataset, length
        self._source: Iterator[Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_source": None}

    def __iter__(self) -> Iterator[Any]:
        fresh = 0
        for _ in range(self.length):
            while True:
                if self._source is None:
                    self._source = iter(self.dataset)
                    fresh += 1
                try:
                    item = next(self._source)
                except StopIteration:
                    self._source = None
                    if fresh > 1:
                        return
                    continue
                break
            fresh = 0
            yield item


class with_length(Base):  # noqa: N801
    """A data set with a `len`; what it yields stays."""

    def __init__(self, dataset: Iterable[Any], length: int) -> None:
        super().__init__()
        self.dataset, self.length = dataset, length

    def __iter__(self) -> Iterator[Any]:
        return iter(self.dataset)

    def __len__(self) -> int:
        return self.length
