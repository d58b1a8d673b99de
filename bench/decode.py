"""Decode, resize to 224 and batch photos from tars: against bare decoding, the loaders people use, and the graph of TensorFlow."""

from __future__ import annotations

import io
import mmap
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from bench import ITSELF, Figure, Side, sweep
from bench._figure import Prepare

CHAIN = "decode(jpg)|resize(jpg, (224, 224))"
AUGMENT = "decode(jpg)|random_crop(jpg, (320, 320))|resize(jpg, (224, 224))|flip(jpg)|convert(jpg, float32)|normalize(jpg, 0.5, 0.25)"
LEAST = "decode(jpg, least=(224, 224))|resize(jpg, (224, 224))"
BATCH = 64
THREADS = 2
PHOTOS = "photo-0.tar"
LARGE = 24  # photos of 4000 × 3000


def pipeline(data: Path, chain: str = CHAIN, name: str = PHOTOS) -> Any:
    from tarviz import Pipeline

    return Pipeline(str(data / name), chain, select=("jpg", "cls"))


def batches(made: Any) -> Callable[[], int]:
    """Every batch of images and labels once; returns the number of records."""
    return lambda: sum(len(images) for images, _ in made)


def eager(chain: str = CHAIN) -> Callable[[Path], Callable[[], int]]:
    return lambda data: batches(pipeline(data, chain).eager(batch=BATCH, num_workers=THREADS))


def tf_runner(chain: str = CHAIN, **options: Any) -> Callable[[Path], Callable[[], int]]:
    return lambda data: batches(pipeline(data, chain).tf(batch=BATCH, num_workers=THREADS, **options))


def torch_runner(data: Path) -> Callable[[], int]:
    from torch.utils.data import DataLoader

    return batches(DataLoader(pipeline(data).torch(), batch_size=BATCH, num_workers=THREADS, persistent_workers=True))


def held(data: Path) -> list[bytes]:
    """The photos in memory."""
    from tarviz import records

    return [bytes(record["jpg"]) for record in records(str(data / PHOTOS))]


def bare(at_once: int, kept: bool) -> Prepare:
    """libjpeg-turbo alone: nothing is read, resized or put into batches. Pixels are new memory, or a buffer that is `kept`."""

    def prepare(data: Path) -> Callable[[], int]:
        import simplejpeg

        photos = held(data)
        pool = ThreadPoolExecutor(THREADS)
        parts = [photos[at : at + at_once] for at in range(0, len(photos), at_once)]
        local = threading.local()

        def decode(part: list[bytes]) -> int:
            if kept and not hasattr(local, "pixels"):
                local.pixels = np.empty((640, 640, 3), np.uint8)
            for photo in part:
                simplejpeg.decode_jpeg(photo, buffer=local.pixels if kept else None)
            return len(part)

        return lambda: sum(pool.map(decode, parts))

    return prepare


def in_memory(calls: int, deterministic: bool) -> Prepare:
    """TensorFlow's own ops on bytes in memory: what its graph costs."""

    def prepare(data: Path) -> Callable[[], int]:
        import tensorflow as tf

        from tarviz.ops import parse_chain

        chain = parse_chain(CHAIN)

        def graph(image: Any) -> Any:
            record = {"jpg": image}
            for op in chain:
                record = op.run_tf(record, None)
            return record["jpg"], 0

        source = tf.data.Dataset.from_tensor_slices(held(data))
        return batches(source.map(graph, num_parallel_calls=calls, deterministic=deterministic).batch(BATCH).prefetch(2))

    return prepare


def scaled(sample: dict[str, Any]) -> tuple[Any, bytes]:
    from PIL import Image

    picture = Image.open(io.BytesIO(sample["jpg"])).convert("RGB").resize((224, 224), Image.Resampling.BILINEAR)
    return np.asarray(picture), sample["cls"]


def stacked(samples: list[tuple[Any, bytes]]) -> tuple[Any, list[bytes]]:
    images, labels = zip(*samples, strict=True)
    return np.stack(images), list(labels)


def webdataset(batched: bool, workers: int) -> Prepare:
    """Batches made by the DataLoader, or by the data set in each worker."""

    def prepare(data: Path) -> Callable[[], int]:
        import webdataset
        from torch.utils.data import DataLoader

        warnings.simplefilter("ignore")
        source = f"{data}/photo-{{0..1}}.tar" if workers > 1 else str(data / PHOTOS)  # a worker takes whole shards
        dataset = webdataset.WebDataset(source, shardshuffle=False, empty_check=False).map(scaled)
        if batched:
            dataset = dataset.batched(BATCH, collation_fn=stacked)
        options: dict[str, Any] = {"batch_size": None} if batched else {"batch_size": BATCH, "collate_fn": stacked}
        return batches(DataLoader(dataset, num_workers=workers, persistent_workers=True, **options))

    return prepare


def dali(threads: int, ahead: int) -> Prepare:
    def prepare(data: Path) -> Callable[[], int]:
        from nvidia.dali import fn, pipeline_def, types

        options = {"batch_size": BATCH, "num_threads": threads, "device_id": None, "prefetch_queue_depth": ahead}

        @pipeline_def(**options)  # type: ignore[untyped-decorator,unused-ignore]
        def graph() -> Any:
            photos, labels = fn.readers.webdataset(paths=[str(data / PHOTOS)], ext=["jpg", "cls"], pad_last_batch=False, name="reader")
            images = fn.decoders.image(photos, device="cpu", output_type=types.RGB)
            return fn.resize(images, resize_x=224, resize_y=224, interp_type=types.INTERP_TRIANGULAR, antialias=True), labels

        made = graph()
        made.build()
        rounds = made.epoch_size("reader") // BATCH
        return lambda: sum(len(np.asarray(made.run()[0].as_tensor())) for _ in range(rounds))

    return prepare


def spdl(mapped: bool, threads: int) -> Prepare:
    """Photos of a mapped file, or of one that is read."""

    def prepare(data: Path) -> Callable[[], int]:
        import spdl.io
        from spdl.pipeline import PipelineBuilder

        scale = spdl.io.get_video_filter_desc(scale_width=224, scale_height=224, scale_algo="bilinear", scale_mode=None, pix_fmt="rgb24")

        def photos() -> Iterator[bytes]:
            with (data / PHOTOS).open("rb", 1 << 20) as file:
                source = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) if mapped else file
                yield from (bytes(content) for name, content in spdl.io.iter_tarfile(source) if name.endswith(".jpg"))

        def decode(photo: bytes) -> Any:
            packets = spdl.io.demux_image(photo)
            return spdl.io.decode_packets(packets, filter_desc=scale)

        def stack(frames: list[Any]) -> Any:
            return np.asarray(spdl.io.to_numpy(spdl.io.convert_frames(frames)))

        def work() -> int:
            built = PipelineBuilder().add_source(photos()).pipe(decode, concurrency=threads, output_order="input")
            made = built.aggregate(BATCH).pipe(stack).add_sink(2).build(num_threads=threads)
            with made.auto_stop():
                return sum(len(images) for images in made.get_iterator(timeout=60))

        return work

    return prepare


def large(data: Path, chain: str) -> Callable[[], int]:
    """Photos of 12 Mpx, made of those that are there."""
    from PIL import Image

    from tarviz import records, samples

    path = data / "large-0.tar"
    if not path.is_file():

        def each() -> Iterator[tuple[str, dict[str, bytes]]]:
            for number, record in zip(range(LARGE), records(str(data / PHOTOS)), strict=False):
                out = io.BytesIO()
                Image.open(io.BytesIO(bytes(record["jpg"]))).resize((4000, 3000)).save(out, "JPEG", quality=90)
                yield f"large/{number:04d}", {"jpg": out.getvalue(), "cls": b"0"}

        samples.write_shard(path, each())
    return batches(pipeline(data, chain, path.name).eager(batch=8, num_workers=THREADS))


def figure(name: str, what: str, ours: Side, peer: Side, least: float, *packages: str) -> Figure:
    return Figure(f"decode-{name}", what, ours, peer, at_least=least, sets=("photo",), packages=packages)


WHAT = "decode + resize 224 + batch, photo"
KEPT = {"new arrays": False, "one array": True}
BARE = Side("simplejpeg decoding alone, 2 threads", sweep(bare, {f"{count} a task": count for count in (4, 16, 64)}, KEPT))
CALLS = {"2 calls at a time": THREADS, "4 calls at a time": 4, "AUTOTUNE calls": -1}
GRAPH = Side("TensorFlow's graph over bytes in memory", sweep(in_memory, CALLS, {"in order": True, "as they come": False}))
BATCHES = {"batches of the DataLoader": False, "batches of the data set": True}
WEBDATASET = Side("webdataset + PIL, DataLoader", sweep(webdataset, BATCHES, {f"{count} workers": count for count in (1, 2, 3)}))
NUMBERS = {f"{count} threads": count for count in (1, 2, 3, 4)}
DALI = Side("NVIDIA DALI on the CPU", sweep(dali, NUMBERS, {"2 batches ahead": 2, "4 batches ahead": 4}))
SPDL = Side("SPDL", sweep(spdl, {"a file": False, "a mapped file": True}, {name: NUMBERS[name] for name in list(NUMBERS)[1:]}))
TF = Side("tarviz", tf_runner())

FIGURES = [
    figure("eager-bare", f"{WHAT}, eager, 2 threads", Side("tarviz", eager()), BARE, 0.7, "simplejpeg"),
    figure("tf-bare", f"{WHAT}, tf, 2 threads", TF, BARE, 0.65, "simplejpeg"),
    figure("torch-bare", f"{WHAT}, torch, 2 workers", Side("tarviz", torch_runner), BARE, 0.65, "simplejpeg", "torch"),
    figure("photo", f"{WHAT}, tf, 2 threads", TF, GRAPH, 1.5),
    figure("webdataset", f"{WHAT}, tf, 2 threads", TF, WEBDATASET, 3, "webdataset", "torch"),
    figure("dali", f"{WHAT}, tf, 2 threads", TF, DALI, 2.5, "nvidia.dali"),
    figure("spdl", f"{WHAT}, tf, 2 threads", TF, SPDL, 3, "spdl.io"),
    figure(
        "least",
        "photos of 4000×3000 with least, eager",
        Side("tarviz", lambda d: large(d, LEAST)),
        Side("without", lambda d: large(d, CHAIN), few=ITSELF),
        4,
    ),
    figure(
        "augment",
        "random_crop, resize 224, flip, float32, normalize, tf",
        Side("tarviz", tf_runner(AUGMENT)),
        Side("decode + resize 224", tf_runner(), few=ITSELF),
        0.8,
    ),
]
