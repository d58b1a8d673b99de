"""What the name of a TFRecord file says: that it is one, and what the keys of its records begin with."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tarviz.model.errors import UsageError
from tarviz.model.types import URL
from tarviz.model.urls import without_query

_SUFFIX = re.compile(r"\.(?:tfrecords?|tfrec|records?)(?=$|-\d+-of-\d+$)")
_PACKED = re.compile(r"\.(?:gz|zlib|zst)$")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def has_tfrecord_name(url: URL) -> bool:
    """Whether a file has the name of a TFRecord file, packed or not, TFDS's `x.tfrecord-00000-of-00010` too."""
    return _SUFFIX.search(bare_name(url)) is not None


def refuse(urls: Sequence[URL]) -> None:
    """`UsageError` where one of these is a TFRecord file: for readers that take chosen records out of shards."""
    for url in urls:
        if has_tfrecord_name(url):
            hint = "Make a shard of it first: tarviz convert FILE -o x.tar. sql, browse and index take it as it is."
            raise UsageError("this is a TFRecord file, of whose records none can be chosen here.", shard=url, hint=hint)


def bare_name(url: URL) -> str:
    """The URL in lower case, without a query and without the ending of what packed it."""
    return _PACKED.sub("", without_query(url)[0].lower())


def stems(urls: Sequence[URL]) -> dict[URL, str]:
    """What keys of each file begin with: its name, and its place among the files where another has that name.

    >>> list(stems([URL("a/x.tfrecord.gz"), URL("mnist.tfrecord-00000-of-00002"), URL("b/x.record")]).values())
    ['x', 'mnist-00000-of-00002', 'x-2']
    """
    made: dict[URL, str] = {}
    for at, url in enumerate(urls):
        name = without_query(url)[0].rpartition("/")[2]
        stem = _UNSAFE.sub("_", _SUFFIX.sub("", _PACKED.sub("", name))).strip("_") or "record"
        while stem in made.values():
            stem = f"{stem}-{at}"
        made[url] = stem
    return made
