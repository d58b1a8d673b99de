"""Make a release: `python .ci/release.py 0.2.0` writes the version, names the changelog's section, commits and tags. Nothing is pushed."""

import datetime
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE, CHANGES = ROOT / "tarviz" / "__init__.py", ROOT / "CHANGELOG.md"
LAB = ROOT / "tarviz" / "widgets" / "lab" / "extension" / "package.json"


def released(changes: str, version: str, day: str) -> str:
    """The changelog with its unreleased lines under the new version, and an empty section above them."""
    if not re.search(r"^## Unreleased\n+- ", changes, re.MULTILINE):
        raise SystemExit("CHANGELOG.md has nothing under Unreleased: what would users get?")
    return changes.replace("## Unreleased\n", f"## Unreleased\n\n## {version} ({day})\n", 1)


def main(version: str) -> None:
    if not re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", version):
        raise SystemExit(f"{version!r} is not a version: write 1.2.3 or 1.2.3rc1 (make release VERSION=1.2.3)")
    git = ["git", "-C", str(ROOT)]
    if subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout:
        raise SystemExit("commit first: the work tree has changes")
    if subprocess.run([*git, "rev-parse", "-q", "--verify", f"refs/tags/v{version}"], capture_output=True, check=False).returncode == 0:
        raise SystemExit(f"there is a tag v{version} already")
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    CHANGES.write_text(released(CHANGES.read_text("utf-8"), version, day), "utf-8")
    PACKAGE.write_text(re.sub(r'__version__ = ".*"', f'__version__ = "{version}"', PACKAGE.read_text("utf-8")), "utf-8")
    LAB.write_text(re.sub(r'"version": ".*"', f'"version": "{version}"', LAB.read_text("utf-8")), "utf-8")
    subprocess.run([*git, "commit", "-qam", f"Release {version}"], check=True)
    subprocess.run([*git, "tag", "-a", f"v{version}", "-m", f"tarviz {version}"], check=True)
    sys.stdout.write(f"tagged v{version}; publish it with: git push origin main v{version}\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
