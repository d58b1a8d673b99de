"""Records by number and key: their fields, and index files that were damaged."""

from __future__ import annotations

import lzma
import random
from dataclasses import replace
from pathlib import Path

import pytest

from tarviz.formats.index import ShardIndex
from tarviz.model.errors import ChangedError, DataError
from tarviz.model.types import URL
from tarviz.read import stream
from tarviz.read.index import Index
from tarviz.read.picked import pick
from tarviz.stores.cache_files import is_kept
from tarviz.testing.faults import FaultServer
from tarviz.testing.strategies import numbered_records, shard

MANY = [("a", {f"f{number:05d}": b"%d" % number for number in range(3000)}), ("b", {"txt": b"1"})]


class Counted(tuple[str, ...]):
    """Extensions that count how often one is looked up."""

    asked = 0

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        type(self).asked += 1
        return super().__getitem__(at)


class TestManyFields:
    """F11: the fields of a record are found without a look at all the others."""

    def test_of_a_block(self, tmp_path: Path):
        path = tmp_path / "a.tar"
        path.write_bytes(shard(MANY))
        (block,) = (block for block in stream.blocks(str(path)) if len(block) == 2)
        Counted.asked = 0
        record = replace(block, exts=Counted(block.exts))[0]

        assert MANY[0][1] == {ext: bytes(data) for ext, data in record.items()}
        assert Counted.asked <= 3 * 3000

    def test_of_an_index(self, tmp_path: Path):
        path = tmp_path / "a.tar"
        path.write_bytes(shard(MANY))
        index = stream.index(path, cache=False)
        shard_index = index.shards[0]
        Counted.asked = 0
        shard_index.exts = Counted(shard_index.exts)

        assert MANY[0][1] == {ext: bytes(data) for ext, data in index[0].items()}
        assert Counted.asked <= 3 * 3000
        with pytest.raises(KeyError):
            index[0]["nothing"]


class TestFarAway:
    """A record costs its range: what leads to it is looked at once, what opens it each time."""

    def test_no_options_are_looked_for_with_each_record(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        with FaultServer() as server:
            index = stream.index(server.put("/a.tar", shard(numbered_records(20))), cache=False)
            monkeypatch.setattr("tarviz.stores.options", lambda: pytest.fail("they were looked for"))

            assert ["3", "7"] == [bytes(index[number]["cls"]).decode() for number in (3, 17)]

    def test_keys_that_were_renewed_are_used(self, monkeypatch: pytest.MonkeyPatch):
        with FaultServer() as server:
            server.put("/data/a.tar", shard(numbered_records(20)))
            monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", "KEY1")
            index = stream.index("s3://data/a.tar", cache=False)
            index[3]
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", "KEY2")
            index[17]

            signed = [request.headers["authorization"].partition("Credential=")[2][:4] for request in server.requests]
            assert ("KEY1", "KEY2") == (signed[-2], signed[-1])


class TestDamagedFile:
    """F17: an index file that was damaged is not an index, wherever the damage is."""

    def test_is_refused(self, tmp_path: Path):
        path = tmp_path / "a.tar"
        path.write_bytes(shard(numbered_records(40)))
        data = b"".join(stream.index(path, cache=False).shards[0].dump())
        found = ShardIndex.load(data)
        chance = random.Random(3)
        padding = 0
        for _ in range(300):
            bad = bytearray(data)
            at = chance.randrange(len(bad))
            bad[at] ^= 1 << chance.randrange(8)
            try:
                again = ShardIndex.load(bytes(bad))
            except DataError:
                continue
            padding += 1  # nothing is kept there
            assert list(found.keys()) == list(again.keys())
            assert (found.members.data == again.members.data).all()
        for length in range(0, len(data) - 64, 97):
            with pytest.raises(DataError):
                ShardIndex.load(data[:length])

        assert padding < 60


class TestNumbers:
    def test_they_count_over_all_shards_and_from_the_end(self, tmp_path: Path):
        for name, first in (("a", 0), ("b", 3)):
            (tmp_path / f"{name}.tar").write_bytes(shard([(f"k{first + n}", {"txt": b"%d" % (first + n)}) for n in range(3)]))
        index = stream.index(tmp_path, cache=False)

        assert [f"k{n}" for n in (0, 5, 5, 0)] == [index[at].key for at in (0, 5, -1, -6)]
        parts = (slice(1, 4), slice(5, 2, -2), slice(6, 9))
        assert [["k1", "k2", "k3"], ["k5", "k3"], []] == [[record.key for record in index[at]] for at in parts]
        assert [(0, 2), (1, 0)] == [index.locate(number) for number in (2, 3)]
        assert (4, None, True, False, False) == (index.find("k4"), index.find("k9"), "k4" in index, "k9" in index, 4 in index)
        for at in (6, -7):
            with pytest.raises(IndexError, match=f"record {at} of 6"):
                index[at]
        with pytest.raises(KeyError, match="k9"):
            index["k9"]

    def test_it_tells_how_many_shards_are_there(self, tmp_path: Path):
        told: list[tuple[int, int]] = []
        for name in "ab":
            (tmp_path / f"{name}.tar").write_bytes(shard(numbered_records(2)))
        stream.index(tmp_path, cache=False, progress=lambda *each: told.append(each))

        assert [(1, 2), (2, 2)] == told

    def test_it_is_kept_unless_that_is_not_wanted(self, tmp_path: Path):
        url = URL(str(tmp_path / "a.tar"))
        Path(url).write_bytes(shard(numbered_records(2)))
        Index([url], cache=False)
        assert not is_kept("index", url)

        Index([url])
        assert is_kept("index", url)

    def test_it_says_what_it_holds(self, tmp_path: Path):
        (tmp_path / "a.tar").write_bytes(shard([("a", {"txt": b"1", "cls": b"2"}), ("b", {"txt": b"3"})]))
        told = []
        index = stream.index(tmp_path / "a.tar", cache=False, progress=lambda *done: told.append(done))

        assert "<Index of 2 records in 1 shard(s): txt ×2, cls ×1>" == repr(index)
        assert [(1, 1)] == told
        record = index["a"]
        assert (2, ["txt", "cls"], 0, False) == (len(record), list(record), record.index, record.pending)
        assert [("a.txt", 1), ("a.cls", 1)] == [(each.name, each.size) for each in record.members]


class TestWithoutAVersion:
    """A server that names no version of a shard that is shorter by now."""

    @pytest.mark.parametrize("read", [lambda index: index[7], lambda index: list(together(index, [6, 7]))], ids=["one", "several"])
    def test_a_record_that_is_not_there_any_more_is_no_part_of_one(self, read):
        data = shard([(f"k{number}", {"bin": bytes(4000)}) for number in range(8)])
        with FaultServer() as server:
            url = server.put("/a.tar", data, etag=None, modified=None)
            index = stream.index(url, cache=False)
            server.put("/a.tar", data[: index.shards[0].span(7)[0] + 3000], etag=None, modified=None)

            with pytest.raises(ChangedError, match=r"shorter than when it was indexed.*Index it again") as caught:
                read(index)
        assert url == caught.value.shard

    @pytest.mark.parametrize("read", [lambda index: index[7], lambda index: list(together(index, [6, 7]))], ids=["one", "several"])
    def test_the_padding_of_the_last_one_may_lack(self, read):
        data = shard([(f"k{number}", {"bin": bytes(4000)}) for number in range(8)])
        with FaultServer() as server:
            url = server.put("/a.tar", data, etag=None, modified=None)
            index = stream.index(url, cache=False)
            server.put("/a.tar", data[: index.shards[0].span(7)[0] + 512 + 4000], etag=None, modified=None)

            assert read(index)


def together(index: stream.Index, numbers: list[int]):
    return pick(index.urls[0], index.shards[0], numbers, index.options, stream.ReadReport())


def test_a_packed_shard_with_fewer_records_than_its_index_is_said(tmp_path: Path):
    path = tmp_path / "a.tar.xz"
    path.write_bytes(lzma.compress(shard(numbered_records(20))))
    index = stream.index(path, cache=False)
    path.write_bytes(lzma.compress(shard(numbered_records(5))))

    with pytest.raises(ChangedError, match="fewer records than when it was indexed"):
        index[17]
