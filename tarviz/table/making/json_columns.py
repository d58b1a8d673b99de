"""JSON payloads of a block, read in one piece into an Arrow column that is typed from the data.

pyarrow reads all payloads joined by newlines. What it refuses (a record that is not JSON, a type that changes from record
to record) goes to DuckDB's reader, again as a whole block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tarviz.model.types import Buffer
from tarviz.table.making.arrow_types import leaves, plain

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

MAX_LEAVES = 1000  # paths of a struct: more of them stay text
MAX_DEPTH = 200  # brackets within brackets: deeper than this is refused (pyarrow overflows the stack at some 10⁴)
_LARGE = 4096  # a payload shorter than this cannot be nested deep enough to harm
_FIRST, _BETWEEN, _LAST = b'{"j":', b'}\n{"j":', b"}\n"
_ONE_LINE = bytes.maketrans(b"\n\r", b"  ")
_OPEN = np.zeros(256, np.int8)
_OPEN[[0x5B, 0x7B]], _OPEN[[0x5D, 0x7D]] = 1, -1


@dataclass(slots=True)
class Json:
    """Reads the blocks of one field, remembering what the blocks before have shown. Not for two threads at once."""

    text: bool = False  # as text: too many paths, or names SQL cannot tell apart
    _hint: Any = None

    def read(self, payloads: list[Buffer], sizes: NDArray[np.int64]) -> tuple[pa.Array, NDArray[np.bool_]]:
        """The column of these payloads, and which of them are not JSON (null in the column)."""
        payloads, bad = _shallow(payloads, np.flatnonzero(sizes > _LARGE))
        if not self.text:
            column = self._typed(payloads)
            if column is not None:
                return column, bad
        column, refused = self._one_by_one(payloads)
        return column, bad | refused

    def _typed(self, payloads: list[Buffer]) -> pa.Array | None:
        """pyarrow's reading; None where it refuses the block, or where the block is better kept as text."""
        import pyarrow as pa

        data = _joined(payloads)
        if data is None:
            return None
        try:
            column = _parsed(data, len(payloads), self._hint)
            if column is None:
                return None
            kept = plain(column.type)
            if kept != column.type:  # dates: texts stay the texts they are
                self._hint = kept
                column = _parsed(data, len(payloads), kept)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
            return None
        if column is not None and leaves(column.type, MAX_LEAVES) > MAX_LEAVES:
            self.text = True
            return None
        return column

    def _one_by_one(self, payloads: list[Buffer]) -> tuple[pa.Array, NDArray[np.bool_]]:
        """DuckDB's reading: what is not JSON is null; a type that changes becomes text."""
        import duckdb
        import pyarrow as pa

        texts = _texts(payloads)
        with duckdb.connect(config={"threads": 1}) as base:
            base.register("raw", pa.table({"x": texts}))
            good = base.sql("SELECT coalesce(json_valid(x), false) FROM raw").to_arrow_table().column(0).combine_chunks()
            mask = ~np.asarray(good.to_numpy(zero_copy_only=False), bool)
            if not self.text and mask.any():
                column = self._typed([b"null" if no else payload for payload, no in zip(payloads, mask.tolist(), strict=True)])
                if column is not None:
                    return column, mask
            texts = pa.compute.if_else(good, texts, pa.scalar(None, pa.string()))
            if self.text:
                return texts, mask
            base.register("raw", pa.table({"x": texts}))
            structure = base.execute("SELECT json_group_structure(x::JSON) FROM raw WHERE x IS NOT NULL").fetchall()
            shape = str(structure[0][0] or '"VARCHAR"')
            if shape.count(":") > MAX_LEAVES:
                self.text = True
                return texts, mask
            shape = shape.replace('"JSON"', '"VARCHAR"').replace('"NULL"', '"VARCHAR"')
            table = base.sql("SELECT from_json(x, $shape) AS j FROM raw", params={"shape": shape}).to_arrow_table()
        column = table.column(0).combine_chunks()
        column = column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)
        if leaves(column.type, MAX_LEAVES) > MAX_LEAVES:
            self.text = True
            return texts, mask
        return column, mask


def _joined(payloads: list[Buffer]) -> bytes | None:
    """One line a payload, each wrapped in an object, so that any JSON value can stand there; None where a payload holds a NUL."""
    data = _BETWEEN.join(payloads)
    if data.count(b"\n") != len(payloads) - 1:  # line ends inside payloads: white space in JSON
        data = b"\0".join(payloads)
        if data.count(b"\0") != len(payloads) - 1:
            return None
        data = data.translate(_ONE_LINE).replace(b"\0", _BETWEEN)
    return _FIRST + data + _LAST


def _parsed(data: bytes, count: int, hint: Any) -> pa.Array | None:
    import pyarrow as pa
    import pyarrow.json as reader

    options = reader.ReadOptions(use_threads=False, block_size=min(len(data) + 1, 2**31 - 1))
    parse = reader.ParseOptions(explicit_schema=pa.schema([("j", hint)])) if hint is not None else None
    table = reader.read_json(pa.BufferReader(data), read_options=options, parse_options=parse)
    if table.num_rows != count or table.num_columns != 1:
        return None  # a payload held two values
    return pa.concat_arrays(table.column(0).chunks)


def _texts(payloads: list[Buffer]) -> pa.Array:
    """The payloads as text, null where they are not UTF-8."""
    import pyarrow as pa

    try:
        return binary(payloads).cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([_text(bytes(each)) for each in payloads], pa.string())


def binary(payloads: list[Buffer]) -> pa.Array:
    """The payloads as a column of bytes."""
    import pyarrow as pa

    ends = np.zeros(len(payloads) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, payloads), np.int64, len(payloads)), out=ends[1:])
    data = pa.py_buffer(b"".join(payloads))
    column = pa.Array.from_buffers(pa.large_binary(), len(payloads), [None, pa.py_buffer(ends), data])
    return column.cast(pa.binary())


def _text(payload: bytes) -> str | None:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return None


def _shallow(payloads: list[Buffer], large: NDArray[np.intp]) -> tuple[list[Buffer], NDArray[np.bool_]]:
    """The payloads with `null` for those nested too deep to be read safely, and which these are."""
    bad = np.zeros(len(payloads), bool)
    for at in large.tolist():
        steps = _OPEN[np.frombuffer(payloads[at], np.uint8)]
        bad[at] = np.cumsum(steps, dtype=np.int32).max() > MAX_DEPTH
    if bad.any():
        payloads = [b"null" if no else payload for payload, no in zip(payloads, bad.tolist(), strict=True)]
    return payloads, bad
