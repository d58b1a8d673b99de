"""Large shards worked on as ranges of records: what is written, met and told is what one task makes of the whole shard."""

from __future__ import annotations

import json
import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tarviz
from tarviz import stores
from tarviz.commands.convert import convert, ranges
from tarviz.commands.convert.recipe import ConversionProgress, Recipe
from tarviz.commands.convert.tasks import ShardToConvert
from tarviz.model.errors import ChangedError, DataError, TarvizWarning, UsageError
from tarviz.model.types import URL
from tarviz.ops import Chain
from tarviz.outputs import source_entry
from tarviz.read import sidecar
from tarviz.read.indexed import dividing_index
from tarviz.read.stream import ReadOptions
from tarviz.samples import write_shard
from tarviz.selection import SelectAll
from tarviz.testing import strategies
from tarviz.testing.faults import FaultServer
from tests.pieces import small_pieces

RECIPE = Recipe(Chain(), SelectAll(), {}, True, 0, ReadOptions())
SIZES = (3, 60, 1, 25)  # records of shards: one is large beside the others, one small


def records(count: int, seed: int, damaged: int = -1) -> list[tuple[str, dict[str, bytes]]]:
    rng = np.random.default_rng(seed)
    labels = [b"cat" if at == damaged else b"%d" % rng.integers(300) for at in range(count)]
    return [(f"s{seed}/k{at:04d}", {"txt": rng.bytes(int(rng.integers(4000))), "cls": label}) for at, label in enumerate(labels)]


def source(path: Path | str) -> ShardToConvert:
    url = URL(str(path))
    return ShardToConvert(0, url, {"number": 0, **source_entry(stores.of(url).stat(url))})


def encoded(shard: ShardToConvert, recipe: Recipe = RECIPE) -> tuple[bytes, list[int], Any]:
    """Framed Examples, numbers of records, and what reading counts."""
    progress = ConversionProgress(lambda size: None)
    data, numbers = b"", []
    with closing(recipe.batches(shard.url, progress, shard.start, shard.part)) as batches:
        for batch in batches:
            data += b"".join(batch.frames.buffers())
            numbers += batch.numbers.tolist()
    if shard.part is not None:
        progress.settle(shard.part)
    return data, numbers, progress.report


@pytest.fixture
def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for at, count in enumerate(SIZES):
        (tmp_path / "in" / f"{at}.tar").write_bytes(strategies.shard(records(count, at)))
    return tmp_path


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Pieces of 8 KiB; how many shards were cut in how many ranges by each run."""
    return small_pieces(monkeypatch, 8 << 10)


def written(folder: str) -> dict[str, Any]:
    """Names and bytes of all files, manifests as what they say."""
    files = sorted(Path(folder).iterdir())
    return {path.name: json.loads(path.read_text()) if path.suffix == ".json" else path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("range")


class TestRanges:
    @given(st.lists(st.lists(st.integers(0, 2000), min_size=1, max_size=3), max_size=30), st.integers(0, 40), st.integers(1, 20_000))
    @settings(max_examples=60)
    @pytest.mark.matrix
    def test_together_they_are_the_shard(self, folder: Path, sizes: list[list[int]], start: int, size: int):
        content = [(f"k{at}", {f"f{number}": bytes(each) for number, each in enumerate(own)}) for at, own in enumerate(sizes)]
        path = folder / "a.tar"
        path.write_bytes(strategies.shard(content))
        whole = replace(source(path), start=min(start, len(content)))

        parts = [replace(whole, part=part) for part in ranges.ranges(whole, ReadOptions(), size)]

        if not parts:
            assert whole.start == len(content) or not dividing_index(whole.url, ReadOptions())
            return
        data, numbers, report = encoded(whole)
        found = [encoded(part) for part in parts]
        assert data == b"".join(each for each, _, _ in found)
        assert numbers == [number for _, each, _ in found for number in each]
        assert (report.records, report.shards) == tuple(sum(getattr(each, name) for _, _, each in found) for name in ("records", "shards"))
        assert whole.start or report.bytes == sum(each.bytes for _, _, each in found)

    @pytest.mark.parametrize("name", ["gzip", "truncated", "split"])
    def test_none_where_reading_all_of_it_may_give_something_else(self, tmp_path, name):
        import gzip

        data = strategies.shard(records(9, 0))
        content = {"gzip": gzip.compress(data), "truncated": data[:9000], "split": strategies.shard([*records(4, 0), *records(1, 0)])}
        (tmp_path / "a.tar").write_bytes(content[name])

        assert [] == ranges.ranges(source(tmp_path / "a.tar"), ReadOptions(), 1)

    @pytest.mark.parametrize("options", [{"group": "shard"}, {"keys": ("s0/k0001",)}, {"max_member_bytes": 1000}], ids=str)
    def test_none_where_numbers_do_not_say_what_is_read(self, shards, options):
        assert [] == ranges.ranges(source("in/1.tar"), ReadOptions(**options), 4000)

    def test_a_shard_that_is_not_what_its_index_said_is_an_error(self, shards):
        whole = source("in/1.tar")
        first, *_ = ranges.ranges(whole, ReadOptions(), 9000)

        for part in (replace(first, end=first.end + 512), replace(first, stop=first.stop + 1), replace(first, last=True)):
            with pytest.raises(ChangedError, match="where the index says"):
                encoded(replace(whole, part=part))
        with open("in/1.tar", "ab") as file:
            file.write(bytes(512))
        with pytest.raises(ChangedError, match="changed while"):
            encoded(replace(whole, part=first))

    def test_a_shard_far_away_is_cut_by_the_sidecar_beside_it(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sidecar, "_WORTH", 0)
        write_shard(tmp_path / "a.tar", records(90, 0))
        with FaultServer() as server:
            whole = source(server.put("/a.tar", tmp_path / "a.tar"))
            assert [] == ranges.ranges(whole, ReadOptions(), 40_000)
            server.put("/a.idx", tarviz.index(tmp_path / "a.tar", cache=False).shards[0].to_dali().encode())

            parts = [replace(whole, part=part) for part in ranges.ranges(whole, ReadOptions(), 40_000)]

            assert len(parts) > 2
            assert encoded(whole)[0] == b"".join(encoded(part)[0] for part in parts)


CASES: dict[str, dict[str, Any]] = {
    "each": {"out": "t-{}.tfrecord"},
    "size": {"out": "t-{:03d}.tfrecord", "max_shard_size": "17kB"},
    "one": {"out": "t.tfrecord"},
    "chain": {"out": "t-{}.tfrecord", "chain": "keep(txt)", "select": {"text": "txt"}, "compression": "gzip"},
    "gzip": {"out": "t.tfrecord", "max_shard_size": "30kB", "compression": "gzip"},
}


class TestWorkers:
    @pytest.mark.matrix
    @pytest.mark.parametrize("options", CASES.values(), ids=CASES)
    def test_two_write_what_one_does(self, shards, cuts, options):
        options = dict(options)
        out = options.pop("out")
        one = convert("in/", f"one/{out}", num_workers=1, **options)
        assert [(0, 0)] == cuts

        two = convert("in/", f"two/{out}", num_workers=2, **options)

        assert cuts[1][0] >= 1
        assert cuts[1][1] > 4
        assert written("one") == written("two")
        assert one.report.to_dict() == two.report.to_dict()

    @pytest.mark.parametrize("piece", [1, 700, 1500, 2600, 5000, 12_000, 30_000])
    @pytest.mark.matrix
    def test_one_shard_is_shared_wherever_it_is_cut(self, shards, cuts, monkeypatch, piece):
        monkeypatch.setattr(ranges, "PIECE", piece)
        convert("in/1.tar", "one/t-{}.tfrecord", num_workers=1)

        convert("in/1.tar", "two/t-{}.tfrecord", num_workers=2)

        assert cuts[-1][1] > 1
        assert written("one") == written("two")

    @pytest.mark.matrix
    def test_for_more_workers_smaller_shards_are_cut(self, shards, cuts):
        for count in (2, 4):
            convert("in/", f"{count}/t-{{}}.tfrecord", num_workers=count)

        assert [1, 2] == [number for number, _ in cuts]
        assert written("2") == written("4")

    @pytest.mark.matrix
    def test_shards_of_equal_size_are_left_whole_where_each_has_an_output(self, shards, cuts):
        for at in range(4):
            (shards / "in" / f"{at}.tar").write_bytes(strategies.shard(records(40, 0)))

        convert("in/", "two/t-{}.tfrecord", num_workers=2)

        assert [(0, 0)] == cuts

    @pytest.mark.parametrize("out", ["t-{}.tfrecord", "t.tfrecord"])
    @pytest.mark.matrix
    def test_an_error_in_a_range_is_that_of_the_shard(self, shards, cuts, out):
        (shards / "in" / "1.tar").write_bytes(strategies.shard(records(60, 1, damaged=33)))
        found = []
        for count in (1, 2):
            with pytest.raises(DataError, match="k0033") as caught:
                convert("in/", f"{count}/{out}", num_workers=count)
            found.append((str(caught.value), written(str(count))))

        assert cuts[1][1] > 4
        assert found[0] == found[1]

    @pytest.mark.matrix
    def test_skipped_records_are_reported_in_their_order(self, shards, cuts):
        for at in (0, 1):
            (shards / "in" / f"{at}.tar").write_bytes(strategies.shard(records(SIZES[at], at, damaged=2)))
        found = []
        for count in (1, 2):
            with pytest.warns(TarvizWarning, match="E_DECODE"):
                found.append(convert("in/", f"{count}/t-{{}}.tfrecord", num_workers=count, on_error="skip"))

        assert cuts[1][1] > 4
        assert ["s0/k0002", "s1/k0002"] == [fault.key for fault in found[1].report.skipped]
        assert found[0].report.to_dict() == found[1].report.to_dict()
        assert written("1") == written("2")


class TestResume:
    @pytest.mark.matrix
    @pytest.mark.parametrize("out", ["t-{}.tfrecord", "t.tfrecord"])
    def test_what_is_missing_is_made_again_to_the_same_bytes(self, shards, cuts, out):
        options: dict[str, Any] = {} if "{" in out else {"max_shard_size": "17kB"}
        first = convert("in/", f"out/{out}", num_workers=2, **options)
        before = written("out")
        os.unlink(first[1])
        if options:  # an output that begins in the middle of the large shard
            assert 0 < before[Path(first[2]).name + ".manifest.json"]["sources"][0]["first"] < 60

        again = convert("in/", f"out/{out}", num_workers=2, resume=True, **options)

        assert cuts[1][1] > 4
        assert [True, False] == [each.kept for each in again.outputs[:2]]
        assert before == written("out")

    def test_existing_outputs_are_refused_before_any_work(self, shards, cuts):
        Path("t-2.tfrecord").write_bytes(b"mine")

        with pytest.raises(UsageError, match="of that name"):
            convert("in/", "t-{}.tfrecord", num_workers=2, exists="error")

        assert b"mine" == Path("t-2.tfrecord").read_bytes()
        assert not Path("t-1.tfrecord").exists()
