"""The project file, the environment file, the Makefile and the lazy face of the package."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

import tarviz
from tarviz.model import plugins

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
HEAVY = (
    "tensorflow",
    "keras",
    "torch",
    "PIL",
    "ray",
    "IPython",
    "matplotlib",
    "sklearn",
    "pandas",
    "anywidget",
    "ipywidgets",
    "pyarrow",
    "duckdb",
)
ASKED_FOR = ("jupyterlab", "ipywidgets", "matplotlib", "jupytext", "tensorflow", "pillow", "braceexpand")
CONDA_NAMES = {"isal": "python-isal"}


def bounds(requirements: list[str]) -> dict[str, str]:
    """Package → version bounds, without markers: `{"numpy": ">=1.26"}`."""
    parted = [re.match(r"([A-Za-z0-9_-]+)\s*([^;]*)", each) for each in requirements]
    return {match[1]: match[2].strip() for match in parted if match}


def environment() -> dict[str, str]:
    lines = re.findall(r"^  - ([a-z0-9-]+)(?: (\S+))?$", (ROOT / "environment.yml").read_text("utf-8"), re.MULTILINE)
    return dict(lines)


class TestEnvironmentFile:
    def test_names_the_seven_packages_asked_for_and_the_core(self):
        core = {CONDA_NAMES.get(name, name) for name in bounds(PROJECT["dependencies"])}

        assert {"conda-forge", "python", "pip", *ASKED_FOR, *core} == set(environment())

    def test_has_the_bounds_of_the_project_file(self):
        everything = bounds([*PROJECT["dependencies"], *(each for extra in PROJECT["optional-dependencies"].values() for each in extra)])
        expected = {CONDA_NAMES.get(name, name): bound for name, bound in everything.items()}

        for name, bound in environment().items():
            if name in expected:
                assert expected[name] == bound, name
        assert PROJECT["requires-python"] == environment()["python"]


class TestProjectFile:
    def test_the_extras_that_documents_name_are_there(self):
        """`pip install 'tarviz[lab]'` of any document, hint or docstring brings something."""
        texts = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "notebooks").glob("*.md"), *(ROOT / "tarviz").rglob("*.py")]
        named = {
            name for path in texts for found in re.findall(r"tarviz\[([\w,-]+)\]", path.read_text("utf-8")) for name in found.split(",")
        }

        assert set() == named - set(PROJECT["optional-dependencies"])
        assert {"lab", "deck", "fast", "demo", "tensorflow"} <= set(PROJECT["optional-dependencies"])

    def test_all_holds_no_benchmark_and_no_second_framework(self):
        (everything,) = PROJECT["optional-dependencies"]["all"]

        assert not {"bench", "torch", "tensorflow-cpu", "test", "oracles"} & set(re.findall(r"[\w-]+", everything))

    def test_the_core_has_no_framework(self):
        assert {"numpy", "pillow", "urllib3", "google-crc32c", "isal", "braceexpand", "click"} == set(bounds(PROJECT["dependencies"]))

    def test_nothing_names_a_registry(self):
        tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
        texts = [ROOT / name for name in tracked if re.search(r"\.(toml|yml|yaml|md|py|cfg|txt|json|lock)$|Makefile|\.ci/", name)]
        pattern = re.compile(r"(?:index-url\s*[= ]|registry\s*=|\"resolved\":)\s*[\"']?http")

        assert [] == [str(path) for path in texts if path.is_file() and pattern.search(path.read_text("utf-8", "replace"))]

    def test_nothing_beside_the_project_lies_at_its_root(self):
        tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split("\n")
        known = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md", "Makefile"}
        known |= {"environment.yml", "jupytext.toml", "pyproject.toml"}

        assert set() == {name for name in tracked if name and "/" not in name and not name.startswith(".")} - known

    def test_every_test_folder_mirrors_the_package(self):
        for path in sorted((ROOT / "tests").rglob("test_*.py")):
            relative = path.relative_to(ROOT / "tests")
            if relative.parts[0] in ("data", "browser", "servers", "soak") or path.stem in ("test_project", "test_corpora"):
                continue
            folder = ROOT / "tarviz" / relative.parent
            private = folder.with_name(f"_{folder.name}")
            bench = ROOT / relative.parent
            assert folder.is_dir() or private.is_dir() or bench.is_dir(), f"tests/{relative} mirrors nothing"


class TestRelease:
    def test_the_changelog_is_short_and_has_the_version_of_the_package(self):
        lines = (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()

        releases = [at for at, line in enumerate(lines) if line.startswith("## ")]
        assert max(end - at for at, end in itertools.pairwise([*releases, len(lines)])) <= 50
        assert max(map(len, lines)) <= 180
        assert any(line.startswith(f"## {tarviz.__version__} (") for line in lines)

    def test_every_action_is_pinned_by_its_hash(self):
        used = [
            line
            for path in (ROOT / ".github" / "workflows").glob("*.yml")
            for line in path.read_text("utf-8").splitlines()
            if "uses:" in line
        ]

        assert used
        assert [] == [line for line in used if not re.search(r"@[0-9a-f]{40} # v\d", line)]

    def test_the_workflows_try_every_python_that_is_named(self):
        named = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if "Python :: 3." in each]

        assert f"python: {named}".replace("'", '"') in (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8")


class TestMakefile:
    def test_lists_its_targets(self):
        done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)

        for target in ("demo", "test", "test-matrix", "test-programs", "check", "fix", "bench", "test-torch", "test-browser"):
            assert f"make {target} " in done.stdout

    def test_make_demo_brings_what_the_demo_needs(self):
        done = subprocess.run(["make", "-n", "-B", "demo"], cwd=ROOT, capture_output=True, text=True, check=True)

        extras = re.search(r'--editable "\.\[(.*)\]"', done.stdout)
        assert extras
        assert {"demo", "fast"} < set(extras[1].split(","))
        assert extras[1].split(",")[0] in ("tensorflow", "tensorflow-cpu")

    def test_make_test_never_asks_for_torch(self):
        done = subprocess.run(["make", "-n", "-B", "test"], cwd=ROOT, capture_output=True, text=True, check=True)

        assert "install_torch" not in done.stdout
        assert "torch" not in re.sub(r'-m "[^"]*"', "", done.stdout)

    def test_ci_runs_what_the_readme_shows_and_every_suite(self):
        script = (ROOT / ".ci" / "run").read_text("utf-8")

        for target in (
            "newcomer",
            "oracles",
            "test",
            "test-matrix",
            "test-programs",
            "test-torch",
            "test-ray",
            "check",
            "test-browser",
            "notebooks",
            "slides",
            "docs",
            "release-try",
            "soak",
            "fuzz",
        ):
            assert re.search(rf"\bmake (-\S+ (\d )?|soak )*{target}\b", script), target

    @pytest.mark.parametrize("missing", ["chromium", "node", "npm"])
    def test_where_it_is_missing_ci_fails_and_a_person_is_told(self, missing, tmp_path):
        """The recipes themselves, with what else they call made empty, on a `PATH` without that program."""
        makefile = (ROOT / "Makefile").read_text("utf-8")
        recipe = {"chromium": "test-browser", "node": "check", "npm": "check"}[missing]
        steps = re.search(rf"^{recipe}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)[1]
        (step,) = (
            each
            for each in re.split(r"(?<!\\)\n(?=\t|$)", steps)
            if "$(LACK)" in each and re.search(rf"\b{missing}\b", each, re.IGNORECASE)
        )
        (tmp_path / "Makefile").write_text("LACK := .ci/lack\nNPM := command -v npm >/dev/null\nit:\n" + step + "\n", "utf-8")
        (tmp_path / ".ci").symlink_to(ROOT / ".ci")
        (tmp_path / "bin").mkdir()
        for name in ("bash", "env", "git", "id", "make", "sh", "true"):
            (tmp_path / "bin" / name).symlink_to(shutil.which(name))
        environment = {"PATH": str(tmp_path / "bin")}

        told = subprocess.run(["make", "it"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        failed = subprocess.run(
            ["make", "it"], cwd=tmp_path, env={**environment, "CI": "true"}, capture_output=True, text=True, check=False
        )

        assert (0, True) == (told.returncode, failed.returncode != 0), told.stderr + failed.stderr
        assert re.search("skipped|left out|not checked", told.stderr)

    def test_what_tests_the_javascript_is_pinned_and_names_no_registry(self):
        folder = ROOT / "tests" / "js"
        lock = json.loads((folder / "package-lock.json").read_text("utf-8"))["packages"]
        pinned = json.loads((folder / "package.json").read_text("utf-8"))["devDependencies"]

        assert pinned == {name: lock[f"node_modules/{name}"]["version"] for name in pinned}
        assert [] == [name for name, each in lock.items() if "resolved" in each or (name and "integrity" not in each)]

    def test_every_test_has_a_target_whatever_its_marks(self):
        makefile = (ROOT / "Makefile").read_text("utf-8")
        chosen = re.findall(r"^\t\$\(PYTEST\).* -m (?:\"([^\"]+)\"|(\w+))(.*)$", self.with_variables(makefile), re.MULTILINE)
        targets = [Expression.compile(quoted or word) for quoted, word, rest in chosen if "tests/" not in rest]
        settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
        marks = ["hypothesis", *(each.partition(":")[0] for each in settings["markers"])]

        assert len(targets) >= 7
        for count in range(len(marks) + 1):
            for names in itertools.combinations(marks, count):
                assert any(each.evaluate(names.__contains__) for each in targets), names

    @staticmethod
    def with_variables(makefile: str) -> str:
        variables = {name: text for name, text in re.findall(r"^(\w+)\s*:=\s*(.*)$", makefile, re.MULTILINE) if name != "PYTEST"}
        while (put := re.sub(r"\$\((\w+)\)", lambda found: variables.get(found[1], f"$[{found[1]}]"), makefile)) != makefile:
            makefile = put
        return makefile.replace("$[", "$(").replace("PYTEST]", "PYTEST)")

    def test_ci_runs_nothing_again_because_it_failed_and_knows_every_skip(self):
        script = (ROOT / ".ci" / "run").read_text("utf-8")
        suites = [line for line in script.splitlines() if re.search(r"\bmake .*\b(test|soak|fuzz)", line)]
        settings = [ROOT / name for name in ("Makefile", "pyproject.toml", "tests/conftest.py", ".github/workflows/tests.yml")]
        texts = [script, *(path.read_text("utf-8") for path in settings)]

        assert len(suites) == len(set(suites)) >= 7
        assert all("--few-skips" in line and "||" not in line for line in suites)
        assert [] == [word for text in texts for word in re.findall(r"reruns?\b|flaky|--last-failed|--lf\b", text)]


# What `tarviz ls` may load of tarviz and of other packages, and what of Python it must not: each of the latter takes as long to
# import as all of ours that read a small shard, or brings others that do.
LS_ROOMS = {"cli", "commands", "formats", "model", "read", "stores"}
LS_PACKAGES = {"click", "google_crc32c", "isal", "numpy", "tarviz", "zstandard"}
LS_WITHOUT = {
    "asyncio", "concurrent", "difflib", "email", "html", "http", "importlib.metadata", "logging", "multiprocessing", "random", "shutil",
    "ssl", "tarviz.formats.example", "tarviz.read.seek_points", "tarviz.read.tfrecords", "tomllib",
}  # fmt: skip


def loaded(code: str) -> set[str]:
    """The heavy packages that are loaded after `code` ran in a fresh interpreter."""
    show = f"\nimport sys; print('LOADED', *(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code + show], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.rpartition("LOADED")[2].split())


class TestLaziness:
    def test_import_tarviz_loads_nothing_heavy(self):
        assert set() == loaded("import tarviz, sys; assert 'numpy' not in sys.modules")

    def test_the_list_of_verbs_loads_no_numpy(self):
        assert set() == loaded("import sys; from tarviz import cli; cli.main(['--help']); assert 'numpy' not in sys.modules")

    @pytest.mark.parametrize("verb", ["ls", "verify", "config", "index"])
    def test_a_verb_of_the_engine_loads_nothing_heavy(self, verb: str, digits: Path):
        argv = ["config"] if verb == "config" else [verb, str(digits / "test-0000.tar")]

        assert set() == loaded(f"from tarviz import cli; assert cli.main({argv!r}) == 0")

    def test_ls_loads_only_what_reads_a_shard(self, digits: Path, tmp_path: Path):
        """In time for an answer of a tenth of a second: what is imported is what takes the time of a small shard."""
        argv = ["ls", str(digits / "test-0000.tar")]
        code = f"""
import click, numpy, sys
before = set(sys.modules)
from tarviz import cli
assert cli.main({argv!r}) == 0
print("LOADED", *sorted(set(sys.modules) - before))
"""
        environment = {**os.environ, "TARVIZ_CACHE_DIR": str(tmp_path), "TARVIZ_CONFIG": "", "XDG_CONFIG_HOME": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        new = done.stdout.rpartition("LOADED")[2].split()

        assert set() == {name.split(".")[1] for name in new if name.startswith("tarviz.")} - LS_ROOMS
        assert set() == {name.split(".")[0] for name in new} - LS_PACKAGES - sys.stdlib_module_names
        assert set() == LS_WITHOUT.intersection(new)

    @pytest.mark.programs
    def test_the_help_of_a_verb_loads_nothing_heavy(self):
        """Of each verb in a child of its own, forked from a process that has loaded nothing yet."""
        code = f"""
import os, sys
from tarviz import cli
for name in {plugins.names("commands")!r}:
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0, name
        continue
    sys.stdout = open(os.devnull, "w")
    done = cli.main([name, "--help"])
    print(name, *(each for each in {HEAVY!r} if each in sys.modules), file=sys.stderr, flush=True)
    os._exit(done)
"""
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)

        assert (0, list(plugins.names("commands"))) == (done.returncode, done.stderr.splitlines())

    def test_reading_records_loads_nothing_heavy(self, digits: Path):
        assert set() == loaded(f"import tarviz; assert len(list(tarviz.records({str(digits / 'test-0000.tar')!r}))) == 297")


class TestWithoutTheTable:
    """The table's packages are optional: without them every verb runs, and a condition says what is missing."""

    BLOCKED = "import sys; sys.modules['pyarrow'] = sys.modules['duckdb'] = None\n"

    def run(self, code: str, tmp_path: Path) -> str:
        done = subprocess.run(
            [sys.executable, "-c", self.BLOCKED + code],
            cwd=ROOT,
            env={**os.environ, "TARVIZ_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode("utf-8", "replace")

    @pytest.mark.parametrize("verb", ["cat", "show", "ls", "split", "tsv", "first", "sort", "verify", "index"])
    def test_a_verb_runs(self, verb: str, digits: Path, tmp_path: Path):
        shard = str(digits / "test-0000.tar")
        out = {
            "cat": ["-o", "a.tar"],
            "sort": ["-o", "a.tar"],
            "split": ["-n", "100", "-o", "a-{}.tar"],
            "tsv": ["-o", "a.tsv", "-f", "cls"],
        }
        argv = [verb, *out.get(verb, []), shard]

        self.run(f"import os; os.chdir({str(tmp_path)!r}); from tarviz import cli; assert cli.main({argv!r}) == 0", tmp_path)

    def test_records_are_read(self, digits: Path, tmp_path: Path):
        shard = str(digits / "test-0000.tar")

        assert "297" == self.run(f"import tarviz; print(len(list(tarviz.records({shard!r}))))", tmp_path).strip()

    def test_a_condition_names_the_extra(self, digits: Path, tmp_path: Path):
        argv = ["cat", "--where", "cls = 3", "-o", str(tmp_path / "a.tar"), str(digits / "test-0000.tar")]
        code = f"import sys; sys.stderr = sys.stdout\nfrom tarviz import cli; assert cli.main({argv!r}) == 2"

        assert "pip install 'tarviz[table]'" in self.run(code, tmp_path)

    def test_the_table_names_the_extra(self, digits: Path, tmp_path: Path):
        shard = str(digits / "test-0000.tar")
        code = f"import tarviz\ntry: tarviz.table({shard!r})\nexcept tarviz.TarvizError as error: print(error)"

        assert "pip install 'tarviz[table]'" in self.run(code, tmp_path)


class TestPublicNames:
    @pytest.mark.parametrize("name", [*tarviz.__all__, *plugins.names("commands")])
    def test_is_there(self, name: str):
        assert getattr(tarviz, name) is not None
        assert name in dir(tarviz)

    def test_an_unknown_name_is_an_attribute_error(self):
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            _ = tarviz.nothing
