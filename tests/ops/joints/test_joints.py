"""Where ops in a row are done together."""

from __future__ import annotations

from typing import Any

import pytest

from tarviz.ops.chains import Chain
from tarviz.ops.joints import Scaling, Thumbnail, joints


class TestWhereOpsAreJoined:
    @pytest.mark.parametrize(
        ("text", "where"),
        [
            ("decode(jpg)|resize(jpg, 32)", {0: (Thumbnail, 2)}),
            ("decode(jpg)|random_crop(jpg, 40)|resize(jpg, 32)|flip(jpg)", {0: (Thumbnail, 4)}),
            ("decode(jpg)|resize(jpg, 32)|flip(jpg, carry=json)", {0: (Thumbnail, 2)}),
            ("decode(jpg)|resize(jpg, 32)|flip(png)", {0: (Thumbnail, 2)}),
            ("decode(cls)|decode(jpg)|center_crop(jpg, 40)|resize(jpg, 32)", {1: (Thumbnail, 3)}),
            ("decode(jpg)|resize(jpg, 32)|convert(jpg, float32)|normalize(jpg, 0.5, 0.25)", {0: (Thumbnail, 4), 2: (Scaling, 2)}),
            ("decode(jpg)|resize(jpg, 32)|flip(jpg)|convert(jpg, float32)|normalize(jpg, 0.5, 1)", {0: (Thumbnail, 5), 3: (Scaling, 2)}),
            ("decode(jpg)|resize(jpg, 32)|convert(x, float32)|normalize(x, 0.5, 1)", {0: (Thumbnail, 2), 2: (Scaling, 2)}),
            ("decode(jpg)|resize(png, 32)", {}),
            ("decode(jpg)|center_crop(jpg, 40)|flip(jpg)|resize(jpg, 32)", {}),
            ("decode(jpg, channels=1)|resize(jpg, 32)", {}),
            ("decode(jpg, orient=True)|resize(jpg, 32)", {}),
            ("decode(jpg)|resize(jpg, 32, carry=json)", {}),
            ("decode(cls)|convert(cls, int32)|normalize(jpg, 0.5, 0.25)", {}),
            ("decode(jpg)", {}),
            ("", {}),
        ],
    )
    def test_in_a_row_on_one_field(self, text: str, where: dict[int, Any]) -> None:
        found = joints(Chain.of(text).ops)

        assert where == {at: (type(joined.joint), joined.joint.ops) for at, joined in found.items()}


class TestWhoseMemoryAValueIsIn:
    """`in_place`: the fields whose value is what a joint makes."""

    @pytest.mark.parametrize(
        ("text", "fields"),
        [
            ("decode(jpg)|resize(jpg, 32)", {"jpg"}),
            ("decode(jpg;png)|resize(jpg;png, 32)|decode(cls)", {"jpg", "png", "jpg;png"}),
            ("decode(jpg)|resize(jpg, 32)|rotate(jpg, 10)", set()),
            ("decode(jpg)|resize(jpg, 32)|drop(cls)", set()),
            ("decode(jpg)|resize(jpg, 32)|rename(image=jpg)", set()),
            ("decode(a.jpg)|resize(a.jpg, 32)|decode(b.jpg)|resize(b.jpg, 32)", {"a.jpg", "b.jpg"}),
            ("decode(jpg)", set()),
        ],
    )
    def test_only_where_nothing_follows_that_may_look_at_it(self, text: str, fields: set[str]) -> None:
        assert fields - {"jpg;png"} == Chain.of(text).in_place
