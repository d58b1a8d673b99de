"""Pickles: never executed."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from typing import ClassVar

from tarviz import viewers
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Control, Hex, Meta, Note, Panel
from tarviz.viewers.pickle import claims, opcodes


class Canary:
    """A payload that would show itself if a pickle were loaded."""

    def __reduce__(self):
        return os.putenv, ("TARVIZ_CANARY", "set")


class TestPickle(ViewerTests):
    viewer = "pickle"
    good: ClassVar = {"pkl": pickle.dumps({"a": [1, 2]}), "pth": pickle.dumps(Canary()), "pyd": b"\x80\x04."}

    def test_it_says_that_it_was_not_executed(self):
        assert "not executed" in self.panel("pkl", self.good["pkl"]).blocks[0].text

        expected = Panel(
            "pickle, 3 bytes, not decoded",
            [Note("A pickle can run any program when it is loaded: not executed.", "bad"), Hex()],
            [("size", "3 bytes")],
            [Control("opcodes", "opcodes", "hide", choices=("hide", "show"))],
            viewer="pickle",
        )
        assert expected == self.panel("pyd", self.good["pyd"])
        assert expected.summary == viewers.tile(self.good["pyd"], Meta("pyd"))

    def test_opcodes_are_shown_on_request_only(self):
        shown = viewers.view(self.good["pkl"], Meta("pkl", options={"opcodes": "show"}))

        assert "PROTO" in shown.blocks[1].text
        assert "PROTO" not in str(self.panel("pkl", self.good["pkl"]))

    def test_opcodes_of_a_long_or_broken_pickle_are_cut(self):
        assert "cut here" in opcodes(memoryview(pickle.dumps(list(range(100_000)))))
        assert "unreadable here" in opcodes(memoryview(b"\x80\x04\xff"))

    def test_a_torch_archive_is_listed(self):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for number in range(201):
                archive.writestr(f"model/{number}", b"x" * 1000)

        assert tuple((f"model/{number}", "1,000") for number in range(200)) == self.panel("pth", out.getvalue()).blocks[1].rows

    def test_what_may_be_a_pickle_is_told_by_its_first_bytes(self):
        begins = [b"\x80\x02}", b"\x80\x05\x95", b"\x80\x06\x95", b"\x80\x01}", b"\x80\x02", b"\x80\x04a", b"\x81\x04}"]

        assert [True, True, False, False, False, False, False] == [claims(head) for head in begins]

    def test_a_damaged_archive_is_said_to_be_one(self):
        (_, note, _) = self.panel("pt", b"PK\x03\x04 cut").blocks

        assert ("warn", True) == (note.tone, note.text.startswith("A damaged zip file: "))
        assert ["hide", "show"] == [
            viewers.view(b"\x80\x04.", Meta("pkl", options=options)).controls[0].value for options in ({}, {"opcodes": "show"})
        ]
