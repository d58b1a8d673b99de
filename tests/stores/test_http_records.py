"""Shards over a failing line: all records, or an error that names the shard; never fewer without one."""

import io
import random
import tarfile

import pytest

from tarviz.model.errors import ChangedError, DataError, NotFoundError, StoreError, TarvizWarning
from tarviz.read.stream import records
from tarviz.stores.http import HttpStore
from tarviz.testing.faults import Fault
from tests.servers.clock import FakeClock

COUNT = 40
HEADER = 512


def shard():
    """40 records of a `cls` and a `jpg`; the tar, and where each member's header begins."""
    target, places = io.BytesIO(), []
    with tarfile.open(fileobj=target, mode="w") as tar:
        for number in range(COUNT):
            for ext, size in (("cls", 3), ("jpg", 5000 + number)):
                info = tarfile.TarInfo(f"train/{number:05d}.{ext}")
                info.size = size
                places.append(target.tell())
                tar.addfile(info, io.BytesIO(random.Random(number).randbytes(size)))
    return target.getvalue(), places


DATA, PLACES = shard()


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    store = HttpStore(clock=FakeClock())
    monkeypatch.setattr("tarviz.stores._store", lambda scheme: store)


def read(url, **options):
    return [(record.key, bytes(record["cls"]), bytes(record["jpg"])) for record in records(url, **options)]


@pytest.fixture(scope="module")
def expected():
    return [(f"train/{n:05d}", random.Random(n).randbytes(3), random.Random(n).randbytes(5000 + n)) for n in range(COUNT)]


@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize(
    "cut",
    [PLACES[21] + HEADER + 100, PLACES[20], PLACES[21], PLACES[21] + 100, len(DATA) - 1024],
    ids=["in a member", "between records", "between members", "in a header", "before the end blocks"],
)
@pytest.mark.fault("F02", "F03", "F04", "F16")
def test_a_cut_anywhere_loses_nothing(server, expected, cut, end):
    assert expected == read(server.put("/a.tar", DATA, plan=[Fault(cut=cut, end=end)]))


@pytest.mark.parametrize("place", [*PLACES[:4], *PLACES[-2:]])
@pytest.mark.parametrize("more", [0, 100, HEADER, HEADER + 200])
@pytest.mark.fault("F07")
def test_an_end_that_no_length_betrays_is_betrayed_by_the_tar(server, place, more):
    url = server.put("/a.tar", DATA, plan=[Fault(headers={"Content-Length": None}, cut=place + more)])
    found = []

    with pytest.raises(DataError) as caught:
        found += [record.key for record in records(url)]

    assert caught.value.code in {"E_TRUNCATED", "E_NO_EOF", "E_EMPTY"}
    assert url == caught.value.shard
    assert len(found) <= PLACES.index(place) // 2


@pytest.mark.fault("F29")
def test_a_login_page_is_no_tar(server):
    url = server.put("/a.tar", DATA, plan=[Fault(status=200, body=b"<!DOCTYPE html><html>Log in</html>")])

    with pytest.raises(DataError, match=r"E_NOT_TAR .*HTML"):
        read(url)


@pytest.mark.fault("F26")
def test_a_missing_shard_is_named(server):
    with pytest.raises(NotFoundError, match=r"none\.tar"):
        read(server.url + "/none.tar")


@pytest.mark.fault("F33")
def test_a_replaced_shard_is_never_mixed(server):
    with pytest.raises(ChangedError, match=r'"1" before, ETag "2" now'):
        read(server.put("/a.tar", DATA, plan=[Fault(cut=PLACES[20], then=DATA[::-1])]))


@pytest.mark.fault("F09")
def test_a_length_that_is_too_long_is_a_warning_when_the_tar_is_whole(server, expected):
    with pytest.warns(TarvizWarning, match="W_LENGTH"):
        found = read(server.put("/a.tar", DATA, plan=[Fault(lie=1000)] * 3))

    assert expected == found


@pytest.mark.fault("F10")
def test_a_length_that_is_too_short_is_an_error(server):
    with pytest.raises(StoreError, match="E_LENGTH"):
        read(server.put("/a.tar", DATA, plan=[Fault(lie=-1000)] * 3))


@pytest.mark.parametrize("seed", range(3))
def test_random_faults_lose_nothing(server, expected, seed):
    chance = random.Random(seed)
    for _ in range(10):
        plan = [Fault(cut=chance.randrange(len(DATA)), end=chance.choice(["close", "reset"])) for _ in range(chance.randrange(1, 6))]

        assert expected == read(server.put("/a.tar", DATA, plan=plan))
