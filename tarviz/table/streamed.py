"""A condition asked of records while they come: the columns it needs are made of each block, and DuckDB answers as it does for a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import Fault, redact
from tarviz.model.types import Block, to_bytes
from tarviz.read.report import ReadReport
from tarviz.table import columns, conditions, database
from tarviz.table.columns import NAMES
from tarviz.table.finished import finish, where_of
from tarviz.table.making.chunks import Chunk, chunk_of
from tarviz.table.making.json_structure import fit_columns, sql_type
from tarviz.table.making.shard_columns import MadeColumns, columns_of
from tarviz.table.packages import pa
from tarviz.table.refusals import in_our_words
from tarviz.table.sql import Question, quoted_name


class StreamCondition:
    """`where` and `keys` over one stream of records. A name that no record has had so far is null.

    `UsageError` for what cannot be read, and for what needs all records at once; `MissingPackageError` without the extra `table`.
    """

    def __init__(self, where: str, keys: Iterable[str] = ()) -> None:
        database.require()
        self.where = where
        self._keys = frozenset(map(to_bytes, keys))
        self._base = database.empty()
        self._exts: dict[str, None] = {}
        self._asked = self._read()
        self.seen = 0  # records
        self._lacking: set[str] | None = None  # names that none of the records so far has
        self._found: set[bytes] = set()

    def _read(self) -> Question | None:
        if not self.where.strip():
            return None
        possible = columns.of_fields(list(self._exts))
        return in_our_words(lambda: conditions.condition(self._base, self.where, possible, streamed=True))

    def fits(self, block: Block) -> NDArray[np.int64]:
        """The numbers of the records of a block that fit, ascending, counted in the block."""
        return self.of_chunk(chunk_of(block), block.shard)

    def of_chunk(self, chunk: Chunk, shard: str) -> NDArray[np.int64]:
        """The same of records that are given as columns are made of them."""
        rows = np.arange(len(chunk))
        self.seen += len(chunk)
        if self._keys:
            rows = np.flatnonzero([key in self._keys for key in chunk.keys])
            self._found.update(chunk.keys[at] for at in rows.tolist())
        if not self._exts.keys() >= set(chunk.exts):
            self._exts |= dict.fromkeys(chunk.exts)
            self._asked = self._read()
        if (asked := self._asked) is None or not len(chunk):
            return rows
        base, lacking = self._base.cursor(), set(asked.unknown)
        made = columns_of(chunk, asked.parts | {NAMES})
        made.columns["shard"] = pa.repeat(pa.scalar(redact(shard)), len(chunk))
        selected = _selection(made)

        def ask() -> Any:
            base.register("_streamed", pa.table(made.columns))
            relation = base.sql(f"SELECT {selected} FROM _streamed LIMIT 0")
            types = dict(zip(relation.columns, relation.types, strict=True))
            rows = f"FROM (SELECT {selected} FROM _streamed) AS records WHERE"
            holds = lambda test: base.execute(f"SELECT 1 {rows} {test} LIMIT 1").fetchone() is not None  # noqa: E731
            text = finish(base, asked, types, kind="condition", missing=lacking.add, holds=holds)
            return base.sql(f"SELECT n {rows} {where_of(text)}").fetchnumpy()["n"]

        found = np.sort(np.asarray(in_our_words(ask), np.int64)) - chunk.first
        self._lacking = lacking if self._lacking is None else self._lacking & lacking
        return np.intersect1d(rows, found)

    @property
    def lacking(self) -> list[str]:
        """Names that no record has had so far."""
        return sorted(self._lacking or ())

    def end(self, report: ReadReport, shard: str) -> None:
        """Say which names and keys no record had."""
        for name in self.lacking:
            report.add(Fault("W_NO_COLUMN", f"no record has {name}, which the condition asks for.", shard))
        if lost := len(self._keys - self._found):
            report.add(Fault("W_NO_KEY", f"{lost} of {len(self._keys)} keys are of no record.", shard))


def _selection(made: MadeColumns) -> str:
    """How the columns of a block are selected, with their types."""
    cast = {ext: sql_type(fit_columns(each)) for ext, each in made.structures.items()}
    names = [name for name in made.columns if not columns.is_hidden(name)]
    return ", ".join(f"CAST({quoted_name(n)} AS {cast[n]}) AS {quoted_name(n)}" if n in cast else quoted_name(n) for n in names)
