"""Shards as all pages of a browser share them: rows, pictures, columns, what is marked, what is being done."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike

from tarviz import stores
from tarviz.read import tfrecords
from tarviz.read.stream import ReadOptions, URLs
from tarviz.viewers.panel import readable
from tarviz.widgets.answers.jobs import Job
from tarviz.widgets.answers.questions import Questions
from tarviz.widgets.browse import counts, status
from tarviz.widgets.browse.labels import Labels
from tarviz.widgets.browse.marks import Marks
from tarviz.widgets.browse.rows import RECORD_BITS, Rows
from tarviz.widgets.browse.scan import Scan
from tarviz.widgets.browse.thumbnails import Tiles
from tarviz.widgets.host.rpc import Message
from tarviz.widgets.map.map_answers import Maps
from tarviz.widgets.panes.overlays import Overlays


class OpenShards:
    """Shards that are being looked at. Scanning begins at once, on a thread."""

    def __init__(
        self, urls: URLs, label: str | None, classes: Mapping[int, str], overlay: str, options: ReadOptions | None, *, cache: bool
    ) -> None:
        options = replace(options or ReadOptions(), where="", keys=())
        self.place: Callable[[str], str] = str
        """Where lies what a page calls by a name. A server that shows a part of its machine refuses the rest."""
        self.urls = [urls] if isinstance(urls, (str, PathLike)) else list(urls)
        self.overlays = Overlays(overlay)
        self.labels = Labels(label, classes)
        shards = tfrecords.as_shards(stores.expand(self.urls)) if self.urls else []  # a page on nothing yet opens others
        self.rows = Rows(shards)
        self.tiles = Tiles(self.overlays)
        self.questions = Questions(self.rows, options)
        self.marks = Marks(self.rows.touch)
        self.job = Job(self.rows.touch)
        self.maps = Maps()
        self.scan = Scan(self.rows, options, cache=cache)
        self.numbers = itertools.count(1)  # of searches: no two pages have one in common
        self._figures: tuple[int, Message] = (-1, {})
        self._lock = threading.Lock()

    def figures(self, version: int) -> Message:
        """Fields, sets of fields and faults of the shards read so far; the same for all who ask at one version."""
        with self._lock:
            if self._figures[0] != version:
                fields, sets = counts.patterns(self.rows)
                shown = [[[readable(ext) for ext in names], count] for names, count in sets]
                faults = status.faults(self.rows)
                self._figures = version, {"fields": [[readable(e), n] for e, n in fields.items()], "sets": shown, "faults": faults}
            return self._figures[1]

    def again(self, shard: int) -> None:
        """Scan a shard anew: nothing that was known of its bytes is, and its records are no longer marked."""
        self.marks.change([], [row for row in self.marks.rows if row >> RECORD_BITS == shard])
        self.scan.again(self.rows.shards[shard])
        self.tiles.forget()
        self.labels.forget()
        self.questions.forget()

    def close(self) -> None:
        self.job.stop()
        self.maps.close()
        self.scan.close()
        self.tiles.close()
        self.rows.close()
