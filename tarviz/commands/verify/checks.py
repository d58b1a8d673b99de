"""How `verify` looks at one shard or one TFRecord file: what reading it tells, and what its fields do not decode to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing

from tarviz import stores
from tarviz.commands.verify.verified import Verified
from tarviz.formats import example, tfrecord
from tarviz.model.errors import DataError, SchemaError, TarvizError
from tarviz.model.types import URL, Block, Record
from tarviz.read import stream as read_stream


def check_tar(url: URL, options: read_stream.ReadOptions, result: Verified, deep: bool, tick: Callable[[int], object]) -> None:
    report = read_stream.ReadReport()
    error: TarvizError | None = None
    run = read_stream.blocks(url, options, report=report)
    with closing(run):
        try:
            for block in run:
                if deep:
                    _decode(block, result)
                tick(len(block))
        except DataError as found:
            error = found.at(shard=url)
    for fault in (*report.skipped, *report.warnings):
        result.add(fault)
    if error is not None:
        result.add(error)
    result.records += report.records
    result.bytes += report.bytes


def check_tfrecord(url: URL, result: Verified, types: Mapping[str, str] | None, tick: Callable[[int], object]) -> None:
    """`types` None: the framing alone; a mapping: each record is parsed too, its features held against it and the first record's."""
    kinds: dict[str, str | None] = dict(types or {})
    with stores.of(url).open(url) as stream:
        reader = tfrecord.read(stream, shard=url, on_error="skip")
        number = -1
        try:
            for number, payload in enumerate(reader):
                if types is not None and (error := _unparsable(payload, kinds)) is not None:
                    result.add(error.at(shard=url, records_before=number))
                tick(1)
        except DataError as error:
            result.add(error.at(shard=url))
    for fault in reader.faults:
        result.add(fault)
    result.records += reader.records
    result.bytes += reader.offset


def _unparsable(payload: memoryview, kinds: dict[str, str | None]) -> DataError | SchemaError | None:
    """Why a payload is no `tf.train.Example`, or what in it differs from `kinds`, which learns the features it did not know."""
    try:
        features = example.features(payload)
    except DataError as error:
        return error
    for name, (kind, _) in features.items():
        expected = kinds.setdefault(name, kind)
        if kind is not None and expected is not None and kind != expected:
            return SchemaError(f"the feature {name!r} holds {kind}, not {expected}.", member=name)
    return None


def _decode(block: Block, result: Verified) -> None:
    """Decode every field of a block; what cannot be decoded is a finding."""
    for record in block:
        for ext in record:
            found = undecodable(record, ext)
            if found is not None:
                result.add(found)


def undecodable(record: Record, ext: str) -> TarvizError | None:
    """Why a field cannot be decoded; None when it can, or is of no kind that tarviz decodes."""
    from tarviz import viewers

    refused = viewers.refusal(record[ext], viewers.Meta(ext, record.key, record.shard))
    if refused is None:
        return None
    error = DataError(refused.message, code=refused.code, shard=record.shard, key=record.key)
    for member in record.members:
        if member.name.lower().endswith(f".{ext}"):
            error.at(member=member.name, offset=member.header_offset)
    return error
