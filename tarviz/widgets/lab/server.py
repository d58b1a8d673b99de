"""The page of `tarviz browse` inside a Jupyter server: below its own address, behind its own sign-in.

`etc/jupyter/jupyter_server_config.d/tarviz.json` of the wheel switches it on. `extension/static/lab.mjs` opens it in JupyterLab.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from jupyter_server.auth.decorator import allow_unauthenticated, authorized
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from tornado.iostream import StreamClosedError
from tornado.web import authenticated

if TYPE_CHECKING:
    from tarviz.widgets.host.replies import Reply
    from tarviz.widgets.lab.pages import Pages

_THREADS = 32  # requests answered at once: one may wait for a far store


class PageHandler(JupyterHandler):  # type: ignore[misc]
    """The page at `tarviz/?path=…`, and what it asks beside it; made and read beside the server's loop."""

    auth_resource = "contents"

    def initialize(self, pages: Callable[[], Pages], pool: ThreadPoolExecutor) -> None:
        self.pages = pages
        self.pool = pool

    @authenticated  # type: ignore[untyped-decorator]
    @authorized  # type: ignore[untyped-decorator]
    async def get(self, place: str) -> None:
        _ = self.xsrf_token  # asked for, it is a cookie, which the page sends back as a header
        span = self.request.headers.get("Range", "")
        await self._send("get", place, self.get_query_argument("session", ""), span, self._is_own())

    @authenticated  # type: ignore[untyped-decorator]
    @authorized  # type: ignore[untyped-decorator]
    async def post(self, place: str) -> None:
        await self._send("post", place, self.request.body)

    def _is_own(self) -> bool:
        """Whether no other site has the browser ask: it says so, or names a page of this server; or the request brings a token."""
        return self.request.headers.get("Sec-Fetch-Site") in ("same-origin", "none") or bool(self.check_referer())

    def write_error(self, status_code: int, **_: Any) -> None:
        """Words for the page, in place of a page."""
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{status_code} {self._reason}")

    async def _send(self, method: str, *asked: Any) -> None:
        pages = await self._aside(self.pages)
        await self._reply(await self._aside(getattr(pages, method), self.get_query_argument("path", "", strip=False), *asked))

    async def _reply(self, reply: Reply) -> None:
        self.set_status(reply.status)
        policy = f"{reply.headers['Content-Security-Policy']}; {self.content_security_policy}"  # who may frame it, the server says
        own = {"Content-Type": reply.mime, "Content-Length": str(reply.length), "Content-Security-Policy": policy}
        for name, value in {**reply.headers, **own}.items():
            self.set_header(name, value)
        pieces = iter(reply.pieces)
        with suppress(StreamClosedError):  # somebody has seen enough of a film
            while (piece := await self._aside(next, pieces, None)) is not None:
                self.write(bytes(piece))
                await self.flush()

    async def _aside(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.pool, work, *arguments)


class CodeHandler(PageHandler):
    """The scripts and the style of the page, the same for everybody: JupyterHub takes a module's request for one that may be forged."""

    @allow_unauthenticated  # type: ignore[untyped-decorator]
    async def get(self, place: str) -> None:
        pages = await self._aside(self.pages)
        await self._reply(await self._aside(pages.get, "", place, "", "", False))


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "tarviz.widgets.lab.server"}]


def _load_jupyter_server_extension(app: Any) -> None:
    """What a Jupyter server calls at its start; the rest is imported when the first page is opened."""
    address = url_path_join(app.web_app.settings["base_url"], "tarviz/")

    lock = threading.Lock()

    @cache
    def make() -> Pages:
        from tarviz.widgets.lab.pages import Pages

        pages = Pages(app.contents_manager, address)
        atexit.register(pages.close)
        return pages

    def pages() -> Pages:
        with lock:  # the first page asks for several things at once
            return make()

    pool = ThreadPoolExecutor(_THREADS, "tarviz-pages")
    parts = {"pages": pages, "pool": pool}
    code = r"((?:page|host|widget)\.mjs|widget\.css)"
    app.web_app.add_handlers(".*$", [(f"{address}{code}", CodeHandler, parts), (f"{address}(.*)", PageHandler, parts)])
