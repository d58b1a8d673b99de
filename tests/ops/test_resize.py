"""Resize: height before width, antialias, within one step of TensorFlow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tarviz
from tarviz.model.errors import ChainError, SchemaError
from tarviz.model.types import Feature
from tarviz.ops import Resize
from tarviz.testing.ops import OpTests, noise


class TestResize(OpTests):
    op = Resize("jpg", (32, 48))
    tf_atol = 1

    def test_size_is_height_then_width(self) -> None:
        out = Resize("jpg", (3, 5)).apply(np.zeros((10, 20, 3), np.uint8))

        assert (3, 5, 3) == out.shape

    def test_one_number_is_a_square(self) -> None:
        assert (8, 8) == Resize("jpg", 8).size  # type: ignore[arg-type]

    def test_it_is_pil_bilinear(self) -> None:
        image = noise(self.accepts)[2]

        expected = np.asarray(Image.fromarray(image).resize((48, 32), Image.Resampling.BILINEAR))

        np.testing.assert_allclose(expected, self.op.apply(image), atol=1)

    def test_alpha_does_not_weigh_the_colours(self) -> None:
        image = np.zeros((16, 16, 4), np.uint8)
        image[:, :8, 0] = 200
        out = Resize("png", (8, 8)).apply(image)

        assert 200 == out[4, 0, 0]

    @pytest.mark.parametrize("size", [(0, 3), (3,), "big", (3, 4.5), None, (-1, 2)])
    def test_a_size_that_is_none_is_refused(self, size: object) -> None:
        with pytest.raises(ChainError, match="resize expects a size"):
            Resize("jpg", size)  # type: ignore[arg-type]

    def test_bytes_are_refused_with_the_cure(self) -> None:
        with pytest.raises(SchemaError, match=r"Put decode\(jpg\) before it"):
            self.op.infer(Feature("bytes"))


class TestResizeUp(OpTests):
    op = Resize("jpg", (90, 100))
    tf_atol = 1


class TestResizeFloat(OpTests):
    op = Resize("jpg", (20, 11))
    accepts = Feature("float32", (None, None, 3))
    tf_atol = 1 / 255


class TestResizeDouble(OpTests):
    op = Resize("jpg", (20, 11))
    accepts = Feature("float64", (None, None, 1))
    tf_atol = 1 / 255


class TestResizeWide(OpTests):
    op = Resize("png", (20, 11))
    accepts = Feature("uint16", (None, None, 4))
    tf_atol = 257


class TestResizeGrey(OpTests):
    op = Resize("png", (16, 16))
    accepts = Feature("uint8", (None, None, 1))
    tf_atol = 1


class TestResizeFour(OpTests):
    op = Resize("png", (16, 9))
    accepts = Feature("uint8", (None, None, 4))
    tf_atol = 1


class TestResizeMany(OpTests):
    op = Resize("png", (16, 9))
    accepts = Feature("uint8", (None, None, 7))
    tf_atol = 1


@pytest.mark.parametrize("dtype", ["bool", "uint32", "uint64"])
def test_what_tensorflow_cannot_resize_is_resized_outside(tmp_path: Path, dtype: str) -> None:
    pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
    tarviz.write([{"npy": np.arange(12).reshape(3, 4, 1).astype(dtype)}], tmp_path / "a.tar", progress=False)
    pipeline = tarviz.Pipeline(tmp_path / "a.tar", "decode(npy)|resize(npy, (2, 2))", select="npy")

    np.testing.assert_array_equal(next(iter(pipeline)), next(iter(pipeline.tf(graph=True))).numpy(), strict=True)
