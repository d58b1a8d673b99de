"""What bytes look like, for the hint of an error: told by their first bytes, never by a name."""

from __future__ import annotations

import re

from tarviz.formats import compression
from tarviz.model.errors import DataError

_MAGIC = (
    *compression.MAGIC.items(),
    (b"PK\x03\x04", "zip"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"\x89HDF", "hdf5"),
    (b"PAR1", "parquet"),
    (b"%PDF", "pdf"),
)
_TEXTS = (
    ((b"<!doctype html", b"<html", b"<head", b"<body", b"<script"), "HTML"),
    ((b"<?xml", b"<error"), "XML"),
    (b"version https://git-lfs", "git-lfs pointer"),
    ((b"{", b"["), "JSON"),
)
_HEIF = (b"avif", b"avis", b"mif1", b"msf1", b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx")  # ISO/IEC 23008-12, MIAF, AVIF
# uint64 length below 4 GiB, its CRC, and the first tag of an Example.
_RECORD = re.compile(rb".{4}\0{4}.{4}\n", re.DOTALL)


def kind(head: bytes) -> str | None:
    """A word for what `head` (the first bytes of an object, 512 are enough) is; None when nothing is recognised.

    >>> kind(b"<!DOCTYPE html><html>")
    'HTML'
    """
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if head[257:262] == b"ustar":
        return "tar"
    if head[4:8] == b"ftyp" and head[8:12] in _HEIF:
        return "AVIF" if b"avi" in head[8:64] else "HEIC"
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return next((name for begins, name in _TEXTS if text.startswith(begins)), None)


def hint(head: bytes) -> str:
    """The next step for somebody whose object begins with `head` and is not what it should be.

    >>> hint(b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>")
    'it is an S3 error AccessDenied saved as a file: check the URL and the rights, then fetch it again.'
    """
    found = kind(head)
    if found == "XML":
        code = re.search(rb"<Code>(\w{1,64})</Code>", head)
        what = f"an S3 error {code[1].decode()}" if code else "an XML page"
        return f"it is {what} saved as a file: check the URL and the rights, then fetch it again."
    if found == "HTML":
        return "it looks like HTML, perhaps an error or login page saved as a file: check the URL."
    if found == "git-lfs pointer":
        return "it is a git-lfs pointer: run `git lfs pull` to get the file itself."
    if found in compression.MAGIC.values():
        return f"the inner data is {found}: it was compressed twice; unpack it once."
    if found:
        return f"it looks like {found}."
    if _RECORD.match(head):
        return "it looks like a TFRecord file: tarviz convert FILE -o x.tar makes a shard of it."
    return "check how it was written and whether it was transferred whole."


def not_a_tar(head: bytes, shard: str | None = None) -> DataError:
    """The error of an object that begins with `head` and holds no tar; its message alone says what it looks like.

    >>> print(not_a_tar(b"<html>").message)
    this is not a tar file but HTML.
    """
    found = kind(head) or ("TFRecord" if _RECORD.match(head) else None)
    return DataError(f"this is not a tar file{f' but {found}' if found else ''}.", code="E_NOT_TAR", shard=shard, offset=0, hint=hint(head))
