"""Files of the cache folder: named by shard and version, for the user alone, there whole or not at all, and no more than is allowed.

A name begins with 20 digits for the shard (`digest(identity(url))`), so that all that is kept of one is found. When a file was used
last is its time of access, which is set by hand: many systems do not keep it. What was used longest ago goes first.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Final, NamedTuple, Self

from tarviz.model.config import options
from tarviz.model.urls import digest, identity
from tarviz.stores._temporary import make_temporary, remove_stale

DERIVED: Final = ("index", "table", "tfrecord")  # folders of what is made again where it is gone; their files share one limit
_GRACE = 600.0  # seconds that a file stays at least which somebody has just used: a query may need many of them
_PAUSE = 60.0  # seconds between two looks at all the files
_DAY = 86_400.0
_STEM = 20  # digits of `stem`


_OWN: set[Path] = set()  # folder and stem of what this process has kept


class KeptFile(NamedTuple):
    """A file that is kept: its size in bytes, and when it was used last, in seconds since 1970."""

    path: Path
    size: int
    used: float


def folder_of(kind: str) -> Path:
    """The folder of `index`, `table`, `tfrecord` or `shards`; it need not be there yet."""
    return options().cache_dir / kind


def stem(url: str) -> str:
    """What the names of all files begin with that are kept of a shard."""
    return digest(identity(url))


class Temporary:
    """A file of a cache folder before it has its name: 0600 in a folder of 0700, locked for as long as its writer lives.

    `OSError` where it cannot be made. Call `keep` or `drop`; a forked child does neither. In a `with`, an exception drops it.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if hasattr(os, "geteuid") and folder.stat().st_mode & 0o077 and folder.stat().st_uid == os.geteuid():
            folder.chmod(0o700)  # of an earlier version: values of private shards are nobody else's
        self._owner = os.getpid()
        fd, path = make_temporary(lambda: str(folder / f".{os.urandom(12).hex()}.tmp"), 0o600)
        self.path = Path(path)
        self.file: IO[bytes] = open(fd, "r+b", buffering=0)  # noqa: SIM115  (closed by keep and drop)

    @property
    def ours(self) -> bool:
        """Whether this is the process that began it."""
        return os.getpid() == self._owner

    def keep(self, place: Path) -> None:
        """Give it its name."""
        os.fsync(self.file.fileno())
        self.path.replace(place)
        self.file.close()
        _OWN.add(place.with_name(place.name[:_STEM]))

    def drop(self) -> None:
        """Remove it."""
        self.file.close()
        if self.ours:
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.drop()


def touch(place: Path) -> None:
    """Note that a file is used now. Its time of change stays: those who read it take another one for other bytes."""
    with contextlib.suppress(OSError):
        os.utime(place, ns=(time.time_ns(), place.stat().st_mtime_ns))


def kept_files(folder: Path, begin: str = "") -> list[KeptFile]:
    """The files of a folder whose names begin so; what killed processes left behind in it is removed."""
    found = []
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.name.endswith(".tmp"):
                    remove_stale(entry.path)
                elif entry.name.startswith(begin) and not entry.name.startswith("."):
                    status = entry.stat()
                    found.append(KeptFile(Path(entry.path), status.st_size, status.st_atime))
    return found


def is_kept(kind: str, url: str) -> bool:
    """Whether anything is kept of a shard, of whatever version, as the folder was within the last second."""
    name, folder = stem(url), folder_of(kind)
    return folder / name in _OWN or name in _stems(folder, int(time.monotonic()))


@functools.lru_cache(maxsize=4)
def _stems(folder: Path, _: int) -> frozenset[str]:
    try:
        return frozenset(name[:_STEM] for name in os.listdir(folder))
    except OSError:
        return frozenset()


def oldest(files: Iterable[KeptFile], limit: int, before: float = 0.0) -> Iterator[KeptFile]:
    """What has to go so that no more than `limit` bytes stay, and nothing that was used last `before`."""
    rows = sorted(files, key=lambda row: row.used)
    total = sum(row.size for row in rows)
    for row in rows:
        if total <= limit and row.used >= before:
            return
        total -= row.size
        yield row


def trim(*, at_once: bool = False) -> list[KeptFile]:
    """Remove what is over the options `cache_size` and `cache_days` of what is derived from shards, and say what went.

    Looks once a minute at most, over all processes, and leaves what was used in the last ten, unless `at_once`.
    """
    now, chosen = time.time(), options()
    stamp = chosen.cache_dir / ".trimmed"
    with contextlib.suppress(OSError):
        if not at_once and 0 <= now - stamp.stat().st_mtime < _PAUSE:
            return []
    with contextlib.suppress(OSError):
        stamp.touch()
    files = [row for kind in DERIVED for row in kept_files(folder_of(kind))]
    grace = now if at_once else now - _GRACE
    gone = [row for row in oldest(files, chosen.cache_size, now - chosen.cache_days * _DAY) if row.used <= grace]
    for row in gone:
        with contextlib.suppress(OSError):
            row.path.unlink(missing_ok=True)
    return gone
