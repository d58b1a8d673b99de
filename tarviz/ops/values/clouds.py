"""Point clouds in files of their own: PLY, PCD and lines of x y z, each as a dict of columns."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import DataError
from tarviz.model.types import Buffer

Columns = dict[str, NDArray[Any]]

_HEADER = 1 << 16
_PLY = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "float": "f4", "double": "f8"}
_PLY |= {"int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4", "float32": "f4", "float64": "f8"}
_ELEMENT = re.compile(r"^element[ \t]+(\w+)[ \t]+(\d{1,12})[ \t]*\n((?:(?:property|comment|obj_info)\b.*\n)*)", re.MULTILINE)
_PROPERTY = re.compile(r"^property[ \t]+(.+?)[ \t]+(\S+)[ \t]*$", re.MULTILINE)
_NAMES = ("x", "y", "z", "red", "green", "blue")


def decode_ply(data: Buffer) -> Columns:
    """The corners of a PLY (its element `vertex`) by property; its faces are left out.

    Source: G. Turk, "The PLY Polygon File Format", 1998.
    """
    end = re.search(rb"^end_header[ \t]*\r?\n", bytes(data[:_HEADER]), re.MULTILINE)
    text = "" if end is None else bytes(data[: end.start()]).decode("latin-1").replace("\r\n", "\n")
    form = re.search(r"^format[ \t]+(ascii|binary_little_endian|binary_big_endian)\b", text, re.MULTILINE)
    if not text.startswith("ply\n") or end is None or form is None:
        raise DataError("this is not a PLY.", code="E_DECODE")
    at = end.end()
    order = ">" if "big" in form[1] else "<"
    for name, count, lines in _ELEMENT.findall(text):
        properties = _PROPERTY.findall(lines)
        if form[1] != "ascii" or name == "vertex":
            for kind, named in properties:
                if kind not in _PLY:
                    message = f"its property {named} before the end of the points is a {kind}, which is not read."
                    raise DataError(message, code="E_DECODE", hint="Write it anew with the element vertex first.")
        if name == "vertex":
            layout = [(str(named), order + _PLY[kind]) for kind, named in properties]
            return _table(data, at, np.dtype(layout), int(count), ascii_=form[1] == "ascii")
        if form[1] == "ascii":
            whole = bytes(data)
            for _ in range(min(int(count), len(data))):
                at = whole.index(b"\n", at) + 1
        else:
            at += int(count) * sum(np.dtype(_PLY[kind]).itemsize for kind, _ in properties)
    raise DataError("the PLY has no element vertex.", code="E_DECODE")


def decode_pcd(data: Buffer) -> Columns:
    """The fields of a PCD: ASCII, binary or compressed; `rgb` is left packed as it is.

    Source: https://pointclouds.org/documentation/tutorials/pcd_file_format.html
    """
    found = re.search(rb"^DATA (ascii|binary|binary_compressed)\r?\n", bytes(data[:_HEADER]), re.MULTILINE)
    if found is None:
        raise DataError("this is not a PCD.", code="E_DECODE")
    head = {line.split()[0]: line.split()[1:] for line in bytes(data[: found.start()]).decode("latin-1").splitlines() if line.split()}
    counts = [int(count) for count in head.get("COUNT", ["1"] * len(head["FIELDS"]))]
    layout = [
        (name if name != "_" else f"_{at}", f"<{kind.lower()}{size}", (count,) if count > 1 else ())
        for at, (name, kind, size, count) in enumerate(zip(head["FIELDS"], head["TYPE"], head["SIZE"], counts, strict=True))
    ]
    rows = int(head["POINTS"][0]) if "POINTS" in head else int(head["WIDTH"][0]) * int(head["HEIGHT"][0])
    dtype = np.dtype(layout)
    if found[1] != b"binary_compressed":
        return _table(data, found.end(), dtype, rows, ascii_=found[1] == b"ascii")
    packed, size = (int(n) for n in np.frombuffer(data, "<u4", 2, found.end()))
    if size != rows * dtype.itemsize:
        raise DataError(f"the PCD says {rows} points, and {size} bytes of them.", code="E_DECODE")
    plain = _lzf(bytes(data[found.end() + 8 : found.end() + 8 + packed]), size)
    columns, at = {}, 0
    for name, kind, shape in layout:  # a column after the other
        part = np.frombuffer(plain, np.dtype((kind, shape)), rows, at)
        columns[name], at = np.array(part), at + part.nbytes
    return columns


def decode_xyz(data: Buffer) -> Columns:
    """Lines of three to six numbers, x y z and colours; `E_DECODE` for those of a molecule, whose form has the same name."""
    rows = np.loadtxt(io.BytesIO(data), comments=("#", "//"), ndmin=2)  # float64: a surveyor's coordinates have nine digits
    if not 3 <= rows.shape[1] <= len(_NAMES):
        raise DataError(f"it has {rows.shape[1]} columns, which are not x, y, z and colours.", code="E_DECODE")
    return {name: rows[:, at] for at, name in enumerate(_NAMES[: rows.shape[1]])}


def _table(data: Buffer, at: int, dtype: np.dtype[Any], rows: int, *, ascii_: bool) -> Columns:
    """`rows` rows from byte `at` on, by column."""
    if rows * (2 * len(dtype.names or ()) if ascii_ else dtype.itemsize) > len(data) - at + 1:
        raise DataError(f"it is cut short: {rows} points are said, {max(len(data) - at, 0)} bytes are there.", code="E_DECODE")
    if ascii_:
        table = np.loadtxt(io.BytesIO(bytes(data[at:])), dtype, max_rows=rows, ndmin=1)
    else:
        table = np.frombuffer(data, dtype, rows, at)
    return {name: table[name].astype(table[name].dtype.newbyteorder("=")) for name in dtype.names or ()}


def _lzf(data: bytes, size: int) -> bytes:
    """LZF as PCL writes it. Source: liblzf's lzf_d.c."""
    out, at = bytearray(), 0
    while at < len(data) and len(out) <= size:
        control = data[at]
        at += 1
        if control < 32:
            out += data[at : at + control + 1]
            at += control + 1
            continue
        length = control >> 5
        if length == 7:
            length += data[at]
            at += 1
        start = len(out) - ((control & 31) << 8) - data[at] - 1
        at += 1
        if start < 0:
            raise DataError("its compressed points are damaged.", code="E_DECODE")
        seen, wanted = out[start : start + length + 2], length + 2
        out += (seen * (wanted // len(seen) + 1))[:wanted]  # it may run into what it writes
    if len(out) != size:
        raise DataError("its compressed points are damaged.", code="E_DECODE")
    return bytes(out)
