"""The magics: one parser with the shell, names, completion, errors in a line, a session that never ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

pytest.importorskip("IPython", reason="IPython comes with the extra `lab`")

from IPython.core.error import UsageError
from IPython.core.magic import register_line_magic

from tarviz import cli
from tarviz.cli import completion
from tarviz.model import plugins
from tarviz.model.errors import DataError, TarvizWarning
from tarviz.notebook import magics
from tests.conftest import wait_until


def complete(shell: Any, text: str, at: int | None = None) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [each.text for each in shell.Completer.completions(text, len(text) if at is None else at)]


class TestLines:
    def test_the_same_text_as_the_shell(self, shell: Any, capsys: pytest.CaptureFixture[str]):
        cli.main(["ls", "s-{0..2}.tar"])
        expected = capsys.readouterr().out
        shell.run_line_magic("tv", "ls s-{0..2}.tar")

        assert expected == capsys.readouterr().out

    def test_braces_come_through_whole(self, shell: Any, capsys: pytest.CaptureFixture[str]):
        """IPython makes `t-(1, 2).tar` of `t-{1,2}.tar` for other magics."""
        shell.user_ns["x"] = 7
        assert shell.run_cell("%tv ls s-{0,1}.tar").success
        assert shell.run_cell("%tarviz ls 's-{0..2}.tar'").success

        assert "s-1.tar" in capsys.readouterr().out

    def test_nothing_is_returned_so_nothing_shows_twice(self, shell: Any):
        assert shell.run_line_magic("tv", "ls s-0.tar") is None

    def test_a_result_under_a_name(self, shell: Any):
        shell.run_line_magic("tv", "ls s-0.tar -o found")
        shell.run_line_magic("tv", "ls -o more s-0.tar s-1.tar")

        assert (4, 8) == (shell.user_ns["found"].records, shell.user_ns["more"].records)

    def test_a_verb_keeps_its_own_o(self, shell: Any):
        shell.run_line_magic("tv", "cat s-0.tar -o copy.tar")

        assert Path("copy.tar").is_file()
        assert "copy" not in shell.user_ns

    @pytest.mark.parametrize("line", ["ls s-0.tar -o", "ls s-0.tar -o 1x"])
    def test_a_name_that_is_none(self, shell: Any, line: str):
        with pytest.raises(UsageError, match="-o"):
            shell.run_line_magic("tv", line)

    @pytest.mark.parametrize("line", ["", "--help", "-h"])
    def test_help_lists_the_verbs(self, shell: Any, capsys: pytest.CaptureFixture[str], line: str):
        shell.run_line_magic("tv", line)
        text = capsys.readouterr().out

        for verb in plugins.names("commands"):
            assert verb in text

    def test_a_question_mark_shows_examples_of_verbs_that_there_are(self, shell: Any):
        text = shell.object_inspect_text("%tv")

        assert "%tv sql 'SELECT cls, count(*) FROM records GROUP BY cls' data/" in text
        assert set(re.findall(r"^ *%%?tv (\w+)", text, re.MULTILINE)) <= set(plugins.names("commands"))

    def test_help_of_a_verb_is_that_of_the_shell(self, shell: Any, capsys: pytest.CaptureFixture[str]):
        cli.main(["ls", "--help"])
        expected = capsys.readouterr().out
        shell.run_line_magic("tv", "ls --help")

        assert expected == capsys.readouterr().out

    def test_the_magic_explains_itself(self, shell: Any):
        assert "%tv VERB" in shell.find_line_magic("tv").__doc__


class TestNames:
    @pytest.mark.parametrize(
        "value",
        ["s-0.tar", Path("s-0.tar"), ["s-0.tar"], ("s-0.tar",)],
    )
    def test_a_name_stands_for_its_urls(self, shell: Any, value: Any):
        shell.user_ns["where"] = value
        shell.run_line_magic("tv", "ls where -o found")

        assert 4 == shell.user_ns["found"].records

    def test_a_pipeline_records_an_index_and_a_browser_stand_for_their_shards(self, shell: Any):
        assert shell.run_cell("import tarviz\npipe = tarviz.Pipeline('s-{0..1}.tar')\nrecs = tarviz.records('s-0.tar')").success
        assert shell.run_cell("ind = tarviz.index('s-{0..2}.tar')").success

        for name, count in (("pipe", 8), ("recs", 4), ("ind", 12)):
            shell.run_line_magic("tv", f"ls {name} -o found")
            assert count == shell.user_ns["found"].records

    def test_a_file_of_that_name_wins_over_text(self, shell: Any):
        Path("shard").write_bytes(Path("s-0.tar").read_bytes())
        shell.user_ns["shard"] = "s-{0..2}.tar"
        shell.run_line_magic("tv", "ls shard -o found")

        assert 4 == shell.user_ns["found"].records

    def test_a_chain_by_name(self, shell: Any):
        shell.run_cell("from tarviz.ops import Chain, Flip\nmine = Chain.of('decode(png)|flip(png)')")
        shell.run_line_magic("tv", "compare s-0.tar -n 1 -c mine -o done")

        assert "decode(png)|flip(png)" == str(shell.user_ns["done"].run.columns[0].chain)

    def test_the_value_of_an_option_is_no_name(self, shell: Any):
        shell.user_ns["adjacent"] = "nonsense"

        assert shell.run_cell("%tv ls s-0.tar --group adjacent").success


class TestCells:
    def test_a_chain_a_line(self, shell: Any, capsys: pytest.CaptureFixture[str]):
        shell.run_cell("from tarviz.ops import Chain\nmine = Chain.of('decode(png)')")
        cell = "%%tv compare s-{0..1}.tar -n 2 -o done\nsmall = decode(png)|resize(png, (4, 4))\n# a remark\n\nturned = mine\nmine\n"
        assert shell.run_cell(cell).success

        columns = shell.user_ns["done"].run.columns
        assert ["small", "turned", "chain 3"] == [column.name for column in columns]
        assert "resize(png, (4, 4))" in capsys.readouterr().out

    def test_any_iterable_is_timed(self, shell: Any, capsys: pytest.CaptureFixture[str]):
        assert shell.run_cell("%%tv bench --for 5 -o done\nitems = list(range(40))\niter(items)").success

        assert 40 == shell.user_ns["done"].result.rows[0].runs[0].total_records
        assert "records/s" in capsys.readouterr().out
        assert 40 == len(shell.user_ns["items"])

    @pytest.mark.parametrize(
        ("cell", "reason"),
        [
            ("%%tv ls s-0.tar\nx", "takes nothing below"),
            ("%%tv bench\nx = 1", "end the cell with an expression"),
            ("%%tv bench\n'text'", "is text"),
            ("%%tv compare s-0.tar\n# nothing", "no chain"),
            ("%%tv compare s-0.tar\na = decod(png)", "Did you mean decode"),
        ],
    )
    def test_what_a_cell_cannot_be(self, shell: Any, capsys: pytest.CaptureFixture[str], cell: str, reason: str):
        result = shell.run_cell(cell)

        assert isinstance(result.error_in_exec, UsageError)
        assert reason in str(result.error_in_exec)


class TestErrors:
    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("ls nowhere.tar", ["E_NOT_FOUND", "Hint"]),
            ("lss", ["no verb 'lss'", "Did you mean ls", "%tv --help"]),
            ("ls", ["Missing argument", "%tv ls --help"]),
            ("ls --nope s-0.tar", ["--nope", "%tv ls --help"]),
            ("ls 'unfinished", ["No closing quotation"]),
            ("browse s-0.tar --px 7", ["7"]),
        ],
    )
    def test_are_one_line_and_make_the_cell_fail(self, shell: Any, capsys: pytest.CaptureFixture[str], line: str, words: list[str]):
        result = shell.run_cell(f"%tv {line}")
        told = capsys.readouterr()

        assert not result.success
        assert 1 == told.err.strip().count("\n") + 1
        assert "Traceback" not in told.err + told.out
        for word in words:
            assert word in told.err

    @pytest.mark.matrix
    def test_v_shows_where_it_comes_from(self, shell: Any, capsys: pytest.CaptureFixture[str]):
        result = shell.run_cell("%tv -v ls nowhere.tar")

        assert isinstance(result.error_in_exec, FileNotFoundError)
        assert "Traceback" in "".join(capsys.readouterr())

    def test_nothing_ends_the_session(self, shell: Any, monkeypatch: pytest.MonkeyPatch):
        def leave(*_: Any) -> None:
            raise SystemExit(3)

        monkeypatch.setattr(cli, "invoke", leave)
        result = shell.run_cell("%tv ls s-0.tar")

        assert isinstance(result.error_in_exec, UsageError)
        assert "stays" in str(result.error_in_exec)

    def test_an_interrupt_is_a_line(self, shell: Any, monkeypatch: pytest.MonkeyPatch):
        def interrupt(*_: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(cli, "invoke", interrupt)
        result = shell.run_cell("%tv ls s-0.tar")

        assert "%tv ls was interrupted." == str(result.error_in_exec)

    def test_control_characters_of_a_name_are_spelled_out(self, shell: Any, capsys: pytest.CaptureFixture[str]):
        shell.run_cell("%tv ls 'no\x1b[31mred.tar'")

        assert "\x1b[31mred" not in capsys.readouterr().err


class TestCompletion:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("%tv be", ["bench"]),
            ("%tarviz con", ["config", "convert"]),
            ("%%tv com", ["compare"]),
            ("%tv ls --ca", ["--cache"]),
            ("%tv ls --group sh", ["shard"]),
            ("%tv ls s-", ["s-{0..2}.tar", "s-0.tar", "s-1.tar", "s-2.tar"]),
            ("%tv browse s-0.tar --image ", ["png", "cls", "json"]),
            ("%tv browse s-{0..2}.tar --from p/n00", ["p/n00"]),
            ("%tv compare s-0.tar --key p/n0", ["p/n00", "p/n01", "p/n02", "p/n03"]),
            ("%tv compare s-0.tar -c 'dec", ["decode("]),
            ("%tv compare s-0.tar -c 'decode(p", ["png"]),
            ("%%tv compare s-0.tar\na = decode(png)|rot", ["rotate("]),
            ("%%tv compare s-0.tar\na = decode(", ["png", "cls", "json"]),
            ("%%tv compare s-0.tar\nx = fl", ["flip("]),
            ("%tv browse s-{0..2}.tar --where 'png.wi", ["png.width"]),
            ("%%tv sql s-{0..2}.tar\nSELECT count(*)\nFROM records WHERE png.hei", ["png.height"]),
        ],
    )
    def test_of(self, shell: Any, text: str, found: list[str]):
        assert found == complete(shell, text)

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("%tv sql 'SELECT cl|' s-{0..2}.tar", ["cls", "cls.checksum", "cls.size"]),
            ("%tv sql \"SELECT count(*) FROM records WHERE key LIKE '%n0%' AND png.h|\" s-0.tar", ["png.height"]),
            ("%tv browse --where 'png.wi|' s-0.tar", ["png.width"]),
        ],
    )
    def test_a_query_with_its_shards_behind_it(self, shell: Any, text: str, found: list[str]):
        before, _, behind = text.partition("|")

        assert found == complete(shell, before + behind, len(before))

    def test_python_names_of_urls(self, shell: Any):
        shell.user_ns["wherever"] = ["s-0.tar"]
        shell.user_ns["whenever"] = 3

        assert "wherever" in complete(shell, "%tv ls wh")
        assert "whenever" not in complete(shell, "%tv ls wh")

    def test_python_is_left_alone(self, shell: Any):
        assert [] == shell.Completer.custom_matchers[0](_context("import o")).get("completions")

    def test_a_name_with_a_space_is_quoted(self, shell: Any):
        Path("a b.tar").write_bytes(Path("s-0.tar").read_bytes())

        assert ["'a b.tar'"] == complete(shell, "%tv ls a")

    @pytest.mark.parametrize(
        "text", ["%tv nonsense --x ", "%tv ls nowhere/", "%tv compare nowhere.tar --key ", "%tv compare -c '", '%tv ls "a']
    )
    @pytest.mark.matrix
    def test_nothing_is_raised_where_nothing_is_known(self, shell: Any, text: str):
        assert isinstance(complete(shell, text), list)

    def test_folding(self):
        names = ["a-1.tar", "a-2.tar", "b-01.tar", "b-03.tar", "c-09.tar.gz", "c-10.tar.gz", "x.tar"]

        assert ["a-{1..2}.tar", "c-{09..10}.tar.gz"] == completion.fold_names(names)

    def test_a_large_folder_is_quick(self, tmp_path: Path):
        for number in range(3000):
            (tmp_path / f"t-{number:05d}.tar").touch()

        assert f"{tmp_path}/t-{{00000..02999}}.tar" == completion.shards(f"{tmp_path}/t")[0]


def _context(text: str) -> Any:
    from IPython.core.completer import CompletionContext

    return CompletionContext(text.rpartition(" ")[2], text, len(text), 0, None)


class TestLoading:
    def test_unloading_takes_all_of_it_out(self, shell: Any):
        shell.run_line_magic("unload_ext", "tarviz")

        assert shell.find_line_magic("tv") is None
        assert shell.find_cell_magic("tarviz") is None
        assert [] == shell.Completer.custom_matchers
        shell.run_line_magic("load_ext", "tarviz")

    def test_loading_twice_registers_once(self, shell: Any):
        shell.run_line_magic("reload_ext", "tarviz")
        magics.load_ipython_extension(shell)

        assert 1 == len(shell.Completer.custom_matchers)

    @pytest.mark.parametrize(("name", "free"), [magics.NAMES, magics.NAMES[::-1]])
    def test_a_magic_that_is_there_stays(self, name: str, free: str, shell: Any):
        shell.run_line_magic("unload_ext", "tarviz")

        def other(line: str) -> str:
            return f"mine {line}"

        shell.register_magic_function(other, "line", name)
        with pytest.warns(TarvizWarning, match="W_MAGIC_TAKEN"):
            shell.run_line_magic("load_ext", "tarviz")

        assert "mine x" == shell.run_line_magic(name, "x")
        assert shell.find_line_magic(free) is not None
        shell.run_line_magic("unload_ext", "tarviz")
        assert "mine x" == shell.run_line_magic(name, "x")
        shell.magics_manager.magics["line"].pop(name)
        shell.run_line_magic("load_ext", "tarviz")

    def test_unloading_what_was_not_loaded(self, shell: Any):
        magics.unload_ipython_extension(object())

    def test_registering_is_ipythons(self):
        assert callable(register_line_magic)


class TestKernel:
    """A real kernel, as a notebook has it."""

    @pytest.mark.matrix
    def test_a_comparison_and_a_bench_are_widgets_with_a_picture(self, kernel: Callable[..., dict[str, Any]]):
        compared = kernel("%%tv compare s-0.tar -n 2\na = decode(png)|flip(png)")
        measured = kernel("%tv bench s-{0..2}.tar -c 'decode(png)' --for 0.5", allow_stdin=False)  # nobody watches: it waits

        for found in (compared, measured):
            picture, widget, _ = found["outputs"]
            assert "application/vnd.jupyter.widget-view+json" in widget
            assert picture["image/png"]
            assert len(picture["image/png"]) <= 200_000 * 4 // 3
        assert "flip(png)" in compared["outputs"][0]["text/plain"]
        assert "is the limit" in measured["outputs"][0]["text/plain"]

    def test_a_bench_does_not_hold_the_cell_and_can_be_stopped(self, kernel: Callable[..., dict[str, Any]]):
        begun = kernel("%tv bench s-{0..2}.tar -c 'decode(png)' --for 600 -o b\nprint(b.result.state)")
        stopped = kernel("r = b.stop()\nprint(r.state, len(r.rows))")

        assert "running" in begun["stdout"]
        assert "stopped 1" in stopped["stdout"]

    def test_the_picture_is_renewed_when_a_bench_is_done(self, kernel: Callable[..., dict[str, Any]]):
        begun = kernel("%tv bench s-{0..2}.tar -c 'decode(png)' --for 0.6 -o b")
        # A slow machine is done by the end of the cell.
        renewed = [output for output in begun["outputs"] if output["kind"] == "update_display_data"]
        while not renewed:  # it belongs to the cell before, whatever runs when it comes
            message = kernel.client.get_iopub_msg(timeout=90)
            ours = message["msg_type"] == "update_display_data" and message["parent_header"]["msg_id"] == begun["id"]
            renewed = [message["content"]["data"]] if ours else []

        assert 1 == len(renewed)
        assert "is the limit" in renewed[0]["text/plain"]
        assert renewed[0]["image/png"]

    def test_errors_fail_the_cell_and_the_kernel_lives(self, kernel: Callable[..., dict[str, Any]]):
        failed = kernel("%tv ls nowhere.tar")
        helped = kernel("%tv --help")

        assert "error" == failed["status"]
        assert "E_NOT_FOUND" in failed["stderr"]
        assert ("ok", True) == (helped["status"], "Usage: tarviz" in helped["stdout"])

    def test_ctrl_c_ends_a_waiting_verb(self, kernel: Callable[..., dict[str, Any]], shell_folder: Path):
        kernel("from pathlib import Path; from tarviz.widgets.bench.controller import BenchRun; wait = BenchRun.wait")
        kernel("BenchRun.wait = lambda run, *rest: (Path('waiting').touch(), wait(run, *rest))[1]")

        def press() -> None:
            wait_until((shell_folder / "waiting").exists)
            kernel.interrupt()  # type: ignore[attr-defined]

        presser = threading.Thread(target=press)
        presser.start()
        ended = kernel("%tv bench s-0.tar --for 6000 --wait")
        presser.join()

        assert "stopped" in "".join(output["text/plain"] for output in ended["outputs"]) or "interrupted" in ended["stderr"]
        assert "ok" == kernel("BenchRun.wait = wait")["status"]

    def test_completion_through_the_kernel(self, kernel: Callable[..., dict[str, Any]]):
        client = kernel.client  # type: ignore[attr-defined]
        client.complete("%tv ls s-", 9)
        reply = client.get_shell_msg(timeout=60)["content"]

        assert "s-{0..2}.tar" in reply["matches"]
        assert (7, 9) == (reply["cursor_start"], reply["cursor_end"])

    @pytest.mark.programs
    def test_a_notebook_run_by_nobody_keeps_pictures_and_whole_state(self, shell_folder: Path):
        """nbclient: the cells wait, and what is saved is what came out in the end."""
        pytest.importorskip("nbclient")
        nbformat = pytest.importorskip("nbformat")
        cells = ["%load_ext tarviz", "%%tv compare s-0.tar -n 2\na = decode(png)", "%tv bench s-{0..2}.tar -c 'decode(png)' --for 0.5"]
        kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells], metadata={"kernelspec": kernelspec})
        nbformat.write(notebook, shell_folder / "asked.ipynb")
        # A process of its own: nbclient leaves its event loop and sockets to the end of the one it runs in.
        command = [sys.executable, "-c", "from nbclient.cli import main; main()", "--output", "answered", "--timeout=100", "asked.ipynb"]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        ran = subprocess.run(command, cwd=shell_folder, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert 0 == ran.returncode, ran.stderr
        notebook = nbformat.read(shell_folder / "answered.ipynb", 4)
        compared, measured = (notebook.cells[at].outputs[0]["data"] for at in (1, 2))
        states = notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"].values()
        firsts = [each["state"]["_first"] for each in states if "_first" in each["state"]]

        assert compared["image/png"]
        assert measured["image/png"]
        assert "is the limit" in measured["text/plain"]
        assert [False, False] == [first["poll"]["running"] for first in firsts]
        assert ["done"] == [first["poll"]["state"] for first in firsts if "state" in first["poll"]]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DataError("odd.", code="E_SCHEMA", shard="a.tar", hint="Mend it."), "E_SCHEMA a.tar: odd. Hint: Mend it."),
        (click.UsageError("wrong"), "wrong Try: %tv --help"),
        (
            click.UsageError("wrong", click.Context(click.Command("ls"), click.Context(click.Command("tarviz")), "ls")),
            "wrong Try: %tv ls --help",
        ),
        (click.UsageError("wrong", click.Context(click.Command("tarviz"), None, "tarviz")), "wrong Try: %tv --help"),
        (click.ClickException("as click says"), "as click says"),
        (KeyboardInterrupt(), "%tv ls was interrupted."),
        (click.Abort(), "%tv ls was interrupted."),
        (PermissionError(13, "denied", "http://me:pw@h/a"), "http://***@h/a: denied"),
        (OSError("odd \x1b"), "odd \\x1b"),
        (SystemExit(3), "%tv ls wanted to end the session, which stays (3)."),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_an_error_is_told_in_one_line(error: BaseException, expected: str):
    assert expected == magics.error_line(error, ["ls", "a.tar"])


@pytest.mark.parametrize(
    ("text", "words"), [("a 'b c'", ["a", "b c"]), ("a 'b c", ["a", "b c"]), ('a "b c', ["a", "b c"]), ('a "b\\', ["a", '"b\\']), ("", [])]
)
def test_words_of_a_line_that_is_not_at_its_end(text: str, words: list[str]):
    assert words == magics.split(text)


class TestTarget:
    @pytest.mark.parametrize(
        ("verb", "line", "words", "name"),
        [
            ("ls", "ls a.tar -o x", "ls a.tar", "x"),
            ("ls", "ls -o x a.tar", "ls a.tar", "x"),
            ("cat", "cat a.tar -o x", "cat a.tar -o x", None),
            ("sql", "sql -o x a.tar", "sql a.tar", "x"),
            ("sql", "sql -o x.csv a.tar", "sql -o x.csv a.tar", None),
            ("sql", "sql a.tar", "sql a.tar", None),
            (None, "none -o x", "none -o x", None),
        ],
    )
    def test_a_result_gets_the_name_behind_o(self, verb: str | None, line: str, words: str, name: str | None):
        command = plugins.load("commands", verb).command if verb else None

        assert (words.split(), name) == magics.target(line.split(), command)

    @pytest.mark.parametrize("line", ["ls a.tar -o", "ls -o 7 a.tar", "ls -o a.tar"])
    def test_a_name_must_be_one(self, line: str):
        with pytest.raises(UsageError):
            magics.target(line.split(), plugins.load("commands", "ls").command)


def test_each_word_comes_with_the_option_it_belongs_to():
    words = ["ls", "--where", "cls = 1", "-j", "3", "--cache", "a.tar", "-j"]
    found = list(magics.options_of(words, plugins.load("commands", "ls").command))

    assert [("cls = 1", "--where"), ("3", "-j")] == [(word, option) for word, option in found if option]
    assert words == [word for word, _ in found]
    assert [(word, None) for word in words] == list(magics.options_of(words, None))
