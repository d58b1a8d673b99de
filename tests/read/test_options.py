"""How shards are read: options that do not exist, values that do not fit, and what the walker gets of them."""

from __future__ import annotations

import pytest

from tarviz.model.config import options as configured
from tarviz.model.errors import UsageError
from tarviz.read.options import ReadOptions, with_changes


def test_an_option_that_does_not_exist_is_named_with_those_that_do():
    with pytest.raises(UsageError, match="no option 'stric'") as raised:
        with_changes(None, {"stric": False})

    assert "strict" in (raised.value.hint or "")


def test_a_value_that_is_no_choice_is_refused():
    with pytest.raises(UsageError, match="duplicates='all' is not one of"):
        ReadOptions(duplicates="all")  # type: ignore[arg-type]


def test_changes_leave_the_options_given_as_they_are():
    given = ReadOptions(strict=False)

    assert ReadOptions(strict=False, group="shard") == with_changes(given, {"group": "shard"})
    assert ReadOptions(strict=False) == given


def test_configured_values_fill_in_what_is_not_said():
    assert configured().max_member_bytes == ReadOptions().rules().max_member_bytes
    assert 4096 == ReadOptions(max_member_bytes=4096).rules().max_member_bytes


def test_a_block_is_whole_tar_blocks():
    assert 8192 == ReadOptions(block_size=8500).rules().block_size
