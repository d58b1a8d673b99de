"""What verbs share: emit, progress, tables, options."""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from tarviz import cli
from tarviz.cli import verb_base
from tarviz.model import plugins


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
        assert 10**8 == verb_base.size("100MB")

    def test_says_how_to_write_one(self):
        with pytest.raises(click.BadParameter, match="100MiB"):
            verb_base.size("much")


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


@dataclass
class Nested(verb_base.Result):
    """Values of every kind that a result may hold."""

    inner: Tallied
    plain: tuple[object, ...]
    table: dict[object, object]
    place: SimpleNamespace
    _hidden: int = 1


class TestData:
    def test_a_result_within_a_result_and_what_json_does_not_know(self):
        @dataclass
        class Point:
            x: int
            _secret: int = 2

        made = Nested(
            Tallied(1, Path("a")),
            (None, True, 1.5, "http://me:pw@h/"),
            {1: Point(3), "s": {7}, "f": frozenset({8})},
            SimpleNamespace(a="\x1b"),
        )

        assert {
            "inner": {"count": 1, "path": "a", "parts": [0.5]},
            "plain": [None, True, 1.5, "http://***@h/"],
            "table": {"1": {"x": 3}, "s": [7], "f": [8]},
            "place": "namespace(a='\\x1b')",
        } == made.to_dict()

    def test_what_is_no_dataclass_says_what_to_define(self):
        class Bare(verb_base.Result):
            pass

        with pytest.raises(TypeError, match=r"Bare is not a dataclass: it must define to_dict\(\)"):
            Bare().to_dict()


class TestNotebook:
    def test_marimo_is_one_where_it_runs_one(self, monkeypatch: pytest.MonkeyPatch):
        for running in (True, False):
            monkeypatch.setitem(sys.modules, "marimo", SimpleNamespace(running_in_notebook=lambda running=running: running))
            monkeypatch.delitem(sys.modules, "IPython", raising=False)

            assert running == verb_base.in_notebook()

    @pytest.mark.parametrize(
        ("shell", "notebook"),
        [(None, False), (SimpleNamespace(), False), (SimpleNamespace(kernel=None), False), (SimpleNamespace(kernel=1), True)],
    )
    def test_an_ipython_is_one_where_it_has_a_kernel(self, monkeypatch: pytest.MonkeyPatch, shell: object, notebook: bool):
        pytest.importorskip("IPython", reason="a notebook needs IPython: pip install 'tarviz[lab]'")
        monkeypatch.delitem(sys.modules, "marimo", raising=False)
        monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: shell)

        assert notebook is verb_base.in_notebook()

    @pytest.mark.parametrize("notebook", [True, False])
    def test_widgets_are_shown_through_the_door_of_a_notebook(self, monkeypatch: pytest.MonkeyPatch, notebook: bool):
        monkeypatch.setattr(verb_base, "in_notebook", lambda: notebook)
        assert (verb_base.Door(), False) == (verb_base.door(), verb_base.for_widgets())
        for door, shown in ((None, False), (verb_base.Door(), False), (verb_base.Door(capture=True, cell="x"), notebook)):
            with click.Context(click.Command("tarviz"), obj=door) as context, click.Context(click.Command("ls"), parent=context):
                assert (door or verb_base.Door(), shown) == (verb_base.door(), verb_base.for_widgets())


class Slow(verb_base.Result):
    """Three lines, each a while after the one before, and a note."""

    def lines(self, json: bool = False) -> Iterator[str]:
        yield from "abc"

    def notes(self) -> Iterator[str]:
        yield "W_EMPTY a note"


class Heard(io.StringIO):
    """A stream that says when it is flushed."""

    def flush(self) -> None:
        self.write("|")


class TestLines:
    def test_what_takes_long_is_seen_as_it_comes(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(sys, "stdout", shown := Heard())
        monkeypatch.setattr(verb_base.time, "monotonic", iter([0.0, 0.1, 0.3, 0.4]).__next__)
        verb_base.emit(Slow())

        assert "a\nb\n|c\n|" == shown.getvalue()

    def test_notes_go_beside_the_lines_unless_they_are_data_or_nobody_asks(self, capsys: pytest.CaptureFixture[str]):
        verb_base.emit(Slow())
        assert ("a\nb\nc\n", "W_EMPTY a note\n") == capsys.readouterr()
        verb_base.emit(Slow(), True)
        assert ("a\nb\nc\n", "") == capsys.readouterr()
        with verb_base.hush():
            verb_base.emit(Slow(), err=True)
        assert ("", "") == capsys.readouterr()


def test_tags_are_in_force_while_the_verb_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TARVIZ_TAGS", raising=False)

    @verb_base.verb("some", example="some")
    @verb_base.tags_option
    def some() -> str | None:
        return os.environ.get("TARVIZ_TAGS")

    assert f"{tmp_path}/mine" == some.main(["--tags", "mine"], standalone_mode=False)
    assert "TARVIZ_TAGS" not in os.environ
    assert some.main([], standalone_mode=False) is None
    monkeypatch.setenv("TARVIZ_TAGS", "before")
    some.main(["--tags", "mine"], standalone_mode=False)
    assert "before" == os.environ["TARVIZ_TAGS"]


def test_a_line_is_folded_between_its_words():
    for line, width, expected in [
        ("a b c", 8, "a b c"),
        ("aaa bbb", 9, "aaa bbb"),
        ("aaa bbb", 8, "aaa \\\n      bbb"),
        ("a 'b c' d", 8, "a \\\n      'b c' \\\n      d"),
    ]:
        assert expected == verb_base.fold_line(line, width)


def test_columns_are_as_wide_as_their_widest_cell():
    rows = [("a", 1, ""), ("bbb", 22, "x")]

    assert "n     k  z\na     1\nbbb  22  x" == verb_base.table(rows, right=[1], header=("n", "k", "z"))
    assert "a     1\nbbb  22  x" == verb_base.table(rows, right=[1])


def given(option: Callable[..., Any], *words: str) -> dict[str, Any]:
    """What a command with these options is handed over."""

    @verb_base.verb("some", example="some")
    @option
    def some(**options: Any) -> dict[str, Any]:
        return options

    found: dict[str, Any] = some.main(list(words), standalone_mode=False)
    return found


READING = {
    "strict": None,
    "key_split": "first-dot",
    "group": "adjacent",
    "duplicates": "error",
    "concatenated": False,
    "where": "",
    "keys": "",
}


def test_the_options_of_reading():
    for words, changed in [
        ([], {}),
        (["--strict", "--concatenated"], {"strict": True, "concatenated": True}),
        (["--lenient", "--key-split", "last-dot"], {"strict": False, "key_split": "last-dot"}),
        (["--group", "shard", "--duplicates", "last"], {"group": "shard", "duplicates": "last"}),
        (["--where", "cls = 3", "--keys", "list"], {"where": "cls = 3", "keys": "list"}),
    ]:
        assert READING | changed == given(verb_base.reading_options, *words)


def test_options_that_verbs_share():
    for option, words, expected in [
        (verb_base.json_option, ["--json"], {"as_json": True}),
        (verb_base.json_option, [], {"as_json": False}),
        (verb_base.output_option, ["-o", "x"], {"output": "x"}),
        (verb_base.output_option, [], {"output": None}),
        (verb_base.workers_option, ["-j", "0"], {"workers": 0}),
        (verb_base.workers_option, [], {"workers": None}),
        (verb_base.on_error_option, ["--on-error", "skip"], {"on_error": "skip"}),
        (verb_base.on_error_option, [], {"on_error": "raise"}),
        (verb_base.quiet_option, ["-q"], {}),
        (verb_base.tags_option, [], {}),
        (
            verb_base.urls_argument,
            ["a", "b"],
            {
                "urls": ("a", "b"),
            },
        ),
    ]:
        assert expected == given(option, *words)


@pytest.mark.parametrize(
    ("option", "words"),
    [(verb_base.workers_option, ["-j", "-1"]), (verb_base.on_error_option, ["--on-error", "stop"]), (verb_base.urls_argument, [])],
)
def test_what_an_option_cannot_be_is_refused(option: Callable[..., Any], words: list[str]):
    with pytest.raises(click.UsageError):
        given(option, *words)
