"""A shard after a chain as TFRecord: what a transformer beside the data sends, and what is made of it here.

Each record is a `tf.train.Example`, which TensorFlow parses as any other: bytes and text as they are, whole numbers as int64, float32
as float, arrays as their bytes (`tf.io.decode_raw`), the key as `__key__`. `__head__` is JSON: the number of the record after it, kinds of
the fields, or the error of one that an op refused. The last one, without fields, says how many records there were.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import IO, Any, cast

import numpy as np

from tarviz.formats import example, tfrecord
from tarviz.formats.compression import ByteSource
from tarviz.model.errors import DataError, Fault, SchemaError, StoreError, TarvizError
from tarviz.model.types import to_bytes, to_text
from tarviz.read.stream import ReadReport
from tarviz.runners.elsewhere import MadeRow

_HEAD = "__head__"
_END = "end"
_WHOLE = np.iinfo(np.int64)


def pack(rows: Iterable[MadeRow], wanted: frozenset[str] | None, report: ReadReport) -> Iterator[bytes]:
    """The TFRecord file of rows whose values are records, piece by piece. `wanted`: the fields that go along, None: all.

    >>> import io
    >>> rows = [MadeRow("k", 1, {"cls": 3, "jpg": np.zeros((2, 1), np.uint8)})]
    >>> data = b"".join(pack(rows, None, ReadReport()))
    >>> [sorted(example.decode(each)) for each in tfrecord.read(data)]
    [['__head__', '__key__', 'cls', 'jpg'], ['__head__', '__key__']]
    >>> row, = unpack(io.BytesIO(data), ReadReport())
    >>> row.key, row.value["cls"], row.value["jpg"].shape
    ('k', 3, (2, 1))
    """

    def examples() -> Iterator[bytes]:
        count = 0
        for row in rows:
            yield _example(row, wanted)
            count += 1
        yield _encode(_END, _ending(count, report), {})

    for together in tfrecord.together(examples()):
        yield from map(bytes, tfrecord.frame(together).buffers())


def _example(row: MadeRow, wanted: frozenset[str] | None) -> bytes:
    head: dict[str, Any] = {"key": row.key, "behind": row.behind}
    made: dict[str, tuple[list[Any], Any, str]] = {}
    error = row.value if isinstance(row.value, TarvizError) else None
    if error is None:
        fields = [name for name in row.value if not name.startswith("__") and (wanted is None or name in wanted)]
        try:
            made = {name: _feature(name, row.value[name]) for name in fields}
        except SchemaError as refused:
            error = refused
    if error is None:
        head["fields"] = [[name, what] for name, (what, _, _) in made.items()]
    else:
        head["error"] = {"kind": type(error).__name__, "hint": error.hint, **asdict(error.fault)}
    return _encode(row.key, head, made)


def _encode(key: str, head: Any, made: Mapping[str, tuple[list[Any], Any, str]]) -> bytes:
    features = {name: value for name, (_, value, _) in made.items()}
    kinds = {name: kind for name, (_, _, kind) in made.items()}
    return example.encode({"__key__": to_bytes(key), _HEAD: json.dumps(head).encode(), **features}, {**kinds, _HEAD: "bytes"})


def _feature(name: str, value: Any) -> tuple[list[Any], Any, str]:
    """What the head says of a value, and the value as a feature, with its kind."""
    if isinstance(value, bytes | bytearray | memoryview):
        return ["bytes"], bytes(value), "bytes"
    if isinstance(value, str):
        return ["text"], to_bytes(value), "bytes"
    if isinstance(value, int) and not isinstance(value, bool) and _WHOLE.min <= value <= _WHOLE.max:
        return ["int"], value, "int64"
    if isinstance(value, np.ndarray | np.generic) and not np.asarray(value).dtype.hasobject:
        array = np.asarray(value)
        what = ["array" if isinstance(value, np.ndarray) else "number", array.dtype.str, array.shape]
        if array.ndim == 0 and array.dtype in (np.int64, np.int32, np.float32):
            return what, array.item(), "float" if array.dtype.kind == "f" else "int64"
        return what, array.tobytes(), "bytes"
    return ["json"], _json_of(name, value), "bytes"


def _decode(feature: list[Any], what: list[Any]) -> Any:
    (kind, *more), (value,) = what, feature
    if kind in ("bytes", "int"):
        return value
    if kind == "text":
        return to_text(value)
    if kind == "json":
        return json.loads(value)
    dtype, shape = np.dtype(more[0]), tuple(more[1])
    array = np.frombuffer(value, dtype).reshape(shape).copy() if isinstance(value, bytes) else np.array(value, dtype)
    return array if kind == "array" else array[()]


def unpack(stream: IO[bytes], report: ReadReport) -> Iterator[MadeRow]:
    """The rows of such a file. `StoreError` with the code `E_LENGTH` where it ends early, `DataError` where it is something else."""
    count = 0
    try:
        # Any length will do: memory grows with what comes, not with what is promised.
        for data in tfrecord.read(cast("ByteSource", stream), compression=None, max_record_bytes=int(1e17)):
            found = example.decode(data)
            (said,) = found[_HEAD]
            head = json.loads(bytes(said))  # type: ignore[arg-type]
            if "rows" in head:
                _check_end(head, count, report)
                return
            yield MadeRow(head["key"], head["behind"], _value(head, found))
            count += 1
    except OSError as error:
        raise _short(count) from error
    except DataError as error:
        if error.code == "E_TRUNCATED":
            raise _short(count) from error
        if error.code in ("E_DATA_CRC", "E_LENGTH_CRC"):  # spoilt on its way: it is asked for again
            raise StoreError(f"the transformed shard comes damaged: {error.message}", code="E_NETWORK") from error
        raise DataError(f"the cluster sends no transformed shard: {error.message}", code="E_FORMAT") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"the cluster sends no transformed shard: {error}.", code="E_FORMAT") from error
    raise _short(count)


def _ending(count: int, report: ReadReport) -> dict[str, Any]:
    """What the end says: how many rows came, and what reading met."""
    end = {"rows": count, "shards": report.shards, "bytes": report.bytes, "records": report.records}
    return end | {"warnings": [asdict(fault) for fault in report.warnings], "skipped": [asdict(fault) for fault in report.skipped]}


def _json_of(name: str, value: Any) -> bytes:
    """A value as JSON; `SchemaError` where it is none."""
    try:
        return json.dumps(value).encode()
    except (TypeError, ValueError):
        what = f"the field {name!r} is {type(value).__name__} after the chain, which does not travel from the cluster."
        raise SchemaError(what, details={"field": name}, hint="remote_exec=False runs the chain here.") from None


def _value(head: Mapping[str, Any], found: Mapping[str, list[Any]]) -> Any:
    """The fields that a head names, or the error that it holds in their place."""
    if (told := head.get("error")) is None:
        return {name: _decode(found[name], what) for name, what in head["fields"]}
    kind = {"SchemaError": SchemaError, "DataError": DataError}.get(told["kind"], TarvizError)
    error = kind(told["message"], code=told["code"], hint=told["hint"])
    return error.at(key=told["key"], member=told["member"], offset=told["offset"])


def _check_end(head: Mapping[str, Any], count: int, report: ReadReport) -> None:
    """Count in what the end says."""
    if head["rows"] != count:
        raise _short(count)
    report.shards += head["shards"]
    report.bytes += head["bytes"]
    report.records += head["records"]
    for fault in head["warnings"]:
        report.add(Fault(**fault))
    for fault in head["skipped"]:
        report.add(Fault(**fault), skipped=True)


def _short(count: int) -> StoreError:
    """The error of a shard that ends after so many records, without its end."""
    return StoreError(f"the transformed shard ends early, after {count} records.", code="E_LENGTH")
