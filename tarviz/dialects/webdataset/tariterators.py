"""`webdataset.tariterators`: shards as URLs, opened, taken apart into files, put together into samples.

`tarfile_to_samples` reads blocks of records through the engine. The single steps are there for pipelines that are written
in them; `tar_file_expander` reads through the engine what `url_opener` has opened, and other streams with `tarfile`.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from tarviz import stores
from tarviz.dialects.webdataset.filters import pipelinefilter
from tarviz.dialects.webdataset.gopen import ShardFile, own_opener, rewrite_url
from tarviz.dialects.webdataset.handlers import Handler, ignore_and_continue, reraise_exception, warn_and_continue
from tarviz.dialects.webdataset.parts.samples import Needs, Sample, samples, selected
from tarviz.model.errors import DataError
from tarviz.model.types import URL, Block
from tarviz.read import stream as reading
from tarviz.read.stream import ReadOptions, ReadReport

if TYPE_CHECKING:
    from tarviz.dialects.webdataset.cache import FileCache

_NAME = re.compile(r"^((?:.*/|)[^.]+)[.]([^/]*)$")
_META = r"__[^/]*__($|/)"

Keys = Callable[[str], tuple[str | None, str | None]]


class EndOfShard(dict[str, Any]):
    """An empty dict behind the files of a shard, which loops of both generations of webdataset pass over.

    Loops of webdataset 1 ask for `== {}`; those before (open_clip, diffusers) know no end and read `fname`: it is "", which has no key.
    """

    def __missing__(self, name: str) -> str:
        return ""


def base_plus_ext(path: str) -> tuple[str | None, str | None]:
    """Key and extension of a name, cut at the first dot of its last part; (None, None) without one.

    >>> base_plus_ext("a.v2/b.seg.png"), base_plus_ext("Makefile")
    (('a.v2/b', 'seg.png'), (None, None))
    """
    match = _NAME.match(path)
    return (match[1], match[2]) if match else (None, None)


def valid_sample(sample: Any) -> bool:
    """Whether this is a dict that holds something and is not marked `__bad__`."""
    return isinstance(sample, dict) and len(sample) > 0 and not sample.get("__bad__", False)


def url_opener(data: Iterable[Sample], handler: Handler = reraise_exception, **options: Any) -> Iterator[Sample]:
    """Dicts with a `url`, a `stream` added: of the URL's store, or of what stands in `gopen_schemes` for its scheme."""
    for sample in data:
        try:
            url = rewrite_url(sample["url"])
            own = own_opener(url)
            yield {**sample, "stream": ShardFile(url) if own is None else own(url, "rb", 8192, **options)}
        except Exception as error:  # noqa: BLE001  the handler decides
            if not handler(error):
                return


def tar_file_iterator(
    fileobj: Any,
    skip_meta: str | None = _META,
    handler: Handler = reraise_exception,
    select_files: Callable[[str], bool] | None = None,
    rename_files: Callable[[str], str] | None = None,
) -> Iterator[Sample]:
    """The files of a tar as dicts of `fname` and `data`; names are renamed first and chosen then."""
    for name, data in _engine_files(fileobj) if isinstance(fileobj, ShardFile) and not fileobj.begun else _tarfile_files(fileobj):
        try:
            if ("/" not in name and name.startswith("__") and name.endswith("__")) or (skip_meta and re.match(skip_meta, name)):
                continue
            fname = rename_files(name) if rename_files else name
            if select_files is None or select_files(fname):
                yield {"fname": fname, "data": bytes(data)}
        except Exception as error:  # noqa: BLE001  the handler decides
            if not handler(error):
                return


def _engine_files(file: ShardFile) -> Iterator[tuple[str, Any]]:
    # Names are cut at the last dot, so that a folder of names with dots does not become one large record.
    options = ReadOptions(key_split="last-dot", strict=False)
    with closing(reading.blocks(file.url, options)) as run:
        for block in run:
            for row in range(len(block)):
                record = block[row]
                for field, member in zip(record, record.members, strict=True):
                    yield member.name, record[field]


def _tarfile_files(fileobj: Any) -> Iterator[tuple[str, Any]]:
    with tarfile.open(fileobj=fileobj, mode="r|*") as tar:
        for member in tar:
            if member.isreg():
                stream = tar.extractfile(member)
                assert stream is not None
                yield member.name, stream.read()
                tar.members = []  # type: ignore[attr-defined]


def tar_file_expander(
    data: Iterable[Sample],
    handler: Handler = reraise_exception,
    select_files: Callable[[str], bool] | None = None,
    rename_files: Callable[[str], str] | None = None,
    eof_value: Any = EndOfShard(),  # noqa: B008  never changed
) -> Iterator[Sample]:
    """The files of opened shards: dicts of `fname`, `data` and `__url__`; `eof_value` after each shard, if not None."""
    for source in data:
        try:
            place = {} if source.get("local_path") is None else {"__local_path__": source["local_path"]}
            for file in tar_file_iterator(source["stream"], handler=handler, select_files=select_files, rename_files=rename_files):
                yield {**file, "__url__": source["url"], **place}
            if eof_value is not None:
                yield eof_value
        except Exception as error:  # noqa: BLE001  the handler decides
            if not handler(error):
                return
        finally:
            if hasattr(source.get("stream"), "close"):
                source["stream"].close()


def group_by_keys(
    data: Iterable[Sample],
    keys: Keys = base_plus_ext,
    lcase: bool = True,
    suffixes: Iterable[str] | None = None,
    handler: Handler = reraise_exception,
) -> Iterator[Sample]:
    """Files that follow each other under one key in one shard as samples; an empty dict ends one. A field twice is an error."""
    chosen = None if suffixes is None else set(suffixes)
    current: Sample | None = None
    for file in data:
        try:
            if file == {}:
                if valid_sample(current):
                    yield current  # type: ignore[misc]
                current = None
                continue
            key, ext = keys(file["fname"])
            if key is None or ext is None:
                continue
            ext = ext.lower() if lcase else ext
            if current is None or (key, file["__url__"]) != (current["__key__"], current["__url__"]):
                if valid_sample(current):
                    yield current  # type: ignore[misc]
                current = {"__key__": key, "__url__": file["__url__"]}
            if ext in current:
                raise DataError(
                    f"the field {ext!r} appears twice.", code="E_DUP_FIELD", shard=file["__url__"], key=key, member=file["fname"]
                )
            if chosen is None or ext in chosen:
                current[ext] = file["data"]
            if file.get("__local_path__") is not None:
                current["__local_path__"] = file["__local_path__"]
        except Exception as error:  # noqa: BLE001  the handler decides
            if not handler(error):
                break
    if valid_sample(current):
        yield current  # type: ignore[misc]


@dataclass(frozen=True)
class ShardReading:
    """How shards are read: options, which files, under which names, through which cache."""

    options: ReadOptions = field(default_factory=ReadOptions)
    handler: Handler = reraise_exception
    select_files: Callable[[str], bool] | None = None
    rename_files: Callable[[str], str] | None = None
    cache: FileCache | None = None
    places: bool = False  # whether samples say where their shard lies (`__local_path__`)

    def __post_init__(self) -> None:
        if self.handler in (ignore_and_continue, warn_and_continue):
            object.__setattr__(self, "options", reading.with_changes(self.options, {"on_error": "skip"}))

    def samples(self, url: str) -> Iterator[Sample]:
        """The samples of one shard."""
        for _, rows in self.runs(url, ReadReport()):
            yield from (sample for sample in rows if sample is not None)

    def runs(
        self, url: str, report: ReadReport, start: int = 0, stop: int | None = None, needs: Needs | None = None
    ) -> Iterator[tuple[int, Iterable[Sample | None]]]:
        """Runs of samples of one shard with the number of the first; None stands for a record of which nothing was chosen.

        A run is gone through once, before the next one is asked for.
        """
        url = rewrite_url(url)
        path = self.cache.get_file(url) if self.cache is not None else url
        if self.rename_files is not None or own_opener(path) is not None:
            yield from self._assemble(url, path, start, stop)
            return
        place = path if self.places and stores.is_local(path) else None
        with closing(reading.blocks(URL(path), self.options, report=report, start=start, stop=stop)) as run:
            for block in run:
                first, rows = block.first, self._rows(block, url, place, needs)
                del block
                yield first, rows

    def _rows(self, block: Block, url: str, place: str | None, needs: Needs | None) -> Iterable[Sample | None]:
        if (select := self.select_files) is None:
            return samples(block, url, place, needs)
        return (selected(block, row, url, place, select) for row in range(len(block)))

    def _assemble(self, url: str, path: str, start: int, stop: int | None) -> Iterator[tuple[int, Iterable[Sample | None]]]:
        """The same from single files: under other names, or from streams that are not store's."""
        here = self.places and own_opener(path) is None and stores.is_local(path)
        place = {"local_path": stores.local_path(path)} if here else {}
        opened = ({**source, "url": url, **place} for source in url_opener([{"url": path}]))
        files = tar_file_expander(opened, select_files=self.select_files, rename_files=self.rename_files)
        for number, sample in enumerate(islice(group_by_keys(files), start, stop), start):
            yield number, [sample]


def tarfile_samples(
    src: Iterable[Any],
    handler: Handler = reraise_exception,
    select_files: Callable[[str], bool] | None = None,
    rename_files: Callable[[str], str] | None = None,
) -> Iterator[Sample]:
    """The samples of shards that come as dicts with a `url` or as URLs: `__key__`, `__url__`, fields as bytes."""
    shards = ShardReading(handler=handler, select_files=select_files, rename_files=rename_files)
    for item in src:
        url = item["url"] if isinstance(item, dict) else item
        try:
            yield from shards.samples(url)
        except Exception as error:  # noqa: BLE001  the handler decides
            if not handler(error):
                return


tarfile_to_samples = pipelinefilter(tarfile_samples)
