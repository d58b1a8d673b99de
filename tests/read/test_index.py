"""Records by number and key: their fields, and index files that were damaged."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tarviz.formats.index import ShardIndex
from tarviz.model.errors import DataError
from tarviz.read import stream
from tarviz.testing.faults import FaultServer
from tarviz.testing.strategies import numbered, shard

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
            index = stream.index(server.put("/a.tar", shard(numbered(20))), cache=False)
            monkeypatch.setattr("tarviz.stores.options", lambda: pytest.fail("they were looked for"))

            assert ["3", "7"] == [bytes(index[number]["cls"]).decode() for number in (3, 17)]

    def test_keys_that_were_renewed_are_used(self, monkeypatch: pytest.MonkeyPatch):
        with FaultServer() as server:
            server.put("/data/a.tar", shard(numbered(20)))
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
        path.write_bytes(shard(numbered(40)))
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
