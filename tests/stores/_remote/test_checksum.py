"""The checksum that a server sends with an object, held against the bytes that came."""

from __future__ import annotations

import base64
import zlib

import google_crc32c
import pytest

from tarviz.stores._remote.checksum import checksum_in
from tests.conftest import each_case

DATA = b"the bytes of an object"
CRC32C = google_crc32c.Checksum(DATA).digest()
CRC32 = zlib.crc32(DATA).to_bytes(4, "big")


def text(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


@each_case(
    "headers",
    [
        {"x-goog-hash": f"crc32c={text(CRC32C)},md5=AAAA"},
        {"x-goog-hash": f"md5=AAAA, crc32c={text(CRC32C)}"},
        {"x-amz-checksum-crc32c": text(CRC32C)},
        {"x-amz-checksum-crc32": text(CRC32)},
        {"ais-checksum-type": "crc32c", "ais-checksum-value": CRC32C.hex()},
    ],
)
def test_right_bytes_are_right_and_others_are_not(headers):
    for data, right in ((DATA, True), (DATA[:-1] + b"T", False), (DATA[:-1], False)):
        checksum = checksum_in(headers)
        assert checksum is not None
        checksum.update(data[:5])
        checksum.update(data[5:])
        assert right == checksum.is_right()


def test_the_hash_of_a_cluster_is_known_where_its_package_is():
    xxhash = pytest.importorskip("xxhash", reason="xxhash comes with the extra `ais`")
    checksum = checksum_in({"ais-checksum-type": "xxhash2", "ais-checksum-value": xxhash.xxh64(DATA).hexdigest()})
    assert checksum is not None
    checksum.update(DATA)

    assert checksum.is_right()


@each_case(
    "headers",
    [
        {},
        {"x-goog-hash": "md5=AAAA"},
        {"x-amz-checksum-crc32c": f"{text(CRC32C)}-3"},
        {"x-amz-checksum-crc32c": "no base64"},
        {"ais-checksum-type": "crc32c", "ais-checksum-value": "not hexadecimal"},
        {"ais-checksum-type": "none", "ais-checksum-value": "v1"},
        {"ais-checksum-type": "sha512", "ais-checksum-value": "00"},
    ],
)
def test_what_is_not_of_the_bytes_is_no_promise(headers):
    assert checksum_in(headers) is None
