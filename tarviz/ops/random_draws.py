"""The random numbers of random ops: from seed, epoch and key, the same for every executor and worker count."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tarviz.formats.header_scan import matrix, wide

if TYPE_CHECKING:
    from tarviz.ops.chains import Chain

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = 0xFFFFFFFFFFFFFFFF
_LONG = 256


def draws(chain: Chain | int, keys: Sequence[bytes], seed: int = 0, epoch: int = 0) -> NDArray[np.float64]:
    """Random numbers in [0, 1) for records: float64 [records, draws of the chain].

    Column *j* belongs to the chain's *j*-th draw; it depends on seed, epoch, key and *j* only. So an op that
    draws nothing can be put in or taken out and the others draw what they drew before. Mixing steps:
    SplitMix64 (Steele, Lea, Flood 2014, doi 10.1145/2714064.2660195), one per 8 bytes of the key.
    `chain` may be the number of draws.

    >>> draws(2, [b"a", b"b"]).round(3)
    array([[0.02 , 0.253],
           [0.521, 0.365]])
    """
    count = chain if isinstance(chain, int) else chain.draws
    if count == 0 or not keys:
        return np.empty((len(keys), count))
    start = _mix(np.array([(seed & _MASK) ^ ((epoch * 0xD1342543DE82EF95) & _MASK)], np.uint64))
    state = _mix_keys(keys, start)
    steps = (np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GOLDEN))[None, :]
    return np.asarray((_mix(state[:, None] + steps) >> np.uint64(11)) * 2.0**-53)


def _mix_keys(keys: Sequence[bytes], start: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One uint64 per key; a key's value does not depend on the other keys."""
    lengths = np.fromiter(map(len, keys), np.int64, len(keys))
    if int(lengths.max()) > _LONG:  # the table below is as wide as the longest key: keep a hostile one out
        keys = [hashlib.blake2b(key, digest_size=32).hexdigest().encode() if len(key) > _LONG else key for key in keys]
    columns = wide(matrix(np.array(keys, np.bytes_))).T
    used = np.minimum((lengths + 7) // 8, len(columns))
    state = _mix(start + lengths.astype(np.uint64))
    for number, column in enumerate(columns):
        mixed = _mix((state ^ column) + np.uint64(_GOLDEN))
        state = np.where(number < used, mixed, state)
    return state


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
