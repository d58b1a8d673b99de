"""Arrays (`npy`, `npz`, `ten`, `safetensors`): shape, dtype, statistics, and a picture, cloud, lines or numbers. No pickle, ever."""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.formats.npy import array_of
from tarviz.formats.tenbin import decode_buffer
from tarviz.looks import points, tones
from tarviz.model.errors import DataError
from tarviz.ops.values.structured import decode_structured
from tarviz.viewers.image import encode, planes
from tarviz.viewers.panel import Block, Control, Meta, Note, Panel, Plot, Points, Table, Text
from tarviz.viewers.spark import envelope_plot, sparkline

EXTENSIONS = ("npy", "npz", "ten", "tenbin", "tb", "safetensors")
MAGIC = (b"\x93NUMPY", b"~TenBin~")

_MOST_COUNTED = 1 << 24
_LEAST_SIDE = 8
_MOST_LINES = 64


def _npz(blob: memoryview, meta: Meta) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(blob)) as archive:
            for info in archive.infolist()[:64]:
                meta.check_unpacked(info.file_size)
                with archive.open(info) as stream:
                    data = stream.read(info.file_size + 1)
                arrays[info.filename.removesuffix(".npy")] = array_of(data)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError) as error:
        raise DataError(f".{meta.ext} is not a readable npz ({error}).", code="E_DECODE") from error
    return arrays


def load(blob: memoryview, meta: Meta) -> dict[str, NDArray[Any]]:
    """Name → array of any of these formats; an npy's only array is named ""."""
    if bytes(blob[:2]) == b"PK":
        return _npz(blob, meta)
    if bytes(blob[:8]) == b"~TenBin~":
        arrays, names = decode_buffer(blob, infos=True)
        return {f"{number} {name}".strip(): array for number, (name, array) in enumerate(zip(names, arrays, strict=True))}
    if meta.ext.rpartition(".")[2] == "safetensors":
        return dict(decode_structured("safetensors", blob))
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
    draw(array, f"{name}.{meta.ext}", meta, panel)
    return panel


def _title(array: NDArray[Any]) -> str:
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"


def statistics(array: NDArray[Any]) -> list[tuple[str, str]]:
    """min, max, mean and the number of NaNs, of at most the first 16 million items, which is said."""
    flat = array.reshape(-1)[:_MOST_COUNTED]
    if not flat.size or flat.dtype.kind not in "biufc":
        return []
    if flat.dtype.kind in "fc":
        bad = int(np.isnan(flat).sum())
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            good = flat[~np.isnan(flat)].real
            low, high, mean = (good.min(), good.max(), good.mean(dtype=np.float64)) if good.size else (np.nan,) * 3
        facts = [("NaN", str(bad))]
    else:
        low, high, mean, facts = flat.min(), flat.max(), flat.mean(dtype=np.float64), []
    part = [("these are of", f"the first {_MOST_COUNTED:,} numbers of {array.size:,}")] if array.size > _MOST_COUNTED else []
    return [("min", f"{low:.6g}"), ("max", f"{high:.6g}"), ("mean", f"{mean:.6g}"), *facts, *part]


def draw(
    array: NDArray[Any], name: str, meta: Meta, panel: Panel, *, usual: str = "viridis", windows: Sequence[str] = (), slices: bool = False
) -> None:
    """Into `panel`: an array by what its form and `name` say it is, with the choice of what else it may be, and what is in it in numbers.

    `usual` is the palette of what is a picture, `windows` come before those of every picture; `slices`: no axis of it is colours.
    """
    panel.facts.extend([("dtype", str(array.dtype)), ("shape", "×".join(map(str, array.shape)) or "scalar"), *statistics(array)])
    if array.dtype.names or array.dtype.kind not in "biufc":
        panel.blocks.append(_table(array))
        return
    if array.size == 0:
        panel.blocks.append(Note("The array is empty."))
        return
    array, colour = (array, False) if slices else in_colour(array)
    keep = 3 if colour else 2
    lead = array.shape[:-keep] if array.ndim > keep else ()
    wanted = list(meta.options.get("slice") or ())
    for axis, length in enumerate(lead):
        at = min(max(int(wanted[axis]) if axis < len(wanted) else length // 2, 0), length - 1)
        panel.controls.append(Control("slice", f"axis {axis}", at, high=length - 1))
        array = array[at]
    array = array.real
    if array.ndim == 0:
        panel.blocks.append(Text(str(array[()]), numbered=False))
        return
    ways = ["picture"] if colour else forms(array, name)
    way = wish if (wish := str(meta.options.get("as"))) in ways else ways[0]
    if len(ways) > 1:
        panel.controls.append(Control("as", "shown as", way, choices=tuple(ways)))
    if way in ("cloud", "lines", "numbers") and not colour:
        panel.blocks.extend(_rows(array, way))
    else:
        planes(np.ascontiguousarray(array if colour else array[:, :, None]), meta, panel, usual=usual, windows=windows)
    if array.size <= 256 and way != "numbers":
        panel.blocks.append(Text(np.array2string(array, threshold=300, max_line_width=100, precision=6), numbered=False))


def _rows(array: NDArray[Any], way: str) -> list[Block]:
    """An array [n] or [n, columns] as something other than a picture."""
    if way == "numbers":
        return [_numbers(array)]
    if array.ndim == 1:
        return [_line(array)]
    if way == "cloud":
        places, colours = points.thin(array)
        return [Points(places.astype("<f4").tobytes(), colours.tobytes(), len(array)), _columns(array)]
    return [_lines(array), _columns(array)]


def in_colour(array: NDArray[Any]) -> tuple[NDArray[Any], bool]:
    """The array, and whether its last three axes look like a picture: height, width (8 or more each), 3 or 4 channels of numbers of more
    than a bit. PyTorch's [3, h, w] becomes [h, w, 3]."""
    if array.ndim < 3 or array.dtype.kind not in "iuf":
        return array, False
    if array.shape[-1] in (3, 4) and min(array.shape[-3:-1]) >= _LEAST_SIDE:
        return array, True
    first = array.shape[-3] in (3, 4) and min(array.shape[-2:]) >= _LEAST_SIDE
    return (np.moveaxis(array, -3, -1), True) if first else (array, False)


def forms(array: NDArray[Any], name: str) -> list[str]:
    """The ways in which an array [n] or [n, columns] can be shown, the one that it looks like first."""
    if array.ndim == 1:
        return ["lines", "numbers"]
    found = ["cloud"] if points.is_cloud(array, name) else ["lines"] if points.are_steps(array) else ["picture"]
    others = {"cloud": 3 <= array.shape[1] <= 7 and array.dtype.kind == "f", "lines": array.shape[1] <= _MOST_LINES}
    return found + [way for way in ("cloud", "lines", "picture", "numbers") if way not in found and others.get(way, True)]


def _lines(array: NDArray[Any]) -> Plot:
    """A line a column, over the rows; of more than 2,000 every so manyth."""
    step = max(1, math.ceil(len(array) / 2000))
    series = tuple((f"column {at}", tuple(column.tolist())) for at, column in enumerate(array[::step].astype(np.float64).T))
    return Plot("lines", series, f"{len(array)} rows{f', every {step}th' if step > 1 else ''}")


def _numbers(array: NDArray[Any]) -> Table:
    rows = array.reshape(len(array), -1)[:200, :32]
    names = [f"{at}" for at in range(rows.shape[1])]
    return Table(
        ("", *names), tuple((str(at), *(f"{one:.6g}" for one in row)) for at, row in enumerate(rows)), tuple(range(len(names) + 1))
    )


def _table(array: NDArray[Any]) -> Table:
    names = array.dtype.names or ("value",)
    flat = array.reshape(-1)[:200]
    rows = tuple(tuple(str(row[name])[:200] for name in names) if array.dtype.names else (str(row)[:200],) for row in flat)
    return Table(tuple(names), rows)


def _line(array: NDArray[Any]) -> Plot:
    values = array.real.astype(np.float64)
    if len(values) <= 2000:
        return Plot("lines", (("value", tuple(values.tolist())),), f"{len(values)} values")
    return envelope_plot(values, 1000, f"{len(values)} values, lowest and highest of each thousandth")


def _columns(array: NDArray[Any]) -> Table:
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        rows = [
            (str(at), *(f"{value:.5g}" for value in (np.nanmin(one), np.nanmax(one), np.nanmean(one)))) for at, one in enumerate(array.T)
        ]
    return Table(("column", "min", "max", "mean"), tuple(rows), right=(1, 2, 3))


def tile(blob: memoryview, meta: Meta, size: int) -> bytes | str:
    name, array = next(iter(load(blob, meta).items()), ("", None))
    if array is None or array.size < 4 or array.dtype.kind not in "biufc":
        return "empty" if array is None else f"{_title(array)}\n{array.reshape(-1)[:8].tolist()}"
    return draw_tile(array, f"{name}.{meta.ext}", size)


def draw_tile(array: NDArray[Any], name: str, size: int, *, usual: str = "viridis", window: str = "", slices: bool = False) -> bytes:
    """The picture of an array for a tile: what `draw` shows of it first."""
    array, colour = (array, False) if slices else in_colour(array)
    while array.ndim > (3 if colour else 2):
        array = array[len(array) // 2]
    array = array.real
    way = "" if colour else forms(array, name)[0]
    if way == "lines":
        return sparkline(array.astype(np.float64), size)
    if way == "cloud":
        return encode(points.draw(array, size), "PNG")
    step = max(1, math.ceil(max(array.shape[:2]) / size))
    if colour:
        shown = tones.colour(np.ascontiguousarray(array[::step, ::step]), window)[0]
    else:
        shown = tones.shade(np.ascontiguousarray(array), window, usual=usual)[0][::step, ::step]
    return encode(np.ascontiguousarray(shown), "PNG")
