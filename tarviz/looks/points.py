"""Point clouds: which arrays are some, a picture of them for a tile, and a thinned copy for a canvas that turns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.looks.tones import table

MOST = 20_000
"""Points that a canvas is given."""

_MANY, _FEWEST = 512, 24  # rows that are points whatever their name, and rows that are steps
_MOST_LINES = 16
_CLOUDS = re.compile(r"(^|[^a-z])(points?|xyz(i|rgb)?|pcd|lidar|(point)?clouds?|velodyne|scan)(?=$|[^a-z])")
_OTHERS = re.compile(
    r"(^|[^a-z])(actions?|states?|obs|observations?|traj|trajectory|poses?|joints?|qpos|qvel|imu|acc|accel|gyro|forces?|(b|bound|bounding_)?"
    r"box(es)?|logits|probs|scores|landmarks?|key_?points?|skeleton|series|time|signal|sensor|motion|velocity)(?=$|[^a-z])"
)
_SCANNERS = (5, 4)  # columns of a raw scan: nuScenes' x, y, z, strength, ring; KITTI's without the ring
_SAMPLE, _FARTHEST = 4096, 1000.0  # points looked at; metres
_TURN, _TILT = 0.7, 0.5  # radians: seen from the side and a little from above


def is_cloud(array: NDArray[Any], name: str = "") -> bool:
    """Whether an array looks like points: floats [n, 3 … 7], four or more, whose name says so, or some hundred of them whose name
    says nothing else.

    >>> boxes = np.zeros((600, 4), np.float32)
    >>> is_cloud(boxes), is_cloud(boxes, "boxes.npy"), is_cloud(boxes[:60], "lidar.npy")
    (True, False, True)
    """
    if array.ndim != 2 or array.dtype.kind != "f" or not 3 <= array.shape[1] <= 7 or len(array) < 4:
        return False
    name = name.lower()
    return not _OTHERS.search(name) and (len(array) >= _MANY or _CLOUDS.search(name) is not None)


def are_steps(array: NDArray[Any]) -> bool:
    """Whether an array [n, columns] looks like a row a step: 24 or more, up to 16 columns of fractions, twice as long as wide."""
    few = array.ndim == 2 and array.dtype.kind == "f" and array.shape[1] <= _MOST_LINES
    return few and len(array) >= max(_FEWEST, 2 * array.shape[1])


def of_columns(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
    """Points [n, 3, 4 or 6] out of named columns (PLY, PCD): places, then colours 0…255 or strength where there are some."""
    named = {name.lower(): values for name, values in columns.items()}
    colours = next((names for names in (("red", "green", "blue"), ("r", "g", "b")) if named.keys() >= set(names)), ())
    strength = next((name for name in ("intensity", "i", "scalar_intensity", "reflectance", "strength") if name in named), "")
    packed = named.get("rgb", named.get("rgba"))
    chosen = [named[name] for name in ("x", "y", "z", *(colours or ((strength,) if strength else ())))]
    if packed is not None and not colours:
        bits = np.ascontiguousarray(packed, packed.dtype).view(f"u{packed.dtype.itemsize}")
        chosen = [*chosen[:3], *((bits >> shift) & 255 for shift in (16, 8, 0))]
    return np.stack([np.asarray(one, np.float32) for one in chosen], axis=1)


def of_scan(blob: bytes | memoryview) -> NDArray[np.float32] | None:
    """Points of a raw LiDAR scan, float32 [n, 4 or 5] as KITTI and nuScenes write it; None for bytes that do not look like one."""
    for columns in _SCANNERS:
        if len(blob) % (4 * columns) or len(blob) < 4 * columns * _MANY // 2:
            continue
        points = np.frombuffer(blob, "<f4").reshape(-1, columns)
        part = points[:: max(1, len(points) // _SAMPLE)]
        with np.errstate(all="ignore"):
            placed = np.isfinite(part).all() and np.abs(part).max() < _FARTHEST and part[:, :2].std(axis=0).min() > 0.5
            seen = placed and part[:, 3].min() >= 0 and part[:, 3].max() <= 255
            if seen and (
                columns == 4 or (np.equal(part[:, 4], np.rint(part[:, 4])).all() and 0 <= part[:, 4].min() <= part[:, 4].max() < 256)
            ):
                return points
    return None


def thin(array: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """At most `MOST` finite points within −1 … 1 as float32 [n, 3], and their colours uint8 [n, 3].

    Colours are the last three columns where there are six or more and they look like some; else the fourth column, or the height.
    """
    array = array[:: max(1, -(-len(array) // MOST))]
    array = array[np.isfinite(array[:, :3]).all(axis=1)].astype(np.float32)
    if not len(array):
        return np.zeros((0, 3), np.float32), np.zeros((0, 3), np.uint8)
    low, high = array[:, :3].min(axis=0), array[:, :3].max(axis=0)
    places = (array[:, :3] - (low + high) / 2) / (max(float((high - low).max()), 1e-9) / 2)
    given = array[:, -3:] if array.shape[1] >= 6 else None
    if given is not None and np.isfinite(given).all() and given.min() >= 0 and given.max() <= 255:
        return places, (given * (255 if given.max() <= 1 else 1)).astype(np.uint8)
    values = array[:, 3] if array.shape[1] in (4, 5) else array[:, 2]
    values = np.nan_to_num(values)
    share = (values - values.min()) / (np.ptp(values) or 1)
    return places, table("viridis")[(share * 255).astype(np.uint8)]


def draw(array: NDArray[Any], size: int) -> NDArray[np.uint8]:
    """The cloud seen from the side as uint8 [size, size, 3], near points over far ones."""
    places, colours = thin(array)
    canvas = np.full((size, size, 3), (24, 26, 31), np.uint8)
    if not len(places):
        return canvas
    x = places[:, 0] * np.cos(_TURN) - places[:, 1] * np.sin(_TURN)
    depth = places[:, 0] * np.sin(_TURN) + places[:, 1] * np.cos(_TURN)
    y = places[:, 2] * np.cos(_TILT) - depth * np.sin(_TILT)
    order = np.argsort(-depth)
    scale = size * 0.36
    across = (size / 2 + x * scale).astype(int).clip(0, size - 2)[order]
    down = (size / 2 - y * scale).astype(int).clip(0, size - 2)[order]
    for right, below in ((0, 0), (1, 0), (0, 1), (1, 1)):
        canvas[down + below, across + right] = colours[order]
    return canvas
