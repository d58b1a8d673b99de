"""The browser in a notebook: `Browser` behind the common view, with what Python wants to know of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from tarviz.model.types import Record
from tarviz.outputs import Exists
from tarviz.widgets.browse.controller import FIRST, Browser
from tarviz.widgets.host.behind import start_thread
from tarviz.widgets.host.view import View
from tarviz.widgets.map.points import MapPoints

import traitlets  # isort: skip (behind _view, which says what is missing)


class BrowseView(View):
    """Shards in a notebook cell.

    `selected` is the record under the cursor and `marked` the ones marked (as `RecordRef`s: shard, index, key); both
    can be observed. `spec` is the Python call that shows what is shown now, `records()` the records of the rows shown.
    """

    selected = traitlets.Any()
    marked = traitlets.List()

    controller: Browser

    def __init__(self, browser: Browser, **traits: Any) -> None:
        super().__init__(browser, **traits)
        browser.changed = self._follow
        if len(self._first["rows"]["rows"]) < FIRST and not browser.shards.rows.finished:
            start_thread("first", self._complete)

    def _complete(self) -> None:
        """Bring the saved picture up to date once the first rows of a slow shard are there."""
        self.controller.wait(FIRST, 60)
        if not self.controller.closed:
            self.renew()

    def _follow(self) -> None:
        self.selected = self.controller.selected
        self.marked = list(self.controller.marked)

    @property
    def spec(self) -> str:
        """The Python call that shows what is shown now."""
        return self.controller.spec

    def export(self, path: str | os.PathLike[str], *, exists: Exists = "error") -> int:
        """Write the marked records, or where none is marked all that show, to `path`: a shard (`.tar`), shards of at most 10⁹ bytes
        (`subset-{}.tar`), a table (`.csv`, `.parquet`) or a list of keys (`.txt`). Members are copied bit for bit, in the order they lie.
        Nothing that is there is overwritten, unless `exists="replace"` says so: `UsageError`. Returns how many records were written."""
        return self.controller.write(path, exists=exists)

    def map(self, x: str, y: str = "", by: str = "pca") -> MapPoints:
        """Records as points: `.ids`, `.xy` float32 [n, 2] from −1 to 1, `.low` and `.high` the values there, `.inside(corners)`.

        Two columns that hold numbers (`w.map("json.w", "json.h")`), or a field alone: the vectors of an `npy` field, or what pictures look
        like, projected `by` "pca" or, where umap-learn is installed, "umap". `UsageError` where there are no numbers, or vectors of
        several shapes.
        """
        return self.controller.map(x, y, by)

    def records(self) -> Iterator[Record]:
        """The records of the rows that show, in their order."""
        return self.controller.records()
