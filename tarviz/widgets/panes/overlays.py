"""What lies over a record's picture: boxes, outlines and key points out of its other fields, masks as small pictures that show through."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz import viewers
from tarviz.formats.field_path import field_path
from tarviz.looks import roles, runs, tones
from tarviz.looks import shapes as looked_up
from tarviz.looks.shapes import Shape
from tarviz.model.errors import TarvizError, UsageError
from tarviz.viewers.panel import readable

NONE = "none"
_MOST_BYTES = 1 << 20  # of a field that is looked into for boxes
_MASK_SIDE = 1024  # pixels a side of a run-length mask, at most: there may be hundreds
_NAMES = ("classes", "names", "id2label", "labels")  # where a JSON says what the numbers of a mask are


@dataclass(frozen=True, slots=True)
class Mask:
    """A mask field as RGBA PNG, clear where nothing is; `legend` is number, name and colour of what is in it."""

    ext: str
    picture: bytes
    legend: tuple[tuple[int, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Overlay:
    """What lies over a picture of `width` × `height` pixels; `fields` are those that its shapes and masks come from."""

    width: int
    height: int
    shapes: tuple[Shape, ...] = ()
    masks: tuple[Mask, ...] = ()
    fields: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.shapes or self.masks)

    def message(self, buffers: list[Any]) -> dict[str, Any]:
        """JSON-ready; masks are put after `buffers`."""
        masks = []
        for mask in self.masks:
            legend = [[number, readable(name), colour] for number, name, colour in mask.legend]
            masks.append({"ext": readable(mask.ext), "buffer": len(buffers), "legend": legend})
            buffers.append(mask.picture)
        shapes = [[shape.kind, list(shape.numbers), readable(shape.name[:80]), shape.score] for shape in self.shapes]
        return {"width": self.width, "height": self.height, "shapes": shapes, "masks": masks}


class Overlays:
    """Finds what lies over pictures. `wish` is "" (found by itself), `none`, a mask's field, or where the boxes are: `json.anns`, with the
    form of the boxes after a colon where it is not told by itself (`json.anns:xyxy`). A name has the same colour everywhere."""

    def __init__(self, wish: str = "") -> None:
        path, colon, form = wish.rpartition(":")
        self.wish, self.form = (path, form) if colon and form in looked_up.FORMATS else (wish, "")
        if colon and form not in looked_up.FORMATS and form.isidentifier() and path:
            raise UsageError(f"Boxes have no form {form!r}.", hint=f"There are: {', '.join(looked_up.FORMATS)}.")
        self._path = None if self.wish in ("", NONE) else field_path(self.wish)
        self.colours: dict[str, str] = {}
        self._lock = threading.Lock()
        self._found: dict[str, int] = {}

    def fields(self, sizes: Mapping[str, int], picture: str) -> list[str]:
        """The fields of a record that are looked into when its `picture` is shown."""
        if self.wish == NONE:
            return []
        if self._path is not None:
            return [ext for ext in sizes if ext in self._path.needs]
        found = roles.roles({ext: viewers.choose(ext) for ext in sizes})
        if picture not in found.pictures[:1]:
            return []
        looked_into = [ext for ext in found.written if viewers.choose(ext) != "cls" and self._found.get(ext, 0) > -64]
        return [*found.masks, *(ext for ext in looked_into if sizes[ext] <= _MOST_BYTES)]

    def over(self, blobs: Mapping[str, Any], picture: str, width: int, height: int, side: int = 0) -> Overlay:
        """What lies over a picture of `width` × `height`; masks are made at most `side` pixels a side (0: as large as they are).

        Fields are bytes, or what a chain made of them: decoded JSON, masks as arrays [h, w] or [h, w, c].
        """
        shapes: list[Shape] = []
        masks = []
        of: list[str] = []
        for ext, blob in blobs.items():
            if viewers.choose(ext) == "image":
                if ext != picture and (mask := _mask(ext, blob, _names_in(blobs), side)):
                    masks.append(mask)
                    of.append(ext)
            elif self._path is None:
                is_bytes = isinstance(blob, bytes | bytearray | memoryview)
                found = looked_up.read(blob, ext, width, height) if is_bytes else looked_up.find(blob, width, height)
                self._found[ext] = max(self._found.get(ext, 0), 0) + 1 if found else self._found.get(ext, 0) - 1
                if found and not shapes:
                    shapes = found
                    of.append(ext)
        if self._path is not None and not masks:
            value = self._path.value({"__key__": "", **blobs})
            if isinstance(value, str):
                shapes = looked_up.read(value.encode(), self.wish, width, height, self.form)
            else:
                shapes = looked_up.find(value, width, height, self.form)
        most = min(side or _MASK_SIDE, _MASK_SIDE)
        shapes = [replace(shape, numbers=runs.thin(_as_runs(shape), most)) if shape.kind == "mask" else shape for shape in shapes]
        return Overlay(width, height, tuple(shapes), tuple(masks), tuple(of))

    def colour(self, name: str) -> str:
        """The colour of a class, as `#rrggbb`: dealt out as names are first asked for, so that no two of them share one as far as colours
        go; class numbers have those that masks give them."""
        with self._lock:
            if name not in self.colours and len(self.colours) < 400:
                self.colours[name] = tones.id_colour(int(name) + 1 if name.isdecimal() else len(self.colours) + 1)
            return self.colours.get(name, "#ffb000")


def _as_runs(shape: Shape) -> dict[str, Any]:
    height, width, *counts = shape.numbers
    return {"size": [height, width], "counts": counts}


def _names_in(blobs: Mapping[str, Any]) -> dict[int, str]:
    """Number → name, where a JSON beside a mask says so."""
    import json

    for ext, blob in blobs.items():
        if viewers.choose(ext) != "json":
            continue
        try:
            tree = json.loads(bytes(blob)) if isinstance(blob, bytes | bytearray | memoryview) else blob
        except (ValueError, RecursionError):
            continue
        for word in _NAMES if isinstance(tree, dict) else ():
            names = tree.get(word)
            if isinstance(names, dict) and names and all(str(number).isdecimal() for number in names):
                return {int(number): str(name) for number, name in names.items()}
            if isinstance(names, list) and names and all(isinstance(name, str) for name in names):
                return dict(enumerate(names))
    return {}


def _mask(ext: str, blob: Any, names: Mapping[int, str], side: int) -> Mask | None:
    from PIL import Image

    from tarviz.viewers.image import encode, open_picture

    try:
        picture = _as_picture(blob) if isinstance(blob, np.ndarray) else open_picture(memoryview(blob), ext)
        picture.load()
    except (TarvizError, OSError, SyntaxError, ValueError, TypeError, EOFError):
        return None
    if side and max(picture.size) > side:
        scale = side / max(picture.size)
        picture = picture.resize((max(1, round(picture.width * scale)), max(1, round(picture.height * scale))), Image.Resampling.NEAREST)
    legend: tuple[tuple[int, str, str], ...] = ()
    if picture.mode in ("RGB", "RGBA", "P", "PA") and not (picture.mode == "P" and np.asarray(picture).max(initial=0) < 64):
        colours = np.asarray(picture.convert("RGBA")).copy()
        colours[..., 3] = np.where(colours[..., :3].any(axis=2), colours[..., 3], 0)
    else:
        values = np.asarray(picture)
        values = values.astype(np.uint8) if values.dtype == np.bool_ else values
        colours, legend = _colour(values, names)
    return Mask(ext, encode(colours, "PNG"), legend)


def _as_picture(values: NDArray[Any]) -> Any:
    """A decoded mask as a PIL picture; whole numbers too large for its modes are kept as 32 bits."""
    from PIL import Image

    flat = values[..., 0] if values.ndim == 3 and values.shape[2] == 1 else values
    if flat.dtype == np.bool_:
        flat = flat.astype(np.uint8)
    return Image.fromarray(np.ascontiguousarray(flat if flat.dtype == np.uint8 or flat.ndim == 3 else flat.astype(np.int32)))


def _colour(values: NDArray[Any], names: Mapping[int, str]) -> tuple[NDArray[np.uint8], tuple[tuple[int, str, str], ...]]:
    """Numbers as colours, clear where they are 0; yes or no (0 and one other) in one colour."""
    if values.ndim == 3:
        values = values[..., 0]
    present = np.unique(values)
    own = present[present != 0]
    if (len(own) <= 1 and not names) or not tones.is_ids(values):
        strength = (values.astype(np.float32) / max(float(values.max(initial=0)), 1e-9) * 255).astype(np.uint8)
        return np.dstack((np.broadcast_to(tones.id_colours()[1], (*values.shape, 3)), strength)), ()
    whole = values.astype(np.int64)
    colours = np.dstack((tones.id_colours()[whole % 256], np.where(whole > 0, 255, 0).astype(np.uint8)))
    return colours, tuple((int(n), names.get(int(n), str(int(n))), tones.id_colour(int(n))) for n in own[:40])


def paint(picture: bytes, over: Overlay | None, overlays: Overlays) -> bytes:
    """A tile with what lies over it drawn in, for where nothing can be laid over: a saved sheet, a page without scripts."""
    from PIL import Image

    from tarviz.viewers.image import encode

    if not over:
        return picture
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    for mask in over.masks:
        layer = Image.open(io.BytesIO(mask.picture)).convert("RGBA").resize(image.size, Image.Resampling.NEAREST)
        half = layer.getchannel("A").point(lambda alpha: alpha // 2)
        image.paste(layer.convert("RGB"), (0, 0), half)
    _draw(image, over.shapes, overlays.colour, image.width / max(over.width, 1))
    return encode(image, "JPEG", 86)


def _draw(picture: Any, shapes: Sequence[Shape], colour: Callable[[str], str], scale: float) -> None:
    """Draw shapes onto a PIL picture (RGB); `scale` is its size to the original's."""
    from PIL import Image, ImageDraw

    pen = ImageDraw.Draw(picture)
    masks = [shape for shape in shapes if shape.kind == "mask"]
    for number, shape in enumerate(masks, 1):
        layer = Image.fromarray(runs.decode(_as_runs(shape)) * np.uint8(128)).resize(picture.size, Image.Resampling.NEAREST)
        picture.paste(colour(shape.name) if shape.name else tones.id_colour(number), (0, 0), layer)
    for shape in [shape for shape in shapes if shape.kind != "mask"]:
        numbers = [n * scale for n in shape.numbers]
        if shape.kind == "box":
            x, y, w, h = numbers
            pen.rectangle((x, y, x + max(w, 0), y + max(h, 0)), outline=colour(shape.name), width=2)
        elif shape.kind == "polygon":
            pen.polygon(numbers, outline=colour(shape.name), width=2)
        else:
            for x, y in zip(numbers[::3], numbers[1::3], strict=True):
                pen.circle((x, y), 2, fill=colour(shape.name))
