"""Where the pixels of a picture go: one definition for the picture, for masks over it, and for boxes and points in it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tarviz.ops.values.images import through_pil
from tarviz.ops.values.resizer import fast_resize

Size: TypeAlias = tuple[int, int]
"""Height and width in pixels."""


@dataclass(frozen=True, slots=True)
class Geometry(ABC):
    """An affine move of a picture of `before` (height, width) pixels. Points are x, y in pixels from the left top corner of the picture,
    so the middle of its first pixel is 0.5, 0.5."""

    before: Size

    @property
    def after(self) -> Size:
        """Height and width of the picture it makes."""
        return self.before

    @property
    @abstractmethod
    def matrix(self) -> tuple[float, float, float, float, float, float]:
        """a b c, d e f of x' = a x + b y + c, y' = d x + e y + f."""

    @abstractmethod
    def picture(self, image: NDArray[Any]) -> NDArray[Any]:
        """An image [h, w, c] moved, bilinear where pixels fall between pixels; the array given stays as it is."""

    def points(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Points [n, 2] moved.

        >>> Cropped((10, 10), 2, 3, (4, 4)).points(np.array([[5.0, 5.0]]))
        array([[2., 3.]])
        """
        a, b, c, d, e, f = self.matrix
        return np.stack((a * places[:, 0] + b * places[:, 1] + c, d * places[:, 0] + e * places[:, 1] + f), axis=1)

    def mask(self, values: NDArray[Any]) -> NDArray[Any]:
        """An array [h, w, …] of any dtype moved, each value taken from the nearest place, 0 where none is."""
        a, b, c, d, e, f = self.matrix
        height, width = self.after
        across, down = np.arange(width) + 0.5, np.arange(height) + 0.5
        if b == d == 0:
            columns, rows = (np.floor(places).astype(np.int64) for places in ((across - c) / a, (down - f) / e))
            return np.ascontiguousarray(values[rows][:, columns])
        x, y = across[None, :] - c, down[:, None] - f
        det = a * e - b * d
        columns = np.floor((e * x - b * y) / det).astype(np.int64)
        rows = np.floor((a * y - d * x) / det).astype(np.int64)
        inside = (columns >= 0) & (columns < self.before[1]) & (rows >= 0) & (rows < self.before[0])
        made = np.zeros((height, width, *values.shape[2:]), values.dtype)
        made[inside] = values[rows[inside], columns[inside]]
        return made


@dataclass(frozen=True, slots=True)
class Resized(Geometry):
    """All of the picture in `size`, with antialias."""

    size: Size

    @property
    def after(self) -> Size:
        return self.size

    @property
    def matrix(self) -> tuple[float, float, float, float, float, float]:
        return self.size[1] / self.before[1], 0, 0, 0, self.size[0] / self.before[0], 0

    def picture(self, image: NDArray[Any]) -> NDArray[Any]:
        if self.before == self.size:
            return image
        height, width = self.size
        if image.dtype == np.uint8 and 1 <= image.shape[2] <= 4 and 0 not in image.shape and (fast := fast_resize()) is not None:
            return fast(image, height, width)
        return through_pil(image, lambda picture: picture.resize((width, height), Image.Resampling.BILINEAR))


@dataclass(frozen=True, slots=True)
class Cropped(Geometry):
    """The part of `size` from row `top` and column `left` on."""

    top: int
    left: int
    size: Size

    @property
    def after(self) -> Size:
        return self.size

    @property
    def matrix(self) -> tuple[float, float, float, float, float, float]:
        return 1, 0, -self.left, 0, 1, -self.top

    def picture(self, image: NDArray[Any]) -> NDArray[Any]:
        return image[self.top : self.top + self.size[0], self.left : self.left + self.size[1]].copy()


@dataclass(frozen=True, slots=True)
class Mirrored(Geometry):
    """Left and right change places, or top and bottom."""

    direction: Literal["horizontal", "vertical"]

    @property
    def matrix(self) -> tuple[float, float, float, float, float, float]:
        height, width = self.before
        return (-1, 0, width, 0, 1, 0) if self.direction == "horizontal" else (1, 0, 0, 0, -1, height)

    def picture(self, image: NDArray[Any]) -> NDArray[Any]:
        if self.direction == "vertical":
            return image[::-1].copy()
        made = np.empty(image.shape, image.dtype)
        for band in range(image.shape[2]):  # three times as fast as all at once
            made[:, :, band] = image[:, ::-1, band]
        return made


@dataclass(frozen=True, slots=True)
class Turned(Geometry):
    """Turned by `angle` degrees clockwise about the middle, in the same frame; what turns in from outside is black (0).

    By 0 nothing moves.
    """

    angle: float

    @property
    def matrix(self) -> tuple[float, float, float, float, float, float]:
        quarters: dict[float, tuple[float, float]] = {0: (1, 0), 90: (0, 1), 180: (-1, 0), 270: (0, -1)}
        quarter = quarters.get(self.angle % 360)
        radians = math.radians(self.angle)
        cos, sin = quarter or (math.cos(radians), math.sin(radians))
        y, x = (side / 2 for side in self.before)
        return cos, -sin, x - cos * x + sin * y, sin, cos, y - sin * x - cos * y

    def picture(self, image: NDArray[Any]) -> NDArray[Any]:
        if not self.angle % 360:
            return image
        return through_pil(image, lambda picture: picture.rotate(-self.angle, Image.Resampling.BILINEAR))
