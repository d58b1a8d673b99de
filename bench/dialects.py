"""The WebDataset dialect against webdataset itself: samples in process, raw and decoded by PIL, and through a DataLoader."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import Figure, Side
from bench._data import PHOTO, TINY

BATCH = 64
WORKERS = 2


def ours(url: str) -> Any:
    from tarviz.dialects.webdataset import WebDataset

    return WebDataset(url)


def theirs(url: str) -> Any:
    from webdataset import WebDataset

    return WebDataset(url, shardshuffle=False)


def count(dataset: Any) -> int:
    return sum(1 for _ in dataset)


def side(label: str, make: Callable[[str], Any], template: str, decoded: bool, workers: int) -> Side:
    def prepare(data: Path) -> Callable[[], int]:
        dataset = make(str(data / template))
        if decoded:
            dataset = dataset.decode("pil")
        if not workers:
            return lambda: count(dataset)
        from torch.utils.data import DataLoader

        warnings.simplefilter("ignore")
        loader = DataLoader(dataset, batch_size=BATCH, num_workers=workers, collate_fn=list)
        return lambda: sum(len(batch) for batch in loader)

    return Side(label, prepare)


def figure(name: str, what: str, template: str, least: float, *, decoded: bool = False, workers: int = 0) -> Figure:
    return Figure(
        f"webdataset-{name}",
        f"WebDataset, {what}",
        side("tarviz.dialects.webdataset", ours, template, decoded, workers),
        side("webdataset", theirs, template, decoded, workers),
        at_least=least,
        sets=(template.partition("-")[0],),
        packages=("torch",) if workers else (),
    )


FIGURES = [
    figure("tiny", "raw samples, tiny", TINY, 8),
    figure("photo", "raw samples, photo", PHOTO, 3),
    figure("tiny-pil", "decoded by PIL, tiny", TINY, 1.0, decoded=True),
    figure("photo-pil", "decoded by PIL, photo", PHOTO, 1.0, decoded=True),
    figure("tiny-workers", "raw, DataLoader with 2 workers, tiny", TINY, 1.0, workers=WORKERS),
    figure("photo-workers", "raw, DataLoader with 2 workers, photo", PHOTO, 1.0, workers=WORKERS),
    figure("photo-pil-workers", "decoded by PIL, DataLoader with 2 workers, photo", PHOTO, 1.0, decoded=True, workers=WORKERS),
]
