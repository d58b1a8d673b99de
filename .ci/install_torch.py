"""Install the CPU build of torch into the environment that runs this: without it, Linux would get gigabytes of CUDA.

First the wheel that pip is set up to find on this machine (`--no-index`), then what it needs from wherever pip finds that; else uv,
which knows where each build lies. Where neither has one, pip takes what it finds, unless `--cpu` is given.
"""

import subprocess
import sys

WANTED = "torch>=2.4"
QUIET = "pip", "install", "--quiet", "--disable-pip-version-check"


def run(*argv: str) -> bool:
    return subprocess.run([sys.executable, "-m", *argv], check=False).returncode == 0


def install() -> bool:
    # The second call finds torch there and brings what is missing of its own needs.
    if run(*QUIET, "--no-index", "--no-deps", WANTED) and run(*QUIET, WANTED):
        return True
    if run(*QUIET, "uv>=0.6") and run("uv", "pip", "install", "--quiet", "--python", sys.executable, "--torch-backend", "cpu", WANTED):
        return True
    return "--cpu" not in sys.argv and run(*QUIET, WANTED)


if __name__ == "__main__":
    try:
        import torch  # noqa: F401
    except ImportError:
        sys.exit(not install())
