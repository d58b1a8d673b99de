"""The tar tools, side by side with cat, webdataset, xargs and GraphicsMagick."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from braceexpand import braceexpand

from bench import Figure, Side, Value, sweep
from bench._data import PHOTO, TINY
from bench._figure import Prepare
from bench.convert import kept, out

GB4 = 4 * 10**9
ROOT = Path(__file__).resolve().parents[1]
TARVIZ = [sys.executable, "-m", "tarviz"]
ONE = "tiny-0.tar"
RECORDS = 60_000
PEER_RECORDS = 12_000  # of webdataset's reader and writer
FEW = 5_000
PHOTOS = 200

Work = Callable[[], float]


def large(data: Path, template: str) -> list[str]:
    """Shards of 4 GB together: the same ones named again and again."""
    paths = [str(data / name) for name in braceexpand(template)]
    size = sum(os.path.getsize(path) for path in paths)
    return paths * -(-GB4 // size)


def run(argv: list[str], **options: Any) -> None:
    """A command, started in the repository; what it says is thrown away."""
    subprocess.run(argv, cwd=ROOT, check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)


def written(work: Callable[[Path], float]) -> Work:
    """The work, with a folder for its outputs that is gone again before it returns."""

    def done() -> float:
        folder = out()
        try:
            return work(folder)
        finally:
            shutil.rmtree(folder)

    return done


def cat(template: str, *, ours: bool) -> Callable[[Path], Work]:
    def prepare(data: Path) -> Work:
        paths = large(data, template)
        size = sum(os.path.getsize(path) for path in paths) / 1e6

        def work(folder: Path) -> float:
            if ours:
                run([*TARVIZ, "cat", "-q", *paths, "-o", str(folder / "all.tar")])
            else:
                with (folder / "all.tar").open("wb") as sink:
                    run(["cat", *paths], stdout=sink)
            return size

        return written(work)

    return prepare


def ours(work: Callable[[str, Path], Any]) -> Callable[[Path], Work]:
    def prepare(data: Path) -> Work:
        def done(folder: Path) -> float:
            work(str(data / ONE), folder)
            return RECORDS

        return written(done)

    return prepare


def theirs(work: Callable[..., None]) -> dict[str, Prepare]:
    """webdataset's reader in front of one of its writers, over fewer records: it needs a minute for all."""

    def way(encoder: bool, format: str | None) -> Prepare:
        def prepare(data: Path) -> Work:
            from bench.iterate import by_webdataset

            source = str(first_records(data, TINY, PEER_RECORDS))

            def done(folder: Path) -> float:
                work(by_webdataset(source, True, 1 << 20), folder, encoder=encoder, format=format)
                return PEER_RECORDS

            return written(done)

        return prepare

    formats = {"its own format": None, "ustar": "USTAR_FORMAT", "PAX": "PAX_FORMAT"}
    return sweep(way, {"encoded": True, "as they are": False}, formats)


def _drop(source: str, folder: Path) -> None:
    from tarviz.commands.cat import cat as tool

    tool(source, folder / "a.tar", fields="png")


def _sort(source: str, folder: Path) -> None:
    from tarviz.commands.sort import sort

    sort(source, folder / "a.tar", reverse=True)


def _split(source: str, folder: Path) -> None:
    from tarviz.commands.split import split

    split(source, f"{folder}/a-{{shard:04d}}.tar", count=10_000)


def _copied(samples: Any, folder: Path, drop: tuple[str, ...] = (), **options: Any) -> None:
    from webdataset import TarWriter

    with TarWriter(str(folder / "a.tar"), **options) as sink:
        for sample in samples:
            sink.write({name: value for name, value in sample.items() if name not in ("__url__", *drop)})


def _sorted(samples: Any, folder: Path, **options: Any) -> None:
    _copied(sorted(samples, key=lambda sample: str(sample["__key__"]), reverse=True), folder, **options)


def _sharded(samples: Any, folder: Path, **options: Any) -> None:
    from webdataset import ShardWriter

    with ShardWriter(f"{folder}/a-%04d.tar", maxcount=10_000, verbose=0, **options) as sink:
        for sample in samples:
            sink.write({name: value for name, value in sample.items() if name != "__url__"})


def first_records(data: Path, template: str, count: int) -> Path:
    """A shard of the first records, made once."""
    source = data / next(iter(braceexpand(template)))
    path = data / f"first-{count}-{source.name}"
    if not path.is_file():
        run([*TARVIZ, "cat", "-q", "-c", str(count), str(source), "-o", str(path)])
    return path


def proc(template: str, count: int, *options: str) -> Callable[[Path], Work]:
    def prepare(data: Path) -> Work:
        source = str(first_records(data, template, count))

        def work(folder: Path) -> float:
            run([*TARVIZ, "proc", "-q", *options, source, "-o", str(folder / "a.tar")])
            return count

        return written(work)

    return prepare


def extracted(data: Path, template: str, count: int, suffix: str) -> list[str]:
    """The files of the first records, in a folder of their own."""
    folder = kept()
    subprocess.run(["tar", "-xf", first_records(data, template, count).resolve(), "-C", folder], check=True)
    return sorted(str(path) for path in folder.rglob(f"*.{suffix}"))


def xargs(at_once: int) -> Prepare:
    """A process for each record, so many at a time, over the files as they were extracted before."""

    def prepare(data: Path) -> Work:
        names = extracted(data, TINY, FEW, "png")

        def work() -> float:
            subprocess.run(["xargs", f"-P{at_once}", "-n1", "/bin/true"], input="\n".join(names).encode(), check=True)
            return len(names)

        return work

    return prepare


def mogrify(each: int, threads: int) -> Prepare:
    """GraphicsMagick over a record's file by `proc` (0), or over so many extracted files a process, two processes at a time."""
    argv = f"gm mogrify -limit threads {threads} -filter triangle -resize 256x256! -quality 90".split()

    def prepare(data: Path) -> Work:
        names = [] if each == 0 else extracted(data, PHOTO, PHOTOS, "jpg")

        def work(folder: Path) -> float:
            there = [str(shutil.copy(name, folder)) for name in names]
            subprocess.run(["xargs", "-P2", f"-n{each}", *argv], input="\n".join(there).encode(), check=True)
            return len(there)

        return written(work) if each else proc(PHOTO, PHOTOS, "-j", "2", "-c", f"{' '.join(argv)} sample.jpg")(data)

    return prepare


_SORT = """
import re, sys
from tarviz.commands.sort import sort
sort(sys.argv[1:], "/dev/null", shuffle=True)
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


def sort_memory(data: Path) -> float:
    """The most MB that were resident while a shard of 4 GB, 1.6 million tiny records, was shuffled."""
    folder = out()
    try:
        shard = folder / "large.tar"
        run([*TARVIZ, "cat", "-q", "--key", "r/{n:09d}", *large(data, TINY), "-o", str(shard)])
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, "-c", _SORT, str(shard)], capture_output=True, text=True, check=True, env=environment)
    finally:
        shutil.rmtree(folder)
    return int(re.findall(r"\d+", done.stdout)[-1]) * 1024 / 1e6


FILES = {"a record at a time by proc": 0, "a file a process": 1, "25 files a process": 25}
CHAIN = "decode(jpg)|resize(jpg, (256, 256))|encode(jpg, quality=90)"
WRITER = "webdataset's reader and writer"
NONE = "it has no settings"

FIGURES = [
    Figure(
        "cat-photo",
        "tarviz cat, 4 GB of photo, start-up included",
        Side("tarviz", cat(PHOTO, ours=True)),
        Side("cat", cat(PHOTO, ours=False), few=NONE),
        at_least=0.6,
        sets=("photo",),
        unit="MB",
        rounds=3,
    ),
    Figure(
        "cat-tiny",
        "tarviz cat, 4 GB of tiny, start-up included",
        Side("tarviz", cat(TINY, ours=True)),
        Side("cat", cat(TINY, ours=False), few=NONE),
        at_least=0.4,
        sets=("tiny",),
        unit="MB",
        rounds=3,
    ),
    Figure(
        "cat-field",
        "cat -f, a field dropped, tiny",
        Side("tarviz", ours(_drop)),
        Side(WRITER, theirs(partial(_copied, drop=("cls",)))),
        at_least=15,
        sets=("tiny",),
        warm=False,
        rounds=3,
    ),
    Figure(
        "sort",
        "sort by key, tiny",
        Side("tarviz", ours(_sort)),
        Side(WRITER, theirs(_sorted)),
        at_least=15,
        sets=("tiny",),
        warm=False,
        rounds=3,
    ),
    Figure(
        "split",
        "split, tiny",
        Side("tarviz", ours(_split)),
        Side(WRITER, theirs(_sharded)),
        at_least=15,
        sets=("tiny",),
        warm=False,
        rounds=3,
    ),
    Figure(
        "proc",
        "proc -j 2, `/bin/true` per record",
        Side("tarviz", proc(TINY, FEW, "-j", "2", "-c", "/bin/true")),
        Side("xargs over extracted files", sweep(xargs, {f"{count} at a time": count for count in (1, 2, 3, 4, 6, 8)})),
        at_least=1.0,
        sets=("tiny",),
    ),
    Figure(
        "proc-op",
        "proc --op, photos resized to 256",
        Side("tarviz", proc(PHOTO, PHOTOS, "-j", "2", "--op", CHAIN)),
        Side("gm mogrify", sweep(mogrify, FILES, {"one thread": 1, "2 threads": 2})),
        at_least=3,
        sets=("photo",),
        rounds=3,
    ),
    Figure("sort-memory", "memory: shuffling 4 GB of tiny records", Value(sort_memory, "MB"), at_most=256, sets=("tiny",)),
]
