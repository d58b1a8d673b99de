"""Values of tables (DuckDB, Arrow) as JSON can hold them."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any


def plain_json(value: Any) -> Any:
    """A value as JSON has it: whole decimals (sums, hashes) as integers, times as ISO text, bytes as text, no NaN, which JSON has not.

    >>> plain_json({"n": Decimal(2**64), "at": (float("nan"), b"x")})
    {'n': 18446744073709551616, 'at': [None, 'x']}
    """
    if isinstance(value, dict):
        return {str(name): plain_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(each) for each in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value if value is None or isinstance(value, bool | int | str) else str(value)
