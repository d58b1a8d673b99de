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

    Numbers without a slope keep their dtype, others become float32. `E_NOT_SHOWN` for a file without pixels, and for one that is a film.
    """
    from pydicom.pixels import get_decoder
    from pydicom.uid import JPEGExtended12Bit

    found = open_dicom(data)
    if "PixelData" not in found and "FloatPixelData" not in found and "DoubleFloatPixelData" not in found:
        raise DataError(f"the DICOM ({found.get('Modality', 'no modality')}) holds no pixels.", code="E_NOT_SHOWN")
    counts = (found.get(name) or 1 for name in ("NumberOfFrames", "Rows", "Columns", "SamplesPerPixel", "BitsAllocated"))
    _check_size(math.prod(int(count) for count in counts) // 8)
    if "PixelData" in found:
        syntax = found.file_meta.TransferSyntaxUID
        try:
            decoder = get_decoder(syntax)
        except NotImplementedError as error:
            raise DataError(f"the DICOM is coded as {syntax.name}, which is not decoded.", code="E_NOT_SHOWN") from error
        deep_jpeg = syntax == JPEGExtended12Bit and found.get("BitsStored", 8) > 8 and decoder.available_plugins == ("pillow",)
        if not decoder.is_available or deep_jpeg:
            raise MissingPackageError.of("pylibjpeg", "a DICOM compressed like this")
    return _in_units(found.pixel_array, found)


def _in_units(pixels: NDArray[Any], found: Any) -> NDArray[Any]:
    """Slope and intercept of the file, or those that an enhanced one has for all of its frames, or for each (PS3.3, C.7.6.16.2.9)."""
    from pydicom.pixels import apply_modality_lut

    name = "PixelValueTransformationSequence"
    groups = [group for which in ("Shared", "PerFrame") for group in found.get(f"{which}FunctionalGroupsSequence") or ()]
    rules = [group[name].value[0] for group in groups if name in group] or [found]
    if all(
        rule.get("RescaleSlope") in (None, 1) and rule.get("RescaleIntercept") in (None, 0) and "ModalityLUTSequence" not in rule
        for rule in rules
    ):
        return np.ascontiguousarray(pixels, pixels.dtype.newbyteorder("="))
    frames = pixels if len(rules) > 1 else pixels[None]
    made = [np.asarray(apply_modality_lut(frame, rule), np.float32) for frame, rule in zip(frames, rules, strict=True)]
    return np.ascontiguousarray(made[0]) if len(rules) == 1 else np.stack(made)


def open_nifti(data: Buffer) -> Any:
    """The nibabel image of a NIfTI file, its voxels not read yet."""
    import nibabel

    kind = nibabel.Nifti2Image if bytes(data[:4]) in (b"\x1c\x02\0\0", b"\0\0\x02\x1c") else nibabel.Nifti1Image
    return kind.from_bytes(bytes(data))


def decode_nifti(data: Buffer) -> NDArray[Any]:
    """The voxels [x, y, z, …] of a NIfTI file, as they lie in it; float32 where it has a slope, else in its dtype."""
    from nibabel.filebasedimages import ImageFileError
    from nibabel.spatialimages import HeaderDataError
    from nibabel.wrapstruct import WrapStructError

    try:
        image = open_nifti(data)
        need = math.prod(image.shape) * image.get_data_dtype().itemsize
        _check_size(need)
        if need > len(data):
            raise DataError(f"the NIfTI is cut short: {need} bytes are said, {len(data)} are there.", code="E_DECODE")
        voxels = np.asanyarray(image.dataobj)
    except (ImageFileError, HeaderDataError, WrapStructError) as error:
        raise DataError(f"this is not a NIfTI file: {error}.", code="E_DECODE") from error
    scaled = (image.dataobj.slope, image.dataobj.inter) != (1, 0)
    return np.ascontiguousarray(voxels, np.float32 if scaled and voxels.dtype == np.float64 else voxels.dtype.newbyteorder("="))


def _check_size(need: int) -> None:
    if need > (limit := options().max_member_bytes):
        raise LimitError(f"{need} bytes of pixels are more than the limit {limit}.", hint="The option max_member_bytes sets it.")
