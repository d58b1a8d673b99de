"""Tasks in this process, where one at a time is asked for: what comes of them is what worker processes give."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tarviz import engines
from tarviz.engines import EnginePlan, TaskEnd
from tarviz.engines.local import Here
from tarviz.engines.process_pool import Workers
from tarviz.model.errors import UsageError
from tests.engines.jobs import job


def test_what_is_of_this_machine_alone_may_be_part_of_its_tasks() -> None:
    assert not engines.travels("local")


def test_who_listens_hears_of_each_task_how_it_ended() -> None:
    errors: dict[int, Exception] = {}
    heard: list[TaskEnd] = []
    ticks: list[int] = []
    with engines.start("local", job, EnginePlan(1, tick=ticks.append, heard=heard.append)) as engine:
        results = list(engine.run([("tick", 2), ("odd", "why"), ("sleep", 0)], errors.setdefault))

    here = f"{socket.gethostname()}:{os.getpid()}"
    assert [(2, None), (errors[1], None), (0, None)] == results
    assert [TaskEnd(0, here, True, 2, 2000), TaskEnd(1, here, False, errors[1], 0), TaskEnd(2, here, True, 0, 0)] == heard
    assert [2] * 1000 == ticks


def test_the_first_error_is_raised_and_no_task_after_it_is_begun(tmp_path: Path) -> None:
    tasks = [("sleep", 0), ("odd", "why"), ("touch", tmp_path / "after")]
    with pytest.raises(ZeroDivisionError, match="why"), engines.start("local", job, EnginePlan()) as engine:
        list(engine.run(tasks))

    assert not (tmp_path / "after").exists()


def test_each_result_comes_with_a_file_that_has_no_name_and_goes_with_the_next(tmp_path: Path) -> None:
    files = []
    with engines.start("local", job, EnginePlan(1, spool=str(tmp_path))) as engine:
        for data, (size, file) in zip((b"abc", b"d"), engine.run([("write", b"abc"), ("write", b"d")]), strict=True):
            assert file is not None
            file.seek(0)
            assert (len(data), data) == (size, file.read())
            assert [] == os.listdir(tmp_path)
            files.append(file)

    assert [True, True] == [file.closed for file in files]


def test_several_at_a_time_are_worker_processes() -> None:
    kinds = [type(engines.start("local", job, EnginePlan(count))) for count in (None, 1, 2)]

    assert [Here, Here, Workers if os.name == "posix" else Here] == kinds
    assert [1, 3] == [engines.start("local", job, EnginePlan(count)).room for count in (1, 3)]


def test_an_address_is_another_engine_s() -> None:
    with pytest.raises(UsageError, match="has no address"):
        engines.start("local", job, EnginePlan(address="auto"))
