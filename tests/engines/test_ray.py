"""Tasks on Ray: a real Ray on loopback, two processors, ended by the process that began it (`make test-ray`)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tarviz import engines
from tarviz.commands.cat import cat
from tarviz.commands.convert import convert
from tarviz.commands.index import index
from tarviz.commands.pcat import pcat
from tarviz.commands.proc import proc
from tarviz.commands.sort import sort
from tarviz.commands.split import split
from tarviz.commands.sql import sql
from tarviz.commands.tsv import tsv
from tarviz.commands.verify import verify
from tarviz.model.errors import DataError, TarvizError, UsageError
from tarviz.ops import Func
from tarviz.outputs import tar_member
from tests.pieces import small_pieces

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(400), pytest.mark.filterwarnings("ignore")]

ROOT = Path(__file__).parents[2]
SHARDS = 6


def put(path, first, count, cut=None):
    members = [
        b"".join([*tar_member(f"n{at:03d}.txt", b"%d" % at * 50), *tar_member(f"n{at:03d}.cls", b"%d" % (7 * at % 5))])
        for at in range(first, first + count)
    ]
    path.write_bytes((b"".join(members) + bytes(1024))[:cut])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for shard in range(SHARDS):
        put(tmp_path / "in" / f"s-{shard}.tar", 100 * shard, 10 + shard)
    return tmp_path


def files(folder):
    """Names and bytes of what lies in a folder, hidden files too; manifests without what tells of places and times."""
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir()) if not path.name.endswith(".json")}


def killer(key):
    """A function that notes each record it is given, and kills its worker at the first look at that of `key`."""

    def mark(record):
        with open(f"seen-{record['__key__']}", "a") as file:
            file.write("x")
        if record["__key__"] == key and not os.path.exists("killed"):
            open("killed", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return record

    return mark


def seen_twice():
    """Notes of the records that were worked on more than once."""
    twice = {name for name in os.listdir() if name.startswith("seen-") and os.path.getsize(name) > 1}
    return twice - {"seen-n000"}  # once to learn what the function gives


class TestEngine:
    def test_results_come_in_the_order_of_the_tasks(self, cluster):
        def job(task, file, tick):
            time.sleep(0.3 if task == 0 else 0)
            tick(task)
            return task * 10

        ticks = []
        with engines.start("ray", job, engines.EnginePlan(2, tick=ticks.append)) as engine:
            found = [value for value, _ in engine.run(range(5))]

        assert [0, 10, 20, 30, 40] == found
        assert 10 == sum(ticks)

    def test_each_result_comes_with_its_file(self, cluster, tmp_path):
        def job(task, file, tick):
            file.write(bytes([task]) * task)

        with engines.start("ray", job, engines.EnginePlan(1, spool=str(tmp_path))) as engine:
            found = []
            for _, file in engine.run(range(4)):
                file.seek(0)
                found.append(file.read())

        assert [b"", b"\1", b"\2\2", b"\3\3\3"] == found

    def test_the_first_error_is_raised_in_its_place(self, cluster, tmp_path):
        def job(task, file, tick):
            (tmp_path / str(task)).touch()
            if task in (1, 2):
                raise DataError(f"task {task}")
            return task

        found = []
        with pytest.raises(DataError, match="task 1"), engines.start("ray", job, engines.EnginePlan(1)) as engine:
            found += [value for value, _ in engine.run(range(9))]

        assert [] == found
        assert not (tmp_path / "8").exists()

    def test_a_task_whose_worker_is_killed_is_done_again(self, cluster, tmp_path):
        def job(task, file, tick):
            mark = tmp_path / str(task)
            if task == 1 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return task

        with engines.start("ray", job, engines.EnginePlan(2)) as engine:
            assert [0, 1, 2] == [value for value, _ in engine.run(range(3))]
            assert 1 == engine.lost

    def test_a_task_that_kills_every_worker_is_an_error(self, cluster):
        def job(task, file, tick):
            os.kill(os.getpid(), signal.SIGKILL)

        with (
            pytest.raises(TarvizError, match="E_WORKER: the worker was lost 3 times"),
            engines.start("ray", job, engines.EnginePlan(1)) as engine,
        ):
            list(engine.run(range(1)))

    def test_options_and_folder_are_those_of_who_asks(self, cluster, tmp_path, monkeypatch):
        def job(task, file, tick):
            from tarviz.model import config

            return config.options().max_ratio, os.getcwd()

        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("TARVIZ_MAX_RATIO", "77")
        with engines.start("ray", job, engines.EnginePlan(1)) as engine:
            assert [(77, str(tmp_path))] == [value for value, _ in engine.run([0])]

    def test_an_error_leaves_no_task_at_work(self, cluster, tmp_path):
        def job(task, file, tick):
            if task == 0:
                while not (tmp_path / "begun").exists():
                    time.sleep(0.01)
                raise ValueError("over")
            try:
                (tmp_path / "begun").touch()
                time.sleep(60)
            finally:
                (tmp_path / "cleared").touch()

        with pytest.raises(ValueError, match="over"), engines.start("ray", job, engines.EnginePlan(2)) as engine:
            list(engine.run(range(2)))

        assert (tmp_path / "cleared").exists()


OUTPUTS = {
    "each": {"out": "t-{}.tfrecord"},
    "size": {"out": "t-{:03d}.tfrecord", "max_shard_size": "2kB"},
    "size-plain": {"out": "t.tfrecord", "max_shard_size": "3kB"},
    "one": {"out": "t.tfrecord"},
    "chain": {"out": "t-{}.tfrecord", "chain": "keep(txt)", "select": {"text": "txt"}, "compression": "gzip"},
}


class TestConvert:
    @pytest.mark.parametrize("workers", [1, 2])
    @pytest.mark.parametrize("options", OUTPUTS.values(), ids=OUTPUTS)
    def test_bytes_are_those_of_the_local_engine(self, cluster, folder, options, workers):
        options = dict(options)
        out = options.pop("out")
        expected = convert("in/", f"local/{out}", **options)

        found = convert("in/", f"ray/{out}", engine="ray", num_workers=workers, **options)

        assert files("local") == files("ray")
        assert expected.report.to_dict() == found.report.to_dict()
        assert [each.records for each in expected.outputs] == [each.records for each in found.outputs]

    @pytest.mark.parametrize("workers", [1, 2])
    @pytest.mark.parametrize("options", OUTPUTS.values(), ids=OUTPUTS)
    def test_a_large_shard_is_shared_to_the_same_bytes(self, cluster, folder, monkeypatch, options, workers):
        options = dict(options)
        out = options.pop("out")
        put(folder / "in" / "s-2.tar", 200, 90)
        expected = convert("in/", f"local/{out}", **options)
        cuts = small_pieces(monkeypatch, 16 << 10)

        found = convert("in/", f"ray/{out}", engine="ray", num_workers=workers, **options)

        alone = workers == 1 and "{}" in out  # nobody would wait for it
        assert cuts == [(0, 0)] if alone else cuts[0][1] > 5
        assert files("local") == files("ray")
        assert expected.report.to_dict() == found.report.to_dict()

    @pytest.mark.parametrize("out", ["t-{}.tfrecord", "t.tfrecord"])
    def test_a_killed_worker_costs_its_range_alone(self, cluster, folder, monkeypatch, out):
        put(folder / "in" / "s-2.tar", 200, 90)
        convert("in/", f"local/{out}", chain=[Func(lambda record: record)])
        cuts = small_pieces(monkeypatch, 16 << 10)

        convert("in/", f"ray/{out}", chain=[Func(killer("n243"))], engine="ray", num_workers=2)

        twice = seen_twice()
        assert cuts[0][1] > 5
        assert files("local") == files("ray")
        assert "seen-n243" in twice
        assert len(twice) < 15

    def test_run_again_ranges_make_what_is_missing(self, cluster, folder, monkeypatch):
        put(folder / "in" / "s-2.tar", 200, 90)
        small_pieces(monkeypatch, 16 << 10)
        options = {"max_shard_size": "3kB", "engine": "ray"}
        first = convert("in/", "ray/t-{:03d}.tfrecord", **options)
        before = files("ray")
        os.unlink(first[4])

        again = convert("in/", "ray/t-{:03d}.tfrecord", resume=True, **options)

        assert [True] * 4 + [False] == [each.kept for each in again.outputs[:5]]
        assert before == files("ray")

    def test_a_killed_worker_costs_its_shard_alone(self, cluster, folder):
        convert("in/", "local/t-{}.tfrecord", chain=[Func(lambda record: record)])
        convert("in/", "ray/t-{}.tfrecord", chain=[Func(killer("n203"))], engine="ray", num_workers=2)

        twice = seen_twice()
        assert files("local") == files("ray")
        assert twice == {f"seen-n20{at}" for at in range(4)}

    @pytest.mark.parametrize("damage", ["truncated", "not-tar", "header"])
    def test_a_poisoned_shard_does_not_stop_the_others(self, cluster, folder, damage):
        shard = folder / "in" / "s-2.tar"
        data = shard.read_bytes()
        shard.write_bytes({"truncated": data[:3000], "not-tar": b"x" * 4000, "header": data[:2048] + b"?" * 512 + data[2560:]}[damage])

        with pytest.raises(DataError, match=r"s-2\.tar"):
            convert("in/", "ray/t-{}.tfrecord", engine="ray")
        skipped = convert("in/", "skip/t-{}.tfrecord", engine="ray", on_error="skip")

        assert {f"t-{at}.tfrecord" for at in (1, 2, 4, 5, 6)} == set(files("ray"))
        assert SHARDS == len(files("skip"))
        assert 1 == skipped.exit_code
        assert {"in/s-2.tar"} == {fault.shard for fault in skipped.report.skipped}

    def test_run_again_only_what_is_missing_is_done(self, cluster, folder):
        convert("in/", "ray/t-{}.tfrecord", engine="ray")
        before = {path: path.stat().st_mtime_ns for path in (folder / "ray").glob("*.tfrecord")}
        os.unlink("ray/t-3.tfrecord")
        (folder / "ray" / "t-5.tfrecord").write_bytes(b"other")

        again = convert("in/", "ray/t-{}.tfrecord", engine="ray", resume=True)

        assert [True, True, False, True, False, True] == [each.kept for each in again.outputs]
        assert 4 == sum(path.stat().st_mtime_ns == stamp for path, stamp in before.items())

    def test_standard_streams_stay_here(self, cluster, folder):
        with pytest.raises(UsageError, match="of this process alone"):
            convert("-", "t-{}.tfrecord", engine="ray")


VERBS = {
    "cat": cat,
    "pcat": pcat,
    "split": lambda urls, out, **more: split(urls, out, count=4, **more),
    "split-size": lambda urls, out, **more: split(urls, out, size=9000, **more),
    "proc": lambda urls, out, **more: proc(urls, out, command="tr 0-9 a-j < sample.txt > sample.low", **more),
    "proc-chain": lambda urls, out, **more: proc(urls, out, op="keep(txt)", **more),
    "sort": lambda urls, out, **more: sort(urls, out, shuffle=True, seed=3, **more),
    "tsv": lambda urls, out, **more: tsv(urls, out, fields="cls", **more),
}


class TestVerbs:
    @pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
    def test_bytes_are_those_of_the_local_engine(self, cluster, folder, verb):
        os.mkdir("local")
        os.mkdir("ray")
        expected = verb("in/", "local/x-{}.out")

        found = verb("in/", "ray/x-{}.out", engine="ray")

        assert files("local") == files("ray")
        assert expected.records == found.records
        assert expected.report.to_dict() == found.report.to_dict()

    def test_run_again_only_what_is_missing_is_done(self, cluster, folder):
        sort("in/", "x-{}.tar", engine="ray")
        stamp = os.stat("x-1.tar").st_mtime_ns
        os.unlink("x-4.tar")

        result = sort("in/", "x-{}.tar", engine="ray", resume=True)

        assert stamp == os.stat("x-1.tar").st_mtime_ns
        assert [10 + at for at in range(SHARDS)] == [tar.records for tar in result.outputs]

    def test_verify_and_index_find_the_same(self, cluster, folder, monkeypatch):
        put(folder / "in" / "s-3.tar", 300, 9, cut=9000)
        expected, one = verify("in/"), index("in/", cache=False)
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(folder / "cache"))

        found, other = verify("in/", engine="ray"), index("in/", engine="ray")

        assert expected.to_dict() == found.to_dict()
        assert one.to_dict() == other.to_dict()
        assert list(one.keys()) == list(other.keys())

    def test_a_table_has_the_same_rows(self, cluster, folder, monkeypatch):
        pytest.importorskip("duckdb", reason="tables need the extra table")
        query = "SELECT shard, key, n, size, txt, cls, txt.checksum FROM records ORDER BY ALL"
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(folder / "one"))
        expected = sql(query, "in/")
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(folder / "other"))

        found = sql(query, "in/", engine="ray")

        assert expected.to_dict() == found.to_dict()
        assert expected.rows

    def test_one_output_of_all_shards_is_refused(self, cluster, folder):
        with pytest.raises(UsageError, match="one output of all shards"):
            cat("in/", "x.tar", engine="ray")


def tarviz(*words, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "tarviz", *words], env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, **options
    )


class TestShell:
    def test_a_command_line_joins_the_cluster(self, cluster, folder):
        run = tarviz("convert", "in/", "out/t-{}.tfrecord", "--engine", "ray", "--address", cluster, "--json")
        output, errors = run.communicate(timeout=100)

        assert 0 == run.returncode, errors
        assert SHARDS == len(json.loads(output)["outputs"])

    def test_an_interrupt_leaves_nothing_half_written(self, cluster, folder):
        line = "touch $PWD/../../begun 2>/dev/null; : > " + str(folder / "begun") + "; sleep 60"
        run = tarviz("proc", "in/", "-o", str(folder / "x-{}.tar"), "-c", line, "--engine", "ray", "--address", cluster)
        try:
            limit = time.monotonic() + 100
            while not (folder / "begun").exists() and time.monotonic() < limit and run.poll() is None:
                time.sleep(0.05)
            run.send_signal(signal.SIGINT)
            _, errors = run.communicate(timeout=60)
        finally:
            run.kill()
            run.wait()

        assert (folder / "begun").exists(), errors
        assert 130 == run.returncode, errors
        assert ["begun", "in"] == sorted(os.listdir())


class TestNotebook:
    def test_the_table_of_a_magic_is_what_the_saved_notebook_holds(self, cluster, folder):
        nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
        line = f"%tarviz convert in/ 'out/t-{{}}.tfrecord' --engine ray --address {cluster}"
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(f"%load_ext tarviz\n{line}")])

        nbclient.NotebookClient(notebook, timeout=200, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()

        shown = [each["data"] for each in notebook.cells[0].outputs if each["output_type"] == "display_data"]
        [table] = [data for data in shown if data.get("text/plain", "").startswith("convert: ")]
        assert f"{SHARDS} of {SHARDS} shards" in table["text/plain"]
        assert " done after " in table["text/plain"]
        assert "<td>all</td>" in table["text/html"]
