"""What is wrong with one record of a batch: an error that says where it is, raised or counted."""

from __future__ import annotations

from typing import TypeVar

from tarviz.model.errors import TarvizError
from tarviz.model.types import to_text
from tarviz.read.spans import Batch
from tarviz.read.stream import ReadReport

E = TypeVar("E", bound=TarvizError)


def place_error(error: E, batch: Batch, record: int) -> E:
    """The error with the shard, the key and the byte of a record."""
    block = batch.block
    offset = int(block.members.start[int(block.rows[record])])
    error.at(shard=block.shard, key=to_text(block.keys[record]), offset=offset, records_before=block.first + record)
    return error


def settle(error: TarvizError, batch: Batch, record: int, report: ReadReport, *, skip: bool) -> None:
    """Raise what a record cannot be written for, or with `skip` count the record as left out."""
    place_error(error, batch, record)
    if not skip:
        raise error
    report.add(error.fault, skipped=True)
