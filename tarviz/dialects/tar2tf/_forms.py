"""The forms in which a transformer beside the data sends a shard after a chain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Literal, TypeAlias

from tarviz.dialects.tar2tf import _transformed, _transformed_examples
from tarviz.read.stream import ReadReport
from tarviz.runners.elsewhere import Row

Form: TypeAlias = Literal["tar", "tfrecord"]


@dataclass(frozen=True, slots=True)
class Wire:
    """How rows are packed there, and unpacked here."""

    packed: Callable[[Iterable[Row], frozenset[str] | None, ReadReport], Iterator[bytes]]
    unpacked: Callable[[IO[bytes], ReadReport], Iterator[Row]]


FORMS: Mapping[str, Wire] = {
    "tar": Wire(_transformed.packed, _transformed.unpacked),
    "tfrecord": Wire(_transformed_examples.packed, _transformed_examples.unpacked),
}
