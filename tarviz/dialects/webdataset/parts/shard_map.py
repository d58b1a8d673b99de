"""The deck's `distributed_map_unordered`: a function over shards, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

from tarviz.engines.process_pool import Workers, can_run
from tarviz.model.errors import UsageError
from tarviz.model.processors import processors

Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class _RetriedCall:
    """The function for one task, tried again where it fails; it travels to worker processes."""

    function: Callable[..., Any]
    retries: int

    def __call__(self, task: tuple[Any, ...], file: object = None, tick: object = None) -> Any:
        for _ in range(self.retries):
            with suppress(Exception):
                return self.function(*task)
        try:
            return self.function(*task)
        except Exception as error:
            if self.retries:
                error.add_note(f"It was tried {self.retries + 1} times.")
            raise


def distributed_map_unordered(
    f: Callable[..., Any],
    tasks: Iterable[tuple[Any, ...]],
    *,
    num_workers: int | None = None,
    retries: int = 0,
    progress: Progress | None = None,
) -> list[Any]:
    """`f(*task)` for each task, `num_workers` at a time (one per processor); results in the order of the tasks.

    Each runs in a process of its own where the function can travel to one (one of a notebook needs cloudpickle; one that holds a pool
    of processes, as the deck's does, cannot), else in threads of this process: let it write shards, not change variables. A task that
    fails is tried `retries` times more; a process that dies is replaced once. `progress(done, of)` is called after each task. The first
    error ends the work; its notes name the task, and all tasks before that one are done.

    >>> distributed_map_unordered(max, [(1, 5), (7, 3)], num_workers=1)
    [5, 7]
    """
    if not callable(f):
        raise UsageError(f"distributed_map_unordered expects a function, got {f!r}.")
    if retries < 0 or (num_workers is not None and num_workers < 1):
        raise UsageError(
            f"retries={retries} and num_workers={num_workers} are counts.", hint="num_workers is 1 or more, retries 0 or more."
        )
    listed = list(tasks)
    results: list[Any] = []
    with ExitStack() as stack:
        run = _start(_RetriedCall(f, retries), listed, num_workers or processors(), stack)
        for number, task in enumerate(listed):
            try:
                results.append(next(run))
            except Exception as error:
                error.add_note(f"This was task {number} of {len(listed)}, {task!r}; those before it are done.")
                raise
            if progress is not None:
                progress(len(results), len(listed))
    return results


def _start(job: _RetriedCall, tasks: Sequence[tuple[Any, ...]], count: int, stack: ExitStack) -> Iterator[Any]:
    """The results of tasks that run in processes, or in threads."""
    if count == 1:
        return map(job, tasks)
    if can_run():
        try:
            workers = stack.enter_context(Workers(job, count))
        except UsageError:
            pass  # the function cannot travel
        else:
            return (result for result, _ in workers.run(tasks))
    pool = ThreadPoolExecutor(count, "tarviz-map")
    stack.callback(pool.shutdown, wait=True, cancel_futures=True)
    futures = [pool.submit(job, task) for task in tasks]
    return (future.result() for future in futures)
