"""One tar of (key, {extension: payload}) pairs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeAlias

from tarviz import write
from tarviz.model.types import URL

MTIME = 1_767_225_600  # 2026-01-01, so that the bytes are the same at every call
Sample: TypeAlias = tuple[str, dict[str, bytes]]


def write_shard(path: str | os.PathLike[str], samples: Iterable[Sample]) -> None:
    """One tar of (key, {extension: payload}) pairs; the file has its name only when it is complete."""
    with write.Output(URL(os.fspath(path)), ending=write.TAR_END) as output:
        for key, fields in samples:
            for ext, payload in fields.items():
                output.write(write.tar_member(f"{key}.{ext}", payload, MTIME))
