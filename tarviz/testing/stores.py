"""`StoreTests`: what every store must do, ours or another package's.

Subclass it, give the fixtures `store` and `folder`, and, for a store that cannot write, `put`::

    class TestMemoryStore(StoreTests):
        @pytest.fixture
        def store(self):
            return memory.store()

        @pytest.fixture
        def folder(self):
            return URL(f"memory://test-{uuid4()}")
"""

from __future__ import annotations

import io
import pickle
import random
import shutil
import subprocess
import tarfile
import threading
import warnings
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest

from tarviz import stores
from tarviz.model.errors import ChangedError, NotFoundError, StoreError, TarvizError
from tarviz.model.types import URL
from tarviz.read.blocks import Blocks
from tarviz.read.options import ReadOptions
from tarviz.stores import Store

DATA = random.Random(0).randbytes(300_001)


def open_files() -> int:
    """How many descriptors this process holds; 0 where the system does not tell."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


class StoreTests:
    """The contract of `tarviz.stores.Store`, one behaviour a test."""

    @pytest.fixture
    def store(self) -> Store:
        """The store under test."""
        pytest.skip("a subclass gives the store")

    @pytest.fixture
    def folder(self) -> URL:
        """The URL of an empty folder, without a slash at its end."""
        pytest.skip("a subclass gives the folder")

    def put(self, store: Store, url: URL, data: bytes) -> None:
        """Make `data` the object at `url`, replacing what was there."""
        with store.create(url) as sink:
            sink.write(data)

    @pytest.fixture
    def url(self, store: Store, folder: URL) -> URL:
        """An object holding `DATA`."""
        url = stores.join(folder, "a b.tar")
        self.put(store, url, DATA)
        return url

    def drain(self, store: Store, url: URL, piece: int = 1 << 16, offset: int = 0) -> bytes:
        data = bytearray()
        with store.open(url, offset=offset) as stream:
            buffer = memoryview(bytearray(piece))
            while count := stream.readinto(buffer):
                assert stream.offset == offset + len(data) + count
                data += buffer[:count]
            assert stream.readinto(buffer) == 0
        return bytes(data)

    def test_it_is_a_store(self, store: Store) -> None:
        assert isinstance(store, Store)

    def test_a_stream_gives_all_bytes(self, store: Store, url: URL) -> None:
        assert self.drain(store, url) == DATA

    @pytest.mark.parametrize("piece", [1000, 65_537, 1 << 20])
    def test_the_size_of_the_buffer_does_not_matter(self, store: Store, url: URL, piece: int) -> None:
        assert self.drain(store, url, piece) == DATA

    @pytest.mark.parametrize("offset", [1, 512, 299_999, 300_001, 300_010])
    def test_a_stream_starts_at_an_offset(self, store: Store, url: URL, offset: int) -> None:
        assert self.drain(store, url, offset=offset) == DATA[offset:]

    @pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    def test_tar_lists_and_unpacks_the_members_that_are_read(self, store: Store, folder: URL, form: int) -> None:
        program = shutil.which("tar")
        if program is None:
            pytest.skip("tar is not installed")
        url, content, archive = stores.join(folder, "members.tar"), random.Random(form), io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w", format=form) as tar:
            for length, ext in product(range(0, 90 if form == tarfile.USTAR_FORMAT else 150, 10), ("jpg", "seg.png")):
                member = tarfile.TarInfo(f"train/{'n' * length}{length}.{ext}")
                member.size = content.randrange(30_000)
                tar.addfile(member, io.BytesIO(content.randbytes(member.size)))
        self.put(store, url, archive.getvalue())

        with store.open(url) as stream, closing(Blocks(stream, ReadOptions().walker(url))) as blocks:
            found = {f"{record.key}.{ext}": bytes(data) for block in blocks for record in block for ext, data in record.items()}
        listed, unpacked = (subprocess.check_output([program, words, "-"], input=self.drain(store, url)) for words in ("-tf", "-xOf"))
        assert listed.decode().split() == list(found)
        assert unpacked == b"".join(found.values())

    def test_an_empty_object_is_an_object(self, store: Store, folder: URL) -> None:
        url = stores.join(folder, "empty.tar")
        self.put(store, url, b"")

        assert (self.drain(store, url), store.stat(url).size, store.read(url, 0, 9)) == (b"", 0, b"")

    def test_fill_goes_on_until_the_buffer_is_full(self, store: Store, url: URL) -> None:
        with store.open(url) as stream:
            buffer = bytearray(200_000)

            assert stores.fill(stream, memoryview(buffer)) == 200_000
            assert buffer == DATA[:200_000]
            assert stores.fill(stream, memoryview(buffer)) == 100_001

    @pytest.mark.parametrize(("offset", "length"), [(0, 1), (511, 1026), (0, 300_001), (300_000, 9), (300_001, 9), (300_009, 9), (5, 0)])
    def test_a_range_is_exact(self, store: Store, url: URL, offset: int, length: int) -> None:
        assert store.read(url, offset, length) == DATA[offset : offset + length]

    def test_stat_tells_size_and_version(self, store: Store, url: URL) -> None:
        stat = store.stat(url)

        assert (stat.url, stat.size) == (url, len(DATA))
        assert stat.etag is not None

    def test_a_stream_tells_the_same_as_stat(self, store: Store, url: URL) -> None:
        with store.open(url) as stream:
            assert (stream.stat.url, stream.stat.size, stream.stat.etag) == (url, len(DATA), store.stat(url).etag)

    def test_the_version_asked_for_is_read(self, store: Store, url: URL) -> None:
        etag = store.stat(url).etag

        assert store.read(url, 3, 5, etag=etag) == DATA[3:8]
        store.open(url, etag=etag).close()

    def test_a_replaced_object_has_another_version(self, store: Store, url: URL) -> None:
        etag = store.stat(url).etag
        self.put(store, url, DATA[::-1])

        assert store.stat(url).etag != etag
        with pytest.raises(ChangedError) as caught:
            store.read(url, 0, 1, etag=etag)
        assert (caught.value.code, caught.value.shard) == ("E_CHANGED", url)
        with pytest.raises(ChangedError):
            store.open(url, etag=etag)

    def test_a_stream_never_mixes_two_versions(self, store: Store, url: URL) -> None:
        with store.open(url) as stream:
            head = bytearray(1000)
            stores.fill(stream, memoryview(head))
            self.put(store, url, bytes(len(DATA)))
            rest = bytearray(len(DATA))
            try:
                count = stores.fill(stream, memoryview(rest))
            except ChangedError:
                return

        assert bytes(head) + rest[:count] == DATA

    def test_a_missing_object_is_named(self, store: Store, folder: URL) -> None:
        url = stores.join(folder, "none.tar")

        for ask in (store.stat, store.open, lambda url: store.read(url, 0, 1)):
            with pytest.raises(NotFoundError) as caught:
                ask(url)
            assert (caught.value.code, caught.value.shard) == ("E_NOT_FOUND", url)

    def test_closing_twice_does_nothing(self, store: Store, url: URL) -> None:
        stream = store.open(url)
        stream.close()
        stream.close()

        with pytest.raises(StoreError):
            stream.readinto(memoryview(bytearray(1)))

    def test_streams_do_not_disturb_each_other(self, store: Store, url: URL) -> None:
        with store.open(url) as one, store.open(url, offset=1000) as two:
            first, second = bytearray(500), bytearray(500)
            for stream, buffer in ((one, first), (two, second)):
                stores.fill(stream, memoryview(buffer))

        assert (bytes(first), bytes(second)) == (DATA[:500], DATA[1000:1500])

    def test_threads_share_it(self, store: Store, url: URL) -> None:
        found: list[bool] = []

        def some() -> None:
            found.extend(store.read(url, offset, 300) == DATA[offset : offset + 300] for offset in range(0, 3000, 300))
            found.append(self.drain(store, url) == DATA)

        threads = [threading.Thread(target=some) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert found == [True] * 88

    def test_it_pickles(self, store: Store, url: URL) -> None:
        copy = pickle.loads(pickle.dumps(store))  # noqa: S301  (our own bytes)

        assert type(copy) is type(store)
        assert self.drain(copy, url) == DATA

    def test_nothing_is_left_open(self, store: Store, url: URL) -> None:
        def some() -> None:
            for count in range(20):
                with store.open(url) as stream:
                    for _ in range(count % 4):
                        stream.readinto(memoryview(bytearray(1000)))
                store.read(url, count, 10)

        some()
        files, threads = open_files(), threading.active_count()
        with warnings.catch_warnings():
            warnings.simplefilter("error", ResourceWarning)
            some()

        assert open_files() <= files + 2  # a connection kept for the next read, no more
        assert threading.active_count() <= threads + 2

    def test_a_folder_lists_its_objects_by_name(self, store: Store, folder: URL) -> None:
        self.needs_list(store)
        for name in ("b.tar", "a.tar", "a.tar.gz", "c d.txt", "z/below.tar"):
            self.put(store, stores.join(folder, name) if "/" not in name else URL(f"{folder}/{name}"), name.encode())

        names = ["a.tar", "a.tar.gz", "b.tar", "c d.txt"]
        assert [stat.url for stat in store.list(folder)] == [stores.join(folder, name) for name in names]
        assert [self.drain(store, stat.url) for stat in store.list(URL(f"{folder}/"))] == [name.encode() for name in names]
        for stat in store.list(folder):
            assert stat.size in (None, store.stat(stat.url).size)
            assert stat.etag in (None, store.stat(stat.url).etag)

    def test_a_walk_takes_what_begins_so_by_name(self, store: Store, folder: URL) -> None:
        self.needs_list(store)
        for name in ("t-2.tar", "u.tar", "t-1.tar", "t-10.tar"):
            self.put(store, stores.join(folder, name), name.encode())

        names = ["t-1.tar", "t-10.tar", "t-2.tar"]
        assert [stat.url for stat in store.walk(stores.join(folder, "t-"))] == [stores.join(folder, name) for name in names]
        assert list(store.walk(stores.join(folder, "none"))) == []

    def test_a_missing_folder_is_named(self, store: Store, folder: URL) -> None:
        self.needs_list(store)
        with pytest.raises(NotFoundError) as caught:
            list(store.list(stores.join(folder, "none")))
        assert caught.value.shard is not None

    def test_nothing_is_visible_before_commit(self, store: Store, folder: URL) -> None:
        self.needs_writes(store)
        url = stores.join(folder, "new.tar")
        with store.create(url) as sink:
            sink.write(b"abc")
            with pytest.raises(NotFoundError):
                store.stat(url)
            sink.writev([b"de", bytearray(b"f"), memoryview(b"ghi")[1:], b""])
            stat = sink.commit()

        assert (store.read(url, 0, 99), stat.size) == (b"abcdefhi", 8)
        assert stat.etag == store.stat(url).etag

    def test_what_was_there_stays_until_commit(self, store: Store, url: URL) -> None:
        self.needs_writes(store)
        with store.create(url) as sink:
            sink.write(b"new")

            assert store.read(url, 0, len(DATA)) == DATA
        assert store.read(url, 0, len(DATA)) == b"new"

    def test_a_write_that_replaces_nothing_leaves_what_is_there(self, store: Store, url: URL, folder: URL) -> None:
        self.needs_writes(store)
        new = stores.join(folder, "new.tar")
        with store.create(new, replace=False) as sink:
            sink.write(b"first")
        late = store.create(stores.join(folder, "late.tar"), replace=False)
        late.write(b"late")
        self.put(store, stores.join(folder, "late.tar"), b"early")
        for sink in (store.create(url, replace=False), store.create(new, replace=False), late):
            sink.write(b"second")
            with pytest.raises(StoreError) as caught:
                sink.commit()
            assert caught.value.code == "E_EXISTS"
            sink.abort()

        assert [store.read(each, 0, len(DATA)) for each in (url, new, stores.join(folder, "late.tar"))] == [DATA, b"first", b"early"]
        assert not store.lists or len(list(store.list(folder))) == 3

    def test_an_exception_aborts(self, store: Store, url: URL, folder: URL) -> None:
        self.needs_writes(store)
        for place in (url, stores.join(folder, "other.tar")):
            with pytest.raises(ZeroDivisionError), store.create(place) as sink:
                sink.write(bytes([len(place) // 0]))

        assert store.read(url, 0, len(DATA)) == DATA
        with pytest.raises(NotFoundError):
            store.stat(stores.join(folder, "other.tar"))

    def test_abort_and_commit_happen_once(self, store: Store, folder: URL) -> None:
        self.needs_writes(store)
        done, dropped = store.create(stores.join(folder, "a")), store.create(stores.join(folder, "b"))
        done.write(b"abc")
        stat = done.commit()
        done.abort()
        dropped.abort()
        dropped.abort()

        assert done.commit() == stat
        assert store.read(stores.join(folder, "a"), 0, 9) == b"abc"
        for sink, call in ((done, "write"), (dropped, "write"), (dropped, "commit")):
            with pytest.raises(TarvizError):
                getattr(sink, call)(*[b"x"] * (call == "write"))

    def test_many_pieces_are_written_in_order(self, store: Store, folder: URL) -> None:
        self.needs_writes(store)
        url = stores.join(folder, "pieces")
        pieces = [DATA[at : at + at % 97] for at in range(5000)]
        with store.create(url) as sink:
            sink.writev(pieces)

        assert self.drain(store, url) == b"".join(pieces)

    def test_a_file_is_sent_from_where_it_is_asked(self, store: Store, folder: URL, tmp_path: Path) -> None:
        self.needs_writes(store)
        (tmp_path / "sent").write_bytes(DATA)
        url = stores.join(folder, "sent.tar")
        with (tmp_path / "sent").open("rb", buffering=0) as file, store.create(url) as sink:
            sink.write(b"head")
            counts = sink.send(file.fileno(), 3, 200_000), sink.send(file.fileno(), 300_000, 9)
            sink.write(b"tail")

            assert (counts, file.tell()) == ((200_000, 1), 0)
        assert self.drain(store, url) == b"head" + DATA[3:200_003] + DATA[300_000:] + b"tail"

    def test_delete_removes(self, store: Store, url: URL) -> None:
        self.needs_writes(store)
        store.delete(url)

        with pytest.raises(NotFoundError):
            store.stat(url)
        with pytest.raises(NotFoundError) as caught:
            store.delete(url)
        assert caught.value.shard == url

    def needs_list(self, store: Store) -> None:
        if not store.lists:
            pytest.skip("the store lists no folders")

    def needs_writes(self, store: Store) -> None:
        if not store.writes:
            pytest.skip("the store does not write")
