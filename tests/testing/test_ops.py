"""The contract of ops fails for an op that does not keep it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

import numpy as np
import pytest

from tarviz.model.types import Feature, Schema
from tarviz.ops import Func, RecordOp
from tarviz.testing.ops import OpTests, noise
from tests.conftest import each_case

_NUMBERS = count()


def darkened(record: dict[str, Any]) -> dict[str, Any]:
    record["png"] //= 2
    return record


class Spoiling(OpTests):
    op = Func(darkened)

    def records(self) -> list[dict[str, Any]]:
        return [{"__key__": "a", "__shard__": "a.tar", "__index__": 0, "png": np.full((2, 2, 3), 9, np.uint8), "json": {"a": 1}}]


@dataclass(frozen=True)
class Odd(RecordOp):
    """What breaks one promise each."""

    make: Callable[[dict[str, Any]], dict[str, Any]]

    name: ClassVar[str] = "odd"

    def apply_record(self, record: dict[str, Any]) -> dict[str, Any]:
        return self.make(record)

    def infer_record(self, schema: Schema) -> Schema:
        return schema

    def needs(self, wanted: frozenset[str] | None) -> frozenset[str] | None:
        return wanted


def test_an_op_that_changes_what_it_is_given_is_found():
    with pytest.raises(AssertionError):
        Spoiling().test_the_input_is_left_unchanged()


@pytest.mark.parametrize(
    ("make", "test", "why"),
    [
        (lambda record: {**record, "cls": next(_NUMBERS)}, "test_the_same_value_and_numbers_give_the_same", "not equal"),
        (lambda record: {"png": record["png"]}, "test_the_same_value_and_numbers_give_the_same", "__key__"),
        (lambda record: {**record, "cls": record.get("json")}, "test_it_needs_what_it_says", "NoneType"),
    ],
)
def test_an_op_that_breaks_a_promise_is_found(monkeypatch: pytest.MonkeyPatch, make: Callable[..., Any], test: str, why: str):
    monkeypatch.setattr(Spoiling, "op", Odd(make))

    with pytest.raises(AssertionError, match=why):
        getattr(Spoiling(), test)()


@pytest.mark.parametrize("expected", [{"cls": np.uint8(1)}, {"cls": np.int64(0)}, {"cls": b"0"}])
def test_an_op_that_makes_what_another_library_does_not_is_found(monkeypatch: pytest.MonkeyPatch, expected: dict[str, Any]):
    monkeypatch.setattr(Spoiling, "op", Odd(lambda record: {**record, "cls": np.uint8(0)}))
    monkeypatch.setattr(Spoiling, "oracle", lambda self, record: {"cls": np.uint8(0)})
    Spoiling().test_another_library_makes_the_same()
    monkeypatch.setattr(Spoiling, "oracle", lambda self, record: expected)

    with pytest.raises(AssertionError):
        Spoiling().test_another_library_makes_the_same()


def test_an_op_that_is_tried_on_nothing_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Spoiling, "records", lambda self: [])

    with pytest.raises(AssertionError):
        Spoiling().test_the_same_value_and_numbers_give_the_same()


@each_case(
    ("shape", "shapes"),
    [
        ((None,), [(7,), (32,), (61,)]),
        ((4,), [(4,)] * 3),
        ((None, 2), [(7, 2), (32, 2), (61, 2)]),
        ((32, 40, 3), [(32, 40, 3)] * 3),
        ((None, None, None), [(7, 5, 3), (32, 48, 3), (61, 40, 3)]),
        ((2, None, None, 1), [(2, 5, 3, 1), (2, 48, 3, 1), (2, 40, 3, 1)]),
    ],
)
def test_examples_have_the_shape_of_the_feature(shape: tuple[int | None, ...], shapes: list[tuple[int, ...]]):
    for dtype in ("uint8", "float32"):
        values = noise(Feature(dtype, shape))

        assert [(dtype, each) for each in shapes] == [(str(value.dtype), value.shape) for value in values]
