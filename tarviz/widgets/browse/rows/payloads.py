"""Payloads of many rows, neighbours read in one range."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tarviz.model.errors import DataError, LimitError, TarvizError
from tarviz.widgets.browse.rows.shard_rows import Row, ShardRows

_GAP_LOCAL = 32 << 10
_GAP_REMOTE = 256 << 10
_ONE_READ = 4 << 20


class Want(NamedTuple):
    """A payload to read: one field of one row."""

    row: Row
    ext: str


def payloads(wants: Iterable[Want], *, limit: int = 64 << 20) -> list[bytes | TarvizError]:
    """The payloads, in the order given, neighbours read in one range; an error where one cannot be had.

    A member of more than `limit` bytes is a `LimitError`.
    """
    wanted = list(wants)
    found: list[bytes | TarvizError] = [b""] * len(wanted)
    places: list[tuple[int, int, int, int]] = []
    for number, want in enumerate(wanted):
        try:
            at = want.row.member(want.ext)
        except KeyError:
            found[number] = DataError(f"There is no .{want.ext} in this record.", code="E_MISSING_FIELD")
            continue
        members = want.row.index.members
        size = int(members.size[at])
        if size > limit:
            found[number] = LimitError(f".{want.ext} has {size:,} bytes; at most {limit:,} are read at once.")
        elif at in members.sparse:
            found[number] = _attempt(want.row.payload, at)
        elif size:
            places.append((want.row.shard.number, int(members.data[at]), size, number))
    places.sort()
    places.append((-1, 0, 0, 0))  # of no shard: the last run ends before it
    low = 0
    for high in range(1, len(places)):
        (shard, begin, _, first), (_, last, length, _), (other, offset, size, _) = places[low], places[high - 1], places[high]
        of = wanted[first].row.shard
        if other != shard or offset - last - length > (_GAP_LOCAL if of.local else _GAP_REMOTE) or offset + size - begin > _ONE_READ:
            _read_run(of, places[low:high], found)
            low = high
    return found


def _read_run(shard: ShardRows, run: list[tuple[int, int, int, int]], found: list[bytes | TarvizError]) -> None:
    begin = run[0][1]
    data = _attempt(shard.read, begin, run[-1][1] + run[-1][2] - begin)
    for _, offset, size, number in run:
        if isinstance(data, TarvizError):
            # the run may reach past a cut: each alone may still be there
            found[number] = _attempt(shard.read, offset, size) if len(run) > 1 else data
        else:
            found[number] = data[offset - begin : offset - begin + size]


def _attempt(work: Callable[..., bytes], *arguments: int) -> bytes | TarvizError:
    try:
        return work(*arguments)
    except TarvizError as error:
        return error
