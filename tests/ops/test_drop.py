"""Drop: which fields do not go on."""

from __future__ import annotations

from typing import Any

import pytest

from tarviz.model.errors import ChainError
from tarviz.model.types import Feature, Schema
from tarviz.ops import Drop
from tarviz.testing.ops import OpTests

RECORD: dict[str, Any] = {"__key__": "a", "__shard__": "s", "__index__": 0, "jpg": b"1", "seg.png": b"2", "seg.npy": b"3", "cls": b"4"}
SCHEMA = Schema({name: Feature("bytes") for name in RECORD if not name.startswith("__")})


class TestDrop(OpTests):
    op = Drop("seg.*", "json")
    fails_on = None

    def records(self) -> list[dict[str, Any]]:
        return [RECORD]

    def schema(self) -> Schema:
        return SCHEMA

    def test_what_is_named_goes(self) -> None:
        assert ["__key__", "__shard__", "__index__", "jpg", "cls"] == list(self.op.run(RECORD))

    def test_what_is_dropped_need_not_be_read(self) -> None:
        assert frozenset({"jpg"}) == self.op.needs(frozenset({"jpg"}))

    def test_what_describes_the_record_stays(self) -> None:
        assert ["__key__", "__shard__", "__index__"] == list(Drop("*").run(RECORD))

    def test_a_name_with_a_sign_of_patterns_in_it_is_found_as_it_is(self) -> None:
        assert ["__key__", "b"] == list(Drop("a[1]").run({"__key__": "k", "a[1]": b"1", "b": b"2"}))

    def test_what_is_not_there_is_no_error(self) -> None:
        assert RECORD == Drop("nothing").run(RECORD)

    def test_no_field_at_all_is_refused(self) -> None:
        with pytest.raises(ChainError, match="drop expects"):
            Drop()
