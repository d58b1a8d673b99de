"""Medical volumes of many forms: bits, colours, frames, slopes, byte orders, compressions; by pydicom and nibabel."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from typing import Any

import nibabel
import numpy as np
import pydicom
from pydicom.pixels import apply_modality_lut, set_pixel_data
from pydicom.uid import ExplicitVRBigEndian, ImplicitVRLittleEndian, RLELossless

from tests.odd.case import REFUSED, Odd, saved
from tests.ops.values.test_volumes import CT, dicom

RANDOM = np.random.default_rng(30)


def volumes() -> Iterator[Odd]:
    def read(data: bytes) -> Any:
        found = pydicom.dcmread(io.BytesIO(data))
        pixels = found.pixel_array
        return apply_modality_lut(pixels, found).astype(np.float32) if found.RescaleSlope != 1 else pixels

    def case(name: str, found: Any, **tags: Any) -> Odd:
        for key, value in tags.items():
            setattr(found, key, value)
        data = saved(lambda out: pydicom.dcmwrite(out, found, little_endian=None))
        return Odd(f"dicom {name}", "dcm", data, read(data))

    def opened(pixels: Any = CT, **tags: Any) -> Any:
        return pydicom.dcmread(io.BytesIO(dicom(pixels, **tags)))

    yield case("ct", opened())
    yield case("numbers without a slope", opened(), RescaleSlope=1, RescaleIntercept=0)
    yield case("frames", opened(np.stack([CT, CT + 1])))
    yield case("dark is high", opened(), PhotometricInterpretation="MONOCHROME1")
    for bits, stored in ((8, 8), (16, 12)):
        ds = opened(RescaleSlope=1, RescaleIntercept=0)
        set_pixel_data(ds, (CT % (1 << stored)).astype(f"u{bits // 8}"), "MONOCHROME2", stored)
        yield case(f"{stored} bits of {bits}", ds)
    ds = opened(RescaleSlope=1, RescaleIntercept=0)
    set_pixel_data(ds, np.stack([CT % 256] * 3, 2).astype(np.uint8), "RGB", 8)
    yield case("colours", ds)
    ds = opened()
    ds.compress(RLELossless)
    yield case("in runs", ds)
    ds = opened()
    ds.PixelData = CT.astype(">i2").tobytes()
    for name, syntax in (("big endian", ExplicitVRBigEndian), ("implicit", ImplicitVRLittleEndian)):
        one = opened()
        if name == "big endian":
            one.PixelData = CT.astype(">i2").tobytes()
        one.file_meta.TransferSyntaxUID = syntax
        data = saved(lambda out, one=one: pydicom.dcmwrite(out, one))
        yield Odd(f"dicom {name}", "dcm", data, read(data))
    report = opened()
    for tag in ("PixelData", "Rows", "Columns"):
        delattr(report, tag)
    yield Odd("dicom without pixels", "dcm", saved(lambda out: pydicom.dcmwrite(out, report)), REFUSED)
    for dtype in ("u1", "i2", "i4", "f4", "f8", "u2", ">i2"):
        for kind, ext in ((nibabel.Nifti1Image, "nii"), (nibabel.Nifti2Image, "nii.gz")):
            image = kind((RANDOM.random((3, 4, 5)) * 99).astype(dtype), np.diag([2, 2, 3, 1]), dtype=np.dtype(dtype).newbyteorder("="))
            data = image.to_bytes()
            voxels = np.asanyarray(kind.from_bytes(data).dataobj)
            value = np.asarray(voxels, voxels.dtype.newbyteorder("="))
            yield Odd(f"nifti {dtype} in {kind.__name__}", ext, gzip.compress(data) if ext == "nii.gz" else data, value)
    scaled = nibabel.Nifti1Image(np.arange(24, dtype=np.int16).reshape(2, 3, 4), np.eye(4))
    scaled.header.set_slope_inter(0.5, 10)
    data = scaled.to_bytes()
    yield Odd("nifti with a slope", "nii", data, np.asarray(nibabel.Nifti1Image.from_bytes(data).dataobj, np.float32))
    film = nibabel.Nifti1Image(np.arange(120, dtype=np.int16).reshape(2, 3, 4, 5), np.eye(4))
    yield Odd("nifti of four dimensions", "nii", film.to_bytes(), np.asarray(film.dataobj))
