"""The demo, whole: what it prints, what it leaves behind, and that the report asks for nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import tarviz
from tarviz.cli.html_page import CSP
from tarviz.commands.browse import command

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


def test_the_data_of_a_result_is_json(tmp_path: Path):
    from tarviz.commands.demo import Demo

    assert 0 == json.loads(json.dumps(Demo(tmp_path).to_dict()))["records"]
    assert "not run yet" in str(Demo(tmp_path))
