"""`webdataset.tenbin`: arrays as the bytes and the files of `ten`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from tarviz.formats.tenbin import decode_buffer, encode_buffer, encode_header
from tarviz.model.errors import UsageError

__all__ = ["decode_buffer", "encode_buffer", "encode_header", "load", "save"]


def save(fname: str, *arrays: NDArray[Any], infos: Sequence[str] | None = None, nocheck: bool = False) -> None:
    """Write arrays to a file whose name ends in `.ten`."""
    _check(fname, nocheck)
    with open(fname, "wb") as file:
        file.write(encode_buffer(list(arrays), infos))


def load(fname: str, infos: bool = False, nocheck: bool = False) -> Any:
    """The arrays of a file whose name ends in `.ten`."""
    _check(fname, nocheck)
    with open(fname, "rb") as file:
        return decode_buffer(file.read(), infos)


def _check(fname: str, nocheck: bool) -> None:
    if not nocheck and not fname.endswith(".ten"):
        raise UsageError(f"the name {fname!r} does not end in .ten.", hint="Pass nocheck=True where it is meant.")
