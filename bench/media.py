"""Sound and film decoded from tars, against the libraries people decode them with, each in two threads."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import Figure, Side, sweep
from bench._figure import Prepare

THREADS = 2
SOUNDS, SECONDS, RATE = 200, 8, 16_000  # LibriSpeech's rate and about its length
FILMS, FRAMES, SIZE = 36, 8, (640, 360)  # each of 10 s at 25 frames a second


def _written(data: Path, name: str, each: Callable[[], Iterator[tuple[str, dict[str, bytes]]]]) -> str:
    from tarviz import samples

    path = data / name
    if not path.is_file():
        samples.write_shard(path, each())
    return str(path)


def sounds(data: Path, extension: str) -> str:
    """A shard of sounds: tones that wander, with noise."""
    import soundfile

    def each() -> Iterator[tuple[str, dict[str, bytes]]]:
        drawn = np.random.default_rng(0)
        for number in range(SOUNDS):
            pitch = np.cumsum(drawn.normal(220, 20, RATE * SECONDS)) / RATE
            wave = 0.5 * np.sin(2 * np.pi * pitch) + drawn.normal(0, 0.02, RATE * SECONDS)
            out = io.BytesIO()
            soundfile.write(out, wave.clip(-1, 1).astype(np.float32), RATE, format=extension.upper())
            yield f"sound/{number:04d}", {extension: out.getvalue(), "cls": b"0"}

    return _written(data, f"sound-{extension}-0.tar", each)


def films(data: Path) -> str:
    """A shard of films in H.264: a photo that drifts, a key frame every two seconds and a half as x264 is used."""
    import av

    from tarviz import samples

    def film(photo: Any, number: int) -> bytes:
        out = io.BytesIO()
        with av.open(out, "w", "mp4") as container:
            stream = container.add_stream("libx264", 25, options={"crf": "23", "g": "62"})
            stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
            for at in range(250):
                picture = np.roll(photo, (at * (1 + number % 3), at * 2), (0, 1))
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            container.mux(stream.encode(None))
        return out.getvalue()

    def each() -> Iterator[tuple[str, dict[str, bytes]]]:
        from PIL import Image

        for number, (_, fields) in enumerate(samples._photos(FILMS, 0)):
            photo = np.asarray(Image.open(io.BytesIO(fields["jpg"])).convert("RGB").resize(SIZE))
            yield f"film/{number:04d}", {"mp4": film(photo, number), "cls": b"0"}

    return _written(data, "film-0.tar", each)


def ours(url: Callable[[Path], str], chain: str) -> Callable[[Path], Callable[[], int]]:
    """Every record of an eager pass."""

    def prepare(data: Path) -> Callable[[], int]:
        from tarviz import Pipeline

        made = Pipeline(url(data), chain).eager(num_workers=THREADS)
        return lambda: sum(1 for _ in made)

    return prepare


def threads(url: Callable[[Path], str], field: str, decode: Callable[[bytes], object], at_once: int = 1) -> Prepare:
    """`decode` over each value, in as many threads, so many values a task; the bytes are in memory."""

    def prepare(data: Path) -> Callable[[], int]:
        from tarviz import records

        held = [bytes(record[field]) for record in records(url(data))]
        pool = ThreadPoolExecutor(THREADS)
        parts = [held[at : at + at_once] for at in range(0, len(held), at_once)]

        def decode_part(part: list[bytes]) -> int:
            return sum(decode(blob) is not None for blob in part)

        return lambda: sum(pool.map(decode_part, parts))

    return prepare


def soundfile_read(blob: bytes) -> object:
    import soundfile

    return soundfile.read(io.BytesIO(blob), dtype="float32", always_2d=True)


def soundfile_object(blob: bytes) -> object:
    import soundfile

    with soundfile.SoundFile(io.BytesIO(blob)) as file:
        return file.read(dtype="float32", always_2d=True), file.samplerate


def soundfile_buffer(blob: bytes) -> object:
    import soundfile

    with soundfile.SoundFile(io.BytesIO(blob)) as file:
        values = np.frombuffer(file.buffer_read(dtype="float32"), np.float32).reshape(-1, file.channels)
        return values, file.samplerate


def torchcodec_decode(blob: bytes, seek_mode: str, ffmpeg_threads: int) -> object:
    from torchcodec.decoders import VideoDecoder

    decoder = VideoDecoder(blob, dimension_order="NHWC", num_ffmpeg_threads=ffmpeg_threads, seek_mode=seek_mode)
    count = decoder.metadata.num_frames or 0
    return decoder.get_frames_at(np.linspace(0, count - 1, FRAMES).round().astype(int).tolist()).data


def spdl_decode(blob: bytes, **ffmpeg: str) -> object:
    import spdl.io

    packets = spdl.io.demux_video(blob)
    at = np.linspace(0, len(packets) - 1, FRAMES).round().astype(int).tolist()
    config = spdl.io.decode_config(decoder_options=ffmpeg)
    scale = spdl.io.get_video_filter_desc(pix_fmt="rgb24")
    frames = spdl.io.sample_decode_video(packets, at, decode_config=config, filter_desc=scale)
    return spdl.io.to_numpy(spdl.io.convert_frames(frames))


READS = {"read": soundfile_read, "SoundFile.read": soundfile_object, "buffer_read": soundfile_buffer}
PARTS = {"one a task": 1, "8 a task": 8}


def sound(extension: str) -> Figure:
    here = partial(sounds, extension=extension)
    return Figure(
        f"sound-{extension}",
        f"{SECONDS} s of {extension} decoded, eager, 2 threads",
        Side("tarviz", ours(here, f"decode({extension})")),
        Side("soundfile over bytes in memory, 2 threads", sweep(partial(threads, here, extension), READS, PARTS)),
        at_least=0.8,
        packages=("soundfile",),
    )


def film(name: str, peer: Side, least: float, *packages: str) -> Figure:
    return Figure(
        f"film-{name}",
        f"{FRAMES} frames of 10 s of {SIZE[0]}×{SIZE[1]} H.264, eager, 2 threads",
        Side("tarviz", ours(films, f"decode(mp4, frames={FRAMES})")),
        peer,
        at_least=least,
        packages=("av", *packages),
    )


FIGURES = [
    *(sound(extension) for extension in ("flac", "wav", "ogg")),
    film(
        "torchcodec",
        Side(
            "torchcodec over bytes in memory, 2 threads",
            sweep(
                lambda mode, count: threads(films, "mp4", partial(torchcodec_decode, seek_mode=mode, ffmpeg_threads=count)),
                {"exact": "exact", "approximate": "approximate"},
                {f"{count} of FFmpeg's": count for count in (1, 2, 4)},
            ),
        ),
        0.9,
        "torchcodec",
    ),
    film(
        "spdl",
        Side(
            "SPDL over bytes in memory, 2 threads",
            sweep(
                lambda count, what: threads(films, "mp4", partial(spdl_decode, threads=count, thread_type=what)),
                {f"{count} of FFmpeg's": str(count) for count in (1, 2, 4)},
                {"each a frame": "frame", "each a slice": "slice"},
            ),
        ),
        0.9,
        "spdl.io",
    ),
]
