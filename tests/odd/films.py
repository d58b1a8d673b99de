"""Films of many forms: containers, codecs, sampled colours, depths, turns, ranges, animations; by PyAV, Pillow and imageio."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import av
import numpy as np
from PIL import Image, ImageSequence

from tests.odd.case import REFUSED, Odd, saved

SIZE = (32, 48)
COUNT = 12
FORMS = (
    ("mp4", "mp4", "libx264", "yuv420p"),
    ("mp4", "mp4", "libx264", "yuv422p"),
    ("mp4", "mp4", "libx264", "yuv444p"),
    ("mp4", "mp4", "libx264", "yuv420p10le"),
    ("mp4", "mp4", "libx264", "gray"),
    ("mp4", "mp4", "libx264rgb", "rgb24"),
    ("mp4", "mp4", "mpeg4", "yuv420p"),
    ("mp4", "mp4", "libx265", "yuv420p"),
    ("mp4", "mp4", "libx265", "yuv420p10le"),
    ("mp4", "mp4", "libsvtav1", "yuv420p"),
    ("m4v", "mp4", "mpeg4", "yuv420p"),
    ("mov", "mov", "libx264", "yuv420p"),
    ("mov", "mov", "prores_ks", "yuv422p10le"),
    ("mov", "mov", "prores_ks", "yuva444p10le"),
    ("mov", "mov", "mjpeg", "yuvj420p"),
    ("mov", "mov", "png", "rgb24"),
    ("mov", "mov", "qtrle", "rgb24"),
    ("mkv", "matroska", "libx264", "yuv420p"),
    ("mkv", "matroska", "ffv1", "yuv444p"),
    ("mkv", "matroska", "ffv1", "gray16le"),
    ("mkv", "matroska", "ffv1", "bgr0"),
    ("mkv", "matroska", "libvpx-vp9", "yuva420p"),
    ("webm", "webm", "libvpx", "yuv420p"),
    ("webm", "webm", "libvpx-vp9", "yuv420p"),
    ("webm", "webm", "libvpx-vp9", "yuv444p"),
    ("avi", "avi", "mpeg4", "yuv420p"),
    ("avi", "avi", "mjpeg", "yuvj422p"),
    ("avi", "avi", "huffyuv", "yuv422p"),
    ("avi", "avi", "utvideo", "yuv420p"),
    ("avi", "avi", "rawvideo", "bgr24"),
    ("avi", "avi", "msmpeg4", "yuv420p"),
    ("mpg", "mpeg", "mpeg1video", "yuv420p"),
    ("mpeg", "mpeg", "mpeg2video", "yuv420p"),
    ("ts", "mpegts", "libx264", "yuv420p"),
    ("flv", "flv", "flv", "yuv420p"),
    ("wmv", "asf", "wmv2", "yuv420p"),
    ("3gp", "3gp", "h263", "yuv420p"),
)
SIZES = {"h263": (96, 128), "libsvtav1": (64, 64), "libx265": (128, 160)}  # what these take at least
OPTIONS = {"libx265": {"options": {"x265-params": "log-level=none"}}}


def frame(at: int, size: tuple[int, int] = SIZE) -> Any:
    pixels = np.zeros((*size, 3), np.uint8)
    pixels[:, : 4 * at + 2] = (20 * at, 255 - 20 * at, 90)
    return pixels


def film(form: str, codec: str, pix_fmt: str, size: tuple[int, int] = SIZE, **context: Any) -> bytes:
    out = io.BytesIO()
    with av.open(out, "w", format=form) as file:
        stream = file.add_stream(codec, rate=25)
        stream.height, stream.width, stream.pix_fmt, stream.gop_size = *size, pix_fmt, 5
        for name, value in context.items():
            setattr(stream.codec_context, name, value)
        for at in range(COUNT):
            file.mux(stream.encode(av.VideoFrame.from_ndarray(frame(at, size), format="rgb24")))
        file.mux(stream.encode())
    return out.getvalue()


def frames(data: bytes) -> Any:
    """All frames, by PyAV alone."""
    with av.open(io.BytesIO(data)) as file:
        found = [np.rot90(one.to_ndarray(format="rgb24"), round((one.rotation or 0) / 90) % 4) for one in file.decode(video=0)]
    return np.stack(found)


def films() -> Iterator[Odd]:
    for at, (ext, form, codec, pix_fmt) in enumerate(FORMS):
        data = film(form, codec, pix_fmt, SIZES.get(codec, SIZE), **OPTIONS.get(codec, {}))
        whole = frames(data)
        yield Odd(f"{ext} {codec} {pix_fmt}", ext, data, whole)
        if at % 5 == 0:
            yield Odd(f"{ext} {codec} {pix_fmt}, each third", ext, data, whole[::3], "every=3")
    for degrees in (90, 180, 270):
        data = turned(film("mp4", "libx264", "yuv420p"), degrees)
        assert frames(data).shape[1:3] == (SIZE if degrees == 180 else SIZE[::-1])
        yield Odd(f"mp4 turned by {degrees}", "mp4", data, frames(data))
    for name, context in (("full range", {"color_range": 2}), ("bt709", {"colorspace": 1}), ("bt601", {"colorspace": 5})):
        data = film("mp4", "libx264", "yuv420p", **context)
        yield Odd(f"mp4 of {name}", "mp4", data, frames(data))
    data = film("mp4", "libx264", "yuv420p", (2, 2))
    yield Odd("mp4 of four pixels", "mp4", data, frames(data))
    data = film("mp4", "libx264", "yuv444p", (31, 17))
    yield Odd("mp4 of odd sides", "mp4", data, frames(data))
    yield Odd("only sound in mp4", "mp4", only_sound(), REFUSED)


def turned(data: bytes, degrees: int) -> bytes:
    """An MP4 whose track is turned: the matrix of its header (ISO/IEC 14496-12 §8.3.2)."""
    at = data.index(b"tkhd") + 4 + (40 if data[data.index(b"tkhd") + 4] == 0 else 52)
    a, b = {90: (0, 1), 180: (-1, 0), 270: (0, -1)}[degrees]
    matrix = np.array([a << 16, b << 16, 0, -b << 16, a << 16, 0, 0, 0, 1 << 30], ">i4").tobytes()
    return data[:at] + matrix + data[at + 36 :]


def only_sound() -> bytes:
    from tests.odd.sounds import coded

    return coded("aac", "mp4", "stereo", 16000)


def animations() -> Iterator[Odd]:
    pictures = [Image.fromarray(frame(at)) for at in range(5)]
    for form, ext, options in (
        ("GIF", "gif", {}),
        ("GIF", "gif", {"duration": [100, 200, 100, 300, 50], "loop": 0}),
        ("WEBP", "webp", {"lossless": True, "duration": 80}),
        ("WEBP", "webp", {"quality": 50, "duration": 80}),
        ("PNG", "apng", {"duration": 70}),
    ):
        data = saved(pictures[0].save, form, save_all=True, append_images=pictures[1:], **options)
        with Image.open(io.BytesIO(data)) as image:
            whole = np.stack([np.array(one.convert("RGB")) for one in ImageSequence.Iterator(image)])
        yield Odd(f"{ext} {options}", ext, data, whole[::2], "every=2", 1 if options.get("quality") else 0)
    import imageio.v3

    for ext, plugin in (("gif", "pillow"), ("mp4", "pyav"), ("mkv", "pyav")):
        more = {"codec": "libx264"} if plugin == "pyav" else {}
        data = imageio.v3.imwrite("<bytes>", np.stack([frame(at) for at in range(5)]), extension=f".{ext}", plugin=plugin, **more)
        value = np.asarray(
            imageio.v3.imread(data, plugin=plugin, extension=f".{ext}", **({} if plugin == "pyav" else {"mode": "RGB", "index": ...}))
        )
        yield Odd(f"{ext} by imageio", ext, data, value[::2], "every=2")
