"""Spans of plain tars: the bytes of records while they are still in the file."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tarviz.model.errors import ChangedError, LimitError
from tarviz.model.types import URL
from tarviz.read import stream
from tarviz.read.spans import Batch, HeldTar, intake, pieces, plain, ranges, shard_batches
from tarviz.read.stream import ReadOptions, ReadReport
from tests.read.tars import END, member, pax

pytestmark = pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")

LARGE = bytes(range(256)) * 400
HOLES = pax((b"GNU.sparse.major", b"0"), (b"GNU.sparse.size", b"9000"), (b"GNU.sparse.map", b"100,3"))
SPARSE = HOLES + member("b.txt", b"abc")


def batches(path: Path, **options: object) -> list[Batch]:
    return list(shard_batches(URL(str(path)), ReadOptions(**options), ReadReport()))  # type: ignore[arg-type]


class TestWhereBytesAre:
    def test_large_payloads_stay_in_the_file(self, make: Callable[..., Path]):
        (batch,) = batches(make(member("a.bin", LARGE) + member("b.bin", LARGE[:-1]) + END))

        assert batch.source is not None
        assert 0 == len(batch.block.data)
        assert [LARGE, LARGE[:-1]] == [batch.payload(row) for row in (0, 1)]
        assert member("b.bin", LARGE[:-1]) == batch.raw(int(batch.block.members.start[1]), int(batch.block.members.end[1]))

    def test_small_payloads_are_read_with_their_headers(self, make: Callable[..., Path]):
        (batch,) = batches(make(b"".join(member(f"{number:02d}.txt", b"1") for number in range(80)) + END))

        assert batch.source is None
        assert 80 == len(batch)

    def test_few_small_ones_too(self, make: Callable[..., Path]):
        (batch,) = batches(make(member("a.txt", b"1") + member("b.txt", b"2") + END))

        assert (None, 2) == (batch.source, len(batch))

    def test_a_record_with_a_sparse_member_comes_by_itself_and_unfolded(self, make: Callable[..., Path]):
        found = batches(make(member("a.bin", LARGE) + SPARSE + member("c.bin", LARGE) + END))

        assert [(True, 1), (False, 1), (True, 1)] == [(batch.source is not None, len(batch)) for batch in found]
        assert bytes(100) + b"abc" + bytes(8897) == bytes(found[1].payload(0))

    def test_of_sparse_members_over_the_limit_the_first_is_told(self, make: Callable[..., Path]):
        path = make(member("a.bin", LARGE) + SPARSE + HOLES + member("c.txt", b"abc") + END)

        with pytest.raises(LimitError, match=r"b\.txt"):
            batches(path, max_member_bytes=8999)

    def test_a_record_whose_padding_is_cut_comes_by_itself_with_zeros_for_it(self, make: Callable[..., Path]):
        cut = (member("a.bin", LARGE) + member("b.bin", LARGE[:-1]))[:-1]
        whole, last = batches(make(cut), strict=False)

        assert (True, False) == (whole.source is not None, last.source is not None)
        assert member("b.bin", LARGE[:-1]) == bytes(last.raw(int(last.block.members.start[0]), int(last.block.members.end[0])))

    def test_its_raw_bytes_are_whole(self, make: Callable[..., Path]):
        found = batches(make((member("a.txt", b"1") + member("b.txt", b"2"))[:-100]), strict=False)

        assert [(True, 1), (False, 1)] == [(batch.source is not None, len(batch)) for batch in found]
        assert [member("a.txt", b"1"), member("b.txt", b"2")] == [
            bytes(each.raw(at, at + 1024)) for each, at in zip(found, (0, 1024), strict=True)
        ]

    def test_a_compressed_shard_has_no_bytes_to_copy_from(self, make: Callable[..., Path]):
        assert plain(URL(str(make(gzip.compress(member("a.bin", LARGE) + END), "a.tar.gz")))) is None


class TestChanges:
    def test_a_file_that_changes_while_its_bytes_are_copied_is_an_error(self, make: Callable[..., Path]):
        path = make(member("a.bin", LARGE) + END)
        source = HeldTar(URL(str(path)))
        os.truncate(path, 1024)
        with pytest.raises(ChangedError):
            source.read(512, 512 + len(LARGE))
        with pytest.raises(ChangedError):
            source.check()

    def test_bytes_past_its_end_are_no_bytes_of_it(self, make: Callable[..., Path]):
        source = HeldTar(URL(str(make(member("a.bin", LARGE) + END))))

        assert 1024 == len(source.read(source.size - 1024, source.size))
        with pytest.raises(ChangedError, match="shorter than its headers say") as caught:
            source.read(source.size - 1024, source.size + 1)
        assert source.size - 1024 == caught.value.offset


class TestPart:
    def test_first_and_last_count_over_all_shards(self, make: Callable[..., Path]):
        urls = [URL(str(make(b"".join(member(f"{name}{n}.txt", b"1") for n in range(3)) + END, f"{name}.tar"))) for name in "xyz"]

        def found(start: int, stop: int) -> list[list[bytes]]:
            return [list(batch.block.keys) for batch in intake(urls, ReadOptions(), ReadReport(), start=start, stop=stop)]

        assert [[b"x2"], [b"y0", b"y1", b"y2"], [b"z0"]] == found(2, 7)
        assert [[b"y0", b"y1", b"y2"]] == found(3, 6)

    @pytest.mark.parametrize(("on_error", "expected"), [("raise", None), ("skip", [b"a", b"c"])])
    def test_a_damaged_shard_ends_it_or_is_listed(self, make: Callable[..., Path], on_error: str, expected: list[bytes] | None):
        good = [URL(str(make(member(f"{name}.txt", b"1") + END, f"{name}.tar"))) for name in "ac"]
        bad = URL(str(make(b"this is not a tar" * 100, "b.tar")))
        report = ReadReport()
        run = intake([good[0], bad, good[1]], ReadOptions(on_error=on_error), report)  # type: ignore[arg-type]
        if expected is None:
            assert [b"a"] == next(run).block.keys
            with pytest.raises(Exception, match="E_NOT_TAR"):
                next(run)
        else:
            assert expected == [key for batch in run for key in batch.block.keys]
            assert [(bad, "E_NOT_TAR")] == [(fault.shard, fault.code) for fault in report.skipped]


class TestPieces:
    def test_a_global_header_is_left_out_of_the_bytes_of_its_member(self, make: Callable[..., Path]):
        before, given = pax((b"comment", b"of all"), kind=b"g"), pax((b"path", b"long/a.bin"))
        data = before + given + member("a.bin", LARGE) + END
        (batch,) = batches(make(data))
        begin, end, rows = pieces(batch)

        assert [0] == np.unique(rows).tolist()
        assert given + member("a.bin", LARGE) == b"".join(
            bytes(batch.raw(*span)) for span in zip(begin.tolist(), end.tolist(), strict=True)
        )

    def test_what_stands_before_the_global_header_stays(self, make: Callable[..., Path]):
        link, of_all = member("././@LongLink", b"long/a.bin\0", b"L"), pax((b"comment", b"of all"), kind=b"g")
        (batch,) = batches(make(link + of_all + of_all + member("x", LARGE) + END))
        begin, end, _ = pieces(batch)

        assert [(0, 1024), (3072, 3072 + 512 + len(LARGE))] == list(zip(begin.tolist(), end.tolist(), strict=True))
        assert link + member("x", LARGE) == b"".join(bytes(batch.raw(*span)) for span in zip(begin.tolist(), end.tolist(), strict=True))

    def test_some_rows_are_the_pieces_of_these(self, make: Callable[..., Path]):
        data = member("a.bin", b"1") + pax((b"comment", b"x"), kind=b"g") + member("b.bin", b"2") + member("c.bin", b"3") + END
        (batch,) = (Batch(block) for block in stream.blocks(str(make(data))))
        whole = [column.tolist() for column in pieces(batch)]

        assert [[column[at] for at in (1, 2)] for column in whole] == [column.tolist() for column in pieces(batch, np.array([1, 2]))]
        assert [0, 1, 2] == whole[2]

    def test_ranges_that_touch_are_one(self):
        begin, end = np.array([0, 5, 9, 20]), np.array([5, 9, 12, 30])

        assert [([], []), ([0], [5]), ([0], [9]), ([0], [12]), ([0, 20], [12, 30])] == [
            tuple(each.tolist() for each in ranges(begin[:count], end[:count])) for count in range(5)
        ]
