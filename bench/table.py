"""Shards as a table: made the first time, opened again, asked; and copying what a condition chooses."""

from __future__ import annotations

import io
import json
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import numpy as np

from bench import ITSELF, Figure, Side, Value, sweep
from bench._data import PHOTO
from bench._figure import Prepare
from bench.tools import first_records, large

RECORDS = 1_000_000  # in four shards
WHERE = "json.similarity < 0.01"


def member(name: str, payload: bytes) -> bytes:
    from tarviz.formats.tar_header import tar_header

    return tar_header(name.encode(), len(payload), 0) + payload + bytes(-len(payload) % 512)


def shards(data: Path) -> list[str]:
    """Four shards of JSON with 300 bytes and a caption."""
    folder = data / f"table-{RECORDS}"
    if not (folder / "whole").is_file():
        folder.mkdir(exist_ok=True)
        draw = np.random.default_rng(0)
        words = ["cat", "dog", "tree", "house", "river", "mountain", "car", "street"]
        for number in range(4):
            with (folder / f"t-{number}.tar").open("wb") as file:
                for at in range(RECORDS // 4):
                    value = {"url": f"https://example.org/{number}/{at:09}.jpg", "width": int(draw.integers(200, 2000)), "height": 500}
                    value |= {"similarity": float(draw.random()), "nsfw": words[at % 3], "hash": draw.bytes(48).hex(), "meta": {"id": at}}
                    key = f"{number}{at:08}"
                    file.write(member(f"{key}.json", json.dumps(value).encode()) + member(f"{key}.txt", " ".join(words).encode()))
                file.write(bytes(1024))
        (folder / "whole").touch()
    return sorted(map(str, folder.glob("*.tar")))


@contextmanager
def fresh() -> Iterator[None]:
    """A cache of its own, empty and gone afterwards."""
    before, folder = os.environ.get("TARVIZ_CACHE_DIR"), tempfile.mkdtemp()
    os.environ["TARVIZ_CACHE_DIR"] = folder
    try:
        yield
    finally:
        shutil.rmtree(folder)
        os.environ.pop("TARVIZ_CACHE_DIR") if before is None else os.environ.update(TARVIZ_CACHE_DIR=before)


def made(urls: list[str], *parts: tuple[str, str]) -> int:
    """Make columns in an empty cache; how many records there are."""
    import tarviz
    from tarviz.table.columns import Part

    with fresh():
        table = tarviz.table(urls)
        table.make([Part(*part) for part in parts])
        return len(table)


def first_time(data: Path) -> Callable[[], int]:
    urls = shards(data)
    return lambda: made(urls, ("value", "json"), ("value", "txt"))


def rate(data: Path) -> float:
    """Records a second, the first time."""
    work = first_time(data)
    begin = time.perf_counter()
    return work() / (time.perf_counter() - begin)


def interrupted(data: Path) -> float:
    """Milliseconds from `interrupt` to the end of a query that would take minutes."""
    import tarviz
    from tarviz.model.errors import UsageError

    table = tarviz.table(shards(data))
    table.rows(WHERE)
    asked = [0.0]

    def interrupt() -> None:
        asked[0] = time.perf_counter()
        table.interrupt()

    waits = []
    for _ in range(5):
        threading.Timer(0.5, interrupt).start()
        with suppress(UsageError):
            table.arrow("SELECT count(*) FROM records a, records b WHERE a.json.similarity * b.json.similarity < 0.1")
        waits.append(1000 * (time.perf_counter() - asked[0]))
    return max(waits)


def pictures(data: Path) -> list[str]:
    return sorted(map(str, data.glob("photo-*.tar")))


def measured(data: Path) -> float:
    """Widths and heights a second, of photos on this machine that nothing is known of."""
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        count = made(pictures(data), ("head", "jpg"))
        times.append(count / (time.perf_counter() - begin))
    return statistics.median(times)


def far(data: Path) -> float:
    """Bytes that a server with 40 ms latency and 100 Mbit/s sends for the width and height of a photo."""
    from tarviz.testing.faults import FaultServer

    with FaultServer(latency=0.04, bandwidth=12.5e6) as server:
        url = server.put("/photos.tar", Path(pictures(data)[0]))
        count = made([url], ("head", "jpg"))
        return server.sent / count


SCENES, PLANTED = 100_000, 371


def scenes(data: Path) -> str:
    """One shard of 100 000 small pictures, the last 371 of which are others of the first ones, in another size and quality."""
    from PIL import Image

    path = data / f"scenes-{SCENES}.tar"
    if path.is_file():
        return str(path)
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        for at in range(SCENES):
            again = at >= SCENES - PLANTED
            draw = np.random.default_rng(at - (SCENES - PLANTED) if again else at)
            rough = Image.fromarray(draw.integers(0, 255, (9, 9, 3), np.uint8)).resize((128, 128), Image.Resampling.BICUBIC)
            out = io.BytesIO()
            (rough.resize((96, 96)) if again else rough).save(out, "JPEG", quality=75 if again else 90)
            file.write(member(f"{at:06}.jpg", out.getvalue()))
        file.write(bytes(1024))
    temporary.rename(path)
    return str(path)


@cache
def alike(data: Path) -> tuple[float, int, int]:
    """Seconds behind the decoding, planted pairs that were found, pairs that are none."""
    import tarviz
    from tarviz.table.columns import Part
    from tarviz.table.findings import near

    table = tarviz.table(scenes(data))
    table.make([Part("content", "jpg")])
    begin = time.perf_counter()
    found = near(table, "jpg")
    seconds = time.perf_counter() - begin
    planted = {(at, SCENES - PLANTED + at) for at in range(PLANTED)}
    there = {(one.n, other.n) for group in found.groups for one in group for other in group if one.n < other.n}
    return seconds, len(there & planted), len(there - planted)


PEER_RECORDS = 25_000  # of each of two shards: it needs minutes for all


def peers_shards(data: Path) -> list[str]:
    return [str(first_records(data, str(Path(shard).relative_to(data)), PEER_RECORDS)) for shard in shards(data)[:2]]


def streamed(rows_at_once: int) -> Prepare:
    """The same rows through `datasets`, streamed into Arrow: one by one, or as its own tables."""

    def prepare(data: Path) -> Callable[[], int]:
        import pyarrow as pa
        from datasets import load_dataset

        urls = peers_shards(data)

        def work() -> int:
            made = load_dataset("webdataset", data_files={"train": urls}, split="train", streaming=True).select_columns(["json", "txt"])
            if rows_at_once:
                parts = list(made.with_format("arrow").iter(rows_at_once))
                return pa.concat_tables(parts, promote_options="permissive").num_rows
            return pa.Table.from_pylist(list(made)).num_rows

        return work

    return prepare


def built(processes: int) -> Prepare:
    """Built into a cache of its own that is empty, by so many processes."""

    def prepare(data: Path) -> Callable[[], int]:
        from datasets import disable_progress_bars, load_dataset

        disable_progress_bars()
        urls = peers_shards(data)

        def work() -> int:
            with tempfile.TemporaryDirectory() as cache:
                made = load_dataset("webdataset", data_files={"train": urls}, split="train", num_proc=processes or None, cache_dir=cache)
                return len(made.with_format("arrow")[:])

        return work

    return prepare


DATASETS = Side(
    "datasets",
    sweep(streamed, {"streamed row by row": 0, "streamed by 100": 100, "streamed by 1,000": 1_000, "streamed by 10,000": 10_000})
    | sweep(built, {"built": 0, "built by 2 processes": 2}),
)


def milliseconds(work: Callable[[], object]) -> float:
    work()
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return 1000 * sorted(times)[2]


def asked(data: Path, question: str) -> float:
    import tarviz

    urls = shards(data)
    tarviz.table(urls).rows(WHERE)
    if question == "open":
        return milliseconds(lambda: len(tarviz.table(urls)))
    table = tarviz.table(urls)
    if question == "filter":
        return milliseconds(lambda: table.sizes(WHERE))
    if question == "facet":
        return milliseconds(lambda: table.facets("json.width", "json.similarity < 0.5"))
    return milliseconds(lambda: table.rows(order="json.similarity", descending=True, count=24))


def copied(data: Path, where: str) -> Callable[[], int]:
    import tarviz

    urls = large(data, PHOTO)
    tarviz.table(urls).rows("n % 100 = 7")

    def work() -> int:
        with tempfile.TemporaryDirectory(dir=data) as folder:
            tarviz.cat(urls, Path(folder) / "o.tar", where=where, key="{n:09d}")  # the same shards again and again
        return 1

    return work


SET = f"a table of {RECORDS:,} records of JSON and captions"

FIGURES = [
    Figure(
        "table-first",
        f"{SET}, the first time",
        Side("tarviz", first_time),
        DATASETS,
        at_least=15,
        packages=("datasets", "duckdb", "pyarrow"),
    ),
    Figure("table-rate", f"{SET}: the first time", Value(rate, "records/s"), at_least=200_000),
    *(
        Figure(f"table-{name}", f"{SET}: {what}", Value(lambda data, name=name: asked(data, name), "ms"), at_most=most)
        for name, what, most in (
            ("open", "opened again", 500),
            ("filter", "a filter", 100),
            ("facet", "a facet while a filter is on", 100),
            ("top", "the first 24 by a column", 100),
        )
    ),
    Figure(
        "table-cat",
        "cat --where that keeps 1 % of 4 GB of photos",
        Side("1 %", lambda data: copied(data, "n % 100 = 7")),
        Side("copying them all", lambda data: copied(data, ""), few=ITSELF),
        at_least=20,
        sets=("photo",),
        unit="runs",
    ),
    Figure("table-interrupt", f"{SET}: a query is interrupted", Value(interrupted, "ms"), at_most=100),
    Figure("table-pictures", "widths and heights of 6,000 photos", Value(measured, "photos/s"), at_least=50_000, sets=("photo",)),
    Figure(
        "table-far", "the same over HTTP, 40 ms, 100 Mbit/s: bytes a photo, in one pass", Value(far, "B"), at_most=75_000, sets=("photo",)
    ),
    Figure("near-time", f"near duplicates among {SCENES:,} pictures", Value(lambda data: alike(data)[0], "s"), at_most=60),
    Figure("near-found", f"planted ones found, of {PLANTED}", Value(lambda data: alike(data)[1], "pairs"), at_least=PLANTED),
    Figure("near-false", "pairs found that are none", Value(lambda data: alike(data)[2], "pairs"), at_most=5),
]
