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
from tarviz.engines.ray.streams import Streams
from tarviz.engines.ray.tasks import Cluster
from tarviz.model.errors import MissingPackageError

TRAVELS = True


def engine(job: Job, plan: EnginePlan) -> Cluster:
    """The cluster at `plan.address`; `plan.count` tasks at a time, by default as many as it has processors."""
    return Cluster(job, plan)


def stream(job: Yielding, plan: EnginePlan) -> Streams:
    """The same for a job that yields."""
    return Streams(job, plan)


def check() -> None:
    """`MissingPackageError` where Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise MissingPackageError.of("ray", "engine='ray'", "ray")


def there() -> bool:
    """Whether this process takes part in a cluster already, or RAY_ADDRESS names one."""
    joined = getattr(sys.modules.get("ray"), "is_initialized", bool)()  # nobody has imported it: False
    return bool(joined) or (bool(os.environ.get("RAY_ADDRESS")) and importlib.util.find_spec("ray") is not None)
