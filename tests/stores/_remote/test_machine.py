"""Whose machine this is, as its firmware says."""

from __future__ import annotations

import pytest

from tarviz.stores._remote import machine


@pytest.mark.parametrize(("text", "expected"), [("Google Compute Engine\n", True), ("another\n", False), (None, False)])
def test_the_firmware_names_the_owner(text, expected, tmp_path, monkeypatch):
    if text is not None:
        (tmp_path / "product_name").write_text(text)
    monkeypatch.setattr(machine, "_FIRMWARE", str(tmp_path))

    assert expected == machine.machine_says("product_name", "Google")
