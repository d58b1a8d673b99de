"""Keep: which fields go on."""

from __future__ import annotations

from typing import Any

import pytest

from tarviz.model.errors import ChainError, SchemaError
from tarviz.model.types import Feature, Schema
from tarviz.ops import Keep
from tarviz.testing.ops import OpTests

RECORD: dict[str, Any] = {"__key__": "a", "__shard__": "s", "__index__": 0, "jpg": b"1", "seg.png": b"2", "seg.npy": b"3", "cls": b"4"}
SCHEMA = Schema({name: Feature("bytes") for name in RECORD if not name.startswith("__")})


class TestKeep(OpTests):
    op = Keep("cls", "jpg")

    def records(self) -> list[dict[str, Any]]:
        return [RECORD]

    def schema(self) -> Schema:
        return SCHEMA

    def test_the_rest_goes_the_order_stays(self) -> None:
        assert ["__key__", "__shard__", "__index__", "jpg", "cls"] == list(self.op.run(RECORD))

    def test_a_field_that_is_not_there_is_an_error(self) -> None:
        with pytest.raises(SchemaError, match=r"expects a field 'jpeg'.*Did you mean 'jpg'"):
            Keep("jpeg").run(RECORD)

    def test_no_field_at_all_is_refused(self) -> None:
        with pytest.raises(ChainError, match="keep expects"):
            Keep()

    def test_nothing_else_need_be_read(self) -> None:
        assert frozenset({"jpg", "cls"}) == self.op.needs(None)


class TestKeepPattern(OpTests):
    op = Keep("seg.*", "cls")

    def records(self) -> list[dict[str, Any]]:
        return [RECORD]

    def schema(self) -> Schema:
        return SCHEMA

    def test_a_pattern_matches_as_file_names_do(self) -> None:
        assert {"seg.png", "seg.npy", "cls"} == {name for name in self.op.run(RECORD) if not name.startswith("__")}

    def test_a_pattern_may_need_anything(self) -> None:
        assert self.op.needs(None) is None
        assert frozenset({"cls", "seg.png"}) == self.op.needs(frozenset({"seg.png"}))
