"""Whether the variables that something depends on have changed, asked so cheaply that every small read can."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any


class Watched:
    """Some variables of the environment, watched for changes; a name that ends with `*` stands for all that begin so.

    `state()` is equal to what it was before as long as none of them has another value. It looks at the variables that are set:
    asking for each of many that are mostly not there takes several times as long.

    >>> watched = Watched(["TARVIZ_BLOCK_SIZE", "HOME"])
    >>> watched.state() == watched.state()
    True
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._bytes = os.supports_bytes_environ  # nothing has to be decoded then
        names = list(names)
        self._names = frozenset(os.fsencode(name) if self._bytes else name for name in names)
        begins = tuple(name.rstrip("*") for name in names if name.endswith("*"))
        self._begins: Any = tuple(map(os.fsencode, begins)) if self._bytes else begins
        self._last: tuple[Mapping[Any, Any], tuple[bytes | str, ...]] = {}, ()

    def state(self) -> tuple[bytes | str, ...]:
        """Names and values of those that are set."""
        variables: Any = os.environb if self._bytes else os.environ
        # The dictionary behind it, where Python shows that: two of them are compared in one step.
        variables = getattr(variables, "_data", variables)
        before, state = self._last
        if variables != before:
            now = dict(variables)
            state = tuple(
                part for name, value in now.items() if name in self._names or name.startswith(self._begins) for part in (name, value)
            )
            self._last = now, state
        return state
