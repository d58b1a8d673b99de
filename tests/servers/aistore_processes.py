"""`Processes`: the small AIStore with its proxy and its targets in processes of their own, so that each can be killed.

What it holds is a folder of buckets: a node that is started again has the objects that it had. `python -m tests.servers.aistore_processes
FOLDER NODE PROXY_PORT T1_PORT T2_PORT` is one node.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from pathlib import Path
from typing import Self

from tests.servers.aistore import NODES, AisObject, Cluster, place_of
from tests.servers.daemons import Daemon, free_port

_ROOT = Path(__file__).parents[2]


class Processes:
    """A cluster that serves the files `bucket/name` of a folder: `url` is its proxy, `nodes` are its processes by name. For reading."""

    def __init__(self, folder: Path) -> None:
        self._ports = {name: free_port() for name in NODES}
        self.url = f"http://127.0.0.1:{self._ports['proxy']}"
        serve = [sys.executable, "-m", "tests.servers.aistore_processes", str(folder)]
        ports = [str(port) for port in self._ports.values()]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))}
        self.nodes = {
            name: Daemon([*serve, name, *ports], f"http://127.0.0.1:{port}/v1/health", env=env) for name, port in self._ports.items()
        }
        self._kept = contextlib.ExitStack()

    def target_of(self, bucket: str, name: str) -> str:
        """The name of the target that has an object."""
        return list(NODES)[1 + place_of(bucket, name, len(NODES) - 1)]

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            for node in self.nodes.values():
                stack.enter_context(node)
            self._kept = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.close()


def main(folder: str, node: str, *ports: str) -> None:
    """Serve one node until the process ends."""
    buckets: dict[str, dict[str, AisObject]] = {path.name: {} for path in Path(folder).iterdir() if path.is_dir()}
    for bucket, objects in buckets.items():
        place = Path(folder, bucket)
        objects |= {path.relative_to(place).as_posix(): AisObject(path.read_bytes()) for path in place.rglob("*") if path.is_file()}
    with Cluster(ports=dict(zip(NODES, map(int, ports), strict=True)), only=node, buckets=buckets):
        threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
