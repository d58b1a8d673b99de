"""A value back to bytes."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tarviz.model.errors import ChainError, SchemaError
from tarviz.model.types import Feature
from tarviz.ops.base import Draw, FieldOp, unfit
from tarviz.ops.values.images import image_of
from tarviz.ops.values.payloads import CLASSES

_PICTURES = {
    "jpg": "JPEG",
    "jpeg": "JPEG",
    "png": "PNG",
    "webp": "WEBP",
    "bmp": "BMP",
    "ppm": "PPM",
    "pgm": "PPM",
    "tif": "TIFF",
    "tiff": "TIFF",
}
_FORMATS = (*_PICTURES, "json", "cls", "txt", "npy")


@dataclass(frozen=True, slots=True)
class Encode(FieldOp):
    """Encodes a field's value as its extension says, or as `format`: `jpg png webp bmp ppm tif` for uint8 images, `json cls txt npy`.

    `quality`, 1 to 100, is for JPEG and WebP. JPEG drops alpha; one channel becomes a grey picture.
    """

    format: str | None = None
    quality: int = field(default=90, kw_only=True)

    name: ClassVar[str] = "encode"

    def check(self) -> None:
        if self.format_name not in _FORMATS:
            raise ChainError(
                f"{self.name} has no format {self.format_name!r}.",
                hint=f"Name one for the field, for example {self.name}({self.ext}, png). The formats are {', '.join(_FORMATS)}.",
            )
        self.check_number("quality", 1, 100, whole=True)

    @property
    def format_name(self) -> str:
        """The format: the one given, else what the extension names."""
        if self.format is not None:
            return self.format
        last = self.exts[0].lower().rpartition(".")[2]
        return "cls" if last in CLASSES else last

    def apply(self, value: Any, draw: Draw | None = None) -> bytes:
        match self.format_name:
            case "json":
                return self._json(value)
            case "cls":
                return str(self._whole(value)).encode()
            case "txt":
                return self._text(value)
            case "npy":
                return self._array(value)
            case _:
                return self._picture(image_of(self, value))

    def _picture(self, image: NDArray[Any]) -> bytes:
        self._check_picture(Feature(str(image.dtype), image.shape))
        form = _PICTURES[self.format_name]
        if form != "PNG" and image.shape[2] in (2, 4):
            image = image[:, :, :3] if image.shape[2] == 4 and form not in ("WEBP", "TIFF") else image
            image = image[:, :, :1] if image.shape[2] == 2 else image
        picture = Image.fromarray(np.ascontiguousarray(image[:, :, 0] if image.shape[2] == 1 else image))
        stream = io.BytesIO()
        try:
            picture.save(stream, form, **({"quality": self.quality} if form in ("JPEG", "WEBP") else {}))
        except (OSError, ValueError) as error:  # no pixels, or more on a side than the format has
            raise self._refusal(error) from error
        return stream.getvalue()

    def _json(self, value: Any) -> bytes:
        try:
            return json.dumps(value, default=_plain, ensure_ascii=False).encode()
        except (TypeError, ValueError, RuntimeError) as error:
            raise self._refusal(error) from error

    def _refusal(self, why: object) -> SchemaError:
        return unfit(self, f"cannot write this: {str(why).rstrip('.')}.")

    def _whole(self, value: Any) -> int:
        if isinstance(value, int | np.integer) or (isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iu"):
            return int(value)
        raise unfit(self, f"expects a whole number, got {type(value).__name__}.")

    def _text(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise unfit(self, f"expects text, got {type(value).__name__}.")
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise self._refusal(error) from error

    def _array(self, value: Any) -> bytes:
        stream = io.BytesIO()
        try:
            if np.ma.is_masked(value):
                raise ValueError("it has no place for a mask; fill it first")
            array = np.asarray(value)
            if array.dtype.isbuiltin == 2:  # bfloat16 and its like: the format would name them as bytes
                raise ValueError(f"it has no {array.dtype}; make it float32")
            np.lib.format.write_array(stream, array, allow_pickle=False)
        except ValueError as error:  # objects, lists of unequal length
            raise self._refusal(error) from error
        return stream.getvalue()

    def _check_picture(self, feature: Feature) -> None:
        if feature.dtype != "uint8" or len(feature.shape) != 3:
            cure = f" Put convert({self.ext}, uint8) before it." if feature.dtype.startswith("float") else ""
            raise unfit(self, f"expects a uint8 image [h, w, c], got {feature}.{cure}")
        if feature.shape[2] not in (None, 1, 2, 3, 4):
            raise unfit(self, f"expects 1 to 4 channels, got {feature}.")

    def infer(self, feature: Feature) -> Feature:
        if feature.dtype == "bytes":
            raise unfit(self, "expects a value, got bytes. They are encoded already.")
        if self.format_name in _PICTURES:
            self._check_picture(feature)
        return Feature("bytes")


def _plain(value: Any) -> Any:
    if hasattr(value, "__array__"):  # NumPy's, and a tensor
        return np.asarray(value).tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")
