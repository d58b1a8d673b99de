"""What people keep by hand beside tags: views of a set of shards by name, and the shards that were opened last."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tarviz import stores
from tarviz.model.config import options as configured
from tarviz.model.errors import TarvizError, UsageError, redact
from tarviz.model.urls import digest, identity, is_local
from tarviz.viewers.panel import readable
from tarviz.widgets.browse.look import Answers
from tarviz.widgets.host.rpc import Message, rpc

MOST_VIEWS = 200
MOST_RECENT = 12
_LONGEST = 20_000  # characters of an address


def latest() -> list[str]:
    """The shards that were opened last on pages, the latest first, without secrets."""
    found = _read(_recent())
    return [str(text) for text in found] if isinstance(found, list) else []


def keep_latest(text: str) -> None:
    """Put shards at the head of the list."""
    text = os.path.abspath(text) if is_local(text) else redact(text)
    with suppress(OSError, TarvizError):  # a home that cannot be written is no reason not to look at shards
        _write(_recent(), [text, *(other for other in latest() if other != text)][:MOST_RECENT])


def _recent() -> Path:
    return configured().data_dir / "opened.json"


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _write(file: Path, value: Any) -> None:
    """Whole or not at all, for its owner alone."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    stores.write(file, json.dumps(value, indent=1).encode())
    file.chmod(0o600)


class ViewAnswers(Answers):
    """Answers with the views that were given a name: parts of a page's address, the same for every page on these shards."""

    opener: Callable[[str], str] | None = None

    @rpc
    def recent(self) -> Message:
        """The shards that were opened last."""
        return {"recent": [readable(text) for text in latest()]}

    @rpc
    def open(self, url: str) -> Message:
        """Open other shards, a path, a URL or a folder: the address of their page."""
        if self.opener is None:
            raise UsageError("Nothing else can be opened here.", hint="Start tarviz browse on it.")
        if not url.strip():
            raise UsageError("Which shards?", hint="Write a path, a folder or a URL.")
        address = self.opener(url.strip())
        keep_latest(self.shards.place(url.strip()))
        return {"address": address}

    @rpc
    def views(self) -> Message:
        """Name → address, in the order of names."""
        found = _read(self._file)
        return {"views": {readable(name): address for name, address in sorted(found.items())} if isinstance(found, dict) else {}}

    @rpc
    def save_view(self, name: str, address: str) -> Message:
        """Keep an address under a name; what had that name is replaced."""
        if not name.strip() or len(name) > 100 or not name.isprintable() or len(address) > _LONGEST:
            raise UsageError(f"{name[:100]!r} is not a name for a view.", hint="Give it a few words.")
        return self._change(lambda views: views | {name.strip(): address})

    @rpc
    def drop_view(self, name: str) -> Message:
        """Forget a view."""
        return self._change(lambda views: {other: address for other, address in views.items() if other != name})

    def _change(self, change: Callable[[dict[str, str]], dict[str, str]]) -> Message:
        views = change(self.views()["views"])
        if len(views) > MOST_VIEWS:
            raise UsageError(f"There are {MOST_VIEWS} views already.", hint="Drop some first.")
        _write(self._file, views)
        return self.views()

    @property
    def _file(self) -> Path:
        """Where the views of a set of shards are, however its URLs are written and signed."""
        urls = "\n".join(sorted(redact(identity(shard.url)) for shard in self.rows.shards))
        return configured().data_dir / "views" / f"{digest(urls, 40)}.json"
