"""DICOM and NIfTI: slices, windows, colours, and a sentence where their libraries are not."""

from __future__ import annotations

import gzip
import io
import sys
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("pydicom", reason="pydicom is not installed (extra `medical`)")
pytest.importorskip("nibabel", reason="nibabel is not installed (extra `medical`)")

from tarviz import viewers
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Meta, volume
from tests.ops.values.test_volumes import CT, dicom, nifti


class TestVolume(ViewerTests):
    viewer = "volume"
    good: ClassVar = {"dcm": dicom(CT), "frames.dcm": dicom(np.stack([CT] * 3)), "nii": nifti(np.zeros((8, 9, 10), np.int16))}
    good["nii.gz"] = gzip.compress(good["nii"], mtime=0)
    bad: ClassVar = {"dcm": bytes(400), "nii": good["nii"][:-100]}

    def test_it_is_told_by_its_mark_where_its_name_says_nothing(self):
        heads = [bytes(128) + b"DICM", bytes(344) + b"n+1\0", bytes(344) + b"ni1\0", bytes(344) + b"n+2\0", bytes(127) + b"DICM"]

        assert ["volume", "volume", "volume", "bytes", "bytes"] == [viewers.choose("unknown", head) for head in heads]

    def test_the_window_of_the_file_comes_first_and_those_of_a_ct_after_it(self):
        panel = self.panel("dcm", self.good["dcm"])
        (window,) = (one for one in panel.controls if one.name == "window")

        assert "the file's -160…240" == window.value == window.choices[0]
        assert "lung -1350…150" in window.choices
        assert panel.blocks[0].label.startswith("-160 dark … 240 bright")
        assert ("Modality", "CT") in panel.facts

    @pytest.mark.parametrize(
        ("tags", "first"),
        [
            ({"WindowWidth": 0}, "soft tissue -160…240"),
            ({"WindowWidth": None}, "soft tissue -160…240"),
            ({"Modality": "MR"}, "the file's -160…240"),
            ({"Modality": "MR", "WindowWidth": 1, "WindowCenter": 9}, "the file's 8.5…9.5"),
            ({"PhotometricInterpretation": "MONOCHROME1", "WindowWidth": 0}, "the file's, high is dark 1022…-1024"),
        ],
    )
    def test_the_window_of_a_file_is_used_where_it_says_one(self, tags, first):
        (window,) = (one for one in self.panel("dcm", dicom(CT, **tags)).controls if one.name == "window")

        assert first == window.value
        assert ("Modality" not in tags) is ("lung -1350…150" in window.choices)

    def test_one_slice_of_a_nifti_stands_as_those_of_many_do(self):
        array = np.arange(6, dtype=np.int16).reshape(3, 2)

        assert [[1, 3, 5], [0, 2, 4]] == volume.load(nifti(array), "nii").array.tolist()

    def test_slices_turn_and_three_of_them_are_no_colours(self):
        panel = viewers.view(self.good["frames.dcm"], Meta("dcm", options={"slice": [2]}))

        assert ("slice", 2, 2) == next((one.name, one.value, one.high) for one in panel.controls)
        assert (32, 32) == (panel.blocks[0].width, panel.blocks[0].height)

    def test_a_nifti_is_seen_front_up(self):
        voxels = np.zeros((8, 9, 10), np.int16)
        voxels[7, 8, :] = 100  # right and front, of all slices: right lies left, as in a DICOM
        shown = Image.open(io.BytesIO(viewers.tile(gzip.compress(nifti(voxels)), Meta("t1.nii.gz"), 64)))

        assert (8, 9) == shown.size
        assert (0, 0) == tuple(np.argwhere(np.asarray(shown))[0][::-1])

    @pytest.mark.parametrize("axes", ["RAS", "LPS", "LAS", "PIR", "SRA"])
    def test_however_its_axes_run(self, axes):
        import nibabel

        orientations = nibabel.orientations
        voxels = np.zeros((8, 9, 10), np.int16)
        voxels[7, 8, 5] = 100  # right and front, of the slice in the middle
        turn = orientations.ornt_transform(orientations.axcodes2ornt("RAS"), orientations.axcodes2ornt(axes))
        blob = nibabel.Nifti1Image(voxels, np.eye(4)).as_reoriented(turn).to_bytes()
        panel = self.panel("nii", blob)
        shown = Image.open(io.BytesIO(viewers.tile(blob, Meta("nii"), 64)))

        assert ("axes run to", ", ".join(axes)) in panel.facts
        assert (8, 9) == shown.size
        assert (0, 0) == tuple(np.argwhere(np.asarray(shown))[0][::-1])

    def test_directions_of_fibres_are_colours(self):
        voxels = np.zeros((8, 9, 10), [("R", "u1"), ("G", "u1"), ("B", "u1")])
        voxels["R"], voxels["B"] = 200, 50
        blob = nifti(voxels)

        assert "10 × 9 × 8 × 3 uint8" == self.panel("nii", blob).summary
        for shown in (viewers.tile(blob, Meta("nii"), 64), self.panel("nii", blob).blocks[0].data):
            assert [[200, 0, 50]] == np.unique(np.asarray(Image.open(io.BytesIO(shown))).reshape(-1, 3), axis=0).tolist()

    def test_where_high_is_dark_the_values_stay_what_they_are(self):
        blob = dicom(CT, PhotometricInterpretation="MONOCHROME1")
        panel = self.panel("dcm", blob)

        assert np.asarray(Image.open(io.BytesIO(viewers.tile(blob, Meta("dcm"), 64))))[0, 0] == 255
        assert "240 dark … -160 bright (the file's, high is dark 240…-160, grey)" == panel.blocks[0].label
        assert np.array_equal(CT.ravel() * 2 - 1024, np.frombuffer(panel.blocks[0].values, "<f4"))

    def test_numbers_of_a_palette_are_shown_in_its_colours(self):
        tables = {}
        for name, level in (("Red", 200), ("Green", 100), ("Blue", 50)):
            tables[f"{name}PaletteColorLookupTableDescriptor"] = [1024, 0, 16]
            tables[f"{name}PaletteColorLookupTableData"] = np.full(1024, level << 8, "<u2").tobytes()
        plain = {"RescaleSlope": 1, "RescaleIntercept": 0, "PixelRepresentation": 0}
        blob = dicom(CT, PhotometricInterpretation="PALETTE COLOR", **plain, **tables)

        for shown in (viewers.tile(blob, Meta("dcm"), 64), self.panel("dcm", blob).blocks[0].data):
            assert [[200, 100, 50]] == np.unique(np.asarray(Image.open(io.BytesIO(shown))).reshape(-1, 3), axis=0).tolist()

    def test_a_plan_without_pixels_is_no_damage(self):
        blob = dicom(CT, Modality="RTSTRUCT", PixelData=None).replace(b"\xe0\x7f\x10\x00", b"\xe0\x7f\x12\x00")

        assert "E_NOT_SHOWN: the DICOM (RTSTRUCT) holds no pixels." == self.panel("dcm", blob).summary
        assert viewers.refusal(blob, Meta("dcm")) is None

    @pytest.mark.parametrize(("ext", "package"), [("dcm", "pydicom"), ("nii", "nibabel")])
    def test_what_needs_a_package_says_so_and_is_no_damage(self, ext, package, monkeypatch):
        monkeypatch.setitem(sys.modules, package, None)
        panel = self.panel(ext, self.good[ext])

        assert "pip install 'tarviz[medical]'" in panel.blocks[0].text
        assert viewers.refusal(self.good[ext], Meta(ext)) is None
