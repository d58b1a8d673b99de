"""Blocks read through a cached index are the blocks that reading finds itself."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

import tarviz
from tarviz import stores
from tarviz.model.errors import ChangedError
from tarviz.model.types import URL
from tarviz.read import indexed, stream
from tarviz.read.shard_index import keep_index, shard_index
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.testing.strategies import shard


@pytest.fixture(params=["ustar", "pax", "with folders", "long names"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> URL:
    """A shard of 60 records of 0 to 9 kB, their fields in turn two and three."""
    place = tmp_path / "a.tar"
    kind = tarfile.PAX_FORMAT if request.param == "pax" else tarfile.GNU_FORMAT
    with tarfile.open(place, "w", format=kind) as tar:
        for at in range(60):
            if request.param == "with folders" and at % 7 == 0:
                folder = tarfile.TarInfo(f"folder{at}")
                folder.type = tarfile.DIRTYPE
                tar.addfile(folder)
            for ext in ("bin", "cls", "txt")[: 2 + at % 2]:
                info = tarfile.TarInfo(f"{'n' * 600 if request.param == 'long names' else 'n'}{at}.{ext}")
                info.size, info.mtime = at * 7919 % 9000, 0.5 if request.param == "pax" else 0
                tar.addfile(info, io.BytesIO(bytes([at]) * info.size))
    return URL(str(place))


def listed(blocks: object) -> list[tuple[object, ...]]:
    return [
        (record.key, record.index, record.shard, {ext: bytes(data) for ext, data in record.items()}, record.members)
        for block in blocks  # type: ignore[attr-defined]
        for record in block
    ]


class TestBlocks:
    @pytest.mark.parametrize("block_size", [4096, 1 << 20])
    @pytest.mark.parametrize(("start", "stop"), [(0, None), (0, 1), (17, 40), (59, 60), (60, None), (30, 30), (5, 1000)])
    def test_they_hold_the_same_records(self, path: URL, block_size: int, start: int, stop: int | None) -> None:
        options = ReadOptions(block_size=block_size)
        report = ReadReport()
        assert indexed.usable_index(path, options) is None
        expected = listed(stream.blocks(path, options, start=start, stop=stop))

        tarviz.index(path)
        usable = indexed.usable_index(path, options)
        actual = listed(indexed.blocks(path, options, report, start, stop))

        if usable is None:  # what was noted when it was indexed has to be told again: it is read
            assert "folders" in path or tarviz.index(path).warnings
        assert expected == actual
        assert len(actual) == report.records

    def test_keys_are_made_when_looked_at(self, path: URL) -> None:
        tarviz.index(path)
        block = next(indexed.blocks(path, ReadOptions(), ReadReport()))

        assert list(block.keys) == block.keys[:] == [block.keys[at] for at in range(len(block))]
        with pytest.raises(IndexError):
            block.keys[len(block)]


class TestChanges:
    def test_a_shard_that_is_cut_while_it_is_read_is_told(self, tmp_path: Path) -> None:
        place = tmp_path / "a.tar"
        with tarfile.open(place, "w") as tar:
            for at in range(2000):
                info = tarfile.TarInfo(f"k{at}.cls")
                info.size = 4000
                tar.addfile(info, io.BytesIO(b"x" * 4000))
        tarviz.index(place)
        options = ReadOptions(block_size=65536)
        blocks = indexed.blocks(URL(str(place)), options, ReadReport())
        next(blocks)
        os.truncate(place, 4_000_000)

        with pytest.raises(ChangedError):
            list(blocks)

    def test_damage_and_compression_are_left_to_reading(self, tmp_path: Path) -> None:
        place = tmp_path / "a.tar.gz"
        with tarfile.open(place, "w:gz") as tar:
            info = tarfile.TarInfo("k.cls")
            tar.addfile(info)
        tarviz.index(place)

        assert indexed.usable_index(URL(str(place)), ReadOptions()) is None
        assert indexed.usable_index(URL("-"), ReadOptions()) is None
        assert 1 == len(listed(indexed.blocks(URL(str(place)), ReadOptions(), ReadReport())))


def test_an_index_that_names_more_than_there_is_never_waits_for_it(tmp_path: Path) -> None:
    """As of a file that was indexed under the version of a longer one."""
    records = [(f"k{number}", {"bin": bytes(3000)}) for number in range(9)]
    (tmp_path / "long.tar").write_bytes(shard(records))
    (tmp_path / "short.tar").write_bytes(shard(records[:5]))
    url, options = URL(str(tmp_path / "short.tar")), ReadOptions()
    longer = shard_index(URL(str(tmp_path / "long.tar")), options, cache=False)
    assert longer is not None
    keep_index(stores.of(url).stat(url), options, longer)

    with pytest.raises(ChangedError, match="shorter than when it was indexed"):
        list(indexed.blocks(url, options, ReadReport()))
