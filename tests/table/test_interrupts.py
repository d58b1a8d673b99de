"""Queries that take long: ended by Ctrl-C, by a limit of time; and what a notebook is shown."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import tarviz
from tarviz.commands.sql import sql
from tarviz.model.errors import LimitError, UsageError
from tarviz.table.interrupts import Interrupts, answer

JOIN = "SELECT count(*) FROM records a, records b, records c, records d, records e WHERE a.n < b.n + c.n + d.n + e.n"  # hours
MANY = [(f"k{at:04}", {"cls": b"%d" % (at % 7), "json": b'{"w": %d}' % at}) for at in range(3000)]

# Ctrl-C when the query has begun; DuckDB does not end it, so that nothing but leaving it helps.
_ALONE = """
import os, signal, sys, threading, time
from tarviz.table.interrupts import QUESTION

def press():
    while not any(thread.name == QUESTION for thread in threading.enumerate()):
        time.sleep(0.01)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=press, daemon=True).start()
"""
_SHELL = _ALONE + "from tarviz.cli import main\nsys.exit(main(sys.argv[1:]))"
_PYTHON = _ALONE + "import tarviz\ntarviz.sql(sys.argv[2], sys.argv[3])"


@pytest.mark.programs
@pytest.mark.parametrize(("program", "code"), [(_SHELL, 130), (_PYTHON, None)])
def test_ctrl_c_ends_a_query_that_does_not_end_by_itself(make, program: str, code: int | None):
    path = make(MANY)
    tarviz.table(path).sql("SELECT count(*) FROM records").fetchall()

    done = subprocess.run([sys.executable, "-c", program, "sql", JOIN, str(path)], capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == code if code else done.returncode
    assert ("KeyboardInterrupt" in done.stderr) == (code is None)
    assert "Query interrupted" not in done.stderr


# A page's thread asks and asks; Python would stop it inside DuckDB, which ends the process with SIGABRT.
_BESIDE = """
import itertools, sys, threading, time, tarviz
table, begun = tarviz.table(sys.argv[1]), threading.Event()

def ask():
    for number in itertools.count():
        table.rows(f"json.w > {number}")
        begun.set()

threading.excepthook = lambda args: print(args.exc_value.code)
threading.Thread(target=ask, daemon=True).start()
begun.wait()
time.sleep(0.05)
"""


@pytest.mark.matrix
def test_threads_that_ask_end_with_the_process(make):
    done = subprocess.run([sys.executable, "-c", _BESIDE, str(make(MANY))], capture_output=True, text=True, timeout=120, check=False)

    assert (0, "E_STOPPED\n", "") == (done.returncode, done.stdout, done.stderr)


def test_a_query_ends_after_its_time_and_the_table_answers_again(make):
    table = tarviz.table(make(MANY[:100]), timeout=0.2)

    with pytest.raises(LimitError, match="longer than"):
        table.sql("SELECT sum(md5(x::VARCHAR)::BLOB::VARCHAR = 'a') FROM range(3000000000) AS t(x)").fetchall()
    table.timeout = None
    assert [(100,)] == table.sql("SELECT count(*) FROM records").fetchall()


def test_an_error_of_a_query_is_ours_when_its_rows_are_asked_for(make):
    rows = tarviz.table(make(MANY[:3])).sql("SELECT error('no')")

    with pytest.raises(UsageError, match="no"):
        rows.fetchall()


def test_a_query_of_another_thread_is_answered_there(make):
    table = tarviz.table(make(MANY[:3]))
    found: list[object] = []

    thread = threading.Thread(target=lambda: found.append(table.sql("SELECT count(*) FROM records").fetchall()))
    thread.start()
    thread.join()
    assert [[(3,)]] == found


def test_what_a_query_gives_has_columns_rows_and_a_text(make):
    rows = tarviz.table(make(MANY[:3])).sql("SELECT key, json.w FROM records ORDER BY n")

    assert (["key", "w"], 3, [("k0000", 0)]) == (rows.columns, len(rows), rows.limit(1).fetchall())
    assert "k0002" in repr(rows)


def test_a_table_in_a_notebook_is_a_table(make):
    table = tarviz.table(make(MANY[:20]))
    table.sql("SELECT json.w FROM records").fetchall()

    html = table._repr_mimebundle_()["text/html"]

    assert "20 records" in html
    assert "k0007" in html
    assert "k0008" not in html


def test_csv_for_spreadsheets_holds_no_formulas(make, tmp_path: Path):
    path = make([("a", {"txt": b"=HYPERLINK(1)"}), ("b", {"txt": b"-5"})])

    sql("SELECT txt FROM records ORDER BY key", path, tmp_path / "safe.csv", format="csv-safe")
    sql("SELECT txt FROM records ORDER BY key", path, tmp_path / "plain.csv")

    assert b"txt\n'=HYPERLINK(1)\n-5\n" == (tmp_path / "safe.csv").read_bytes()
    assert b"txt\n=HYPERLINK(1)\n-5\n" == (tmp_path / "plain.csv").read_bytes()


class TestAnswered:
    def test_a_question_that_may_be_ended_runs_in_a_thread_of_its_own(self):
        here: list[bool] = []

        def ask(**more: object) -> None:
            here.append(threading.current_thread() is answer(threading.current_thread, lambda: None, **more))

        ask()
        for more in ({}, {"stop": threading.Event()}, {"timeout": 20}):
            thread = threading.Thread(target=ask, kwargs=more)
            thread.start()
            thread.join()

        assert [False, True, False, False] == here

    @pytest.mark.parametrize("timeout", [0, -1, float("nan")])
    def test_a_time_that_is_none_is_refused(self, timeout):
        with pytest.raises(UsageError, match="a query cannot take"):
            answer(lambda: 1, lambda: None, timeout)

    def test_what_goes_wrong_is_raised_where_the_answer_is_waited_for(self):
        with pytest.raises(ZeroDivisionError):
            answer(lambda: 1 // 0, lambda: None)
        assert 7 == answer(lambda: 7, lambda: None, 20)

    @pytest.mark.parametrize(("hears", "times"), [(True, 1), (False, 2)])
    def test_one_that_does_not_hear_is_interrupted_once_more(self, hears, times):
        over, stop, calls = threading.Event(), threading.Event(), []
        stop.set()

        def interrupt() -> None:
            calls.append(1)
            if hears or len(calls) > 1:
                over.set()

        with pytest.raises(UsageError) as error:
            answer(lambda: over.wait(60), interrupt, stop=stop)
        assert ("E_STOPPED", times) == (error.value.code, len(calls))

    def test_a_limit_of_time_is_kept_beside_a_wish_to_stop(self):
        over = threading.Event()

        with pytest.raises(LimitError, match=r"longer than 0\.1 s"):
            answer(lambda: over.wait(60), over.set, 0.1, threading.Event())


def test_questions_are_for_the_sake_of_the_innermost():
    found, outer, inner = Interrupts(), threading.Event(), threading.Event()
    with found.until(outer):
        with found.until(inner):
            assert inner is found.stop
        assert outer is found.stop
        found.look()
        outer.set()
        with pytest.raises(UsageError, match="stopped"):
            found.look()
    assert found.stop is None
    found.look()
