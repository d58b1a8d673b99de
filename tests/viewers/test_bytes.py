"""Any bytes: guesses, entropy, numbers."""

from __future__ import annotations

import struct
from typing import ClassVar

import numpy as np
import pytest

from tarviz import viewers
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Control, Hex, Meta, Note, Panel, Plot
from tarviz.viewers import bytes as bytes_viewer


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

    @pytest.mark.parametrize(
        ("head", "what"),
        [
            (b"PK\x03\x04", "a ZIP archive"), (b"\x7fELF", "an ELF program"), (b"#!/bin/sh", "a script"),
            (bytes(257) + b"ustar", "a tar archive"), (bytes(256) + b"ustar", ""), (b"\0\xff", ""),
            (b"\0\0\0\x18ftypheic", "a HEIC picture, which is not drawn here"),
        ],
    )  # fmt: skip
    def test_what_it_begins_like_is_said(self, head, what):
        blob = head + bytes(600)
        panel = self.panel("bin", blob)

        assert f"{len(blob)} bytes{', ' * bool(what)}{what}" == panel.summary
        assert ([f"It begins like {what}."] if what else []) == [block.text for block in panel.blocks if isinstance(block, Note)]
        assert f"{len(blob)} bytes{', ' * bool(what)}{what}\n{blob[:24].hex(' ')}" == viewers.tile(blob, Meta("bin"))

    def test_nothing_is_said_to_be_nothing(self):
        panel = self.panel("bin", b"")

        assert ("0 bytes", [Note("The member is empty, 0 bytes.", "warn")]) == (panel.summary, panel.blocks)

    def test_stretches_of_256_bytes_or_more_have_an_entropy(self):
        assert ["Hex"] == [type(block).__name__ for block in self.panel("bin", bytes(511)).blocks]
        plot = self.panel("bin", bytes(range(256)) + bytes(256)).blocks[0]
        assert (("bits per byte", (8.0, 0.0)),) == plot.series
        assert 128 == len(self.panel("bin", bytes(range(256)) * 400).blocks[0].series[0][1])

    def test_so_many_numbers_are_shown_as_there_are_whole_ones(self):
        values = dict(viewers.view(bytes(range(7)), Meta("bin", options={"numbers": ">i2"})).blocks[0].series)
        many = viewers.view(bytes(9000), Meta("bin", options={"numbers": "uint8"})).blocks[0]

        assert {">i2": (1.0, 515.0, 1029.0)} == values
        assert ("first 2000 values", 2000) == (many.label, len(many.series[0][1]))
        assert [("numbers", "nonsense")] == [
            (one.name, one.value) for one in viewers.view(b"x", Meta("bin", options={"numbers": "nonsense"})).controls
        ]


def test_a_few_bytes_are_shown_whole():
    expected = Panel(
        "8 bytes, a ZIP archive",
        [Note("It begins like a ZIP archive."), Plot("lines", (("<i2", (19280.0, 1027.0, 0.0, 0.0)),), "first 4 values"), Hex()],
        [("size", "8 bytes")],
        [Control("numbers", "as numbers", "<i2", choices=bytes_viewer._NUMBERS)],
        viewer="bytes",
    )

    assert expected == viewers.view(b"PK\x03\x04" + bytes(4), Meta("bin", options={"numbers": "<i2"}))
    assert Panel("0 bytes", [Note("The member is empty, 0 bytes.", "warn")], [("size", "0 bytes")], viewer="bytes") == viewers.view(
        b"", Meta("bin")
    )
