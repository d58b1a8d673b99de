"""Old module names: they work, warn, and give the very same objects."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tarviz.moved_names import MOVED

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("old", sorted(MOVED))
def test_the_old_name_gives_the_module_and_says_where_it_is(old: str):
    code = (
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        f"    import {old} as old\n"
        f"import {MOVED[old]} as new\n"
        "assert old is new\n"
        f"assert new.__spec__.name == {MOVED[old]!r}\n"
        f"assert any({MOVED[old]!r} in str(each.message) for each in seen), seen\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)


def test_importing_tarviz_warns_of_nothing():
    done = subprocess.run([sys.executable, "-W", "error", "-c", "import tarviz; tarviz.errors; tarviz.config"], cwd=ROOT, check=False)

    assert 0 == done.returncode
