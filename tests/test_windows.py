"""Local shards are read where Python lacks what only Unix has. No Windows is at hand: these names are taken away."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHARD = "tests/data/dali/pax.tar"
ABSENT = """
import os, signal, sys
gone = "pread preadv pwrite writev sendfile copy_file_range posix_fadvise fork register_at_fork sched_getaffinity geteuid killpg setsid"
gone += " O_CLOEXEC O_NOFOLLOW O_DIRECTORY O_NONBLOCK statvfs fchmod mkfifo getpgid getuid"
for name in gone.split():
    vars(os).pop(name, None)
for name in ("SIGKILL", "SIGHUP", "SIGPIPE", "SIGALRM", "pthread_sigmask"):
    vars(signal).pop(name, None)
sys.modules |= dict.fromkeys(("fcntl", "termios", "pwd", "grp", "resource", "pty", "tty"))
"""


def without(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", ABSENT + code], capture_output=True, text=True, cwd=ROOT, timeout=100)
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


def test_records_are_read():
    code = f"import tarviz\nprint(*[record.key for record in tarviz.records({SHARD!r})][:2])"

    assert "data/000 data/001\n" == without(code)


def test_records_are_read_by_number():
    assert "data/003\n" == without(f"import tarviz\nprint(tarviz.index({SHARD!r})[3].key)")


@pytest.mark.parametrize("verb", ["ls", "show", "verify", "index"])
def test_a_verb_looks_at_a_shard(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    code = f"sys.argv = ['tarviz', {verb!r}, {SHARD!r}]\nfrom tarviz.__main__ import run\nassert not run()"

    assert without(code)
