"""Chains under names, however they are written: lines of text, a mapping, a list, one chain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from tarviz.model.errors import ChainError, UsageError
from tarviz.ops.chains import Chain, Chainable

Chains: TypeAlias = Mapping[str, Chainable] | Sequence[Chainable] | Chainable

_LINE = re.compile(r"([A-Za-z_][\w.-]*)\s*=(?!=)\s*(.*)", re.DOTALL)


def parse_lines(lines: Iterable[str]) -> dict[str, str]:
    """Chains written one per line, `name = chain text`; a line without a name gets one, blank lines and `#` are passed over.

    >>> parse_lines(["small = decode(jpg)|resize(jpg, (32, 32))", "", "decode(jpg, channels=1)"])
    {'small': 'decode(jpg)|resize(jpg, (32, 32))', 'chain 2': 'decode(jpg, channels=1)'}
    """
    found: dict[str, str] = {}
    for line in lines:
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _LINE.fullmatch(text)
        name, chain = (match[1], match[2]) if match else (f"chain {len(found) + 1}", text)
        if name in found:
            raise UsageError(f"Two chains are named {name!r}.")
        found[name] = chain
    return found


def name_chains(chains: Chains) -> dict[str, Chain]:
    """Name → chain. A text of several lines is several chains, one per line. `ChainError` says which one cannot be read."""
    each: Mapping[str, Chainable]
    if isinstance(chains, Mapping):
        each = chains
    elif isinstance(chains, str):
        each = parse_lines(chains.splitlines())
    elif isinstance(chains, Sequence) and not isinstance(chains, Chain):
        texts = [part for part in chains if isinstance(part, str)]
        each = parse_lines(texts) if len(texts) == len(chains) else {f"chain {at}": part for at, part in enumerate(chains, 1)}
    else:
        each = {"chain 1": chains}
    if not each:
        raise UsageError("There is no chain to compare.", hint="Write one per line: small = decode(jpg)|resize(jpg, (32, 32))")
    made = {}
    for name, part in each.items():
        try:
            made[str(name)] = Chain.of(part)
        except ChainError as error:
            error.message = f"{name}: {error.message}"
            raise
    return made


MOST_DRAWS = 24
"""Draws of a chain that are shown at most."""


def draw_columns(chains: Chains, draws: int, seed: int) -> list[tuple[str, Chain, int]]:
    """(name, chain, seed) of each column: every chain with `draws` seeds, from `seed` on.

    >>> [(name, seed) for name, _, seed in draw_columns({"a": "decode(jpg)"}, 3, 7)]
    [('a #1', 7), ('a #2', 8), ('a #3', 9)]
    """
    if not 1 <= draws <= MOST_DRAWS:
        raise UsageError(f"{draws} draws cannot be shown; 1 to {MOST_DRAWS} can.")
    named = name_chains(chains).items()
    return [(f"{name} #{at + 1}" if draws > 1 else name, chain, seed + at) for name, chain in named for at in range(draws)]
