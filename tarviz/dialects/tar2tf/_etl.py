"""Conversions next to the data: a transformer in the pods of an AIStore cluster, whose outputs are read in place of the shards."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace

from tarviz.dialects.tar2tf import _transformed
from tarviz.model.errors import MissingPackageError, StoreError, TarvizError
from tarviz.model.types import URL
from tarviz.ops import Func
from tarviz.pipeline import Pipeline
from tarviz.read import stream
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.runners.ahead import ahead
from tarviz.runners.elsewhere import Elsewhere, MadeRow, RowSource, Worked
from tarviz.runners.plans import Trail
from tarviz.runners.shares import Piece
from tarviz.stores import ais

_TRIES = 3  # a shard that ends early is asked for again so often
_AHEAD = 64  # rows of a shard that wait here
_SHARDS = 2  # read at the same time, where nobody says


def obstacle(pipeline: Pipeline) -> str | None:
    """Why a pipeline cannot be run next to its data; None: it can."""
    if not all(url.startswith("ais://") for url in stream.shards(pipeline.urls)):
        return "the shards are not in an AIStore bucket"
    if any(isinstance(op, Func) for op in pipeline.chain):
        return "the chain travels as text, and a function has none"
    if pipeline.options.where or pipeline.options.keys:
        return "records are chosen by a condition or by keys"
    return None


def begin(url: URL) -> ais.Transformer:
    """The transformer begun in the cluster of a bucket; `StoreError` where that has no ETL."""
    from tarviz import __version__

    try:
        from tarviz.dialects.tar2tf._transformer import TarTransformer
    except ImportError as error:
        raise MissingPackageError.of("aistore", "remote_exec next to the data", "ais") from error
    return ais.begin_transformer(url, TarTransformer, [f"tarviz=={__version__}"])


@dataclass(frozen=True, slots=True)
class Etl(Elsewhere):
    """A transformer that is there: `name` is that of the ETL."""

    name: str = ""

    @contextmanager
    def start(self, pipeline: Pipeline, work: Worked, *, stops: bool) -> Iterator[RowSource]:
        """The transformer; what is done with a record is the chain, as text."""
        yield _TransformedRows(self, pipeline)


@dataclass(frozen=True, slots=True)
class _TransformedRows:
    place: Etl
    pipeline: Pipeline

    def rows(
        self, pieces: list[Piece], epoch: int, report: ReadReport, trail: Trail | None = None, number: int = 0
    ) -> Generator[tuple[int, MadeRow], None, None]:
        """See `RowSource`; a piece is read as a whole, and what is not of it is passed over."""
        name, asked = self.place.name, self._request(epoch)

        def opened(numbered: tuple[int, Piece], own: ReadReport) -> Generator[tuple[int, Piece, MadeRow], None, None]:
            at, piece = numbered
            return ((at, piece, row) for row in _fetch(name, piece.url, asked, own))

        left = list(enumerate(pieces[number:], number))
        with closing(ahead(left, opened, report, self.place.count or _SHARDS, True, _AHEAD)) as found:
            for at, piece, row in found:
                error = row.value.at(shard=piece.url) if isinstance(row.value, TarvizError) else None
                if error is not None and not row.behind:  # of the shard, not of a record
                    raise error
                if piece.has(row.behind - 1):
                    yield at, row if error is not None else self._pick(piece, row)

    def _request(self, epoch: int) -> str:
        pipeline, plain = self.pipeline, ReadOptions()
        given = {each.name: getattr(pipeline.options, each.name) for each in fields(ReadOptions)}
        options = {name: value for name, value in given.items() if value != getattr(plain, name)}
        needs = pipeline.select.needs()
        names = None if needs is None else sorted(needs)
        return json.dumps({"chain": str(pipeline.chain), "seed": pipeline.seed, "epoch": epoch, "options": options, "fields": names})

    def _pick(self, piece: Piece, row: MadeRow) -> MadeRow:
        places = {"__key__": row.key, "__shard__": piece.url, "__index__": row.behind - 1}
        try:
            value = self.pipeline.select.pick(places | row.value)
            return replace(row, value=value if self.place.fit is None else self.place.fit(places, value))
        except TarvizError as error:
            return replace(row, value=error)


def _fetch(name: str, url: URL, asked: str, report: ReadReport) -> Generator[MadeRow, None, None]:
    """The rows of a transformed shard; one that ends early is asked for again, and what came is passed over."""
    given = 0
    for left in reversed(range(_TRIES)):
        now = ReadReport()
        try:
            with ais.open_transformed(url, name, asked) as data:
                for at, row in enumerate(_transformed.unpack(data, now)):
                    if at >= given:
                        yield row
                        given = at + 1
            report.merge(now)
            return
        except TarvizError as error:
            error.at(shard=url)
            if not left or not isinstance(error, StoreError):
                raise
