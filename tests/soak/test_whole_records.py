"""A record that strict reading hands out is whole: over cuts and damaged headers of many tars, and against what GNU tar extracts."""

from __future__ import annotations

import io
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarviz.formats.tar import Scanner
from tarviz.model.errors import TarvizError
from tarviz.model.types import MEMBER_TYPES
from tarviz.read import stream
from tarviz.read.blocks import Blocks
from tarviz.read.stream import ReadOptions
from tests.soak.damaged_tars import TOOLS, by_tool, corpora, written

pytestmark = pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")

Found = list[tuple[bytes, tuple[tuple[str, bytes], ...]]]
SEED = int(os.environ.get("TARVIZ_FUZZ_SEED", "11"))


def read(data: bytes, **options: str) -> tuple[Found, TarvizError | None, int]:
    """Records of a tar in memory, the error they ended with, and how many faults were listed."""
    walker = ReadOptions(**options).walker("a.tar")  # type: ignore[arg-type]
    blocks = Blocks(io.BytesIO(data), walker, ahead=False)
    found: Found = []
    try:
        for block in blocks:
            found += [
                (key, tuple((ext, bytes(value)) for ext, value in record.items())) for key, record in zip(block.keys, block, strict=True)
            ]
    except TarvizError as error:
        return found, error, len(walker.notes) + len(walker.skipped)
    finally:
        blocks.close()
    return found, None, len(walker.notes) + len(walker.skipped)


def tars(folder: Path, count: int) -> Iterator[bytes]:
    """Tars that strict reading takes whole: of Python and GNU tar, records of the same fields and of different ones, and the corpora."""
    chance = random.Random(SEED)
    known = [data for data in corpora() if read(data)[1] is None]
    made = 0
    while made < count:
        kind = made % 3
        data = (
            written(chance)
            if kind == 0
            else chance.choice(known)
            if kind == 1 or not TOOLS
            else by_tool(chance.choice(TOOLS), chance, folder)
        )
        if read(data)[1] is None and len(data) < 100_000:
            made += 1
            yield data


def headers(data: bytes) -> list[int]:
    """Where the headers of members stand, extension headers too."""
    scanner = Scanner("a.tar", strict=False)
    places = []
    for start, payload in ((member.header_offset, member.data_offset) for member in scanner.scan(memoryview(data), 0, final=True)):
        places += [at for at in range(start, payload, 512) if data[at + 257 : at + 262] == b"ustar"]
    return places


def check(data: bytes, step: int, flips: int, chance: random.Random) -> int:
    """Cut and damage a tar: how many were read; a record that is not one of the tar's fails."""
    truth = set(read(data)[0])
    count = 0
    for length in range(0, len(data), step):
        found, error, _ = read(data[:length])
        assert set(found) <= truth, length
        assert error is not None or len(found) == len(truth), length
        count += 1
    places = headers(data)
    for _ in range(flips if places else 0):
        bad = bytearray(data)
        at = chance.choice(places) + chance.randrange(512)
        bad[at] ^= 1 << chance.randrange(8)
        found, error, _ = read(bytes(bad))
        assert set(found) <= truth, at
        assert error is not None or len(found) == len(truth), at
        found, error, faults = read(bytes(bad), on_error="skip")
        assert set(found) <= truth, ("skip", at)
        assert error is None, at
        assert faults or len(found) == len(truth), at
        count += 2
    return count


@pytest.mark.matrix
def test_cuts_and_flips_give_no_record_that_is_not_whole(tmp_path: Path):
    chance = random.Random(SEED)

    assert sum(check(data, 1472, 20, chance) for data in tars(tmp_path / "files", 9)) > 300


@pytest.mark.slow
def test_every_64th_cut_and_a_thousand_flips_give_no_record_that_is_not_whole(tmp_path: Path):
    chance = random.Random(SEED)
    count = sum(check(data, 64, 1000, chance) for data in tars(tmp_path / "files", 30))
    print(f"{count} damaged tars read")

    assert count > 30_000


@pytest.mark.skipif(not shutil.which("tar"), reason="no tar here")
@pytest.mark.matrix
def test_records_are_what_gnu_tar_extracts(tmp_path: Path):
    compared = 0
    for number, data in enumerate(tars(tmp_path / "files", 15)):
        path, folder = tmp_path / f"{number}.tar", tmp_path / str(number)
        path.write_bytes(data)
        folder.mkdir()
        if subprocess.run(["tar", "xf", path, "-C", folder], capture_output=True, check=False).returncode:
            continue  # a name it refuses to write
        for record in stream.records(path):
            for member, payload in zip(record.members, record.values(), strict=True):
                place = folder / member.name.lstrip("/")
                if MEMBER_TYPES[0] == member.type and ".." not in member.name and len(place.name.encode(errors="replace")) < 250:
                    assert place.read_bytes() == bytes(payload), (number, member.name)
                    compared += 1

    assert compared > 50
