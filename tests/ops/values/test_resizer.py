"""Resizing by cykooz-resizer: as PIL does it, in any number of threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from tarviz.ops import Resize
from tarviz.ops.values import resizer
from tarviz.ops.values.resizer import fast_resize
from tests.conftest import wait_until


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

    def test_the_end_of_the_process_waits_for_what_is_at_work_and_nothing_begins_then(self) -> None:
        package = pytest.importorskip("cykooz_resizer", reason="cykooz-resizer is in the extra `fast`")
        native = resizer._Native(package)
        kind = package.PixelType.U8
        source = package.ImageData(6000, 6000, kind, bytes(6000 * 6000))

        def run(side: int) -> None:
            native.run("resize", source, package.ImageData(side, side, kind))

        busy = threading.Thread(target=run, args=(5999,))
        busy.start()
        wait_until(lambda: native._busy or not busy.is_alive())
        native._leave()
        assert not native._busy

        late = threading.Thread(target=run, args=(1,), daemon=True)
        late.start()
        run(1)  # what is no daemon is waited for by Python itself
        late.join(0.3)
        assert late.is_alive()

    def test_what_it_gives_may_be_written_to(self) -> None:
        assert Resize("jpg", (5, 5)).apply(np.zeros((9, 9, 3), np.uint8)).flags.writeable
