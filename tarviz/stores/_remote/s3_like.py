"""Buckets that speak S3's XML: the listing, the multipart upload and the deletion that `s3` and `gs` share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from tarviz.model.types import URL
from tarviz.stores._remote.buckets import bucket_and_name, folder
from tarviz.stores._remote.listing import s3_pages
from tarviz.stores._remote.reader import BucketStore
from tarviz.stores._remote.upload import S3Upload, UploadSink, delete
from tarviz.stores.base import Sink, Stat


class S3LikeStore(BucketStore):
    """Writes large objects in parts; nothing is visible before the last one is accepted.

    `absent`: the header of a write that replaces nothing.
    """

    absent: ClassVar[Mapping[str, str]] = {"If-None-Match": "*"}

    def list(self, url: URL) -> Iterator[Stat]:
        bucket, name = bucket_and_name(url)
        base = URL(f"{url.partition('://')[0]}://{bucket}/")
        return s3_pages(base, folder(name), lambda query: self.page(base, query))

    def walk(self, url: URL) -> Iterator[Stat]:
        bucket, name = bucket_and_name(url)
        base = URL(f"{url.partition('://')[0]}://{bucket}/")
        return s3_pages(base, name, lambda query: self.page(base, query), deep=True)

    def create(self, url: URL, *, replace: bool = True) -> Sink:
        return UploadSink(url, S3Upload(self, url, {} if replace else self.absent))

    def delete(self, url: URL) -> None:
        delete(self, url)
