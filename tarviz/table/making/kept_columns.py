"""Columns of shards kept as Parquet beside the cached indexes: one file a shard, named by its version and by its own checksum.

A file is never written over: with more columns it is another one, so that a query that is under way has what it began with.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tarviz import stores
from tarviz.model.errors import ChangedError, UsageError, redact
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL
from tarviz.model.urls import digest
from tarviz.outputs.manifest import checksum
from tarviz.read.chosen import version, version_of
from tarviz.read.several import stats
from tarviz.read.stream import ReadOptions
from tarviz.stores import Stat, cache_files
from tarviz.table.columns import NAMES, Part, text_of
from tarviz.table.making import shard_columns
from tarviz.table.making.json_structure import Structure
from tarviz.table.packages import pa, parquet

_LOG = logging.getLogger(__name__)
_META = b"tarviz"
_VERSION = 6
_ROWS = 122_880  # DuckDB's row group
_STAYS = 60.0  # seconds that a file stays which was asked before there were more columns


@dataclass(slots=True)
class KeptColumns:
    """What is known of one shard's columns, and where they lie: in `file`, or in `memory` where nothing can be kept (`stem` is empty)."""

    url: URL
    identity: dict[str, Any]
    stem: str = ""
    file: Path | None = None
    records: int = 0
    parts: set[Part] = field(default_factory=set)
    exts: list[str] = field(default_factory=list)
    structures: dict[str, Structure] = field(default_factory=dict)
    bad: dict[str, int] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    counts: dict[str, int] = field(default_factory=dict)
    memory: pa.Table | None = None
    sound: bool = False
    called: str = ""  # the shard in the columns of `file`, as it was spelled when they were made

    __repr__ = redacted_repr

    def columns(self) -> pa.Schema:
        """Names and types of the columns made so far."""
        return parquet.read_schema(self.file) if self.memory is None else self.memory.schema

    def table(self) -> pa.Table:
        """The columns made so far."""
        if self.memory is not None:
            return self.memory
        found = parquet.read_table(self.file)
        if self.called == redact(self.url) or "shard" not in found.column_names:
            return found
        return found.set_column(found.column_names.index("shard"), "shard", _shard_column(self.url, len(found)))

    def prove(self) -> set[Part]:
        """Compare the file with its checksum, once; what is lost where they differ: it has to be made again."""
        if self.sound or self.file is None:
            return set()
        with suppress(OSError):
            self.sound = f".{_checksum(self.file)}" == self.file.stem[-9:]
        if self.sound:
            return set()
        lost, self.parts, self.records, self.exts, self.file = self.parts, set(), 0, [], None  # as if there were no file
        return lost

    def add(
        self, parts: set[Part], options: ReadOptions, *, look: Callable[[], None], grown: Callable[[Callable[[], KeptColumns]], None]
    ) -> Callable[[], None]:
        """Make what of `parts` is not there yet: one pass over the shard. What is returned has to be called for it to be there.

        `look` is called between records and may raise; `grown` gets what makes the columns of the shard's beginning, the later the rarer.
        `ChangedError` when the shard is another by now.
        """
        if not (wanted := self.lacking(parts)):
            return lambda: None
        if self.url == "-" and self.parts:
            hint = "Save it in a file and ask that: cat > data.tar."
            raise UsageError("standard input can be read once, and this question needs it again.", shard=self.url, hint=hint)
        made = shard_columns.make_columns(
            self.url, options, wanted, look=look, grown=lambda part: grown(cache(lambda: self._grow(wanted, part())))
        )
        return self.take(wanted, made)

    def lacking(self, parts: set[Part]) -> set[Part]:
        """What of `parts` has to be made; what is kept is compared with its checksum before."""
        return {*parts, NAMES, *self.prove()} - self.parts

    def take(self, wanted: set[Part], made: shard_columns.MadeColumns) -> Callable[[], None]:
        """Keep the columns of `wanted`, which were made here or by a worker elsewhere; as `add` does."""
        if version(self.url) != self.identity or (self.parts and made.records != self.records):
            raise ChangedError("the shard was replaced while its columns were made.", shard=self.url, hint="Ask again.")
        return self._grow(wanted, made)._keep_for(self)

    def _grow(self, wanted: set[Part], made: shard_columns.MadeColumns) -> KeptColumns:
        """This, with columns more; of the beginning of the shard where no more was read."""
        columns: dict[str, Any] = dict(made.columns)
        if NAMES in wanted:
            columns["shard"] = _shard_column(self.url, made.records)
        if self.parts:
            before = self.table().slice(0, made.records)
            columns = dict(zip(before.column_names, before.columns, strict=True)) | columns
        return replace(
            self,
            records=made.records,
            parts=self.parts | wanted,
            exts=self.exts or made.exts,
            structures=self.structures | made.structures,
            bad=self.bad | made.bad,
            error=made.error or self.error,
            counts=self.counts | made.counts,
            memory=pa.table(columns),
            called=redact(self.url),
        )

    def _keep_for(self, old: KeptColumns) -> Callable[[], None]:
        """Write the columns beside those of `old`; what is returned puts them in their place."""
        assert self.memory is not None
        head = asdict(replace(self, memory=None)) | {"version": _VERSION, "url": redact(self.url), "parts": sorted(self.parts)}
        head = {name: value for name, value in head.items() if name not in ("stem", "file", "memory", "sound", "called")}
        table = self.memory.replace_schema_metadata({_META: json.dumps(head).encode("utf-8", "surrogateescape")})
        temporary = place = None
        if self.stem:
            try:
                temporary = cache_files.Temporary(_folder())
                # Not packed: a question over a million records takes 15 ms in place of 70.
                packed = {text_of(ext): "zstd" for ext in self.structures}  # asked for in rare cases alone
                parquet.write_table(table, temporary.path, compression=packed, row_group_size=_ROWS)
                place = _folder() / f"{self.stem}.{_checksum(temporary.path)}.parquet"
            except (OSError, pa.ArrowException) as error:
                _LOG.info("columns not kept: %s", error)
                if temporary is not None:
                    temporary.drop()

        def settle() -> None:
            if temporary is None or place is None:
                old.memory, old.file = table, None
            else:
                temporary.keep(place)
                cache_files.trim()
                old.memory, old.file, old.sound, old.called = None, place, True, self.called
            old.records, old.parts, old.exts = self.records, self.parts, self.exts
            old.structures, old.bad, old.error, old.counts = self.structures, self.bad, self.error, self.counts

        return settle


def _shard_column(url: URL, records: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(records, np.int32)), pa.array([redact(url)]))


def find_kept(urls: Iterable[URL], options: ReadOptions) -> list[KeptColumns]:
    """What is kept of the present versions of shards; nothing is read but a few bytes. A file that is damaged there counts as absent."""
    there, every = _there(), list(urls)
    asked = dict.fromkeys(url for url in every if url != "-")
    told = dict(zip(asked, stats(list(asked)), strict=True))
    return [_look_up(url, options, there, version_of(told.get(url, Stat(url)))) for url in every]


def _there() -> dict[str, Path]:
    """The latest file of each stem; those before it are taken away when a while has passed."""
    latest: dict[str, tuple[float, Path]] = {}
    with suppress(OSError):
        for path in _folder().glob("[!.]*.parquet"):
            stem, one = path.name.partition(".")[0], (path.stat().st_mtime, path)
            old, new = sorted((latest.get(stem, one), one))
            latest[stem] = new
            if old != new and new[0] < time.time() - _STAYS:
                old[1].unlink(missing_ok=True)
    return {stem: path for stem, (_, path) in latest.items()}


def _look_up(url: URL, options: ReadOptions, there: dict[str, Path], now: dict[str, Any]) -> KeptColumns:
    if now["size"] is None or not (now["etag"] or now["mtime"]):
        return KeptColumns(url, now)
    nothing = KeptColumns(url, now, name(url, now, options))
    if (file := there.get(nothing.stem)) is None:
        return nothing
    try:
        metadata = parquet.read_metadata(file)
        head = json.loads((metadata.metadata or {})[_META])
        if head["version"] != _VERSION or head["identity"] != now or metadata.num_rows != head["records"]:
            return nothing
        known = {name: head[name] for name in ("records", "exts", "structures", "bad", "counts")}
        error = head["error"] and {**head["error"], "shard": redact(url)}
        found = replace(nothing, file=file, parts={Part(*part) for part in head["parts"]}, error=error, called=head["url"], **known)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        return nothing
    cache_files.touch(file)
    return found


def _folder() -> Path:
    return cache_files.folder_of("table")


def _checksum(file: Path) -> str:
    """CRC32C of a file, in eight hexadecimal digits."""
    url = URL(str(file))
    with stores.of(url).open(url) as stream:
        return checksum(stream)[0]


def name(url: str, now: dict[str, Any], options: ReadOptions) -> str:
    """The name of the file that is kept for one version of a shard, whichever way its URL is spelled."""
    choices = [now, options.key_split, options.duplicates, options.concatenated, *(["strict"] if options.strict else [])]
    return cache_files.stem(url) + digest(json.dumps(choices, sort_keys=True))
