"""AIStore: on a small cluster of this machine, or on the real one that AIS_ENDPOINT names (`make test-ais`)."""

from __future__ import annotations

import io
import logging
import os
import tarfile
from uuid import uuid4

import pytest

from tarviz import stores
from tarviz.model.errors import ChangedError, NotFoundError, StoreError, UsageError
from tarviz.model.types import URL
from tarviz.stores import ais
from tarviz.stores._remote import upload
from tarviz.stores.ais import AisStore, bucket_of
from tarviz.testing.aistore import AisObject, Cluster, Fail
from tarviz.testing.faults import FakeClock
from tarviz.testing.stores import DATA, StoreTests
from tests.servers.daemons import free_port

pytest.importorskip("aistore", reason="the SDK of AIStore: pip install 'tarviz[ais]'")
REAL = os.environ.get("AIS_ENDPOINT")


@pytest.fixture(scope="module")
def cluster():
    if REAL:
        yield None
    else:
        with Cluster() as small:
            yield small


@pytest.fixture
def bucket(cluster, monkeypatch):
    monkeypatch.setenv("AIS_ENDPOINT", REAL or cluster.url)
    name = f"test-{uuid4()}"
    bucket_of(URL(f"ais://{name}")).create()
    yield name
    bucket_of(URL(f"ais://{name}")).delete(missing_ok=True)


class TestAisStore(StoreTests):
    """The contract of all stores."""

    @pytest.fixture
    def store(self):
        return AisStore(clock=FakeClock())

    @pytest.fixture
    def folder(self, bucket):
        return URL(f"ais://{bucket}/some/folder")

    def test_a_large_object_goes_up_in_parts(self, store, folder, monkeypatch):
        monkeypatch.setattr(upload, "PART", 100_000)
        url = URL(f"{folder}/large.tar")
        with store.create(url) as sink:
            sink.write(DATA)
            with pytest.raises(NotFoundError):
                store.stat(url)

        assert DATA == store.read(url, 0, len(DATA))


class TestArchives:
    @pytest.fixture
    def shard(self, bucket):
        url = URL(f"ais://{bucket}/shard.tar")
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w") as tar:
            for name in ("a/1.jpg", "a/1.cls", "a/2.jpg", "log.txt"):
                info = tarfile.TarInfo(name)
                info.size = len(name)
                tar.addfile(info, io.BytesIO(name.encode()))
        with AisStore().create(url) as sink:
            sink.write(made.getvalue())
        return url

    def test_the_cluster_lists_what_is_inside(self, shard):
        assert [("a/1.cls", 7), ("a/1.jpg", 7), ("a/2.jpg", 7), ("log.txt", 7)] == sorted(ais.members(shard))

    def test_many_members_come_by_one_request(self, shard, cluster):
        names = ["a/2.jpg", "log.txt", "a/1.cls"]
        before = len(cluster.requests) if cluster else 0

        assert [name.encode() for name in names] == list(ais.read_members((shard, name) for name in names))
        if cluster:
            assert ["proxy", "t1"] == [node for node, _, _ in cluster.requests[before:]]

    def test_a_member_that_is_not_there_is_named(self, shard):
        with pytest.raises(NotFoundError, match=r"no none\.jpg"):
            list(ais.read_members([(shard, "a/1.jpg"), (shard, "none.jpg")]))

    @pytest.mark.parametrize(
        ("mode", "text", "names"),
        [
            ("REGEXP", r"\.jpg$", ["a/1.jpg", "a/2.jpg"]),
            ("PREFIX", "log", ["log.txt"]),
            ("SUFFIX", "cls", ["a/1.cls"]),
            ("SUBSTR", "/2", ["a/2.jpg"]),
            ("WDSKEY", "a/1", ["a/1.jpg", "a/1.cls"]),
        ],
    )
    def test_the_sdk_chooses_members(self, shard, mode, text, names):
        archive = pytest.importorskip("aistore.sdk.archive_config")
        config = archive.ArchiveConfig(regex=text, mode=archive.ArchiveMode[mode])
        data = ais.bucket_of(shard).object("shard.tar").get_reader(archive_config=config).read_all()

        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            assert names == tar.getnames()


class TestListing:
    def test_pages_go_on_to_the_end(self, bucket, cluster, monkeypatch):
        if cluster:
            monkeypatch.setattr(cluster, "page_size", 10)
        for number in range(25):
            with AisStore().create(URL(f"ais://{bucket}/t/{number:03d}.tar")) as sink:
                sink.write(b"x" * number)

        found = list(AisStore().list(URL(f"ais://{bucket}/t/")))
        assert [(f"ais://{bucket}/t/{number:03d}.tar", number) for number in range(25)] == [(stat.url, stat.size) for stat in found]


@pytest.mark.skipif(bool(REAL), reason="a real cluster is not broken on purpose")
class TestFaults:
    @pytest.fixture
    def url(self, bucket):
        url = URL(f"ais://{bucket}/a.tar")
        with AisStore().create(url) as sink:
            sink.write(DATA)
        return url

    @pytest.mark.parametrize("fail", [Fail(cut=1000), Fail(status=503), Fail(times=3, cut=50_000)])
    @pytest.mark.fault("F40")
    def test_a_target_that_fails_is_asked_again_by_the_proxy(self, url, cluster, fail):
        cluster.fails.append(fail)
        before = len(cluster.requests)

        assert DATA == read(AisStore(clock=FakeClock()), url)
        nodes = [node for node, method, _ in cluster.requests[before:] if method == "GET"]
        assert ["proxy"] * len(nodes[::2]) == nodes[::2]

    def test_ranges_next_to_each_other_ask_the_proxy_once(self, url, cluster):
        store = AisStore()
        etag = store.stat(url).etag
        before = len(cluster.requests)
        for at in range(0, 5000, 1000):
            assert DATA[at : at + 500] == store.read(url, at, 500, etag=etag)
        nodes = [node for node, _, _ in cluster.requests[before:]]
        assert ("proxy", 1, 6) == (nodes[0], nodes.count("proxy"), len(nodes))

        cluster.fails.append(Fail(status=404))  # moved to another target, for one
        assert DATA[7:70] == store.read(url, 7, 63, etag=etag)
        assert [*nodes[1:2], *nodes[:2]] == [node for node, _, _ in cluster.requests[before + 6 :]]

    @pytest.mark.fault("F41")
    def test_an_object_the_cluster_does_not_hold_yet_starts_again_and_is_skipped(self, url, cluster):
        name, path = url.removeprefix("ais://").split("/")
        cluster.buckets[name][path].present = False
        cluster.fails.append(Fail(times=2, cut=len(DATA) // 2))

        assert DATA == read(AisStore(clock=FakeClock()), url)
        assert cluster.buckets[name][path].present

    def test_a_target_is_restarted_while_it_is_read(self, url, cluster):
        name = "t1" if cluster.target_of(*url.removeprefix("ais://").split("/")) == cluster.targets[0] else "t2"
        store = AisStore()
        with store.open(url) as stream:
            head = bytearray(1000)
            stores.fill(stream, memoryview(head))
            cluster.restart(name)
            stream._drop()  # what the kernel still holds
            rest = bytearray(len(DATA))
            count = stores.fill(stream, memoryview(rest))

        assert DATA == bytes(head) + rest[:count]

    @pytest.mark.fault("F33")
    def test_a_replaced_object_is_never_spliced(self, url, cluster):  # AIStore knows no If-Match
        with AisStore().open(url) as stream:
            stores.fill(stream, memoryview(bytearray(1000)))
            cluster.put(*url.removeprefix("ais://").split("/"), bytes(len(DATA)))
            stream._drop()
            with pytest.raises(ChangedError, match=r"ais crc32c \w+ 1 before, ais crc32c \w+ 2 now"):
                stores.fill(stream, memoryview(bytearray(len(DATA))))

    @pytest.mark.fault("F38")
    def test_bytes_are_held_against_their_checksum(self, url, cluster):
        name, path = url.removeprefix("ais://").split("/")
        kept = cluster.buckets[name][path]
        headers = kept.headers
        wrong = type("Wrong", (AisObject,), {"headers": property(lambda _: headers)})
        cluster.buckets[name][path] = wrong(DATA[:-1] + b"?")

        with pytest.raises(StoreError, match="do not have the crc32c checksum"):
            read(AisStore(), url)


@pytest.mark.skipif(bool(REAL), reason="a real cluster has its own tokens")
class TestErrors:
    def test_no_cluster_is_named(self, monkeypatch):
        monkeypatch.delenv("AIS_ENDPOINT", raising=False)

        with pytest.raises(UsageError, match="Set AIS_ENDPOINT"):
            AisStore().stat(URL("ais://b/a.tar"))

    def test_no_such_bucket(self, bucket):
        for ask in (AisStore().stat, lambda url: list(AisStore().list(url)), lambda url: AisStore().create(url).commit()):
            with pytest.raises(NotFoundError, match=f"ais://{bucket}-none.*does not exist"):
                ask(URL(f"ais://{bucket}-none/a.tar"))

    def test_a_token_is_asked_for_and_not_shown(self, monkeypatch, caplog):
        caplog.set_level(logging.DEBUG)
        with Cluster(token="right-token-of-the-test") as cluster:
            cluster.put("b", "a.tar", DATA)
            monkeypatch.setenv("AIS_ENDPOINT", cluster.url)
            with pytest.raises(StoreError, match="Set AIS_AUTHN_TOKEN"):
                AisStore().stat(URL("ais://b/a.tar"))
            monkeypatch.setenv("AIS_AUTHN_TOKEN", "wrong-token-of-the-test")
            with pytest.raises(StoreError, match="Check AIS_AUTHN_TOKEN") as caught:
                list(AisStore().list(URL("ais://b/")))
            monkeypatch.setenv("AIS_AUTHN_TOKEN", "right-token-of-the-test")

            assert DATA == read(AisStore(), URL("ais://b/a.tar"))
            assert "token-of-the-test" not in caplog.text + str(caught.value) + repr(AisStore()) + repr(AisStore().wire)

    def test_a_cluster_that_is_not_there(self, monkeypatch):
        monkeypatch.setenv("AIS_ENDPOINT", f"127.0.0.1:{free_port()}")

        with pytest.raises(StoreError, match=r"cannot be reached: ConnectionError\. Hint: Check AIS_ENDPOINT"):
            list(AisStore().list(URL("ais://b/")))


def read(store, url):
    with store.open(url) as stream:
        data = bytearray(len(DATA) + 1)
        return bytes(data[: stores.fill(stream, memoryview(data))])
