"""Records by number: over all shards, several in one pass, for samplers and Grain."""

from __future__ import annotations

import gzip
import io
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarviz.model.errors import ChangedError, DataError, TarvizError, UsageError
from tarviz.pipeline import Pipeline
from tarviz.testing.faults import FaultServer

pytestmark = pytest.mark.filterwarnings("ignore:W_EMPTY")


@pytest.fixture
def urls(tmp_path: Path) -> list[str]:
    """Three shards of 10, 0 and 25 records; `cls` counts from 0, `bin` makes them large enough to lie apart."""
    number = 0
    for at, size in enumerate((10, 0, 25)):
        with tarfile.open(tmp_path / f"n-{at}.tar", "w") as tar:
            for _ in range(size):
                for ext, data in {"cls": b"%d" % number, "bin": bytes(100_000)}.items():
                    info = tarfile.TarInfo(f"r{number:04d}.{ext}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
                number += 1
    return [str(tmp_path / f"n-{at}.tar") for at in range(3)]


def numbers(urls: Any) -> Pipeline:
    return Pipeline(urls, "decode(cls)", select="cls")


class TestNumbers:
    def test_records_are_counted_over_all_shards(self, urls: list[str]) -> None:
        view = numbers(urls).indexed()

        assert 35 == len(view) == len(list(view))
        assert list(range(35)) == [view[at] for at in range(35)] == list(view)
        assert (34, 0) == (view[-1], view[np.int64(-35)])
        assert 7 in view
        assert "35 records" in repr(view)

    @pytest.mark.parametrize("at", [[3, 33, 10, 3, -1], np.array([12, 2]), (5,), [], range(20, 8, -3)], ids=str)
    def test_several_come_as_asked_for(self, urls: list[str], at: Any) -> None:
        assert [int(one) % 35 for one in at] == numbers(urls).indexed()[at]

    def test_slices_are_lists(self, urls: list[str]) -> None:
        assert list(range(35))[5:30:6] == numbers(urls).indexed()[5:30:6]

    @pytest.mark.parametrize("at", [35, -36, [0, 35]], ids=str)
    def test_others_are_index_errors(self, urls: list[str], at: Any) -> None:
        with pytest.raises(IndexError, match="of 35"):
            numbers(urls).indexed()[at]
        with pytest.raises(TypeError):
            numbers(urls).indexed()["r0001"]  # type: ignore[call-overload]

    def test_values_and_draws_are_those_of_the_eager_runner(self, urls: list[str]) -> None:
        pipeline = Pipeline(urls, select=("__key__", "__index__", "cls"), seed=4)
        view = pipeline.indexed(epoch=2)

        assert list(pipeline) == list(view)
        assert list(view) == list(pickle.loads(pickle.dumps(view)))
        assert 2 == pickle.loads(pickle.dumps(view)).epoch

    def test_an_error_names_its_record(self, tmp_path: Path) -> None:
        with tarfile.open(tmp_path / "a.tar", "w") as tar:
            for name in ("a.cls", "b.cls"):
                info = tarfile.TarInfo(name)
                info.size = 1
                tar.addfile(info, io.BytesIO(b"x" if name < "b" else b"1"))
        view = numbers(tmp_path / "a.tar").indexed()

        assert 1 == view[1]
        with pytest.raises(DataError, match=r'record "a"') as caught:
            view[0]
        assert "E_DECODE" == caught.value.code

    def test_a_shard_that_changed_is_told(self, urls: list[str]) -> None:
        view = numbers(urls).indexed()
        data = Path(urls[0]).read_bytes()
        Path(urls[0]).unlink()
        Path(urls[0]).write_bytes(data)

        with pytest.raises(ChangedError):
            view[3]

    def test_damage_and_skipping_are_refused(self, urls: list[str], tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="to have a number"):
            Pipeline(urls, on_error="skip").indexed()
        data = bytearray(Path(urls[0]).read_bytes())
        data[10] ^= 1
        (tmp_path / "bad.tar").write_bytes(data)
        with pytest.raises(TarvizError, match=r"E_CHECKSUM .*bad\.tar"):
            numbers(tmp_path / "bad.tar").indexed()


class TestFarAway:
    def test_only_ranges_are_read(self, urls: list[str]) -> None:
        with FaultServer() as server:
            view = numbers(server.put("/a.tar", Path(urls[2]).read_bytes())).indexed()
            before = server.sent

            assert [13, 33, 10] == view[[3, 23, 0]]
            assert server.sent - before < 4 * 110_000


class TestGrain:
    def test_it_is_a_source(self, urls: list[str]) -> None:
        grain = pytest.importorskip("grain.python", reason="grain: pip install grain")
        source = numbers(urls).indexed()
        assert isinstance(source, grain.RandomAccessDataSource)

        dataset = grain.MapDataset.source(source).shuffle(seed=1).batch(7)
        seen = [int(value) for batch in dataset for value in batch]

        assert list(range(35)) == sorted(seen)
        assert list(range(35)) != seen


class TestAChoice:
    @pytest.mark.parametrize("options", [{"where": "cls % 4 = 1"}, {"keys": ("r0001", "r0033", "r0005")}], ids=str)
    @pytest.mark.parametrize("packed", [False, True])
    def test_its_records_are_counted_and_no_others(self, urls: list[str], options: Any, packed: bool) -> None:
        if packed:
            for url in urls:
                Path(url).write_bytes(gzip.compress(Path(url).read_bytes(), 1))
        pipeline = Pipeline(urls, "decode(cls)", select="cls", **options)
        expected = [int(one) for one in pipeline]
        view = pipeline.indexed()

        assert expected == sorted([1, 5, 33] if "keys" in options else range(1, 35, 4))
        assert len(expected) == len(view)
        assert expected == list(view) == [view[at] for at in range(len(view))]
        assert [expected[-1], expected[0]] == view[[-1, 0]]
        assert expected == list(pickle.loads(pickle.dumps(view)))
        with pytest.raises(IndexError, match=f"of {len(expected)}"):
            view[len(expected)]

    def test_of_a_shard_that_was_replaced_is_an_error(self, urls: list[str]) -> None:
        pipeline = Pipeline(urls, "decode(cls)", select="cls", where="cls > 3").choose()
        data = Path(urls[2]).read_bytes()
        Path(urls[2]).unlink()
        Path(urls[2]).write_bytes(data)

        with pytest.raises(ChangedError, match="replaced after its records were chosen"):
            pipeline.indexed()


def test_an_epoch_is_a_whole_number(urls: list[str]) -> None:
    records = numbers(urls).indexed()
    records.set_epoch(3)

    for epoch in (-1, 0.5, "1"):
        with pytest.raises(UsageError, match="epoch"):
            records.set_epoch(epoch)  # type: ignore[arg-type]
    assert 3 == records.epoch
