"""Shards kept on this machine: found again, checked, thrown out in order, shared by processes, never half a file."""

from __future__ import annotations

import multiprocessing
import os
import random

import pytest

from tarviz import stores
from tarviz.model.errors import StoreError
from tarviz.model.types import URL
from tarviz.stores.cached import CachedStore, key_of
from tarviz.stores.http import HttpStore
from tarviz.testing.faults import ALWAYS, FakeClock, Fault, FaultServer
from tarviz.testing.stores import StoreTests
from tests.stores.streams import drain

DATA = random.Random(5).randbytes(700_000)


@pytest.fixture
def store(tmp_path):
    return CachedStore(HttpStore(clock=FakeClock()), tmp_path / "kept", 2_000_000)


def bodies(server):
    return sum(request.method == "GET" for request in server.requests)


class TestCachedStore(StoreTests):
    """The contract of all stores, over memory."""

    @pytest.fixture
    def store(self, tmp_path):
        return CachedStore(stores.of("memory://x"), tmp_path / "kept", 10_000_000)

    @pytest.fixture
    def folder(self, tmp_path):
        return URL(f"memory://{tmp_path.name}")


class TestKeeping:
    def test_the_second_reading_asks_for_the_version_alone(self, server, store):
        url = server.put("/a.tar", DATA)

        assert DATA == drain(store, url) == drain(store, url)
        assert 1 == bodies(server)
        assert DATA[5:9] == store.read(url, 5, 4, etag=store.stat(url).etag)
        assert 1 == bodies(server)

    def test_another_version_is_another_file(self, server, store):
        url = server.put("/a.tar", DATA)
        drain(store, url)
        server.put("/a.tar", DATA[::-1])

        assert DATA[::-1] == drain(store, url)

    def test_servers_and_folders_do_not_share_names(self, server, store):
        with FaultServer() as other:
            urls = [server.put("/one/a.tar", DATA, etag='"1"'), server.put("/two/a.tar", DATA[1:], etag='"1"')]
            urls.append(other.put("/one/a.tar", DATA[2:], etag='"1"'))

            for _ in range(2):
                assert [DATA, DATA[1:], DATA[2:]] == [drain(store, url) for url in urls]

    @pytest.mark.parametrize("read", [0, 200_000])
    def test_a_reading_that_ends_early_leaves_nothing(self, server, store, read):
        with store.open(server.put("/a.tar", DATA)) as stream:
            stores.fill(stream, memoryview(bytearray(read)))

        assert [] == list(store.folder.iterdir())

    def test_what_was_used_longest_ago_goes_first(self, server, store):
        urls = [server.put(f"/{name}.tar", DATA) for name in "abc"]
        for number, url in enumerate(urls[:2]):
            drain(store, url)
            os.utime(store.find(url, store.stat(url).etag), (number, number))
        drain(store, urls[2])

        assert [False, True, True] == [store.find(url, store.stat(url).etag) is not None for url in urls]

    def test_what_is_larger_than_the_limit_is_not_kept(self, server, store):
        drain(store, server.put("/a.tar", DATA * 3))

        assert not store.folder.exists()

    @pytest.mark.fault("F51")
    def test_a_damaged_copy_is_noticed_and_removed(self, server, store):
        url = server.put("/a.tar", DATA)
        drain(store, url)
        place = store.find(url, store.stat(url).etag)
        place.write_bytes(DATA[:-1] + b"?")

        with pytest.raises(StoreError, match=r"is damaged; it is removed\. Hint: Read the shard again") as caught:
            drain(store, url)
        assert "E_CORRUPT" == caught.value.code
        assert DATA == drain(store, url)

    def test_a_broken_transfer_is_kept_whole(self, server, store):
        url = server.put("/a.tar", DATA, plan=[Fault(cut=100_000), Fault(cut=400_000, end="reset")])

        assert DATA == drain(store, url) == drain(store, url)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
    @pytest.mark.fault("F49")
    def test_a_folder_that_refuses_is_no_error(self, server, store, tmp_path):
        tmp_path.chmod(0o500)

        assert DATA == drain(store, server.put("/a.tar", DATA))

    @pytest.mark.fault("F49")
    def test_a_folder_that_cannot_be_is_no_error(self, server, store, caplog):
        store.folder.write_bytes(b"a file in its place")

        assert DATA == drain(store, server.put("/a.tar", DATA))
        assert "is not kept" in caplog.text

    @pytest.mark.fault("F50")
    def test_what_a_killed_process_left_is_removed(self, server, store):
        store.folder.mkdir()
        (store.folder / ".abc.tmp").write_bytes(b"half a shard")
        url = server.put("/a.tar", DATA)
        drain(store, url)

        assert [key_of(url, store.stat(url).etag)] == [path.name.partition("-")[0] for path in store.folder.iterdir()]

    @pytest.mark.fault("F48")
    def test_two_processes_keep_the_same_shard(self, server, store):
        url = server.put("/a.tar", DATA, plan=[Fault(method="HEAD", delay=0.1, times=ALWAYS)])
        context = multiprocessing.get_context("fork")
        children = [context.Process(target=drain, args=(store, url)) for _ in range(3)]
        for child in children:
            child.start()
        for child in children:
            child.join()

        assert [0, 0, 0] == [child.exitcode for child in children]
        assert 1 == len(list(store.folder.iterdir()))
        assert DATA == drain(store, url)


class TestOption:
    def test_it_is_off_until_a_size_is_given(self, server, monkeypatch, tmp_path):
        url = server.put("/a.tar", DATA)

        assert isinstance(stores.of(url), HttpStore)
        monkeypatch.setenv("TARVIZ_SHARD_CACHE", "10MB")
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path))
        found = stores.of(url)
        assert (tmp_path / "shards", 10_000_000) == (found.folder, found.limit)
        assert not isinstance(stores.of(tmp_path / "a.tar"), CachedStore)
