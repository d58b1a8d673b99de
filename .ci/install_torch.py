"""Install the CPU build of torch into the environment that runs this: without it, Linux would get gigabytes of CUDA.

First what lies on this machine (`--no-index`: directories that pip is set up with), then uv, which knows where each build lies.
Where neither has one, pip takes what it finds, unless `--cpu` is given.
"""

import subprocess
import sys

WANTED = "torch>=2.4"


def run(*argv: str) -> bool:
    return subprocess.run([sys.executable, "-m", *argv], check=False).returncode == 0


def install() -> bool:
    quiet = "pip", "install", "--quiet", "--disable-pip-version-check"
    if run(*quiet, "--no-index", WANTED):
        return True
    if run(*quiet, "uv>=0.6") and run("uv", "pip", "install", "--quiet", "--python", sys.executable, "--torch-backend", "cpu", WANTED):
        return True
    return "--cpu" not in sys.argv and run(*quiet, WANTED)


if __name__ == "__main__":
    try:
        import torch  # noqa: F401
    except ImportError:
        sys.exit("--cpu" not in sys.argv if not install() else 0)
