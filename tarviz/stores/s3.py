"""`s3://bucket/name`: Amazon S3 and every store that speaks like it.

Environment: who asks, and where, is botocore's decision (extra `cloud`): profiles, roles, sign-on, endpoints, FIPS. `AWS_ACCESS_KEY_ID`
and `AWS_SECRET_ACCESS_KEY`, a region and `AWS_ENDPOINT_URL(_S3)` need no library; without keys, or with `AWS_SKIP_SIGNATURE=true`,
public buckets are read unsigned. Requests are signed here: botocore's own signing takes twice the time of a whole ranged read.
Storage options: `requester_pays`, `encryption_key` (a customer's own, SSE-C), `version`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import ClassVar

from tarviz.model.types import URL
from tarviz.stores._remote.access import Access
from tarviz.stores._remote.aws_session import VARIABLES, AwsSession
from tarviz.stores._remote.buckets import bucket_and_name, path, with_query
from tarviz.stores._remote.listing import s3_pages
from tarviz.stores._remote.reader import BucketStore
from tarviz.stores._remote.sigv4 import sign
from tarviz.stores._remote.upload import S3Upload

_AMAZON = (".amazonaws.com", ".amazonaws.com.cn")


class _S3Access(Access):
    """Requests signed with AWS keys, for the region where the bucket turns out to be."""

    HINT_MISSING = "Check bucket and name; AWS_ENDPOINT_URL names another server than Amazon's."
    variables: ClassVar[tuple[str, ...]] = VARIABLES
    OPTIONS: ClassVar[Mapping[str, str]] = {
        "requester_pays": "x-amz-request-payer",
        "encryption_key": "x-amz-server-side-encryption-customer-",
        "version": "versionId",
    }

    def __init__(self) -> None:
        self._session = AwsSession()
        self._regions: dict[str, str] = {}  # by bucket, as the server told

    def address(self, url: URL, query: Mapping[str, str]) -> str:
        bucket, name = bucket_and_name(url)
        return with_query(self._session.place(bucket, self._regions.get(bucket, "")).base + path(name)[1:], query)

    def headers(self, method: str, address: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        asked = {"x-amz-checksum-mode": "ENABLED"} if method == "GET" and "Range" not in headers and "?" not in address else {}
        keys = self._session.keys()
        if keys is None:
            return asked
        return asked | sign(method, address, {**headers, **asked}, body, keys, self._session.region_at(address), time.time())

    def follows(self, origin: str, target: str) -> bool:
        hosts = [each.partition("://")[2].partition("/")[0] for each in (origin, target) if each.startswith("https://")]
        # a new bucket's requests are passed on to its region for a while
        return origin == target or (len(hosts) == 2 and all(host.endswith(_AMAZON) for host in hosts))

    def renew(self, url: URL, status: int, headers: Mapping[str, str], said: str) -> bool:
        bucket, _ = bucket_and_name(url)
        there = headers.get("x-amz-bucket-region", "")
        if there and there != self._session.place(bucket, self._regions.get(bucket, "")).region:
            self._regions[bucket] = there
            return True
        return said in ("ExpiredToken", "InvalidToken", "RequestExpired") and self._session.forget()

    def denial_hint(self) -> str:
        if self._session.keys() is None:
            return "No keys were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
        return "Check the keys (AWS_ACCESS_KEY_ID or AWS_PROFILE) and what they may do; AWS_SKIP_SIGNATURE=true reads public buckets."


class S3Store(BucketStore):
    """Objects of S3 buckets. Writes large objects in parts; nothing is visible before the last one is accepted."""

    access = _S3Access
    pages = s3_pages
    upload = S3Upload


store = S3Store
