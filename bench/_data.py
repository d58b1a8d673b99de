"""The data sets of the figures, made once into a folder that git ignores, from the pictures inside scikit-learn."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from tarviz import samples

TINY = "tiny-{0..1}.tar"  # 2 × 60 000 records: 28×28 PNG of ~560 bytes, cls
PHOTO = "photo-{0..3}.tar"  # 4 × 1 500 records: 500×375 JPEG of ~68 kB, cls
GIGABYTE = "gigabyte-0.tar"  # the records of ten shards of photo in one: 1.03 GB
DIFFERENT_PHOTOS = 300


def _tiny(shard: int) -> Iterator[samples.Sample]:
    digits = [fields for _, fields in (*samples._digits(28, 0, train=True), *samples._digits(28, 0, train=False))]
    order = np.random.default_rng(shard).integers(0, len(digits), 60_000).tolist()
    for number, which in enumerate(order):
        yield f"tiny/{shard * 60_000 + number:08d}", digits[which]


@cache
def _pictures() -> list[dict[str, bytes]]:
    from PIL import Image

    pictures = []
    for _, fields in samples._photos(DIFFERENT_PHOTOS, 0):
        out = io.BytesIO()
        Image.open(io.BytesIO(fields["jpg"])).resize((500, 375)).save(out, "JPEG", quality=96)
        pictures.append({"jpg": out.getvalue(), "cls": fields["cls"]})
    return pictures


def _photo(shard: int) -> Iterator[samples.Sample]:
    pictures = _pictures()
    order = np.random.default_rng(shard).integers(0, len(pictures), 1_500).tolist()
    for number, which in enumerate(order):
        yield f"photo/{shard * 1_500 + number:08d}", pictures[which]


def _gigabyte(_: int) -> Iterator[samples.Sample]:
    for shard in range(10):
        yield from _photo(shard)


def make(folder: Path, name: str) -> None:
    """Make the data set `tiny`, `photo` or `gigabyte` where it is not there yet."""
    build, shards = {"tiny": (_tiny, 2), "photo": (_photo, 4), "gigabyte": (_gigabyte, 1)}[name]
    for shard in range(shards):
        path = folder / f"{name}-{shard}.tar"
        if not path.is_file():
            samples.write_shard(path, build(shard))
