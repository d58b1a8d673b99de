"""Decoding as WebDataset names it: image specs (`rgb`, `l8`, `torch`, `pil`, …) and fields by extension, by the engine's decoders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from tarviz.dialects.webdataset._source import Sample
from tarviz.model.errors import MissingPackageError, TarvizError, UsageError
from tarviz.ops.convert import convert_image
from tarviz.ops.payloads import PICTURES, decode_class, decode_payload, gunzip

FieldDecoder: TypeAlias = Callable[[str, bytes], Any]
Container: TypeAlias = Literal["numpy", "torch", "pil"]

_CHANNELS = {"l": 1, "rgb": 3, "rgba": 4}
_PICTURES = frozenset({*PICTURES, "img", "image"})
_CLASSES = frozenset({"cls", "cls2", "class", "count", "index", "inx", "id"})
_TEXTS = frozenset({"txt", "text", "transcript"})
_TREES = frozenset({"json", "jsn", "npy", "npz"})
_PICKLES = frozenset({"pyd", "pkl", "pickle", "pth"})
_PACKED = frozenset({"mp", "msg", "msgpack"})


def image_specs() -> dict[str, tuple[Container, bool, int]]:
    """Every image spec: what holds the pixels, whether they are floats in 0…1, and how many channels there are.

    >>> image_specs()["torchl8"], image_specs()["rgb"]
    (('torch', False, 1), ('numpy', True, 3))
    """
    specs: dict[str, tuple[Container, bool, int]] = {}
    for mode, channels in _CHANNELS.items():
        specs |= {mode: ("numpy", True, channels), f"{mode}8": ("numpy", False, channels)}
        specs |= {f"torch{mode}": ("torch", True, channels), f"torch{mode}8": ("torch", False, channels)}
        specs[f"pil{mode}"] = ("pil", False, channels)
    return specs | {"torch": ("torch", True, 3), "torch8": ("torch", False, 3), "pil": ("pil", False, 3)}


_SPECS = image_specs()


@dataclass(frozen=True, slots=True)
class ImageHandler:
    """Decodes the fields whose extension says picture, as `spec` says.

    NumPy: [height, width, channels], grey [height, width], float32 in 0…1 or uint8 (`…8`); torch: the same with the
    channels first; PIL: an image in mode L, RGB or RGBA.
    """

    spec: str

    def __post_init__(self) -> None:
        if self.spec not in _SPECS:
            raise UsageError(f"there is no image spec {self.spec!r}.", hint=f"The specs are {', '.join(_SPECS)}.")
        if _SPECS[self.spec][0] == "torch":
            try:
                import torch  # noqa: F401
            except ImportError as error:
                raise MissingPackageError.of("torch", f"the image spec {self.spec!r}", "torch") from error

    def __call__(self, key: str, data: bytes) -> Any:
        if key.rpartition(".")[2].lower() not in _PICTURES:
            return None
        from tarviz.ops.pictures import decode_image, decode_picture

        container, scaled, channels = _SPECS[self.spec]
        if container == "pil":
            return decode_image(data, channels=channels)
        pixels = decode_picture(data, channels=channels)
        result = convert_image(pixels, np.dtype(np.float32)) if scaled else pixels
        if container == "numpy":
            return result[:, :, 0] if channels == 1 else result
        import torch

        return torch.from_numpy(result[:, :, 0] if channels == 1 else np.ascontiguousarray(result.transpose(2, 0, 1)))


def imagehandler(imagespec: str) -> ImageHandler:
    """The handler for an image spec."""
    return ImageHandler(imagespec)


class Continue:
    """What a decoder returns to hand on other bytes under another name to the decoders behind it."""

    def __init__(self, key: str, data: bytes) -> None:
        self.key, self.data = key, data


def gzfilter(key: str, data: bytes) -> Continue | None:
    """Unpacks fields that end in `.gz`; how far they may expand is limited."""
    return Continue(key[:-3], gunzip(data)) if key.endswith(".gz") else None


@dataclass(frozen=True, slots=True)
class BasicHandler:
    """Decodes text, classes, JSON, npy, npz and MessagePack by extension; pickles only where `unsafe` names them."""

    unsafe: tuple[str, ...] = ()

    def __call__(self, key: str, data: bytes) -> Any:
        ext = key.lstrip(".")
        last = ext.rpartition(".")[2].lower()
        if last in _CLASSES:
            return int(decode_class(data))
        if last in _TEXTS or last in _TREES or last in _PICKLES:
            return decode_payload(ext, data, unsafe=self.unsafe)
        return _unpacked(data) if last in _PACKED else None


def _unpacked(data: bytes) -> Any:
    try:
        import msgpack  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise MissingPackageError(
            "a MessagePack field needs the package msgpack, which is not installed.", hint="pip install msgpack"
        ) from error
    return msgpack.unpackb(data)


def handle_extension(extensions: str, f: Callable[[bytes], Any]) -> FieldDecoder:
    """A decoder that calls `f` for the extensions named (`"jpg png"`, `"seg.png"`)."""
    return ByExtension(dict.fromkeys(extensions.lower().split(), f))


@dataclass(frozen=True)
class ByExtension:
    """A decoder from a table: extension → function of the payload. Of several that fit, the longest counts."""

    table: Mapping[str, Callable[[bytes], Any]]

    def __call__(self, key: str, data: bytes) -> Any:
        ext = key.lstrip(".").lower()
        while ext not in self.table:
            _, dot, ext = ext.partition(".")
            if not dot:
                return None
        return self.table[ext](data)


class Decoder:
    """Decodes the fields of a sample: each by the first handler that returns something; fields nobody knows stay bytes.

    A handler is an image spec or a function of (`".jpg"`, bytes). `only` names the extensions to decode; `partial` lets
    values pass that are decoded already.
    """

    def __init__(
        self,
        handlers: Iterable[str | FieldDecoder],
        pre: Iterable[FieldDecoder] | None = None,
        post: Iterable[FieldDecoder] | None = None,
        only: str | Iterable[str] | None = None,
        partial: bool = False,
        unsafe: Iterable[str] = (),
    ) -> None:
        own = [ImageHandler(each) if isinstance(each, str) else each for each in handlers]
        basic = BasicHandler((unsafe,) if isinstance(unsafe, str) else tuple(unsafe))
        self.handlers = [*(pre if pre is not None else [gzfilter]), *own, *(post if post is not None else [basic])]
        self.only = None if only is None else frozenset(only.split() if isinstance(only, str) else only)
        self.partial = partial
        for handler in self.handlers:
            if not callable(handler):
                raise UsageError(f"{handler!r} is no decoder.", hint="A decoder is an image spec or a function of (extension, bytes).")

    def field(self, sample: Sample, ext: str, value: Any) -> Any:
        """One field's value."""
        if self.only is not None and ext not in self.only:
            return value
        if not isinstance(value, bytes):
            if self.partial:
                return value
            raise UsageError(
                f"the field is {type(value).__name__}, not bytes.",
                hint="Is it decoded twice? partial=True lets it pass.",
                **_at(sample, ext),
            )
        key, data = f".{ext}", value
        try:
            for handler in self.handlers:
                result = handler(key, data)
                if isinstance(result, Continue):
                    key, data = result.key, result.data
                elif result is not None:
                    return result
        except TarvizError as error:
            raise error.at(**_at(sample, ext)) from error.__cause__
        except Exception as error:
            error.add_note(f"decoding the field {ext!r} of the record {sample.get('__key__')!r} in {sample.get('__url__')}")
            raise
        return data

    def __call__(self, sample: Sample) -> Sample:
        if not isinstance(sample, dict):
            raise UsageError(f"decode works on samples that are dicts, got {type(sample).__name__}.", hint="Put decode before to_tuple.")
        return {ext: value if ext.startswith("__") else self.field(sample, ext, value) for ext, value in sample.items()}


def _at(sample: Sample, ext: str) -> dict[str, Any]:
    return {"shard": sample.get("__url__"), "key": sample.get("__key__"), "member": f"{sample.get('__key__')}.{ext}"}
