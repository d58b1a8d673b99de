"""The arguments `carry` and `visible`: checked where an op is made."""

from __future__ import annotations

import pytest

from tarviz.model.errors import ChainError
from tarviz.ops.values.carrying import carried_names, form_of, share_left


@pytest.mark.parametrize(("names", "expected"), [("json", "json"), (["json"], "json"), (("a", "b:xyxy"), ("a", "b:xyxy")), ((), ())])
def test_one_field_is_a_text_and_several_are_a_tuple(names, expected):
    assert expected == carried_names("flip", "jpg", names)


@pytest.mark.parametrize("names", ["", "jpg", "png:xyxy", 3])
def test_a_picture_does_not_carry_itself_nor_what_is_no_name(names):
    with pytest.raises(ChainError, match="flip carries fields"):
        carried_names("flip", "jpg;png", names)


def test_a_form_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(ChainError, match="no form 'xxyy'") as raised:
        form_of("json:xxyy")

    assert "xyxy" in (raised.value.hint or "")


@pytest.mark.parametrize("visible", [True, -0.1, 1.1, "half"])
def test_a_share_lies_between_nothing_and_all(visible):
    assert (None, 0.5) == (share_left("flip", None), share_left("flip", 0.5))
    with pytest.raises(ChainError, match="between 0 and 1"):
        share_left("flip", visible)
