"""Augmentations called on a scene: a plain function, and what it gives back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tarviz.model.errors import SchemaError
from tarviz.ops.values.foreign import ForeignScene, augment

IMAGE = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)


class TestPlain:
    def test_it_sees_only_what_there_is(self):
        seen = []

        def note(**given):
            seen.append(sorted(given))
            return given

        augment(note, ForeignScene(IMAGE, np.empty((0, 2))), 0)
        augment(note, ForeignScene(IMAGE, np.ones((1, 2)), (IMAGE[..., 0],)), 0)

        assert [["image"], ["image", "keypoints", "masks"]] == seen

    def test_masks_keep_their_dtype_and_axes(self):
        mask = np.ones((4, 2, 1), np.int64)
        made = augment(
            lambda image, masks: {"image": image, "masks": [masks[0][..., 0].astype(float)]},
            ForeignScene(IMAGE, np.empty((0, 2)), (mask,)),
            0,
        )

        assert (np.int64, (4, 2, 1)) == (made.masks[0].dtype, made.masks[0].shape)

    @pytest.mark.parametrize(
        "f", [lambda **given: None, lambda **given: {}, lambda image, keypoints: {"image": image, "keypoints": keypoints[1:]}]
    )
    def test_what_gives_back_something_else_is_refused(self, f):
        with pytest.raises(SchemaError, match=r"it (has to return|gave)"):
            augment(f, ForeignScene(IMAGE, np.ones((2, 2))), 0)


def test_a_library_is_known_by_the_module_of_what_it_made(monkeypatch: pytest.MonkeyPatch):
    made = type("Turn", (), {"__module__": "turns.of.pictures"})()
    monkeypatch.setattr("tarviz.ops.values.foreign._CALLERS", {"turns": lambda f, scene, seed: replace(scene, image=(f, seed))})

    assert [made, 7] == list(augment(made, ForeignScene(np.empty((0, 2)), np.empty((0, 2))), 7).image)
