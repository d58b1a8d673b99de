"""What bytes look like is told by the bytes; the hint says the next step."""

from __future__ import annotations

import bz2
import gzip
import lzma

from tarviz.formats import sniff
from tarviz.formats.tfrecord import frame
from tests.conftest import each_case
from tests.read.tars import raw


@each_case(
    ("head", "kind", "hint"),
    [
        (gzip.compress(b"x", mtime=0), "gzip", "compressed twice"),
        (bz2.compress(b"x"), "bzip2", "compressed twice"),
        (lzma.compress(b"x"), "xz", "compressed twice"),
        (raw("a.txt"), "tar", "looks like tar"),
        (b"\xef\xbb\xbf \n<!DocType HTML><html>", "HTML", "login page"),
        (b"<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>", "XML", "an S3 error NoSuchKey"),
        (b"<?xml version='1.0'?><rss/>", "XML", "an XML page"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "git-lfs pointer", "git lfs pull"),
        (b' {"error": 1}', "JSON", "looks like JSON"),
        (b"PK\x03\x04rest", "zip", "looks like zip"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC", "looks like HEIC"),
        (b"\0\0\0\x1cftypmif1\0\0\0\0mif1avif", "AVIF", "looks like AVIF"),
        (b"\0\0\0\x18ftypisom\0\0\0\0isomavc1", None, "transferred whole"),
        (b"", None, "transferred whole"),
        (frame([b"\n\0"]).buffers()[0], None, "tarviz convert FILE -o x.tar"),
        (bytes(512), None, "transferred whole"),
    ],
)
def test_it_is_named_with_what_to_do(head: bytes, kind: str | None, hint: str):
    assert kind == sniff.kind(head)
    assert hint in sniff.hint(head)
