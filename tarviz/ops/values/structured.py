"""Objects, tables, clouds and volumes in a field, each read by its own library: MessagePack to Arrow, PLY and PCD, DICOM and NIfTI."""

from __future__ import annotations

import io
import tomllib
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from tarviz.formats.tenbin import decode_buffer
from tarviz.model.config import options
from tarviz.model.errors import DataError, LimitError, MissingPackageError, require
from tarviz.model.types import Buffer
from tarviz.ops.values.clouds import decode_pcd, decode_ply, decode_xyz
from tarviz.ops.values.volumes import decode_dicom, decode_nifti

_DAMAGE = (ValueError, TypeError, LookupError, ArithmeticError, EOFError, RuntimeError, OSError, MemoryError, AttributeError)


class KindReader(NamedTuple):
    """How a kind is read: its endings, how, and the library that has to be there: module, extra, its own kind of error, and the package
    where that is called otherwise."""

    endings: tuple[str, ...]
    read: Callable[[bytes], Any]
    module: str = ""
    extra: str | None = None
    error: str = ""
    package: str = ""


def decode_structured(kind: str, data: Buffer) -> Any:
    """The value of a payload of one of `READERS`: a tree, or a dict of arrays by name (tables: by column).

    Errors: `E_MISSING_PACKAGE`, `E_DECODE`.
    """
    reader = READERS[kind]
    damage: tuple[type[BaseException], ...] = _DAMAGE
    if reader.module:
        module = require(reader.module, f"a field of {kind}", reader.extra, package=reader.package)
        damage = (*_DAMAGE, getattr(module, reader.error)) if reader.error else _DAMAGE
    try:
        return reader.read(bytes(data))
    except damage as error:
        if isinstance(error, DataError | MissingPackageError):
            raise
        raise DataError(f"this is not {kind}: {str(error).rstrip('.')}.", code="E_DECODE") from error


def _by(module: str, function: str, **options: Any) -> Callable[[bytes], Any]:
    """A reader that is a library's own function."""
    return lambda data: getattr(import_module(module), function)(data, **options)


def _safetensors(data: bytes) -> Any:
    from safetensors.numpy import load

    try:
        return dict(sorted(load(data).items()))  # the library's order is another every time
    except KeyError as error:
        hint = "A Func can read them by safetensors.torch.load and make them float()."
        raise DataError(f"it holds tensors of {error.args[0]}, a dtype that NumPy lacks.", code="E_DECODE", hint=hint) from error


def _columns(table: Any) -> dict[str, Any]:
    return {name: _column(column) for name, column in zip(table.column_names, table.columns, strict=True)}


def _column(column: Any) -> Any:
    from pyarrow import types

    if not types.is_struct(column.type):
        return np.asarray(column.to_numpy())
    made = np.empty(len(column), object)  # to_numpy makes fractions of whole numbers where an object is null
    made[:] = column.to_pylist()
    return made


def _csv(data: bytes, delimiter: str = ",") -> Any:
    from pyarrow import csv

    return _columns(csv.read_csv(io.BytesIO(data), parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)))


def _parquet(data: bytes) -> Any:
    from pyarrow import parquet

    file = parquet.ParquetFile(io.BytesIO(data))
    about = file.metadata
    packed = sum(about.row_group(at).total_byte_size for at in range(about.num_row_groups))
    need, limit = max(packed, 8 * about.num_rows * about.num_columns), options().max_member_bytes  # runs of one value pack without end
    if need > limit:
        raise LimitError(f"{about.num_rows} rows of {about.num_columns} columns, {need} bytes, are more than the limit {limit}.")
    return _columns(file.read())


def _arrow(data: bytes) -> Any:
    from pyarrow import ipc

    opened = ipc.open_file if data[:6] == b"ARROW1" else ipc.open_stream
    return _columns(opened(io.BytesIO(data)).read_all())


READERS: dict[str, KindReader] = {
    "msgpack": KindReader(("mp", "msgpack", "msg"), _by("msgpack", "unpackb", strict_map_key=False), "msgpack", "media", "UnpackException"),
    "cbor": KindReader(("cbor",), _by("cbor2", "loads"), "cbor2", "media", "CBORError"),
    "ten": KindReader(("ten", "tb"), decode_buffer),
    "ply": KindReader(("ply",), decode_ply),
    "pcd": KindReader(("pcd",), decode_pcd),
    "xyz": KindReader(("xyz",), decode_xyz),
    "dicom": KindReader(("dcm", "dicom"), decode_dicom, "pydicom", "medical"),
    "nifti": KindReader(("nii",), decode_nifti, "nibabel", "medical"),
    "safetensors": KindReader(("safetensors",), _safetensors, "safetensors", "media", "SafetensorError"),
    "yaml": KindReader(("yaml", "yml"), _by("yaml", "safe_load"), "yaml", "media", "YAMLError", "pyyaml"),
    "toml": KindReader(("toml",), lambda data: tomllib.loads(data.decode("utf-8-sig"))),
    "csv": KindReader(("csv",), _csv, "pyarrow", "table", "ArrowException"),
    "tsv": KindReader(("tsv",), lambda data: _csv(data, "\t"), "pyarrow", "table", "ArrowException"),
    "parquet": KindReader(("parquet", "pq"), _parquet, "pyarrow", "table", "ArrowException"),
    "arrow": KindReader(("arrow", "feather", "ipc"), _arrow, "pyarrow", "table", "ArrowException"),
}
