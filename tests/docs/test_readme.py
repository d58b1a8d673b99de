"""Every line of the README that a person types, in the environment that its install line makes of the wheel: in order, twice."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = ("make ", "tarviz deck ")  # CI runs these itself
MAGICS = ("%load_ext ", "%tv ")  # of a notebook: tests/browser


def typed() -> tuple[list[str], list[str], list[str]]:
    """What the README has a person install, type in a shell and give to Python."""
    install, shell, code = [], [], []
    for kind, text in BLOCK.findall((ROOT / "README.md").read_text("utf-8")):
        if kind == "python":
            code += [] if text.startswith(MAGICS) else [text]
            continue
        for line in text.splitlines():
            assert line.startswith("$ "), line
            words = line.removeprefix("$ ")
            if not words.startswith(ELSEWHERE):
                (install if " pip install " in words else shell).append(words)
    return install, shell, code


def test_the_readme_is_a_page():
    text = (ROOT / "README.md").read_text("utf-8")
    rows = text.partition("<!-- table: figures_in_short -->")[2].partition("<!-- end of table -->")[0].strip().splitlines()[2:]

    assert len(text.splitlines()) <= 180
    assert 0 < len(rows) <= 12


@pytest.mark.programs
@pytest.mark.timeout(900)  # TensorFlow and JupyterLab are installed
def test_every_line_works_twice_where_the_readme_is_followed(tmp_path: Path):
    install, shell, code = typed()
    assert (1, True, True) == (len(install), len(shell) > 5, len(code) > 0)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    bin = tmp_path / "venv" / "bin"
    pip = [str(bin / "python"), "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    (extras,) = re.findall(r"'\.(\[[\w,-]+\])'", install[0])
    subprocess.run([*pip, "install", f"{wheel}{extras}"], check=True)
    for name in ("share/jupyter/labextensions/tarviz/static/lab.mjs", "etc/jupyter/jupyter_server_config.d/tarviz.json"):
        assert (tmp_path / "venv" / name).is_file(), "JupyterLab's door is not in the wheel"
    here = tmp_path / "here"
    here.mkdir()
    env = {"PATH": f"{bin}:/usr/bin:/bin", "HOME": str(tmp_path), "TARVIZ_CACHE_DIR": str(tmp_path / "cache"), "TF_CPP_MIN_LOG_LEVEL": "3"}

    def run(*argv: str) -> None:
        done = subprocess.run(argv, cwd=here, env=env, capture_output=True, text=True, check=False)
        assert 0 == done.returncode, (argv[-1], done.stdout, done.stderr)
        assert "Traceback" not in done.stderr

    for _ in range(2):
        for line in shell:
            run("bash", "-c", line)
        for text in code:
            run(str(bin / "python"), "-W", "error::ResourceWarning", "-c", text)
