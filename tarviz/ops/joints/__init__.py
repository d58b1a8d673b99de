"""Ops of a chain that are done in one pass over the pixels, with no array between. Results are those of the ops one by one, to the bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tarviz.ops.base import Draw, Op
from tarviz.ops.joints.scaling import Scaling, scaling
from tarviz.ops.joints.thumbnail import Thumbnail, thumbnail

__all__ = ["Joint", "Scaling", "Thumbnail", "joints"]


class Joint(Protocol):
    """Ops in a row that are done together."""

    @property
    def ops(self) -> int:
        """How many ops it is."""

    def run(self, record: Mapping[str, Any], draw: Draw | None) -> dict[str, Any] | None:
        """The record after the ops; None where they have to be done one after the other: another kind of value, or an error."""


def joints(ops: Sequence[Op]) -> dict[int, Joint]:
    """Where ops in a row are a joint, by the number of the first."""
    found = {at: thumbnail(ops[at:]) or scaling(ops[at:]) for at in range(len(ops))}
    return {at: joint for at, joint in found.items() if joint is not None}
