"""Every door to a shard says the same, whatever window it is read by: the same records, the same faults, and none that is not whole.

`make test` compares some dozen tars; `make fuzz` goes on for TARVIZ_FUZZ_SECONDS (TARVIZ_FUZZ_SEED repeats a run, and
TARVIZ_FUZZ_KEEP is the folder for the tar that is read in two ways).
"""

from __future__ import annotations

import gzip
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tarviz import stores
from tarviz.model.errors import TarvizError
from tarviz.model.types import URL
from tarviz.read import stream
from tarviz.read.stream import ReadOptions
from tests.soak import doors
from tests.soak.damaged_tars import tars
from tests.soak.doors import Outcome, sizes_only

pytestmark = pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")

SECONDS = float(os.environ.get("TARVIZ_FUZZ_SECONDS", "120"))
SEED = int(os.environ.get("TARVIZ_FUZZ_SEED", time.time()))
SIZES = (512, 1024, 1536, 2560, 4096, 8704, 65536, 1 << 20)
KEEP = os.environ.get("TARVIZ_FUZZ_KEEP")
_MODES = ((True, "raise"), (False, "raise"), (True, "skip"), (False, "skip"))


def compare(data: bytes, path: Path, chance: random.Random) -> int:
    """Read a tar through every door that needs no framework, by some window sizes; the number of outcomes that were compared."""
    path.write_bytes(data)
    count = 0
    concatenated = chance.random() < 0.3
    duplicates = chance.choice(("error", "error", "first", "last"))
    limit = chance.choice((1 << 20, 1200))
    for strict, on_error in _MODES:
        options = ReadOptions(strict=strict, on_error=on_error, concatenated=concatenated, duplicates=duplicates, max_member_bytes=limit)
        expected = doors.by_blocks(path, options)
        for size in chance.sample(SIZES, 3):
            assert expected == doors.by_windows(data, path, options, size, ahead=chance.random() < 0.3), ("blocks", options, size)
        count += 3 + in_records(path, options, expected) + in_verbs(path, options, expected)
        if chance.random() < 0.3:
            count += elsewhere(data, path, options, expected)
        if on_error == "raise":
            count += in_columns(path, replace(options, max_member_bytes=None))
    for strict in (True, False):
        whole = doors.listed(data, len(data) + 512, strict=strict, concatenated=concatenated)
        for size in chance.sample(SIZES, 3):
            assert whole == doors.listed(data, size, strict=strict, concatenated=concatenated), ("members", strict, size)
        assert whole == doors.by_members(str(path), strict=strict, concatenated=concatenated), ("members", strict)
        count += 4
    assert whole == doors.by_entries(path, concatenated=concatenated), "ls --members"
    return count + 1


def in_records(path: Path, options: ReadOptions, expected: Outcome) -> int:
    """Records one by one, and as a pipeline yields them: without an index in the cache, and with one."""
    assert expected == doors.by_records(path, options), ("records", options)
    plain = doors.unmarked(expected)
    assert plain == doors.by_runner(path, options, "eager"), ("eager", options)
    stream.index(path, concatenated=options.concatenated, duplicates=options.duplicates)
    assert plain == doors.by_runner(path, options, "eager"), ("eager with an index", options)
    start = len(expected.records) // 2
    found = doors.by_blocks(path, options, start=start)
    assert expected.records[start:] == found.records, ("from one on", options)
    assert set(found.faults) <= set(expected.faults), ("from one on", options)
    if options.on_error == "skip":
        return 4
    found = doors.by_numbers(path, options)
    if isinstance(found, TarvizError):
        unlimited = doors.by_blocks(path, replace(options, max_member_bytes=1 << 26))
        assert found.code in [code for code, _ in (*expected.faults, *unlimited.faults)], ("number", found, options)
    else:
        assert plain.records == found.records, ("numbers", options)
    return 5


def in_verbs(path: Path, options: ReadOptions, expected: Outcome) -> int:
    """What `cat` writes and `verify` finds. Neither has a limit for payloads that it need not hold."""
    count = 0
    limited = any(code == "E_LIMIT" for code, _ in expected.faults)
    if options.on_error == "skip":
        assert (len(expected.records), expected.faults) == doors.by_verify(path, options), ("verify", options)
        count += 1
    elif not limited:
        assert expected == doors.by_spans(path, options), ("spans", options)
        count += 1
    written = doors.by_cat(path, options)
    if limited and options.on_error == "raise":
        return count
    if isinstance(written, TarvizError):
        assert options.on_error == "raise", "cat"
        assert (written.code, written.offset) in expected.faults, ("cat", options)
    else:
        found, again = written
        # neighbours of one key become one record
        merged = any(code == "W_MERGED_RECORD" for code, _ in found.faults)
        if merged and any(code == "E_DUP_FIELD" for code, _ in again):
            return count + 1  # both of them have the same field, which readers refuse: the warning says so
        if merged:
            assert doors.members_of(expected) == doors.members_of(found), ("cat", options)
        else:
            assert doors.unmarked(expected).records == doors.unmarked(found).records, ("cat", options)
        own = ("W_PENDING", "W_MERGED_RECORD")
        assert expected.faults == [fault for fault in found.faults if fault[0] not in own], ("cat", options)
        copied = {code for code, _ in expected.faults if code.startswith("W_")}  # the bytes of a member are copied as they are
        assert {code for code, _ in again} <= {"W_SPLIT_RECORD", "W_EMPTY", *copied}, ("what cat wrote", options)
    return count + 1


def elsewhere(data: bytes, path: Path, options: ReadOptions, expected: Outcome) -> int:
    """The same tar packed, and in another store."""
    packed, away = path.with_name("a.tar.gz"), URL("memory://doors/a.tar")
    packed.write_bytes(gzip.compress(data, 1))
    with stores.of(away).create(away) as sink:
        sink.write(data)
    assert expected == doors.by_blocks(packed, options), ("packed", options)
    assert expected == doors.by_blocks(away, options), ("memory", options)
    if options.on_error == "raise" and not options.strict and options.max_member_bytes != 1200:
        assert doors.by_index(path, options) == doors.by_index(packed, options) == doors.by_index(away, options), "index elsewhere"
    return 2


def in_columns(path: Path, options: ReadOptions) -> int:
    """Doors that read headers only, and so have no limit for a member."""
    unlimited = sizes_only(doors.by_blocks(path, replace(options, max_member_bytes=1 << 26)))
    if any(code == "E_LIMIT" for code, _ in unlimited.faults):
        return 0
    assert unlimited == doors.by_headers(path, options), ("headers", options)
    if options.strict:
        return 1
    index = doors.by_index(path, options)
    assert unlimited == index, "index"
    assert doors.counted(index) == doors.by_ls(path, options), "ls"
    if options.duplicates == "error":
        return 3
    shown = doors.by_browser(path, options)
    assert unlimited.records == shown.records, "browser"
    assert unlimited.faults == [fault for fault in shown.faults if fault[0] != "W_DUP_FIELD"], "browser"
    return 4


@contextmanager
def kept(data: bytes, folder: Path) -> Iterator[None]:
    """Keep a tar that is read in two ways."""
    try:
        yield
    except BaseException as error:
        place = Path(KEEP or folder) / f"differs-{random.getrandbits(32):08x}.tar"
        place.write_bytes(data)
        error.add_note(f"the tar is kept as {place}")
        raise


def run(compared: Callable[[bytes, Path, random.Random], int], seed: int, tmp_path: Path, more: Callable[[int], bool]) -> tuple[int, int]:
    """Tars and outcomes compared; a difference fails, and its tar is kept."""
    count = number = 0
    chance = random.Random(seed)
    for data in tars(chance, tmp_path / "files"):
        if not more(number):
            break
        with kept(data, tmp_path):
            count += compared(data, tmp_path / "a.tar", chance)
        number += 1
    return number, count


@pytest.mark.matrix
def test_every_door_says_the_same(tmp_path: Path):
    number, count = run(compare, 7, tmp_path, lambda number: number < 6)

    assert number == 6
    assert count > 6 * 30


@pytest.mark.slow
def test_every_door_says_the_same_for_a_long_time(tmp_path: Path):
    end = time.monotonic() + SECONDS
    number, count = run(compare, SEED, tmp_path, lambda _: time.monotonic() < end)
    print(f"{number} tars, {count} outcomes compared, seed {SEED}")

    assert number


class TestFrameworks:
    """TensorFlow and torch, which take longer for a tar than all other doors."""

    @staticmethod
    def by_graph(data: bytes, path: Path, chance: random.Random) -> int:
        path.write_bytes(data)
        strict, on_error = chance.choice(_MODES)
        options = ReadOptions(strict=strict, on_error=on_error, concatenated=chance.random() < 0.3, duplicates="first")
        expected = doors.by_blocks(path, options)
        if chance.random() < 0.5:
            stream.index(path, concatenated=options.concatenated, duplicates="first")
        found = doors.by_graph(path, options)
        if found is None:
            assert not expected.records
        elif len({frozenset(ext for ext, _ in record[1]) for record in expected.records}) == 1:
            assert doors.by_name(expected) == doors.by_name(found), options
        else:  # the fields of the first records are those of all: others are left out, records without them an error
            assert {"W_EXTRA_FIELD", "E_SCHEMA"} & {code for code, _ in found.faults}, options
            assert {record[0] for record in found.records} <= {record[0] for record in expected.records}, options
        return 1

    @pytest.mark.matrix
    def test_a_graph_says_the_same(self, tmp_path: Path):
        pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")

        assert (5, 5) == run(self.by_graph, 3, tmp_path, lambda number: number < 5)

    @pytest.mark.slow
    def test_a_graph_says_the_same_for_a_long_time(self, tmp_path: Path):
        pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
        end = time.monotonic() + SECONDS
        number, count = run(self.by_graph, SEED, tmp_path, lambda _: time.monotonic() < end)
        print(f"{number} tars, {count} outcomes compared, seed {SEED}")

        assert number

    @staticmethod
    def by_torch(loader: object) -> Callable[[bytes, Path, random.Random], int]:
        from tests.soak.worker_door import by_workers

        def compared(data: bytes, path: Path, chance: random.Random) -> int:
            path.write_bytes(data)
            concatenated, limit = chance.random() < 0.3, chance.choice((1 << 20, 1200))
            for strict, on_error in _MODES:
                options = ReadOptions(strict=strict, on_error=on_error, concatenated=concatenated, duplicates="first")
                if on_error == "skip":
                    options = replace(options, max_member_bytes=limit)
                expected = doors.unmarked(doors.by_blocks(path, options))
                assert expected == doors.by_runner(path, options, "torch"), ("no workers", options)
                found, errors = by_workers(loader, path, options)
                ended = on_error == "raise" and any(code.startswith("E_") for code, _ in expected.faults)
                known = set(expected.faults)
                if ended and any(code == "E_LIMIT" for code, _ in known):  # a worker may begin behind the member that is too large
                    assert set(expected.records) <= set(found.records), ("workers", options)
                    known.update(doors.by_blocks(path, replace(options, on_error="skip")).faults)
                else:
                    assert expected.records == found.records, ("workers", options)
                assert ended == bool(errors), ("workers", options)
                assert {*found.faults, *errors} <= known, ("workers", options)  # each meets those of its own part
            return 8

        return compared

    @pytest.mark.torch
    def test_torch_says_the_same_with_and_without_workers(self, tmp_path: Path):
        pytest.importorskip("torch", reason="torch: make test-torch")
        from tests.soak.worker_door import loader_of

        number, _ = run(self.by_torch(loader_of(tmp_path / "note")), 5, tmp_path, lambda number: number < 12)

        assert 12 == number

    @pytest.mark.torch
    @pytest.mark.slow
    def test_torch_says_the_same_for_a_long_time(self, tmp_path: Path):
        pytest.importorskip("torch", reason="torch: make test-torch")
        from tests.soak.worker_door import loader_of

        end = time.monotonic() + SECONDS
        number, count = run(self.by_torch(loader_of(tmp_path / "note")), SEED, tmp_path, lambda _: time.monotonic() < end)
        print(f"{number} tars, {count} outcomes compared, seed {SEED}")

        assert number
