"""The shell door: help, unknown verbs, errors as one line, exit codes."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tarviz import cli
from tarviz.cli.entry import load_verb
from tarviz.model import errors, plugins

ROOT = Path(__file__).parents[2]


def tarviz(*argv: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tarviz", *argv], capture_output=True, text=True, cwd=ROOT, timeout=100, **options)  # type: ignore[call-overload]


class TestHelp:
    def test_lists_every_verb_with_a_line(self, capsys: pytest.CaptureFixture[str]):
        assert 0 == cli.main(["--help"])

        text = capsys.readouterr().out
        for name in plugins.names("commands"):
            assert f"\n  {name} " in text
            assert cli.summary(name)

    def test_no_verb_shows_the_help(self, capsys: pytest.CaptureFixture[str]):
        cli.main([])

        assert "tarviz VERB --help" in "".join(capsys.readouterr())

    def test_names_a_verb_once(self):
        listed = [name for names in cli.GROUPS.values() for name in names]

        assert len(set(listed)) == len(listed)

    def test_an_option_left_out_means_the_same_in_python(self):
        compared = 0
        for name in plugins.names("commands"):
            room = importlib.import_module(f"tarviz.commands.{name}")
            parts = inspect.signature(getattr(room, name)).parameters
            for option in room.command.params:
                told, part = option.get_default(click.Context(room.command)), parts.get(option.name)
                if part and isinstance(told, bool | int | float | str) and part.default not in (None, part.empty):
                    assert str(told or "") == str(part.default or ""), (name, part.name)
                    compared += 1

        assert compared > 90

    @pytest.mark.parametrize("name", plugins.names("commands"))
    def test_a_verb_has_a_page_with_an_example(self, name: str, capsys: pytest.CaptureFixture[str]):
        assert 0 == cli.main([name, "--help"])

        text = capsys.readouterr().out
        assert f"Usage: tarviz {name}" in text
        assert "Example" in text
        assert "--json" in text or name == "browse"  # which serves a page until it is stopped

    def test_importing_no_verb(self):
        code = (
            "import sys; from tarviz import cli; cli.main(['--help'])\n"
            "print([m for m in sys.modules if m.startswith('tarviz.commands.') and not m.endswith('_shell')])"
        )

        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)

        assert "[]" == done.stdout.splitlines()[-1]

    def test_version(self, capsys: pytest.CaptureFixture[str]):
        assert 0 == cli.main(["--version"])
        assert capsys.readouterr().out.startswith("tarviz 0.")


class TestErrors:
    def test_an_unknown_verb_suggests_a_near_one(self, capsys: pytest.CaptureFixture[str]):
        assert 2 == cli.main(["confg"])
        assert "Did you mean config" in capsys.readouterr().err

    def test_an_unknown_option_says_where_help_is(self, capsys: pytest.CaptureFixture[str]):
        assert 2 == cli.main(["config", "--jsn"])
        assert "tarviz config --help" in capsys.readouterr().err

    def test_an_error_is_one_line_and_two(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("TARVIZ_WORKERS", "many")

        assert 2 == cli.main(["config"])
        out, err = capsys.readouterr()
        assert ("", 1) == (out, err.count("\n"))
        assert err.startswith("tarviz: E_USAGE")

    def test_what_a_verb_raises(self, monkeypatch, capsys):
        for error, code, text in [
            (KeyboardInterrupt(), 130, ""),
            (click.Abort(), 130, ""),
            (errors.StoreError("no route", shard="http://me:pw@h/a"), 2, "***@h/a"),
            (PermissionError(13, "Permission denied", "out.tar"), 2, "tarviz: out.tar: Permission denied\n"),
            (OSError("odd"), 2, "tarviz: odd\n"),
            (click.ClickException("as click says"), 2, "tarviz: as click says\n"),
        ]:

            def fail(error: BaseException = error) -> None:
                raise error

            monkeypatch.setattr("tarviz.config.sources", fail)

            assert code == cli.main(["config"])
            assert text in capsys.readouterr().err

    def test_a_closed_pipe_is_quiet(self):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(
            [sys.executable, "-m", "tarviz", "config", "--json"],
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            timeout=100,
            check=False,
        )
        os.close(write)

        assert (141, "") == (done.returncode, done.stderr)

    def test_a_fault_of_ours_is_not_hidden(self, monkeypatch: pytest.MonkeyPatch):
        def fail() -> None:
            raise RuntimeError("a bug")

        monkeypatch.setattr("tarviz.config.sources", fail)

        with pytest.raises(RuntimeError, match="a bug"):
            cli.main(["config"])


class TestDoors:
    def test_the_module_runs(self):
        done = tarviz("config", "--json")

        assert 0 == done.returncode
        assert "cache_dir" in json.loads(done.stdout)["options"]

    def test_completion_knows_the_verbs(self):
        environment = {**os.environ, "_TARVIZ_COMPLETE": "bash_complete", "COMP_WORDS": "tarviz conf", "COMP_CWORD": "1"}

        done = tarviz(env=environment)

        assert "plain,config" in done.stdout

    @pytest.mark.parametrize("argv", [["ls", "a.tar"], []])
    def test_a_file_of_options_with_an_unknown_one_is_one_line_at_tab_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], argv: list[str]
    ):
        (tmp_path / "config.toml").write_text("blocksize = 1\n")
        monkeypatch.setenv("TARVIZ_CONFIG", str(tmp_path / "config.toml"))
        if not argv:
            monkeypatch.setenv("_TARVIZ_COMPLETE", "bash_complete")
            monkeypatch.setenv("COMP_WORDS", "tarviz ls ")
            monkeypatch.setenv("COMP_CWORD", "2")

        assert 2 == cli.main(argv)
        assert capsys.readouterr().err.startswith(f"tarviz: E_USAGE: {tmp_path}/config.toml sets 'blocksize', which is not an option.")

    def test_invoke_raises_what_main_would_print(self):
        with pytest.raises(click.UsageError, match="no verb"):
            cli.invoke(["confg"])


class TestVerbs:
    def test_the_verb_of_a_line_is_its_first_word(self):
        assert plugins.load("commands", "ls").command is load_verb(["-q", "ls", "cat"])
        assert cli.group is load_verb([]) is load_verb(["none"])

    def test_a_long_sentence_is_cut_at_its_first_colon(self):
        assert [None, None] == [None if len(cli.summary(name)) <= 64 else name for name in ("verify", "card")]
        assert "Show the options in force and where each comes from" == cli.summary("config")
        assert "Find every fault in shards and TFRecord files" == cli.summary("verify")
        assert "from another package" == cli.summary("of-others")

    def test_every_verb_of_tarviz_is_in_a_group(self):
        assert set(plugins.names("commands")) == {name for names in cli.GROUPS.values() for name in names}

    @pytest.mark.parametrize(
        ("word", "meant"),
        [("lss", "Did you mean ls?"), ("xyz", "tarviz --help lists what there is."), ("shwo", "Did you mean show or sort?")],
    )
    def test_what_was_meant(self, word: str, meant: str, capsys: pytest.CaptureFixture[str]):
        assert 2 == cli.main([word])
        assert f"tarviz: There is no verb {word!r}. {meant} Try: tarviz --help\n" == capsys.readouterr().err

    def test_help_gives_no_result(self, capsys: pytest.CaptureFixture[str]):
        assert cli.invoke(["ls", "--help"]) is None
        assert "Usage: tarviz ls" in capsys.readouterr().out

    def test_what_is_not_in_the_shell_is_no_name_of_it(self):
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            cli.nothing  # noqa: B018

    def test_an_error_has_its_exit_code_and_a_clean_end_none(self, capsys: pytest.CaptureFixture[str], tmp_path: Path):
        assert [0, 2] == [cli.main(["config"]), cli.main(["ls", str(tmp_path / "none.tar")])]
