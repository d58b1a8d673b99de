"""`http://` and `https://`: reads that resume, check every length, and never mix two versions of an object.

Environment: `HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY` as everywhere; `SSL_CERT_FILE`; `TARVIZ_HTTP_HEADERS` holds
JSON of headers by origin, `{"https://host": {"Authorization": "Bearer …"}}`, never sent to another one.
User and password in a URL are sent as basic authentication and never printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from tarviz.model.types import URL
from tarviz.model.urls import without_query
from tarviz.stores._pages import children
from tarviz.stores._remote.reader import RemoteStore
from tarviz.stores._remote.resume import ResumingStream
from tarviz.stores.base import Stat, take

_PAGE_LIMIT = 16 << 20


class HttpStore(RemoteStore):
    """Objects of web servers and signed URLs. Reads only."""

    writes: ClassVar[bool] = False
    selects: ClassVar[bool] = False

    def list(self, url: URL) -> Iterator[Stat]:
        folder = URL(url if without_query(url)[0].endswith("/") else f"{url}/")
        with ResumingStream(self.wire, folder, 0, None, None, self.options()).connect() as stream:
            return iter(children(folder, take(stream, _PAGE_LIMIT)))


store = HttpStore
