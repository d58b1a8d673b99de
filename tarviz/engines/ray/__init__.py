"""Tasks on a Ray cluster: one Ray task each, begun again elsewhere when its worker or node is lost.

Nothing is kept in Ray but what a task gives back: small outcomes and, with `spool`, its file; of one that yields, some parts ahead.
`address` is that of `ray.init`: `auto`, `host:6379`, `ray://host:10001`; without it RAY_ADDRESS, and without that a Ray of its own on
this machine, ended with the work.
"""

from __future__ import annotations

import importlib.util
import os
import sys

from tarviz.engines import EnginePlan, Job, Yielding
from tarviz.engines.ray.streams import ClientStreams, RayStreams
from tarviz.engines.ray.tasks import RayEngine
from tarviz.model.errors import MissingPackageError

TRAVELS = True


def engine(job: Job, plan: EnginePlan) -> RayEngine:
    """The cluster at `plan.address`; `plan.count` tasks at a time, by default as many as it has processors."""
    return RayEngine(job, plan)


def stream(job: Yielding, plan: EnginePlan) -> RayStreams:
    """The same for a job that yields."""
    return ClientStreams(job, plan) if _through_client(plan.address) else RayStreams(job, plan)


def check(address: str | None = None) -> None:
    """`MissingPackageError` where Ray is not installed; any address will do."""
    if importlib.util.find_spec("ray") is None:
        raise MissingPackageError.of("ray", "engine='ray'", "ray")


def there() -> bool:
    """Whether this process takes part in a cluster already, or RAY_ADDRESS names one."""
    joined = getattr(sys.modules.get("ray"), "is_initialized", bool)()  # nobody has imported it: False
    named = bool(os.environ.get("RAY_ADDRESS")) and importlib.util.find_spec("ray") is not None
    return bool(joined) or named


def _through_client(address: str | None) -> bool:
    """Whether the cluster is, or would be, reached by Ray's client."""
    ray = sys.modules.get("ray")
    if ray is not None and getattr(ray, "is_initialized", bool)():
        return bool(ray.util.client.ray.is_connected())
    return (address or os.environ.get("RAY_ADDRESS") or "").startswith("ray://")
