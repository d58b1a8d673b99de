"""Every code that a person can meet is explained, and no other; each has an example, which makes it."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from docs import codes

EXAMPLES = codes.examples()
ALONE = ("E_MISSING_PACKAGE", "E_STALL", "E_WORKER", "W_MAGIC_TAKEN", "W_PLUGIN")  # these change the process that they run in, or end it


def test_every_code_is_explained_and_no_other():
    assert codes.in_code() == set(codes.CODES)


def test_a_row_says_what_it_means_and_what_to_do():
    assert [] == [code for code, *texts in codes.rows() if not all(len(text) > 5 or text == "nothing" for text in texts)]


def test_every_code_has_an_example_in_the_order_of_the_table():
    assert sorted(codes.CODES) == list(EXAMPLES)


def said_by(example: str) -> str:
    """What a person sees of the opening lines and an example: what is printed, the warnings, the error it ends with."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        try:
            exec(codes.opening() + example, {"__name__": "example"})
        except ImportError as error:
            pytest.skip(str(error))
        except Exception as error:  # noqa: BLE001 - whatever a reader would see
            out.write(str(error))
    return "\n".join([out.getvalue(), *(str(each.message) for each in met)])


@pytest.mark.parametrize("code", EXAMPLES)
def test_an_example_makes_its_code(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    if needs := {"E_WORKER": "cloudpickle", "W_MAGIC_TAKEN": "IPython"}.get(code):
        pytest.importorskip(needs, reason=f"{needs} is not installed")
    if code in ALONE:
        line = [sys.executable, "-W", "always", "-c", codes.opening() + EXAMPLES[code]]
        said = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False).stderr
    else:
        said = said_by(EXAMPLES[code])

    assert code in re.findall(r"[EW]_[A-Z_]+", said)
