"""Drawn scenes: coloured shapes at known places, so that pictures come with boxes, masks, key points, depth and captions that are true."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHAPES = ("disc", "square", "triangle", "star")
COLOURS = {"red": (214, 62, 54), "green": (66, 150, 82), "blue": (58, 104, 196), "yellow": (236, 190, 56), "violet": (136, 84, 174)}
FOCAL = 120.0  # depth = FOCAL / disparity
_FAR = 20.0


@dataclass(frozen=True, slots=True)
class Thing:
    """One shape: `box` is x, y, width, height in pixels, `polygon` its outline, `depth` its distance."""

    shape: str
    colour: str
    box: tuple[int, int, int, int]
    polygon: tuple[tuple[int, int], ...]
    depth: float

    @property
    def cls(self) -> int:
        return SHAPES.index(self.shape)

    @property
    def name(self) -> str:
        return f"{self.colour} {self.shape}"


class Scene:
    """A picture of `size` (width, height) drawn from `seed`: two to five things, far ones first. The same at every call."""

    def __init__(self, seed: int, size: tuple[int, int] = (240, 180)) -> None:
        self.random = np.random.default_rng(seed)
        self.width, self.height = size
        self.sky = self.random.integers(150, 235, 3)
        self.ground = self.random.integers(60, 140, 3)
        count = int(self.random.integers(2, 6))
        self.things = sorted((self._thing() for _ in range(count)), key=lambda thing: -thing.depth)

    def _thing(self) -> Thing:
        random = self.random
        shape, colour = str(random.choice(SHAPES)), str(random.choice(list(COLOURS)))
        depth = float(random.uniform(3, 12))
        side = int(self.height * random.uniform(0.7, 0.9) * 2.4 / depth) + 16
        x = int(random.integers(0, self.width - side))
        y = int(random.integers(0, max(1, self.height - side)))
        return Thing(shape, colour, (x, y, side, side), outline(shape, x, y, side), round(depth, 2))

    @property
    def caption(self) -> str:
        names = [("an " if thing.name[0] in "aeiou" else "a ") + thing.name for thing in reversed(self.things)]
        return f"{', '.join(names[:-1])} and {names[-1]} under a {'pale' if self.sky.mean() > 190 else 'grey'} sky".capitalize()

    def picture(self, shift: float = 0.0) -> NDArray[np.uint8]:
        """uint8 [h, w, 3]; `shift` moves near things to the left further than far ones, as a second camera sees them."""
        from PIL import Image, ImageDraw

        slope = np.linspace(0, 1, self.height)[:, None, None]
        back = (self.sky * (1 - slope) + self.ground * slope).repeat(self.width, axis=1)
        grain = np.random.default_rng(7).normal(0, 3, (self.height, self.width, 1))
        image = Image.fromarray((back + grain).clip(0, 255).astype(np.uint8))
        pen = ImageDraw.Draw(image)
        for thing in self.things:
            moved = [(x - shift * FOCAL / thing.depth, y) for x, y in thing.polygon]
            pen.polygon(moved, fill=COLOURS[thing.colour], outline=(28, 28, 34))
        return np.asarray(image)

    @cached_property
    def ids(self) -> NDArray[np.uint8]:
        """uint8 [h, w]: 0 where nothing is, else 1 + the class of what is seen."""
        return self._paint([1 + thing.cls for thing in self.things])

    @cached_property
    def instances(self) -> NDArray[np.uint8]:
        """uint8 [h, w]: 0 where nothing is, else 1 + the thing's place in `things`."""
        return self._paint(list(range(1, len(self.things) + 1)))

    @cached_property
    def depth(self) -> NDArray[np.float32]:
        """float32 [h, w]: distances, the ground nearer at the bottom."""
        ground = np.linspace(_FAR, 4, self.height, dtype=np.float32)[:, None].repeat(self.width, axis=1)
        for number, thing in enumerate(self.things, 1):
            ground[self.instances == number] = thing.depth
        return ground

    def _paint(self, values: list[int]) -> NDArray[np.uint8]:
        from PIL import Image, ImageDraw

        image = Image.new("L", (self.width, self.height))
        pen = ImageDraw.Draw(image)
        for thing, value in zip(self.things, values, strict=True):
            pen.polygon(list(thing.polygon), fill=value)
        return np.asarray(image)


def outline(shape: str, x: int, y: int, side: int) -> tuple[tuple[int, int], ...]:
    """Corners of a shape that fills the square at (x, y)."""
    middle = np.array((x + side / 2, y + side / 2))
    match shape:
        case "square":
            return ((x, y), (x + side, y), (x + side, y + side), (x, y + side))
        case "triangle":
            return ((x + side // 2, y), (x + side, y + side), (x, y + side))
        case "disc":
            turns, reach = np.linspace(0, 2 * np.pi, 25)[:-1], np.full(24, 0.5)
        case _:
            turns, reach = np.linspace(0, 2 * np.pi, 11)[:-1] - np.pi / 2, np.array([0.5, 0.22] * 5)
    points = middle + side * reach[:, None] * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    return tuple((int(a), int(b)) for a, b in np.rint(points))


def encode(pixels: NDArray[Any], kind: str = "JPEG", **options: Any) -> bytes:
    """Pixels as a picture file: uint8, uint16 (PNG, TIFF) or float32 (TIFF)."""
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind, **({"quality": 88} if kind == "JPEG" else {}), **options)
    return out.getvalue()


def npy(array: NDArray[Any]) -> bytes:
    """An array as an npy file."""
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()
