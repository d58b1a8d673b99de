"""`webdataset.autodecode`: image specs (`rgb`, `l8`, `torch`, `pil`, …) and fields by extension, by the engine's decoders."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from tarviz.dialects.webdataset.gopen import refuse_secure
from tarviz.dialects.webdataset.parts.samples import Sample, check_sample
from tarviz.model.errors import DataError, MissingPackageError, TarvizError, UsageError, require
from tarviz.ops.values.payloads import PICTURES, Wish, decode_class, decode_payload, gunzip

FieldDecoder: TypeAlias = Callable[[str, bytes], Any]
Container: TypeAlias = Literal["numpy", "torch", "pil"]

_CHANNELS = {"l": 1, "rgb": 3, "rgba": 4}
_BOXES: tuple[tuple[str, Container], ...] = (("", "numpy"), ("torch", "torch"))
_PICTURES = frozenset({*PICTURES, "img", "image"})
_KNOWN = ("txt", "text", "transcript", "json", "jsn", "npy", "npz", "mp", "msg", "msgpack", "ten", "tb")
_PICKLES = frozenset({"pyd", "pkl", "pickle", "pth"})

pytorch_weights_only = os.environ.get("WDS_PYTORCH_WEIGHTS_ONLY", "0") == "1"


class DecodingError(DataError):
    """A field that could not be decoded: its name is `k`, that of the record `key`, that of the shard `url`; `__cause__` says why."""

    code = "E_DECODE"

    def __init__(self, message: str = "", *, url: str | None = None, k: str | None = None, sample: Any = None, **place: Any) -> None:
        super().__init__(message or f"the field {k!r} could not be decoded.", **{"shard": url, **place})
        self.k = k
        self.sample = sample

    @property
    def url(self) -> str | None:
        """The shard's URL."""
        return self.shard

    @classmethod
    def of(cls, error: Exception, sample: Sample, ext: str) -> DecodingError:
        """The error for a field of a sample, saying what `error` says, with its code and hint."""
        place: dict[str, Any] = {"key": sample.get("__key__"), "member": f"{sample.get('__key__')}.{ext}"}
        message = f"the field {ext!r} could not be decoded: {type(error).__name__}: {error}"
        if isinstance(error, TarvizError):
            place |= {"code": error.code, "hint": error.hint, "details": error.details}
            message = error.message
        return cls(message, url=sample.get("__url__"), k=ext, sample=sample, **place)


# Every image spec: what holds the pixels, what a value is (floats in 0…1, or bytes), the channels.
imagespecs: dict[str, tuple[Container, str | None, str]] = {
    **{f"{prefix}{mode}": (box, "float", mode) for prefix, box in _BOXES for mode in _CHANNELS},
    **{f"{prefix}{mode}8": (box, "uint8", mode) for prefix, box in _BOXES for mode in _CHANNELS},
    **{f"pil{mode}": ("pil", None, mode) for mode in _CHANNELS},
    "torch": ("torch", "float", "rgb"),
    "torch8": ("torch", "uint8", "rgb"),
    "pil": ("pil", None, "rgb"),
}


@dataclass(frozen=True, slots=True)
class ImageHandler:
    """Decodes the fields whose extension says picture, as `spec` says.

    NumPy: [height, width, channels], grey [height, width], float32 in 0…1 or uint8 (`…8`); torch: the same with the
    channels first; PIL: an image in mode L, RGB or RGBA.
    """

    spec: str
    extensions: Iterable[str] = _PICTURES

    def __post_init__(self) -> None:
        object.__setattr__(self, "extensions", frozenset(self.extensions))
        if self.spec not in imagespecs:
            raise UsageError(f"there is no image spec {self.spec!r}.", hint=f"The specs are {', '.join(imagespecs)}.")
        if imagespecs[self.spec][0] == "torch":
            require("torch", f"the image spec {self.spec!r}", "torch")

    def __call__(self, key: str, data: bytes) -> Any:
        if key.rpartition(".")[2].lower() not in self.extensions:
            return None
        from tarviz.ops.values.pictures import decode_image
        from tarviz.ops.values.raster import decode_picture

        container, kind, mode = imagespecs[self.spec]
        channels = _CHANNELS[mode]
        if container == "pil":
            return decode_image(data, channels=channels)
        pixels = decode_picture(data, channels=channels)
        result = pixels.astype(np.float32) / np.float32(255) if kind == "float" else pixels
        if container == "numpy":
            return result[:, :, 0] if channels == 1 else result
        import torch

        return torch.from_numpy(result[:, :, 0] if channels == 1 else np.ascontiguousarray(result.transpose(2, 0, 1)))


imagehandler = ImageHandler


def place_of(sample: Any) -> dict[str, Any]:
    """Shard and key of a sample, for errors."""
    return {"shard": sample.get("__url__"), "key": sample.get("__key__")}


def fits(name: str, pattern: str) -> bool:
    """Whether a field's name, with or without a dot before it, fits a pattern."""
    return fnmatch(name, pattern) or fnmatch(f".{name}", pattern)


class Continue:
    """What a decoder returns to hand on other bytes under another name to the decoders after it."""

    def __init__(self, key: str, data: bytes) -> None:
        self.key, self.data = key, data


def gzfilter(key: str, data: bytes) -> Continue | None:
    """Unpacks fields that end in `.gz`; how far they may expand is limited."""
    return Continue(key[:-3], gunzip(data)) if key.endswith(".gz") else None


@dataclass(frozen=True, slots=True)
class BasicHandler:
    """Decodes text, classes, JSON, npy, npz, MessagePack and `ten` by extension; pickles only where `unsafe` names them."""

    unsafe: tuple[str, ...] = ()

    def __call__(self, key: str, data: bytes) -> Any:
        ext = key.lstrip(".")
        last = ext.rpartition(".")[2].lower()
        if last in _PICKLES:
            return decode_payload(ext, data, Wish(unsafe=self.unsafe))
        return decoders[last](data) if last in decoders else None


def _class(data: bytes) -> int:
    return int(decode_class(data))


def unpickle_loads(data: bytes) -> Any:
    """What a pickle holds. Loading it runs what it says: call this only for data of your own."""
    refuse_secure("Unpickling is not allowed for security reasons when enforce_security is set.")
    return decode_payload("pkl", data, Wish(unsafe=("pkl",)))


def torch_loads(data: bytes) -> Any:
    """What `torch.save` wrote, on the CPU. Loading it runs what it says unless `pytorch_weights_only` is set."""
    refuse_secure("torch.loads is not allowed for security reasons when enforce_security is set.")
    import torch

    return torch.load(io.BytesIO(data), weights_only=pytorch_weights_only, map_location="cpu")


decoders: dict[str, Callable[[bytes], Any]] = {
    **{ext: partial(decode_payload, ext) for ext in _KNOWN},
    **dict.fromkeys(("cls", "cls2", "class", "count", "index", "inx", "id"), _class),
    **dict.fromkeys(("pkl", "pickle", "pyd"), unpickle_loads),
    "pth": torch_loads,
}


def torch_audio(key: str, data: bytes) -> Any:
    """A decoder for sound (flac, mp3, wav, m4a, ogg, …) by torchaudio: samples [channels, time] and their rate in Hz."""
    if (ext := key.rpartition(".")[2].lower()) not in ("flac", "mp3", "sox", "wav", "m4a", "ogg", "wma"):
        return None
    return _from_file(require("torchaudio", "torch_audio").load, data, ext)


def torch_video(key: str, data: bytes) -> Any:
    """A decoder for films (mp4, avi, mov, webm, …) by torchvision: frames [time, height, width, channels], sound, and their rates."""
    if (ext := key.rpartition(".")[2].lower()) not in ("mp4", "ogv", "mjpeg", "avi", "mov", "h264", "mpg", "webm", "wmv"):
        return None
    try:
        from torchvision.io import read_video  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise MissingPackageError.of("torchvision", "torch_video with read_video") from error
    return _from_file(partial(read_video, pts_unit="sec"), data, ext)


def _from_file(read: Callable[[str], Any], data: bytes, ext: str) -> Any:
    with tempfile.NamedTemporaryFile(suffix=f".{ext}") as file:
        file.write(data)
        file.flush()
        return read(file.name)


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
                raise UsageError(f"{handler!r} is not a decoder.", hint="A decoder is an image spec or a function of (extension, bytes).")

    def field(self, sample: Sample, ext: str, value: Any) -> Any:
        """One field's value; what a sample says of itself (`__source__`) is text."""
        if ext.startswith("__"):
            with contextlib.suppress(UnicodeDecodeError):
                return value.decode() if isinstance(value, bytes) else value
            return value
        if self.only is not None and ext not in self.only:
            return value
        if not isinstance(value, bytes):
            if self.partial:
                return value
            error = UsageError(f"the field is {type(value).__name__}, not bytes.", hint="Is it decoded twice? partial=True lets it pass.")
            raise DecodingError.of(error, sample, ext) from error
        key, data = f".{ext}", value
        try:
            for handler in self.handlers:
                result = handler(key, data)
                if isinstance(result, Continue):
                    key, data = result.key, result.data
                elif result is not None:
                    return result
        except Exception as error:
            raise DecodingError.of(error, sample, ext) from error
        return data

    def __call__(self, sample: Sample) -> Sample:
        check_sample(sample, "decode")
        return {ext: self.field(sample, ext, value) for ext, value in sample.items()}


@dataclass(frozen=True)
class PatternDecoder:
    """Decodes fields by the last pattern that their names fit, with a function of an open binary file; False leaves them as bytes."""

    table: tuple[tuple[str, Any], ...]
    must_decode: bool = True

    def __call__(self, sample: Sample) -> Sample:
        return {name: value if name.startswith("__") else self._field(sample, name, value) for name, value in sample.items()}

    def _field(self, sample: Sample, name: str, value: Any) -> Any:
        base = name.rpartition("/")[2].lower()
        f = next((f for pattern, f in reversed(self.table) if fits(base, pattern)), None)
        if f is None and self.must_decode:
            hint = f'Give a function for it (("*.{base}", f)), or must_decode=False.'
            raise UsageError(f"no pattern fits the field {name!r}.", hint=hint, **place_of(sample))
        return value if f is None or f is False else f(io.BytesIO(value) if isinstance(value, bytes) else value)
