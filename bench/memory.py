"""Memory while 10 GB stream by: a process makes a tar without end on its standard output, another reads it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench import Figure, Value

TOTAL = 10 * 10**9  # bytes
MEMBER = 1 << 20

_MAKE = """
import os, sys
from tarviz.outputs import tar_header
total, size = int(sys.argv[1]), int(sys.argv[2])
payload, done, number = os.urandom(size), 0, 0
out = sys.stdout.buffer
try:
    while done < total:
        done += out.write(tar_header(f"r/{number:09d}.bin", size)) + out.write(payload) + out.write(bytes(-size % 512))
        number += 1
    out.write(bytes(1024))
except BrokenPipeError:
    os._exit(1)
"""

_READ = """
import re, tarviz
resident = lambda: int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
start = most = count = 0
for count, record in enumerate(tarviz.records("-")):
    len(record["bin"])
    if count == 20:
        start = resident()
    elif count % 50 == 0:
        most = max(most, resident())
print(count, most - start)
"""


def growth(_: Path) -> float:
    """MB that the reader's resident memory grows by between the 20th record and the last, and the largest member on top."""
    root = Path(__file__).resolve().parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    maker = subprocess.Popen([sys.executable, "-c", _MAKE, str(TOTAL), str(MEMBER)], stdout=subprocess.PIPE, env=environment)
    reader = subprocess.run([sys.executable, "-c", _READ], stdin=maker.stdout, stdout=subprocess.PIPE, env=environment, check=True)
    assert maker.stdout is not None
    maker.stdout.close()
    maker.wait()
    count, grown = map(int, reader.stdout.split())
    assert count + 1 >= TOTAL // (MEMBER + 1024)
    return max(grown, 0) / 1e6


FIGURES = [
    Figure("memory-stream", "memory: growth while 10 GB stream by (members of 1 MiB)", Value(growth, "MB"), at_most=65.0),
]  # fmt: skip
