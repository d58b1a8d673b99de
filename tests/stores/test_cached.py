"""Shards kept on this machine: found again, checked, thrown out in order, shared by processes, never half a file."""

from __future__ import annotations

import errno
import io
import multiprocessing
import os
import random

import pytest

from tarviz import stores
from tarviz.model.errors import ChangedError, StoreError
from tarviz.model.types import URL
from tarviz.stores import cache_files
from tarviz.stores.cached import PART, CachedStore, copies
from tarviz.stores.http import HttpStore
from tarviz.testing.faults import ALWAYS, Fault, FaultServer
from tarviz.testing.stores import StoreTests
from tests.servers.clock import FakeClock
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

        place = store.find(url, store.stat(url).etag)
        assert {place, place.with_name(f"{place.name}.sums")} == set(store.folder.iterdir())

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
        assert 1 == len(copies(store.folder))
        assert DATA == drain(store, url)


LARGE = random.Random(6).randbytes(3 * PART + 12_345)


def flipped(place, at):
    """A bit of a file is another now."""
    data = bytearray(place.read_bytes())
    data[at] ^= 4
    place.write_bytes(data)


HARMS = {
    "the first bit": lambda place: flipped(place, 0),
    "a header": lambda place: flipped(place, 3),
    "the middle": lambda place: flipped(place, len(LARGE) // 2),
    "the last bit": lambda place: flipped(place, -1),
    "cut": lambda place: os.truncate(place, 300_000),
    "cut at a part": lambda place: os.truncate(place, 2 * PART),
    "empty": lambda place: os.truncate(place, 0),
    "longer": lambda place: os.truncate(place, len(LARGE) + 1),
    "its checksums": lambda place: flipped(place.with_name(f"{place.name}.sums"), 14),
    "no checksums": lambda place: place.with_name(f"{place.name}.sums").unlink(),
    "checksums cut": lambda place: os.truncate(place.with_name(f"{place.name}.sums"), 9),
}


def in_pieces(store, url, etag, piece):
    with store.open(url, etag=etag) as stream:
        data, buffer = bytearray(), memoryview(bytearray(piece))
        while count := stream.readinto(buffer):
            data += buffer[:count]
    return bytes(data)


DOORS = {
    "stream": lambda store, url, etag: drain(store, url),
    "stream of a version": lambda store, url, etag: in_pieces(store, url, etag, 1 << 16),
    "stream in large pieces": lambda store, url, etag: in_pieces(store, url, etag, 3 * PART + 7),
    "stream in odd pieces": lambda store, url, etag: in_pieces(store, url, etag, 99_991),
    "read": lambda store, url, etag: b"".join(store.read(url, at, 100_000, etag=etag) for at in range(0, len(LARGE), 100_000)),
    "read at once": lambda store, url, etag: store.read(url, 0, len(LARGE) + 5, etag=etag),
    "fetch": lambda store, url, etag: store.fetch(url).read_bytes(),
}


class TestDamage:
    """What is read of a damaged copy, by whatever door, is right: it goes, and the shard is read from afar."""

    @pytest.fixture
    def store(self, tmp_path):
        return CachedStore(HttpStore(clock=FakeClock()), tmp_path / "kept", 20_000_000)

    @pytest.mark.fault("F51")
    @pytest.mark.parametrize("harm", HARMS)
    @pytest.mark.parametrize("door", DOORS)
    def test_a_damaged_copy_gives_no_wrong_byte_and_heals(self, server, store, harm, door):
        url = server.put("/a.tar", LARGE)
        drain(store, url)
        etag = store.stat(url).etag
        place = store.find(url, etag)
        HARMS[harm](place)

        assert LARGE == DOORS[door](store, url, etag)
        drain(store, url)
        before = bodies(server)
        assert LARGE == DOORS[door](store, url, etag) == store.find(url, etag).read_bytes()
        assert before == bodies(server)

    @pytest.mark.fault("F51")
    def test_damage_during_a_reading_goes_on_from_afar(self, server, store):
        url = server.put("/a.tar", LARGE)
        drain(store, url)
        place = store.find(url, store.stat(url).etag)
        with store.open(url) as stream:
            begin = bytearray(PART)
            stores.fill(stream, memoryview(begin))
            flipped(place, PART + 5)
            rest = bytearray(len(LARGE))
            count = stores.fill(stream, memoryview(rest))

        assert LARGE == bytes(begin) + bytes(rest[:count])
        assert not place.exists()

    def test_one_record_is_one_part_to_check(self, server, store, monkeypatch):
        url = server.put("/a.tar", LARGE)
        drain(store, url)
        etag = store.stat(url).etag
        flipped(store.find(url, etag), 0)
        before = bodies(server)

        assert LARGE[2 * PART + 9 : 2 * PART + 99] == store.read(url, 2 * PART + 9, 90, etag=etag)
        assert before == bodies(server)
        assert LARGE[:9] == store.read(url, 0, 9, etag=etag)
        assert before < bodies(server)

    @pytest.mark.fault("F51")
    @pytest.mark.parametrize("door", DOORS)
    def test_a_part_is_checked_each_time_it_is_read_from_the_disk(self, server, store, door):
        """A disk that rots changes no time of a file."""
        url = server.put("/a.tar", LARGE)
        drain(store, url)
        etag = store.stat(url).etag
        place = store.find(url, etag)
        assert LARGE == DOORS[door](store, url, etag)
        times = place.stat()
        flipped(place, PART + 5)
        os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))

        assert LARGE == DOORS[door](store, url, etag)

    @pytest.mark.parametrize("door", ["read", "stream of a version"])
    def test_where_the_shard_cannot_be_read_either_the_error_names_the_cache(self, server, store, door):
        url = server.put("/a.tar", LARGE)
        drain(store, url)
        etag = store.stat(url).etag
        flipped(store.find(url, etag), 3)
        server.put("/a.tar", LARGE[::-1])

        with pytest.raises(ChangedError, match=f"The copy kept in {store.folder} was damaged, and is removed"):
            DOORS[door](store, url, etag)

    def test_copies_are_their_owner_s_alone(self, server, store):
        drain(store, server.put("/a.tar", LARGE))

        assert {0o600} == {path.stat().st_mode & 0o777 for path in store.folder.iterdir()}
        assert 0o700 == store.folder.stat().st_mode & 0o777

    def test_a_signature_renewed_reads_the_same_copy(self, server, store):
        url = server.put("/a.tar", LARGE)
        drain(store, URL(f"{url}?X-Amz-Date=1&X-Amz-Signature=one"))
        before = bodies(server)

        assert LARGE == drain(store, URL(f"{url}?X-Amz-Date=2&X-Amz-Signature=two"))
        assert before == bodies(server)

    def test_checksums_alone_are_taken_away_after_a_while(self, server, store):
        drain(store, server.put("/a.tar", LARGE))
        (copy,) = copies(store.folder)
        copy.path.unlink()

        assert [] == copies(store.folder)
        (sums,) = store.folder.iterdir()
        os.utime(sums, (0, 0))
        copies(store.folder)
        assert not sums.exists()


class TestOption:
    def test_it_is_off_until_a_size_is_given(self, server, monkeypatch, tmp_path):
        url = server.put("/a.tar", DATA)

        assert isinstance(stores.of(url), HttpStore)
        monkeypatch.setenv("TARVIZ_SHARD_CACHE", "10MB")
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path))
        found = stores.of(url)
        assert (tmp_path / "shards", 10_000_000) == (found.folder, found.limit)
        assert not isinstance(stores.of(tmp_path / "a.tar"), CachedStore)


def test_a_disk_that_takes_a_part_at_a_time_gets_all_of_a_copy(server, store, monkeypatch):
    class Slow(io.FileIO):
        def write(self, data):
            return super().write(memoryview(data)[:70_000])

    monkeypatch.setattr(cache_files, "open", lambda fd, mode, buffering: Slow(fd, mode), raising=False)
    url = server.put("/a.tar", DATA)
    read = [drain(store, url) for _ in range(2)]

    assert [DATA, DATA] == read
    assert 1 == bodies(server)


def test_a_child_leaves_the_copy_to_the_process_that_began_it(server, store):
    url, buffer = server.put("/a.tar", DATA), memoryview(bytearray(10_000))
    with store.open(url) as stream:
        count = stream.readinto(buffer)
        child = os.fork()
        if child == 0:
            try:
                while stream.readinto(buffer):
                    pass
                stream.close()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        found = bytearray(buffer[:count])
        while count := stream.readinto(buffer):
            found += buffer[:count]
    asked = bodies(server)

    assert DATA == found == drain(store, url)
    assert asked == bodies(server)  # the copy was whole


class TestFetch:
    """Whole files, as the WebDataset dialect asks for them."""

    def test_the_version_that_was_used_last_is_the_one_there_is(self, server, store):
        url = server.put("/a.tar", DATA)
        first = store.fetch(url)
        server.put("/a.tar", DATA[::-1])
        second = store.fetch(url)

        assert (DATA, DATA[::-1]) == (first.read_bytes(), second.read_bytes())
        for used, found in ((1, first), (3, second)):
            os.utime(found, (used, used))
        assert second == store.find(url, None)
        os.utime(first, (5, 5))
        assert first == store.find(url, None)
        assert store.find(URL(f"{url}.none"), None) is None

    def test_one_that_cannot_be_reached_is_the_copy_and_is_asked_for_once(self, server, store, caplog):
        url = server.put("/a.tar", DATA)
        store.fetch(url)
        server.put("/a.tar", DATA, plan=[Fault(method=method, status=403, times=ALWAYS) for method in ("GET", "HEAD")])

        assert DATA == store.fetch(url).read_bytes()
        asked = len(server.requests)
        assert DATA == store.fetch(url).read_bytes()
        assert asked == len(server.requests)
        assert 1 == caplog.text.count("the copy kept in")

    def test_without_a_copy_it_is_an_error(self, server, store):
        url = server.put("/a.tar", DATA, plan=[Fault(method=method, status=403, times=ALWAYS) for method in ("GET", "HEAD")])

        with pytest.raises(StoreError, match="E_AUTH"):
            store.fetch(url)

    def test_what_is_larger_than_the_limit_is_none(self, server, store):
        store.limit = len(DATA)
        assert store.fetch(server.put("/a.tar", DATA)) is not None
        assert store.fetch(server.put("/b.tar", DATA + b"x")) is None

    def test_one_that_tells_no_version_is_asked_once(self, server, store):
        url = server.put("/a.tar", DATA, etag=None, modified=None)
        before = store.fetch(url)
        asked = bodies(server)

        assert before == store.fetch(url)
        assert asked == bodies(server)

    def test_a_damaged_one_is_fetched_anew(self, server, store):
        url = server.put("/a.tar", DATA)
        flipped(store.fetch(url), 7)

        assert DATA == store.fetch(url).read_bytes()
        assert 2 == bodies(server)


def test_a_disk_that_is_full_at_the_end_keeps_nothing_and_reads_on(server, store, monkeypatch, caplog):
    def full(self, place):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cache_files.Temporary, "keep", full)

    assert DATA == drain(store, server.put("/a.tar", DATA))
    assert [] == list(store.folder.iterdir())
    assert "is not kept: [Errno 28] No space left on device" in caplog.text


def test_a_copy_that_is_closed_gives_nothing_more(server, store):
    url = server.put("/a.tar", DATA)
    drain(store, url)
    stream = store.open(url)
    stream.readinto(memoryview(bytearray(10)))
    stream.close()
    stream.close()

    with pytest.raises(StoreError, match="the stream is closed"):
        stream.readinto(memoryview(bytearray(10)))
