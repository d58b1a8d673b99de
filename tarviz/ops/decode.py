"""A field's bytes to the value they stand for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from tarviz.model.errors import ChainError, SchemaError
from tarviz.model.types import Feature
from tarviz.ops.base import Draw, FieldOp
from tarviz.ops.convert import dtype_name
from tarviz.ops.values.images import pair
from tarviz.ops.values.payloads import Kind, decode_payload, kind_of
from tarviz.ops.values.pictures import MAX_PIXELS, decode_picture, decodes_fast


@dataclass(frozen=True, slots=True)
class Decode(FieldOp):
    """Decodes a field by its extension; a field whose name says nothing is taken for a picture.

    Pictures (JPEG, PNG, GIF, BMP, WebP, TIFF, PPM) become uint8 [h, w, channels]: `channels` 3, 1 or 4 converts,
    0 keeps what is there; alpha is dropped, not blended; an animation gives its first frame; 16-bit samples keep
    their high byte; the EXIF orientation is applied only with `orient=True`. `cls`, `cls2`, `class`, `index`, `id` become a
    number of `dtype`, `txt` a str, `json` its tree, `npy` an array, `npz` a dict of them; `….gz` is unpacked first.
    Pickles are refused unless `unsafe` names them.

    `least`, (height, width): a JPEG of more pixels than a `resize` after it needs is decoded at a half, a quarter or an eighth of
    its sides, never smaller than that; the same pixels in every runner, and four to ten times as fast for photos of 12 Mpx. They
    are not those of decoding in full and resizing: each is the mean of a square, so fine detail differs by some steps of 255.

    In the graph JPEG decodes with `INTEGER_ACCURATE`, bit-equal to PIL; where a JPEG is slightly damaged, PIL may forgive what
    TensorFlow refuses.
    """

    channels: int = field(default=3, kw_only=True)
    orient: bool = field(default=False, kw_only=True)
    least: tuple[int, int] | None = field(default=None, kw_only=True)
    dtype: str | None = field(default=None, kw_only=True)
    unsafe: tuple[str, ...] = field(default=(), kw_only=True)

    name: ClassVar[str] = "decode"

    def check(self) -> None:
        if self.channels not in (0, 1, 3, 4):
            raise ChainError(f"{self.name} makes pictures of 1, 3 or 4 channels, 0 keeps theirs; got {self.channels!r}.")
        if self.least is not None:
            self.put("least", pair(self.name, self.least, "a least size"))
        if self.dtype is not None:
            self.put("dtype", dtype_name(self.name, self.dtype))
            if "float" in str(self.dtype):
                raise ChainError(f"{self.name} reads whole numbers; put convert after it for {self.dtype}.")
        self.put("unsafe", (self.unsafe,) if isinstance(self.unsafe, str) else tuple(self.unsafe))

    @property
    def kind(self) -> Kind:
        """What the field's extension says it is; `picture` when it says nothing."""
        kind = kind_of(self.exts[0])
        if kind == "gz" and "." in self.exts[0]:
            kind = kind_of(self.exts[0].rpartition(".")[0])
        return "picture" if kind == "unknown" else kind

    @property
    def typed(self) -> bool:
        return self.kind not in ("npy", "npz", "gz", "pickle")

    @property
    def lowers(self) -> bool:
        if kind_of(self.exts[0]) == "gz" or self.orient or self.least is not None:
            return False
        return self.kind == "class" or (self.kind == "picture" and self.channels in (1, 3))

    def native(self, feature: Feature) -> bool:
        return self.kind == "picture" and decodes_fast()

    def apply(self, value: Any, draw: Draw | None = None) -> Any:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise SchemaError(f"{self} expects bytes, got {type(value).__name__}. Is it decoded twice?", details={"field": self.ext})
        if kind_of(self.exts[0]) == "unknown":
            return decode_picture(value, channels=self.channels, orient=self.orient, least=self.least)
        wish: dict[str, Any] = {
            "channels": self.channels,
            "orient": self.orient,
            "least": self.least,
            "dtype": self.dtype,
            "unsafe": self.unsafe,
        }
        return decode_payload(self.exts[0], value, **wish)

    def infer(self, feature: Feature) -> Feature:
        if feature.dtype != "bytes":
            raise SchemaError(f"{self} expects bytes, got {feature}. Is it decoded twice?", details={"field": self.ext})
        match self.kind:
            case "picture":
                return Feature("uint8", (None, None, self.channels or None))
            case "class":
                return Feature(self.dtype or "int64")
            case "text":
                return Feature("str")
            case "pickle" if self.ext not in self.unsafe:
                raise SchemaError(
                    f"{self}: pickles can run any code when loaded.",
                    code="E_UNSAFE_DECODER",
                    hint=f"If you trust their origin, name them: decode({self.ext}, unsafe=[{self.ext}]).",
                )
            case _:
                return Feature("object")

    def apply_tf(self, value: Any, draw: Any = None) -> Any:
        import tensorflow as tf

        if self.kind == "class":
            return tf.strings.to_number(tf.strings.strip(value), self.dtype or "int64")
        return tf.cond(
            _graph_decodes(value, colour=self.channels == 3),
            lambda: tf.io.decode_jpeg(value, self.channels, dct_method="INTEGER_ACCURATE"),  # PNG as well, in spite of its name
            lambda: tf.ensure_shape(tf.numpy_function(self._apply_bytes, [value], tf.uint8), [None, None, self.channels]),
        )

    def _apply_bytes(self, value: Any) -> Any:
        return self.apply(value if isinstance(value, bytes) else value.item())  # outside of a graph it is an array


def _graph_decodes(value: Any, *, colour: bool) -> Any:
    """Whether TensorFlow is to decode the bytes: JPEG or PNG of a size that is allowed. To one channel it converts only JPEG as PIL does,
    and no CMYK; a PNG that is grey already, 8 bits deep, needs no conversion.

    The header is looked at only where the bytes suffice for a picture above the limit: a JPEG of 64 Mpx takes a bit for each of
    its million blocks, a PNG a thousandth of its pixels' bytes.
    """
    import tensorflow as tf

    size = tf.strings.length(value)

    def jpeg_fits() -> Any:
        shape = tf.cast(tf.io.extract_jpeg_shape(value), tf.int64)
        return tf.logical_and(shape[0] * shape[1] <= MAX_PIXELS, tf.logical_or(colour, shape[2] < 4))

    def png_fits() -> Any:
        sides = tf.cast(tf.reshape(tf.io.decode_raw(tf.strings.substr(value, 16, 8), tf.uint8), [2, 4]), tf.int64)
        height_width = tf.reduce_sum(sides * tf.constant([1 << 24, 1 << 16, 1 << 8, 1], tf.int64), axis=1)
        return height_width[0] * height_width[1] <= MAX_PIXELS

    def if_png() -> Any:
        is_png = tf.strings.substr(value, 0, 8) == b"\x89PNG\r\n\x1a\n"
        return tf.logical_and(is_png, tf.cond(tf.logical_and(is_png, size > 8_000), png_fits, lambda: True))

    is_jpeg = tf.strings.substr(value, 0, 3) == b"\xff\xd8\xff"
    if not colour:
        # Bit depth and colour type: PNG §11.2.2.
        is_grey = tf.cond(size >= 26, lambda: tf.strings.substr(value, 24, 2) == b"\x08\x00", lambda: False)
        return tf.cond(is_jpeg, jpeg_fits, lambda: tf.logical_and(is_grey, if_png()))
    return tf.cond(is_jpeg, lambda: tf.cond(size > 100_000, jpeg_fits, lambda: True), if_png)
