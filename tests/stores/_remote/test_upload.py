"""Uploads under faults: parts that fail, answers that get lost, writes that are dropped. U… are scenarios of the fault list."""

from __future__ import annotations

import http.server
import random
import re
import threading
from urllib.parse import quote

import pytest

from tarviz.model.errors import NotFoundError, StoreError
from tarviz.model.types import URL
from tarviz.stores._remote import upload
from tarviz.stores.az import AzureStore
from tarviz.stores.gs import GoogleStore
from tarviz.stores.s3 import S3Store
from tarviz.testing.faults import ALWAYS, Fault, FaultServer
from tests.servers.clock import FakeClock

UPLOAD = b"<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>"
DONE = b'<CompleteMultipartUploadResult><ETag>"abc-3"</ETag></CompleteMultipartUploadResult>'
FAILED = b"<Error><Code>InternalError</Code><Message>Try again.</Message></Error>"

NOT_YET = (Fault(method="HEAD", status=404), Fault(status=404))  # it is made between the look for it and the write


class Bucket:
    """A server that answers the calls of one upload of three parts, and fails where a test says so."""

    def __init__(self, server):
        self.server = server
        self.fails = {}
        for number in (1, 2, 3):
            server.put(f"/b/a.tar?partNumber={number}&uploadId=u1", b"", etag=f'"{number:032x}"')

    def plan(self, *, begin=(), parts=(), complete=()):
        ok = {"begin": ("/b/a.tar?uploads=", UPLOAD), "complete": ("/b/a.tar?uploadId=u1", DONE)}
        for name, (path, body) in ok.items():
            faults = begin if name == "begin" else complete
            self.server.put(path, body, plan=list(faults))
        for number, fault in parts:
            self.server.put(f"/b/a.tar?partNumber={number}&uploadId=u1", b"", etag=f'"{number:032x}"', plan=[fault])

    def asked(self, method, pattern):
        return [request for request in self.server.requests if request.method == method and re.search(pattern, request.path)]


@pytest.fixture
def bucket(monkeypatch):
    monkeypatch.setattr(upload, "PART", 1000)
    with FaultServer() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        yield Bucket(server)


URL_ = URL("s3://b/a.tar")


def write(store, size=2500):
    with store.create(URL_) as sink:
        sink.write(bytes(size))
    return sink.commit()


class Parts:
    """An upload that notes how large its parts are; they fail where `broken`."""

    at_once = 2

    def __init__(self, broken=False):
        self.sizes, self.broken = {}, broken

    def begin(self):
        pass

    def part(self, number, data):
        if self.broken:
            raise StoreError("no part is taken", code="E_WRITE")
        self.sizes[number] = len(data)
        return str(number)

    def complete(self, parts, size):
        return "-".join(parts)

    stop = abort = begin


class TestParts:
    def test_get_twice_as_large_so_that_ten_thousand_are_enough(self, monkeypatch):
        monkeypatch.setattr(upload, "PART", 10)
        monkeypatch.setattr(upload, "_LARGER", 3)
        made = Parts()
        with upload.UploadSink(URL_, made) as sink:
            sink.write(bytes(190))

        assert "1-2-3-4-5-6-7-8-9" == sink.commit().etag
        assert [10, 10, 10, 20, 20, 20, 40, 40, 20] == [made.sizes[number] for number in range(1, 10)]

    def test_no_more_than_two_are_under_way(self, monkeypatch):
        """The write of a third waits for the first, and so learns what became of it."""
        monkeypatch.setattr(upload, "PART", 10)
        sink = upload.UploadSink(URL_, Parts(broken=True))
        sink.write(bytes(20))
        with pytest.raises(StoreError, match="no part is taken"):
            sink.write(bytes(10))
        sink.abort()


@pytest.mark.fault("U4")
class TestReplacingNothing:
    def test_whole_and_in_parts_the_last_call_bears_the_condition(self, bucket):
        refused = Fault(method="POST", status=412)
        bucket.plan(complete=[refused])
        sink = S3Store(clock=FakeClock()).create(URL_, replace=False)
        sink.write(bytes(2500))
        with pytest.raises(StoreError, match="left alone") as caught:
            sink.commit()

        assert ("E_EXISTS", URL_) == (caught.value.code, caught.value.shard)
        assert ["*"] == [request.headers.get("if-none-match") for request in bucket.asked("POST", "uploadId=u1")]
        assert [None] * 3 == [request.headers.get("if-none-match") for request in bucket.asked("PUT", "partNumber")]
        assert 1 == len(bucket.asked("DELETE", "uploadId=u1"))

    def test_our_own_object_whose_answer_was_lost_is_no_other(self, bucket):
        data = b"these bytes"
        etag = f'"{upload.hashlib.md5(data, usedforsecurity=False).hexdigest()}"'
        for there, code in ((etag, None), ('"another"', "E_EXISTS")):
            lost = [*NOT_YET, Fault(method="PUT", before_headers=True), Fault(method="PUT", status=412)]
            bucket.server.put("/b/a.tar", data, etag=there, plan=lost)
            sink = S3Store(clock=FakeClock()).create(URL_, replace=False)
            sink.write(data)
            if code is None:
                assert etag == sink.commit().etag
            else:
                with pytest.raises(StoreError) as caught:
                    sink.commit()
                assert code == caught.value.code

    def test_azure_is_asked_the_same(self, monkeypatch):
        with FaultServer() as server:
            for name, value in {"ACCOUNT": "account", "KEY": "cGxhbnRlZA==", "ENDPOINT": f"{server.url}/account"}.items():
                monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
            exists = {"status": 409, "headers": {"x-ms-error-code": "BlobAlreadyExists"}}
            server.put("/account/b/a.tar", b"", plan=[*NOT_YET, Fault(method="PUT", **exists)])
            with pytest.raises(StoreError, match="left alone"):
                AzureStore(clock=FakeClock()).create(URL("az://b/a.tar"), replace=False).commit()

            assert "*" == server.requests[-1].headers["if-none-match"]


class TestFaults:
    @pytest.mark.fault("U1")
    def test_a_part_that_fails_is_sent_again(self, bucket):
        bucket.plan(parts=[(2, Fault(method="PUT", status=503, times=3))])

        assert '"abc-3"' == write(S3Store(clock=FakeClock())).etag
        assert 4 == len(bucket.asked("PUT", "partNumber=2"))
        assert 1 == len(bucket.asked("PUT", "partNumber=1"))

    def test_a_completion_that_fails_behind_status_200_is_sent_again(self, bucket):
        bucket.plan(complete=[Fault(method="POST", status=200, body=FAILED), Fault(method="POST", before_headers=True, end="reset")])

        assert '"abc-3"' == write(S3Store(clock=FakeClock())).etag
        assert 3 == len(bucket.asked("POST", "uploadId=u1"))

    @pytest.mark.fault("U2")
    def test_a_completion_whose_answer_was_lost_is_found_done(self, bucket):
        bucket.plan(complete=[Fault(method="POST", before_headers=True), Fault(method="POST", status=404)])
        parts = b"".join(number.to_bytes(16, "big") for number in (1, 2, 3))
        etag = f'"{upload.hashlib.md5(parts, usedforsecurity=False).hexdigest()}-3"'
        bucket.server.put("/b/a.tar", bytes(2500), etag=etag)

        assert etag == write(S3Store(clock=FakeClock())).etag

    def test_an_upload_that_somebody_dropped_is_no_success(self, bucket):
        bucket.plan(complete=[Fault(method="POST", status=404)])
        bucket.server.put("/b/a.tar", bytes(2500), etag='"another"')

        with pytest.raises(StoreError, match="dropped by the server") as caught:
            write(S3Store(clock=FakeClock()))
        assert "E_WRITE" == caught.value.code

    @pytest.mark.fault("U3")
    def test_a_write_that_is_given_up_drops_its_parts(self, bucket):
        bucket.plan(parts=[(2, Fault(method="PUT", status=403, times=9))])

        with pytest.raises(StoreError, match="refuses access"):
            write(S3Store(clock=FakeClock()))
        assert 1 == len(bucket.asked("DELETE", "uploadId=u1"))
        assert [] == bucket.asked("POST", "uploadId=u1")

    @pytest.mark.fault("U5")
    def test_keys_that_end_in_the_middle_are_renewed(self, bucket, monkeypatch):
        expired = b"<Error><Code>ExpiredToken</Code></Error>"
        bucket.plan(parts=[(2, Fault(method="PUT", status=400, body=expired))])

        assert 2500 == write(S3Store(clock=FakeClock())).size

    def test_a_small_object_is_one_request(self, bucket):
        bucket.server.put("/b/a.tar", b"", etag='"one"')

        assert '"one"' == write(S3Store(), 900).etag
        assert ["PUT"] == [request.method for request in bucket.server.requests]

    def test_an_abort_does_not_wait_for_a_server_that_is_gone(self, bucket):
        bucket.plan(parts=[(1, Fault(method="PUT", status=503, headers={"Retry-After": "60"}, times=ALWAYS))])
        sink = S3Store().create(URL_)
        sink.write(bytes(1500))
        while not bucket.asked("PUT", "partNumber=1"):
            pass
        sink.abort()

        assert 1 == len(bucket.asked("DELETE", "uploadId=u1"))

    def test_no_thread_is_left(self, bucket):
        bucket.plan()
        write(S3Store())
        sink = S3Store().create(URL_)
        sink.write(bytes(5000))
        sink.abort()

        assert [] == [thread for thread in threading.enumerate() if "upload" in thread.name]
        with pytest.raises((StoreError, NotFoundError)):
            sink.commit()


class TestRedirects:
    def redirect(self, bucket, name, to):
        """The server leads a write of the object `name` to the address `to`, as AIStore's gateway does."""
        location = f"{bucket.server.url}{to}".encode().decode("latin-1")
        bucket.server.put(f"/b/{quote(name)}", b"", plan=[Fault(method="PUT", status=307, headers={"Location": location}, times=ALWAYS)])
        with S3Store(clock=FakeClock()).create(URL(f"s3://b/{name}")) as sink:
            sink.write(b"x")

    def test_a_name_in_raw_utf_8_stays_the_name(self, bucket):
        bucket.server.put(f"/target/{quote('中文.tar')}", b"", plan=[Fault(method="PUT", status=200, times=ALWAYS)])
        self.redirect(bucket, "中文.tar", "/target/中文.tar")

        assert f"/target/{quote('中文.tar')}" == bucket.server.requests[-1].path

    def test_another_name_is_not_written(self, bucket):
        with pytest.raises(StoreError, match="to another name") as caught:
            self.redirect(bucket, "q?u.tar", "/target/q?u.tar&pid=1")

        assert "E_WRITE" == caught.value.code
        assert not bucket.asked("PUT", "^/target")


def test_a_server_that_ignores_the_condition_replaces_nothing(bucket):
    bucket.server.put("/b/a.tar", b"there", plan=[Fault(method="PUT", status=200, times=ALWAYS)])
    late = S3Store(clock=FakeClock()).create(URL_, replace=False)
    late.write(b"new")
    with pytest.raises(StoreError, match="left alone") as caught:
        late.commit()

    assert "E_EXISTS" == caught.value.code
    assert not bucket.asked("PUT", "")


class TestAnswers:
    """What a server answers that began or took nothing."""

    def test_an_upload_that_is_not_begun(self, bucket):
        bucket.server.put("/b/a.tar?uploads=", b"<Welcome/>")

        with pytest.raises(StoreError, match="begins no upload in parts") as caught:
            write(S3Store(clock=FakeClock()))
        assert ("E_WRITE", URL_) == (caught.value.code, caught.value.shard)

    def test_a_part_without_a_name(self, bucket):
        bucket.plan()
        bucket.server.put("/b/a.tar?partNumber=2&uploadId=u1", b"", etag=None)

        with pytest.raises(StoreError, match="names no ETag for part 2") as caught:
            write(S3Store(clock=FakeClock()))
        assert "E_WRITE" == caught.value.code

    @pytest.mark.parametrize(
        ("there", "size", "ours"), [("zz-3", 2500, True), ("zz-2", 2500, False), ("zz-3", 2501, False)], ids=["ours", "parts", "size"]
    )
    def test_where_parts_have_no_md5_their_number_and_the_size_tell_whether_it_is_ours(self, bucket, there, size, ours):
        bucket.plan(complete=[Fault(method="POST", status=404)])
        for number in (1, 2, 3):
            bucket.server.put(f"/b/a.tar?partNumber={number}&uploadId=u1", b"", etag=f'"kms{number}"')
        bucket.server.put("/b/a.tar", bytes(size), etag=f'"{there}"')

        if ours:
            assert f'"{there}"' == write(S3Store(clock=FakeClock())).etag
        else:
            with pytest.raises(StoreError, match="dropped by the server"):
                write(S3Store(clock=FakeClock()))

    def test_a_google_session_that_is_not_begun(self, monkeypatch):
        with FaultServer() as server:
            monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
            server.put("/upload/storage/v1/b/b/o", b"{}")

            with pytest.raises(StoreError, match="the server begins no upload") as caught:
                GoogleStore(clock=FakeClock()).create(URL("gs://b/a.tar")).commit()
        assert "E_WRITE" == caught.value.code

    def test_google_is_asked_for_the_version_where_the_last_answer_does_not_tell_it(self, monkeypatch):
        with FaultServer() as server:
            monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
            server.put("/upload/storage/v1/b/b/o", b"", headers={"Location": f"{server.url}/upload/storage/v1/b/b/o?upload_id=u1"})
            server.put("/storage/v1/b/b/o/a.tar", b'{"generation": "7", "size": "4"}')
            sink = GoogleStore(clock=FakeClock()).create(URL("gs://b/a.tar"))
            sink.write(b"data")

            assert ("generation 7", 4) == (sink.commit().etag, sink.commit().size)
            assert ["bytes 0-3/4"] == [request.headers["content-range"] for request in server.requests if request.method == "PUT"]


class Blobs(http.server.BaseHTTPRequestHandler):
    """Takes what is put; nothing is there to be read."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        self.server.put[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("ETag", '"made"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def test_azure_takes_blocks_and_then_their_list(monkeypatch):
    monkeypatch.setattr(upload, "PART", 1000)
    data = random.Random(5).randbytes(2500)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Blobs) as server:
        server.put = {}
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/account"
        for name, value in {"ACCOUNT": "account", "KEY": "cGxhbnRlZA==", "ENDPOINT": address}.items():
            monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
        with AzureStore(clock=FakeClock()).create(URL("az://b/a.tar")) as sink:
            sink.write(data)
        server.shutdown()

    names = ["MDAwMDAwMDE=", "MDAwMDAwMDI=", "MDAwMDAwMDM="]
    blocks = {f"/account/b/a.tar?blockid={name.replace('=', '%3D')}&comp=block": at * 1000 for at, name in enumerate(names)}
    rows = "".join(f"<Latest>{name}</Latest>" for name in names)
    listed = {"/account/b/a.tar?comp=blocklist": f'<?xml version="1.0" encoding="utf-8"?><BlockList>{rows}</BlockList>'.encode()}
    assert {path: data[at : at + 1000] for path, at in blocks.items()} | listed == server.put
    assert ('"made"', 2500) == (sink.commit().etag, sink.commit().size)
