"""AWS Signature Version 4, against the examples of its documentation."""

from __future__ import annotations

import pytest

from tarviz.stores._remote.sigv4 import AwsKeys, sign

# docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html: the keys and the moment of its examples
KEYS = AwsKeys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
NOW = 1369353600.0
HOST = "https://examplebucket.s3.amazonaws.com"


def test_it_is_the_signature_of_the_documentation():
    """GET Bucket Lifecycle and List Objects of the page: nothing but host and x-amz headers is signed there."""
    made = sign("GET", f"{HOST}/?lifecycle", {}, b"", KEYS, "us-east-1", NOW)
    assert made["Authorization"].endswith("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")
    listed = sign("GET", f"{HOST}/?max-keys=2&prefix=J", {}, b"", KEYS, "us-east-1", NOW)

    assert listed["Authorization"].endswith("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")
    assert "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request" in made["Authorization"]
    assert "20130524T000000Z" == made["x-amz-date"]


@pytest.mark.parametrize(
    ("scheme", "digest"), [("https", "UNSIGNED-PAYLOAD"), ("http", "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881")]
)
def test_a_body_is_hashed_where_tls_does_not_protect_it(scheme, digest):
    assert digest == sign("PUT", f"{scheme}://h/a", {}, b"x", KEYS, "r", NOW)["x-amz-content-sha256"]


def test_a_session_is_signed_along():
    keys = AwsKeys("A", "B", "session")
    made = sign("GET", f"{HOST}/a", {"X-Amz-Meta-B": " v "}, b"", keys, "r", NOW)

    assert "session" == made["x-amz-security-token"]
    assert "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-meta-b;x-amz-security-token," in made["Authorization"]
    assert "session" not in repr(keys)
    assert "B" not in repr(keys).replace("AwsKeys", "")


def test_the_order_of_a_query_changes_nothing():
    assert sign("GET", f"{HOST}/a?b=2&a=1", {}, b"", KEYS, "r", NOW) == sign("GET", f"{HOST}/a?a=1&b=2", {}, b"", KEYS, "r", NOW)


def test_what_is_secret_of_a_key_is_not_shown():
    assert "AwsKeys(id='id')" == repr(AwsKeys("id", "planted", "planted"))
