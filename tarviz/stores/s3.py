"""`s3://bucket/name`: Amazon S3 and every store that speaks like it.

Environment: the keys are found as the AWS command line finds them (`AWS_ACCESS_KEY_ID` …, `AWS_PROFILE`, web
identity, container, machine); without keys, or with `AWS_SKIP_SIGNATURE=true`, public buckets are read unsigned.
`AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL` names another server, `AWS_REGION` the region.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import urlsplit

from tarviz.model.types import URL
from tarviz.stores._remote.access import Access, Kept
from tarviz.stores._remote.aws_keys import find_keys, profile
from tarviz.stores._remote.buckets import bucket_and_name, path, with_query
from tarviz.stores._remote.s3_like import S3LikeStore
from tarviz.stores._remote.sigv4 import signed

_AMAZON = (".amazonaws.com", ".amazonaws.com.cn")
_HOST = re.compile(r"(.+)\.s3[.-]")
_NAMES = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE"),
    *("AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "HOME"),
    *("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_EC2_METADATA_DISABLED"),
)


_PLACES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SKIP_SIGNATURE")


class _S3Access(Access):
    """Requests signed with AWS keys, for the region where the bucket turns out to be."""

    variables: ClassVar[tuple[str, ...]] = (*_NAMES, *_PLACES)

    def __init__(self) -> None:
        self._keys = Kept(find_keys, _NAMES)
        self._regions: dict[str, str] = {}  # by bucket, as the server told

    def address(self, url: URL, query: Mapping[str, str]) -> str:
        bucket, name = bucket_and_name(url)
        place = _endpoint()
        if place:
            return with_query(place.rstrip("/") + path(bucket, name), query)
        region = self._region(bucket)
        host = f"s3.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"
        dotted = "." in bucket or not bucket.islower()  # TLS has no certificate for such a host
        return with_query(f"https://{host}{path(bucket, name)}" if dotted else f"https://{bucket}.{host}{path(name)}", query)

    def headers(self, method: str, address: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        asked = {"x-amz-checksum-mode": "ENABLED"} if method == "GET" and "Range" not in headers and "?" not in address else {}
        keys = None if os.environ.get("AWS_SKIP_SIGNATURE", "").lower() == "true" else self._keys()
        if keys is None:
            return asked
        bucket = self._bucket(address)
        now = time.time()
        return asked | signed(method, address, {**headers, **asked}, body, keys, self._region(bucket), now)

    def follows(self, origin: str, target: str) -> bool:
        hosts = [each.partition("://")[2].partition("/")[0] for each in (origin, target) if each.startswith("https://")]
        # a new bucket's requests are passed on to its region for a while
        return origin == target or (len(hosts) == 2 and all(host.endswith(_AMAZON) for host in hosts))

    def _bucket(self, address: str) -> str:
        parts = urlsplit(address)
        found = None if _endpoint() else _HOST.match(parts.hostname or "")
        return found[1] if found else parts.path[1:].partition("/")[0]

    def _region(self, bucket: str) -> str:
        env = os.environ
        known = self._regions.get(bucket) or env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION")
        return known or profile().get("region") or "us-east-1"

    def renew(self, url: URL, status: int, headers: Mapping[str, str], said: str) -> bool:
        bucket, _ = bucket_and_name(url)
        there = headers.get("x-amz-bucket-region", "")
        if there and there != self._region(bucket):
            self._regions[bucket] = there
            return True
        return said in ("ExpiredToken", "InvalidToken", "RequestExpired") and self._keys.forget()

    def hint(self, status: int, code: str) -> str:
        if code == "NoSuchBucket" or status == 404:
            return "Check bucket and name; AWS_ENDPOINT_URL names another server than Amazon's."
        if self._keys() is None:
            return "No keys were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
        return "Check the keys (AWS_ACCESS_KEY_ID or AWS_PROFILE) and what they may do; AWS_SKIP_SIGNATURE=true reads public buckets."


def _endpoint() -> str:
    env = os.environ
    return env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL") or profile().get("endpoint_url") or ""


class S3Store(S3LikeStore):
    """Objects of S3 buckets. Writes large objects in parts; nothing is visible before the last one is accepted."""

    def _access(self) -> Access:
        return _S3Access()


def store() -> S3Store:
    """The store of `s3://`."""
    return S3Store()
