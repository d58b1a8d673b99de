"""The first tiles of every kind of data set, 100 000 records of it; `python -m bench.zoo [KIND…]` says how long each kind takes."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

from bench import Figure, Value
from bench.browse import place, run

RECORDS = 100_000
ROUNDS = 3
_MOST = 400_000_000  # bytes of one shard; a kind with larger records has several names for it
_HEADER, _PREFIX, _SUM = 512, slice(345, 355), slice(148, 156)

# argv: a template of shards. Prints the milliseconds from the call to 24 tiles, each with its picture, its text or its reason.
_TILES = """
import os, PIL.Image, PIL.JpegImagePlugin, PIL.PngImagePlugin, PIL.TiffImagePlugin, PIL.WebPImagePlugin
begin = time.perf_counter()
shown = browse.Browser(sys.argv[1])
shown.first()
while len(rows := tiles(shown)) < 24:
    time.sleep(0.002)
print(since(begin))
assert all("buffer" in row["tile"] or row["tile"]["text"] or row["tile"]["reason"] for row in rows)
sys.stdout.flush()
os._exit(0)  # without waiting for what goes on behind the grid
"""


def repeated(source: Path, target: Path, most: int = _MOST) -> int:
    """Write the records of a tar again and again under new keys, a folder `000000/` before each; returns how many times.

    Names that are too long or too strange for a header (a PAX record holds them) stay as they are.
    """
    content = np.fromfile(source, np.uint8)
    places = np.array(list(_members(content)))
    end = int(places[-1]) if len(places) else 0
    size = int(bytes(content[end + 124 : end + 135]), 8)
    block = content[: end + _HEADER + -(-size // _HEADER) * _HEADER].copy()
    fields = places[:, None] + np.arange(_HEADER)
    block[places[:, None] + np.arange(*_PREFIX.indices(_HEADER))] = 0
    block[places[:, None] + np.arange(*_SUM.indices(_HEADER))] = 32
    sums = block[fields].sum(axis=1, dtype=np.int64)
    times = max(1, min(-(-RECORDS // 24), most // len(block)))
    with target.open("wb") as sink:
        for number in range(times):
            folder = np.frombuffer(b"%06d" % number, np.uint8)
            block[places[:, None] + np.arange(345, 351)] = folder
            for at, total in zip(places.tolist(), (sums + int(folder.sum())).tolist(), strict=True):
                block[at + 148 : at + 156] = np.frombuffer(b"%06o\0 " % total, np.uint8)
            sink.write(block.data)
        sink.write(bytes(2 * _HEADER))
    return times


def _members(content: np.ndarray) -> Iterator[int]:
    """Where the headers of the members are, those of PAX records included."""
    at = 0
    while at + _HEADER <= len(content) and content[at]:
        yield at
        at += _HEADER * (1 + -(-int(bytes(content[at + 124 : at + 135]), 8) // _HEADER))


@contextmanager
def hundred_thousand(kind: str, folder: Path) -> Iterator[str]:
    """A set of 100 000 records or more of a kind of the zoo, gone afterwards: its shards, in one template."""
    from tarviz import samples

    shard = folder / f"{kind}-source.tar"
    Path(samples.zoo(folder, kinds=[kind], count=24)[kind]).rename(shard)
    whole = folder / f"{kind}-0000.tar"
    shards = -(-RECORDS // (24 * repeated(shard, whole)))
    for number in range(1, shards):
        (folder / f"{kind}-{number:04d}.tar").symlink_to(whole)
    try:
        yield str(folder / (f"{kind}-{{0000..{shards - 1:04d}}}.tar" if shards > 1 else f"{kind}-0000.tar"))
    finally:
        for path in folder.glob(f"{kind}-*.tar"):
            path.unlink()


def wait(kind: str) -> float:
    """Milliseconds to the first tiles of a kind that nobody has opened, the median of several rounds."""
    with place() as folder, hundred_thousand(kind, folder) as shards:
        return statistics.median(float(run(_TILES, shards, cache=folder / f"cache-{n}")) for n in range(ROUNDS))


@cache
def waits(data: Path | None = None) -> dict[str, float]:
    """Kind → milliseconds, of every kind that this machine can write."""
    from importlib.util import find_spec

    from tarviz.samples.kinds import KINDS, MEDIA

    return {kind: wait(kind) for kind in KINDS if kind not in MEDIA or find_spec("av")}


_WHAT = "browse: 24 tiles of 100,000 records of each kind of the zoo, never seen before: the"

FIGURES = [
    Figure("zoo-slowest", f"{_WHAT} slowest kind", Value(lambda data: max(waits(data).values()), "ms"), at_most=500),
    Figure("zoo-median", f"{_WHAT} median kind", Value(lambda data: statistics.median(waits(data).values()), "ms"), at_most=500),
]

if __name__ == "__main__":
    for each in sys.argv[1:] or waits():
        sys.stdout.write(f"{each:14s} {waits()[each] if not sys.argv[1:] else wait(each):7.0f} ms\n")
