"""Files of foreign libraries in odd forms, each with the value that its library reads; and how far two values are apart."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from tarviz.samples import write_shard

REFUSED: Final = "to be refused by name"
# What makes them: a module of this folder, and the libraries it takes.
FAMILIES = {
    **dict.fromkeys(("tiffs", "pngs", "jpegs", "plain", "modern"), ("pictures", "tifffile imagecodecs imageio")),
    "drawn": ("pictures", "tifffile imagecodecs imageio OpenEXR pypdfium2"),
    **dict.fromkeys(("sounds", "sounds_by_av"), ("sounds", "soundfile av soxr")),
    **dict.fromkeys(("films", "animations"), ("films", "av imageio")),
    **dict.fromkeys(
        ("arrays", "words", "trees", "tables", "clouds"), ("objects", "msgpack cbor2 safetensors pyarrow yaml webdataset pandas")
    ),
    "volumes": ("volumes", "pydicom nibabel"),
}


@dataclass(frozen=True, slots=True)
class Odd:
    """`data` is the payload of a field `ext`; `value` what its library reads of it, no further than `near` from ours, or `REFUSED`.
    `options` are those of the op `decode`."""

    name: str
    ext: str
    data: bytes
    value: Any
    options: str = ""
    near: float = 0

    @property
    def chain(self) -> str:
        """What decodes it, and others of its kind in one shard."""
        return f"decode({self.ext!r}{', ' if self.options else ''}{self.options})"


@cache
def odd_files(family: str) -> tuple[Odd, ...]:
    """All of a family; skips the test where a library is not installed."""
    module, libraries = FAMILIES[family]
    for library in libraries.split():
        pytest.importorskip(library, reason=f"{library} makes odd files")
    make: Callable[[], Iterator[Odd]] = getattr(importlib.import_module(f"tests.odd.{module}"), family)
    return tuple(make())


def saved(save: Callable[..., Any], *args: Any, **options: Any) -> bytes:
    """What `save(FILE, …)` writes."""
    out = io.BytesIO()
    save(out, *args, **options)
    return out.getvalue()


def planes(pixels: Any) -> Any:
    """A picture as [h, w, bands]."""
    array = np.asarray(pixels)
    array = array.astype(np.uint8) if array.dtype == bool else array.astype(array.dtype.newbyteorder("="))
    return array[:, :, None] if array.ndim == 2 else array


def difference(expected: Any, found: Any, near: float = 0) -> str:
    """What differs, in words; "" for what is equal, NaN to NaN as well."""
    if isinstance(expected, Mapping):
        if not isinstance(found, Mapping) or set(expected) != set(found):
            return f"{expected!r:.60} is {found!r:.60}"
        return next(filter(None, (difference(expected[name], found[name], near) for name in expected)), "")
    if isinstance(expected, list | tuple) or (isinstance(expected, np.ndarray) and expected.dtype.kind == "O"):
        if type(expected) is not type(found) or len(expected) != len(found):
            return f"{expected!r:.60} is {found!r:.60}"
        return next(filter(None, (difference(one, other, near) for one, other in zip(expected, found, strict=True))), "")
    if not isinstance(expected, np.ndarray | np.generic):
        equal = type(expected) is type(found) and (expected == found or expected != expected)
        return "" if equal else f"{expected!r:.60} is {found!r:.60}"
    form = f"{expected.dtype.newbyteorder('=')}{list(expected.shape)}"
    if not isinstance(found, np.ndarray | np.generic) or form != f"{found.dtype.newbyteorder('=')}{list(found.shape)}":
        return f"{form} is {getattr(found, 'dtype', type(found))}{list(getattr(found, 'shape', []))}"
    if near:
        apart = np.abs(expected.astype(np.float64) - found.astype(np.float64)).max(initial=0)
        return f"apart by {apart}" if apart > near else ""
    plain = expected.dtype.names is not None or expected.dtype.kind in "SUb"
    return "" if np.array_equal(expected, found, equal_nan=not plain) else "other numbers"


@dataclass(frozen=True, slots=True)
class Shard:
    """Files that one chain decodes, to values of one dtype and rank, as graphs want them; their numbers are the keys."""

    url: str
    chain: str
    files: tuple[Odd, ...]

    def expected(self) -> dict[str, Odd]:
        """The files that are decoded, by key."""
        return {f"{at:03d}": odd for at, odd in enumerate(self.files) if odd.value is not REFUSED}

    def differences(self, found: Mapping[str, Any]) -> list[str]:
        """What is not as its library reads it, of values by key: a line each."""
        wanted = self.expected()
        lines = [
            f"{odd.name}: {apart}" for key, odd in wanted.items() if key in found and (apart := difference(odd.value, found[key], odd.near))
        ]
        lines += [f"{odd.name}: not there" for key, odd in wanted.items() if key not in found]
        return lines + [f"{self.files[int(key)].name}: not refused" for key in found if key not in wanted]


def shards(family: str, folder: Path) -> list[Shard]:
    """A family as shards, what is to be refused beside what is decoded by the same chain."""
    files = odd_files(family)
    forms: dict[tuple[str, Any], list[Odd]] = {}
    for odd in sorted(files, key=lambda odd: odd.value is REFUSED):
        shape = np.shape(odd.value) if "npy" in odd.ext else getattr(odd.value, "ndim", 0)  # an array's is held to the first one's
        form = (odd.chain, (str(getattr(odd.value, "dtype", type(odd.value).__name__)).strip(">"), shape))
        if odd.value is REFUSED:
            form = next((other for other in forms if other[0] == odd.chain), form)
        forms.setdefault(form, []).append(odd)
    made = [Shard(str(folder / f"{family}-{at}.tar"), form[0], tuple(held)) for at, (form, held) in enumerate(forms.items())]
    for shard in made:
        write_shard(shard.url, [(f"{at:03d}", {odd.ext: odd.data}) for at, odd in enumerate(shard.files)])
    return made
