"""What image ops share: which features and values are images, and PIL on arrays of any dtype and channel count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz.model.errors import ChainError, SchemaError
from tarviz.model.types import Feature
from tarviz.ops import CenterCrop
from tarviz.ops.values.images import check_crop, check_image, image_of, pair, through_pil

OP = CenterCrop("png", (4, 6))


class TestChecks:
    @pytest.mark.parametrize("feature", [Feature("uint8", (None, None, 3)), Feature("float32", (4, 4, 1))])
    def test_three_axes_of_numbers_are_an_image(self, feature: Feature) -> None:
        assert feature == check_image(OP, feature)

    def test_others_are_refused(self) -> None:
        for feature, cure in [
            (Feature("bytes"), r"Put decode\(png\) before it"),
            (Feature("uint8", (3, 3)), r"got uint8.*A grey one is \[h, w, 1\]"),
            (Feature("str"), "got str"),
        ]:
            with pytest.raises(SchemaError, match=cure):
                check_image(OP, feature)

    @pytest.mark.parametrize("value", [b"png", np.zeros((3, 3), np.uint8), 3, [[[1]]]])
    def test_values_are_checked_as_features_are(self, value: Any) -> None:
        with pytest.raises(SchemaError, match=r"center_crop\(png, \(4, 6\)\) expects an image \[h, w, c\]"):
            image_of(OP, value)

    @pytest.mark.parametrize(
        ("shape", "fits"), [((4, 6, 3), True), ((3, 9, 3), False), ((9, 5, 3), False), ((None, None, 3), True), ((None, 5, 3), False)]
    )
    def test_a_crop_has_to_fit_as_far_as_is_known(self, shape: tuple[Any, ...], fits: bool) -> None:
        if fits:
            check_crop(OP, shape, (4, 6))
        else:
            with pytest.raises(SchemaError, match="at least 4 x 6 pixels, got"):
                check_crop(OP, shape, (4, 6))


class TestPair:
    @pytest.mark.parametrize(("value", "expected"), [(3, (3, 3)), ((2, 5), (2, 5)), ([2.0, 5], (2, 5))])
    def test_it_is_height_and_width(self, value: Any, expected: tuple[int, int]) -> None:
        assert expected == pair("op", value, "a size")

    @pytest.mark.parametrize("value", [0, (3, -1), (3,), (1, 2, 3), "33", (1.5, 2), True, None])
    def test_what_is_none_is_refused(self, value: Any) -> None:
        with pytest.raises(ChainError, match="op expects a size"):
            pair("op", value, "a size")


class TestThroughPil:
    @pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "int32", "float32", "float64"])
    @pytest.mark.parametrize("bands", [1, 2, 3, 4, 5])
    def test_dtype_and_channels_stay(self, dtype: str, bands: int) -> None:
        image = (np.arange(6 * 5 * bands).reshape(6, 5, bands) % 250).astype(dtype)
        turned = through_pil(image, lambda picture: picture.transpose(Image.Transpose.ROTATE_90))

        np.testing.assert_array_equal(np.rot90(image), turned)
        assert dtype == turned.dtype

    def test_integers_are_rounded_and_held_in_their_range(self) -> None:
        image = np.array([[[0], [65535]]], np.uint16)
        wide = through_pil(image, lambda picture: picture.resize((4, 1), Image.Resampling.BICUBIC))

        assert (0, 65535) == (wide.min(), wide.max())

    def test_alpha_is_a_band_like_others(self) -> None:
        image = np.zeros((2, 2, 4), np.uint8)
        image[:, 0, 0], image[:, 1, 3] = 200, 255
        half = through_pil(image, lambda picture: picture.resize((1, 1), Image.Resampling.BOX))

        assert [100, 0, 0, 128] == half[0, 0].tolist()
