"""`distributed_map_unordered`: every task once, in processes where that can be, tried again, and named where it fails."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tarviz.commands.cat import cat
from tarviz.dialects.webdataset import distributed_map_unordered
from tarviz.model.errors import TarvizError, UsageError
from tarviz.testing.strategies import numbered_records, shard
from tests.conftest import sampled


def process_of(number: int) -> tuple[int, int]:
    return number, os.getpid()


def third_time(place: str) -> int:
    """Fails until a file has two lines."""
    tries = Path(place).read_text().splitlines() if Path(place).exists() else []
    with Path(place).open("a") as file:
        file.write("x\n")
    if len(tries) < 2:
        raise ValueError(f"try {len(tries)}")
    return len(tries)


def no_three(number: int) -> int:
    if number == 3:
        raise ValueError("three")
    return number


def dies(number: int) -> int:
    if number == 1:
        os._exit(9)
    return number


def copy(given: str, made: str) -> int:
    return cat(given, made).records


@pytest.mark.matrix
def test_tasks_run_in_processes_of_their_own() -> None:
    found = distributed_map_unordered(process_of, ((number,) for number in range(12)), num_workers=2)

    assert list(range(12)) == [number for number, _ in found]
    processes = {process for _, process in found}
    assert os.getpid() not in processes
    assert len(processes) <= 2


@pytest.mark.matrix
def test_shards_are_written(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"in-{number}.tar").write_bytes(shard(numbered_records(number)))
    tasks = [(str(tmp_path / f"in-{number}.tar"), str(tmp_path / f"out-{number}.tar")) for number in range(5)]

    assert [0, 1, 2, 3, 4] == distributed_map_unordered(copy, tasks, num_workers=2)
    assert 5 == len(list(tmp_path.glob("out-*.tar")))


def test_one_worker_is_this_process() -> None:
    assert [(0, os.getpid()), (1, os.getpid())] == distributed_map_unordered(process_of, [(0,), (1,)], num_workers=1)


@pytest.mark.parametrize("workers", [3, None])
def test_a_function_that_cannot_travel_runs_in_threads(workers: int | None) -> None:
    lock = threading.Lock()

    def held(number: int) -> tuple[int, int]:
        with lock:
            return number, os.getpid()

    assert [(number, os.getpid()) for number in range(6)] == distributed_map_unordered(held, [(n,) for n in range(6)], num_workers=workers)


@pytest.mark.parametrize("workers", [1, *sampled([2], 0)])
def test_a_task_that_fails_is_tried_again(tmp_path: Path, workers: int) -> None:
    tasks = [(str(tmp_path / name),) for name in "ab"]

    assert [2, 2] == distributed_map_unordered(third_time, tasks, num_workers=workers, retries=2)


@pytest.mark.parametrize("workers", [1, *sampled([2], 0)])
def test_an_error_names_its_task(workers: int) -> None:
    seen: list[tuple[int, int]] = []

    with pytest.raises(ValueError, match="three") as caught:
        distributed_map_unordered(
            no_three, [(n,) for n in range(9)], num_workers=workers, retries=1, progress=lambda *done: seen.append(done)
        )

    notes = "\n".join(caught.value.__notes__)
    assert "This was task 3 of 9, (3,); those before it are done." in notes
    assert "It was tried 2 times." in notes
    assert [(1, 9), (2, 9), (3, 9)] == seen


def test_so_does_one_of_threads() -> None:
    lock = threading.Lock()

    def fails(number: int) -> Any:
        with lock:
            return no_three(number)

    with pytest.raises(ValueError, match="three") as caught:
        distributed_map_unordered(fails, [(n,) for n in range(9)], num_workers=2)
    assert "task 3 of 9" in caught.value.__notes__[-1]


@pytest.mark.matrix
def test_a_process_that_dies_is_an_error_that_names_the_task() -> None:
    with pytest.raises(TarvizError, match="E_WORKER") as caught:
        distributed_map_unordered(dies, [(n,) for n in range(3)], num_workers=2)
    assert "task 1 of 3, (1,)" in caught.value.__notes__[-1]


@pytest.mark.parametrize("wrong", [{"num_workers": 0}, {"num_workers": -1}, {"retries": -1}])
def test_counts_that_are_none(wrong: Any) -> None:
    with pytest.raises(UsageError):
        distributed_map_unordered(no_three, [], **wrong)
    with pytest.raises(UsageError):
        distributed_map_unordered("f", [])  # type: ignore[arg-type]
    assert [] == distributed_map_unordered(no_three, [])


def test_threads_leave_what_they_have_not_begun_where_one_fails() -> None:
    go, begun = threading.Event(), list[int]()

    def task(number: int) -> None:
        begun.append(number)
        if number == 0:
            raise ValueError("none")
        go.wait(30)

    threading.Timer(0.2, go.set).start()
    with pytest.raises(ValueError, match="none"):
        distributed_map_unordered(task, [(n,) for n in range(50)], num_workers=3)

    assert go.is_set()  # those that had begun were waited for
    assert len(begun) <= 4
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("tarviz-map")]
