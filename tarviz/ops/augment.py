"""An augmentation of another library, with what lies over the picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import ChainError
from tarviz.model.types import Feature
from tarviz.ops.base import Draw
from tarviz.ops.values.foreign import ForeignScene, augmented
from tarviz.ops.values.geometric import CarryingOp, size_of
from tarviz.ops.values.images import check_image, image_of


@dataclass(frozen=True, slots=True)
class Augment(CarryingOp):
    """Calls `f` on an image [h, w, c]: of albumentations, of `torchvision.transforms.v2`, or a function that takes `image=`, gives a dict.

    Boxes, outlines, key points and masks go along as the op `carry` says: `f` moves the corners of boxes as key points, so that all it
    can do with a picture it does with what lies over it. Seeds are drawn for each record, as for other random ops, where the library
    takes one; a function of one's own draws as it likes. It is called with `keypoints=` [n, 2] and `masks=` where there are any, and
    gives as many.

    A function has no text: a chain with it prints `augment(jpg, "module:name")`, which does not read back.
    """

    f: Callable[..., Any] = field(kw_only=False)

    name: ClassVar[str] = "augment"
    draws = 1
    typed = False

    def check(self) -> None:
        if not callable(self.f):
            raise ChainError(
                f"{self.name} holds a Python callable, which text cannot say; got {self.f!r}.",
                hint='In Python, put tarviz.ops.Augment("jpg", f) into a list of ops.',
            )

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        _, keyword = CarryingOp.arguments(self)
        kind = self.f if hasattr(self.f, "__qualname__") else type(self.f)
        return [self.ext, f"{kind.__module__.partition('.')[0]}:{kind.__qualname__}"], keyword

    def describe_draw(self, draw: Draw) -> str:
        return f"seed {_seed(draw)}"

    def apply(self, value: Any, draw: Draw | None = None) -> NDArray[Any]:
        return augmented(self.f, ForeignScene(image_of(self, value), np.empty((0, 2))), _seed(draw)).image

    def infer(self, feature: Feature) -> Feature:
        check_image(self, feature)
        return Feature(feature.dtype, (None, None, None))

    def run(self, record: Mapping[str, Any], draw: Draw | None = None) -> dict[str, Any]:
        ext = self.field(record)
        image = image_of(self, record[ext])
        asked = _PointProbe(size_of(image))
        masks: list[NDArray[Any]] = []

        def ask(mask: NDArray[Any]) -> NDArray[Any]:
            masks.append(mask)
            return mask

        self.carried(record, asked, ask)
        points = np.concatenate(asked.places) if asked.places else np.empty((0, 2))
        made = augmented(self.f, ForeignScene(image, points, tuple(masks)), _seed(draw))
        answers = iter(made.masks)
        answered = _Answered(asked.before, size_of(made.image), made.points)
        return {**record, ext: made.image, **self.carried(record, answered, lambda mask: next(answers))}


def _seed(draw: Draw | None) -> int:
    return 0 if draw is None else int(float(draw[0]) * 2**32)


class _PointProbe:
    """Notes which points would be moved, and moves none."""

    def __init__(self, size: tuple[int, int]) -> None:
        self.before = self.after = size
        self.places: list[NDArray[np.float64]] = []

    def points(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        self.places.append(places)
        return places


class _Answered:
    """Gives the places of points after they were moved, in the order they were asked for."""

    def __init__(self, before: tuple[int, int], after: tuple[int, int], moved: NDArray[np.float64]) -> None:
        self.before, self.after = before, after
        self._moved, self._at = moved, 0

    def points(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        self._at += len(places)
        return self._moved[self._at - len(places) : self._at]
