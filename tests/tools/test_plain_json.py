"""Values of tables as JSON: one way for what `sql` prints, `join` puts into records and `create` takes out of Parquet."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

from tarviz.tools.plain_json import plain_json

VALUES = [
    (Decimal(2**70), 2**70),
    (Decimal("1.25"), 1.25),
    (float("inf"), None),
    (-0.5, -0.5),
    (datetime.date(2026, 11, 25), "2026-11-25"),
    (datetime.datetime(2026, 11, 25, 10, 30), "2026-11-25T10:30:00"),
    (b"\xff", "\\xff"),
    (datetime.timedelta(seconds=1), "0:00:01"),
    ({7: [True, None, {"a": float("nan")}]}, {"7": [True, None, {"a": None}]}),
]


def test_a_value_is_what_json_can_hold():
    for value, expected in VALUES:
        assert expected == plain_json(value) == json.loads(json.dumps(plain_json(value), allow_nan=False))
