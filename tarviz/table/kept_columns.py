"""Columns of shards kept as Parquet beside the cached indexes: one file a shard, named by its version, growing by what queries need."""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tarviz.model.config import options as configured
from tarviz.model.errors import ChangedError, redact
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL
from tarviz.read.chosen import version
from tarviz.read.stream import ReadOptions
from tarviz.table import making
from tarviz.table.columns import NAMES, Part

if TYPE_CHECKING:
    import pyarrow as pa

_LOG = logging.getLogger(__name__)
_META = b"tarviz"
_VERSION = 1
_ROWS = 122_880  # DuckDB's row group


@dataclass(slots=True)
class Kept:
    """What is known of one shard's columns, and where they lie: in `file`, or in `memory` where nothing can be kept."""

    url: URL
    identity: dict[str, Any]
    file: Path | None
    records: int = 0
    parts: set[Part] = field(default_factory=set)
    exts: list[str] = field(default_factory=list)
    bad: dict[str, int] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    counts: dict[str, int] = field(default_factory=dict)
    memory: pa.Table | None = None

    __repr__ = redacted_repr

    def columns(self) -> pa.Schema:
        """Names and types of the columns made so far."""
        import pyarrow.parquet as parquet

        if self.memory is not None:
            return self.memory.schema
        return parquet.read_schema(self.file) if self.parts else _empty()

    def table(self) -> pa.Table:
        """The columns made so far."""
        import pyarrow.parquet as parquet

        return self.memory if self.memory is not None else parquet.read_table(self.file)

    def add(self, parts: set[Part], options: ReadOptions) -> None:
        """Make what of `parts` is not there yet: one pass over the shard. `ChangedError` when the shard is another by now."""
        import pyarrow as pa

        wanted = {*parts, NAMES} - self.parts
        if not wanted:
            return
        made = making.made(self.url, options, wanted)
        if version(self.url) != self.identity or (self.parts and made.records != self.records):
            raise ChangedError("the shard was replaced while its columns were made.", shard=self.url, hint="Ask again.")
        columns: dict[str, Any] = dict(made.columns)
        if NAMES in wanted:
            columns["shard"] = pa.DictionaryArray.from_arrays(pa.array(np.zeros(made.records, np.int32)), pa.array([redact(self.url)]))
        if self.parts:
            before = self.table()
            columns = dict(zip(before.column_names, before.columns, strict=True)) | columns
        table = pa.table(columns)
        self.records, self.parts = made.records, self.parts | wanted
        self.exts = self.exts or made.exts
        self.bad |= made.bad
        self.error = made.error or self.error
        self.counts |= made.counts
        self._keep(table)

    def _keep(self, table: pa.Table) -> None:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        head = asdict(self) | {"version": _VERSION, "url": redact(self.url), "parts": sorted(self.parts)}
        head = {name: value for name, value in head.items() if name not in ("file", "memory")}
        table = table.replace_schema_metadata({_META: json.dumps(head).encode("utf-8", "surrogateescape")})
        self.memory = None
        if self.file is None:
            self.memory = table
            return
        temporary = self.file.with_name(f".{self.file.name}.tmp-{secrets.token_hex(8)}")
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            # Not packed: a question over a million records takes 15 ms in place of 70.
            parquet.write_table(table, temporary, compression="none", row_group_size=_ROWS)
            temporary.replace(self.file)
        except (OSError, pa.ArrowException) as error:
            _LOG.info("columns not kept: %s", error)
            self.memory = table
            with suppress(OSError):
                temporary.unlink()


def _empty() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([])


def kept(url: URL, options: ReadOptions) -> Kept:
    """What is kept of one shard's present version; nothing of it is read but a few bytes. A file that is damaged counts as absent."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    now = version(url)
    if now["size"] is None or not (now["etag"] or now["mtime"]):
        return Kept(url, now, None)
    place = configured().cache_dir / "table" / f"{name(url, now, options)}.parquet"
    found = Kept(url, now, place)
    try:
        metadata = parquet.read_metadata(place)
        head = json.loads((metadata.metadata or {})[_META])
        if head["version"] != _VERSION or head["identity"] != now or metadata.num_rows != head["records"]:
            return found
        found.records, found.exts, found.bad = head["records"], head["exts"], head["bad"]
        found.error, found.counts = head["error"], head["counts"]
        found.parts = {Part(*part) for part in head["parts"]}
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        return Kept(url, now, place)
    return found


def name(url: str, now: dict[str, Any], options: ReadOptions) -> str:
    """The name of the file that is kept for one version of a shard."""
    choices = [url, now, options.key_split, options.duplicates, options.concatenated]
    return hashlib.sha256(json.dumps(choices, sort_keys=True).encode("utf-8", "surrogateescape")).hexdigest()[:40]
