"""An augmentation of another library, with what lies over the picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import ChainError
from tarviz.model.types import Feature
from tarviz.ops.base import Draw
from tarviz.ops.values.foreign import ForeignScene, augment
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
        return augment(self.f, ForeignScene(image_of(self, value), np.empty((0, 2))), _seed(draw)).image

    def infer(self, feature: Feature) -> Feature:
        check_image(self, feature)
        return Feature(feature.dtype, (None, None, None))

    def run(self, record: Mapping[str, Any], draw: Draw | None = None) -> dict[str, Any]:
        ext = self.field(record)
        image = image_of(self, record[ext])
        size = size_of(image)
        asked: list[NDArray[Any]] = []
        masks: list[NDArray[Any]] = []
        self.carry_along(record, _Points(size, size, partial(_note, asked)), partial(_note, masks))
        made = augment(self.f, ForeignScene(image, np.concatenate([np.empty((0, 2)), *asked]), tuple(masks)), _seed(draw))
        answers, masked = iter(np.split(made.points, np.cumsum([len(places) for places in asked]))), iter(made.masks)
        move = _Points(size, size_of(made.image), lambda places: next(answers))
        return {**record, ext: made.image, **self.carry_along(record, move, lambda mask: next(masked))}


def _seed(draw: Draw | None) -> int:
    return 0 if draw is None else int(float(draw[0]) * 2**32)


def _note(asked: list[NDArray[Any]], value: NDArray[Any]) -> NDArray[Any]:
    """Keeps what is to be moved, and moves nothing."""
    asked.append(value)
    return value


class _Points(NamedTuple):
    """Points moved by a function, in a picture of these sizes."""

    before: tuple[int, int]
    after: tuple[int, int]
    points: Callable[[NDArray[Any]], NDArray[Any]]
