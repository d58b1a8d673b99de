from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tarviz.engines import TaskEnd, process_pool
from tarviz.engines.process_pool import Workers
from tarviz.model.errors import DataError, TarvizError
from tests.conftest import wait_until
from tests.engines.jobs import job

pytestmark = pytest.mark.skipif(not process_pool.can_run(), reason="needs POSIX processes")
ROOT = Path(process_pool.__file__).parents[2]


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers import the job by its name."""
    monkeypatch.syspath_prepend(str(ROOT))


class Sent:
    """The number 0, which counts how often it was sent to a worker."""

    times = 0

    def __reduce__(self) -> tuple[type[int], tuple[()]]:
        self.times += 1
        return int, ()


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


class TestWorkers:
    def test_results_come_in_the_order_of_the_tasks(self, tmp_path):
        one, two = tmp_path / "one", tmp_path / "two"
        with Workers(job, 3) as workers:  # the first task ends last
            tasks = [("wait for", two), ("sleep", 0), ("wait for", one), ("touch", one), ("touch", two)]
            found = [value for value, _ in workers.run(tasks)]

        assert [value for _, value in tasks] == found

    def test_each_result_comes_with_its_file(self, tmp_path):
        tasks = [("write", bytes([at]) * (200 - at)) for at in range(20)]  # each shorter than what its file held before
        with Workers(job, 2, spool=str(tmp_path)) as workers:
            for (size, file), (_, data) in zip(workers.run(tasks), tasks, strict=True):
                file.seek(0)
                assert (len(data), data) == (size, file.read())
            assert [] == os.listdir(tmp_path)

    def test_the_first_error_is_raised_in_its_place(self, tmp_path):
        two, three = tmp_path / "two", tmp_path / "three"
        found = []
        with pytest.raises(DataError, match="broken two"), Workers(job, 3) as workers:
            found.extend(value for value, _ in workers.run([("wait for", three), ("fail", two), ("fail", three), ("sleep", 0)]))

        assert [three] == found

    def test_an_error_of_another_kind_keeps_its_class_and_says_where(self):
        with pytest.raises(ZeroDivisionError, match="why") as caught, Workers(job, 1) as workers:
            list(workers.run([("odd", "why")]))

        assert "jobs.py" in caught.value.__notes__[0]

    def test_a_task_that_kills_its_worker_is_tried_again(self, tmp_path):
        with Workers(job, 2) as workers:
            found = [value for value, _ in workers.run([("kill once", str(tmp_path / "mark")), ("sleep", 0)])]

        assert [str(tmp_path / "mark"), 0] == found

    def test_a_task_that_kills_every_worker_is_an_error_that_names_the_signal(self):
        with pytest.raises(TarvizError, match="SIGKILL") as caught, Workers(job, 2) as workers:
            list(workers.run([("sleep", 0), ("kill", None), ("sleep", 0)]))

        assert "E_WORKER" == caught.value.code

    def test_a_task_is_tried_twice_in_all(self):
        sent = Sent()
        with pytest.raises(TarvizError, match=f"{process_pool.TRIES} times"), Workers(job, 1) as workers:
            list(workers.run([("kill", sent)]))

        assert process_pool.TRIES == sent.times

    def test_a_task_that_lost_its_worker_goes_before_those_behind_it(self, tmp_path):
        heard: list[int] = []
        with Workers(job, 1, heard=lambda done: heard.append(done.number)) as workers:
            list(workers.run([("kill once", str(tmp_path / "mark")), ("sleep", 0), ("sleep", 0)]))

        assert [0, 1, 2] == heard

    def test_nothing_behind_a_task_that_failed_is_begun(self, tmp_path):
        gate, behind = tmp_path / "gate", Sent()

        def heard(done: TaskEnd) -> None:
            if done.number == 1:
                gate.touch()

        with pytest.raises(DataError, match="broken one"), Workers(job, 2, heard=heard) as workers:
            list(workers.run([("wait for", gate), ("fail", tmp_path / "one"), ("sleep", behind)]))

        assert 0 == behind.times

    def test_no_worker_stays(self):
        before = children()
        with Workers(job, 2) as workers:
            list(workers.run([("sleep", 0)] * 4))

        def interrupted() -> None:
            with Workers(job, 2) as workers:
                next(workers.run([("sleep", 0), ("sleep", 60), ("sleep", 60)]))
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert before == children()

    def test_one_that_does_not_end_when_it_is_asked_to_is_killed(self, monkeypatch):
        monkeypatch.setattr(process_pool, "_PATIENCE", 0.1)
        before = children()
        with Workers(job, 1) as workers:
            list(workers.run([("deaf", None)]))

        assert before == children()

    def test_workers_have_a_session_of_their_own(self):
        with Workers(job, 1) as workers:
            assert [(True, None)] == list(workers.run([("session", None)]))

    def test_progress_reaches_the_parent(self):
        seen: list[int] = []
        with Workers(job, 1, tick=seen.append) as workers:
            list(workers.run([("tick", 5)]))

        assert 5000 == sum(seen)
        assert len(seen) < 500

    def test_what_a_task_prints_goes_to_stderr(self, capfd):
        with Workers(job, 1) as workers:
            list(workers.run([("print", "hello")]))

        out, err = capfd.readouterr()
        assert ("", True) == (out, "hello" in err)

    def test_a_script_needs_no_main_guard_and_its_functions_travel(self, tmp_path):
        pytest.importorskip("cloudpickle")
        script = tmp_path / "script.py"
        script.write_text(
            "from tarviz.engines.process_pool import Workers\n"
            "def double(task, file, tick): return 2 * task\n"
            "with Workers(double, 2) as workers:\n"
            "    print([value for value, _ in workers.run([1, 2, 3])])\n"
        )

        done = subprocess.run(
            [sys.executable, script], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True
        )

        assert "[2, 4, 6]\n" == done.stdout

    def test_workers_end_when_their_parent_is_killed(self, tmp_path):
        script = tmp_path / "script.py"
        script.write_text(
            "import os, sys, time\n"
            "from tests.engines.jobs import job\n"
            "from tarviz.engines.process_pool import Workers\n"
            "with Workers(job, 2) as workers:\n"
            "    run = workers.run([('sleep', 0), ('talk', 60), ('sleep', 60)])\n"
            "    next(run)\n"
            "    print(*(worker.process.pid for worker in workers._workers), flush=True)\n"
            "    time.sleep(60)\n"
        )
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        pipe = subprocess.PIPE
        with subprocess.Popen([sys.executable, script], stdout=pipe, stderr=pipe, text=True, env=environment) as parent:
            assert parent.stdout is not None
            assert parent.stderr is not None
            pids = parent.stdout.readline().split()
            parent.kill()
            said = parent.stderr.read()

        def alive(pid: str) -> bool:
            return Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]

        assert pids
        wait_until(lambda: not any(alive(pid) for pid in pids))
        assert "" == said
