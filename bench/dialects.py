"""The WebDataset dialect against webdataset itself: samples in process, raw and decoded by PIL, and through a DataLoader."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bench import Figure, Side, sweep
from bench._data import PHOTO, TINY
from bench._figure import Prepare
from bench.iterate import BUFFERS, BY_HAND, by_webdataset

BATCH = 64
WORKERS = 2


def count(samples: Iterable[Any]) -> int:
    return sum(1 for _ in samples)


def loaded(dataset: Any, **options: Any) -> Callable[[], int]:
    """Its samples by way of a DataLoader's workers."""
    from torch.utils.data import DataLoader

    warnings.simplefilter("ignore")
    loader = DataLoader(dataset, num_workers=WORKERS, **options)
    return lambda: sum(map(len, loader))


def ours(template: str, decoded: bool, workers: bool) -> Prepare:
    def prepare(data: Path) -> Callable[[], int]:
        from tarviz.dialects.webdataset import WebDataset

        dataset = WebDataset(str(data / template))
        if decoded:
            dataset = dataset.decode("pil")
        return loaded(dataset, batch_size=BATCH, collate_fn=list) if workers else lambda: count(dataset)

    return prepare


def theirs(template: str, decoded: bool) -> dict[str, Prepare]:
    """webdataset in this process, in every way that its reader is tried."""

    def way(by_hand: bool, buffer: int) -> Prepare:
        def prepare(data: Path) -> Callable[[], int]:
            from webdataset import decode

            stages = [decode("pil")] if decoded else []
            return lambda: count(by_webdataset(str(data / template), by_hand, buffer, *stages))

        return prepare

    return sweep(way, BY_HAND, BUFFERS)


def theirs_in_workers(template: str, decoded: bool) -> dict[str, Prepare]:
    """webdataset behind a DataLoader: batches made by it, or by the data set before they leave a worker."""

    def way(batched: bool, buffer: int) -> Prepare:
        def prepare(data: Path) -> Callable[[], int]:
            from webdataset import batched as batches
            from webdataset import decode

            stages = [decode("pil")] if decoded else []
            stages += [batches(BATCH, collation_fn=list)] if batched else []

            def work() -> int:
                dataset = by_webdataset(str(data / template), False, buffer, *stages)
                return (loaded(dataset, batch_size=None) if batched else loaded(dataset, batch_size=BATCH, collate_fn=list))()

            return work

        return prepare

    return sweep(way, {"batches of the DataLoader": False, "batches of the data set": True}, BUFFERS)


def figure(name: str, what: str, template: str, least: float, *, decoded: bool = False, workers: bool = False) -> Figure:
    return Figure(
        f"webdataset-{name}",
        f"WebDataset, {what}",
        Side("tarviz.dialects.webdataset", ours(template, decoded, workers)),
        Side("webdataset", (theirs_in_workers if workers else theirs)(template, decoded)),
        at_least=least,
        sets=(template.partition("-")[0],),
        packages=("torch",) if workers else (),
    )


RAW, BOTH = f"raw, DataLoader with {WORKERS} workers", f"decoded by PIL, DataLoader with {WORKERS} workers"

FIGURES = [
    figure("tiny", "raw samples, tiny", TINY, 8),
    figure("photo", "raw samples, photo", PHOTO, 3),
    figure("tiny-pil", "decoded by PIL, tiny", TINY, 1.0, decoded=True),
    figure("photo-pil", "decoded by PIL, photo", PHOTO, 1.0, decoded=True),
    figure("tiny-workers", f"{RAW}, tiny", TINY, 1.0, workers=True),
    figure("photo-workers", f"{RAW}, photo", PHOTO, 1.0, workers=True),
    figure("photo-pil-workers", f"{BOTH}, photo", PHOTO, 1.0, decoded=True, workers=True),
]
