"""Plugins of other packages: found by entry points, never in the place of our own unless asked for."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
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


def test_a_taken_name_is_asked_for_and_let_go_while_the_process_runs(tmp_path: Path):
    package(
        tmp_path,
        {"ops": {"resize": "theirs:Resize"}, "viewers": {"text": "theirs"}, "stores": {"memory": "theirs"}},
        {"theirs": f"from tarviz.ops.flip import Flip\n{VIEWER}class Resize(Flip): ...\ndef store(): return 'theirs'\n"},
    )
    code = (
        "import tarviz; from tarviz import ops, stores, viewers\n"
        "def ours(): return [ops.Resize.__module__, viewers.choose('odd'), type(stores.of('memory://a')).__name__]\n"
        "print(ours())\n"
        "with tarviz.options(override='ops.resize,viewers.text,stores.memory'): print(ours())\n"
        "print(ours())"
    )

    said = [line for line in run(tmp_path, code).splitlines() if line.startswith("[")]

    ours = "['tarviz.ops.resize', 'bytes', 'MemoryStore']"
    assert [ours, "['theirs', 'text', 'str']", ours] == said


def test_of_several_ops_in_a_module_the_one_of_the_name_is_taken(tmp_path: Path):
    one = "class {0}(Base): name = '{1}'\n"
    module = "from tarviz.ops import Keep\nclass Base(Keep): ...\n" + one.format("One", "one") + one.format("Two", "two")
    package(tmp_path, {"ops": {"two": "several", "one": "several", "three": "several"}}, {"several": module})
    code = (
        "from tarviz import ops; from tarviz.ops import parse_chain; from tarviz.model.errors import ChainError\n"
        "print(ops.One.__name__, *(type(op).__name__ for op in parse_chain('two(jpg)|one(jpg)')))\n"
        "try: ops.Three\n"
        "except ChainError as error: print(error)"
    )

    said = run(tmp_path, code).splitlines()

    assert "One Two One" in said
    assert any(line.startswith("E_CHAIN: several holds no op of the name 'three'.") for line in said)


@pytest.mark.parametrize("broken", ["import no_such_package", "1 / 0", "EXTENSIONS = ('png',)"])
def test_one_that_cannot_be_imported_is_named_and_hides_no_other(tmp_path: Path, broken: str):
    package(tmp_path, {"viewers": {"odd": "odd:it"}, "ops": {"odd": "odd:it"}}, {"odd": broken})
    code = (
        "from tarviz import viewers; from tarviz.ops import parse_chain; from tarviz.model.errors import UsageError\n"
        "print(viewers.choose('png'))\n"
        "try: parse_chain('odd(jpg)')\n"
        "except UsageError as error: print(error)"
    )

    said = run(tmp_path, code)

    assert "image" in said.splitlines()
    assert "viewer odd cannot be loaded" in said
    assert "E_USAGE: ops.odd of the package stranger cannot be imported (" in said


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


@pytest.mark.matrix
def test_the_package_of_the_documents_works_as_it_stands(tmp_path: Path):
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    page = page[page.index("## Ops, viewers, stores and verbs of your own") :]
    points = tomllib.loads(re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0])["project"]["entry-points"]
    package(tmp_path, {"ops": {"gamma": points["tarviz.ops"]["gamma"]}}, {})
    (tmp_path / "acme").mkdir()
    (tmp_path / "tests").mkdir()
    for name, text in re.findall(r"```python\n# (\S+)\n(.*?)```", page, re.DOTALL):
        (tmp_path / name).write_text(text)
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path / "tests")]

    assert " passed" in run(tmp_path, f"import pytest, sys; sys.exit(pytest.main({options}))", TF_CPP_MIN_LOG_LEVEL="3")
    assert {f"tarviz.{folder}" for folder in ("ops", "viewers", "stores", "commands")} == points.keys()
