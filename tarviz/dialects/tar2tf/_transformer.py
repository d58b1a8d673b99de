"""The transformer that runs beside the data, in a pod of an AIStore cluster: a shard in, the shard after a chain out. Needs `aistore`."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

from aistore.sdk.etl.webserver.http_multi_threaded_server import HTTPMultiThreadedServer

from tarviz.dialects.tar2tf import _transformed
from tarviz.model.errors import TarvizError
from tarviz.model.types import URL
from tarviz.pipeline import Pipeline
from tarviz.read.stream import ReadReport
from tarviz.runners.elsewhere import MadeRow
from tarviz.runners.shares import Piece
from tarviz.runners.walk import work


class TarTransformer(HTTPMultiThreadedServer):  # type: ignore[misc]
    """For `init_class` of the SDK. What is to be done comes with each request, as JSON: see `transform_stream`."""

    def transform_stream(self, reader: BinaryIO, path: str, etl_args: str) -> Iterator[bytes]:
        """The shard that `reader` gives, after a chain, as TFRecord (see `_transformed`).

        `etl_args` is JSON: `chain` (its text), `seed`, `epoch`, `options` (of reading), `fields` (those wanted, null: all).
        """
        asked = json.loads(etl_args)
        fields = None if asked["fields"] is None else frozenset(asked["fields"])
        with tempfile.NamedTemporaryFile(suffix=".tar") as file:  # packed or not, which its bytes tell
            shutil.copyfileobj(reader, file, 1 << 20)
            file.flush()
            pipeline, report = Pipeline(file.name, asked["chain"] or None, seed=asked["seed"], **asked["options"]), ReadReport()
            yield from _transformed.pack(_rows(pipeline, asked["epoch"], report), fields, report)


def _rows(pipeline: Pipeline, epoch: int, report: ReadReport) -> Iterator[MadeRow]:
    """The rows of the one shard; damage to it is a row of its own."""
    try:
        for rows in work(pipeline, Piece(URL(pipeline.urls[0])), epoch, report, pipeline.options.on_error == "raise"):
            yield from rows
    except TarvizError as error:
        yield MadeRow("", 0, error)
