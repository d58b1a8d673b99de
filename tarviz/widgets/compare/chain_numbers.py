"""The numbers of a chain, to be moved: where each stands, how far it may go, and the chain with another in its place."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from tarviz.model.errors import UsageError
from tarviz.ops.base import Op
from tarviz.ops.chains import Chain

_SIDES = ("height", "width")
_RANGES: dict[str, tuple[float, float]] = {"angle": (-180, 180), "p": (0, 1), "visible": (0, 1), "quality": (1, 100)}
_LEFT_OUT = ("channels", "level")  # few values, most of them no meaning


@dataclass(frozen=True, slots=True)
class Number:
    """The number `value` of op number `op`: its argument `name`, or place `at` of it; it may go from `low` to `high` by `step`."""

    op: int
    name: str
    at: int | None
    label: str
    value: float
    low: float
    high: float
    step: float


def numbers(chain: Chain) -> list[Number]:
    """The numbers among the arguments of a chain's ops, in order; what other arguments say for it (a random angle: None) is left out.

    >>> [(number.label, number.value) for number in numbers(Chain.of("resize(jpg, (32, 48))|rotate(jpg, 10)"))]
    [('resize height', 32), ('resize width', 48), ('rotate angle', 10)]
    """
    return [number for place, op in enumerate(bare(chain)) for number in _of(place, op)]


def _of(place: int, op: Op) -> list[Number]:
    found = []
    for part in dataclasses.fields(op):  # type: ignore[arg-type]
        if not part.init or part.name in _LEFT_OUT:
            continue
        value = getattr(op, part.name)
        if _is_number(value):
            if part.kw_only and value == part.default:
                continue
            found.append(_number(place, part.name, None, f"{op.name} {part.name}", value))
        elif isinstance(value, tuple) and 0 < len(value) <= 4 and all(map(_is_number, value)):
            names = _SIDES if part.name in ("size", "least") and len(value) == 2 else [f"{part.name} {at + 1}" for at in range(len(value))]
            found += [_number(place, part.name, at, f"{op.name} {name}", n) for at, (name, n) in enumerate(zip(names, value, strict=True))]
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _number(place: int, name: str, at: int | None, label: str, value: float) -> Number:
    low, high = _RANGES.get(name, (1, max(64, 4 * value)) if isinstance(value, int) else (min(0, 3 * value), max(1, 3 * value)))
    whole = isinstance(value, int) and name not in ("p", "visible")
    step: float = 1 if whole else 10.0 ** math.floor(math.log10((high - low) / 100))
    return Number(place, name, at, label, value, round(min(low, value), 6), round(max(high, value), 6), step)


def bare(chain: Chain) -> list[Op]:
    """The ops of a chain without what ops before them say for them."""
    return [op.without(chain.ops[:at]) for at, op in enumerate(chain)]


def tune(chain: Chain, op: int, name: str, at: int | None, value: float) -> Chain:
    """The chain with another number in a place that `numbers` gave. `ChainError` where the op refuses it.

    >>> str(tune(Chain.of("resize(jpg, (32, 48))"), 0, "size", 1, 64))
    'resize(jpg, (32, 64))'
    """
    place = next((number for number in numbers(chain) if (number.op, number.name, number.at) == (op, name, at)), None)
    if place is None or not _is_number(value):
        raise UsageError(f"There is no number {name!r} in op {op} of {chain}.")
    ops = bare(chain)
    here = ops[op]
    new = round(value) if place.step == 1 else round(float(value), 6)
    before = getattr(here, name)
    whole = new if at is None else (*before[:at], new, *before[at + 1 :])
    ops[op] = _replace(here, name, whole)
    return Chain(*ops)


def _replace(op: Op, name: str, value: Any) -> Op:
    positional, keyword = op.arguments()
    if name in keyword or not dataclasses.is_dataclass(op):
        return type(op)(*positional, **{**keyword, name: value})
    return dataclasses.replace(op, **{name: value})
