"""Arrays: pictures, lines, slices, and no pickle."""

from __future__ import annotations

import io
import os
import struct
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from tarviz import viewers
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Meta
from tests.viewers.payloads import saved, tenbin, zipped


class TestNpy(ViewerTests):
    viewer = "npy"
    good: ClassVar = {
        "npy": saved(np.arange(12.0).reshape(3, 4)),
        "line.npy": saved(np.arange(5000)),
        "rgb.npy": saved(np.zeros((8, 8, 3), np.uint8)),
        "volume.npy": saved(np.zeros((5, 4, 3, 2), np.float32)),
        "scalar.npy": saved(np.float64(3)),
        "empty.npy": saved(np.zeros((0, 3))),
        "text.npy": saved(np.array(["a", "b"])),
        "rows.npy": saved(np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])),
        "nan.npy": saved(np.array([[np.nan, np.inf], [1, 2]])),
        "complex.npy": saved(np.ones((3, 3), np.complex64)),
        "bool.npy": saved(np.ones((3, 3), bool)),
        "npz": zipped(a=np.eye(4), b=np.arange(3)),
        "ten": tenbin(np.eye(3, dtype=np.float32), np.arange(4)),
    }
    bad: ClassVar = {"npy": b"\x93NUMPY\x01\x00v\x00", "npz": b"PK\x03\x04 cut", "ten": b"~TenBin~" + struct.pack("<q", 1 << 60)}

    def test_fractions_in_columns_are_lines_unless_their_name_or_number_says_points(self):
        steps = saved(np.random.default_rng(0).normal(0, 1, (60, 7)))

        assert {"npy": "lines", "action.npy": "lines", "lidar.npy": "cloud"} == {
            ext: shown_as(steps, ext) for ext in ("npy", "action.npy", "lidar.npy")
        }
        many = saved(np.zeros((600, 3), np.float32))
        assert {"npy": "cloud", "imu.npy": "lines"} == {ext: shown_as(many, ext) for ext in ("npy", "imu.npy")}

    def test_the_pane_switches_cloud_lines_picture_and_numbers(self):
        cloud = saved(np.random.default_rng(0).normal(0, 1, (600, 3)))
        kinds = {}
        for way in ("cloud", "lines", "picture", "numbers"):
            panel = viewers.view(cloud, Meta("xyz.npy", options={"as": way}))
            kinds[way] = type(panel.blocks[0]).__name__
            assert ("cloud", "lines", "picture", "numbers") == panel.controls[0].choices

        assert {"cloud": "Points", "lines": "Plot", "picture": "Image", "numbers": "Table"} == kinds

    def test_a_line_a_column(self):
        plot = viewers.view(saved(np.arange(80.0).reshape(40, 2)), Meta("npy")).blocks[0]

        assert [("column 0", 0.0, 78.0), ("column 1", 1.0, 79.0)] == [(name, line[0], line[-1]) for name, line in plot.series]

    def test_sixteen_bits_and_signed_fractions_and_channels_first_have_right_colours(self):
        red = np.zeros((16, 16, 3))
        red[:, :8, 0] = 1

        for array in (
            (red * 4000).astype(np.uint16),
            (red * 2 - 1).astype(np.float32),
            np.moveaxis(red, 2, 0).astype(np.float32),
            (np.moveaxis(red, 2, 0) * 255).astype(np.uint8),
            (red * 255).astype(np.int64),
        ):
            for blob in (bytes(viewers.view(saved(array), Meta("npy")).blocks[0].data), viewers.tile(saved(array), Meta("npy"), 64)):
                seen = np.asarray(Image.open(io.BytesIO(blob)).convert("RGB"))
                assert [(255, 0, 0), (0, 0, 0)] == [tuple(seen[4, at]) for at in (2, 12)], array.dtype

    def test_bands_of_a_picture_can_be_seen_alone(self):
        blob = saved(np.stack([np.full((16, 16), at * 10.0) for at in range(3)], axis=2))
        panel = viewers.view(blob, Meta("npy", options={"as": "bands", "band": 2}))

        assert 20 == np.frombuffer(panel.blocks[0].values, "<f4")[0]

    def test_safetensors_are_arrays_by_name(self):
        numpy = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed (extra `media`)")
        panel = self.panel("safetensors", numpy.save({"weight": np.eye(4, dtype=np.float32), "bias": np.zeros(4)}))

        assert panel.summary.startswith("2 arrays, ")

    def test_statistics_count_nans(self):
        assert {"min": "1", "max": "inf", "NaN": "1"}.items() <= dict(self.panel("npy", self.good["nan.npy"]).facts).items()

    def test_fortran_order_is_kept(self):
        array = np.asfortranarray(np.arange(6.0).reshape(2, 3))

        assert ("shape", "2×3") in self.panel("npy", saved(array)).facts

    def test_slices_are_chosen_by_the_reader(self):
        volume = np.arange(2 * 3 * 2 * 2, dtype=float).reshape(2, 3, 2, 2)
        panel = viewers.view(saved(volume), Meta("npy", options={"slice": [1, 99]}))

        assert [(1, 1), (2, 2)] == [(control.value, control.high) for control in panel.controls if control.name == "slice"]
        assert "20 dark … 23 bright (auto, viridis)" == panel.blocks[0].label

    def test_arrays_of_an_npz_are_chosen_by_name(self):
        panel = viewers.view(self.good["npz"], Meta("npz", options={"array": "b"}))

        assert "2 arrays, b: int64[3]" == panel.summary

    def test_objects_are_never_unpickled(self):
        class Canary:
            def __reduce__(self):
                return os.putenv, ("TARVIZ_CANARY", "set")

        panel = self.panel("npy", saved(np.array([Canary()], dtype=object)))

        assert panel.summary.startswith("E_UNSAFE_DECODER")

    def test_a_shape_larger_than_the_member_is_refused_by_header(self):
        blob = saved(np.zeros(4)).replace(b"(4,), }            ", b"(999999999999,), } "[:19])

        assert self.panel("npy", blob).summary.startswith("E_LIMIT")

    def test_the_formats_of_webdataset_agree(self):
        tenbin_ = pytest.importorskip("webdataset.tenbin", reason="webdataset is the oracle for .ten")
        blob = bytes(tenbin_.encode_buffer([np.arange(6, dtype=np.int32).reshape(2, 3)]))

        assert "int32[2, 3]" == self.panel("ten", blob).summary


def shown_as(blob: bytes, ext: str) -> str:
    (control,) = (one for one in viewers.view(blob, Meta(ext)).controls if one.name == "as")
    return control.value
