"""Ops of a chain that are done in one pass over the pixels, with no array between. Results are those of the ops one by one, to the bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from tarviz.ops.base import Draw, FieldOp, Op
from tarviz.ops.joints.scaling import Scaling, scaling
from tarviz.ops.joints.thumbnail import Thumbnail, thumbnail

__all__ = ["Joint", "JointPlace", "Scaling", "Thumbnail", "joints"]


class Joint(Protocol):
    """Ops in a row that are done together."""

    @property
    def ops(self) -> int:
        """How many ops it is."""

    def run(self, record: Mapping[str, Any], draw: Draw | None, room: Mapping[str, NDArray[Any]]) -> dict[str, Any] | None:
        """The record after the ops; None where they have to be done one after the other: another kind of value, or an error.

        `draw` has the random numbers of all of them. Where `room` has memory for the field that fits, the value is that array.
        """


class JointPlace(NamedTuple):
    """A joint, the names of the field it works on, and whether it is the last op of that field: what it makes, the chain makes."""

    joint: Joint
    names: frozenset[str]
    last: bool


def joints(ops: Sequence[Op]) -> dict[int, JointPlace]:
    """Where ops in a row are a joint, by the number of the first."""
    found: dict[int, JointPlace] = {}
    for at, op in enumerate(ops):
        # what another package derives from an op of ours may do something else
        ours = list(takewhile(lambda each: type(each).__module__.startswith("tarviz.ops."), ops[at:]))
        joint = thumbnail(ours) or scaling(ours)
        if joint is not None and isinstance(op, FieldOp):
            behind = ops[at + joint.ops :]
            last = all(isinstance(other, FieldOp) and not other.named & op.named for other in behind)
            found[at] = JointPlace(joint, op.named, last)
    return found
