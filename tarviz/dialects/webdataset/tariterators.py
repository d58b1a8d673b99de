"""`webdataset.tariterators`: shards as URLs, opened, taken apart into files, put together into samples.

`tarfile_to_samples` reads blocks of records through the engine. The single steps are there for pipelines that are written
in them; `tar_file_expander` reads through the engine what `url_opener` has opened, and other streams with `tarfile`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tarviz.dialects.webdataset.filters import pipelinefilter
from tarviz.dialects.webdataset.handlers import Handler, reraise_exception
from tarviz.dialects.webdataset.parts.files import EndOfShard as EndOfShard
from tarviz.dialects.webdataset.parts.files import base_plus_ext as base_plus_ext
from tarviz.dialects.webdataset.parts.files import group_by_keys as group_by_keys
from tarviz.dialects.webdataset.parts.files import tar_file_expander as tar_file_expander
from tarviz.dialects.webdataset.parts.files import tar_file_iterator as tar_file_iterator
from tarviz.dialects.webdataset.parts.files import url_opener as url_opener
from tarviz.dialects.webdataset.parts.files import valid_sample as valid_sample
from tarviz.dialects.webdataset.parts.samples import Sample
from tarviz.dialects.webdataset.parts.source import ShardReading


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
