"""DICOM and NIfTI: slices with a window, the file's own first (extra `medical`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.ops.values.payloads import decode_payload, gunzip
from tarviz.ops.values.volumes import open_dicom, open_nifti
from tarviz.viewers.npy import draw, draw_tile
from tarviz.viewers.panel import Meta, Panel

EXTENSIONS = ("dcm", "dicom", "nii", "nii.gz")

_FACTS = ("Modality", "BodyPartExamined", "PhotometricInterpretation", "PixelSpacing", "SliceThickness", "RescaleType")
_HOUNSFIELD = ("soft tissue -160…240", "lung -1350…150", "bone -450…1050")  # the usual windows of a CT


def claims(head: bytes) -> bool:
    return head[128:132] == b"DICM" or head[344:348] in (b"n+1\0", b"ni1\0")


@dataclass(frozen=True, slots=True)
class Volume:
    """Slices [z, y, x] or a picture, in colour or not, the windows that belong to it, and facts."""

    array: NDArray[Any]
    windows: tuple[str, ...]
    facts: list[tuple[str, str]]
    slices: bool = True


def load(blob: memoryview, ext: str) -> Volume:
    """What a DICOM or NIfTI holds; errors as `decode_payload` has them."""
    if bytes(blob[128:132]) != b"DICM" and not ext.endswith(("dcm", "dicom")):
        return _nifti(gunzip(blob) if bytes(blob[:2]) == b"\x1f\x8b" else blob)
    pixels, about = decode_payload("dcm", blob), open_dicom(blob)
    windows = list(_HOUNSFIELD) if about.get("Modality") == "CT" else []
    centre, width = (float(np.atleast_1d(about.get(name) or 0)[0]) for name in ("WindowCenter", "WindowWidth"))
    low, high = (centre - width / 2, centre + width / 2) if width > 0 else (float(pixels.min()), float(pixels.max()))
    how = about.get("PhotometricInterpretation")
    if how == "MONOCHROME1":
        windows.insert(0, f"the file's, high is dark {high:g}…{low:g}")
    elif how == "PALETTE COLOR":
        pixels, windows = _look_up(pixels, about), []
    elif width > 0:
        windows.insert(0, f"the file's {low:g}…{high:g}")
    facts = [(name, str(about[name].value)) for name in _FACTS if name in about]
    return Volume(pixels, tuple(windows), facts, about.get("SamplesPerPixel", 1) == 1 and how != "PALETTE COLOR")


def _look_up(numbers: NDArray[Any], about: Any) -> NDArray[np.uint8]:
    """The colours [..., 3] that the file's table has for its numbers."""
    from pydicom.pixels import apply_color_lut

    colours = apply_color_lut(numbers, about)[..., :3]
    return np.asarray(colours >> 8 * (colours.itemsize - 1), np.uint8)


def _nifti(blob: bytes | memoryview) -> Volume:
    """Slices from below upwards, front up, the right of the body at the left, as DICOM has them, however the file's axes run."""
    voxels = decode_payload("nii", blob)
    from nibabel.orientations import aff2axcodes, apply_orientation, io_orientation

    affine = open_nifti(blob).affine
    facts = [("x, y, z, …", " × ".join(map(str, voxels.shape))), ("axes run to", ", ".join(str(end) for end in aff2axcodes(affine)))]
    if voxels.ndim < 3:
        return Volume(voxels.T[::-1], (), facts)
    turns = io_orientation(affine)
    upright = voxels if np.isnan(turns).any() else apply_orientation(voxels, turns)
    slices = np.moveaxis(upright, (2, 1, 0), (-3, -2, -1))[..., ::-1, ::-1]
    colours = slices.dtype.names is not None  # of R, G, B as maps of fibres have them
    if colours:
        from numpy.lib.recfunctions import structured_to_unstructured  # masked arrays come with it

        slices = structured_to_unstructured(slices)
    return Volume(slices, (), facts, not colours)


def view(blob: memoryview, meta: Meta) -> Panel:
    found = load(blob, meta.ext)
    panel = Panel(f"{' × '.join(map(str, found.array.shape))} {found.array.dtype}", facts=found.facts)
    draw(found.array, meta.ext, meta, panel, usual="grey", windows=found.windows, slices=found.slices)
    return panel


def tile(blob: memoryview, meta: Meta, size: int) -> bytes | str:
    found = load(blob, meta.ext)
    return draw_tile(found.array, meta.ext, size, usual="grey", window=next(iter(found.windows), ""), slices=found.slices)
