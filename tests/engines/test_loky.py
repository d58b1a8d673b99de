"""Why `local` has a pool of its own: what loky, the pool that joblib uses, does with the same jobs, each held against ours."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tarviz.engines import process_pool
from tarviz.engines.process_pool import Workers
from tests.engines.jobs import job

loky = pytest.importorskip("loky", reason="what loky does: pip install loky")
pytestmark = [
    pytest.mark.skipif(not process_pool.can_run(), reason="needs POSIX processes"),
    pytest.mark.filterwarnings("ignore:A worker stopped while some jobs were given"),
]
ROOT = Path(process_pool.__file__).parents[2]


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture
def pool():
    executor = loky.ProcessPoolExecutor(2)
    yield executor
    executor.shutdown(wait=True, kill_workers=True)


def quiet(task):
    return job(task, None, lambda size: None)


class TestALostWorker:
    """A worker that the system ends (memory) costs its task a second try; loky gives up every task that is under way."""

    def test_breaks_the_pool_of_loky(self, pool, tmp_path):
        mark = tmp_path / "go"
        tasks = [("wait for", mark), ("kill", None), ("sleep", 0)]
        one, _, other = [pool.submit(quiet, task) for task in tasks]
        try:
            with pytest.raises(loky.process_executor.TerminatedWorkerError):
                one.result(60)
            with pytest.raises(loky.process_executor.BrokenProcessPool):
                other.result(60)
            with pytest.raises(loky.process_executor.BrokenProcessPool):
                pool.submit(quiet, ("sleep", 0)).result(60)
        finally:
            mark.touch()

    def test_costs_ours_one_try(self, tmp_path):
        tasks = [("sleep", 0), ("kill once", str(tmp_path / "mark")), ("sleep", 0), ("sleep", 0)]
        with Workers(job, 2) as workers:
            assert [value for _, value in tasks] == [value for value, _ in workers.run(tasks)]


class TestAFileOfATask:
    """What a shard becomes goes through an unnamed file of the folder of the outputs, which leaves nothing behind; loky sends pickles."""

    def test_does_not_reach_a_worker_of_loky(self, pool, tmp_path):
        with open(tmp_path / "spool", "w+b") as file, pytest.raises(Exception, match="pickle"):
            pool.submit(os.fstat, file).result(60)

    def test_reaches_ours(self, tmp_path):
        with Workers(job, 2, spool=str(tmp_path)) as workers:
            [(_, file)] = [(size, os.pread(file.fileno(), 9, 0)) for size, file in workers.run([("write", b"as it was")])]

        assert b"as it was" == file
        assert [] == os.listdir(tmp_path)


SCRIPT = """
import sys
from tests.engines.jobs import job
from tests.engines.test_loky import quiet
if sys.argv[1] == "loky":
    import loky
    with loky.ProcessPoolExecutor(1) as pool:
        pool.submit(quiet, ("print", "from a task")).result()
else:
    from tarviz.engines.process_pool import Workers
    with Workers(job, 1) as workers:
        list(workers.run([("print", "from a task")]))
"""


class TestWhatATaskPrints:
    """A tar on standard output (`tarviz proc … > x.tar`) must not hold what a function prints."""

    @pytest.mark.parametrize(("name", "expected"), [("loky", "from a task\n"), ("ours", "")])
    def test_goes_to_standard_output_with_loky_alone(self, name, expected):
        line = [sys.executable, "-c", SCRIPT, name]
        done = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, timeout=100, check=True)

        assert expected == done.stdout


class TestCtrlC:
    """A terminal sends it to every process of its group: ours are in none of it, and their parent ends them."""

    def test_reaches_workers_of_loky(self, pool):
        assert os.getpgid(os.getpid()) == pool.submit(os.getpgid, 0).result(60)
        assert signal.SIG_IGN != pool.submit(signal.getsignal, signal.SIGINT).result(60)

    def test_does_not_reach_ours(self):
        with Workers(job, 1) as workers:
            assert [(True, None)] == list(workers.run([("session", None)]))
