"""Medical pictures as numbers: DICOM by pydicom, NIfTI by nibabel (extra `medical`)."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.config import options
from tarviz.model.errors import DataError, LimitError, MissingPackageError
from tarviz.model.types import Buffer


def open_dicom(data: Buffer) -> Any:
    """The `pydicom.Dataset` of a file, its pixels not decoded yet. `E_DECODE` where it is none."""
    import pydicom
    from pydicom.errors import InvalidDicomError

    try:
        return pydicom.dcmread(io.BytesIO(data))
    except InvalidDicomError as error:
        raise DataError("this is not a DICOM file: it lacks the mark DICM.", code="E_DECODE") from error


def decode_dicom(data: Buffer) -> NDArray[Any]:
    """The pixels [h, w], [frames, h, w] or [h, w, 3] of a DICOM file in its own unit (Hounsfield of a CT): its slope and intercept applied.

    Numbers without a slope keep their dtype, others become float32. `E_NOT_SHOWN` for a file without pixels.
    """
    from pydicom.pixels import apply_modality_lut, get_decoder

    found = open_dicom(data)
    if "PixelData" not in found and "FloatPixelData" not in found and "DoubleFloatPixelData" not in found:
        raise DataError(f"the DICOM ({found.get('Modality', 'no modality')}) holds no pixels.", code="E_NOT_SHOWN")
    counts = (found.get(name) or 1 for name in ("NumberOfFrames", "Rows", "Columns", "SamplesPerPixel", "BitsAllocated"))
    _check_size(math.prod(int(count) for count in counts) // 8)
    if "PixelData" in found and not get_decoder(found.file_meta.TransferSyntaxUID).is_available:
        raise MissingPackageError.of("pylibjpeg", "a DICOM compressed like this")
    pixels = found.pixel_array
    if found.get("RescaleSlope") in (None, 1) and found.get("RescaleIntercept") in (None, 0) and "ModalityLUTSequence" not in found:
        return np.ascontiguousarray(pixels)
    return np.ascontiguousarray(apply_modality_lut(pixels, found), np.float32)


def decode_nifti(data: Buffer) -> NDArray[Any]:
    """The voxels [x, y, z, …] of a NIfTI file, as they lie in it; float32 where it has a slope, else in its dtype."""
    import nibabel
    from nibabel.filebasedimages import ImageFileError
    from nibabel.spatialimages import HeaderDataError
    from nibabel.wrapstruct import WrapStructError

    try:
        kind = nibabel.Nifti2Image if bytes(data[:4]) in (b"\x1c\x02\0\0", b"\0\0\x02\x1c") else nibabel.Nifti1Image
        image = kind.from_bytes(bytes(data))
        need = math.prod(image.shape) * image.get_data_dtype().itemsize
        _check_size(need)
        if need > len(data):
            raise DataError(f"the NIfTI is cut short: {need} bytes are said, {len(data)} are there.", code="E_DECODE")
        voxels = np.asanyarray(image.dataobj)
    except (ImageFileError, HeaderDataError, WrapStructError) as error:
        raise DataError(f"this is not a NIfTI file: {error}.", code="E_DECODE") from error
    return np.ascontiguousarray(voxels, np.float32 if voxels.dtype == np.float64 else voxels.dtype.newbyteorder("="))


def _check_size(need: int) -> None:
    if need > (limit := options().max_member_bytes):
        raise LimitError(f"{need} bytes of pixels are more than the limit {limit}.", hint="The option max_member_bytes sets it.")
