"""A field's bytes to the value they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from tarviz.model.errors import ChainError, SchemaError
from tarviz.model.types import Buffer, Feature, Schema
from tarviz.ops.base import Draw, FieldOp, in_graph, unfit
from tarviz.ops.convert import dtype_name
from tarviz.ops.values.films import ANIMATIONS, WHOLE, Cut
from tarviz.ops.values.images import pair
from tarviz.ops.values.payloads import Kind, Wish, decode_payload, kind_of, sound_of
from tarviz.ops.values.pictures import MAX_PIXELS, decodes_fast

# Which options say something of a kind; `unsafe` may stand anywhere: it names extensions.
_OPTIONS: dict[str, frozenset[str]] = {
    "picture": frozenset(("channels", "orient", "least", "dtype", "page")),
    "sound": frozenset(("rate", "mono", "start", "seconds")),
    "film": frozenset(("frames", "every", "fps", "start", "seconds", "least", "sound", "rate", "mono")),
    "class": frozenset(("dtype",)),
}

_GRAPH_CLASSES = ("int32", "int64", "uint32", "uint64")  # what tf.strings.to_number makes


def _kind(ext: str, whole: bool) -> Kind:
    kind = kind_of(ext)
    if kind == "gz" and "." in ext:
        kind = kind_of(ext.rpartition(".")[0])
    if kind == "picture" and not whole and ext.lower().rpartition(".")[2] in ANIMATIONS:
        return "film"
    return "picture" if kind == "unknown" else kind


@dataclass(frozen=True, slots=True)
class Decode(FieldOp):
    """Decodes a field by its extension; a field whose name says nothing by its first bytes, as a picture where these say nothing.

    **Pictures** (JPEG, PNG, GIF, BMP, WebP, TIFF, PPM, AVIF, JPEG 2000, JPEG XL, EXR, PFM, FLO, a page of a PDF) become uint8
    [h, w, channels]: `channels` 3, 1 or 4 converts; alpha is dropped, not blended; an animation gives its first frame; of 16-bit
    samples the high byte is kept; the EXIF orientation is applied only with `orient=True`. What the file holds comes with `dtype`, its
    numbers never scaled (`dtype=uint16` keeps 16 bits, `float32` fractions), and with `channels=0`: all its bands, of a palette (VOC's
    masks) the numbers, in the file's dtype where none is named. `page` is another page of a TIFF or a PDF.

    **Sound** (wav, flac, mp3, ogg, opus, m4a, aiff, wma) becomes float32 [samples, channels] in −1 … 1, and the field `EXT.rate` its
    samples a second. `rate` resamples, `mono` is the mean of the channels, `start` and `seconds` read that part alone.

    **Films** (mp4, mkv, webm, avi, mov; gif and webp where one of these options is there) become uint8 [frames, h, w, 3]: `frames`
    of them spread evenly, each `every`th, or `fps` a second, of the part from `start` on, `seconds` long; all without these.
    `sound=True` gives what is heard meanwhile as `EXT.sound`, and `EXT.rate`.

    `cls`, `cls2`, `class`, `index`, `id` become a number of `dtype`, `txt` a str, `json` its tree, `npy` an array, `npz` and tables
    (csv, tsv, parquet, arrow) and clouds (ply, pcd, xyz) a dict of arrays, dcm and nii an array in the unit of the file, msgpack, cbor,
    yaml, toml, safetensors what their libraries give; `….gz` is unpacked first. Pickles are refused unless `unsafe` names them.

    `least`, (height, width): a JPEG of more pixels than a `resize` after it needs is decoded at a half, a quarter or an eighth of
    its sides, never smaller than that; the same pixels in every runner, and four to ten times as fast for photos of 12 Mpx. They
    are not those of decoding in full and resizing: each is the mean of a square, so fine detail differs by some steps of 255.

    In the graph JPEG decodes with `INTEGER_ACCURATE`, bit-equal to PIL; where a JPEG is slightly damaged, PIL may forgive what
    TensorFlow refuses.

    >>> print(Decode("wav", rate=16000, mono=True).run_schema(Schema(wav=Feature("bytes"))))
    wav: float32[?, 1], wav.rate: int32
    """

    channels: int = field(default=3, kw_only=True)
    orient: bool = field(default=False, kw_only=True)
    least: tuple[int, int] | None = field(default=None, kw_only=True)
    dtype: str | None = field(default=None, kw_only=True)
    page: int = field(default=0, kw_only=True)
    rate: int | None = field(default=None, kw_only=True)
    mono: bool = field(default=False, kw_only=True)
    frames: int | None = field(default=None, kw_only=True)
    every: int | None = field(default=None, kw_only=True)
    fps: float | None = field(default=None, kw_only=True)
    start: float = field(default=0, kw_only=True)
    seconds: float | None = field(default=None, kw_only=True)
    sound: bool = field(default=False, kw_only=True)
    unsafe: tuple[str, ...] = field(default=(), kw_only=True)
    kind: Kind = field(init=False, repr=False)
    """What the field's extension says it is; `picture` when it says nothing."""
    _wish: Wish = field(init=False, repr=False)

    name: ClassVar[str] = "decode"

    def check(self) -> None:
        cut = Cut(self.frames, self.every, self.fps, self.start, self.seconds)
        self.put("kind", _kind(self.exts[0], cut == WHOLE))
        if self.channels not in (0, 1, 3, 4):
            raise ChainError(f"{self.name} makes pictures of 1, 3 or 4 channels, 0 keeps theirs; got {self.channels!r}.")
        if self.least is not None:
            self.put("least", pair(self.name, self.least, "a least size"))
        if self.dtype is not None:
            self.put("dtype", dtype_name(self.name, self.dtype))
            if "float" in str(self.dtype) and self.kind == "class":
                raise ChainError(f"{self.name} reads whole numbers; put convert after it for {self.dtype}.")
        self.put("unsafe", (self.unsafe,) if isinstance(self.unsafe, str) else tuple(self.unsafe))
        self.check_number("start", 0)
        for name, least in (("page", 0), ("rate", 1), ("frames", 1), ("every", 1), ("fps", None), ("seconds", None)):
            if getattr(self, name) is not None:
                self.check_number(name, least, whole=least is not None)
        if sum(each is not None for each in (self.frames, self.every, self.fps)) > 1:
            raise ChainError(f"{self.name} takes one of frames, every and fps.")
        self._check_use()
        self.put("_wish", Wish(self.channels, self.orient, self.least, self.dtype, self.page, self.rate, self.mono, cut, self.unsafe))

    def _check_use(self) -> None:
        known, asked = _OPTIONS.get(self.kind, frozenset()), set(self.arguments()[1])
        if self.kind != "gz" and (idle := sorted(asked - known - {"unsafe"})):
            there = ", ".join(sorted(known)) or "no options"
            what = {"structured": "an object or a table", "npy": "an array", "npz": "arrays"}.get(self.kind, f"a {self.kind}")
            raise ChainError(f"{self.name} has no use for {', '.join(idle)} where {self.ext} is {what}.", hint=f"It takes {there}.")

    @property
    def typed(self) -> bool:
        if self.kind == "picture":
            return self.channels != 0 or self.dtype is not None
        return self.kind not in ("npy", "npz", "gz", "pickle", "structured")

    @property
    def lowers(self) -> bool:
        if not in_graph(type(self)) or kind_of(self.exts[0]) == "gz" or self.orient or self.least is not None or self.page:
            return False
        return (self.kind == "class" and self.dtype in (None, *_GRAPH_CLASSES)) or (
            self.kind == "picture" and self.channels in (1, 3) and self.dtype in (None, "uint8")
        )

    def native(self, feature: Feature) -> bool:
        return self.kind == "picture" and decodes_fast()

    def apply(self, value: Any, draw: Draw | None = None) -> Any:
        return decode_payload(self.exts[0], self._payload(value), self._wish)

    def run(self, record: Mapping[str, Any], draw: Draw | None = None) -> dict[str, Any]:
        ext = self.field(record)
        if self.kind == "sound":
            heard = sound_of(ext, self._payload(record[ext]), self._wish)
            return {**record, ext: heard.samples, f"{ext}.rate": np.int32(heard.rate)}
        made = {**record, ext: self.apply(record[ext])}
        if self.sound:
            heard = sound_of(ext, self._payload(record[ext]), self._wish)
            made |= {f"{ext}.sound": heard.samples, f"{ext}.rate": np.int32(heard.rate)}
        return made

    def _payload(self, value: Any) -> Buffer:
        if isinstance(value, bytes | bytearray | memoryview):
            return value
        raise unfit(self, f"expects bytes, got {type(value).__name__}. Is it decoded twice?")

    def _beside(self, ext: str) -> tuple[str, ...]:
        """The fields that come beside a field of that name."""
        return (f"{ext}.rate",) if self.kind == "sound" else (f"{ext}.sound", f"{ext}.rate") if self.sound else ()

    def changed_fields(self, there: Mapping[str, Any]) -> tuple[str, ...]:
        ext = self.field(there)
        return (ext, *self._beside(ext))

    @property
    def named(self) -> frozenset[str]:
        return frozenset((*self.exts, *(name for ext in self.exts for name in self._beside(ext))))

    def needs(self, wanted: frozenset[str] | None) -> frozenset[str] | None:
        return None if wanted is None else (wanted - self.named) | set(self.exts)

    def run_schema(self, schema: Schema) -> Schema:
        ext = self.field(schema)
        beside = {f"{ext}.sound": Feature("float32", (None, 1 if self.mono else None)), f"{ext}.rate": Feature("int32")}
        return Schema({**schema, ext: self.infer(schema[ext]), **{name: beside[name] for name in self._beside(ext)}})

    def infer(self, feature: Feature) -> Feature:
        if feature.dtype != "bytes":
            raise unfit(self, f"expects bytes, got {feature}. Is it decoded twice?")
        match self.kind:
            case "picture":
                return Feature(self.dtype or "uint8", (None, None, self.channels or None))
            case "sound":
                return Feature("float32", (None, 1 if self.mono else None))
            case "film":
                return Feature("uint8", (self.frames, None, None, 3))
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

    def generalize(self, seen: Feature) -> Feature:
        return Feature(seen.dtype, (None,) * len(seen.shape)) if self.kind in ("picture", "structured") else seen

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
