"""Any bytes: guesses, entropy, numbers."""

from __future__ import annotations

import struct
from typing import ClassVar

import numpy as np

from tarviz import viewers
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Meta


class TestBytes(ViewerTests):
    viewer = "bytes"
    good: ClassVar = {"bin": bytes(range(256)) * 40, "msgpack": b"\x81\xa1a\x01", "dat": b"%PDF-1.4"}

    def test_entropy_tells_random_from_plain(self):
        panel = self.panel("bin", np.random.default_rng(0).bytes(4096) + bytes(4096))
        values = dict(panel.blocks[0].series)["bits per byte"]

        assert values[0] > 7
        assert 0 == values[-1]

    def test_bytes_are_shown_as_numbers_on_request(self):
        panel = viewers.view(struct.pack("<4f", 1, 2, 3, 4), Meta("bin", options={"numbers": "<f4"}))

        assert (1.0, 2.0, 3.0, 4.0) == panel.blocks[0].series[0][1]
