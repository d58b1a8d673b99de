"""The deck's `distributed_map_unordered`: a function over shards, several at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any

from tarviz.model.errors import UsageError


def distributed_map_unordered(f: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], *, num_workers: int | None = None) -> list[Any]:
    """`f(*task)` for each task, `num_workers` at a time (one per processor); results as they come. The first error is raised.

    The function runs in threads of this process, as reading and writing shards waits for other things than Python; where it
    computes, let it use a pool of processes, as the deck does. Any queue of jobs can stand in its place: a task is two names.
    """
    if not callable(f):
        raise UsageError(f"distributed_map_unordered expects a function, got {f!r}.")
    count = num_workers or os.cpu_count() or 1
    return list(_results(f, iter(tasks), count))


def _results(f: Callable[..., Any], tasks: Iterator[tuple[Any, ...]], count: int) -> Iterator[Any]:
    with ThreadPoolExecutor(count, "tarviz-map") as pool:
        waiting: set[Future[Any]] = {pool.submit(f, *task) for task in islice(tasks, count)}
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                waiting |= {pool.submit(f, *task) for task in islice(tasks, len(done))}
                yield from (future.result() for future in done)
        finally:
            for future in waiting:
                future.cancel()
