"""Google Cloud Storage: the contract on an emulator that people install, and on a server after Google's documents what that lacks."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tarviz.model.errors import ChangedError, NotFoundError, StoreError
from tarviz.model.types import URL
from tarviz.stores._remote.access import Bearer
from tarviz.stores._remote.upload import PART
from tarviz.stores.gs import GoogleStore
from tarviz.testing.stores import StoreTests
from tests.servers.clock import FakeClock
from tests.servers.daemons import ask
from tests.servers.google import google_server
from tests.servers.local import google_emulator

DATA = bytes(range(256)) * 40_000  # 10 MB: two parts


@pytest.fixture(scope="module")
def emulator():
    pytest.importorskip("gcp_storage_emulator", reason="gcp-storage-emulator is not installed: make oracles")
    with google_emulator() as url:
        yield url


class TestGoogleStore(StoreTests):
    """The contract of all stores, on a server that speaks JSON only."""

    @pytest.fixture
    def store(self):
        return GoogleStore(clock=FakeClock())

    @pytest.fixture
    def folder(self, emulator, monkeypatch):
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator)
        name = f"test-{uuid4()}"
        ask("POST", f"{emulator}/storage/v1/b", {"name": name})
        return URL(f"gs://{name}/some/folder")


class TestGoogleAsDocumented(StoreTests):
    """The same contract, with generations and conditions."""

    @pytest.fixture
    def store(self):
        return GoogleStore(clock=FakeClock())

    @pytest.fixture
    def folder(self, google):
        return URL("gs://data/some/folder")


@pytest.fixture
def google(monkeypatch):
    with google_server() as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        yield server


@pytest.fixture
def store():
    return GoogleStore(clock=FakeClock())


def write(store, data=DATA, name="a.tar", **options):
    with store.create(URL(f"gs://data/{name}"), **options) as sink:
        sink.write(data)
    return sink.commit()


def content(google, name="a.tar"):
    return google.objects[name][-1][1]


def once(answer, *signs):
    """Answers the first request whose line holds all signs so; every other one as the server would."""
    left = [answer]
    return lambda line, _: left.pop() if left and all(sign in line for sign in signs) else (True if answer is False else 0)


class TestUpload:
    def test_parts_are_one_object_and_its_generation_is_told(self, google, store):
        stat = write(store)

        assert DATA == content(google)
        assert stat.etag == store.stat(stat.url).etag
        assert stat.etag == next(iter(store.list(URL("gs://data/")))).etag
        with store.open(stat.url) as stream:
            assert stat.etag == stream.stat.etag

    @pytest.mark.parametrize("signs", [("uploadType=resumable", "POST"), (f"bytes 0-{PART - 1}/*",), (f"/{len(DATA)}",)])
    @pytest.mark.parametrize("answer", [503, 429, None])
    def test_a_refusal_that_passes_is_tried_again(self, signs, answer, google, store):
        google.before = once(answer, *signs)
        write(store)

        assert DATA == content(google)

    @pytest.mark.parametrize("signs", [(f"bytes 0-{PART - 1}/*",), (f"/{len(DATA)}",)])
    def test_an_answer_that_is_lost_leaves_no_byte_out_and_none_twice(self, signs, google, store):
        google.after = once(False, *signs)
        write(store)

        assert DATA == content(google)
        assert 1 == sum(map(len, google.objects.values()))

    def test_what_the_server_did_not_keep_of_a_part_is_sent_again(self, google, store):
        google.keep = 3 << 20
        write(store)

        assert DATA == content(google)
        assert 1 == sum(line.endswith(f" bytes {3 << 20}-{PART - 1}/*") for line in google.asked)

    def test_an_abort_drops_the_session(self, google, store):
        sink = store.create(URL("gs://data/a.tar"))
        sink.write(DATA)
        sink.abort()

        assert {} == google.objects == google.sessions

    def test_an_empty_object(self, google, store):
        assert 0 == write(store, b"").size
        assert b"" == content(google)

    @pytest.mark.parametrize("data", [b"new", DATA], ids=["small", "in parts"])
    def test_a_write_that_replaces_nothing_asks_under_a_condition(self, data, google, store):
        """The object is made after the store has looked for it: only the condition sees it."""
        google.before = lambda line, server: server.put("a.tar", b"there") * 0 if line.startswith("POST") else 0
        with pytest.raises(StoreError, match="left alone") as caught:
            write(store, data, replace=False)

        assert "E_EXISTS" == caught.value.code
        assert b"there" == content(google)

    def test_nor_does_it_where_the_object_is_made_while_the_parts_go_up(self, google, store):
        google.before = lambda line, server: server.put("a.tar", b"there") * 0 if f"/{len(DATA)}" in line else 0
        with pytest.raises(StoreError, match="left alone"):
            write(store, replace=False)

        assert b"there" == content(google)


class TestVersions:
    def test_a_read_goes_on_with_the_generation_it_began_with_where_that_is_kept(self, google, store):
        google.versions = True
        google.put("a.tar", DATA)
        with store.open(URL("gs://data/a.tar")) as stream:
            buffer = bytearray(len(DATA))
            count = stream.readinto(memoryview(buffer)[:1000])
            stream.drop()
            google.put("a.tar", bytes(len(DATA)))
            while count < len(DATA):
                count += stream.readinto(memoryview(buffer)[count:])

        assert DATA == buffer

    def test_and_stops_where_it_is_gone(self, google, store):
        google.put("a.tar", DATA)
        with store.open(URL("gs://data/a.tar")) as stream:
            stream.readinto(memoryview(bytearray(1000)))
            stream.drop()
            google.put("a.tar", bytes(len(DATA)))
            with pytest.raises(ChangedError, match="generation"):
                stream.readinto(memoryview(bytearray(1000)))

    def test_small_ranges_are_of_the_generation_that_was_named(self, google, store):
        google.put("a.tar", DATA)
        etag = store.stat(URL("gs://data/a.tar")).etag
        assert DATA[5:25] == store.read(URL("gs://data/a.tar"), 5, 20, etag=etag)
        google.put("a.tar", DATA)
        with pytest.raises(ChangedError):
            store.read(URL("gs://data/a.tar"), 5, 20, etag=etag)


def test_a_list_of_many_pages(google, store):
    google.page = 7
    for number in range(30):
        google.put(f"train/{number:02d}.tar", b"x" * number)
    google.put("train/deep/er.tar", b"")
    found = list(store.list(URL("gs://data/train")))

    assert [f"gs://data/train/{number:02d}.tar" for number in range(30)] == [stat.url for stat in found]
    assert list(range(30)) == [stat.size for stat in found]
    assert 31 == len(list(store.walk(URL("gs://data/train"))))


def test_what_the_server_says_is_in_the_error(google, store):
    with pytest.raises(NotFoundError, match=r"No such object: bucket/none\.tar"):
        store.stat(URL("gs://data/none.tar"))


def test_a_server_that_speaks_no_json_is_named(google, store):
    google.before = lambda line, _: 200
    with pytest.raises(StoreError, match="does not say in JSON"):
        store.stat(URL("gs://data/a.tar"))
    with pytest.raises(StoreError, match="list of this bucket cannot be read"):
        list(store.list(URL("gs://data/")))


@pytest.mark.parametrize(
    ("token", "said"),
    [(None, "No credentials were found: run gcloud auth"), (Bearer("t", 4e9), "The account may not do this")],
    ids=["nobody", "somebody"],
)
def test_a_refusal_has_a_next_step(token, said, store, monkeypatch):
    monkeypatch.setattr(store.wire.access, "_token", lambda: token)

    assert store.wire.access.denial_hint().startswith(said)
    assert said in store.wire.access.hint(403)
