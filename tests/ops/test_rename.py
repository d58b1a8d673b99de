"""Rename: moves; copies with keep=True."""

from __future__ import annotations

from typing import Any

import pytest

from tarviz.model.errors import ChainError, SchemaError
from tarviz.model.types import Feature, Schema
from tarviz.ops import Rename, parse_chain
from tarviz.testing.ops import OpTests

PLACE = {"__key__": "a", "__shard__": "s", "__index__": 0}


class TestRename(OpTests):
    op = Rename(image="jpg;png", label="cls")

    def records(self) -> list[dict[str, Any]]:
        return [{**PLACE, "jpg": b"1", "cls": b"2"}]

    def schema(self) -> Schema:
        return Schema(jpg=Feature("bytes"), cls=Feature("bytes"))

    def test_it_moves(self) -> None:
        assert {**PLACE, "image": b"1", "label": b"2"} == self.op.run(self.records()[0])

    def test_the_last_source_that_is_there_wins_and_all_go(self) -> None:
        assert {"image": b"p", "label": b"2"} == self.op.run({"jpg": b"j", "png": b"p", "cls": b"2"})

    def test_two_names_can_be_exchanged(self) -> None:
        assert {"a": 2, "b": 1} == Rename(x="a", a="b", b="x").run({"a": 1, "b": 2})

    def test_a_source_that_is_not_there_is_an_error(self) -> None:
        with pytest.raises(SchemaError, match="'jpg;png'; there are gif, cls"):
            self.op.run({"gif": b"", "cls": b""})

    def test_it_needs_its_sources(self) -> None:
        assert frozenset({"jpg", "png", "cls", "json"}) == self.op.needs(frozenset({"image", "json"}))

    @pytest.mark.parametrize("text", ["rename()", "rename(image=3)", 'rename(image="")', "rename(jpg)", "rename(a=b, keep=1)"])
    def test_wrong_arguments_are_refused(self, text: str) -> None:
        with pytest.raises(ChainError, match="rename expects"):
            parse_chain(text)


class TestRenameKeep(OpTests):
    op = Rename(image="jpg", keep=True)

    def records(self) -> list[dict[str, Any]]:
        return [{**PLACE, "jpg": b"1"}]

    def schema(self) -> Schema:
        return Schema(jpg=Feature("bytes"))

    def test_it_copies(self) -> None:
        assert {**PLACE, "jpg": b"1", "image": b"1"} == self.op.run(self.records()[0])


class TestRenameOddNames(OpTests):
    op = Rename({"seg.png": "png", "keep": "cls", "a b": "x.y"})

    def records(self) -> list[dict[str, Any]]:
        return [{**PLACE, "png": b"1", "cls": b"2", "x.y": b"3"}]

    def schema(self) -> Schema:
        return Schema({name: Feature("bytes") for name in ("png", "cls", "x.y")})


def test_what_a_chain_of_names_needs_is_found_from_its_end():
    """`a=b` comes before `b=c`: the record needs b for the one and c for the other."""
    assert {"b", "c"} == Rename({"a": "b", "b": "c"}).needs(frozenset({"a", "b"}))
    assert {"c"} == Rename({"b": "c", "a": "b"}).needs(frozenset({"a"}))


@pytest.mark.parametrize("moves", [{"a": 3}, {"": "jpg"}, {"a": ""}, {"a": "jpg; "}, {"a": ["jpg", 3]}, {"a": []}])
def test_a_name_that_is_none_is_refused(moves: Any) -> None:
    with pytest.raises(ChainError, match="rename expects the old name of"):
        Rename(moves)
