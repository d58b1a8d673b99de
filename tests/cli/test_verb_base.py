"""What verbs share: emit, progress, tables, options."""

from __future__ import annotations

import io
import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from tarviz import cli
from tarviz.cli import progress, verb_base
from tarviz.model import plugins
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


class Counted(verb_base.Result):
    exit_code = 1

    def __str__(self) -> str:
        return "<three> faults"

    def to_dict(self) -> dict[str, int]:
        return {"faults": 3}


class TestEmit:
    def test_writes_the_text(self, capsys: pytest.CaptureFixture[str]):
        with pytest.raises(click.exceptions.Exit):
            verb_base.emit(Counted())

        assert "<three> faults\n" == capsys.readouterr().out

    def test_writes_json(self, capsys: pytest.CaptureFixture[str]):
        with pytest.raises(click.exceptions.Exit):
            verb_base.emit(Counted(), True)

        assert '{"faults": 3}\n' == capsys.readouterr().out

    def test_leaves_with_the_exit_code_of_the_result(self):
        with pytest.raises(click.exceptions.Exit) as caught:
            verb_base.emit(Counted())

        assert 1 == caught.value.exit_code

    def test_keeps_out_of_the_data_on_stdout(self, capsys: pytest.CaptureFixture[str]):
        with pytest.raises(click.exceptions.Exit):
            verb_base.emit(Counted(), err=True)

        assert ("", "<three> faults\n") == capsys.readouterr()

    def test_returns_the_result_to_a_magic(self, capsys: pytest.CaptureFixture[str]):
        result = cli.invoke(["config"])

        assert "block_size" in result.values
        assert "" == capsys.readouterr().out

    def test_markup_is_escaped_for_the_notebook(self):
        assert "<pre>&lt;three&gt; faults</pre>" == Counted()._repr_mimebundle_()["text/html"]


class TestTable:
    def test_no_rows_is_a_header(self):
        assert "a  b" == verb_base.table([], header=("a", "b"))

    def test_control_characters_are_escaped(self):
        assert "a\\x1b  b" == verb_base.table([("a\x1b", "b")])


class TestSize:
    def test_reads_sizes(self):
        assert 10**8 == verb_base.SIZE.convert("100MB", None, None)

    def test_says_how_to_write_one(self):
        with pytest.raises(click.BadParameter, match="100MiB"):
            verb_base.SIZE.convert("much", None, None)


@dataclass
class Tallied(verb_base.Result):
    """What a verb of another package returns that says nothing of JSON."""

    count: int
    path: Path
    parts: tuple[float, ...] = (0.5,)
    _secret: int = 1


class TestResultsOfOthers:
    def test_a_dataclass_has_a_json_form(self):
        assert {"count": 3, "path": "a/b.tar", "parts": [0.5]} == Tallied(3, Path("a/b.tar")).to_dict()

    def test_urls_in_it_keep_no_secret(self):
        assert "s3cret" not in str(Tallied(1, "https://me:s3cret@host/a.tar?token=s3cret").to_dict())


def test_a_storage_option_is_in_force_while_the_verb_runs(monkeypatch):
    monkeypatch.setenv("TARVIZ_STORAGE_OPTIONS", '{"kept": 1}')

    @verb_base.verb("some", example="some")
    @verb_base.urls_argument
    def some(urls):
        return json.loads(os.environ["TARVIZ_STORAGE_OPTIONS"])

    line = ["--storage-option", "requester_pays=true", "--storage-option", "key=~/id", "a.tar"]
    assert {"kept": 1, "requester_pays": True, "key": "~/id"} == some.main(line, standalone_mode=False)
    assert '{"kept": 1}' == os.environ["TARVIZ_STORAGE_OPTIONS"]
    with pytest.raises(click.BadParameter, match="NAME=VALUE"):
        some.main(["--storage-option", "alone", "a.tar"], standalone_mode=False)


@pytest.mark.parametrize("name", plugins.names("commands"))
def test_the_help_of_a_verb_fits_80_columns_and_its_examples_are_read_by_a_shell_as_they_are(name: str):
    command = plugins.load("commands", name).command
    text = command.get_help(click.Context(command, info_name=name, terminal_width=80))

    assert [] == [line for line in text.splitlines() if len(line) > 80]
    lines = text.partition("\nExample")[2].replace("\\\n", " ").splitlines()[1:]  # as a shell joins them
    assert [shlex.split(each) for each in command.examples] == [shlex.split(line) for line in lines]
