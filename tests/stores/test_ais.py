"""AIStore: on a small cluster of this machine, or on the real one that AIS_ENDPOINT names (`make test-ais`)."""

from __future__ import annotations

import io
import logging
import os
import ssl
import sys
import tarfile
import threading
from uuid import uuid4

import certifi
import pytest
import requests

from tarviz import stores
from tarviz.model.errors import ChangedError, DataError, MissingPackageError, NotFoundError, StoreError, UsageError
from tarviz.model.types import URL
from tarviz.stores import ais
from tarviz.stores._remote import upload
from tarviz.stores.ais import AisStore, bucket_of
from tarviz.stores.s3 import S3Store
from tarviz.testing.stores import DATA, StoreTests
from tests.servers.aistore import AisObject, Cluster, Fail
from tests.servers.clock import FakeClock
from tests.servers.daemons import free_port
from tests.servers.local import tls_context

pytest.importorskip("aistore", reason="the SDK of AIStore: pip install 'tarviz[ais]'")
REAL = os.environ.get("AIS_ENDPOINT")
BREAK = os.environ.get("AIS_MAY_BREAK") == "1"


@pytest.fixture(scope="module")
def cluster():
    if REAL:
        yield None
    else:
        with Cluster() as small:
            yield small


@pytest.fixture
def bucket(cluster, monkeypatch):
    monkeypatch.setenv("AIS_ENDPOINT", cluster.url if cluster else REAL)
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

    def test_a_write_that_breaks_off_leaves_nothing(self, store, folder, monkeypatch):
        monkeypatch.setattr(upload, "PART", 100_000)
        url = URL(f"{folder}/large.tar")
        sink = store.create(url)
        sink.write(DATA)
        sink.abort()

        with pytest.raises(NotFoundError):
            store.stat(url)


class TestUrl:
    @pytest.mark.parametrize(
        ("url", "address"),
        [
            ("ais://b/a b.tar", "/v1/objects/b/a%20b.tar?provider=ais"),
            ("ais://@aws/b/x/a.tar", "/v1/objects/b/x/a.tar?provider=aws"),
            ("ais://@gcp/b", "/v1/objects/b/?provider=gcp"),
        ],
    )
    def test_a_bucket_of_another_cloud_is_behind_its_sign(self, url, address, monkeypatch):
        monkeypatch.setenv("AIS_ENDPOINT", "host:51080/")

        assert f"http://host:51080{address}" == AisStore().wire.access.address(URL(url), {})

    @pytest.mark.parametrize("url", ["ais://@aws", "ais://@aws//a", "ais://"])
    def test_a_url_without_a_bucket_is_refused(self, url, monkeypatch):
        monkeypatch.setenv("AIS_ENDPOINT", "host:51080")

        with pytest.raises(UsageError, match="names no bucket"):
            AisStore().wire.access.address(URL(url), {})

    def test_where_names_of_very_many_were_met_they_are_met_anew(self, monkeypatch):
        monkeypatch.setattr(ais, "_MET", 2)
        access = AisStore().wire.access
        for name in "abc":
            access.note(URL(name))

        assert [False, False, True] == [access.passes(URL(name), 404, "") for name in "abc"]

    def test_nothing_asked_is_nothing_sent(self, monkeypatch):
        monkeypatch.delenv("AIS_ENDPOINT", raising=False)

        assert [] == list(ais.read_members([]))

    def test_what_needs_the_sdk_says_so_where_it_is_not_there(self, monkeypatch):
        monkeypatch.setenv("AIS_ENDPOINT", "host:51080")
        monkeypatch.setitem(sys.modules, "aistore.sdk", None)
        ais._client.cache_clear()

        with pytest.raises(MissingPackageError, match="listing and writing ais:// URLs"):
            bucket_of(URL("ais://b/a.tar"))


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

    def test_a_neighbour_whose_name_begins_so_is_another_shard(self, shard):
        store = AisStore()
        with store.create(URL(f"{shard}.old.tar")) as sink:
            sink.write(store.read(shard, 0, 1 << 20))

        assert 4 == len(ais.members(shard)) == len(ais.members(URL(f"{shard}.old.tar")))

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

    def test_what_was_written_in_parts_is_listed_too(self, bucket, cluster, monkeypatch):
        """AIStore keeps it in chunks, and lists no members of those."""
        monkeypatch.setattr(upload, "PART", 100_000)
        url, made = URL(f"ais://{bucket}/large.tar"), io.BytesIO()
        with tarfile.open(fileobj=made, mode="w") as tar:
            for name, size in (("a.bin", 250_000), ("b.bin", 0), ("c/d.bin", 70_000)):
                info = tarfile.TarInfo(name)
                info.size = size
                tar.addfile(info, io.BytesIO(bytes(size)))
        with AisStore().create(url) as sink:
            sink.write(made.getvalue())

        assert not cluster or cluster.buckets[bucket]["large.tar"].chunked
        assert [("a.bin", 250_000), ("b.bin", 0), ("c/d.bin", 70_000)] == ais.members(url)

    def test_what_is_no_tar_has_no_members(self, bucket):
        url = URL(f"ais://{bucket}/none.tar")
        with AisStore().create(url) as sink:
            sink.write(b"words" * 300)

        with pytest.raises(DataError, match="tar") as caught:
            ais.members(url)
        assert url == caught.value.shard


@pytest.mark.skipif(
    bool(REAL) and not BREAK, reason="AIS_MAY_BREAK=1 allows it: a target of the real cluster is in maintenance for a second"
)
@pytest.mark.matrix
def test_a_target_in_maintenance_costs_no_byte(bucket):
    urls = [URL(f"ais://{bucket}/{number}.tar") for number in range(12)]
    for url in urls:
        with AisStore().create(url) as sink:
            sink.write(url.encode() * 9)
    store, proxy = AisStore(), f"{os.environ['AIS_ENDPOINT'].rstrip('/')}/v1/cluster"
    tags = [store.stat(url).etag for url in urls]
    target = next(iter(ais._client(ais._endpoint(), ais._SETTINGS.state(), os.getpid())._request_client.get_smap().tmap))

    def maintain(action):
        value = {"sid": target, "skip_rebalance": True}
        token = {"Authorization": f"Bearer {os.environ.get('AIS_AUTHN_TOKEN', '')}"}
        requests.put(proxy, json={"action": f"{action}-maintenance", "value": value}, headers=token, timeout=20).raise_for_status()

    maintain("start")
    back = threading.Timer(1.0, maintain, ["stop"])
    back.start()
    try:
        assert [url.encode() * 9 for url in urls] == [store.read(url, 0, 999, etag=etag) for url, etag in zip(urls, tags, strict=True)]
    finally:
        back.join()


class TestFaults:
    """Always on a small cluster: what goes wrong in it is chosen."""

    @pytest.fixture
    def cluster(self):
        with Cluster() as small:
            yield small

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


class TestChanges:
    """The cluster's map changes: nodes come and go, as a real one of three targets was seen to."""

    @pytest.fixture
    def changing(self, monkeypatch):
        with Cluster() as cluster:
            monkeypatch.setenv("AIS_ENDPOINT", cluster.url)
            for number in range(12):
                cluster.put("b", f"{number}.tar", DATA)
            yield cluster

    URLS = tuple(URL(f"ais://b/{number}.tar") for number in range(12))

    def moved(self, cluster, name):
        return next(url for url in self.URLS if cluster.name_of("b", url.rpartition("/")[2]) == name)

    @pytest.mark.parametrize("known", ["listed", "stat", "read", "a range", "a token"])
    def test_what_was_there_is_waited_for_while_a_node_joins(self, changing, known):
        clock = FakeClock()
        store = AisStore(clock=clock)
        new = changing.join(lacks=0)
        url, other = self.moved(changing, new), AisStore()
        changing.lacks[2] = 0
        etag = {
            "listed": lambda: list(store.list(URL("ais://b/"))) and None,
            "stat": lambda: store.stat(url) and None,
            "read": lambda: read(store, url) and None,
            "a range": lambda: store.read(url, 5, 10) and None,
            "a token": lambda: other.stat(url).etag,
        }[known]()
        changing.lacks[2] = 3

        assert DATA[7:70] == store.read(url, 7, 63, etag=etag)
        assert 1 < len(clock.waits) <= 4
        changing.lacks[2] = 3
        assert DATA == read(store, url)

    def test_a_name_that_never_was_seen_is_missing_at_once(self, changing):
        clock = FakeClock()
        with pytest.raises(NotFoundError):
            AisStore(clock=clock).stat(URL("ais://b/none.tar"))
        assert [] == clock.waits

    def test_what_we_deleted_is_missing_at_once(self, changing):
        clock = FakeClock()
        store = AisStore(clock=clock)
        store.stat(self.URLS[0])
        store.delete(self.URLS[0])
        with pytest.raises(NotFoundError):
            store.stat(self.URLS[0])
        assert [] == clock.waits

    def test_a_target_that_dies_and_comes_back_costs_no_byte(self, changing):
        url, store = self.moved(changing, "t1"), AisStore(clock=(clock := Watch()))
        with store.open(url) as stream:
            head = bytearray(1000)
            stores.fill(stream, memoryview(head))
            changing.leave("t1")
            stream._drop()  # what the kernel still holds
            clock.after(6, lambda: changing.restart("t1"))
            rest = bytearray(len(DATA))
            count = stores.fill(stream, memoryview(rest))

        assert DATA == bytes(head) + rest[:count]

    def test_a_target_that_stays_away_is_told_after_ten_seconds(self, changing):
        url, store = self.moved(changing, "t1"), AisStore(clock=(clock := FakeClock()))
        with store.open(url) as stream:
            stores.fill(stream, memoryview(bytearray(1000)))
            changing.leave("t1")
            stream._drop()
            with pytest.raises(StoreError, match=r"at byte 1000 the server answers 404 .* which passes where a cluster changes") as caught:
                stores.fill(stream, memoryview(bytearray(len(DATA))))
        assert ("E_NETWORK", url) == (caught.value.code, caught.value.shard)
        assert 5 < sum(clock.waits) <= 15

    @pytest.mark.parametrize("tcode", ["ErrNoNodes", "ErrFailedTo"])
    def test_a_refusal_that_passes_is_tried_again_by_both_halves(self, changing, tcode):
        store = AisStore(clock=(clock := FakeClock()))
        for ask in (
            store.stat,
            lambda url: read(store, url),
            lambda url: store.read(url, 0, 9),
            lambda _: list(store.list(URL("ais://b/"))),
        ):
            changing.fails.append(Fail(times=2, status=400, tcode=tcode))
            assert ask(self.URLS[0])
        assert 3 <= len(clock.waits)

    def test_the_sdk_bears_it_more_often_than_no_answer_at_all(self, changing):
        changing.fails.append(Fail(times=4, status=400, tcode="ErrNoNodes"))

        assert list(AisStore().list(URL("ais://b/")))

    def test_a_refusal_that_does_not_pass_is_told_at_once(self, changing, monkeypatch):
        store = AisStore(clock=(clock := FakeClock()))
        for ask in (store.stat, lambda _: list(store.list(URL("ais://b/")))):
            changing.fails[:] = [Fail(times=9, status=400, tcode="ErrOther")]
            with pytest.raises(StoreError, match=r"answers 400.*no storage targets in the cluster"):
                ask(self.URLS[0])
            assert 7 <= changing.fails[0].times
        assert [] == clock.waits

    def test_a_listing_goes_on_where_a_target_has_just_died(self, changing):
        changing.leave("t2")

        assert list(self.URLS) == sorted((stat.url for stat in AisStore().list(URL("ais://b/"))), key=list(self.URLS).index)

    @pytest.mark.matrix
    def test_the_sdk_gives_up_in_the_end(self, changing, monkeypatch):
        monkeypatch.setattr(ais, "_PATIENCE", 0.5)
        changing.fails.append(Fail(times=999, status=400, tcode="ErrNoNodes"))
        with pytest.raises(StoreError, match="answers 400: no storage targets in the cluster") as caught:
            list(AisStore().list(URL("ais://b/")))
        assert "AUTHN" not in str(caught.value)
        assert "tcode" not in str(caught.value)


class Watch(FakeClock):
    """A clock at which something happens after so many waits."""

    def after(self, waits, call):
        self.calls = {waits: call}

    def wait(self, seconds, stop):
        super().wait(seconds, stop)
        self.calls.pop(len(self.waits), lambda: None)()


class TestTrust:
    """One decision for both halves, the reader and the SDK: whom to trust, and what to show."""

    URL = URL("ais://b/a.tar")

    @pytest.fixture(autouse=True)
    def nothing_is_set(self, monkeypatch):
        for name in (*ais._AUTHORITIES, *ais._UNCHECKED, *ais._SHOWN):
            monkeypatch.delenv(name, raising=False)

    @pytest.fixture
    def context(self, tmp_path):
        return tls_context(tmp_path, "IP:127.0.0.1")

    @pytest.fixture
    def secure(self, context, monkeypatch):
        with Cluster(tls=context) as cluster:
            cluster.put("b", "a.tar", DATA)
            monkeypatch.setenv("AIS_ENDPOINT", cluster.url)
            yield cluster

    def both_halves(self):
        """What each brings: records by stream, by range, by listing; a write."""
        store = AisStore(clock=FakeClock())
        with store.create(URL("ais://b/new.tar")) as sink:
            sink.write(DATA)
        assert DATA[9:99] == store.read(self.URL, 9, 90, etag=store.stat(self.URL).etag)
        assert DATA == read(store, URL("ais://b/new.tar"))
        assert 2 == len(list(store.list(URL("ais://b/"))))

    @pytest.mark.parametrize("name", ais._AUTHORITIES)
    def test_an_authority_is_heeded_by_both(self, secure, tmp_path, monkeypatch, name):
        monkeypatch.setenv(name, str(tmp_path / "cert.pem"))

        self.both_halves()

    @pytest.mark.matrix
    def test_small_ranges_trust_it_themselves(self, secure, tmp_path, monkeypatch):
        monkeypatch.setenv("AIS_CLIENT_CA", str(tmp_path / "cert.pem"))
        monkeypatch.setattr("tarviz.stores._remote.reader.ResumingStream", lambda *_: pytest.fail("the other reader"))

        assert DATA[9:99] == AisStore().read(self.URL, 9, 90)

    @pytest.mark.parametrize("name", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"])
    @pytest.mark.matrix
    def test_that_of_the_cluster_comes_first(self, secure, tmp_path, monkeypatch, name):
        (tmp_path / "other").mkdir()
        tls_context(tmp_path / "other")
        monkeypatch.setenv(name, str(tmp_path / "other" / "cert.pem"))
        monkeypatch.setenv("AIS_CLIENT_CA", str(tmp_path / "cert.pem"))

        self.both_halves()

    @pytest.mark.matrix
    def test_what_the_cluster_wants_to_see_is_shown_by_both(self, context, secure, tmp_path, monkeypatch):
        monkeypatch.setenv("AIS_CLIENT_CA", str(tmp_path / "cert.pem"))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(tmp_path / "cert.pem")
        for ask in (AisStore(clock=FakeClock(), retry_timeout=1).stat, lambda _: list(AisStore().list(URL("ais://b/")))):
            with pytest.raises(StoreError):
                ask(self.URL)
        monkeypatch.setenv("AIS_CRT", str(tmp_path / "cert.pem"))
        monkeypatch.setenv("AIS_CRT_KEY", str(tmp_path / "key.pem"))

        self.both_halves()

    @pytest.mark.filterwarnings("ignore:(Unverified HTTPS request|Skipping SSL)")
    @pytest.mark.parametrize("name", ais._UNCHECKED)
    def test_everybody_is_trusted_where_that_is_set(self, secure, monkeypatch, name):
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", certifi.where())
        monkeypatch.setenv(name, "true")

        self.both_halves()

    @pytest.mark.matrix
    def test_a_stranger_is_named_with_the_variable_to_set(self, secure):
        for ask in (AisStore().stat, lambda url: AisStore().read(url, 0, 9), lambda _: list(AisStore().list(URL("ais://b/")))):
            with pytest.raises(StoreError, match=r"(?i)certificate.verify.failed.*AIS_CLIENT_CA may name"):
                ask(self.URL)

    def test_a_file_that_is_none_is_said(self, secure, tmp_path, monkeypatch):
        monkeypatch.setenv("AIS_CLIENT_CA", str(tmp_path / "none.pem"))
        for ask in (AisStore().stat, lambda _: list(AisStore().list(URL("ais://b/")))):
            with pytest.raises(UsageError, match="AIS_CLIENT_CA"):
                ask(self.URL)

    def test_http_to_a_cluster_that_speaks_tls_is_said(self, secure, monkeypatch):
        monkeypatch.setenv("AIS_ENDPOINT", secure.url.replace("https", "http"))
        for ask in (AisStore().stat, lambda _: list(AisStore().list(URL("ais://b/")))):
            with pytest.raises(StoreError, match=r"answers 400.*AIS_ENDPOINT begins with https://"):
                ask(self.URL)

    @pytest.mark.matrix
    def test_https_to_a_cluster_that_speaks_none_is_said(self, monkeypatch):
        with Cluster() as plain:
            monkeypatch.setenv("AIS_ENDPOINT", plain.url.replace("http", "https"))
            for ask in (AisStore().stat, lambda _: list(AisStore().list(URL("ais://b/")))):
                with pytest.raises(StoreError, match=r"begins with http://"):
                    ask(self.URL)


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

    def test_a_target_that_died_is_not_taken_for_the_cluster(self, monkeypatch):
        with Cluster() as cluster:
            cluster.put("b", "a.tar", DATA)
            monkeypatch.setenv("AIS_ENDPOINT", cluster.url)
            cluster.leave(cluster.name_of("b", "a.tar"), unseen=99)
            for ask in (AisStore().delete, lambda url: AisStore().create(url).commit()):
                with pytest.raises(StoreError, match=r"a target \(http://127\.0\.0\.1:\d+\) of the cluster at http.* cannot be reached"):
                    ask(URL("ais://b/a.tar"))

    @pytest.mark.matrix
    def test_a_write_that_waits_for_readers_says_so(self, monkeypatch):
        with Cluster() as cluster:
            cluster.put("b", "a.tar", bytes(64 << 20))
            monkeypatch.setenv("AIS_ENDPOINT", cluster.url)
            monkeypatch.setenv("AIS_READ_TIMEOUT", "0.3")
            with AisStore().open(URL("ais://b/a.tar")) as stream:
                stream.readinto(memoryview(bytearray(9)))
                with (
                    pytest.raises(StoreError, match="A write waits until nobody reads the object"),
                    AisStore().create(URL("ais://b/a.tar")) as sink,
                ):
                    sink.write(b"new")

    def test_the_gateway_s_redirects_keep_the_name_or_are_refused(self, monkeypatch):
        """`ais` behind its S3 gateway, which escapes no address that it redirects to."""
        names = ["a.tar", "a b.tar", "日本/ü🙂.tar", "a%20b.tar", "x//y.tar"]
        for name, value in {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "planted"}.items():
            monkeypatch.setenv(name, value)
        with Cluster() as cluster:
            cluster.put("b", "", b"")
            monkeypatch.setenv("AWS_ENDPOINT_URL", f"{cluster.url}/s3")
            for name in (*names, "q?u.tar"):
                try:
                    with S3Store(clock=FakeClock()).create(URL(f"s3://b/{name}")) as sink:
                        sink.write(name.encode())
                except StoreError as error:
                    assert "another name" in str(error)
                else:
                    assert name.encode() == cluster.buckets["b"][name.replace("//", "/")].data
            assert {"", *(name.replace("//", "/") for name in names)} >= set(cluster.buckets["b"])


def read(store, url):
    with store.open(url) as stream:
        data = bytearray(len(DATA) + 1)
        return bytes(data[: stores.fill(stream, memoryview(data))])
