"""The rules of the house that the linter cannot see: borders, imports by string, circles, sizes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

from docs import lines

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tarviz"
MODULES = sorted(PACKAGE.rglob("*.py"))
SCRIPTS = sorted(PACKAGE.rglob("*.mjs"))
ABSURD = 600  # lines of a module: cut by idea, not by this; docs/growth.md is what keeps features small
LONG: dict[str, str] = {}  # modules that may be longer than that, each with the reason why

# The rooms in which every module has a test file of its own, and where those are tested that have none.
TESTED = ("read", "outputs", "formats", "stores", "ops")
ELSEWHERE = {
    "stores/_remote/reader.py": "stores/test_remote.py",  # one reader behind all remote stores: tried through each of them
    "stores/_remote/resume.py": "stores/test_remote.py",
    "outputs/names.py": "outputs/test_output.py",  # names and packing, seen in outputs
    "outputs/outputs.py": "outputs/test_output.py",
    "outputs/packing.py": "outputs/test_tar_output.py",
}


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imports(path: Path) -> Iterator[tuple[str, str, int]]:
    """(module, name, line) of every import of tarviz in a file, lazy and type-checking ones too; `name` is "" for `import a.b`."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "tarviz":
            yield from ((node.module or "", alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "", node.lineno) for alias in node.names if alias.name.split(".")[0] == "tarviz")


def package_of(path: Path) -> str:
    return ".".join(path.parent.relative_to(ROOT).parts)


class TestBorders:
    def test_nothing_private_is_imported_over_a_border(self):
        """`a.b._c` is for modules of `a.b` and below; `_name` of a module is for its own package."""
        wrong = []
        for path in MODULES:
            for module, name, line in imports(path):
                parts = module.split(".") + ([name] if name else [])
                for at, part in enumerate(parts):
                    home = ".".join(parts[:at])
                    if name and at == len(parts) - 1 and (ROOT / Path(*parts[:at])).with_suffix(".py").is_file():
                        home = ".".join(parts[: at - 1])  # a name of a module: at home in the module's package
                    if is_private(part) and not (package_of(path) + ".").startswith(home + "."):
                        wrong.append(f"{path.relative_to(ROOT)}:{line}: {'.'.join(parts)}")

        assert [] == wrong

    def test_nothing_is_imported_by_a_string_but_by_the_registry(self):
        """The linter sees no import by string: `model/plugins.py` looks plugins up, a package may look up its own parts."""
        wrong = []
        for path in MODULES:
            module = path.relative_to(PACKAGE)
            found = re.findall(r"import_module\(\s*f?[\"'](tarviz[\w.]*)", path.read_text("utf-8"))
            if module.as_posix() not in ("__init__.py", "model/plugins.py"):
                wrong += [f"{module}: {name}" for name in found if not name.startswith(f"tarviz.{module.parts[0]}")]

        assert [] == wrong


@cache
def graph() -> dict[str, set[str]]:
    """Module → the modules it imports, at load or inside a function; what only a type checker imports is left out."""
    known = {name_of(path) for path in MODULES}
    edges: dict[str, set[str]] = {}
    for path in MODULES:
        targets = set()
        for node in _run_time(tree(path)):
            if isinstance(node, ast.ImportFrom):
                targets |= {full if (full := f"{node.module}.{alias.name}") in known else str(node.module) for alias in node.names}
            elif isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
        edges[name_of(path)] = targets & known - {name_of(path)}
    return edges


def _run_time(node: ast.AST) -> Iterator[ast.AST]:
    """The statements below a node."""
    waiting = [node]
    while waiting:
        yield (node := waiting.pop())
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        else:
            waiting += (part for part in ast.iter_child_nodes(node) if not isinstance(part, ast.expr))


class TestCircles:
    def test_no_module_imports_itself_through_others(self):
        """Not even by an import inside a function: what needs each other is one module, or the smaller half moves down."""
        TopologicalSorter(graph()).prepare()  # CycleError names the circle

    def test_a_circle_would_be_found(self):
        edges = {module: set(targets) for module, targets in graph().items()}
        assert "tarviz.ops.base" in edges["tarviz.ops.chains"]
        edges["tarviz.ops.base"].add("tarviz.ops.chains")

        with pytest.raises(CycleError):
            TopologicalSorter(edges).prepare()


class TestSizes:
    def test_no_module_is_absurdly_long(self):
        counts = {path.relative_to(PACKAGE).as_posix(): len(path.read_text("utf-8").splitlines()) for path in [*MODULES, *SCRIPTS]}

        assert set(LONG) == {name for name, count in counts.items() if count > ABSURD}

    def test_no_feature_has_grown_unseen(self):
        """By a quarter since somebody last wrote `docs/growth.md`; a file of no feature is an error."""
        assert [] == lines.grown()


TANGLED = 20  # what a function may branch


class TestComplexity:
    def test_no_function_has_more_than_twenty_ways_through_it(self):
        """McCabe's number, by radon: above it nobody sees which ways can be gone. Cut out what has a name, not what has lines."""
        complexity = pytest.importorskip("radon.complexity", reason="radon: pip install radon")
        tangled = {
            f"{path.relative_to(PACKAGE).as_posix()} {block.name}"
            for path in MODULES
            for block in _functions(complexity.cc_visit(path.read_text("utf-8")))
            if block.complexity > TANGLED
        }

        assert set() == tangled

    def test_a_tangle_would_be_found(self):
        complexity = pytest.importorskip("radon.complexity", reason="radon: pip install radon")
        (block,) = complexity.cc_visit("def f(x):\n" + "".join(f"    if x == {n}: return {n}\n" for n in range(TANGLED)))

        assert block.complexity > TANGLED


def _functions(blocks: Iterable[Any]) -> Iterator[Any]:
    for block in blocks:
        yield from block.methods if hasattr(block, "methods") else (block,)


# Where other people's software says in words alone what happened; each is a table with tests, or one line with its reason.
WORDS_ALONE = {
    "stores/_remote/wire.py": "http.client's words for a refused tunnel and a header (tests/stores/_remote/test_wire.py)",
    "stores/_remote/azure_keys.py": "azure-identity gives the number of Entra's error in its text alone",
    "stores/hf.py": "hf_xet gives the hub's status in its text alone",
    "viewers/audio.py": "the wave module has one error for all it does not know",
    "viewers/image.py": "Pillow gives the pixels of a bomb in its text alone",
    "runners/tf/dataset.py": "TensorFlow hands an error on as text",
    "runners/tf/leaving.py": "CPython's RuntimeError at the end of the interpreter",
    "table/refusals.py": "DuckDB says in words alone what does not bind (tests/table/test_refusals.py)",
    "table/sql.py": "DuckDB's parser says in words alone that it is too deep",
    "tools/partners.py": "DuckDB adds its own options to an error about a table's file",
    "testing/aistore.py": "a message there is AIStore's of a request, not an error's",
    "testing/viewers.py": "the contract of viewers looks at their summaries",
}


def decided_by_text(tree: ast.Module | ast.ClassDef) -> Iterator[int]:
    """Lines that look into the text of an error, or a message or summary: `x in str(error)`, `error.message.startswith(…)`, and what a
    name holds that was given such a text: `text = str(error).lower()`, `re.search(pattern, text)`."""
    for piece in tree.body:
        yield from decided_by_text(piece) if isinstance(piece, ast.ClassDef) else _looking(piece)


def _looking(tree: ast.AST) -> Iterator[int]:
    given: set[str] = set()

    def is_text(node: ast.AST) -> bool:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and len(node.args) == 1:
            inner = node.args[0]
            return is_text(inner) or (isinstance(inner, ast.Name) and inner.id in ("error", "exc", "err", "e", "exception", "caught"))
        if isinstance(node, ast.Call):  # text.lower(), re.sub(pattern, "", text)
            return isinstance(node.func, ast.Attribute) and any(map(is_text, (node.func.value, *node.args)))
        if isinstance(node, ast.NamedExpr):
            return is_text(node.value)
        if isinstance(node, ast.Subscript):
            return is_text(node.value) or (isinstance(node.slice, ast.Constant) and node.slice.value == "error_message")
        if isinstance(node, ast.Name):
            return node.id in given
        return isinstance(node, ast.Attribute) and node.attr in ("message", "summary")

    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.NamedExpr) and is_text(node.value):
            given |= {target.id for target in getattr(node, "targets", [getattr(node, "target", None)]) if isinstance(target, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn | ast.Eq | ast.NotEq) for op in node.ops):
            if any(is_text(part) for part in (node.left, *node.comparators)):
                yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            looks = node.func.attr in ("startswith", "endswith", "partition", "rpartition", "find", "index", "removeprefix")
            searches = node.func.attr in ("match", "search", "fullmatch", "findall")
            if (looks and is_text(node.func.value)) or (searches and any(is_text(part) for part in node.args)):
                yield node.lineno


class TestErrors:
    def test_nothing_is_decided_by_the_text_of_a_message(self):
        found = {
            f"{module.relative_to(PACKAGE).as_posix()}:{line}"
            for module in MODULES
            if not module.relative_to(PACKAGE).as_posix().startswith(tuple(WORDS_ALONE))
            for line in decided_by_text(tree(module))
        }

        assert set() == found

    @pytest.mark.parametrize(
        "line",
        [
            *['"picture" in error.message', "view(blob).summary.partition(': ')", '"refused" in str(error)', "REFUSED.search(str(error))"],
            *["text = str(error).lower(); re.search('near', text)", "if (said := error.message.split()[0]) == 'near': pass"],
        ],
    )
    def test_such_a_line_is_found(self, line: str):
        assert [2] == list(decided_by_text(ast.parse(f"def f():\n {line}")))


TWICE = {  # names that two classes have, each with the reason why
    "Fault": "what is found wrong (`model.errors`), and what a server of `testing.faults` does wrong: both in the documents",
    "Table": "what `tarviz.table` gives, and a table in a viewer's panel: both public",
}


class TestWords:
    def test_no_two_classes_have_one_name(self):
        """Whose name says one thing in one room and another in the next; dialects have the names of the originals."""
        classes: dict[str, list[str]] = {}
        for path in MODULES:
            for node in ast.walk(tree(path)):
                if isinstance(node, ast.ClassDef) and path.relative_to(PACKAGE).parts[0] != "dialects":
                    classes.setdefault(node.name, []).append(f"{path.relative_to(PACKAGE).as_posix()}:{node.lineno}")

        assert set(TWICE) == {name for name, places in classes.items() if len(places) > 1}


class TestTests:
    def test_every_module_has_a_test_file(self):
        """`stores/_remote/sigv4.py` is tested in `tests/stores/_remote/test_sigv4.py`: a failure names the module whose rule is broken."""
        missing = []
        for module in (path.relative_to(PACKAGE) for path in MODULES):
            own = ROOT.joinpath("tests", *module.parts[:-1], f"test_{module.stem.lstrip('_')}.py")
            known = own.is_file() or (ROOT / "tests" / ELSEWHERE.get(module.as_posix(), "none")).is_file()
            if module.parts[0] in TESTED and module.name != "__init__.py" and not known:
                missing.append(str(own.relative_to(ROOT)))

        assert [] == missing
