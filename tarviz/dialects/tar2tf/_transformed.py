"""A shard after a chain as a tar: what a transformer beside the data sends, and what is made of it here.

A record is a member `N.json` (its key, the number of the record after it, names and kinds of its fields) and one member for each field;
one that an op refused has the error in their place. A last member says how many records there were, so that no end goes unnoticed.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import IO, Any

import numpy as np

from tarviz.model.errors import DataError, Fault, SchemaError, StoreError, TarvizError
from tarviz.model.types import to_bytes, to_text
from tarviz.read.stream import ReadReport
from tarviz.runners.elsewhere import Row

END = "end"


def packed(rows: Iterable[Row], wanted: frozenset[str] | None, report: ReadReport) -> Iterator[bytes]:
    """The tar of rows whose values are records, piece by piece. `wanted`: the fields that go along, None: all.

    >>> rows = [Row("k", 1, {"cls": 3, "jpg": np.zeros((2, 1), np.uint8)})]
    >>> row, = unpacked(io.BytesIO(b"".join(packed(rows, None, ReadReport()))), ReadReport())
    >>> row.key, row.value["cls"], row.value["jpg"].shape
    ('k', 3, (2, 1))
    """
    count = 0
    for row in rows:
        yield from _record(count, row, wanted)
        count += 1
    yield _member(f"{END}.json", json.dumps(ending(count, report)).encode())
    yield bytes(1024)


def ending(count: int, report: ReadReport) -> dict[str, Any]:
    """What the end says: how many rows came, and what reading met."""
    end = {"rows": count, "shards": report.shards, "bytes": report.bytes, "records": report.records}
    return end | {"warnings": [asdict(fault) for fault in report.warnings], "skipped": [asdict(fault) for fault in report.skipped]}


def head_of(row: Row, error: TarvizError | None = None) -> dict[str, Any]:
    """What stands before the values of a row; with the error in their place that is given, or that the row holds."""
    head: dict[str, Any] = {"key": row.key, "behind": row.behind}
    if error is None and isinstance(row.value, TarvizError):
        error = row.value
    if error is not None:
        head["error"] = {"kind": type(error).__name__, "hint": error.hint, **asdict(error.fault)}
    return head


def fields_of(row: Row, wanted: frozenset[str] | None) -> list[tuple[str, Any]]:
    """The fields of a row that go along."""
    return [(name, value) for name, value in row.value.items() if not name.startswith("__") and (wanted is None or name in wanted)]


def _record(number: int, row: Row, wanted: frozenset[str] | None) -> Iterator[bytes]:
    head, made = head_of(row), {}
    if "error" not in head:
        try:
            made = {name: _encoded(name, value) for name, value in fields_of(row, wanted)}
            head["fields"] = [[name, kind] for name, (kind, _) in made.items()]
        except SchemaError as error:
            head = head_of(row, error)
    yield _member(f"{number}.json", json.dumps(head).encode())
    for at, (_, data) in enumerate(made.values()):
        yield _member(f"{number}.{at}", data)


def _member(name: str, data: bytes) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    return info.tobuf(tarfile.USTAR_FORMAT) + data + bytes(-len(data) % 512)


def _encoded(name: str, value: Any) -> tuple[str, bytes]:
    if isinstance(value, bytes | bytearray | memoryview):
        return "bytes", bytes(value)
    if isinstance(value, str):
        return "text", to_bytes(value)
    if isinstance(value, np.ndarray | np.generic) and not np.asarray(value).dtype.hasobject:
        stream = io.BytesIO()
        np.save(stream, np.asarray(value), allow_pickle=False)
        return "array" if isinstance(value, np.ndarray) else "number", stream.getvalue()
    return "json", json_of(name, value)


def json_of(name: str, value: Any) -> bytes:
    """A value as JSON; `SchemaError` where it is none."""
    try:
        return json.dumps(value).encode()
    except (TypeError, ValueError):
        what = f"the field {name!r} is {type(value).__name__} after the chain, which does not travel from the cluster."
        raise SchemaError(what, details={"field": name}, hint="remote_exec=False runs the chain here.") from None


def _decoded(kind: str, data: bytes) -> Any:
    if kind == "bytes":
        return data
    if kind == "text":
        return to_text(data)
    if kind == "json":
        return json.loads(data)
    array = np.load(io.BytesIO(data), allow_pickle=False)
    return array if kind == "array" else array[()]


def unpacked(stream: IO[bytes], report: ReadReport) -> Iterator[Row]:
    """The rows of such a tar. `StoreError` with the code `E_LENGTH` where it ends early, `DataError` where it is something else."""
    count = 0
    try:
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            members = iter(tar)
            for member in members:
                head = json.loads(_content(tar, member))
                if member.name == f"{END}.json":
                    ended(head, count, report)
                    return
                yield row_of(head, lambda name, kind: _decoded(kind, _content(tar, _next(members))))
                count += 1
    except (tarfile.TarError, OSError, EOFError, StopIteration, RuntimeError) as error:
        raise short(count) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"the cluster sends no transformed shard: {error}.", code="E_FORMAT") from error
    raise short(count)


def short(count: int) -> StoreError:
    """The error of a shard that ends after so many records, without its end."""
    return StoreError(f"the transformed shard ends early, after {count} records.", code="E_LENGTH")


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    data = b"" if file is None else file.read()
    if len(data) != member.size:
        raise EOFError
    return data


def row_of(head: Mapping[str, Any], value: Callable[[str, Any], Any]) -> Row:
    """The row that follows a head; `value(name, kind)` is that of each field, asked for in their order."""
    return Row(head["key"], head["behind"], _value(head, value))


def _value(head: Mapping[str, Any], value: Callable[[str, Any], Any]) -> Any:
    if (told := head.get("error")) is None:
        return {name: value(name, kind) for name, kind in head["fields"]}
    kind = {"SchemaError": SchemaError, "DataError": DataError}.get(told["kind"], TarvizError)
    error = kind(told["message"], code=told["code"], hint=told["hint"])
    return error.at(key=told["key"], member=told["member"], offset=told["offset"])


def _next(members: Iterator[tarfile.TarInfo]) -> tarfile.TarInfo:
    member = next(members, None)
    if member is None:
        raise EOFError
    return member


def ended(head: Mapping[str, Any], count: int, report: ReadReport) -> None:
    """Count in what the end says."""
    if head["rows"] != count:
        raise short(count)
    report.shards += head["shards"]
    report.bytes += head["bytes"]
    report.records += head["records"]
    for fault in head["warnings"]:
        report.add(Fault(**fault))
    for fault in head["skipped"]:
        report.add(Fault(**fault), skipped=True)
