"""YOLO's lines: a class, and the numbers of a box, of an outline or of a pose, in shares of the picture."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_LINE = re.compile(rf"\s*{_NUMBER}(?:\s+{_NUMBER}){{4,}}\s*")
_MOST_CLASSES = 100_000
_LIKE = 1.5  # shares a little outside of the picture are written by some tools
_MOSTLY = 0.75  # of a file's numbers are like shares; in a table of others few are
_BEYOND = 0.01  # YOLO's own trainer takes shares that are outside by this, and leaves out files with others


@dataclass(frozen=True, slots=True)
class Line:
    """One line: a box is x y w h of its middle and perhaps a score, an outline x y x y …, a pose a box and x y seen of each key point.
    `kind` is "" where the count of numbers fits none of them."""

    name: str
    kind: Literal["box", "outline", "pose", ""]
    numbers: list[float]

    @property
    def outside(self) -> int:
        """How many of its places and sizes are no shares of the picture."""
        return sum(not -_BEYOND <= n <= 1 + _BEYOND for n in self.shares)

    @property
    def shares(self) -> list[float]:
        """Its places and sizes."""
        if self.kind == "box":
            return self.numbers[:4]
        return [n for at, n in enumerate(self.numbers) if self.kind != "pose" or at < 4 or at % 3 != 0]


def lines(text: str, *, mostly: float = _MOSTLY) -> list[Line]:
    """The lines of a text; none unless every line is a class and four numbers or more, `mostly` like shares; `Line.outside` counts
    those that are none.

    A class may be written as a float, as NumPy's `savetxt` does. Key points of two numbers each (`kpt_shape: [n, 2]`) cannot be told
    from an outline, and are read as one.

    >>> [line.kind for line in lines("0 0.5 0.5 0.2 0.4\\n1 0.1 0.1 0.3 0.1 0.2 0.3\\n")]
    ['box', 'outline']
    >>> [line.kind for line in lines("0 0.5 0.5 0.2 0.4 0.45 0.4 2\\n")]
    ['pose']
    """
    written = [line for line in text.splitlines() if line.strip()]
    if not written or not all(_LINE.fullmatch(line) for line in written):
        return []
    rows = [[float(word) for word in line.split()] for line in written]
    if not all(row[0].is_integer() and 0 <= row[0] < _MOST_CLASSES and all(map(math.isfinite, row)) for row in rows):
        return []
    found = [(str(int(row[0])), row[1:]) for row in rows]
    poses = all(_is_pose(numbers) for _, numbers in found if len(numbers) > 5)
    made = [Line(name, _kind(numbers, poses), numbers) for name, numbers in found]
    like = [abs(n) <= _LIKE for line in made for n in line.shares]
    return made if sum(like) >= mostly * len(like) else []


def _is_pose(numbers: list[float]) -> bool:
    """An even count of numbers is an outline, unless every third of them says what is seen."""
    seen = numbers[6::3]
    return len(numbers) >= 7 and len(numbers) % 3 == 1 and (len(numbers) % 2 == 1 or all(n in (0, 1, 2) for n in seen))


def _kind(numbers: list[float], poses: bool) -> Literal["box", "outline", "pose", ""]:
    if len(numbers) in (4, 5):
        return "box"
    return "pose" if poses else "outline" if len(numbers) % 2 == 0 else ""
