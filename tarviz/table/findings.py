"""What a data set has too much of, or that stands out: exact and near duplicates, outliers; as groups that can be tagged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import UsageError
from tarviz.model.redaction import redact, redacted_repr
from tarviz.table import alike
from tarviz.table.columns import kind, small_of
from tarviz.table.sql import quoted_name

if TYPE_CHECKING:
    from tarviz.table.table import Table

BITS = 64
DISTANCE = 3  # bits of 64 in which near duplicates may differ
LIGHT = 8.0  # of 255: how far their mean grey may lie apart
_FLAT = 6  # bits a hash must have set, and lack, to say anything: a flat picture has few edges


@dataclass(frozen=True, slots=True)
class GroupedRecord:
    """One record of a group."""

    shard: str
    key: str
    n: int

    __repr__ = redacted_repr


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Records that belong together, each group in the order its records lie."""

    table: Table
    groups: list[list[GroupedRecord]]

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def extra(self) -> list[GroupedRecord]:
        """All but the first of each group."""
        return [member for group in self.groups for member in group[1:]]

    def tag(self, tag: str = "dup") -> int:
        """Tag all but the first of each group, with the first one's key as the note. How many."""
        noted = [(each.shard, each.key, f"like {group[0].key}") for group in self.groups for each in group[1:]]
        return self.table.tags.add_noted(noted, tag)

    def __repr__(self) -> str:
        return f"<{len(self.groups)} groups, {len(self.extra)} records more than their firsts>"


def exact(table: Table, ext: str, where: str = "") -> Groups:
    """Records whose field `ext` has the same bytes."""
    column, condition = table.expression(_column(table, ext, "checksum")), table.condition(where)
    rows = table.fetch(
        f"SELECT shard, key, n, {column} AS sum FROM records WHERE {condition} AND {column} IS NOT NULL "
        f"QUALIFY count(*) OVER (PARTITION BY {column}) > 1"
    )
    found: dict[str, list[GroupedRecord]] = {}
    for shard, key, n, checksum in _in_order(table, rows):
        found.setdefault(checksum, []).append(GroupedRecord(shard, key, n))
    return Groups(table, list(found.values()))


def _in_order(table: Table, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows that begin with (shard, key, n) as the records lie: a database promises no order, and the first of a group is the one kept."""
    place = {redact(url): at for at, url in enumerate(table.urls)}
    return sorted(rows, key=lambda row: (place[row[0]], row[2]))


def near(table: Table, ext: str, where: str = "", *, distance: int = DISTANCE) -> Groups:
    """Pictures that look alike, or texts that read alike: see `tarviz.table.alike`.

    Pictures: hashes that differ in at most `distance` bits of 64, of nearly the same brightness; sizes, qualities and formats may differ.
    Up to a distance of 3 their pixels are compared too: a hash takes one page of text for another. From 3 on also those that are
    mirrored, turned by quarters, brightened by up to a fifth or cropped by 3 % of each side, for which all are compared with all.
    Pictures without edges say too little and are left out.
    """
    if not 0 <= distance <= 15:
        raise UsageError(f"distance={distance} is not from 0 to 15.")
    condition = table.condition(where)
    if kind(ext) == "text":
        text = table.expression(quoted_name(ext))
        rows = _in_order(table, table.fetch(f"SELECT shard, key, n, {text} FROM records WHERE {condition} AND {text} IS NOT NULL"))
        return _groups_of(table, rows, *alike.texts([row[3] for row in rows], look=table.look))
    mean, code = (table.expression(_column(table, ext, name)) for name in ("mean", "phash"))
    rows = _in_order(table, table.fetch(f"SELECT shard, key, n, {mean}, {code} FROM records WHERE {condition} AND {code} IS NOT NULL"))
    light = np.array([row[3] for row in rows])
    hashes = np.array([row[4] for row in rows], np.uint64)
    small = _small(table, ext, rows)
    like = partial(alike.same, small, look=table.look) if distance <= DISTANCE else _always
    one, other = links(hashes, light, distance, like=like, look=table.look)
    if distance >= DISTANCE:
        distinct = np.setdiff1d(np.arange(len(rows)), other)
        a, b = alike.pictures(small[distinct], look=table.look)
        one, other = np.concatenate((one, distinct[a])), np.concatenate((other, distinct[b]))
    return _groups_of(table, rows, one, other)


def _groups_of(table: Table, rows: list[tuple[Any, ...]], one: NDArray[np.int64], other: NDArray[np.int64]) -> Groups:
    return Groups(table, [[GroupedRecord(*rows[at][:3]) for at in group] for group in _components(one, other, len(rows))])


def _small(table: Table, ext: str, rows: list[tuple[Any, ...]]) -> NDArray[np.uint8]:
    """The small grey pictures of records, (records, cuts, side, side)."""
    kept = {redact(shard.url): shard.table().column(small_of(ext)) for shard in table.passes.kept if ext in shard.exts}
    of_shards = (kept[url].take([row[2] for row in some]).to_pylist() for url, some in groupby(rows, lambda row: row[0]))
    return np.frombuffer(b"".join(chain.from_iterable(of_shards)), np.uint8).reshape(-1, alike.CUTS, alike.SIDE, alike.SIDE)


def _always(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.ones(len(one), bool)


def links(
    hashes: NDArray[np.uint64],
    light: NDArray[np.float64],
    distance: int = DISTANCE,
    *,
    like: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]] = _always,
    look: Callable[[], None] = lambda: None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions that join what looks alike: near hashes, mean greys at most `LIGHT` apart, and `like` says so. Of pictures that are the
    same each is joined to the first alone: one that is there a hundred thousand times makes no square.

    >>> [part.tolist() for part in links(np.array([0xFF00FF] * 4, np.uint64), np.zeros(4))]
    [[0, 0, 0], [1, 2, 3]]
    """
    there = np.bitwise_count(hashes)
    left = np.flatnonzero((there >= _FLAT) & (there <= BITS - _FLAT))
    which = np.unique(np.rec.fromarrays([hashes, np.rint(light)]), return_inverse=True)[1]
    leads, heads, again = [left[:0]], [left[:0]], [left[:0]]
    while len(left):  # those that are none of the first of their kind have a first of their own
        look()
        _, at, of = np.unique(which[left], return_index=True, return_inverse=True)
        leads.append(left[at])
        rest = np.delete(np.arange(len(left)), at)
        head, left = left[at[of[rest]]], left[rest]
        good = like(head, left)
        heads.append(head[good])
        again.append(left[good])
        left = left[~good]
    first = np.sort(np.concatenate(leads))
    one, other = pairs(hashes[first], distance, look=look)
    one, other = first[one], first[other]
    good = np.abs(light[one] - light[other]) <= LIGHT
    one, other = one[good], other[good]
    good = like(one, other)
    return np.concatenate((*heads, one[good])), np.concatenate((*again, other[good]))


def pairs(
    hashes: NDArray[np.uint64], distance: int = DISTANCE, *, look: Callable[[], None] = lambda: None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of hashes that differ in at most `distance` bits, each pair once, the lower position first.

    Two such hashes are equal in one of `distance + 1` bands: only those that share a band are compared, so that a million records
    take seconds, not a square of a million.

    >>> [part.tolist() for part in pairs(np.array([0xFF00FF, 0xFF00FE, 0xF0F0F0F0], np.uint64))]
    [[0], [1]]
    """
    edges = np.linspace(0, BITS, distance + 2).astype(int).tolist()
    found = [np.zeros(0, np.int64)]
    for low, high in pairwise(edges):
        band = (hashes >> np.uint64(low)) & np.uint64((1 << (high - low)) - 1)
        order = np.argsort(band, kind="stable")
        sorted_band, sorted_hashes = band[order], hashes[order]
        there = np.arange(len(order) - 1)
        step = 1
        while len(there := there[there + step < len(order)]):
            look()
            there = there[sorted_band[there] == sorted_band[there + step]]
            near_by = there[np.bitwise_count(sorted_hashes[there] ^ sorted_hashes[there + step]) <= distance]
            a, b = order[near_by], order[near_by + step]
            found.append(np.minimum(a, b) * len(hashes) + np.maximum(a, b))
            step += 1
    both = np.unique(np.concatenate(found))
    return both // len(hashes), both % len(hashes)


def outliers(table: Table, column: str, where: str = "", *, factor: float = 3.0) -> str:
    """The condition that chooses records whose number lies `factor` times the middle half's width or more outside of it."""
    name, condition = table.expression(column), table.condition(where)
    ((low, high),) = table.fetch(f"SELECT quantile_cont({name}, 0.25), quantile_cont({name}, 0.75) FROM records WHERE {condition}")
    if low is None:
        raise UsageError(f"{column} has no number.")
    reach = factor * (high - low)
    return f"({column} < {low - reach!r} or {column} > {high + reach!r})"


def _column(table: Table, ext: str, name: str) -> str:
    if name != "checksum" and kind(ext) != "picture":
        raise UsageError(f"{ext} is not a picture.", hint=f"Fields: {', '.join(table.fields)}.")
    if ext not in table.fields:
        raise UsageError(f"there is no field {ext!r}.", hint=f"Fields: {', '.join(table.fields)}.")
    return f'"{ext}.{name}"'


def _components(one: NDArray[np.int64], other: NDArray[np.int64], count: int) -> list[list[int]]:
    """Pairs that share a member, as groups."""
    root = list(range(count))

    def top(at: int) -> int:
        while root[at] != at:
            root[at] = root[root[at]]
            at = root[at]
        return at

    for a, b in zip(one.tolist(), other.tolist(), strict=True):
        a, b = sorted((top(a), top(b)))
        root[b] = a
    groups: dict[int, list[int]] = {}
    for at in sorted({*one.tolist(), *other.tolist()}):
        groups.setdefault(top(at), []).append(at)
    return list(groups.values())
