"""S3 on a server of this machine; signatures held against botocore's, faults by a server that fails on purpose."""

from __future__ import annotations

import json
import urllib.request
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from tarviz import stores
from tarviz.model.errors import NotFoundError, StoreError, UsageError
from tarviz.model.types import URL
from tarviz.stores._remote import upload
from tarviz.stores._remote.sigv4 import AwsKeys, sign
from tarviz.stores.s3 import S3Store
from tarviz.testing.faults import Fault, FaultServer
from tarviz.testing.stores import DATA, StoreTests
from tests.servers.clock import FakeClock
from tests.servers.daemons import free_port
from tests.servers.local import s3_server
from tests.stores.conftest import s3_bucket


@pytest.fixture
def bucket(s3_address, monkeypatch):
    return s3_bucket(monkeypatch, s3_address, ("testing", "secret-of-the-test"))


class TestS3Store(StoreTests):
    """The contract of all stores."""

    @pytest.fixture
    def store(self):
        return S3Store(clock=FakeClock())

    @pytest.fixture
    def folder(self, bucket):
        return URL(f"s3://{bucket}/some/folder")


@pytest.fixture(scope="module")
def checking():
    """The address of a server that checks every signature, and what it may do, and the keys of somebody who may use S3."""
    boto3 = pytest.importorskip("boto3", reason="boto3 makes users and their rights: pip install boto3")
    pytest.importorskip("moto.server", reason="moto serves S3: pip install 'moto[server,s3]'")
    with s3_server() as address:
        first = {"endpoint_url": address, "aws_access_key_id": "x", "aws_secret_access_key": "y", "region_name": "us-east-1"}
        iam = boto3.client("iam", **first)
        iam.create_user(UserName="reader")
        may = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
        iam.put_user_policy(UserName="reader", PolicyName="s3", PolicyDocument=json.dumps(may))
        key = iam.create_access_key(UserName="reader")["AccessKey"]
        iam.close()
        urllib.request.urlopen(
            urllib.request.Request(f"{address}/moto-api/reset-auth", b"0", {"Content-Type": "text/plain"}), timeout=30
        ).close()
        yield address, key["AccessKeyId"], key["SecretAccessKey"]


class TestChecked(StoreTests):
    """The contract, where every signature is checked."""

    @pytest.fixture
    def store(self):
        return S3Store(clock=FakeClock())

    @pytest.fixture
    def folder(self, checking, monkeypatch):
        address, *keys = checking
        return URL(f"s3://{s3_bucket(monkeypatch, address, keys)}/some/folder")

    def test_parts_are_signed_and_a_wrong_key_is_refused(self, store, folder, monkeypatch):
        data, url = DATA * (1 + 2 * upload.PART // len(DATA)), URL(f"{folder}/a b+c#1.tar")
        with store.create(url) as sink:
            sink.write(data)

        assert data == store.read(url, 0, len(data))
        assert [url] == [each.url for each in store.list(folder)]
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        with pytest.raises(StoreError, match="SignatureDoesNotMatch") as caught:
            store.read(url, 0, 10)
        assert "E_AUTH" == caught.value.code


class TestSignature:
    @pytest.mark.parametrize("token", [None, "session/token=="])
    @pytest.mark.parametrize("body", [b"", b"some bytes"])
    @pytest.mark.parametrize(
        "address", ["http://127.0.0.1:9000/b/a%20b%2Bc.tar", "https://b.s3.eu-west-1.amazonaws.com/x?list-type=2&prefix=a%2Fb"]
    )
    def test_it_is_the_one_of_botocore(self, address, body, token, monkeypatch):
        auth, request, credentials = (pytest.importorskip(f"botocore.{name}") for name in ("auth", "awsrequest", "credentials"))
        now = 1.7e9
        monkeypatch.setattr(auth, "get_current_datetime", lambda *_: datetime.fromtimestamp(now, UTC))
        ours = sign("PUT", address, {"x-amz-checksum-mode": "ENABLED"}, body, AwsKeys("AKID", "secret", token), "eu-west-1", now)
        theirs = request.AWSRequest("PUT", address, {"x-amz-checksum-mode": "ENABLED"}, body)
        settings = {"payload_signing_enabled": False} if body and address.startswith("https") else {}
        theirs.context["client_config"] = SimpleNamespace(s3=settings)
        auth.S3SigV4Auth(credentials.Credentials("AKID", "secret", token), "s3", "eu-west-1").add_auth(theirs)

        assert theirs.headers["Authorization"] == ours["Authorization"]

    def test_public_buckets_need_no_keys(self, bucket, monkeypatch):
        store = S3Store()
        url = URL(f"s3://{bucket}/open.tar")
        store.wire.send("PUT", url, {"x-amz-acl": "public-read"}, 5.0, body=b"for all").close()
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)

        assert b"for all" == store.read(url, 0, 99)


class TestAddress:
    @pytest.mark.parametrize(
        ("url", "region", "address"),
        [
            ("s3://data/a b+c.tar", "", "https://data.s3.us-east-1.amazonaws.com/a%20b%2Bc.tar"),
            ("s3://data/x", "cn-north-1", "https://data.s3.cn-north-1.amazonaws.com.cn/x"),
            ("s3://my.data/x", "eu-west-1", "https://s3.eu-west-1.amazonaws.com/my.data/x"),
        ],
    )
    def test_amazon_names_hosts_by_bucket_and_region(self, url, region, address, monkeypatch):
        monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
        monkeypatch.setenv("AWS_REGION", region)

        assert address == S3Store().wire.access.address(URL(url), {})

    def test_the_region_of_a_bucket_is_learnt(self, monkeypatch):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        elsewhere = {"status": 400, "headers": {"x-amz-bucket-region": "eu-west-1"}}
        with FaultServer() as server:
            monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
            server.put("/data/a.tar", DATA, plan=[Fault(**elsewhere)])
            store = S3Store()

            assert DATA == store.read(URL("s3://data/a.tar"), 0, len(DATA)) == store.read(URL("s3://data/a.tar"), 0, len(DATA))
            regions = [request.headers["authorization"].split("/")[2] for request in server.requests]
            assert ["us-east-1", "eu-west-1", "eu-west-1"] == regions

    def test_a_redirect_to_another_region_of_amazon_keeps_the_signature(self):
        follows = S3Store().wire.access.follows

        assert follows("https://b.s3.amazonaws.com/x", "https://b.s3-us-west-2.amazonaws.com/x")
        assert not follows("https://b.s3.amazonaws.com/x", "https://b.s3.amazonaws.com.evil.example/x")
        assert not follows("https://b.s3.amazonaws.com/x", "http://b.s3-us-west-2.amazonaws.com/x")


class TestVersions:
    @pytest.mark.fault("F36")
    def test_a_bucket_that_keeps_versions_gives_the_old_one(self, bucket):
        store = S3Store()
        url = URL(f"s3://{bucket}/a.tar")
        on = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
        store.wire.send("PUT", URL(f"s3://{bucket}/"), {}, 5.0, query={"versioning": ""}, body=on).close()
        with store.create(url) as sink:
            sink.write(DATA * 20)

        with store.open(url) as stream:
            head = bytearray(100_000)
            stores.fill(stream, memoryview(head))
            with store.create(url) as sink:
                sink.write(bytes(len(DATA) * 20))
            stream._drop()  # the connection is lost
            rest = bytearray(len(DATA) * 20)
            count = stores.fill(stream, memoryview(rest))

        assert DATA * 20 == bytes(head) + rest[:count]


def test_what_we_deleted_is_gone(bucket):
    store, url = S3Store(clock=FakeClock()), URL(f"s3://{bucket}/a/gone.tar")
    with store.create(url) as sink:
        sink.write(DATA)
    assert len(DATA) == store.stat(url).size
    store.delete(url)

    for ask in (store.stat, store.delete):
        with pytest.raises(NotFoundError):
            ask(url)


class TestParts:
    def test_a_large_object_goes_up_in_parts(self, bucket, monkeypatch):
        monkeypatch.setattr(upload, "PART", 5 << 20)
        store, url = S3Store(), URL(f"s3://{bucket}/large.tar")
        data = DATA * 40
        with store.create(url) as sink:
            for at in range(0, len(data), 1_000_000):
                sink.write(data[at : at + 1_000_000])
            with pytest.raises(NotFoundError):
                store.stat(url)
            stat = sink.commit()

        assert data == store.read(url, 0, len(data))
        assert (len(data), store.stat(url).etag) == (stat.size, stat.etag)

    @pytest.mark.fault("U3")
    def test_an_aborted_upload_leaves_no_parts(self, bucket, monkeypatch):
        monkeypatch.setattr(upload, "PART", 5 << 20)
        store, url = S3Store(), URL(f"s3://{bucket}/large.tar")
        sink = store.create(url)
        sink.write(DATA * 40)
        assert b"<UploadId>" in store.page(URL(f"s3://{bucket}/"), {"uploads": ""})
        sink.abort()

        assert b"<UploadId>" not in store.page(URL(f"s3://{bucket}/"), {"uploads": ""})
        with pytest.raises(NotFoundError):
            store.stat(url)

    @pytest.mark.fault("U2")
    def test_a_completion_whose_answer_was_lost_is_found(self, bucket):
        store, url = S3Store(), URL(f"s3://{bucket}/large.tar")
        made = upload.S3Upload(store, url)
        made.begin()
        parts = [made.part(1, DATA * 20), made.part(2, DATA)]
        etag = made.complete(parts, len(DATA) * 21)

        assert etag == store.stat(url).etag == made.complete(parts, len(DATA) * 21)


class TestErrors:
    """One line that says what to set, at once."""

    def test_no_such_bucket(self, bucket):
        for ask in (S3Store().stat, S3Store().open):
            with pytest.raises(NotFoundError, match=r"no such bucket: 404 .*NoSuchBucket.*Hint: Check bucket and name"):
                ask(URL(f"s3://{bucket}-none/a.tar"))

    def test_no_keys(self, bucket, monkeypatch):
        with S3Store().create(URL(f"s3://{bucket}/a.tar")) as sink:
            sink.write(b"abc")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)

        with pytest.raises(StoreError, match="No keys were found: set AWS_ACCESS_KEY_ID") as caught:
            S3Store().stat(URL(f"s3://{bucket}/a.tar"))

        assert "E_AUTH" == caught.value.code

    def test_no_server(self, monkeypatch):
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")

        with pytest.raises(StoreError, match="Connection refused"):
            S3Store(clock=FakeClock()).stat(URL("s3://data/a.tar"))

    def test_no_bucket(self):
        with pytest.raises(UsageError, match="names no bucket"):
            S3Store().stat(URL("s3://"))

    def test_a_web_page_is_no_listing(self, monkeypatch):
        with FaultServer() as server:
            server.put("/data/", b"<html><br></body>")
            monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
            monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")

            with pytest.raises(StoreError, match="list of this bucket cannot be read"):
                list(S3Store().list(URL("s3://data/")))


class TestListing:
    @pytest.mark.matrix
    def test_pages_are_fetched_when_they_are_wanted(self, monkeypatch):
        pages = [_page(range(at, at + 1000), at < 99_000) for at in range(0, 100_000, 1000)]
        with FaultServer() as server:
            for at, page in enumerate(pages):
                server.put(f"/data/?{'' if at == 0 else f'continuation-token={at}&'}delimiter=%2F&list-type=2&prefix=", page)
            monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
            monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
            found = S3Store().list(URL("s3://data/"))

            assert URL("s3://data/train-000000.tar") == next(found).url
            assert 1 == len(server.requests)
            assert 99_999 == sum(1 for _ in found)

    def test_a_template_picks_what_is_there(self, bucket):
        for number in (0, 1, 3):
            with stores.of("s3://x").create(URL(f"s3://{bucket}/t/train-{number}.tar")) as sink:
                sink.write(b"")

        expected = [f"s3://{bucket}/t/train-{number}.tar" for number in (0, 1, 3)]
        assert expected == stores.expand(f"s3://{bucket}/t/train-{{0..9}}.tar") == stores.expand(f"s3://{bucket}/t/")
        with pytest.raises(NotFoundError, match="none of the 2 objects"):
            stores.expand(f"s3://{bucket}/t/test-{{0..1}}.tar")


def _page(numbers, more):
    rows = "".join(f"<Contents><Key>train-{number:06d}.tar</Key><Size>1</Size></Contents>" for number in numbers)
    token = f"<NextContinuationToken>{numbers[-1] // 1000 + 1}</NextContinuationToken>" if more else ""
    root = '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    return f"{root}<IsTruncated>{str(more).lower()}</IsTruncated>{token}{rows}</ListBucketResult>".encode()
