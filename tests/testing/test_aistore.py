"""The small AIStore answers as one was seen to; http.client asks, which follows no redirect and repairs nothing."""

from __future__ import annotations

import http.client
import io
import json
import tarfile
from collections.abc import Iterator
from email.parser import BytesParser
from typing import Any
from urllib.parse import urlsplit

import pytest

from tarviz.formats.tfrecord import crc32c
from tarviz.testing.aistore import Cluster, Fail, place_of
from tarviz.testing.strategies import shard

ARCHIVES, FLAT, NO_FOLDERS = 1 << 3, 1 << 11, 1 << 13
SHARD = shard([("0001", {"txt": b"a cat", "cls": b"3"})])


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


def ask(address: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of an answer."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


class TestObjects:
    @pytest.fixture(autouse=True)
    def _crc(self) -> None:
        pytest.importorskip("google_crc32c", reason="the checksums of AIStore: pip install google-crc32c")

    @pytest.mark.parametrize(("method", "status"), [("GET", 301), ("HEAD", 307)])
    def test_the_proxy_leads_to_the_target_that_has_it(self, cluster: Cluster, method: str, status: int) -> None:
        cluster.put("data", "c.tar", b"some bytes")
        path = "/v1/objects/data/c.tar"
        target = cluster.targets[1]

        assert place_of("data", "c.tar", range(2)) == 1
        for asked, sign in ((path, "?"), (f"{path}?a=b", "&")):
            answer = ask(cluster.url, method, asked)
            assert (status, f"{target}{asked}{sign}pid=proxy&utm=1") == (answer[0], answer[1]["Location"])
        assert [("proxy", method, path), ("proxy", method, f"{path}?a=b")] == cluster.requests

    def test_it_comes_whole_with_what_is_known_of_it(self, cluster: Cluster) -> None:
        cluster.put("data", "a b.tar", b"old")
        cluster.put("data", "a b.tar", b"some bytes")
        status, headers, body = ask(cluster.target_of("data", "a b.tar"), "GET", "/v1/objects/data/a%20b.tar")
        crc = headers["ais-checksum-value"]
        known = {"Content-Length": "10", "ais-checksum-type": "crc32c", "ais-checksum-value": crc, "ais-version": "2"}

        assert (200, b"some bytes") == (status, body)
        assert {**known, "ais-atime": "1700000000"} == headers
        assert f"{crc32c(body):08x}" == crc
        told = {"ais-bucket-name": "data", "ais-name": "a%20b.tar", "ais-location": "t1[mp]"}
        told |= {"ais-mirror-copies": "1", "ais-present": "true"}
        assert {**told, **headers} == ask(cluster.targets[0], "HEAD", "/v1/objects/data/a%20b.tar")[1]

    def test_an_empty_one_has_no_length(self, cluster: Cluster) -> None:
        cluster.put("data", "none", b"")

        assert "Content-Length" not in ask(cluster.targets[0], "HEAD", "/v1/objects/data/none")[1]

    @pytest.mark.parametrize(
        ("asked", "part", "content"),
        [
            ("bytes=0-0", "0-0", b"s"),
            ("bytes=5-", "5-9", b"bytes"),
            ("bytes=-3", "7-9", b"tes"),
            ("bytes=-30", "0-9", b"some bytes"),
            ("bytes=8-99", "8-9", b"es"),
        ],
    )
    def test_ranges(self, cluster: Cluster, asked: str, part: str, content: bytes) -> None:
        cluster.put("data", "a.tar", b"some bytes")
        status, headers, body = ask(cluster.targets[0], "GET", "/v1/objects/data/a.tar", Range=asked)

        assert (206, f"bytes {part}/10", content) == (status, headers["Content-Range"], body)

    def test_what_lies_behind_the_end_is_416(self, cluster: Cluster) -> None:
        cluster.put("data", "a.tar", b"some bytes")
        status, headers, _ = ask(cluster.targets[0], "GET", "/v1/objects/data/a.tar", Range="bytes=10-")

        assert (416, "bytes */10") == (status, headers["Content-Range"])

    def test_faults_come_in_their_turn_and_to_get_alone(self, cluster: Cluster) -> None:
        cluster.put("data", "a.tar", b"some bytes")
        cluster.fails += [Fail(2, status=503), Fail(cut=4)]
        target, path = cluster.targets[0], "/v1/objects/data/a.tar"

        assert 200 == ask(target, "HEAD", path)[0]
        assert [503, 503] == [ask(target, "GET", path)[0] for _ in range(2)]
        with pytest.raises(http.client.IncompleteRead) as caught:
            ask(target, "GET", path)
        assert b"some" == caught.value.partial
        assert (200, b"some bytes", []) == (*ask(target, "GET", path)[::2], cluster.fails)


def test_what_is_not_there_is_said_in_json(cluster: Cluster) -> None:
    cluster.put("data", "a.tar", b"some bytes")
    place = {"method": "GET", "remote_addr": "127.0.0.1", "caller": "", "status": 404}

    for address, node, path, tcode, message in (
        (cluster.targets[1], "t2", "/v1/objects/data/none", "ErrObjNotFound", 'object "ais://data/none" does not exist'),
        (cluster.url, "proxy", "/v1/objects/none/a.tar", "ErrBckNotFound", 'bucket "ais://none" does not exist'),
        (cluster.url, "proxy", "/v1/other", "", "invalid URL path '/v1/other'"),
    ):
        status, headers, body = ask(address, "GET", path)
        assert (404, "application/json") == (status, headers["Content-Type"])
        assert {**place, "node": node, "url_path": path, "tcode": tcode, "message": message} == json.loads(body)


def test_the_proxy_knows_the_cluster(cluster: Cluster) -> None:
    cluster.put("data", "a.tar", b"some bytes")
    _, headers, body = ask(cluster.url, "GET", "/v1/daemon?what=smap")
    found = json.loads(body)

    assert "application/json" == headers["Content-Type"]
    assert [cluster.url] == [node["public_net"]["direct_url"] for node in found["pmap"].values()]
    assert found["pmap"]["proxy"] == found["proxy_si"]
    assert dict(zip(("t1", "t2"), cluster.targets, strict=True)) == {
        name: node["intra_data_net"]["direct_url"] for name, node in found["tmap"].items()
    }
    for name, node in found["tmap"].items():
        assert (name, "target", node["public_net"]["direct_url"]) == (
            node["daemon_id"],
            node["daemon_type"],
            f"http://127.0.0.1:{node['public_net']['daemon_port']}",
        )
    assert 200 == ask(cluster.url, "GET", "/v1/health")[0]
    status, headers, _ = ask(cluster.url, "HEAD", "/v1/buckets/data")
    assert (200, "{}") == (status, headers["ais-bucket-props"])


class TestListing:
    @pytest.fixture
    def bucket(self, cluster: Cluster) -> Cluster:
        pytest.importorskip("msgspec", reason="listings of AIStore are MessagePack: pip install msgspec")
        for name in ("b.tar", "a.tar", "d/1.tar", "d/e/2.tar", "f.txt"):
            cluster.put("data", name, SHARD if name == "a.tar" else name.encode())
        return cluster

    def pages(self, bucket: Cluster, **value: Any) -> list[list[dict[str, Any]]]:
        """The pages of a listing, to the end."""
        import msgspec

        found, token = [], ""
        while not found or token:
            body = {"action": "list", "value": {**value, "continuation_token": token}}
            status, headers, answer = ask(bucket.url, "GET", "/v1/buckets/data", body)
            assert (200, "application/msgpack") == (status, headers["Content-Type"])
            page = msgspec.msgpack.decode(answer)
            token = page["ContinuationToken"]
            found.append(page["Entries"] or [])
        return found

    @pytest.mark.parametrize(("size", "lengths"), [(0, [5]), (5, [5]), (4, [4, 1]), (2, [2, 2, 1])])
    def test_pages_have_each_object_once_by_name(self, bucket: Cluster, size: int, lengths: list[int]) -> None:
        pages = self.pages(bucket, pagesize=size)

        assert lengths == [len(page) for page in pages]
        assert ["a.tar", "b.tar", "d/1.tar", "d/e/2.tar", "f.txt"] == [row["n"] for page in pages for row in page]
        assert {"n": "b.tar", "s": 5, "v": "1"} == pages[0][1]

    @pytest.mark.parametrize(
        ("prefix", "flags", "names"),
        [
            ("d/", 0, ["d/1.tar", "d/e/2.tar"]),
            ("", FLAT, ["a.tar", "b.tar", "d/", "f.txt"]),
            ("d/", FLAT, ["d/1.tar", "d/e/"]),
            ("", FLAT | NO_FOLDERS, ["a.tar", "b.tar", "f.txt"]),
            ("a", ARCHIVES, ["a.tar", "a.tar/0001.cls", "a.tar/0001.txt"]),
            ("none", 0, []),
        ],
    )
    def test_a_prefix_and_flags_choose(self, bucket: Cluster, prefix: str, flags: int, names: list[str]) -> None:
        (page,) = self.pages(bucket, prefix=prefix, flags=flags)

        assert names == [row["n"] for row in page]
        assert [row["n"] for row in page if row.get("f") == 64] == [name for name in names if name.endswith("/")]

    def test_members_have_their_sizes(self, bucket: Cluster) -> None:
        (page,) = self.pages(bucket, prefix="a", flags=ARCHIVES)

        assert [len(SHARD), 1, 5] == [row["s"] for row in page]


class TestBatch:
    ASKED = (
        {"objname": "a.tar", "archpath": "0001.txt", "opaque": "7"},
        {"objname": "b.tar"},
        {"objname": "a.tar", "archpath": "none"},
        {"objname": "none", "bucket": "other"},
        {"objname": "b.tar", "start": 1, "length": 3},
        {"objname": "b.tar", "start": 1, "length": -1},
    )

    def batch(self, cluster: Cluster, **more: Any) -> tuple[int, dict[str, str], bytes]:
        """The answer of the target that the proxy names."""
        cluster.put("data", "a.tar", SHARD)
        cluster.put("data", "b.tar", b"bytes")
        body = {"in": self.ASKED, "coer": True, **more}
        status, headers, _ = ask(cluster.url, "GET", "/v1/ml/moss/data", body)
        assert (307, cluster.targets[0]) == (status, headers["Location"].partition("/v1")[0])
        return ask(cluster.targets[0], "GET", "/v1/ml/moss/data", body)

    @staticmethod
    def members(data: bytes) -> list[tuple[str, bytes]]:
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            return [(each.name, tar.extractfile(each).read()) for each in tar]  # type: ignore[union-attr]

    @pytest.mark.parametrize(("more", "before"), [({}, "data/"), ({"onob": True}, "")])
    def test_a_tar_holds_what_was_asked_for_in_that_order(self, cluster: Cluster, more: dict[str, Any], before: str) -> None:
        status, headers, body = self.batch(cluster, strm=True, **more)

        assert (200, "application/x-tar") == (status, headers["Content-Type"])
        assert [
            (f"{before}a.tar/0001.txt", b"a cat"),
            (f"{before}b.tar", b"bytes"),
            (f"__404__/{before}a.tar/none", b""),
            (f"__404__/{'other/' if before else ''}none", b""),
            (f"{before}b.tar", b"yte"),
            (f"{before}b.tar", b"ytes"),
        ] == self.members(body)

    def test_with_a_word_on_each_before_it(self, cluster: Cluster) -> None:
        _, headers, body = self.batch(cluster)
        parts = BytesParser().parsebytes(f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode() + body).get_payload()
        head = json.loads(body[body.index(b"{") : body.index(b"\r\n--", 4)])

        assert ["application/json", "application/octet-stream"] == [part.get_content_type() for part in parts]
        assert ["a.tar", "b.tar", "a.tar", "none", "b.tar", "b.tar"] == [row["objname"] for row in head["out"]]
        assert {"objname": "a.tar", "archpath": "0001.txt", "opaque": "7", "bucket": "data", "provider": "ais", "size": 5} == head["out"][0]
        assert '"ais://other/none" does not exist' == head["out"][3]["err_msg"]
        assert [False, False, True, True, False, False] == ["err_msg" in row for row in head["out"]]

    def test_what_is_missing_is_an_error_where_that_is_not_allowed(self, cluster: Cluster) -> None:
        status, _, body = self.batch(cluster, coer=False)

        assert (404, 'object "ais://data/a.tar" does not exist') == (status, json.loads(body)["message"])
