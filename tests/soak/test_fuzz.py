"""Random damage for a bounded time (`make fuzz`, TARVIZ_FUZZ_SECONDS each): an answer soon, a tarviz error or none."""

from __future__ import annotations

import os
import random
import time
import warnings
from pathlib import Path

import pytest

from tarviz.formats import tfrecord
from tarviz.formats.tar import Scanner
from tarviz.model.errors import TarvizError
from tarviz.read import stream
from tests.conftest import corpus

pytestmark = pytest.mark.slow

SECONDS = float(os.environ.get("TARVIZ_FUZZ_SECONDS", "120"))
SEED = int(os.environ.get("TARVIZ_FUZZ_SEED", time.time()))  # read here: no test sees TARVIZ_… of the environment


def sources(folder: str, largest: int = 20_000) -> list[bytes]:
    paths = [case.values[0] for case in corpus(folder)]
    return [path.read_bytes() for path in paths if path.stat().st_size < largest]


def damaged(source: bytes, chance: random.Random) -> bytearray:
    data = bytearray(source)
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        if not data:
            break
        at = chance.randrange(len(data))
        kind = chance.randrange(5)
        if kind == 0:
            data[at] = chance.randrange(256)
        elif kind == 1:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            del data[at : at + chance.choice((1, 7, 511, 512, 600))]
        elif kind == 3:
            data[at:at] = chance.randbytes(chance.choice((1, 8, 512)))
        else:  # a field of a header, where it hurts: name, size, check sum, type, prefix
            at = at // 512 * 512 + chance.choice((0, 99, 124, 135, 136, 148, 156, 257, 345, 386, 482, 483))
            data[at : at + 1] = chance.choice((b"\0", b" ", b"\xff", b"\x80", b"7", b"x", b"L", b"g", b"S", b"9"))
    if chance.random() < 0.7:  # right again for those who only compare the check sum
        for at in range(0, len(data) - 511, 512):
            if data[at + 257 : at + 262] == b"ustar":
                data[at + 148 : at + 156] = b" " * 8
                data[at + 148 : at + 156] = b"%06o\0 " % sum(data[at : at + 512])
    return data


def test_mutated_headers_are_read_or_refused():
    chance = random.Random(SEED)
    cases = sources("generated")
    end = time.monotonic() + SECONDS
    count = 0
    while time.monotonic() < end:
        data = damaged(chance.choice(cases), chance)
        begun = time.perf_counter()
        scanner = Scanner("fuzz", strict=chance.random() < 0.5, concatenated=chance.random() < 0.3)
        scanner.scan(memoryview(data), 0, final=True)
        assert scanner.ended or isinstance(scanner.error, TarvizError), bytes(data)
        assert time.perf_counter() - begun < 1, bytes(data)
        count += 1

    assert count > SECONDS * 100


def test_mutated_shards_are_read_or_refused(tmp_path: Path):
    chance = random.Random(SEED)
    cases = sources("generated")
    path = tmp_path / "a.tar"
    end = time.monotonic() + SECONDS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while time.monotonic() < end:
            data = damaged(chance.choice(cases), chance)
            path.write_bytes(data)
            for strict in (True, False):
                try:
                    for record in stream.records(
                        path,
                        strict=strict,
                        on_error=chance.choice(("raise", "skip")),
                        duplicates=chance.choice(("error", "first", "last")),
                        group=chance.choice(("adjacent", "adjacent", "shard")),
                        block_size=chance.choice((4096, 8192, 1 << 20)),
                    ):
                        assert [len(record[ext]) for ext in record] == [member.size for member in record.members], bytes(data)
                except TarvizError:
                    pass
                except BaseException as error:
                    error.add_note(f"the shard: {bytes(data)!r}")
                    raise


def test_mutated_tfrecords_are_read_or_refused(tmp_path: Path):
    chance = random.Random(SEED)
    cases = sources("tfrecord")
    path = tmp_path / "a.tfrecord"
    end = time.monotonic() + SECONDS / 2
    while time.monotonic() < end:
        data = damaged(chance.choice(cases), chance)
        path.write_bytes(data)
        with path.open("rb", buffering=0) as file:
            try:
                for _ in tfrecord.read(file):
                    pass
            except TarvizError:
                pass
            except BaseException as error:
                error.add_note(f"the file: {bytes(data)!r}")
                raise
