"""Films and animations from bytes: the frames asked for, uint8 [frames, height, width, 3], and no more decoded than it takes."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.config import options
from tarviz.model.errors import DataError, LimitError
from tarviz.model.types import Buffer
from tarviz.ops.values.av_files import AV_TIME_BASE, av_file

FILMS = ("mp4", "m4v", "mov", "mkv", "webm", "avi", "mpg", "mpeg", "ogv", "wmv", "flv", "3gp", "ts")
ANIMATIONS = ("gif", "webp", "apng")
_TS_DISCONT = 0x200  # av.format.Flags.ts_discont


@dataclass(frozen=True, slots=True)
class Cut:
    """Which frames of a film: of the part from `start` on, `seconds` long, either `frames` of them (the middles of as many equal
    parts), each `every`th, or `fps` a second; all where nothing is said. A time stands for the frame that is on the screen then."""

    frames: int | None = None
    every: int | None = None
    fps: float | None = None
    start: float = 0
    seconds: float | None = None

    @property
    def timed(self) -> bool:
        """Whether frames are told by times; they are counted otherwise."""
        return self.every is None and (self.frames is not None or self.fps is not None)

    def times(self, length: float) -> list[float]:
        """Seconds from the film's begin, rising, for a film of that many seconds."""
        end = length if self.seconds is None else min(length, self.start + self.seconds)
        span = max(end - self.start, 0)
        if self.frames is not None:
            return [self.start + span * (at + 0.5) / self.frames for at in range(self.frames)]
        fps = self.fps or 1
        return [self.start + at / fps for at in range(max(1, int(np.ceil(span * fps - 1e-9))))]

    def thin(self, shown: Sequence[float], length: float) -> list[int]:
        """The same choice among frames whose times are known: their numbers, rising."""
        if self.timed:
            return [max(int(np.searchsorted(shown, time + 1e-9, side="right")) - 1, 0) for time in self.times(length)]
        end = float("inf") if self.seconds is None else self.start + self.seconds
        return [at for at, time in enumerate(shown) if self.start - 1e-9 <= time < end - 1e-9][:: self.every or 1]


WHOLE = Cut()
"""Every frame."""


def decode_film(data: Buffer, cut: Cut, *, least: tuple[int, int] | None = None) -> NDArray[np.uint8]:
    """The frames of a film as uint8 [frames, height, width, 3], upright, in the colours and the range that the film says.

    Films by PyAV (extra `media`), which seeks to the key frame before a time and decodes from there; GIF, WebP and PNG by Pillow.
    `least`, (height, width): frames come at a half, a quarter or an eighth of their sides, never smaller than that.

    Errors: `E_MISSING_PACKAGE`, `E_DECODE`, `E_LIMIT` for frames of more than the option `max_member_bytes`.
    """
    if bytes(data[:4]) in (b"GIF8", b"RIFF", b"\x89PNG") and bytes(data[8:12]) != b"AVI ":
        return _animation(data, cut, least)
    with av_file(data, "film") as (file, stream):
        from av.video.reformatter import VideoReformatter

        colours = VideoReformatter()  # one for all frames: each would else make its tables anew
        return _stack(_upright(frame, least, colours) for frame in _choose(file, stream, cut))


@dataclass(frozen=True, slots=True)
class FilmFacts:
    """What a film's header says; `seconds` is None where it does not say how long it is, `width` and `height` are those it is shown in."""

    width: int
    height: int
    seconds: float | None
    rate: float
    codec: str


def film_facts(data: Buffer) -> FilmFacts:
    """What the header of a film says. Errors: `E_MISSING_PACKAGE`, `E_DECODE`."""
    with av_file(data, "film") as (file, stream):
        codec = str(stream.codec_context.name)
        first = next(file.decode(stream), None)  # PyAV tells the turn of frames alone
        sides = (stream.height, stream.width) if first is not None and _quarters(first) % 2 else (stream.width, stream.height)
        return FilmFacts(*sides, _length(file, stream), float(stream.average_rate or 0), codec)


def _length(file: Any, stream: Any) -> float | None:
    if stream.duration:
        return float(stream.duration * stream.time_base)
    return file.duration / AV_TIME_BASE if file.duration else None


def _choose(file: Any, stream: Any, cut: Cut) -> Iterator[Any]:
    stream.codec_context.thread_count = 1  # films are decoded side by side: threads of FFmpeg's own would be in their way
    first = stream.start_time or 0
    if not cut.timed:
        return _in_turn(file, stream, cut, first)
    times = cut.times(_length(file, stream) or _measure(file, stream))
    return _at_times(file, stream, [first + _ticks(time, stream) for time in times])


def _ticks(seconds: float, stream: Any, *, up: bool = False) -> int:
    """A time in the stream's time base, down to a whole number or up. Half a millisecond is forgiven: Matroska rounds to whole ones, and of
    30 frames a second has the third at 67."""
    at: float = (seconds - 0.0005 if up else seconds + 0.0005) / stream.time_base
    return ceil(at) if up else floor(at)


def _measure(file: Any, stream: Any) -> float:
    """The seconds of a film that does not say how long it is: all of it is decoded for that."""
    shown = [float(frame.time or 0) for frame in file.decode(stream)]
    if not shown:
        raise DataError("the film has no frame.", code="E_DECODE")
    file.seek(0)
    return (shown[-1] - shown[0]) * len(shown) / max(len(shown) - 1, 1) or 1.0


def _at_times(file: Any, stream: Any, wanted: Sequence[int]) -> Iterator[Any]:
    """The frame on the screen at each of rising times, in the stream's time base."""
    frames, held, ahead = file.decode(stream), None, None
    for time in wanted:
        if _far(stream, held, time):
            _go_before(file, stream, time)
            frames, held, ahead = file.decode(stream), None, None
        while True:
            ahead = next(frames, None) if ahead is None else ahead
            if ahead is None or (held is not None and (ahead.pts or 0) > time):
                break
            held, ahead = ahead, None
        if held is None:
            raise DataError("the film ends before its first frame.", code="E_DECODE")
        yield held


def _go_before(file: Any, stream: Any, time: int) -> None:
    """Go to the last key frame before a time, where the file has an index: in others FFmpeg guesses, and frames would be missing."""
    if _key_before(stream, time) is not None:
        file.seek(time, stream=stream)


def _far(stream: Any, held: Any, time: int) -> bool:
    """Whether a key frame lies between the frame that is held and a later time: then going there is less than decoding on."""
    key = _key_before(stream, time)
    return key is not None and (held is None or key > (held.dts if held.dts is not None else held.pts or 0))


def _key_before(stream: Any, time: int) -> int | None:
    """The decoding time of the last key frame before a time, by the file's index; None for a file without one: MPEG's streams, in which
    FFmpeg goes to any frame."""
    if stream.container.format.flags & _TS_DISCONT:
        return None
    entries = stream.index_entries
    at = entries.search_timestamp(time) if len(entries) else -1
    return None if at is None or at < 0 else int(entries[at].timestamp)


def _in_turn(file: Any, stream: Any, cut: Cut, first: int) -> Iterator[Any]:
    start = first + _ticks(cut.start, stream, up=True)
    end = None if cut.seconds is None else first + _ticks(cut.start + cut.seconds, stream, up=True)
    if cut.start:
        _go_before(file, stream, start)
    number = 0
    for frame in file.decode(stream):
        if (frame.pts or 0) < start:
            continue
        if end is not None and (frame.pts or 0) >= end:
            return
        if number % (cut.every or 1) == 0:
            yield frame
        number += 1


def _quarters(frame: Any) -> int:
    """How many quarters a frame is to be turned counterclockwise."""
    return round((frame.rotation or 0) / 90) % 4


def _upright(frame: Any, least: tuple[int, int] | None, colours: Any) -> NDArray[np.uint8]:
    from tarviz.ops.values.pictures import reduction  # loads Pillow, which no list of kinds needs

    quarters = _quarters(frame)
    height, width = (frame.width, frame.height) if quarters % 2 else (frame.height, frame.width)
    by = reduction(height, width, least)
    width, height = frame.width // by, frame.height // by
    (plane,) = colours.reformat(frame, width, height, "rgb24", threads=1).planes
    pixels = np.frombuffer(plane, np.uint8).reshape(height, plane.line_size)[:, : width * 3].reshape(height, width, 3)
    return np.rot90(pixels, quarters) if quarters else pixels


def _animation(data: Buffer, cut: Cut, least: tuple[int, int] | None) -> NDArray[np.uint8]:
    from PIL import Image, ImageSequence

    from tarviz.ops.values.pictures import decoding, reduction

    with decoding("the animation"), Image.open(io.BytesIO(data), formats=("GIF", "WEBP", "PNG")) as image:
        frames: list[NDArray[np.uint8]] = []
        shown, now = [], 0.0
        total = getattr(image, "n_frames", 1)
        _check_size(total, image.height, image.width)
        by = reduction(image.height, image.width, least)
        for one in ImageSequence.Iterator(image):
            colours = one.convert("RGB")
            frames.append(np.array(colours.reduce(by) if by > 1 else colours))
            shown.append(now)
            now += max(float(one.info.get("duration", 100)), 10) / 1000  # browsers, too, show no frame for less
        return _stack(frames[at] for at in cut.thin(shown, now))


def _stack(frames: Iterator[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    kept: list[NDArray[np.uint8]] = []
    for frame in frames:
        kept.append(frame)
        _check_size(len(kept), *frame.shape[:2])
    if not kept:
        raise DataError("there is no frame in that part of the film.", code="E_DECODE")
    if any(frame.shape != kept[0].shape for frame in kept):
        raise DataError("its frames are of several sizes.", code="E_DECODE")
    return np.stack(kept)


def _check_size(frames: int, height: int, width: int) -> None:
    if frames * height * width * 3 > options().max_member_bytes:
        hint = "frames=, every=, seconds= or least= take less; the option max_member_bytes sets the limit."
        raise LimitError(f"{frames} frames of {width} x {height} pixels are more than the limit.", hint=hint)
