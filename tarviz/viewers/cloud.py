"""Point clouds of LiDAR and CAD sets: PLY, PCD, xyz, and the raw scans of KITTI and nuScenes. A mesh is shown by its corners."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.looks import points
from tarviz.model.errors import DataError
from tarviz.ops.values.structured import decode_structured
from tarviz.viewers import text
from tarviz.viewers.npy import draw, draw_tile
from tarviz.viewers.panel import Meta, Panel

EXTENSIONS = ("ply", "pcd", "xyz", "pcd.bin", "velodyne.bin", "lidar.bin", "points.bin")
MAGIC = (b"ply\n", b"ply\r\n", b"# .PCD")


def load(blob: memoryview, ext: str) -> NDArray[np.float32]:
    """The points float32 [n, 3 … 6]. `DataError` (E_DECODE) where they cannot be read."""
    head, last = bytes(blob[:6]), ext.rpartition(".")[2]
    if last == "bin":
        scan = points.of_scan(blob)
        if scan is None:
            raise DataError(f".{ext} is no scan of KITTI (x, y, z, strength) or nuScenes (and ring).", code="E_NOT_SHOWN")
        return scan
    columns: dict[str, Any] = decode_structured("ply" if head[:3] == b"ply" else "pcd" if head == b"# .PCD" else last, blob)
    if not {"x", "y", "z"} <= columns.keys():
        raise DataError(f".{ext} holds {', '.join(columns)}, which are no places x, y, z.", code="E_NOT_SHOWN")
    return points.of_columns(columns)


def view(blob: memoryview, meta: Meta) -> Panel:
    try:
        found = load(blob, meta.ext)
    except DataError:
        if meta.ext.rpartition(".")[2] == "xyz":  # a molecule
            return text.view(blob, meta)
        raise
    panel = Panel(f"{len(found):,} points")
    draw(found, "points", replace(meta, options={"as": "cloud", **meta.options}), panel)
    return panel


def tile(blob: memoryview, meta: Meta, size: int) -> bytes | str:
    try:
        return draw_tile(load(blob, meta.ext), "points", size)
    except DataError:
        if meta.ext.rpartition(".")[2] == "xyz":
            return text.tile(blob, meta, size)
        raise
