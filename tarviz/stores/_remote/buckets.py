"""The parts of `scheme://bucket/name` and how they become a path."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from tarviz.model.errors import UsageError
from tarviz.model.types import URL


def bucket_and_name(url: URL) -> tuple[str, str]:
    """The bucket and the object's name, byte for byte as it was written; `UsageError` without a bucket.

    >>> bucket_and_name(URL("s3://data/train/a b.tar"))
    ('data', 'train/a b.tar')
    """
    scheme, _, rest = url.partition("://")
    bucket, _, name = rest.partition("/")
    if not bucket:
        raise UsageError("the URL names no bucket.", shard=url, hint=f"Write {scheme}://bucket/name.tar.")
    refuse_dots(url)
    return bucket, name


def refuse_dots(url: URL) -> None:
    """`UsageError` for a name with a part `.` or `..`: on the way to the server it would become the name of another object.

    Source: RFC 3986 §5.2.4, which HTTP clients, proxies and servers apply to every path.
    """
    if "/." in url and not {".", ".."}.isdisjoint(url.split("/")):
        hint = "Name the object itself. One that is really called so can be read by the cloud's own tools."
        raise UsageError("the name has a part '.' or '..', which HTTP takes for a way to another object.", shard=url, hint=hint)


def folder(name: str) -> str:
    """What the names of the objects in a folder begin with: a slash more, where it has none at its end.

    >>> folder("train"), folder("train//"), folder("")
    ('train/', 'train//', '')
    """
    return name if not name or name.endswith("/") else f"{name}/"


def path(*names: str) -> str:
    """Names joined and escaped as the path of a URL: `/bucket/a%20b.tar`."""
    return "".join(f"/{quote(name, safe='/-_.~', errors='surrogateescape')}" for name in names)


def with_query(address: str, query: Mapping[str, str]) -> str:
    """The address with `query` added to it, sorted, spaces as `%20`.

    >>> with_query("https://host/a?x=1", {"b": "c d"})
    'https://host/a?x=1&b=c%20d'
    """
    if not query:
        return address
    text = urlencode(sorted(query.items()), quote_via=quote, safe="-_.~")
    return f"{address}{'&' if '?' in address else '?'}{text}"
