"""Storage options: which are in force for a URL, and what they have the stores ask; of Amazon's against boto3."""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest

from tarviz import stores
from tarviz.commands.config import config
from tarviz.model.errors import NotFoundError, UsageError
from tarviz.model.types import URL
from tarviz.stores._storage_options import known_options, storage_options
from tarviz.stores.az import AzureStore
from tarviz.stores.gs import GoogleStore
from tarviz.stores.s3 import S3Store
from tarviz.testing.faults import Fault, FaultServer
from tarviz.testing.stores import DATA
from tests.servers.clock import FakeClock
from tests.stores.conftest import s3_bucket

KEY = base64.b64encode(bytes(range(32))).decode()


def test_the_longest_beginning_of_a_url_wins(monkeypatch):
    monkeypatch.setenv("TARVIZ_STORAGE_OPTIONS", '{"a": 1, "b": 1, "s3://x/": {"a": 2}, "s3://x/y": {"a": 3}}')

    assert {"a": 1, "b": 1} == storage_options(URL("s3://z/y"))
    assert {"a": 2, "b": 1} == storage_options(URL("s3://x/z"))
    assert {"a": 3, "b": 1} == storage_options(URL("s3://x/y.tar"))


def test_a_store_names_what_it_does_not_take(monkeypatch):
    monkeypatch.setenv("TARVIZ_STORAGE_OPTIONS", '{"requester_pay": true}')

    with pytest.raises(UsageError, match=r"no storage option 'requester_pay'.*There are: requester_pays"):
        known_options(URL("s3://x/y"), "requester_pays")


def test_they_are_not_shown(monkeypatch):
    monkeypatch.setenv("TARVIZ_STORAGE_OPTIONS", '{"password": "planted-secret"}')

    assert "planted" not in str(config()) + str(config().to_dict())


@pytest.fixture
def server(monkeypatch):
    """A server for all three clouds, opened with keys that nobody checks."""
    with FaultServer() as server:
        for name, value in {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_ENDPOINT_URL": server.url}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        ends = f"DefaultEndpointsProtocol=http;AccountName=a;AccountKey={KEY};BlobEndpoint={server.url}/a;"
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", ends)
        yield server


def options(monkeypatch, **found):
    monkeypatch.setenv("TARVIZ_STORAGE_OPTIONS", json.dumps(found))


def shown(address, headers):
    """What a request says of who pays, of keys and of versions."""
    names = {name.lower(): value.decode() if isinstance(value, bytes) else value for name, value in headers.items()}
    told = {name: value for name, value in names.items() if any(word in name for word in ("payer", "project", "customer", "encryption"))}
    query = parse_qs(urlsplit(address).query)
    return told | {name: value[0] for name, value in query.items() if name in ("versionId", "versionid", "generation")}


def of_boto(**asked):
    boto3 = pytest.importorskip("boto3", reason="boto3 is what S3 is held against: pip install boto3")
    from botocore.awsrequest import AWSResponse

    caught = []

    def catch(request, **_):
        caught.append(request)
        return AWSResponse(request.url, 200, {}, SimpleNamespace(stream=lambda: iter(())))

    client = boto3.client("s3", region_name="us-east-1")
    client.meta.events.register("before-send.s3", catch)
    client.head_object(Bucket="data", Key="a.tar", **asked)
    client.close()
    return shown(caught[0].url, caught[0].headers)


@pytest.mark.parametrize(
    ("asked", "ours"),
    [
        ({"RequestPayer": "requester"}, {"requester_pays": True}),
        ({"SSECustomerAlgorithm": "AES256", "SSECustomerKey": bytes(range(32))}, {"encryption_key": KEY}),
        ({"VersionId": "a/b c", "RequestPayer": "requester"}, {"version": "a/b c", "requester_pays": True}),
    ],
)
def test_amazon_is_told_what_boto3_tells_it(server, monkeypatch, asked, ours):
    server.put("/data/a.tar", DATA)
    expected = of_boto(**asked)
    options(monkeypatch, **ours)
    store, url = S3Store(clock=FakeClock()), URL("s3://data/a.tar")

    assert DATA == store.read(url, 0, len(DATA))
    assert len(DATA) == store.stat(url).size
    with store.open(url) as stream:
        stores.fill(stream, memoryview(bytearray(9)))

    assert [expected] * 3 == [shown(request.path, request.headers) for request in server.requests]
    assert expected
    signed = server.requests[0].headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    assert {name for name in expected if name.startswith("x-amz-")} <= set(signed)


def test_what_is_told_goes_to_the_origin_alone(server, monkeypatch):
    with FaultServer() as elsewhere:
        server.put("/data/a.tar", DATA, plan=[Fault(status=302, headers={"location": elsewhere.put("/b.tar", DATA)})])
        options(monkeypatch, encryption_key=KEY)

        assert DATA == S3Store(clock=FakeClock()).read(URL("s3://data/a.tar"), 0, len(DATA))
        assert [True] == [KEY in str(request.headers) for request in server.requests]
        assert [False] == [KEY in str(request.headers) for request in elsewhere.requests]


@pytest.mark.parametrize(
    ("store", "url", "ours", "told"),
    [
        (
            GoogleStore,
            "gs://data/a.tar",
            {"user_project": "p-1", "encryption_key": KEY, "version": 7},
            {"x-goog-user-project", "x-goog-encryption-algorithm", "x-goog-encryption-key", "x-goog-encryption-key-sha256", "generation"},
        ),
        (
            AzureStore,
            "az://data/a.tar",
            {"encryption_key": KEY, "version": "2026-01-01T00:00:00Z"},
            {"x-ms-encryption-algorithm", "x-ms-encryption-key", "x-ms-encryption-key-sha256", "versionid"},
        ),
    ],
)
def test_google_and_azure_are_told_in_their_own_words(server, monkeypatch, store, url, ours, told):
    options(monkeypatch, **ours)

    with pytest.raises(NotFoundError):
        store(clock=FakeClock()).read(URL(url), 0, 9)

    assert {frozenset(told)} == {frozenset(shown(request.path, request.headers)) for request in server.requests}


def test_an_old_version_is_read(s3_address, monkeypatch):
    bucket = s3_bucket(monkeypatch, s3_address, ("testing", "secret-of-the-test"))
    store, url, old = S3Store(), URL(f"s3://{bucket}/a.tar"), DATA[::-1]
    on = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
    store.wire.send("PUT", URL(f"s3://{bucket}/"), {}, 5.0, query={"versioning": ""}, body=on).close()
    versions = []
    for data in (old, DATA):
        with store.create(url) as sink:
            sink.write(data)
        versions.append(store.wire.send("HEAD", url, {}, 5.0).headers["x-amz-version-id"])

    assert DATA == store.read(url, 0, len(DATA))
    options(monkeypatch, **{url: {"version": versions[0]}})
    assert old == store.read(url, 0, len(DATA))
    with store.open(url) as stream:
        data = bytearray(len(old))
        stores.fill(stream, memoryview(data))
    assert old == data


@pytest.mark.parametrize(
    ("ours", "message"), [({"requester": True}, "no storage option 'requester'"), ({"encryption_key": "abc"}, "is no key")]
)
def test_what_a_store_cannot_do_is_said_before_a_byte_is_asked(server, monkeypatch, ours, message):
    options(monkeypatch, **ours)

    with pytest.raises(UsageError, match=message):
        S3Store(clock=FakeClock()).read(URL("s3://data/a.tar"), 0, 9)
    assert not server.requests
