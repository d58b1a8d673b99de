"""AWS Signature Version 4, as S3 and what speaks like it ask for: headers that prove who sends a request."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlsplit

_EMPTY = hashlib.sha256(b"").hexdigest()
_UNSIGNED = "UNSIGNED-PAYLOAD"


@dataclass(frozen=True, slots=True)
class AwsKeys:
    """An access key."""

    id: str
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)


def sign(method: str, address: str, headers: Mapping[str, str], body: bytes, keys: AwsKeys, region: str, now: float) -> dict[str, str]:
    """The headers to add to a request for `address`; `now` in seconds since 1970.

    Host and every `x-amz-` header are signed; others may still be added. A body is hashed only where TLS does
    not protect it. Source: docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
    """
    parts = urlsplit(address)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    digest = _EMPTY if not body else _UNSIGNED if parts.scheme == "https" else hashlib.sha256(body).hexdigest()
    added = {"x-amz-date": stamp, "x-amz-content-sha256": digest}
    if keys.token:
        added["x-amz-security-token"] = keys.token
    names = {name.lower(): value.strip() for name, value in {**headers, **added}.items() if name.lower().startswith("x-amz-")}
    names["host"] = parts.netloc
    order = sorted(names)
    query = "&".join(f"{_quote(name)}={_quote(value)}" for name, value in sorted(parse_qsl(parts.query, keep_blank_values=True)))
    lines = [method, parts.path or "/", query, *(f"{name}:{names[name]}" for name in order), "", ";".join(order), digest]
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(chr(10).join(lines).encode()).hexdigest()}"
    key = f"AWS4{keys.secret}".encode()
    for word in (stamp[:8], region, "s3", "aws4_request"):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    proof = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    added["Authorization"] = f"AWS4-HMAC-SHA256 Credential={keys.id}/{scope}, SignedHeaders={';'.join(order)}, Signature={proof}"
    return added


def _quote(text: str) -> str:
    return quote(text, safe="-_.~")
