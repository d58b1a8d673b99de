"""`tarviz`, and `python -m tarviz`: the command line in a process of its own, which answers as soon as it can."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress

_SPIN = "OPENBLAS_THREAD_TIMEOUT"


def run() -> int:
    """Run the command line of this process and return its exit code.

    A third of what a small verb takes would be spent for nothing. Python's collector looks again and again through what imports make,
    all of which stays, and once more at the end: it waits until the verb is there, and leaves that alone. The threads that NumPy's
    OpenBLAS starts spin for a tenth of a second, waiting for work that never comes: they sleep at once.
    """
    gc.disable()
    if ours := _SPIN not in os.environ:
        os.environ[_SPIN] = "4"  # 2⁴ cycles, the least it takes
    try:
        from tarviz.cli import entry

        with suppress(Exception):  # main() meets it again, and says what it is
            entry.load_verb(sys.argv[1:])
    except KeyboardInterrupt:
        return 130
    finally:
        if ours:
            del os.environ[_SPIN]  # processes that a verb starts do as they like
        gc.freeze()
        gc.enable()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name) or open(os.devnull, "w")  # noqa: SIM115 - closed by whoever called
        stream.reconfigure(errors="backslashreplace")  # × and … where it is no UTF-8, as a pipe on Windows
        setattr(sys, name, stream)
    return entry.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
