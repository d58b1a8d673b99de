"""The Hugging Face hub, played by two servers that may fail: the hub, and the one where the bytes are."""

from __future__ import annotations

import json
import sys

import pytest

import tarviz
from tarviz import cli
from tarviz.model.errors import DataError, MissingPackageError, NotFoundError, StoreError, UsageError
from tarviz.model.types import URL
from tarviz.stores.hf import HubStore, find_token
from tarviz.testing.faults import ALWAYS, Fault, FaultServer
from tarviz.testing.stores import DATA, StoreTests
from tarviz.testing.strategies import numbered_records, shard
from tests.conftest import each_case
from tests.servers.clock import FakeClock
from tests.servers.hub import TOKEN
from tests.servers.hub import hub as hub_server

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # the hub's library asks its own in the old way


class Hub:
    """A repository `org/name`."""

    def __init__(self):
        self.api, self.bytes = FaultServer(), FaultServer()
        self.files = {}

    def put(self, name, data, plan=()):
        place = self.bytes.put(f"/lfs/{name}".replace(" ", "%20"), data, plan=plan)
        for path in ("main", "refs%2Fpr%2F1"):
            answers = [Fault(method=method, status=302, headers={"Location": place}, times=ALWAYS) for method in ("GET", "HEAD")]
            self.api.put(f"/datasets/org/name/resolve/{path}/{name}".replace(" ", "%20"), b"", plan=answers)
        self.files[name] = {"type": "file", "path": name, "size": len(data), "oid": "x"}
        folders = {name.rpartition("/")[0] for name in self.files}
        for folder in folders | {name.rpartition("/")[0] for name in folders}:
            rows = [row for name, row in self.files.items() if name.rpartition("/")[0] == folder]
            rows += [{"type": "directory", "path": name, "size": 0, "oid": "x"} for name in folders if name.rpartition("/")[0] == folder]
            self.api.put(f"/api/datasets/org/name/tree/main{'/' if folder else ''}{folder}", json.dumps(rows).encode())


@pytest.fixture
def hub(monkeypatch, tmp_path):
    hub = Hub()
    with hub.api, hub.bytes:
        monkeypatch.setenv("HF_ENDPOINT", hub.api.url)
        monkeypatch.setenv("HF_HOME", str(tmp_path))
        monkeypatch.setenv("HF_TOKEN", "hf_token-of-the-test")
        yield hub


class TestRanges:
    def test_ranges_next_to_each_other_ask_the_hub_once(self, hub):
        hub.put("a.tar", DATA)
        url, store = URL("hf://datasets/org/name/a.tar"), HubStore()
        etag = store.stat(url).etag
        for server in (hub.api, hub.bytes):
            server.requests.clear()
        for at in range(0, 5000, 1000):
            assert DATA[at : at + 500] == store.read(url, at, 500, etag=etag)

        assert (1, 5) == (len(hub.api.requests), len(hub.bytes.requests))
        assert [None] * 5 == [request.headers.get("authorization") for request in hub.bytes.requests]


class TestToken:
    def test_it_goes_to_the_hub_alone(self, hub):
        hub.put("a.tar", DATA)

        assert DATA == HubStore().read(URL("hf://datasets/org/name/a.tar"), 0, len(DATA))
        assert {"Bearer hf_token-of-the-test"} == {request.headers.get("authorization") for request in hub.api.requests}
        assert [None] == [request.headers.get("authorization") for request in hub.bytes.requests]

    def test_it_is_the_one_of_the_hubs_library(self, monkeypatch, tmp_path):
        auth = pytest.importorskip("huggingface_hub.utils._auth", reason="pip install 'tarviz[hf]'")
        monkeypatch.delenv("HF_TOKEN", raising=False)
        (tmp_path / "token").write_text(" hf_abc\n")
        monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "token"))
        monkeypatch.setattr(auth.constants, "HF_TOKEN_PATH", str(tmp_path / "token"))

        assert "hf_abc" == find_token() == auth._get_token_from_file()
        monkeypatch.setenv("HF_TOKEN", "hf_env")
        assert "hf_env" == find_token() == auth._get_token_from_environment()


class TestUrl:
    @pytest.mark.parametrize(
        ("url", "address"),
        [
            ("hf://datasets/o/n/a b.tar", "/datasets/o/n/resolve/main/a%20b.tar"),
            ("hf://datasets/o/n@v1/x/a.tar", "/datasets/o/n/resolve/v1/x/a.tar"),
            ("hf://datasets/o/n@refs/convert/parquet/a", "/datasets/o/n/resolve/refs%2Fconvert%2Fparquet/a"),
            ("hf://o/n/a", "/o/n/resolve/main/a"),
            ("hf://models/o/n/a", "/o/n/resolve/main/a"),
            ("hf://spaces/o/n/a", "/spaces/o/n/resolve/main/a"),
            ("hf://kernels/o/n@v1/a", "/kernels/o/n/resolve/v1/a"),
            ("hf://buckets/o/n/x/a b.tar", "/buckets/o/n/resolve/x/a%20b.tar"),
        ],
    )
    def test_repository_revision_and_name_are_parted(self, url, address, monkeypatch):
        monkeypatch.delenv("HF_ENDPOINT", raising=False)

        assert f"https://huggingface.co{address}" == HubStore().wire.access.address(URL(url), {})

    def test_every_kind_of_the_hubs_library_is_known(self):
        constants = pytest.importorskip("huggingface_hub.constants", reason="pip install 'tarviz[hf]'")

        for kind in getattr(constants, "HF_URI_TYPE_PREFIXES", constants.REPO_TYPES_MAPPING):
            assert "/o/n/" in HubStore().wire.access.address(URL(f"hf://{kind}/o/n/a.tar"), {})

    @each_case("url", ["hf://", "hf://datasets/only", "hf://kernels/only", "hf://datasets/a@b@c/x"])
    def test_anything_else_is_said(self, url):
        with pytest.raises(UsageError, match="names no repository"):
            HubStore().stat(URL(url))

    def test_a_bucket_has_no_revision(self):
        with pytest.raises(UsageError, match=r"keeps no revisions.*Leave out @v1"):
            HubStore().stat(URL("hf://buckets/o/n@v1/a.tar"))


class TestErrors:
    def test_what_is_not_there(self, hub):
        with pytest.raises(NotFoundError, match="Check organisation, name, revision"):
            HubStore().stat(URL("hf://datasets/org/other/a.tar"))
        with pytest.raises(NotFoundError, match=r"hf://datasets/org/other/.*404"):
            HubStore().list(URL("hf://datasets/org/other/"))

    def test_what_is_private(self, hub, monkeypatch):
        monkeypatch.delenv("HF_TOKEN")
        hub.api.put("/datasets/org/name/resolve/main/a.tar", b"", plan=[Fault(status=401, times=ALWAYS), Fault(method="HEAD", status=401)])

        with pytest.raises(StoreError, match="run hf auth login, or set HF_TOKEN") as caught:
            HubStore().stat(URL("hf://datasets/org/name/a.tar"))
        assert "E_AUTH" == caught.value.code

    def test_folders_below_are_asked_for_by_a_walk_alone(self, hub):
        hub.put("some/a.tar", b"a")
        urls = [stat.url for look in (HubStore().list, HubStore().walk) for stat in look(URL("hf://datasets/org/name/some/"))]

        assert ["hf://datasets/org/name/some/a.tar"] * 2 == urls
        assert ["false", "true"] == [request.path.partition("recursive=")[2].partition("&")[0] for request in hub.api.requests[-2:]]

    def test_a_list_in_pages_is_read_to_its_end(self, hub):
        rows = [[{"type": "file", "path": f"{name}.tar", "size": 1}] for name in "ba"]
        place = "/api/datasets/org/name/tree/main"
        link = f'<{hub.api.url}{place}?cursor=2>; rel="next"'
        hub.api.put(f"{place}?cursor=2&recursive=false", json.dumps(rows[1]).encode())
        hub.api.put(place, json.dumps(rows[0]).encode(), plan=[Fault(headers={"Link": link})])

        found = HubStore().list(URL("hf://datasets/org/name"))
        assert ["hf://datasets/org/name/a.tar", "hf://datasets/org/name/b.tar"] == [stat.url for stat in found]

    @pytest.mark.parametrize("page", [b"<html>", b'{"error": "x"}', b""])
    def test_what_is_no_list_is_said(self, hub, page):
        hub.api.put("/api/datasets/org/name/tree/main", page)

        with pytest.raises(StoreError, match=r"the hub's list cannot be read.*Check HF_ENDPOINT"):
            HubStore().list(URL("hf://datasets/org/name"))

    def test_a_walk_where_no_folder_is_finds_nothing(self, hub):
        assert [] == list(HubStore().walk(URL("hf://datasets/org/name/none/a")))
        with pytest.raises(NotFoundError):
            HubStore().list(URL("hf://datasets/org/name/none/"))


class TestLibrary:
    def test_a_token_of_the_machine_that_runs_it_is_the_librarys(self, monkeypatch):
        library = pytest.importorskip("huggingface_hub", reason="pip install 'tarviz[hf]'")
        monkeypatch.setenv("HF_OIDC_RESOURCE", "org/name")
        monkeypatch.setenv("HF_TOKEN", "another")
        monkeypatch.setattr(library, "get_token", lambda: "of the machine")

        assert "of the machine" == find_token()

    def test_what_needs_it_says_so_where_it_is_not_there(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "huggingface_hub", None)
        monkeypatch.setenv("HF_TOKEN", "t")

        assert "t" == find_token()
        with pytest.raises(MissingPackageError, match="writing to the hub"):
            HubStore().create(URL("hf://datasets/org/name/a.tar"))
        monkeypatch.setenv("HF_OIDC_RESOURCE", "org/name")
        with pytest.raises(MissingPackageError, match="HF_OIDC_RESOURCE"):
            find_token()


@pytest.fixture
def written(monkeypatch, tmp_path):
    """A hub that takes commits of the hub's own library."""
    constants = pytest.importorskip("huggingface_hub.constants", reason="huggingface_hub is not installed")
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)  # its servers are not played here
    with hub_server() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_HOME", str(tmp_path))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield hub


class TestHubStore(StoreTests):
    """The contract of all stores."""

    @pytest.fixture
    def store(self, written):
        return HubStore(clock=FakeClock())

    @pytest.fixture
    def folder(self, written):
        self.hub = written
        return URL("hf://datasets/org/name/some/folder")

    def put(self, store, url, data):
        self.hub.files[url.removeprefix("hf://datasets/org/name/")] = data


class TestBucket(StoreTests):
    """The contract, on a bucket."""

    @pytest.fixture
    def store(self, written):
        return HubStore(clock=FakeClock())

    @pytest.fixture
    def folder(self, written):
        self.bucket = written.bucket
        return URL("hf://buckets/org/name/some/folder")

    def put(self, store, url, data):
        self.bucket.put(url.removeprefix("hf://buckets/org/name/"), data)

    def test_what_is_written_is_what_the_hubs_own_client_reads(self, store, folder, written, tmp_path):
        from huggingface_hub import HfApi

        with store.create(URL(f"{folder}/a b#1.tar")) as sink:
            sink.write(DATA)
        HfApi(endpoint=written.url, token=TOKEN).download_bucket_files("org/name", [("some/folder/a b#1.tar", tmp_path / "a")])

        assert DATA == (tmp_path / "a").read_bytes() == self.drain(store, URL(f"{folder}/a b#1.tar"))

    def test_folders_and_walks_are_those_of_the_hubs_own_client(self, store, folder, written):
        from huggingface_hub import HfFileSystem

        for name in ("b.tar", "a.tar", "c%.tar", "deep/d.tar", "deep/er/e.tar"):
            self.put(store, f"{folder}/{name}", name.encode())
        for name in ("-2/f.tar", ".tar"):  # begin as the folder's name
            self.put(store, f"{folder}{name}", b"f")
        place = HfFileSystem(endpoint=written.url, token=TOKEN, skip_instance_cache=True)
        said = {look: [(stat.url, stat.size) for stat in getattr(store, look)(URL(f"{folder}/"))] for look in ("list", "walk")}
        rows = place.ls("buckets/org/name/some/folder")

        assert sorted((f"hf://{row['name']}", row["size"]) for row in rows if row["type"] == "file") == said["list"]
        assert [f"hf://{name}" for name in place.find("buckets/org/name/some/folder")] == [url for url, _ in said["walk"]]
        assert (3, 5) == (len(said["list"]), len(said["walk"]))

    @pytest.mark.matrix
    def test_shards_are_found_by_folder_and_pattern_and_read(self, folder, written):
        for number in range(5):
            self.put(None, f"{folder}/train-{number}.tar", shard(numbered_records(4)))

        assert 20 == len(list(tarviz.records(f"{folder}/"))) == len(list(tarviz.records("hf://buckets/org/name/**/*.tar")))
        assert 8 == len(list(tarviz.records(f"{folder}/train-{{3..9}}.tar")))

    def test_the_token_goes_to_the_hub_alone(self, store, folder, written):
        with store.create(URL(f"{folder}/a.tar")) as sink:
            sink.write(DATA)
        self.drain(store, URL(f"{folder}/a.tar"))
        sent = {(host, said) for host, _, said in written.bucket.seen}

        assert {(written.url, f"Bearer {TOKEN}"), (written.bucket.place, None)} == sent

    @pytest.mark.parametrize(
        ("path", "said"), [("org/other/a.tar", "NOT_FOUND.*hf buckets create"), ("org/name/no.tar", "E_WRITE.*not today")]
    )
    def test_a_write_that_is_refused_says_why_and_leaves_nothing(self, store, written, path, said):
        written.bucket.fails = "no.tar"

        with pytest.raises((NotFoundError, StoreError), match=said), store.create(URL(f"hf://buckets/{path}")) as sink:
            sink.write(b"x")
        assert {} == written.bucket.files

    def test_without_the_right_token_the_next_step_is_said(self, store, folder, url, monkeypatch):
        monkeypatch.setenv("HF_TOKEN", "hf_other")

        with pytest.raises(StoreError, match=r"E_AUTH.*another HF_TOKEN") as caught:
            store.read(url, 0, 10)
        with pytest.raises(StoreError, match=r"E_AUTH.*HF_TOKEN that may write"), store.create(url) as sink:
            sink.write(b"x")
        assert "hf_other" not in str(caught.value)

    def test_a_library_without_buckets_is_said(self, written, monkeypatch):
        from huggingface_hub import HfApi

        monkeypatch.delattr(HfApi, "batch_bucket_files")

        with pytest.raises(MissingPackageError, match="huggingface_hub"):
            HubStore().create(URL("hf://buckets/org/name/a.tar"))

    def test_what_sends_the_bytes_may_be_missing(self, store, folder, monkeypatch):
        monkeypatch.setitem(sys.modules, "hf_xet", None)

        with pytest.raises(MissingPackageError, match="hf_xet"), store.create(URL(f"{folder}/a.tar")) as sink:
            sink.write(b"x")


class TestUpload:
    @pytest.mark.matrix
    def test_shards_and_their_card_are_a_commit_each_and_read_back(self, written, tmp_path, capsys):
        (tmp_path / "a.tar").write_bytes(shard(numbered_records(20)))
        place = "hf://datasets/org/name/data/train.tar"

        assert 0 == cli.main(["cat", str(tmp_path / "a.tar"), "-o", place])
        assert 0 == cli.main(["card", place, "-o", "hf://datasets/org/name/README.md"])
        assert [["data/train.tar"], ["README.md"]] == [names for names in written.commits if names != ["contact.webp"]][:2]
        assert [(key, dict(fields)) for key, fields in numbered_records(20)] == [
            (record.key, {ext: bytes(data) for ext, data in record.items()}) for record in tarviz.records(place)
        ]
        assert b"train.tar" in written.files["README.md"]

    def test_the_bars_of_the_hubs_library_stay_away_and_are_as_before_afterwards(self, written, monkeypatch, capfd):
        from huggingface_hub.utils import are_progress_bars_disabled

        monkeypatch.setenv("TQDM_POSITION", "-1")  # else it shows them on a terminal alone
        with HubStore().create(URL("hf://datasets/org/name/large.tar")) as sink:
            sink.write(bytes(11 << 20))

        assert "" == capfd.readouterr().err
        assert not are_progress_bars_disabled()

    def test_without_a_token_nothing_is_sent_and_the_line_to_type_is_said(self, written, tmp_path, monkeypatch):
        (tmp_path / "a.tar").write_bytes(shard(numbered_records(20)))
        monkeypatch.delenv("HF_TOKEN")

        with pytest.raises(StoreError, match=r"E_AUTH hf://datasets/org/name/a\.tar: .*Run hf auth login, or set HF_TOKEN"):
            tarviz.cat(tmp_path / "a.tar", "hf://datasets/org/name/a.tar")
        assert {} == written.files

    @pytest.mark.parametrize(("token", "refuses", "said"), [("hf_other", 0, "E_AUTH"), (TOKEN, 403, "E_AUTH"), (TOKEN, 409, "E_WRITE")])
    def test_a_refused_commit_leaves_nothing(self, written, tmp_path, monkeypatch, token, refuses, said):
        (tmp_path / "a.tar").write_bytes(shard(numbered_records(20)))
        monkeypatch.setenv("HF_TOKEN", token)
        written.refuses = refuses

        with pytest.raises(StoreError, match=said):
            tarviz.cat(tmp_path / "a.tar", "hf://datasets/org/name/a.tar")
        assert ({}, []) == (written.files, written.commits)

    def test_a_shard_that_breaks_off_is_not_committed(self, written, tmp_path):
        (tmp_path / "a.tar").write_bytes(shard(numbered_records(20))[:9000])

        with pytest.raises(DataError, match="E_TRUNCATED"):
            tarviz.cat(tmp_path / "a.tar", "hf://datasets/org/name/a.tar")
        assert ({}, {}) == (written.files, written.large)

    def test_a_repository_that_is_not_there_is_said_with_the_line_that_makes_it(self, written):
        with pytest.raises(NotFoundError, match="hf repos create"), HubStore().create(URL("hf://datasets/org/other/a.tar")) as sink:
            sink.write(b"x")

    def test_a_folder_is_no_file(self, written):
        with pytest.raises(UsageError, match="names no file"):
            HubStore().create(URL("hf://datasets/org/name/data/"))
