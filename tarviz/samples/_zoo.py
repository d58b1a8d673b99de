"""A small data set of every common kind, made without a download: what the browser, the verbs and the tests are tried on."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path

from tarviz.model.errors import UsageError
from tarviz.samples.kinds import KINDS, MEDIA
from tarviz.samples.sample_shard import write_shard


def zoo(folder: str | os.PathLike[str], *, kinds: Iterable[str] | None = None, count: int = 24) -> dict[str, str]:
    """Writes a shard of `count` records for each kind of data set as `NAME.tar`; returns name → path.

    All kinds by default: captions, coco, yolo, voc, detections, instances, segmentation, masks, stereo, wav, flac, mp3, video, text,
    chat, embeddings, points, medical, views, robotics, keys, missing, damaged, and `cut`, a tar that ends in the middle of a record.
    `flac`, `mp3` and `video` are left out where PyAV is not installed, unless they are requested (`MissingPackageError`).
    `UsageError` for a kind that is not known. The bytes are the same at every call (with the same versions of the libraries).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     list(zoo(folder, kinds=["text", "cut"], count=4))
    ['text', 'cut']
    """
    wanted = list(kinds) if kinds is not None else [*_writable(), "cut"]
    unknown = [name for name in wanted if name not in KINDS and name != "cut"]
    if unknown:
        raise UsageError(f"The zoo has no kind {unknown[0]!r}.", hint=f"There are: {', '.join([*KINDS, 'cut'])}.")
    if count < 1:
        raise UsageError(f"A shard of {count} records is empty.", hint="Give count=1 or more.")
    paths = {name: Path(folder) / f"{name}.tar" for name in wanted}
    for name, path in paths.items():
        write_shard(path, map(KINDS["captions" if name == "cut" else name], range(count)))
        if name == "cut":
            whole = path.read_bytes()
            path.write_bytes(whole[: len(whole) * 2 // 3])
    return {name: str(path) for name, path in paths.items()}


def _writable() -> list[str]:
    found = importlib.util.find_spec("av") is not None
    return [name for name in KINDS if found or name not in MEDIA]
