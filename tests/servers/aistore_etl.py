"""`Pods`: transformers of the small AIStore, each a process that runs the class it was given, as the runtime of a pod does."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import sys
import threading
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

from tests.servers.aistore import AisCall, Problem
from tests.servers.daemons import Daemon, free_port

_ROOT = Path(__file__).parents[2]
_RUNTIME = """
import base64, os, pickle
kind = pickle.loads(base64.b64decode(os.environ["ETL_CLASS_PAYLOAD"]))
kind(host="127.0.0.1", port=int(os.environ["PORT"])).start()
"""


@dataclass
class _Pod:
    spec: dict[str, object]
    port: int
    process: ExitStack


class Pods:
    """The transformers by name: begun by `PUT etl`, ended by `stop`, forgotten by `DELETE`; objects are pushed to them (`hpush`)."""

    def __init__(self) -> None:
        self.running: dict[str, _Pod] = {}
        self.specs: dict[str, dict[str, object]] = {}
        self._lock = threading.Lock()

    def answer(self, call: AisCall, target: str) -> bytes:
        """What the proxy answers to a request below `etl`."""
        name, action = call.bucket, call.name
        if call.method == "PUT" and not name:
            return self._begin(call.message, target)
        if call.method == "GET" and not name:
            return json.dumps([{"id": each} for each in self.specs]).encode()
        if name not in self.specs:
            raise Problem(404, f"etl {name!r} does not exist")
        if call.method == "GET":
            return json.dumps({"init_msg": self.specs[name]}).encode()
        if call.method == "POST" and action == "stop":
            with self._lock:
                if (pod := self.running.pop(name, None)) is not None:
                    pod.process.close()
        elif call.method == "DELETE":
            if name in self.running:
                raise Problem(409, f"etl {name!r} is running")
            del self.specs[name]
        else:
            raise Problem(400, f"invalid action {action!r}")
        return b""

    def _begin(self, spec: dict[str, object], target: str) -> bytes:
        name = str(spec["name"])
        if name in self.specs:
            raise Problem(409, f"etl {name!r} already exists")
        if spec["communication"] != "hpush://":
            raise Problem(400, f"invalid communication type {spec['communication']!r}")
        runtime = spec["runtime"]
        assert isinstance(runtime, dict)
        port, path = free_port(), os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
        given = {each["name"]: each["value"] for each in runtime["env"]}
        env = {**os.environ, "PYTHONPATH": path, "AIS_TARGET_URL": target, "PORT": str(port), **given}
        process = ExitStack()
        process.enter_context(Daemon([sys.executable, "-c", _RUNTIME], f"http://127.0.0.1:{port}/health", env=env))
        self.specs[name], self.running[name] = spec, _Pod(spec, port, process)
        return f"etl-{secrets.token_hex(4)}".encode()

    def transform(self, name: str, call: AisCall, data: bytes) -> bytes:
        """What a transformer makes of an object."""
        pod = self.running.get(name)
        if pod is None:
            raise Problem(404, f"etl {name!r} is not running")
        query = urlencode({"etl_args": call.query.get("etl_args", "")})
        with closing(http.client.HTTPConnection("127.0.0.1", pod.port)) as there:
            there.request("PUT", quote(f"/{call.bucket}/{call.name}") + f"?{query}", data)
            answer = there.getresponse()
            made = answer.read()
        if answer.status != 200:
            raise Problem(500, f"etl {name!r}: {made.decode(errors='replace')[:300]}")
        return made

    def close(self) -> None:
        """End all of them."""
        for pod in self.running.values():
            pod.process.close()
        self.running.clear()
