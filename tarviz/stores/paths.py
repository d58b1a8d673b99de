"""Local names: the path behind a URL, what is a shard, what lies near a name that does not exist."""

from __future__ import annotations

import os
from collections.abc import Iterator
from os import PathLike
from urllib.parse import unquote

from tarviz.model.errors import UsageError
from tarviz.stores.templates import natural

SHARD_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".tar.bz2")


def is_shard(name: str) -> bool:
    """Whether a base name is one of a shard: by its suffix, hidden files apart."""
    return name.lower().endswith(SHARD_SUFFIXES) and not name.startswith(".")


def local_path(url: str | PathLike[str]) -> str:
    """The path behind a local URL, `file://` or `file:` taken off and `~` replaced.

    >>> local_path("file:///data/a%20b.tar"), local_path("file:a.tar")
    ('/data/a b.tar', 'a.tar')
    """
    text = os.fspath(url)
    if text[:5].lower() == "file:":
        if text[5:7] == "//":
            host, _, path = text[7:].partition("/")
            if host.lower() not in ("", "localhost"):
                raise UsageError(
                    f"{text} names the machine {host!r}; file:// URLs are of this machine.", hint="Write file:///folder/name.tar."
                )
            text = "/" + unquote(path, errors="surrogateescape")
        elif not os.path.lexists(text):
            text = text[5:]  # `file:name` as WebDataset's texts have it, and `file:/folder/name` of RFC 8089
    if "\0" in text:
        raise UsageError("a path cannot hold a NUL byte.")
    return os.path.expanduser(text) if text.startswith("~") else text


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
