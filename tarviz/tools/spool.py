"""Shards that can only be read from the front (a pipe, a packed one) as files that can be read in any order."""

from __future__ import annotations

from contextlib import closing

from tarviz.model.config import options as configured
from tarviz.model.errors import StoreError, TarvizError
from tarviz.model.types import URL
from tarviz.read.shard import Shard
from tarviz.read.spans import HeldTar
from tarviz.read.stream import ReadOptions, ReadReport

_PIECE = 1 << 20


def spool_shard(url: URL, path: str, options: ReadOptions, report: ReadReport) -> HeldTar:
    """The inflated bytes of a shard as a file that can be read in any order."""
    with closing(Shard(url, max_ratio=configured(max_ratio=options.max_ratio).max_ratio)) as shard, open(path, "xb", buffering=0) as file:
        buffer = memoryview(bytearray(_PIECE))
        try:
            with report.skip_damage(url, options.on_error):
                while count := shard.readinto(buffer):
                    done = 0
                    while done < count:
                        done += file.write(buffer[done:count])
        except TarvizError:  # of the store; some are OSErrors too
            raise
        except OSError as error:
            hint = "Choose another folder with --tmp, or set TMPDIR."
            raise StoreError(f"cannot be kept in {path}: {error.strerror}.", code="E_WRITE", shard=url, hint=hint) from error
    return HeldTar(URL(path))
