"""The numbers of a chain: found, moved one at a time, refused where an op refuses them."""

from __future__ import annotations

import pytest

from tarviz.model.errors import ChainError, UsageError
from tarviz.ops import Chain, Func
from tarviz.widgets.compare.chain_numbers import numbers, tune

TEXT = (
    "decode(jpg)|carry(jpg, json, visible=0.3)|resize(jpg, (96, 128))|rotate(jpg, 20)|flip(jpg, horizontal, 0.25)"
    "|normalize(jpg, (0.5, 0.4, 0.3), (0.2, 0.2, 0.2))"
)


class TestNumbers:
    def test_every_number_has_a_place_and_a_range(self):
        found = {number.label: number for number in numbers(Chain.of(TEXT))}

        assert ["carry visible", "resize height", "resize width", "rotate angle", "flip p"] == list(found)[:5]
        assert (-180, 180) == (found["rotate angle"].low, found["rotate angle"].high)
        assert (0, 1) == (found["flip p"].low, found["flip p"].high)
        assert all(number.low <= number.value <= number.high and number.step > 0 for number in found.values())

    @pytest.mark.parametrize(
        ("text", "low", "high", "step"),
        [
            ("resize(jpg, (8, 8))", 1, 64, 1),
            ("resize(jpg, (100, 8))", 1, 400, 1),
            ("rotate(jpg, 20)", -180, 180, 1),
            ("flip(jpg, horizontal, 0.25)", 0, 1, 0.01),
            ("normalize(jpg, (0.1, 0.4, 0.3), (0.2, 0.2, 0.2))", 0, 1, 0.01),
            ("normalize(jpg, (-20.0, 0.4, 0.3), (0.2, 0.2, 0.2))", -60, 1, 0.1),
            ("normalize(jpg, (20.0, 0.4, 0.3), (0.2, 0.2, 0.2))", 0, 60, 0.1),
        ],
    )
    def test_it_goes_as_far_as_one_would_try(self, text, low, high, step):
        first = numbers(Chain.of(text))[0]

        assert (low, high, step) == (first.low, first.high, pytest.approx(first.step))

    def test_a_random_angle_is_none(self):
        assert [] == numbers(Chain.of("decode(jpg)|rotate(jpg)"))


class TestTuned:
    def test_one_number_is_another(self):
        chain = Chain.of(TEXT)
        for number in numbers(chain):
            made = tune(chain, number.op, number.name, number.at, number.high)
            again = [other for other in numbers(made) if (other.op, other.name, other.at) == (number.op, number.name, number.at)]

            assert [number.high] == [other.value for other in again]
            assert len(str(made).split("|")) == len(str(chain).split("|"))

    def test_what_a_carry_says_is_said_anew_for_the_ops_behind_it(self):
        made = tune(Chain.of(TEXT), 1, "visible", None, 0.5)

        assert TEXT.replace("visible=0.3", "visible=0.5") == str(made)
        assert 0.5 == made[2].visible  # type: ignore[attr-defined]

    def test_whole_numbers_stay_whole(self):
        assert "resize(jpg, (97, 128))" in str(tune(Chain.of(TEXT), 2, "size", 0, 96.6))

    def test_a_chain_with_a_function_has_numbers_too(self):
        chain = Chain(Func(dict), *Chain.of("flip(jpg, p=0.25)"))

        assert 0.75 == tune(chain, 1, "p", None, 0.75)[1].p

    def test_an_op_refuses_what_it_cannot_be(self):
        with pytest.raises(ChainError):
            tune(Chain.of("resize(jpg, (4, 4))"), 0, "size", 0, 0)

    @pytest.mark.parametrize(
        ("op", "name", "at", "value"), [(9, "size", 0, 1), (0, "ext", None, 1), (0, "size", 7, 1), (0, "size", 0, "1")]
    )
    def test_a_place_without_a_number_is_refused(self, op, name, at, value):
        with pytest.raises(UsageError):
            tune(Chain.of("resize(jpg, (4, 4))"), op, name, at, value)
