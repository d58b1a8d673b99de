"""What a URL says: its scheme, the path of a local one, the name in it, and which shard it is, however it is spelled.

Only http(s) URLs are URLs as RFC 3986 has them, with a query, a fragment and escapes. In any other one, all that follows the host or
the bucket is the object's name: `#`, `?` and `%` are letters of it.
"""

from __future__ import annotations

import os
import re
from os import PathLike
from urllib.parse import quote, unquote, unquote_plus, urlsplit

from tarviz.model.errors import UsageError

ALIASES = {"https": "http", "s3a": "s3", "s3n": "s3", "gcs": "gs", "azure": "az", "abfs": "az", "abfss": "az"}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_BUCKETS = ("s3", "gs", "az", "ais", "hf", "memory")  # an @ before the first slash is no user's there
PORTS = {"http": 80, "https": 443}
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

# Parameters that sign a request, or say how long that holds, by the clouds' own lists:
# docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html, cloud.google.com/storage/docs/authentication/signatures,
# learn.microsoft.com/rest/api/storageservices/create-user-delegation-sas and create-account-sas,
# docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/private-content-creating-signed-url-canned-policy.html
_SIGNING = ("x-amz-", "x-goog-")
_SAS = frozenset((
    "sv", "ss", "srt", "sr", "st", "se", "sp", "sip", "spr", "sig", "si", "ses", "skoid", "sktid", "skt", "ske",
    "sks", "skv", "saoid", "suoid", "scid", "sdd", "sduoid", "skdutid",
))  # fmt: skip
_KEYS = frozenset(["key-pair-id", "awsaccesskeyid", "googleaccessid"])
_EXPIRING = _KEYS | {"expires", "signature", "policy"}


def scheme_of(url: str) -> str:
    """The scheme of a URL as it is written, in lower case: `file` for paths, `stdio` for `-`.

    >>> scheme_of("S3a://bucket/a.tar"), scheme_of("data/a.tar"), scheme_of("-")
    ('s3a', 'file', 'stdio')
    """
    if url == "-":
        return "stdio"
    match = _SCHEME.match(url)
    if match is None and url.startswith("pipe:") and not os.path.lexists(url):
        raise UsageError("a pipe: URL would run a shell command, which stores never do.", hint="Pipe it into tarviz and read '-'.")
    return match[1].lower() if match else "file"


def is_local(url: str | PathLike[str]) -> bool:
    """Whether a URL is a file of this machine."""
    return scheme_of(os.fspath(url)) == "file"


def local_path(url: str | PathLike[str]) -> str:
    """The path behind a local URL, `file://` or `file:` taken off and `~` replaced.

    >>> local_path("file:///data/a%20b.tar"), local_path("file:a.tar")
    ('/data/a b.tar', 'a.tar')
    """
    text = os.fspath(url)
    if text[:5].lower() == "file:":
        if text[5:7] == "//":
            host, _, path = text[7:].partition("/")
            if host.lower() not in ("", "localhost"):
                raise UsageError(
                    f"{text} names the machine {host!r}; file:// URLs are of this machine.", hint="Write file:///folder/name.tar."
                )
            text = "/" + unquote(path, errors="surrogateescape")
        elif not os.path.lexists(text):
            text = text[5:]  # `file:name` as WebDataset's texts have it, and `file:/folder/name` of RFC 8089
    if "\0" in text:
        raise UsageError("a path cannot hold a NUL byte.")
    return os.path.expanduser(text) if text.startswith("~") else text


def path_or_url(url: str | PathLike[str]) -> str:
    """The path of what is local, and any other URL as it is: for programs that know no `~` and no `file:`, such as TensorFlow.

    >>> path_or_url("file:///data/a.tar"), path_or_url("s3://b/a.tar")
    ('/data/a.tar', 's3://b/a.tar')
    """
    return local_path(url) if is_local(url) else os.fspath(url)


def without_query(url: str) -> tuple[str, str]:
    """A URL up to the end of its name, and what follows that: query and fragment, which only http(s) has.

    >>> without_query("https://host/a.tar?key=1"), without_query("s3://bucket/v?1#2.tar")
    (('https://host/a.tar', '?key=1'), ('s3://bucket/v?1#2.tar', ''))
    """
    if scheme_of(url) not in PORTS:
        return url, ""
    end = next((at for at, char in enumerate(url) if char in "?#"), len(url))
    return url[:end], url[end:]


def base_name(url: str) -> str:
    """The last part of the name, as people read it: escapes of http(s) taken off.

    >>> base_name("https://host/a%20b.tar?x=1"), base_name("s3://bucket/part#2%20.tar"), base_name("data/")
    ('a b.tar', 'part#2%20.tar', '')
    """
    name = without_query(url)[0].rpartition("/")[2]
    return unquote(name) if scheme_of(url) in PORTS else name


def identity(url: str) -> str:
    """Which shard a URL names, whichever way it is written: equal for two spellings of one, different for two shards.

    A path is made absolute, its links followed. A URL loses user and password, and on http(s) its fragment and the parameters that
    only sign it or say how long that holds; every other parameter may choose the object, and stays.

    >>> identity("https://me:pw@Host:443/get?file=a.tar&X-Amz-Signature=abc&X-Amz-Date=1#top")
    'https://host/get?file=a.tar'
    >>> identity("s3a://bucket/v?1#2.tar")
    's3://bucket/v?1#2.tar'
    """
    if url == "-" or url.startswith("pipe:"):  # a stream, or a command that a dialect was allowed to run
        return url
    scheme = scheme_of(url)
    if scheme == "file":
        return os.path.realpath(local_path(url))
    if scheme in PORTS:
        return _web(url, scheme)
    name = ALIASES.get(scheme, scheme)
    host, slash, rest = url.partition("://")[2].partition("/")
    return f"{name}://{host if name in _BUCKETS else host.rpartition('@')[2].lower()}{slash}{rest}"


def _web(url: str, scheme: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # no request can be made of it either, whose error says more
        return url
    host = (parts.hostname or "") if ":" not in (parts.hostname or "") else f"[{parts.hostname}]"
    place = host if port in (None, PORTS[scheme]) else f"{host}:{port}"
    query = "&".join(_without_signing(parts.query.split("&"))) if parts.query else ""
    # RFC 3986 §6.2.2: escapes of what needs none are the letters themselves, and what needs one has it.
    path = quote(_ESCAPE.sub(_plainly, parts.path or "/"), safe="/%:@!$&'()*+,;=", errors="surrogateescape")
    return f"{scheme}://{place}{path}{'?' if query else ''}{query}"


def _plainly(escape: re.Match[str]) -> str:
    letter = unquote(escape[0])
    return letter if letter in _UNRESERVED else escape[0].upper()


def _without_signing(parameters: list[str]) -> list[str]:
    """Those of the parameters, as they are written, that do not just sign the request."""
    names = [unquote_plus(each.partition("=")[0]).lower() for each in parameters]
    signing = {name for name in names if name.startswith(_SIGNING)}
    if {"sig", "sv"} <= set(names):  # a SAS; `sp` and the like are anybody's words elsewhere
        signing |= _SAS
    if "signature" in names and not _KEYS.isdisjoint(names):
        signing |= _EXPIRING
    return [each for each, name in zip(parameters, names, strict=True) if name not in signing]


def digest(text: str, length: int = 20) -> str:
    """Hexadecimal digits for a text, as names of files hold them.

    >>> digest("s3://bucket/a.tar")
    '58d09a492b7641a0c9f2'
    """
    import hashlib  # OpenSSL comes with it

    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:length]
