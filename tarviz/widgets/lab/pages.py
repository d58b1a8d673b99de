"""The pages that a Jupyter server shows: which shards it may show, by Jupyter's own rules for files, and a browser for each."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from jupyter_core.paths import is_hidden

from tarviz import stores
from tarviz.model import plugins
from tarviz.model.errors import NotFoundError, TarvizError, UsageError
from tarviz.model.urls import ALIASES, local_path, scheme_of
from tarviz.stores.templates import braces
from tarviz.widgets.answers import by_hand
from tarviz.widgets.browse.controller import Browser
from tarviz.widgets.host.replies import CSP, HEADERS, Reply, answer_get, answer_post, sentence

MOST = 32
"""Shards, or sets of them, that stay open; what was asked for least lately ends first."""
_OURS = ("file", "stdio", "memory")  # schemes of what this machine and this process have


class Pages:
    """What the pages of a server show: a browser for each path, whoever looks at it. `contents` is the server's contents manager."""

    def __init__(self, contents: Any, address: str) -> None:
        self.contents = contents
        self.address = address
        self._open: OrderedDict[str, Browser] = OrderedDict()
        self._lock = threading.Lock()

    def browser(self, path: str, *, here: bool = True) -> Browser:
        """The browser of a path below the server's folder, or of a remote URL; of nothing, which only opens others, where it is empty.

        `here`: no other site asks; it could have this server read any URL. What is open already is no news to the server.
        """
        with self._lock:
            if path in self._open:
                self._open.move_to_end(path)
                return self._open[path]
        urls = [self.place(path)] if path else []
        if not here and not all(map(stores.is_local, urls)):
            raise UsageError("another site asks this server to read a URL.", shard=path, hint="Open it in JupyterLab, or type its address.")
        for url in urls:
            self._refuse(url)
            by_hand.keep_latest(url)
        made = Browser(urls)
        made.named, made.opener, made.shards.place = path, self.open, self.place
        with self._lock:
            found = self._open.setdefault(path, made)
            ended = [made] if found is not made else [self._open.popitem(last=False)[1]] if len(self._open) > MOST else []
        for each in ended:
            each.close()
        return found

    def open(self, url: str) -> str:
        """The address of the page that shows other shards. `NotFoundError` where this server does not show them."""
        self.browser(url)
        return f"{self.address}?path={quote(url, safe='')}"

    def place(self, text: str) -> str:
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
                self.place(name)
            for shard in stores.expand(url):
                self.place(shard)

    def get(self, path: str, place: str, session: str, span: str, here: bool) -> Reply:
        """The reply to a GET (see `replies.answer_get`), which no other site asks for where it is from `here`. What is not shown is 404."""

        def make(one: Browser) -> Reply:
            return answer_get(one, place, title=" · ".join(filter(None, (one.title, "tarviz"))), session=session, span=span)

        return self._reply(path, make, here=here)

    def post(self, path: str, place: str, frame: bytes) -> Reply:
        """The reply to a POST."""
        return self._reply(path, lambda one: answer_post(one, frame) if place == "rpc" else sentence(404, "There is nothing here."))

    def _reply(self, path: str, make: Callable[[Browser], Reply], *, here: bool = True) -> Reply:
        try:
            found = make(self.browser(path, here=here))
        except TarvizError as error:
            page = make(self.browser(""))
            found = replace(page, status=404) if page.mime.startswith("text/html") else sentence(404, str(error))
        return replace(found, headers={**HEADERS, **found.headers, "Content-Security-Policy": CSP})

    def close(self) -> None:
        """End all browsers."""
        while self._open:
            self._open.popitem()[1].close()
