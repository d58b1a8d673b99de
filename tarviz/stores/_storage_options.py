"""What a store is told besides its URLs: who pays, keys of the caller's own, a version, and what a filesystem of fsspec takes."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from tarviz.model import config
from tarviz.model.errors import UsageError
from tarviz.model.types import URL


def storage_options(url: URL) -> Mapping[str, Any]:
    """The storage options that are in force for a URL.

    Those of the option `storage_options`, and over them those that stand there under a beginning of the URL, the longest last:
    `{"requester_pays": true, "s3://other/": {"requester_pays": false}}`.
    """
    text = config.options().storage_options
    return _options(text, url) if text else {}


@functools.lru_cache(maxsize=1024)
def _options(text: str, url: str) -> Mapping[str, Any]:
    table: dict[str, Any] = json.loads(text)
    found = {name: value for name, value in table.items() if "://" not in name}
    for begin in sorted((name for name in table if "://" in name and url.startswith(name)), key=len):
        found |= table[begin]
    return found


def known_options(url: URL, *names: str) -> dict[str, Any]:
    """The storage options of a URL, for a store that takes those of these names alone; `UsageError` names another one."""
    found = dict(storage_options(url))
    if unknown := next((name for name in found if name not in names), None):
        scheme = url.partition("://")[0]
        hint = f"There are: {', '.join(names)}." if names else 'Write it under the URLs it is for: {"s3://bucket/": {…}}.'
        raise UsageError(f"{scheme}:// URLs take no storage option {unknown!r}.", shard=url, hint=hint)
    return found


def customer_key(url: URL, key: object, prefix: str) -> dict[str, str]:
    """The headers that carry a customer's own AES key, base64 of 32 bytes; `prefix` as the store's manual has it.

    Sources: docs.aws.amazon.com/AmazonS3/latest/userguide/specifying-s3-c-encryption.html, cloud.google.com/storage/docs/encryption
    (customer-supplied keys), learn.microsoft.com/azure/storage/blobs/encryption-customer-provided-keys
    """
    try:
        raw = base64.b64decode(str(key), validate=True)
    except ValueError:
        raw = b""
    if len(raw) != 32:
        raise UsageError("encryption_key is no key.", shard=url, hint="Write 32 bytes in base64: openssl rand -base64 32.")
    digest = "md5" if prefix.startswith("x-amz-") else "sha256"
    proof = base64.b64encode(hashlib.new(digest, raw, usedforsecurity=False).digest()).decode()
    return {f"{prefix}algorithm": "AES256", f"{prefix}key": str(key), f"{prefix}key-{digest}": proof}
