"""Small faults put into the code one by one: does a test notice? `make mutants` draws others each day (`--seed` repeats a day).

Each is tried in a copy of what git holds (changes of the working tree included), by the tests of `make test` that run its line, which
coverage.py tells, and by all cases, those of `make test-matrix` too, of the tests that mirror its module. Where no test runs the line (a
constant of a module, what processes of their own run) by the tests most likely to notice it: the doctests of its module, the tests that
mirror it, those that import it, those that mirror what imports it. JavaScript: by the tests that import its module. A test that fails
counts only if it passes without the fault. `tests/mutants.txt` lists faults that change nothing one could see.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import datetime
import difflib
import gc
import itertools
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty, SimpleQueue

import pytest

from tests.bounded import seed_of

ROOT = Path(__file__).parents[1]
EQUAL = ROOT / "tests" / "mutants.txt"
WANTED = 0.9  # of the mutants, killed
HANGS = 15  # seconds of one test: one of Hypothesis that hangs is begun three times, and must be told within the time of a try
SOON = 5  # seconds until a page shows what a JavaScript test waits for: of one that fails this is all the time it takes
FINE = (0, 5)  # how pytest ends where nothing failed, and where nothing was chosen
ENDS = "pytest, which ends with "
ENDED = "it does not end well"  # a file of JavaScript tests of which none fails
LEFT_OUT = "not (slow or browser or ray or programs)"
QUICK = "not (slow or browser or torch or ray or matrix or programs)"  # the tests of `make test`
CASES = 3  # of a test with parameters
FILES = 8  # of tests that are tried at once: more take long to collect
LONGEST = 0.4  # of the time for one fault, which the tests of one try may take
OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=quick", f"--timeout={HANGS}", "--no-header", "-m", LEFT_OUT]

_FAILURES = "export default async function* (said) { for await (const { type, data } of said) if (type === 'test:fail') yield %s; }"
NODE = ["--test-force-exit", "--test-reporter=data:text/javascript," + _FAILURES % "`not ok ${data.name}\\n`"]


# pytest in a process forked from one that has imported what takes long: of the CPU of a try this was the larger part.
_WARM = multiprocessing.get_context("forkserver")


@dataclass(frozen=True, slots=True)
class Mutant:
    """`path` with `new` at the bytes start … stop."""

    path: str
    kind: str
    start: int
    stop: int
    new: bytes

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.new + source[self.stop :]

    def diff(self, source: bytes) -> str:
        """What changes, as a diff without context."""
        before, after = (text.decode().splitlines() for text in (source, self.applied(source)))
        lines = difflib.unified_diff(before, after, self.path, self.path, n=0, lineterm="")
        return "\n".join(line for line in lines if not line.startswith(("+++", "@@"))).replace("--- ", "", 1)

    def changed(self, source: bytes) -> tuple[str, str]:
        """The lines before and after, for the list of equals."""
        lines = self.diff(source).splitlines()[1:]
        return tuple(" ".join(line[1:].strip() for line in lines if line[0] == sign) for sign in "-+")  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`by`: the test that failed, "" where none did."""

    mutant: Mutant
    by: str


# ---- Python

_COMPARED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
_COMPARED |= {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
_COUNTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Div: ast.Mult}
_COUNTED |= {ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}


def _text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Kinds of faults that fit a node, each with what stands in its place."""
    other = copy.copy(node)
    match node, other:
        case ast.Compare(ops=[op]), ast.Compare():
            other.ops = [_COMPARED[type(op)]()]
            yield "comparison", other
        case ast.BoolOp(op=op), ast.BoolOp():
            other.op = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "and, or", other
        case ast.UnaryOp(op=ast.Not(), operand=operand), _:
            yield "not", operand
        case ast.Constant(value=bool(value)), ast.Constant():
            other.value = not value
            yield "constant", other
        case ast.Constant(value=int(value)), ast.Constant():
            other.value = value + 1
            yield "number", other
        case ast.BinOp(op=op, left=left, right=right), ast.BinOp() if type(op) in _COUNTED and not (_text(left) or _text(right)):
            other.op = _COUNTED[type(op)]()
            yield "arithmetic", other
        case ast.Return(value=ast.expr() as value), ast.Return() if not (isinstance(value, ast.Constant) and not value.value):
            other.value = ast.Constant(None)
            yield "return", other
        case ast.Call(func=ast.Name(id="min" | "max" as name)), ast.Call():
            other.func = ast.Name("max" if name == "min" else "min")
            yield "min, max", other
        case ast.Call(args=[first, second, *rest]), ast.Call() if not any(isinstance(each, ast.Starred) for each in (first, second)):
            other.args = [second, first, *rest]
            yield "order", other
        case ast.IfExp(body=body, orelse=orelse), ast.IfExp():
            other.body, other.orelse = orelse, body
            yield "condition", other
        case ast.Expr(value=ast.Call()), _:
            yield "call", ast.Pass()
        case ast.Continue(), _:
            yield "loop", ast.Break()
        case ast.Break(), _:
            yield "loop", ast.Continue()


def _unseen(node: ast.AST) -> bool:
    """Parts whose change no program sees: texts of errors, logs, what only a checker runs."""
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.keyword(arg="repr"):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Compare(left=ast.Name(id="__name__"))):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="log" | "warnings")))):
            return True
    return False


def python_mutants(path: str, source: bytes) -> list[Mutant]:
    """Every fault that fits a module."""
    starts = [0, *itertools.accumulate(len(line) for line in source.splitlines(keepends=True))]
    found = []

    def walk(node: ast.AST) -> None:
        if _unseen(node):
            return
        for kind, new in _changes(node):
            assert isinstance(node, ast.expr | ast.stmt)
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            start = starts[node.lineno - 1] + node.col_offset
            stop = starts[node.end_lineno - 1] + node.end_col_offset
            text = ast.unparse(ast.fix_missing_locations(new))
            text = text if isinstance(node, ast.stmt | ast.Constant) else f"({text})"
            if ast.dump(node) != ast.dump(new):
                found.append(Mutant(path, kind, start, stop, text.encode()))
        match node:
            case ast.ClassDef() | ast.Call(func=ast.Name(id="zip")):  # zip's strict= is of what we ourselves guarantee, as assert
                unseen = "keywords"
            case _:
                unseen = ""
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns", "decorator_list", unseen):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        walk(child)

    walk(ast.parse(source))
    return found


# ---- JavaScript

_TOKEN = re.compile(
    rb"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|[^`\\])*`"
    rb"|(?:(?<=[(,=:] )|(?<=[(!]))/(?![*/ ])(?:\\.|\[[^\]]*\]|[^/\n])+/\w*"  # a regular expression
    rb"|(?P<infix>(?<= )(?:===|!==|<=|>=|<|>|&&|\|\||[-+*/])(?= ))|(?P<word>\b(?:true|false)\b)|(?P<number>(?<![\w.$])\d+(?![\w.]))"
    rb"|(?P<not>!(?=[\w(]))|(?P<range>\bMath\.(?:min|max)\b)",
    re.DOTALL,
)
_OTHER = {b"===": b"!==", b"!==": b"===", b"<": b"<=", b"<=": b"<", b">": b">=", b">=": b">", b"&&": b"||", b"||": b"&&"}
_OTHER |= {b"+": b"-", b"-": b"+", b"*": b"/", b"/": b"*", b"true": b"false", b"false": b"true"}
_OTHER |= {b"Math.min": b"Math.max", b"Math.max": b"Math.min"}


def script_mutants(path: str, source: bytes) -> list[Mutant]:
    """Every fault that fits a script; prettier's spaces tell an operator."""
    found = []
    for token in _TOKEN.finditer(source):
        if (kind := token.lastgroup) is None:
            continue
        text = token[0]
        new = b"" if kind == "not" else b"%d" % (int(text) + 1) if kind == "number" else _OTHER[text]
        found.append(Mutant(path, kind, token.start(), token.end(), new))
    return found


# ---- which of them, and which tests


def drawn(every: Sequence[Mutant], count: int, seed: int, without: Container[Mutant] = ()) -> list[Mutant]:
    """`count` of them, as many of one kind as of another; in the place of one `without` comes the next, the others stay."""
    draw = random.Random(seed)
    kinds = [[each for each in every if each.kind == kind] for kind in sorted({each.kind for each in every})]
    for kind in kinds:
        draw.shuffle(kind)
    turns = itertools.chain.from_iterable(itertools.zip_longest(*kinds))
    return list(itertools.islice((each for each in turns if each is not None and each not in without), count))


class Runs:
    """Which tests of `make test` run a line of a module, and the seconds that each takes: made in `folder` once for a tree."""

    def __init__(self, folder: Path) -> None:
        from coverage import CoverageData

        self._data = CoverageData(str(folder / "coverage"))
        self._data.read()
        self.seconds: dict[str, float] = json.loads((folder / "seconds.json").read_text("utf-8"))

    @staticmethod
    def make(root: Path, commit: str, folder: Path, workers: int) -> None:
        """Run the tests under coverage.py, unless `folder` has what they ran of this very tree."""
        tree = _git(root, "rev-parse", f"{commit}^{{tree}}")
        mark = folder / "tree"
        if mark.is_file() and mark.read_text("utf-8") == tree:
            return
        shutil.rmtree(folder, ignore_errors=True)  # what a run that was broken off has left cannot be read
        folder.mkdir(parents=True)
        (folder / "rc").write_text("[run]\nsource = tarviz\nrelative_files = true\n", "utf-8")
        with tempfile.TemporaryDirectory() as place:
            _copied(root, Path(place, "tree"), commit)
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=quick", "-m", QUICK]
            command += ["-n", str(workers), "--dist", "worksteal", "--durations=0", "--durations-min=0.01"]
            command += ["--cov", f"--cov-config={folder / 'rc'}", "--cov-context=test", "--cov-report="]
            environment = {**os.environ, "PYTHONPATH": str(Path(place, "tree")), "COVERAGE_FILE": str(folder / "coverage")}
            done = subprocess.run(command, cwd=Path(place, "tree"), env=environment, capture_output=True, text=True, check=False)
        print((done.stdout.strip() or done.stderr.strip()).rpartition("\n")[2], flush=True)
        if done.returncode not in (0, 1):  # tests may fail, but pytest broke off: the map would lack what nobody knows
            raise SystemExit(f"{done.stdout[-4000:]}\nno map of lines to tests: pytest ended with {done.returncode}")
        took: dict[str, float] = {}
        for seconds, name in re.findall(r"^ *([\d.]+)s (?:setup|call|teardown) +(.*\S)", done.stdout, re.MULTILINE):
            took[name] = took.get(name, 0) + float(seconds)
        (folder / "seconds.json").write_text(json.dumps(took), "utf-8")
        mark.write_text(tree, "utf-8")

    def of(self, path: str, lines: set[int]) -> list[str]:
        """The tests that run one of the lines, the quickest first."""
        found = self._data.contexts_by_lineno(path)
        names = {each.rpartition("|")[0] for line in lines for each in found.get(line, ()) if each.endswith("|run")}
        return sorted(names, key=lambda name: (self.seconds.get(name, 0.01), name))


def lines_of(mutant: Mutant, source: bytes) -> set[int]:
    """The lines of the statement that holds a fault; of a function whose head holds it those where it begins."""
    first, last = (source[:at].count(b"\n") + 1 for at in (mutant.start, mutant.stop))
    around = [each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.stmt) and each.lineno <= first <= (each.end_lineno or 0)]
    if not around:
        return set()
    inner = min(around, key=lambda each: ((each.end_lineno or 0) - each.lineno, -each.lineno))
    if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
        said = (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in inner.body)
        return {next((each.lineno for each, text in zip(inner.body, said, strict=True) if not text), inner.lineno)}
    if hasattr(inner, "body") or hasattr(inner, "cases"):
        return {inner.lineno, *range(first, last + 1)}
    return set(range(inner.lineno, (inner.end_lineno or inner.lineno) + 1))


class Tests:
    """Which tests of a tree look at a module."""

    def __init__(self, root: Path, runs: Runs | None = None) -> None:
        self.root, self.runs = root, runs
        self.texts = {path: path.read_text("utf-8") for path in sorted(root.glob("tests/**/test_*.py"))}
        self.modules = {path: path.read_text("utf-8") for path in sorted(root.glob("tarviz/**/*.py"))}
        self.settings = list(root.glob("tests/conftest.py"))  # of a module alone pytest would not know them

    def of(self, path: str) -> list[list[str]]:
        """Files to run, those most likely to notice first: doctests and mirror, tests that import it, mirrors of what imports it."""
        module = self.root / path
        tiers = [[*self.settings, module, *self._mirror(module)], self._importing(module, self.texts)]
        tiers.append([test for other in self._importing(module, self.modules) for test in self._mirror(other)])
        seen: set[Path] = set()
        found = []
        for tier in tiers:
            new = [each for each in dict.fromkeys(tier) if each not in seen]
            seen.update(new)
            found.append([str(each.relative_to(self.root)) for each in new])
        return [tier for tier in found if tier]

    def noticing(self, mutant: Mutant, source: bytes, seconds: float) -> list[list[str]]:
        """Tests to run, in turns that do not take all of `seconds`: those that run its line, at last all cases of its module's mirror.

        Where no test runs the line: files as `of` gives them.
        """
        ran = self.runs.of(mutant.path, lines_of(mutant, source)) if self.runs else []
        if not ran or self.runs is None:
            return self.of(mutant.path)
        first = [str(each.relative_to(self.root)) for each in [self.root / mutant.path, *self._mirror(self.root / mutant.path)]]
        files: dict[str, list[str]] = {}
        for name in ran:
            chosen = files.setdefault(name.partition("::")[0], [])
            if sum(each.partition("[")[0] == name.partition("[")[0] for each in chosen) < CASES:
                chosen.append(name)

        def near(file: str) -> int:
            """How many folders a file shares with the mirrors."""
            return max((len(os.path.commonpath([file, each]).split("/")) for each in first[1:]), default=0)

        order = sorted(
            files, key=lambda file: (file not in first, -near(file), sum(self.runs.seconds.get(each, 0.01) for each in files[file]))
        )
        turns = []
        for batch in (order[at : at + FILES] for at in range(0, len(order), FILES)):
            spent, turn = 0.0, []
            for name in itertools.chain.from_iterable(files[file] for file in batch):
                if (spent := spent + self.runs.seconds.get(name, 0.01)) < LONGEST * seconds or not turn:
                    turn.append(name)
            turns.append(turn)
        mirrors = list(dict.fromkeys(str(each.relative_to(self.root)) for each in self._mirror(self.root / mutant.path)))
        return [*turns, mirrors] if mirrors else turns

    def _mirror(self, module: Path) -> list[Path]:
        parts = module.relative_to(self.root / "tarviz").with_suffix("").parts
        package = parts[:-1]
        name = (package[-1] if package else "tarviz") if parts[-1] == "__init__" else parts[-1].lstrip("_")
        places = [self.root.joinpath("tests", *package), self.root.joinpath("tests", *package[:-1])]
        named = [place / f"test_{name}.py" for place in places]
        near = [each for each in self.texts if each.parent == places[0]]
        return [each for each in named if each in self.texts] or near

    def _importing(self, module: Path, texts: dict[Path, str]) -> list[Path]:
        dotted = ".".join(module.relative_to(self.root).with_suffix("").parts).removesuffix(".__init__")
        package, _, name = dotted.rpartition(".")
        one = re.compile(
            rf"^\s*(?:from {re.escape(dotted)} import|import {re.escape(dotted)}\b|from {re.escape(package)} import[^#\n]*\b{name}\b)",
            re.MULTILINE,
        )
        return sorted((path for path, text in texts.items() if one.search(text)), key=lambda path: len(texts[path]))


# ---- trying them


def _git(place: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=place, capture_output=True, text=True, check=True).stdout.strip()


def _copied(root: Path, place: Path, commit: str) -> None:
    _git(root, "clone", "--quiet", "--shared", "--no-checkout", ".", str(place))
    _git(place, "checkout", "--quiet", "--detach", commit)
    if (parts := root / "tests" / "js" / "node_modules").is_dir():
        (place / "tests" / "js" / "node_modules").symlink_to(parts)


def imported(script: Path, seen: set[Path] | None = None) -> set[Path]:
    """What a script imports, itself or by others."""
    seen = set() if seen is None else seen
    for name in re.findall(r"""(?:from |import\(|import )"(\.[^"]+\.mjs)\"""", script.read_text("utf-8")):
        if (path := (script.parent / name).resolve()) not in seen and path.is_file():
            seen.add(path)
            imported(path, seen)
    return seen


def _pytest(place: Path, environment: dict[str, str], words: list[str], out: Connection) -> None:
    """What the forked process does."""
    os.setsid()
    os.dup2(out.fileno(), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.chdir(place)
    os.environ.update(environment)
    sys.path[:] = [str(place), *(each for each in sys.path if each not in ("", str(ROOT), str(place)))]
    for name in [each for each in sys.modules if each.partition(".")[0] in ("tests", "tarviz")]:
        del sys.modules[name]  # what is imported now is the tree's
    gc.freeze()  # or at its end pytest looks five times over all that was imported
    gc.unfreeze = int
    with open(1, "w", closefd=False) as sys.stdout:
        code = pytest.main([*words, "-W", "ignore::pytest.PytestAssertRewriteWarning"])  # Hypothesis is imported already
    os._exit(code)


class Pytest:
    """pytest in a warm process: of `subprocess.Popen` what is used here."""

    def __init__(self, place: Path, environment: dict[str, str], words: list[str]) -> None:
        reader, writer = _WARM.Pipe(duplex=False)
        self._process = _WARM.Process(target=_pytest, args=(place, environment, words, writer))
        self._process.start()
        writer.close()
        assert self._process.pid is not None
        self.pid = self._process.pid
        self.stdout = os.fdopen(os.dup(reader.fileno()), errors="replace")
        reader.close()

    def wait(self) -> int:
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode


class Tree:
    """A copy of what git holds, where one mutant at a time is put in."""

    def __init__(self, root: Path, place: Path, commit: str, each: float, runs: Path | None = None) -> None:
        self.place, self.each = place.resolve(), each
        _copied(root, place, commit)
        self.tests = Tests(place, Runs(runs) if runs else None)
        self.environment = {**os.environ, "PYTHONPATH": str(place), "PYTHON": sys.executable}

    def tried(self, mutant: Mutant) -> Verdict:
        """What the tests say of a mutant."""
        module = self.place / mutant.path
        source = module.read_bytes()
        self._write(module, mutant.applied(source))
        try:
            by = self._scripts(module) if module.suffix == ".mjs" else self._python(mutant, source)
        finally:
            self._write(module, source)
        return Verdict(mutant, "" if by.startswith(ENDS) and by == self._python(mutant, source) else by)

    @staticmethod
    def _write(module: Path, text: bytes) -> None:
        """Where both are made in one second and are as long, Python would take the old bytecode for the new."""
        module.write_bytes(text)
        for kept in (module.parent / "__pycache__").glob(f"{module.stem}.*"):
            kept.unlink()

    def _python(self, mutant: Mutant, source: bytes) -> str:
        end = time.monotonic() + self.each
        for tests in self.tests.noticing(mutant, source, self.each):
            program = Pytest(self.place, self.environment, [*OPTIONS, *tests])
            failed, code = self._run(program, r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", end - time.monotonic())
            if failed or code not in (*FINE, None):
                return failed or f"{ENDS}{code}"
            if time.monotonic() > end:
                break
        return ""

    def _scripts(self, module: Path) -> str:
        """The test that fails, alone as with the others of its file: one that is late on a busy machine has not noticed anything."""
        for test in self._scripts_of(module):
            name = test.relative_to(self.place)
            for limit in (SOON, HANGS):
                if not (failed := self._script(test, limit)):
                    break
                if self._script(test, HANGS, failed) or limit == HANGS:
                    return f"{name}::{failed}"
        return ""

    def _scripts_of(self, module: Path) -> list[Path]:
        """The tests that import a module, all where none does: those that start real controllers last, of others the smallest first."""
        needs = {test: imported(test) for test in self.place.glob("tests/js/*.test.mjs")}
        starts = self.place / "tests" / "js" / "pages.mjs"
        order = sorted(needs, key=lambda test: (starts in needs[test], len(needs[test]), test.stat().st_size))
        return [test for test in order if module in needs[test]] or order

    def _script(self, test: Path, limit: int, only: str = "") -> str:
        """The first test of a file (or this one) that fails; what it waits for must come within `limit` seconds."""
        command = ["node", *NODE, *([f"--test-name-pattern=^{re.escape(only)}$"] if only not in ("", ENDED) else []), str(test)]
        environment = {**self.environment, "TARVIZ_TEST_LIMIT": str(1000 * limit)}
        program = subprocess.Popen(
            command,
            cwd=self.place,
            env=environment,
            text=True,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        failed, code = self._run(program, r"^not ok (.*)$", self.each)
        return failed or ("" if code == 0 else ENDED)

    def _run(self, program: subprocess.Popen[str] | Pytest, pattern: str, seconds: float) -> tuple[str, int | None]:
        """The first failure a program tells of, and how it ended; the program is ended then, or after that time (None)."""
        late = threading.Event()

        def end() -> None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)

        limit = threading.Timer(max(1.0, seconds), lambda: (late.set(), end()))
        limit.start()
        assert program.stdout is not None
        found = next((line[1] for line in map(re.compile(pattern).match, program.stdout) if line), "")
        if not found:
            program.wait()
        limit.cancel()
        end()
        program.stdout.close()
        return found, None if late.is_set() else program.wait()

    def wrong(self, found: Sequence[Verdict]) -> set[str]:
        """Of the tests that failed with a mutant, those that fail without one, too."""
        python = [each.by for each in found if each.by and not each.mutant.path.endswith(".mjs")]
        passed: list[str] = []
        if python:
            program = Pytest(self.place, self.environment, [*(each for each in OPTIONS if each != "-x"), "-rp", *python])
            with program.stdout as told:
                passed = re.findall(r"^PASSED (.*)$", told.read(), re.MULTILINE)
            program.wait()
        scripts = {each.by for each in found if each.by and each.mutant.path.endswith(".mjs")}
        failing = {each for each in scripts if self._script(self.place / (told := each.partition("::"))[0], HANGS, told[2])}
        return failing | {test for test in python if not any(each.startswith(test) for each in passed)}


def judged(
    root: Path, mutants: Sequence[Mutant], seconds: float, workers: int, each: float = 60, runs: Path | None = None
) -> list[Verdict]:
    """What the tests say of each mutant, at most `each` seconds long; those left when the time is up are missing.

    `runs`: the folder where is, or is made, what tests run which line.
    """
    waiting: SimpleQueue[Mutant] = SimpleQueue()
    for mutant in mutants:
        waiting.put(mutant)
    end = time.monotonic() + seconds
    commit = _git(root, "stash", "create") or _git(root, "rev-parse", "HEAD")  # with what is not committed yet
    if runs is not None:
        Runs.make(root, commit, runs, workers)

    def work(place: Path) -> list[Verdict]:
        tree = Tree(root, place, commit, each, runs)
        found = []
        while time.monotonic() < end:
            try:
                found.append(tree.tried(waiting.get_nowait()))
            except Empty:
                break
            print(f"{found[-1].mutant.path}: {found[-1].by or 'no test fails'}", flush=True)
        wrong = tree.wrong(found)
        return [replace(one, by="") if one.by in wrong else one for one in found]

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        return list(itertools.chain.from_iterable(pool.map(work, [Path(folder, str(at)) for at in range(workers)])))


def equals(text: str) -> set[tuple[str, str, str]]:
    """What the list of equals names: path, line before, line after."""
    lines = [line.rpartition("  # ")[0] for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {(path, before, after) for path, before, after in (line.split(" | ") for line in lines)}


def all_of(root: Path, pattern: str, faults: Callable[[str, bytes], list[Mutant]]) -> list[Mutant]:
    """Every fault in the files of a tree."""
    return [each for path in sorted(root.glob(pattern)) for each in faults(str(path.relative_to(root)), path.read_bytes())]


def listed(root: Path, every: Sequence[Mutant]) -> set[Mutant]:
    """Those that are listed as equal."""
    known = equals(EQUAL.read_text("utf-8"))
    named = [each for each in every if any(each.path == path for path, *_ in known)]
    return {each for each in named if (each.path, *each.changed((root / each.path).read_bytes())) in known}


def main() -> int:
    """Draw, try, tell."""
    options = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    options.add_argument("--seed", type=int, default=seed_of(datetime.date.today()), help="which mutants (the date)")
    options.add_argument("--python", type=int, default=100, help="how many of them")
    options.add_argument("--javascript", type=int, default=30, help="how many of them")
    options.add_argument("--minutes", type=float, default=20)
    options.add_argument("--each", type=float, default=60, help="seconds of tests for one of them (more on a busy machine)")
    options.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    asked = options.parse_args()
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}  # as tests/conftest.py, before anything imports TensorFlow
    plugins = ["xdist.plugin", "anyio.pytest_plugin", "pytest_timeout", "_hypothesis_pytestplugin"]
    _WARM.set_forkserver_preload(["pytest", *plugins, "hypothesis", "numpy", "PIL.Image", "duckdb", "tensorflow"])
    print(f"--seed {asked.seed}", flush=True)
    modules, scripts = (
        drawn(every := all_of(ROOT, pattern, faults), count, asked.seed, listed(ROOT, every))
        for pattern, faults, count in (
            ("tarviz/**/*.py", python_mutants, asked.python),
            ("tarviz/**/*.mjs", script_mutants, asked.javascript),
        )
    )
    draw = random.Random(asked.seed)
    mixed = draw.sample(modules + scripts, len(modules) + len(scripts))  # if time runs out, of both
    found = judged(ROOT, mixed, 60 * asked.minutes, asked.workers, asked.each, ROOT / "build" / "mutants")
    fine = True
    for name, ending, wanted in (("Python", ".py", asked.python), ("JavaScript", ".mjs", asked.javascript)):
        tried = [each for each in found if each.mutant.path.endswith(ending)]
        killed = [each for each in tried if each.by]
        for verdict in tried:
            if not verdict.by:
                print(f"\nsurvived ({verdict.mutant.kind})\n{verdict.mutant.diff((ROOT / verdict.mutant.path).read_bytes())}")
        print(f"\n{name}: {len(killed)} of {len(tried)} killed, {wanted - len(tried)} not tried for want of time", flush=True)
        fine &= len(killed) >= WANTED * len(tried) and 2 * len(tried) >= wanted
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
