"""Records as they are handed out: each field once, no key for the second time; what is not so is an error, a warning, or left out."""

from __future__ import annotations

from tarviz.formats.records import Grouped, Grouper, part, without
from tarviz.model.errors import DataError, Fault
from tarviz.model.types import to_text
from tarviz.read.rules import Rules


def settle(records: Grouped, pending: int, grouper: Grouper, rules: Rules, skipped: list[Fault]) -> tuple[Grouped, int, DataError | None]:
    """The records that may be given, the row of the pending one (-1: none), and the error that ends the shard after them."""
    whole, problem = grouper.settle(records)
    while problem is not None and rules.skip:
        row = len(whole)
        skipped.append(problem.at(shard=grouper.shard).fault)
        records, pending = without(records, row), _row_without(pending, row)
        whole, problem = grouper.settle(records)
    again = [] if rules.returning else grouper.returns(whole)
    if rules.strict and rules.skip:
        for row, first_at in reversed(again):
            skipped.append(_return_error(whole, row, first_at, grouper.shard).fault)
            whole, pending = without(whole, row), _row_without(pending, row)
    elif rules.strict and again:
        row, first_at = again[0]
        problem, whole = _return_error(whole, row, first_at, grouper.shard), part(whole, 0, row)
    else:
        for error in (_return_error(whole, row, first_at, grouper.shard) for row, first_at in again):
            grouper.notes.append(Fault("W_SPLIT_RECORD", error.message, error.shard, error.key, error.member, error.offset))
    return whole, pending if pending < len(whole) else -1, problem


def _return_error(records: Grouped, row: int, first_at: int, shard: str) -> DataError:
    at = int(records.rows[row])
    offset = int(records.members.start[at])
    return DataError(
        f"the key was at byte {first_at} and comes again at byte {offset}: the members of one record are not adjacent.",
        code="E_SPLIT_RECORD",
        shard=shard,
        key=to_text(bytes(records.keys[row])),
        member=to_text(bytes(records.members.name[at])),
        offset=offset,
        hint='Sort the shard (tarviz sort) or read with group="shard".',
    )


def _row_without(pending: int, row: int) -> int:
    """The row of the pending record when record `row` is left out."""
    return -1 if pending == row else pending - (pending > row)
