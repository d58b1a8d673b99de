"""Payloads of many rows, neighbours read in one range."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tarviz.model.errors import DataError, LimitError, TarvizError
from tarviz.widgets.browse.rows.shard_rows import Row, ShardRows

_GAP_LOCAL = 32 << 10
_GAP_REMOTE = 256 << 10
_ONE_READ = 4 << 20


@dataclass(frozen=True, slots=True)
class Want:
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
            found[number] = _guarded(want.row.payload, at)
        elif size:
            places.append((want.row.shard.number, int(members.data[at]), size, number))
    places.sort()
    at = 0
    while at < len(places):
        shard = wanted[places[at][3]].row.shard
        gap = _GAP_LOCAL if shard.local else _GAP_REMOTE
        stop, end = at + 1, places[at][1] + places[at][2]
        while (
            stop < len(places)
            and places[stop][0] == shard.number
            and places[stop][1] - end <= gap
            and places[stop][1] + places[stop][2] - places[at][1] <= _ONE_READ
        ):
            end = places[stop][1] + places[stop][2]
            stop += 1
        _read_run(shard, places[at:stop], end, found)
        at = stop
    return found


def _read_run(shard: ShardRows, run: list[tuple[int, int, int, int]], end: int, found: list[bytes | TarvizError]) -> None:
    begin = run[0][1]
    data = _guarded(shard.read, begin, end - begin)
    for _, offset, size, number in run:
        if isinstance(data, TarvizError):
            # the run may reach past a cut: each alone may still be there
            found[number] = _guarded(shard.read, offset, size) if len(run) > 1 else data
        else:
            found[number] = data[offset - begin : offset - begin + size]


def _guarded(work: Callable[..., bytes], *arguments: int) -> bytes | TarvizError:
    try:
        return work(*arguments)
    except TarvizError as error:
        return error
