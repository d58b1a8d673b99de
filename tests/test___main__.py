"""The command line in a process of its own: it starts quickly, and leaves the process as it would be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHARD = ROOT / "tests/data/dali/pax.tar"


def python(code: str, *argv: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *map(str, argv)], capture_output=True, text=True, cwd=ROOT, timeout=100)


class TestStreams:
    def test_what_an_output_has_no_sign_for_is_escaped(self):
        env = {**os.environ, "PYTHONIOENCODING": "ascii"}
        shown = subprocess.run(
            [sys.executable, "-m", "tarviz", "show", "-n", "1", SHARD], capture_output=True, cwd=ROOT, timeout=100, env=env
        )

        assert 0 == shown.returncode
        assert b"\\u2026" in shown.stdout

    @pytest.mark.parametrize("stream", ["1", "2"])
    def test_a_stream_may_be_closed(self, stream: str):
        done = subprocess.run(
            ["bash", "-c", f'"$0" -m tarviz ls "$1" {stream}>&-', sys.executable, SHARD], capture_output=True, cwd=ROOT, timeout=100
        )

        assert (0, b"") == (done.returncode, done.stderr)


class TestRun:
    def test_collects_nothing_before_the_verb_is_there(self):
        code = (
            "import gc, os, sys\n"
            "from tarviz.__main__ import run\n"
            "from tarviz.cli import entry\n"
            "before, main = sum(each['collections'] for each in gc.get_stats()), entry.main\n"
            "def told(argv):\n"
            "    print(sum(each['collections'] for each in gc.get_stats()) - before, gc.isenabled(), gc.get_freeze_count() > 10_000)\n"
            "    print('tarviz.commands.ls' in sys.modules, 'OPENBLAS_THREAD_TIMEOUT' in os.environ)\n"
            "    return main(argv)\n"
            "entry.main = told\n"
            "run()"
        )

        done = python(code, "ls", SHARD)

        assert ["0 True True", "True False"] == done.stdout.splitlines()[:2]
        assert "seg.json" in done.stdout
        assert "" == done.stderr

    @pytest.mark.parametrize("said", ["9", "4"])
    def test_leaves_what_the_user_said_of_threads(self, said: str):
        code = (
            f"import os; os.environ['OPENBLAS_THREAD_TIMEOUT'] = '{said}'\n"
            "from tarviz.__main__ import run; run(); print(os.environ['OPENBLAS_THREAD_TIMEOUT'])"
        )

        done = python(code, "--version")

        assert said == done.stdout.splitlines()[-1]

    def test_a_verb_that_cannot_be_imported_is_an_error_in_one_line(self, tmp_path: Path):
        settings = tmp_path / "config.toml"
        settings.write_text("no = [such")
        code = f"import os, sys; os.environ['TARVIZ_CONFIG'] = {str(settings)!r}\nfrom tarviz.__main__ import run; sys.exit(run())"

        done = python(code, "ls", SHARD)

        assert 2 == done.returncode
        assert done.stderr.startswith("tarviz: ")
        assert "Traceback" not in done.stderr
