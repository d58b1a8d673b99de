"""A real Ray on loopback, two processors, begun once for all tests of engines and ended by the process that began it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

TRIES = 4
ROOT = Path(__file__).parents[2]


HEAD = """
import sys, time, ray
from ray._private import services

def patient(*words, ask=services.get_node):  # Ray waits 30 s for its own processes, which a busy machine may not start in that time
    for _ in range(60):
        try:
            return ask(*words)
        except RuntimeError:
            time.sleep(0.5)
    return ask(*words)

services.get_node = patient
ray.init(address="local", num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, log_to_driver=False,
         logging_level="error", _temp_dir=sys.argv[1], _node_ip_address="127.0.0.2")
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
ray.shutdown()
"""
SETTINGS = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_agent_register_timeout_ms": "300000",
    # A node that does not answer is given up after about 12 s; Ray's own patience is a minute.
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "4",
    "RAY_grpc_client_keepalive_time_ms": "5000",
    "RAY_grpc_client_keepalive_timeout_ms": "5000",
    "PYTHONPATH": str(ROOT),
}


@pytest.fixture(scope="session")
def cluster():
    """The address of a Ray with two processors, in which this process takes part; of one that is there, if RAY_ADDRESS names it."""
    ray = pytest.importorskip("ray", reason="engine='ray' needs ray")
    folder = tempfile.mkdtemp(prefix="tvr", dir="/tmp")  # sockets have short names
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), contextlib.ExitStack() as stack:
        warnings.simplefilter("ignore")
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        address = os.environ.get("RAY_ADDRESS")
        for _ in range(TRIES if address is None else 0):  # Ray gives up by itself where its own agent is slow to start
            head = subprocess.Popen([sys.executable, "-c", HEAD, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            stack.enter_context(head)
            stack.callback(head.stdin.close)
            if address := head.stdout.readline().strip():
                break
        assert address, f"no Ray came up here in {TRIES} tries"
        ray.init(address=address, log_to_driver=False, logging_level="error")
        yield address
        ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)
