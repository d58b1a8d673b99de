"""Records as the members of a tar: keys and extensions checked, values encoded by extension."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.formats.tar_header import plain_header
from tarviz.model.errors import ChainError, SchemaError, TarvizError, UsageError
from tarviz.model.types import PLACES, Buffer, to_bytes
from tarviz.ops import Encode

_SHORT = 8192  # bytes: pieces smaller than this on average are joined
_AS_IT_IS = ("1", "P", "I;16")  # modes of PIL that PNG has, too: the numbers of a palette are classes of a mask, 16 bits a depth
_plain_key = re.compile(r"[\w-]+").fullmatch
_OUTSIDE = re.compile(r"[/\\~]|[A-Za-z]:|(.*[/\\])?\.\.([/\\]|$)", re.DOTALL)
_NO_NAME = re.compile(r"[\0\ud800-\udc7f\udd00-\udfff]").search  # bytes that UTF-8 lacks are \udc80 to \udcff: to_bytes


def check_key(key: str) -> None:
    """`UsageError` for a key that would not be read back as that key, or leads out of the folder a shard is unpacked into."""
    if not isinstance(key, str):
        raise UsageError(f"a key is a text, got {type(key).__name__}.", hint="It names the record: write('0001', {'jpg': picture}).")
    if _plain_key(key):
        return
    if _OUTSIDE.match(key):
        text = f"the key {key!r} leads out of the folder that a shard is unpacked into."
        raise UsageError(text, code="E_UNSAFE_NAME", key=key, hint="Keys are relative, without '..'.")
    base = key.rpartition("/")[2]
    if not base or "." in base or key.startswith("./") or _NO_NAME(key):
        text = f"{key!r} cannot be a key: readers would cut it elsewhere."
        hint = "Its last part is not empty and holds no dot (put _ there); it begins with no ./ and is text without NUL."
        raise UsageError(text, key=key, hint=hint)


def array_of(value: Any) -> Any:
    """A PIL picture as an array [height, width, channels], a tensor as one of its shape, what is bytes inside as bytes; else the value.

    `ValueError` for a picture whose values do not fit in 8 bits, `TypeError` or `RuntimeError` for a tensor that NumPy cannot hold.
    """
    if hasattr(value, "convert") and hasattr(value, "getbands"):  # no package is imported to ask
        if value.mode[0] in "IF":
            raise ValueError(f"a picture of mode {value.mode} has more than 8 bits; give the bytes of its file, or an array as npy")
        plain = "RGBA" if value.mode == "PA" or "transparency" in value.info else "RGB"
        array = np.asarray(value if value.mode in ("L", "RGB", "RGBA", "LA") else value.convert(plain))
        return array[:, :, None] if array.ndim == 2 else array
    if type(value) is dict and value.keys() == {"bytes", "path"} and value["bytes"] is not None:  # a picture of datasets, not decoded
        return value["bytes"]
    if hasattr(value, "cpu"):
        return value.detach().cpu().numpy()
    if hasattr(value, "__array__") and not isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return array.item() if array.dtype.hasobject and not array.shape else array
    return value


def encode(op: Callable[[str], Encode], ext: str, value: Any, prepare: Callable[[Any], Any] | None = None) -> bytes:
    """A value that is not bytes by the op for its extension, `prepare`d before. `SchemaError` where it cannot be written."""
    try:
        if getattr(value, "mode", None) in _AS_IT_IS and op(ext).format_name == "png":
            value.save(picture := io.BytesIO(), "PNG")
            return picture.getvalue()
        given = array_of(value)
        return given if isinstance(given, bytes) else op(ext).apply(prepare(given) if prepare else given)
    except TarvizError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise SchemaError(f"{ext!r} cannot be written: {str(error).rstrip('.')}.") from error


@dataclass(slots=True)
class RecordEncoder:
    """Makes members of records: bytes as they are, other values by the op `encode`, as the extension or `formats` says.

    `formats` names a format by extension (`{"caption": "txt"}`); `quality` is for JPEG and WebP. Threads may share it.

    >>> pieces = RecordEncoder().members("0001", {"cls": 3, "txt": "a cat"})
    >>> pieces[1], pieces[4]
    (b'3', b'a cat')
    """

    formats: Mapping[str, str] = field(default_factory=dict)
    quality: int = 90
    _ops: dict[str, Encode] = field(default_factory=dict)
    _suffixes: dict[str, bytes] = field(default_factory=dict)  # of member names, by extension
    _alike: bool = False  # two extensions differ in case alone

    def __post_init__(self) -> None:
        Encode("jpg", quality=self.quality)
        for ext in self.formats:
            self._op(ext)

    def members(self, key: str, fields: Mapping[str, Any]) -> list[Buffer]:
        """Header, payload and padding of each field, in their order. What a record says of itself (`__key__`, …) is no field."""
        check_key(key)
        before = to_bytes(key)
        pieces: list[Buffer] = []
        for ext, value in fields.items():
            if (suffix := self._suffixes.get(ext)) is None:
                if ext in PLACES:
                    continue
                suffix = self._suffix(key, ext)
            data = value if type(value) is bytes else self._encode(key, ext, value)
            size = len(data)
            pieces += (plain_header(before + suffix, size), data, bytes(-size % 512))
        if not pieces:
            raise UsageError("the record has no field.", key=key, hint="A key alone is nothing that a tar can hold.")
        if self._alike and len({ext.lower() for ext in fields}) < len(fields):
            raise UsageError("two fields differ in case alone, and would be read as one.", code="E_DUP_FIELD", key=key)
        return pieces

    def _suffix(self, key: str, ext: str) -> bytes:
        if not isinstance(ext, str) or not all(ext.split(".")) or "/" in ext or _NO_NAME(ext):
            text = f"{ext!r} cannot name a field."
            raise UsageError(text, key=key, hint="A field is named as an extension: jpg, cls, seg.png.")
        self._alike = self._alike or ext.lower() in map(str.lower, self._suffixes)
        return self._suffixes.setdefault(ext, to_bytes(f".{ext}"))

    def _op(self, ext: str) -> Encode:
        if ext not in self._ops:
            self._ops[ext] = Encode(ext, self.formats.get(ext), quality=self.quality)
        return self._ops[ext]

    def _encode(self, key: str, ext: str, value: Any) -> bytes:
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)  # a copy: it may change before it is written
        try:
            return encode(self._op, ext, value)
        except ChainError as error:
            likely = (
                "txt" if isinstance(value, str) else "npy" if hasattr(value, "shape") else "png" if hasattr(value, "getbands") else "json"
            )
            hint = f"Give bytes, or name a format: formats={{{ext!r}: {likely!r}}}."
            raise SchemaError(f"{ext!r} says no format, and the value is {type(value).__name__}.", key=key, hint=hint) from error
        except TarvizError as error:
            raise error.at(key=key) from error.__cause__


@dataclass(slots=True, eq=False)
class EncodedRecords:
    """Records ready to be written: `add` their members, then hand them to `Outputs.add`."""

    pieces: list[Buffer] = field(default_factory=list)
    edges: list[int] = field(default_factory=lambda: [0])  # in `pieces`: where each record begins, and where the last ends
    sizes: list[int] = field(default_factory=list)  # bytes of each record
    bytes: int = 0

    def add(self, members: list[Buffer]) -> None:
        """One record more."""
        self.pieces += members
        self.edges.append(len(self.pieces))
        self.sizes.append(sum(map(len, members)))
        self.bytes += self.sizes[-1]

    @property
    def size(self) -> NDArray[np.int64]:
        """Bytes of each record."""
        return np.array(self.sizes, np.int64)

    def buffers(self, first: int = 0, last: int | None = None) -> list[Buffer]:
        """What to write for the records `first:last`: one buffer where members are short."""
        pieces = self.pieces[self.edges[first] : None if last is None else self.edges[last]]
        return [b"".join(pieces)] if self.bytes < _SHORT * len(self.pieces) else pieces
