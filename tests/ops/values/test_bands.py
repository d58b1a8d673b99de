"""Three of four bands: each pixel where it belongs, and nothing beside the image touched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.ops.values import bands
from tarviz.ops.values.bands import three_bands


def mirrored(image: Any, mirror: str) -> Any:
    return {"": image, "horizontal": image[:, ::-1], "vertical": image[::-1]}[mirror]


class TestThreeBands:
    @given(st.integers(0, 9), st.integers(0, 9), st.sampled_from(("", "horizontal", "vertical")), st.booleans(), st.booleans())
    def test_every_pixel_is_where_it_belongs_and_what_lies_around_stays(
        self, height: int, width: int, mirror: Any, part: bool, given_room: bool
    ) -> None:
        picture = np.random.default_rng(height * 10 + width).integers(0, 256, (height + 2, width + 3, 4), np.uint8)
        picture = picture[1:-1, 2:-1] if part else picture[2:, 3:].copy()
        around = np.full(3 * height * width + 16, 171, np.uint8)
        out = around[8 : 8 + 3 * height * width].reshape(height, width, 3) if given_room else None

        made = three_bands(picture, out, mirror)

        np.testing.assert_array_equal(made, mirrored(picture, mirror)[:, :, :3])
        assert given_room == (made is out)
        if given_room:
            assert [171] * 16 == [*around[:8].tolist(), *around[-8:].tolist()]

    @pytest.mark.parametrize("mirror", ["", "horizontal", "vertical"])
    def test_a_numpy_that_writes_in_another_order_is_not_relied_on(self, mirror: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        picture = np.random.default_rng(0).integers(0, 256, (20, 30, 4), np.uint8)
        expected = three_bands(picture, None, mirror)
        monkeypatch.setattr(bands, "_in_order", lambda: False)

        np.testing.assert_array_equal(expected, three_bands(picture, None, mirror))

    def test_the_order_is_that_which_numpy_has(self) -> None:
        assert bands._in_order()
