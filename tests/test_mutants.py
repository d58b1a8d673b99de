"""The mutator: which faults it puts in, that it leaves texts alone, that it draws anew each day, that tests are asked."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess

import pytest

from tests import mutants

MODULE = b'''"""Nothing < here."""
from __future__ import annotations
import log

@decorated(1)
def f(a: int | None = 0, *, b: bool = True) -> list[1]:
    """Add 1 < 2."""
    if a < 3 and not b:
        log.debug("a %d", 5)
        raise ValueError(f"{a + 1} is 7")
    for each in zip(a, b, strict=True):
        continue
    g(a)
    if field(0, repr=False):
        return ""
    return min(a, 4) if b else None
'''
SCRIPT = b"""// a < 1 && true
const f = (a) => a < 1 && !done;
const text = "1 + 2 < 3", form = /[0-9] && !x/.test(`${1 + 2} < 4`);
return Math.min(a + 5, x1, 2.5, true) === 7;
"""


def changes(found, source):
    return {(each.kind, source[each.start : each.stop].decode(), each.new.decode()) for each in found}


def test_every_kind_of_fault_is_put_into_python_and_none_into_types_and_texts_or_where_it_is_as_false():
    found = mutants.python_mutants("m.py", MODULE)

    assert changes(found, MODULE) == {
        ("number", "0", "1"),
        ("constant", "True", "False"),
        ("comparison", "a < 3", "(a <= 3)"),
        ("number", "3", "4"),
        ("and, or", "a < 3 and not b", "(a < 3 or not b)"),
        ("not", "not b", "(b)"),
        ("order", "zip(a, b, strict=True)", "(zip(b, a, strict=True))"),
        ("loop", "continue", "break"),
        ("call", "g(a)", "pass"),
        ("return", "return min(a, 4) if b else None", "return None"),
        ("condition", "min(a, 4) if b else None", "(None if b else min(a, 4))"),
        ("min, max", "min(a, 4)", "(max(a, 4))"),
        ("number", "4", "5"),
    }
    for each in found:
        assert ast.dump(ast.parse(MODULE)) != ast.dump(ast.parse(each.applied(MODULE)))


def test_letters_of_more_than_one_byte_do_not_shift_a_fault():
    source = "x = 'größe…', a < b\ny = 'é' if c < d else 0\n".encode()

    (first, second) = (each for each in mutants.python_mutants("m.py", source) if each.kind == "comparison")
    assert "x = 'größe…', (a <= b)" in first.applied(source).decode()
    assert "y = 'é' if (c <= d) else 0" in second.applied(source).decode()


def test_every_kind_of_fault_is_put_into_javascript_and_none_into_comments_and_texts():
    found = mutants.script_mutants("m.mjs", SCRIPT)

    assert changes(found, SCRIPT) == {
        ("infix", "<", "<="),
        ("number", "1", "2"),
        ("infix", "&&", "||"),
        ("not", "!", ""),
        ("range", "Math.min", "Math.max"),
        ("infix", "+", "-"),
        ("number", "5", "6"),
        ("word", "true", "false"),
        ("infix", "===", "!=="),
        ("number", "7", "8"),
    }
    assert len(found) == 10


def test_a_seed_draws_the_same_again_and_another_draws_others_of_every_kind():
    every = mutants.python_mutants("m.py", MODULE * 3)

    assert mutants.drawn(every, 11, 1) == mutants.drawn(every, 11, 1) != mutants.drawn(every, 11, 2)
    assert {each.kind for each in every} == {each.kind for each in mutants.drawn(every, 11, 1)}
    assert len(every) == len(mutants.drawn(every, 10_000, 1))


def test_in_the_place_of_one_that_is_left_out_comes_the_next():
    every = mutants.python_mutants("m.py", MODULE * 3)
    first, *others = mutants.drawn(every, 11, 1)

    assert others == mutants.drawn(every, 11, 1, {first})[:-1]


def test_a_fault_that_is_listed_as_equal_is_known(tmp_path, monkeypatch):
    (tmp_path / "tarviz").mkdir()
    (tmp_path / "tarviz" / "m.py").write_text("def f(a):\n    return a < 3\n")
    monkeypatch.setattr(mutants, "EQUAL", tmp_path / "equal.txt")
    mutants.EQUAL.write_text("# a list\ntarviz/m.py | return a < 3 | return (a <= 3)  # both are three\n")

    found = mutants.all_of(tmp_path, "tarviz/**/*.py", mutants.python_mutants)

    assert ["comparison"] == [each.kind for each in mutants.listed(tmp_path, found)]


def test_the_list_of_equals_is_short_gives_reasons_and_names_lines_that_are_there():
    text = mutants.EQUAL.read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]

    assert len(lines) <= 8
    assert all(re.search(r"  # \w.{8,}", line) for line in lines)
    for path, before, after in mutants.equals(text):
        source = (mutants.ROOT / path).read_bytes()
        faults = mutants.script_mutants if path.endswith(".mjs") else mutants.python_mutants
        assert (before, after) in {each.changed(source) for each in faults(path, source)}, path


def test_the_tests_of_a_module_are_its_doctests_its_mirror_and_those_that_import_it():
    first, second, *_ = mutants.Tests(mutants.ROOT).of("tarviz/formats/pax.py")

    assert first[:2] == ["tests/conftest.py", "tarviz/formats/pax.py"]
    assert "tests/formats/test_pax.py" in first
    assert all("pax" in (mutants.ROOT / each).read_text("utf-8") for each in second)


SOURCE = b"""z = b"z"
def f(a=b"v"):  # its head is run where it is defined, by no test
    a = 1
    f(1,
      b"x")
    "a text"
    if a == b"y":
        pass
    return b"w"
while (z and
       b"u"):
    pass
"""


@pytest.mark.parametrize(("fault", "lines"), [("x", {4, 5}), ("y", {7}), ("z", {1}), ("w", {9}), ("v", {3}), ("u", {10, 11})])
def test_a_fault_is_where_its_statement_is_or_where_its_function_begins(fault, lines):
    at = SOURCE.index(b'b"%s"' % fault.encode())

    assert lines == mutants.lines_of(mutants.Mutant("m.py", "text", at, at + 4, b""), SOURCE)


def test_a_script_imports_what_it_names_and_what_that_imports(tmp_path):
    for name, text in {
        "a.test.mjs": 'import { b } from "./in/b.mjs";',
        "in/b.mjs": 'export { c } from "../c.mjs";',
        "c.mjs": "",
        "d.mjs": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    assert {tmp_path / "in" / "b.mjs", tmp_path / "c.mjs"} == mutants.imported(tmp_path / "a.test.mjs")


@pytest.fixture
def project(tmp_path):
    """A package of two functions, one of which is tested; it is in git, its last line not yet."""
    root = tmp_path / "project"
    for name, text in {
        "pyproject.toml": "[tool.pytest.ini_options]\nmarkers = ['slow', 'browser', 'ray', 'programs']\n",
        "tarviz/__init__.py": "",
        "tarviz/m.py": "def small(a):\n    return a < 3\n\n\ndef large(a):\n    return a < 5\n",
        "tests/test_m.py": "from tarviz.m import small\n\ndef test_it():\n    assert small(2) and not small(3)\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "."], cwd=root, check=True)
    subprocess.run([*git, "commit", "-qm", "all"], cwd=root, check=True)
    return root


@pytest.mark.matrix
def test_a_fault_is_killed_by_a_test_that_fails_and_the_tree_stays_as_it_was(project, monkeypatch):
    monkeypatch.setattr(mutants, "OPTIONS", ["-x", "-q", "-p", "no:cacheprovider"])
    module = project / "tarviz" / "m.py"
    module.write_text(module.read_text() + "\n\nlast = 8\n")  # not committed, and tried all the same
    for name in ("NAME", "EMAIL"):
        monkeypatch.setenv(f"GIT_AUTHOR_{name}", "a@b")
        monkeypatch.setenv(f"GIT_COMMITTER_{name}", "a@b")
    before = module.read_bytes()
    every = mutants.all_of(project, "tarviz/**/*.py", mutants.python_mutants)

    found = mutants.judged(project, every, 300, 1)

    killed = {each.mutant.diff(before).splitlines()[2].strip("+ ") for each in found if each.by}
    assert killed == {"return (a <= 3)", "return a < 4", "return None"}
    assert {"return (a <= 5)", "return a < 6", "return None", "last = 9"} == {
        each.mutant.diff(before).splitlines()[2].strip("+ ") for each in found if not each.by
    }
    assert before == module.read_bytes()


def test_a_test_that_fails_without_the_fault_too_kills_nothing(project, monkeypatch):
    monkeypatch.setattr(mutants, "OPTIONS", ["-x", "-q", "-p", "no:cacheprovider"])
    (project / "tests" / "test_m.py").write_text("import tarviz.m\n\ndef test_it():\n    assert False\n")
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "wrong"], cwd=project, check=True)
    (mutant, *_) = mutants.all_of(project, "tarviz/**/*.py", mutants.python_mutants)

    (verdict,) = mutants.judged(project, [mutant], 300, 1)

    assert verdict.by == ""


def test_a_module_without_a_mirror_is_tried_with_the_settings_of_the_tests(project, monkeypatch):
    """pytest ends with an error where a profile is asked for that `tests/conftest.py` makes; that is no test that fails."""
    monkeypatch.setattr(mutants, "OPTIONS", ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=quick"])
    (project / "tests" / "test_m.py").unlink()
    every = mutants.all_of(project, "tarviz/**/*.py", mutants.python_mutants)[:1]
    commit = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "none"]
    subprocess.run(commit, cwd=project, check=True)

    assert [""] == [each.by for each in mutants.judged(project, every, 300, 1)]


@pytest.mark.matrix
def test_tests_that_run_the_line_are_tried_the_quickest_first(project, tmp_path, monkeypatch):
    pytest.importorskip("pytest_cov")
    monkeypatch.setattr(mutants, "OPTIONS", ["-x", "-q", "-p", "no:cacheprovider"])
    far = "import time\nimport tarviz as t\nimport pytest\nimport tarviz.m\n\n"
    far += "def test_slow():\n    time.sleep(0.1)\n    assert t.m.large(5) is False\n\n"
    far += "@pytest.mark.parametrize('a', range(9))\ndef test_large(a):\n    assert t.m.large(a) == (a < 5)\n"
    (project / "tests" / "test_far.py").write_text(far)
    (project / "tests" / "conftest.py").write_text("import hypothesis\n\nhypothesis.settings.register_profile('quick')\n")
    subprocess.run(["git", "add", "."], cwd=project, check=True)
    folder, commit = tmp_path / "runs", mutants._git(project, "-c", "user.name=a", "-c", "user.email=a@b", "stash", "create")
    mutants.Runs.make(project, commit, folder, 1)
    runs, source = mutants.Runs(folder), (project / "tarviz" / "m.py").read_bytes()
    cases = [f"tests/test_far.py::test_large[{at}]" for at in range(9)]

    assert ["tests/test_m.py::test_it"] == runs.of("tarviz/m.py", {2})
    assert {*cases, "tests/test_far.py::test_slow"} == set(runs.of("tarviz/m.py", {6}))
    assert [] == runs.of("tarviz/m.py", {1})
    large = [each for each in mutants.python_mutants("tarviz/m.py", source) if each.start > source.index(b"large(a)") + 8]
    turn, mirror = mutants.Tests(project, runs).noticing(large[0], source, 60)
    assert ["tests/test_m.py"] == mirror
    assert (3, "tests/test_far.py::test_slow") == (len(set(turn) & set(cases)), turn[-1])
    assert {"tests/test_far.py"} == {each.by.partition("::")[0] for each in mutants.judged(project, large, 300, 1, runs=folder)}


@pytest.mark.matrix
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_fault_of_a_script_is_tried_by_the_tests_that_import_it(project):
    tests = {
        "m": 'import { small, size } from "../../tarviz/m.mjs";\ntest("3 (or more) / 0", () => assert.ok(!small(3)));\n',
        "other": 'test("always fails", () => assert.ok(false));\n',
    }
    (project / "tests" / "js").mkdir()
    for name, text in tests.items():
        head = 'import assert from "node:assert/strict";\nimport { test } from "node:test";\n'
        (project / "tests" / "js" / f"{name}.test.mjs").write_text(head + text)
    (project / "tarviz" / "m.mjs").write_text("export const small = (a) => a < 3;\nexport const size = 8;\n")
    for words in (["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "scripts"]):
        subprocess.run(["git", *words], cwd=project, check=True)
    every = mutants.all_of(project, "tarviz/**/*.mjs", mutants.script_mutants)

    found = mutants.judged(project, every, 300, 1)

    by = {each.mutant.new: each.by for each in found}
    assert {b"<=": "tests/js/m.test.mjs::3 (or more) / 0", b"4": "tests/js/m.test.mjs::3 (or more) / 0", b"9": ""} == by


def test_when_the_time_is_up_the_rest_is_left(project):
    every = mutants.all_of(project, "tarviz/**/*.py", mutants.python_mutants)

    assert [] == mutants.judged(project, every, 0, 1)
