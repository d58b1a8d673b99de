"""`webdataset.utils`: worker information, repetition, seeds, the base class of stages."""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tarviz.dialects.webdataset.parts.places import place

enforce_security = bool(int(os.environ.get("WDS_SECURE", "0")))


class PipelineStage:
    """A stage that is an object with `run(source)`, an iterator from an iterator."""


def make_seed(*args: Any) -> int:
    """A number of 31 bits from values, the same in every process (webdataset's own differs from run to run for text)."""
    return zlib.crc32(repr(args).encode()) & 0x7FFFFFFF


def is_iterable(obj: Any) -> bool:
    """Whether `obj` can be iterated over and is neither text nor bytes."""
    return isinstance(obj, Iterable) and not isinstance(obj, str | bytes)


def guess_batchsize(batch: Any) -> int:
    """How many samples a batch has: the length of its first part."""
    return len(batch[0])


def repeatedly(
    source: Iterable[Any],
    nepochs: int | None = None,
    nbatches: int | None = None,
    nsamples: int | None = None,
    batchsize: Callable[[Any], int] = guess_batchsize,
) -> Iterator[Any]:
    """`source` again and again: so many passes, items, or samples in batches, whichever is reached first; for ever without.

    >>> list(repeatedly("ab", nbatches=5))
    ['a', 'b', 'a', 'b', 'a']
    """
    count = total = 0
    for epoch in itertools.count(1):
        before = count
        for item in source:
            yield item
            count += 1
            total += batchsize(item) if nsamples is not None else 0
            if count == nbatches or (nsamples is not None and total >= nsamples):
                return
        if epoch == nepochs or count == before:
            return


def pytorch_worker_info(group: Any = None) -> tuple[int, int, int, int]:
    """(rank, world size, worker, number of workers); a lone process is (0, 1, 0, 1)."""
    here = place(group)
    return here.node, here.nodes, here.worker, here.workers


def pytorch_worker_seed(group: Any = None) -> int:
    """A number of its own for each worker of each rank."""
    here = place(group)
    return here.node * 1000 + here.worker
