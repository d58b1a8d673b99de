"""The install line of the README in an environment of its own, which has no pandas: conditions at every verb, twice, in fresh processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WHERE = "cls = 1 and json.w >= 0"
VERBS = [
    ["ls"], ["show"], ["cat", "-o", "cat.tar"], ["tsv", "-f", "cls", "-o", "rows.tsv"], ["sort", "-o", "sorted.tar"], ["verify"],
    ["split", "-n", "4", "-o", "split-{}.tar"], ["convert", "-o", "out.tfrecord"],
]  # fmt: skip
PYTHON = f"""
import sys, tarviz
path = sys.argv[1]
assert "pandas" not in sys.modules
assert 10 == len(list(tarviz.records(path, where={WHERE!r})))
assert 10 == len(list(tarviz.Pipeline(path, "decode(cls)", select="cls", where={WHERE!r})))
table = tarviz.table(path)
assert [(1, 10)] == table.sql("SELECT cls, count(*) FROM records WHERE cls = 1 GROUP BY cls").fetchall()
assert 10 == table.facets("json.w", {WHERE!r}).kept.records
assert "30 records" in table._repr_mimebundle_()["text/html"]
print(tarviz.sql("SELECT cls, count(*) FROM records GROUP BY cls", path))
"""


@pytest.mark.programs
def test_conditions_work_twice_where_the_readme_is_followed(tmp_path: Path, make):
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", f"{ROOT}[table]"], check=True)
    shard = make([(f"{at:04}", {"cls": b"%d" % (at % 3), "json": b'{"w": %d}' % at}) for at in range(30)])
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TARVIZ_CACHE_DIR": str(tmp_path / "cache")}

    def run(*words: str) -> str:
        done = subprocess.run([python, *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert 0 == done.returncode, (words, done.stdout, done.stderr)
        return done.stdout

    assert "pandas" not in run("-m", "pip", "list")
    for _ in range(2):
        for verb, *options in VERBS:
            run("-m", "tarviz", verb, "--where", WHERE, *options, str(shard))
        run("-c", PYTHON, str(shard))
