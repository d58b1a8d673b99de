"""What a cluster may lose while it converts two hundred shards: a worker, a node, the driver, a shard (`make test-ray`)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tarviz import cli
from tarviz.commands.convert import convert
from tarviz.ops import Func
from tarviz.outputs import tar_member
from tests.conftest import DATA, wait_until
from tests.engines.conftest import TRIES

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(400), pytest.mark.filterwarnings("ignore")]

ROOT = Path(__file__).parents[2]
SHARDS = 200
RECORDS = 4


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Two hundred shards of four records, and what the local engine makes of them."""
    folder = tmp_path_factory.mktemp("losses")
    (folder / "in").mkdir()
    for shard in range(SHARDS):
        members = [b"".join(tar_member(f"s{shard:03d}-{at}.txt", b"%d" % (shard * at) * 50)) for at in range(RECORDS)]
        (folder / "in" / f"s-{shard:03d}.tar").write_bytes(b"".join(members) + bytes(1024))
    convert(str(folder / "in"), str(folder / "local" / "t-{:03d}.tfrecord"), chain=[Func(lambda record: record)])
    return folder


@pytest.fixture
def folder(inputs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").symlink_to(inputs / "in")
    (tmp_path / "seen").mkdir()
    return tmp_path


def files(folder):
    """Names and bytes of what lies there, hidden files too, but for manifests, which tell of places and times."""
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir()) if not path.name.endswith(".json")}


def noted(record):
    """Note who begins a shard; the one that is to be lost says so in the middle of its shard, and waits for that."""
    name, _, at = record["__key__"].rpartition("-")
    if at == "0":
        with open(f"seen/{name}", "a") as file:
            file.write(f"{os.getpid()}\n")
    if at == "2" and not os.path.exists("lost") and doomed(name):
        own = f"victim.{os.getpid()}"
        Path(own).write_text(f"{os.getpid()} {name}")
        with suppress(FileExistsError):  # another is the one that is lost
            os.link(own, "victim")
            wait_until(lambda: os.path.exists("lost"), 100)
    return record


def doomed(name):
    if os.path.exists("begun"):  # a node is to be lost: not the head, which is the test's own
        return "TARVIZ_TEST_NODE" in os.environ and int(name[1:]) > 50
    return name == "s100"


def begun():
    """How often each shard was begun; the first was once more, to learn what the function gives."""
    counts = Counter({path.name: len(path.read_text().split()) for path in Path("seen").iterdir()})
    counts["s000"] -= 1
    return counts


def victim():
    wait_until(lambda: os.path.exists("victim"), 100)
    process, shard = Path("victim").read_text().split()
    return int(process), shard


@contextmanager
def beside(work):
    """Something done beside a test, whose failure is the test's."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        yield
        done.result()


class TestAWorker:
    def test_killed_in_the_middle_costs_its_shard_alone(self, cluster, inputs, folder):
        def kill():
            process, _ = victim()
            os.kill(process, signal.SIGKILL)
            Path("lost").touch()

        with beside(kill):
            result = convert("in/", "out/t-{:03d}.tfrecord", chain=[Func(noted)], engine="ray", num_workers=2)

        _, shard = victim()
        assert files(inputs / "local") == files("out")
        assert SHARDS * RECORDS == result.report.records
        assert {shard: 2} == {name: count for name, count in begun().items() if count != 1}
        assert SHARDS == len(begun())


def descendants(process):
    found = []
    with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
            found += [int(child), *descendants(child)]
    return found


def to_all(processes, number):
    for process in processes:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            continue


def joined(cluster, number):
    """A node more, of one processor, at 127.0.0.`number`; with the ones before it the cluster has `number` processors then."""
    import ray

    line = [sys.executable, "-m", "ray.scripts.scripts", "start", f"--address={cluster}", f"--node-ip-address=127.0.0.{number}"]
    more = ["--num-cpus=1", "--object-store-memory=80000000", "--include-log-monitor=false", "--block"]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    node = subprocess.Popen([*line, *more], env={**os.environ, "TARVIZ_TEST_NODE": str(number)}, **quiet)
    wait_until(lambda: ray.cluster_resources().get("CPU") == number or node.poll() is not None, 120)
    return node


@pytest.fixture
def nodes(cluster):
    """Two nodes more: with the head, a cluster of three on loopback. Ended with all they began."""
    started = []
    try:
        for number in (3, 4):  # one after the other: at once they take each other's ports
            for _ in range(TRIES):
                started.append(joined(cluster, number))
                if started[-1].poll() is None:
                    break
        there = [node for node in started if node.poll() is None]
        assert 2 == len(there), "a node did not come up"
        yield there
    finally:
        for node in started:
            own = [*descendants(node.pid), node.pid] if node.poll() is None else []
            to_all(own, signal.SIGCONT)
            to_all(own, signal.SIGKILL)
            node.wait()


class TestANode:
    def test_cut_off_in_the_middle_costs_its_shard_alone(self, cluster, inputs, folder, nodes):
        """All its processes are stopped: nothing answers there any more, and no connection is closed, as if a cable were drawn."""
        away = []

        def cut():
            process, _ = victim()
            [node] = [each for each in nodes if process in descendants(each.pid)]
            away.extend([*descendants(node.pid), node.pid])
            to_all(away, signal.SIGSTOP)
            Path("lost").touch()

        Path("begun").touch()
        with beside(cut):
            result = convert("in/", "out/t-{:03d}.tfrecord", chain=[Func(noted)], engine="ray", num_workers=4)

        process, shard = victim()
        assert process in away
        assert files(inputs / "local") == files("out")
        assert SHARDS * RECORDS == result.report.records
        assert {shard: 2} == {name: count for name, count in begun().items() if count != 1}

        # The cable is put back: what was begun there ends, and changes nothing.
        to_all(away, signal.SIGCONT)
        wait_until(lambda: not Path(f"/proc/{process}").exists(), 100)
        assert files(inputs / "local") == files("out")


class TestTheDriver:
    def test_killed_and_run_again_only_missing_shards_are_done(self, cluster, inputs, folder):
        line = [sys.executable, "-m", "tarviz", "convert", "in/", "out/t-{:03d}.tfrecord", "--engine", "ray", "--address", cluster]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        driver = subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            wait_until(lambda: len(list(Path("out").glob("*.json"))) >= 20 or driver.poll() is not None, 120)
            driver.kill()
        finally:
            driver.kill()
            _, said = driver.communicate()
        before = {path.name: path.stat().st_mtime_ns for path in Path("out").glob("*.tfrecord") if Path(f"{path}.manifest.json").exists()}
        assert 20 <= len(before) < SHARDS, said

        again = convert("in/", "out/t-{:03d}.tfrecord", engine="ray", resume=True, num_workers=2)

        kept = {Path(each.url).name for each in again.outputs if each.kept}
        assert set(before) <= kept
        assert len(kept) < SHARDS
        assert before == {name: Path("out", name).stat().st_mtime_ns for name in before}
        assert files(inputs / "local") == {name: data for name, data in files("out").items() if not name.startswith(".")}


POISONED = ("B04-html-error-page", "B08-bad-checksum-first", "B14-trunc-in-data", "B23-pax-len-too-long", "B44-sparse-1TiB-bomb")


class TestAShard:
    @pytest.mark.parametrize("name", POISONED)
    def test_poisoned_stops_no_other(self, cluster, tmp_path, monkeypatch, capsys, name):
        monkeypatch.chdir(tmp_path)
        os.mkdir("in")
        for at in range(5):
            members = b"".join(b"".join(tar_member(f"s{at}-{n}.txt", b"text")) for n in range(3))
            Path(f"in/s-{at}.tar").write_bytes(members + bytes(1024))
        shutil.copy(DATA / "corpora" / "generated" / f"{name}.tar", "in/s-2.tar")

        def run(*more):
            return cli.main(["convert", "in/", *more, "--engine", "ray"]), capsys.readouterr()

        code, said = run("out/t-{}.tfrecord")
        lenient, told = run("skip/t-{}.tfrecord", "--on-error", "skip")

        assert 2 == code
        assert "in/s-2.tar" in said.err
        assert {f"t-{at}.tfrecord" for at in (1, 2, 4, 5)} == set(files("out"))
        assert 1 == lenient
        assert "in/s-2.tar" in told.out + told.err
        assert {f"t-{at}.tfrecord" for at in (1, 2, 3, 4, 5)} == set(files("skip"))
