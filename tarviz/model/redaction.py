"""Text fit to be shown: no secrets of URLs and headers in it, no control characters of records."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any
from urllib.parse import unquote

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(0x20), 0x7F, *range(0x80, 0xA0))}
_CONTROL |= {9: "\\t", 10: "\\n", 13: "\\r"}
_CONTROL |= {code: f"\\u{code:04x}" for code in (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF)}

# User info ends at the last @ of the authority: passwords hold that sign too. Where what stands after a colon is not a port, it is a
# password with a slash in it (RFC 3986 §3.2 would have it escaped), and goes up to the last @ of all. What stands before it without a
# colon is a container in Azure's URLs, and nothing in `ais://@aws/bucket`, whose @ names the cloud.
_USERINFO = re.compile(
    r"(?i)(?<=://)(?:(?<!\baz://)(?<!\bazure://)(?<!\babfs://)(?<!\babfss://)[^/?#\s\"<>]+@"
    r"|[^/?#@:\s\"<>]*:(?!\d*(?:[/?#\s\"']|$))[^\s\"<>]*@)"
)
_ESCAPED_USERINFO = re.compile(r"(?i)(?<=%3a%2f%2f)(?:(?!%2f|%3f|%23)[^/?#&\s\"<>])+%40")

# NAME=VALUE in a query, a fragment, a form, also within another URL's query, where the signs are escaped.
_NAME = re.compile(r"(?i)(?:^|[?&;#,\s{(\"']|%3f|%26|%23|%3b)([\w.%~$-]+?)(?:=|%3d)")
_VALUE = re.compile(r"(?i)[\"']?(?:(?!%3f|%26|%23|%3b)[^&\s#\"'])+")
_ANYWHERE = re.compile(
    r"signature|token(?:_|$)|secret|passw|passphrase|credential|jwt|api_?key|access_?key|private_?key|session_?id|key_?pair_?id"
)
_WHOLE = re.compile(r"(?:[\w.]*_)?(?:sig|auth|authorization|bearer|pwd|pass|hmac|sas|session|cookie)")

# Headers, as they stand in a log, in JSON, or in a Python dict.
_HEADER = re.compile(
    r"(?i)((?:(?:proxy-)?authorization|(?:set-)?cookie|[\w-]*(?:token|secret|api-?key|password|passwd|access-?key)[\w-]*)[\"']?\s*:\s*)"
    r"(?:\"[^\"\n]*\"?|'[^'\n]*'?|(?:(?:basic|bearer|token|digest|negotiate|aws4-hmac-sha256|apikey)\s+)?[^\s\"',;]{6,})"
)
_SCHEME = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}")
# What shows by its form that it is a token: JSON Web Tokens, those of GitHub, GitLab, Hugging Face, AWS key ids.
_FORM = re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*|\b(?:gh[a-z]_|github_pat_|glpat-|hf_)\w{16,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")
_CLOSING = ":,;.)]}"
_SWITCHES = ("true", "false")  # AWS_SKIP_SIGNATURE=true is advice, no secret


def safe(text: str) -> str:
    """Text from a record or a URL made fit for a terminal line: control and bidi characters escaped.

    >>> safe("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    return text.translate(_CONTROL).encode("utf-8", "backslashreplace").decode()


def redact(text: str) -> str:
    """Text without secrets: user info, signatures, tokens and passwords in URLs and headers.

    >>> redact("https://me:p@ss@host/a.tar?X-Amz-Signature=abc&v=1#access_token=def")
    'https://***@host/a.tar?X-Amz-Signature=***&v=1#access_token=***'
    >>> redact("Authorization: token ghp_0123456789")
    'Authorization: ***'
    """
    if "@" in text:
        text = _USERINFO.sub("***@", text)
    if "%40" in text:
        text = _ESCAPED_USERINFO.sub("***%40", text)
    if "=" in text or "%3" in text:
        text = _without_values(text)
    return _FORM.sub("***", _SCHEME.sub(r"\1 ***", _HEADER.sub(r"\1***", text) if ":" in text else text))


def _without_values(text: str) -> str:
    """The text, stars in the place of values whose names tell that they are secret."""
    parts, at = [], 0
    for found in _NAME.finditer(text):
        name = unquote(found[1]).lower().replace("-", "_")
        if found.start() < at or not (_ANYWHERE.search(name) or _WHOLE.fullmatch(name)):
            continue
        if (value := _VALUE.match(text, found.end())) and value[0].rstrip(_CLOSING).lower() not in _SWITCHES:
            parts += [text[at : found.end()], "***"]
            at = found.end() + len(value[0].rstrip(_CLOSING))
    return "".join([*parts, text[at:]])


def redacted_repr(self: Any) -> str:
    """The `__repr__` of a dataclass that holds URLs: that of any dataclass, without secrets."""
    parts = ", ".join(f"{part.name}={getattr(self, part.name)!r}" for part in fields(self) if part.repr)
    return redact(f"{type(self).__qualname__}({parts})")
