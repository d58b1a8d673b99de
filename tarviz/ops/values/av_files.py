"""Sound and film files opened by PyAV, with what goes wrong said in one way."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from tarviz.model.errors import DataError, require
from tarviz.model.types import Buffer

AV_TIME_BASE = 1_000_000  # av.time_base


@contextmanager
def av_file(data: Buffer, kind: Literal["sound", "film"]) -> Iterator[tuple[Any, Any]]:
    """The container and its first stream of that kind, for as long as the block lasts.

    Errors, also of what is read in the block: `E_MISSING_PACKAGE` (extra `media`), `E_DECODE`, `E_NOT_SHOWN` where it
    holds other kinds alone.
    """
    av = require("av", f"a {kind}", "media")
    try:
        with av.open(io.BytesIO(data)) as file:
            streams = file.streams.audio if kind == "sound" else file.streams.video
            if not streams:
                held = ", ".join(sorted({stream.type for stream in file.streams}))
                raise DataError(f"there is no {kind} in it, but {held or 'nothing'}.", code="E_NOT_SHOWN" if held else "E_DECODE")
            if streams[0].codec_context is None:
                raise DataError(f"FFmpeg has no decoder for this {kind}.", code="E_DECODE")
            yield file, streams[0]
    except (av.FFmpegError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"this is no {kind} that can be read: {error}.", code="E_DECODE") from error
