"""Where the records of a pass lie: what stands there in the files is what reading gives."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarviz
from tarviz.model.errors import SchemaError, UsageError
from tarviz.model.types import URL, to_text
from tarviz.ops.random_draws import draws
from tarviz.pipeline import Pipeline
from tarviz.read.stream import ReadReport
from tarviz.runners.plans import ReaderPlan
from tarviz.runners.shares import Piece, ShareReader
from tarviz.runners.tf.served import ServedPlaces, places
from tarviz.samples import write_shard
from tarviz.testing.strategies import numbered_records

FIELDS = {"txt": ("txt",), "cls": ("cls",)}


@pytest.fixture
def urls(tmp_path: Path) -> str:
    """Two shards of 130 and 3 records; texts are of 0 to 699 bytes."""
    for at, (first, count) in enumerate(((0, 130), (130, 3))):
        write_shard(
            tmp_path / f"{at}.tar", [(f"r{n:03d}", {"txt": b"t" * (n * 37 % 700), "cls": b"%d" % n}) for n in range(first, first + count)]
        )
    return str(tmp_path / "{0..1}.tar")


def found(urls: Any, pieces: list[Piece] | None = None, fields: dict[str, tuple[str, ...]] = FIELDS, *, skip: bool = False) -> ServedPlaces:
    pipeline = urls if isinstance(urls, Pipeline) else Pipeline(urls)
    given = ReaderPlan(pipeline, ShareReader()).pieces(0, 0) if pieces is None else pieces
    return places(pipeline, fields, given, 4, ReadReport(), skip=skip)


def read(given: ServedPlaces) -> list[tuple[str, int, list[bytes]]]:
    """Key, number and fields of each record, read as a worker does: run by run."""
    records = []
    for run in range(len(given)):
        file = given.files[given.piece[run]]
        data = Path(file.path).read_bytes()
        assert (len(data), str(file.url)) == (file.size, file.path)
        held = data[given.begin[run] : given.begin[run] + given.length[run]]
        for each in range(given.first[run], given.first[run + 1]):
            parts = zip(given.offset[each].tolist(), given.size[each].tolist(), strict=True)
            records.append((to_text(given.keys[each]), int(given.index[each]), [held[at : at + size] for at, size in parts]))
    return records


def test_every_field_is_where_it_is_said_to_be(urls: str) -> None:
    given = found(urls)

    assert [(each.key, each.index, [bytes(each["txt"]), bytes(each["cls"])]) for each in tarviz.records(urls)] == read(given)
    assert ([0, 64, 128, 130, 133], [0, 0, 0, 1]) == (given.first.tolist(), given.piece.tolist())
    assert given.lacking is None


def test_pieces_are_parts_of_shards(urls: str) -> None:
    first, second = (URL(urls.replace("{0..1}", str(at))) for at in range(2))
    pieces = [Piece(second, start=1), Piece(first, start=7, stop=9), Piece(second, start=2, stop=99)]

    assert ["r131", "r132", "r007", "r008", "r132"] == [key for key, _, _ in read(found(urls, pieces))]
    assert [0, 1, 2] == found(urls, pieces).piece.tolist()


@pytest.mark.parametrize("chain", [None, "random_crop(txt, (2, 2))"])
def test_each_record_has_the_numbers_that_it_draws(urls: str, chain: str | None) -> None:
    pipeline = Pipeline(urls, chain, seed=3)
    given = found(pipeline)

    assert (133, max(1, pipeline.chain.draws)) == given.draws.shape
    expected = draws(pipeline.chain, given.keys, 3, 4) if chain else np.zeros((133, 1))
    np.testing.assert_array_equal(expected, given.draws)


def test_fields_that_are_empty_are_read_too(make: Callable[..., Path]) -> None:
    url = make([("a", {"txt": b""}), ("b", {"txt": b""})])

    assert [("a", 0, [b""]), ("b", 1, [b""])] == read(found(url, fields={"txt": ("txt",)}))


@pytest.mark.parametrize("skip", [True, False])
def test_a_record_that_lacks_a_field_is_left_out_or_ends_them(make: Callable[..., Path], skip: bool) -> None:
    url = make([(f"r{n}", {"cls": b"1", "txt": b"t"} if n not in (2, 4) else {"cls": b"1"}) for n in range(6)])
    other = make([("s0", {"cls": b"1", "txt": b"t"})], "b.tar")
    pipeline, report = Pipeline([str(url), str(other)]), ReadReport()
    given = places(pipeline, FIELDS, ReaderPlan(pipeline, ShareReader()).pieces(0, 0), 0, report, skip=skip)

    assert (["r0", "r1", "r3", "r5", "s0"] if skip else ["r0", "r1"]) == [key for key, _, _ in read(given)]
    assert (["r2", "r4"] if skip else []) == [fault.key for fault in report.skipped]
    assert (None if skip else "r2") == (given.lacking and given.lacking.key)
    assert skip or isinstance(given.lacking, SchemaError)


def test_without_a_record_there_is_no_run(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.tar", [("a", {"cls": b"1"})])
    given = found(tmp_path / "a.tar", [Piece(URL(str(tmp_path / "a.tar")), start=1)])

    assert (0, [], [0]) == (len(given), given.keys, given.first.tolist())


class TestOtherShards:
    def refused(self, pipeline: Pipeline, **piece: Any) -> None:
        with pytest.raises(UsageError, match=r"reads plain local tars by their index.*a\.tar"):
            found(pipeline, [Piece(URL(pipeline.urls[0]), **piece)], {"cls": ("cls",)})

    def test_are_refused(self, make: Callable[..., Path]) -> None:
        url = make(numbered_records(20, payload=b"x"))
        packed = url.with_name("a.tar.gz")
        packed.write_bytes(gzip.compress(url.read_bytes()))

        self.refused(Pipeline(packed))
        self.refused(Pipeline(url, where="cls < 4"))
        self.refused(Pipeline(url, keys=["train/n00000000"]))
        self.refused(Pipeline(url, group="shard"))
        self.refused(Pipeline(url), only=(3,))
        self.refused(Pipeline(url), share=1, of=2)
        assert 20 == len(read(found(url, fields={"cls": ("cls",)})))

    def test_and_more_places_than_a_graph_holds(self, urls: str, monkeypatch: pytest.MonkeyPatch) -> None:
        size = 133 * (4 + 2 * 8 + 2 * 8 + 8)
        monkeypatch.setattr("tarviz.runners.tf.served._MOST", size)
        assert 133 == len(found(urls).keys)
        monkeypatch.setattr("tarviz.runners.tf.served._MOST", size - 1)

        with pytest.raises(UsageError, match="places of 133 records are 0 MiB"):
            found(urls)
