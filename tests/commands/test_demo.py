"""The demo, whole: what it prints, what it leaves behind, and that the report asks for nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tarviz.cli.html_page import CSP

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
        assert run[1].splitlines()[-1].startswith("Then try:  tarviz ")

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


def test_without_tensorflow_the_extra_is_named(tmp_path: Path):
    code = "import sys; sys.modules['tensorflow'] = None\nfrom tarviz.commands.demo.model import tensorflow\ntensorflow()"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)

    assert "tarviz[tensorflow]" in done.stderr


def test_the_data_of_a_result_is_json(tmp_path: Path):
    from tarviz.commands.demo import Demo

    assert 0 == json.loads(json.dumps(Demo(tmp_path).to_dict()))["records"]
    assert "not run yet" in str(Demo(tmp_path))
