"""Records chosen before anything is read: only their bytes are, and never those of another version."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.model.errors import ChangedError, UsageError
from tarviz.model.types import URL
from tarviz.read.chosen import Chosen, blocks, near, numbers, runs, sound_index, subset, version
from tarviz.read.shard_index import index_of, shard_index
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.stores.file import FileStore
from tests.read.tars import END, member

DATA = b"".join(member(f"{number:03d}.bin", b"%03d" % number + bytes(50_000)) for number in range(40)) + END
WANTED = np.array([0, 1, 20, 39])


def options(url: URL, rows: np.ndarray = WANTED) -> ReadOptions:
    return ReadOptions(where=Chosen("key in (…)", {url: rows}, {url: version(url)}))


class TestBlocks:
    @pytest.mark.parametrize("packed", [False, True])
    def test_the_chosen_ones_keep_their_numbers(self, make: Callable[..., Path], packed: bool):
        url = URL(str(make(gzip.compress(DATA, 1), "a.tar.gz") if packed else make(DATA)))
        report = ReadReport()
        found = [(record.index, bytes(record["bin"][:3])) for block in blocks(url, options(url), report) for record in block]

        assert [(0, b"000"), (1, b"001"), (20, b"020"), (39, b"039")] == found
        assert (4, 1) == (report.records, report.shards)
        assert packed or report.bytes < 5 * 51_000

    def test_first_and_last_are_numbers_of_the_shard(self, make: Callable[..., Path]):
        url = URL(str(make(DATA)))

        assert [1, 20] == [record.index for block in blocks(url, options(url), ReadReport(), 1, 39) for record in block]

    def test_what_lies_near_is_read_along(self, make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch):
        url = URL(str(make(b"".join(member(f"{number:03d}.bin", bytes(600)) for number in range(100)) + END)))
        chosen, reads, read = options(url, np.array([3, 20, 60])), list[int](), FileStore.read
        assert sound_index(url, chosen) is not None

        def counted(store: FileStore, place: URL, offset: int, length: int, **more: object) -> bytes:
            reads.append(length)
            return read(store, place, offset, length, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(FileStore, "read", counted)
        assert [3, 20, 60] == [record.index for block in blocks(url, chosen, ReadReport()) for record in block]
        assert [18 * 1536, 1536] == reads[-2:]

    def test_none_chosen_is_nothing_read(self, make: Callable[..., Path]):
        url, report = URL(str(make(DATA))), ReadReport()

        assert [] == list(blocks(url, options(url, np.zeros(0, np.int64)), report))
        assert (0, 1) == (report.bytes, report.shards)

    def test_what_lies_behind_the_last_one_is_not_looked_at(self, make: Callable[..., Path]):
        url = URL(str(make(gzip.compress(DATA[:-3000], 1), "a.tar.gz")))

        assert [0, 1] == [record.index for block in blocks(url, options(url, WANTED[:2]), ReadReport()) for record in block]

    def test_a_shard_that_was_replaced_is_an_error(self, make: Callable[..., Path]):
        url = URL(str(make(DATA)))
        chosen = options(url)
        make(DATA[:-1024] + member("more.bin", b"") + END)
        with pytest.raises(ChangedError, match="after its records were chosen"):
            numbers(url, chosen)


class TestSound:
    @pytest.mark.parametrize(
        ("data", "sound"),
        [
            (DATA, True),
            (DATA[: -len(END)], False),
            (member("README", b"1") + DATA, False),
            (END, False),
            (gzip.compress(DATA, 1), False),
            (member("x.bin", bytes(3_000_000)) + DATA, False),
        ],
        ids=["whole", "no end", "warned of", "empty", "packed", "over the limit"],
    )
    def test_only_an_index_without_a_fault_is_read_by(self, make: Callable[..., Path], data: bytes, sound: bool):
        assert sound == (sound_index(URL(str(make(data))), ReadOptions(max_member_bytes=2_000_000)) is not None)


class TestSubset:
    def test_it_has_these_records_only_numbered_as_in_the_shard(self, make: Callable[..., Path]):
        whole = shard_index(URL(str(make(DATA))), ReadOptions(), cache=False)
        assert whole is not None
        part = subset(whole, WANTED)

        assert [b"000", b"001", b"020", b"039"] == part.keys()
        assert [0, 1, 20, 39] == [part.number(row) for row in range(len(part))]
        assert [whole.span(row) for row in WANTED.tolist()] == [part.span(row) for row in range(4)]
        assert 2 == part.find(b"020")
        assert part.find(b"002") is None

    @pytest.mark.parametrize(("rows", "pending"), [([0, 39], (1,)), ([0, 1], ())])
    def test_the_record_that_may_lack_a_member_keeps_its_mark(self, make: Callable[..., Path], rows: list[int], pending: tuple[int, ...]):
        whole = shard_index(URL(str(make(DATA[: -len(END)]))), ReadOptions(), cache=False)
        assert whole is not None
        assert (39,) == whole.pending

        assert pending == subset(whole, np.array(rows)).pending


@given(
    st.lists(st.integers(0, 3000), min_size=1, max_size=12),
    st.sets(st.integers(0, 11), min_size=1),
    st.sampled_from([0, 1023, 1024, 3000]),
    st.sampled_from([1024, 1536, 5000, 1 << 20]),
)
def test_records_are_read_together_up_to_a_gap_and_a_size(sizes: list[int], wanted: set[int], gap: int, most: int):
    data = b"".join(member(f"{number:02d}.bin", bytes(size)) for number, size in enumerate(sizes)) + END
    walker = ReadOptions().walker("a.tar", payloads="none")
    index = index_of(walker, list(walker.walk(memoryview(data), final=True)))
    rows = sorted(row for row in wanted if row < len(sizes)) or [0]
    expected: list[list[int]] = []
    for row in rows:
        begin, end = index.span(row)
        if expected and begin - index.span(expected[-1][-1])[1] <= gap and end - index.span(expected[-1][0])[0] <= most:
            expected[-1].append(row)
        else:
            expected.append([row])

    assert expected == [run.tolist() for run in near(index, np.array(rows), gap, most)]


def test_runs_are_neighbours():
    assert [(1, 4), (7, 8), (9, 11)] == list(runs(np.array([1, 2, 3, 7, 9, 10])))
    assert [] == list(runs(np.zeros(0, np.int64)))


def test_a_choice_is_shown_by_its_condition():
    assert "'key in (…)'" == repr(Chosen("key in (…)", {}, {}))


def test_records_of_a_stream_cannot_be_numbered_before_they_are_read():
    with pytest.raises(UsageError, match="cannot be counted before they are read"):
        numbers(URL("-"), ReadOptions(where=Chosen("cls = 3", {}, {}, frozenset(["-"]))))
