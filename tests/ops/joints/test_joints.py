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
            ("decode(jpg)|random_crop(jpg, 40)|resize(jpg, 32)|flip(jpg)", {0: (Thumbnail, 3)}),
            ("decode(cls)|decode(jpg)|center_crop(jpg, 40)|resize(jpg, 32)", {1: (Thumbnail, 3)}),
            ("decode(jpg)|resize(jpg, 32)|convert(jpg, float32)|normalize(jpg, 0.5, 0.25)", {0: (Thumbnail, 2), 2: (Scaling, 2)}),
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

        assert where == {at: (type(joint), joint.ops) for at, joint in found.items()}
