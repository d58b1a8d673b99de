"""`tarviz bench`: text, JSON, baseline, exit codes, Ctrl-C. What is measured: tests/widgets/test_bench.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

import tarviz
from tarviz import cli
from tarviz.cli import verb_base
from tarviz.commands.bench import numbers, watch
from tarviz.model.errors import UsageError
from tarviz.widgets.bench.controller import BenchRun
from tests.widgets.conftest import png, tar


@pytest.fixture
def shards(tmp_path: Path) -> str:
    for shard in range(2):
        records = [(f"p/n{shard}{number:03d}", {"png": png((number, 40, 90), (24, 16)), "cls": b"%d" % number}) for number in range(50)]
        tar(tmp_path / f"s-{shard}.tar", records)
    return str(tmp_path / "s-{0..1}.tar")


class TestVerb:
    @pytest.mark.matrix
    def test_text_json_baseline_and_exit_codes(self, shards: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        file = str(tmp_path / "b.json")
        assert 0 == cli.main(["bench", shards, "-c", "decode(png)", "--for", "0.3", "--save", file])
        assert "is the limit" in capsys.readouterr().out
        assert 1 == cli.main(["bench", shards, "-c", "decode(png)", "--for", "0.3", "--baseline", file, "--fail-below", "1000"])
        assert "SLOWER" in capsys.readouterr().out
        assert 0 == cli.main(["bench", shards, "--for", "0.2", "--json"])
        assert "done" == json.loads(capsys.readouterr().out)["state"]

    @pytest.mark.parametrize("argv", [[], ["x.tar", "--batch", "a,b"], ["nowhere.tar"]])
    def test_wrong_use_is_one_line(self, argv: list[str], capsys: pytest.CaptureFixture[str]):
        assert 2 == cli.main(["bench", *argv])
        assert 1 == capsys.readouterr().err.count("\n")

    @pytest.mark.matrix
    def test_ctrl_c_keeps_what_was_measured(self, shards: str):
        code = """
import signal, sys
from tarviz import cli
from tarviz.cli import verb_base
from tarviz.widgets.bench.controller import BenchRun
wait, pressed = BenchRun.wait, []
def press(run, seconds=None):
    if not pressed and run.meter and run.meter.records > 1000:
        pressed.append(1)
        signal.raise_signal(signal.SIGINT)
    return wait(run, seconds)
BenchRun.wait = press
sys.exit(cli.main(["bench", sys.argv[1], "-c", "decode(png)", "--for", "6000"]))
"""
        done = subprocess.run(
            [sys.executable, "-c", code, shards], cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=100, check=False
        )

        assert 130 == done.returncode
        assert "is the limit" in done.stdout
        assert "stopped: what was measured until then" in done.stdout
        assert "Traceback" not in done.stderr

    def test_a_sweep_has_a_row_for_each(self, shards: str, capsys: pytest.CaptureFixture[str]):
        assert 0 == cli.main(["bench", shards, "-j", "0,1", "--batch", "4,8", "--for", "0.1", "--json"])
        rows = json.loads(capsys.readouterr().out)["rows"]

        assert [(0, 4), (0, 8), (1, 4), (1, 8)] == sorted((row["setting"]["workers"], row["setting"]["batch"]) for row in rows)

    def test_a_file_that_is_no_baseline_is_one_line(self, shards: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        (tmp_path / "b.json").write_text("[]")

        assert 2 == cli.main(["bench", shards, "--for", "0.1", "--baseline", str(tmp_path / "b.json")])
        assert 1 == capsys.readouterr().err.count("\n")


class TestNumbers:
    def test_commas_stand_between(self):
        assert [1, 2, 4] == numbers("1,2, 4")

    def test_what_is_no_list_of_numbers_is_refused(self):
        for text in ["", "a", "1,-2", "1;2", "1.5"]:
            with pytest.raises(click.BadParameter, match="is not a list of numbers"):
                numbers(text)


def test_outside_a_notebook_the_run_itself_comes_back(shards: str):
    run = tarviz.bench(shards, "decode(png)", seconds=0.2)

    assert isinstance(run, BenchRun)
    assert run.wait(60)
    assert run.result.rows[0].rate > 0


def test_a_result_that_was_saved_says_where(shards: str, tmp_path: Path):
    result = cli.invoke(["bench", shards, "--for", "0.1", "--save", str(tmp_path / "b.json")])
    bundle = result._repr_mimebundle_()

    assert f"{result.result}\n\nsaved in {tmp_path}/b.json" == str(result) == bundle["text/plain"]
    assert bundle == {**result.result._repr_mimebundle_(), "text/html": bundle["text/html"], "text/plain": str(result)}
    assert json.loads((tmp_path / "b.json").read_text()) == json.loads(json.dumps(result.to_dict()))
    assert result.exit_code == result.result.exit_code


def test_what_gives_text_is_no_source(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(UsageError, match="write %tv bench URL"):
        cli.invoke(["bench", "--for", "0.1"], "text")
    with pytest.raises(click.UsageError, match=r"Missing argument 'URL\.\.\.'"):
        cli.invoke(["bench"])


def test_progress_is_of_every_trial_each_time_it_runs(shards: str, monkeypatch: pytest.MonkeyPatch):
    seen: list[verb_base.Progress] = []

    def progress(total: float, unit: str) -> verb_base.Progress:
        seen.append(verb_base.Progress(total, unit))
        return seen[-1]

    monkeypatch.setattr(verb_base, "progress", progress)
    run = BenchRun(shards, batch=[2, 4, 8], count=4, seconds=5, warmup=0, repeat=2)
    watch(run)

    assert [(6, "trials")] == [(bar.total, bar.unit) for bar in seen]
    assert 3 == len(run.result.rows)
