"""Shards as a table: made the first time, opened again, asked; and copying what a condition chooses."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench import Figure, Side, Value

RECORDS = 200_000  # in four shards; the figure of a million is reached by the same work
WHERE = "json.similarity < 0.01"


def member(name: str, payload: bytes) -> bytes:
    from tarviz.formats.tar_header import tar_header

    return tar_header(name.encode(), len(payload), 0) + payload + bytes(-len(payload) % 512)


def shards(data: Path) -> list[str]:
    """Four shards of JSON with 300 bytes and a caption."""
    folder = data / "table"
    if not folder.is_dir():
        folder.mkdir()
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
    return sorted(map(str, folder.glob("*.tar")))


def first_time(data: Path) -> Callable[[], int]:
    urls = shards(data)

    def work() -> int:
        import os

        import tarviz
        from tarviz.table.columns import Part

        before, folder = os.environ.get("TARVIZ_CACHE_DIR"), tempfile.mkdtemp()
        os.environ["TARVIZ_CACHE_DIR"] = folder
        try:
            table = tarviz.table(urls)
            table.make([Part("value", "json"), Part("value", "txt")])
            return len(table)
        finally:
            shutil.rmtree(folder)
            os.environ.pop("TARVIZ_CACHE_DIR") if before is None else os.environ.update(TARVIZ_CACHE_DIR=before)

    return work


def streamed(data: Path) -> Callable[[], int]:
    """The same rows through `datasets`, streamed into Arrow."""
    from datasets import load_dataset

    urls = shards(data)[:1]

    def work() -> int:
        import pyarrow as pa

        rows = list(load_dataset("webdataset", data_files={"train": urls}, split="train", streaming=True))
        return pa.Table.from_pylist([{"json": row["json"], "txt": row["txt"]} for row in rows]).num_rows

    return work


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

    urls = sorted(map(str, data.glob("photo-*.tar")))
    tarviz.table(urls).rows("n % 100 = 7")

    def work() -> int:
        with tempfile.TemporaryDirectory(dir=data) as folder:
            tarviz.cat(urls, Path(folder) / "o.tar", where=where)
        return 1

    return work


FIGURES = [
    Figure(
        "table-first",
        "a table of 200,000 records of JSON and captions, the first time",
        Side("tarviz", first_time),
        Side("datasets", streamed),
        at_least=15,
        packages=("datasets", "duckdb", "pyarrow"),
    ),
    *(
        Figure(f"table-{name}", f"a table of 200,000 records: {what}", Value(lambda data, name=name: asked(data, name), "ms"), at_most=most)
        for name, what, most in (
            ("open", "opened again", 500),
            ("filter", "a filter", 100),
            ("facet", "a facet while a filter is on", 100),
            ("top", "the first 24 by a column", 100),
        )
    ),
    Figure(
        "table-cat",
        "cat --where that keeps 1 % of photos, against copying them all",
        Side("1 %", lambda data: copied(data, "n % 100 = 7")),
        Side("all", lambda data: copied(data, "")),
        at_least=20,
        sets=("photo",),
        unit="runs",
    ),
]
