"""Faults drawn at random, for the plans that every remote store is held against."""

from __future__ import annotations

import random

from tarviz.testing.faults import Fault


def random_fault(chance: random.Random, size: int, *, body: bytes, stalls: float) -> Fault:
    """Any fault of an answer of `size` bytes: a status, no answer, an error page (`body`), or a cut, of which a share may stall."""
    kind = chance.randrange(8)
    if kind == 0:
        return Fault(status=chance.choice([500, 502, 503, 504, 429]), headers={"Retry-After": chance.choice(["0", "3", "x"])})
    if kind == 1:
        return Fault(before_headers=True, end=chance.choice(["close", "reset"]))
    if kind == 2:
        return Fault(status=200, body=body)
    end = chance.choice(["close", "close", "reset", "reset", "stall"]) if chance.random() < stalls else chance.choice(["close", "reset"])
    return Fault(cut=chance.randrange(size + 1), end=end, ignore_range=chance.random() < 0.2, chunked=chance.random() < 0.2)
