"""Index shards for random access, and write the index that NVIDIA DALI reads, or the list of shards that wids reads."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any, Unpack

import click

from tarviz import engines, stores
from tarviz.cli import shard_table, verb_base
from tarviz.cli.shard_map import jobs_options
from tarviz.formats.index import ShardIndex
from tarviz.model import config
from tarviz.model.config import format_size
from tarviz.model.errors import Fault, UsageError, redact
from tarviz.model.types import URL
from tarviz.outputs.inputs import Inputs
from tarviz.read import stream, tfrecords
from tarviz.read.headers import packing
from tarviz.read.index import Index
from tarviz.read.keywords import ReadKeywords
from tarviz.read.shard_index import cached_index, keep_index, shard_index
from tarviz.stores import URLs
from tarviz.stores.cache_files import is_kept


class IndexReport(verb_base.Result, Index):
    """An index that also says how it went: `str()`, `to_dict()`, `exit_code`; `written` holds the files of `dali` and `wids`."""

    written: tuple[str, ...] = ()
    kept: bool | None = None
    """Whether all of it is in the cache folder; None where that was not asked for."""

    @property
    def exit_code(self) -> int:
        if any(shard.error for shard in self.shards):
            return 2
        return 1 if any(shard.warnings for shard in self.shards) else 0

    def __str__(self) -> str:
        rows = [
            (redact(url), f"{len(shard):,}", f"{len(shard.members):,}", format_size(shard.identity.get("size") or 0))
            for url, shard in zip(self.urls, self.shards, strict=True)
        ]
        parts = [verb_base.table(rows, header=("shard", "records", "members", "size"), right=[1, 2, 3])]
        parts += [f"written: {name}" for name in self.written]
        for url, shard in zip(self.urls, self.shards, strict=True):
            parts += [str(Fault.of(found, url)) for found in [*([shard.error] if shard.error else []), *shard.warnings[:20]]]
        if self.kept is not None:
            folder = config.options().cache_dir
            why = "it cannot be written, or a shard has no time or ETag to know it by, or an index beside it"
            parts.append(f"kept in {folder}" if self.kept else f"not all is kept in {folder}: {why}")
        return "\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        shards = [
            {"url": redact(url), "records": len(shard), "members": len(shard.members), "warnings": shard.warnings, "error": shard.error}
            for url, shard in zip(self.urls, self.shards, strict=True)
        ]
        return {"records": len(self), "fields": self.fields(), "shards": shards, "written": list(self.written)}


def index(
    urls: URLs,
    *,
    cache: bool = True,
    dali: str | PathLike[str] | None = None,
    wids: str | PathLike[str] | None = None,
    engine: str = "local",
    address: str | None = None,
    jobs: int | None = None,
    **changes: Unpack[ReadKeywords],
) -> IndexReport:
    """The index of shards: records by number and by key. With `dali` it is also written as the text of `wds2idx`.

    `dali` is a file for one shard; for several a folder, in which `train-0000.tar` gets `train-0000.idx`. `wids` is the JSON file of
    `tarviz.dialects.webdataset.wids`: URL, records and bytes of each shard, local ones as seen from it.

    `jobs` shards are indexed at a time, on the engine (`"local"`, `"ray"`) at `address`; the indexes are kept here.
    """
    targets = tfrecords.as_shards(stream.shards(urls))
    options = stream.with_changes(None, {"strict": False, **changes})
    if engines.travels(engine) or jobs is not None:
        if not cache:
            raise UsageError("without the cache there is nowhere to keep what workers index.", hint="Leave out jobs and engine.")
        _build(targets, options, engine, address, jobs)
    with verb_base.progress(len(targets), "shards") as bar, verb_base.silent_warnings():
        made = IndexReport(targets, options, cache=cache, progress=lambda done, _: bar.add(done - bar.done))
    made.kept = all(is_kept("index", url) for url in targets) if cache else None
    if dali is not None:
        made.written = tuple(_write_dali(made, fspath(dali)))
    if wids is not None:
        made.written += (_write_wids(made, URL(fspath(wids))),)
    return made


def _build(targets: list[URL], options: stream.ReadOptions, engine: str, address: str | None, jobs: int | None) -> None:
    """Index the shards of which no index is kept, and keep it."""
    stats = [stores.of(url).stat(url) for url in targets if url != "-"]
    missing = {stat.url: stat for stat in stats if cached_index(stat, options) is None}
    job = partial(_index_one, replace(options, where="", keys=""))
    errors = engines.Errors(list(missing))
    for url, made in shard_table.each_task("index", job, list(missing), lambda made: (len(made), None), engine, address, jobs, errors):
        keep_index(missing[url], options, made)


def _index_one(options: stream.ReadOptions, url: URL, file: IO[bytes] | None, tick: engines.Tick) -> ShardIndex:
    """Index one shard, in a process that may be another."""
    made = shard_index(url, options, cache=False)
    assert made is not None  # may_stream is true
    return made


def _write_dali(made: Index, target: str) -> list[URL]:
    folder = target.endswith(("/", os.sep)) or Path(target).is_dir()
    if len(made.urls) > 1 and not folder:
        raise UsageError(f"{len(made.urls)} shards need a folder for their DALI indexes.", hint=f"--dali {target}/")
    written = []
    for url, shard in zip(made.urls, made.shards, strict=True):
        if packing(url) is not None:
            raise UsageError(f"{redact(url)} is compressed; DALI reads plain tars only.", hint="Decompress it first.")
        stem = Path(url.rpartition("/")[2]).stem
        place = stores.join(target, f"{stem}.idx") if folder else URL(target)
        Inputs(made.urls).refuse(place)
        stores.write(place, shard.to_dali().encode("utf-8", "surrogateescape"))
        written.append(place)
    return written


def _write_wids(made: Index, target: URL) -> URL:
    if made.options.where or made.options.keys:
        raise UsageError("wids counts all records of a shard.", hint="Leave out where and keys, or cat the chosen records first.")
    folder = os.path.dirname(stores.local_path(target)) or "." if stores.is_local(target) else None
    shards = []
    for url, shard in zip(made.urls, made.shards, strict=True):
        seen = url if folder is None or not stores.is_local(url) else os.path.relpath(stores.local_path(url), folder)
        shards.append({"url": seen, "nsamples": len(shard), "filesize": shard.identity.get("size")})
    Inputs(made.urls).refuse(target)
    head = {"__kind__": "wids-shard-index-v1", "wids_version": 1, "name": Path(target.rpartition("/")[2]).stem}
    stores.write(target, json.dumps({**head, "shardlist": shards}, indent=2).encode())
    return target


@verb_base.verb("index", example=["tarviz index data/train-0000.tar", "tarviz index data/ --dali data/idx/"])
@verb_base.urls_argument
@click.option("--dali", metavar="FILE", help="Also write NVIDIA DALI's text index (wds2idx); a folder for several shards.")
@click.option("--wids", metavar="FILE", help="Also write the list of shards, in JSON, that wids reads.")
@click.option("--cache/--no-cache", default=True, show_default=True, help="Keep the index, or build it anew and drop it.")
@jobs_options
@verb_base.result_options
@verb_base.reading_options
def command(urls: tuple[str, ...], as_json: bool, strict: bool | None, **options: Any) -> Any:
    """Index shards for random access, and write the index that NVIDIA DALI reads, or the list of shards that wids reads.

    The index is kept in the cache folder under the shard's URL, size and version, so it is never stale. In Python: tarviz.index(urls)[17],
    tarviz.index(urls)["train/n00000017"].
    """
    return verb_base.emit(index(urls, strict=bool(strict), **options), as_json)
