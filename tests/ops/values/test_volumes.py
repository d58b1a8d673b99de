"""DICOM and NIfTI in chains: the numbers that pydicom and nibabel give."""

from __future__ import annotations

import gzip
import io
import warnings

import numpy as np
import pytest

from tarviz.model.errors import DataError, MissingPackageError
from tarviz.ops.values.payloads import decode_payload

pydicom = pytest.importorskip("pydicom", reason="pydicom is not installed (extra `medical`)")
nibabel = pytest.importorskip("nibabel", reason="nibabel is not installed (extra `medical`)")

CT = np.arange(1024, dtype=np.int16).reshape(32, 32)


def dicom(pixels: np.ndarray, **tags: object) -> bytes:
    from pydicom.dataset import FileDataset, FileMetaDataset
    from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = CTImageStorage, generate_uid(entropy_srcs=["tarviz"])
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    found = FileDataset("", {}, file_meta=meta, preamble=bytes(128))
    found.Modality, found.RescaleSlope, found.RescaleIntercept, found.RescaleType = "CT", 2, -1024, "HU"
    found.WindowCenter, found.WindowWidth = [40, 50], [400, 350]
    found.Rows, found.Columns = pixels.shape[-2:]
    if pixels.ndim == 3:
        found.NumberOfFrames = len(pixels)
    found.SamplesPerPixel, found.PhotometricInterpretation = 1, "MONOCHROME2"
    found.BitsAllocated = found.BitsStored = 16
    found.HighBit, found.PixelRepresentation, found.PixelData = 15, 1, pixels.astype("<i2").tobytes()
    for name, value in tags.items():
        setattr(found, name, value)
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pydicom.dcmwrite(out, found)
    return out.getvalue()


def nifti(voxels: np.ndarray, kind=None) -> bytes:
    return (kind or nibabel.Nifti1Image)(voxels, np.eye(4)).to_bytes()


class TestDicom:
    def test_pixels_come_in_the_unit_of_the_file(self):
        found = decode_payload("dcm", dicom(CT))

        assert np.float32 == found.dtype
        assert np.array_equal(CT * 2.0 - 1024, found)

    def test_without_a_slope_the_dtype_stays(self):
        found = decode_payload("dcm", dicom(CT, RescaleSlope=1, RescaleIntercept=0))

        assert np.int16 == found.dtype
        assert np.array_equal(CT, found)

    @pytest.mark.parametrize("each", [False, True])
    def test_slopes_of_an_enhanced_file_are_those_of_its_frames(self, each):
        def group(slope, intercept):
            found, rule = pydicom.Dataset(), pydicom.Dataset()
            rule.RescaleSlope, rule.RescaleIntercept, rule.RescaleType = slope, intercept, "US"
            found.PixelValueTransformationSequence = [rule]
            return found

        frames = np.stack([CT, CT + 1])
        groups = (
            {"PerFrameFunctionalGroupsSequence": [group(2, -5), group(3, 7)]}
            if each
            else {"SharedFunctionalGroupsSequence": [group(2, -5)]}
        )
        found = decode_payload("dcm", dicom(frames, RescaleSlope=None, RescaleIntercept=None, **groups))

        assert np.float32 == found.dtype
        assert np.array_equal(np.stack([frames[0] * 2 - 5, frames[1] * (3 if each else 2) + (7 if each else -5)]), found)

    def test_numbers_come_in_the_byte_order_of_this_machine(self):
        found = pydicom.dcmread(io.BytesIO(dicom(CT, RescaleSlope=1, RescaleIntercept=0, PixelData=CT.astype(">i2").tobytes())))
        found.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRBigEndian
        out = io.BytesIO()
        pydicom.dcmwrite(out, found)
        pixels = decode_payload("dcm", out.getvalue())

        assert pixels.dtype.isnative
        assert np.array_equal(CT, pixels)

    def test_a_jpeg_of_12_bits_asks_for_the_package_that_reads_it(self):
        found = pydicom.dcmread(io.BytesIO(dicom(CT, BitsStored=12, HighBit=11)))
        found.file_meta.TransferSyntaxUID = pydicom.uid.JPEGExtended12Bit
        found.PixelData = pydicom.encaps.encapsulate([b"\xff\xd8\xff\xd9"])
        found["PixelData"].is_undefined_length = True
        out = io.BytesIO()
        pydicom.dcmwrite(out, found)

        with pytest.raises(MissingPackageError, match="pylibjpeg"):
            decode_payload("dcm", out.getvalue())

    def test_a_film_in_it_is_not_called_damaged(self):
        blob = dicom(CT).replace(b"1.2.840.10008.1.2.1\0", b"1.2.840.10008.1.2.4.102\0")
        at = blob.index(b"\x02\0\x10\0UI") + 6
        blob = blob[:at] + (24).to_bytes(2, "little") + blob[at + 2 :]
        with pytest.raises(DataError, match="is coded as MPEG-4") as caught:
            decode_payload("dcm", blob)

        assert "E_NOT_SHOWN" == caught.value.code

    @pytest.mark.parametrize("blob", [b"", bytes(200), dicom(CT)[:-9], dicom(CT, Rows=40_000, Columns=40_000)])
    def test_damage_is_named(self, blob):
        with pytest.raises(DataError):
            decode_payload("dcm", blob)


class TestNifti:
    @pytest.mark.parametrize("kind", [nibabel.Nifti1Image, nibabel.Nifti2Image])
    @pytest.mark.parametrize("dtype", ["int16", "uint8", "float32"])
    def test_voxels_come_as_they_lie(self, kind, dtype):
        voxels = np.arange(60).reshape(3, 4, 5).astype(dtype)
        found = decode_payload("t1.nii.gz", gzip.compress(nifti(voxels, kind)))

        assert (dtype, (3, 4, 5)) == (found.dtype, found.shape)
        assert np.array_equal(voxels, found)

    def test_doubles_without_a_slope_stay_doubles(self):
        voxels = np.full((2, 3, 4), 2.0**24 + 1)

        assert np.array_equal(voxels, decode_payload("nii", nifti(voxels)))

    def test_an_empty_mask_is_no_bomb(self):
        voxels = np.zeros((256, 256, 256), np.uint8)

        assert voxels.shape == decode_payload("seg.nii.gz", gzip.compress(nifti(voxels), 9)).shape

    @pytest.mark.parametrize("cut", [0, 100, 348, 400])
    def test_damage_is_named(self, cut):
        with pytest.raises(DataError):
            decode_payload("nii", nifti(np.zeros((8, 8, 8), np.int16))[:cut])
