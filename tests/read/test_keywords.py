"""The read options as keywords are the fields of `ReadOptions`."""

from __future__ import annotations

from dataclasses import fields

from tarviz.read.keywords import ReadKeywords
from tarviz.read.stream import ReadOptions


def test_each_field_has_its_keyword_of_the_same_type():
    assert {part.name: part.type for part in fields(ReadOptions)} == {
        name: kind.__forward_arg__ if hasattr(kind, "__forward_arg__") else kind for name, kind in ReadKeywords.__annotations__.items()
    }
