"""Loops fed by a cluster of three nodes on loopback (`make test-ray`)."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tarviz.ops import Func
from tarviz.pipeline import Pipeline
from tarviz.samples import write_shard
from tests.conftest import wait_until
from tests.engines.test_ray_losses import descendants, nodes, to_all

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(400), pytest.mark.filterwarnings("ignore")]

__all__ = ["nodes"]  # a fixture


def test_a_node_killed_in_the_middle_costs_no_record(cluster, nodes, tmp_path):
    for at in range(3):
        write_shard(tmp_path / f"n-{at}.tar", [(f"r{n:04d}", {"cls": b"%d" % n}) for n in range(200 * at, 200 * at + 200)])

    def slow(record):
        (tmp_path / f"node-{os.environ.get('TARVIZ_TEST_NODE', 'head')}").touch()
        time.sleep(0.02)
        if record["__key__"] == "r0010":  # of the first task; the node has one of the others
            wait_until((tmp_path / "node-3").exists, 100)

    given = Pipeline(str(tmp_path / "n-{0..2}.tar"), [Func(slow)], select="cls")
    found = []
    for at, number in enumerate(given.eager(engine="ray", num_workers=4, send_functions=True)):
        found.append(int(number))
        if at == 100:
            away = [*descendants(nodes[0].pid), nodes[0].pid]
            to_all(away, signal.SIGKILL)

    assert list(range(600)) == found
    assert {"node-3", "node-head"} <= {path.name for path in tmp_path.glob("node-*")}
