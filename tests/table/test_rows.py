"""Records that were chosen: of which shard, in which order, and how many are asked for."""

from __future__ import annotations

import numpy as np
import pytest

from tarviz.model.errors import UsageError
from tarviz.model.types import URL
from tarviz.table.rows import ChosenRows, check_count


def test_rows_of_one_shard_are_ascending_whatever_the_order_they_were_chosen_in():
    rows = ChosenRows([URL("a"), URL("http://me:pw@b")], np.array([1, 0, 1, 1], np.int32), np.array([7, 3, 2, 9]))

    assert ([3], [2, 7, 9], []) == tuple(rows.of(at).tolist() for at in range(3))
    assert (4, [7, 3, 2, 9], None) == (len(rows), rows.n.tolist(), rows.score)
    assert "pw" not in repr(rows)


def test_a_number_of_records_is_one():
    for count in [None, 0, 1, np.int64(7)]:
        assert count is check_count(count)


def test_what_is_none_is_refused():
    for count in [-1, 1.0, "3", np.float32(2), np.int64(-1)]:
        with pytest.raises(UsageError, match="is no number of records"):
            check_count(count)
