"""Makes the sample shards that demo, notebooks and tests use: nothing is downloaded.

`digits` and `photos` are made of pictures that come inside scikit-learn, `zoo` draws a small data set of every common kind. All write
the same bytes at every call (with the same versions of Pillow and its libraries).
"""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from tarviz.model.errors import MissingPackageError, UsageError
from tarviz.samples.kinds import KINDS, MEDIA
from tarviz.samples.sample_shard import MTIME, Sample, write_shard
from tarviz.samples.scenes import encode

__all__ = ["CAPTIONS", "MTIME", "PHOTOS", "TEST_DIGITS", "digits", "photos", "write_shard", "zoo"]

TEST_DIGITS = 297
PHOTOS = ("china", "flower")
CAPTIONS = ("A pagoda in China under a blue sky", "An orange dahlia before dark leaves")


def _read_bundled(name: str) -> bytes:
    """A data file inside scikit-learn, read without importing it (that takes seconds)."""
    spec = importlib.util.find_spec("sklearn")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "datasets" / name
        if path.is_file():
            return path.read_bytes()
    raise MissingPackageError.of("scikit-learn", "Making sample shards", "demo")


def _digits(size: int, margin: int, train: bool) -> Iterator[Sample]:
    from PIL import Image, ImageOps

    rows = np.loadtxt(io.BytesIO(gzip.decompress(_read_bundled("data/digits.csv.gz"))), delimiter=",", dtype=np.uint8)
    order = np.random.default_rng(0).permutation(len(rows))
    part = order[:-TEST_DIGITS] if train else order[-TEST_DIGITS:]
    split = "train" if train else "test"
    for count, row in enumerate(part):
        grey = np.minimum(rows[row, :64].astype(np.uint16) * 16, 255).astype(np.uint8).reshape(8, 8)  # 0…16 in the source
        side = size - 2 * margin
        picture = ImageOps.expand(Image.fromarray(grey).resize((side, side), Image.Resampling.BICUBIC), margin)
        yield f"{split}/n{count:08d}", {"png": encode(np.asarray(picture), "PNG"), "cls": b"%d" % rows[row, 64]}


def digits(folder: str | os.PathLike[str], *, shards: int = 4, size: int = 28) -> list[str]:
    """Writes the 1 797 handwritten digits as `train-0000.tar` … (1 500 records) and `test-0000.tar` (297); returns the paths.

    A record has `png` (grey, `size` × `size` pixels) and `cls` (`0` … `9`); keys are `train/n00000017`, counted through the shards.
    """
    margin = size // 14  # the source is cut at the stroke's edge
    written = _write(Path(folder), "train", shards, list(_digits(size, margin, train=True)))
    return written + _write(Path(folder), "test", 1, list(_digits(size, margin, train=False)))


def _photos(count: int, seed: int) -> Iterator[Sample]:
    from PIL import Image

    sources = [Image.open(io.BytesIO(_read_bundled(f"images/{name}.jpg"))).convert("RGB") for name in PHOTOS]
    random = np.random.default_rng(seed)
    for number in range(count):
        cls = int(random.integers(len(sources)))
        source = sources[cls]
        share, left, top = random.uniform(0.5, 0.95), random.random(), random.random()
        width, height = round(source.width * share), round(source.height * share * random.uniform(0.8, 1.0))
        x, y = round((source.width - width) * left), round((source.height - height) * top)
        flip = bool(random.integers(2))
        shape = (500, 375) if random.integers(4) else (375, 500)
        picture = source.crop((x, y, x + width, y + height)).resize(shape, Image.Resampling.BICUBIC)
        picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if flip else picture
        out = io.BytesIO()
        picture.save(out, "JPEG", quality=int(random.integers(80, 95)))
        facts = {"source": f"{PHOTOS[cls]}.jpg", "crop": [x, y, width, height], "flipped": flip, "width": shape[0], "height": shape[1]}
        yield (
            f"photo/n{number:08d}",
            {"jpg": out.getvalue(), "cls": b"%d" % cls, "json": json.dumps(facts).encode(), "txt": CAPTIONS[cls].encode()},
        )


def photos(folder: str | os.PathLike[str], *, shards: int = 4, count: int = 400, seed: int = 0) -> list[str]:
    """Writes `count` crops of two photographs as `photos-0000.tar` …; returns the paths.

    A record has `jpg` (colour, 500 × 375 or 375 × 500 pixels), `cls` (0 a pagoda, 1 a flower), `json` (where the crop comes from) and
    `txt` (a caption); keys are `photo/n00000017`.
    """
    return _write(Path(folder), "photos", shards, list(_photos(count, seed)))


def _write(folder: Path, name: str, shards: int, samples: list[Sample]) -> list[str]:
    if not 0 < shards <= max(len(samples), 1):
        raise UsageError(f"{len(samples)} records do not fill {shards} shards.", hint=f"Give shards=1 to {len(samples)}.")
    bounds = np.linspace(0, len(samples), shards + 1).astype(int).tolist()
    paths = [folder / f"{name}-{shard:04d}.tar" for shard in range(shards)]
    for path, first, stop in zip(paths, bounds, bounds[1:], strict=False):
        write_shard(path, samples[first:stop])
    return [str(path) for path in paths]


def zoo(folder: str | os.PathLike[str], *, kinds: Iterable[str] | None = None, count: int = 24) -> dict[str, str]:
    """Writes a shard of `count` records for each kind of data set as `NAME.tar`; returns name → path.

    All kinds by default: captions, coco, yolo, voc, detections, instances, segmentation, masks, stereo, wav, flac, mp3, video, text,
    chat, embeddings, points, medical, views, robotics, keys, missing, damaged, and `cut`, a tar that ends in the middle of a record.
    `flac`, `mp3` and `video` are left out where PyAV is not installed, unless they are requested (`MissingPackageError`).
    `UsageError` for a kind that is not known. The bytes are the same at every call (with the same versions of the libraries).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     list(zoo(folder, kinds=["text", "cut"], count=4))
    ['text', 'cut']
    """
    wanted = list(kinds) if kinds is not None else [*_writable(), "cut"]
    unknown = [name for name in wanted if name not in KINDS and name != "cut"]
    if unknown:
        raise UsageError(f"The zoo has no kind {unknown[0]!r}.", hint=f"There are: {', '.join([*KINDS, 'cut'])}.")
    if count < 1:
        raise UsageError(f"A shard of {count} records is empty.", hint="Give count=1 or more.")
    paths = {name: Path(folder) / f"{name}.tar" for name in wanted}
    for name, path in paths.items():
        write_shard(path, map(KINDS["captions" if name == "cut" else name], range(count)))
        if name == "cut":
            whole = path.read_bytes()
            path.write_bytes(whole[: len(whole) * 2 // 3])
    return {name: str(path) for name, path in paths.items()}


def _writable() -> list[str]:
    found = importlib.util.find_spec("av") is not None
    return [name for name in KINDS if found or name not in MEDIA]
