"""`npy`, NumPy's format of arrays, read in place: nothing is allocated before the header is held against the bytes there are.

Source: numpy/lib/_format_impl.py, the layout; its reader is not used, as it allocates before it reads, and loads pickles.
"""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.config import options
from tarviz.model.errors import DataError, LimitError
from tarviz.model.types import Buffer

MAGIC = b"\x93NUMPY"
_HEADER = 65536


def array_of(data: Buffer) -> NDArray[Any]:
    """The array of an npy file, a view on its bytes.

    Errors: `E_DECODE`, `E_LIMIT` above the option `max_member_bytes`, `E_UNSAFE_DECODER` for Python objects, which are pickles.
    """
    view = memoryview(data).cast("B")
    dtype, shape, fortran, start = _header(view)
    count = math.prod(shape)
    need, have = count * dtype.itemsize, len(view) - start
    if need > options().max_member_bytes:
        raise LimitError(f"the array {dtype}{list(shape)} needs {need} bytes, above the limit of {options().max_member_bytes}.")
    if need > have:
        raise DataError(f"the array {dtype}{list(shape)} needs {need} bytes, {have} are there.", code="E_DECODE")
    flat = np.frombuffer(view, dtype, count, start) if count else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if fortran else "C")


def _header(view: memoryview) -> tuple[np.dtype[Any], tuple[int, ...], bool, int]:
    wide = 4 if bytes(view[6:7]) in (b"\x02", b"\x03") else 2
    start = 8 + wide
    if bytes(view[:6]) != MAGIC or len(view) < start or view[6] not in (1, 2, 3):
        raise DataError("this is not a npy array: its first bytes are wrong.", code="E_DECODE")
    length = int.from_bytes(view[8:start], "little")
    if length > _HEADER or start + length > len(view):
        raise DataError(f"the npy header claims {length} bytes.", code="E_DECODE")
    try:
        header = ast.literal_eval(bytes(view[start : start + length]).decode("utf-8" if view[6] == 3 else "latin-1").strip())
        descr, shape, fortran = header["descr"], header["shape"], header["fortran_order"]
        dtype = np.lib.format.descr_to_dtype(descr)
    except (ValueError, SyntaxError, TypeError, LookupError, RecursionError, MemoryError, AttributeError) as error:
        raise DataError(f"the npy header cannot be read: {type(error).__name__}.", code="E_DECODE") from error
    if dtype.hasobject:
        raise DataError("an array of Python objects is a pickle, which can run code; it is not loaded.", code="E_UNSAFE_DECODER")
    if not isinstance(shape, tuple) or len(shape) > 32 or not all(type(n) is int and n >= 0 for n in shape) or not dtype.itemsize:
        raise DataError(f"the npy header has the shape {repr(shape)[:40]}.", code="E_DECODE")
    return dtype, shape, bool(fortran), start + length
