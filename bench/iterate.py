"""Iterating records, raw bytes of every field: against readers of tars, and against other formats of the same records."""

from __future__ import annotations

import mmap
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from bench import Figure, Side, sweep
from bench._data import PHOTO, TINY
from bench._figure import Prepare

SETS = {"tiny": (TINY, "png"), "photo": (PHOTO, "jpg")}


def paths(data: Path, name: str) -> list[Path]:
    from braceexpand import braceexpand

    return [data / path for path in braceexpand(SETS[name][0])]


def tarviz(name: str) -> Prepare:
    template, image = SETS[name]

    def prepare(data: Path) -> Callable[[], int]:
        from tarviz import records

        def work() -> int:
            count = 0
            for record in records(str(data / template)):
                _, _, count = record[image], record["cls"], count + 1
            return count

        return work

    return prepare


BUFFERS = {"8 kB": 8 << 10, "128 kB": 128 << 10, "1 MB": 1 << 20, "8 MB": 8 << 20}
BY_HAND = {"WebDataset": False, "DataPipeline": True}


def by_webdataset(url: str, by_hand: bool, buffer: int, *stages: Any) -> Any:
    """webdataset's class, or its parts put together by hand, over a buffer of so many bytes; `stages` change the samples."""
    from webdataset import DataPipeline, SimpleShardList, WebDataset, tarfile_samples

    os.environ["GOPEN_BUFFER"] = str(buffer)  # read as a shard is opened
    if by_hand:
        return DataPipeline(SimpleShardList(url), tarfile_samples, *stages)
    return WebDataset(url, shardshuffle=False).compose(*stages)


def webdataset(name: str, label: str = "webdataset", url: Callable[[Path, str], str] = lambda data, name: str(data / name)) -> Side:
    """Its class, and its parts put together by hand, over buffers of several sizes."""
    template, image = SETS[name]

    def way(by_hand: bool, buffer: int) -> Prepare:
        def prepare(data: Path) -> Callable[[], int]:
            def work() -> int:
                count = 0
                for record in by_webdataset(url(data, template), by_hand, buffer):
                    _, _, count = record[image], record["cls"], count + 1
                return count

            return work

        return prepare

    return Side(label, sweep(way, BY_HAND, BUFFERS))


def spdl(name: str) -> Side:
    """`iter_tarfile` over a file, with buffers of several sizes, over a mapped file and over its bytes."""

    def way(opened: Callable[[Path], Any]) -> Prepare:
        def prepare(data: Path) -> Callable[[], int]:
            from spdl.io import iter_tarfile

            def work() -> int:
                count = 0
                for path in paths(data, name):
                    for _, _ in iter_tarfile(opened(path)):
                        count += 1
                return count // 2  # a record has two members

            return work

        return prepare

    def mapped(path: Path) -> memoryview:
        with path.open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def buffered(size: int) -> Callable[[Path], Any]:
        return lambda path: path.open("rb", size)

    sizes = {"no buffer": 0, "64 kB": 64 << 10, "1 MB": 1 << 20, "8 MB": 8 << 20}
    ways = {"bytes": Path.read_bytes, "a mapped file": mapped, **{label: buffered(size) for label, size in sizes.items()}}
    return Side("SPDL's iter_tarfile", {label: way(opened) for label, opened in ways.items()})


def array_record(name: str) -> Side:
    """Records of the same bytes as ArrayRecord, Grain's format, whole and in slices, with several groups and readers ahead."""

    def way(group: int, options: str, slice_of: int) -> Prepare:
        def prepare(data: Path) -> Callable[[], int]:
            from array_record.python.array_record_module import ArrayRecordReader, ArrayRecordWriter

            path = data / "array_record" / f"{name}-{group}.array_record"
            if not path.is_file():
                path.parent.mkdir(exist_ok=True)
                writer = ArrayRecordWriter(str(path), f"group_size:{group},uncompressed")
                for record in rows(data, name):
                    writer.write(b"".join(record))
                writer.close()

            def work() -> int:
                reader, count = ArrayRecordReader(str(path), options), 0
                number = reader.num_records()
                for begin in range(0, number, slice_of or number):
                    for _ in reader.read(begin, min(begin + (slice_of or number), number)):
                        count += 1
                reader.close()
                return count

            return work

        return prepare

    settings = {"threads of its own": "", "no threads": "max_parallelism:0"}
    groups = {f"groups of {count}": count for count in (1, 256)}
    return Side("ArrayRecord (Grain)", sweep(way, groups, settings, {f"slices of {count}": count for count in (256, 4096)}))


def litdata(name: str) -> Side:
    """The same records in LitData's chunks of several sizes, the data set itself and in its loader."""

    def way(limit: str, workers: int | None) -> Prepare:
        def prepare(data: Path) -> Callable[[], int]:
            from litdata import StreamingDataLoader, StreamingDataset
            from litdata.streaming.writer import BinaryWriter

            folder = data / "litdata" / f"{name}-{limit}"
            if not (folder / "index.json").is_file():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                writer = BinaryWriter(str(folder), chunk_bytes=limit)
                for number, (image, label) in enumerate(rows(data, name)):
                    writer[number] = {"image": bytes(image), "cls": bytes(label)}
                writer.done()
                writer.merge()
            dataset = StreamingDataset(str(folder), shuffle=False)
            if workers is None:
                return lambda: sum(1 for _ in dataset)
            loader = StreamingDataLoader(dataset, batch_size=256, num_workers=workers, collate_fn=list)
            return lambda: sum(map(len, loader))

        return prepare

    takers = {"the data set": None, "a loader": 0, "a loader of 2 workers": 2}
    return Side("LitData", sweep(way, {f"chunks of {size}": size for size in ("1MB", "64MB", "256MB")}, takers))


def mosaic(name: str) -> Side:
    """The same records in MDS shards of MosaicML's Streaming of several sizes: by number, in a loader, and as a stream."""

    def way(limit: str, workers: int | None) -> Prepare:
        def prepare(data: Path) -> Callable[[], int]:
            from streaming import LocalDataset, MDSWriter, StreamingDataset
            from torch.utils.data import DataLoader

            folder = data / "mds" / f"{name}-{limit}"
            if not (folder / "index.json").is_file():
                with MDSWriter(out=str(folder), columns={"image": "bytes", "cls": "bytes"}, size_limit=limit, exist_ok=True) as writer:
                    for image, label in rows(data, name):
                        writer.write({"image": bytes(image), "cls": bytes(label)})
            if workers is None:
                dataset = LocalDataset(str(folder))
                return lambda: sum(1 for number in range(len(dataset)) if dataset[number])
            loader = DataLoader(StreamingDataset(local=str(folder), batch_size=256), batch_size=256, num_workers=workers, collate_fn=list)
            return lambda: sum(map(len, loader))

        return prepare

    takers = {"by number": None, "a loader": 0, "a loader of 2 workers": 2}
    return Side("MosaicML Streaming", sweep(way, {f"shards of {size}": size for size in ("1mb", "64mb", "256mb")}, takers))


def energon(name: str) -> Side:
    """Megatron-Energon over tars of the same bytes: fields as bytes, records in order and with several shards at a time.

    Of small records the first of each shard alone: it needs minutes for all.
    """

    def way(workers: int, shards: int) -> Prepare:
        def prepare(data: Path) -> Callable[[], int]:
            from megatron.energon import Cooker, DefaultTaskEncoder, WorkerConfig, get_loader, get_train_dataset, stateless
            from megatron.energon.flavors import BaseWebdatasetFactory

            from bench.tools import first_records

            folder = data / "energon" / name
            if not (folder / ".nv-meta" / "dataset.yaml").is_file():
                folder.mkdir(parents=True, exist_ok=True)
                sources = paths(data, name)
                if name == "tiny":
                    sources = [first_records(data, path.name, 3_000) for path in sources]
                for path in sources:
                    shutil.copy(path, folder)
                names = [path.name for path in sources]
                BaseWebdatasetFactory.prepare_dataset(folder, names, split_parts_ratio=[("train", 1.0)], shuffle_seed=None, workers=1)
                (folder / ".nv-meta" / "dataset.yaml").write_text("__module__: megatron.energon\n__class__: CrudeWebdataset\n")

            class AsBytes(DefaultTaskEncoder):
                decoder = None
                cookers: ClassVar = [Cooker(stateless(lambda record: record))]

            dataset = get_train_dataset(
                folder,
                worker_config=WorkerConfig(rank=0, world_size=1, num_workers=workers),
                task_encoder=AsBytes(),
                batch_size=None,
                shuffle_buffer_size=None,
                max_samples_per_sequence=None,
                parallel_shard_iters=shards,
                repeat=False,
            )
            loader = get_loader(dataset)
            return lambda: sum(1 for _ in loader)

        return prepare

    workers = {f"{count} workers": count for count in (0, 1, 2)}
    return Side("Megatron-Energon", sweep(way, workers, {f"{count} shards at a time": count for count in (1, 16)}))


def rows(data: Path, name: str) -> Iterator[tuple[memoryview, memoryview]]:
    from tarviz import records

    template, image = SETS[name]
    return ((record[image], record["cls"]) for record in records(str(data / template)))


def pair(name: str, key: str, peer: Side, package: str = "", **reach: Any) -> Figure:
    what = f"iterate records, raw bytes, {name}{' (CPU seconds of all threads)' if 'at_most' in reach else ''}"
    packages = (package,) if package else ()
    return Figure(f"iterate-{name}{key}", what, Side("tarviz", tarviz(name)), peer, sets=(name,), packages=packages, **reach)


CPU = time.process_time

FIGURES = [
    pair("tiny", "", webdataset("tiny"), at_least=30),
    pair("photo", "", webdataset("photo"), at_least=6),
    pair("tiny", "-spdl", spdl("tiny"), "spdl.io", at_most=0.8, clock=CPU),
    pair("photo", "-spdl", spdl("photo"), "spdl.io", at_most=1.0, clock=CPU),
    pair("tiny", "-grain", array_record("tiny"), "array_record", at_least=1),
    pair("photo", "-grain", array_record("photo"), "array_record", at_least=1),
    pair("tiny", "-litdata", litdata("tiny"), "litdata", at_least=1),
    pair("photo", "-litdata", litdata("photo"), "litdata", at_least=1),
    pair("tiny", "-mosaic", mosaic("tiny"), "streaming", at_least=1),
    pair("photo", "-mosaic", mosaic("photo"), "streaming", at_least=1),
    pair("tiny", "-energon", energon("tiny"), "megatron.energon", at_least=1),
    pair("photo", "-energon", energon("photo"), "megatron.energon", at_least=1),
]
