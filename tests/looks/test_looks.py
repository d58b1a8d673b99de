"""Roles of fields, point clouds, sound and films."""

from __future__ import annotations

import io

import numpy as np

from tarviz.looks import points, sound
from tarviz.looks.roles import roles
from tarviz.samples.scenes import Scene


class TestRoles:
    def test_a_mask_is_told_by_its_name_where_there_is_a_picture_too(self):
        found = roles({"jpg": "image", "seg.png": "image", "label.png": "image"})

        assert (("jpg",), ("seg.png", "label.png")) == (found.pictures, found.masks)
        assert ("seg.png",) == roles({"seg.png": "image"}).pictures

    def test_named_pictures_belong_side_by_side_and_others_do_not(self):
        kinds = {"left.jpg": "image", "right.jpg": "image", "disp.npy": "npy", "pose.npy": "npy"}

        assert ("left.jpg", "right.jpg", "disp.npy") == roles(kinds).beside
        assert ("pose.npy",) == roles(kinds).arrays
        assert ("jpg",) == roles({"jpg": "image", "thumb.jpg": "image"}).beside


class TestPoints:
    def test_places_lie_within_one_and_colours_are_the_last_columns(self):
        cloud = np.random.default_rng(0).uniform(0, 1, (50_000, 6)).astype(np.float32)
        cloud[:, 0] *= 1000
        places, colours = points.thinned(cloud)

        assert len(places) <= points.MOST
        assert np.abs(places).max() <= 1.0001
        assert colours[0].tolist() == (cloud[0, 3:] * 255).astype(np.uint8).tolist()

    def test_nan_and_one_place_are_no_trouble(self):
        assert 0 == len(points.thinned(np.full((30, 3), np.nan))[0])
        assert (40, 40, 3) == points.drawn(np.ones((30, 3)), 40).shape

    def test_vectors_and_pictures_are_no_clouds(self):
        assert not points.is_cloud(np.zeros((40, 14), np.float32))
        assert not points.is_cloud(np.zeros((8, 3), np.float32))

    def test_names_decide_before_numbers_do(self):
        assert points.is_cloud(np.zeros((30, 3), np.float32), "left.lidar_points.npy")
        assert not points.is_cloud(np.zeros((30, 3), np.float32), "npy")
        assert not points.is_cloud(np.zeros((9000, 3), np.float32), "keypoints.npy")
        assert not points.is_cloud(np.zeros((9000, 3), np.int32), "points.npy")


class TestSound:
    def test_the_spectrogram_is_bright_where_the_note_is(self):
        at = np.arange(16_000) / 16_000
        low, high = (
            sound.spectrogram(np.sin(2 * np.pi * tone * at).astype(np.float32), 20).sum(axis=(1, 2)).argmax() for tone in (200, 4000)
        )

        assert high < low


def test_a_scene_says_what_it_shows():
    scene = Scene(3)
    thing = scene.things[-1]  # the nearest, over which nothing lies
    x, y, w, h = thing.box

    assert thing.cls + 1 == scene.ids[y + h // 2, min(x + w // 2, scene.width - 1)]
    assert thing.name in scene.caption.lower()
    assert (180, 240, 3) == scene.picture().shape
    assert io.BytesIO(scene.picture().tobytes()).read() == Scene(3).picture().tobytes()
