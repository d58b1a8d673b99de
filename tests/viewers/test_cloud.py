"""Point clouds: files of their own, raw scans, and molecules of the same name."""

from __future__ import annotations

import io
from typing import ClassVar

import numpy as np
from PIL import Image

from tarviz import viewers
from tarviz.looks import points
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Meta, Points
from tests.ops.values.test_clouds import PLACES, pcd, ply

CLOUD = np.random.default_rng(0).normal(0, 10, (600, 3)).astype(np.float32)
SCAN = np.concatenate([CLOUD, np.random.default_rng(1).uniform(0, 1, (600, 1))], axis=1).astype("<f4")
RINGS = np.concatenate([SCAN, np.arange(600)[:, None] % 32], axis=1).astype("<f4")
MOLECULE = b"2\nwater\nO 0 0 0\nH 0 0 1\n"


class TestCloud(ViewerTests):
    viewer = "cloud"
    good: ClassVar = {
        "ply": ply("ascii"),
        "mesh.ply": ply("binary_little_endian"),
        "pcd": pcd("binary", PLACES.tobytes()),
        "xyz": b"0 1 2\n3 4 5\n",
        "velodyne.bin": SCAN.tobytes(),
        "lidar.pcd.bin": RINGS.tobytes(),
    }
    bad: ClassVar = {"ply": b"ply\nformat ascii 1.0\n", "pcd": b"# .PCD v0.7\n", "lidar.bin": bytes(range(256)) * 64}

    def test_a_cloud_turns_and_its_columns_have_ranges(self):
        panel = self.panel("velodyne.bin", self.good["velodyne.bin"])

        assert "600 points" == panel.summary
        assert isinstance(panel.blocks[0], Points)
        assert 4 == len(panel.blocks[1].rows)

    def test_colours_of_a_ply_and_packed_ones_of_a_pcd_are_seen(self):
        packed = np.array([0xFF8000, 0x0000FF, 0, 0x00FF00], "<u4")
        rows = b"".join(PLACES[at].tobytes() + packed[at].tobytes() for at in range(4))
        blob = pcd("binary", rows, "x y z rgb", "4 4 4 4", "F F F F")

        for found in (self.panel("pcd", blob), self.panel("ply", ply("ascii"))):
            assert 12 == len(found.blocks[0].colours)
        assert [255, 128, 0] == list(self.panel("pcd", blob).blocks[0].colours[:3])

    def test_a_molecule_of_that_name_is_text(self):
        assert MOLECULE.decode() == self.panel("xyz", MOLECULE).blocks[0].text
        assert viewers.tile(MOLECULE, Meta("xyz")).startswith("2\nwater")

    def test_a_tile_is_a_picture_with_something_in_it(self):
        for ext in ("ply", "velodyne.bin"):
            assert len(np.unique(np.asarray(Image.open(io.BytesIO(viewers.tile(self.good[ext], Meta(ext), 64)))))) > 3

    def test_an_odd_binary_is_no_damage(self):
        assert viewers.refusal(self.bad["lidar.bin"], Meta("lidar.bin")) is None
        assert "E_DECODE" == viewers.refusal(self.bad["ply"], Meta("ply")).code


class TestScans:
    def test_a_plain_bin_is_told_by_its_numbers(self):
        assert (600, 4) == points.of_scan(SCAN.tobytes()).shape
        assert (600, 5) == points.of_scan(RINGS.tobytes()).shape
        assert isinstance(viewers.view(SCAN.tobytes(), Meta("bin")).blocks[0], Points)
        assert isinstance(viewers.tile(SCAN.tobytes(), Meta("bin")), bytes)

    def test_weights_depths_and_noise_are_no_scans(self):
        random = np.random.default_rng(0)

        for blob in (
            random.normal(0, 1, 4000).astype("<f4").tobytes(),
            random.integers(0, 9000, 8000).astype("<u2").tobytes(),
            random.bytes(16_000),
        ):
            assert points.of_scan(blob) is None


def test_a_table_without_places_is_not_drawn():
    error = viewers.view(ply("ascii").replace(b" x\n", b" u\n"), Meta("ply")).error

    assert error is not None
    assert "E_NOT_SHOWN" == error.code
    assert "which are no places x, y, z" in error.message
    assert [viewers.view(SCAN.tobytes(), Meta("velodyne.bin", options={"as": way})).controls[0].value for way in ("lines", "numbers")] == [
        "lines",
        "numbers",
    ]
