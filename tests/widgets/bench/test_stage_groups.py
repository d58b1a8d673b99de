"""What threads were busy with: shares of the time there was, records counted as they come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tarviz.runners.stage_timer import CUT, READ, SCAN, StageTimer
from tarviz.widgets.bench.stage_groups import Group, count_steps, groups


def test_shares_are_of_the_time_of_all_threads():
    group = Group("workers", 2, 3.0, {"decode": 2.0, "flip": 0.5}, "for records")

    assert (6.0, 2.5 / 6) == (group.capacity, group.share)
    assert {
        "name": "workers",
        "threads": 2,
        "busy": {"decode": 0.3333, "flip": 0.0833},
        "waits": "for records",
        "waiting": 0.5833,
    } == group.to_dict()
    assert (1.0, 0.0) == ((late := Group("a", 1, 1.0, {"decode": 1.5})).share, late.to_dict()["waiting"])
    none = Group("a", 1, 0.0, {"decode": 1.5})
    assert (0.0, {"decode": 0.0}, 1.0) == (none.share, none.to_dict()["busy"], none.to_dict()["waiting"])


def test_without_workers_one_thread_does_all_of_it_in_the_order_of_the_work():
    timer = StageTimer(iter((2.0, 5.0, 5.0)).__next__, lambda: 0.0)
    timer.main |= {READ: 1.0, CUT: 0.5, "pick": 0.25}
    timer.worked["decode"] = 4.0

    assert [("this thread", 1, 3.0, [READ, SCAN, CUT, "decode", "pick"], "")] == [
        (group.name, group.threads, group.seconds, list(group.busy), group.waits) for group in groups(timer, 0)
    ]
    assert [("reading thread", 1, [READ, SCAN, CUT, "pick"]), ("1 worker", 1, ["decode"])] == [
        (group.name, group.threads, list(group.busy)) for group in groups(timer, 1)
    ]


def test_workers_are_counted():
    timer = StageTimer(lambda: 0.0, lambda: 0.0)

    assert ["reading thread", "3 workers"] == [group.name for group in groups(timer, 3)]
    assert ["for the workers", "for records"] == [group.waits for group in groups(timer, 3)]


def test_bytes_are_those_of_the_records_so_far_and_never_taken_back():
    timer = StageTimer(lambda: 0.0, lambda: 0.0)

    def run() -> Iterator[None]:
        for timer.taken, timer.records, timer.bytes in ((4, 1, 40), (4, 2, 40), (8, 4, 60), (8, 5, 8), (9, 9, 90)):
            yield None

    found: Any = count_steps(run(), timer)  # type: ignore[arg-type]
    assert [(1, 10), (1, 10), (2, 10), (1, 0), (4, 60)] == list(found)
