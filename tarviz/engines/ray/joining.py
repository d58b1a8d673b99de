"""Joining a cluster: its address, what is sent to its workers, and what is said when one of them is lost or cannot work."""

from __future__ import annotations

import os
import socket
from types import TracebackType
from typing import Any, ClassVar, Self

from tarviz.engines import EnginePlan
from tarviz.engines.ray.worker import Home
from tarviz.model import config
from tarviz.model.errors import TarvizError, UsageError, require

TRIES = 3  # a task whose worker is lost is done again so often
_STAY = ("cache_dir", "workers", "progress")  # options that are those of a machine
_ANSWER = 10.0  # seconds that a cluster has to answer
# How every gRPC connection begins, and the kind of frame that the server sends first: RFC 9113 §3.4, §6.5.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
_SETTINGS = b"\4"
_BEGIN = "ray start --head begins one; address= (--address) or RAY_ADDRESS names it."
# A node that is cut off closes no connection: tasks there are missed when it leaves a question unanswered; Ray itself asks after 5 minutes.
_KEEPALIVE = {"RAY_grpc_client_keepalive_time_ms": "20000", "RAY_grpc_client_keepalive_timeout_ms": "20000"}
_CARRIED = ("AIS_ENDPOINT",)  # where a store is, said in this process


class RayMember:
    """A context manager: the cluster, with the job and the settings of this process laid down there for its workers.

    A Ray that is begun here ends with the last of them.
    """

    _users: ClassVar[int] = 0
    _own: ClassVar[bool] = False

    def __init__(self, job: Any, plan: EnginePlan) -> None:
        self.job = job
        self.plan = plan
        self.lost = 0  # tasks that were begun again

    def __enter__(self) -> Self:
        self._ray = ray = require("ray", "engine='ray'", "ray")
        data = pack(ray, self.job)
        RayMember._own = connect(ray, self.plan) or RayMember._own
        RayMember._users += 1
        self._home, self._job = ray.put(home()), ray.put(data)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._job = self._home = None
        RayMember._users -= 1
        if RayMember._own and not RayMember._users:
            RayMember._own = False
            self._ray.shutdown()

    def processors(self) -> int:
        """How many processors the cluster has, one at least."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))


def loss(cause: BaseException, tries: int) -> TarvizError:
    """The error of a task whose worker or node did not give its outcome, `tries` times."""
    why = " ".join(str(cause).split())
    error = TarvizError(
        f"the worker was lost {tries} times: {why[:300]}.",
        code="E_WORKER",
        hint="Out of memory? Run fewer tasks at a time, or the local engine, which shows where it happens.",
    )
    error.__cause__ = cause
    return error


def reach(address: str | None) -> None:
    """`UsageError` where nobody answers at `host:port` or `ray://host:port`; Ray itself goes on trying for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER) as connection:
            if os.environ.get("RAY_USE_TLS") == "1":
                return
            connection.sendall(_GREETING)
            answer = b""
            while len(answer) < 4 and (more := connection.recv(4 - len(answer))):
                answer += more
    except TimeoutError as error:
        raise UsageError(f"there is no Ray at {address}: what listens there says nothing.", hint=_BEGIN) from error
    except (OSError, OverflowError) as error:
        raise UsageError(f"there is no Ray at {address}: {error}.", hint=_BEGIN) from error
    if answer[3:] != _SETTINGS:
        what = f"there is no Ray at {address}: another server answers there, which speaks no gRPC."
        raise UsageError(what, hint="Ray's own port is 6379 (ray status shows it), that of ray:// 10001; 8265 is its dashboard's.")


def connect(ray: Any, plan: EnginePlan) -> bool:
    """Join the cluster; true when it was begun here and is to be ended here."""
    if ray.is_initialized():
        return False
    for name, value in _KEEPALIVE.items():
        os.environ.setdefault(name, value)
    address = plan.address or os.environ.get("RAY_ADDRESS")
    reach(address)
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        if address is not None and address != "local":
            ray.init(address=address, **quiet)
        else:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # what runs on this machine alone tells nobody
            ray.init(address="local", num_cpus=plan.count, include_dashboard=False, **quiet)
    except Exception as error:  # Ray raises whatever it likes, Exception itself too
        why = " ".join(str(error).split())
        where = f"at {address}" if address else "on this machine"
        raise UsageError(f"there is no Ray {where}: {why[:300]}", hint=_BEGIN) from error
    return True


def pack(ray: Any, value: Any) -> bytes:
    """A job or a task as bytes, functions of a notebook or script included."""
    try:
        data: bytes = ray.cloudpickle.dumps(value)
    except Exception as error:  # what a user's object raises when it is pickled
        raise UsageError(f"a function of the chain cannot travel to the workers: {error}.", hint="Use the local engine.") from error
    return data


def home() -> Home:
    """Folder, options and version of this process."""
    from tarviz import __version__

    chosen = {name: str(value) for name, (value, source) in config.sources().items() if source != "default" and name not in _STAY}
    settings = {f"TARVIZ_{name.upper()}": value for name, value in chosen.items()}
    return Home(os.getcwd(), settings | {name: os.environ[name] for name in _CARRIED if name in os.environ}, __version__)


def refusal(error: Exception) -> TarvizError:
    """The error of a worker that could not even begin a task."""
    why = " ".join(str(getattr(error, "cause", None) or error).split())
    what = f"a worker of the cluster cannot run tasks: {why[:300]}."
    return TarvizError(what, code="E_WORKER", hint="It needs the same tarviz installed.")
