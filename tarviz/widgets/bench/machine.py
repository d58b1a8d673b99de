"""The machine a bench ran on: cores, load, versions, the file system of the shards, and how much of them was in memory."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tarviz import __version__, stores
from tarviz.model.processors import processors
from tarviz.model.types import URL

_PACKAGES = ("numpy", "pillow", "simplejpeg", "tensorflow", "tensorflow-cpu", "torch", "webdataset")
_SAMPLES = 64  # shards, and bytes of each, that are looked at


def facts(urls: Sequence[URL] = ()) -> dict[str, Any]:
    """JSON-ready facts of this machine."""
    versions = {"tarviz": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    kinds = sorted({file_system(url) for url in urls[:_SAMPLES]})
    system = f"{platform.system()} {platform.machine()}"
    return {"cores": processors(), "load": load, "system": system, "files": kinds, "versions": versions}


def file_system(url: URL) -> str:
    """The kind of file system a shard is on (`ext4`, `tmpfs`, …), or its URL's scheme."""
    if not stores.is_local(url):
        return url.partition("://")[0] if "://" in url else "pipe"
    best, kind = "", "file"
    try:
        path = os.path.realpath(stores.local_path(url))
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, place, found = line.split()[:3]
            place = place.replace("\\040", " ")
            if len(place) >= len(best) and (path == place or path.startswith(place.rstrip("/") + "/")):
                best, kind = place, found
    except (OSError, ValueError):
        return "file"
    return kind


def cached_share(urls: Iterable[URL]) -> float | None:
    """How much of local shards is in the page cache, 0…1, from a few bytes of each; None where that cannot be told.

    A byte is asked for with RWF_NOWAIT (Linux 4.14): it comes only if it is in memory, and nothing is read if not.
    """
    if not (hasattr(os, "preadv") and hasattr(os, "RWF_NOWAIT")):
        return None
    seen = there = 0
    for url in list(urls)[:_SAMPLES]:
        if not stores.is_local(url):
            return None
        try:
            with open(stores.local_path(url), "rb") as file:
                size = os.fstat(file.fileno()).st_size
                for number in range(_SAMPLES if size else 0):
                    seen += 1
                    with suppress(BlockingIOError):
                        there += os.preadv(file.fileno(), [bytearray(1)], size * number // _SAMPLES, os.RWF_NOWAIT)
        except OSError:
            return None
    return there / seen if seen else None


def cache_words(share: float | None) -> str:
    """Cold or warm, in words.

    >>> cache_words(1.0), cache_words(0.0), cache_words(0.4), cache_words(None)
    ('warm (all in memory)', 'cold (nothing in memory)', 'partly warm (40 % in memory)', 'not known')
    """
    if share is None:
        return "not known"
    if share > 0.98:
        return "warm (all in memory)"
    return "cold (nothing in memory)" if share < 0.02 else f"partly warm ({share:.0%} in memory)".replace("%", " %")


def evict(urls: Iterable[URL]) -> None:
    """Ask the system to forget what it holds of local shards, so that they are read from the disk again."""
    if not hasattr(os, "posix_fadvise"):
        return
    for url in urls:
        if stores.is_local(url):
            with open(stores.local_path(url), "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
