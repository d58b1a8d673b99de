"""The demo, whole: what it prints, what it leaves behind, and that the report asks for nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import tarviz
from tarviz.cli.html_page import CSP
from tarviz.commands.browse import command
from tarviz.commands.demo import Demo, model
from tarviz.commands.demo.model import Comparison

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The demo run once in a process of its own: its folder, what it printed."""
    pytest.importorskip("tensorflow", reason="the demo trains: pip install 'tarviz[tensorflow-cpu]'")
    pytest.importorskip("sklearn", reason="scikit-learn brings the pictures: pip install 'tarviz[demo]'")
    folder = tmp_path_factory.mktemp("demo")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TARVIZ_CACHE_DIR": str(folder / "cache")}
    argv = [sys.executable, "-m", "tarviz", "demo", str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert 0 == done.returncode, done.stderr
    return folder, done.stdout


@pytest.mark.programs
@pytest.mark.timeout(320)
class TestDemo:
    def test_reaches_the_accuracy_it_promises(self, run: tuple[Path, str]):
        found = re.search(r"test accuracy: (\d\.\d\d)\n", run[1])

        assert found
        assert 0.95 <= float(found[1])

    def test_both_paths_give_the_same_records(self, run: tuple[Path, str]):
        assert "1500 of 1500 records are equal" in run[1]

    def test_says_which_command_to_try_next(self, run: tuple[Path, str]):
        assert "Then try:  tarviz browse" in run[1]

    def test_what_it_says_to_do_with_data_of_ones_own_works(self, run: tuple[Path, str], tmp_path: Path):
        for name in ("cat", "dog"):
            (tmp_path / "pictures" / name).mkdir(parents=True)
            (tmp_path / "pictures" / name / "1.png").write_bytes(next(iter(tarviz.records(str(run[0] / "data" / "test-0000.tar"))))["png"])
        lines = [line.split() for line in run[1].splitlines()[-3:]]

        assert ["create", "verify", "browse"] == [words[1] for words in lines]
        for _, *words in lines[:2]:
            subprocess.run([sys.executable, "-m", "tarviz", *words], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
        assert "cat\ndog\n" == (tmp_path / "mine.labels.txt").read_text("utf-8")
        assert "--classes" in {name for each in command.params for name in each.opts}

    def test_what_the_report_says_of_the_two_paths_is_what_was_measured(self, run: tuple[Path, str]):
        tars, files = (int(found.replace(",", "")) for found in re.findall(r"(?:tars|TFRecord) ([\d,]+) records/s", run[1]))
        ahead, factor = ("TFRecord" if files > tars else "Tar"), max(tars, files) / min(tars, files)
        said = re.search(r"(Tar|TFRecord) is ([\d.]+) times as fast here", (run[0] / "report.html").read_text("utf-8"))

        assert said
        assert (ahead, factor) == (said[1], pytest.approx(float(said[2]), abs=0.06))

    def test_the_report_holds_its_pictures_and_asks_for_nothing(self, run: tuple[Path, str]):
        page = (run[0] / "report.html").read_text("utf-8")

        assert f'content="{CSP}"' in page
        assert 18 <= page.count('src="data:image/')
        assert "<script" not in page
        assert [] == re.findall(r'(?:src|href)="(?!data:)', page)
        assert 3_000_000 > len(page)

    def test_plain_tensorflow_reads_what_it_wrote(self, run: tuple[Path, str]):
        import tensorflow as tf

        count = sum(1 for _ in tf.data.TFRecordDataset(sorted(map(str, (run[0] / "tfrecord").glob("*.tfrecord")))))

        assert 1500 == count


# None in sys.modules would do for an import, but SciPy looks there for what torch has.
HIDDEN = """
import sys
from importlib import abc, util

class Hidden(abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hidden())
find = util.find_spec
util.find_spec = lambda name, *rest: None if name in {absent!r} else find(name, *rest)
"""


@pytest.mark.programs
@pytest.mark.parametrize("runs_on", [pytest.param("torch", marks=pytest.mark.torch), "jax"])
def test_without_tensorflow_keras_runs_on_what_there_is(runs_on: str, tmp_path: Path):
    pytest.importorskip("keras", reason="the demo trains: pip install 'tarviz[tensorflow-cpu]'")
    pytest.importorskip("sklearn", reason="scikit-learn brings the pictures: pip install 'tarviz[demo]'")
    if find_spec(runs_on) is None:
        pytest.skip(f"{runs_on} is not installed")
    absent = {"tensorflow", "torch", "jax"} - {runs_on}
    code = HIDDEN.format(absent=absent) + f"import tarviz; print(tarviz.demo({str(tmp_path)!r}))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TARVIZ_CACHE_DIR": str(tmp_path / "cache")}
    environment.pop("KERAS_BACKEND", None)

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=environment, check=False)

    page = (tmp_path / "report.html").read_text("utf-8")
    assert "1500 of 1500 records equal" in done.stdout, done.stderr
    assert 0.95 <= float(re.search(r"test accuracy: (\d\.\d\d)\n", done.stdout)[1])
    assert f"Keras on {runs_on}" in page
    assert "times as fast" not in page


def test_where_keras_can_run_on_nothing_the_extra_is_named():
    code = "import sys; sys.modules.update(dict.fromkeys(['tensorflow', 'torch', 'jax']))\n"
    code += "from tarviz.commands.demo import model\nmodel.backend()"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)

    assert f"tarviz[{'tensorflow' if sys.version_info < (3, 14) else 'demo'}]" in done.stderr


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> tuple[Demo, list[str]]:
    """The demo in this process, with one epoch and one pass: what it holds, and the lines that it told."""
    pytest.importorskip("tensorflow", reason="the demo trains: pip install 'tarviz[tensorflow-cpu]'")
    pytest.importorskip("sklearn", reason="scikit-learn brings the pictures: pip install 'tarviz[demo]'")
    folder = tmp_path_factory.mktemp("short")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PATH", str(folder))
        patch.setattr(sys, "argv", [str(folder / "bin" / "tarviz")])
        patch.setattr(model, "EPOCHS", 1)
        patch.setattr(model, "PASSES", 1)
        made = Demo("demo")
        return made, list(made.steps())


class TestSteps:
    def test_each_is_told_and_timed(self, short: tuple[Demo, list[str]]):
        made, lines = short

        assert [
            "== Make sample shards (pictures from scikit-learn, nothing is downloaded)",
            "== List them:  tarviz ls demo/data",
            "== Look at them:  tarviz show --html demo/sheet.html 'demo/data/photos-{0000..0001}.tar'",
            "== Stream them through a chain and train Keras",
            "== Convert them to TFRecord:  tarviz convert",
            "== Read the TFRecord files back and compare with the tars, record by record",
            "== Write the report",
        ] == [line[1:] for line in lines if line.startswith("\n==")]
        assert ["make", "list", "look", "train", "convert", "compare", "report"] == list(made.seconds)
        assert all(0 < seconds < 300 for seconds in made.seconds.values())

    def test_what_was_made_is_said(self, short: tuple[Demo, list[str]]):
        made, lines = short
        text = "\n".join(lines)

        assert "   7 shards, " in text
        assert re.search(r"\n   demo/data/train-0003\.tar +375 +\S+ kB +png cls\n", text)
        assert re.search(r"\n   demo/data/train-0000\.tar +record 0 +train/n00000000\n", text)
        assert "   contact sheet of the photos: demo/sheet.html" in lines
        assert re.search(r"\n   it yields: \(float32\S* .*, int64\S*\), known before a byte is decoded\n", text), text
        assert re.search(r"\n   epoch 1 of 1   loss \d\.\d{3}   train 0\.\d{3}   test 0\.\d{3}\n", text)
        assert f"   test accuracy: {made.training.accuracy:.2f}" in lines
        assert re.search(r"\n   trained in \d+ s on 297 pictures held out:\n", text)
        assert re.search(r"\n   4 files, \S+ kB: demo/tfrecord/train-1\.tfrecord …\n", text)
        assert "   1500 of 1500 records are equal in key, class and every pixel" in lines

    def test_the_last_lines_say_what_to_try_by_the_name_it_was_called_by(self, short: tuple[Demo, list[str]]):
        *_, done, browse, own, create, verify, look = short[1]

        assert re.fullmatch(r"\nDone in \d+ s\. Open demo/report\.html", done)
        assert "Then try:  bin/tarviz browse demo/data" == browse
        assert own.startswith("On pictures of your own")
        assert [f"   bin/tarviz {line}" for line in Demo.own] == [create, verify, look]

    def test_the_result_is_what_was_found(self, short: tuple[Demo, list[str]]):
        made, _ = short
        data = json.loads(json.dumps(made.to_dict()))

        assert 0.3 < data["accuracy"] == made.training.accuracy
        assert (1, 1500, 1500, "demo/report.html") == (len(data["epochs"]), data["records"], data["equal"], data["report"])
        assert [f"demo/tfrecord/train-{at}.tfrecord" for at in (1, 2, 3, 4)] == data["tfrecord"]
        assert {name: round(seconds, 2) for name, seconds in made.seconds.items()} == data["seconds"]
        accuracy, equal, report = str(made).splitlines()
        assert f"test accuracy: {made.training.accuracy:.2f}" == accuracy
        assert ("1500 of 1500 records equal through tar and TFRecord", "demo/report.html") == (equal, report)
        assert made.comparison is not None
        tars, files = (1500 / seconds for seconds in made.comparison.seconds or ())
        assert f"   tars {tars:,.0f} records/s, TFRecord {files:,.0f} records/s, both decoded, each at its best" in short[1]


@pytest.mark.parametrize(
    ("right", "equal", "code"), [(19, 1500, 0), (18, 1500, 2), (20, 1499, 2)], ids=["good", "few recognised", "paths that differ"]
)
def test_the_exit_code_says_whether_it_kept_its_promise(tmp_path: Path, right: int, equal: int, code: int):
    made = Demo(tmp_path)
    assert 2 == made.exit_code
    made.training.labels = np.zeros(20, np.int64)
    made.training.chances = np.eye(10, dtype=np.float32)[[0] * right + [1] * (20 - right)]
    made.comparison = Comparison(1500, equal)

    assert code == made.exit_code


def test_the_data_of_a_result_is_json(tmp_path: Path):
    assert 0 == json.loads(json.dumps(Demo(tmp_path).to_dict()))["records"]
    assert "not run yet" in str(Demo(tmp_path))
