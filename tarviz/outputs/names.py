"""The names of outputs: one, or many that are counted."""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tarviz import stores
from tarviz.model.errors import UsageError
from tarviz.model.redaction import redact, redacted_repr
from tarviz.model.types import URL
from tarviz.model.urls import without_query
from tarviz.outputs.piped import is_command

Exists: TypeAlias = Literal["replace", "error"]

_COUNTER = re.compile(r"\{(shard)?(?::(0?[0-9]{0,3}d?))?\}|%(0[0-9]{1,2})d|%d(?![0-9A-Fa-f])")  # %da is a quoted byte of a URL
_PACKED = (".gz", ".zlib", ".zst", ".bz2", ".xz")


def has_counter(text: str) -> bool:
    """Whether the name of an output has a counter: `x-{}.tar`, `x-{shard:06d}.tar`, `x-%06d.tar`."""
    return _COUNTER.search(text) is not None


@dataclass(frozen=True, slots=True)
class Names:
    """The names of outputs, from the text a person gives.

    `{}` counts from 1, `{shard}` from 0, both with a width if wanted (`{shard:06d}`); `%06d` is `{shard:06d}`, as webdataset
    writes it. Text without a counter names one output; when that goes on in further ones, they are `train-1.record`,
    `train-2.record`, ….

    >>> names = Names("out/train.record")
    >>> names.at(0), names.at(1), Names("train-{:03d}.tfrecord").at(0), Names("train-%03d.tar").at(0)
    ('out/train.record', 'out/train-1.record', 'train-001.tfrecord', 'train-000.tar')
    """

    text: str

    __repr__ = redacted_repr

    def __post_init__(self) -> None:
        bare = _COUNTER.sub("", self.text)
        if not self.text:
            raise UsageError("the output has no name.")
        if "{" in bare or "}" in bare:
            raise UsageError(
                f"{redact(self.text)!r} has braces that count nothing.",
                hint="{} counts outputs from 1, {shard:06d} and %06d from 0; ranges are for reading.",
            )
        if self.text.endswith("/") or (stores.is_local(self.text) and os.path.isdir(stores.local_path(self.text))):
            raise UsageError(
                f"{redact(self.text)} is a folder.", hint=f"Name the files in it: {redact(self.text.rstrip('/'))}/train-{{}}.tfrecord"
            )

    @property
    def counts(self) -> bool:
        """Whether the text has a counter."""
        return has_counter(self.text)

    @property
    def pattern(self) -> str | None:
        """What `glob` finds all names with that are files of this machine, empty text where there are none; None: names are not foreseen.

        >>> Names("train-{:03d}.tar").pattern, Names("train.tar").pattern, Names("memory://a-{}.tar").pattern
        ('train-*.tar', 'train*.tar', '')
        """
        if not self.text:  # a caller hands them out one by one
            return None
        if self.text == "-" or not stores.is_local(self.text):
            return ""
        path = stores.local_path(self.text)
        if self.counts:
            return "*".join(glob.escape(part) for part in _around(path))
        base, suffix = _suffix(path)
        return f"{glob.escape(base)}*{glob.escape(suffix)}"

    def at(self, number: int) -> URL:
        """The name of output `number`, counted from 0."""
        if self.counts:
            return URL(_COUNTER.sub(lambda match: _number(match, number), self.text))
        if number == 0 or is_command(self.text):
            return URL(self.text)
        if self.text == "-":
            raise UsageError("standard output is one output.", hint="Name a file to split the records over several.")
        name, query = without_query(self.text)
        base, suffix = _suffix(name)
        return URL(f"{base}-{number}{suffix}{query}")

    def refuse_taken(self) -> None:
        """`UsageError` when something has one of these names already; of names that a store counts the first is looked for."""
        taken: URL | None = None
        if self.counts and self.pattern:
            name = re.compile("[0-9]+".join(re.escape(part) for part in _around(stores.local_path(self.text))))
            taken = next((URL(found) for found in sorted(glob.iglob(self.pattern)) if name.fullmatch(found)), None)
        elif self.text != "-":
            first = self.at(0)
            taken = first if stores.is_there(stores.of(first), first) else None
        if taken is not None:
            raise UsageError(
                f"{redact(taken)} is there already.",
                hint="Nothing was written. Choose another name; in Python, exists='replace' replaces it.",
            )


def _around(text: str) -> list[str]:
    """What stands before, between and behind the counters."""
    return _COUNTER.split(text)[:: _COUNTER.groups + 1]


def _number(counter: re.Match[str], number: int) -> str:
    """What a counter becomes in the name of output `number`, counted from 0."""
    from_one = counter[1] is None and counter[0].startswith("{")
    return format(number + from_one, counter[2] or counter[3] or "d")


def _suffix(path: str) -> tuple[str, str]:
    """Base and suffix, where a packed file has two."""
    base, suffix = os.path.splitext(path)
    if suffix in _PACKED:
        base, inner = os.path.splitext(base)
        suffix = inner + suffix
    return base, suffix


def refuse_existing(url: URL) -> None:
    """`UsageError` when something is at that URL already."""
    if url != "-" and stores.is_there(stores.of(url), url):
        raise UsageError("an output of that name exists already.", shard=url, hint="Choose another name, or exists='replace'.")
