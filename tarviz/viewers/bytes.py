"""Any bytes: hexadecimal, what they begin like, how random they are, as numbers on request; raw scans of a LiDAR as points."""

from __future__ import annotations

import numpy as np

from tarviz.formats import sniff
from tarviz.looks import points
from tarviz.viewers.npy import draw, draw_tile
from tarviz.viewers.panel import Control, Hex, Meta, Note, Panel, Plot

EXTENSIONS = ("bin", "dat", "raw")

_GUESSES: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x7fELF", "an ELF program"),
    (b"MZ", "a Windows program"),
    (b"\x89HDF", "an HDF5 file"),
    (b"SQLite format 3", "an SQLite database"),
    (b"glTF", "a glTF model"),
    (b"#!", "a script"),
    (b"\xca\xfe\xba\xbe", "a Java class or Mach-O file"),
)
_NUMBERS = ("no", "int8", "uint8", "<i2", ">i2", "<u2", "<i4", ">i4", "<i8", "<f2", "<f4", ">f4", "<f8")


def guess(head: bytes) -> str:
    """What bytes beginning so may be, or an empty text."""
    known = (name for magic, name in _GUESSES if head.startswith(magic))
    return next(known, {"tar": "a tar archive", "HEIC": "a HEIC picture, which is not drawn here"}.get(sniff.kind(head) or "", ""))


def entropy(blob: memoryview) -> tuple[float, ...]:
    """Bits per byte (0…8) of up to 128 stretches of the payload; encrypted or packed data is near 8."""
    data = np.frombuffer(blob, np.uint8)[: 4 << 20]
    shown = []
    for stretch in np.array_split(data, max(1, min(128, len(data) // 256))):
        share = np.bincount(stretch, minlength=256) / max(len(stretch), 1)
        share = share[share > 0]
        shown.append(float(-(share * np.log2(share)).sum()))
    return tuple(shown)


def view(blob: memoryview, meta: Meta) -> Panel:
    size = f"{len(blob):,} bytes"
    if not len(blob):
        return Panel("0 bytes", [Note("The member is empty, 0 bytes.", "warn")], [("size", size)])
    what = guess(bytes(blob[:512]))
    scan = points.of_scan(blob)
    panel = Panel(f"{len(scan):,} points, {size}" if scan is not None else size + (f", {what}" if what else ""), [], [("size", size)])
    if scan is not None:
        draw(scan, "points", meta, panel)
    if what:
        panel.blocks.append(Note(f"It begins like {what}."))
    wanted = str(meta.options.get("numbers", "no"))
    panel.controls.append(Control("numbers", "as numbers", wanted, choices=_NUMBERS))
    if wanted in _NUMBERS[1:]:
        kind = np.dtype(wanted)
        values = np.frombuffer(blob, kind, min(len(blob) // kind.itemsize, 2000)).astype(np.float64)
        panel.blocks.append(Plot("lines", ((wanted, tuple(values.tolist())),), f"first {len(values)} values"))
    bits = entropy(blob)
    if len(bits) > 1:
        panel.blocks.append(Plot("lines", (("bits per byte", bits),), "entropy along the member, 8 = random"))
    panel.blocks.append(Hex())
    return panel


def tile(blob: memoryview, meta: Meta, size: int) -> bytes | str:
    if (scan := points.of_scan(blob)) is not None:
        return draw_tile(scan, "points", size)
    what = guess(bytes(blob[:512]))
    return f"{len(blob):,} bytes{', ' + what if what else ''}\n{bytes(blob[:24]).hex(' ')}"
