"""Plugins of other packages: found by entry points, never in the place of our own unless asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tarviz.model import plugins
from tarviz.model.errors import UsageError

ROOT = Path(__file__).parents[2]


def package(folder: Path, points: dict[str, dict[str, str]], modules: dict[str, str]) -> None:
    """A package as pip would have installed it: modules, and a `.dist-info` with entry points."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    info = folder / "stranger-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    lines = [f"[tarviz.{group}]\n" + "".join(f"{name} = {target}\n" for name, target in found.items()) for group, found in points.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))


def run(folder: Path, code: str, **environment: str) -> str:
    path = f"{folder}:{ROOT}"
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, env={"PYTHONPATH": path, **environment}, check=False
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout + done.stderr


VIEWER = "EXTENSIONS = ('csv', 'odd')\ndef view(blob, meta):\n    from tarviz.viewers import Text\n    return Text('stranger')\n"


def test_a_new_name_is_found(tmp_path: Path):
    package(tmp_path, {"viewers": {"odd": "odd_viewer"}}, {"odd_viewer": VIEWER.replace("('csv', 'odd')", "('odd',)")})

    assert "odd\n" == run(tmp_path, "from tarviz.viewers import choose; print(choose('odd'))")


def test_a_taken_name_is_left_out_and_warned_of(tmp_path: Path):
    package(tmp_path, {"ops": {"resize": "their_resize"}}, {"their_resize": "raise SystemExit('never imported')"})

    said = run(tmp_path, "from tarviz import ops; print(ops.Resize.__module__)")

    assert "tarviz.ops.resize" in said
    assert "W_PLUGIN the package stranger adds ops.resize, which tarviz itself has" in said


def test_a_taken_name_wins_when_it_is_asked_for(tmp_path: Path):
    package(tmp_path, {"viewers": {"text": "their_text"}}, {"their_text": VIEWER})

    code = "from tarviz.model import plugins; print(plugins.load('viewers', 'text').__name__)"

    assert "their_text\n" == run(tmp_path, code, TARVIZ_OVERRIDE="viewers.text")


def test_a_taken_extension_stays_with_its_owner_and_is_warned_of(tmp_path: Path):
    package(tmp_path, {"viewers": {"csv": "their_csv"}}, {"their_csv": VIEWER})
    code = "from tarviz.viewers import choose; print(choose('csv'), choose('odd'))"

    assert "text csv\n" in (said := run(tmp_path, code))
    assert "both show .csv" in said
    assert "csv csv\n" == run(tmp_path, code, TARVIZ_OVERRIDE="viewers.csv")


def test_our_own_plugins_claim_nothing_twice(tmp_path: Path):
    assert "" == run(tmp_path, "from tarviz.viewers import choose; choose('png')")


def test_our_own_are_loaded_without_asking_what_is_installed():
    code = "import sys; from tarviz.model import plugins; plugins.load('stores', 'file'); print('importlib.metadata' in sys.modules)"

    assert "False\n" == run(ROOT, code)


def test_a_verb_of_another_package_is_found_beside_the_packages_of_ours(tmp_path: Path):
    points = {"commands": {"odd": "odd_verb", "stores": "odd_verb"}}
    package(tmp_path, points, {"odd_verb": "def odd():\n    return 'odd'\nstores = None\n"})

    code = "import tarviz; from tarviz import stores; print(tarviz.odd(), stores.__name__)"

    assert "odd tarviz.stores\n" == run(tmp_path, code)


def test_an_unknown_name_says_what_there_is():
    with pytest.raises(UsageError, match=r"(?s)nothing named 'resise'.*Did you mean 'resize'"):
        plugins.load("ops", "resise")
