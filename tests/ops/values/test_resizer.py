"""Resizing by cykooz-resizer: as PIL does it, in any number of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from tarviz.ops import Resize
from tarviz.ops.values.resizer import fast_resize


class TestTheFastOne:
    """cykooz-resizer beside PIL: shapes that go up, down, one way each, to one pixel."""

    @pytest.mark.parametrize("bands", [1, 2, 3, 4])
    @pytest.mark.parametrize("size", [(1, 1), (7, 300), (224, 224), (64, 3), (375, 500)])
    def test_it_is_within_one_step_of_pil(self, bands: int, size: tuple[int, int]) -> None:
        fast = pytest.importorskip("cykooz_resizer", reason="cykooz-resizer is in the extra `fast`") and fast_resize()
        assert fast is not None
        image = np.random.default_rng(3).integers(0, 256, (120, 90, bands), dtype=np.uint8)

        expected = np.stack(
            [np.asarray(Image.fromarray(image[:, :, band]).resize(size[::-1], Image.Resampling.BILINEAR)) for band in range(bands)], axis=2
        )

        np.testing.assert_allclose(expected.astype(int), fast(image, *size).astype(int), atol=1)

    def test_threads_do_not_share_a_resizer(self) -> None:
        pytest.importorskip("cykooz_resizer", reason="cykooz-resizer is in the extra `fast`")
        images = [np.full((200, 200, 3), value, np.uint8) for value in range(0, 240, 3)]
        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(Resize("jpg", (50, 60)).apply, images))

        assert [int(image[0, 0, 0]) for image in images] == [int(image.min()) for image in made] == [int(image.max()) for image in made]

    def test_what_it_gives_may_be_written_to(self) -> None:
        assert Resize("jpg", (5, 5)).apply(np.zeros((9, 9, 3), np.uint8)).flags.writeable
