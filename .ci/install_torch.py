"""Install the CPU build of torch into the environment that runs this: without it, Linux would get gigabytes of CUDA.

uv knows where each build lies. Where uv cannot reach that place, pip takes what it is set up for, unless `--cpu` is given.
"""

import subprocess
import sys

WANTED = "torch>=2.4"


def run(*argv: str) -> bool:
    return subprocess.run([sys.executable, "-m", *argv], check=False).returncode == 0


if __name__ == "__main__":
    try:
        import torch  # noqa: F401
    except ImportError:
        quiet = "pip", "install", "--quiet", "--disable-pip-version-check"
        if not (
            run(*quiet, "uv>=0.6") and run("uv", "pip", "install", "--quiet", "--python", sys.executable, "--torch-backend", "cpu", WANTED)
        ):
            sys.exit("--cpu" in sys.argv or not run(*quiet, WANTED))
