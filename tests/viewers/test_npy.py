"""Arrays: pictures, lines, slices, and no pickle."""

from __future__ import annotations

import os
import struct
from typing import ClassVar

import numpy as np
import pytest

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
