"""Every door to a shard says the same, whatever window it is read by: the same records, the same faults, and none that is not whole.

`make test` compares some hundred tars; `make fuzz` goes on for TARVIZ_FUZZ_SECONDS (TARVIZ_FUZZ_SEED repeats a run).
"""

from __future__ import annotations

import io
import os
import random
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tarviz.formats.tar import Scanner
from tarviz.model.errors import Fault, TarvizError
from tarviz.model.types import URL, Block
from tarviz.read import stream
from tarviz.read.blocks import Blocks
from tarviz.read.headers import Listing, header_steps
from tarviz.read.shard_index import shard_index
from tarviz.read.spans import shard_batches
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.widgets.browse.scan import scan
from tarviz.widgets.browse.scanned_records import Shard
from tests.conftest import corpus
from tests.read.tars import END, member, pax, raw

pytestmark = pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")

SECONDS = float(os.environ.get("TARVIZ_FUZZ_SECONDS", "120"))
SEED = int(os.environ.get("TARVIZ_FUZZ_SEED", time.time()))
SIZES = (512, 1024, 1536, 2560, 4096, 8704, 65536, 1 << 20)
_LARGE = 60_000  # bytes of a tar of the corpora that is not fuzzed


class Outcome(NamedTuple):
    """What a door says: records (key, fields with sizes or payloads, pending) and faults (code, byte)."""

    records: list[tuple[bytes, tuple[tuple[str, Any], ...], bool]]
    faults: list[tuple[str, int | None]]


def faults(report: ReadReport, error: TarvizError | None) -> list[tuple[str, int | None]]:
    found = [*report.warnings, *report.skipped, *([error.fault] if error is not None else [])]
    return sorted(((fault.code, fault.offset) for fault in found), key=str)


def of_blocks(blocks: Iterable[Block]) -> Iterator[tuple[bytes, tuple[tuple[str, Any], ...], bool]]:
    for block in blocks:
        for row, record in enumerate(block):
            yield block.keys[row], tuple((ext, bytes(data)) for ext, data in record.items()), record.pending


def sizes_only(outcome: Outcome) -> Outcome:
    return Outcome(
        [(key, tuple((ext, len(data)) for ext, data in fields), pending) for key, fields, pending in outcome.records], outcome.faults
    )


def collected(run: Iterable[Any], report: ReadReport) -> Outcome:
    found: list[Any] = []
    error = None
    try:
        found.extend(run)
    except TarvizError as raised:
        error = raised
    return Outcome(found, faults(report, error))


def by_blocks(path: Path, options: ReadOptions) -> Outcome:
    report = ReadReport()
    return collected(of_blocks(stream.blocks(str(path), options, report=report)), report)


class Windows(io.BytesIO):
    """A source that gives a few bytes at a time."""

    def __init__(self, data: bytes, step: int) -> None:
        super().__init__(data)
        self.step = step

    def readinto(self, buffer: Any, /) -> int:
        return super().readinto(memoryview(buffer)[: self.step])


def by_windows(data: bytes, path: Path, options: ReadOptions, size: int, *, ahead: bool) -> Outcome:
    walker = options.walker(str(path))
    walker.rules = replace(walker.rules, block_size=size)
    blocks = Blocks(Windows(data, 7777), walker, ahead=ahead)
    report = ReadReport()
    noted = stream.Noted(report)
    found: list[Any] = []
    error = None
    try:
        found.extend(of_blocks(blocks))
    except TarvizError as raised:
        error = raised
    finally:
        noted.take(blocks)
        blocks.close()
    return Outcome(found, faults(report, error))


def by_spans(path: Path, options: ReadOptions) -> Outcome:
    report = ReadReport()

    def records() -> Iterator[Any]:
        for batch in shard_batches(URL(str(path)), options, report):
            for record in range(len(batch)):
                fields = tuple((batch.ext(row), bytes(batch.payload(row))) for row in batch.rows(record))
                yield batch.block.keys[record], fields, batch.block.pending == record

    return collected(records(), report)


def by_headers(path: Path, options: ReadOptions) -> Outcome:
    from tarviz.read.blocks import block_of

    walker = options.walker(str(path), payloads="none")
    report = ReadReport()

    def records() -> Iterator[Any]:
        for step in header_steps(URL(str(path)), walker, report):
            block = block_of(step._replace(data=memoryview(b""), base=0), walker)
            for row in range(len(block)):
                rows = range(int(block.rows[row]), int(block.rows[row + 1]))
                yield block.keys[row], tuple((block.exts[block.ext[at]], int(block.size[at])) for at in rows), block.pending == row
        if walker.error is not None:
            raise walker.error

    found = collected(records(), report)
    told = sorted(((note.code, note.offset) for note in walker.notes), key=str)
    return Outcome(found.records, sorted([*found.faults, *told], key=str))


def of_index(keys: Iterable[bytes], index: Any) -> list[Any]:
    records = []
    for row, key in enumerate(keys):
        rows = range(int(index.rows[row]), int(index.rows[row + 1]))
        fields = tuple((index.exts[int(index.ext[at])], int(index.members.size[at])) for at in rows)
        records.append((key, fields, index.pending == row))
    return records


def of_dicts(found: Iterable[dict[str, Any]]) -> list[tuple[str, int | None]]:
    return sorted(((fault["code"], fault.get("offset")) for fault in found), key=str)


def by_index(path: Path, options: ReadOptions) -> Outcome:
    index = shard_index(URL(str(path)), options, cache=False)
    assert index is not None
    return Outcome(of_index(index.keys(), index), of_dicts([*index.warnings, *([index.error] if index.error else [])]))


def by_browser(path: Path, options: ReadOptions) -> Outcome:
    shard = Shard(0, URL(str(path)))
    for _ in scan(shard, options, cache=False):
        pass
    records = []
    for part in shard.segments:
        for row in range(len(part)):
            rows = range(int(part.rows[row]), int(part.rows[row + 1]))
            fields = tuple((part.exts[int(part.ext[at])], int(part.members.size[at])) for at in rows)
            records.append((part.keys(row, row + 1)[0], fields, shard.pending == part.first + row))
    shard.close()
    return Outcome(records, sorted(((fault.code, fault.offset) for fault in shard.faults), key=str))


def listed(data: bytes, size: int, *, strict: bool, concatenated: bool) -> tuple[list[Any], list[Any]]:
    """Members as windows of any size show them to a scanner, and what it notes."""
    listing = Listing(Scanner("a.tar", strict=strict, concatenated=concatenated))
    found: list[Any] = []
    begin = 0
    while not listing.over:
        end = min(max(begin + size, listing.wants), len(data))
        for run in listing.walk(memoryview(data)[begin:end], begin, final=end == len(data)):
            found += list(run)
        begin = min(listing.place, end // 512 * 512)
    told: list[Fault] = [*listing.notes, *([listing.error.fault] if isinstance(listing.error, TarvizError) else [])]
    return found, sorted(((fault.code, fault.offset) for fault in told), key=str)


# Tars to compare by.


def corpora() -> list[bytes]:
    paths = [case.values[0] for case in corpus("generated")]
    return [path.read_bytes() for path in paths if path.stat().st_size < _LARGE and path.name.endswith(".tar")]


def written(chance: random.Random) -> bytes:
    """A tar as Python writes it: any format, some folders, links, large and long-named members, fields in any order."""
    file = io.BytesIO()
    format = chance.choice((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))
    long = "" if chance.random() < 0.7 else "d" * 60 + "/" + "e" * 60 + "/"
    exts = chance.sample(["txt", "cls", "json", "seg.png", "bin"], chance.randint(1, 4))
    even = chance.random() < 0.6
    with tarfile.open(fileobj=file, mode="w", format=format) as tar:
        for number in range(chance.randint(1, 30)):
            for ext in exts if even else chance.sample(exts, chance.randint(1, len(exts))):
                info = tarfile.TarInfo(f"{long}{'ü' if chance.random() < 0.05 else 'k'}{number:03d}.{ext}")
                info.size = chance.choice((0, 1, 10, 511, 512, 513, 700, 3000, 3000, 20_000 if chance.random() < 0.1 else 5))
                info.mtime = chance.choice((0, 1.5))
                tar.addfile(info, io.BytesIO(chance.randbytes(info.size)))
                if chance.random() < 0.08:
                    other = tarfile.TarInfo(chance.choice((f"folder{number}", "README", "__index__.json", f"k{number:03d}.lnk")))
                    other.type = chance.choice((tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.REGTYPE))
                    other.linkname = "k000.txt"
                    tar.addfile(other)
    return file.getvalue()


def odd(chance: random.Random) -> bytes:
    """A tar put together block by block: links with data, vendor types, holes, extension headers of all kinds."""
    data = b""
    for number in range(chance.randint(2, 14)):
        key = f"k{number // 2 if chance.random() < 0.8 else chance.randint(0, 3):03d}"
        name, body = f"{key}.{chance.choice(('txt', 'cls'))}", chance.randbytes(chance.choice((0, 3, 512, 600, 1500)))
        kind = chance.random()
        if kind < 0.5:
            data += member(name, body)
        elif kind < 0.58:
            data += member(f"{key}.lnk", body, b"1", link=b"k000.txt")
        elif kind < 0.63:
            data += raw(f"{key}.lnk", 600, b"1")
        elif kind < 0.68:
            data += member(name, body, b"Z")
        elif kind < 0.8:
            data += pax((b"path", f"{'p' * chance.choice((3, 120))}/{name}".encode())) + member("short.txt", body)
        elif kind < 0.85:
            data += pax((b"path", b""), (b"size", b"")) + member(name, body)
        elif kind < 0.9:
            data += pax((b"comment", b"c"), kind=b"g") + member(name, body)
        elif kind < 0.94:
            data += pax((b"path", f"{key}.t\0xt".encode())) + member(name, body)
        elif kind < 0.97:
            data += bytes(chance.choice((512, 1024, 4096)))
        else:
            data += pax((b"GNU.sparse.major", b"0"), (b"GNU.sparse.size", b"2000"), (b"GNU.sparse.map", b"100,%d" % len(body)))
            data += member(name, body)
    return data + chance.choice((END, END, END + bytes(8192), bytes(512), b"", END + b"junk" * 200, END + member("late.txt", b"1") + END))


def by_gnu_tar(chance: random.Random, folder: Path) -> bytes:
    """A tar as GNU tar writes it: sparse files and long names among others."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number in range(chance.randint(1, 6)):
        for ext in ("txt", "bin"):
            place = folder / f"{'n' * chance.choice((3, 120))}{number}.{ext}"
            with place.open("wb") as file:
                file.write(chance.randbytes(chance.choice((0, 5, 700))))
                if chance.random() < 0.3:
                    file.seek(chance.choice((9000, 70_000)))
                    file.write(b"end")
    format = chance.choice((["--format=gnu"], ["--format=posix"], ["--format=oldgnu"], ["--format=posix", "--sparse-version=0.1"]))
    sparse = ["--sparse"] if chance.random() < 0.7 else []
    names = sorted(place.name for place in folder.iterdir())
    return subprocess.run(["tar", "cf", "-", *format, *sparse, *names], cwd=folder, check=True, capture_output=True).stdout


def damaged(source: bytes, chance: random.Random) -> bytes:
    data = bytearray(source)
    for _ in range(chance.choice((1, 1, 2, 4))):
        if not data:
            break
        at, kind = chance.randrange(len(data)), chance.randrange(7)
        if kind == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            at = at // 512 * 512 + chance.choice((0, 99, 124, 135, 136, 148, 156, 257, 345, 386, 482, 483))
            data[at : at + 1] = chance.choice((b"\0", b" ", b"\xff", b"\x80", b"7", b"x", b"L", b"g", b"S", b"9"))
        elif kind == 2:
            del data[at // 512 * 512 :][: chance.choice((512, 1024))]
        elif kind == 3:
            del data[at:]
        elif kind == 4:
            at = at // 512 * 512
            data[at : at + chance.choice((512, 1024, 4096))] = bytes(512)
        elif kind == 5:
            at = at // 512 * 512
            data[at:at] = chance.randbytes(512)
        else:
            data[at : at + 512] = chance.randbytes(min(512, len(data) - at))
    if chance.random() < 0.4:  # right again for those who only compare the checksum
        for at in range(0, len(data) - 511, 512):
            if data[at + 257 : at + 262] == b"ustar":
                data[at + 148 : at + 156] = b" " * 8
                data[at + 148 : at + 156] = b"%06o\0 " % sum(data[at : at + 512])
    return bytes(data)


def tars(chance: random.Random, folder: Path) -> Iterator[bytes]:
    """Tars without end."""
    known = corpora()
    has_tar = shutil.which("tar") is not None
    while True:
        kind = chance.random()
        if kind < 0.25:
            data = chance.choice(known)
        elif kind < 0.6:
            data = written(chance)
        elif kind < 0.85 or not has_tar:
            data = odd(chance)
        else:
            data = by_gnu_tar(chance, folder)
        if chance.random() < 0.1:
            data += bytes(chance.choice((0, 512, 70_000 // 512 * 512))) + chance.choice(known)
        yield damaged(data, chance) if chance.random() < 0.6 else data


def compare(data: bytes, path: Path, chance: random.Random) -> int:
    """Read a tar through every door, by some window sizes; the number of outcomes that were compared."""
    path.write_bytes(data)
    count = 0
    concatenated = chance.random() < 0.3
    duplicates = chance.choice(("error", "error", "first", "last"))
    for strict, on_error in ((True, "raise"), (False, "raise"), (True, "skip"), (False, "skip")):
        options = ReadOptions(
            strict=strict,
            on_error=on_error,
            concatenated=concatenated,
            duplicates=duplicates,
            max_member_bytes=chance.choice((1 << 20, 1200)),
        )
        expected = by_blocks(path, options)
        for size in chance.sample(SIZES, 4):
            assert expected == by_windows(data, path, options, size, ahead=chance.random() < 0.3), (strict, on_error, size)
            count += 1
        if on_error == "skip":
            continue
        assert expected == by_spans_like(path, options, expected), (strict, "spans")
        unlimited = sizes_only(
            by_blocks(path, ReadOptions(strict=strict, concatenated=concatenated, duplicates=duplicates, max_member_bytes=1 << 40))
        )
        if any(code == "E_LIMIT" for code, _ in unlimited.faults):
            continue
        assert unlimited == by_headers(path, ReadOptions(strict=strict, concatenated=concatenated, duplicates=duplicates)), (
            strict,
            "headers",
        )
        count += 2
        if not strict:
            plain = ReadOptions(strict=False, concatenated=concatenated, duplicates=duplicates)
            assert unlimited == by_index(path, plain), "index"
            count += 1
            if duplicates != "error":
                shown = by_browser(path, plain)
                assert unlimited.records == shown.records, "browser"
                assert unlimited.faults == [fault for fault in shown.faults if fault[0] != "W_DUP_FIELD"], "browser"
                count += 1
    for strict in (True, False):
        whole = listed(data, len(data) + 512, strict=strict, concatenated=concatenated)
        for size in chance.sample(SIZES, 3):
            assert whole == listed(data, size, strict=strict, concatenated=concatenated), ("members", strict, size)
            count += 1
    return count


def by_spans_like(path: Path, options: ReadOptions, expected: Outcome) -> Outcome:
    """Spans have no limit where payloads stay in the file: where they say another thing than blocks, it must be for that."""
    found = by_spans(path, options)
    limited = any(code == "E_LIMIT" for code, _ in expected.faults)
    return expected if limited and found != expected else found


def run(chance: random.Random, tmp_path: Path, more: Callable[[int], bool]) -> tuple[int, int]:
    count = number = 0
    for data in tars(chance, tmp_path / "files"):
        if not more(number):
            break
        try:
            count += compare(data, tmp_path / "a.tar", chance)
        except BaseException as error:
            kept = Path(os.environ.get("TARVIZ_FUZZ_KEEP", str(tmp_path))) / f"differs-{number}.tar"
            kept.write_bytes(data)
            error.add_note(f"the tar is kept as {kept}")
            raise
        number += 1
    return number, count


def test_every_door_says_the_same(tmp_path: Path):
    number, count = run(random.Random(7), tmp_path, lambda number: number < 12)

    assert number == 12
    assert count > 12 * 15


@pytest.mark.slow
def test_every_door_says_the_same_for_a_long_time(tmp_path: Path):
    end = time.monotonic() + SECONDS
    number, count = run(random.Random(SEED), tmp_path, lambda _: time.monotonic() < end)
    print(f"{number} tars, {count} outcomes compared, seed {SEED}")

    assert number
