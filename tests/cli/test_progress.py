"""Progress: the line that is drawn, when, and when it is not."""

from __future__ import annotations

import io
import shutil
from types import SimpleNamespace

import pytest

from tarviz.cli import progress, verb_base
from tests.conftest import wait_until


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    stream = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))  # pytest sets sys.stderr itself before each test
    return stream


class TestProgress:
    def test_nothing_is_shown_in_the_first_second(self, terminal: Terminal):
        clock = Clock()
        with verb_base.Progress(10, "records", clock=clock) as bar:
            clock.now += 0.9
            bar.add(9)

        assert "" == terminal.getvalue()

    def test_shows_share_rate_and_time_left(self, terminal: Terminal):
        clock = Clock()
        with verb_base.Progress(100, "records", "a.tar", clock=clock) as bar:
            clock.now += 2
            bar.add(50)

        assert "a.tar" in terminal.getvalue()
        assert " 50%  50 of 100 records  25/s  2 s left" in terminal.getvalue()
        assert terminal.getvalue().endswith("\r\x1b[2K")

    def test_bytes_are_shown_as_sizes(self, terminal: Terminal):
        clock = Clock()
        with verb_base.Progress(None, "bytes", clock=clock) as bar:
            clock.now += 2
            bar.add(3_000_000)

        assert "3.00 MB  1.50 MB/s  2 s" in terminal.getvalue()

    def test_is_drawn_ten_times_a_second_at_most(self, terminal: Terminal):
        clock = Clock()
        with verb_base.Progress(None, "records", clock=clock) as bar:
            clock.now += 1
            for _ in range(1000):
                clock.now += 0.001
                bar.add()

        assert 12 > terminal.getvalue().count("\r")

    def test_a_long_step_is_seen_to_go_on(self, terminal: Terminal):
        clock = Clock()
        with verb_base.Progress(1, "shards", "a.tar", clock=clock):
            clock.now += 7
            wait_until(lambda: "a.tar  0 shards  0.0/s  7 s" in terminal.getvalue())

    def test_is_silent_when_stderr_is_no_terminal(self, capsys: pytest.CaptureFixture[str]):
        clock = Clock()
        with verb_base.Progress(10, "records", clock=clock) as bar:
            clock.now += 5
            bar.add(5)

        assert "" == capsys.readouterr().err

    def test_a_label_cannot_steer_the_terminal(self, terminal: Terminal):
        clock = Clock()
        with verb_base.Progress(None, "records", "\x1b[31mred", clock=clock) as bar:
            clock.now += 5
            bar.add()

        assert "\\x1b[31mred" in terminal.getvalue()

    def test_quiet_silences_it(self, terminal: Terminal):
        clock = Clock()

        @verb_base.verb("work", example="work -q")
        @verb_base.quiet_option
        def work() -> None:
            with verb_base.Progress(10, "records", clock=clock) as bar:
                clock.now += 5
                bar.add(5)

        work.main(["-q"], standalone_mode=False)

        assert "" == terminal.getvalue()


def test_the_line_after_ten_seconds():
    for total, unit, label, done, line in [
        (200, "records", "a.tar", 50, f"a.tar  {'━' * 6}{'╌' * 18}  25%  50 of 200 records  5.0/s  30 s left"),
        (2000, "records", "", 100, f"{'━'}{'╌' * 23}   5%  100 of 2,000 records  10/s  190 s left"),
        (2_000_000, "bytes", "", 1_000_000, f"{'━' * 12}{'╌' * 12}  50%  1.00 MB of 2.00 MB  100 kB/s  10 s left"),
        (2, "shards", "", 3, f"{'━' * 24} 100%  3 of 2 shards  0.3/s  0 s left"),
        (2, "shards", "", 0, "0 shards  0.0/s  10 s"),
        (None, "shards", "b", 1234, "b  1,234 shards  123/s  10 s"),
        (0, "bytes", "", 500, "500 B  50 B/s  10 s"),
    ]:
        bar = verb_base.Progress(total, unit, label, clock=lambda: 100.0)
        bar.done = done

        assert line == bar.text(110.0)


def test_a_line_is_as_wide_as_the_terminal_at_most(terminal: Terminal, monkeypatch: pytest.MonkeyPatch):
    for columns, line in ((30, "1 records  0.5/s  2 s"), (22, "1 records  0.5/s  2 s"), (21, "1 records  0.5/s  2…")):
        monkeypatch.setattr(shutil, "get_terminal_size", lambda columns=columns: SimpleNamespace(columns=columns))
        bar = verb_base.Progress(None, "records", clock=(clock := Clock()))
        clock.now += 2
        bar.add()

        assert f"\r\x1b[2K{line}" == terminal.getvalue()
        terminal.truncate(0)
        terminal.seek(0)


@pytest.mark.parametrize(("mode", "on_a_terminal", "elsewhere"), [("auto", True, False), ("on", True, True), ("off", False, False)])
def test_it_is_drawn_where_the_option_says(monkeypatch: pytest.MonkeyPatch, mode: str, on_a_terminal: bool, elsewhere: bool):
    monkeypatch.setenv("TARVIZ_PROGRESS", mode)
    for stream, drawn in ((Terminal(), on_a_terminal), (io.StringIO(), elsewhere)):
        monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
        with verb_base.Progress(None, "records", delay=0.0) as bar:
            bar.add()

        assert drawn is bool(stream.getvalue())


def test_a_label_that_is_new_takes_the_place_of_the_old_one_and_none_leaves_it():
    bar = verb_base.Progress(None, "records", "a")
    bar.add(label="b")
    bar.add(2)

    assert ("b", 3) == (bar.label, bar.done)
