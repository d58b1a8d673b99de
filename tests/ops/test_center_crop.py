"""CenterCrop: the middle, in pixels."""

from __future__ import annotations

import numpy as np
import pytest

from tarviz.model.errors import SchemaError
from tarviz.model.types import Feature
from tarviz.ops import CenterCrop
from tarviz.testing.ops import OpTests


class TestCenterCrop(OpTests):
    op = CenterCrop("jpg", (6, 3))

    def test_it_is_the_middle(self) -> None:
        image = np.arange(81, dtype=np.uint8).reshape(9, 9, 1)

        np.testing.assert_array_equal(image[3:6, 3:5], CenterCrop("jpg", (3, 2)).apply(image))

    def test_a_smaller_image_is_an_error_with_the_cure(self) -> None:
        with pytest.raises(SchemaError, match=r"at least 6 x 3 pixels, got 5 x 20\. Put resize"):
            self.op.apply(np.zeros((5, 20, 3), np.uint8))

    def test_a_smaller_image_is_found_in_the_schema(self) -> None:
        with pytest.raises(SchemaError, match="at least"):
            self.op.infer(Feature("uint8", (4, None, 3)))

    def test_a_smaller_image_is_an_error_in_the_graph(self) -> None:
        tf = pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
        with pytest.raises(tf.errors.InvalidArgumentError, match="smaller than 6 x 3"):
            next(iter(tf.data.Dataset.from_tensors(np.zeros((5, 20, 3), np.uint8)).map(self.op.apply_tf)))
