"""Make a release: `python .ci/release.py 0.2.0` writes the version, names the changelog's section, commits and tags. Nothing is pushed.

`--try` installs the archives of `dist/` in fresh environments, reads a shard with each, and says what a release still lacks.
"""

import datetime
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE, CHANGES, PROJECT = ROOT / "tarviz" / "__init__.py", ROOT / "CHANGELOG.md", ROOT / "pyproject.toml"
LAB = ROOT / "tarviz" / "widgets" / "lab" / "extension" / "package.json"


def released(changes: str, version: str, day: str) -> str:
    """The changelog with its unreleased lines under the new version, and an empty section above them."""
    if re.search(rf"^## {re.escape(version)} \(", changes, re.MULTILINE):
        return changes  # written by hand, as that of the first release
    if not re.search(r"^## Unreleased\n+- ", changes, re.MULTILINE):
        raise SystemExit("CHANGELOG.md has nothing under Unreleased: what would users get?")
    return changes.replace("## Unreleased\n", f"## Unreleased\n\n## {version} ({day})\n", 1)


def lacks(project: str) -> list[str]:
    """What pyproject.toml must have before anything is published."""
    urls = tomllib.loads(project)["project"].get("urls", {})
    return [] if "Repository" in urls else ["[project.urls] of pyproject.toml has no Repository"]


def attempt(archive: Path) -> None:
    """The archive in an environment of its own, away from this folder: its version, and the verbs of the core on a shard."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", f"{folder}/venv"], check=True)
        python = f"{folder}/venv/bin/python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(archive)], check=True)
        code = "import tarviz; tarviz.samples.zoo('data', kinds=('captions',), count=60); print(tarviz.__version__)"
        told = subprocess.run([python, "-c", code], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
        if f"-{told}" not in archive.name:
            raise SystemExit(f"{archive.name} says that it is {told}")
        subprocess.run([python, str(ROOT / ".ci" / "core_verbs.py"), f"{folder}/venv/bin/tarviz", folder], check=True)
    sys.stdout.write(f"{archive.name}: fine\n")


def attempts() -> None:
    archives = sorted((ROOT / "dist").glob("tarviz-*"))
    if {".whl", ".gz"} != {archive.suffix for archive in archives}:
        raise SystemExit("dist/ needs a wheel and a source archive: make dist")
    for archive in archives:
        attempt(archive)
    sys.stdout.writelines(f"before a release: {lack}\n" for lack in lacks(PROJECT.read_text("utf-8")))


def main(version: str) -> None:
    if not re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", version):
        raise SystemExit(f"{version!r} is not a version: write 1.2.3 or 1.2.3rc1 (make release VERSION=1.2.3)")
    if missing := lacks(PROJECT.read_text("utf-8")):
        raise SystemExit("; ".join(missing))
    git = ["git", "-C", str(ROOT)]
    if subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout:
        raise SystemExit("commit first: the work tree has changes")
    if subprocess.run([*git, "rev-parse", "-q", "--verify", f"refs/tags/v{version}"], capture_output=True, check=False).returncode == 0:
        raise SystemExit(f"there is a tag v{version} already")
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    CHANGES.write_text(released(CHANGES.read_text("utf-8"), version, day), "utf-8")
    PACKAGE.write_text(re.sub(r'__version__ = ".*"', f'__version__ = "{version}"', PACKAGE.read_text("utf-8")), "utf-8")
    LAB.write_text(re.sub(r'"version": ".*"', f'"version": "{version}"', LAB.read_text("utf-8")), "utf-8")
    subprocess.run([*git, "commit", "--allow-empty", "-qam", f"Release {version}"], check=True)
    subprocess.run([*git, "tag", "-a", f"v{version}", "-m", f"tarviz {version}"], check=True)
    sys.stdout.write(f"tagged v{version}; publish it with: git push origin main v{version}\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--try"]:
        attempts()
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else "")
