"""`Swift`: OpenStack's object store with its S3 interface, on this machine: four processes, no root, gone at the end of its `with`."""

from __future__ import annotations

import contextlib
import getpass
import importlib.util
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from tests.servers.daemons import Daemon, free_port

KEYS = ("test:tester", "testing")
_SERVERS = ("account", "container", "object", "proxy")
_RUN = """
import sys
from swift.common import utils
utils.SWIFT_CONF_FILE = sys.argv[1] + "/swift.conf"
from swift.common.wsgi import run_wsgi
from swift.obj.server import global_conf_callback
options = {"global_conf_callback": global_conf_callback} if sys.argv[2] == "object" else {}
sys.exit(run_wsgi(f"{sys.argv[1]}/{sys.argv[2]}.conf", f"{sys.argv[2]}-server", **options))
"""
_RINGS = """
import sys
from swift.common.ring import RingBuilder
for name, port in zip(("account", "container", "object"), map(int, sys.argv[2:])):
    builder = RingBuilder(4, 1, 1)
    place = {"ip": "127.0.0.1", "port": port, "replication_ip": "127.0.0.1", "replication_port": port}
    builder.add_dev({"id": 0, "region": 1, "zone": 1, "weight": 1.0, "device": "disk", "meta": "", **place})
    builder.rebalance()
    builder.get_ring().save(f"{sys.argv[1]}/{name}.ring.gz")
"""
_PROXY = """
[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck cache listing_formats s3api tempauth copy slo dlo versioned_writes proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
error_suppression_interval = 1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{nobody}
""" + "".join(
    f"[filter:{name}]\nuse = egg:swift#{name}\n"
    for name in ("catch_errors", "gatekeeper", "healthcheck", "listing_formats", "s3api", "copy", "slo", "dlo", "versioned_writes")
)
_STORAGE = """
[pipeline:main]
pipeline = {name}-server
[app:{name}-server]
use = egg:swift#{name}
"""


def is_installed() -> bool:
    """Whether Swift is there: `pip install swift pyeclib`, or `make oracles`."""
    return importlib.util.find_spec("swift") is not None and importlib.util.find_spec("pyeclib") is not None


class Swift:
    """Serves S3 at `url` to the keys `KEYS`, with what it stores in a folder of its own. `servers` are its processes by name."""

    def __init__(self) -> None:
        self._ports = {name: free_port() for name in _SERVERS}
        self.url = f"http://127.0.0.1:{self._ports['proxy']}"
        self.servers: dict[str, Daemon] = {}
        self._kept = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            self._configure(folder)
            for name, port in self._ports.items():
                argv = [sys.executable, "-W", "ignore", "-c", _RUN, str(folder), name]
                self.servers[name] = Daemon(argv, f"http://127.0.0.1:{port}/healthcheck")
                stack.callback(self.servers[name].close)
            with ThreadPoolExecutor(len(self.servers)) as pool:
                list(pool.map(Daemon.start, self.servers.values()))
            self._kept = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.close()

    def _configure(self, folder: Path) -> None:
        """Settings and rings; one disk, one copy of everything."""
        (folder / "data" / "disk").mkdir(parents=True)
        (folder / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = tarviz\n[storage-policy:0]\nname = one\ndefault = yes\n")
        for name, port in self._ports.items():
            lines = ["[DEFAULT]", "bind_ip = 127.0.0.1", f"bind_port = {port}", "workers = 0", f"user = {getpass.getuser()}"]
            lines += [f"swift_dir = {folder}", f"devices = {folder}/data", "mount_check = false", "disable_fallocate = true"]
            more = _PROXY.format(nobody=free_port()) if name == "proxy" else _STORAGE.format(name=name)
            (folder / f"{name}.conf").write_text("\n".join(lines) + more)
        ports = [str(self._ports[name]) for name in _SERVERS[:3]]
        subprocess.run([sys.executable, "-W", "ignore", "-c", _RINGS, str(folder), *ports], check=True, capture_output=True)
