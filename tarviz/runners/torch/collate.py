"""Batches for torch of values of any kind: tensors of what has one shape, and the rest as it is, or filled up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import default_collate, default_convert

from tarviz.selection import SelectDict, Selection, SelectList

_LARGEST = 1 << 63  # a whole number that no tensor holds


@dataclass(frozen=True, slots=True)
class Collate:
    """A collate function for what a selection picks: batches in its structure, tuples as lists, as torch's own makes them.

    Numbers, and arrays of one shape, become a tensor. What torch's own refuses stays a list, one value a record: arrays of different
    shapes (as tensors), those of dtypes that torch lacks (times, structs), lists, text, null; a field that some records lack is null
    there. `pad` fills arrays, and lists of numbers, up at the end of each axis to the largest of the batch: True with 0, else with that.
    """

    select: Selection
    pad: Any = None

    def __call__(self, values: Sequence[Any]) -> Any:
        return self._join(self.select, values)

    def _join(self, select: Selection, values: Sequence[Any]) -> Any:
        match select:
            case SelectDict(items):
                return {name: self._join(item, [value[name] for value in values]) for name, item in items}
            case SelectList(items):
                return [self._join(item, [value[at] for value in values]) for at, item in enumerate(items)]
            case _:
                return self._of_one(values)

    def _of_one(self, values: Sequence[Any]) -> Any:
        """The batch of the values of one field, or of one key of a dict."""
        if all(isinstance(value, Mapping) for value in values):
            names = dict.fromkeys(name for value in values for name in value)
            return {name: self._of_one([value.get(name) for value in values]) for name in names}
        if {type(value) for value in values} == {int, float}:
            values = [float(value) for value in values]
        forms = set(map(_form, values))
        if len(forms) == 1 and None not in forms:
            return default_collate(list(values))
        made = None if self.pad is None else _pad(values, 0 if self.pad is True else self.pad)
        return [_alone(value) for value in values] if made is None else torch.from_numpy(made)


def _alone(value: Any) -> Any:
    """A value in a list: a tensor where torch has its dtype."""
    return value if isinstance(value, np.ndarray | np.generic) and _form(value) is None else default_convert(value)


def _form(value: Any) -> Any:
    """What values have to have in common to become one tensor; None where they become none."""
    if isinstance(value, np.ndarray | np.generic):
        known = value.dtype.kind in "biufc" and value.dtype.isnative and value.dtype.itemsize <= (16 if value.dtype.kind == "c" else 8)
        return (value.dtype, value.shape) if known else None
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape
    return type(value) if isinstance(value, float) or (isinstance(value, int) and -_LARGEST <= value < _LARGEST) else None


def _pad(values: Sequence[Any], fill: Any) -> NDArray[Any] | None:
    """Arrays, and lists of numbers, as one array; None where they are none, or of different numbers of axes.

    >>> _pad([[[1, 2]], [[3]], []], -1).tolist()
    [[[1, 2]], [[3, -1]], [[-1, -1]]]
    """
    arrays = [array for value in values if (array := _array(value, fill)) is not None]
    axes = max((array.ndim for array in arrays), default=0)
    arrays = [array if array.size else array.reshape((array.shape + (0,) * axes)[:axes]) for array in arrays]  # [] has one axis only
    if len(arrays) < len(values) or not axes or any(array.ndim < axes for array in arrays):
        return None
    dtype = np.result_type(*([array.dtype for array in arrays if array.size] or [arrays[0].dtype]))
    shape = len(arrays), *np.max([array.shape for array in arrays], axis=0)
    made = np.full(shape, np.asarray(fill).astype(dtype))
    for row, array in zip(made, arrays, strict=True):
        row[tuple(map(slice, array.shape))] = array
    return made


def _array(value: Any, fill: Any) -> NDArray[Any] | None:
    if isinstance(value, list | tuple):
        plain = all(isinstance(part, bool | int | float) and _form(part) is not None for part in value)
        value = np.array(value) if plain else _pad(value, fill)
    return np.asarray(value) if isinstance(value, np.ndarray | torch.Tensor) and _form(value) is not None else None
