"""NumPy arrays (`npy`, `npz`) and WebDataset's `ten`: shape, dtype, statistics, and a picture, heat map or line. No pickle, ever."""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.formats.npy import array_of
from tarviz.formats.tenbin import decode_buffer
from tarviz.looks import points, tones
from tarviz.model.errors import DataError
from tarviz.viewers.panel import Control, Image, Meta, Note, Panel, Plot, Points, Table, Text
from tarviz.viewers.spark import sparkline

EXTENSIONS = ("npy", "npz", "ten", "tenbin", "tb")
MAGIC = (b"\x93NUMPY", b"~TenBin~")


def _npz(blob: memoryview, meta: Meta) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(blob)) as archive:
            for info in archive.infolist()[:64]:
                meta.check_unpacked(info.file_size, max(info.compress_size, 1))
                with archive.open(info) as stream:
                    data = stream.read(info.file_size + 1)
                arrays[info.filename.removesuffix(".npy")] = array_of(data)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError) as error:
        raise DataError(f".{meta.ext} is not a readable npz ({error}).", code="E_DECODE") from error
    return arrays


def load(blob: memoryview, meta: Meta) -> dict[str, NDArray[Any]]:
    """Name → array of any of the three formats; an npy's only array is named ""."""
    if bytes(blob[:4]) == b"PK\x03\x04":
        return _npz(blob, meta)
    if bytes(blob[:8]) == b"~TenBin~":
        arrays, names = decode_buffer(blob, infos=True)
        return {f"{number} {name}".strip(): array for number, (name, array) in enumerate(zip(names, arrays, strict=True))}
    return {"": array_of(blob)}


def view(blob: memoryview, meta: Meta) -> Panel:
    arrays = load(blob, meta)
    if not arrays:
        return Panel("no arrays", [Note("The file holds no arrays.")])
    names = tuple(arrays)
    name = meta.options.get("array", names[0])
    array = arrays.get(name, arrays[names[0]])
    panel = Panel(_title(array) if len(arrays) == 1 else f"{len(arrays)} arrays, {name}: {_title(array)}")
    if len(arrays) > 1:
        panel.controls.append(Control("array", "array", name, choices=names))
    panel.facts.extend([("dtype", str(array.dtype)), ("shape", "×".join(map(str, array.shape)) or "scalar"), *statistics(array)])
    _draw(array, meta, panel)
    return panel


def _title(array: NDArray[Any]) -> str:
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"


def statistics(array: NDArray[Any]) -> list[tuple[str, str]]:
    """min, max, mean and the number of NaNs, of at most the first 16 million items."""
    flat = array.reshape(-1)[: 1 << 24]
    if not flat.size or flat.dtype.kind not in "biufc":
        return []
    if flat.dtype.kind in "fc":
        bad = int(np.isnan(flat).sum())
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            good = flat[~np.isnan(flat)].real
            low, high, mean = (good.min(), good.max(), good.mean(dtype=np.float64)) if good.size else (np.nan,) * 3
        facts = [("NaN", str(bad))]
    else:
        low, high, mean, facts = flat.min(), flat.max(), flat.mean(dtype=np.float64), []
    return [("min", f"{low:.6g}"), ("max", f"{high:.6g}"), ("mean", f"{mean:.6g}"), *facts]


def _draw(array: NDArray[Any], meta: Meta, panel: Panel) -> None:
    if array.dtype.names or array.dtype.kind not in "biufc":
        panel.blocks.append(_table(array))
        return
    if array.size == 0:
        panel.blocks.append(Note("The array is empty."))
        return
    colour = is_colour(array)
    keep = 3 if colour else 2
    lead = array.shape[:-keep] if array.ndim > keep else ()
    wanted = list(meta.options.get("slice") or ())
    for axis, length in enumerate(lead):
        at = min(max(int(wanted[axis]) if axis < len(wanted) else length // 2, 0), length - 1)
        panel.controls.append(Control("slice", f"axis {axis}", at, high=length - 1))
        array = array[at]
    if array.ndim == 0:
        panel.blocks.append(Text(str(array[()]), numbered=False))
    elif array.ndim == 1:
        panel.blocks.append(_line(array))
    elif points.is_cloud(array) and not meta.options.get("as_picture"):
        _cloud(array, panel)
    else:
        _picture(array, colour, meta, panel)
    if array.size <= 256:
        panel.blocks.append(Text(np.array2string(array, threshold=300, max_line_width=100, precision=6), numbered=False))


def is_colour(array: NDArray[Any]) -> bool:
    """Whether the last three axes look like a picture: height, width (8 or more each), 3 or 4 channels of unsigned integers or floats."""
    return array.ndim >= 3 and array.shape[-1] in (3, 4) and min(array.shape[-3:-1]) >= 8 and array.dtype.kind in "uf"


def _table(array: NDArray[Any]) -> Table:
    names = array.dtype.names or ("value",)
    flat = array.reshape(-1)[:200]
    rows = tuple(tuple(str(row[name])[:200] for name in names) if array.dtype.names else (str(row)[:200],) for row in flat)
    return Table(tuple(names), rows)


def _line(array: NDArray[Any]) -> Plot:
    values = array.real.astype(np.float64)
    if len(values) <= 2000:
        return Plot("lines", (("value", tuple(values.tolist())),), f"{len(values)} values")
    edges = np.linspace(0, len(values), 1001).astype(int)[:-1]
    with np.errstate(all="ignore"):
        low, high = np.fmin.reduceat(values, edges), np.fmax.reduceat(values, edges)
    return Plot(
        "envelope",
        (("low", tuple(low.tolist())), ("high", tuple(high.tolist()))),
        f"{len(values)} values, lowest and highest of each thousandth",
    )


def coloured(array: NDArray[Any], limit: int = 1024) -> tuple[NDArray[np.uint8], str]:
    """An array [h, w, 3|4] as uint8 colours, thinned to at most `limit` a side, and how values became colours."""
    step = max(1, math.ceil(max(array.shape[:2]) / limit))
    array = array[::step, ::step].real
    note = f", every {step}th" if step > 1 else ""
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array), f"as it is{note}"
    scale = 255.0 if array.dtype.kind == "f" and np.nanmax(array, initial=0) <= 1.5 else 1.0
    with np.errstate(all="ignore"):
        return np.nan_to_num(array.astype(np.float64) * scale).clip(0, 255).astype(np.uint8), f"×{scale:.0f}, clipped to 0…255{note}"


def _picture(array: NDArray[Any], colour: bool, meta: Meta, panel: Panel) -> None:
    from PIL import Image as Pil

    from tarviz.viewers.image import encode, numbers

    if not colour:
        numbers(np.ascontiguousarray(array.real), meta, panel, usual="viridis")
        return
    shown, how = coloured(array)
    panel.blocks.append(Image(encode(Pil.fromarray(shown), "PNG"), "image/png", shown.shape[1], shown.shape[0], how))


def _cloud(array: NDArray[Any], panel: Panel) -> None:
    places, colours = points.thinned(array)
    panel.blocks.append(Points(places.astype("<f4").tobytes(), colours.tobytes(), len(array)))
    panel.blocks.append(_columns(array))


def _columns(array: NDArray[Any]) -> Table:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        rows = [
            (str(at), *(f"{value:.5g}" for value in (np.nanmin(one), np.nanmax(one), np.nanmean(one)))) for at, one in enumerate(array.T)
        ]
    return Table(("column", "min", "max", "mean"), tuple(rows), right=(1, 2, 3))


def tile(blob: memoryview, meta: Meta, size: int) -> bytes | str:
    array = next(iter(load(blob, meta).values()), None)
    if array is None or array.size == 0 or array.dtype.kind not in "biufc" or array.ndim < 1 or array.size < 4:
        return "empty" if array is None else f"{_title(array)}\n{array.reshape(-1)[:8].tolist()}"
    if array.ndim == 1:
        return sparkline(array.real.astype(np.float64), size)
    from PIL import Image as Pil

    from tarviz.viewers.image import encode

    colour = is_colour(array)
    while array.ndim > (3 if colour else 2):
        array = array[len(array) // 2]
    if points.is_cloud(array):
        return encode(Pil.fromarray(points.drawn(array, size)), "PNG")
    if colour:
        return encode(Pil.fromarray(coloured(array, size)[0]), "PNG")
    step = max(1, math.ceil(max(array.shape) / size))
    picture = Pil.fromarray(tones.shade(np.ascontiguousarray(array.real), usual="viridis")[0][::step, ::step])
    return encode(picture, "PNG")
