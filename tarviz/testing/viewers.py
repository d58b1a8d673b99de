"""What every viewer keeps: subclass `ViewerTests` and name what it shows.

::

    class TestImage(ViewerTests):
        viewer = "image"
        good = {"png": png_bytes}
        bad = {"png": b"\\x89PNG cut"}

        def oracle(self, ext, blob):
            return np.asarray(PIL.Image.open(io.BytesIO(blob)))
"""

from __future__ import annotations

import io
import json
import random
from typing import Any, ClassVar

import numpy as np
import pytest

from tarviz import viewers
from tarviz.model import plugins
from tarviz.model.errors import TarvizError
from tarviz.viewers import Image, Meta, Panel


class ViewerTests:
    """The contract of a viewer. `good` and `bad`: extension → payload it shows, and payload it refuses with a reason.

    Where a library of the world decodes the payloads to pixels (PIL, tifffile, PyAV), let `oracle` ask it.
    """

    viewer: ClassVar[str]
    good: ClassVar[dict[str, bytes]]
    bad: ClassVar[dict[str, bytes]] = {}

    def panel(self, ext: str, blob: bytes) -> Panel:
        """The panel of a payload, as this viewer shows it."""
        return viewers.view(blob, Meta(ext, key="key", shard="memory://shard.tar"), as_=self.viewer)

    def oracle(self, ext: str, blob: bytes) -> Any:
        """The pixels another library makes of a payload, as PIL would hold the first picture of the panel; None where none says."""
        return None

    def test_another_library_makes_the_same_pixels(self) -> None:
        asked = [(ext, blob, pixels) for ext, blob in self.good.items() if (pixels := self.oracle(ext, blob)) is not None]
        if not asked:
            pytest.skip("no other library says what the viewer shows")
        import PIL.Image

        for ext, blob, pixels in asked:
            shown = next(block for block in self.panel(ext, blob).blocks if isinstance(block, Image))
            assert pixels.shape[:2] == (shown.height, shown.width), ext
            np.testing.assert_array_equal(np.asarray(PIL.Image.open(io.BytesIO(shown.data))), pixels, ext)

    def test_it_is_chosen_for_its_extensions(self) -> None:
        for ext in viewers.kinds()[self.viewer]:
            assert self.viewer == viewers.choose(ext)
        assert not viewers.kinds()[self.viewer] or any(self.viewer == viewers.choose(ext) for ext in self.good)

    def test_it_is_chosen_for_what_it_shows_and_for_nothing_else(self) -> None:
        module = plugins.load("viewers", self.viewer)
        magic, claims = getattr(module, "MAGIC", ()), getattr(module, "claims", lambda head: False)

        assert any(self.viewer == viewers.choose(ext, blob) for ext, blob in self.good.items())
        assert not isinstance(magic, bytes)
        assert all(magic)
        for blob in self.good.values():
            for head in (blob[:4096], *(blob[:at] for at in range(0, 64, 3))):
                claims(head)
        assert not any(map(claims, (b"", b"\0", b"\xff" * 4096)))

    def test_its_controls_can_be_set(self) -> None:
        for ext, blob in self.good.items():
            for control in self.panel(ext, blob).controls:
                values = control.choices or range(control.high + 1)
                for value in (values[0], values[-1]):
                    chosen = [value] if control.name == "slice" else value
                    panel = viewers.view(blob, Meta(ext, options={control.name: chosen}), as_=self.viewer)
                    assert panel.error is None, (ext, control.name, value)

    def test_good_payloads_have_a_summary_and_blocks(self) -> None:
        for ext, blob in self.good.items():
            panel = self.panel(ext, blob)

            assert self.viewer == panel.viewer
            assert panel.summary
            assert panel.blocks
            assert "\n" not in panel.summary
            assert panel.error is None

    def test_the_message_is_plain_json_and_refers_to_its_buffers(self) -> None:
        for ext, blob in [*self.good.items(), *self.bad.items()]:
            message, buffers = self.panel(ext, blob).to_message()

            text = json.dumps(message, allow_nan=False)
            assert all(f'"buffer": {number}' in text for number in range(len(buffers)))
            assert text.encode("utf-8")

    def test_text_of_a_panel_prints_safely(self) -> None:
        for ext, blob in [*self.good.items(), *self.bad.items()]:
            assert all(letter.isprintable() or letter == "\n" for letter in str(self.panel(ext, blob)))

    def test_bad_payloads_are_refused_with_a_code(self) -> None:
        for ext, blob in self.bad.items():
            panel = self.panel(ext, blob)

            assert panel.error is not None, (ext, panel.summary)
            with pytest.raises(TarvizError):
                viewers.tile(blob, Meta(ext), as_=self.viewer)

    def test_a_tile_is_a_picture_or_a_short_text(self) -> None:
        for ext, blob in self.good.items():
            tile = viewers.tile(blob, Meta(ext), 96, as_=self.viewer)

            if isinstance(tile, bytes):
                assert tile.startswith((b"\x89PNG", b"\xff\xd8\xff", b"RIFF"))
            else:
                assert len(tile) <= 4096

    def test_cut_and_flipped_payloads_never_raise(self) -> None:
        share = random.Random(0)
        for ext, blob in self.good.items():
            for _ in range(24):
                cut = bytearray(blob[: share.randrange(len(blob) + 1)])
                for _ in range(share.randrange(4)):
                    if cut:
                        cut[share.randrange(len(cut))] = share.randrange(256)
                assert isinstance(self.panel(ext, bytes(cut)), Panel)

    def test_empty_payloads_never_raise(self) -> None:
        for ext in self.good:
            assert isinstance(self.panel(ext, b""), Panel)
