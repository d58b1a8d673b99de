"""Writes outputs: names them, begins the next when one is full, makes each visible whole, and puts a manifest beside it.

The only place that does so, for TFRecord and for tar. `Outputs` takes runs of records (`tfrecord.Frames`, `Spans` of raw
tar bytes), `Output` is one file. Nothing is under a final name before it is complete; stores see to that.
"""

from __future__ import annotations

import glob
import json
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from types import ModuleType, TracebackType
from typing import Any, Literal, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tarviz import stores
from tarviz.formats.tar_header import TAR_END, Spans, tar_header, tar_member
from tarviz.formats.tfrecord import Compression, crc32c
from tarviz.model import config
from tarviz.model.errors import NotFoundError, TarvizError, UsageError, redact
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL, Buffer
from tarviz.stores import Stat
from tarviz.write.behind import Behind
from tarviz.write.inputs import Inputs
from tarviz.write.piped import is_command

_deflate: ModuleType
try:
    from isal import isal_zlib as _deflate

    _LEVEL = 2  # isal has 0 to 3; 2 packs about as well as zlib's 3, ten times as fast
except ImportError:  # no wheel for this machine
    _deflate = zlib
    _LEVEL = 3

__all__ = [
    "TAR_END",
    "Exists",
    "Names",
    "Output",
    "Outputs",
    "Part",
    "Run",
    "Spans",
    "Written",
    "counted",
    "manifest_url",
    "proven",
    "read_manifest",
    "refuse_existing",
    "source_entry",
    "tar_header",
    "tar_member",
]

Exists: TypeAlias = Literal["replace", "error"]

_COUNTER = re.compile(r"\{(shard)?(?::(0?[0-9]{0,3}d?))?\}")
_PACKED = (".gz", ".zlib", ".zst", ".bz2", ".xz")
_CHUNK = 4 << 20
_DIRECT = 1 << 20  # bytes of an output from which on a thread writes


class Run(Protocol):
    """Records ready to be written: `size` in bytes of each, and the buffers that make up some of them."""

    size: NDArray[np.int64]

    def buffers(self, first: int = 0, last: int | None = None) -> list[Buffer]: ...


def counted(text: str) -> bool:
    """Whether the name of an output has a counter: `x-{}.tar`, `x-{shard:06d}.tar`."""
    return _COUNTER.search(text) is not None


@dataclass(frozen=True, slots=True)
class Names:
    """The names of outputs, from the text a person gives.

    `{}` counts from 1, `{shard}` from 0, both with a width if wanted (`{shard:06d}`). Text without either names one
    output; when that goes on in further ones, they are `train-1.record`, `train-2.record`, ….

    >>> names = Names("out/train.record")
    >>> names.at(0), names.at(1), Names("train-{:03d}.tfrecord").at(0)
    ('out/train.record', 'out/train-1.record', 'train-001.tfrecord')
    """

    text: str

    __repr__ = redacted_repr

    def __post_init__(self) -> None:
        bare = _COUNTER.sub("", self.text)
        if not self.text:
            raise UsageError("the output has no name.")
        if "{" in bare or "}" in bare:
            raise UsageError(
                f"{redact(self.text)!r} has braces that count nothing.",
                hint="{} counts outputs from 1, {shard:06d} from 0; ranges are for reading.",
            )
        if self.text.endswith("/") or (stores.is_local(self.text) and os.path.isdir(stores.local_path(self.text))):
            raise UsageError(
                f"{redact(self.text)} is a folder.", hint=f"Name the files in it: {redact(self.text.rstrip('/'))}/train-{{}}.tfrecord"
            )

    @property
    def counts(self) -> bool:
        """Whether the text has a counter."""
        return counted(self.text)

    @property
    def pattern(self) -> str | None:
        """What `glob` finds all names with that are files of this machine, empty text where there are none; None: names are not foreseen.

        >>> Names("train-{:03d}.tar").pattern, Names("train.tar").pattern, Names("memory://a-{}.tar").pattern
        ('train-*.tar', 'train*.tar', '')
        """
        if not self.text:  # a caller hands them out one by one
            return None
        if self.text == "-" or not stores.is_local(self.text):
            return ""
        path = stores.local_path(self.text)
        if self.counts:
            return "*".join(glob.escape(part) for part in _COUNTER.split(path)[::3])
        base, suffix = _suffix(path)
        return f"{glob.escape(base)}*{glob.escape(suffix)}"

    def at(self, number: int) -> URL:
        """The name of output `number`, counted from 0."""
        if self.counts:
            return URL(_COUNTER.sub(lambda match: format(number + (match[1] is None), match[2] or "d"), self.text))
        if number == 0 or is_command(self.text):
            return URL(self.text)
        if self.text == "-":
            raise UsageError("standard output is one output.", hint="Name a file to split the records over several.")
        path, mark, query = (self.text, "", "") if stores.is_local(self.text) else self.text.partition("?")
        base, suffix = _suffix(path)
        return URL(f"{base}-{number}{suffix}{mark}{query}")


def _suffix(path: str) -> tuple[str, str]:
    """Base and suffix, where a packed file has two."""
    base, suffix = os.path.splitext(path)
    if suffix in _PACKED:
        base, inner = os.path.splitext(base)
        suffix = inner + suffix
    return base, suffix


@dataclass(frozen=True, slots=True)
class Written:
    """One output that is complete: its bytes, the records in it, the CRC32C over the file. `kept`: it was there already."""

    url: URL
    records: int
    bytes: int
    crc32c: str
    kept: bool = False

    __repr__ = redacted_repr

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; the URL redacted."""
        return asdict(self) | {"url": redact(self.url)}


class Output:
    """One output being written. `commit` makes it visible under its name, replacing what was there."""

    def __init__(self, url: URL, *, compression: Compression | None = None, exists: Exists = "replace") -> None:
        if exists == "error":
            refuse_existing(url)
        self.url = url
        self.records = 0
        self.bytes = 0
        self._crc = 0
        self._sink = stores.of(url).create(url)
        self._behind: Behind[Sequence[Buffer]] | None = None
        # 31 and 15: a gzip or a zlib header and trailer around the deflate stream (zlib.h).
        self._packer = _deflate.compressobj(_LEVEL, _deflate.DEFLATED, 31 if compression == "gzip" else 15) if compression else None

    def write(self, buffers: Sequence[Buffer], records: int = 0) -> None:
        """Append buffers that hold so many records. They belong to the output until it is settled: they may be written later."""
        if self._packer is not None:
            buffers = [data for buffer in buffers if (data := self._packer.compress(buffer))]
        crc, size = self._crc, 0
        for buffer in buffers:
            crc = crc32c(buffer, crc)
            size += len(buffer)
        if self._behind is None and self.bytes >= _DIRECT:
            self._behind = Behind(self._sink.writev, name=f"writes {redact(self.url)}")
        if self._behind is not None:
            self._behind.put(buffers)
        else:
            self._sink.writev(buffers)
        self._crc = crc
        self.bytes += size
        self.records += records

    def settle(self) -> None:
        """Wait until all that was given is written, so that the memory it is in may be used again."""
        if self._behind is not None:
            self._behind.settle()

    def commit(self, manifest: Mapping[str, Any] | None = None) -> Written:
        """Finish the file and, where a manifest is given, write that beside it with records, bytes and CRC filled in."""
        try:
            if self._packer is not None:
                packer, self._packer = self._packer, None
                self.write([packer.flush()])
            if self._behind is not None:
                self._behind.finish()
            beside = manifest_url(self.url)
            if self.url != "-":
                # An older manifest beside a newer file would lie, if only until the new one is there.
                with suppress(NotFoundError):
                    stores.of(beside).delete(beside)
            stat = self._sink.commit()
        except BaseException:
            self.abort()
            raise
        written = Written(self.url, self.records, self.bytes, f"{self._crc:08x}")
        if manifest is not None and stat.ranges:  # a pipe has nothing beside it
            facts = {"records": written.records, "bytes": written.bytes, "crc32c": written.crc32c}
            with stores.of(beside).create(beside) as sink:
                sink.write(json.dumps({**facts, **manifest}, indent=1, ensure_ascii=False).encode("utf-8", "surrogateescape") + b"\n")
        return written

    def abort(self) -> None:
        """Drop what was written; nothing of it is seen."""
        if self._behind is not None:
            self._behind.stop(self._sink.abort)
        else:
            self._sink.abort()


def refuse_existing(url: URL) -> None:
    """`UsageError` when something is at that URL already."""
    if url == "-":
        return
    try:
        stores.of(url).stat(url)
    except NotFoundError:
        return
    raise UsageError("there is an output of that name.", shard=url, hint="Choose another name, or exists='replace'.")


def manifest_url(url: URL) -> URL:
    """Where the manifest of an output is: `train-1.tfrecord.manifest.json` beside `train-1.tfrecord`."""
    path, mark, query = (url, "", "") if stores.is_local(url) else url.partition("?")
    return URL(f"{path}.manifest.json{mark}{query}")


def read_manifest(url: URL) -> dict[str, Any] | None:
    """The manifest of an output, None when there is none that can be read."""
    try:
        stat = stores.of(url).stat(manifest_url(url))
        content = json.loads(stores.of(url).read(manifest_url(url), 0, min(stat.size or 0, 64 << 20)))
    except (TarvizError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def proven(url: URL, manifest: Mapping[str, Any]) -> Written | None:
    """The output as its manifest says, when its bytes are just those; the file is read for that. None otherwise."""
    try:
        with stores.of(url).open(url) as stream:
            if stream.stat.size is not None and stream.stat.size != manifest.get("bytes"):
                return None
            buffer = memoryview(bytearray(_CHUNK))
            crc = size = 0
            while count := stream.readinto(buffer):
                crc, size = crc32c(buffer[:count], crc), size + count
    except TarvizError:
        return None
    if (size, f"{crc:08x}") != (manifest.get("bytes"), manifest.get("crc32c")):
        return None
    return Written(url, int(manifest["records"]), size, f"{crc:08x}", kept=True)


def source_entry(stat: Stat) -> dict[str, Any]:
    """What a manifest says about a source shard: enough to notice that it changed."""
    return {"shard": redact(stat.url), "size": stat.size, "etag": stat.etag, "mtime": stat.mtime}


@dataclass(slots=True)
class Part:
    """The records of one source that an output holds: numbers `first` up to `stop` of the shard."""

    source: dict[str, Any]
    first: int
    stop: int

    def to_dict(self) -> dict[str, Any]:
        return {**self.source, "first": self.first, "stop": self.stop}


@dataclass(eq=False)
class Outputs:
    """Outputs that follow each other: records go into the one that is open until it is full.

    `max_size` (bytes, or text such as `"100MB"`) is the most a file may have, framing and `ending` counted in; only a
    record that is larger by itself gets a file that exceeds it. With `compression` it counts the bytes before that.
    `max_records` limits the records of a file. `ending` closes each file (tar's zero blocks). `manifest`, if not None, is
    what the manifest of every output holds beside its own figures (`full`: the next record did not fit). None of `inputs` is written.

    Use as a context manager: an exception drops the output that is open; those before it are complete and stay.
    `done` lists what is written; `start` is the number of the first output.
    """

    names: Names
    max_size: int | str | float | None = None
    max_records: int | None = None
    compression: Compression | None = None
    exists: Exists = "replace"
    ending: bytes = b""
    manifest: Mapping[str, Any] | None = None
    start: int = 0
    done: list[Written] = field(default_factory=list)
    inputs: Inputs | None = None
    _output: Output | None = None
    _room: int = 0  # bytes left in the output that is open
    _parts: list[Part] = field(default_factory=list)
    _source: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.max_size is not None:
            self.max_size = limit = config.parse_size(self.max_size)
            if limit <= 0:
                raise UsageError("max_shard_size must be more than 0 bytes.")
        if self.max_records is not None and self.max_records < 1:
            raise UsageError("an output holds at least one record.")

    def source(self, entry: dict[str, Any]) -> None:
        """Say which shard the records come from that are added next (see `source_entry`)."""
        self._source = entry

    def add(self, run: Run, numbers: NDArray[np.int64] | None = None, stop: int = 0) -> None:
        """Write records. `numbers` are theirs in the source, `stop` the number that comes behind them there."""
        ends = np.cumsum(run.size)
        first, count = 0, len(ends)
        while first < count:
            base = int(ends[first - 1]) if first else 0
            last = self._fit(ends, first, base)
            if last == first:
                self._close(full=True)
                continue
            output = self._open()
            output.write(run.buffers(first, last), last - first)
            self._room -= int(ends[last - 1]) - base
            if self._source is not None and numbers is not None:
                self._note(int(numbers[first]), stop if last == count else int(numbers[last]))
            first = last

    def settle(self) -> None:
        """Wait until all that was added is written, so that the memory it is in may be used again."""
        if self._output is not None:
            self._output.settle()

    def _fit(self, ends: NDArray[np.int64], first: int, base: int) -> int:
        """Up to which record the output takes; `first` when it is full. An empty output takes one whatever its size."""
        held = self._output.records if self._output is not None else 0
        last = len(ends)
        if self.max_size is not None:
            room = self._room if held else int(self.max_size) - len(self.ending)
            last = int(np.searchsorted(ends, base + room, side="right"))
        if self.max_records is not None:
            last = min(last, first + self.max_records - held)
        return max(last, first + (held == 0))

    def _open(self) -> Output:
        if self._output is None:
            url = self.names.at(self.start + len(self.done))
            if self.inputs is not None:
                self.inputs.refuse(url)
            self._output = Output(url, compression=self.compression, exists=self.exists)
            self._room = int(self.max_size or 0) - len(self.ending)
            self._parts = []
        return self._output

    def _note(self, first: int, stop: int) -> None:
        assert self._source is not None
        if self._parts and self._parts[-1].source is self._source:
            self._parts[-1].stop = stop
        else:
            self._parts.append(Part(self._source, first, stop))

    def _close(self, *, full: bool = False) -> None:
        output = self._output
        if output is None:
            return
        if self.ending:
            output.write([self.ending])
        manifest = None
        if self.manifest is not None:
            parts = self._parts or ([Part(self._source, 0, 0)] if self._source is not None else [])
            manifest = {**self.manifest, "full": full, "sources": [part.to_dict() for part in parts]}
        self.done.append(output.commit(manifest))
        self._output = None

    def finish(self) -> list[Written]:
        """Complete the last output. There is always one: it is empty when there were no records."""
        if not self.done:
            self._open()
        self._close()
        return self.done

    def abort(self) -> None:
        """Drop the output that is open."""
        if self._output is not None:
            self._output.abort()
            self._output = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.finish()
        else:
            self.abort()
