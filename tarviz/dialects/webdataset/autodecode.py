"""`webdataset.autodecode`: image specs (`rgb`, `l8`, `torch`, `pil`, …) and fields by extension, by the engine's decoders."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from tarviz.dialects.webdataset.parts.samples import Sample
from tarviz.model.errors import DataError, MissingPackageError, TarvizError, UsageError
from tarviz.ops.values.payloads import PICTURES, Wish, decode_class, decode_payload, gunzip

FieldDecoder: TypeAlias = Callable[[str, bytes], Any]
Container: TypeAlias = Literal["numpy", "torch", "pil"]

_CHANNELS = {"l": 1, "rgb": 3, "rgba": 4}
_PICTURES = frozenset({*PICTURES, "img", "image"})
_CLASSES = frozenset({"cls", "cls2", "class", "count", "index", "inx", "id"})
_TEXTS = frozenset({"txt", "text", "transcript"})
_TREES = frozenset({"json", "jsn", "npy", "npz"})
_PICKLES = frozenset({"pyd", "pkl", "pickle", "pth"})
_PACKED = frozenset({"mp", "msg", "msgpack"})
_TENSORS = frozenset({"ten", "tb"})

IMAGE_EXTENSIONS = sorted(_PICTURES)
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
imagespecs = {
    name: (container, "float" if scaled else "uint8" if container != "pil" else None, {1: "l", 3: "rgb", 4: "rgba"}[channels])
    for name, (container, scaled, channels) in _SPECS.items()
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
        if self.spec not in _SPECS:
            raise UsageError(f"there is no image spec {self.spec!r}.", hint=f"The specs are {', '.join(_SPECS)}.")
        if _SPECS[self.spec][0] == "torch":
            try:
                import torch  # noqa: F401
            except ImportError as error:
                raise MissingPackageError.of("torch", f"the image spec {self.spec!r}", "torch") from error

    def __call__(self, key: str, data: bytes) -> Any:
        if key.rpartition(".")[2].lower() not in self.extensions:
            return None
        from tarviz.ops.values.pictures import decode_image
        from tarviz.ops.values.raster import decode_picture

        container, scaled, channels = _SPECS[self.spec]
        if container == "pil":
            return decode_image(data, channels=channels)
        pixels = decode_picture(data, channels=channels)
        result = pixels.astype(np.float32) / np.float32(255) if scaled else pixels
        if container == "numpy":
            return result[:, :, 0] if channels == 1 else result
        import torch

        return torch.from_numpy(result[:, :, 0] if channels == 1 else np.ascontiguousarray(result.transpose(2, 0, 1)))


def imagehandler(imagespec: str, extensions: Iterable[str] = _PICTURES) -> ImageHandler:
    """The handler for an image spec."""
    return ImageHandler(imagespec, extensions)


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
        if last in _CLASSES:
            return int(decode_class(data))
        if last in _TEXTS or last in _TREES or last in _PICKLES:
            return decode_payload(ext, data, Wish(unsafe=self.unsafe))
        if last in _TENSORS:
            return tenbin_loads(data)
        return msgpack_loads(data) if last in _PACKED else None


def basichandlers(key: str, data: bytes) -> Any:
    """The value of a field by its extension; None where nothing is known of that."""
    return BasicHandler()(key, data)


def msgpack_loads(data: bytes) -> Any:
    """The value of a MessagePack field."""
    try:
        import msgpack  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise MissingPackageError.of("msgpack", "a MessagePack field") from error
    try:
        return msgpack.unpackb(data)
    except Exception as error:  # its errors have no class in common
        raise DataError(f"this is not MessagePack: {type(error).__name__}: {error}", code="E_DECODE") from error


def tenbin_loads(data: bytes) -> Any:
    """The arrays of a `ten` field."""
    from tarviz.dialects.webdataset import tenbin

    return tenbin.decode_buffer(data)


def npy_loads(data: bytes) -> Any:
    """The array of an npy field."""
    return decode_payload("npy", data)


def npz_loads(data: bytes) -> Any:
    """The arrays of an npz field by name."""
    return decode_payload("npz", data)


def unpickle_loads(data: bytes) -> Any:
    """What a pickle holds. Loading it runs what it says: call this only for data of your own."""
    if _secure():
        raise UsageError("Unpickling is not allowed for security reasons when enforce_security is set.")
    return decode_payload("pkl", data, Wish(unsafe=("pkl",)))


def torch_loads(data: bytes) -> Any:
    """What `torch.save` wrote, on the CPU. Loading it runs what it says unless `pytorch_weights_only` is set."""
    if _secure():
        raise UsageError("torch.loads is not allowed for security reasons when enforce_security is set.")
    import torch

    return torch.load(io.BytesIO(data), weights_only=pytorch_weights_only, map_location="cpu")


def _secure() -> bool:
    from tarviz.dialects.webdataset import utils

    return utils.enforce_security


decoders: dict[str, Callable[[bytes], Any]] = {
    **{ext: partial(decode_payload, ext) for ext in ("txt", "text", "transcript", "json", "jsn", "npy", "npz")},
    **dict.fromkeys(("cls", "cls2", "index", "inx", "id"), lambda data: int(decode_class(data))),
    **dict.fromkeys(("pkl", "pickle", "pyd"), unpickle_loads),
    "pth": torch_loads,
    **dict.fromkeys(("mp", "msg"), msgpack_loads),
    **dict.fromkeys(("ten", "tb"), tenbin_loads),
}


def torch_audio(key: str, data: bytes) -> Any:
    """A decoder for sound (flac, mp3, wav, m4a, ogg, …) by torchaudio: samples [channels, time] and their rate in Hz."""
    if (ext := key.rpartition(".")[2].lower()) not in ("flac", "mp3", "sox", "wav", "m4a", "ogg", "wma"):
        return None
    try:
        import torchaudio  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise MissingPackageError.of("torchaudio", "torch_audio") from error
    with _as_file(data, ext) as path:
        return torchaudio.load(path)


def torch_video(key: str, data: bytes) -> Any:
    """A decoder for films (mp4, avi, mov, webm, …) by torchvision: frames [time, height, width, channels], sound, and their rates."""
    if (ext := key.rpartition(".")[2].lower()) not in ("mp4", "ogv", "mjpeg", "avi", "mov", "h264", "mpg", "webm", "wmv"):
        return None
    try:
        from torchvision.io import read_video  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise MissingPackageError(
            "torch_video needs torchvision with read_video, which is not installed.", hint="pip install torchvision"
        ) from error
    with _as_file(data, ext) as path:
        return read_video(path, pts_unit="sec")


@contextmanager
def _as_file(data: bytes, ext: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"field.{ext}")
        with open(path, "wb") as file:
            file.write(data)
        yield path


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
        """One field's value."""
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
        if not isinstance(sample, dict):
            raise UsageError(f"decode works on samples that are dicts, got {type(sample).__name__}.", hint="Put decode before to_tuple.")
        return {ext: value if ext.startswith("__") else self.field(sample, ext, value) for ext, value in sample.items()}


def xdecoder(
    table: Iterable[tuple[str, Callable[[Any], Any] | bool]],
    must_decode: bool = True,
    defaults: Iterable[tuple[str, Callable[[Any], Any]]] | None = None,
) -> PatternDecoder:
    """A decoder of samples from pairs of a pattern (`"*.png"`) and a function of an open binary file."""
    return PatternDecoder((*(_FILES if defaults is None else defaults), *table), must_decode)


@dataclass(frozen=True)
class PatternDecoder:
    """Decodes the fields of a sample by the last pattern that their names fit; False leaves a field as bytes."""

    table: tuple[tuple[str, Any], ...]
    must_decode: bool = True

    def __call__(self, sample: Sample) -> Sample:
        return {name: value if name.startswith("__") else self._field(sample, name, value) for name, value in sample.items()}

    def _field(self, sample: Sample, name: str, value: Any) -> Any:
        base = name.rpartition("/")[2].lower()
        f = next((f for pattern, f in reversed(self.table) if fnmatch(base, pattern) or fnmatch(f".{base}", pattern)), None)
        if f is None and self.must_decode:
            raise UsageError(
                f"no pattern fits the field {name!r}.",
                hint=f'Give a function for it (("*.{base}", f)), or must_decode=False.',
                shard=sample.get("__url__"),
                key=sample.get("__key__"),
            )
        return value if f is None or f is False else f(io.BytesIO(value) if isinstance(value, bytes) else value)


def _read(file: Any) -> Any:
    return file.read()


def _read_text(file: Any) -> str:
    return str(file.read().decode("utf-8"))


_FILES = (("*.bin", _read), ("*.txt", _read_text))
