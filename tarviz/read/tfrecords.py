"""TFRecord files read as records: each `tf.train.Example` with a key, its features as fields."""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, islice

from tarviz import stores
from tarviz.formats import example, example_fields, tfrecord
from tarviz.formats.features import KEY
from tarviz.formats.tar_header import TAR_END, tar_member
from tarviz.model.errors import DataError
from tarviz.model.types import URL, Block
from tarviz.model.urls import digest
from tarviz.read.blocks import Blocks
from tarviz.read.options import ReadOptions
from tarviz.read.report import ReadReport
from tarviz.read.tfrecord_names import bare_name, has_tfrecord_name, stems
from tarviz.stores import cache_files

_TAR = re.compile(r"\.(?:tar|tgz)$")
_HEAD, _HEAD_BYTES = 256, 64 << 20  # records, and their bytes, that are looked at before the first is given


def is_tfrecord(url: URL) -> bool:
    """Whether a file is a TFRecord file: by its name, else by its first header's CRC."""
    if has_tfrecord_name(url):
        return True
    if _TAR.search(bare_name(url)) or url == "-":
        return False
    head = stores.of(url).read(url, 0, tfrecord.HEADER)
    return len(head) == tfrecord.HEADER and tfrecord.masked_crc32c(head[:8]) == int.from_bytes(head[8:], "little")


def as_shards(urls: Sequence[URL]) -> list[URL]:
    """These, with a shard of its records in the place of each TFRecord file: an index and columns need the members of a tar.

    Shards are kept in the cache folder, for as long as the file is the same one. Errors as in `records`.
    """
    begun = stems([url for url in urls if has_tfrecord_name(url)])
    return [_shard(url, begun[url]) if url in begun else url for url in urls]


def _shard(url: URL, begin: str) -> URL:
    stat = stores.of(url).stat(url)
    folder = cache_files.folder_of("tfrecord")
    version = digest(repr((stat.size, stat.etag, stat.mtime, begin)))
    place = folder / f"{cache_files.stem(url)}{version}-{begin}.tar"
    if place.exists():
        cache_files.touch(place)
        return URL(str(place))
    options = ReadOptions()
    with cache_files.Temporary(folder) as made:
        for _, key, fields in records(url, options, ReadReport(), stem=begin, lists=lists_in(url, options)):
            made.file.write(members(key, without_mark(fields)))
        made.file.write(TAR_END)
        made.keep(place)
    cache_files.trim()
    return URL(str(place))


@dataclass(frozen=True, slots=True)
class ParsedExample:
    """One Example of a file: its number there, the bytes of its record with framing, its features."""

    number: int
    size: int
    features: example_fields.Features


def examples(url: URL, options: ReadOptions, report: ReadReport) -> Generator[ParsedExample, None, None]:
    """The Examples of one file, gzip and zlib unpacked.

    `DataError` after the last good record of a damaged one, and `E_BAD_EXAMPLE` at a record that is none (a SequenceExample, say), with
    the byte in the unpacked file. With `on_error="skip"` what cannot be read is left out and counted in the report.
    """
    with stores.of(url).open(url) as stream:
        reader = tfrecord.read(stream, shard=url, on_error=options.on_error, max_record_bytes=options.max_member_bytes)
        told = 0
        try:
            with report.skip_damage(url, options.on_error):
                for run in reader.blocks():
                    report.bytes, told = report.bytes + reader.offset - told, reader.offset
                    sizes = [len(payload) + tfrecord.FRAME for payload in run]
                    at, number = reader.offset - sum(sizes), reader.records - len(run) + len(reader.faults)
                    for payload, size in zip(run, sizes, strict=True):
                        try:
                            yield ParsedExample(number, size, example.features(payload))
                            report.records += 1
                        except DataError as error:
                            raised = _example_error(error, url, at, number)
                            if options.on_error == "raise":
                                raise raised from error
                            report.add(raised.fault, skipped=True)
                        at, number = at + size, number + 1
        finally:
            for fault in reader.faults:
                report.add(fault.fault, skipped=True)
            report.bytes += reader.offset - told
            report.shards += 1


def _example_error(error: DataError, url: URL, at: int, number: int) -> DataError:
    """The error of a payload, with its place in the file."""
    return DataError(
        f"record {number} is {error.message}",
        code=error.code,
        shard=url,
        offset=at + tfrecord.HEADER + (error.offset or 0),
        records_before=number,
        hint="Only tf.train.Example can be taken apart; on_error='skip' leaves others out.",
    )


def lists_in(url: URL, options: ReadOptions) -> frozenset[str]:
    """The features that hold another number of values than one in some of the first 256 Examples of a file."""
    found: set[str] = set()
    size = 0
    with closing(examples(url, replace(options, on_error="skip"), ReadReport())) as run:
        for each in islice(run, _HEAD):
            found |= example_fields.lists_in([each.features])
            if (size := size + each.size) > _HEAD_BYTES:
                break
    return frozenset(found)


def records(
    url: URL, options: ReadOptions, report: ReadReport, *, stem: str, lists: Collection[str]
) -> Generator[tuple[int, str, dict[str, bytes]], None, None]:
    """The Examples of one file: number, key, and fields (see `formats.example_fields`, also for `lists`).

    A key is what the feature `__key__` holds, where that can be one and is new in the file, else `stem` and the number.
    """
    keys: set[str] = set()
    with closing(examples(url, options, report)) as run:
        for each in run:
            key = _own_key(each.features)
            if key is None or key in keys:
                key = f"{stem}-{each.number:08d}"
                while key in keys:
                    key += "_"
            keys.add(key)
            yield each.number, key, example_fields.fields(each.features if each.size > tfrecord.FRAME else None, lists, key=key)


def _own_key(features: example_fields.Features) -> str | None:
    """What `__key__` holds, where a tar gives it back as that key."""
    kind, values = features.get(KEY, (None, []))
    if kind != "bytes" or len(values) != 1:
        return None
    try:
        key: str = values[0].decode()
    except UnicodeDecodeError:
        return None
    parts = key.split("/")
    return None if "\0" in key or "." in parts[-1] or any(part in ("", ".", "..") for part in parts) else key


def members(key: str, fields: Mapping[str, bytes]) -> bytes:
    """The members of a record, as a tar holds them."""
    return b"".join(chain.from_iterable(tar_member(f"{key}.{ext}", data) for ext, data in fields.items()))


def without_mark(fields: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """The fields that are features, for the eye; of a record that has none, what says so."""
    return {ext: data for ext, data in fields.items() if ext != example_fields.MARK} or fields


def first_blocks(url: URL, options: ReadOptions, report: ReadReport, count: int) -> Generator[Block, None, None]:
    """The first `count` records of a file as blocks, as those of its shard would be; `DataError` after the last good one."""
    made: list[bytes] = []
    late: DataError | None = None
    with closing(records(url, options, report, stem=stems([url])[url], lists=lists_in(url, options))) as run:
        try:
            for _, key, fields in islice(run, count):
                made.append(members(key, without_mark(fields)))
        except DataError as error:
            late = error
    with closing(Blocks(io.BytesIO(b"".join([*made, TAR_END])), options.walker(url), ahead=False)) as blocks:
        yield from blocks
    if late is not None:
        raise late
