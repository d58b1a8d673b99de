"""Batches whose values were written where they stand: the same as those put together, whoever holds what."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz.pipeline import Pipeline
from tarviz.runners.batch_memory import BatchMemory, BatchRows
from tarviz.runners.eager import Eager
from tarviz.samples import write_shard

CHAIN = "decode(jpg)|random_crop(jpg, (60, 70))|resize(jpg, (48, 40))|flip(jpg)"
FLOAT = f"{CHAIN}|convert(jpg, float32)|normalize(jpg, [0.1, 0.2, 0.3], 0.25)"


def photo(seed: int) -> bytes:
    stream = io.BytesIO()
    noise = np.random.default_rng(seed).integers(0, 256, (20, 30, 3), np.uint8)
    Image.fromarray(noise).resize((90 + seed % 7, 80)).save(stream, "JPEG")
    return stream.getvalue()


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A hundred photos; numbers 33 and 71 are damaged."""
    path = tmp_path_factory.mktemp("rows") / "p.tar"
    write_shard(path, ((f"{n:03d}", {"jpg": photo(n) if n not in (33, 71) else b"\xff\xd8 no", "cls": b"%d" % n}) for n in range(100)))
    return str(path)


def single(pipeline: Pipeline) -> list[Any]:
    return [value[0] if isinstance(value, tuple) else value for value in pipeline.eager()]


@pytest.mark.parametrize("num_workers", [0, 3])
@pytest.mark.parametrize("chain", [CHAIN, FLOAT])
@pytest.mark.parametrize("size", [1, 7, 16, 30])
def test_batches_hold_the_values_of_their_records(shard: str, chain: str, size: int, num_workers: int) -> None:
    pipeline = Pipeline(shard, f"{chain}|decode(cls)", select=("jpg", "cls"), on_error="skip", seed=3)
    expected = single(pipeline)

    made = list(pipeline.eager(batch=size, num_workers=num_workers))  # all of them held

    assert 98 == len(expected)
    np.testing.assert_array_equal(np.concatenate([images for images, _ in made]), np.stack(expected))
    assert [n for n in range(100) if n not in (33, 71)] == np.concatenate([labels for _, labels in made]).tolist()
    assert {image.dtype for image in expected} == {images.dtype for images, _ in made}


def test_what_is_taken_out_of_a_batch_stays_as_it_was(tmp_path: Path) -> None:
    write_shard(tmp_path / "p.tar", ((f"{n:03d}", {"jpg": photo(n)}) for n in range(120)))
    pipeline = Pipeline(str(tmp_path / "p.tar"), CHAIN.replace("(48, 40)", "(300, 310)"), select="jpg")
    expected = single(pipeline)

    held = [batch[2] for batch in pipeline.eager(batch=8, num_workers=2)]  # and the rest of the batch is let go

    for at, image in enumerate(held):
        np.testing.assert_array_equal(expected[8 * at + 2], image)


def test_memory_is_used_again_where_nobody_holds_a_batch(tmp_path: Path) -> None:
    pytest.importorskip("simplejpeg", reason="simplejpeg: pip install 'tarviz[fast]'")
    pytest.importorskip("cykooz_resizer", reason="cykooz-resizer: pip install 'tarviz[fast]'")
    write_shard(tmp_path / "p.tar", ((f"{n:03d}", {"jpg": photo(n)}) for n in range(200)))
    pipeline = Pipeline(str(tmp_path / "p.tar"), CHAIN.replace("(48, 40)", "(300, 310)"), select="jpg")

    places = [batch.__array_interface__["data"][0] for batch in pipeline.eager(batch=8, num_workers=2)]

    assert 25 == len(places)
    assert len(set(places)) < 15


def test_two_iterations_do_not_meet(shard: str) -> None:
    pipeline = Pipeline(shard, CHAIN, select="jpg", on_error="skip")
    expected = np.stack(single(pipeline))
    eager = Eager(pipeline, batch=10, num_workers=2)
    eager.set_epoch(0)

    pairs = list(zip(eager, eager, strict=True))

    for side in zip(*pairs, strict=True):
        np.testing.assert_array_equal(expected, np.concatenate(side))


class TestBatchRows:
    def rows(self) -> BatchRows:
        return BatchRows(3, frozenset({"a"}), BatchMemory())

    def test_rows_offered_make_the_batch(self) -> None:
        rows = self.rows()
        first = rows.offers(3)
        assert first is not None
        first.note({"a": np.zeros((64, 64), np.float32), "b": np.zeros((64, 64))})
        second = rows.offers(3)
        assert second is not None
        values = [room["a"] for room in second.rooms]

        assert rows.begin()([np.ones(3)]) is None
        whole = rows.begin()
        assert whole([values[0], values[2]]) is None
        assert whole(values[1:]) is None
        made = whole(values)
        assert made is not None
        assert np.shares_memory(made, values[2])
        assert ((3, 64, 64), [set(), set(), set(), {"a"}, {"a"}, {"a"}]) == (made.shape, [set(room) for room in first.rooms + second.rooms])

    def test_small_values_and_other_fields_are_offered_none(self) -> None:
        rows = self.rows()
        first = rows.offers(3)
        assert first is not None
        first.note({"a": np.zeros(3), "b": np.zeros(10_000)})
        second = rows.offers(3)

        assert second is not None
        assert [{}] * 3 == second.rooms
        assert BatchRows(3, frozenset(), BatchMemory()).offers(2) is None

    def test_after_a_record_is_left_out_none_are_offered(self) -> None:
        rows = self.rows()
        rows.offers(2)
        rows.leave_out()

        assert rows.offers(2) is None
        assert rows.begin()([np.ones(3)]) is None
