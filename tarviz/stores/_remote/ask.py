"""Small questions to token services and metadata servers: one short request, no retries."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from tarviz.model.errors import StoreError, redact

NEAR = 1.0  # seconds a service of this very machine has to answer
FAR = 10.0
_LIMIT = 1 << 20


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def ask(
    address: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes | None = None, near: bool = False
) -> bytes:
    """The body of the answer; `OSError` when there is none. `near`: a service of this machine, asked without proxies.

    Redirects are not followed: what is sent here are secrets.
    """
    handlers: list[Any] = [_NoRedirect(), *([urllib.request.ProxyHandler({})] if near else [])]
    request = urllib.request.Request(address, data=body, headers=dict(headers or {}), method=method)
    with urllib.request.build_opener(*handlers).open(request, timeout=NEAR if near else FAR) as answer:
        found: bytes = answer.read(_LIMIT)
        return found


def token(what: str, address: str, **options: Any) -> dict[str, Any]:
    """The JSON object that a token service answers with; `StoreError` (`E_AUTH`) naming `what` when it does not."""
    try:
        found = json.loads(ask(address, **options))
    except urllib.error.HTTPError as error:
        said = redact(error.read(300).decode("utf-8", "replace")) if error.fp else ""
        error.close()
        raise StoreError(f"{what} was refused: {error.code} {error.reason} {said}".rstrip() + ".", code="E_AUTH") from None
    except (OSError, ValueError) as error:
        raise StoreError(f"{what} got no answer: {redact(str(error))}.", code="E_AUTH") from error
    if not isinstance(found, dict):
        raise StoreError(f"{what} got an answer that cannot be read.", code="E_AUTH")
    return found


def machine_says(name: str, word: str) -> bool:
    """Whether the firmware of this machine names its owner: so that metadata servers are not looked for where there are none."""
    try:
        with open(os.path.join("/sys/class/dmi/id", name), encoding="ascii", errors="replace") as file:
            return word in file.read(200)
    except OSError:
        return False
