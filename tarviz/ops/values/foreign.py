"""Augmentations of other libraries, called with a picture, points in it and masks over it: albumentations, torchvision, plain functions."""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import SchemaError


@dataclass(frozen=True, slots=True, eq=False)
class ForeignScene:
    """A picture [h, w, c], points [n, 2] in its pixels, masks [h, w, …]."""

    image: NDArray[Any]
    points: NDArray[np.float64]
    masks: tuple[NDArray[Any], ...] = ()


Caller: TypeAlias = Callable[[Any, ForeignScene, int], ForeignScene]


def augment(f: Callable[..., Any], scene: ForeignScene, seed: int) -> ForeignScene:
    """What `f` makes of a scene: as many points and masks, in the same order. Random numbers come from `seed` where the library takes one.

    A plain function is called with `image=`, and with `keypoints=` and `masks=` where there are any; it gives a dict of the same names.
    """
    library = type(f).__module__.partition(".")[0]
    call: Caller = _CALLERS.get(library, _plain)
    made = call(f, scene, seed)
    points = np.asarray(made.points, np.float64).reshape(-1, 2)
    if len(points) != len(scene.points) or len(made.masks) != len(scene.masks):
        raise SchemaError(f"it gave {len(points)} of {len(scene.points)} points and {len(made.masks)} of {len(scene.masks)} masks back.")
    masks = tuple(_like(mask, before) for mask, before in zip(made.masks, scene.masks, strict=True))
    return ForeignScene(np.array(made.image), points, masks)


def _like(mask: Any, before: NDArray[Any]) -> NDArray[Any]:
    made = np.asarray(mask)
    return np.ascontiguousarray(made.reshape(*made.shape[:2], *before.shape[2:])).astype(before.dtype)


def _plain(f: Callable[..., Any], scene: ForeignScene, seed: int) -> ForeignScene:
    more: dict[str, Any] = {}
    if len(scene.points):
        more["keypoints"] = scene.points
    if scene.masks:
        more["masks"] = list(scene.masks)
    made = f(image=scene.image, **more)
    if not isinstance(made, Mapping) or "image" not in made:
        raise SchemaError(f"it has to return a dict with 'image'; it returned {type(made).__name__}.")
    return ForeignScene(made["image"], made.get("keypoints", scene.points[:0]), tuple(made.get("masks", ())))


_own = threading.local()


def _compose(f: Any) -> Any:
    """`f` in a Compose that takes points and can be seeded; one for each thread, for it holds its random numbers."""
    import albumentations

    held: dict[int, tuple[Any, Any]] = _own.__dict__.setdefault("held", {})
    if id(f) not in held:
        params = albumentations.KeypointParams(format="xy", label_fields=["marks"], remove_invisible=False)
        held.clear()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Got processor for keypoints", UserWarning)  # it changes colours alone: points stay
            held[id(f)] = (f, albumentations.Compose([copy.deepcopy(f)], keypoint_params=params))
    return held[id(f)][1]


def _albumentations(f: Any, scene: ForeignScene, seed: int) -> ForeignScene:
    compose = _compose(f)
    compose.set_random_seed(seed)
    more: dict[str, Any] = {"masks": [_warpable(mask) for mask in scene.masks]} if scene.masks else {}
    made = compose(image=scene.image, keypoints=scene.points - 0.5, marks=np.arange(len(scene.points)), **more)
    points = np.full((len(scene.points), 2), np.nan)
    for at, place in zip(made["marks"], made["keypoints"], strict=True):
        points[int(at)] = np.asarray(place, np.float64)[:2] + 0.5  # its points count from the middle of the first pixel
    return ForeignScene(made["image"], points, tuple(made.get("masks", ())))


def _warpable(mask: NDArray[Any]) -> NDArray[Any]:
    """A mask in a dtype that OpenCV warps: whole numbers up to 2^24 stay exact."""
    return mask if mask.dtype == np.uint8 else mask.astype(np.uint8 if mask.dtype == np.bool_ else np.float32)


def _torchvision(f: Any, scene: ForeignScene, seed: int) -> ForeignScene:
    import torch
    from torchvision import tv_tensors

    size = scene.image.shape[:2]
    given: dict[str, Any] = {"image": tv_tensors.Image(torch.from_numpy(np.ascontiguousarray(np.moveaxis(scene.image, 2, 0))))}
    if len(scene.points):
        # As boxes without a size: its boxes count from the edges of pixels in all it does, its key points in a flip from their middles.
        corners = torch.from_numpy(np.tile(scene.points, 2))
        given["points"] = tv_tensors.BoundingBoxes(corners, format="XYXY", canvas_size=size, clamping_mode=None)
    for at, mask in enumerate(scene.masks):
        given[f"mask {at}"] = tv_tensors.Mask(torch.from_numpy(np.ascontiguousarray(mask).reshape((*size, -1))).movedim(2, 0))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = f(given)
    masks = tuple(np.moveaxis(np.asarray(made[f"mask {at}"]), 0, 2) for at in range(len(scene.masks)))
    points = np.asarray(made["points"])[:, :2] if len(scene.points) else scene.points
    return ForeignScene(np.ascontiguousarray(np.moveaxis(np.asarray(made["image"]), 0, 2)), points, masks)


_CALLERS: Mapping[str, Caller] = {"albumentations": _albumentations, "torchvision": _torchvision}
