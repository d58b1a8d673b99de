"""Old module names: they work, warn, and give the very same objects."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tarviz.moved_names import MOVED

ROOT = Path(__file__).parents[1]


EACH = """
import importlib, os, sys, warnings
import tarviz.moved_names

wrong = 0
for old, place in sorted(tarviz.moved_names.MOVED.items()):
    if child := os.fork():  # each name is looked up in a process that has imported none of the others
        wrong += os.waitpid(child, 0)[1] != 0
        continue
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = importlib.import_module(old)
    told = any(place in str(each.message) for each in seen)
    if found is importlib.import_module(place) and found.__spec__.name == place and told:
        os._exit(0)
    print(old, found, [str(each.message) for each in seen], flush=True)
    os._exit(1)
sys.exit(wrong != 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_old_names_give_the_modules_and_say_where_they_are():
    assert MOVED

    done = subprocess.run([sys.executable, "-c", EACH], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


def test_importing_tarviz_warns_of_nothing():
    done = subprocess.run([sys.executable, "-W", "error", "-c", "import tarviz; tarviz.errors; tarviz.config"], cwd=ROOT, check=False)

    assert 0 == done.returncode
