"""DICOM and NIfTI: slices with a window, the file's own first (extra `medical`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.ops.values.payloads import decode_payload
from tarviz.ops.values.volumes import open_dicom
from tarviz.viewers.npy import draw, drawn
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
        voxels = decode_payload("nii.gz" if bytes(blob[:2]) == b"\x1f\x8b" else "nii", blob)
        # as radiologists see it: slices along the last axis, front up
        turned = np.moveaxis(voxels, (2, 1, 0), (-3, -2, -1))[..., ::-1, :] if voxels.ndim > 2 else voxels.T[::-1]
        return Volume(turned, (), [("x, y, z, …", " × ".join(map(str, voxels.shape)))])
    pixels, about = decode_payload("dcm", blob), open_dicom(blob)
    windows = list(_HOUNSFIELD) if about.get("Modality") == "CT" else []
    centre, width = (float(np.atleast_1d(about.get(name) or 0)[0]) for name in ("WindowCenter", "WindowWidth"))
    if about.get("PhotometricInterpretation") == "MONOCHROME1":  # high is dark
        pixels = pixels.max(initial=0) - pixels
    elif width > 0:
        windows.insert(0, f"the file's {centre - width / 2:g}…{centre + width / 2:g}")
    facts = [(name, str(about[name].value)) for name in _FACTS if name in about]
    return Volume(pixels, tuple(windows), facts, about.get("SamplesPerPixel", 1) == 1)


def view(blob: memoryview, meta: Meta) -> Panel:
    found = load(blob, meta.ext)
    panel = Panel(f"{' × '.join(map(str, found.array.shape))} {found.array.dtype}", facts=found.facts)
    draw(found.array, meta.ext, meta, panel, usual="grey", windows=found.windows, slices=found.slices)
    return panel


def tile(blob: memoryview, meta: Meta, size: int) -> bytes | str:
    found = load(blob, meta.ext)
    return drawn(found.array, meta.ext, size, usual="grey", window="".join(found.windows[:1]), slices=found.slices)
