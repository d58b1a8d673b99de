"""Names of shards: what is one, what lies near a path that does not exist."""

from __future__ import annotations

import os
from collections.abc import Iterator

from tarviz.stores.templates import natural

SHARD_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".tar.bz2")


def is_shard(name: str) -> bool:
    """Whether a base name is one of a shard: by its suffix, hidden files apart."""
    return name.lower().endswith(SHARD_SUFFIXES) and not name.startswith(".")


def before_suffix(name: str, text: str) -> str:
    """The name of a shard with a text before its suffix, which is `.tar` where it has none.

    >>> before_suffix("a.tar.gz", "-1"), before_suffix("a", "-1")
    ('a-1.tar.gz', 'a-1.tar')
    """
    suffix = next((suffix for suffix in SHARD_SUFFIXES if name.endswith(suffix)), "")
    return f"{name.removesuffix(suffix)}{text}{suffix or '.tar'}"


def nearest(path: str) -> str:
    """A sentence on what exists near a path that does not; empty when there is nothing to say."""
    return " ".join(_nearest(path))


def _nearest(path: str) -> Iterator[str]:
    folder, base = os.path.split(path)
    gone = ""
    while folder and not os.path.isdir(folder):
        gone = folder
        folder, base = os.path.split(folder)
    if gone:
        yield f"There is no folder {gone}."
    try:
        with os.scandir(folder or ".") as entries:
            there = sorted((entry.name for entry in entries if not entry.name.startswith(".")), key=natural)
    except OSError:
        return
    import difflib  # for those who misspell only

    near = difflib.get_close_matches(base, there[:10_000], 3, cutoff=0.6) or [each for each in there if is_shard(each)][:3]
    if near:
        yield f"Nearest in {folder or '.'}: {', '.join(near)}."
    elif not there:
        yield f"The folder {folder or '.'} is empty."
