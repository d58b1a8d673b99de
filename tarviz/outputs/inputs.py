"""An output that is one of its inputs is refused before anything is written: it would be gone before it is read."""

from __future__ import annotations

import glob
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property

from tarviz import stores
from tarviz.model.errors import UsageError
from tarviz.model.urls import identity
from tarviz.outputs.names import Names

_NUMBER = re.compile(r"\d{1,18}")
_HINT = "Choose another name; move the new file over the old one when it is complete."


class Inputs:
    """What is read, so that none of it is written: known under whatever name, `./a.tar`, a link, standard output.

    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> path = os.path.join(folder, "a.tar")
    >>> with open(path, "wb") as file:
    ...     _ = file.write(b"a tar")
    >>> Inputs([path]).refuse(f"{folder}/./a.tar")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tarviz.model.errors.UsageError: E_USAGE ...the output is one of the inputs...
    """

    def __init__(self, urls: Iterable[str]) -> None:
        self._urls = list(urls)

    @cached_property
    def _files(self) -> set[tuple[int, int] | None]:
        """Device and inode of those that are files of this machine."""
        return {_identity(url, "stdin") for url in self._urls} - {None}

    @cached_property
    def _names(self) -> set[str]:
        """The names of those that are not."""
        return {identity(url) for url in self._urls if url != "-" and not stores.is_local(url)}

    def refuse(self, url: str) -> None:
        """`UsageError` when this output is one of the inputs."""
        if url == "-" or stores.is_local(url):
            there = _identity(url, "stdout")  # what does not exist yet is not an input
            if there is not None and there in self._files:
                what = "standard output" if url in ("-", "/dev/stdout") else "the output"
                raise UsageError(f"{what} is one of the inputs.", shard=url, hint=_HINT)
        elif identity(url) in self._names:
            raise UsageError("the output is one of the inputs.", shard=url, hint=_HINT)

    def refuse_any(self, names: Names, *, first: int = 0, count: int | None = None) -> None:
        """The same for outputs that are counted, from `first` on: `count` of them, or any number where that is not known."""
        for number in range(first, first + count) if count is not None else self._likely(names, first):
            self.refuse(names.at(number))

    def _likely(self, names: Names, first: int) -> Iterator[int]:
        """The numbers that stand in the name of a file that is there, or of a remote input."""
        yield first
        if names.pattern is None:
            return
        there = glob.iglob(names.pattern) if names.pattern else self._names
        found = {int(digits) - less for text in there for digits in _NUMBER.findall(text) for less in (0, 1)}
        yield from sorted(number for number in found if number > first)


def _identity(url: str, standard: str) -> tuple[int, int] | None:
    """Device and inode of a regular file; None for all else. `-` is the standard stream of that name."""
    try:
        if url == "-":
            status = os.fstat(getattr(sys, standard).fileno())
        elif stores.is_local(url):
            status = os.stat(stores.local_path(url))
        else:
            return None
    except (AttributeError, OSError, ValueError):  # no such file, or a notebook's stream
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
