"""The contract of viewers fails for a viewer that does not keep it."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz import viewers
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import registry


class Classes(ViewerTests):
    viewer = "cls"
    good = {"cls": b"3"}
    bad = {"cls": b"\xff\0"}


def controlled(blob: memoryview, meta: viewers.Meta) -> viewers.Panel:
    """Fails for the second choice that it offers."""
    {"a": 1}[meta.options.get("which", "a")]
    return viewers.Panel("3", controls=[viewers.Control("which", "which", "a", choices=("a", "b"))])


@pytest.mark.parametrize(
    ("name", "value", "test"),
    [
        ("claims", lambda head: head[5] > 0, "test_it_is_chosen_for_what_it_shows_and_for_nothing_else"),
        ("claims", lambda head: True, "test_it_is_chosen_for_what_it_shows_and_for_nothing_else"),
        ("MAGIC", b"3", "test_it_is_chosen_for_what_it_shows_and_for_nothing_else"),
        ("MAGIC", (b"",), "test_it_is_chosen_for_what_it_shows_and_for_nothing_else"),
        ("EXTENSIONS", "ab", "test_it_is_chosen_for_its_extensions"),
        ("EXTENSIONS", (".cls",), "test_it_is_chosen_for_its_extensions"),
        (
            "view",
            lambda blob, meta: viewers.Panel("3", facts=[("n", b"3")] if blob == b"3" else []),
            "test_the_message_is_plain_json_and_refers_to_its_buffers",
        ),
        ("view", controlled, "test_its_controls_can_be_set"),
    ],
)
def test_a_viewer_that_breaks_a_promise_is_found(monkeypatch: pytest.MonkeyPatch, name: str, value: Any, test: str):
    getattr(Classes(), test)()
    monkeypatch.setattr(f"tarviz.viewers.cls.{name}", value, raising=False)
    registry._by_extension.cache_clear()

    try:
        with pytest.raises((AssertionError, IndexError, TypeError)):
            getattr(Classes(), test)()
    finally:
        registry._by_extension.cache_clear()


def test_one_that_is_tried_on_nothing_or_shows_another_kind_is_found(monkeypatch: pytest.MonkeyPatch):
    for good in ({}, {"png": b"3"}):
        monkeypatch.setattr(Classes, "good", good)
        with pytest.raises(AssertionError):
            Classes().test_it_is_chosen_for_what_it_shows_and_for_nothing_else()


def test_one_that_shows_other_pixels_is_found(monkeypatch: pytest.MonkeyPatch):
    Image.new("RGB", (3, 2), (9, 8, 7)).save(file := io.BytesIO(), "PNG")

    class Pictures(ViewerTests):
        viewer = "image"
        good = {"png": file.getvalue()}

        def oracle(self, ext: str, blob: bytes) -> Any:
            return np.full((2, 3, 3), (9, 8, 7))

    Pictures().test_another_library_makes_the_same_pixels()
    for pixels in (np.full((2, 3, 3), (9, 8, 6)), np.zeros((4, 3, 3))):
        monkeypatch.setattr(Pictures, "oracle", lambda self, ext, blob, pixels=pixels: pixels)
        with pytest.raises(AssertionError):
            Pictures().test_another_library_makes_the_same_pixels()
