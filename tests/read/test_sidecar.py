"""Indexes of DALI's beside shards far away: the same records by fewer bytes, or a word and the index of our own."""

from __future__ import annotations

import functools
import gzip
import random
from pathlib import Path

import pytest

import tarviz
from tarviz.model.errors import DataError
from tarviz.model.types import URL
from tarviz.read import sidecar, stream
from tarviz.read.picked import pick
from tarviz.samples import write_shard
from tarviz.testing.faults import ALWAYS, Fault, FaultServer
from tests.conftest import each_case

DALI = Path(__file__).parents[1] / "data" / "dali"  # indexes as wds2idx writes them, of what GNU tar packs


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(sidecar, "_WORTH", 0)


@pytest.fixture
def server():
    with FaultServer() as server:
        yield server


def asked(server, name):
    return [request for request in server.requests if request.path == f"/{name}" and request.method == "GET"]


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    """A shard of 200 records, 12 MB, and its index."""
    path = tmp_path_factory.mktemp("sidecar") / "a.tar"
    chance = random.Random(3)
    write_shard(path, [(f"d/{n:04d}", {"bin": chance.randbytes(60_000), "cls": b"%d" % n}) for n in range(200)])
    path.with_suffix(".idx").write_text(tarviz.index(path, cache=False).shards[0].to_dali())
    return path


class TestSidecar:
    @pytest.mark.parametrize(("name", "index", "fits"), [("gnu", "gnu", True), ("pax", "pax-tarfile", True), ("pax", "pax", False)])
    def test_records_are_those_of_our_own_index(self, server, name, index, fits):
        url = server.put("/a.tar", DALI / f"{name}.tar")
        server.put("/a.idx", DALI / f"{index}.idx")
        theirs, ours = tarviz.index(url, cache=False), tarviz.index(DALI / f"{name}.tar", cache=False)

        assert (f"{server.url}/a.idx" if fits else None) == theirs.shards[0].claimed
        assert ([] if fits else ["W_SIDECAR"]) == [fault["code"] for fault in theirs.warnings]
        assert 9 == len(ours) == len(theirs)
        assert [(each.key, dict(each)) for each in ours] == [(each.key, dict(each)) for each in theirs]
        assert ours.fields() == theirs.fields()

    def test_the_shard_is_not_read(self, server, shard):
        url = server.put("/a.tar", shard)
        server.put("/a.idx", shard.with_suffix(".idx"))
        index = tarviz.index(url, cache=False)

        assert 200 == len(index)
        assert sum(request.sent for request in asked(server, "a.tar")) < 1_000_000  # of 12 MB: the answer that was under way
        server.requests.clear()
        assert b"117" == index[117]["cls"]
        assert ["GET"] == [request.method for request in server.requests]

    def test_none_beside_it_or_one_of_another_kind_is_no_matter(self, server, shard):
        url = server.put("/a.tar", shard)
        for text in (None, b"v1.1 1\nbin 512 3\n", b"\0" * 100, b""):
            if text is not None:
                server.put("/a.idx", text)
            index = tarviz.index(url, cache=False)

            assert (200, None, []) == (len(index), index.shards[0].claimed, index.warnings)

    def test_one_that_nobody_may_read_is_no_matter(self, server, shard):
        url = server.put("/a.tar", shard)
        server.put("/a.idx", b"", plan=[Fault(status=403, method=method, times=ALWAYS) for method in ("GET", "HEAD")])

        assert (200, []) == (len(tarviz.index(url, cache=False)), tarviz.index(url, cache=False).warnings)

    def test_a_packed_shard_has_none(self, server, shard, tmp_path):
        import gzip

        url = server.put("/a.tar.gz", gzip.compress(shard.read_bytes()[: 1 << 20], 1))
        server.put("/a.idx", shard.with_suffix(".idx"))

        assert tarviz.index(url, cache=False).shards[0].claimed is None

    def test_a_choice_of_records_reads_the_shard(self, server, shard):
        url = server.put("/a.tar", shard)
        server.put("/a.idx", shard.with_suffix(".idx"))

        assert ["d/0003"] == list(tarviz.index(url, cache=False, keys=["d/0003"]).keys())

    def test_strict_reading_reads_the_shard(self, server, shard):
        url = server.put("/a.tar", shard)
        server.put("/a.idx", shard.with_suffix(".idx"))

        assert tarviz.index(url, cache=False, strict=True).shards[0].claimed is None

    def test_near_shards_are_read(self, shard):
        assert tarviz.index(shard, cache=False).shards[0].claimed is None


def lies(text):
    """The same index with one thing wrong, by name."""
    lines = text.splitlines()
    words = [line.split() for line in lines]
    first, last = lines[1], lines[-1]
    return {
        "an offset": text.replace(words[100][1], str(int(words[100][1]) + 512)),
        "an offset that is no block's": text.replace(words[100][1], str(int(words[100][1]) + 1)),
        "a size": text.replace(f"{words[1][2]} {words[1][3]}", f"{int(words[1][2]) - 1} {words[1][3]}"),
        "a size of another number of blocks": text.replace(f"{words[-1][2]} {words[-1][3]}", f"{int(words[-1][2]) + 5120} {words[-1][3]}"),
        "a name": text.replace(words[1][3], "d/xxxx.bin"),
        "the last records are missing": "\n".join(["v1.2 100", *lines[1:101], ""]),
        "the first records are missing": "\n".join(["v1.2 190", *lines[11:], ""]),
        "a record in the middle is missing": "\n".join(["v1.2 199", *lines[1:50], *lines[51:], ""]),
        "two records have changed places": "\n".join([lines[0], last, *lines[2:-1], first, ""]),
        "the count": text.replace("v1.2 200", "v1.2 201"),
        "a line that is cut": text[:-20],
        "a number that is none": text.replace(words[7][1], "x"),
        "what lies past the end": text.replace(words[-1][1], "99999999744"),
        "a number larger than any": text.replace(words[-1][1], str(10**30)),
        "a size that is below zero when it is rounded": text.replace(f" {words[-1][2]} ", f" {2**63 - 1} "),
        "a size below zero": text.replace(f" {words[-1][2]} ", " -5 "),
        "nothing": "v1.2 0\n",
    }


class TestLies:
    @pytest.mark.parametrize("lie", sorted(lies((DALI / "gnu.idx").read_text() + "x 1 2 3\n" * 100)))
    def test_one_that_does_not_fit_is_refused_with_a_word(self, server, shard, lie):
        url = server.put("/a.tar", shard)
        server.put("/a.idx", lies(shard.with_suffix(".idx").read_text())[lie].encode())
        index = tarviz.index(url, cache=False)

        assert (200, None) == (len(index), index.shards[0].claimed)
        assert ["W_SIDECAR"] == [fault["code"] for fault in index.warnings]
        assert f"{server.url}/a.idx does not fit the shard" in index.warnings[0]["message"]

    def test_one_of_another_shard_is_refused(self, server, shard, tmp_path):
        other = tmp_path / "b.tar"
        write_shard(other, [(f"e/{n:04d}", {"bin": bytes(60_000), "cls": b"%d" % n}) for n in range(200)])
        url = server.put("/a.tar", other)
        server.put("/a.idx", shard.with_suffix(".idx"))

        assert ["W_SIDECAR"] == [fault["code"] for fault in tarviz.index(url, cache=False).warnings]

    def test_what_nobody_looked_at_is_met_when_it_is_read(self, server, shard):
        text = shard.with_suffix(".idx").read_text().replace("d/0101.bin", "d/0x01.bin").replace("d/0101.cls", "d/0x01.cls")
        url = server.put("/a.tar", shard)
        server.put("/a.idx", text.encode())
        index = tarviz.index(url, cache=False)

        assert index.shards[0].claimed is not None
        assert b"102" == index[102]["cls"]
        with pytest.raises(DataError, match=r"a\.idx does not fit the shard: record 101 is not where it says.*take it away") as caught:
            index["d/0x01"]
        assert ("E_INDEX", url) == (caught.value.code, caught.value.shard)

    def test_records_picked_by_number_are_held_against_it_too(self, server, shard):
        text = shard.with_suffix(".idx").read_text().replace("d/0101.bin", "d/0x01.bin").replace("d/0101.cls", "d/0x01.cls")
        url = server.put("/a.tar", shard)
        server.put("/a.idx", text.encode())
        index = tarviz.index(url, cache=False)
        take = functools.partial(pick, url, index.shards[0], options=index.options, report=stream.ReadReport())

        assert [b"100", b"102"] == [bytes(record["cls"]) for record in take([100, 102])]
        with pytest.raises(DataError, match="record 101 is not where it says"):
            list(take([100, 101]))

    def test_a_packed_shard_by_the_name_of_a_plain_one_has_none(self, server, shard):
        url = server.put("/a.tar", gzip.compress(shard.read_bytes(), 1))
        server.put("/a.idx", shard.with_suffix(".idx"))
        (found,) = tarviz.index(url, cache=False).shards

        assert ("gzip", None, 200) == (found.packed, found.claimed, len(found))

    def test_one_that_is_larger_than_any_is_not_fetched(self, server, shard, monkeypatch):
        monkeypatch.setattr(sidecar, "_LARGEST", shard.with_suffix(".idx").stat().st_size - 1)
        url = server.put("/a.tar", shard)
        server.put("/a.idx", shard.with_suffix(".idx"))

        assert tarviz.index(url, cache=False).shards[0].claimed is None
        monkeypatch.setattr(sidecar, "_LARGEST", shard.with_suffix(".idx").stat().st_size)
        assert tarviz.index(url, cache=False).shards[0].claimed is not None

    def test_a_shard_that_was_replaced_is_refused(self, server, shard, tmp_path):
        url = server.put("/a.tar", shard)
        server.put("/a.idx", shard.with_suffix(".idx"))
        index = tarviz.index(url, cache=False)
        server.put("/a.tar", shard.read_bytes())

        with pytest.raises(tarviz.model.errors.ChangedError):
            index[3]


@each_case(
    ("url", "expected"),
    [
        ("s3://b/t-0.tar", ["s3://b/t-0.idx"]),
        ("s3://b/x/t.a.tar", ["s3://b/x/t.a.idx", "s3://b/x/t.idx"]),
        ("https://host/a.tar?sig=x", []),
        ("a.tar", []),
    ],
)
def test_where_it_lies(url, expected):
    assert expected == sidecar.places(URL(url))
