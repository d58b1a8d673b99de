"""Records like one of them: nearest by the cosine of an embedding, else pictures of the nearest hash."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import LimitError, TarvizWarning, UsageError
from tarviz.table.columns import kind, of_field
from tarviz.table.database import memory_limit
from tarviz.table.findings import BITS
from tarviz.table.packages import pa, pc
from tarviz.table.rows import ChosenRows, check_count

if TYPE_CHECKING:
    from tarviz.table.table import Table

_MARGIN = 64  # candidates beyond those asked for, whose cosines are taken again in float64


class Vectors(NamedTuple):
    """The vectors of records that have one: where they lie, float32 of (records, dimensions), and their lengths; none of length 0."""

    rows: ChosenRows
    matrix: NDArray[np.float32]
    lengths: NDArray[np.float64]


def similar(table: Table, key: str, by: str = "", count: int | None = 24) -> ChosenRows:
    """The `count` records (None: all) nearest to that of `key`, which is left out, the nearest first; `score` is the cosine, of hashes the
    share of equal bits. Every vector is compared.

    `by`: a field of vectors (`npy`, `safetensors` of one tensor), a list in JSON (`json.embedding`), or a field of pictures, compared by
    their hashes; else the first field there is of these. `UsageError` where the record has none; records that hold something else there
    are left out, with a warning that counts them.
    """
    if not isinstance(key, str) or not isinstance(by, str):
        raise UsageError(f"key={key!r} and by={by!r} are to be texts.", hint='Write table.similar("0001", "npy").')
    most = check_count(count)
    count = len(table) if most is None else most
    by = by or next(
        (ext for what in ("array", "tensors", "picture") for ext in table.fields if kind(ext) == what), next(iter(table.fields), "")
    )
    if by in table.fields and kind(by) == "picture":
        return _by_hash(table, key, by, count)
    found = table.remember(("vectors", by), lambda: _vectors(table, by))
    at = _place(table, key, found.rows, by)
    here = found.matrix[at].astype(np.float64) / found.lengths[at]
    cosines = (found.matrix @ here.astype(np.float32)) / found.lengths
    cosines[at] = -np.inf
    most = min(count, len(cosines) - 1)
    near = np.argpartition(-cosines, min(most + _MARGIN, len(cosines) - 1))[: most + _MARGIN]
    exact = (found.matrix[near].astype(np.float64) @ here) / found.lengths[near]
    exact[near == at] = -np.inf
    return _first(found.rows, near, exact, most)


def _first(rows: ChosenRows, near: NDArray[np.int64], score: NDArray[np.float64], count: int) -> ChosenRows:
    order = np.lexsort((near, -score))[:count]
    chosen = near[order]
    return ChosenRows(rows.shards, rows.shard[chosen], rows.n[chosen], score[order])


def _place(table: Table, key: str, rows: ChosenRows, by: str) -> int:
    """Where the record of a key lies among `rows`."""
    own = table.by_keys([key])
    at = np.flatnonzero((rows.shard == own.shard[0]) & (rows.n == own.n[0]))
    if not len(at):
        raise UsageError(f"the record {key!r} has nothing in {by} to compare.", hint="Name another record, or another field.")
    return int(at[0])


def _by_hash(table: Table, key: str, ext: str, count: int) -> ChosenRows:
    code = table.expression(f'"{ext}.phash"')
    found = table.fetched_arrow(f"SELECT shard, n, {code} AS code FROM records WHERE {code} IS NOT NULL ORDER BY shard, n")
    rows, codes = table.place(found), found.column("code").to_numpy()
    at = _place(table, key, rows, ext)
    equal = 1 - np.bitwise_count(codes ^ codes[at]) / BITS
    near = np.delete(np.arange(len(codes)), at)
    return _first(rows, near, equal[near], count)


def _vectors(table: Table, by: str) -> Vectors:
    name = f'"{by}.vector"' if by in table.fields and f"{by}.vector" in of_field(by) else by
    column = table.expression(name)
    mixed = table.type_of(column) == "varchar"  # as what is JSON is, where some have no list
    found = table.arrow(f"SELECT shard, n, TRY_CAST({name} AS FLOAT[]) AS x FROM records") if mixed else None
    if table.type_of(column) not in ("list", "array") and (found is None or found.column("x").null_count == len(found)):
        hint = "Vectors are npy, safetensors of one tensor, lists of numbers in JSON; pictures are compared by their hashes."
        raise UsageError(f"{by or 'the data set'} holds no vectors.", hint=hint)
    found = found or table.fetched_arrow(f"SELECT shard, n, TRY_CAST({column} AS FLOAT[]) AS x FROM records")
    found = found.filter(pc.is_valid(found.column("x")))
    sizes = pc.list_value_length(found.column("x"))
    wide = 0 if not len(found) else int(pc.mode(sizes)[0].as_py()["mode"])
    found = found.filter(pc.equal(sizes, wide))
    if found.nbytes > memory_limit():
        raise LimitError(f"the vectors of {len(found):,} records do not fit into memory.", hint="Ask a part of the shards.")
    flat = found.column("x").combine_chunks()
    values = pc.list_flatten(flat)
    matrix = np.asarray(values.to_numpy(zero_copy_only=False), np.float32).reshape(len(found), wide)
    with np.errstate(invalid="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
    good = (lengths > 0) & (lengths < np.finfo(np.float32).max)
    if not good.all():
        found, matrix, lengths = found.filter(pa.array(good)), matrix[good], lengths[good]
    if left := len(table) - len(found):
        text = f"W_NO_VECTOR {left:,} of {len(table):,} records have no vector of {wide} numbers in {by}: they are left out."
        warnings.warn(text, TarvizWarning, stacklevel=2)
    return Vectors(table.place(found), matrix, lengths)
