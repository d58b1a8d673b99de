"""The table that a notebook shows of an engine's tasks: what it counts, how it reads, that nothing else draws it."""

from __future__ import annotations

import atexit
import itertools

import pytest

from tarviz import engines
from tarviz.cli import shard_table, verb_base
from tarviz.cli.shard_table import ShardTable
from tarviz.engines import EnginePlan, TaskEnd
from tarviz.model.errors import DataError
from tests.engines.jobs import job


def table(total=10, seconds=1.0):
    """One whose clock is a second further at each look."""
    return ShardTable(total, "convert", lambda records: (records, None), clock=itertools.count(0.0, seconds).__next__)


def heard(table, worker="a:1", records=100, size=1_000_000, error=None):
    table.heard(TaskEnd(0, worker, error is None, records if error is None else error, size))


class TestShardTable:
    def test_it_says_how_far_how_fast_and_how_long_yet(self):
        shown = table()
        assert "convert: 0 of 10 shards, 0 records/s, 0 B/s" == shown.text()
        for worker in ("a:1", "a:2", "a:1", "b:9", "a:1"):
            heard(shown, worker)

        assert "convert: 5 of 10 shards, 100 records/s, 1.00 MB/s, 5 s left" == shown.text()

    def test_parts_are_counted_where_shards_are_cut(self):
        shown = table(3)
        shown.cut(1, 4)
        heard(shown)

        assert shown.text().startswith("convert: 1 of 6 parts, ")
        assert "<th class=right>parts</th>" in shown.html()

    def test_failures_are_told_by_their_codes(self):
        shown = table(4)
        heard(shown)
        heard(shown, error=DataError("cut", code="E_TRUNCATED"))
        heard(shown, error=DataError("cut", code="E_TRUNCATED"))
        heard(shown, error=ZeroDivisionError())

        assert "1 of 4 shards, 3 failed (2 × E_TRUNCATED, 1 × ZeroDivisionError)" in shown.text()
        assert shown.text().endswith("done after 4.0 s")

    def test_each_worker_has_a_row_those_that_failed_first(self):
        shown = table()
        heard(shown, "a:1")
        heard(shown, "b:<2>", error=DataError("cut"))
        html = shown.html()

        assert html.index("b:&lt;2&gt;") < html.index("a:1") < html.index("<td>all</td>")
        assert "width: 20.0%" in html

    def test_very_many_workers_share_a_row(self):
        shown = table(500)
        for number in range(300):
            heard(shown, f"w:{number:03d}")

        assert "280 more" in shown.html()
        assert shard_table.SHOWN + 3 == shown.html().count("<tr>")
        assert "<td>280 more</td><td class=right>280</td>" in shown.html()


class TestShown:
    @pytest.fixture
    def cell(self, monkeypatch):
        """What a notebook's cell is shown, one after the other."""
        found = []
        monkeypatch.setattr(verb_base, "in_notebook", lambda: True)
        monkeypatch.setattr(shard_table, "_cell", lambda first: (found.append(first), found.append)[1])
        return found

    def test_the_last_drawing_says_how_it_ended(self, cell):
        with shard_table.show_tasks(2, "cat", lambda value: (value, 7), "ray") as told:
            for number in range(2):
                told.heard(TaskEnd(number, "a:1", True, 3, 0))

        assert "0 of 2" in cell[0]["text/plain"]
        assert cell[-1]["text/plain"].startswith("cat: 2 of 2 shards")

    @pytest.mark.parametrize(
        ("error", "expected"), [(KeyboardInterrupt(), "interrupted after"), (DataError("cut"), "ended by an error after")]
    )
    def test_a_run_that_breaks_off_says_so(self, cell, error, expected):
        with pytest.raises(type(error)), shard_table.show_tasks(2, "cat", lambda value: (value, 7), "ray"):
            raise error

        assert expected in cell[-1]["text/plain"]

    def test_nothing_is_shown_of_work_on_this_machine_or_outside_a_notebook(self, cell, monkeypatch):
        with shard_table.show_tasks(2, "cat", lambda value: (value, 7), "local") as told:
            told.heard(TaskEnd(0, "a:1", True, 3, 0))
        monkeypatch.setattr(verb_base, "in_notebook", lambda: False)
        with shard_table.show_tasks(2, "cat", lambda value: (value, 7), "ray") as told:
            told.heard(TaskEnd(0, "a:1", True, 3, 0))

        assert [] == cell


@pytest.mark.parametrize("count", [1, 2])
def test_the_local_engine_tells_of_every_task_when_it_ends(count):
    found = []
    tasks = [("tick", 5), ("odd", "why"), ("sleep", 0)]
    with engines.start("local", job, EnginePlan(count, heard=found.append)) as engine:
        list(engine.run(tasks, lambda number, error: None))

    assert [(0, True, 5000), (1, False, 0), (2, True, 0)] == sorted((done.number, done.good, done.size) for done in found)
    assert [("tick", 5)[1], 0] == [done.value for done in sorted(found, key=lambda done: done.number) if done.good]
    assert count >= len({done.worker for done in found})


def test_a_cell_is_drawn_anew_in_its_place():
    pytest.importorskip("IPython", reason="IPython comes with the extra `lab`")
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import RichOutput, capture_output

    shell = InteractiveShell.instance()
    try:
        with capture_output() as seen:
            shard_table._cell({"text/plain": "first"})({"text/plain": "second"})
    finally:
        InteractiveShell.clear_instance()
        atexit.unregister(shell.atexit_operations)
    outputs: list[RichOutput] = seen.outputs

    assert ["first", "second"] == [output.data["text/plain"] for output in outputs]
    assert [False, True] == [bool(output.update) for output in outputs]
    assert 1 == len({output.transient["display_id"] for output in outputs})


def test_drawings_are_some_time_apart():
    drawn = []
    shown = ShardTable(9, "cat", lambda value: (value, 7), clock=iter([0.0, 0.0, 0.2, 0.29, 0.3, 0.5, 0.61]).__next__, show=drawn.append)
    for _ in range(6):
        heard(shown)

    assert [1, 4, 6] == [int(each["text/plain"].split()[1]) for each in drawn]


def test_sizes_are_those_of_the_result_or_those_told_of():
    for size, expected in ((7, 7), (None, 1_000_000), (0, 0)):
        shown = ShardTable(2, "cat", lambda value, size=size: (value, size), clock=itertools.count(0.0, 1.0).__next__)
        heard(shown)
        heard(shown, error=DataError("cut"))

        found = shown.all
        assert (1, 1, 100, expected) == (found.shards, found.failed, found.records, found.bytes)


def halves(task, file, tick):
    """Half of a word; nothing of one that is too short, and an error for one that begins with a question mark."""
    if task.startswith("?"):
        raise DataError(f"{task} is no word.", code="E_CORRUPT", hint="Leave it out." if task == "?0" else None)
    return task[: len(task) // 2] or None


def each_half(tasks):
    return shard_table.each_task("halve", halves, tasks, lambda half: (1, None), "local", None, None, engines.Errors(tasks))


class TestEachTask:
    def test_results_come_in_order_and_what_is_none_does_not(self):
        assert [("abcd", "ab"), ("xy", "x")] == list(each_half(["abcd", "z", "xy"]))

    @pytest.mark.parametrize(
        ("tasks", "hint"),
        [
            (["?0", "ab"], "Leave it out."),
            (["ab", "?1", "cd", "?2"], "1 more failed: ?2 (E_CORRUPT)."),
            (["?0", "?1", "?2"], "Leave it out. 2 more failed: ?1 (E_CORRUPT), ?2 (E_CORRUPT)."),
            ([f"?{at}" for at in range(1, 12)], f"10 more failed: {', '.join(f'?{at} (E_CORRUPT)' for at in range(2, 12))}."),
            ([f"?{at}" for at in range(1, 13)], f"11 more failed: {', '.join(f'?{at} (E_CORRUPT)' for at in range(2, 12))}, …."),
        ],
    )
    def test_the_first_error_comes_after_all_results_and_names_the_others(self, tasks, hint):
        found = []
        with pytest.raises(DataError) as caught:
            found.extend(result for _, result in each_half(tasks))

        first = next(task for task in tasks if task.startswith("?"))
        assert [task[0] for task in tasks if not task.startswith("?")] == found
        assert (f"{first} is no word.", first, hint) == (caught.value.message, caught.value.shard, caught.value.hint)
