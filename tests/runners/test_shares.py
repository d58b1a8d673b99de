"""Who reads what: each record once an epoch over all ranks and workers, and an error where a rank would get nothing."""

from __future__ import annotations

import io
import itertools
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tarviz
from tarviz.model.errors import UsageError
from tarviz.model.types import URL
from tarviz.pipeline import Pipeline
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.runners import shares
from tarviz.runners.plans import ReaderPlan, Trail
from tarviz.runners.shares import Piece, ShareReader, pieces, trusted_index, world_of
from tarviz.runners.walk import Walk
from tests.read.tars import END, member, pax

pytestmark = pytest.mark.filterwarnings("ignore:W_EMPTY")

WHOLE = b"".join(member(f"{key}.cls", b"1") for key in "abc")
NUL = pax((b"path", b"0.cls\0.sh")) + member("x", b"1")


def counted(folder: Path, sizes: list[int], suffix: str = "tar") -> Pipeline:
    """Shards of so many records; `cls` counts from 0 over all of them."""
    numbers = itertools.count()
    for at, size in enumerate(sizes):
        with tarfile.open(folder / f"n-{at}.{suffix}", "w:gz" if suffix.endswith("gz") else "w") as tar:
            for number in itertools.islice(numbers, size):
                data = b"%d" % number
                info = tarfile.TarInfo(f"r{number:04d}.cls")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return Pipeline([folder / f"n-{at}.{suffix}" for at in range(len(sizes))], "decode(cls)", select="cls", seed=3)


def read(pipeline: Pipeline, reader: ShareReader, epoch: int, shuffle: int = 0, even: bool = False, reshare: bool = False) -> list[int]:
    plan = ReaderPlan(pipeline, reader, shuffle, even, reshare)
    return [int(value) for _, value in Walk(pipeline, shuffle=shuffle).values(plan, epoch, ReadReport(), Trail())]


def readers(world: int, workers: int) -> list[ShareReader]:
    return [ShareReader(rank, world, worker, workers) for rank in range(world) for worker in range(workers)]


def numbers(piece: Piece) -> list[int]:
    """Which records of a shard of 40 a piece stands for."""
    return [piece.number(place) for place in range(piece.length(40) or 0)]


class TestAPiece:
    """Whichever way it is written down, it is a list of record numbers."""

    KINDS = {
        "whole": (Piece(URL("a.tar")), range(40)),
        "range": (Piece(URL("a.tar"), 4, 30), range(4, 30)),
        "to the end": (Piece(URL("a.tar"), 35), range(35, 40)),
        "beyond it": (Piece(URL("a.tar"), 35, 60), range(35, 40)),
        "these": (Piece(URL("a.tar"), only=(3, 5, 8, 20)), (3, 5, 8, 20)),
        "chosen": (Piece(URL("a.tar"), 4, 30, chosen=np.arange(0, 40, 3)), range(6, 30, 3)),
    }

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_part_of_it_is_a_slice(self, kind: str) -> None:
        piece, expected = self.KINDS[kind]

        assert list(expected) == numbers(piece)
        for low in range(len(expected) + 2):
            assert list(expected)[low:] == numbers(piece.part(low, None))
            for high in range(low, len(expected) + 3):
                assert list(expected)[low:high] == numbers(piece.part(low, high)), (low, high)

    @pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "chosen"])
    def test_it_has_its_records_and_no_others(self, kind: str) -> None:
        piece, expected = self.KINDS[kind]

        assert list(expected) == [record for record in range(40) if piece.has(record)]

    def test_of_a_shard_that_is_shared_it_has_every_nth_turn(self) -> None:
        piece = Piece(URL("a.tar"), 3, 70, share=1, of=2)

        assert [*range(16, 32), *range(48, 64)] == [record for record in range(90) if piece.has(record)]

    @pytest.mark.parametrize("kind", KINDS)
    def test_what_is_behind_a_record_are_the_numbers_from_it_on(self, kind: str) -> None:
        piece, expected = self.KINDS[kind]

        for record in range(42):
            assert [number for number in expected if number >= record] == numbers(piece.behind(record)), record


class TestEachRecord:
    @pytest.mark.parametrize(
        ("world", "workers", "sizes"),
        list(itertools.product([1, 2, 4], [1, 2, 5], [[47], [30, 17], [20, 5, 9, 14], [7] * 11, [1, 6, 3, 40, 0]])),
        ids=str,
    )
    def test_comes_once_an_epoch(self, tmp_path: Path, world: int, workers: int, sizes: list[int]) -> None:
        pipeline = counted(tmp_path, sizes)
        orders = []
        for epoch in range(3):
            parts = [read(pipeline, reader, epoch, shuffle=20) for reader in readers(world, workers)]
            orders.append(parts)

            assert list(range(sum(sizes))) == sorted(itertools.chain.from_iterable(parts))
        assert all(one != other for one, other in itertools.combinations(orders, 2))

    def test_shards_of_a_rank_do_not_depend_on_its_workers(self, tmp_path: Path) -> None:
        pipeline = counted(tmp_path, [3] * 9)

        def of(rank: int, workers: int) -> set[str]:
            return {piece.url for worker in range(workers) for piece in pieces(pipeline, ShareReader(rank, 2, worker, workers))}

        assert of(0, 1) == of(0, 3) == {str(tmp_path / f"n-{at}.tar") for at in range(0, 9, 2)}
        assert of(1, 1) == of(1, 2)

    def test_of_compressed_shards_workers_take_turns(self, tmp_path: Path) -> None:
        pipeline = counted(tmp_path, [100, 30], "tar.gz")
        parts = [read(pipeline, reader, 0) for reader in readers(1, 5)]

        assert all(parts)
        assert list(range(130)) == sorted(itertools.chain.from_iterable(parts))

    def test_an_index_of_a_damaged_or_split_shard_is_not_relied_on(self, tmp_path: Path) -> None:
        path = tmp_path / "s.tar"
        with tarfile.open(path, "w") as tar:
            for name in ("a.cls", "b.cls", "a.txt"):
                info = tarfile.TarInfo(name)
                info.size = 1
                tar.addfile(info, io.BytesIO(b"1"))

        with pytest.raises(UsageError, match="ranks"):
            pieces(Pipeline(path), ShareReader(0, 2))

    @pytest.mark.parametrize(
        ("data", "strict", "relied"),
        [
            (WHOLE + END, True, True),
            (WHOLE, True, False),  # its last record may lack a member
            (WHOLE, False, True),
            (WHOLE + member("d.bin", bytes(2000))[:-1024], True, False),
            (WHOLE + member("d.bin", bytes(2000))[:-1024], False, False),
            (WHOLE + member("a.txt", b"1") + END, True, False),  # a second record of the same key
            (NUL + WHOLE + END, True, False),  # strict reading passes over the first member, and counts from the second
            (NUL + WHOLE + END, False, True),
        ],
        ids=["whole", "no end", "no end, lenient", "cut", "cut, lenient", "split", "a NUL in a name", "a NUL in a name, lenient"],
    )
    def test_is_read_by_turns_where_an_index_would_not_tell_of_the_damage(
        self, tmp_path: Path, data: bytes, strict: bool, relied: bool
    ) -> None:
        (tmp_path / "a.tar").write_bytes(data)
        pipeline = Pipeline(tmp_path / "a.tar", strict=strict)

        assert relied == (trusted_index(URL(str(tmp_path / "a.tar")), pipeline.options) is not None)
        assert [(0, 1 if relied else 2), (0 if relied else 1, 1 if relied else 2)] == [
            (piece.share, piece.of) for worker in (0, 1) for piece in pieces(pipeline, ShareReader(0, 1, worker, 2))
        ]

    @pytest.mark.filterwarnings("ignore:E_LIMIT", "ignore:W_DROPPED")
    @pytest.mark.parametrize("workers", [1, 2, 3])
    @pytest.mark.parametrize(("name", "left"), [("large.cls", 60), ("README", 58)])
    def test_comes_once_where_one_too_large_is_passed_over(self, tmp_path: Path, name: str, left: int, workers: int) -> None:
        """An index has it among its numbers, or, of no record itself, its neighbours, which may have lost it."""
        content = [member(f"r{at:03d}.cls", b"%d" % at) for at in range(60)]
        content.insert(5, member(name, bytes(5000)))
        (tmp_path / "a.tar").write_bytes(b"".join(content) + END)
        pipeline = Pipeline(tmp_path / "a.tar", "decode(cls)", select="cls", on_error="skip", max_member_bytes=4000)
        alone = read(pipeline, ShareReader(), 0)
        found = [read(pipeline, reader, 0) for reader in readers(1, workers)]

        assert left == len(alone)
        assert alone == sorted(itertools.chain.from_iterable(found))

    @pytest.mark.filterwarnings("ignore:W_NAME_NUL", "ignore:E_HEADER", "ignore:W_DROPPED")
    @pytest.mark.parametrize("workers", [1, 2, 3])
    def test_comes_once_where_strict_reading_passes_over_one(self, tmp_path: Path, workers: int) -> None:
        """And over its neighbour, which may lack it: every number behind them is another in an index, which is made leniently."""
        (tmp_path / "a.tar").write_bytes(NUL + b"".join(member(f"r{at:03d}.cls", b"%d" % at) for at in range(5)) + END)
        pipeline = Pipeline(tmp_path / "a.tar", "decode(cls)", select="cls", on_error="skip")
        found = [read(pipeline, reader, 0) for reader in readers(1, workers)]

        assert [1, 2, 3, 4] == sorted(itertools.chain.from_iterable(found))


class TestCounted:
    """A piece as numbers of records, to go on in the middle of it."""

    def test_a_turn_is_the_records_that_are_read_in_it(self, tmp_path: Path) -> None:
        pipeline = counted(tmp_path, [53], "tar.gz")
        for reader in readers(1, 3):
            (piece,) = pieces(pipeline, reader)
            found = shares.count_records(piece, pipeline.options)

            assert found is not None
            assert read(pipeline, reader, 0) == list(found[0].only or ())
            assert found[1] == len(found[0].only or ())

    @pytest.mark.parametrize(
        ("wish", "known"), [({}, True), ({"where": "cls = 1"}, False), ({"keys": ["r0001"]}, False), ({"group": "shard"}, False)]
    )
    def test_an_index_does_not_tell_of_records_left_out_or_joined(self, tmp_path: Path, wish: dict[str, Any], known: bool) -> None:
        (url,) = counted(tmp_path, [5]).urls
        options = Pipeline(url, **wish).options

        assert known == (shares.count_records(Piece(URL(str(url))), options) is not None)


class TestTasks:
    @pytest.mark.parametrize(
        ("sizes", "wanted", "build", "expected"),
        [
            ([5, 1, 4], 7, True, [1, 1, 2, 1, 2, 1, 2]),
            ([5, 1, 4], 99, True, [1] * 10),
            ([5, 1, 4], 3, True, [5, 1, 4]),
            ([5, 1, 4], 2, True, [5, 5]),
            ([5, 1, 4], 0, True, [10]),
            ([5, 1, 4], 2, False, [5, 1, 4]),
            ([5, 1, 4], 7, False, [5, 1, 4]),
            ([0], 9, True, [0]),
        ],
    )
    def test_each_has_a_shard_a_part_or_several(
        self, tmp_path: Path, sizes: list[int], wanted: int, build: bool, expected: list[int]
    ) -> None:
        pipeline = counted(tmp_path, sizes)
        whole = shares.shards(pipeline)
        size = dict(zip((piece.url for piece in whole), sizes, strict=True))
        found = shares.tasks(whole, pipeline.options, wanted, build=build)
        records = [(piece.url, piece.number(at)) for task in found for piece in task for at in range(piece.length(size[piece.url]) or 0)]

        assert [(piece.url, at) for piece in whole for at in range(size[piece.url])] == records
        assert expected == [sum(piece.length(size[piece.url]) or 0 for piece in task) for task in found]


class TestARankWithout:
    def test_shards_of_its_own_is_an_error_on_every_rank(self, tmp_path: Path) -> None:
        pipeline = counted(tmp_path, [9, 9], "tar.gz")
        for rank in range(4):
            with pytest.raises(
                UsageError, match=r"2 shards cannot be shared out among 4 ranks: ranks 2 to 3 are without a shard.*tarviz index"
            ):
                pieces(pipeline, ShareReader(rank, 4))

    def test_records_is_an_error_too(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"they hold 2 record\(s\), rank 2 is without one"):
            pieces(counted(tmp_path, [2]), ShareReader(0, 3))

    @pytest.mark.parametrize("suffix", ["tar", "tar.gz"])
    def test_records_in_its_shards_is_one_when_they_were_read(self, tmp_path: Path, suffix: str) -> None:
        pipeline = counted(tmp_path, [0, 7], suffix)

        assert list(range(7)) == list(pipeline.eager(rank=1, world_size=2))
        with pytest.raises(UsageError, match="rank 0 of 2 gets no record"):
            list(pipeline.eager(rank=0, world_size=2))


class TestEven:
    @pytest.mark.parametrize(("world", "workers"), [(2, 1), (3, 2), (4, 5)])
    def test_every_rank_gets_as_many_and_each_epoch_leaves_out_others(self, tmp_path: Path, world: int, workers: int) -> None:
        pipeline = counted(tmp_path, [30, 0, 17])
        left: set[int] = set()
        for epoch in range(6):
            parts = [read(pipeline, reader, epoch, even=True) for reader in readers(world, workers)]
            sizes = [len(part) for part in parts]
            seen = sorted(itertools.chain.from_iterable(parts))

            assert sizes[:workers] * world == sizes
            assert 47 // world * world == len(seen) == len(set(seen))
            assert not left & (set(range(47)) - set(seen))
            left |= set(range(47)) - set(seen)
        assert 6 * (47 % world) == len(left)

    def test_it_needs_to_count(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="index of each shard"):
            pieces(counted(tmp_path, [5], "tar.gz"), ShareReader(0, 2), even=True)
        with pytest.raises(UsageError, match="leaves out"):
            pieces(Pipeline(tmp_path / "x.tar", on_error="skip").with_urls(counted(tmp_path, [5]).urls), ShareReader(0, 2), even=True)
        with pytest.raises(UsageError, match="evenly"):
            pieces(counted(tmp_path, [2]), ShareReader(0, 3), even=True)


class TestReshare:
    """Every epoch deals the shards out anew."""

    @given(
        sizes=st.lists(st.integers(0, 12), min_size=1, max_size=7).filter(lambda sizes: sum(sizes) > 6),
        world=st.integers(1, 5),
        workers=st.integers(1, 3),
        shuffle=st.sampled_from([0, 5]),
        seed=st.integers(0, 9),
    )
    @pytest.mark.matrix
    def test_every_record_comes_once_an_epoch(self, sizes: list[int], world: int, workers: int, shuffle: int, seed: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            pipeline = counted(Path(folder), sizes).with_seed(seed)
            for epoch in range(3):
                found: list[int] = []
                for reader in readers(world, workers):
                    with suppress(UsageError):  # a rank whose shards of this epoch are all empty
                        found += read(pipeline, reader, epoch, shuffle, reshare=True)

                assert list(range(sum(sizes))) == sorted(found)

    @pytest.mark.parametrize("sizes", [[40], [10] * 4, [5] * 8], ids=str)
    def test_a_rank_sees_the_records_of_others_in_time(self, tmp_path: Path, sizes: list[int]) -> None:
        """As one of four, after twelve epochs: by chance alone it misses one record in 32."""
        pipeline = counted(tmp_path, sizes)

        def seen(rank: int, *, reshare: bool) -> int:
            return len({number for epoch in range(12) for number in read(pipeline, ShareReader(rank, 4), epoch, reshare=reshare)})

        assert [10] * 4 == [seen(rank, reshare=False) for rank in range(4)]
        assert 30 < min(seen(rank, reshare=True) for rank in range(4))

    def test_workers_get_others_too(self, tmp_path: Path) -> None:
        pipeline = counted(tmp_path, [5] * 8)
        of_the_first = {tuple(read(pipeline, ShareReader(0, 1, 0, 4), epoch, reshare=True)) for epoch in range(6)}

        assert 3 < len(of_the_first)

    def test_even_ranks_get_as_many(self, tmp_path: Path) -> None:
        pipeline = counted(tmp_path, [30, 0, 17])
        for epoch in range(5):
            parts = [read(pipeline, reader, epoch, even=True, reshare=True) for reader in readers(4, 1)]
            seen = list(itertools.chain.from_iterable(parts))

            assert [11] * 4 == [len(part) for part in parts]
            assert 44 == len(set(seen))

    def test_without_a_shuffle_records_come_in_the_order_of_shards(self, tmp_path: Path) -> None:
        pipeline = counted(tmp_path, [5] * 8)
        found = read(pipeline, ShareReader(1, 3), 4, reshare=True)

        assert sorted(found) == found
        assert list(range(40)) == list(pipeline.eager(reshare=True))

    @pytest.mark.parametrize("sizes", [[3, 5, 7, 11], [1, 40]], ids=str)
    def test_the_length_is_that_of_the_epoch(self, tmp_path: Path, sizes: list[int]) -> None:
        pipeline = counted(tmp_path, sizes)
        for world in (1, 2, 3):
            run = pipeline.eager(rank=world - 1, world_size=world, reshare=True, repeat=2)
            lengths = [(len(run), len(list(run))) for _ in range(4)]

            assert all(told == came for told, came in lengths), lengths


CHOICE = [number for number in range(47) if number % 10 > 3]


def choosing(pipeline: Pipeline) -> Pipeline:
    return Pipeline(pipeline.urls, "decode(cls)", select="cls", where="cls % 10 > 3").choose()


class TestAChoice:
    """With `where=` the records that it chooses are shared out, and no others."""

    @pytest.mark.parametrize("suffix", ["tar", "tar.gz"])
    @pytest.mark.parametrize(("world", "workers"), [(2, 1), (3, 2), (5, 1)])
    def test_even_ranks_get_as_many_of_it(self, tmp_path: Path, world: int, workers: int, suffix: str) -> None:
        pipeline = choosing(counted(tmp_path, [30, 0, 17], suffix))
        seen: set[int] = set()
        for epoch in range(4):
            parts = [read(pipeline, reader, epoch, even=True) for reader in readers(world, workers)]
            ranks = [sum(map(len, parts[at : at + workers])) for at in range(0, len(parts), workers)]
            got = list(itertools.chain.from_iterable(parts))

            assert [len(CHOICE) // world] * world == ranks
            assert len(got) == len(set(got))
            assert not set(got) - set(CHOICE)
            seen |= set(got)
        assert set(CHOICE) == seen

    @pytest.mark.parametrize(("world", "workers"), [(1, 4), (2, 3), (5, 1), (7, 2)])
    @pytest.mark.parametrize("sizes", [[47], [30, 0, 17]], ids=str)
    def test_others_share_it_record_by_record(self, tmp_path: Path, world: int, workers: int, sizes: list[int]) -> None:
        pipeline = choosing(counted(tmp_path, sizes))
        if world == 2 and len(sizes) > 1:
            pipeline = pipeline.with_urls([url for url in pipeline.urls if "-1." not in url])

        assert CHOICE == sorted(itertools.chain.from_iterable(read(pipeline, reader, 0) for reader in readers(world, workers)))

    def test_the_length_is_that_of_the_choice(self, tmp_path: Path) -> None:
        pipeline = choosing(counted(tmp_path, [30, 17]))
        chosen = [[one for one in CHOICE if one < 30], [one for one in CHOICE if one >= 30]]

        assert len(CHOICE) == len(pipeline.eager()) == len(list(pipeline.eager()))
        assert [len(one) for one in chosen] == [len(pipeline.eager(rank=rank, world_size=2)) for rank in range(2)]
        assert [len(CHOICE) // 2] * 2 == [len(pipeline.eager(rank=rank, world_size=2, even=True)) for rank in range(2)]
        assert len(CHOICE) // 4 == len(pipeline.eager(rank=1, world_size=4, even=True))
        with pytest.raises(TypeError, match=r"len\(pipeline.eager\(\)\)"):
            len(pipeline)

    def test_a_rank_that_gets_none_of_it_is_an_error(self, tmp_path: Path) -> None:
        pipeline = Pipeline(counted(tmp_path, [9, 9]).urls, "decode(cls)", select="cls", where="cls < 4")

        assert list(range(4)) == list(pipeline.eager(rank=0, world_size=2))
        with pytest.raises(UsageError, match=r"rank 1 of 2 gets no record.*nothing in them was chosen.*even=True"):
            list(pipeline.eager(rank=1, world_size=2))
        assert [[0, 1], [2, 3]] == [list(pipeline.eager(rank=rank, world_size=2, even=True)) for rank in range(2)]


class TestWorld:
    def test_it_is_given_or_in_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("RANK", raising=False)
        monkeypatch.setenv("WORLD_SIZE", "4")
        assert (0, 1) == world_of(None, None)
        monkeypatch.setenv("RANK", "3")
        assert (3, 4) == world_of(None, None)
        assert (0, 1) == world_of(0, 1)

    @pytest.mark.parametrize("given", [(1, None), (2, 2), (-1, 2), (0, True), (0.0, 1)])
    def test_what_cannot_be_is_refused(self, given: tuple[object, object]) -> None:
        with pytest.raises(UsageError, match="go together"):
            world_of(*given)  # type: ignore[arg-type]

    def test_words_in_the_environment_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RANK", "first")
        monkeypatch.setenv("WORLD_SIZE", "4")

        with pytest.raises(UsageError, match="RANK='first'"):
            world_of(None, None)


class TestTheIndex:
    def test_lets_ranks_share_one_shard_wherever_it_is(self, tmp_path: Path) -> None:
        pipeline = counted(tmp_path, [41])
        tarviz.index(pipeline.urls)

        assert [10, 10, 10, 11] == [sum(piece.length(41) or 0 for piece in pieces(pipeline, ShareReader(rank, 4))) for rank in range(4)]
        assert [10, 10, 10, 11] == [len(pipeline.eager(rank=rank, world_size=4)) for rank in range(4)]
        assert [10] * 4 == [len(pipeline.eager(rank=rank, world_size=4, even=True)) for rank in range(4)]

    def test_tells_how_many_records_the_shards_of_a_rank_have(self, tmp_path: Path) -> None:
        pipeline = counted(tmp_path, [3, 5, 7, 11])
        tarviz.index(pipeline.urls)

        assert [10, 16] == [len(pipeline.eager(rank=rank, world_size=2)) for rank in range(2)]
        assert [10, 16] == [len(list(pipeline.eager(rank=rank, world_size=2))) for rank in range(2)]


@pytest.mark.parametrize(
    "data", [END + member("a.txt", b"1") + END, bytes(512) + member("a.txt", b"1") + END], ids=["behind the end", "one zero block"]
)
def test_a_shard_that_strict_reading_refuses_before_its_first_record_is_read_by_every_worker(tmp_path: Path, data: bytes) -> None:
    """Its index has no record to share out, and the error would be nobody's."""
    (tmp_path / "a.tar").write_bytes(data)
    strict, lenient = (Pipeline(tmp_path / "a.tar", strict=strict) for strict in (True, False))

    assert [1, 1] == [len(pieces(strict, ShareReader(0, 1, worker, 2))) for worker in (0, 1)]
    assert [0, 0] == [len(pieces(lenient, ShareReader(0, 1, worker, 2))) for worker in (0, 1)]


@pytest.mark.parametrize("stop", [40, 60, 99, None])
def test_a_share_of_a_part_is_counted_by_its_index(tmp_path: Path, stop: int | None):
    counted(tmp_path, [60])
    piece = Piece(URL(str(tmp_path / "n-0.tar")), start=5, stop=stop, share=1, of=2)
    found = shares.count_records(piece, ReadOptions())

    assert found is not None
    own = [number for number in range(5, min(stop or 60, 60)) if piece.has(number)]
    assert (own, len(own)) == (list(found[0].only or ()), found[1])
    assert 16 <= len(own) < 55
