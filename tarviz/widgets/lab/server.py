"""The page of `tarviz browse` inside a Jupyter server: below its own address, behind its own sign-in, by its own rules for files.

`etc/jupyter/jupyter_server_config.d/tarviz.json` of the wheel switches it on. `extension/static/lab.mjs` opens it in JupyterLab.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from jupyter_core.paths import is_hidden
from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from tornado.iostream import StreamClosedError
from tornado.web import authenticated

from tarviz import stores
from tarviz.model import plugins
from tarviz.model.errors import NotFoundError, TarvizError
from tarviz.model.urls import ALIASES, local_path, scheme_of
from tarviz.stores.templates import braces
from tarviz.widgets.answers import by_hand
from tarviz.widgets.browse.controller import Browser
from tarviz.widgets.host.replies import CSP, HEADERS, Reply, got, posted, said

MOST = 32
"""Shards, or sets of them, that stay open; what was asked for least lately ends first."""
_OURS = ("file", "stdio", "memory")  # schemes of what this machine and this process have


class Pages:
    """What the pages of a server show: a browser for each path, whoever looks at it. `contents` is the server's contents manager."""

    def __init__(self, contents: Any, address: str) -> None:
        self.contents = contents
        self.address = address
        self.pool = ThreadPoolExecutor(MOST, "tarviz-pages")
        self._open: OrderedDict[str, Browser] = OrderedDict()
        self._lock = threading.Lock()

    def browser(self, path: str) -> Browser:
        """The browser of a path below the server's folder, or of a remote URL; of nothing, which only opens others, where it is empty."""
        with self._lock:
            if path in self._open:
                self._open.move_to_end(path)
                return self._open[path]
        urls = [self.placed(path)] if path else []
        for url in urls:
            self._refuse(url)
            by_hand.opening(url)
        made = Browser(urls)
        made.named, made.opener, made.shards.placed = path, self.opened, self.placed
        with self._lock:
            found = self._open.setdefault(path, made)
            ended = [made] if found is not made else [self._open.popitem(last=False)[1]] if len(self._open) > MOST else []
        for each in ended:
            each.close()
        return found

    def opened(self, url: str) -> str:
        """The address of the page that shows other shards. `NotFoundError` where this server does not show them."""
        self.browser(url)
        return f"{self.address}?path={quote(url, safe='')}"

    def placed(self, text: str) -> str:
        """Where lies what a page calls `text`. `NotFoundError` for what is outside of the server's folder, and for what is hidden."""
        scheme = scheme_of(text)
        name = ALIASES.get(scheme, scheme)
        if name not in _OURS and plugins.is_known("stores", name):
            return text
        root = getattr(self.contents, "root_dir", "")  # "" where its files are not of this machine
        path = os.path.abspath(os.path.join(root, local_path(text)))
        inside = root and name == "file" and f"{path}{os.sep}".startswith(os.path.join(os.path.abspath(root), ""))
        if not inside or (is_hidden(path, root) and not self.contents.allow_hidden):
            raise NotFoundError("There is no such file or folder in the folder of this Jupyter server.", shard=text)
        return path

    def _refuse(self, url: str) -> None:
        """`NotFoundError` where a name or a shard that a URL stands for must not be shown: names before anything is looked up."""
        if stores.is_local(url):
            for name in [] if os.path.lexists(url) else braces(url):
                self.placed(name)
            for shard in stores.expand(url):
                self.placed(shard)

    def close(self) -> None:
        """End all browsers."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        while self._open:
            self._open.popitem()[1].close()


class PageHandler(JupyterHandler):  # type: ignore[misc]
    """The page at `tarviz/?path=…`, and what it asks beside it."""

    auth_resource = "contents"

    def initialize(self, pages: Pages) -> None:
        self.pages = pages

    @property
    def content_security_policy(self) -> str:
        return f"{CSP}; {super().content_security_policy}"

    @authenticated  # type: ignore[untyped-decorator]
    @authorized  # type: ignore[untyped-decorator]
    async def get(self, place: str) -> None:
        _ = self.xsrf_token  # asked for, it is a cookie, which the page sends back as a header
        session, span = self.get_query_argument("session", ""), self.request.headers.get("Range", "")

        def reply(browser: Browser) -> Reply:
            return got(browser, place, title=" · ".join(filter(None, (browser.title, "tarviz"))), session=session, span=span)

        await self._send(reply)

    @authenticated  # type: ignore[untyped-decorator]
    @authorized  # type: ignore[untyped-decorator]
    async def post(self, place: str) -> None:
        await self._send(lambda browser: posted(browser, self.request.body) if place == "rpc" else said(404, "There is nothing here."))

    def write_error(self, status_code: int, **_: Any) -> None:
        """Words for the page, in place of a page."""
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{status_code} {self._reason}")

    async def _send(self, make: Callable[[Browser], Reply]) -> None:
        """Send a reply, made and read beside the server's loop. A path that is not shown is 404, on a page that says why."""
        reply = await self._aside(self._made, make, self.get_query_argument("path", "", strip=False))
        self.set_status(reply.status)
        for name, value in {"Content-Type": reply.mime, "Content-Length": str(reply.length), **HEADERS, **reply.headers}.items():
            self.set_header(name, value)
        pieces = iter(reply.pieces)
        with suppress(StreamClosedError):  # somebody has seen enough of a film
            while (piece := await self._aside(next, pieces, None)) is not None:
                self.write(bytes(piece))
                await self.flush()

    def _made(self, make: Callable[[Browser], Reply], path: str) -> Reply:
        try:
            return make(self.pages.browser(path))
        except TarvizError as error:
            page = make(self.pages.browser(""))
            return replace(page, status=404) if page.mime.startswith("text/html") else said(404, str(error))

    async def _aside(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.pages.pool, work, *arguments)


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "tarviz.widgets.lab.server"}]


def _load_jupyter_server_extension(app: Any) -> None:
    """What a Jupyter server calls at its start."""
    address = url_path_join(app.web_app.settings["base_url"], "tarviz/")
    pages = Pages(app.contents_manager, address)
    atexit.register(pages.close)
    app.web_app.add_handlers(".*$", [(f"{address}(.*)", PageHandler, {"pages": pages})])
