"""The lines of docs/training.md and of the section on training of docs/python.md run as they stand."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tarviz import samples

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


def blocks(text: str) -> list[str]:
    found = BLOCK.findall(text)
    assert found
    return found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("sklearn", reason="scikit-learn brings the pictures: pip install 'tarviz[demo]'")
    pytest.importorskip("duckdb", reason="DuckDB chooses records: pip install 'tarviz[table]'")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(codes: list[str]) -> None:
    namespace: dict[str, Any] = {"__name__": "training"}
    for code in codes:
        exec(compile(code, "training.md", "exec"), namespace)


def page() -> list[str]:
    return blocks((ROOT / "docs" / "training.md").read_text("utf-8"))


def section() -> str:
    text = (ROOT / "docs" / "python.md").read_text("utf-8")
    return text[text.index("## Training") : text.index("\n#", text.index("## Training") + 1)]


@pytest.mark.matrix
def test_the_page_runs_without_torch(here: Path) -> None:
    left_out = ("# torch",) if find_spec("tensorflow") else ("# torch", "# tensorflow")
    run([code for code in page() if not code.startswith(left_out)])


@pytest.mark.torch
def test_the_page_runs_with_torch(here: Path) -> None:
    pytest.importorskip("torch", reason="torch: make test-torch")
    from tarviz.runners.torch import safe_context

    context = f"num_workers=2, multiprocessing_context={safe_context()!r})"  # TensorFlow may be in this process
    run([code.replace("num_workers=2)", context) for code in page()])


def test_the_readme_runs(here: Path) -> None:
    samples.digits("data")
    before = "pipeline = tarviz.Pipeline('data/train-{0000..0003}.tar', 'decode(cls)', select=('__key__', 'cls'))"

    run([f"import tarviz\n{before}", *blocks(section())])
