"""One tar of (key, {extension: payload}) pairs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeAlias

from tarviz.model.types import URL
from tarviz.outputs import TAR_END, Output, tar_member

MTIME = 1_767_225_600  # 2026-01-01, so that the bytes are the same at every call
Sample: TypeAlias = tuple[str, dict[str, bytes]]


def write_shard(path: str | os.PathLike[str], samples: Iterable[Sample]) -> None:
    """One tar of (key, {extension: payload}) pairs; the file has its name only when it is complete."""
    with Output(URL(os.fspath(path)), ending=TAR_END) as output:
        for key, fields in samples:
            for ext, payload in fields.items():
                output.write(tar_member(f"{key}.{ext}", payload, MTIME))
