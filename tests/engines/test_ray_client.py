"""Loops fed through Ray's client: a real head with a client server, reached by processes that are no part of the cluster."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tarviz.samples import write_shard
from tests.engines.conftest import SETTINGS, TRIES
from tests.servers.daemons import free_port

pytest.importorskip("ray", reason="engine='ray' needs ray")
pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(400)]

LOOPS = Path(__file__).with_name("client_loops.py")


def begun(folder: str, port: int) -> subprocess.Popen[bytes] | None:
    """A head of two processors with a client server at that port; None where it does not come up."""
    line = [
        sys.executable,
        "-m",
        "ray.scripts.scripts",
        "start",
        "--head",
        "--node-ip-address=127.0.0.6",
        f"--temp-dir={folder}",
        "--block",
    ]
    more = [f"--port={free_port()}", f"--ray-client-server-port={port}", "--num-cpus=2", "--object-store-memory=100000000"]
    quiet = ["--block", "--include-dashboard=false", "--include-log-monitor=false"]
    head = subprocess.Popen([*line, *more, *quiet], env=environment(), stdout=subprocess.PIPE)
    assert head.stdout is not None
    for said in head.stdout:
        if b"Ray runtime started" in said:
            return head
    stop(head, folder)
    head.wait()
    return None


def stop(head: subprocess.Popen[bytes], folder: str) -> None:
    """End a head and all that it began: these name its folder."""
    head.kill()
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if folder.encode() in place.read_bytes():
                os.kill(int(place.parent.name), signal.SIGKILL)


def environment() -> dict[str, str]:
    return {**{name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}, **SETTINGS}


@pytest.fixture(scope="module")
def address():
    """A cluster of its own, reached at `ray://`; ended with all that it began."""
    folder, port = tempfile.mkdtemp(prefix="tvc", dir="/tmp"), free_port()
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        head = next((head for _ in range(TRIES) if (head := begun(folder, port)) is not None), None)
        assert head is not None, f"no Ray came up here in {TRIES} tries"
        stack.enter_context(head)
        stack.callback(stop, head, folder)
        yield f"ray://127.0.0.6:{port}"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Three shards of 90, 7 and 40 small pictures; `cls` counts from 0."""
    from tests.engines.test_ray_streams import pictured

    return pictured(tmp_path_factory.mktemp("pictures"))


def loops(address, shards, cases, folder):
    line = [sys.executable, LOOPS, address, shards, ",".join(cases), folder]
    for _ in range(TRIES):
        run = subprocess.run(line, env=environment(), capture_output=True, text=True, timeout=300, check=False)
        if "Starting Ray client server failed" not in run.stderr:  # Ray gives it 30 s to come up, which a busy machine may not
            break
    assert 0 == run.returncode, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


class TestLoops:
    def test_values_and_order_are_those_of_this_process(self, address, pictures, tmp_path):
        cases = ["eager", "shuffle"]
        cases += [case for case, package in (("torch", "torch"), ("tf", "tensorflow")) if importlib.util.find_spec(package)]

        for here, away in loops(address, pictures, cases, tmp_path):
            assert here
            assert here == away

    def test_killed_workers_lose_and_double_nothing(self, address, pictures, tmp_path):
        [(here, away)] = loops(address, pictures, ["killed"], tmp_path)

        assert here == away
        assert 137 == len(away)
        assert len(list(tmp_path.glob("pid-*"))) > 1  # others went on

    def test_loops_may_be_left_and_stand_in_loops_and_an_error_comes_in_its_place(self, address, pictures, tmp_path):
        (first, outer, inner), (before, words) = loops(address, pictures, ["left", "wrong"], tmp_path)

        assert [0, 1, 2] == first
        assert list(range(137)) == outer == inner
        assert list(range(60)) == before
        assert "nothing" in words

    def test_verbs_write_what_they_write_here(self, address, pictures, tmp_path):
        from tarviz.commands.convert import convert

        write_shard(tmp_path / "a.tar", [(f"k{at}", {"txt": b"%d" % at}) for at in range(30)])
        line = [sys.executable, "-m", "tarviz", "convert", "a.tar", "there.tfrecord", "--engine", "ray", "--address", address, "-q"]
        subprocess.run(line, env=environment(), cwd=tmp_path, check=True, timeout=200, stdout=subprocess.DEVNULL)
        convert(tmp_path / "a.tar", tmp_path / "here.tfrecord")

        assert (tmp_path / "here.tfrecord").read_bytes() == (tmp_path / "there.tfrecord").read_bytes()
